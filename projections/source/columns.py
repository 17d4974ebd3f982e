"""Columns of the source's views, and partition values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import PartitionValue, sidecar_location_of
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.transforms import field_types, transform_of

if TYPE_CHECKING:
    import pyarrow as pa


_DECIMAL = re.compile(r"decimal\(([0-9]+),\s*([0-9]+)\)")


@frozen
class Column:
    """A column of a view, or a member of a struct column.

    Attributes:
        name: The column's name.
        kind: Its Spark type; `struct` where there are members.
        comment: Its description, shown in the schema.
        nullable: Whether a value may be missing.
        members: The members of a struct.
    """

    name: str
    kind: str
    comment: str = ""
    nullable: bool = False
    members: tuple[Column, ...] = ()


def spark_ddl(columns: Sequence[Column]) -> str:
    """Return columns as a Spark DDL schema string.

    Example:
        >>> spark_ddl([Column("version", "bigint", "which commit")])
        "`version` bigint NOT NULL COMMENT 'which commit'"
    """
    return ", ".join(map(_ddl_definition, columns))


def _ddl_definition(column: Column) -> str:
    text = f"{_quote_name(column.name)} {_ddl_type(column)}"
    if not column.nullable:
        text += " NOT NULL"
    comment = column.comment.replace("\\", "\\\\").replace("'", "\\'")
    return f"{text} COMMENT '{comment}'" if comment else text


def _ddl_type(column: Column) -> str:
    if column.kind != "struct":
        return column.kind
    members = ", ".join(f"{_quote_name(each.name)}: {_ddl_type(each)}" for each in column.members)
    return f"struct<{members}>"


def _quote_name(name: str) -> str:
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


PARTITION = Column(
    "partition",
    "map<string,string>",
    "value of each field of the file's spec; NULL where it was erased",
)
TYPED = "partition_values"

_KINDS: dict[str, str] = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INT": "int",
    "BIGINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP_LTZ": "timestamp",
}
_FRACTION = re.compile(r"\.(\d{1,9})")

Names = Mapping[int, Sequence[str | None]]
"""By spec id, the names of its fields; None for a void field."""


def partition_field_names(specs: Iterable[PartitionSpec]) -> Names:
    """Return, by spec id, the names under which partition values are shown."""
    return {
        spec.spec_id: [None if each.transform == "void" else each.name for each in spec.fields]
        for spec in specs
    }


def as_text(names: Sequence[str | None], values: Sequence[PartitionValue]) -> list[Any]:
    """Return a partition as the items of a map.

    Example:
        >>> as_text(["day", None, "on"], ["2024-01-01", None, True])
        [('day', '2024-01-01'), ('on', 'true')]
    """
    return [
        (name, value_text(value))
        for name, value in zip(names, values, strict=True)
        if name is not None
    ]


def value_text(value: PartitionValue) -> str | None:
    """Return a partition value as text; an erased one is NULL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    # An erased value is NULL, as engines find it.
    return None if value is None or sidecar_location_of(value) is not None else str(value)


def typed_column(schema: Schema, specs: Sequence[PartitionSpec]) -> Column | None:
    """Return the column of a table's typed partition values; None where no spec has a field.

    It has a member for every name that a partition field has in any spec. Where specs use a name
    for values of different types, and where Spark has no such type, the member is text.
    """
    types = field_types(schema)
    kinds: dict[str, set[str]] = {}
    for spec in specs:
        for field in spec.fields:
            if field.transform != "void":
                source = types.get(field.source_id, t.UnknownType())
                kinds.setdefault(field.name, set()).add(_result_kind(field.transform, source))
    members = tuple(
        Column(name, found.pop() if len(found) == 1 else "string", nullable=True)
        for name, found in kinds.items()
    )
    if not members:
        return None
    return Column(TYPED, "struct", "the same, each of its own type", members=members)


def _result_kind(transform: str, source: t.DataType) -> str:
    try:
        found = transform_of(transform).result_type(source)
    except InvalidInputError:
        return "string"
    if isinstance(found, t.DecimalType):
        return f"decimal({found.precision},{found.scale})"
    return _KINDS.get(found.root, "string")


def typed(column: Column, items: Iterable[tuple[str, str | None]]) -> dict[str, Any]:
    """Return the value of a typed column for a partition.

    Args:
        column: The result of `typed_column`.
        items: The result of `as_text`.

    Raises:
        InvalidInputError: A value does not have its member's type.

    Example:
        >>> day = Column("partition_values", "struct", members=(Column("day", "date"),))
        >>> typed(day, [("day", "2024-01-01")])
        {'day': datetime.date(2024, 1, 1)}
    """
    found = dict(items)
    return {each.name: parse_value(each, found.get(each.name)) for each in column.members}


def parse_value(member: Column, text: str | None) -> Any:
    """Return the value of a member of a typed column.

    Raises:
        InvalidInputError: The text does not have the member's type.
    """
    try:
        return None if text is None else _value_parser(member.kind)(text)
    except (ValueError, ArithmeticError) as error:
        raise InvalidInputError(
            f"partition value {text!r} of {member.name} is no {member.kind}; read it as text, "
            "from the column partition"
        ) from error


def _value_parser(kind: str) -> Callable[[str], Any]:
    return Decimal if kind.startswith("decimal") else _READERS.get(kind, int)


def _parse_timestamp(text: str) -> datetime:
    # Python's datetime has microseconds at most, as Spark's.
    return datetime.fromisoformat(_FRACTION.sub(lambda found: f".{found[1]:0<6.6}", text))


def _parse_utc_timestamp(text: str) -> datetime:
    moment = _parse_timestamp(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "boolean": lambda text: text == "true",
    "float": float,
    "double": float,
    "date": date.fromisoformat,
    "timestamp_ntz": _parse_timestamp,
    "timestamp": _parse_utc_timestamp,
}
