"""Cause: an event with its author, message and commit."""

from __future__ import annotations

from msgspec import Struct

from ledger.events import TableEvent


class Cause(Struct, frozen=True, gc=False):
    """An event with its author, message and commit.

    Excluded from cyclic garbage collection for speed: there is one for each event, without cycles.

    Attributes:
        version: The version of the commit.
        transaction: The id of the transaction.
        author: The author of the transaction.
        message: The message of the transaction.
        time_millis: The effective time, Unix milliseconds.
        fact: The event.
    """

    version: int
    transaction: str
    author: str
    message: str
    time_millis: int
    fact: TableEvent

    def __hash__(self) -> int:
        # Some events contain mappings, which are not hashable.
        return hash((self.version, self.transaction))
