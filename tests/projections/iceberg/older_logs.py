"""Logs as versions wrote them that did not yet ask formats what they can say of a fact."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve
from msgspec.structs import replace

from ledger import FileChange, Table
from ledger.decide import CommitSnapshot, Refusal, TableChange, TableIntent
from ledger.decide.format_rules import FormatRules
from ledger.formats import INSTALLED
from ledger.log import Request
from ledger.state import TableState
from ledger.table_handle import handle_of
from tests.toy_format import Indifferent


def record(table: Table, *changes: TableChange) -> None:
    """Commit changes that nobody but Paimon was asked about."""
    _record(table, "paimon", changes)


def record_file(table: Table, file: FileChange) -> None:
    """Commit a file that nobody was asked about."""
    snapshot = CommitSnapshot(
        commit_kind="APPEND", commit_user="older", commit_identifier=1, files=(file,)
    )
    _record(table, "none", (replace(snapshot, commit_identifier=table.state.version),))


class _Indifferent:
    """As if Paimon and a format that minds nothing were all that there is."""

    def names(self) -> tuple[str, ...]:
        return "paimon", "none"

    def find(self, name: str) -> FormatRules | Refusal:
        return Indifferent() if name == "none" else INSTALLED.find(name)


def _record(table: Table, formats: str, changes: Sequence[TableChange]) -> None:
    head = table.state
    state = _declaring(head, formats)
    intent = TableIntent(
        changes, state, handle_of(table)._touched, handle_of(table).past, _Indifferent()
    )
    handle_of(table).appender.append(intent, Request(commit_id=f"older {head.version}", asked="00"))


def _declaring(state: TableState, formats: str) -> TableState:
    options = {**state.schema.options, "ledger.formats": formats}
    return evolve(state, schema=evolve(state.schema, options=options))
