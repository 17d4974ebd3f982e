"""Draft of a schema decision: working copy, decided events, comment directives, ids.

The subject of each change is kept as its Anchor, for deciding it again on a newer schema.

Source: Paimon's SchemaManager.

Source: the Iceberg table specification, "Identifier Field IDs".

Source: the Iceberg reference implementation, which numbers one struct's members one after the
other before it descends into any of them. Neither pre-order nor breadth-first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve
from msgspec import Struct

from ledger.decide.errors import argument_error
from ledger.decide.table_options import (
    BLOB_OPTIONS,
    MAP_LAYOUT_SUFFIXES,
    ColumnNames,
    OptionColumnReferences,
    TableOptions,
    comma_list,
    split_option_columns,
)
from ledger.events.schema import RenameColumn, SchemaEvent, SetOption
from ledger.model.column_index import columns_around
from ledger.model.errors import ColumnExistsError, InvalidChangeError
from ledger.model.schema import FieldIdPolicy, Schema
from ledger.model.types import (
    ArrayType,
    BlobType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    assign_field_ids,
    parts_of,
    walk_ids,
    with_parts,
)
from ledger.state.columns import PastColumns, PastOf, ResolvedPath, dotted, resolve_path
from ledger.state.declared_formats import PAIMON_RULES, Rules
from ledger.state.schema_builder import SchemaBuilder
from ledger.state.struct_members import RowMembers, StructMembers


class ChangeAnchor(Struct, frozen=True):
    """The subject of a change when it was first decided, for deciding it again later.

    Attributes:
        ids: One field id a path segment; None for wrapper segments and for a new column's name.
            Where a change names several paths, those of the first path come first.
        reference_id: The column that a move refers to.
        named: The columns that an option names, one id a mention; None where there was no such
            column.
        assigned: The ids that this change assigned, the column's own first.
        lapsed: Whether Paimon stored nothing: an option was set to its value before the batch.
    """

    ids: tuple[int | None, ...] = ()
    reference_id: int | None = None
    named: tuple[int | None, ...] = ()
    assigned: tuple[int, ...] = ()
    lapsed: bool = False


class SchemaDraft:
    """State of deciding one batch, which its rules read and extend.

    Paimon's rules differ in what they read: guards, behaviour flags and "is the value unchanged"
    read the schema before the batch (`old`), existence, ids and types the `working` copy.
    """

    __slots__ = (
        "_meant",
        "_past",
        "_past_of",
        "events",
        "has_snapshots",
        "old",
        "old_options",
        "renames",
        "rules",
        "working",
    )

    def __init__(
        self,
        old: Schema,
        *,
        has_snapshots: bool,
        rules: Rules = PAIMON_RULES,
        past: PastOf | None = None,
    ) -> None:
        self.old = old
        self.rules = rules
        self.old_options = TableOptions(old.options)
        self.has_snapshots = has_snapshots
        self.working = SchemaBuilder(old)
        self.events: list[SchemaEvent] = []
        self.renames: list[RenameColumn] = []
        self._past_of = past
        self._past: PastColumns | None = None
        self._meant: dict[str, tuple[int | None, ...]] = {}

    @property
    def past(self) -> PastColumns:
        """Every column that the table had.

        Raises:
            InvalidChangeError: Only a schema is given, which has no history.
        """
        if self._past_of is None:
            raise argument_error(
                "dropped columns are in a table's history, and a schema has none: use the table, "
                "with table.alter([...])"
            )
        if self._past is None:
            self._past = self._past_of()
        return self._past

    def option_column_ids(self, option: OptionColumnReferences | None) -> tuple[int | None, ...]:
        """Return the ids of the columns that an option names at this point of the batch.

        Where Paimon's renames carry the option along, a name that was renamed away in this batch
        means the column that had it before: it maps old names to new ones when the batch is done.
        """
        if option is None:
            return ()
        now = ColumnNames(tuple(self.working.columns.values())).resolve(option)
        if None not in now or not option.carried:
            return now
        before = ColumnNames(self.old.fields).resolve(option)
        return tuple(
            then if found is None else found for found, then in zip(now, before, strict=True)
        )

    def meant_option_column_ids(self, key: str) -> tuple[int | None, ...]:
        """Return the ids of the columns that an option of the working copy has meant all along."""
        if key not in self._meant:
            option = split_option_columns(key, self.working.options[key])
            self._meant[key] = (
                () if option is None else ColumnNames(self.old.fields).resolve(option)
            )
        return self._meant[key]

    def record(self, event: SchemaEvent) -> None:
        """Apply an event to the working copy and record it."""
        if isinstance(event, SetOption):
            self._meant[event.key] = self.option_column_ids(
                split_option_columns(event.key, event.value)
            )
        self.working.apply(event)
        self.events.append(event)

    def freeze(self) -> Schema:
        """Return the current schema, with the id after the old one's."""
        return self.working.freeze(schema_id=self.old.id + 1, time_millis=self.old.time_millis)


def locate_named_column(draft: SchemaDraft, path: tuple[str, ...]) -> ResolvedPath:
    """Return the place of a path that must end at a named column.

    Raises:
        ColumnNotFoundError: There is none.
        InvalidChangeError: It ends at an ARRAY's element or a MAP's value.
    """
    place = resolve_path(draft.working.column(path), path)
    if place.is_wrapped:
        raise argument_error(
            f"{dotted(path)} is the inside of column {place.owner.name}, not a column: "
            "only its type and nullability can change"
        )
    return place


def enclosing_struct(
    draft: SchemaDraft, path: tuple[str, ...]
) -> tuple[StructMembers, tuple[int | None, ...]]:
    """Return the siblings of a path's last segment, and the ids of the segments before it.

    Raises:
        ColumnNotFoundError: A segment before the last names nothing.
        ColumnExistsError: The last segment is an ARRAY's element or a MAP's value.
        InvalidChangeError: The parent's type has no members.
    """
    if len(path) == 1:
        return draft.working.members, ()
    parent = resolve_path(draft.working.column(path), path[:-1])
    match parent.type:
        case RowType(fields=fields):
            return RowMembers(fields), parent.ids
        case ArrayType() | MapType():
            raise ColumnExistsError(f"column {dotted(path)} exists already and is not a ROW")
        case other:
            raise argument_error(
                f"column {dotted(path)} cannot be added: {dotted(path[:-1])} is {other.root}, "
                "and only a ROW has members"
            )


_BLOB_MARKERS = {
    "__BLOB_VIEW_FIELD": "blob-view-field",
    "__BLOB_DESCRIPTOR_FIELD": "blob-descriptor-field",
    "__BLOB_FIELD": "blob-field",
}
_VECTOR_MARKER = "__VECTOR_FIELD"
_BLOB_SOURCES = ("BINARY", "VARBINARY", "BLOB")
_OLDER_KEYS = {"blob-descriptor-field": ("blob.stored-descriptor-fields",)}

LISTS = frozenset({*BLOB_OPTIONS, "vector-field"})
"""Options that list the columns of such a kind."""

OptionEdit = tuple[str, str | None]
"""A key with its new value, or None to remove the option."""


class CommentDirective(Struct, frozen=True):
    """A directive in a column comment.

    Attributes:
        option: The option that lists such columns.
        comment: The rest of the comment; None when it is empty.
        dimension: The length of a vector; None for a BLOB.
    """

    option: str
    comment: str | None
    dimension: int | None = None


def read_directive(comment: str | None) -> CommentDirective | None:
    """Return the directive in a column comment, or None where it is a plain comment.

    Raises:
        InvalidChangeError: It begins like a directive, but is none that Paimon knows.

    Example:
        >>> read_directive("__VECTOR_FIELD;3;of the title").dimension
        3
    """
    text = (comment or "").strip()
    if text.startswith("__VECTOR"):
        return _parse_vector_directive(text)
    if not text.startswith("__BLOB"):
        return None
    marker, _, rest = text.partition(";")
    if marker not in _BLOB_MARKERS:
        known = ", ".join(_BLOB_MARKERS)
        raise argument_error(f"column comment {text!r} is no BLOB directive: use one of {known}")
    return CommentDirective(_BLOB_MARKERS[marker], rest.strip() or None)


def _parse_vector_directive(text: str) -> CommentDirective:
    marker, _, rest = text.partition(";")
    if marker != _VECTOR_MARKER:
        raise argument_error(
            f"column comment {text!r} is no VECTOR directive: use {_VECTOR_MARKER};128"
        )
    dimension, _, comment = rest.partition(";")
    try:
        length = int(dimension)
    except ValueError:
        length = 0
    if length < 1:
        raise argument_error(f"{text!r} needs a dimension of at least 1, like {_VECTOR_MARKER};128")
    return CommentDirective("vector-field", comment.strip() or None, length)


def directive_type(directive: CommentDirective, name: str, source: DataType) -> DataType:
    """Return the type that a directive gives to a column.

    Raises:
        InvalidChangeError: A column of type `source` cannot have it.
    """
    if directive.dimension is not None:
        if not isinstance(source, ArrayType):
            raise argument_error(
                f"column {name} is {source.root}: a VECTOR is declared as an ARRAY"
            )
        return VectorType(source.element, directive.dimension, nullable=source.nullable)
    match source:
        case ArrayType(element=element) if _may_hold_blobs(directive, element):
            return ArrayType(BlobType(nullable=element.nullable), nullable=source.nullable)
        case MapType(key=key, value=value) if _may_hold_blobs(directive, value):
            return MapType(key, BlobType(nullable=value.nullable), nullable=source.nullable)
        case _ if source.root in _BLOB_SOURCES:
            return BlobType(nullable=source.nullable)
        case _:
            raise argument_error(
                f"column {name} is {source.root}: {directive.option} takes BYTES, BINARY or BLOB "
                "(blob-field takes them as ARRAY elements and MAP values, too)"
            )


def _may_hold_blobs(directive: CommentDirective, inner: DataType) -> bool:
    return directive.option == "blob-field" and inner.root in _BLOB_SOURCES


def listing_option_edits(
    directive: CommentDirective, name: str, options: Mapping[str, str]
) -> list[OptionEdit]:
    """Return the option edits that list a column under its directive."""
    edits: list[OptionEdit] = []
    existing = options.get(directive.option)
    if not existing:
        for older in _OLDER_KEYS.get(directive.option, ()):
            if older in options:
                # Left in place, the older key would be shadowed and its columns lost.
                existing = options[older]
                edits.append((older, None))
    names = dict.fromkeys((*comma_list(existing or ""), name))
    edits.append((directive.option, ",".join(names)))
    return edits


def unlisting_option_edits(
    name: str, data_type: DataType, options: Mapping[str, str]
) -> list[OptionEdit]:
    """Return the option edits that remove a dropped BLOB, VECTOR or MAP column from lists."""
    if is_blob(data_type):
        return list(_remove_from_lists(name, BLOB_OPTIONS, options))
    removed: tuple[str, ...] = ()
    edits: list[OptionEdit] = []
    if data_type.root == "VECTOR":
        edits = list(_remove_from_lists(name, ["vector-field"], options))
        removed = (f"field.{name}.vector-dim",)
    elif data_type.root == "MAP":
        removed = tuple(f"fields.{name}.{suffix}" for suffix in MAP_LAYOUT_SUFFIXES)
    return edits + [(key, None) for key in removed if key in options]


def is_blob(data_type: DataType) -> bool:
    """Return whether a column's values are in BLOB files: BLOB, ARRAY of it, MAP to it."""
    match data_type:
        case ArrayType(element=inner) | MapType(value=inner):
            return inner.root == "BLOB"
        case _:
            return data_type.root == "BLOB"


def _remove_from_lists(
    name: str, keys: Sequence[str], options: Mapping[str, str]
) -> Iterator[OptionEdit]:
    for key in keys:
        listed = options.get(key)
        if not listed:
            continue
        rest = ",".join(each for each in comma_list(listed) if each != name)
        if rest != listed:
            yield key, rest or None


_INEXACT = frozenset({"FLOAT", "DOUBLE"})
_NOT_PRIMITIVE = frozenset({"ARRAY", "MAP", "ROW", "MULTISET", "VECTOR", "VARIANT"})


def check_identifier_fields(
    columns: Sequence[DataField], field_ids: Iterable[int], old_names: Mapping[int, str]
) -> None:
    """Reject identifier fields that do not exist, or that cannot identify a row.

    Args:
        columns: The table's columns.
        field_ids: The identifier fields.
        old_names: Names of columns before the batch by id, for those that it dropped.

    Raises:
        InvalidChangeError: One does not exist, may be NULL, is not an exact primitive, or is
            inside a list, a map or a struct that may be NULL.

    Example:
        >>> from ledger.model.schema import Schema
        >>> check_identifier_fields(Schema.of({"id": "DOUBLE NOT NULL"}).fields, [0], {})
        Traceback (most recent call last):
            ...
        ledger.model.errors.InvalidChangeError: identifier field id is DOUBLE: ...
    """
    wanted = tuple(field_ids)
    if not wanted:
        return
    around = columns_around(tuple(columns), wanted)
    found = {each.id: (each, above) for each, above in _walk_with_ancestors(around, ())}
    for field_id in wanted:
        if field_id not in found:
            raise _identifier_removal_error(old_names.get(field_id, f"with id {field_id}"))
        column, above = found[field_id]
        _check_identifier_column(column, above)


def _check_identifier_column(column: DataField, above: tuple[DataField | DataType, ...]) -> None:
    names = [each.name for each in above if isinstance(each, DataField)]
    name = dotted([*names, column.name])
    wrapper = next((each for each in above if isinstance(each, DataType)), None)
    if wrapper is not None:
        raise argument_error(f"identifier field {name} is inside a {wrapper.root}: a row has many")
    if column.type.root in _NOT_PRIMITIVE:
        raise argument_error(
            f"identifier field {name} is {column.type.root}, which is no single value"
        )
    if column.type.root in _INEXACT:
        raise argument_error(
            f"identifier field {name} is {column.type.root}: equality is inexact there"
        )
    for each in (*above, column):
        if isinstance(each, DataField) and each.type.nullable:
            raise argument_error(
                f"identifier field {name}: {each.name} may be NULL; make it NOT NULL, or reset "
                "the identifier fields first"
            )


def _identifier_removal_error(name: str) -> InvalidChangeError:
    return argument_error(
        f"column {name} is an identifier field; it cannot go before the identifier fields are reset"
    )


def _walk_with_ancestors(
    members: Sequence[DataField], above: tuple[DataField | DataType, ...]
) -> Iterator[tuple[DataField, tuple[DataField | DataType, ...]]]:
    for each in members:
        yield each, above
        yield from _walk_inside_type(each.type, (*above, each))


def _walk_inside_type(
    data_type: DataType, above: tuple[DataField | DataType, ...]
) -> Iterator[tuple[DataField, tuple[DataField | DataType, ...]]]:
    for each in parts_of(data_type):
        if each.field is None:
            yield from _walk_inside_type(each.type, (*above, data_type))
        else:
            yield from _walk_with_ancestors([each.field], above)


FIRST_ICEBERG_ID = 1


def assign_type_ids(
    data_type: DataType, highest: int, policy: FieldIdPolicy
) -> tuple[DataType, int]:
    """Assign a fresh id to everything inside a type; return the type and the greatest id.

    Args:
        data_type: The type; its ids are discarded.
        highest: The greatest id assigned so far.
        policy: The order of ids; under Paimon's policy, elements, keys and values have none.

    Example:
        >>> from ledger.model.types.sql import read_type
        >>> kv = read_type("MAP<STRING, ROW<a INT>>")
        >>> [list(walk_ids(assign_type_ids(kv, 9, each)[0])) for each in ("iceberg", "paimon")]
        [[10, 11, 12], [10]]
    """
    if not data_type.depth:
        return data_type, highest
    if policy == "paimon":
        return assign_field_ids(_without_member_ids(data_type), highest)
    return _with_fresh_ids(data_type, highest)


def columns_with_fresh_ids(columns: Sequence[DataField]) -> tuple[DataField, ...]:
    """Return columns with Iceberg's ids, counted from 1.

    Example:
        >>> from ledger.model.schema import Schema
        >>> from ledger.model.types.sql import read_type
        >>> points = read_type("ARRAY<ROW<x INT>>")
        >>> made = Schema.of({"id": "INT", "points": points, "note": "STRING"})
        >>> [(each.id, *walk_ids(each.type)) for each in columns_with_fresh_ids(made.fields)]
        [(1,), (2, 4, 5), (3,)]
    """
    highest = FIRST_ICEBERG_ID - 1 + len(columns)
    made = []
    for field_id, column in enumerate(columns, FIRST_ICEBERG_ID):
        inner, highest = _with_fresh_ids(column.type, highest)
        made.append(evolve(column, id=field_id, type=inner))
    return tuple(made)


def carries_iceberg_ids(columns: Iterable[DataField]) -> bool:
    """Return whether everything has an id that Iceberg could have assigned: none missing, none 0.

    Example:
        >>> from ledger.model.schema import Schema
        >>> carries_iceberg_ids(Schema.of({"id": "INT"}).fields)
        False
    """
    ids = [found for each in columns for found in (each.id, *_walk_all_ids(each.type))]
    return all(each is not None and each >= FIRST_ICEBERG_ID for each in ids)


def carries_member_ids(data_type: DataType) -> bool:
    """Return whether an element, key or value inside a type has an id.

    Example:
        >>> from ledger.model.types.sql import read_type
        >>> kind = read_type("ARRAY<INT>")
        >>> carries_member_ids(kind), carries_member_ids(assign_type_ids(kind, 1, "iceberg")[0])
        (False, True)
    """
    return any(
        (each.field is None and each.id is not None) or carries_member_ids(each.type)
        for each in parts_of(data_type)
    )


def without_member_ids(columns: Iterable[DataField]) -> tuple[DataField, ...]:
    """Return columns whose elements, keys and values have no ids, as Paimon counts."""
    return tuple(
        evolve(each, type=_without_member_ids(each.type)) if each.type.depth else each
        for each in columns
    )


def _with_fresh_ids(data_type: DataType, highest: int) -> tuple[DataType, int]:
    # Only Paimon has multisets, and their elements have no ids.
    counted = not isinstance(data_type, MultisetType)
    parts, first = parts_of(data_type), highest + 1
    highest += len(parts) if counted else 0
    made = []
    for number, part in enumerate(parts, first):
        inner, highest = _with_fresh_ids(part.type, highest)
        made.append(part._replace(type=inner, id=number if counted else None))
    return with_parts(data_type, made), highest


def _walk_all_ids(data_type: DataType) -> Iterator[int | None]:
    if isinstance(data_type, MultisetType):
        yield from walk_ids(data_type)
        return
    for each in parts_of(data_type):
        yield each.id
        yield from _walk_all_ids(each.type)


def _without_member_ids(data_type: DataType) -> DataType:
    return with_parts(
        data_type,
        [
            each._replace(type=_without_member_ids(each.type), id=each.id if each.field else None)
            for each in parts_of(data_type)
        ],
    )
