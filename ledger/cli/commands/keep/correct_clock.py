"""`lakeledger correct-clock`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import Answers, CommitFlags, LedgerFlags, read_time
from ledger.cli.phrases import again
from ledger.cli.screen import Screen
from ledger.events.clock_events import ClockCorrected
from ledger.ledger import Ledger
from ledger.log.clock import is_far
from ledger.log.request import Appended, CommitOptions
from ledger.log.stream_log import StreamLog
from ledger.log.travel import at_version
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
    for stream_name, stream in _streams(lake, name):
        is_due = partial(_is_due, stream) if name is None else _always
        if dry_run and is_due():
            found.append(_facts(stream_name, stream.plan_clock_correction(latest)))
        if not dry_run:
            handle: Answers[Appended[Any]] = stream
            ask = partial(_correct, stream, latest, is_due)
            done = writing.once(handle, ["correct-clock", true_time], ask)
            found += [] if done is None else _came_to(stream_name, stream, done)
    place.screen.result({"dryRun": dry_run, "streams": found}, lambda to: _print(to, found))


def _streams(lake: Ledger, name: str | None) -> list[tuple[str, _Stream]]:
    if name is not None:
        return [(name, lake if name == _CATALOG else lake.table(name))]
    return [(_CATALOG, lake), *((str(each), lake.table(each)) for each in lake.state.tables)]


def _always() -> bool:
    return True


def _is_due(stream: _Stream) -> bool:
    """Whether a stream that nobody named is so far ahead that it is corrected."""
    try:
        plan = stream.plan_clock_correction()
    except InvalidChangeError:
        return False
    return is_far(plan.recorded_millis - plan.true_time_millis)


def _correct(
    stream: _Stream,
    latest: datetime | int | None,
    is_due: Callable[[], bool],
    options: CommitOptions,
) -> Appended[Any] | None:
    return stream.correct_clock(latest, **options) if is_due() else None


def _came_to(name: str, stream: _Stream, done: Appended[Any]) -> Iterator[dict[str, Any]]:
    """Yield what a commit corrected; nothing where somebody else had done so meanwhile."""
    log: StreamLog[Any, Any] = stream.log
    for each in log.commit_at(done.version).transactions:
        for event in each.events:
            if isinstance(event, ClockCorrected):
                then = at_version(log, done.version - 1)
                plan = ClockPlan(
                    event.first_version, then.version, then.effective_millis, event.true_time_millis
                )
                yield {**_facts(name, plan), "version": done.version, "repeated": done.repeated}


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
        at += again(repeated=each.get("repeated", False))
        screen.line(
            f"{each['stream']}{at}: versions {each['firstVersion']} to {each['newestVersion']} say "
            f"up to {moment(each['recordedMillis'])}, and took effect by "
            f"{moment(each['trueTimeMillis'])} (UTC)"
        )
