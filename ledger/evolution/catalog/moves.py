"""What is asked of a ledger's place: a move, another way to it, a copy."""

from __future__ import annotations

from ledger.events.catalog_events import CatalogEvent, LedgerCopied, LedgerMoved, PlaceAliased
from ledger.evolution.catalog.requests import AliasLedger, CopyLedger, MoveLedger
from ledger.evolution.catalog.standing import Standing
from ledger.locations import is_absolute
from ledger.model.errors import InvalidChangeError


def move_ledger(request: MoveLedger, standing: Standing) -> tuple[CatalogEvent, ...]:
    """Return the event of a move; none where the ledger is said to be there already."""
    if standing.state.place == request.place:
        return ()
    _refuse_other(request.was, standing)
    return (LedgerMoved(request.place),)


def alias_ledger(request: AliasLedger, standing: Standing) -> tuple[CatalogEvent, ...]:
    """Return the event of another way to a ledger; none where it is known."""
    state = standing.state
    is_said = state.place == request.of
    if request.place == request.of or (is_said and request.place in state.aliases):
        return ()
    _refuse_other(request.was, standing)
    alias = PlaceAliased(request.place)
    return (alias,) if is_said else (LedgerMoved(request.of), alias)


def copy_ledger(request: CopyLedger, standing: Standing) -> tuple[CatalogEvent, ...]:
    """Return the event that makes a ledger another one; external tables stay the original's."""
    _refuse_other(request.was, standing)
    without = (each.table_id for each in standing.state.tables.values() if is_absolute(each.path))
    return (
        LedgerCopied(
            place=request.place,
            ledger_id=request.ledger_id,
            copied_from=request.copied_from,
            without=tuple(sorted(without)),
        ),
    )


def _refuse_other(was: str, standing: Standing) -> None:
    """Refuse to say something of a place that somebody else has said another thing of meanwhile.

    Raises:
        CommitConflictError: The ledger moved or became a copy, between what was read and this.
        InvalidChangeError: It did so before.
    """
    if standing.state.place != was:
        raise standing.refusal(
            "place",
            _tells_place,
            InvalidChangeError(
                f"the ledger is said to be at {standing.state.place} by now; look at it with "
                "lakeledger doctor, then ask again"
            ),
        )


def _tells_place(event: CatalogEvent) -> bool:
    return isinstance(event, LedgerMoved | LedgerCopied)
