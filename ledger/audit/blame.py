"""Blame: for each part of a table, the commits that set its current value.

An event is a cause if the part would differ without its transaction, of whose values for one part
only the last counts. A value that a later transaction set again has no single cause: the event that
set it first is named, but does not count as a cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from ledger.audit.cause import Cause
from ledger.audit.column_history import ColumnHistories, ColumnHistory, CurrentValue, Path
from ledger.model.errors import ColumnNotFoundError
from ledger.model.iceberg_objects import SnapshotRef
from ledger.model.messages import first_few, html_table, name_hint
from ledger.model.names import quote_path


@frozen
class Origin:
    """Origin of one aspect's current value: the event that set it.

    Attributes:
        aspect: `created`, `name`, `type`, `nullability`, `comment`, `default`, `order`, `lost`;
            with `of element` and the like for nested parts; `value` for settings.
        value: The current value as text; None for no value.
        cause: The first event that set the current value, after any other value.
        repeats: Number of later transactions that set the same value again.
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
        """The events of transactions without which it would differ, nested columns included.

        Oldest first.
        """
        found = [*self.around, *(each.cause for each in self.origins if not each.repeats)]
        found += [each for member in self.members for each in member.causes]
        if self.died is not None:
            found.append(self.died)
        unique = {(id(each.fact), each.version): each for each in found}
        return tuple(sorted(unique.values(), key=lambda each: each.version))


def blame_column(histories: ColumnHistories, path: Path) -> Blame:
    """Return the blame of a column by its current or former path; it may be dropped.

    Raises:
        ColumnNotFoundError: No column ever had that path.
    """
    history = histories.find(path)
    if history is None:
        known = [quote_path(each.path) for each in histories.current_columns()]
        raise ColumnNotFoundError(
            f"no column was ever called {quote_path(path)}; {name_hint(quote_path(path), known)}"
        )
    return _blame_of_history(histories, history)


def blame_columns(histories: ColumnHistories) -> tuple[Blame, ...]:
    """Return the blames of all current columns, in their order."""
    ids = histories.top_level().ids
    return tuple(_blame_of_history(histories, histories.by_id[each]) for each in ids)


def blame_settings(histories: ColumnHistories) -> tuple[Blame, ...]:
    """Return the blames of all settings: options, comment, keys, order, layout, tags."""
    found = [
        Blame(
            _setting_name(cell),
            None,
            (),
            (Origin("value", _setting_text(cell, held), held.cause, held.repeats),),
        )
        for cell, held in histories.settings.items()
        if held.value is not None and held.value != ()
    ]
    moves = tuple(Origin("order", None, each) for each in histories.top_level().causes())
    if moves:
        found.append(Blame("column order", None, (), moves))
    return tuple(sorted(found, key=lambda each: each.subject))


def _blame_of_history(histories: ColumnHistories, history: ColumnHistory) -> Blame:
    orders = histories.orders.get(history.field_id, {}).values()
    members = (histories.by_id[each] for order in orders for each in order.ids)
    origins = [
        *_own_origins(history),
        *(Origin("lost", _lost_member_name(each), each) for each in history.lost.values()),
        *(Origin("order", None, each) for order in orders for each in order.causes()),
    ]
    return Blame(
        f"column {quote_path(history.path)}",
        history.field_id,
        history.path,
        tuple(sorted(origins, key=lambda each: each.cause.version)),
        tuple(_blame_of_history(histories, each) for each in members),
        history.died,
        tuple(_enclosing_causes(history)),
    )


def _enclosing_causes(history: ColumnHistory) -> Iterator[Cause]:
    while history.parent is not None:
        history = history.parent
        yield history.added
        if history.back is not None:
            yield history.back


def _own_origins(history: ColumnHistory) -> Iterator[Origin]:
    yield Origin("created", history.first_name, history.added)
    for aspect, held in history.aspects.items():
        if held.cause is not history.added:
            yield Origin(
                _aspect_text(aspect), _value_text(held.value, aspect[0]), held.cause, held.repeats
            )


def _aspect_text(aspect: tuple[str, ...]) -> str:
    name, *rest = aspect
    return f"{name} of {'.'.join(rest)}" if rest else name


def _value_text(value: Any, aspect: str) -> str | None:
    if aspect == "nullability":
        return "NULL" if value else "NOT NULL"
    return None if value is None else str(value)


def _lost_member_name(cause: Cause) -> str:
    names = getattr(cause.fact, "field_names", ())
    return quote_path(tuple(names)) if names else "a member"


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


def _setting_name(cell: tuple[Any, ...]) -> str:
    return " ".join([_SUBJECTS.get(cell[0], cell[0]), *map(str, cell[1:])])


def _setting_text(cell: tuple[Any, ...], held: CurrentValue) -> str:
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


def flatten_blames(blames: Iterable[Blame]) -> Iterator[Blame]:
    """Yield each blame, followed by those of its nested columns."""
    for each in blames:
        yield each
        yield from flatten_blames(each.members)
