"""Stream kinds: fold, records and times.

The log moves bytes and versions; everything that a table's or the catalog's events mean comes in
through these protocols.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from msgspec import UNSET, Struct

from ledger.events.commit import Commit, Transaction, said_by
from ledger.events.table import ClockCorrected
from ledger.model.errors import InvalidChangeError
from ledger.model.instant import ClockCorrection

S_co = TypeVar("S_co", covariant=True)
S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True)


class StateLike(Protocol):
    """What the log reads of any state."""

    @property
    def version(self) -> int:
        """The commit that the state stands at."""

    @property
    def time_millis(self) -> int:
        """That commit's time."""

    @property
    def effective_millis(self) -> int:
        """The newest effective time up to it."""

    @property
    def corrections(self) -> tuple[ClockCorrection, ...]:
        """What is known of clocks that were ahead, oldest first."""

    @property
    def keeps_outside(self) -> bool:
        """Whether transactions say who and why outside of their lines."""


class Builder(Protocol[S_co, E_contra]):
    """The private, mutable form of a state while commits are folded into it."""

    version: int
    effective_millis: int

    def commit(self, commit: Commit[E_contra]) -> None:
        """Fold one commit, strictly.

        Raises:
            InvalidChangeError: It contradicts the state; the builder must be thrown away.
        """

    def begin(self, version: int, time_millis: int) -> None:
        """Begin the next commit; `commit` is this, and every `add` of its transactions.

        Raises:
            InvalidChangeError: It cannot follow.
        """

    def add(self, transaction: Transaction[E_contra]) -> None:
        """Fold one transaction of the commit that was begun.

        Raises:
            InvalidChangeError: It contradicts the state; the builder must be thrown away.
        """

    def freeze(self) -> S_co:
        """Return the state after everything so far."""


class Stream(Protocol[S, E_contra]):
    """One kind of stream: the catalog's, or a table's."""

    fold_version: int
    """Raised when the state's record changes; each has a folder of checkpoints of its own."""

    event_types: object
    """The union of event classes that the stream can hold."""

    def builder(self, state: S | None) -> Builder[S, E_contra]:
        """Return a builder at `state`; at nothing, before version 0, when it is None."""

    def encode_state(self, state: S) -> bytes:
        """Return the state's record as JSON, for a checkpoint."""

    def decode_state(self, record: bytes | memoryview) -> S:
        """Return the state of a record that `encode_state` gave."""

    def decode_outline(self, record: bytes | memoryview) -> S:
        """Return what searches ask of a record's state, and whatever else is as quick to read.

        That is its version, times, which snapshot is the newest, which schema the
        current one, and its branches. Nobody goes on from it: the rest may be empty.
        """


class Landed(Struct, frozen=True):
    """What an intent becomes when somebody has committed the very same already.

    Attributes:
        version: The commit that holds it.
    """

    version: int


class Postponed(Exception):  # noqa: N818 - it is no error, and never leaves the log
    """An intent has to wait until what it is decided on stands in the log.

    Several writers' transactions may ride in one commit, each decided on those before it; what has
    to read the log can only see what has landed.
    """


class Intent(Protocol[S_contra, E]):
    """What a writer wants, ready to be decided on whatever state it meets."""

    @property
    def base_version(self) -> int | None:
        """The version that the writer looked at; None when it takes whatever it meets first."""

    def meet(self, winners: Sequence[Commit[E]]) -> None:
        """Have ready what `decide` will ask of commits that landed since the base.

        Called while others hold the lock, or not at all; whatever is wrong is left to `decide`.
        """

    def decide(
        self, state: S_contra | None, winners: Sequence[Commit[E]]
    ) -> tuple[E, ...] | Landed:
        """Return the events that the intent becomes on `state`.

        Args:
            state: The newest state known; None before version 0.
            winners: Commits that landed since the base, oldest first.

        Raises:
            InvalidChangeError: It contradicts the state.
            CommitConflictError: A winner set the same cell to another value.
            Postponed: It cannot be decided before the winners have landed.
        """


def correction_of(event: ClockCorrected, version: int, moment: int) -> ClockCorrection:
    """Return what an event says of the commits before it.

    Args:
        event: The fact.
        version: Of the commit that holds it.
        moment: When its transaction took effect, Unix milliseconds.

    Raises:
        InvalidChangeError: No such event can stand there.
    """
    if not 0 <= event.first_version < version or event.true_time_millis > moment:
        raise InvalidChangeError(
            f"version {version}, of {moment}, cannot correct the times from version "
            f"{event.first_version} on to {event.true_time_millis}",
            kind="ILLEGAL_STATE",
        )
    return ClockCorrection(version, event.true_time_millis)


def refuse_misplaced(version: int, time_millis: int, before: int, before_millis: int) -> None:
    """Check that a commit can follow the one before: the next version, at no earlier time.

    Raises:
        InvalidChangeError: It cannot.
    """
    if version == before + 1 and time_millis >= before_millis:
        return
    raise InvalidChangeError(
        f"commit {version} at {time_millis} cannot follow commit {before} at {before_millis}",
        kind="ILLEGAL_STATE",
    )


def refuse_untimely(
    transaction: Transaction[object], moment: int, earliest: int, latest: int
) -> None:
    """Check a time of effect that lies outside of the one before and the commit's own.

    Args:
        transaction: What took effect.
        moment: When.
        earliest: The time of effect before it.
        latest: The time of its commit.

    Raises:
        InvalidChangeError: It does not say that what came before was ahead of the true time.
    """
    corrected = (
        isinstance(each, ClockCorrected) and each.true_time_millis <= moment
        for each in transaction.events
    )
    if moment > latest or not any(corrected):
        raise InvalidChangeError(
            f"transaction {transaction.id} took effect at {moment}, outside of "
            f"{earliest} (the one before) to {latest} (its commit)"
        )


def kept_outside(transaction: Transaction[Any]) -> str:
    """Return what the state says of the author, in a stream that keeps such values outside.

    Args:
        transaction: One that has `outside`.

    Raises:
        InvalidChangeError: Its line holds what is kept outside here.
    """
    if transaction.author or transaction.message or transaction.properties:
        raise _refused(transaction, "its line holds some of them")
    return said_by(transaction)


def keeps_outside(transaction: Transaction[Any], *, before: bool | None) -> bool:
    """Return whether a stream keeps such values outside of its lines: all of them, or none.

    Args:
        transaction: The stream's next one.
        before: What the ones before it say; None before the first.

    Raises:
        InvalidChangeError: It keeps them elsewhere than the ones before it.
    """
    is_outside = transaction.outside is not UNSET
    if before is None or before is is_outside:
        return is_outside
    if before:
        raise _refused(transaction, "its line does not say what was kept")
    raise InvalidChangeError(
        f"transaction {transaction.id}: this stream keeps authors, messages and properties in its "
        "lines since its first transaction, and cannot keep them outside from now on",
        kind="ILLEGAL_STATE",
    )


def _refused(transaction: Transaction[Any], why: str) -> InvalidChangeError:
    return InvalidChangeError(
        f"transaction {transaction.id}: authors, messages and properties are kept outside of the "
        f"lines here, and {why}",
        kind="ILLEGAL_STATE",
    )
