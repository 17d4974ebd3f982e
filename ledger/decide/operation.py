"""Operation: all definitions of one kind of change, in one row.

A row defines the request and the events that it becomes, how it is read from JSON, which columns it
names and how they are resolved after a rebase, how it is decided, which cells it sets and claims,
and its display text. The rows are in the modules of their subjects and are collected in
`operations`. How events fold is not part of them: that never changes, and has a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import define
from msgspec import Struct

from ledger.decide.column_draft import ChangeAnchor, SchemaDraft
from ledger.decide.column_rebase import ColumnRebase, Touches
from ledger.decide.format_rules import Formats
from ledger.events import TableEvent
from ledger.events.schema import PartitionSpecUpdated, SchemaChange, SortOrderReplaced
from ledger.model.schema import Schema
from ledger.state.declared_formats import Rules
from ledger.state.layout import LayoutTrail, SourceColumnFinder
from ledger.state.owner import OwnerKind
from ledger.state.table import TableState

Cell = tuple[Any, ...]
"""Unit of conflict: a field id and an aspect, an option, the comment, a tag, ..."""

Cells = Callable[[Any], Iterator[tuple[Cell, Any]]]
"""Yields the cells of an event, with their values."""


def no_cells(_fact: object) -> Iterator[tuple[Cell, Any]]:
    """Yield nothing: an append conflicts with nothing."""
    return iter(())


class Operation(Struct, frozen=True, kw_only=True):
    """A kind of change.

    Attributes:
        facts: The events that it becomes.
        asked: What asks for it; None where it only follows from other changes.
        sets: The cells that a fact sets.
        claims: The cells that must not have been set to another value meanwhile; None: those that
            the fact sets.
        says: What a fact did, for people.
        alters: False where a fact is sure to change only what the table holds: snapshots, and what
            names and describes them.
    """

    facts: tuple[type, ...]
    asked: type | None = None
    sets: Cells
    claims: Cells | None = None
    says: Callable[[Any], str]
    alters: bool = True

    def claimed(self, fact: Any) -> Iterator[tuple[Cell, Any]]:
        """Yield the cells that must not have been set to another value meanwhile."""
        return (self.claims or self.sets)(fact)


class SchemaOperation(Operation, frozen=True, kw_only=True):
    """A kind of change that belongs to a batch of SchemaChanges.

    Attributes:
        decide: Decides it on a draft, and returns its subject.
        names: Returns the change in the names of a newer schema, with every path, reference and
            option value that means a column following its id; None where nothing is left to do.
        touches: Its effect on the columns in its paths: a batch that changes its own new column is
            not given another writer's.
        reads: Reads it from the JSON of either dialect.
        always_written: Keys that its JSON never leaves out.
        lacks: The reason why no document of Paimon's or DLF's can express it; None if one can.
    """

    decide: Callable[[SchemaDraft, Any], ChangeAnchor]
    names: Callable[[ColumnRebase, Any, ChangeAnchor], SchemaChange | None]
    touches: Touches
    reads: Callable[[Mapping[str, Any], str], SchemaChange]
    always_written: tuple[str, ...] = ()
    lacks: Callable[[Any], str | None] = lambda _: None


class LayoutOperation(Operation, frozen=True, kw_only=True):
    """A kind of change of partition specs or sort orders; `SourceColumnFinder` finds its sources.

    Attributes:
        decide: Returns the event that it becomes; None when everything holds already.
    """

    decide: Callable[
        [LayoutTrail, Any, Schema, SourceColumnFinder, Rules],
        PartitionSpecUpdated | SortOrderReplaced | None,
    ]


@define
class DecisionContext:
    """Progress of a transaction that is being decided on a state.

    Attributes:
        state: The state.
        schema: The schema after the transaction's changes of it.
        snapshot_id: The newest snapshot's id so far.
        records: The rows so far.
        is_first: Whether it is the state that the writer saw.
        formats: The installed formats.
        refuse_names: Rejects a snapshot whose files' column names are ambiguous in the table.
    """

    state: TableState
    schema: Schema
    snapshot_id: int
    records: int
    is_first: bool
    formats: Formats
    refuse_names: Callable[[TableState, Schema, Any], None]


class StateOperation(Operation, frozen=True, kw_only=True):
    """A kind of change of the table's contents, decided after its schema; it names no columns.

    Attributes:
        decide: Returns the event that it becomes; None when all of it holds already.
        asks_formats: Whether the table's formats check it, so that no package with lower rules of
            theirs changes the table from then on.
        owners: The owners of a table under which it is allowed.
    """

    asked: type
    decide: Callable[[DecisionContext, Any], TableEvent | None]
    asks_formats: bool
    owners: frozenset[OwnerKind]
