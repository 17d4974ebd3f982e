"""Renames of tables and views, which share their names."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen
from msgspec import Struct

from ledger.decide.catalog import RenameTable, RenameView
from ledger.model.errors import AlreadyExistsError, CommitConflictError, NotFoundError
from ledger.model.names import Identifier
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.iceberg.errors import no_such_namespace
from projections.rest.iceberg.requests import TableIdentifier, commit_options, new_name
from projections.rest.requests import NO_CONTENT, Call, Reply, RequestError


class RenameRequest(Struct):
    """The body of a rename."""

    source: TableIdentifier
    destination: TableIdentifier


@frozen
class Renaming:
    """A kind of object that can be renamed.

    Attributes:
        noun: `table` or `view`.
        change: Makes the request to the catalog.
        missing_error: Returns the error for an object that does not exist.
    """

    noun: str
    change: Callable[[Identifier, Identifier], RenameTable | RenameView]
    missing_error: Callable[[str], RequestError]


def rename(catalog: IcebergCatalog, call: Call, kind: Renaming) -> Reply:
    """Rename a table or a view; its files stay where they are.

    Raises:
        RequestError: It or the new namespace does not exist, or the new name is taken.
    """
    wanted = call.decode(RenameRequest)
    source, destination = wanted.source.identifier, wanted.destination
    if source is None:
        raise kind.missing_error(wanted.source.text)
    if len(destination.namespace) != 1:
        raise no_such_namespace(".".join(destination.namespace))
    target = new_name(destination.namespace[0], destination.name)
    asked = [f"rename{kind.noun.title()}", str(source), str(target)]
    options = commit_options(call, catalog.handle.setting.author, asked)
    try:
        catalog.handle.ask(kind.change(source, target), options)
    except NotFoundError as error:
        if catalog.state.kind_of(source) != kind.noun:
            raise kind.missing_error(str(source)) from error
        raise no_such_namespace(target.database) from error
    except (AlreadyExistsError, CommitConflictError) as error:
        found = catalog.state.kind_of(target)
        if found is None:
            raise
        raise RequestError(
            409,
            f"Cannot rename {source} to {target}. {found.title()} already exists",
            "AlreadyExistsException",
        ) from error
    return NO_CONTENT
