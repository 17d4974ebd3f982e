"""Log events through structlog; spans and metrics through OpenTelemetry's API.

`NOTICES` is the list of log events. What went wrong and harmed nothing (`warn`) is logged for
everybody; normal operation (`tell`) only where the program configured structlog, so that other
programs pay nothing: not even structlog is imported. Authors, messages and values are never logged:
what is erased in the ledger must not survive in logs.

A program that wants spans and metrics imports `opentelemetry` and sets its providers; one that does
not pays nothing, and it need not be installed (extra `otel`).

`ledger/docs/observing.md` lists all names.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from attrs import define, field
from msgspec import Struct

from ledger.model.errors import CommitConflictError, CommitUnknownError, LedgerError

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.trace import Span, Tracer


Level = Literal["debug", "info", "warning", "error"]


class Notice(Struct, frozen=True):
    """One kind of event.

    Attributes:
        level: How it is logged.
        when: What happened.
        keys: What is told with it.
    """

    level: Level
    when: str
    keys: tuple[str, ...]


NOTICES: Final[Mapping[str, Notice]] = {
    # Commits, told in the thread of whoever asked for them.
    "commit_landed": Notice(
        "info",
        "a transaction is in the log; `repeated` where it had landed before",
        ("stream", "commit_id", "version", "repeated", "attempts", "seconds"),
    ),
    "commit_conflicted": Notice(
        "warning",
        "somebody else set the same thing to something else; nothing was written",
        ("stream", "commit_id", "cell", "winner_version", "seconds"),
    ),
    "commit_refused": Notice(
        "info",
        "a rule, the store or a damaged log forbids it; `error` is the error's kind",
        ("stream", "commit_id", "error", "seconds"),
    ),
    "commit_unknown": Notice(
        "error",
        "the store gave no answer; the transaction may have landed",
        ("stream", "commit_id", "version", "seconds"),
    ),
    "commit_retried": Notice(
        "info",
        "another writer took the version; so many transactions are decided again",
        ("stream", "lost_version", "attempt", "transactions"),
    ),
    # Tables.
    "readers_get_it_wrong": Notice(
        "warning",
        "a table was created of which a reader gets something wrong, such as names that differ by "
        "case alone",
        ("table", "says"),
    ),
    # Files of formats, and those who follow.
    "files_projected": Notice(
        "info",
        "the files of a format were brought from one version to another; `lag_seconds` ago the "
        "first commit came that they lacked",
        ("table", "format", "from_version", "version", "seconds", "lag_seconds"),
    ),
    "projecting_failed": Notice(
        "warning",
        "the files of a format could not be brought on; they stand where they stood",
        ("table", "format", "from_version", "error", "seconds"),
    ),
    "files_restored": Notice(
        "warning",
        "files of a format were lost or damaged, and made again",
        ("table", "format", "version"),
    ),
    "older_renderer_replaced": Notice(
        "warning",
        "files that an older version made are made anew",
        ("table", "format", "version", "renderer"),
    ),
    "place_replaced": Notice(
        "warning",
        "files that were made for another place are made anew",
        ("table", "format", "version", "stood_at", "now_at"),
    ),
    "iceberg_files_of_another_place": Notice(
        "warning",
        "rows are read although the files beside the log lead to another place",
        ("table", "made_at", "table_at", "next_step"),
    ),
    "format_could_not_follow": Notice(
        "warning",
        "a format that follows commits could not; told once for each reason",
        ("table", "format", "error", "advice"),
    ),
    "files_left_behind": Notice(
        "warning",
        "a process ended before the files that follow its commits were there; it waited so long",
        ("table", "waited_s", "advice"),
    ),
    "commits_unknown_at_exit": Notice(
        "warning",
        "a process exited before these commits were answered; it waited 10 s",
        ("commit_ids", "advice"),
    ),
    "follow_failed": Notice("warning", "no format could be looked at", ("table", "error")),
    # Clocks.
    "newest_commit_is_ahead": Notice(
        "warning",
        "the newest commit's time lies in this machine's future",
        ("stream", "seconds", "rule", "next_step"),
    ),
    # Caches: what is missing costs time alone.
    "checkpoint_failed": Notice(
        "warning", "a checkpoint could not be saved", ("root", "version", "error")
    ),
    "merging_failed": Notice("warning", "indexes could not be merged", ("root", "error")),
    "segment_skipped": Notice("warning", "a segment could not be read", ("file", "error")),
    "segment_passed_over": Notice(
        "warning", "a segment is not what the log vouches for", ("file", "error", "advice")
    ),
    "names_skipped": Notice(
        "warning", "the names of older columns could not be saved", ("version", "error")
    ),
    "file_run_skipped": Notice(
        "warning", "a run of live files could not be saved", ("version", "error")
    ),
    "file_run_damaged": Notice("warning", "a run of live files is damaged", ("file",)),
    "file_run_unreadable": Notice(
        "warning", "a run of live files could not be read", ("file", "error")
    ),
    "statistics_tile_unreadable": Notice(
        "warning", "a part of the kept statistics could not be read", ("file",)
    ),
}
"""Every event that is ever told, by its name."""


def warn(logger: str, event: str, **facts: object) -> None:
    """Tell whoever listens; who does not configure structlog sees a line on stderr."""
    # It brings rich and asyncio along, a third of what importing the ledger would take.
    import structlog

    if structlog.is_configured():
        told = structlog.get_logger(logger)
    else:
        # Its own default is stdout, where a line would stand among somebody's results.
        told = structlog.wrap_logger(structlog.PrintLogger(sys.stderr))
    told.warning(event, **facts)


def is_heard() -> bool:
    """Whether somebody in this process configured structlog."""
    # While another thread imports it, it is there and empty, and nobody has configured it.
    is_configured = getattr(sys.modules.get("structlog"), "is_configured", None)
    return is_configured is not None and bool(is_configured())


def tell(logger: str, event: str, **facts: object) -> None:
    """Tell those who configured structlog, and nobody else."""
    if not is_heard():
        return
    import structlog

    # A commit stands as it stands, whatever becomes of a line about it.
    with suppress(Exception):
        getattr(structlog.get_logger(logger), NOTICES[event].level)(event, **facts)


NAME: Final = "lakeledger"
"""Of the tracer and the meter."""


def is_traced() -> bool:
    """Whether somebody in this process uses OpenTelemetry."""
    known = sys.modules
    return "opentelemetry.trace" in known or "opentelemetry.metrics" in known


def is_observed() -> bool:
    """Whether anybody in this process wants to know anything."""
    return is_traced() or is_heard()


class Metric(Struct, frozen=True):
    """A metric.

    Attributes:
        kind: `counter` or `histogram`.
        unit: In UCUM's words.
        meaning: What is counted or measured.
        keys: Its attributes.
    """

    kind: str
    unit: str
    meaning: str
    keys: tuple[str, ...]


METRICS: Final[Mapping[str, Metric]] = {
    "lakeledger.commits": Metric(
        "counter",
        "{transaction}",
        "transactions asked for, by what came of them: `landed`, `repeated`, `conflicted`, "
        "`refused`, `unknown`, `interrupted`",
        ("outcome",),
    ),
    "lakeledger.commit.duration": Metric(
        "histogram", "s", "from asking to the answer", ("outcome",)
    ),
    "lakeledger.commit.retries": Metric(
        "counter", "{attempt}", "attempts that another writer won", ()
    ),
    "lakeledger.projections": Metric(
        "counter",
        "{run}",
        "runs that brought a format's files on, by what came of them: `projected`, `failed`",
        ("format", "outcome"),
    ),
    "lakeledger.projection.duration": Metric(
        "histogram", "s", "of such a run", ("format", "outcome")
    ),
    "lakeledger.projection.lag": Metric(
        "histogram",
        "s",
        "when such a run ended, how long ago the first commit came that the files had lacked",
        ("format",),
    ),
}
"""Every metric, by its name."""

SPANS: Final[Mapping[str, tuple[str, ...]]] = {
    "lakeledger.commit": (
        *("lakeledger.stream", "lakeledger.commit_id", "lakeledger.outcome"),
        *("lakeledger.version", "lakeledger.attempts"),
    ),
    "lakeledger.project": (
        *("lakeledger.table", "lakeledger.format", "lakeledger.outcome"),
        *("lakeledger.from_version", "lakeledger.version"),
    ),
}
"""Every span's attributes, by its name; a failure is recorded as the span's exception."""


@define
class Measured:
    """Something that takes time, while it goes on.

    Attributes:
        outcome: What came of it.
    """

    outcome: str
    _span: Span | None
    _begun_s: float = field(factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How long it took so far."""
        return round(time.monotonic() - self._begun_s, 6)

    def note(self, **facts: str | int) -> None:
        """Say more of its span."""
        if self._span is not None:
            self._span.set_attributes(_named(facts))


@contextmanager
def span(name: str, **facts: str | int) -> Iterator[Measured]:
    """Let a span be the current one; what is raised inside is recorded and goes on."""
    if not is_traced():
        yield Measured("", None)
        return
    from opentelemetry.trace import StatusCode, use_span

    made = _tracer().start_span(name, attributes=_named(facts))
    measured = Measured("", made)
    # What interrupts a caller from outside is raised at once: its traceback is his.
    with use_span(made, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield measured
        except Exception as error:
            if isinstance(error, LedgerError | OSError):
                made.record_exception(error)
            made.set_status(StatusCode.ERROR, type(error).__name__)
            raise
        finally:
            measured.note(outcome=measured.outcome)


def count(name: str, number: float = 1, **facts: str) -> None:
    """Add to a metric, if anybody looks."""
    if not is_traced():
        return
    if METRICS[name].kind == "counter":
        _counter(name).add(number, facts)
    else:
        _histogram(name).record(number, facts)


def _named(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{NAME}.{key}": value for key, value in facts.items()}


@lru_cache(maxsize=1)
def _tracer() -> Tracer:
    """Return what goes on to a provider whenever one is set."""
    from opentelemetry.trace import get_tracer

    return get_tracer(NAME)


@lru_cache(maxsize=len(METRICS))
def _counter(name: str) -> Counter:
    from opentelemetry.metrics import get_meter

    return get_meter(NAME).create_counter(name, METRICS[name].unit, METRICS[name].meaning)


@lru_cache(maxsize=len(METRICS))
def _histogram(name: str) -> Histogram:
    from opentelemetry.metrics import get_meter

    return get_meter(NAME).create_histogram(name, METRICS[name].unit, METRICS[name].meaning)


_LOG: Final = "ledger.log"


class CommitOutcome(Protocol):
    """What came of a commit."""

    @property
    def version(self) -> int:
        """The commit that holds the transaction."""

    @property
    def repeated(self) -> bool:
        """Whether it had landed before."""

    @property
    def attempts(self) -> int:
        """How often it was decided."""


A = TypeVar("A", bound=CommitOutcome)


class Named(Protocol):
    """A stream."""

    @property
    def name(self) -> str:
        """What it is called in what is told."""


def told_commit(append: Callable[[], A], *, stream: Named, commit_id: str) -> A:
    """Append, and tell what came of it.

    Args:
        append: Does it.
        stream: Whose.
        commit_id: The transaction's.
    """
    if not is_observed():
        return append()
    return _told(append, {"stream": stream.name, "commit_id": commit_id})


def _told(append: Callable[[], A], facts: dict[str, str]) -> A:
    with span("lakeledger.commit", **facts) as told:
        # An exception that is not the ledger's own came into the caller's thread from outside.
        told.outcome = "interrupted"
        try:
            done = append()
        except LedgerError as error:
            told.outcome = _tell_failure(error, facts, told.seconds)
            raise
        else:
            told.outcome = "repeated" if done.repeated else "landed"
            told.note(version=done.version, attempts=done.attempts)
            rest = {"version": done.version, "repeated": done.repeated, "attempts": done.attempts}
            tell(_LOG, "commit_landed", **facts, **rest, seconds=told.seconds)
            return done
        finally:
            count("lakeledger.commits", outcome=told.outcome)
            count("lakeledger.commit.duration", told.seconds, outcome=told.outcome)


def _tell_failure(error: LedgerError, facts: dict[str, str], seconds: float) -> str:
    """Tell why a transaction is not known to be in the log; return what that is called."""
    if isinstance(error, CommitConflictError):
        cell, version = error.cell, error.version
        tell(
            _LOG,
            "commit_conflicted",
            **facts,
            cell=cell,
            winner_version=version,
            seconds=seconds,
        )
        return "conflicted"
    if isinstance(error, CommitUnknownError):
        tell(_LOG, "commit_unknown", **facts, version=error.version, seconds=seconds)
        return "unknown"
    # Its message may say what stands in the log, such as whose a column is.
    tell(_LOG, "commit_refused", **facts, error=error.kind, seconds=seconds)
    return "refused"


def tell_retry(stream: str, lost_version: int, attempt: int, transactions: int) -> None:
    """Tell that another writer took a version, in the thread that lands commits."""
    count("lakeledger.commit.retries")
    tell(
        _LOG,
        "commit_retried",
        stream=stream,
        lost_version=lost_version,
        attempt=attempt,
        transactions=transactions,
    )


def told_projection(
    run: Callable[[], int],
    *,
    table: str,
    format_name: str,
    from_version: int,
    lag_s: Callable[[], float],
) -> int:
    """Bring a format's files on, and tell how far they came.

    Args:
        run: Does it; returns the version reached.
        table: Whose.
        format_name: The format's name.
        from_version: Where they stood.
        lag_s: Tells how long ago the first commit came that they lacked, in seconds.
    """
    if not is_observed():
        return run()
    logger = f"projections.{format_name}"
    facts: dict[str, str | int] = {
        "table": table,
        "format": format_name,
        "from_version": from_version,
    }
    with span("lakeledger.project", **facts) as told:
        told.outcome = "failed"
        try:
            reached = run()
        except Exception as error:
            tell(logger, "projecting_failed", **facts, error=str(error), seconds=told.seconds)
            raise
        else:
            told.outcome = "projected"
            told.note(version=reached)
            lag = lag_s()
            count("lakeledger.projection.lag", lag, format=format_name)
            rest = {"version": reached, "seconds": told.seconds, "lag_seconds": lag}
            tell(logger, "files_projected", **facts, **rest)
            return reached
        finally:
            outcome = told.outcome
            count("lakeledger.projections", format=format_name, outcome=outcome)
            seconds = told.seconds
            count("lakeledger.projection.duration", seconds, format=format_name, outcome=outcome)
