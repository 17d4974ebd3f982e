"""Which schema of a table a file fits: the one whose names it uses.

A file that carries field ids is this table's own, or it is refused: another table's ids would
show values under the wrong names. A file without ids is matched by name. Its values have to be
readable as the columns' types: narrower ones may be read as wider, as Iceberg promotes; nothing
that could change or lose a value passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from ledger.files.registering.facts import FooterColumn
from ledger.model import types as t
from ledger.model.errors import InvalidChangeError
from ledger.model.messages.similar import listed, similar
from ledger.model.schema import Schema
from ledger.model.types import DataField, RowType
from ledger.model.types.arrow import nested_ids
from ledger.model.types.text import format_type
from ledger.model.types.walk import parts_of, walk_fields

_SMALL = ("TINYINT", "SMALLINT", "INT")
_TEXT = ("CHAR", "VARCHAR")
_BYTES = ("BINARY", "VARBINARY")
_UUID_BYTES = 16

# What a file's values may be for each kind of column where no parameter matters. Parquet keeps
# all the small whole numbers in 32 bits, and many writers do not say which of them it is.
_READABLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_TEXT, _TEXT),
    "BOOLEAN": ("BOOLEAN",),
    **dict.fromkeys(_SMALL, _SMALL),
    "BIGINT": (*_SMALL, "BIGINT"),
    "FLOAT": ("FLOAT",),
    "DOUBLE": ("FLOAT", "DOUBLE"),
    "BINARY": ("VARBINARY",),
    "VARBINARY": ("VARBINARY",),
    "UUID": ("UUID",),
    "DATE": ("DATE",),
    "TIME": ("TIME",),
    "TIMESTAMP": ("TIMESTAMP",),
    "TIMESTAMP_LTZ": ("TIMESTAMP_LTZ",),
    **dict.fromkeys(("BLOB", "GEOMETRY", "GEOGRAPHY"), _BYTES),
}


Carried = Mapping[tuple[int, tuple[str, ...]], int]
"""The ids that types carry for elements, keys and values: by the id of the nearest named field
around, and the names from there on."""


@frozen
class _Place:
    """Where a column stands.

    Attributes:
        path: Names from the column on, for messages.
        field_id: The table's id of the nearest named field.
        below: The lists and maps since, as `element`, `key` and `value`.
        carried: What the table's types carry; None where the file carries no field ids.
    """

    path: str
    field_id: int
    below: tuple[str, ...]
    carried: Carried | None

    @classmethod
    def of_column(cls, field: DataField, carried: Carried | None) -> _Place:
        return cls(field.name, field.id, (), carried)

    def of_member(self, field: DataField) -> _Place:
        return _Place(f"{self.path}.{field.name}", field.id, (), self.carried)

    def inside(self, name: str) -> _Place:
        return _Place(f"{self.path}.{name}", self.field_id, (*self.below, name), self.carried)

    def misfit(self, found: int | None, formula: int) -> Iterator[str]:
        """Yield what is wrong with the id that a file has for an element, key or value."""
        if self.carried is None:
            return
        own = self.carried.get((self.field_id, self.below))
        # Ids that only a formula gives may be absent: many writers leave them out.
        if own is not None or found is not None:
            yield from _other_id(found, formula if own is None else own, self.path)


def _carried_by(fields: Iterable[DataField]) -> Iterator[tuple[tuple[int, tuple[str, ...]], int]]:
    for each in walk_fields(fields):
        yield from _carried_in(each.type, each.id, ())


def _carried_in(
    data_type: t.DataType, field_id: int, below: tuple[str, ...]
) -> Iterator[tuple[tuple[int, tuple[str, ...]], int]]:
    for each in parts_of(data_type):
        if each.field is None:
            inner = (*below, each.name)
            if each.id is not None:
                yield (field_id, inner), each.id
            yield from _carried_in(each.type, field_id, inner)


def _misfits(column: FooterColumn, wanted: t.DataType, place: _Place) -> Iterator[str]:
    """Yield why a file's column cannot be read as `wanted`; nothing when it can.

    Args:
        column: The file's.
        wanted: The type in the schema.
        place: Where it stands in the schema.
    """
    match column.type, wanted:
        case t.RowType(), t.RowType(fields=fields):
            yield from _row_misfits(column.members, fields, place)
        case ((t.ArrayType() | t.VectorType()), (t.ArrayType() | t.VectorType())) | (
            t.MapType(),
            (t.MapType() | t.MultisetType()),
        ):
            yield from _nested_misfits(column.members, wanted, place)
        case found, _ if found is None or not readable(found, wanted):
            yield _explain(column, wanted, place.path)


def _nested_misfits(
    members: Sequence[FooterColumn], wanted: t.DataType, place: _Place
) -> Iterator[str]:
    """Yield the misfits of a list's element, or of a map's key and value."""
    ids = nested_ids(wanted, place.field_id, len(place.below) + 1)
    for member, (name, data_type), number in zip(members, _inside(wanted), ids, strict=True):
        inner = place.inside(name)
        yield from inner.misfit(member.field_id, number)
        yield from _misfits(member, data_type, inner)


def _inside(data_type: t.DataType) -> tuple[tuple[str, t.DataType], ...]:
    """Return what a list or map holds, by the names that paths have for it."""
    if isinstance(data_type, t.ArrayType | t.VectorType):
        return (("element", data_type.element),)
    if isinstance(data_type, t.MultisetType):
        return ("key", data_type.element), ("value", t.IntType())
    if isinstance(data_type, t.MapType):
        return ("key", data_type.key), ("value", data_type.value)
    return ()


def _other_id(found: int | None, wanted: int, path: str) -> Iterator[str]:
    if found != wanted:
        yield (
            f"column {path!r} carries {'no field id' if found is None else f'field id {found}'}; "
            f"the table's is {wanted}: write the file with the table's schema.to_arrow(), or "
            "without field ids"
        )


def _row_misfits(
    members: Sequence[FooterColumn], fields: Sequence[t.DataField], place: _Place
) -> Iterator[str]:
    by_name = {each.name: each for each in fields}
    for member in members:
        inner = f"{place.path}.{member.name}"
        field = by_name.get(member.name)
        if field is None:
            yield f"column {inner!r} is not among the members {list(by_name)}"
        elif place.carried is not None and member.field_id != field.id:
            yield from _other_id(member.field_id, field.id, inner)
        else:
            yield from _misfits(member, field.type, place.of_member(field))
    present = {each.name for each in members}
    for field in fields:
        if field.name not in present and not field.type.nullable:
            yield f"the NOT NULL column '{place.path}.{field.name}' is missing from the file"


def readable(found: t.DataType, wanted: t.DataType) -> bool:
    """Return whether values that a file holds as `found` can be read as `wanted`.

    Example:
        >>> readable(t.IntType(), t.BigIntType()), readable(t.BigIntType(), t.IntType())
        (True, False)
    """
    match found, wanted:
        case t.UnknownType(), _:
            # Nothing but nulls.
            return wanted.nullable
        case t.DecimalType(), t.DecimalType():
            return found.scale == wanted.scale and found.precision <= wanted.precision
        case t.BinaryType(), (t.BinaryType() | t.VarBinaryType() | t.UuidType()):
            return _bytes_fit(found.length, wanted)
        case _:
            return found.root in _READABLE.get(wanted.root, ())


def _bytes_fit(length: int, wanted: t.DataType) -> bool:
    match wanted:
        case t.UuidType():
            return length == _UUID_BYTES
        case t.BinaryType():
            return length == wanted.length
        case t.VarBinaryType():
            return length <= wanted.length
        case _:
            return False


def _explain(column: FooterColumn, wanted: t.DataType, path: str) -> str:
    if column.type is None:
        return f"column {path!r} holds {column.type_text}, which no column type can hold"
    found = format_type(column.type)
    advice = ""
    if readable(wanted, column.type):
        advice = f": widen the column to {found} first"
    return f"column {path!r} holds {found}, but the table's column is {format_type(wanted)}{advice}"


_MOST_HINTS = 5


@frozen
class Match:
    """The schema that a file fits, and whether the file carries the table's field ids."""

    schema: Schema
    field_ids: bool

    @property
    def schema_id(self) -> int:
        """The id of the schema whose names the file uses."""
        return self.schema.id


def schema_id_of(columns: Sequence[FooterColumn], history: Iterable[Schema], *, file: str) -> Match:
    """Return the newest schema that a file fits.

    It fits when each of its columns is in the schema, by name and (when the file carries ids) by
    id, with a type that readers can read the file's values as, and when no NOT NULL column that
    does not partition the table is missing from it.

    Args:
        columns: The file's.
        history: The table's schemas, newest first; no more are taken than are needed.
        file: Its name, for errors.

    Raises:
        InvalidChangeError: It fits none; the message names the file, the column and the reason.
    """
    if not columns:
        raise InvalidChangeError(f"file {file} has no columns")
    with_ids = _carries_ids(columns, file)
    seen: list[Schema] = []
    carried: dict[tuple[int, tuple[str, ...]], int] | None = {} if with_ids else None
    for schema in history:
        seen.append(schema)
        if carried is not None:
            # Ids that a source gave to what has been there before are those of older schemas, too.
            carried = {**dict(_carried_by(schema.fields)), **carried}
        if next(_faults(columns, schema, carried), None) is None:
            return Match(schema, with_ids)
    if not seen:
        raise InvalidChangeError(f"file {file} cannot be matched: the table has no schema")
    if with_ids:
        _refuse_foreign(columns, seen, file)
    raise InvalidChangeError(_no_schema(columns, seen, file, carried))


def pairs(
    columns: Sequence[FooterColumn], fields: Sequence[DataField]
) -> Iterator[tuple[FooterColumn, DataField]]:
    """Yield the file's columns and ROW members with the fields of the schema that they are.

    Args:
        columns: Of a file that fits.
        fields: Of the schema that it fits.
    """
    by_name = {each.name: each for each in fields}
    for column in columns:
        field = by_name[column.name]
        yield column, field
        if isinstance(field.type, RowType):
            yield from pairs(column.members, field.type.fields)


def _carries_ids(columns: Sequence[FooterColumn], file: str) -> bool:
    without = [each.name for each in columns if each.field_id is None]
    if without and len(without) < len(columns):
        raise InvalidChangeError(
            f"file {file}: columns {without} carry no field id, but others do; write it again "
            "with the table's schema.to_arrow(), or without field ids"
        )
    return not without


def _faults(
    columns: Sequence[FooterColumn], schema: Schema, carried: Carried | None
) -> Iterator[str]:
    """Yield why a file does not fit a schema, unknown columns first."""
    by_name = {each.name: each for each in schema.fields}
    strange = [
        each.name
        for each in columns
        if (field := by_name.get(each.name)) is None
        or (carried is not None and field.id != each.field_id)
    ]
    if strange:
        yield _not_among(strange, by_name)
    for column in columns:
        field = by_name.get(column.name)
        if field is not None:
            yield from _misfits(column, field.type, _Place.of_column(field, carried))
    present = {each.name for each in columns}
    for field in schema.fields:
        absent = field.name not in present and field.name not in schema.partition_keys
        if absent and not field.type.nullable:
            yield f"the NOT NULL column {field.name!r} is missing from the file"


def _not_among(strange: Sequence[str], known: Mapping[str, DataField]) -> str:
    columns = "column" if len(strange) == 1 else "columns"
    they = "is" if len(strange) == 1 else "are"
    near = {each: similar(each, known) for each in strange}
    hints = [f"{' or '.join(map(repr, each))} for {name!r}" for name, each in near.items() if each]
    said = f"did you mean {', '.join(hints[:_MOST_HINTS])}?" if hints else ""
    if not all(near.values()):
        said += f"{' ' if said else ''}there are: {listed(known)}"
    return f"{columns} {listed(strange)} {they} not among its columns ({said})"


def _refuse_foreign(columns: Sequence[FooterColumn], seen: Sequence[Schema], file: str) -> None:
    names: dict[int, list[str]] = {}
    for schema in seen:
        for field in schema.fields:
            known = names.setdefault(field.id, [])
            if field.name not in known:
                known.append(field.name)
    inner = {each.id for schema in seen for each in walk_fields(schema.fields)}
    for column in columns:
        known = names.get(column.field_id if column.field_id is not None else -1, [])
        if column.name in known:
            continue
        is_here = f"is {' or '.join(map(repr, known))}" if known else "is no column"
        if not known and column.field_id in inner:
            is_here = "is inside another column"
        raise InvalidChangeError(
            f"file {file}: column {column.name!r} carries field id {column.field_id}, which "
            f"{is_here} in this table. The ids are another table's: write the file again with "
            "this table's schema.to_arrow(), or without field ids"
        )


def _no_schema(
    columns: Sequence[FooterColumn], seen: Sequence[Schema], file: str, carried: Carried | None
) -> str:
    names = {each.name for each in columns}
    # The newest schema that has all the columns says most about what else is wrong.
    best = next((each for each in seen if names <= set(each.names)), seen[0])
    reasons = list(_faults(columns, best, carried))
    return (
        f"file {file} fits no schema of this table; of schema {best.id}: {'; '.join(reasons)}. "
        "Change the table first, or write the file again"
    )
