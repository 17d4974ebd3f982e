"""Views: lists, creations, loads, commits, drops, renames, registrations.

Source: the Iceberg REST catalog specification, CreateViewRequest, CommitViewRequest and
RegisterViewRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ledger.decide.catalog import DropView, RenameView
from ledger.ledger_writes import CREATED_AND_DROPPED
from ledger.log.request import CommitOptions, fresh_id
from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    NotFoundError,
)
from ledger.model.iceberg_layout import NO_ID
from ledger.model.iceberg_objects import IcebergViewVersion
from ledger.model.names import Identifier
from ledger.state.catalog import ViewEntry
from projections.iceberg.rest_updates import (
    AddSchema,
    AssignUuid,
    SetLocation,
    SetProperties,
)
from projections.iceberg.schema_json import convert_record, schema_from_json
from projections.iceberg.served_views import (
    create_view,
    load_view,
    register_view,
    update_view,
)
from projections.iceberg.view_updates import (
    AddViewVersion,
    SetCurrentViewVersion,
    ViewUpdate,
    view_requirement_from_json,
    view_update_from_json,
)
from projections.rest.commit_options import MESSAGE_PROPERTY
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.iceberg.errors import no_such_namespace
from projections.rest.iceberg.renaming import Renaming, rename
from projections.rest.iceberg.requests import (
    TableIdentifier,
    commit_options,
    namespace_levels,
    namespace_of,
    new_name,
    page_of,
)
from projections.rest.requests import (
    NO_CONTENT,
    Call,
    Endpoint,
    Reply,
    RequestError,
    after_commit,
)


class CreateViewRequest(Struct, rename="kebab"):
    """The body of a creation."""

    name: str
    schema: Any
    view_version: dict[str, Any]
    properties: dict[str, str]
    location: str | None = None


class CommitViewRequest(Struct):
    """The body of a commit."""

    updates: list[Any]
    requirements: list[Any] = []


class RegisterViewRequest(Struct, rename="kebab"):
    """The body of a registration."""

    name: str
    metadata_location: str


class _LoadViewResult(Struct, rename="kebab"):
    metadata_location: str
    metadata: msgspec.Raw
    config: dict[str, str] = {}


def list_views(catalog: IcebergCatalog, call: Call) -> Reply:
    """List the views of a namespace."""
    namespace = namespace_of(call)
    catalog.check_namespace(namespace)
    names = (each.name for each in catalog.state.views if each.database == namespace)
    page = page_of(call, names)
    identifiers = [{"namespace": [namespace], "name": each} for each in page.items]
    return Reply.of({"identifiers": identifiers, "next-page-token": page.token})


def load(catalog: IcebergCatalog, call: Call) -> Reply:
    """Return a view's metadata."""
    return _view_reply(catalog, _view(catalog, _name_of(call)))


def check_view(catalog: IcebergCatalog, call: Call) -> Reply:
    """Answer whether a view exists."""
    _view(catalog, _name_of(call))
    return NO_CONTENT


def create(catalog: IcebergCatalog, call: Call) -> Reply:
    """Create a view by one version; the server replaces the version's schema id."""
    namespace = namespace_of(call)
    wanted = call.decode(CreateViewRequest)
    catalog.check_namespace(namespace)
    name = new_name(namespace, wanted.name)
    version = convert_record(wanted.view_version, IcebergViewVersion, "$.view-version")
    properties = {key: each for key, each in wanted.properties.items() if key != MESSAGE_PROPERTY}
    updates: list[ViewUpdate] = [
        AssignUuid(uuid=fresh_id()),
        SetLocation(location=(wanted.location or catalog.ledger.new_location(name)).rstrip("/")),
        SetProperties(updates=properties),
        AddSchema(schema=schema_from_json(wanted.schema, "$.schema")),
        AddViewVersion(view_version=replace(version, schema_id=NO_ID)),
        SetCurrentViewVersion(view_version_id=NO_ID),
    ]
    said = {**wanted.properties, **version.summary}
    options = _options(
        catalog, call, ["createView", str(name), msgspec.json.decode(call.body)], said
    )
    return _create_by(
        catalog, name, options, lambda: create_view(catalog.handle, name, updates, **options)
    )


def register(catalog: IcebergCatalog, call: Call) -> Reply:
    """Create a view from an existing metadata file."""
    namespace = namespace_of(call)
    wanted = call.decode(RegisterViewRequest)
    catalog.check_namespace(namespace)
    name, location = new_name(namespace, wanted.name), wanted.metadata_location
    options = _options(catalog, call, ["registerView", str(name), location])
    return _create_by(
        catalog, name, options, lambda: register_view(catalog.handle, name, location, **options)
    )


def commit(catalog: IcebergCatalog, call: Call) -> Reply:
    """Commit updates of a view."""
    name = _name_of(call)
    wanted = call.decode(CommitViewRequest)
    requirements = [view_requirement_from_json(each) for each in wanted.requirements]
    updates, said = _without_message([view_update_from_json(each) for each in wanted.updates])
    asked = ["commitView", str(name), wanted.requirements, wanted.updates]
    options = _options(catalog, call, asked, said)
    try:
        done = update_view(catalog.handle, name, requirements, updates, **options)
    except NotFoundError as error:
        raise no_such_view(str(name)) from error
    with after_commit(f"the change of view {name} in version {done.version} of the catalog"):
        return _view_reply(catalog, _view(catalog, name))


def _without_message(updates: Sequence[ViewUpdate]) -> tuple[list[ViewUpdate], Mapping[str, str]]:
    """Return updates without the property that is the commit's reason, and what they say."""
    kept: list[ViewUpdate] = []
    said: dict[str, str] = {}
    for update in updates:
        if isinstance(update, AddViewVersion):
            said.update(update.view_version.summary)
        elif isinstance(update, SetProperties) and MESSAGE_PROPERTY in update.updates:
            rest = dict(update.updates)
            said[MESSAGE_PROPERTY] = rest.pop(MESSAGE_PROPERTY)
            kept.append(SetProperties(updates=rest))
            continue
        kept.append(update)
    return kept, said


def drop(catalog: IcebergCatalog, call: Call) -> Reply:
    """Drop a view; its metadata files stay."""
    name = _name_of(call)
    try:
        catalog.handle.ask(DropView(name), _options(catalog, call, ["dropView", str(name)]))
    except NotFoundError as error:
        raise no_such_view(str(name)) from error
    return NO_CONTENT


def rename_view(catalog: IcebergCatalog, call: Call) -> Reply:
    """Rename a view."""
    return rename(catalog, call, Renaming("view", RenameView, no_such_view))


def _create_by(
    catalog: IcebergCatalog,
    name: Identifier,
    options: CommitOptions,
    create_view: Callable[[], ViewEntry],
) -> Reply:
    """Create a view by a function, and answer with it; translate what contradicts its name."""
    said = f"the creation of view {name}"
    try:
        made = create_view()
    except (AlreadyExistsError, CommitConflictError) as error:
        kind = catalog.state.kind_of(name)
        if kind is None:
            raise
        what = "View" if kind == "view" else f"{kind.title()} with same name"
        raise RequestError(
            409, f"{what} already exists: {name}", "AlreadyExistsException"
        ) from error
    except NotFoundError as error:
        key = options.get("commit_id", "")
        if error.kind == CREATED_AND_DROPPED or catalog.handle.find_commit(key) is not None:
            # This or an earlier attempt created the view, and it was dropped since.
            with after_commit(said):
                raise
        if name.database in catalog.state.databases:
            raise
        raise no_such_namespace(name.database) from error
    with after_commit(said):
        return _view_reply(catalog, made)


def _view_reply(catalog: IcebergCatalog, view: ViewEntry) -> Reply:
    loaded = load_view(catalog.handle, view)
    return Reply.of(_LoadViewResult(loaded.location, msgspec.Raw(loaded.content)))


def _view(catalog: IcebergCatalog, name: Identifier) -> ViewEntry:
    found = catalog.state.views.get(name)
    if found is None:
        raise no_such_view(str(name))
    return found


def _name_of(call: Call) -> Identifier:
    """Return the view in a call's path.

    Raises:
        RequestError: No view can have the name, so it does not exist.
    """
    name = TableIdentifier(namespace_levels(call), call.values["view"])
    if name.identifier is None:
        raise no_such_view(name.text)
    return name.identifier


def no_such_view(name: str) -> RequestError:
    """Return the error for a view that does not exist."""
    return RequestError(404, f"View does not exist: {name}", "NoSuchViewException")


def _options(
    catalog: IcebergCatalog, call: Call, asked: list[Any], said: Mapping[str, str] = {}
) -> CommitOptions:
    return commit_options(call, catalog.handle.setting.author, asked, said)


_ALL = "/v1/{prefix}/namespaces/{namespace}/views"
_ONE = "/v1/{prefix}/namespaces/{namespace}/views/{view}"

ENDPOINTS = (
    Endpoint("GET", _ALL, list_views),
    Endpoint("POST", _ALL, create, "write"),
    Endpoint("GET", _ONE, load),
    Endpoint("HEAD", _ONE, check_view),
    Endpoint("POST", _ONE, commit, "write"),
    Endpoint("DELETE", _ONE, drop, "write"),
    Endpoint("POST", "/v1/{prefix}/views/rename", rename_view, "write"),
    Endpoint("POST", "/v1/{prefix}/namespaces/{namespace}/register-view", register, "write"),
)
