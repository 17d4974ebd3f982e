"""Random but valid histories of a schema, the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from ledger import (
    AddColumn,
    DataField,
    DropColumn,
    InvalidInputError,
    Move,
    RemoveOption,
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
    evolve,
)
from ledger.events import MoveType
from ledger.model import TypeJson, type_from_json, type_to_wire
from ledger.model.types import ArrayType, DataType, MapType, RowType

Path = tuple[str, ...]

_TYPES: tuple[object, ...] = (
    "INT",
    "BIGINT",
    "STRING",
    "DECIMAL(10, 2)",
    "TIMESTAMP(3)",
    {"type": "ARRAY", "element": "INT"},
    {"type": "ROW", "fields": [{"name": "x", "type": "INT"}, {"name": "y", "type": "STRING"}]},
    {
        "type": "MAP",
        "key": "STRING",
        "value": {"type": "ROW", "fields": [{"name": "v", "type": "INT"}]},
    },
)


def start_schema() -> Schema:
    """A schema with something of everything: keys, a partition, nested columns, options."""
    row = type_from_json(
        {"type": "ROW", "fields": [{"name": "p", "type": "INT"}, {"name": "q", "type": "INT"}]}
    )
    return Schema.of(
        {
            "id": "BIGINT NOT NULL",
            "day": "DATE NOT NULL",
            "price": "INT",
            "point": row,
            "points": ArrayType(row),
        },
        partition_keys=["day"],
        primary_keys=["id", "day"],
        options={"bucket": "2", "sequence.field": "price"},
        comment="orders",
    )


def random_changes(rng: random.Random, schema: Schema, *, length: int) -> list[SchemaChange]:
    """Return changes, each of them valid as a batch of its own after all before it."""
    changes: list[SchemaChange] = []
    while len(changes) < length:
        change = random_change(rng, schema)
        try:
            schema = evolve(schema, [change])
        except InvalidInputError:
            continue
        changes.append(change)
    return changes


def random_change(rng: random.Random, schema: Schema) -> SchemaChange:
    """Return a change of columns, options or comment that may be valid for this schema."""
    return rng.choice(_MAKERS)(rng, schema)


def paths(fields: tuple[DataField, ...], prefix: Path = ()) -> Iterator[Path]:
    """Yield the path of every named field."""
    for each in fields:
        yield (*prefix, each.name)
        yield from _inner_paths(each.type, (*prefix, each.name))


def _inner_paths(data_type: DataType, prefix: Path) -> Iterator[Path]:
    match data_type:
        case RowType(fields=fields):
            yield from paths(fields, prefix)
        case ArrayType(element=element):
            yield from _inner_paths(element, (*prefix, "element"))
        case MapType(value=value):
            yield from _inner_paths(value, (*prefix, "value"))
        case _:
            return


def _path(rng: random.Random, schema: Schema) -> Path:
    return rng.choice(list(paths(schema.fields)))


def _name(rng: random.Random) -> str:
    return rng.choice("abcdefgh") + str(rng.randrange(20))


def _type(rng: random.Random) -> TypeJson:
    return type_to_wire(type_from_json(rng.choice(_TYPES)))


def _move(rng: random.Random, schema: Schema, name: str, *, prefix: Path = ()) -> Move:
    kinds: tuple[MoveType, ...] = ("FIRST", "LAST", "AFTER", "BEFORE")
    kind = rng.choice(kinds)
    siblings = [each[-1] for each in paths(schema.fields) if each[:-1] == prefix]
    return Move(name, kind, rng.choice(siblings) if kind in {"AFTER", "BEFORE"} else None)


def _add(rng: random.Random, schema: Schema) -> SchemaChange:
    name, near = _name(rng), _path(rng, schema)
    prefix = near[:-1]
    move = _move(rng, schema, name, prefix=prefix) if rng.random() < 0.4 else None
    comment = rng.choice([None, "", "why"])
    return AddColumn((*prefix, name), _type(rng), comment, move)


def _rename(rng: random.Random, schema: Schema) -> SchemaChange:
    return RenameColumn(_path(rng, schema), _name(rng))


def _drop(rng: random.Random, schema: Schema) -> SchemaChange:
    return DropColumn(_path(rng, schema))


def _retype(rng: random.Random, schema: Schema) -> SchemaChange:
    return UpdateColumnType(
        _path(rng, schema), rng.choice(["BIGINT", "STRING", "DOUBLE"]), rng.random() < 0.5
    )


def _nullability(rng: random.Random, schema: Schema) -> SchemaChange:
    return UpdateColumnNullability(_path(rng, schema), new_nullability=True)


def _comment(rng: random.Random, schema: Schema) -> SchemaChange:
    return UpdateColumnComment(_path(rng, schema), rng.choice([None, "", "new"]))


def _default(rng: random.Random, schema: Schema) -> SchemaChange:
    return UpdateColumnDefaultValue(_path(rng, schema), rng.choice([None, "7"]))


def _position(rng: random.Random, schema: Schema) -> SchemaChange:
    path = _path(rng, schema)
    move = _move(rng, schema, path[-1], prefix=path[:-1])
    return UpdateColumnPosition(move, path if len(path) > 1 else ())


def _option(rng: random.Random, _schema: Schema) -> SchemaChange:
    return SetOption(f"k{rng.randrange(4)}", str(rng.randrange(3)))


def _no_option(rng: random.Random, _schema: Schema) -> SchemaChange:
    return RemoveOption(f"k{rng.randrange(4)}")


def _table_comment(rng: random.Random, _schema: Schema) -> SchemaChange:
    return UpdateComment(rng.choice([None, "", "other"]))


_MAKERS: tuple[Callable[[random.Random, Schema], SchemaChange], ...] = (
    _add,
    _add,
    _rename,
    _drop,
    _retype,
    _nullability,
    _comment,
    _default,
    _position,
    _option,
    _no_option,
    _table_comment,
)
