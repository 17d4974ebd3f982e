"""What a change of a table's schema or layout means for Delta: its files, and its readers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from ledger.evolution.declared.format import declared_by
from ledger.evolution.state import TableState
from ledger.model.types.walk import type_places
from projections.delta.log.names import FOLDER
from projections.delta.rules.schemas import widened
from projections.delta.table.mapping import renames_or_drops

DELTA: Final = "delta"


@frozen
class Planned:
    """What `lakeledger plan` shows of Delta; called, it gives the files of a change."""

    def __call__(self, before: TableState, after: TableState) -> tuple[str, ...]:
        """Return the files that projecting a change writes, relative to the table's location.

        One commit; which version it is depends on how many there are already.

        Args:
            before: The table before the change.
            after: The table after it, with the same snapshots and tags.
        """
        return (f"{FOLDER}/*.json",) if after.schema.id != before.schema.id else ()

    def warnings(self, before: TableState, after: TableState) -> tuple[str, ...]:
        """Return which readers will no longer open the table, and what the log will not say.

        Args:
            before: The table before the change.
            after: The table after it.
        """
        readers = tuple(_warnings(before, after)) if before.snapshot is not None else ()
        return (*readers, *_unsaid(before, after))


def _warnings(before: TableState, after: TableState) -> Iterator[str]:
    if renames_or_drops(before.schema, after.schema):
        yield (
            "Delta maps columns by name from the first rename or drop on, and neither Polars nor "
            "delta-rs' to_pyarrow_table opens such a table; delta-rs' QueryBuilder, DuckDB and "
            "Spark do"
        )
    if widened(before.schema, after.schema):
        yield (
            "Delta reads wider types by the table feature typeWidening, which neither Polars nor "
            "delta-rs opens; DuckDB and Spark do"
        )


def _unsaid(before: TableState, after: TableState) -> Iterator[str]:
    """Yield what a change brings that the log will not say; all of it, where it declares Delta."""
    is_new = DELTA not in declared_by(before.schema.options).formats
    had = set() if is_new else {*unsaid(before)}
    yield from (each for each in unsaid(after) if each not in had)


def unsaid(state: TableState) -> Iterator[str]:
    """Yield in a sentence each what a table has that its Delta log does not say."""
    if state.branches:
        yield (
            f"Delta's log has no branches: {', '.join(sorted(state.branches))} cannot be read "
            "there, until main is fast-forwarded to it"
        )
    for name, default in _defaults(state):
        yield (
            f"Delta's log says nothing of the default {default} of column {name}, since only "
            "the ledger's writers write there: who writes new rows takes it from the ledger"
        )


def _defaults(state: TableState) -> Iterator[tuple[str, str]]:
    for place in type_places(state.schema.fields):
        if place.field is not None and place.field.default_value is not None:
            yield place.name, place.field.default_value


planned = Planned()
