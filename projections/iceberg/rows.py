"""Rows of a table at an instant, as a PyIceberg scan; its plan is in `row_scan`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve
from msgspec import UnsetType

import projections.iceberg.position as positions
from ledger.decide.format_rules import Refusal, declared_rules, refused_retyping
from ledger.decide.name_mapping import NAME_MAPPING, learn_names, named_parts
from ledger.files.bounds import FooterColumn
from ledger.files.footers import existing_footers
from ledger.locations import below
from ledger.model.arguments import path_texts
from ledger.model.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    StoreError,
    UnsupportedError,
)
from ledger.model.extras import missing_extra_error
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg_layout import PartitionField, spec_by_id
from ledger.model.messages import name_hint
from ledger.model.schema import Schema as LedgerSchema
from ledger.model.single_values import decode_value
from ledger.model.types import (
    BigIntType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntType,
    RowType,
    SmallIntType,
    TinyIntType,
    TypePlace,
    parts_of,
    type_places,
    walk_fields,
)
from ledger.model.types.casts import can_promote
from ledger.observing.telemetry import warn
from ledger.planning.filter import Filter, parse_filter
from ledger.state.declared_formats import Rules
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from ledger.table_at import TableAt
from ledger.table_handle import TableHandle
from projections.iceberg.foreign_tables import is_foreign, render_in_memory
from projections.iceberg.imported import metadata_of_imported, render_imported
from projections.iceberg.materialise import ICEBERG, advance
from projections.iceberg.planned import is_cast_by_name, misread_members
from projections.iceberg.position import RENDERER, IcebergPosition, Names
from projections.iceberg.project import Projection
from projections.iceberg.rules import (
    RULES,
    name_clashes,
    name_problems,
    schemas_in_files,
    schemas_read_by_name,
    type_problems,
)
from projections.iceberg.table_json import write_metadata
from projections.materialising import ignore_progress, outputs_of, target_state
from projections.outputs import MemoryOutputs
from projections.reader_limits import PlaceKey, place_key

_TYPE_CHANGES = "delta.typeChanges"

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem
    from pyiceberg.schema import Schema
    from pyiceberg.table import DataScan
    from pyiceberg.table.metadata import TableMetadata

    from ledger.planning.plan import FilePlan


def scan(
    table: TableHandle, at: TableAt, *, where: Filter = None, columns: Iterable[str] | None = None
) -> DataScan:
    """Return PyIceberg's scan of a table's rows at an instant.

    Brings the table's Iceberg files up to date. For a table that declares only other formats they
    are made in memory, on each call, if PyIceberg can read the planned files. A version whose
    snapshot expired since is read through manifests generated in memory, as long as its data files
    exist; so is a table that was copied or moved after its files were written.

    Args:
        table: The table.
        at: The instant; rows are read with its schema.
        where: As for `TableAt.plan`; NULL matches only `is null`.
        columns: Names, inside a ROW with the ROW's name before; the result is in the table's order.

    Raises:
        ColumnNotFoundError: The schema has no such column.
        InvalidInputError: The filter is invalid, or no column is named.
        MissingDependencyError: PyIceberg is not installed.
        UnsupportedError: Iceberg cannot express the table, PyIceberg cannot access it, or its
            position deletes name the location from which the ledger was copied or moved.
    """
    try:
        import projections.iceberg.row_scan  # noqa: F401
    except ImportError as error:
        raise missing_extra_error(
            f"rows are read by PyIceberg, which is not installed ({error})", "iceberg"
        ) from error
    names = None if columns is None else tuple(path_texts(columns))
    if isinstance(at.state.origin, IcebergOrigin):
        return _scan_imported(table, at, at.state.origin, where, names)
    if is_foreign(at.state):
        return _scan_foreign(table, at, where, names)
    if table.location.startswith("memory://"):
        raise UnsupportedError(
            f"{table.identifier} is at {table.location}, which file readers cannot access: keep "
            "the ledger in a folder or in an object store to read rows"
        )
    return _scan_planned(table, at, where, names)


def _scan_imported(
    table: TableHandle,
    at: TableAt,
    origin: IcebergOrigin,
    where: Filter,
    names: tuple[str, ...] | None,
) -> DataScan:
    from projections.iceberg.row_scan import LedgerScan, RowFiles, row_filter

    if structs := _structs_read_by_name(at.schema, names):
        # Its files may be of any schema: engines merge manifests.
        schemas = origin.listed_schemas(at.schema).values()
        _refuse_misread_members(table, structs, schemas)
    metadata, made = _imported_metadata(table, at)
    schema = metadata.schema()
    return LedgerScan(
        table_metadata=metadata,
        io=RowFiles(table.file_access, made, table.reached),
        row_filter=row_filter(parse_filter(where, at.schema), schema),
        selected_fields=_selected_columns(names, schema),
    )


def _scan_foreign(
    table: TableHandle, at: TableAt, where: Filter, names: tuple[str, ...] | None
) -> DataScan:
    """Return a scan of a table whose engines list its files in another format."""
    from projections.iceberg.row_scan import LedgerScan, RowFiles, row_filter

    if structs := _structs_read_by_name(at.schema, names):
        schemas = at.state.origin.listed_schemas(at.schema).values()
        _refuse_misread_members(table, structs, schemas)
    rendered, made = render_in_memory(table, at.state)
    metadata = _parse_pyiceberg_metadata(write_metadata(rendered)).model_copy(
        update={"current_schema_id": at.schema.id}
    )
    schema = metadata.schema()
    return LedgerScan(
        table_metadata=metadata,
        io=RowFiles(table.file_access, made, table.reached),
        row_filter=row_filter(parse_filter(where, at.schema), schema),
        selected_fields=_selected_columns(names, schema),
    )


def _scan_planned(
    table: TableHandle, at: TableAt, where: Filter, names: tuple[str, ...] | None
) -> DataScan:
    from projections.iceberg.row_scan import (
        RowFiles,
        RowScan,
        refuse_lost_deletes,
        row_filter,
        table_uri,
        with_optional_columns,
    )

    # Before anything is written: an invalid filter needs no files.
    plan = at.plan(where)
    if structs := _structs_read_by_name(at.schema, names):
        read = [each.file for each in plan.files if each.file.record_count]
        in_files = schemas_in_files(read, _as_owned(at.state), table.past)
        _refuse_misread_members(table, structs, in_files)
    metadata, made = _metadata_at(table, at, plan)
    if lacking := _required_columns_outside_files(at, plan):
        metadata = with_optional_columns(metadata, lacking)
    schema = metadata.schema()
    files = RowFiles(table.file_access, made, table.reached)
    refuse_lost_deletes(table, (each.file for each in plan.files), files)
    return RowScan(
        location=table.location,
        table_metadata=metadata,
        io=files,
        row_filter=row_filter(parse_filter(where, at.schema), schema),
        selected_fields=_selected_columns(names, schema),
        residuals={
            table_uri(table, each.file.path): row_filter(each.residual, schema)
            for each in plan.files
            # PyIceberg never plans a file without rows.
            if each.file.content == "data" and each.file.record_count
        },
        doubles={
            table_uri(table, each.file.path): _double_partition_values(at, each.file)
            for each in plan.files
        },
    )


def _double_partition_values(at: TableAt, file: FileChange) -> dict[int, Any]:
    """Return the DOUBLE values in a file's partition, by their place in it."""
    doubles = {
        each.id for each in walk_fields(at.schema.fields) if isinstance(each.type, DoubleType)
    }
    found = {}
    for place, (each, value) in enumerate(_partition_pairs(at, file)):
        if each.transform == "identity" and each.source_id in doubles:
            found[place] = decode_value(value, DoubleType())
    return found


def _required_columns_outside_files(at: TableAt, plan: FilePlan) -> set[int]:
    """Return the NOT NULL columns that some planned file may have in its partition only."""
    required = {each.id for each in at.schema.fields if not each.type.nullable}
    found = set()
    for each in plan.files:
        counts = each.file.value_counts
        counted = set() if isinstance(counts, UnsetType) else set(counts)
        for field, value in _partition_pairs(at, each.file):
            if field.transform == "identity" and value is not None:
                found |= {field.source_id} & required - counted
    return found


def _partition_pairs(
    at: TableAt, file: FileChange
) -> Iterator[tuple[PartitionField, PartitionValue]]:
    spec = spec_by_id(at.state.specs, file.spec_id)
    return zip(spec.fields, file.partition, strict=True)


def _metadata_at(
    table: TableHandle, at: TableAt, plan: FilePlan
) -> tuple[TableMetadata, Mapping[str, bytes]]:
    """Return the metadata to read planned files with, and files generated in memory."""
    if not _is_declared(at.state):
        _refuse_unreadable(table, at, plan)
        metadata, made = _render_metadata_at(table, at)
        return _with_names_in_files(metadata, _schemas_read_by_name(table, at, plan)), made
    return _published_metadata_at(table, at) or _render_metadata_at(table, at)


def _schemas_read_by_name(table: TableHandle, at: TableAt, plan: FilePlan) -> list[LedgerSchema]:
    data = [each.file for each in plan.files if each.file.content == "data"]
    return schemas_read_by_name(data, _as_owned(at.state), table.past)


def _with_names_in_files(metadata: TableMetadata, schemas: list[LedgerSchema]) -> TableMetadata:
    """Return metadata whose name mapping gives each name the field that planned files mean."""
    if not schemas:
        return metadata
    known = metadata.properties.get(NAME_MAPPING)
    names = {NAME_MAPPING: learn_names(known, map(named_parts, schemas))}
    return metadata.model_copy(update={"properties": {**metadata.properties, **names}})


def _is_declared(state: TableState) -> bool:
    return ICEBERG.format.name in declared_rules(state.schema.options).formats


def _refuse_unreadable(table: TableHandle, at: TableAt, plan: FilePlan) -> None:
    """Reject a read of a table that does not declare Iceberg, if PyIceberg would misread a file.

    Raises:
        UnsupportedError: It would, or the rows are not those of the data files: an engine merges
            them by a primary key, or lists them in manifests of its own.
    """
    if at.schema.primary_keys or not at.state.lists_files:
        ICEBERG.refuse_undeclared(table, at.state)
    for each in _reading_problems(table, at, plan):
        readers = ", ".join(sorted(declared_rules(at.options).formats))
        raise UnsupportedError(
            f"rows of {table.identifier} are read by PyIceberg, which cannot read its files: "
            f"{each.what}: {each.rule}. Use a reader of the table's own formats ({readers}), or "
            "write the rows of the older files again"
        )


def _reading_problems(table: TableHandle, at: TableAt, plan: FilePlan) -> Iterator[Refusal]:
    schema, version = at.schema, Rules.of(at.options).format_version
    yield from type_problems(schema.fields, version)
    yield from name_problems(schema)
    for place in type_places(schema.fields):
        if place.type.root in RULES.file_forms:
            rule = f"other formats keep a {place.type.root} in files in another way"
            yield Refusal(f"column {place.name}", rule, "take another type")
    files = [each.file for each in plan.files]
    *older_names, last = _schemas_read_by_name(table, at, plan) or [schema]
    yield from name_clashes(last, older_names)
    if _lacks_older_types(at.state):
        yield from _unknown_retyping_problems(table, at, files)
    places = {each.field.id: each for each in type_places(schema.fields) if each.field}
    for older in table.past.schemas({each.schema_id for each in files} - {schema.id}):
        for field in walk_fields(older.fields):
            if (now := places.get(field.id)) is not None:
                yield from _retyping_problems(now.name, field.type, now.type, version)


def _lacks_older_types(state: TableState) -> bool:
    """Return whether only the files tell an older type, from a version that was not imported."""
    origin = state.origin
    if not isinstance(origin, DeltaOrigin):
        return False
    return origin.oldest_version > 0 and _TYPE_CHANGES in origin.metadata


def _unknown_retyping_problems(
    table: TableHandle, at: TableAt, files: Iterable[FileChange]
) -> Iterator[Refusal]:
    """Yield the whole numbers and dates in a source's files that PyIceberg does not read."""
    origin = _as_owned(at.state).origin
    names, last = origin.physical_names, origin.last_physical_schema_id
    paths = {below(table.location, each.path) for each in files if each.schema_id <= last}
    whole = RowType(at.schema.fields)

    def open_file(uri: str) -> tuple[AbstractFileSystem, str]:
        return table.file_access.open(table.reached(uri))

    for _, footer in existing_footers(sorted(paths), open_file):
        yield from _member_retyping_problems("", footer.columns, whole, names)


def _member_retyping_problems(
    around: str, columns: Iterable[FooterColumn], data_type: DataType, names: Mapping[int, str]
) -> Iterator[Refusal]:
    """Yield the whole numbers and dates among columns of a file that PyIceberg does not read.

    Args:
        around: The name before those of the columns, with a dot.
        columns: The members of a struct, the element of a list, or the key and value of a map.
        data_type: The type around them.
        names: The names of columns in the file, by field id.
    """
    parts = parts_of(data_type)
    in_file = dict(zip((part.name for part in parts), columns, strict=False))
    if isinstance(data_type, RowType):
        in_file = {each.name: each for each in columns}
    for part in parts:
        column = in_file.get(names.get(part.field.id, part.name) if part.field else part.name)
        if column is None:
            continue
        name = f"{around}{part.name}"
        if isinstance(column.type, TinyIntType | SmallIntType | IntType | BigIntType | DateType):
            yield from _retyping_problems(name, column.type, part.type, 2)
        else:
            yield from _member_retyping_problems(f"{name}.", column.members, part.type, names)


def _structs_read_by_name(
    schema: LedgerSchema, columns: tuple[str, ...] | None
) -> dict[PlaceKey, TypePlace]:
    """Return the structs in selected columns in which PyIceberg finds members by name."""
    return {
        place_key(each): each
        for each in type_places(schema.fields)
        if is_cast_by_name(each) and (columns is None or _is_selected(each.path[0], columns))
    }


def _is_selected(column: str, columns: tuple[str, ...]) -> bool:
    return any(each == column or each.startswith(f"{column}.") for each in columns)


def _refuse_misread_members(
    table: TableHandle, structs: Mapping[PlaceKey, TypePlace], in_files: Iterable[LedgerSchema]
) -> None:
    """Reject a read of structs by name if a file has other names.

    Args:
        table: The table.
        structs: The structs.
        in_files: The schemas of the files, with the column names in them.

    Raises:
        UnsupportedError: A file has.
    """
    for schema in in_files:
        for older in type_places(schema.fields):
            place = structs.get(place_key(older))
            if place is None or not isinstance(older.type, RowType):
                continue
            names = {each.id: each.name for each in older.type.fields}
            for name in misread_members(names, place.type):
                raise UnsupportedError(
                    f"rows of {table.identifier} are read by PyIceberg, which would misread column "
                    f"{place.name}.{name}: it finds members of structs in map keys, and in lists "
                    "and maps that are directly in others, by name, and files have "
                    f"({', '.join(names.values())}). Leave the column out (columns=), use another "
                    "reader, or write the rows of the older files again"
                )


def _as_owned(state: TableState) -> TableState:
    """Return a state in which the column names in the files of an imported table are known."""
    origin = state.origin
    if not isinstance(origin, DeltaOrigin) or not state.is_mirrored:
        return state
    return evolve(state, origin=origin.promoted(state.version, state.schema.id))


def _retyping_problems(
    name: str, before: DataType, after: DataType, version: int
) -> Iterator[Refusal]:
    """Yield a change of type that PyIceberg does not read; members are columns of their own."""
    parts = zip(parts_of(before), parts_of(after), strict=False)
    if before.root == after.root and before.depth:
        for old, new in () if isinstance(before, RowType) else parts:
            yield from _retyping_problems(f"{name}.{old.name}", old.type, new.type, version)
    elif not (
        can_promote(before, after, format_version=version) or _is_wider_decimal(before, after)
    ) or (isinstance(before, DateType) and not isinstance(after, DateType)):
        rule = "files from before the change are not read as the new type"
        yield refused_retyping(f"column {name}", before, after, rule)


def _is_wider_decimal(before: DataType, after: DataType) -> bool:
    """Return whether every decimal of one type is one of the other, which PyIceberg casts to."""
    return (
        isinstance(before, DecimalType)
        and isinstance(after, DecimalType)
        and before.scale <= after.scale
        and before.precision - before.scale <= after.precision - after.scale
    )


def _imported_metadata(
    table: TableHandle, at: TableAt
) -> tuple[TableMetadata, Mapping[str, bytes]]:
    """Return the metadata of an imported table at an instant, and files generated in memory."""
    made = MemoryOutputs()
    if (
        at.state.lists_files
        and at.state.snapshot is not None
        and not _is_manifest_list_intact(table, at)
    ):
        render_imported(table, made, target_state(table, at.version), ignore_progress)
    then = {
        "current_snapshot_id": at.state.last_snapshot_id or None,
        "current_schema_id": at.schema.id,
    }
    metadata: TableMetadata = _parse_pyiceberg_metadata(
        metadata_of_imported(table, at.state)
    ).model_copy(update=then)
    return metadata, {f"{table.location}/{each}": body for each, body in made.files.items()}


def _is_manifest_list_intact(table: TableHandle, at: TableAt) -> bool:
    """Return whether the manifest list of the ledger's own snapshot exists and is trusted."""
    if table.setting.trust == "log":
        return False
    position = positions.FILE.load(table.log.store, table.log.layout)
    if not position.can_continue_at(table.location):
        return False
    try:
        advance(table)
    except StoreError:
        # The location may be read-only, which suffices here.
        return False
    names = Names(at.state.table_id)
    return outputs_of(table).read(names.manifest_list(at.state.last_snapshot_id)) is not None


def _published_metadata_at(
    table: TableHandle, at: TableAt
) -> tuple[TableMetadata, Mapping[str, bytes]] | None:
    """Return the newest metadata, set back to an instant; None if that is not possible."""
    if table.setting.trust == "log" or not _is_declared(table.state):
        # A writer at the location may change projected files as well, so they are made in memory;
        # so are those of a table that declares no Iceberg, whose folder has none.
        return None
    position = positions.FILE.load(table.log.store, table.log.layout)
    if position.renderer == RENDERER and not position.can_continue_at(table.location):
        # Readers may use the files at the other location, and this read must not replace them.
        warn(
            "projections.iceberg",
            "iceberg_files_of_another_place",
            table=str(table.identifier),
            made_at=position.location,
            table_at=table.location,
            next_step=f"lakeledger project iceberg {table.identifier}",
        )
        return None
    try:
        version = advance(table)
    except StoreError:
        # The location may be read-only, which suffices here.
        return None
    position = positions.FILE.load(table.log.store, table.log.layout)
    body = outputs_of(table).read(Names(at.state.table_id).metadata(version))
    if body is None or version < at.version:
        return None
    metadata = _parse_pyiceberg_metadata(body)
    snapshot_id = at.state.last_snapshot_id
    if snapshot_id and metadata.snapshot_by_id(snapshot_id) is None:
        return None
    # PyIceberg evaluates partitions and bounds by the current schema, even for an older
    # snapshot; so both are set back together.
    then = {
        "current_snapshot_id": snapshot_id or None,
        "current_schema_id": _iceberg_schema_id(position, at.schema.id),
    }
    return metadata.model_copy(update=then), {}


def _iceberg_schema_id(position: IcebergPosition, ledger_id: int) -> int:
    return [iceberg_id for first, iceberg_id in position.schema_ids if first <= ledger_id][-1]


def _render_metadata_at(
    table: TableHandle, at: TableAt
) -> tuple[TableMetadata, Mapping[str, bytes]]:
    """Return the metadata of a version, and the files needed to read it, made in memory."""
    made, target = MemoryOutputs(), _as_owned(target_state(table, at.version))
    Projection(table, made, IcebergPosition(), target).render(ignore_progress)
    path = Names(at.state.table_id).metadata(at.version)
    # A branch's newest snapshot is another one than that of the table.
    snapshot_id = at.state.last_snapshot_id or None
    metadata = _parse_pyiceberg_metadata(made.files[path]).model_copy(
        update={"current_snapshot_id": snapshot_id}
    )
    if at.schema.id != at.state.schema.id:
        snapshot = metadata.snapshot_by_id(snapshot_id)
        metadata = metadata.model_copy(update={"current_schema_id": snapshot.schema_id})
    return metadata, {f"{table.location}/{each}": body for each, body in made.files.items()}


def _parse_pyiceberg_metadata(body: bytes) -> Any:
    from pyiceberg.table.metadata import TableMetadataUtil

    try:
        return TableMetadataUtil.parse_raw(body.decode())
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise UnsupportedError(
            f"PyIceberg cannot read the metadata of the table ({reason:.300}): read its files with "
            "another reader"
        ) from error


def _selected_columns(names: tuple[str, ...] | None, schema: Schema) -> tuple[str, ...]:
    if names is None:
        return ("*",)
    if not names:
        raise InvalidInputError("no columns were named; name at least one, or give None for all")
    for each in names:
        try:
            schema.find_field(each)
        except ValueError as error:
            raise ColumnNotFoundError(
                f"column {each} does not exist at that instant; "
                f"{name_hint(each, schema.column_names)}"
            ) from error
    return names


__all__ = ["scan"]
