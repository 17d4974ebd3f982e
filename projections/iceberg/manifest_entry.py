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
from ledger.log.personal_data import is_unknown
from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.iceberg_types import least_bytes, single_value_bytes
from ledger.model.single_values import Value, decode_value, is_comparable, unit_digits
from ledger.model.transforms import transform_of
from ledger.model.types.text import format_type
from projections.iceberg.table_metadata import ROW_IDS_SINCE, SEQUENCES_SINCE
from projections.manifest_files.container import WrittenBlock, WrittenRecord

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


EXISTING, ADDED, DELETED = 0, 1, 2

UNSORTED = 0
"""The id of the sort order that every table has, of rows in no order."""

_CONTENTS = {"data": 0, "position-deletes": 1, "equality-deletes": 2}
"""Content of a data file by the ledger's word for it."""


def manifest_content(change: FileChange) -> int:
    """Return whether a file stands in a manifest of data (0) or of deletes (1)."""
    # Equality deletes of older logs compare nobody knows what; a placeholder stands for them.
    if change.content == "equality-deletes":
        return 0 if change.equality_ids is UNSET else 1
    return 1 if change.content == "position-deletes" else 0


_BY_VALUE = _CONTENTS["equality-deletes"]
_FORMATS = ("parquet", "orc", "avro")
_BLOCK_SIZE = 64 * 1024 * 1024
_MAPS = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")


class ManifestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a manifest, with nothing left to be inherited but a new row id.

    Attributes:
        status: `EXISTING`, `ADDED` or `DELETED`.
        snapshot_id: The snapshot that added it, or that removed it if it is `DELETED`.
        sequence_number: Of its data; 0 for files that a version 1 table added.
        first_row_id: The id of its first row; None until a manifest list gives it out.
        spec_id: Its partition spec.
        partition: One value a field of the spec, in the form of `ledger.model.single_values`.
        file: The rest, as Avro has it.
        written: How it stands in another manifest, where it stands there just so.
    """

    status: int
    snapshot_id: int
    sequence_number: int
    first_row_id: int | None = None
    spec_id: int
    partition: tuple[Value | None, ...]
    file: dict[str, Any]
    written: WrittenRecord | None = None

    @property
    def path(self) -> str:
        """The file's URI; that of a deletion vector has where in the file it begins behind."""
        path, offset = str(self.file["file_path"]), self.file.get("content_offset")
        return path if offset is None else f"{path}#{offset}"

    @property
    def content(self) -> int:
        """Whether it stands in a manifest of data (0) or of deletes (1)."""
        return 1 if self.file["content"] else 0

    @property
    def records(self) -> int:
        """How many rows it has."""
        return int(self.file["record_count"])

    @property
    def key(self) -> tuple[int, str]:
        """Its place among the files of its spec: by the snapshot that added it, then by path."""
        return (self.snapshot_id, self.path)


Piece = ManifestEntry | WrittenBlock
"""A file of a manifest, or several that are `EXISTING` and stay so, unread."""


@frozen
class Ancestry:
    """Where a file comes from, which it keeps for ever.

    Attributes:
        snapshot_id: The snapshot that first added it.
        sequence_number: That snapshot's.
        is_back: Whether it was in the table before, and comes back.
        first_row_id: The id of its first row, where it has had one or says it.
    """

    snapshot_id: int
    sequence_number: int
    is_back: bool = False
    first_row_id: int | None = None


def entry_of(
    change: FileChange, struct: PartitionStruct, *, uri_of: Callable[[str], str], origin: Ancestry
) -> ManifestEntry:
    """Return the entry of a file that comes into a table, or comes back.

    What comes back is no new file: its rows are as old as they were, so that deletes go on applying
    to them.

    Args:
        change: The file.
        struct: Of its partition spec.
        uri_of: Where a file is whose path the log has.
        origin: Where it comes from.

    Raises:
        UnsupportedError: Iceberg cannot say the file.
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
        # Readers of metadata tables fail where a map is absent, not where it is empty.
        "column_sizes": [],
        "nan_value_counts": [],
        # Readers fail where this is null.
        "sort_order_id": UNSORTED if change.sort_order_id is UNSET else change.sort_order_id,
        **{name: _pairs(getattr(change, name), change.path) for name in _MAPS},
        **_deletes(change, uri_of),
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


def _deletes(change: FileChange, uri_of: Callable[[str], str]) -> dict[str, Any]:
    """Return what says which rows a file deletes; nothing where it does not say."""
    found: dict[str, Any] = {}
    if not isinstance(change.equality_ids, UnsetType):
        found["equality_ids"] = list(change.equality_ids)
    if not isinstance(change.referenced_data_file, UnsetType):
        found["referenced_data_file"] = uri_of(change.referenced_data_file)
    for name in ("content_offset", "content_size_in_bytes"):
        if getattr(change, name) is not UNSET:
            found[name] = getattr(change, name)
    return found


def placeholder(change: FileChange, struct: PartitionStruct) -> FileChange:
    """Return what stands for a file that Iceberg cannot say, in manifests that nobody reads."""
    return FileChange(
        path=change.path,
        record_count=change.record_count,
        file_size_in_bytes=change.file_size_in_bytes,
        spec_id=change.spec_id,
        partition=(None,) * len(struct.columns),
    )


def _pairs(found: dict[int, Any] | UnsetType, path: str) -> list[dict[str, Any]]:
    if found is UNSET:
        return []
    try:
        return [{"key": key, "value": _bytes(value)} for key, value in sorted(found.items())]
    except ValueError as error:
        raise UnsupportedError(
            f"{path} has bounds that are not hexadecimal ({error}): remove the file and register "
            "it anew"
        ) from error


def _bytes(value: Any) -> Any:
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
        record["file_sequence_number"] = entry.sequence_number
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
        record: As a manifest has it.
        struct: Of its partition spec.
        adder: The snapshot that added the manifest, which new entries inherit.
        sequence_number: The manifest's, which new entries inherit.

    Raises:
        UnsupportedError: Its partition has other fields than the spec.
    """
    file = record["data_file"]
    given, by = record.get("sequence_number"), record.get("snapshot_id")
    # Whoever else wrote it may call the fields otherwise.
    if len(file["partition"]) != len(struct.columns):
        raise UnsupportedError(
            f"the manifest of {file['file_path']} has {len(file['partition'])} values of its "
            f"partition, and spec {struct.spec.spec_id} has {len(struct.columns)} fields: have its "
            "owner put the table's metadata right, then import that"
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
"""The spec of files whose partition has a value that was erased: by it, no reader prunes them."""


def unlaid(files: Iterable[FileChange]) -> Iterator[FileChange]:
    """Yield files, those of `UNLAID` under it."""
    for each in files:
        yield replace(each, spec_id=UNLAID.spec_id, partition=()) if is_unknown(each) else each


@frozen
class TableFacts:
    """A table while a snapshot is made.

    Attributes:
        location: Its URI.
        format_version: 1, 2 or 3.
        first_sequenced: The first snapshot that has a sequence number, its own id; 0 if none has.
        schema: The current schema as JSON.
        specs: Every partition spec by id.
        types: Of the specs' source columns by field id; dropped ones have the type they had last.
        data_location: The URI that data files are below.
        before_sequence: By how much a snapshot's id is more than its sequence number, in a table
            whose ids are not counted from 1.
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
        """Whether rows have ids."""
        return self.format_version >= ROW_IDS_SINCE

    @property
    def has_sequences(self) -> bool:
        """Whether snapshots have sequence numbers."""
        return self.format_version >= SEQUENCES_SINCE

    def sequence_number(self, snapshot_id: int) -> int:
        """Return a snapshot's sequence number; 0 for those of version 1."""
        is_sequenced = 0 < self.first_sequenced <= snapshot_id
        return snapshot_id - self.before_sequence if is_sequenced else 0

    def origin(self, change: FileChange, snapshot_id: int) -> Ancestry:
        """Return where a file comes from that a snapshot brings for the first time."""
        origin, row_id = (
            Ancestry(snapshot_id, self.sequence_number(snapshot_id)),
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
        """Return where a file of Iceberg's own is."""
        return f"{self.location}/{path}"

    def data_uri(self, path: str) -> str:
        """Return where a file is whose path the log has."""
        return below(self.data_location, path)
