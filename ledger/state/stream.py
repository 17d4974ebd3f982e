"""Stream kinds: fold, records and times.

The log moves bytes and versions; the meaning of a table's or the catalog's events is defined
through these protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import UNSET, Struct

from ledger.events.commit import Commit, Transaction, said_by
from ledger.events.table import ClockCorrected
from ledger.model.errors import InvalidChangeError
from ledger.model.instant import ClockCorrection
from ledger.state.paged_map import PageFiles

S_co = TypeVar("S_co", covariant=True)
S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True)


def _do_nothing() -> None:
    """Do nothing."""


class StateLike(Protocol):
    """The part of any state that the log reads."""

    @property
    def version(self) -> int:
        """The number of the last folded commit."""

    @property
    def time_millis(self) -> int:
        """That commit's time."""

    @property
    def effective_millis(self) -> int:
        """The newest effective time up to it."""

    @property
    def corrections(self) -> tuple[ClockCorrection, ...]:
        """Corrections of clocks that were ahead, oldest first."""

    @property
    def keeps_outside(self) -> bool:
        """True if authors, messages and properties of transactions are kept in sidecars."""


class Builder(Protocol[S_co, E_contra]):
    """The private, mutable form of a state while commits are folded."""

    version: int
    effective_millis: int

    def commit(self, commit: Commit[E_contra]) -> None:
        """Fold one commit, strictly.

        Raises:
            InvalidChangeError: It contradicts the state; the builder must be discarded.
        """

    def begin(self, version: int, time_millis: int) -> None:
        """Begin the next commit; `commit` is this, followed by `add` for each transaction.

        Raises:
            InvalidChangeError: It cannot follow.
        """

    def add(self, transaction: Transaction[E_contra]) -> None:
        """Fold one transaction of the commit that was begun.

        Raises:
            InvalidChangeError: It contradicts the state; the builder must be discarded.
        """

    def freeze(self) -> S_co:
        """Return the state after everything so far."""


class EncodedCheckpoint(Struct, frozen=True):
    """Encoded state of a checkpoint.

    Attributes:
        record: The state as JSON.
        pages: The pages to write before it, by name.
        mark_stored: Called once the pages are written.
    """

    record: bytes
    pages: Mapping[str, bytes] = {}
    mark_stored: Callable[[], None] = _do_nothing


class Stream(Protocol[S, E_contra]):
    """One kind of stream: the catalog's, or a table's."""

    fold_version: int
    """Incremented when the state's record changes; each has its own folder of checkpoints."""

    event_types: object
    """The union of event classes that the stream can hold."""

    def builder(self, state: S | None) -> Builder[S, E_contra]:
        """Return a builder that starts from `state`; before version 0 when it is None."""

    def encode_state(self, state: S) -> bytes:
        """Return the state's record as JSON, for a checkpoint."""

    def decode_state(self, record: bytes | memoryview) -> S:
        """Return the state of a record that `encode_state` encoded."""

    def encode_checkpoint(self, state: S) -> EncodedCheckpoint:
        """Return the state as a checkpoint holds it, with the pages beside it."""

    def decode_checkpoint(self, record: bytes | memoryview, files: PageFiles) -> S:
        """Return the state of a checkpoint's record; it may read pages later, when asked.

        Args:
            record: The record.
            files: The pages beside the checkpoint.
        """

    def decode_outline(self, record: bytes | memoryview) -> S:
        """Return the part of a checkpoint's state that searches read, quickly.

        It has version, times, the newest snapshot, the current schema's id, and branches. It is
        never continued: the rest may be empty.
        """


class AlreadyCommitted(Struct, frozen=True):
    """Result of an intent whose very request was committed already.

    Attributes:
        version: The commit that holds it.
    """

    version: int


class DecisionPostponed(Exception):  # noqa: N818 - it is no error, and never leaves the log
    """Raised when an intent has to wait until the commits that it is decided on are in the log.

    Several writers' transactions may be batched in one commit, each decided on those before it; a
    decision that has to read the log sees only what is committed.
    """


class Intent(Protocol[S_contra, E]):
    """A writer's request, which can be decided on any state."""

    @property
    def base_version(self) -> int | None:
        """The version that the writer saw; None when any version will do."""

    def index_winners(self, winners: Sequence[Commit[E]]) -> None:
        """Prepare what `decide` needs to know of commits since the base.

        Called while other writers hold the lock, or not at all; errors are raised by `decide`.
        """

    def decide(
        self, state: S_contra | None, winners: Sequence[Commit[E]]
    ) -> tuple[E, ...] | AlreadyCommitted:
        """Return the events that the intent becomes on `state`.

        Args:
            state: The newest state known; None before version 0.
            winners: The commits since the base, oldest first.

        Raises:
            InvalidChangeError: It contradicts the state.
            CommitConflictError: A winner set the same cell to another value.
            DecisionPostponed: It cannot be decided before the winners are committed.
        """


def clock_correction_of(event: ClockCorrected, version: int, moment: int) -> ClockCorrection:
    """Return the clock correction that an event records for the commits before it.

    Args:
        event: The event.
        version: Of the commit that holds it.
        moment: When its transaction took effect, Unix milliseconds.

    Raises:
        InvalidChangeError: Its times contradict the commits before it.
    """
    if not 0 <= event.first_version < version or event.true_time_millis > moment:
        raise InvalidChangeError(
            f"version {version}, of {moment}, cannot correct the times from version "
            f"{event.first_version} on to {event.true_time_millis}",
            kind="ILLEGAL_STATE",
        )
    return ClockCorrection(version, event.true_time_millis)


def refuse_misplaced_commit(
    version: int, time_millis: int, before: int, before_millis: int
) -> None:
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


def refuse_untimely_transaction(
    transaction: Transaction[object], moment: int, earliest: int, latest: int
) -> None:
    """Check that an effective time is between the one before and the commit's own time.

    Args:
        transaction: The transaction.
        moment: Its effective time, Unix milliseconds.
        earliest: The effective time before it.
        latest: The time of its commit.

    Raises:
        InvalidChangeError: It is not, and no clock correction explains that.
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


def sidecar_author_digest(transaction: Transaction[Any]) -> str:
    """Return the author as the state records it in a stream with sidecars: the digest.

    Args:
        transaction: A transaction that has `outside`.

    Raises:
        InvalidChangeError: Its line holds values that are kept in sidecars here.
    """
    if transaction.author or transaction.message or transaction.properties:
        raise _transaction_error(transaction, "its line holds some of them")
    return said_by(transaction)


def keeps_outside(transaction: Transaction[Any], *, before: bool | None) -> bool:
    """Return whether a stream keeps authors, messages and properties in sidecars: all or none.

    Args:
        transaction: The stream's next one.
        before: The answer for the ones before it; None before the first.

    Raises:
        InvalidChangeError: It keeps them elsewhere than the ones before it.
    """
    is_outside = transaction.outside is not UNSET
    if before is None or before is is_outside:
        return is_outside
    if before:
        raise _transaction_error(transaction, "its line does not say what was kept")
    raise InvalidChangeError(
        f"transaction {transaction.id}: this stream keeps authors, messages and properties in its "
        "lines since its first transaction, and cannot keep them outside from now on",
        kind="ILLEGAL_STATE",
    )


def _transaction_error(transaction: Transaction[Any], why: str) -> InvalidChangeError:
    return InvalidChangeError(
        f"transaction {transaction.id}: authors, messages and properties are kept outside of the "
        f"lines here, and {why}",
        kind="ILLEGAL_STATE",
    )
