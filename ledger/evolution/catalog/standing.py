"""Standing: what a request is decided on, and who to name when somebody else came first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from ledger.events.base import kind_of
from ledger.events.catalog_events import CatalogEvent
from ledger.events.commit import Commit, said_by
from ledger.evolution.catalog.builder import identifier_of
from ledger.evolution.catalog.facts import CATALOG_FACTS
from ledger.evolution.catalog.state import CatalogState
from ledger.model.errors import CommitConflictError, LedgerError
from ledger.model.identifier import Identifier


@frozen
class Standing:
    """What a request is decided on.

    Attributes:
        state: The newest state known.
        base: The state that the writer looked at when it asked.
        winners: The commits between the two, oldest first.
    """

    state: CatalogState
    base: CatalogState
    winners: Sequence[Commit[CatalogEvent]]

    def refusal(
        self, cell: str, won: Callable[[CatalogEvent], bool], otherwise: LedgerError
    ) -> LedgerError:
        """Return the error to raise: a conflict when a winner made it so, else `otherwise`.

        Args:
            cell: What both writers wanted.
            won: Whether an event is what stands in the way; the newest such is named.
            otherwise: What is wrong, when it was so before the writer asked.
        """
        for commit in reversed(self.winners):
            for transaction in reversed(commit.transactions):
                for event in reversed(transaction.events):
                    if won(event):
                        author = said_by(transaction) or None
                        message = _conflict_message(otherwise, event, commit.version, author)
                        return CommitConflictError(message, cell, commit.version, author, event)
        return otherwise

    def changed_since(self, changed: Callable[[CatalogEvent], bool]) -> bool:
        """Whether a winner holds an event like that."""
        return any(
            changed(event)
            for commit in self.winners
            for transaction in commit.transactions
            for event in transaction.events
        )


def takes_name(identifier: Identifier) -> Callable[[CatalogEvent], bool]:
    """Return the test for events after which something has that name."""

    def test(event: CatalogEvent) -> bool:
        names = CATALOG_FACTS[type(event)].names
        return names is not None and identifier_of(names(event)) == identifier

    return test


def _conflict_message(
    otherwise: LedgerError, event: CatalogEvent, version: int, author: str | None
) -> str:
    tag = kind_of(type(event))
    who = author or "another writer"
    return f"{otherwise.message} ({who} came first with {tag} in catalog version {version})"
