"""What a Delta schema and layout may be, and what may become of them.

Source: the Delta transaction protocol; what readers made of it where it leaves that open.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from attrs import frozen

from ledger.evolution.declared.format import Refusal, refused_retyping
from ledger.model.errors import UnsupportedError
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.schema import Schema
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
    VarBinaryType,
    VarCharType,
)
from ledger.model.types.walk import TypePlace, type_places
from projections.delta.table.metadata import is_reserved, partition_columns
from projections.delta.table.types import primitive, type_changes

_NESTED = (ArrayType, MapType, RowType)
_UNPARTITIONED = frozenset({"BINARY", "VARBINARY"})


def column_problems(columns: Iterable[DataField]) -> Iterator[Refusal]:
    """Yield what Delta cannot say of some columns: types and defaults, at every depth."""
    for place in type_places(columns):
        what = f"column {place.name}"
        if not isinstance(place.type, _NESTED):
            try:
                primitive(place.type)
            except UnsupportedError as error:
                yield Refusal(what, error.message, "take another type")
        if place.field is not None and place.field.initial_default is not None:
            yield Refusal(
                what,
                "a column that older files lack reads as NULL, never as a default",
                "add it without one and set the default afterwards, which new rows get",
            )


def name_problems(schema: Schema) -> Iterator[Refusal]:
    """Yield the names of one struct that are one when told without case."""
    seen: dict[tuple[object, ...], str] = {}
    for place in type_places(schema.fields):
        if place.field is None:
            continue
        name = place.path[-1]
        other = seen.setdefault((*place.level, name.casefold()), name)
        if other != name:
            yield Refusal(
                f"column {place.name}",
                f"names are told without case, and {other} is one already",
                "take another name",
            )


def option_problems(options: Mapping[str, str]) -> Iterator[Refusal]:
    """Yield the options that say of the table what only its protocol can."""
    for key in options:
        if is_reserved(key):
            yield Refusal(
                f"option {key}",
                "the projection itself says what a Delta table asks of readers and writers",
                "leave it out",
            )


def spec_problems(schema: Schema, spec: PartitionSpec) -> Iterator[Refusal]:
    """Yield the columns that cannot partition a Delta table."""
    columns = partition_columns(schema, spec)
    for each in columns:
        if each.type.root in _UNPARTITIONED or each.type.depth:
            yield Refusal(
                f"partition field of column {each.name}",
                f"the log writes partition values as texts, and {each.type.root} has none that "
                "all readers take alike",
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
    """Yield what becomes of the columns that partition a table with files."""
    stood = partition_columns(*before)
    if [each.id for each in stood] == [each.id for each in partition_columns(*after)]:
        return
    named = ", ".join(each.name for each in stood) or "none"
    yield Refusal(
        f"partition spec {after[1].spec_id}",
        "a table keeps the columns that partition it, since each of its files has one value of "
        f"every one; they are: {named}",
        "leave the identity fields as they are; fields of other transforms may come and go",
    )


@frozen
class Step:
    """From one schema to a later one.

    Attributes:
        before: The earlier schema.
        may_require: Whether a column may become required although older rows may lack it.
    """

    before: Schema
    may_require: bool

    def problems(
        self, columns: Iterable[DataField], only: Container[int] | None = None
    ) -> Iterator[Refusal]:
        """Yield what Delta forbids of what some columns of the later schema became.

        Args:
            columns: Those.
            only: The ids of what to look at in them; None for all.
        """
        before = {each.field.id: each for each in type_places(self.before.fields) if each.field}
        for place in type_places(columns):
            if place.field is None or (only is not None and place.field.id not in only):
                continue
            old = before.get(place.field.id)
            if old is None:
                # What is inside a new struct is as new as the struct.
                if place.level[0] is None or place.level[0] in before:
                    yield from self._added(place, place.field.id)
                continue
            if old.type.nullable and not place.type.nullable and not self.may_require:
                yield Refusal(
                    f"column {place.name}",
                    "older files may hold NULL in it, so it cannot become NOT NULL",
                    "keep it nullable, or allow incompatible changes if there is none",
                )
            yield from _type_problems(f"column {place.name}", old.type, place.type)

    def _added(self, place: TypePlace, field_id: int) -> Iterator[Refusal]:
        # What is back is NOT NULL only if no row was written without it.
        is_back = field_id <= self.before.highest_field_id
        if not place.type.nullable and not self.may_require and not is_back:
            yield Refusal(
                f"column {place.name}",
                "older files have no value for a new NOT NULL column",
                "add it as nullable, or allow incompatible changes if there are no such rows",
            )


def _type_problems(what: str, before: DataType, after: DataType) -> Iterator[Refusal]:
    try:
        changes = list(type_changes(before, after))
    except UnsupportedError:
        # A type that Delta does not have is told as such.
        return
    for change in changes:
        if not change.is_widening or "key" in change.path:
            rule = "readers take what older files hold as the new type, and only as a wider one"
            yield refused_retyping(what, change.before, change.after, rule)
    if not changes and _narrows(before, after):
        rule = "readers cast nothing, so that older values would not be of the new type"
        yield refused_retyping(what, before, after, rule)


def _narrows(  # noqa: PLR0911 - one case a kind
    before: DataType, after: DataType
) -> bool:
    """Whether a type that is the same to Delta has not all values of another."""
    match before, after:
        case ArrayType(element=old), ArrayType(element=new):
            return _narrows(old, new) or (old.nullable and not new.nullable)
        case MapType(), MapType():
            old, new = before.value, after.value
            return _narrows(old, new) or (old.nullable and not new.nullable)
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


def widened(before: Schema, after: Schema) -> bool:
    """Return whether a column has a wider type than it had."""
    old = {each.field.id: each.type for each in type_places(before.fields) if each.field}
    return any(
        place.field.id in old and any(type_changes(old[place.field.id], place.type))
        for place in type_places(after.fields)
        if place.field
    )
