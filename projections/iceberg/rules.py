"""IcebergRules: validation of schemas, names and data files for Iceberg.

Iceberg finds the columns of files without field ids through one name mapping for the whole table,
which cannot tell two fields of one name apart.

Source: the Iceberg table specification: schemas, "Schema Evolution", identifier fields,
partitioning, sorting, "Manifests", "Data File Fields" and appendix D.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

import attrs
from msgspec import Struct, UnsetType

from ledger.decide.column_draft import check_identifier_fields
from ledger.decide.format_rules import (
    Batch,
    Binding,
    FileForm,
    History,
    Refusal,
    SnapshotArrival,
    TableCreation,
    declared_rules,
    emptiness_problems,
    name_bindings,
    new_problems,
    place_binding,
    places_with_ids,
    refused_retyping,
)
from ledger.decide.name_mapping import NAME_MAPPING, misleading_name
from ledger.decide.snapshots import is_read_by_name
from ledger.model.column_index import column_index_of, columns_around
from ledger.model.errors import InvalidChangeError, InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg_layout import (
    FIRST_PARTITION_FIELD_ID,
    PartitionField,
    PartitionSpec,
    SomeSpecs,
    SortField,
    SortOrder,
    spec_by_id,
)
from ledger.model.iceberg_types import (
    FIRST_VERSION_OF_NEW_TYPES,
    default_json,
    iceberg_type,
    single_value_bytes,
)
from ledger.model.messages import excerpt
from ledger.model.schema import Schema, with_column_names
from ledger.model.single_values import decode_value
from ledger.model.transforms import transform_of
from ledger.model.types import (
    ArrayType,
    DataField,
    DataType,
    DateType,
    LocalZonedTimestampType,
    MapType,
    RowType,
    TimestampType,
    TypePlace,
    type_places,
    walk_fields,
)
from ledger.model.types.casts import can_promote
from ledger.model.types.text import bare_type_text, format_type
from ledger.state.declared_formats import Rules
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.layout import LayoutTrail
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState

FIRST_VERSION_OF_INITIAL_DEFAULTS = 3
_MAIN_BRANCH = "main"
_NESTED = (ArrayType, MapType, RowType)
_WITHOUT_DEFAULTS = frozenset({"UNKNOWN", "VARIANT", "GEOMETRY", "GEOGRAPHY"})


def type_problems(columns: Iterable[DataField], format_version: int) -> Iterator[Refusal]:
    """Yield the types and defaults of columns that Iceberg cannot express, at every depth."""
    for place in type_places(columns):
        if not isinstance(place.type, _NESTED):
            yield from _type_problem(place, format_version)
        if place.field is not None:
            yield from _default_problems(place, place.field, format_version)


def _type_problem(place: TypePlace, format_version: int) -> Iterator[Refusal]:
    try:
        iceberg_type(place.type, format_version=format_version)
    except UnsupportedError as error:
        newest = FIRST_VERSION_OF_NEW_TYPES
        instead = "take another type"
        if format_version < newest and _is_type_supported(place, newest):
            instead = f"set format-version={newest}{_coarser_precision_advice(place.type)}"
        yield Refusal(f"column {place.name}", error.message, instead)


def _coarser_precision_advice(data_type: DataType) -> str:
    """Return the advice to reduce a timestamp's precision, which every version supports."""
    if not isinstance(data_type, TimestampType | LocalZonedTimestampType):
        return ""
    return f", or take {bare_type_text(type(data_type)())}"


def _is_type_supported(place: TypePlace, format_version: int) -> bool:
    try:
        iceberg_type(place.type, format_version=format_version)
    except UnsupportedError:
        return False
    return True


def _default_problems(
    place: TypePlace, column: DataField, format_version: int
) -> Iterator[Refusal]:
    what = f"column {place.name}"
    first = FIRST_VERSION_OF_INITIAL_DEFAULTS
    if column.initial_default is not None and format_version < first:
        yield Refusal(
            what,
            f"older files read as a default from format version {first} on only, and the table's "
            f"is {format_version}",
            f"set format-version={first} first, or add the column without a default",
        )
    if column.type.root in _WITHOUT_DEFAULTS and not (
        column.initial_default is column.default_value is None
    ):
        yield Refusal(what, f"{column.type.root} has no default but NULL", "leave the default out")


def _names_with_dots(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if "." in "\n".join(names) else ()


def name_problems(schema: Schema) -> Iterator[Refusal]:
    """Yield the full names shared by two places of a schema, as a dot in a name can cause."""
    columns = column_index_of(schema.fields)
    if not columns.names_by(_names_with_dots) and not any(
        "." in each.name for each in walk_fields(columns.nested)
    ):
        return
    seen: dict[str, tuple[str, ...]] = {}
    for place in type_places(schema.fields):
        other = seen.setdefault(place.name, place.path)
        if other != place.path:
            yield Refusal(
                f"column {place.name}",
                f"full names are unique in a schema, and {list(other)} and {list(place.path)} "
                "have one",
                "rename one of them",
            )


def default_problems(columns: Iterable[DataField], format_version: int) -> Iterator[Refusal]:
    """Yield the defaults whose text is not a value that Iceberg can write, at every depth.

    Before version 3 metadata has no defaults, so there is nothing to write.
    """
    if format_version < FIRST_VERSION_OF_INITIAL_DEFAULTS:
        return
    for place in type_places(columns):
        column = place.field
        if column is None or column.type.root in _WITHOUT_DEFAULTS:
            continue
        for text in dict.fromkeys((column.initial_default, column.default_value)):
            if text is not None and not _is_valid_default(text, column):
                yield Refusal(
                    f"column {place.name}",
                    f"its default {excerpt(text)} is not a {_bare(column)} that Iceberg can write",
                    "write the default out, or leave it out",
                )


def _is_valid_default(text: str, column: DataField) -> bool:
    try:
        default_json(text, column.type, column.name)
    except UnsupportedError:
        return False
    return True


def _bare(column: DataField) -> str:
    if column.type.depth:
        return column.type.root
    return bare_type_text(column.type)


def tag_problems(names: Iterable[str]) -> Iterator[Refusal]:
    """Yield tags named like the main branch."""
    if _MAIN_BRANCH in names:
        yield Refusal(
            f"tag {_MAIN_BRANCH}",
            "tags and branches share their names, and every table has a branch of that name",
            "give the tag another name",
        )


def identifier_problems(schema: Schema) -> Iterator[Refusal]:
    """Yield problems of the identifier fields, by default the primary key's."""
    wanted = schema.identifier_field_ids
    if not wanted:
        wanted = tuple(schema.field(name).id for name in schema.primary_keys)
    try:
        check_identifier_fields(schema.fields, wanted, {})
    except InvalidChangeError as error:
        yield Refusal("the table", error.message, "set other identifier fields")


def source_problems(schema: Schema, spec: PartitionSpec, order: SortOrder) -> Iterator[Refusal]:
    """Yield the fields of the default spec and order whose column was dropped or does not fit."""
    if not spec.fields and not order.fields:
        return
    sources = [each.source_id for each in spec.fields]
    sources += [each.source_id for each in order.fields]
    around = columns_around(schema.fields, sources)
    places = {each.field.id: each for each in type_places(around) if each.field}
    for each in spec.fields:
        if each.transform != "void":
            yield from _source_problem(
                places.get(each.source_id),
                each,
                f"partition field {each.name}",
                "remove the partition field first",
            )
    for sorted_by in order.fields:
        yield from _source_problem(
            places.get(sorted_by.source_id),
            sorted_by,
            f"sort field {sorted_by.transform}({sorted_by.source_id})",
            "replace the sort order first",
        )


def spec_name_problems(schema: Schema, specs: Iterable[PartitionSpec]) -> Iterator[Refusal]:
    """Yield the partition fields, of any spec, named like a column that is not their source.

    Java's readers bind every spec to the current schema, and cannot open such a table.
    """
    fields = {(each.name, each.source_id): each for spec in specs for each in spec.fields}
    if not fields:
        return
    index = column_index_of(schema.fields)
    # The columns of these names, and those with members, which have names with dots.
    columns = {name: index.by_name[name] for name, _ in fields if name in index.by_name}
    columns |= {each.name: each for each in index.nested}
    places = tuple(type_places(columns.values()))
    by_name = {name: each for each in places for name in _short_names(each)}
    by_name |= {each.name: each for each in places}
    named = {name: each.field.id if each.field else None for name, each in by_name.items()}
    around = columns_around(schema.fields, [source_id for _, source_id in fields])
    there = {each.field.id for each in type_places(around) if each.field}
    for each in fields.values():
        if each.source_id in there and named.get(each.name, each.source_id) != each.source_id:
            yield Refusal(
                f"column {each.name}",
                f"a partition field, {each.transform} of field {each.source_id}, has that name, "
                "which only its source column may share",
                "take another name",
            )


def _short_names(place: TypePlace) -> Iterator[str]:
    """Yield the short name of a place inside structs of lists or maps.

    Iceberg finds it by that name, too: the full one without the `element` and `value` of structs.
    """
    around = place.around
    skipped = {
        depth
        for depth in range(1, len(around))
        if isinstance(around[depth - 1], ArrayType | MapType)
        and isinstance(around[depth], RowType)
        and place.path[depth] != "key"
    }
    if skipped:
        yield ".".join(name for depth, name in enumerate(place.path) if depth not in skipped)


def spec_id_problems(specs: Iterable[PartitionSpec], format_version: int) -> Iterator[Refusal]:
    """Yield the specs whose field ids do not count up without gaps, as version 1 requires."""
    if format_version > 1:
        return
    for spec in specs:
        ids = [each.field_id for each in spec.fields]
        if ids != list(range(FIRST_PARTITION_FIELD_ID, FIRST_PARTITION_FIELD_ID + len(ids))):
            yield Refusal(
                f"partition spec {spec.spec_id}",
                f"format version 1 counts a spec's field ids from {FIRST_PARTITION_FIELD_ID} on "
                f"without gaps, and they would be {ids}",
                "set format-version=2 first",
            )


def _source_problem(
    place: TypePlace | None, used: PartitionField | SortField, what: str, instead: str
) -> Iterator[Refusal]:
    if place is None:
        rule = f"field {used.source_id}, its source column, is used by what is written from now on"
        yield Refusal(what, f"{rule}, so it cannot be dropped", instead)
    elif not transform_of(used.transform).accepts(place.type):
        rule = f"transform {used.transform} does not accept {format_type(place.type)}"
        yield Refusal(what, f"{rule} of column {place.name}", instead)


class SchemaTransition(Struct, frozen=True):
    """Schema change from one schema to a later one.

    Attributes:
        before: The earlier schema.
        format_version: Iceberg's format version.
        may_require: Whether a column may become required although older rows may lack it.
    """

    before: Schema
    format_version: int
    may_require: bool

    def problems(
        self, columns: Iterable[DataField], only: Container[int] | None = None
    ) -> Iterator[Refusal]:
        """Yield changes of columns of the later schema that Iceberg forbids.

        Args:
            columns: Columns of the later schema.
            only: The ids of the fields to check in them; None for all.
        """
        later = tuple(columns)
        ids = {each.id for each in later}
        there = column_index_of(self.before.fields).by_id
        earlier = [there[each] for each in ids if each in there]
        before = {each.field.id: each for each in type_places(earlier) if each.field}
        for place in type_places(later):
            if place.field is None or (only is not None and place.field.id not in only):
                continue
            old = before.get(place.field.id)
            if old is not None:
                yield from self._nullability_problems(place.name, old.type, place.type)
                yield from self._type_change_problems(place, place.name, old.type, place.type)
            elif place.level[0] is None or place.level[0] in before:
                yield from self._added_column_problems(place, place.field)

    def _added_column_problems(self, place: TypePlace, column: DataField) -> Iterator[Refusal]:
        if column.type.nullable or self.may_require or column.initial_default is not None:
            return
        if column.id <= self.before.highest_field_id:
            # A restored column is NOT NULL only if no row was written without it.
            return
        yield Refusal(
            f"column {place.name}",
            "older files have no value for a new NOT NULL column",
            "add it as nullable, or with a default under format-version=3, or call "
            "update_schema().allow_incompatible_changes() if there are no such rows",
        )

    def _nullability_problems(
        self, name: str, before: DataType, after: DataType
    ) -> Iterator[Refusal]:
        if not before.nullable or after.nullable or self.may_require:
            return
        yield Refusal(
            f"column {name}",
            "older files may hold NULL in it, so it cannot become NOT NULL",
            "keep it nullable, or call update_schema().allow_incompatible_changes() if there is "
            "none",
        )

    def _type_change_problems(
        self, place: TypePlace, name: str, before: DataType, after: DataType
    ) -> Iterator[Refusal]:
        match before, after:
            case RowType(), RowType():
                # Members of a struct are columns of their own.
                return
            case ArrayType(element=old), ArrayType(element=new):
                yield from self._member_change_problems(place, f"{name}.element", old, new)
            case MapType(), MapType():
                if before.key != after.key:
                    yield Refusal(f"column {name}.key", "map keys never change", "add a new map")
                yield from self._member_change_problems(
                    place, f"{name}.value", before.value, after.value
                )
            case _ if not can_promote(before, after, format_version=self.format_version):
                rule = "Iceberg reads old files as the new type and only ever widens types"
                yield refused_retyping(f"column {name}", before, after, rule)
            case DateType(), _ if not isinstance(after, DateType):
                # The specification allows it in version 3, but Iceberg's own library rejects it.
                rule = "Spark, Trino and PyIceberg cannot read older files' dates as timestamps"
                yield refused_retyping(f"column {name}", before, after, rule)

    def _member_change_problems(
        self, place: TypePlace, name: str, before: DataType, after: DataType
    ) -> Iterator[Refusal]:
        yield from self._nullability_problems(name, before, after)
        yield from self._type_change_problems(place, name, before, after)


def file_name_problems(
    schema: Schema, files: Collection[FileChange], state: TableState, history: History
) -> Iterator[Refusal]:
    """Yield the names for which files without field ids mean other fields than the schema.

    Args:
        schema: The table's schema, which Iceberg can express.
        files: The added and removed files.
        state: The table before the commit.
        history: The table's history.
    """
    named = {each.schema_id for each in files if is_read_by_name(each)}
    used = named - {schema.id}
    # The mapping before the commit: the new one has the names of its files already.
    text = state.schema.options.get(NAME_MAPPING)
    if text is not None and named:
        yield from _mapping_problems(
            text, [*history.schemas(used), *([schema] if schema.id in named else [])]
        )
    if named:
        yield from _physical_name_problems(
            state, [*history.schemas(used), *([schema] if schema.id in named else [])], history
        )
    if not used:
        return
    # Files in the table were compared with the schema when one of the two was added.
    new = {each for each in used if not history.holds(state, each)}
    if not new:
        return
    names = history.names(state, new)
    if names.agrees_with(name_bindings(schema)) and (
        not names.is_doubtful or names.have_unique_names(history.schemas(new))
    ):
        return
    # Last, since it reads much: files that no readable snapshot holds do not count.
    held = used.union(history.reach(state).named_schema_ids) - {schema.id}
    yield from name_clashes(schema, history.schemas(_ids_after_source(state, held)))


def schemas_read_by_name(
    files: Collection[FileChange], state: TableState, history: History
) -> list[Schema]:
    """Return the schemas of the files that may have no field ids, oldest first.

    Args:
        files: Data files.
        state: The table.
        history: The table's history.

    Returns:
        The schemas, with the column names in the files.
    """
    last = state.origin.last_physical_schema_id
    # Whether ids are in a source's file is unknown.
    named = [each for each in files if is_read_by_name(each) or each.schema_id <= last]
    return schemas_in_files(named, state, history)


def schemas_in_files(
    files: Collection[FileChange], state: TableState, history: History
) -> list[Schema]:
    """Return the schemas of some data files, oldest first, with the column names in the files.

    Args:
        files: The files.
        state: The table.
        history: The table's history.
    """
    origin = state.origin
    named = set()
    for each in files:
        own = {} if isinstance(each.column_names, UnsetType) else each.column_names
        named.add((each.schema_id, tuple(sorted(own.items()))))
    schemas = {each.id: each for each in history.schemas({schema_id for schema_id, _ in named})}
    found = []
    for schema_id, names in sorted(named):
        is_of_source = schema_id <= origin.last_physical_schema_id
        physical = origin.physical_names if is_of_source else {}
        found.append(with_column_names(schemas[schema_id], {**physical, **dict(names)}))
    return found


def _physical_name_problems(
    state: TableState, schemas: Iterable[Schema], history: History
) -> Iterator[Refusal]:
    """Yield the names of files without field ids that are other columns' in a source's files."""
    names, last = state.origin.physical_names, state.origin.last_physical_schema_id
    taken = {(name, field_id) for field_id, name in names.items()}
    used = {each for each, _ in taken}
    places = [
        (place, field_id)
        for each in schemas
        if each.id > last
        for place, field_id in places_with_ids(each)
        if place.path[-1] in used and (place.path[-1], field_id) not in taken
    ]
    # Seldom reached: it reads all schemas of the source.
    older = history.schemas(range(last + 1)) if places else ()
    meant: dict[Binding, int] = {}
    for each in older:
        meant |= name_bindings(with_column_names(each, names))
    for place, field_id in places:
        other = meant.get(place_binding(place), field_id)
        if other != field_id:
            yield Refusal(
                f"column {place.name}",
                f"files of the source may have no field ids and hold field {other} under that name",
                "write the files with field ids (schema.to_arrow()), or take another name",
            )


def _mapping_problems(text: str, schemas: Iterable[Schema]) -> Iterator[Refusal]:
    """Yield the names of files without field ids that the name mapping gives other fields."""
    for each in schemas:
        found = misleading_name(text, each)
        if found is not None:
            name, field_id, other = found
            yield Refusal(
                f"column {name}",
                f"the option {NAME_MAPPING} says that {name} in files without field ids is field "
                f"{'none' if other is None else other}, and in schema {each.id} it is {field_id}",
                "write the files with field ids (schema.to_arrow()), or correct the option",
            )


def batch_name_problems(batch: Batch, *, is_new: bool) -> Iterator[Refusal]:
    """Yield the names for which files without field ids mean other fields than the batch.

    Args:
        batch: The batch.
        is_new: Whether it declares Iceberg, so that all names count and not only those that it
            binds.
    """
    state = batch.before
    if not state.named_schema_ids:
        return
    bound = name_bindings(batch.schema)
    if not is_new:
        before = name_bindings(state.schema)
        bound = {each: meant for each, meant in bound.items() if before.get(each) != meant}
        if not bound:
            return
    names = batch.history.names(state, ())
    if names.agrees_with(bound) and not (is_new and names.is_doubtful):
        return
    # Last, since it reads much: files that no readable snapshot holds do not count.
    held = _ids_after_source(state, batch.reach.named_schema_ids)
    yield from name_clashes(batch.schema, batch.history.schemas(held))


def _ids_after_source(state: TableState, schema_ids: Iterable[int]) -> set[int]:
    """Return the schemas whose files have the names of the schema, not a source's."""
    return {each for each in schema_ids if each > state.origin.last_physical_schema_id}


def name_clashes(schema: Schema, named: Iterable[Schema]) -> Iterator[Refusal]:
    """Yield the names that refer to two fields.

    Args:
        schema: The new schema.
        named: The schemas whose names files without field ids use.
    """
    bound = name_bindings(schema)
    for older in named:
        for place, field_id in places_with_ids(older):
            other = bound.setdefault(place_binding(place), field_id)
            if other != field_id:
                yield _name_clash(place, other, field_id, older.id)


def _name_clash(place: TypePlace, field_id: int, older_id: int, schema_id: int) -> Refusal:
    return Refusal(
        f"column {place.name}",
        f"the name would refer to field {field_id}, but files without field ids that can still "
        f"be read, of schema {schema_id}, use it for field {older_id}",
        "take another name, or rewrite those files with field ids and expire the snapshots that "
        "hold them",
    )


class IcebergRules:
    """Validation rules of Iceberg; see `FormatRules`."""

    name = "iceberg"
    title = "Iceberg"
    number = 1
    binds_names = True
    orders_members = False
    file_forms: Mapping[str, FileForm] = MappingProxyType(
        {"TIME": FileForm("microseconds in 8", "take INT or TIMESTAMP")}
    )

    def version(self, options: Mapping[str, str]) -> int:
        """Return the format version."""
        return Rules.of(options).format_version

    def creation_problems(self, creation: TableCreation) -> Iterator[Refusal]:
        """Yield the parts of a new table that Iceberg cannot express."""
        schema, version = creation.schema, creation.rules.format_version
        yield from type_problems(schema.fields, version)
        yield from default_problems(schema.fields, version)
        yield from _schema_and_layout_problems(schema, creation.layout, creation.rules)

    def problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield the parts of a batch's result that Iceberg cannot express."""
        is_new = batch.is_new(self)
        if batch.is_same_shape and not is_new:
            return
        yield from _version_problems(batch, [batch.declared_before])
        version = batch.rules.format_version
        columns = batch.schema.fields if is_new else batch.changed_columns
        yield from type_problems(columns, version)
        yield from default_problems(columns, version)
        if is_new:
            yield from _origin_problems(batch.before)
            yield from _source_id_problems(batch)
            yield from _past_problems(batch)
        for each in batch.steps(self):
            step = SchemaTransition(each.before, version, may_require=batch.may_require)
            yield from step.problems(each.columns, each.only)
        whole = _schema_and_layout_problems(batch.schema, batch.layout, batch.rules)
        known_problems = (
            ()
            if is_new
            else _schema_and_layout_problems(batch.before.schema, batch.before, batch.rules)
        )
        yield from new_problems(whole, known_problems)
        yield from batch_name_problems(batch, is_new=is_new)

    def last_problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield nothing: `problems` covers everything."""
        del batch
        return iter(())

    def file_problems(self, arrival: SnapshotArrival) -> Iterator[Refusal]:
        """Yield the files of a snapshot that Iceberg cannot express."""
        state = arrival.state
        # A table imported from Iceberg has its version from there, and no option for it.
        origin = state.origin if isinstance(state.origin, IcebergOrigin) else arrival.rules
        version = origin.format_version
        known = FileRules(state.schema, state.specs, version, is_back=arrival.is_back)
        return known.problems(arrival.files)

    def name_problems(
        self, schema: Schema, come: Collection[FileChange], state: TableState, history: History
    ) -> Iterator[Refusal]:
        """Yield the names for which files without field ids mean other fields than the schema."""
        return file_name_problems(schema, come, state, history)

    def tag_problems(self, name: str, others: Collection[str]) -> Iterator[Refusal]:
        """Yield the reason why a tag cannot have a name."""
        del others
        return tag_problems([name])


RULES = IcebergRules()


def _origin_problems(state: TableState) -> Iterator[Refusal]:
    """Yield the problem of a promoted Paimon table with snapshots in Paimon manifests."""
    origin = state.origin
    if isinstance(origin, PaimonOrigin) and origin.source_last_id:
        yield Refusal(
            "the table",
            f"it was imported from Paimon, and the manifests of its snapshots up to "
            f"{origin.source_last_id} lack what Iceberg needs",
            "read it by paimon",
        )


def _source_id_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield a column of a promoted Delta table that files may have under another field id."""
    origin = batch.before.origin
    if not isinstance(origin, DeltaOrigin):
        return
    other = origin.other_ids()
    if not other or all(each.schema_id > origin.source_schema_id for each in batch.reach.files):
        return
    names = {each.id: each.name for each in walk_fields(batch.before.schema.fields)}
    for field_id, own in other.items():
        if field_id in names:
            yield Refusal(
                f"column {names[field_id]}",
                f"files of {origin.source} may have Delta's field id {own} for it, and the table's "
                f"is {field_id}",
                "overwrite these files, and expire the snapshots that hold them",
            )
            return


def _schema_and_layout_problems(
    schema: Schema, layout: TableState | LayoutTrail, rules: Rules
) -> Iterator[Refusal]:
    yield from emptiness_problems(schema)
    yield from name_problems(schema)
    yield from identifier_problems(schema)
    yield from source_problems(schema, layout.spec, layout.sort_order)
    yield from spec_name_problems(schema, layout.specs)
    yield from spec_id_problems(layout.specs, rules.format_version)


def _version_problems(batch: Batch, declared: Iterable[Rules]) -> Iterator[Refusal]:
    versions = (each.format_version for each in declared if IcebergRules.name in each.formats)
    reached = max(versions, default=0)
    if batch.rules.format_version < reached:
        yield Refusal(
            f"format-version {batch.rules.format_version}",
            f"format versions only go up, and the table's is {reached}",
            f"keep format-version={reached}",
        )


def _past_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield the readable state that Iceberg cannot express, except for the order of schemas."""
    if IcebergRules.name not in batch.declared_before.formats:
        yield from _version_problems(
            batch, (declared_rules(each.options) for each in batch.readable)
        )
        yield from tag_problems(batch.before.tags)
        yield from _file_problems(batch)
    for each in batch.readable:
        yield from type_problems(each.fields, batch.rules.format_version)
        # A schema stays as it was first written, whatever format version comes later.
        yield from default_problems(each.fields, declared_rules(each.options).format_version)


def _file_problems(batch: Batch) -> Iterator[Refusal]:
    if batch.reach.spec_ids:
        # A primary key cannot be added later, so it applies to all files.
        yield from primary_key_problems(batch.before.schema, "of an older snapshot")
    rules = FileRules(batch.schema, batch.layout.specs, batch.rules.format_version)
    yield from rules.problems(batch.reach.files)


_FORMATS = ("parquet", "orc", "avro")
_FIRST_VERSION_OF_DELETES = 2
_INCOMPARABLE = frozenset({"FLOAT", "DOUBLE", "ARRAY", "MAP", "MULTISET", "ROW"})
_FIRST_VERSION_OF_VECTORS = 3

_WIDTHS = {
    "BOOLEAN": 1,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "DATE", "FLOAT"), 4),
    **dict.fromkeys(("BIGINT", "DOUBLE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"), 8),
    "UUID": 16,
}
_PROMOTED = {"BIGINT": 4, "DOUBLE": 4, "TIMESTAMP": 4}
"""Bytes of the narrower type from which a type can be widened; readers accept those as well."""

_MOST_DECIMAL_BYTES = 16


@attrs.define
class FileRules:
    """Validation of data files for an Iceberg table.

    Attributes:
        schema: The table's schema.
        specs: Its partition specs.
        format_version: Iceberg's format version.
        is_back: Whether the files are restored by a rollback.
    """

    schema: Schema
    specs: SomeSpecs
    format_version: int
    is_back: bool = False
    _sound: set[tuple[object, ...]] = attrs.Factory(set)
    _typed: dict[int, list[tuple[str, DataType | None]]] = attrs.Factory(dict)

    def problems(self, files: Iterable[FileChange]) -> Iterator[Refusal]:
        """Yield the problems of added files; removed files have none."""
        come = [each for each in files if each.kind == "ADD"]
        if come:
            yield from primary_key_problems(self.schema, come[0].path)
        for each in come:
            yield from self._format_and_content_problems(each)
            yield from _column_name_problems(each)
            yield from self._partition_problems(each)
            yield from self._bound_problems(each)

    def _format_and_content_problems(self, file: FileChange) -> Iterator[Refusal]:
        if file.format.lower() not in _FORMATS and not file.is_vector:
            yield _file_refusal(
                file,
                f"files are {', '.join(_FORMATS)}, and this one is {excerpt(file.format)}",
                "write it again as one of them",
            )
        match file.content:
            case "data":
                return
            case "position-deletes" if file.is_vector:
                if self.format_version < _FIRST_VERSION_OF_VECTORS:
                    rule = f"format version {self.format_version} has no deletion vectors"
                    yield _file_refusal(
                        file, rule, "set format-version=3 first, or commit position deletes"
                    )
            case "position-deletes" if self.format_version >= _FIRST_VERSION_OF_VECTORS:
                if not self.is_back:
                    rule = (
                        f"format version {self.format_version} has deletion vectors in place of "
                        "position delete files, and accepts no new ones"
                    )
                    yield _file_refusal(
                        file, rule, "commit vectors, or rewrite the data files without the rows"
                    )
            case "position-deletes" if self.format_version >= _FIRST_VERSION_OF_DELETES:
                return
            case "position-deletes" | "equality-deletes" if (
                self.format_version < _FIRST_VERSION_OF_DELETES
            ):
                rule = f"format version {self.format_version} has no files of deletes"
                yield _file_refusal(
                    file, rule, "set format-version=2 first, or rewrite the files without the rows"
                )
            case "equality-deletes":
                yield from self._equality_id_problems(file)
            case other:
                rule = (
                    f"files hold data, position-deletes or equality-deletes, and this one "
                    f"{excerpt(other)}"
                )
                yield _file_refusal(file, rule, "name its content by one of these words")

    def _equality_id_problems(self, file: FileChange) -> Iterator[Refusal]:
        if isinstance(file.equality_ids, UnsetType):
            rule = "equality deletes must say which columns they compare, and this file does not"
            yield _file_refusal(file, rule, "set equality_ids, or commit position deletes")
            return
        for each in file.equality_ids:
            data_type = self._types_by_id.get(each)
            if data_type is None:
                continue
            root = data_type.root
            if root in _INCOMPARABLE or each not in self._comparable_ids:
                what = root if root in _INCOMPARABLE else "members of lists and maps"
                rule = f"equality deletes compare no {what}, which field {each} is"
                yield _file_refusal(file, rule, "compare other columns, or commit position deletes")

    def _partition_problems(self, file: FileChange) -> Iterator[Refusal]:
        # Many files have one partition; without their types, 1 and True would be one key.
        key = file.spec_id, file.partition, *map(type, file.partition)
        if not file.partition or key in self._sound:
            return
        types = self._partition_types(file.spec_id)
        for value, (name, data_type) in zip(file.partition, types, strict=True):
            if (
                value is not None
                and data_type is not None
                and not _is_partition_value(value, data_type)
            ):
                yield _file_refusal(
                    file,
                    f"partition field {name} has values of {bare_type_text(data_type)}, and "
                    f"{excerpt(value)} is not one",
                    "give the file a valid value",
                )
                return
        self._sound.add(key)

    def _bound_problems(self, file: FileChange) -> Iterator[Refusal]:
        for bounds in (file.lower_bounds, file.upper_bounds):
            if isinstance(bounds, UnsetType):
                continue
            for field_id, text in bounds.items():
                rule = self._bound_rule(field_id, text)
                if rule is not None:
                    yield _file_refusal(file, rule, "leave the bound out, or write it so")

    def _bound_rule(self, field_id: int, text: str) -> str | None:
        try:
            body = bytes.fromhex(text)
        except (TypeError, ValueError):
            return f"bounds are bytes in hex, and that of field {field_id} is {excerpt(text)}"
        data_type = self._types_by_id.get(field_id)
        if data_type is None or _is_valid_bound(body, data_type):
            return None
        return (
            f"a bound of field {field_id}, {bare_type_text(data_type)}, "
            f"is {_byte_form(data_type)}, and "
            f"{excerpt(text)} is not"
        )

    @cached_property
    def _types_by_id(self) -> dict[int, DataType]:
        return {each.id: each.type for each in walk_fields(self.schema.fields)}

    @cached_property
    def _comparable_ids(self) -> frozenset[int]:
        return frozenset(_column_and_member_ids(self.schema.fields))

    def _partition_types(self, spec_id: int) -> list[tuple[str, DataType | None]]:
        # Few of a table's specs are in use; the type of a dropped source column is unknown
        # here.
        found = self._typed.get(spec_id)
        if found is None:
            spec = spec_by_id(self.specs, spec_id)
            found = self._typed[spec_id] = [
                (
                    each.name,
                    transform_of(each.transform).result_type(self._types_by_id[each.source_id])
                    if each.source_id in self._types_by_id
                    else None,
                )
                for each in spec.fields
            ]
        return found


def _column_name_problems(file: FileChange) -> Iterator[Refusal]:
    if isinstance(file.column_names, UnsetType) or file.field_ids:
        return
    names = ", ".join(map(excerpt, file.column_names.values()))
    yield _file_refusal(
        file,
        f"without field ids a column is found by its name in a schema, and {names} is none",
        "write all field ids of the table's schema.to_arrow() into it, or overwrite the older "
        "files with the schema's names in the same commit",
    )


def _column_and_member_ids(fields: Iterable[DataField]) -> Iterator[int]:
    for each in fields:
        yield each.id
        if isinstance(each.type, RowType):
            yield from _column_and_member_ids(each.type.fields)


def primary_key_problems(schema: Schema, path: str) -> Iterator[Refusal]:
    """Yield the problem of a file in a table with a primary key."""
    if schema.primary_keys:
        yield Refusal(
            f"file {path}",
            "only Paimon's merge finds the newest rows of a table with a primary key, so that "
            "other readers would show older ones as well",
            "let the engine commit its own manifest lists, or drop the primary key before "
            "there are files",
        )


def _is_partition_value(value: PartitionValue, data_type: DataType) -> bool:
    try:
        decoded = decode_value(value, data_type)
        # Not every decimal fits into the number of bytes that Iceberg gives its type.
        if decoded is not None:
            single_value_bytes(decoded, data_type)
    except (InvalidInputError, ValueError, OverflowError):
        return False
    return True


def _is_valid_bound(body: bytes, data_type: DataType) -> bool:
    match data_type.root:
        case "DECIMAL":
            return 0 < len(body) <= _MOST_DECIMAL_BYTES
        case "CHAR" | "VARCHAR":
            try:
                body.decode()
            except UnicodeDecodeError:
                return False
            return True
        case root:
            wanted = _WIDTHS.get(root, len(body)), _PROMOTED.get(root)
            return len(body) in wanted


def _byte_form(data_type: DataType) -> str:
    match data_type.root:
        case "DECIMAL":
            return f"1 to {_MOST_DECIMAL_BYTES} bytes"
        case "CHAR" | "VARCHAR":
            return "UTF-8"
        case root:
            return f"{_WIDTHS[root]} bytes"


def _file_refusal(file: FileChange, rule: str, alternative: str) -> Refusal:
    return Refusal(f"file {file.path}", rule, alternative)
