"""The state of a table without one event: the fold that blame is compared with.

It is the ledger's own fold, but every fact finds its column by id, whatever the column is called
where the fact is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen
from msgspec import UNSET
from msgspec.structs import replace

from ledger import DataField, InvalidInputError, Move, Schema
from ledger.events import ColumnAdded, ColumnMoved, ColumnUndropped
from ledger.model.types import type_places
from ledger.state import SchemaBuilder

Path = tuple[str, ...]


@frozen
class Step:
    """A fact, and the columns as it met them."""

    fact: Any
    paths: dict[int, Path]


class ContradictionError(Exception):
    """Without the fact, a later one contradicts what is there."""


def paths_of(fields: Sequence[DataField]) -> dict[int, Path]:
    return {each.field.id: each.path for each in type_places(fields) if each.field is not None}


def without(start: Schema, steps: Sequence[Step], missing: int | None) -> tuple[DataField, ...]:
    """Return the columns after all steps but one."""
    builder = SchemaBuilder(start)
    for index, step in enumerate(steps):
        now = paths_of(tuple(builder.columns.values()))
        fact = None if index == missing else _found(step, now)
        if fact is not None:
            try:
                builder.apply(fact)
            except InvalidInputError as error:
                raise ContradictionError from error
    return tuple(builder.columns.values())


def _found(step: Step, now: dict[int, Path]) -> Any:
    """Return a fact in the names of now; None where its column is not there."""
    fact = step.fact
    if isinstance(fact, ColumnAdded | ColumnUndropped):
        path = _renamed(fact.field_names[:-1], step.paths, now)
        if path is None:
            return None
        fact = replace(fact, field_names=(*path, fact.field_names[-1]), parent_id=UNSET)
        return replace(fact, move=_move(fact.move, step, now, step.fact.field_names[:-1]))
    if getattr(fact, "field_id", None) not in now:
        return None if hasattr(fact, "field_id") else fact
    here = now[fact.field_id]
    if isinstance(fact, ColumnMoved):
        old = step.paths[fact.field_id]
        move = _move(fact.move, step, now, old[:-1])
        if move is None:
            return None
        move = replace(move, field_name=here[-1])
        return replace(fact, move=move, field_names=here if len(here) > 1 else ())
    rest = fact.field_names[len(step.paths[fact.field_id]) :]
    return replace(fact, field_names=(*here, *rest), **_no_parent(fact))


def _no_parent(fact: Any) -> dict[str, Any]:
    return {"parent_id": UNSET} if hasattr(fact, "parent_id") else {}


def _renamed(path: Path, then: dict[int, Path], now: dict[int, Path]) -> Path | None:
    """Return where a place is now that was at a path then."""
    for length in range(len(path), 0, -1):
        owner = next((key for key, each in then.items() if each == path[:length]), None)
        if owner is not None:
            return (*now[owner], *path[length:]) if owner in now else None
    return path


def _move(move: Move | None, step: Step, now: dict[int, Path], old_around: Path) -> Move | None:
    if move is None or move.reference_field_name is None:
        return move
    reference = (*old_around, move.reference_field_name)
    owner = next(key for key, each in step.paths.items() if each == reference)
    if owner not in now:
        return None
    return replace(move, reference_field_name=now[owner][-1])
