"""The partition struct of a spec's manifests: Avro fields, values, and what a list sums up of them.

Source: the Iceberg table specification, "Manifests", "Field Summary" and appendix A and D.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from attrs import frozen

from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.transforms import transform_of
from ledger.model.transforms.values import Value, decode_value, is_comparable, unit_digits
from ledger.model.types.single_value import least_bytes, single_value_bytes
from ledger.model.types.text import format_type

_NANOSECONDS = 9
_MOMENTS = (t.TimestampType, t.LocalZonedTimestampType)


class FieldSummary(msgspec.Struct, frozen=True):
    """What a manifest list says of one partition field of a manifest."""

    contains_null: bool
    contains_nan: bool
    lower_bound: bytes | None
    upper_bound: bytes | None


@frozen
class PartitionColumn:
    """One field of a spec, with the type that its values have, and its name in Avro records."""

    field_id: int
    avro_name: str
    type: t.DataType

    def avro_field(self) -> dict[str, Any]:
        """Return the field in an Avro record."""
        return {
            "name": self.avro_name,
            "type": ["null", _avro_type(self.type)],
            "default": None,
            "field-id": self.field_id,
        }

    def to_avro(self, value: Value | None) -> Any:
        """Return a value as Avro has it, below any logical type."""
        if value is not None and isinstance(self.type, t.DecimalType):
            return int(value).to_bytes(_decimal_width(self.type), "big", signed=True)
        return value

    def from_avro(self, value: Any) -> Value | None:
        """Return the value of an older manifest, which may hold fewer digits."""
        if value is not None and isinstance(self.type, t.DecimalType):
            return int.from_bytes(value, "big", signed=True)
        found: Value | None = value
        return found

    def summary(self, values: Iterable[Value | None]) -> FieldSummary:
        """Return what a list says of these values."""
        listed = list(values)
        present = [each for each in listed if each is not None]
        sound = [each for each in present if not _is_nan(each)]
        return FieldSummary(
            contains_null=len(present) < len(listed),
            contains_nan=len(sound) < len(present),
            lower_bound=single_value_bytes(min(sound), self.type) if sound else None,
            upper_bound=single_value_bytes(max(sound), self.type) if sound else None,
        )


@frozen
class PartitionStruct:
    """All fields of one spec."""

    spec: PartitionSpec
    columns: tuple[PartitionColumn, ...]

    @classmethod
    def of(cls, spec: PartitionSpec, types: Mapping[int, t.DataType]) -> PartitionStruct:
        """Return a spec's struct.

        Args:
            spec: The spec.
            types: Of its source columns by field id; dropped ones have the type they had last.
        """
        columns: dict[str, PartitionColumn] = {}
        for each in spec.fields:
            name = avro_name(each.name)
            while name in columns:
                # Readers go by ids; two fields of one name would be one.
                name = f"{name}_{each.field_id}"
            kind = transform_of(each.transform).result_type(types[each.source_id])
            columns[name] = PartitionColumn(each.field_id, name, kind)
        return cls(spec, tuple(columns.values()))

    def values(self, change: FileChange) -> tuple[Value | None, ...]:
        """Return a file's partition, as the log has it, in the form of `transforms.values`.

        Raises:
            UnsupportedError: It does not fit the spec.
        """
        if len(change.partition) != len(self.columns):
            raise UnsupportedError(
                f"{change.path} has {len(change.partition)} partition values and spec "
                f"{self.spec.spec_id} has {len(self.columns)} fields: remove the file and "
                "register it anew"
            )
        pairs = zip(change.partition, self.columns, strict=True)
        return tuple(_decoded(value, column.type, change.path) for value, column in pairs)

    def summaries(self, partitions: Sequence[tuple[Value | None, ...]]) -> tuple[FieldSummary, ...]:
        """Return what a list says of a manifest with these partitions."""
        return tuple(
            column.summary(each[place] for each in partitions)
            for place, column in enumerate(self.columns)
        )


def _decoded(value: PartitionValue, data_type: t.DataType, path: str) -> Value | None:
    try:
        found = decode_value(value, data_type)
        if found is not None:
            single_value_bytes(found, data_type)
    except (InvalidInputError, ValueError, OverflowError) as error:
        raise UnsupportedError(
            f"{path} has the partition value {value!r:.80}, which is no {format_type(data_type)}: "
            "remove the file and register it anew"
        ) from error
    return found


def avro_name(name: str) -> str:
    """Return a name that Avro allows, as Iceberg's writers make it.

    >>> avro_name("ts_day"), avro_name("1st x")
    ('ts_day', '_1st_x20x')
    """
    return "".join(_avro_character(each, place) for place, each in enumerate(name))


def _avro_character(character: str, place: int) -> str:
    if character.isascii() and (character.isalpha() or character == "_"):
        return character
    if character.isascii() and character.isdigit():
        return character if place else f"_{character}"
    return f"_x{ord(character):X}"


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _decimal_width(data_type: t.DecimalType) -> int:
    """Return how many bytes hold every number of a type.

    >>> [_decimal_width(t.DecimalType(each, 0)) for each in (2, 9, 18, 38)]
    [1, 4, 8, 16]
    """
    return len(least_bytes(10**data_type.precision - 1))


def _avro_type(data_type: t.DataType) -> Any:
    match data_type:
        case t.DecimalType(precision=precision, scale=scale):
            return {
                "type": "fixed",
                "name": f"decimal_{precision}_{scale}",
                "size": _decimal_width(data_type),
                "logicalType": "decimal",
                "precision": precision,
                "scale": scale,
            }
        case t.UuidType():
            return {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}
        case t.DateType():
            return {"type": "int", "logicalType": "date"}
        case t.TimeType():
            return {"type": "long", "logicalType": "time-micros"}
        case t.TimestampType() | t.LocalZonedTimestampType():
            unit = "nanos" if unit_digits(data_type) == _NANOSECONDS else "micros"
            return {
                "type": "long",
                "logicalType": f"timestamp-{unit}",
                "adjust-to-utc": isinstance(data_type, t.LocalZonedTimestampType),
            }
        case _:
            return _PLAIN[data_type.root] if is_comparable(data_type) else "string"


_PLAIN = {
    "BOOLEAN": "boolean",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), "int"),
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    **dict.fromkeys(("CHAR", "VARCHAR"), "string"),
    **dict.fromkeys(("BINARY", "VARBINARY"), "bytes"),
}
