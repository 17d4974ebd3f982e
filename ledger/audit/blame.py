"""Blame: for each part of a table, the commits that set its current value.

An event is a cause if the part would differ without it. A value that was set again without a change
has no single cause: the event that set it first is named, but does not count as a cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from ledger.audit.column_history import Cause, Held, Life, Lives, Path
from ledger.model.errors import ColumnNotFoundError
from ledger.model.iceberg_objects import SnapshotRef
from ledger.model.messages import first_few, html_table, meant
from ledger.model.names import shown_path


@frozen
class Origin:
    """Origin of one aspect's current value: the event that set it.

    Attributes:
        aspect: `created`, `name`, `type`, `nullability`, `comment`, `default`, `order`, `lost`;
            with `of element` and the like for nested parts; `value` for settings.
        value: The current value as text; None for no value.
        cause: The first event that set the current value, after any other value.
        repeats: Number of later events that set the same value again.
    """

    aspect: str
    value: str | None
    cause: Cause
    repeats: int = 0


@frozen(repr=False)
class Blame:
    """Blame of one column or setting: the events that made it what it is.

    Attributes:
        subject: `column address.zip`, `option bucket`, `tag v1`, `primary key`, ...
        field_id: The column's field id; None for other subjects.
        path: The column's current path; empty for other subjects.
        origins: The origins of its own aspects, oldest first.
        members: The blames of a column's nested columns.
        died: The event that dropped it; None if it exists.
        around: The events that made its enclosing columns, outermost last.
    """

    subject: str
    field_id: int | None
    path: Path
    origins: tuple[Origin, ...]
    members: tuple[Blame, ...] = ()
    died: Cause | None = None
    around: tuple[Cause, ...] = ()

    def __repr__(self) -> str:
        by = [f"version {each.version} by {each.author}" for each in self.causes]
        return f"{type(self).__name__}({self.subject!r}, {first_few(by)})"

    def _repr_html_(self) -> str:
        rows = [
            (each.aspect, each.value, each.cause.version, each.cause.author, each.cause.message)
            for each in self.origins
        ]
        names = ("aspect", "value", "version", "author", "message")
        return html_table(names, rows, caption=self.subject)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The events without which it would differ, nested columns included; oldest first."""
        found = [*self.around, *(each.cause for each in self.origins if not each.repeats)]
        found += [each for member in self.members for each in member.causes]
        if self.died is not None:
            found.append(self.died)
        unique = {(id(each.fact), each.version): each for each in found}
        return tuple(sorted(unique.values(), key=lambda each: each.version))


def blame_column(lives: Lives, path: Path) -> Blame:
    """Return the blame of a column by its current or former path; it may be dropped.

    Raises:
        ColumnNotFoundError: No column ever had that path.
    """
    life = lives.find(path)
    if life is None:
        known = [shown_path(each.path) for each in lives.living()]
        raise ColumnNotFoundError(
            f"no column was ever called {shown_path(path)}; {meant(shown_path(path), known)}"
        )
    return _of_life(lives, life)


def blame_columns(lives: Lives) -> tuple[Blame, ...]:
    """Return the blames of all current columns, in their order."""
    top = lives.orders.get((None, ()))
    return tuple(_of_life(lives, lives.by_id[each]) for each in (top.ids if top else ()))


def blame_settings(lives: Lives) -> tuple[Blame, ...]:
    """Return the blames of all settings: options, comment, keys, order, layout, tags."""
    found = [
        Blame(
            _subject(cell),
            None,
            (),
            (Origin("value", _said(cell, held), held.cause, held.repeats),),
        )
        for cell, held in lives.settings.items()
        if held.value is not None and held.value != ()
    ]
    top = lives.orders.get((None, ()))
    moves = tuple(Origin("order", None, each) for each in (top.causes() if top else ()))
    if moves:
        found.append(Blame("column order", None, (), moves))
    return tuple(sorted(found, key=lambda each: each.subject))


def _of_life(lives: Lives, life: Life) -> Blame:
    orders = [
        (hops, order) for (owner, hops), order in lives.orders.items() if owner == life.field_id
    ]
    members = (lives.by_id[each] for _, order in orders for each in order.ids)
    origins = [
        *_own(life),
        *(Origin("lost", _lost(each), each) for each in life.lost.values()),
        *(Origin("order", None, each) for _, order in orders for each in order.causes()),
    ]
    return Blame(
        f"column {shown_path(life.path)}",
        life.field_id,
        life.path,
        tuple(sorted(origins, key=lambda each: each.cause.version)),
        tuple(_of_life(lives, each) for each in members),
        life.died,
        tuple(_around(life)),
    )


def _around(life: Life) -> Iterator[Cause]:
    while life.parent is not None:
        life = life.parent
        yield life.added
        if life.back is not None:
            yield life.back


def _own(life: Life) -> Iterator[Origin]:
    yield Origin("created", life.first_name, life.added)
    for aspect, held in life.aspects.items():
        if held.cause is not life.added:
            yield Origin(_aspect(aspect), _value(held.value, aspect[0]), held.cause, held.repeats)


def _aspect(aspect: tuple[str, ...]) -> str:
    name, *rest = aspect
    return f"{name} of {'.'.join(rest)}" if rest else name


def _value(value: Any, aspect: str) -> str | None:
    if aspect == "nullability":
        return "NULL" if value else "NOT NULL"
    return None if value is None else str(value)


def _lost(cause: Cause) -> str:
    names = getattr(cause.fact, "field_names", ())
    return shown_path(tuple(names)) if names else "a member"


_SUBJECTS: Mapping[str, str] = {
    "option": "option",
    "tag": "tag",
    "ref": "ref",
    "comment": "comment",
    "primaryKey": "primary key",
    "partitionKeys": "partition keys",
    "identifierFields": "identifier fields",
    "partitionSpec": "partition spec",
    "sortOrder": "sort order",
}


def _subject(cell: tuple[Any, ...]) -> str:
    return " ".join([_SUBJECTS.get(cell[0], cell[0]), *map(str, cell[1:])])


def _said(cell: tuple[Any, ...], held: Held) -> str:
    match cell[0], held.value:
        case "tag", (snapshot_id, _):
            return f"snapshot {snapshot_id}"
        case "ref", SnapshotRef(snapshot_id=snapshot_id, type=kind):
            return f"{kind} at snapshot {snapshot_id}"
        case "partitionSpec", (_, *fields):
            return ", ".join(f"{name}={transform}" for _, transform, name in fields) or "none"
        case "sortOrder", fields:
            return ", ".join(f"{each[1]} {each[2]}" for each in fields) or "unsorted"
        case _, tuple(names):
            return ", ".join(map(str, names))
        case _, value:
            return str(value)


def flat(blames: Iterable[Blame]) -> Iterator[Blame]:
    """Yield each blame, followed by those of its nested columns."""
    for each in blames:
        yield each
        yield from flat(each.members)
