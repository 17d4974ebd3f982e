"""Partition values: as text by name and, for one table, typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import PartitionValue, kept_at
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.transforms import transform_of
from ledger.model.transforms.paths import field_types
from projections.source.views.column import Column

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
"""By spec id, the names of its fields; None for one that is void."""


def names_of(specs: Iterable[PartitionSpec]) -> Names:
    """Return the names by which the values of each spec's files are shown."""
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
        (name, _text(value)) for name, value in zip(names, values, strict=True) if name is not None
    ]


def _text(value: PartitionValue) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    # What was erased is NULL, as engines find it.
    return None if value is None or kept_at(value) is not None else str(value)


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
                kinds.setdefault(field.name, set()).add(_kind(field.transform, source))
    members = tuple(
        Column(name, found.pop() if len(found) == 1 else "string", nullable=True)
        for name, found in kinds.items()
    )
    if not members:
        return None
    return Column(TYPED, "struct", "the same, each of its own type", members=members)


def _kind(transform: str, source: t.DataType) -> str:
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
        column: As `typed_column` gives it.
        items: As `as_text` gives them.

    Raises:
        InvalidInputError: A value is not one of its member's type.

    Example:
        >>> day = Column("partition_values", "struct", members=(Column("day", "date"),))
        >>> typed(day, [("day", "2024-01-01")])
        {'day': datetime.date(2024, 1, 1)}
    """
    found = dict(items)
    values = {}
    for each in column.members:
        text = found.get(each.name)
        try:
            values[each.name] = None if text is None else _reader(each.kind)(text)
        except (ValueError, ArithmeticError) as error:
            raise InvalidInputError(
                f"partition value {text!r} of {each.name} is no {each.kind}; read it as text, "
                "from the column partition"
            ) from error
    return values


def _reader(kind: str) -> Callable[[str], Any]:
    return Decimal if kind.startswith("decimal") else _READERS.get(kind, int)


def _moment(text: str) -> datetime:
    # Python's datetime stops at microseconds, as Spark's does.
    return datetime.fromisoformat(_FRACTION.sub(lambda found: f".{found[1]:0<6.6}", text))


def _instant(text: str) -> datetime:
    moment = _moment(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "boolean": lambda text: text == "true",
    "float": float,
    "double": float,
    "date": date.fromisoformat,
    "timestamp_ntz": _moment,
    "timestamp": _instant,
}
