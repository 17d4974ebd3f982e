"""Column paths, edits of structs, and every column that a table ever had.

A path has one segment for each ROW level and one for each wrapper: `element` for an ARRAY, `value`
for a MAP. Map keys, multisets and vectors are never descended into.

The last form of a column is that of its newest schema: between two schemas no file was written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from attrs import evolve
from msgspec import UNSET, Struct, UnsetType

from ledger.events.schema import Move
from ledger.model.errors import ColumnExistsError, ColumnNotFoundError, InvalidChangeError
from ledger.model.messages import name_hint
from ledger.model.schema import Schema
from ledger.model.types import ArrayType, DataField, DataType, MapType, RowType, type_places


def dotted(path: Iterable[str]) -> str:
    """Return a path as display text: `v.element.f1`."""
    return ".".join(path)


class ResolvedPath(Struct, frozen=True):
    """The place that a path leads to.

    Attributes:
        ids: One id a segment; None for a wrapper segment, which has no id of its own.
        type: The type at the place.
        owner: The named field at the place, or the nearest one around it.
        is_wrapped: The path ends inside a wrapper, so `owner` is not the field that it names.
    """

    ids: tuple[int | None, ...]
    type: DataType
    owner: DataField
    is_wrapped: bool


def resolve_path(column: DataField, path: Sequence[str]) -> ResolvedPath:
    """Return the place that `path` leads to; its first segment has already found `column`.

    Raises:
        ColumnNotFoundError: A segment names no member; the message ends at that segment.
        InvalidChangeError: A wrapper's segment is not `element` or `value`.
    """
    ids: list[int | None] = [column.id]
    owner, current, is_wrapped = column, column.type, False
    for depth in range(1, len(path)):
        member = _child_at(current, path, depth)
        is_wrapped = not isinstance(member, DataField)
        if isinstance(member, DataField):
            owner, current = member, member.type
            ids.append(member.id)
        else:
            current = member
            ids.append(None)
    return ResolvedPath(tuple(ids), current, owner, is_wrapped)


def edit_type(
    data_type: DataType,
    path: Sequence[str],
    edit: Callable[[DataType], DataType],
    depth: int = 1,
) -> DataType:
    """Return `data_type` with the type at `path[depth:]` replaced by `edit` of it.

    Only the types along the path are rebuilt.

    Raises:
        ColumnNotFoundError, InvalidChangeError: As `resolve_path`.
    """
    if depth == len(path):
        return edit(data_type)
    member = _child_at(data_type, path, depth)
    inner = member.type if isinstance(member, DataField) else member
    edited = edit_type(inner, path, edit, depth + 1)
    match data_type:
        case RowType(fields=fields) if isinstance(member, DataField):
            renewed = with_type(member, edited)
            return RowType(replace_field_by_id(fields, renewed), nullable=data_type.nullable)
        case MapType():
            return evolve(data_type, value=edited)
        case ArrayType():
            return evolve(data_type, element=edited)
        case _:
            return ArrayType(edited, nullable=data_type.nullable)


def with_type(member: DataField, data_type: DataType) -> DataField:
    """Return the same field with another type."""
    return evolve(member, type=data_type)


def replace_field_by_id(fields: Sequence[DataField], renewed: DataField) -> tuple[DataField, ...]:
    """Return `fields` with the one that has the id of `renewed` replaced by it."""
    return tuple(renewed if each.id == renewed.id else each for each in fields)


def member_named(fields: Sequence[DataField], name: str) -> DataField | None:
    """Return the member of that name, or None."""
    return next((each for each in fields if each.name == name), None)


def _child_at(data_type: DataType, path: Sequence[str], depth: int) -> DataField | DataType:
    segment = path[depth]
    match data_type:
        case RowType(fields=fields):
            member = member_named(fields, segment)
            if member is not None:
                return member
        case ArrayType(element=element):
            _check_wrapper(path, depth, "element", "an ARRAY")
            return element
        case MapType(value=value):
            _check_wrapper(path, depth, "value", "a MAP")
            return value
        case _:
            pass
    raise ColumnNotFoundError(
        f"column {dotted(path[: depth + 1])} does not exist; "
        f"{dotted(path[:depth])} is {_describe_type(data_type)}"
    )


def _check_wrapper(path: Sequence[str], depth: int, expected: str, kind: str) -> None:
    if path[depth] != expected:
        raise InvalidChangeError(
            f"{dotted(path[: depth + 1])}: below {kind} only {expected!r} can be addressed "
            f"(map keys never change); write {dotted([*path[:depth], expected])}"
        )


def _describe_type(data_type: DataType) -> str:
    if isinstance(data_type, RowType):
        return f"a ROW of {[each.name for each in data_type.fields]}"
    return f"of type {data_type.root}, which has no members to address"


Members = tuple[DataField, ...]


def add_member(members: Members, new: DataField, move: Move | None, path: Sequence[str]) -> Members:
    """Return the members with a new one, last or where `move` says.

    Raises:
        ColumnExistsError: The name is taken.
        ColumnNotFoundError: The move's reference does not exist.
    """
    if member_named(members, new.name) is not None:
        raise ColumnExistsError(f"column {dotted(path)} exists already; choose another name")
    place = len(members) if move is None else _move_target_index(members, move)
    return (*members[:place], new, *members[place:])


def rename_member(members: Members, path: Sequence[str], field_id: int, new_name: str) -> Members:
    """Return the members with one renamed in place.

    Raises:
        ColumnExistsError: The new name is taken.
        InvalidChangeError: The member is missing, or has another id.
    """
    if member_named(members, new_name) is not None:
        taken = dotted([*path[:-1], new_name])
        raise ColumnExistsError(f"column {taken} exists already; choose another name")
    return edited(
        members,
        path,
        field_id,
        lambda each: evolve(each, name=new_name),
    )


def drop_member(members: Members, path: Sequence[str], field_id: int) -> Members:
    """Return the members without one.

    Raises:
        InvalidChangeError: The member is missing, has another id, or is the last one.
    """
    gone = get_member_by_id(members, path, field_id)
    if len(members) == 1:
        raise InvalidChangeError(f"{dotted(path)} is the last member of its ROW; it cannot go")
    return tuple(each for each in members if each is not gone)


def edited(
    members: Members, path: Sequence[str], field_id: int, edit: Callable[[DataField], DataField]
) -> Members:
    """Return the members with one edited.

    Raises:
        InvalidChangeError: The member is missing, or has another id.
    """
    return replace_field_by_id(members, edit(get_member_by_id(members, path, field_id)))


def move_member(
    members: Members, move: Move, field_id: int, reference_id: int | UnsetType
) -> Members:
    """Return the members in another order.

    Raises:
        InvalidChangeError: The member or the reference is missing, has another id, or both are one.
    """
    mover = get_member_by_id(members, (move.field_name,), field_id)
    if reference_id is not UNSET and move.reference_field_name is not None:
        get_member_by_id(members, (move.reference_field_name,), reference_id)
    check_not_own_reference(move)
    rest = tuple(each for each in members if each is not mover)
    place = _move_target_index(rest, move)
    return (*rest[:place], mover, *rest[place:])


def get_member_by_id(members: Members, path: Sequence[str], field_id: int) -> DataField:
    """Return the member that a path's last segment names, if it has that id.

    Raises:
        ColumnNotFoundError: There is none of that name.
        InvalidChangeError: It has another id.
    """
    member = member_named(members, path[-1])
    if member is None:
        names = [each.name for each in members]
        hint = name_hint(path[-1], names)
        raise ColumnNotFoundError(f"column {dotted(path)} does not exist; {hint}")
    if member.id != field_id:
        raise InvalidChangeError(
            f"column {dotted(path)} has id {member.id}, but the event says {field_id}"
        )
    return member


def _move_target_index(members: Members, move: Move) -> int:
    match move.type:
        case "FIRST":
            return 0
        case "LAST":
            return len(members)
        case "AFTER":
            return _reference_index(members, move) + 1
        case "BEFORE":
            return _reference_index(members, move)


def _reference_index(members: Members, move: Move) -> int:
    for index, each in enumerate(members):
        if each.name == move.reference_field_name:
            return index
    raise missing_reference_error(move)


def check_not_own_reference(move: Move) -> None:
    """Reject a move of a column after or before itself.

    Raises:
        InvalidChangeError: It is one.
    """
    if move.type in {"AFTER", "BEFORE"} and move.reference_field_name == move.field_name:
        raise InvalidChangeError(f"{move.field_name} cannot move {move.type} itself")


def missing_reference_error(move: Move) -> ColumnNotFoundError:
    """Return the error for a move whose reference does not exist."""
    return ColumnNotFoundError(
        f"column {move.reference_field_name} does not exist; {move.field_name} cannot go "
        f"{move.type} it"
    )


Level = tuple[int | str | None, ...]
Path = tuple[str, ...]


class PastColumn(Struct, frozen=True):
    """A column in its last form.

    Attributes:
        field: The column.
        path: Its path.
        level: The struct that it is in; see `TypePlace.level`.
        schema: The newest schema that has it.
        is_missing: Whether rows without a value for it may have been written since.
    """

    field: DataField
    path: Path
    level: Level
    schema: Schema
    is_missing: bool

    @property
    def restored_field(self) -> DataField:
        """The column as it is restored: nullable where rows have neither value nor default."""
        if not self.is_missing or self.field.initial_default is not None:
            return self.field
        return evolve(self.field, type=self.field.type.with_nullability(nullable=True))

    @property
    def before(self) -> tuple[int, ...]:
        """The ids of the columns before it in its struct, the nearest first."""
        places = (each for each in type_places(self.schema.fields) if each.level == self.level)
        members = [each.field.id for each in places if each.field is not None]
        return tuple(reversed(members[: members.index(self.field.id)]))

    @property
    def owner(self) -> int | None:
        """The id of the named field around it; None at top level."""
        owner = self.level[0]
        return owner if isinstance(owner, int) else None

    @property
    def wrapper_segments(self) -> Path:
        """The wrapper segments, `element` and `value`, between that field and it."""
        return tuple(map(str, self.level[1:]))


class PastColumns:
    """The columns of some schemas, each in its newest form; schemas are read lazily.

    Args:
        schemas: Newest first; none where nothing is known.
        lacks: Whether rows may have been written after a schema, by its id, was the newest.

    Example:
        >>> one, two = Schema.of({"a": "INT", "b": "INT"}), Schema.of({"a": "STRING"})
        >>> past = PastColumns([two, one])
        >>> past.at(("b",), (None,), live_ids={0}).field.id, past.by_id(1).path
        (1, ('b',))
    """

    def __init__(
        self, schemas: Iterable[Schema] = (), lacks: Callable[[int], bool] = lambda _: False
    ) -> None:
        self._rest = self._read_columns(schemas, lacks)
        self._found: dict[int, PastColumn] = {}
        self._called: dict[Path, int] = {}

    def by_id(self, field_id: int) -> PastColumn | None:
        """Return a column by its id; None where there never was one."""
        found = self._found.get(field_id)
        return found or next((each for each in self._rest if each.field.id == field_id), None)

    def at(self, path: Path, level: Level | None, live_ids: Collection[int]) -> PastColumn | None:
        """Return the column last at a path, of those that the table no longer has.

        Args:
            path: The path, by the names then; or the last name at `level`.
            level: The struct that the path's parent leads to now; None where it leads to none.
            live_ids: The ids of the columns that the table has now.
        """

        def fits(past: PastColumn) -> bool:
            is_there = past.level == level and past.path[-1] == path[-1]
            return past.field.id not in live_ids and (is_there or past.path == path)

        return next(filter(fits, self._all_columns()), None)

    def called(self, path: Path) -> PastColumn | None:
        """Return the column that once had a path; reads all schemas."""
        for _ in self._all_columns():
            pass
        field_id = self._called.get(path)
        return None if field_id is None else self._found[field_id]

    def _all_columns(self) -> Iterator[PastColumn]:
        yield from tuple(self._found.values())
        # `yield from` would end the generator for good as soon as a caller has found enough.
        for each in self._rest:  # noqa: UP028
            yield each

    def _read_columns(
        self, schemas: Iterable[Schema], lacks: Callable[[int], bool]
    ) -> Iterator[PastColumn]:
        known: dict[int, DataField] = {}
        for schema in schemas:
            # Schemas share what is the same in them, so that little of each is compared.
            new = [each for each in schema.fields if known.get(each.id) is not each]
            known.update((each.id, each) for each in new)
            is_missing = bool(new) and lacks(schema.id)
            for place in type_places(new):
                column = place.field
                if column is None:
                    continue
                self._called.setdefault(place.path, column.id)
                if column.id not in self._found:
                    past = PastColumn(column, place.path, place.level, schema, is_missing)
                    self._found[column.id] = past
                    yield past


PastOf = Callable[[], PastColumns]
"""Function that returns a table's past columns; only an undrop calls it."""
