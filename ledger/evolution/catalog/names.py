"""Names in the catalog: whether one is safe and free, and whether a rename lost a race."""

from __future__ import annotations

from collections.abc import Callable

from ledger.events.catalog_events import CatalogEvent, DatabaseDropped
from ledger.events.table_events import TableName
from ledger.evolution.catalog.standing import Standing, takes_name
from ledger.model.errors import AlreadyExistsError, InvalidChangeError, NotFoundError
from ledger.model.identifier import Identifier


def name_record(identifier: Identifier) -> TableName:
    """Return the record of an identifier."""
    return TableName(database_name=identifier.database, table_name=identifier.name)


def check_free(identifier: Identifier, standing: Standing) -> None:
    """Refuse a name that is unsafe or taken, or whose database does not exist.

    Raises:
        InvalidNameError: It is not a safe name.
        NotFoundError: The database does not exist.
        AlreadyExistsError: A table or view has it.
        CommitConflictError: One of the two above, because of a winner.
    """
    identifier.checked()
    database = identifier.database
    try:
        standing.state.database(database)
    except NotFoundError as missing:
        raise standing.refusal(
            f"database {database}",
            lambda event: isinstance(event, DatabaseDropped) and event.name == database,
            missing,
        ) from None
    kind = standing.state.kind_of(identifier)
    if kind is not None:
        raise standing.refusal(
            f"name {identifier}",
            takes_name(identifier),
            AlreadyExistsError(f"{kind} {identifier} exists already; choose another name"),
        )


def check_rename(
    asked: Identifier,
    now: Identifier,
    standing: Standing,
    renamed: Callable[[CatalogEvent], bool],
) -> None:
    """Refuse to rename what a winner gave another name.

    Args:
        asked: The name that it had when the writer asked.
        now: The name that it has.
        standing: What the request is decided on.
        renamed: Whether an event renamed it.

    Raises:
        CommitConflictError: The two differ.
    """
    if asked != now:
        refused = InvalidChangeError(f"{asked} is called {now} now; ask again if you still mean it")
        raise standing.refusal(f"name {asked}", renamed, refused)
