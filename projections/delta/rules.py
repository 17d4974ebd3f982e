"""DeltaRules: validation of tables and files for Delta.

Source: the Delta transaction protocol; where it leaves a choice, the behaviour of readers.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs
from attrs import frozen
from msgspec import UNSET, UnsetType

from ledger.decide.format_rules import (
    Batch,
    FileForm,
    History,
    Refusal,
    SnapshotArrival,
    TableCreation,
    emptiness_problems,
    lost_source_problems,
    new_problems,
    refused_retyping,
)
from ledger.model.column_index import column_index_of
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_layout import PartitionSpec, SomeSpecs, spec_by_id
from ledger.model.messages import excerpt
from ledger.model.schema import Schema
from ledger.model.single_values import is_in_integer_range
from ledger.model.types import (
    ArrayType,
    BinaryType,
    CharType,
    DataField,
    DataType,
    LocalZonedTimestampType,
    MapType,
    RowType,
    TimestampType,
    TypePlace,
    VarBinaryType,
    VarCharType,
    type_places,
)
from ledger.model.types.text import bare_type_text
from ledger.state.table import TableState
from projections.delta.columns import (
    ColumnNamesInFiles,
    FileNaming,
    HistoricalColumnNames,
    find_name_conflicts,
    named_fields,
)
from projections.delta.table_metadata import is_reserved, partition_columns
from projections.delta.types import primitive_type_name, type_changes
from projections.delta.values import partition_text

_EMPTY_IS_NULL = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")
"""Types of which an empty value is written as the empty text that stands for NULL."""


@attrs.define
class FileRules:
    """Validation of data files for a Delta table.

    Attributes:
        schema: The table's schema.
        specs: Its partition specs.
        spec: The current one.
    """

    schema: Schema
    specs: SomeSpecs
    spec: PartitionSpec
    _sound: set[tuple[object, ...]] = attrs.Factory(set)

    def problems(self, files: Iterable[FileChange]) -> Iterator[Refusal]:
        """Yield the problems of added files; removed files have none."""
        columns = partition_columns(self.schema, self.spec)
        come = [each for each in files if each.kind == "ADD"]
        if come:
            yield from key_problems(self.schema, come[0].path)
        for each in come:
            yield from _file_kind_problems(each)
            yield from self._partition_problems(each, columns)

    def _partition_problems(
        self, file: FileChange, columns: Sequence[DataField]
    ) -> Iterator[Refusal]:
        # Many files have one partition; without their types, 1 and True would be one key.
        key = file.spec_id, file.partition, *map(type, file.partition)
        if not columns or key in self._sound:
            return
        spec = spec_by_id(self.specs, file.spec_id)
        places = {
            each.source_id: place
            for place, each in enumerate(spec.fields)
            if each.transform == "identity"
        }
        for column in columns:
            if column.id not in places:
                rule = f"its spec {file.spec_id} lacks identity({column.name}), which partitions"
                yield _file_refusal(file, f"{rule} the table", "write it under a spec that has it")
                return
            value = file.partition[places[column.id]]
            if value == "" and column.type.root in _EMPTY_IS_NULL:
                rule = f"an empty value in partition column {column.name} reads as NULL"
                yield _file_refusal(file, rule, "give the file NULL, or another value")
                return
            # Logs of older clients have such values, and their files stay as they are.
            if value is not None and not is_in_integer_range(value, column.type):
                rule = f"partition column {column.name} has no room for {excerpt(value)}"
                yield _file_refusal(
                    file, rule, f"give the file a value of {bare_type_text(column.type)}"
                )
                return
            try:
                partition_text(value, column.type)
            except UnsupportedError as error:
                what = f"partition column {column.name}: {error.message}"
                yield _file_refusal(file, what, "give the file a valid value")
                return
        self._sound.add(key)


def key_problems(schema: Schema, path: str) -> Iterator[Refusal]:
    """Yield the problem of a file in a table with a primary key."""
    if schema.primary_keys:
        yield Refusal(
            f"file {path}",
            "only Paimon's merge finds the newest rows of a table with a primary key, so that "
            "other readers would show older ones as well",
            "drop the primary key before there are files",
        )


def engine_problems(facts: Mapping[str, Any]) -> Iterator[Refusal]:
    """Yield the problem of a snapshot whose files only its engine's manifests list."""
    if isinstance(facts.get("base_manifest_list"), str):
        yield Refusal(
            "the snapshot",
            "only its engine's manifests list its files, and Delta's readers do not know those",
            "let the engine commit its files to the ledger",
        )


def _file_kind_problems(file: FileChange) -> Iterator[Refusal]:
    if file.content != "data":
        rule = f"it has no files of {excerpt(file.content)}"
        yield _file_refusal(file, rule, "rewrite the data files without the rows")
    elif not isinstance(file.sort_order_id, UnsetType) and file.sort_order_id:
        rule = f"its log has no sort orders, and this file has {file.sort_order_id}"
        yield _file_refusal(file, rule, "leave sort_order_id out")
    elif file.format.lower() != "parquet":
        rule = f"its files are Parquet, and this one is {excerpt(file.format)}"
        yield _file_refusal(file, rule, "write it again as Parquet")


def _file_refusal(file: FileChange, rule: str, alternative: str) -> Refusal:
    return Refusal(f"file {file.path}", rule, alternative)


def commit_name_problems(
    schema: Schema, files: Collection[FileChange], state: TableState, history: History
) -> Iterator[Refusal]:
    """Yield the columns that live files would hold under several names after a commit.

    Args:
        schema: The table's schema.
        files: The added and removed files.
        state: The table before the commit.
        history: The table's history.
    """
    come = [each for each in files if each.kind == "ADD"]
    if not come:
        return
    if not schema.id or _uses_schema_names(schema, state, history):
        yield from _unfounded_name_problems(come)
        return
    gone = {each.path for each in files if each.kind == "DELETE"}
    live = [each for each in history.live(state) if each.path not in gone]
    older = _names_in_files(state, history, live)
    for place, reason in find_name_conflicts(
        schema, _names_in_files(state, history, [*live, *come])
    ):
        yield Refusal(
            f"column {place.name}",
            f"one name has to find a column in all files, and {reason}",
            f"write the files with the names in the older ones{_renaming_text(schema, older)}, "
            "or overwrite those in the same commit",
        )


def _renaming_text(schema: Schema, held: HistoricalColumnNames) -> str:
    """Return the columns whose names in new files differ from the schema's, as ": 'b' as 'a'"."""
    renamed = [
        f"{place.name!r} as {name!r}"
        for place, field_id in named_fields(schema)
        if (name := held.physical(place, field_id)) != place.path[-1]
    ]
    return f": {', '.join(renamed)}" if renamed else ""


def _unfounded_name_problems(files: Iterable[FileChange]) -> Iterator[Refusal]:
    """Yield the file with other column names than its schema's in a table that has no others."""
    for each in files:
        if not isinstance(each.column_names, UnsetType):
            names = ", ".join(map(excerpt, each.column_names.values()))
            rule = f"no older file has a column named {names}, and the schema neither"
            yield _file_refusal(each, rule, "leave column_names out")
            return


def names_in_new_files(state: TableState, history: History) -> dict[int, str]:
    """Return the names that columns must have in new files, where the schema has others.

    They are the physical names in the projected Delta log.

    Args:
        state: The table.
        history: The table's history.

    Returns:
        The names by field id, nested columns included.
    """
    schema = state.schema
    if not schema.id or _uses_schema_names(schema, state, history):
        return {}
    held = _names_in_files(state, history, history.live(state))
    return {
        field_id: name
        for place, field_id in named_fields(schema)
        if (name := held.physical(place, field_id)) != place.path[-1]
    }


def readable_name_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield the columns that readable files hold under several names."""
    held = _names_in_files(batch.before, batch.history, batch.reach.files)
    named = [each for each in batch.reach.files if each.column_names is not UNSET]
    if named and _uses_schema_names(batch.before.schema, batch.before, batch.history):
        yield from _unfounded_name_problems(named)
    for place, reason in find_name_conflicts(batch.schema, held):
        yield Refusal(
            f"column {place.name}",
            f"one name has to find a column in all files, and {reason}",
            "overwrite the older files, and expire the snapshots that hold them",
        )


def restored_column_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield the restored columns that live files hold under several names."""
    live = batch.history.live(batch.before)
    held = _names_in_files(batch.before, batch.history, live)
    for place, reason in find_name_conflicts(batch.schema, held):
        if place.field is not None and place.field.id in batch.returned:
            yield Refusal(
                f"column {place.name}",
                f"one name has to find a column in all files, and {reason}",
                "overwrite the files under one name first",
            )


def _names_in_files(
    state: TableState, history: History, files: Iterable[FileChange]
) -> HistoricalColumnNames:
    called, used = ColumnNamesInFiles.of(state), {FileNaming.of(each) for each in files}
    found = history.schemas({each.schema_id for each in used})
    schemas = {each.id: called.schema(each) for each in found}
    return HistoricalColumnNames.of(each.schema(schemas[each.schema_id]) for each in used)


def _uses_schema_names(schema: Schema, state: TableState, history: History) -> bool:
    """Return whether all files are known to use the schema's column names."""
    called = ColumnNamesInFiles.of(state)
    is_named = any(
        place.field is not None
        and called.names.get(place.field.id, place.field.name) != place.field.name
        for place in type_places(schema.fields)
    )
    return not is_named and _was_never_renamed(schema, state, history)


def _was_never_renamed(schema: Schema, state: TableState, history: History) -> bool:
    """Return whether no column was ever renamed and no name was used for two columns."""
    seen: set[int] = set()
    for _, meant in history.names(state, range(schema.id + 1)).meant():
        if len(meant) > 1 or meant[0] in seen:
            return False
        seen.add(meant[0])
    return True


_NESTED = (ArrayType, MapType, RowType)


def column_problems(columns: Iterable[DataField]) -> Iterator[Refusal]:
    """Yield the types and defaults of columns that Delta cannot express, at every depth."""
    for place in type_places(columns):
        what = f"column {place.name}"
        if not isinstance(place.type, _NESTED):
            try:
                primitive_type_name(place.type)
            except UnsupportedError as error:
                yield Refusal(what, error.message, "take another type")
        if place.field is not None and place.field.initial_default is not None:
            yield Refusal(
                what,
                "a column that older files lack reads as NULL, never as a default",
                "add it without one and set the default afterwards, which new rows get",
            )


def name_problems(schema: Schema) -> Iterator[Refusal]:
    """Yield the names of one struct that differ only in case."""
    seen: dict[tuple[object, ...], str] = {}
    index = column_index_of(schema.fields)
    is_clean = len(set(map(str.casefold, index.names))) == len(index.names)
    for place in type_places(index.nested if is_clean else schema.fields):
        if place.field is None:
            continue
        name = place.path[-1]
        other = seen.setdefault((*place.level, name.casefold()), name)
        if other != name:
            yield Refusal(
                f"column {place.name}",
                f"names are compared without case, and {other} is taken already",
                "take another name",
            )


def option_problems(options: Mapping[str, str]) -> Iterator[Refusal]:
    """Yield the options that only the table's protocol may set."""
    for key in options:
        if is_reserved(key):
            yield Refusal(
                f"option {key}",
                "the projection itself sets what a Delta table requires of readers and writers",
                "leave it out",
            )


def spec_problems(schema: Schema, spec: PartitionSpec) -> Iterator[Refusal]:
    """Yield the columns that cannot partition a Delta table."""
    columns = partition_columns(schema, spec)
    for each in columns:
        if each.type.depth:
            yield Refusal(
                f"partition field of column {each.name}",
                f"the log writes partition values as texts, and {each.type.root} has none that "
                "all readers parse alike",
                "partition by another column",
            )
    if columns and len(columns) == len(schema.fields):
        yield Refusal(
            f"partition spec {spec.spec_id}",
            "a table has at least one column that does not partition it",
            "leave one column out of the spec",
        )


def layout_problems(
    before: tuple[Schema, PartitionSpec], after: tuple[Schema, PartitionSpec]
) -> Iterator[Refusal]:
    """Yield changes of the partition columns of a table with files."""
    earlier = partition_columns(*before)
    if [each.id for each in earlier] == [each.id for each in partition_columns(*after)]:
        return
    named = ", ".join(each.name for each in earlier) or "none"
    yield Refusal(
        f"partition spec {after[1].spec_id}",
        "a table keeps the columns that partition it, since each of its files has one value of "
        f"every one; they are: {named}",
        "leave the identity fields as they are; fields of other transforms may come and go",
    )


@frozen
class SchemaStep:
    """Schema change from one schema to a later one.

    Attributes:
        before: The earlier schema.
        may_require: Whether a column may become required although older rows may lack it.
    """

    before: Schema
    may_require: bool

    def problems(
        self, columns: Iterable[DataField], only: Container[int] | None = None
    ) -> Iterator[Refusal]:
        """Yield changes of columns of the later schema that Delta forbids.

        Args:
            columns: Columns of the later schema.
            only: The ids of the fields to check in them; None for all.
        """
        later = tuple(columns)
        there = column_index_of(self.before.fields).by_id
        earlier = [there[each.id] for each in later if each.id in there]
        before = {each.field.id: each for each in type_places(earlier) if each.field}
        for place in type_places(later):
            if place.field is None or (only is not None and place.field.id not in only):
                continue
            old = before.get(place.field.id)
            if old is None:
                # A member of a new struct is covered by the check of the struct.
                if place.level[0] is None or place.level[0] in before:
                    yield from self._added_column_problems(place, place.field.id)
                continue
            if old.type.nullable and not place.type.nullable and not self.may_require:
                yield Refusal(
                    f"column {place.name}",
                    "older files may hold NULL in it, so it cannot become NOT NULL",
                    "keep it nullable, or call update_schema().allow_incompatible_changes() if "
                    "there is none",
                )
            yield from _type_problems(f"column {place.name}", old.type, place.type)

    def _added_column_problems(self, place: TypePlace, field_id: int) -> Iterator[Refusal]:
        # A restored column is NOT NULL only if no row was written without it.
        is_back = field_id <= self.before.highest_field_id
        if not place.type.nullable and not self.may_require and not is_back:
            yield Refusal(
                f"column {place.name}",
                "older files have no value for a new NOT NULL column",
                "add it as nullable, or call update_schema().allow_incompatible_changes() if "
                "there are no such rows",
            )


def _type_problems(what: str, before: DataType, after: DataType) -> Iterator[Refusal]:
    try:
        changes = list(type_changes(before, after))
    except UnsupportedError:
        # Types that Delta does not have are reported elsewhere.
        return
    for change in changes:
        if not change.is_widening or "key" in change.path:
            rule = "readers read older files' values as the new type, and only as a wider one"
            yield refused_retyping(what, change.before, change.after, rule)
    if not changes and _excludes_old_values(before, after):
        rule = "readers cast nothing, so that older values would not be of the new type"
        yield refused_retyping(what, before, after, rule)


def _excludes_old_values(  # noqa: PLR0911 - one case per kind
    before: DataType, after: DataType
) -> bool:
    """Return whether a change within one Delta type excludes values of the old type."""
    match before, after:
        case ArrayType(element=old), ArrayType(element=new):
            return _excludes_old_values(old, new) or (old.nullable and not new.nullable)
        case MapType(), MapType():
            old, new = before.value, after.value
            return _excludes_old_values(old, new) or (old.nullable and not new.nullable)
        case ((CharType() | VarCharType()), CharType()):
            # Padding: stored values would lack it.
            return not isinstance(before, CharType) or before.length != after.length
        case ((BinaryType() | VarBinaryType()), BinaryType()):
            return not isinstance(before, BinaryType) or before.length != after.length
        case (
            (CharType(length=old_size) | VarCharType(length=old_size)),
            VarCharType(length=new_size),
        ) | (
            (BinaryType(length=old_size) | VarBinaryType(length=old_size)),
            VarBinaryType(length=new_size),
        ):
            return new_size < old_size
        case (
            (TimestampType() | LocalZonedTimestampType()),
            (TimestampType() | LocalZonedTimestampType()),
        ):
            return after.precision < before.precision
        case _:
            return False


def has_widened_column(before: Schema, after: Schema) -> bool:
    """Return whether any column's type was widened."""
    old = {each.field.id: each.type for each in type_places(before.fields) if each.field}
    return any(
        place.field.id in old and any(type_changes(old[place.field.id], place.type))
        for place in type_places(after.fields)
        if place.field
    )


class DeltaRules:
    """Validation rules of Delta; see `FormatRules`."""

    name = "delta"
    title = "Delta"
    number = 1
    binds_names = False
    orders_members = False
    file_forms: Mapping[str, FileForm] = MappingProxyType({})

    def version(self, options: Mapping[str, str]) -> int:
        """Return the only version: the protocol is as low as the table allows."""
        del options
        return 1

    def creation_problems(self, creation: TableCreation) -> Iterator[Refusal]:
        """Yield the parts of a new table that Delta cannot express."""
        schema = creation.schema
        yield from emptiness_problems(schema)
        yield from column_problems(schema.fields)
        yield from name_problems(schema)
        yield from option_problems(schema.options)
        yield from spec_problems(schema, creation.layout.spec)

    def problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield the parts of a batch's result that Delta cannot express."""
        is_new = batch.is_new(self)
        earlier = {} if is_new else batch.before.schema.options
        options = batch.schema.options
        yield from option_problems({k: v for k, v in options.items() if k not in earlier})
        if batch.is_same_shape and not is_new:
            return
        columns = batch.schema.fields if is_new else batch.changed_columns
        yield from column_problems(columns)
        if is_new:
            yield from origin_problems(batch.before)
            yield from _readable_history_problems(batch)
        for each in batch.steps(self):
            step = SchemaStep(each.before, may_require=batch.may_require)
            yield from step.problems(each.columns, each.only)
        if is_new:
            yield from readable_name_problems(batch)
        elif batch.returned:
            yield from restored_column_problems(batch)
        yield from _batch_result_problems(batch, is_new=is_new)

    def last_problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield the current layout's fields whose column the batch drops."""
        if not batch.is_same_shape or batch.is_new(self):
            yield from lost_source_problems(batch)

    def file_problems(self, arrival: SnapshotArrival) -> Iterator[Refusal]:
        """Yield the files of a snapshot that Delta cannot express."""
        state = arrival.state
        yield from engine_problems(arrival.facts)
        yield from FileRules(state.schema, state.specs, state.spec).problems(arrival.files)

    def name_problems(
        self, schema: Schema, come: Collection[FileChange], state: TableState, history: History
    ) -> Iterator[Refusal]:
        """Yield the columns that live files would hold under several names."""
        return commit_name_problems(schema, come, state, history)

    def tag_problems(self, name: str, others: Collection[str]) -> Iterator[Refusal]:
        """Yield nothing: Delta has no tags, and tagged versions are kept in its log."""
        del name, others
        return iter(())


RULES = DeltaRules()


def origin_problems(state: TableState) -> Iterator[Refusal]:
    """Yield the problem of a table imported from a format with manifests of its own."""
    origin = state.origin
    if origin.manifest_folder(state.path):
        yield Refusal(
            "the table",
            f"it was imported from {origin.format_name.title()}, and what its engines committed "
            "there is no version of Delta's log",
            f"read it by {origin.format_name}",
        )


def _batch_result_problems(batch: Batch, *, is_new: bool) -> Iterator[Refusal]:
    schema, before = batch.schema, batch.before
    whole = _table_problems(schema, batch.layout.spec)
    if is_new:
        yield from emptiness_problems(schema)
        yield from whole
        return
    yield from new_problems(whole, _table_problems(before.schema, before.spec))
    if before.snapshot is not None:
        now = (schema, batch.layout.spec)
        yield from layout_problems((before.schema, before.spec), now)


def _table_problems(schema: Schema, spec: PartitionSpec) -> Iterator[Refusal]:
    yield from name_problems(schema)
    yield from spec_problems(schema, spec)


def _readable_history_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield the readable state that Delta cannot express; its history does not count."""
    if batch.reach.spec_ids:
        # A primary key cannot be added later, so it applies to all files.
        yield from key_problems(batch.before.schema, "of an older snapshot")
    rules = FileRules(batch.schema, batch.layout.specs, batch.layout.spec)
    yield from rules.problems(batch.reach.files)
    for each in batch.readable:
        yield from column_problems(each.fields)
        yield from name_problems(each)
