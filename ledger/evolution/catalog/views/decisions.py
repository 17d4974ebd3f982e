"""What requests about views become; conflicts are found cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ledger.events.catalog_events import (
    CatalogEvent,
    ViewAltered,
    ViewCreated,
    ViewDropped,
    ViewRenamed,
)
from ledger.evolution.bounds import check_view
from ledger.evolution.catalog.names import check_free, check_rename, name_record
from ledger.evolution.catalog.requests import AlterView, CreateView, DropView, RenameView
from ledger.evolution.catalog.standing import Standing
from ledger.evolution.catalog.state import ViewEntry
from ledger.evolution.catalog.views.cells import (
    VIEW_OPERATIONS,
    asked_cells,
    view_cell,
    view_cells,
    view_to_record,
)
from ledger.model.errors import AlreadyExistsError, InvalidChangeError, NotFoundError
from ledger.model.identifier import Identifier


def create_view(request: CreateView, standing: Standing) -> tuple[CatalogEvent, ...]:
    """Return the creation of a view whose name and id are free."""
    check_free(request.identifier, standing)
    check_view(request.schema.fields)
    holder = standing.state.view_by_id(request.view_id)
    if holder is not None:
        raise standing.refusal(
            f"view id {request.view_id}",
            lambda event: isinstance(event, ViewCreated) and event.view_id == request.view_id,
            AlreadyExistsError(
                f"view id {request.view_id} is {holder.identifier}'s; take a fresh one"
            ),
        )
    event = ViewCreated(
        identifier=name_record(request.identifier),
        view_id=request.view_id,
        schema=view_to_record(request.schema),
    )
    return (event,)


def alter_view(request: AlterView, standing: Standing) -> tuple[CatalogEvent, ...]:
    """Return those changes that do not hold already; a cell that a winner set is a conflict."""
    view = _same_view(request.identifier, standing)
    asked = asked_cells(request.changes)
    now = view_cells(view.schema)
    decided = set()
    for cell, value in asked.items():
        sets_it = _sets_cell(view.view_id, cell)
        if not standing.changed_since(sets_it):
            continue
        if now.get(cell) != value:
            refused = InvalidChangeError(
                f"{cell} of view {view.identifier} is {now.get(cell)!r} now, not {value!r}; "
                "look at it and ask again"
            )
            raise standing.refusal(f"view {view.identifier} {cell}", sets_it, refused)
        decided.add(cell)
    open_changes = [each for each in request.changes if view_cell(each) not in decided]
    _check_dialects(view, open_changes)
    pending = tuple(
        each for each in open_changes if now.get(view_cell(each)) != asked[view_cell(each)]
    )
    if not pending:
        return ()
    name = name_record(view.identifier)
    return (ViewAltered(identifier=name, view_id=view.view_id, changes=pending),)


def rename_view(request: RenameView, standing: Standing) -> tuple[CatalogEvent, ...]:
    """Return the rename of a view, unless it has that name."""
    view = _same_view(request.source, standing)
    if view.identifier == request.destination:
        return ()
    check_rename(
        request.source,
        view.identifier,
        standing,
        lambda event: isinstance(event, ViewRenamed) and event.view_id == view.view_id,
    )
    check_free(request.destination, standing)
    source, destination = name_record(view.identifier), name_record(request.destination)
    return (ViewRenamed(source=source, destination=destination, view_id=view.view_id),)


def drop_view(request: DropView, standing: Standing) -> tuple[CatalogEvent, ...]:
    """Return the drop of a view, unless a winner dropped it."""
    view_id = standing.base.view(request.identifier).view_id
    found = standing.state.view_by_id(view_id)
    if found is None:
        return ()
    return (ViewDropped(identifier=name_record(found.identifier), view_id=view_id),)


def _same_view(identifier: Identifier, standing: Standing) -> ViewEntry:
    view_id = standing.base.view(identifier).view_id
    found = standing.state.view_by_id(view_id)
    if found is None:
        raise standing.refusal(
            f"view {identifier}",
            lambda event: isinstance(event, ViewDropped) and event.view_id == view_id,
            NotFoundError(f"view {identifier} was dropped; look again before you change it"),
        )
    return found


def _sets_cell(view_id: str, cell: str) -> Callable[[CatalogEvent], bool]:
    def test(event: CatalogEvent) -> bool:
        if not isinstance(event, ViewAltered) or event.view_id != view_id:
            return False
        return any(view_cell(change) == cell for change in event.changes)

    return test


def _check_dialects(view: ViewEntry, changes: Iterable[Any]) -> None:
    there = set(view.schema.dialects)
    for change in changes:
        wanted = VIEW_OPERATIONS[type(change)].dialect
        if wanted is None:
            continue
        name = change.dialect
        if wanted == "absent":
            if name in there:
                raise AlreadyExistsError(
                    f"view {view.identifier} has dialect {name!r}; update it instead"
                )
            there.add(name)
            continue
        if name not in there:
            raise NotFoundError(
                f"view {view.identifier} has no dialect {name!r}, only "
                f"{sorted(there)}; add it instead"
            )
        if VIEW_OPERATIONS[type(change)].value(change) is None:
            there.discard(name)
