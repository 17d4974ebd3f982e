"""Which values of a personal column an erasure is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

from attrs import frozen

from ledger.evolution.state import TableState
from ledger.files.registering.partition_text import typed_value
from ledger.history.erasing import harmful, may_be_cut_from
from ledger.log.outside.column_values import BOUNDS, ColumnValue, folder_of
from ledger.log.outside.commit_texts import Field, Values
from ledger.model import types as t
from ledger.model.errors import InvalidInputError, LedgerError
from ledger.model.file_change import FileChange, PartitionValue, kept_at
from ledger.model.partition import PartitionField, PartitionSpec, SomeSpecs, spec_of_id
from ledger.model.schema import Schema
from ledger.model.transforms import transform_of
from ledger.model.transforms.values import Value, decode_value, encode_value
from ledger.model.types.text import format_type
from ledger.model.types.walk import walk_fields
from ledger.planning.bound_value import value_from_bytes

_TEXTS: Final = (t.CharType, t.VarCharType)


@frozen
class SoughtColumn:
    """The values of a column, with those nested in it: all of them, or one.

    Attributes:
        table_id: The table's.
        column: The column.
        value: As a partition has it (`PartitionValue`); None for every value.
        specs: The table's.
    """

    table_id: str
    column: t.DataField
    value: PartitionValue
    specs: SomeSpecs

    def __attrs_post_init__(self) -> None:
        if self.value is not None and self.column.type.depth:
            raise InvalidInputError(
                f"column {self.column.name} holds others; name the one whose value goes, or no "
                "value, and all of them go"
            )

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
        if value.field_id not in self._ids:
            return False
        if value.of == BOUNDS:
            bounds = value.bounds
            return self._is_bound(bounds.lower) or self._is_bound(bounds.upper)
        return self._is_partition(value.partition, value.of)

    def in_line(self, _body: bytes, files: Sequence[FileChange]) -> bool:
        """Whether a commit's line, or a list that it names, holds it for ever."""
        return any(map(self._in_file, files))

    def in_path(self, path: str) -> bool:
        """Whether a data file's path holds it."""
        plain = unquote(path)
        if self.value is not None:
            return str(self.value) in plain
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
        return isinstance(self.value, str) and self.value != "" and self.value in words

    @property
    def _ids(self) -> frozenset[int]:
        return frozenset(each.id for each in walk_fields([self.column]))

    @property
    def _wanted(self) -> Value | None:
        with suppress(LedgerError):
            return decode_value(self.value, self.column.type)
        return None

    def _is_bound(self, bound: str | None) -> bool:
        if bound is None:
            return False
        if self.value is None:
            return True
        try:
            body = bytes.fromhex(bound)
        except ValueError:
            return True
        if not isinstance(self.column.type, _TEXTS):
            return value_from_bytes(body, self.column.type) in {self._wanted, None}
        text = body.decode(errors="ignore")
        said = str(self.value)
        return text == said or said in text or may_be_cut_from(text, said)

    def _is_partition(self, value: PartitionValue, transform: str) -> bool:
        if self.value is None:
            return value is not None
        try:
            made = transform_of(transform).apply(self._wanted, self.column.type)
            kind = transform_of(transform).result_type(self.column.type)
            return value in {encode_value(made, kind), self.value}
        except LedgerError:
            # Laid out when the column had another type.
            return str(value) == str(self.value)

    def _in_file(self, file: FileChange) -> bool:
        for bounds in (file.lower_bounds, file.upper_bounds):
            there = bounds.items() if isinstance(bounds, dict) else ()
            if any(key in self._ids and self._is_bound(bound) for key, bound in there):
                return True
        spec = spec_of_id(self.specs, file.spec_id)
        return spec is not None and any(
            kept_at(value) is None and self._is_partition(value, each.transform)
            for each, value in zip(spec.fields, file.partition, strict=False)
            if each in self._laid_by(spec)
        )

    def _laid_by(self, spec: PartitionSpec) -> list[PartitionField]:
        return [each for each in spec.fields if each.source_id in self._ids]


def sought_column(
    state: TableState, schemas: Iterable[Schema], field_id: int, value: PartitionValue
) -> SoughtColumn:
    """Return what is sought of a table's column.

    Args:
        state: The table's.
        schemas: Of the table, oldest first: a column that is gone has the type that it had last.
        field_id: The column's.
        value: One of its values, or its text; None for all.

    Raises:
        InvalidInputError: It is no value of the column.
    """
    every = (*schemas, state.schema)
    named = (each for schema in reversed(every) for each in walk_fields(schema.fields))
    column = next(each for each in named if each.id == field_id)
    try:
        typed = typed_value(value, transform_of("identity"), column.type)
    except (ValueError, LedgerError) as error:
        raise InvalidInputError(
            f"{value!r} is no value of column {column.name} {format_type(column.type)}; dates and "
            "moments are written as in SQL, decimals with all their digits"
        ) from error
    return SoughtColumn(state.table_id, column, typed, state.specs)
