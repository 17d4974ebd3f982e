"""Metadata files as JSON, read in versions 1 to 3 and written as Java does.

Source: the Iceberg table specification, "Table Metadata Fields" and appendix C; the defaults of
absent fields are those of Java's TableMetadataParser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from attrs import field, frozen
from msgspec import UNSET, Raw, UnsetType

from ledger.model.errors import InvalidInputError, UpgradeRequiredError
from ledger.model.iceberg_layout import (
    FIRST_PARTITION_FIELD_ID,
    PartitionField,
    PartitionSpec,
    SortOrder,
)
from ledger.model.iceberg_objects import (
    MAIN,
    EncryptionKey,
    IcebergSnapshot,
    Int,
    Long,
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
    validate_foreign_ref,
    validate_foreign_snapshot,
)
from projections.iceberg.metadata_schema import Schema
from projections.iceberg.schema_json import (
    decode_record,
    encode_record,
    inflate_if_gzip,
    invalid_json_error,
    schema_from_json,
    schema_to_json,
)
from projections.iceberg.table_metadata import (
    NO_SNAPSHOT,
    ROW_IDS_SINCE,
    SEQUENCES_SINCE,
    SUPPORTED_VERSIONS,
    TableMetadata,
    check_table,
    with_known_snapshots,
)

_WHAT = "table metadata"
_T = TypeVar("_T")


class _FormatVersionRecord(msgspec.Struct, rename="kebab"):
    format_version: Int


class MetadataFileKeys(msgspec.Struct, kw_only=True, rename="kebab"):
    """The keys of a metadata file, in Java's order; UNSET ones are absent."""

    format_version: Int
    table_uuid: str | UnsetType | None = UNSET
    location: str | UnsetType = UNSET
    last_sequence_number: Long | UnsetType = UNSET
    last_updated_ms: Long | UnsetType = UNSET
    last_column_id: Int | UnsetType = UNSET
    schema: Any | UnsetType = UNSET
    current_schema_id: Int | UnsetType = UNSET
    schemas: list[Any] | UnsetType = UNSET
    partition_spec: tuple[PartitionField, ...] | UnsetType = UNSET
    default_spec_id: Int | UnsetType = UNSET
    partition_specs: tuple[PartitionSpec, ...] | UnsetType = UNSET
    last_partition_id: Int | UnsetType = UNSET
    default_sort_order_id: Int | UnsetType = UNSET
    sort_orders: tuple[SortOrder, ...] | UnsetType = UNSET
    properties: Mapping[str, str] | UnsetType | None = UNSET
    current_snapshot_id: Long | UnsetType | None = UNSET
    next_row_id: Long | UnsetType = UNSET
    encryption_keys: tuple[EncryptionKey, ...] | UnsetType | None = UNSET
    refs: Mapping[str, SnapshotRef] | UnsetType = UNSET
    snapshots: Sequence[IcebergSnapshot] | UnsetType | None = UNSET
    statistics: tuple[StatisticsFile, ...] | UnsetType | None = UNSET
    partition_statistics: tuple[PartitionStatisticsFile, ...] | UnsetType | None = UNSET
    snapshot_log: tuple[SnapshotLogEntry, ...] | UnsetType | None = UNSET
    metadata_log: tuple[MetadataLogEntry, ...] | UnsetType | None = UNSET


def read_metadata(content: bytes | str) -> TableMetadata:
    """Read a metadata file, compressed with gzip or not, and check it as Java does.

    Raises:
        UpgradeRequiredError: Its format version is newer than 3.
        InvalidInputError: It is not valid table metadata; the message names the
            place in the JSON.
    """
    text = inflate_if_gzip(content)
    version = decode_record(text, _FormatVersionRecord, _WHAT).format_version
    if version > SUPPORTED_VERSIONS[-1]:
        raise UpgradeRequiredError(
            f"the table is of format version {version}, and {SUPPORTED_VERSIONS[-1]} is the "
            "newest that this lakeledger reads; upgrade it"
        )
    if version not in SUPPORTED_VERSIONS:
        raise invalid_json_error(_WHAT, f"$.format-version: {version} is below 1")
    file = decode_record(text, MetadataFileKeys, _WHAT)
    file.snapshots = _checked_snapshots(file, 0)
    metadata = _metadata_of_file(file)
    check_table(metadata)
    return metadata


class _TableUuidRecord(msgspec.Struct, rename="kebab"):
    table_uuid: str | None = None


def table_uuid_of(content: bytes) -> str | None:
    """Return the table's UUID in a metadata file, plain or gzip; None if it has none.

    Args:
        content: The bytes of the file, which may be no metadata file.

    Raises:
        TooLargeError: It is too large.
    """
    try:
        return msgspec.json.decode(inflate_if_gzip(content), type=_TableUuidRecord).table_uuid
    except (msgspec.DecodeError, UnicodeError, RecursionError, InvalidInputError):
        return None


@frozen
class ParsedMetadataFile:
    """A parsed metadata file.

    Attributes:
        metadata: The content.
        parts: The JSON text, by key.
        new: The same, without the items that were in the file read before.
    """

    metadata: TableMetadata
    parts: Mapping[str, Raw] = field(repr=False, eq=False)
    new: Mapping[str, Raw] = field(repr=False, eq=False)


_PARTS = msgspec.json.Decoder(dict[str, Raw])
_GROWING = ("schemas", "snapshots", "snapshot-log")
"""Keys of lists that mostly grow at their end."""

_SPACES = b" \t\r\n"


def read_after(content: bytes | str, before: ParsedMetadataFile | None) -> ParsedMetadataFile:
    """Read a metadata file as `read_metadata` does, reusing what an earlier one has in common.

    Args:
        content: The bytes of the file.
        before: An earlier file of the same table; None if there is none.

    Raises:
        UpgradeRequiredError, InvalidInputError: As in `read_metadata`.
    """
    text = inflate_if_gzip(content)
    if before is not None:
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError, InvalidInputError):
            return _read_grown_file(text, before)
    # This reports any error with its place.
    metadata = read_metadata(text)
    parts = decode_record(text, dict[str, Raw], _WHAT)
    return ParsedMetadataFile(metadata, parts, parts)


def _read_grown_file(text: bytes | str, before: ParsedMetadataFile) -> ParsedMetadataFile:
    parts, known = _PARTS.decode(text), before.metadata
    new = {**parts, **{key: _new_list_items(before.parts, parts, key) for key in _GROWING}}
    file = decode_record(msgspec.json.encode(new), MetadataFileKeys, _WHAT)
    if file.format_version != known.format_version:
        raise invalid_json_error(_WHAT, "absent fields have another meaning in each format version")
    file.snapshots = (*known.snapshots, *_checked_snapshots(file, len(known.snapshots)))
    file.snapshot_log = (*known.snapshot_log, *_value_or_default(file.snapshot_log, ()))
    metadata = with_known_snapshots(_metadata_of_file(file, known.schemas), known)
    check_table(metadata, known)
    return ParsedMetadataFile(metadata, parts, new)


def _new_list_items(before: Mapping[str, Raw], parts: Mapping[str, Raw], key: str) -> Raw:
    """Return a list's JSON without the items that it had before.

    Raises:
        InvalidInputError: The list does not begin with those items.
    """
    had, whole = (memoryview(each.get(key, b"")) for each in (before, parts))
    end = len(had) - 1
    while end > 0 and had[end - 1] in _SPACES:
        end -= 1
    rest = bytes(whole[end:]).lstrip()
    if end < 1 or rest[:1] not in {b",", b"]"} or not bytes(whole[:end]).startswith(had[:end]):
        raise invalid_json_error(_WHAT, f"$.{key}: does not begin as it did before")
    return Raw(b"[" + rest.removeprefix(b","))


def write_metadata(metadata: TableMetadata, snapshots: Sequence[bytes] | None = None) -> bytes:
    """Return the bytes of a metadata file: compact JSON with the keys of its format version.

    Args:
        metadata: The table's metadata.
        snapshots: The table's snapshots, each rendered by `encode_record`: a caller that keeps them
            between commits need not render all of them again.

    Raises:
        InvalidInputError: The number of rendered snapshots is not that of the table.
    """
    if snapshots is not None and len(snapshots) != len(metadata.snapshots):
        raise InvalidInputError(
            f"{len(snapshots)} rendered snapshots for a table of {len(metadata.snapshots)}; "
            "render every one with `encode_record`"
        )
    return encode_record(_keys_of_metadata(metadata, snapshots))


def _keys_of_metadata(
    metadata: TableMetadata, rendered: Sequence[bytes] | None
) -> MetadataFileKeys:
    version = metadata.format_version
    v1 = version < SEQUENCES_SINCE
    current = metadata.current_snapshot_id
    if current is None and version < ROW_IDS_SINCE:
        current = NO_SNAPSHOT
    # A Raw is encode_record as its bytes.
    raw: Any = metadata.snapshots if rendered is None else [msgspec.Raw(each) for each in rendered]
    return MetadataFileKeys(
        format_version=version,
        table_uuid=metadata.table_uuid or UNSET,
        location=metadata.location,
        last_sequence_number=UNSET if v1 else metadata.last_sequence_number,
        last_updated_ms=metadata.last_updated_ms,
        last_column_id=metadata.last_column_id,
        schema=schema_to_json(metadata.schema) if v1 else UNSET,
        current_schema_id=metadata.current_schema_id,
        schemas=[schema_to_json(each) for each in metadata.schemas],
        partition_spec=metadata.spec.fields if v1 else UNSET,
        default_spec_id=metadata.default_spec_id,
        partition_specs=metadata.partition_specs,
        last_partition_id=metadata.last_partition_id,
        default_sort_order_id=metadata.default_sort_order_id,
        sort_orders=metadata.sort_orders,
        properties=metadata.properties,
        current_snapshot_id=current,
        next_row_id=metadata.next_row_id if version >= ROW_IDS_SINCE else UNSET,
        encryption_keys=metadata.encryption_keys or UNSET,
        refs=metadata.refs,
        snapshots=raw,
        statistics=metadata.statistics,
        partition_statistics=metadata.partition_statistics,
        snapshot_log=metadata.snapshot_log,
        metadata_log=metadata.metadata_log,
    )


def _metadata_of_file(file: MetadataFileKeys, known: tuple[Schema, ...] = ()) -> TableMetadata:
    """Return a file's metadata, with new schemas after known ones."""
    version = file.format_version
    v1 = version < SEQUENCES_SINCE
    schemas = (*known, *_parse_schemas(file)) if not known or file.schemas else known
    specs = _partition_specs(file)
    orders = (
        (SortOrder(0),)
        if v1 and file.sort_orders is UNSET
        else _required_field(file, "sort_orders")
    )
    current = _value_or_default(file.current_snapshot_id, NO_SNAPSHOT)
    last_partition_id = (
        max(each.last_field_id for each in specs) if specs else (FIRST_PARTITION_FIELD_ID - 1)
    )
    return TableMetadata(
        format_version=version,
        table_uuid=_value_or_default(file.table_uuid, None)
        if v1
        else _required_field(file, "table_uuid"),
        location=_required_field(file, "location"),
        last_sequence_number=0 if v1 else _required_field(file, "last_sequence_number"),
        last_updated_ms=_required_field(file, "last_updated_ms"),
        last_column_id=_required_field(file, "last_column_id"),
        current_schema_id=_default_item_id(
            file, "current_schema_id", "schemas", schemas[0].schema_id
        ),
        schemas=schemas,
        default_spec_id=_default_item_id(file, "default_spec_id", "partition_specs", 0),
        partition_specs=specs,
        last_partition_id=(
            last_partition_id
            if v1 and file.last_partition_id is UNSET
            else _required_field(file, "last_partition_id")
        ),
        default_sort_order_id=_default_item_id(file, "default_sort_order_id", "sort_orders", 0),
        sort_orders=orders,
        properties=_value_or_default(file.properties, {}),
        current_snapshot_id=None if current == NO_SNAPSHOT else current,
        next_row_id=_required_field(file, "next_row_id") if version >= ROW_IDS_SINCE else 0,
        encryption_keys=_value_or_default(file.encryption_keys, ()),
        refs=_checked_refs(file.refs, current),
        snapshots=tuple(_value_or_default(file.snapshots, ())),
        statistics=_value_or_default(file.statistics, ()),
        partition_statistics=_value_or_default(file.partition_statistics, ()),
        snapshot_log=_value_or_default(file.snapshot_log, ()),
        metadata_log=_value_or_default(file.metadata_log, ()),
    )


def _checked_snapshots(file: MetadataFileKeys, first: int) -> tuple[IcebergSnapshot, ...]:
    """Return the snapshots of a file from an index on."""
    found = []
    for place, each in enumerate(_value_or_default(file.snapshots, ()), first):
        try:
            found.append(validate_foreign_snapshot(each))
        except InvalidInputError as error:
            raise invalid_json_error(_WHAT, f"$.snapshots[{place}]: {error}") from error
    return tuple(found)


def _parse_schemas(file: MetadataFileKeys) -> tuple[Schema, ...]:
    if file.format_version < SEQUENCES_SINCE and file.schemas is UNSET:
        return (schema_from_json(_required_field(file, "schema"), "$.schema"),)
    listed = _required_field(file, "schemas")
    if not listed:
        raise invalid_json_error(_WHAT, "$.schemas: a table has a schema")
    return tuple(schema_from_json(each, f"$.schemas[{index}]") for index, each in enumerate(listed))


def _partition_specs(file: MetadataFileKeys) -> tuple[PartitionSpec, ...]:
    if file.format_version < SEQUENCES_SINCE and file.partition_specs is UNSET:
        fields: tuple[PartitionField, ...] = _required_field(file, "partition_spec")
        return (PartitionSpec(0, fields),)
    specs: tuple[PartitionSpec, ...] = _required_field(file, "partition_specs")
    return specs


def _checked_refs(
    refs: Mapping[str, SnapshotRef] | UnsetType, current: int
) -> Mapping[str, SnapshotRef]:
    if refs is not UNSET:
        for name, ref in refs.items():
            try:
                validate_foreign_ref(ref)
            except InvalidInputError as error:
                raise invalid_json_error(_WHAT, f"$.refs.{name}: {error}") from error
        return refs
    return {} if current == NO_SNAPSHOT else {MAIN: SnapshotRef(snapshot_id=current, type="branch")}


def _default_item_id(file: MetadataFileKeys, name: str, listed: str, absent: int) -> int:
    """Return the id of the default item of a list; old version 1 files have no list."""
    if getattr(file, listed) is UNSET:
        return absent
    number: int = _required_field(file, name)
    return number


def _required_field(file: MetadataFileKeys, name: str) -> Any:
    value = getattr(file, name)
    if value is UNSET or value is None:
        key = name.replace("_", "-")
        raise invalid_json_error(
            _WHAT, f"$.{key}: is missing, version {file.format_version} requires it"
        )
    return value


def _value_or_default(value: _T | UnsetType | None, absent: Any) -> Any:
    return absent if value is UNSET or value is None else value
