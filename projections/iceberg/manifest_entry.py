"""ManifestEntry: one file in a manifest, and its partition struct.

Source: the Iceberg table specification, "Manifest Entry Fields" and "Data File Fields".

Source: the Iceberg table specification, "Manifests", "Field Summary" and appendix A and D.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from attrs import evolve, field, frozen
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ledger.locations import below
from ledger.log.personal_data import has_erased_partition
from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.iceberg_types import minimal_integer_bytes, single_value_bytes
from ledger.model.single_values import Value, decode_value, is_comparable, unit_digits
from ledger.model.transforms import transform_of
from ledger.model.types.text import format_type
from projections.iceberg.table_metadata import ROW_IDS_SINCE, SEQUENCES_SINCE
from projections.manifest_files.container import EncodedBlock, EncodedRecord

_NANOSECONDS = 9
_MOMENTS = (t.TimestampType, t.LocalZonedTimestampType)


class FieldSummary(msgspec.Struct, frozen=True):
    """Summary of one partition field of a manifest, in a manifest list."""

    contains_null: bool
    contains_nan: bool
    lower_bound: bytes | None
    upper_bound: bytes | None


@frozen
class PartitionColumn:
    """A partition field with the type of its values and its name in Avro records."""

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
        """Return a value in Avro's form, without logical type."""
        if value is not None and isinstance(self.type, t.DecimalType):
            return int(value).to_bytes(_decimal_width(self.type), "big", signed=True)
        return value

    def from_avro(self, value: Any) -> Value | None:
        """Return a value read from an older manifest, which may hold fewer digits."""
        if value is not None and isinstance(self.type, t.DecimalType):
            return int.from_bytes(value, "big", signed=True)
        found: Value | None = value
        return found

    def summary(self, values: Iterable[Value | None]) -> FieldSummary:
        """Return the summary of some values."""
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
    """The partition struct of one spec: all of its fields."""

    spec: PartitionSpec
    columns: tuple[PartitionColumn, ...]

    @classmethod
    def of(cls, spec: PartitionSpec, types: Mapping[int, t.DataType]) -> PartitionStruct:
        """Return a spec's struct.

        Args:
            spec: The spec.
            types: Types of its source columns by field id; dropped ones have their last type.
        """
        columns: dict[str, PartitionColumn] = {}
        for each in spec.fields:
            name = avro_name(each.name)
            while name in columns:
                # Readers resolve fields by id; two fields of one name would be merged.
                name = f"{name}_{each.field_id}"
            kind = transform_of(each.transform).result_type(types[each.source_id])
            columns[name] = PartitionColumn(each.field_id, name, kind)
        return cls(spec, tuple(columns.values()))

    def values(self, change: FileChange) -> tuple[Value | None, ...]:
        """Return a file's partition in the form of `transforms.values`.

        Raises:
            UnsupportedError: The partition does not fit the spec.
        """
        if len(change.partition) != len(self.columns):
            raise UnsupportedError(
                f"{change.path} has {len(change.partition)} partition values and spec "
                f"{self.spec.spec_id} has {len(self.columns)} fields: remove the file and "
                "register it again"
            )
        pairs = zip(change.partition, self.columns, strict=True)
        return tuple(
            _decode_partition_value(value, column.type, change.path) for value, column in pairs
        )

    def summaries(self, partitions: Sequence[tuple[Value | None, ...]]) -> tuple[FieldSummary, ...]:
        """Return the field summaries of a manifest with these partitions."""
        return tuple(
            column.summary(each[place] for each in partitions)
            for place, column in enumerate(self.columns)
        )


def _decode_partition_value(
    value: PartitionValue, data_type: t.DataType, path: str
) -> Value | None:
    try:
        found = decode_value(value, data_type)
        if found is not None:
            single_value_bytes(found, data_type)
    except (InvalidInputError, ValueError, OverflowError) as error:
        raise UnsupportedError(
            f"{path} has the partition value {value!r:.80}, which is no {format_type(data_type)}: "
            "remove the file and register it again"
        ) from error
    return found


def avro_name(name: str) -> str:
    """Return a name that Avro allows, escaped as Iceberg's writers do.

    >>> avro_name("ts_day"), avro_name("1st x")
    ('ts_day', '_1st_x20x')
    """
    return "".join(_escape_avro_character(each, place) for place, each in enumerate(name))


def _escape_avro_character(character: str, place: int) -> str:
    if character.isascii() and (character.isalpha() or character == "_"):
        return character
    if character.isascii() and character.isdigit():
        return character if place else f"_{character}"
    return f"_x{ord(character):X}"


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _decimal_width(data_type: t.DecimalType) -> int:
    """Return the number of bytes that hold every value of a decimal type.

    >>> [_decimal_width(t.DecimalType(each, 0)) for each in (2, 9, 18, 38)]
    [1, 4, 8, 16]
    """
    return len(minimal_integer_bytes(10**data_type.precision - 1))


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


EXISTING, ADDED, DELETED = 0, 1, 2

UNSORTED = 0
"""Id of the unsorted sort order, which every table has."""

_CONTENTS = {"data": 0, "position-deletes": 1, "equality-deletes": 2}
"""Content of a data file in Iceberg, by the ledger's name for it."""


def manifest_content(change: FileChange) -> int:
    """Return the content of a file's manifest: data (0) or deletes (1)."""
    # Equality deletes without field ids, from older logs, are replaced by a placeholder.
    if change.content == "equality-deletes":
        return 0 if change.equality_ids is UNSET else 1
    return 1 if change.content == "position-deletes" else 0


_BY_VALUE = _CONTENTS["equality-deletes"]
_FORMATS = ("parquet", "orc", "avro")
_BLOCK_SIZE = 64 * 1024 * 1024
_MAPS = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")


class ManifestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a manifest, with all inherited values but the row id of a new file.

    Attributes:
        status: `EXISTING`, `ADDED` or `DELETED`.
        snapshot_id: The snapshot that added it, or that removed it if it is `DELETED`.
        sequence_number: The data sequence number; 0 for files added in a version 1 table.
        first_row_id: The id of its first row; None until a manifest list assigns it.
        spec_id: Its partition spec.
        partition: One value per field of the spec, in the form of `ledger.model.single_values`.
        file: The other fields, in Avro's form.
        written: Its bytes in another manifest, if unchanged.
        file_sequence_number: The sequence number of the snapshot that added the file, if it is not
            the data sequence number, as of files that an engine rewrote.
    """

    status: int
    snapshot_id: int
    sequence_number: int
    first_row_id: int | None = None
    spec_id: int
    partition: tuple[Value | None, ...]
    file: dict[str, Any]
    written: EncodedRecord | None = None
    file_sequence_number: int | None = None

    @property
    def path(self) -> str:
        """The file's URI; for a deletion vector followed by `#` and its offset."""
        path, offset = str(self.file["file_path"]), self.file.get("content_offset")
        return path if offset is None else f"{path}#{offset}"

    @property
    def content(self) -> int:
        """Content of its manifest: data (0) or deletes (1)."""
        return 1 if self.file["content"] else 0

    @property
    def records(self) -> int:
        """Number of rows."""
        return int(self.file["record_count"])

    @property
    def key(self) -> tuple[int, str]:
        """Sort key among the files of its spec: the snapshot that added it, then the path."""
        return (self.snapshot_id, self.path)


Piece = ManifestEntry | EncodedBlock
"""A file of a manifest, or a block of unchanged `EXISTING` files, not decoded."""


@frozen
class FileOrigin:
    """Origin of a file, which never changes.

    Attributes:
        snapshot_id: The snapshot that first added it.
        sequence_number: The sequence number of that snapshot.
        is_back: Whether it is restored, having been in the table before.
        first_row_id: The id of its first row, if one was assigned.
    """

    snapshot_id: int
    sequence_number: int
    is_back: bool = False
    first_row_id: int | None = None


def entry_of(
    change: FileChange, struct: PartitionStruct, *, uri_of: Callable[[str], str], origin: FileOrigin
) -> ManifestEntry:
    """Return the entry of an added or restored file.

    A restored file keeps its sequence number: its rows are as old as before, so that deletes still
    apply to them.

    Args:
        change: The file.
        struct: The partition struct of its spec.
        uri_of: Function from a path in the log to the file's URI.
        origin: The file's origin.

    Raises:
        UnsupportedError: Iceberg cannot express the file.
    """
    content = _CONTENTS.get(change.content)
    if content is None or (content == _BY_VALUE and change.equality_ids is UNSET):
        raise UnsupportedError(
            f"{change.path} holds {change.content}, and the ledger does not know which columns "
            "they compare: rewrite them as position deletes"
        )
    if change.format.lower() not in _FORMATS and not change.is_vector:
        raise UnsupportedError(
            f"{change.path} is a file of format {change.format}, which Iceberg's readers do not "
            f"know: rewrite it as one of {', '.join(_FORMATS)}"
        )
    file = {
        "content": content,
        "file_path": uri_of(change.stored_at),
        "file_format": change.format.upper(),
        "record_count": change.record_count,
        "file_size_in_bytes": change.file_size_in_bytes,
        # Readers of metadata tables fail on an absent map, not on an empty one.
        "column_sizes": [],
        "nan_value_counts": [],
        # Readers fail on null.
        "sort_order_id": UNSORTED if change.sort_order_id is UNSET else change.sort_order_id,
        **{name: _avro_map_pairs(getattr(change, name), change.path) for name in _MAPS},
        **_delete_file_fields(change, uri_of),
    }
    return ManifestEntry(
        status=EXISTING if origin.is_back else ADDED,
        snapshot_id=origin.snapshot_id,
        sequence_number=origin.sequence_number,
        first_row_id=origin.first_row_id,
        spec_id=struct.spec.spec_id,
        partition=struct.values(change),
        file=file,
    )


def _delete_file_fields(change: FileChange, uri_of: Callable[[str], str]) -> dict[str, Any]:
    """Return the fields that say which rows a delete file deletes, as far as given."""
    found: dict[str, Any] = {}
    if not isinstance(change.equality_ids, UnsetType):
        found["equality_ids"] = list(change.equality_ids)
    if not isinstance(change.referenced_data_file, UnsetType):
        found["referenced_data_file"] = uri_of(change.referenced_data_file)
    for name in ("content_offset", "content_size_in_bytes"):
        if getattr(change, name) is not UNSET:
            found[name] = getattr(change, name)
    return found


def placeholder_change(change: FileChange, struct: PartitionStruct) -> FileChange:
    """Return a placeholder for a file that Iceberg cannot express, in unreadable snapshots only."""
    return FileChange(
        path=change.path,
        record_count=change.record_count,
        file_size_in_bytes=change.file_size_in_bytes,
        spec_id=change.spec_id,
        partition=(None,) * len(struct.columns),
    )


def _avro_map_pairs(found: dict[int, Any] | UnsetType, path: str) -> list[dict[str, Any]]:
    if found is UNSET:
        return []
    try:
        return [
            {"key": key, "value": _bytes_from_hex(value)} for key, value in sorted(found.items())
        ]
    except ValueError as error:
        raise UnsupportedError(
            f"{path} has bounds that are not hexadecimal ({error}): remove the file and register "
            "it again"
        ) from error


def _bytes_from_hex(value: Any) -> Any:
    return bytes.fromhex(value) if isinstance(value, str) else value


def to_avro(
    entry: ManifestEntry, struct: PartitionStruct, *, format_version: int
) -> dict[str, Any]:
    """Return an entry's Avro record."""
    pairs = zip(struct.columns, entry.partition, strict=True)
    file = {
        **entry.file,
        "partition": {each.avro_name: each.to_avro(value) for each, value in pairs},
    }
    record: dict[str, Any] = {"status": entry.status, "snapshot_id": entry.snapshot_id}
    if format_version < SEQUENCES_SINCE:
        file["block_size_in_bytes"] = _BLOCK_SIZE
    elif entry.status != ADDED:
        record["sequence_number"] = entry.sequence_number
        number = entry.file_sequence_number
        record["file_sequence_number"] = entry.sequence_number if number is None else number
    if format_version >= ROW_IDS_SINCE:
        file["first_row_id"] = entry.first_row_id
    record["data_file"] = file
    return record


_OTHER_KEYS = ("partition", "first_row_id", "block_size_in_bytes")


def from_avro(
    record: dict[str, Any], struct: PartitionStruct, *, adder: int, sequence_number: int
) -> ManifestEntry:
    """Return the entry of an Avro record.

    Args:
        record: The record in a manifest.
        struct: The partition struct of its spec.
        adder: The snapshot that added the manifest, which new entries inherit.
        sequence_number: The manifest's sequence number, which new entries inherit.

    Raises:
        UnsupportedError: Its partition has other fields than the spec.
    """
    file = record["data_file"]
    given, by = record.get("sequence_number"), record.get("snapshot_id")
    # Other writers may name the fields differently.
    if len(file["partition"]) != len(struct.columns):
        raise UnsupportedError(
            f"the manifest of {file['file_path']} has {len(file['partition'])} values of its "
            f"partition, and spec {struct.spec.spec_id} has {len(struct.columns)} fields: have its "
            "owner correct the table's metadata, then import that"
        )
    values = zip(struct.columns, file["partition"].values(), strict=True)
    return ManifestEntry(
        status=record["status"],
        snapshot_id=adder if by is None else by,
        sequence_number=sequence_number if given is None else given,
        first_row_id=file.get("first_row_id"),
        spec_id=struct.spec.spec_id,
        partition=tuple(each.from_avro(value) for each, value in values),
        file={"content": 0, **{k: v for k, v in file.items() if k not in _OTHER_KEYS}},
    )


UNLAID: Final = PartitionSpec(1_000_000)
"""Spec of files with erased partition values: readers cannot prune them by it."""


def replace_erased_partitions(files: Iterable[FileChange]) -> Iterator[FileChange]:
    """Yield files, those with erased partition values under the spec `UNLAID`."""
    for each in files:
        yield (
            replace(each, spec_id=UNLAID.spec_id, partition=())
            if has_erased_partition(each)
            else each
        )


@frozen
class TableFacts:
    """Facts of a table that its manifests need, at one snapshot.

    Attributes:
        location: The table's URI.
        format_version: 1, 2 or 3.
        first_sequenced: The first snapshot with a sequence number, by its id; 0 if there is none.
        schema: The current schema as JSON.
        specs: Every partition spec by id.
        types: Types of the specs' source columns by field id; dropped ones have their last type.
        data_location: The URI from which data file paths start.
        before_sequence: The difference between a snapshot's id and its sequence number, in a
            table whose ids do not start at 1.
    """

    location: str
    format_version: int
    first_sequenced: int
    schema: bytes
    specs: Mapping[int, PartitionSpec] = field(hash=False)
    types: Mapping[int, t.DataType] = field(hash=False)
    data_location: str = field(kw_only=True)
    before_sequence: int = 0

    @property
    def has_row_ids(self) -> bool:
        """Return whether rows have ids (format version 3)."""
        return self.format_version >= ROW_IDS_SINCE

    @property
    def has_sequence_numbers(self) -> bool:
        """Return whether snapshots have sequence numbers (from format version 2)."""
        return self.format_version >= SEQUENCES_SINCE

    def sequence_number(self, snapshot_id: int) -> int:
        """Return a snapshot's sequence number; 0 in version 1."""
        is_sequenced = 0 < self.first_sequenced <= snapshot_id
        return snapshot_id - self.before_sequence if is_sequenced else 0

    def origin(self, change: FileChange, snapshot_id: int) -> FileOrigin:
        """Return the origin of a file that a snapshot adds for the first time."""
        origin, row_id = (
            FileOrigin(snapshot_id, self.sequence_number(snapshot_id)),
            change.first_row_id,
        )
        if isinstance(row_id, UnsetType) or change.content != "data" or not self.has_row_ids:
            return origin
        return evolve(origin, first_row_id=row_id)

    def struct(self, spec_id: int) -> PartitionStruct:
        """Return the partition struct of a spec."""
        spec = UNLAID if spec_id == UNLAID.spec_id else self.specs[spec_id]
        return PartitionStruct.of(spec, self.types)

    def uri(self, path: str) -> str:
        """Return the URI of a metadata file, from its path below the table's location."""
        return f"{self.location}/{path}"

    def data_uri(self, path: str) -> str:
        """Return the URI of a data file, from its path in the log."""
        return below(self.data_location, path)
