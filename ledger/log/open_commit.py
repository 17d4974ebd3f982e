"""OpenCommit: the next commit while transactions join it, each decided on all before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from attrs import frozen
from msgspec import UNSET, Raw

from ledger.events.commit import FORMAT_VERSION, Commit, Transaction
from ledger.evolution.stream import Builder, StateLike
from ledger.log.checkpoint import Head
from ledger.log.codec import digest, encode, encode_transaction
from ledger.log.landing import Draft
from ledger.log.request import Request
from ledger.log.stream_log import StreamLog
from ledger.model.errors import DamagedLogError, InvalidInputError, UpgradeRequiredError

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

MOST_BYTES = 4 * 1024 * 1024
"""A commit takes no further transaction once its bytes are more than this."""


@frozen
class Proposal(Generic[S, E]):
    """A commit ready to be created, and the head that it would make."""

    commit: Commit[E]
    draft: Draft
    head: Head[S]


class OpenCommit(Generic[S, E]):
    """A commit that follows the head and has not been written.

    Args:
        log: The stream.
        head: What it follows; None before version 0.
        time_millis: The commit's time.
        check: Raises for a commit that must not be created at its time.
    """

    def __init__(
        self,
        log: StreamLog[S, E],
        head: Head[S] | None,
        time_millis: int,
        check: Callable[[Commit[E]], None],
    ) -> None:
        self._log = log
        self._head = head
        self._time_millis = time_millis
        self._check = check
        self._transactions: list[Transaction[E]] = []
        self._bodies: list[bytes] = []
        self._ids: set[str] = set()
        self._size = 0
        self._state: S | None = self._head.state if self._head else None
        self._builder = self._begun()

    @property
    def version(self) -> int:
        """The commit's number."""
        return self._head.state.version + 1 if self._head else 0

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

    def commit(self) -> Commit[E]:
        """Return the commit as it is now."""
        return self._of(*self._transactions)

    def join(self, events: tuple[E, ...], request: Request) -> None:
        """Take one more transaction, as readers will see it.

        Raises:
            InvalidInputError: It contradicts the state, or cannot stand in the log; the commit is
                as it was before.
        """
        effective = request.effective_millis
        asked: Transaction[E] = Transaction(
            id=request.commit_id,
            author=request.author,
            message=request.message,
            properties=dict(sorted(request.properties.items())),
            asked=UNSET if request.asked is None else request.asked,
            effective_time_millis=UNSET if effective is None else effective,
            events=events,
        )
        body, alone = self._readable(asked)
        self._check(alone)
        (transaction,) = alone.transactions
        try:
            # Folding before writing: what contradicts the state is refused before any I/O.
            self._builder.add(transaction)
        except BaseException:
            self._builder = self._begun()
            for each in self._transactions:
                self._builder.add(each)
            raise
        self._state = None
        self._transactions.append(transaction)
        self._bodies.append(body)
        self._ids.add(transaction.id)
        self._size += len(body)

    def proposal(self) -> Proposal[S, E]:
        """Return the commit, ready to be created."""
        commit = self.commit()
        body = encode(self._of(*map(Raw, self._bodies)))
        draft = Draft(self._log.layout.commit(commit.version), body, commit.version)
        state = self.state()
        if state is None:
            raise AssertionError("a commit that is proposed holds a transaction")
        return Proposal(commit, draft, Head(state, digest(body)))

    def _begun(self) -> Builder[S, E]:
        builder = self._log.stream.builder(self._head.state if self._head else None)
        builder.begin(self.version, self._time_millis)
        return builder

    def _of(self, *transactions: Any) -> Commit[E]:
        return Commit(
            format=FORMAT_VERSION,
            version=self.version,
            time_millis=self._time_millis,
            parent=self._head.digest if self._head else UNSET,
            transactions=transactions,
        )

    def _readable(self, transaction: Transaction[E]) -> tuple[bytes, Commit[E]]:
        """Return a transaction's bytes, and the commit that it would be alone, as readers see it.

        Python checks no types, so what was asked may be nothing that they can read.
        """
        key = self._log.layout.commit(self.version)
        try:
            body = encode_transaction(transaction)
            return body, self._log.codec.decode(encode(self._of(Raw(body))), key)
        except (DamagedLogError, UpgradeRequiredError) as error:
            cause = error.__cause__ or error
            raise InvalidInputError(
                f"what was asked cannot stand in the log: {cause}; nothing was written"
            ) from error
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"what was asked cannot be written as JSON: {error}; nothing was written"
            ) from error
