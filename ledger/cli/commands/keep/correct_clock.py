"""`lakeledger correct-clock`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, LedgerFlags, read_time
from ledger.cli.screen import Screen
from ledger.ledger import Ledger
from ledger.log.clock import is_far
from ledger.model.errors import InvalidChangeError
from ledger.model.messages.excerpt import moment
from ledger.plan import ClockPlan
from ledger.table import Table

_CATALOG: Final = "catalog"
_Stream: TypeAlias = Ledger | Table


def correct_clock(
    name: Annotated[
        str | None,
        Parameter(help="DATABASE.TABLE, or catalog; none: every stream a minute ahead or more."),
    ] = None,
    /,
    *,
    true_time: Annotated[
        str | None,
        Parameter(help="When the commits ahead happened, at the latest; now if left out."),
    ] = None,
    dry_run: Annotated[
        bool, Parameter(negative="", show_default=False, help="Only say what would be corrected.")
    ] = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Correct what a clock that was ahead left: reading by --timestamp is right again.

    The commits that say a later time than the true one are taken to be of that one, by a further
    commit; none is rewritten. This machine's clock has to be right.

    Example:
        lakeledger correct-clock --dry-run
    """
    if name is None and true_time is not None:
        raise UsageError("--true-time is of one stream: name a table, or catalog")
    latest = None if true_time is None else read_time(true_time)
    lake = place.open()
    found: list[dict[str, Any]] = []
    for stream_name, stream, plan in _plans(lake, name, latest):
        facts = _facts(stream_name, plan)
        if not dry_run:
            facts["version"] = stream.correct_clock(latest, **writing.options()).version
        found.append(facts)
    place.screen.result({"dryRun": dry_run, "streams": found}, lambda to: _print(to, found))


def _plans(
    lake: Ledger, name: str | None, latest: datetime | int | None
) -> Iterator[tuple[str, _Stream, ClockPlan]]:
    if name is not None:
        stream: _Stream = lake if name == _CATALOG else lake.table(name)
        yield name, stream, stream.plan_clock_correction(latest)
        return
    streams: list[tuple[str, _Stream]] = [(_CATALOG, lake)]
    streams += [(str(each), lake.table(each)) for each in lake.state.tables]
    for stream_name, each in streams:
        try:
            plan = each.plan_clock_correction()
        except InvalidChangeError:
            continue
        if is_far(plan.recorded_millis - plan.true_time_millis):
            yield stream_name, each, plan


def _facts(stream: str, plan: ClockPlan) -> dict[str, Any]:
    return {
        "stream": stream,
        "firstVersion": plan.first_version,
        "newestVersion": plan.newest_version,
        "recordedMillis": plan.recorded_millis,
        "trueTimeMillis": plan.true_time_millis,
    }


def _print(screen: Screen, found: list[dict[str, Any]]) -> None:
    if not found:
        screen.line("no stream is ahead of this machine's clock; there is nothing to correct")
    for each in found:
        at = f" version {each['version']}" if "version" in each else ""
        screen.line(
            f"{each['stream']}{at}: versions {each['firstVersion']} to {each['newestVersion']} say "
            f"up to {moment(each['recordedMillis'])}, and took effect by "
            f"{moment(each['trueTimeMillis'])} (UTC)"
        )
