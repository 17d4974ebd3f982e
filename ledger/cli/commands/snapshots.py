"""The command `snapshots`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from ledger.audit.snapshots import ListedSnapshot, listed, tags_of
from ledger.cli.options import LedgerFlags, OnBranch, TableName, one_or_more
from ledger.cli.output import Cell, Screen
from ledger.cli.plugins import view
from ledger.model.messages import moment
from ledger.state.table import TableState

COLUMNS = ("snapshot", "version", "time (UTC)", "kind", "schema", "rows", "change", "tags")


def snapshots(
    name: TableName,
    /,
    *,
    limit: Annotated[
        int,
        Parameter(alias="-n", validator=one_or_more, help="How many at most."),
    ] = 50,
    branch: OnBranch = None,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """List a table's snapshots, newest first: those not expired, and those kept by a tag.

    In JSON, each `snapshot` is the DLF metadata API's object, `version` the commit it came with.

    Example:
        lakeledger snapshots shop.flights --limit 10
    """
    table = place.table(name)
    state = table.state if branch is None else table.at(branch=branch).state
    ids = list(state.snapshot_ids)
    found = listed(table.log, state, ids[:limit], table.state.corrections)
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


def rows(state: TableState, found: list[ListedSnapshot]) -> Iterator[tuple[Cell, ...]]:
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
