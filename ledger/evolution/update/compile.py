"""From an update against a schema as it was to changes that are applied one after the other.

The order: columns change under their old names; those that go, go; names change, the innermost
first; then new columns come, under the new names, in the order of their ids; columns move; and the
identifier fields are set in the end.

Names that change places (a to b, b to a) need one that nobody has in between, since no fact may
give two columns one name. It is the old name with `_` behind it, as often as needed; it stands in
the log inside this one transaction, and no reader ever sees a schema that has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UnsetType

from ledger.events.schema_changes import (
    AddColumn,
    Move,
    MoveType,
    SchemaChange,
    SetIdentifierFields,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.evolution.refusals import argument
from ledger.evolution.tree.paths import dotted
from ledger.evolution.update.names import Path
from ledger.evolution.update.pending import Addition, Edit, Pending, StructUpdate, Target
from ledger.model.errors import ColumnNotFoundError
from ledger.model.types.wire import type_to_wire

_PLACE_OPTION = "add-column-before-partition"


def compile_changes(pending: Pending) -> tuple[SchemaChange, ...]:
    """Return the changes that together do what is pending; none when there is nothing to do.

    Raises:
        InvalidChangeError: Two columns of a struct would have one name, a struct would be empty,
            or a column that moves is gone.
        ColumnNotFoundError: An identifier field does not exist.
    """
    structs = [StructUpdate.of(pending, parent) for parent in _touched(pending)]
    return (
        *_edits(pending),
        *(change for each in structs for change in each.drops()),
        *(change for each in structs for change in each.renames_in_order()),
        *(_added(pending, each) for each in pending.additions),
        *_write_defaults(pending),
        *(change for each in structs for change in each.late_drops(_now(pending, each.parent))),
        *(change for each in structs for change in _moves(pending, each)),
        *_identifiers(pending),
    )


def _touched(pending: Pending) -> list[Path]:
    """Return the structs whose members come, go, move or are renamed, the innermost first."""
    renamed = (path for path, edit in pending.edits.items() if edit.new_name)
    parents = {
        *(path[:-1] for path in pending.deleted),
        *(path[:-1] for path in renamed),
        *(each.parent for each in pending.additions),
        *(each.parent for each in pending.placings),
    }
    left = [each for each in parents if not pending.is_deleted(each)]
    return sorted(left, key=lambda each: (-len(each), each))


def _edits(pending: Pending) -> Iterator[SchemaChange]:
    for path, edit in pending.edits.items():
        if not pending.is_deleted(path):
            yield from _edit(path, edit)


def _edit(path: Path, edit: Edit) -> Iterator[SchemaChange]:
    if not isinstance(edit.type, UnsetType):
        yield UpdateColumnType(path, type_to_wire(edit.type), keep_nullability=True)
    if not isinstance(edit.nullable, UnsetType):
        yield UpdateColumnNullability(path, edit.nullable)
    if not isinstance(edit.doc, UnsetType):
        yield UpdateColumnComment(path, edit.doc)
    if not isinstance(edit.default, UnsetType):
        yield UpdateColumnDefaultValue(path, edit.default)


def _now(pending: Pending, path: Path) -> Path:
    """Return a path of the schema before as it is once the names have changed."""
    names = list(path)
    for depth in range(1, len(path) + 1):
        edit = pending.edits.get(path[:depth])
        if edit is not None and not isinstance(edit.new_name, UnsetType):
            names[depth - 1] = edit.new_name
    return tuple(names)


def _path(pending: Pending, target: Target) -> Path:
    if isinstance(target, Addition):
        return (*_now(pending, target.parent), target.name)
    return _now(pending, target)


def _added(pending: Pending, column: Addition) -> AddColumn:
    schema = pending.schema
    # Paimon's option would put it elsewhere; here a new column goes last.
    aside = not column.parent and schema.partition_keys and _PLACE_OPTION in schema.options
    return AddColumn(
        _path(pending, column),
        type_to_wire(column.type),
        column.doc,
        Move(column.name, "LAST") if aside else None,
        column.default,
    )


def _write_defaults(pending: Pending) -> Iterator[SchemaChange]:
    for each in pending.additions:
        if not isinstance(each.write_default, UnsetType) and each.write_default != each.default:
            yield UpdateColumnDefaultValue(_path(pending, each), each.write_default)


def _moves(pending: Pending, struct: StructUpdate) -> Iterator[SchemaChange]:
    order = struct.result()
    for placing in pending.placings:
        if placing.parent != struct.parent:
            continue
        for each in (placing.column, placing.reference):
            if each is not None and each not in order:
                raise argument(f"column {dotted(_path(pending, each))} is deleted; it cannot move")
        rest = [each for each in order if each != placing.column]
        place = 0
        if placing.reference is not None:
            place = rest.index(placing.reference) + (placing.type == "AFTER")
        moved = [*rest[:place], placing.column, *rest[place:]]
        if moved != order:
            yield _move(pending, placing.column, placing.reference, placing.type)
        order = moved


def _move(
    pending: Pending, column: Target, reference: Target | None, kind: MoveType
) -> UpdateColumnPosition:
    path = _path(pending, column)
    beside = None if reference is None else _path(pending, reference)[-1]
    # The path of a top-level column says no more than the move itself.
    return UpdateColumnPosition(Move(path[-1], kind, beside), path if len(path) > 1 else ())


def _identifiers(pending: Pending) -> Iterator[SchemaChange]:
    if pending.identifier_names is None:
        return
    paths: list[Path] = []
    ids: set[int | None] = set()
    for name in pending.identifier_names:
        spot, added = pending.find(name), pending.addition(name)
        if spot is not None and not pending.is_deleted(spot.path):
            paths.append(_now(pending, spot.path))
            ids.add(spot.column.id if spot.column else None)
        elif added is not None:
            paths.append(_path(pending, added))
            ids.add(None)
        else:
            raise ColumnNotFoundError(f"column {name} does not exist; it cannot identify a row")
    if ids != set(pending.schema.identifier_field_ids):
        yield SetIdentifierFields(tuple(paths))
