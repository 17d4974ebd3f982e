"""Iceberg metadata from and to the state of an imported table.

If the ledger's types do not express all of a schema, its JSON is kept next to the columns.

Most of a long history is equal in both, often as identical objects, which are compared by
identity: the cost grows with what is new.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from attrs import evolve, frozen
from msgspec import UnsetType
from msgspec.structs import replace

import projections.iceberg.metadata_schema as iceberg
from ledger.events import imported as e
from ledger.events.imported import IcebergSchema
from ledger.model import types as t
from ledger.model.errors import InvalidTypeError, UnsupportedError
from ledger.model.iceberg_objects import MAIN, EncryptionKey, IcebergSnapshot, SnapshotLogEntry
from ledger.model.iceberg_types import default_json
from ledger.model.types.wire import FieldObject, field_from_wire, field_to_wire
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from projections.iceberg.schema_json import schema_from_json, schema_to_json
from projections.iceberg.table_facts import iceberg_column
from projections.iceberg.table_metadata import TableMetadata, with_known_snapshots
from projections.importing.deriving import properties_of_options

_PLAIN: dict[str, t.DataType] = {
    "boolean": t.BooleanType(),
    "int": t.IntType(),
    "long": t.BigIntType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "date": t.DateType(),
    "time": t.TimeType(6),
    "timestamp": t.TimestampType(6),
    "timestamptz": t.LocalZonedTimestampType(6),
    "timestamp_ns": t.TimestampType(9),
    "timestamptz_ns": t.LocalZonedTimestampType(9),
    "string": t.VarCharType(t.MAX_LENGTH),
    "uuid": t.UuidType(),
    "binary": t.VarBinaryType(t.MAX_LENGTH),
    "unknown": t.UnknownType(),
    "variant": t.VariantType(),
}


def ledger_schema(schema: iceberg.Schema, format_version: int) -> IcebergSchema:
    """Convert an Iceberg schema to the ledger's form.

    Args:
        schema: The Iceberg schema.
        format_version: The table's, which decides whether defaults apply.

    Raises:
        UnsupportedError: The ledger has no such type; the message names the column.
    """
    fields = tuple(_ledger_field(each, each.name) for each in schema.fields)
    made = IcebergSchema(
        schema_id=schema.schema_id,
        fields=tuple(map(field_to_wire, fields)),
        identifier_field_ids=schema.identifier_field_ids,
    )
    try:
        says_all = _build_source_schema(made, format_version) == schema
    except UnsupportedError:
        says_all = False
    return made if says_all else _schema_with_text(made, schema_text(schema))


def _schema_with_text(made: IcebergSchema, text: str | UnsetType) -> IcebergSchema:
    return IcebergSchema(
        schema_id=made.schema_id,
        fields=made.fields,
        identifier_field_ids=made.identifier_field_ids,
        text=text,
    )


def schema_text(schema: iceberg.Schema) -> str:
    """Return a schema's compact JSON."""
    return json.dumps(schema_to_json(schema), separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=1024)
def source_schema(schema: IcebergSchema, format_version: int) -> iceberg.Schema:
    """Return a schema as it is in the source."""
    if not isinstance(schema.text, UnsetType):
        return schema_from_json(json.loads(schema.text))
    return _build_source_schema(schema, format_version)


def _build_source_schema(schema: IcebergSchema, format_version: int) -> iceberg.Schema:
    columns = tuple(_nested_field(each, format_version) for each in schema.fields)
    return iceberg.Schema(schema.schema_id, columns, schema.identifier_field_ids)


def _nested_field(column: FieldObject, format_version: int) -> iceberg.NestedField:
    if isinstance(column.type, str):
        return _primitive_nested_field(column, format_version)
    return iceberg_column(field_from_wire(column), format_version)


@lru_cache(maxsize=65_536)
def _primitive_nested_field(column: FieldObject, format_version: int) -> iceberg.NestedField:
    made = iceberg_column(field_from_wire(column), format_version)
    has_default = made.initial_default is not None or made.write_default is not None
    return made if has_default else iceberg.shared_field(made)


def _ledger_field(member: iceberg.NestedField, path: str) -> t.DataField:
    data_type = _ledger_type(member.type, path).with_nullability(nullable=not member.required)
    return t.DataField(
        member.id,
        member.name,
        data_type,
        member.doc,
        _default_text(member.write_default, data_type, path),
        _default_text(member.initial_default, data_type, path),
    )


def _default_text(value: Any, data_type: t.DataType, path: str) -> str | None:
    """Return a default as text; None if there is none, or no text for it."""
    if value is None or isinstance(value, dict):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        return text if default_json(text, data_type, path) == value else None
    except UnsupportedError:
        return None


def _ledger_type(kind: iceberg.Type, path: str) -> t.DataType:
    match kind:
        case iceberg.StructType(fields=fields):
            return t.RowType([_ledger_field(each, f"{path}.{each.name}") for each in fields])
        case iceberg.ListType():
            element = _ledger_type(kind.element, f"{path}.element")
            return t.ArrayType(
                element.with_nullability(nullable=not kind.element_required),
                element_id=kind.element_id,
            )
        case iceberg.MapType():
            key, value = (
                _ledger_type(kind.key, f"{path}.key"),
                _ledger_type(kind.value, f"{path}.value"),
            )
            return t.MapType(
                key.with_nullability(nullable=False),
                value.with_nullability(nullable=not kind.value_required),
                key_id=kind.key_id,
                value_id=kind.value_id,
            )
        case _:
            return _ledger_primitive_type(kind, path)


def _ledger_primitive_type(kind: iceberg.PrimitiveType, path: str) -> t.DataType:
    try:
        match kind:
            case iceberg.PlainType(name=name):
                return _PLAIN[name]
            case iceberg.FixedType(length=length):
                return t.BinaryType(length) if length else t.VarBinaryType(t.MAX_LENGTH)
            case iceberg.DecimalType(precision=precision, scale=scale):
                return t.DecimalType(precision, scale)
            case iceberg.GeometryType(crs=crs):
                return t.GeometryType(crs)
            case iceberg.GeographyType(crs=crs, algorithm=algorithm):
                return t.GeographyType(crs, algorithm)
    except InvalidTypeError as error:
        raise UnsupportedError(
            f"column {path} has Iceberg's type {iceberg.type_text(kind)}, which the ledger cannot "
            "hold: "
            f"{error}"
        ) from error


T = TypeVar("T")


def items_after_prefix(before: tuple[T, ...], after: tuple[T, ...]) -> tuple[T, ...] | None:
    """Return the items after a common prefix; None if `before` is not a prefix of `after`.

    Example:
        >>> items_after_prefix((1, 2), (1, 2, 3)), items_after_prefix((1, 2), (2, 3))
        ((3,), None)
    """
    count = len(before)
    return after[count:] if after[:count] == before else None


def dropped_and_new_entries(
    before: tuple[Any, ...], after: tuple[Any, ...]
) -> tuple[int, tuple[Any, ...]]:
    """Return how many of the oldest entries were dropped, and the new entries.

    Example:
        >>> dropped_and_new_entries((1, 2, 3), (2, 3, 4)), dropped_and_new_entries((1, 2), (5,))
        ((1, (4,)), (2, (5,)))
    """
    dropped = 0
    while after and dropped < len(before):
        try:
            dropped = before.index(after[0], dropped)
        except ValueError:
            break
        new = items_after_prefix(before[dropped:], after)
        if new is not None:
            return dropped, new
        dropped += 1
    return len(before), after


@frozen
class SnapshotChanges:
    """Changes of a table's snapshots between two metadata files.

    Attributes:
        new: The new snapshots, in the later file's order.
        gone: The ids of removed snapshots.
        rewritten: The ids of changed snapshots.
    """

    new: tuple[IcebergSnapshot, ...]
    gone: tuple[int, ...] = ()
    rewritten: tuple[int, ...] = ()

    def with_ids_in_order(self, order: Iterable[int]) -> SnapshotChanges:
        """Return the same changes with removed and changed ids in a given order."""
        if not self.gone and not self.rewritten:
            return self
        gone, rewritten = set(self.gone), set(self.rewritten)
        ids = tuple(order)
        return SnapshotChanges(
            self.new,
            tuple(each for each in ids if each in gone),
            tuple(each for each in ids if each in rewritten),
        )


def compare_snapshots(before: TableMetadata, after: TableMetadata) -> SnapshotChanges:
    """Return the changes of snapshots from one metadata file to a later one."""
    new = items_after_prefix(before.snapshots, after.snapshots)
    if new is not None:
        return SnapshotChanges(new)
    had, has = before.snapshots_by_id, after.snapshots_by_id
    return SnapshotChanges(
        new=tuple(each for each in after.snapshots if each.snapshot_id not in had),
        gone=tuple(each for each in had if each not in has),
        rewritten=tuple(
            key
            for key, each in had.items()
            if (now := has.get(key, each)) is not each and now != each
        ),
    )


def _refuse_missing_list(snapshot_id: int) -> str:
    raise UnsupportedError(f"snapshot {snapshot_id} has no manifest list")


def metadata_of(
    state: TableState, list_of: Callable[[int], str] = _refuse_missing_list
) -> TableMetadata:
    """Return the Iceberg metadata of an imported table at a version.

    For a version between two metadata files of the source, the last update is the time of the
    commit.

    Args:
        state: The table's state.
        list_of: Function that gives the manifest list of a snapshot of the ledger.

    Raises:
        UnsupportedError: The table was not imported from Iceberg.
    """
    origin = state.origin_of_kind(IcebergOrigin)
    return _build_metadata(
        state,
        origin,
        tuple(_with_manifest_list(each, list_of) for each in origin.snapshots.values()),
        origin.snapshot_log,
    )


@frozen
class KnownMetadata:
    """A table's state at a version, and the same state as Iceberg metadata."""

    state: TableState
    metadata: TableMetadata


def known_metadata(
    state: TableState, file: TableMetadata, before: KnownMetadata | None = None
) -> KnownMetadata:
    """Return a table's state with its Iceberg metadata, as `metadata_of` gives it.

    Equal parts are taken from the source's file, and unchanged ones from the earlier version:
    a long history is neither converted nor compared again.

    Args:
        state: The table's state.
        file: The content of a metadata file of the source.
        before: The result for an earlier version.

    Raises:
        UnsupportedError: The table was not imported from Iceberg.
    """
    origin = state.origin_of_kind(IcebergOrigin)
    had = None if before is None else before.state.origin_of_kind(IcebergOrigin)
    if before is None or had is None or not _extends_snapshots(had, origin):
        made = _build_metadata(
            state, origin, _reuse_snapshots(origin, file), _reuse_log_entries(origin, file)
        )
        return KnownMetadata(state, made)
    said = before.metadata
    dropped, logged = dropped_and_new_entries(had.snapshot_log, origin.snapshot_log)
    more = islice(origin.snapshots.values(), len(had.snapshots), None)
    made = _build_metadata(
        state,
        origin,
        (*said.snapshots, *(_with_manifest_list(each, _refuse_missing_list) for each in more)),
        (*said.snapshot_log[dropped:], *logged),
    )
    if list(origin.schemas.values()) == list(had.schemas.values()):
        made = evolve(made, schemas=said.schemas)
    return KnownMetadata(state, with_known_snapshots(made, said))


def known_from_source_file(state: TableState, file: TableMetadata) -> KnownMetadata:
    """Return a table's state with the metadata of a source file that it equals."""
    made = _build_metadata(
        state, state.origin_of_kind(IcebergOrigin), file.snapshots, file.snapshot_log
    )
    return KnownMetadata(state, with_known_snapshots(made, file))


def _extends_snapshots(had: IcebergOrigin, has: IcebergOrigin) -> bool:
    """Return whether a table has all of its earlier snapshots unchanged, and maybe more."""
    before = list(had.snapshots.values())
    return list(islice(has.snapshots.values(), len(before))) == before


def _reuse_log_entries(origin: IcebergOrigin, file: TableMetadata) -> tuple[SnapshotLogEntry, ...]:
    there = file.snapshot_log[: len(origin.snapshot_log)]
    return there if there == origin.snapshot_log else origin.snapshot_log


def _reuse_snapshots(origin: IcebergOrigin, file: TableMetadata) -> tuple[IcebergSnapshot, ...]:
    """Return a table's snapshots: objects of a file where equal, in its order."""
    ours = origin.snapshots
    same = {each.snapshot_id: each for each in file.snapshots if ours.get(each.snapshot_id) == each}
    others = (each for key, each in ours.items() if key not in same)
    return (*same.values(), *(_with_manifest_list(each, _refuse_missing_list) for each in others))


def _build_metadata(
    state: TableState,
    origin: IcebergOrigin,
    snapshots: tuple[IcebergSnapshot, ...],
    snapshot_log: tuple[SnapshotLogEntry, ...],
) -> TableMetadata:
    whole = origin.synced_in == state.version
    main = origin.refs.get(MAIN)
    return TableMetadata(
        format_version=origin.format_version,
        table_uuid=origin.table_uuid,
        location=origin.location,
        last_sequence_number=origin.last_sequence_number,
        last_updated_ms=origin.last_updated_millis if whole else state.effective_millis,
        last_column_id=state.schema.highest_field_id,
        current_schema_id=origin.schema_id,
        schemas=tuple(
            _cached_source_schema(each, origin.format_version) for each in origin.schemas.values()
        ),
        default_spec_id=state.default_spec_id,
        partition_specs=tuple(state.specs),
        last_partition_id=state.last_partition_id,
        default_sort_order_id=state.default_order_id,
        sort_orders=state.sort_orders,
        # Both are unordered, and a checkpoint keeps no order.
        properties=dict(sorted(properties_of_options(state.schema.options).items())),
        current_snapshot_id=None if main is None else main.snapshot_id,
        next_row_id=origin.next_row_id,
        encryption_keys=tuple(origin.encryption_keys.values()),
        refs=dict(sorted(origin.refs.items())),
        snapshots=snapshots,
        statistics=tuple(origin.statistics.values()),
        partition_statistics=tuple(each for _, each in sorted(state.partition_statistics.items())),
        snapshot_log=snapshot_log,
        metadata_log=origin.metadata_log,
    )


def _with_manifest_list(
    snapshot: IcebergSnapshot, list_of: Callable[[int], str]
) -> IcebergSnapshot:
    if snapshot.manifest_list is None and snapshot.manifests is None:
        return replace(snapshot, manifest_list=list_of(snapshot.snapshot_id))
    return snapshot


_MOST_KNOWN = 20_000
_known_schemas: dict[int, tuple[e.IcebergSchema, int, iceberg.Schema]] = {}
"""Cache of schemas by format version and the identity of the state's schema, kept alive here."""


def _cached_source_schema(schema: e.IcebergSchema, format_version: int) -> iceberg.Schema:
    known = _known_schemas.get(id(schema))
    if known is None or known[1] != format_version:
        if len(_known_schemas) >= _MOST_KNOWN:
            _known_schemas.clear()
        made = source_schema(schema, format_version)
        known = _known_schemas[id(schema)] = schema, format_version, made
    return known[2]


def differing_fields(made: TableMetadata, source: TableMetadata) -> list[str]:
    """Return the names of fields in which two metadata files differ, ignoring order."""
    return [
        name
        for name, (one, other) in {
            **{
                each: (getattr(made, each), getattr(source, each))
                for each in (
                    "format_version",
                    "table_uuid",
                    "location",
                    "last_sequence_number",
                    "last_updated_ms",
                    "last_column_id",
                    "current_schema_id",
                    "schemas_by_id",
                    "default_spec_id",
                    "specs_by_id",
                    "last_partition_id",
                    "default_sort_order_id",
                    "orders_by_id",
                    "current_snapshot_id",
                    "next_row_id",
                    "snapshot_log",
                    "metadata_log",
                )
            },
            "snapshots_by_id": _snapshots_to_compare(made, source),
            "properties": (made.properties, dict(source.properties)),
            "refs": (dict(made.refs), dict(source.refs)),
            "encryption_keys": (
                _encryption_keys_by(made, "key_id"),
                _encryption_keys_by(source, "key_id"),
            ),
            "statistics": (
                _files_by_snapshot_id(made.statistics),
                _files_by_snapshot_id(source.statistics),
            ),
            "partition_statistics": (
                _files_by_snapshot_id(made.partition_statistics),
                _files_by_snapshot_id(source.partition_statistics),
            ),
        }.items()
        if one != other
    ]


def _snapshots_to_compare(made: TableMetadata, source: TableMetadata) -> tuple[object, object]:
    if made.snapshots == source.snapshots:
        return (), ()
    return made.snapshots_by_id, source.snapshots_by_id


def _encryption_keys_by(metadata: TableMetadata, key: str) -> dict[str, EncryptionKey]:
    return {getattr(each, key): each for each in metadata.encryption_keys}


def _files_by_snapshot_id(files: Any) -> dict[int, Any]:
    return {each.snapshot_id: each for each in files}
