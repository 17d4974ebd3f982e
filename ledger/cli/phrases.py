"""What happened, in words: one phrase an event; what every writing command prints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import UnsetType

from ledger.cli.options import CommitFlags
from ledger.cli.screen import Screen
from ledger.events import catalog_events as c
from ledger.events import table_events as t
from ledger.events.commit import Commit, Transaction
from ledger.evolution.operations import BY_ASKED, BY_FACT
from ledger.ledger import Ledger
from ledger.log.request import Appended
from ledger.table import Table


def phrases(transaction: Transaction[Any]) -> list[str]:
    """Return what a transaction did, one phrase an event."""
    if not transaction.events:
        return ["nothing: all that was asked held already"]
    return [phrase(each) for each in transaction.events]


def phrase(event: object) -> str:
    """Return what one event says.

    Example:
        >>> from ledger.events.schema_events import ColumnRenamed
        >>> phrase(ColumnRenamed(("addr",), "address", field_id=4))
        'renamed column addr to address (id 4)'
    """
    row = BY_FACT.get(type(event)) or BY_ASKED.get(type(event))
    say = _SAYINGS.get(type(event)) if row is None else row.says
    return type(event).__name__ if say is None else say(event)


def _renamed(what: str, event: t.TableRenamed | c.ViewRenamed) -> str:
    return f"renamed {what} {_name(event.source)} to {_name(event.destination)}"


def _erased(event: c.ValuesErased) -> str:
    if isinstance(event.field_id, UnsetType):
        things = "authors, messages, maps of properties or values of columns"
        return f"erased {event.values} {things}, of {event.transactions} changes"
    column = f"column {event.field_id} of table {event.table_id}"
    return f"erased {event.values} bounds and partition values of {column}"


_SAYINGS: dict[type, Callable[[Any], str]] = {
    t.TableRenamed: partial(_renamed, "table"),
    c.DatabaseCreated: lambda it: f"created database {it.name}",
    c.DatabaseAltered: lambda it: f"changed options of database {it.name}",
    c.DatabaseDropped: lambda it: f"dropped database {it.name}",
    c.ViewCreated: lambda it: f"created view {_name(it.identifier)}",
    c.ViewAltered: lambda it: f"changed view {_name(it.identifier)}",
    c.ViewRenamed: partial(_renamed, "view"),
    c.ViewDropped: lambda it: f"dropped view {_name(it.identifier)}",
    c.LedgerUpgraded: lambda it: f"opened the ledger to format {it.format}",
    c.LedgerMoved: lambda it: f"moved the ledger to {it.place}",
    c.PlaceAliased: lambda it: f"noted that {it.place} leads to the ledger, too",
    c.LedgerCopied: lambda it: f"made this a copy of ledger {it.copied_from}, at {it.place}",
    c.ValuesErased: _erased,
}


def _name(name: t.TableName) -> str:
    return f"{name.database_name}.{name.table_name}"


def when(commit: Commit[Any], transaction: Transaction[Any]) -> int:
    """Return when a transaction happened: its effective time if it has one, Unix milliseconds."""
    effective = transaction.effective_time_millis
    return commit.time_millis if isinstance(effective, UnsetType) else effective


def plain(record: object) -> Any:
    """Return a record of the log as plain JSON, without the lists of files in it."""
    # Text for people needs none of it.
    import json

    from ledger.audit.views import without_files

    return without_files(json.loads(msgspec.json.encode(record)))


def committed(
    screen: Screen, stream: Table | Ledger, appended: Appended[Any], writing: CommitFlags
) -> None:
    """Print what an append to a table or to the catalog came to.

    Args:
        screen: Where to.
        stream: The table, or the ledger of the catalog.
        appended: What the call gave.
        writing: How the call was asked for; its commit id finds the transaction among others.
    """
    commit = stream.log.commit_at(appended.version)
    mine = [each for each in commit.transactions if each.id == writing.commit_id]
    transactions = mine or list(commit.transactions)
    table = {"table": str(stream.identifier)} if isinstance(stream, Table) else {}
    document = {
        **table,
        "version": appended.version,
        "repeated": appended.repeated,
        "events": [plain(event) for each in transactions for event in each.events],
    }

    def text(screen: Screen) -> None:
        before = ", committed before; nothing was written now" if appended.repeated else ""
        screen.line(f"{table.get('table', 'catalog')} version {appended.version}{before}")
        for transaction in transactions:
            for said in phrases(transaction):
                screen.line(f"  {said}")

    screen.result(document, text)


def unchanged(screen: Screen, table: Table, why: str) -> None:
    """Print that a writing command wrote nothing, as there was nothing to write."""
    version = table.state.version
    screen.result(
        {"table": str(table.identifier), "version": version, "repeated": False, "events": []},
        lambda to: to.line(f"{table.identifier} stays at version {version}: {why}"),
    )
