"""Columns as a test knows them: each has a key of its own, whatever it is called and wherever."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from random import Random
from typing import Any

from attrs import evolve, frozen

from ledger.model import read_type, type_to_wire

WIDER = {"INT": "BIGINT", "FLOAT": "DOUBLE", "DECIMAL(6, 2)": "DECIMAL(12, 2)"}
NAMES = ("a", "b", "c", "d")
"""Names of columns that change."""

ATOMS = ("INT", "FLOAT", "DECIMAL(6, 2)", "STRING", "DATE")
NESTED = {"ROW": (), "ARRAY": ("element",), "MAP": ("value",)}
"""Path segments after a column that has members."""


@frozen
class Column:
    """A column; a nested one has members, with `element` or `value` between in its path."""

    key: int
    name: str
    type: str
    members: tuple[Column, ...] = ()

    def sql(self) -> str:
        inner = ", ".join(f"`{each.name}` {each.sql()}" for each in self.members)
        match self.type:
            case "ROW":
                return f"ROW<{inner}>"
            case "ARRAY":
                return f"ARRAY<ROW<{inner}>>"
            case "MAP":
                return f"MAP<STRING, ROW<{inner}>>"
            case _:
                return self.type


Columns = tuple[Column, ...]
Level = tuple[int, ...]
"""The keys of the columns around a struct."""


ID = Column(0, "id", "BIGINT")
DAY = Column(-1, "day", "DATE")


def row_of(columns: Columns, random: Random) -> dict[int, Any]:
    """Return a made-up row, by the columns' keys."""
    return {each.key: _value(each, random) for each in columns}


def _value(column: Column, random: Random) -> Any:
    # PyIceberg reads a NULL of these two as empty; see test_guarantees.
    if column.type not in ("ARRAY", "MAP") and random.random() < 0.15:
        return None
    number = random.randrange(1, 1000)
    makers: dict[str, Any] = {
        "ROW": lambda: row_of(column.members, random),
        "ARRAY": lambda: [row_of(column.members, random) for _ in range(number % 3)],
        "MAP": lambda: {name: row_of(column.members, random) for name in "xy"[: number % 3]},
        "STRING": lambda: f"text {number}",
        "DATE": lambda: dt.date(1969, 1, 1) + dt.timedelta(days=number),
        "FLOAT": lambda: number / 4,
        "DOUBLE": lambda: number / 4,
    }
    if column.type.startswith("DECIMAL"):
        return Decimal(number).scaleb(-2)
    return makers.get(column.type, lambda: number)()


def with_collections(columns: Columns, row: Mapping[int, Any]) -> dict[int, Any]:
    """Return a row to write again, with nothing in the lists and maps that it never had."""
    # As in `_value`: a NULL of these that stands in a file is read as empty.
    empty: dict[str, Any] = {"ARRAY": [], "MAP": {}}
    return {each.key: empty[each.type] for each in columns if each.type in empty} | dict(row)


def steps(path: tuple[Column, ...]) -> tuple[str, ...]:
    return tuple(step for each in path for step in (each.name, *NESTED[each.type]))


def wire(column: Column) -> Any:
    return type_to_wire(read_type(column.sql()))


def replaced(columns: Columns, path: tuple[Column, ...], level: Columns) -> Columns:
    if not path:
        return level
    return tuple(evolve(e, members=level) if e.key == path[0].key else e for e in columns)


def bindings(columns: Columns, level: Level = ()) -> Iterator[tuple[tuple[Level, str], int]]:
    for each in columns:
        yield (level, each.name), each.key
        yield from bindings(each.members, (*level, each.key))


def named(columns: Columns, row: Mapping[int, Any]) -> dict[str, Any]:
    """Return a row as the columns call it; what it never had is NULL."""
    return {each.name: _named_value(each, row.get(each.key)) for each in columns}


def _named_value(column: Column, value: Any) -> Any:
    match column.type, value:
        case "ROW", dict():
            return named(column.members, value)
        case "ARRAY", list():
            return [named(column.members, each) for each in value]
        case "MAP", dict():
            return [(name, named(column.members, each)) for name, each in value.items()]
        case _:
            return value


def ordered(value: Any) -> Any:
    """Return a value whose equality sees the order of columns, too."""
    match value:
        case dict():
            return tuple((name, ordered(each)) for name, each in value.items())
        case list() | tuple():
            return [ordered(each) for each in value]
        case _:
            return value
