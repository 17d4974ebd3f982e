"""Deciding that a dropped column comes back: which one, where to, and what options say of it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from ledger.events.schema_changes import Move, UndropColumn
from ledger.events.schema_events import ColumnUndropped
from ledger.evolution.columns import directives
from ledger.evolution.columns.adding import read_as_null
from ledger.evolution.columns.draft import Anchor, SchemaDraft, struct_around
from ledger.evolution.options.deciding import option_event
from ledger.evolution.options.naming import ColumnNames
from ledger.evolution.options.reading import comma_list
from ledger.evolution.refusals import argument, unsupported
from ledger.evolution.tree.past import Level, PastColumn, Path
from ledger.evolution.tree.paths import dotted, member_named
from ledger.model.errors import ColumnExistsError, ColumnNotFoundError
from ledger.model.messages.excerpt import excerpt
from ledger.model.types.walk import type_places, walk_ids
from ledger.model.types.wire import type_to_wire


def decide_undrop(draft: SchemaDraft, change: UndropColumn) -> Anchor:
    """Bring a column back as it was last, under its own ids, and what options said of it.

    It may be NULL where rows were written since that have no value for it.

    Raises:
        InvalidChangeError: The column stands, or what it stood in is gone; it has a default that
            Paimon's readers do not know, or holds BLOBs and would be called otherwise.
        ColumnExistsError: Its name is taken.
        ColumnNotFoundError: No such column was ever dropped.
    """
    past = _past_column(draft, change)
    around = _around(draft, past)
    name = change.field_names[-1] if change.field_names else past.path[-1]
    path = (*around, name)
    _check_place(draft, change, past, path)
    siblings, parents = struct_around(draft, path)
    if member_named(siblings, name) is not None:
        raise ColumnExistsError(
            f"column {dotted(path)} exists already: rename it first, or bring the dropped one "
            f"(id {past.field.id}) back under another name"
        )
    move = change.move or _move(past, name, [(each.id, each.name) for each in siblings])
    owners = [each for each in parents if each is not None]
    column = past.returned
    draft.record(
        ColumnUndropped(
            field_names=path,
            data_type=type_to_wire(column.type),
            comment=column.description,
            move=move,
            default_value=column.default_value,
            initial_default=column.initial_default,
            field_id=column.id,
            parent_id=owners[-1] if owners else UNSET,
        )
    )
    if len(path) == 1 and draft.rules.paimon:
        for key, value in _relisted(draft, past, name):
            draft.record(option_event(key, value))
    reference = None if change.move is None else _reference(change.move, draft, path)
    return Anchor((*parents, None), reference, assigned=(column.id,))


def _standing(draft: SchemaDraft) -> set[int]:
    columns = draft.working.columns.values()
    return {found for each in columns for found in (each.id, *walk_ids(each.type))}


def _past_column(draft: SchemaDraft, change: UndropColumn) -> PastColumn:
    standing, path = _standing(draft), change.field_names
    if change.field_id is not None:
        found = draft.past.by_id(change.field_id)
        if change.field_id in standing:
            there = ColumnNames(tuple(draft.working.columns.values())).path(change.field_id)
            raise argument(
                f"column {dotted(there or ())} (id {change.field_id}) was not dropped; there is "
                "nothing to bring back"
            )
        if found is None:
            raise ColumnNotFoundError(
                f"no column of id {excerpt(change.field_id)} was dropped; lakeledger log --kind "
                "dropColumn tells those that were"
            )
        return found
    if not path:
        raise argument("fieldNames and fieldId are both missing: name the column that was dropped")
    found = draft.past.at(path, _level(draft, path[:-1]), standing)
    if found is None:
        raise _not_dropped(draft, path, standing)
    return found


def _level(draft: SchemaDraft, around: Path) -> Level | None:
    """Return the struct that a path leads to now; None where it leads to none."""
    if not around:
        return (None,)
    places = type_places(draft.working.columns.values())
    found = next((each for each in places if each.path == around), None)
    if found is None:
        return None
    return (found.field.id,) if found.field is not None else (*found.level, around[-1])


def _not_dropped(draft: SchemaDraft, path: Path, standing: set[int]) -> Exception:
    said = dotted(path)
    places = type_places(draft.working.columns.values())
    if any(each.path == path for each in places):
        return argument(f"column {said} was not dropped; there is nothing to bring back")
    called = draft.past.called(path)
    if called is None:
        return ColumnNotFoundError(f"no column {said} was ever dropped; look at lakeledger blame")
    now = ColumnNames(tuple(draft.working.columns.values())).path(called.field.id)
    if called.field.id in standing:
        return argument(f"column {said} was renamed, not dropped: it is {dotted(now or ())} now")
    return ColumnNotFoundError(
        f"column {said} (id {called.field.id}) was called {dotted(called.path)} when it was "
        "dropped; bring it back by that name"
    )


def _around(draft: SchemaDraft, past: PastColumn) -> Path:
    """Return the path of the struct that a column stood in, as it is called now."""
    if past.owner is None:
        return ()
    found = ColumnNames(tuple(draft.working.columns.values())).path(past.owner)
    if found is None:
        raise argument(
            f"column {dotted(past.path)} stood inside id {past.owner}, which was dropped, too; "
            "bring that back, and what was dropped with it comes along"
        )
    return (*found, *past.hops)


def _check_place(draft: SchemaDraft, change: UndropColumn, past: PastColumn, path: Path) -> None:
    asked = change.field_names
    if asked and asked[:-1] not in (path[:-1], past.path[:-1]):
        raise argument(
            f"column {dotted(past.path)} (id {past.field.id}) cannot come back as "
            f"{dotted(asked)}: columns never change their struct; write {dotted(path)}"
        )
    if not draft.rules.paimon:
        return
    if past.field.initial_default is not None:
        raise read_as_null(dotted(path))
    if directives.is_blob(past.field.type) and path[-1] != past.path[-1]:
        raise unsupported(f"column {past.path[-1]} holds BLOBs, which are found by its name")


def _move(past: PastColumn, name: str, siblings: list[tuple[int, str]]) -> Move | None:
    """Return where it stood among those that are still there."""
    names = dict(siblings)
    nearest = next((each for each in past.before if each in names), None)
    if nearest is None:
        return Move(name, "FIRST")
    if siblings[-1][0] == nearest:
        return None
    return Move(name, "AFTER", names[nearest])


def _reference(move: Move, draft: SchemaDraft, path: Path) -> int | None:
    siblings, _ = struct_around(draft, path)
    found = member_named(siblings, move.reference_field_name or "")
    return None if found is None else found.id


def _relisted(draft: SchemaDraft, past: PastColumn, name: str) -> Iterator[directives.OptionEdit]:
    """Yield what the options said of a BLOB, VECTOR or MAP before its drop made them forget."""
    then, old = past.schema.options, past.path[-1]
    for key, rest in directives.unlisting(old, past.field.type, then):
        own = key.replace(f".{old}.", f".{name}.")
        if own != key or key not in directives.LISTS:
            yield own, then[key]
        elif draft.working.options.get(key) == rest and name == old:
            yield key, then[key]
        else:
            listed = comma_list(draft.working.options.get(key) or "")
            yield key, ",".join(dict.fromkeys((*listed, name)))
