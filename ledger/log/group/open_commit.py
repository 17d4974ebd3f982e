"""OpenCommit: the next commit while transactions join it, each decided on all before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from ledger.events.commit import FORMAT, Commit, Transaction
from ledger.evolution.stream import Builder, StateLike
from ledger.log.caches.checkpoint import Head
from ledger.log.clock import Moment
from ledger.log.codec import digest, encode, encode_transaction
from ledger.log.landing import LogFile
from ledger.log.outside.commit_texts import KeptTexts
from ledger.log.request import Request
from ledger.log.stream_log import StreamLog
from ledger.model.errors import DamagedLogError, InvalidInputError, UpgradeRequiredError

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

MOST_BYTES = 4 * 1024 * 1024
"""A commit takes no further transaction once its bytes are more than this."""


class Proposal(Struct, Generic[S, E], frozen=True):
    """A commit ready to be created, and the head that it would make."""

    commit: Commit[E]
    file: LogFile
    head: Head[S]


class OpenCommit(Generic[S, E]):
    """A commit that follows the head and has not been written.

    Args:
        log: The stream.
        head: What it follows; None before version 0.
        moment: When it is.
        check: Raises for a commit that must not be created at its time.
    """

    def __init__(
        self,
        log: StreamLog[S, E],
        head: Head[S] | None,
        moment: Moment,
        check: Callable[[Commit[E]], None],
    ) -> None:
        self._log = log
        self._head = head
        self._version = head.state.version + 1 if head else 0
        self._key = log.layout.commit(self._version)
        self._moment = moment
        self._check = check
        self._transactions: list[Transaction[E]] = []
        self._bodies: list[bytes] = []
        self._alone: tuple[Commit[E], bytes] | None = None
        self._ids: set[str] = set()
        self._size = 0
        self._state: S | None = self._head.state if self._head else None
        self._builder = self._begun()

    @property
    def version(self) -> int:
        """The commit's number."""
        return self._version

    @property
    def is_empty(self) -> bool:
        """Whether nobody has joined."""
        return not self._transactions

    @property
    def is_full(self) -> bool:
        """Whether it takes no more."""
        return self._size > MOST_BYTES

    def holds(self, commit_id: str) -> bool:
        """Whether a transaction of that id has joined."""
        return commit_id in self._ids

    def state(self) -> S | None:
        """Return the state after all that have joined; None before version 0."""
        if self._state is None and self._transactions:
            self._state = self._builder.freeze()
        return self._state

    def keeps_outside(self, request: Request) -> bool:
        """Whether a transaction says outside of its line who asks and why."""
        state = self.state()
        return request.keeps_outside or (state is not None and state.keeps_outside)

    def commit(self) -> Commit[E]:
        """Return the commit as it is now."""
        return self._of(*self._transactions)

    def join(self, events: tuple[E, ...], request: Request, kept: KeptTexts | None = None) -> None:
        """Take one more transaction, as readers will see it.

        Args:
            events: What was decided.
            request: Who asked.
            kept: What is said outside of the line, where the stream keeps it there.

        Raises:
            InvalidInputError: It contradicts the state, or cannot stand in the log; the commit is
                as it was before.
        """
        asked = self._asked(events, request)
        if kept is not None:
            asked = replace(asked, author="", message="", properties={}, outside=kept.outside)
        body, alone, file = self._readable(asked)
        self._check(alone)
        (transaction,) = alone.transactions
        try:
            # Folding before writing: what contradicts the state is refused before any I/O.
            self._builder.add(transaction)
        except BaseException:
            self._builder = self._begun()
            raise
        self._state = None
        self._transactions.append(transaction)
        self._bodies.append(body)
        # Most commits are of one transaction, and were read as they will be.
        self._alone = (alone, file) if len(self._bodies) == 1 else None
        self._ids.add(transaction.id)
        self._size += len(body)

    def _asked(self, events: tuple[E, ...], request: Request) -> Transaction[E]:
        latest, effective = self._moment.effective_millis, request.effective_millis
        if effective is None:
            effective = latest
        elif latest is not None and effective > latest:
            raise InvalidInputError(
                f"effective_time {effective} lies in the future; it is {latest} (Unix milliseconds)"
            )
        return Transaction(
            id=request.commit_id,
            author=request.author,
            message=request.message,
            properties=dict(sorted(request.properties.items())),
            asked=request.asked,
            effective_time_millis=UNSET if effective is None else effective,
            events=events,
        )

    def proposal(self) -> Proposal[S, E]:
        """Return the commit, ready to be created."""
        commit, body = self._alone or (
            self.commit(),
            encode(self._of(*map(Raw, self._bodies))),
        )
        file = LogFile(self._key, body, commit.version)
        state = self.state()
        if state is None:
            raise AssertionError("a commit that is proposed holds a transaction")
        return Proposal(commit, file, Head(state, digest(body)))

    def _begun(self) -> Builder[S, E]:
        """Return a builder after all that have joined."""
        builder = self._log.stream.builder(self._head.state if self._head else None)
        builder.begin(self._version, self._moment.time_millis)
        for each in self._transactions:
            builder.add(each)
        return builder

    def _of(self, *transactions: Any) -> Commit[E]:
        return Commit(
            format=FORMAT,
            version=self._version,
            time_millis=self._moment.time_millis,
            parent=self._head.digest if self._head else UNSET,
            transactions=transactions,
        )

    def _readable(self, transaction: Transaction[E]) -> tuple[bytes, Commit[E], bytes]:
        """Return a transaction's bytes, and the commit that it would be alone, with its bytes.

        As readers see it: Python checks no types, so what was asked may be nothing for them.
        """
        try:
            body = encode_transaction(transaction)
            file = encode(self._of(Raw(body)))
            return body, self._log.codec.decode(file, self._key), file
        except (DamagedLogError, UpgradeRequiredError) as error:
            cause = error.__cause__ or error
            raise InvalidInputError(
                f"what was asked cannot stand in the log: {cause}; nothing was written"
            ) from error
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"what was asked cannot be written as JSON: {error}; nothing was written"
            ) from error
