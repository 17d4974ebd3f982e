"""Log events through structlog; spans and metrics through OpenTelemetry's API.

`LOG_EVENTS` lists the log events. Failures that harm nothing (`warn`) are always logged; normal
operation (`log_event`) only if the program configured structlog, so that other programs pay
nothing: not even structlog is imported. Authors, messages and values are never logged: what is
erased in the ledger must not survive in logs.

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


class LogEventKind(Struct, frozen=True):
    """A kind of log event.

    Attributes:
        level: The log level.
        when: Description of the event.
        keys: Names of the values logged with it.
    """

    level: Level
    when: str
    keys: tuple[str, ...]


LOG_EVENTS: Final[Mapping[str, LogEventKind]] = {
    # Commits, logged in the thread of the caller.
    "commit_succeeded": LogEventKind(
        "info",
        "a transaction is committed; `repeated` if an earlier call had committed it",
        ("stream", "commit_id", "version", "repeated", "attempts", "seconds"),
    ),
    "commit_conflicted": LogEventKind(
        "warning",
        "a concurrent commit set the same cell to another value; nothing was written",
        ("stream", "commit_id", "cell", "winner_version", "seconds"),
    ),
    "commit_refused": LogEventKind(
        "info",
        "a rule, the store or a damaged log forbids the transaction; `error` is the error's kind",
        ("stream", "commit_id", "error", "seconds"),
    ),
    "commit_unknown": LogEventKind(
        "error",
        "the store gave no answer; the transaction may have been committed",
        ("stream", "commit_id", "version", "seconds"),
    ),
    "commit_retried": LogEventKind(
        "info",
        "another writer committed the version; `transactions` transactions are decided again",
        ("stream", "lost_version", "attempt", "transactions"),
    ),
    # Ledgers and tables.
    "ledger_created": LogEventKind(
        "info", "a write or `init` created a ledger at a URL that had none", ("root", "ledger_id")
    ),
    "readers_get_it_wrong": LogEventKind(
        "warning",
        "a table was created that a reader misreads, for instance because column names differ only "
        "by case",
        ("table", "says"),
    ),
    # Projected files, and background projection.
    "files_projected": LogEventKind(
        "info",
        "the files of a format were projected from one version to another; `lag_seconds` is the "
        "age of the first commit that they lacked",
        ("table", "format", "from_version", "version", "seconds", "lag_seconds"),
    ),
    "projecting_failed": LogEventKind(
        "warning",
        "the files of a format could not be projected; they are still at `from_version`",
        ("table", "format", "from_version", "error", "seconds"),
    ),
    "files_restored": LogEventKind(
        "warning",
        "lost or damaged files of a format were projected again",
        ("table", "format", "version"),
    ),
    "older_renderer_replaced": LogEventKind(
        "warning",
        "files projected by an older version are projected again",
        ("table", "format", "version", "renderer"),
    ),
    "place_replaced": LogEventKind(
        "warning",
        "files projected for another location are projected again",
        ("table", "format", "version", "stood_at", "now_at"),
    ),
    "iceberg_files_of_another_place": LogEventKind(
        "warning",
        "rows are read although the projected files name another location",
        ("table", "made_at", "table_at", "next_step"),
    ),
    "format_could_not_follow": LogEventKind(
        "warning",
        "a format that follows commits could not be projected; logged once for each reason",
        ("table", "format", "error", "advice"),
    ),
    "files_left_behind": LogEventKind(
        "warning",
        "a process exited before the files of its commits were projected; it waited `waited_s`",
        ("table", "waited_s", "advice"),
    ),
    "commits_unknown_at_exit": LogEventKind(
        "warning",
        "a process exited before it knew the outcome of these commits; it waited 10 s",
        ("commit_ids", "advice"),
    ),
    "follow_failed": LogEventKind(
        "warning", "background projection of a table failed", ("table", "error")
    ),
    # The server, logged in its event loop.
    "request_answered": LogEventKind(
        "info",
        "the server answered a request; the path is without its query",
        ("method", "path", "status", "seconds"),
    ),
    "request_failed": LogEventKind(
        "warning",
        "the server could not answer a request, for another reason than the request",
        ("method", "path", "error"),
    ),
    "table_not_listed": LogEventKind(
        "warning",
        "the server left a table out of a list, because it cannot be read",
        ("table", "error"),
    ),
    # Clocks.
    "newest_commit_is_ahead": LogEventKind(
        "warning",
        "the newest commit's time is in the future by this machine's clock",
        ("stream", "seconds", "rule", "next_step"),
    ),
    # Caches: a missing one costs time only.
    "checkpoint_failed": LogEventKind(
        "warning", "a checkpoint could not be saved", ("root", "version", "error")
    ),
    "announcing_failed": LogEventKind(
        "warning",
        "commits could not be announced in the activity index, so that feeds find them later; "
        "logged once",
        ("root", "error"),
    ),
    "merging_failed": LogEventKind("warning", "indexes could not be merged", ("root", "error")),
    "segment_skipped": LogEventKind("warning", "a segment could not be written", ("file", "error")),
    "segment_passed_over": LogEventKind(
        "warning", "a segment does not match the log and is ignored", ("file", "error", "advice")
    ),
    "names_skipped": LogEventKind(
        "warning", "the names of older columns could not be saved", ("version", "error")
    ),
    "file_run_skipped": LogEventKind(
        "warning", "a run of live files could not be saved", ("version", "error")
    ),
    "file_run_damaged": LogEventKind("warning", "a run of live files is damaged", ("file",)),
    "file_run_unreadable": LogEventKind(
        "warning", "a run of live files could not be read", ("file", "error")
    ),
    "statistics_tile_unreadable": LogEventKind(
        "warning", "a part of the kept statistics could not be read", ("file",)
    ),
}
"""All log events, by name."""


def warning_text(event: str, facts: Mapping[str, object]) -> str:
    """Return a warning as one line for people.

    Example:
        >>> warning_text("file_run_damaged", {"file": "runs/3"})
        'a run of live files is damaged (file: runs/3)'
    """
    known = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in facts.items())
    return f"{LOG_EVENTS[event].when} ({known})"


_on_warning: Callable[[str], object] | None = None


def show_warnings(show: Callable[[str], object]) -> None:
    """Show warnings of a program that did not configure structlog, such as the command line.

    Args:
        show: Called with the text of each warning, in the thread that warns.
    """
    global _on_warning  # noqa: PLW0603 - one process has one stderr
    _on_warning = show


def warn(logger: str, event: str, **facts: object) -> None:
    """Log a warning, on stderr if the program did not configure structlog."""
    if _on_warning is not None and not is_log_configured():
        _on_warning(warning_text(event, facts))
        return
    # Imported here: its imports take a third of the time of importing the ledger.
    import structlog

    if structlog.is_configured():
        fallback = structlog.get_logger(logger)
    else:
        # structlog's default is stdout, where a line would be mixed with the program's output.
        fallback = structlog.wrap_logger(structlog.PrintLogger(sys.stderr))
    fallback.warning(event, **facts)


def is_log_configured() -> bool:
    """Return whether structlog is configured in this process."""
    # While another thread imports it, the module has no attributes yet.
    is_configured = getattr(sys.modules.get("structlog"), "is_configured", None)
    return is_configured is not None and bool(is_configured())


def log_event(logger: str, event: str, **facts: object) -> None:
    """Log an event of normal operation, if structlog is configured."""
    if not is_log_configured():
        return
    import structlog

    # A failing log processor must not make a commit fail.
    with suppress(Exception):
        getattr(structlog.get_logger(logger), LOG_EVENTS[event].level)(event, **facts)


NAME: Final = "lakeledger"
"""Name of the tracer and the meter, and prefix of span attributes."""


def is_traced() -> bool:
    """Return whether OpenTelemetry is imported in this process."""
    known = sys.modules
    return "opentelemetry.trace" in known or "opentelemetry.metrics" in known


def is_observed() -> bool:
    """Return whether log events, spans or metrics are recorded in this process."""
    return is_traced() or is_log_configured()


class MetricKind(Struct, frozen=True):
    """A kind of metric.

    Attributes:
        kind: `counter` or `histogram`.
        unit: The unit in UCUM's notation.
        meaning: Description of the quantity.
        keys: Names of its attributes.
    """

    kind: str
    unit: str
    meaning: str
    keys: tuple[str, ...]


METRICS: Final[Mapping[str, MetricKind]] = {
    "lakeledger.commits": MetricKind(
        "counter",
        "{transaction}",
        "requested transactions, by outcome: `committed`, `repeated`, `conflicted`, `refused`, "
        "`unknown`, `interrupted`",
        ("outcome",),
    ),
    "lakeledger.commit.duration": MetricKind(
        "histogram", "s", "time from request to outcome", ("outcome",)
    ),
    "lakeledger.commit.retries": MetricKind(
        "counter", "{attempt}", "attempts that another writer won", ()
    ),
    "lakeledger.projections": MetricKind(
        "counter",
        "{run}",
        "projection runs of a format, by outcome: `projected`, `failed`",
        ("format", "outcome"),
    ),
    "lakeledger.projection.duration": MetricKind(
        "histogram", "s", "duration of a projection run", ("format", "outcome")
    ),
    "lakeledger.projection.lag": MetricKind(
        "histogram",
        "s",
        "age of the first commit that the files had lacked, at the end of a projection run",
        ("format",),
    ),
}
"""All metrics, by name."""

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
"""Attributes of all spans, by the span's name; a failure is recorded as the span's exception."""


@define
class MeasuredOperation:
    """An operation in progress: its span and duration.

    Attributes:
        outcome: Its outcome, recorded as an attribute of the span at the end.
    """

    outcome: str
    _span: Span | None
    _begun_s: float = field(factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Duration so far, in seconds."""
        return round(time.monotonic() - self._begun_s, 6)

    def set_span_attributes(self, **facts: str | int) -> None:
        """Set attributes of its span."""
        if self._span is not None:
            self._span.set_attributes(_prefix_names(facts))


@contextmanager
def span(name: str, **facts: str | int) -> Iterator[MeasuredOperation]:
    """Run the body in a new current span; exceptions are recorded in it and raised."""
    if not is_traced():
        yield MeasuredOperation("", None)
        return
    from opentelemetry.trace import StatusCode, use_span

    made = _tracer().start_span(name, attributes=_prefix_names(facts))
    measured = MeasuredOperation("", made)
    # Not recorded by `use_span`: it would also record exceptions that interrupt the caller.
    with use_span(made, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield measured
        except Exception as error:
            if isinstance(error, LedgerError | OSError):
                made.record_exception(error)
            made.set_status(StatusCode.ERROR, type(error).__name__)
            raise
        finally:
            measured.set_span_attributes(outcome=measured.outcome)


def count(name: str, number: float = 1, **facts: str) -> None:
    """Add to a counter or record in a histogram, if OpenTelemetry is used."""
    if not is_traced():
        return
    if METRICS[name].kind == "counter":
        _create_counter(name).add(number, facts)
    else:
        _create_histogram(name).record(number, facts)


def _prefix_names(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{NAME}.{key}": value for key, value in facts.items()}


@lru_cache(maxsize=1)
def _tracer() -> Tracer:
    """Return the tracer; it forwards to a provider that is set later."""
    from opentelemetry.trace import get_tracer

    return get_tracer(NAME)


@lru_cache(maxsize=len(METRICS))
def _create_counter(name: str) -> Counter:
    from opentelemetry.metrics import get_meter

    return get_meter(NAME).create_counter(name, METRICS[name].unit, METRICS[name].meaning)


@lru_cache(maxsize=len(METRICS))
def _create_histogram(name: str) -> Histogram:
    from opentelemetry.metrics import get_meter

    return get_meter(NAME).create_histogram(name, METRICS[name].unit, METRICS[name].meaning)


_LOG: Final = "ledger.log"


class CommitOutcome(Protocol):
    """Result of a commit, as far as it is logged."""

    @property
    def version(self) -> int:
        """Version of the commit with the transaction."""

    @property
    def repeated(self) -> bool:
        """True if an earlier call had committed the transaction."""

    @property
    def attempts(self) -> int:
        """Number of times that it was decided."""


A = TypeVar("A", bound=CommitOutcome)


class NamedStream(Protocol):
    """A stream with a name for log events."""

    @property
    def name(self) -> str:
        """URL of the stream."""


def traced_commit(append: Callable[[], A], *, stream: NamedStream, commit_id: str) -> A:
    """Append a transaction, with a span, and log and count the outcome.

    Args:
        append: Appends it.
        stream: The stream.
        commit_id: The transaction's id.
    """
    if not is_observed():
        return append()
    return _append_traced(append, {"stream": stream.name, "commit_id": commit_id})


def _append_traced(append: Callable[[], A], facts: dict[str, str]) -> A:
    with span("lakeledger.commit", **facts) as measurement:
        # An exception that is not the ledger's own interrupted the calling thread.
        measurement.outcome = "interrupted"
        try:
            done = append()
        except LedgerError as error:
            measurement.outcome = _log_failure(error, facts, measurement.seconds)
            raise
        else:
            measurement.outcome = "repeated" if done.repeated else "committed"
            measurement.set_span_attributes(version=done.version, attempts=done.attempts)
            rest = {"version": done.version, "repeated": done.repeated, "attempts": done.attempts}
            log_event(_LOG, "commit_succeeded", **facts, **rest, seconds=measurement.seconds)
            return done
        finally:
            count("lakeledger.commits", outcome=measurement.outcome)
            count("lakeledger.commit.duration", measurement.seconds, outcome=measurement.outcome)


def _log_failure(error: LedgerError, facts: dict[str, str], seconds: float) -> str:
    """Log why a transaction is not committed, or not known to be; return the metric's outcome."""
    if isinstance(error, CommitConflictError):
        cell, version = error.cell, error.version
        log_event(
            _LOG,
            "commit_conflicted",
            **facts,
            cell=cell,
            winner_version=version,
            seconds=seconds,
        )
        return "conflicted"
    if isinstance(error, CommitUnknownError):
        log_event(_LOG, "commit_unknown", **facts, version=error.version, seconds=seconds)
        return "unknown"
    # Only the kind: the message may contain personal data of the log.
    log_event(_LOG, "commit_refused", **facts, error=error.kind, seconds=seconds)
    return "refused"


def log_retry(stream: str, lost_version: int, attempt: int, transactions: int) -> None:
    """Log and count a lost race for a version, in the committer thread."""
    count("lakeledger.commit.retries")
    log_event(
        _LOG,
        "commit_retried",
        stream=stream,
        lost_version=lost_version,
        attempt=attempt,
        transactions=transactions,
    )


def traced_projection(
    run: Callable[[], int],
    *,
    table: str,
    format_name: str,
    from_version: int,
    lag_s: Callable[[], float],
) -> int:
    """Run a projection of a format's files, with a span, and log and count the outcome.

    Args:
        run: Projects the files; returns the version reached.
        table: The table's name.
        format_name: The format's name.
        from_version: The version that the files reflect before.
        lag_s: Returns the age of the first commit that they lack, in seconds.
    """
    if not is_observed():
        return run()
    logger = f"projections.{format_name}"
    facts: dict[str, str | int] = {
        "table": table,
        "format": format_name,
        "from_version": from_version,
    }
    with span("lakeledger.project", **facts) as measurement:
        measurement.outcome = "failed"
        try:
            reached = run()
        except Exception as error:
            log_event(
                logger, "projecting_failed", **facts, error=str(error), seconds=measurement.seconds
            )
            raise
        else:
            measurement.outcome = "projected"
            measurement.set_span_attributes(version=reached)
            lag = lag_s()
            count("lakeledger.projection.lag", lag, format=format_name)
            rest = {"version": reached, "seconds": measurement.seconds, "lag_seconds": lag}
            log_event(logger, "files_projected", **facts, **rest)
            return reached
        finally:
            outcome = measurement.outcome
            count("lakeledger.projections", format=format_name, outcome=outcome)
            seconds = measurement.seconds
            count("lakeledger.projection.duration", seconds, format=format_name, outcome=outcome)
