"""Every kind of schema change, each with the SQL that says what it does to older rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from ledger import (
    AddColumn,
    DropColumn,
    Move,
    RenameColumn,
    Schema,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ledger.model import type_from_json

# What Iceberg cannot say is none of these readers' business.
_PAIMON = {"ledger.formats": "paimon"}
_SAME = "SELECT * FROM {rows}"
_Lens = Callable[[Mapping[str, str]], str]


@frozen
class Step:
    """A schema change, and the rows of older files after it."""

    name: str
    changes: tuple[SchemaChange, ...]
    lens: str = _SAME


@frozen
class Evolution:
    """A table's first schema and its changes, one after the other; a file is added after each."""

    name: str
    schema: Schema
    steps: tuple[Step, ...]


def _renamed(old: str, new: str) -> str:
    return f"SELECT * RENAME ({old} AS {new}) FROM {{rows}}"  # noqa: S608 - written here


def _cast(column: str, expression: str) -> str:
    return f"SELECT * REPLACE ({expression} AS {column}) FROM {{rows}}"  # noqa: S608 - written here


def _typed(column: str, data_type: str, sql: str | None = None) -> Step:
    changes = (UpdateColumnType((column,), data_type),)
    return Step(
        f"{column} becomes {data_type}", changes, _cast(column, sql or f"{column}::{data_type}")
    )


def _note() -> Step:
    added = "SELECT *, NULL::VARCHAR AS note FROM {rows}"
    return Step("add note", (AddColumn(("note",), "STRING"),), added)


_FLAT = Evolution(
    "flat",
    Schema.of(
        {
            "id": "BIGINT NOT NULL",
            "name": "STRING",
            "qty": "INT",
            "ratio": "FLOAT",
            "price": "DECIMAL(6, 2)",
            "must": "INT NOT NULL",
            "born": "TIMESTAMP(6)",
            "day": "DATE",
        },
        options=_PAIMON,
    ),
    (
        _note(),
        Step("rename", (RenameColumn(("name",), "title"),), _renamed("name", "title")),
        Step("drop", (DropColumn(("note",)),), "SELECT * EXCLUDE (note) FROM {rows}"),
        _note(),
        _typed("qty", "BIGINT"),
        _typed("ratio", "DOUBLE"),
        _typed("price", "DECIMAL(12, 2)"),
        Step("move first", (UpdateColumnPosition(Move("day", "FIRST")),)),
        Step("move after", (UpdateColumnPosition(Move("title", "AFTER", "price")),)),
        Step("allow null", (UpdateColumnNullability(("must",), new_nullability=True),)),
        Step("comment a column", (UpdateColumnComment(("qty",), "how many"),)),
        Step("comment the table", (UpdateComment("orders"),)),
        Step("set a default", (UpdateColumnDefaultValue(("qty",), "7"),)),
        Step("set an option", (SetOption("owner", "etl"),)),
        Step(
            "swap two names in two steps",
            (RenameColumn(("title",), "t"), RenameColumn(("born",), "title")),
            "SELECT * RENAME (title AS t, born AS title) FROM {rows}",
        ),
        Step("swapped", (RenameColumn(("t",), "born"),), _renamed("t", "born")),
    ),
)

_CASTS = Evolution(
    "casts",
    Schema.of(
        {
            "id": "BIGINT NOT NULL",
            "a": "INT",
            "b": "STRING",
            "c": "DOUBLE",
            "d": "DECIMAL(9, 4)",
            "e": "TIMESTAMP(6)",
            "f": "DATE",
            "g": "BIGINT",
            "h": "BOOLEAN",
        },
        options=_PAIMON,
    ),
    (
        _typed("a", "STRING"),
        _typed("b", "INT"),
        _typed("c", "INT", "trunc(c)::INT"),
        _typed("d", "DECIMAL(9, 2)"),
        _typed("e", "DATE"),
        _typed("f", "TIMESTAMP(6)", "f::TIMESTAMP"),
        _typed("g", "INT"),
        _typed("h", "STRING"),
    ),
)


def _packed(members: Mapping[str, str], row: str) -> str:
    parts = (f"{name} := {how.replace('x.', f'{row}.')}" for name, how in members.items())
    return f"CASE WHEN {row} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"


def _row(members: Mapping[str, str]) -> str:
    return _cast("c", _packed(members, "c"))


def _array(members: Mapping[str, str]) -> str:
    return _cast("c", f"list_transform(c, lambda x: {_packed(members, 'x')})")


def _map(members: Mapping[str, str]) -> str:
    value = _packed(members, "e.value")
    entries = f"list_transform(map_entries(c), lambda e: struct_pack(k := e.key, v := {value}))"
    return _cast("c", f"CASE WHEN c IS NOT NULL THEN map_from_entries({entries}) END")


def _nested(name: str, column: object, into: tuple[str, ...], lens: _Lens) -> Evolution:
    """Return the changes of a ROW's members, wherever the ROW stands in column `c`."""
    path = ("c", *into)
    as_before = {"aa": "x.aa", "b": "x.b", "z": "x.z"}
    moved = Move("b", "FIRST")
    return Evolution(
        name,
        Schema.of({"id": "BIGINT NOT NULL", "c": type_from_json(column)}, options=_PAIMON),
        (
            Step(
                "add a member",
                (AddColumn((*path, "z"), "INT"),),
                lens({"a": "x.a", "b": "x.b", "z": "NULL::INT"}),
            ),
            Step(
                "rename a member",
                (RenameColumn((*path, "a"), "aa"),),
                lens({"aa": "x.a", "b": "x.b", "z": "x.z"}),
            ),
            Step(
                "widen a member",
                (UpdateColumnType((*path, "aa"), "BIGINT"),),
                lens(as_before | {"aa": "x.aa::BIGINT"}),
            ),
            Step("comment a member", (UpdateColumnComment((*path, "b"), "text"),)),
            Step("drop a member", (DropColumn((*path, "z")),), lens({"aa": "x.aa", "b": "x.b"})),
            Step(
                "add a dropped member again",
                (AddColumn((*path, "z"), "INT"),),
                lens(as_before | {"z": "NULL::INT"}),
            ),
            Step(
                "move a member",
                (UpdateColumnPosition(moved, (*path, "b")),),
                lens({"b": "x.b", "aa": "x.aa", "z": "x.z"}),
            ),
            Step("rename the column", (RenameColumn(("c",), "d"),), _renamed("c", "d")),
        ),
    )


_MEMBERS: dict[str, Any] = {
    "type": "ROW",
    "fields": [
        {"id": 0, "name": "a", "type": "INT"},
        {"id": 1, "name": "b", "type": "STRING"},
    ],
}

_ALL = (
    _FLAT,
    _CASTS,
    _nested("row", _MEMBERS, (), _row),
    _nested("array", {"type": "ARRAY", "element": _MEMBERS}, ("element",), _array),
    _nested("map", {"type": "MAP", "key": "STRING NOT NULL", "value": _MEMBERS}, ("value",), _map),
)

EVOLUTIONS = {each.name: each for each in _ALL}
"""One table each; in the last three, the members of a ROW in different places change."""
