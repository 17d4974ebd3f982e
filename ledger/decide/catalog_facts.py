"""Operation rows of the catalog's events, and the state that requests are decided on.

Deciding requests is in another module, which a reader of the log does not import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import frozen
from msgspec import Struct, UnsetType
from msgspec.structs import replace

from ledger.decide.iceberg_views import describe_view_updates
from ledger.decide.snapshot_operations import (
    describe_clock_correction,
    describe_table_creation,
    describe_table_drop,
    describe_table_undrop,
)
from ledger.events import TableEvent
from ledger.events import catalog as c
from ledger.events import table as t
from ledger.events.catalog import CatalogEvent
from ledger.events.commit import FORMAT, Commit, Transaction, kind_of, said_by
from ledger.events.table import ClockCorrected, TableCreated
from ledger.model.errors import CommitConflictError, LedgerError, NotFoundError
from ledger.model.names import Identifier
from ledger.state.catalog import CatalogState
from ledger.state.catalog_builder import identifier_of


class CatalogFact(Struct, frozen=True, kw_only=True):
    """Row of a kind of event of the catalog's stream.

    Attributes:
        says: Returns its effect as display text.
        names: Returns the name of the table or view after it; None if it names none.
    """

    says: Callable[[Any], str]
    names: Callable[[Any], t.TableName] | None


def _describe_rename(what: str, event: t.TableRenamed | c.ViewRenamed) -> str:
    return f"renamed {what} {_dotted_name(event.source)} to {_dotted_name(event.destination)}"


def _describe_erasure(event: c.ValuesErased) -> str:
    if isinstance(event.field_id, UnsetType):
        things = "authors, messages, maps of properties or values of columns"
        return f"erased {event.values} {things}, of {event.transactions} changes"
    column = f"column {event.field_id} of table {event.table_id}"
    return f"erased {event.values} bounds and partition values of {column}"


def _describe_view_creation(event: c.ViewCreated) -> str:
    name = _dotted_name(event.identifier)
    if isinstance(event.updates, UnsetType):
        return f"created view {name}"
    return f"created Iceberg view {name}: {describe_view_updates(event.updates)}"


def _describe_view_update(event: c.IcebergViewUpdated) -> str:
    name = _dotted_name(event.identifier)
    return f"changed Iceberg view {name}: {describe_view_updates(event.updates)}"


def _describe_purge(event: t.TablePurged) -> str:
    return f"began to delete the files of dropped table {_dotted_name(event.identifier)}"


def _dotted_name(name: t.TableName) -> str:
    return f"{name.database_name}.{name.table_name}"


def _created_object_name(event: t.TableCreated | t.TableUndropped | c.ViewCreated) -> t.TableName:
    return event.identifier


def _renamed_object_name(event: t.TableRenamed | c.ViewRenamed) -> t.TableName:
    return event.destination


CATALOG_FACTS: Mapping[type, CatalogFact] = {
    c.DatabaseCreated: CatalogFact(says=lambda it: f"created database {it.name}", names=None),
    c.DatabaseAltered: CatalogFact(
        says=lambda it: f"changed options of database {it.name}", names=None
    ),
    c.DatabaseDropped: CatalogFact(says=lambda it: f"dropped database {it.name}", names=None),
    t.TableCreated: CatalogFact(says=describe_table_creation, names=_created_object_name),
    t.TableRenamed: CatalogFact(
        says=partial(_describe_rename, "table"), names=_renamed_object_name
    ),
    t.TableDropped: CatalogFact(says=describe_table_drop, names=None),
    t.TableUndropped: CatalogFact(says=describe_table_undrop, names=_created_object_name),
    t.TablePurged: CatalogFact(says=_describe_purge, names=None),
    c.ViewCreated: CatalogFact(says=_describe_view_creation, names=_created_object_name),
    c.ViewAltered: CatalogFact(
        says=lambda it: f"changed view {_dotted_name(it.identifier)}", names=None
    ),
    c.IcebergViewUpdated: CatalogFact(says=_describe_view_update, names=None),
    c.ViewRenamed: CatalogFact(says=partial(_describe_rename, "view"), names=_renamed_object_name),
    c.ViewDropped: CatalogFact(
        says=lambda it: f"dropped view {_dotted_name(it.identifier)}", names=None
    ),
    c.FunctionCreated: CatalogFact(
        says=lambda it: f"created function {_dotted_name(it.identifier)}", names=None
    ),
    c.FunctionAltered: CatalogFact(
        says=lambda it: f"changed function {_dotted_name(it.identifier)}", names=None
    ),
    c.FunctionDropped: CatalogFact(
        says=lambda it: f"dropped function {_dotted_name(it.identifier)}", names=None
    ),
    c.LedgerMoved: CatalogFact(says=lambda it: f"moved the ledger to {it.place}", names=None),
    c.PlaceAliased: CatalogFact(
        says=lambda it: f"noted that {it.place} leads to the ledger, too", names=None
    ),
    c.LedgerCopied: CatalogFact(
        says=lambda it: f"made this a copy of ledger {it.copied_from}, at {it.place}", names=None
    ),
    c.ValuesErased: CatalogFact(says=_describe_erasure, names=None),
    ClockCorrected: CatalogFact(says=describe_clock_correction, names=None),
}
"""One row for each kind of event."""


@frozen
class CatalogContext:
    """The states and commits on which a request is decided.

    Attributes:
        state: The newest state known.
        base: The state that the writer saw when it made the request.
        winners: The commits between the two, oldest first.
    """

    state: CatalogState
    base: CatalogState
    winners: Sequence[Commit[CatalogEvent]]

    def refusal(
        self, cell: str, won: Callable[[CatalogEvent], bool], fallback: LedgerError
    ) -> LedgerError:
        """Return the error to raise: a conflict if a winner caused it, else `fallback`.

        Args:
            cell: The cell that both writers set.
            won: Whether an event is the cause; the newest such event is reported.
            fallback: The error, if the cause was there before the request.
        """
        for commit in reversed(self.winners):
            for transaction in reversed(commit.transactions):
                for event in reversed(transaction.events):
                    if won(event):
                        author = said_by(transaction) or None
                        message = _conflict_message(fallback, event, commit.version, author)
                        return CommitConflictError(message, cell, commit.version, author, event)
        return fallback

    def has_winner_event(self, changed: Callable[[CatalogEvent], bool]) -> bool:
        """Return whether an event of a winner satisfies a test."""
        return any(
            changed(event)
            for commit in self.winners
            for transaction in commit.transactions
            for event in transaction.events
        )


def table_name_record(identifier: Identifier) -> t.TableName:
    """Return the record of an identifier."""
    return t.TableName(database_name=identifier.database, table_name=identifier.name)


def check_database(name: str, catalog: CatalogContext) -> None:
    """Check that a database exists.

    Raises:
        NotFoundError: It does not.
        CommitConflictError: It does not, because of a winner.
    """
    try:
        catalog.state.database(name)
    except NotFoundError as missing:
        raise catalog.refusal(
            f"database {name}",
            lambda event: isinstance(event, c.DatabaseDropped) and event.name == name,
            missing,
        ) from None


def make_name_taken_test(identifier: Identifier) -> Callable[[CatalogEvent], bool]:
    """Return a test for events after which a table or view has that name."""

    def test(event: CatalogEvent) -> bool:
        names = CATALOG_FACTS[type(event)].names
        return names is not None and identifier_of(names(event)) == identifier

    return test


def _conflict_message(
    fallback: LedgerError, event: CatalogEvent, version: int, author: str | None
) -> str:
    tag = kind_of(type(event))
    who = author or "another writer"
    return f"{fallback.message} ({who} came first with {tag} in catalog version {version})"


def first_table_commit(
    catalog_commit: Commit[CatalogEvent],
    event: TableCreated,
    transaction: Transaction[CatalogEvent],
) -> Commit[TableEvent]:
    """Return version 0 of the table's stream, a pure function of the commit that created it.

    Every writer that finds the file missing so writes the same bytes.

    Args:
        catalog_commit: The catalog's commit that created the table.
        event: The creation.
        transaction: The transaction of that commit which holds `event`.
    """
    created: Transaction[TableEvent] = Transaction(
        id=transaction.id,
        author=transaction.author,
        message=transaction.message,
        properties=transaction.properties,
        outside=transaction.outside,
        asked=transaction.asked,
        effective_time_millis=transaction.effective_time_millis,
        events=(replace(event, events=()), *event.events),
    )
    return Commit(
        format=FORMAT,
        version=0,
        time_millis=catalog_commit.time_millis,
        transactions=(created,),
    )
