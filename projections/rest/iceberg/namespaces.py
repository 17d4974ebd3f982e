"""Namespaces: databases of the ledger, with their properties."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from ledger.decide.catalog import AlterDatabase, CreateDatabase, DropDatabase
from ledger.model.errors import AlreadyExistsError, InvalidChangeError, NotFoundError
from projections.locations import check_location
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.iceberg.errors import no_such_namespace
from projections.rest.iceberg.requests import (
    LEVEL_SEPARATOR,
    commit_options,
    namespace_of,
    page_of,
)
from projections.rest.ledger_options import client_options, reject_ledger_options
from projections.rest.requests import NO_CONTENT, Call, Endpoint, Reply, RequestError


class CreateNamespaceRequest(Struct):
    """The body of a creation."""

    namespace: tuple[str, ...]
    properties: dict[str, str] = {}


class UpdateNamespacePropertiesRequest(Struct):
    """The body of a change of properties."""

    removals: tuple[str, ...] | None = None
    updates: dict[str, str] = field(default_factory=dict)


def list_namespaces(catalog: IcebergCatalog, call: Call) -> Reply:
    """List the namespaces; below another one there are none."""
    parent = call.query.get("parent", "")
    databases = catalog.state.databases
    if parent and parent not in databases:
        raise no_such_namespace(parent.replace(LEVEL_SEPARATOR, "."))
    page = page_of(call, () if parent else databases)
    return Reply.of({"namespaces": [[each] for each in page.items], "next-page-token": page.token})


def create_namespace(catalog: IcebergCatalog, call: Call) -> Reply:
    """Create a namespace of one level."""
    wanted = call.decode(CreateNamespaceRequest)
    if len(wanted.namespace) != 1:
        raise RequestError(
            400,
            f"namespace {'.'.join(wanted.namespace)!r} has {len(wanted.namespace)} levels, and a "
            "ledger's have one; create a namespace with one name",
        )
    (name,) = wanted.namespace
    reject_ledger_options(wanted.properties)
    if "location" in wanted.properties:
        check_location(catalog.handle, wanted.properties["location"], "location")
    options = _options(catalog, call, ["createNamespace", name, wanted.properties])
    try:
        catalog.handle.ask(CreateDatabase(name, wanted.properties), options)
    except AlreadyExistsError as error:
        raise RequestError(
            409, f"Namespace already exists: {name}", "AlreadyExistsException"
        ) from error
    return Reply.of({"namespace": [name], "properties": wanted.properties})


def load_namespace(catalog: IcebergCatalog, call: Call) -> Reply:
    """Return a namespace with its properties, and where its tables go, as Java's JdbcCatalog does.

    Without a location, Trino 476 creates a table before it looks whether the table's folder is
    empty, finds the metadata file there, and says that the creation failed.
    """
    name = namespace_of(call)
    found = catalog.state.databases.get(name)
    if found is None:
        raise no_such_namespace(name)
    properties = {**client_options(found.options), "location": catalog.ledger.location_of(found)}
    return Reply.of({"namespace": [name], "properties": properties})


def check_namespace(catalog: IcebergCatalog, call: Call) -> Reply:
    """Answer whether a namespace exists."""
    catalog.check_namespace(namespace_of(call))
    return NO_CONTENT


def drop_namespace(catalog: IcebergCatalog, call: Call) -> Reply:
    """Drop an empty namespace."""
    name = namespace_of(call)
    options = _options(catalog, call, ["dropNamespace", name])
    try:
        catalog.handle.ask(DropDatabase(name), options)
    except NotFoundError as error:
        raise no_such_namespace(name) from error
    except InvalidChangeError as error:
        inside = catalog.state.names_in(name)
        if not inside:
            raise
        raise RequestError(
            409,
            f"Namespace {name} is not empty. Contains {len(inside)} tables, views and functions, "
            f"such as {inside[0]}; drop or rename them first",
            "NamespaceNotEmptyException",
        ) from error
    return NO_CONTENT


def update_namespace(catalog: IcebergCatalog, call: Call) -> Reply:
    """Set and remove properties of a namespace."""
    name = namespace_of(call)
    wanted = call.decode(UpdateNamespacePropertiesRequest)
    removals = tuple(dict.fromkeys(wanted.removals or ()))
    reject_ledger_options((*removals, *wanted.updates))
    both = sorted({*removals} & wanted.updates.keys())
    if both:
        raise RequestError(
            422, f"Invalid namespace update: cannot set and remove properties {both} at once"
        )
    if "location" in wanted.updates:
        check_location(catalog.handle, wanted.updates["location"], "location")
    found = catalog.state.databases.get(name)
    if found is None:
        raise no_such_namespace(name)
    request = AlterDatabase(name, removals, wanted.updates)
    asked = ["updateNamespace", name, sorted(removals), wanted.updates]
    try:
        catalog.handle.ask(request, _options(catalog, call, asked))
    except NotFoundError as error:
        raise no_such_namespace(name) from error
    return Reply.of(
        {
            "updated": [*wanted.updates],
            "removed": [each for each in removals if each in found.options],
            "missing": [each for each in removals if each not in found.options],
        }
    )


def _options(catalog: IcebergCatalog, call: Call, asked: list[Any]) -> Any:
    return commit_options(call, catalog.handle.setting.author, asked)


_ALL = "/v1/{prefix}/namespaces"
_ONE = "/v1/{prefix}/namespaces/{namespace}"

ENDPOINTS = (
    Endpoint("GET", _ALL, list_namespaces),
    Endpoint("POST", _ALL, create_namespace, "write"),
    Endpoint("GET", _ONE, load_namespace),
    Endpoint("HEAD", _ONE, check_namespace),
    Endpoint("DELETE", _ONE, drop_namespace, "write"),
    Endpoint("POST", f"{_ONE}/properties", update_namespace, "write"),
)
