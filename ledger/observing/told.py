"""What is told of a commit, and of a run that brings a format's files on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from ledger.model.errors import CommitConflictError, CommitUnknownError, LedgerError
from ledger.observing.notices import tell
from ledger.observing.tracing import count, is_observed, span

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
