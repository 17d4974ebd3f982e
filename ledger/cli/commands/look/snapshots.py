"""`lakeledger snapshots`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from attrs import evolve
from cyclopts import Parameter, validators

from ledger.cli.options import OnBranch, Place, TableName
from ledger.cli.plugins import view
from ledger.cli.screen import Cell, Screen
from ledger.events.snapshot_events import RolledBack, SnapshotCommitted
from ledger.evolution.state import TableState
from ledger.evolution.table.born import born_snapshot
from ledger.evolution.table.snapshot_fold import snapshot_of
from ledger.history.older import state_at_snapshot
from ledger.log.travel import effective_millis
from ledger.model.excerpt import moment
from ledger.model.instant import ClockCorrection, true_millis
from ledger.model.snapshot import Snapshot
from ledger.table import Table

COLUMNS = ("snapshot", "version", "time (UTC)", "kind", "schema", "rows", "change", "tags")


class Listed(NamedTuple):
    """A snapshot, and the commit that it came with."""

    version: int
    snapshot: Snapshot


def snapshots(
    name: TableName,
    /,
    *,
    limit: Annotated[
        int,
        Parameter(alias="-n", validator=validators.Number(gte=1), help="How many at most."),
    ] = 50,
    branch: OnBranch = None,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """List a table's snapshots, newest first: those not expired, and those kept by a tag.

    In JSON, each `snapshot` is the DLF metadata API's object, `version` the commit it came with.

    Example:
        lakeledger snapshots shop.flights --limit 10
    """
    table = place.table(name)
    state = table.state if branch is None else table.at(branch=branch).state
    ids = list(state.snapshot_ids)
    found = listed(table, state, ids[:limit])
    screen = place.screen
    document = {
        "table": str(table.identifier),
        "snapshots": [
            {
                "version": each.version,
                "tags": tags_of(state, each.snapshot.id),
                "snapshot": view("json")(each.snapshot),
            }
            for each in (found if screen.output != "text" else ())
        ],
    }

    def text(to: Screen) -> None:
        if not found:
            to.line(f"{table.identifier} has no snapshots yet")
        to.table(COLUMNS, rows(state, found))

    screen.result(document, text)
    if len(ids) > limit:
        screen.notice(f"{len(ids) - limit:,} more are not shown; --limit {len(ids)} shows all")


def tags_of(state: TableState, snapshot_id: int) -> list[str]:
    """Return the names of a snapshot's tags, sorted."""
    return sorted(name for name, tag in state.tags.items() if tag.snapshot_id == snapshot_id)


def listed(table: Table, state: TableState, ids: list[int]) -> list[Listed]:
    """Return some of the snapshots of a table, in the order of their ids given."""
    if state.born is not None:
        born, schema_id = state.born, state.schema.id
        return [
            Listed(born.added_in[each], born_snapshot(born.snapshots[each], schema_id))
            for each in ids
        ]
    if state.paimon is not None:
        every, added_in = state.paimon.every, state.paimon.added_in
        return [Listed(added_in[each], every[each]) for each in ids]
    of_main = () if state.on_branch is not None else ids
    kept = [each for each in of_main if each >= state.earliest_snapshot_id]
    first = state_at_snapshot(table.log, min(kept)).version if kept else state.version + 1
    known = table.state.corrections
    found = {each.snapshot.id: each for each in _since(table, first, state.version, known)}
    for snapshot_id in ids:
        if snapshot_id not in found:
            then = state_at_snapshot(table.log, snapshot_id)
            if then.snapshot is not None:
                then_millis = true_millis(known, then.version, then.snapshot.time_millis)
                snapshot = evolve(then.snapshot, time_millis=then_millis)
                found[snapshot_id] = Listed(then.version, snapshot)
    return [found[each] for each in ids if each in found]


def _since(
    table: Table, first: int, last: int, corrections: Sequence[ClockCorrection]
) -> Iterator[Listed]:
    for read in table.log.commits(first, last):
        commit = read.commit
        for transaction in commit.transactions:
            for event in transaction.events:
                if isinstance(event, SnapshotCommitted | RolledBack):
                    moment_millis = effective_millis(commit, corrections)
                    yield Listed(commit.version, snapshot_of(event, moment_millis))


def rows(state: TableState, found: list[Listed]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row of `COLUMNS` for every snapshot."""
    for version, snapshot in found:
        yield (
            # An id is there to be copied, and Iceberg's have nineteen digits.
            str(snapshot.id),
            version,
            moment(snapshot.time_millis),
            snapshot.commit_kind,
            snapshot.schema_id,
            snapshot.total_record_count,
            f"{snapshot.delta_record_count:+,}",
            ", ".join(tags_of(state, snapshot.id)),
        )
