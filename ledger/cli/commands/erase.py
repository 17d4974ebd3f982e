"""Commands that correct what was recorded: `erase` and `correct-clock`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, CommitIdLookup, Confirmed, LedgerFlags, read_time
from ledger.cli.output import Screen, progress_reports
from ledger.cli.phrases import again, stream_log_of
from ledger.events.table import ClockCorrected
from ledger.history.erasure import Erasure, RemainingValues
from ledger.ledger import Ledger
from ledger.log.clock import is_clock_far_off
from ledger.log.request import Appended, CommitOptions
from ledger.log.time_travel import at_version
from ledger.model.errors import InvalidChangeError
from ledger.model.messages import moment
from ledger.plan import ClockPlan
from ledger.table import Table
from ledger.table_handle import HasHandle

_MOST_SHOWN = 20

COPIES = (
    "exports, backups and other copies of the ledger",
    "pages, tables and streams that were read from it and kept elsewhere",
    "older versions of objects, where the bucket keeps them",
)
"""Copies of data that an erasure cannot reach."""


def erase(  # noqa: PLR0913 - each is an option of its own
    table: Annotated[str | None, Parameter(show_default=False, help="Table of --column.")] = None,
    /,
    *,
    person: Annotated[
        str | None,
        Parameter(
            help="Erase everything of this author, and values that contain the author's name."
        ),
    ] = None,
    text: Annotated[str | None, Parameter(help="Erase values that contain this text.")] = None,
    column: Annotated[
        str | None, Parameter(help="Erase bounds and partition values of this column of the table.")
    ] = None,
    value: Annotated[
        str | None,
        Parameter(help="Erase only this value, in each type that the column had."),
    ] = None,
    yes: Confirmed = False,
    author: Annotated[
        str | None,
        Parameter(env_var="LAKELEDGER_AUTHOR", help="Author of the erasure; user@host if omitted."),
    ] = None,
    message: Annotated[
        str, Parameter(show_default=False, help="Commit message; do not name the person.")
    ] = "",
    commit_id: Annotated[
        str | None, Parameter(help="Idempotency key of the commit that records the erasure.")
    ] = None,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Erase personal data outside the log, irreversibly; without --yes, show the plan.

    Erases authors, messages and properties of commits in a ledger created with init --erasable;
    readers see "erased" instead. Also erases bounds and partition values of the columns in a
    table's option ledger.personal: files without bounds are no longer pruned, engines read NULL in
    a partition, and projected metadata is rewritten. The log, its hashes and states do not change.
    The catalog's log records the erasure, but not the values.

    Data inside the log is listed and not erased: older commits, options, comments, paths of data
    files, and bounds and partition values from before a column was marked. Copies are not erased
    either.

    Example:
        lakeledger erase --person ann@example.com

        lakeledger erase shop.flights --column tailnum --value N14228
    """
    lake = place.open()
    names = ("author", "text", "table", "column", "value")
    sought = dict(zip(names, (person, text, table, column, value), strict=True))
    report = progress_reports(place.screen, "searching {}: {:,} of {:,}")
    if yes:
        recorded = {"by": author, "commit_id": commit_id}
        done = lake.erase(**sought, **recorded, message=message, on_progress=report)
    else:
        done = lake.plan_erasure(**sought, on_progress=report)
    document = {"dryRun": not yes, **_erasure_document(done)}
    place.screen.result(document, lambda to: _print_erasure(to, done, dry_run=not yes))


def _erasure_document(done: Erasure) -> dict[str, Any]:
    return {
        "values": done.values,
        "transactions": done.transactions,
        "version": done.version,
        "repeated": done.repeated,
        "remaining": [_remaining_document(each) for each in done.remaining],
        "unrendered": list(done.unrendered),
        "unreached": list(COPIES),
    }


def _remaining_document(remaining: RemainingValues) -> dict[str, Any]:
    return {
        "stream": remaining.stream,
        "versions": list(remaining.versions),
        "paths": list(remaining.paths),
        **({"problem": remaining.problem} if remaining.problem else {}),
    }


def _print_erasure(screen: Screen, done: Erasure, *, dry_run: bool) -> None:
    if not done.values:
        screen.line("no such values are stored outside the log; there is nothing to erase")
    else:
        said = "would be erased" if dry_run else "erased"
        screen.line(
            f"{done.values:,} authors, messages, property maps and column values of "
            f"{done.transactions:,} changes {said}"
        )
    if done.repeated:
        screen.line(f"catalog version {done.version} records it{again(repeated=True)}")
    for one in done.unrendered:
        screen.line(f"could not be rewritten and may still contain the data: {one}")
    for each in done.remaining:
        if each.problem:
            screen.line(f"{each.stream} could not be searched: {each.problem}")
        if each.versions:
            screen.line(
                f"{each.stream} keeps the data in its log permanently: {_join_first(each.versions)}"
            )
        if each.paths:
            screen.line(f"  in paths of data files: {_join_first(each.paths)}")
    screen.line("not erased:")
    for copy in COPIES:
        screen.line(f"  {copy}")
    if dry_run and done.values:
        screen.line("nothing was written; erased values cannot be restored")
        screen.line("to commit this plan, add --yes")


def _join_first(things: tuple[object, ...]) -> str:
    shown = ", ".join(str(each) for each in things[:_MOST_SHOWN])
    more = len(things) - _MOST_SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


_CATALOG: Final = "catalog"
_Stream: TypeAlias = Ledger | Table


def correct_clock(
    name: Annotated[
        str | None,
        Parameter(help="DATABASE.TABLE, or catalog; default: every stream a minute or more ahead."),
    ] = None,
    /,
    *,
    true_time: Annotated[
        str | None,
        Parameter(help="Latest possible time of the commits that are ahead; now if omitted."),
    ] = None,
    dry_run: Annotated[
        bool, Parameter(negative="", show_default=False, help="Only show the corrections.")
    ] = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Correct commit times written by a clock that was ahead, so that --timestamp is right.

    A new commit records the true time as the time of all commits with later times; no commit is
    rewritten. The clock of this machine must be correct.

    Example:
        lakeledger correct-clock --dry-run
    """
    if name is None and true_time is not None:
        raise UsageError("--true-time applies to one stream: name a table, or catalog")
    latest = None if true_time is None else read_time(true_time)
    lake = place.open()
    found: list[dict[str, Any]] = []
    for stream_name, stream in _requested_streams(lake, name):
        is_due = partial(_is_correction_due, stream) if name is None else _is_always_due
        if dry_run and is_due():
            found.append(_correction_facts(stream_name, stream.plan_clock_correction(latest)))
        if not dry_run:
            handle: HasHandle[CommitIdLookup[Appended[Any]]] = stream
            ask = partial(_correct_if_due, stream, latest, is_due)
            done = writing.once(handle, ["correct-clock", true_time], ask)
            found += [] if done is None else _clock_corrections_in(stream_name, stream, done)
    place.screen.result(
        {"dryRun": dry_run, "streams": found}, lambda to: _print_correction(to, found)
    )


def _requested_streams(lake: Ledger, name: str | None) -> list[tuple[str, _Stream]]:
    if name is not None:
        return [(name, lake if name == _CATALOG else lake.table(name))]
    return [(_CATALOG, lake), *((str(each), lake.table(each)) for each in lake.state.tables)]


def _is_always_due() -> bool:
    return True


def _is_correction_due(stream: _Stream) -> bool:
    """Return whether a stream is far enough ahead to be corrected by default."""
    try:
        plan = stream.plan_clock_correction()
    except InvalidChangeError:
        return False
    return is_clock_far_off(plan.recorded_millis - plan.true_time_millis)


def _correct_if_due(
    stream: _Stream,
    latest: int | None,
    is_due: Callable[[], bool],
    options: CommitOptions,
) -> Appended[Any] | None:
    return stream.correct_clock(latest, **options) if is_due() else None


def _clock_corrections_in(
    name: str, stream: _Stream, done: Appended[Any]
) -> Iterator[dict[str, Any]]:
    """Yield the corrections of a commit; none if a concurrent commit made them."""
    log = stream_log_of(stream)
    for each in log.commit_at(done.version).transactions:
        for event in each.events:
            if isinstance(event, ClockCorrected):
                then = at_version(log, done.version - 1)
                plan = ClockPlan(
                    event.first_version, then.version, then.effective_millis, event.true_time_millis
                )
                yield {
                    **_correction_facts(name, plan),
                    "version": done.version,
                    "repeated": done.repeated,
                }


def _correction_facts(stream: str, plan: ClockPlan) -> dict[str, Any]:
    return {
        "stream": stream,
        "firstVersion": plan.first_version,
        "newestVersion": plan.newest_version,
        "recordedMillis": plan.recorded_millis,
        "trueTimeMillis": plan.true_time_millis,
    }


def _print_correction(screen: Screen, found: list[dict[str, Any]]) -> None:
    if not found:
        screen.line("no stream is ahead of this machine's clock; there is nothing to correct")
    for each in found:
        at = f" version {each['version']}" if "version" in each else ""
        at += again(repeated=each.get("repeated", False))
        screen.line(
            f"{each['stream']}{at}: versions {each['firstVersion']} to {each['newestVersion']} "
            f"have times up to {moment(each['recordedMillis'])}, and took effect by "
            f"{moment(each['trueTimeMillis'])} (UTC)"
        )
