"""One-line descriptions of events, and the output of commands that commit."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UnsetType

from ledger.cli.options import CommitFlags
from ledger.cli.output import Screen
from ledger.decide.operations import in_words
from ledger.events.commit import Commit, Transaction
from ledger.ledger import Ledger
from ledger.ledger_handle import LedgerHandle
from ledger.log.request import Appended
from ledger.log.stream_log import StreamLog
from ledger.table import Table
from ledger.table_handle import HasHandle, TableHandle, handle_of


def phrases(transaction: Transaction[Any]) -> list[str]:
    """Return descriptions of a transaction, one per event."""
    if not transaction.events:
        return ["nothing: everything requested was already in place"]
    return [*map(in_words, transaction.events)]


def when(commit: Commit[Any], transaction: Transaction[Any]) -> int:
    """Return the effective time of a transaction, or its commit time, in Unix milliseconds."""
    effective = transaction.effective_time_millis
    return commit.time_millis if isinstance(effective, UnsetType) else effective


def plain(record: object) -> Any:
    """Return a record of the log as plain JSON, without its lists of files."""
    # Text output does not need these imports.
    import json

    from ledger.audit.views import json_without_files

    return json_without_files(json.loads(msgspec.json.encode(record)))


def again(*, repeated: bool) -> str:
    """Return the suffix of a message about a request that was committed before."""
    return ", committed before; nothing was written now" if repeated else ""


def stream_log_of(stream: HasHandle[LedgerHandle | TableHandle]) -> StreamLog[Any, Any]:
    """Return the log of a table, or of a ledger's catalog."""
    return handle_of(stream).log


def committed(
    screen: Screen, stream: Table | Ledger, appended: Appended[Any], writing: CommitFlags
) -> None:
    """Print the result of a commit to a table or to the catalog.

    Args:
        screen: Output of the command.
        stream: Table, or ledger for its catalog.
        appended: Result of the call.
        writing: Commit options; the commit id selects the transaction in a group commit.
    """
    commit = stream_log_of(stream).commit_at(appended.version)
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
        before = again(repeated=appended.repeated)
        screen.line(f"{table.get('table', 'catalog')} version {appended.version}{before}")
        for transaction in transactions:
            for said in phrases(transaction):
                screen.line(f"  {said}")

    screen.result(document, text)


def print_unchanged(screen: Screen, table: Table, why: str) -> None:
    """Print that a command had nothing to commit."""
    version = table.state.version
    screen.result(
        {"table": str(table.identifier), "version": version, "repeated": False, "events": []},
        lambda to: to.line(f"{table.identifier} stays at version {version}: {why}"),
    )
