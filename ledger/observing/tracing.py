"""Spans and metrics through OpenTelemetry's API.

A program that wants them imports `opentelemetry` and sets its providers; one that does not pays
nothing, and it need not be installed (extra `otel`). `ledger/docs/observing.md` lists the names.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from attrs import define, field
from msgspec import Struct

from ledger.model.errors import CommitConflictError, CommitUnknownError, LedgerError
from ledger.observing.events import is_heard, tell

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.trace import Span, Tracer


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
