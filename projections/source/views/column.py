"""Columns of a view: what each is called, holds and means, for Spark and for Arrow alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    import pyarrow as pa

_DECIMAL = re.compile(r"decimal\(([0-9]+),\s*([0-9]+)\)")


@frozen
class Column:
    """A column of a view, or a member of one.

    Attributes:
        name: What it is called.
        kind: Its type as Spark writes it; `struct` where there are members.
        comment: What it means, for whoever prints the schema.
        nullable: Whether a row may have none.
        members: Of a struct.
    """

    name: str
    kind: str
    comment: str = ""
    nullable: bool = False
    members: tuple[Column, ...] = ()


def spark_ddl(columns: Sequence[Column]) -> str:
    """Return columns as the text that Spark takes for a schema.

    Example:
        >>> spark_ddl([Column("version", "bigint", "which commit")])
        "`version` bigint NOT NULL COMMENT 'which commit'"
    """
    return ", ".join(map(_definition, columns))


def _definition(column: Column) -> str:
    text = f"{_quoted(column.name)} {_kind(column)}"
    if not column.nullable:
        text += " NOT NULL"
    comment = column.comment.replace("\\", "\\\\").replace("'", "\\'")
    return f"{text} COMMENT '{comment}'" if comment else text


def _kind(column: Column) -> str:
    if column.kind != "struct":
        return column.kind
    members = ", ".join(f"{_quoted(each.name)}: {_kind(each)}" for each in column.members)
    return f"struct<{members}>"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return columns as an Arrow schema.

    Example:
        >>> arrow_schema([Column("time", "timestamp")]).field("time").type
        TimestampType(timestamp[us, tz=UTC])
    """
    import pyarrow as pa

    return pa.schema([pa.field(each.name, arrow_type(each), each.nullable) for each in columns])


def arrow_type(column: Column) -> pa.DataType:
    """Return the Arrow type of a column's values."""
    import pyarrow as pa

    if column.kind == "struct":
        return pa.struct([pa.field(each.name, arrow_type(each)) for each in column.members])
    decimal = _DECIMAL.fullmatch(column.kind)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return {
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "array<string>": pa.list_(pa.string()),
        "array<int>": pa.list_(pa.int32()),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
        "map<int,bigint>": pa.map_(pa.int32(), pa.int64()),
        "map<int,string>": pa.map_(pa.int32(), pa.string()),
    }[column.kind]
