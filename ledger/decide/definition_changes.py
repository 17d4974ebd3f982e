"""Changes of a view or function that do not hold yet, decided cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ledger.decide.catalog_facts import CatalogContext
from ledger.events.catalog import CatalogEvent, ViewChange
from ledger.events.functions import FunctionChange
from ledger.model.errors import AlreadyExistsError, InvalidChangeError, NotFoundError
from ledger.state.definitions import (
    Cell,
    changed_cell,
    changed_cell_values,
    find_contradiction,
)

ChangeT = TypeVar("ChangeT", ViewChange, FunctionChange)


def pending_changes(
    subject: str,
    changes: Sequence[ChangeT],
    now: Mapping[Cell, Any],
    changes_of: Callable[[CatalogEvent], Iterable[ViewChange | FunctionChange]],
    catalog: CatalogContext,
) -> tuple[ChangeT, ...]:
    """Return the changes that do not hold already.

    Args:
        subject: The view or function, for messages: `view shop.recent`.
        changes: The requested changes.
        now: The cells that have a value.
        changes_of: Returns the changes that an event made to the same view or function.
        catalog: The states and winners to decide on.

    Raises:
        CommitConflictError: A winner set one of the cells to another value.
        AlreadyExistsError: A dialect or definition to add exists.
        NotFoundError: One to update or drop does not exist.
    """
    asked = changed_cell_values(changes)
    decided = set()
    for cell, value in asked.items():
        sets_it = _make_cell_test(cell, changes_of)
        if not catalog.has_winner_event(sets_it):
            continue
        if now.get(cell) != value:
            refused = InvalidChangeError(
                f"{cell} of {subject} is {now.get(cell)!r} now, not {value!r}; check it and retry"
            )
            raise catalog.refusal(f"{subject} {cell}", sets_it, refused)
        decided.add(cell)
    undecided = [each for each in changes if changed_cell(each) not in decided]
    _check_existence(subject, undecided, now)
    return tuple(
        each for each in undecided if now.get(changed_cell(each)) != asked[changed_cell(each)]
    )


def _make_cell_test(
    cell: Cell, changes_of: Callable[[CatalogEvent], Iterable[ViewChange | FunctionChange]]
) -> Callable[[CatalogEvent], bool]:
    return lambda event: any(changed_cell(each) == cell for each in changes_of(event))


def _check_existence(
    subject: str, changes: Iterable[ViewChange | FunctionChange], now: Iterable[Cell]
) -> None:
    found = find_contradiction(now, changes)
    if found is None:
        return
    what = f"{found.cell.section} {found.cell.key!r}"
    if found.is_present:
        raise AlreadyExistsError(f"{subject} has {what}; update it instead")
    raise NotFoundError(f"{subject} has no {what}, only {[*found.names]}; add it instead")
