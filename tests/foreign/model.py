"""Rows as they were written, under the names that columns have by now; columns of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa
from attrs import Factory, define

Row = dict[str, Any]

_STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])

KINDS: Final[Mapping[str, pa.DataType]] = {
    "flag": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "price": pa.decimal128(9, 2),
    "day": pa.date32(),
    "at": pa.timestamp("us", tz="UTC"),
    "local": pa.timestamp("us"),
    "text": pa.string(),
    "bytes": pa.binary(),
    "row": _STRUCT,
    "list": pa.list_(pa.int32()),
    "map": pa.map_(pa.string(), pa.int64()),
    "rows": pa.list_(_STRUCT),
    "map of list": pa.map_(pa.string(), pa.list_(pa.int32())),
    "row with list": pa.struct([("l", pa.list_(pa.int32())), ("n", pa.int64())]),
    "list of list": pa.list_(pa.list_(pa.string())),
    "row in row": pa.struct([("r", _STRUCT), ("m", pa.map_(pa.string(), pa.int32()))]),
    "map of row": pa.map_(pa.string(), _STRUCT),
}
"""Types by the name of their kind."""

_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_MAKE: Final[Mapping[str, Callable[[Random], Any]]] = {
    "bool": lambda rng: rng.random() < 0.5,
    "int32": lambda rng: rng.choice([-(2**31), -1, 0, 7, 2**31 - 1]),
    "int64": lambda rng: rng.choice([-(2**60), 0, 9, 2**60]),
    "double": lambda rng: rng.choice([-0.5, 0.0, 1e300, float("inf")]),
    "decimal128(9, 2)": lambda rng: Decimal(rng.randrange(-(10**9), 10**9)).scaleb(-2),
    "date32[day]": lambda rng: date(1970, 1, 1) + timedelta(days=rng.randrange(-9999, 30000)),
    "timestamp[us, tz=UTC]": lambda rng: _BEGIN + timedelta(seconds=rng.randrange(-(10**9), 10**9)),
    "timestamp[us]": lambda rng: (
        _BEGIN.replace(tzinfo=None) + timedelta(microseconds=rng.randrange(10**15))
    ),
    "string": lambda rng: rng.choice(["", "a b", "ü/=%", "z" * 40]),
    "binary": lambda rng: rng.choice([b"", b"\x00\xff", b"abc"]),
}
_MOST_INSIDE: Final = 3
_NULLS: Final = 0.15


def _has_structs_inside(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return bool(pa.types.is_struct(kind.value_type))
    return bool(pa.types.is_map(kind) and pa.types.is_struct(kind.item_type))


def value_of(kind: pa.DataType, rng: Random) -> Any:
    """Return a value of a type, NULL now and then.

    PyIceberg writes and reads a list or map of structs that is NULL as an empty one.
    """
    if rng.random() < _NULLS and not _has_structs_inside(kind):
        return None
    if pa.types.is_struct(kind):
        return {each.name: value_of(each.type, rng) for each in kind}
    if pa.types.is_list(kind):
        return [value_of(kind.value_type, rng) for _ in range(rng.randrange(_MOST_INSIDE))]
    if pa.types.is_map(kind):
        keys = [f"k{each}" for each in range(rng.randrange(_MOST_INSIDE))]
        return [(each, value_of(kind.item_type, rng)) for each in keys]
    return _MAKE[str(kind)](rng)


def fitted(value: Any, kind: pa.DataType) -> Any:
    """Return a value in the one form in which rows are compared: members that came later NULL."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {each.name: fitted(value.get(each.name), each.type) for each in kind}
    if pa.types.is_list(kind):
        return [fitted(each, kind.value_type) for each in value]
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, dict) else value
        return sorted((key, fitted(each, kind.item_type)) for key, each in pairs)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return value.astimezone(UTC)
    return value


@define
class Model:
    """A table's columns, and its rows by `id`, which is the first column.

    Attributes:
        rng: Draws values.
        columns: Types by name, in order.
        rows: By id, each with the names that columns have now.
    """

    rng: Random
    columns: dict[str, pa.DataType] = Factory(dict)
    rows: dict[int, Row] = Factory(dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns, without field ids."""
        return pa.schema(list(self.columns.items()))

    def new_rows(self, count: int) -> list[Row]:
        """Return rows that are not in the table yet."""
        first = max(self.rows, default=0) + 1
        return [
            {
                name: number if name == "id" else value_of(kind, self.rng)
                for name, kind in self.columns.items()
            }
            for number in range(first, first + count)
        ]

    def put(self, rows: Iterable[Row]) -> None:
        """Take note that rows were written."""
        self.rows |= {each["id"]: each for each in rows}

    def add_column(self, name: str, kind: pa.DataType) -> None:
        """Take note of a new column."""
        self.columns[name] = kind

    def add_member(self, column: str, name: str, kind: pa.DataType) -> None:
        """Take note of a new member of a struct."""
        members = [*self.columns[column], pa.field(name, kind)]
        self.columns[column] = pa.struct(members)

    def rename_column(self, old: str, new: str) -> None:
        """Take note of a column's new name."""
        self.columns = {new if name == old else name: k for name, k in self.columns.items()}
        for each in self.rows.values():
            if old in each:
                each[new] = each.pop(old)

    def rename_member(self, column: str, old: str, new: str) -> None:
        """Take note of a struct member's new name."""
        kind = self.columns[column]
        members = [each.with_name(new) if each.name == old else each for each in kind]
        self.columns[column] = pa.struct(members)
        for each in self.rows.values():
            held = each.get(column)
            if held is not None and old in held:
                held[new] = held.pop(old)

    def wanted(self) -> dict[int, Row]:
        """Return the rows that each reader has to find, by id."""
        return {number: self.in_form(each) for number, each in self.rows.items()}

    def in_form(self, row: Mapping[str, Any]) -> Row:
        """Return a row in the one form in which rows are compared."""
        return {name: fitted(row.get(name), kind) for name, kind in self.columns.items()}

    def found(self, rows: pa.Table) -> dict[int, Row]:
        """Return what a reader found, by id.

        Raises:
            AssertionError: It found other columns, or an id twice.
        """
        assert sorted(rows.column_names) == sorted(self.columns), rows.column_names
        read = [self.in_form(each) for each in rows.to_pylist()]
        assert len({each["id"] for each in read}) == len(read), "an id was read twice"
        return {each["id"]: each for each in read}
