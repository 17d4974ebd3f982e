"""Which values of a personal column an erasure is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from attrs import frozen

from ledger.evolution.bounds import member_ids
from ledger.evolution.state import TableState
from ledger.history.erasing import harmful
from ledger.history.value_matcher import ValueMatcher
from ledger.log.outside.column_values import BOUNDS, ColumnValue, folder_of
from ledger.log.outside.commit_texts import Field, Values
from ledger.log.replay import Read
from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange, PartitionValue, kept_at
from ledger.model.iceberg.layout import PartitionField, PartitionSpec, SomeSpecs, spec_of_id
from ledger.model.schema import Schema
from ledger.model.types.text import format_type
from ledger.model.types.walk import walk_fields, walk_ids

_ID_KEYS: Final = ("fieldId", "id", "field-id")
_DEFAULT_KEYS: Final = (
    *("defaultValue", "newDefaultValue", "initialDefault"),
    *("initial-default", "write-default"),
)


@frozen
class SoughtColumn:
    """The values of a column, with those nested in it: all of them, or one.

    Attributes:
        table_id: The table's.
        column: The column as it is, or was last.
        value: The value that goes; None for every value.
        ids: The field ids of the column and of what was ever nested in it.
        specs: The table's.
    """

    table_id: str
    column: t.DataField
    value: ValueMatcher | None
    ids: frozenset[int]
    specs: SomeSpecs

    @property
    def folder(self) -> str:
        """Where it can be kept, below the ledger's root."""
        return folder_of(self.table_id)

    @property
    def column_of(self) -> tuple[str, int]:
        """The table's id, and the column's."""
        return self.table_id, self.column.id

    def fields(self, _values: Values) -> tuple[Field, ...]:
        """Return which of a transaction's values have to go: none."""
        return ()

    def holds(self, value: ColumnValue) -> bool:
        """Whether a personal column's value has to go."""
        if value.field_id not in self.ids:
            return False
        if value.of == BOUNDS:
            bounds = (value.bounds.lower, value.bounds.upper)
            return any(self._is_bound(value.field_id, each) for each in bounds)
        return self._is_partition(value.field_id, value.partition, value.of)

    def in_line(self, read: Read[Any], files: Sequence[FileChange]) -> bool:
        """Whether a commit's line, or a list that it names, holds it for ever."""
        return any(map(self._in_file, files)) or any(map(self._is_default, self._defaults(read)))

    def in_path(self, path: str) -> bool:
        """Whether a data file's path holds it."""
        plain = unquote(path)
        if self.value is not None:
            folders = {each.partition("=")[2] for each in plain.split("/")[:-1]}
            return self.value.said in plain or not folders.isdisjoint(self.value.all_spellings)
        names = {each.name for spec in self.specs for each in self._laid_by(spec)}
        return any(f"{name}=" in plain for name in names)

    def eraser(self, name: str) -> str:
        """Return who is said to have erased: nobody, if that is whom it is about."""
        return "" if self._is_said(name) else name

    def harmless(self, message: str) -> str:
        """Return the message that an erasure is recorded with.

        Raises:
            InvalidInputError: It holds what is sought.
        """
        if self._is_said(message):
            raise harmful()
        return message

    def _is_said(self, words: str) -> bool:
        return self.value is not None and self.value.is_said_in(words)

    def _is_bound(self, field_id: int, bound: str | None) -> bool:
        if bound is None:
            return False
        # Nobody can tell which member of an earlier type became a part of the value.
        return self.value is None or field_id != self.column.id or self.value.is_bound(bound)

    def _is_partition(self, field_id: int, value: PartitionValue, transform: str) -> bool:
        if self.value is None or field_id != self.column.id:
            return value is not None
        return self.value.is_partition(value, transform)

    def _is_default(self, text: str) -> bool:
        return self.value is None or self.value.is_written(text)

    def _defaults(self, read: Read[Any]) -> Iterator[str]:
        """Yield the defaults that a commit's line gives the column, or what is nested in it."""
        if b"efault" not in read.body:
            return
        yield from _defaults_in(msgspec.json.decode(read.body), self.ids)

    def _in_file(self, file: FileChange) -> bool:
        for bounds in (file.lower_bounds, file.upper_bounds):
            there = bounds.items() if isinstance(bounds, dict) else ()
            if any(key in self.ids and self._is_bound(key, bound) for key, bound in there):
                return True
        spec = spec_of_id(self.specs, file.spec_id)
        return spec is not None and any(
            kept_at(value) is None and self._is_partition(each.source_id, value, each.transform)
            for each, value in zip(spec.fields, file.partition, strict=False)
            if each in self._laid_by(spec)
        )

    def _laid_by(self, spec: PartitionSpec) -> list[PartitionField]:
        return [each for each in spec.fields if each.source_id in self.ids]


def _defaults_in(part: Any, ids: frozenset[int]) -> Iterator[str]:
    """Yield the defaults of some fields anywhere in JSON, and in JSON inside its texts."""
    if isinstance(part, dict):
        if any(part.get(key) in ids for key in _ID_KEYS if type(part.get(key)) is int):
            said = (part[key] for key in _DEFAULT_KEYS if part.get(key) is not None)
            yield from (each if isinstance(each, str) else str(each) for each in said)
        for each in part.values():
            yield from _defaults_in(each, ids)
    elif isinstance(part, list):
        for each in part:
            yield from _defaults_in(each, ids)
    elif isinstance(part, str) and "efault" in part and part[:1] in ("{", "["):
        with suppress(msgspec.DecodeError, UnicodeEncodeError):
            yield from _defaults_in(msgspec.json.decode(part), ids)


def sought_column(
    state: TableState, schemas: Iterable[Schema], field_id: int, value: PartitionValue
) -> SoughtColumn:
    """Return what is sought of a table's column.

    Args:
        state: The table's.
        schemas: Every one that the table ever had, oldest first: a value may have been written
            under any type that the column had.
        field_id: The column's.
        value: One of its values, or its text, in any spelling that the column's type has, or an
            earlier one had; None for all.

    Raises:
        InvalidInputError: It is no value of the column, or the column holds others.
    """
    every = [
        each
        for schema in (*schemas, state.schema)
        for each in walk_fields(schema.fields)
        if each.id == field_id
    ]
    column, types = every[-1], tuple(each.type for each in every)
    ids = frozenset().union(*map(_ids_in, {each.type: each for each in every}.values()))
    if value is None:
        return SoughtColumn(state.table_id, column, None, ids, state.specs)
    if column.type.depth:
        raise InvalidInputError(
            f"column {column.name} holds others; name the one whose value goes, or no "
            "value, and all of them go"
        )
    matcher = ValueMatcher(str(value), types)
    if not matcher.is_value:
        raise InvalidInputError(
            f"{value!r} is no value of column {column.name} {format_type(column.type)}; dates and "
            "moments are written as in SQL, decimals with all their digits"
        )
    return SoughtColumn(state.table_id, column, matcher, ids, state.specs)


def _ids_in(column: t.DataField) -> frozenset[int]:
    """Return the ids of a field and of all that is nested in it, as files have them."""
    named = (each.id for each in walk_fields([column]))
    made = (each for _, _, each in member_ids([column]))
    return frozenset({*named, *walk_ids(column.type), *made})
