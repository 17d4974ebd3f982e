"""Logs as versions wrote them that did not yet ask Iceberg what it can say of a fact."""

from __future__ import annotations

from attrs import evolve

from ledger import FileChange, Table
from ledger.evolution.state import TableState
from ledger.evolution.table.changes import CommitSnapshot, TableChange
from ledger.evolution.table.intent import TableIntent
from ledger.log.request import Request


def record(table: Table, *changes: TableChange) -> None:
    """Commit changes that nobody but Paimon was asked about."""
    head = table.state
    intent = table._intent(_undeclared(head), lambda _: list(changes))
    assert isinstance(intent, TableIntent)
    table._appender.append(intent, Request(commit_id=f"older {head.version}"))


def record_file(table: Table, file: FileChange) -> None:
    """Commit a file."""
    snapshot = CommitSnapshot(
        commit_kind="APPEND", commit_user="older", commit_identifier=1, files=(file,)
    )
    record(table, evolve(snapshot, commit_identifier=table.state.version))


def _undeclared(state: TableState) -> TableState:
    options = {**state.schema.options, "ledger.formats": "paimon"}
    return evolve(state, schema=evolve(state.schema, options=options))
