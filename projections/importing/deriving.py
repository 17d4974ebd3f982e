"""SchemaChanges between two schemas of a source, by field id, and options for its properties.

The derived changes are checked to produce exactly the later schema; a step that no SchemaChange
expresses becomes one replacement. The ledger's rules are not applied: the change has happened.

A property of a source whose key begins with `ledger.` is not addressed to this ledger: it may come
from another ledger that projected the table, or be set to make this one act. It is kept under the
prefix `source.`, and projected under its own key.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET

from ledger.decide.table_options import PERSONAL_OPTION
from ledger.events.imported import SchemaReplaced
from ledger.events.schema import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    ColumnTypeUpdated,
    ColumnUndropped,
    IdentifierFieldsSet,
    Move,
    SchemaEvent,
)
from ledger.model.errors import InvalidChangeError, LedgerError
from ledger.model.schema import Schema, paths_of
from ledger.model.types import ArrayType, DataField, DataType, MapType, RowType
from ledger.model.types.wire import FieldObject, field_to_wire, type_to_wire
from ledger.state.declared_formats import FORMATS_OPTION, OWN_PREFIX
from ledger.state.schema_builder import SchemaBuilder

Path = tuple[str, ...]

_SOURCE_PREFIX = "source."
_needs_prefix = re.compile(rf"(?:{re.escape(_SOURCE_PREFIX)})*{re.escape(OWN_PREFIX)}").match


def option_of_property(key: str) -> str:
    """Return the key of the option that holds a property of a source.

    A key in the ledger's namespace gets a prefix, so that it does not act as the ledger's option,
    and so does a key that looks like such an option. The exception is `ledger.personal`, by which
    the source's owner marks personal columns for every ledger that follows it.

    Example:
        >>> option_of_property("ledger.formats"), option_of_property("source.ledger.formats")
        ('source.ledger.formats', 'source.source.ledger.formats')
        >>> option_of_property("team"), option_of_property("ledger.personal")
        ('team', 'ledger.personal')
    """
    is_kept = key == PERSONAL_OPTION or not _needs_prefix(key)
    return key if is_kept else f"{_SOURCE_PREFIX}{key}"


def options_of_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options that hold the properties of a source; see `option_of_property`."""
    return {option_of_property(key): value for key, value in properties.items()}


def properties_of_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a source from the options that hold them.

    The declared formats are the ledger's alone. An option that the ledger has set on a promoted
    table replaces a property of the same key.

    Example:
        >>> properties_of_options({"ledger.formats": "iceberg", "source.ledger.formats": "delta"})
        {'ledger.formats': 'delta'}
    """
    found = {key: value for key, value in options.items() if key != FORMATS_OPTION}
    held = [key for key in found if key.startswith(_SOURCE_PREFIX) and _needs_prefix(key)]
    properties = {key.removeprefix(_SOURCE_PREFIX): found.pop(key) for key in held}
    return {**properties, **found}


def derive_schema_events(
    before: Schema, fields: Sequence[DataField], identifiers: tuple[int, ...]
) -> tuple[SchemaEvent | SchemaReplaced, ...]:
    """Return the events that lead from a schema to other columns.

    Args:
        before: The current schema.
        fields: The columns of the later schema.
        identifiers: The ids of the later schema's identifier fields.
    """
    try:
        builder = SchemaBuilder(before)
        events: list[SchemaEvent] = []
        for found in sorted(_struct_changes(before.fields, fields), key=_id_assignment_order):
            each = _as_returned_column(found, before)
            builder.apply(each)
            events.append(each)
        if before.identifier_field_ids != identifiers:
            events.append(_identifier_fields_event(fields, identifiers))
            builder.apply(events[-1])
        reached = tuple(builder.columns.values())
        if (
            _fields_to_wire(reached) == _fields_to_wire(fields)
            and builder.identifier_field_ids == identifiers
        ):
            return tuple(events)
    except LedgerError:
        # Names that are swapped, or a map's keys: no SchemaChange expresses them.
        pass
    return (SchemaReplaced(_fields_to_wire(fields), identifiers),)


def _as_returned_column(event: SchemaEvent, before: Schema) -> SchemaEvent:
    """Return an addition under an id that was assigned before as the column's return."""
    if not isinstance(event, ColumnAdded) or event.field_id > before.highest_field_id:
        return event
    return ColumnUndropped(
        field_names=event.field_names,
        data_type=event.data_type,
        comment=event.comment,
        move=event.move,
        default_value=event.default_value,
        initial_default=event.default_value,
        field_id=event.field_id,
        parent_id=event.parent_id,
    )


def _id_assignment_order(event: SchemaEvent) -> tuple[int, int]:
    """Return the sort key of an event: ids are assigned in their order, at whatever depth."""
    if isinstance(event, ColumnAdded):
        return 1, event.field_id
    return (2, 0) if isinstance(event, ColumnMoved | ColumnDefaultValueUpdated) else (0, 0)


def _fields_to_wire(fields: Iterable[DataField]) -> tuple[FieldObject, ...]:
    return tuple(map(field_to_wire, fields))


def _identifier_fields_event(
    fields: Sequence[DataField], identifiers: tuple[int, ...]
) -> IdentifierFieldsSet:
    paths = {number: path for path, number in paths_of(Schema(tuple(fields)))}
    return IdentifierFieldsSet(tuple(paths[each] for each in identifiers), field_ids=identifiers)


def _struct_changes(
    before: Sequence[DataField], after: Sequence[DataField], around: Path = (), owner: int = -1
) -> Iterator[SchemaEvent]:
    """Yield the changes of the members of a struct, and inside them.

    Args:
        before: The current members.
        after: The later members.
        around: The struct's path, in the names after its own changes.
        owner: The id of the nearest named field around; -1 at the top.
    """
    wanted = {each.id: each for each in after}
    kept = [each for each in before if each.id in wanted]
    for each in before:
        if each.id not in wanted:
            yield ColumnDropped((*around, each.name), field_id=each.id)
    yield from _rename_events(kept, wanted, around, owner)
    for each in kept:
        yield from _member_changes(each, wanted[each.id], around)
    yield from _additions_and_moves([each.id for each in kept], after, around, owner)


def _rename_events(
    kept: Sequence[DataField], wanted: dict[int, DataField], around: Path, owner: int
) -> Iterator[SchemaEvent]:
    names = {each.id: each.name for each in kept}
    waiting = [each.id for each in kept if each.name != wanted[each.id].name]
    while waiting:
        free = next((each for each in waiting if wanted[each].name not in names.values()), None)
        if free is None:
            raise InvalidChangeError("columns changed names in a circle")
        new = wanted[free].name
        yield ColumnRenamed(
            (*around, names[free]),
            new,
            field_id=free,
            parent_id=UNSET if owner < 0 else owner,
        )
        names[free] = new
        waiting.remove(free)


def _member_changes(before: DataField, after: DataField, around: Path) -> Iterator[SchemaEvent]:
    path = (*around, after.name)
    yield from _type_changes(before.type, after.type, path, after.id)
    if before.description != after.description:
        yield ColumnCommentUpdated(path, after.description, field_id=after.id)
    if before.default_value != after.default_value:
        yield ColumnDefaultValueUpdated(path, after.default_value, field_id=after.id)


def _type_changes(
    before: DataType, after: DataType, path: Path, field_id: int
) -> Iterator[SchemaEvent]:
    if before.nullable != after.nullable:
        yield ColumnNullabilityUpdated(path, after.nullable, field_id=field_id)
    match before, after:
        case RowType(fields=older), RowType(fields=newer):
            yield from _struct_changes(older, newer, path, field_id)
        case ArrayType(element=older), ArrayType(element=newer):
            yield from _type_changes(older, newer, (*path, "element"), field_id)
        case MapType(value=older), MapType(value=newer):
            yield from _type_changes(older, newer, (*path, "value"), field_id)
        case _ if before.with_nullability(nullable=True) != after.with_nullability(nullable=True):
            yield ColumnTypeUpdated(
                path,
                type_to_wire(after.with_nullability(nullable=True)),
                keep_nullability=True,
                field_id=field_id,
            )


def _additions_and_moves(
    there: list[int], after: Sequence[DataField], around: Path, owner: int
) -> Iterator[SchemaEvent]:
    """Yield the additions, and the smallest set of moves."""
    order = {each.id: place for place, each in enumerate(after)}
    steady = _longest_ascending([order[each] for each in there])
    placed = {each for each in there if order[each] in steady}
    # An id that is assigned later is higher, whatever its position.
    for each in sorted((each for each in after if each.id not in there), key=lambda e: e.id):
        move = _move_of_added(each, after, placed)
        yield ColumnAdded(
            (*around, each.name),
            type_to_wire(each.type),
            each.description,
            move,
            each.initial_default,
            field_id=each.id,
            parent_id=UNSET if owner < 0 else owner,
        )
        placed.add(each.id)
        if each.initial_default != each.default_value:
            yield ColumnDefaultValueUpdated(
                (*around, each.name), each.default_value, field_id=each.id
            )
    for each in after:
        if each.id not in placed:
            before = _preceding_member(each, after, placed)
            yield ColumnMoved(
                _move_behind(each, before),
                (*around, each.name) if around else (),
                field_id=each.id,
                reference_id=UNSET if before is None else before.id,
            )
            placed.add(each.id)


def _preceding_member(
    member: DataField, after: Sequence[DataField], placed: set[int]
) -> DataField | None:
    """Return the nearest preceding member that is at its final position."""
    found = None
    for each in after:
        if each.id == member.id:
            return found
        if each.id in placed:
            found = each
    return found


def _move_of_added(member: DataField, after: Sequence[DataField], placed: set[int]) -> Move | None:
    """Return the move of an added member; None: after all others."""
    behind = after[[each.id for each in after].index(member.id) + 1 :]
    if not any(each.id in placed for each in behind):
        return None
    return _move_behind(member, _preceding_member(member, after, placed))


def _move_behind(member: DataField, before: DataField | None) -> Move:
    return Move(member.name, "FIRST") if before is None else Move(member.name, "AFTER", before.name)


def _longest_ascending(places: Sequence[int]) -> set[int]:
    """Return a longest ascending subsequence of positions.

    Example:
        >>> sorted(_longest_ascending([1, 2, 0]))
        [1, 2]
    """
    ends: list[int] = []
    chains: list[tuple[int, ...]] = []
    for each in places:
        at = bisect_left(ends, each)
        chain = (*(chains[at - 1] if at else ()), each)
        ends[at : at + 1] = [each]
        chains[at : at + 1] = [chain]
    return set(chains[-1]) if chains else set()
