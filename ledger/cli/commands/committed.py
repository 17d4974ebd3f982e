"""What every writing command prints: the version, and what happened in it."""

from __future__ import annotations

from ledger.cli.options import Writing
from ledger.cli.phrases import phrases, plain
from ledger.cli.screen import Screen
from ledger.evolution.state import TableState
from ledger.log.request import Appended
from ledger.table import Table


def committed(
    screen: Screen, table: Table, appended: Appended[TableState], writing: Writing
) -> None:
    """Print what an append to a table came to.

    Args:
        screen: Where to.
        table: The table.
        appended: What the call gave.
        writing: How the call was asked for; its commit id finds the transaction among others.
    """
    commit = table.log.commit_at(appended.version)
    mine = [each for each in commit.transactions if each.id == writing.commit_id]
    transactions = mine or list(commit.transactions)
    document = {
        "table": str(table.identifier),
        "version": appended.version,
        "repeated": appended.repeated,
        "events": [plain(event) for each in transactions for event in each.events],
    }

    def text(screen: Screen) -> None:
        before = ", committed before; nothing was written now" if appended.repeated else ""
        screen.line(f"{table.identifier} version {appended.version}{before}")
        for transaction in transactions:
            for said in phrases(transaction):
                screen.line(f"  {said}")

    screen.result(document, text)
