"""What depends on the table that a statement meets: `IF EXISTS` and its kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from ledger.events.schema_changes import SchemaChange, SetIdentifierFields
from ledger.events.spec_changes import RemovePartitionField, SpecUpdate, UpdatePartitionSpec
from ledger.evolution.state import TableState
from ledger.evolution.table.changes import CreateTag, DeleteTag, ReplaceTag, TableChange
from ledger.model.errors import ColumnNotFoundError
from ledger.model.path_text import shown_path
from ledger.model.schema import Schema, paths_of


@frozen
class IfColumn:
    """A change that is made only if there is a column at a path, or only if there is none."""

    path: tuple[str, ...]
    change: SchemaChange
    exists: bool


@frozen
class IfTag:
    """A change that is made only if there is a tag of its name, or only if there is none."""

    change: CreateTag | ReplaceTag | DeleteTag
    exists: bool


@frozen
class RemoveTerm:
    """Remove a partition field by a bare word: the column's own, else the one of that name."""

    word: str


@frozen
class SpecClause:
    """Change the partition spec."""

    updates: tuple[SpecUpdate | RemoveTerm, ...]


@frozen
class DropIdentifierFields:
    """Take columns out of those that identify a row."""

    paths: tuple[tuple[str, ...], ...]


Asked = TableChange | IfColumn | IfTag | SpecClause | DropIdentifierFields
"""What a statement asks for: a change, or one that is known only when the table is."""


def on_state(asked: Sequence[Asked], state: TableState) -> list[TableChange]:
    """Return the changes that a statement means for a table.

    Raises:
        ColumnNotFoundError: An identifier field to drop is none.
    """
    return [change for each in asked for change in _meant(each, state)]


def _meant(asked: Asked, state: TableState) -> Iterator[TableChange]:
    match asked:
        case IfColumn():
            if (asked.path in dict(paths_of(state.schema))) is asked.exists:
                yield asked.change
        case IfTag():
            if (asked.change.tag_name in state.tags) is asked.exists:
                yield asked.change
        case SpecClause(updates=updates):
            yield UpdatePartitionSpec(tuple(_update(each, state.schema) for each in updates))
        case DropIdentifierFields():
            yield _without(asked.paths, state.schema)
        case _:
            yield asked


def _update(update: SpecUpdate | RemoveTerm, schema: Schema) -> SpecUpdate:
    if not isinstance(update, RemoveTerm):
        return update
    if update.word in schema.names:
        return RemovePartitionField(source=(update.word,), transform="identity")
    return RemovePartitionField(name=update.word)


def _without(paths: Sequence[tuple[str, ...]], schema: Schema) -> SetIdentifierFields:
    ids = set(schema.identifier_field_ids)
    there = [path for path, field_id in paths_of(schema) if field_id in ids]
    for each in paths:
        if each not in there:
            known = ", ".join(map(shown_path, there)) or "none"
            raise ColumnNotFoundError(
                f"{shown_path(each)} is no identifier field; there are: {known}"
            )
    return SetIdentifierFields(tuple(each for each in there if each not in paths))
