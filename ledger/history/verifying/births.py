"""Every table that the catalog ever named, and whether its own stream agrees.

Both streams hold a table's birth and its end: version 0 of the table's is a function of the
catalog's commit, and a table is forgotten only after its stream was sealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from ledger.events import TableEvent
from ledger.events.catalog_events import CatalogEvent
from ledger.events.commit import Commit
from ledger.events.table_events import TableCreated
from ledger.evolution.catalog.birth import first_commit
from ledger.evolution.catalog.history import PastTables
from ledger.evolution.state import TableState
from ledger.history.verifying.finding import FROM_BACKUP, Finding
from ledger.history.verifying.subject import Subject
from ledger.history.verifying.verify import Verification
from ledger.log.codec import digest, encode
from ledger.model.identifier import Identifier


@frozen
class NamedBirth:
    """A table, as the catalog's commits name it.

    Attributes:
        identifier: Its newest name.
        table_id: What it is known by through renames.
        path: Its location: relative to the ledger's root, absolute when external.
        created_version: The catalog's commit that created it.
        digest: Of its version 0.
        dropped_millis: When the catalog forgot it, Unix milliseconds; None while it knows it.
    """

    identifier: Identifier
    table_id: str
    path: str
    created_version: int
    digest: str
    dropped_millis: int | None = None

    @property
    def is_dropped(self) -> bool:
        """Whether the catalog forgot it."""
        return self.dropped_millis is not None

    @property
    def name(self) -> str:
        """What people call it."""
        return str(self.identifier) + (" (dropped)" if self.is_dropped else "")


class Births:
    """The tables of a catalog, learned commit by commit; dropped ones stay.

    Those that a copy left to its original do not.
    """

    def __init__(self) -> None:
        self._tables = PastTables()
        self._digests: dict[str, str] = {}

    @classmethod
    def of(cls, commits: Iterable[Commit[CatalogEvent]]) -> Births:
        """Return the tables that some commits name."""
        births = cls()
        for each in commits:
            births.learn(each)
        return births

    def __iter__(self) -> Iterator[NamedBirth]:
        for each in self._tables:
            yield NamedBirth(
                each.identifier,
                each.table_id,
                each.path,
                each.created_version,
                self._digests[each.table_id],
                each.dropped_millis,
            )

    def learn(self, commit: Commit[CatalogEvent]) -> None:
        """Take in the catalog's next commit."""
        self._tables.learn(commit)
        for transaction in commit.transactions:
            for event in transaction.events:
                if isinstance(event, TableCreated):
                    first = first_commit(commit, event, transaction)
                    self._digests[event.table_id] = digest(encode(first))

    def named(self, identifier: Identifier) -> NamedBirth | None:
        """Return the table that has a name now."""
        known = (each for each in self if each.dropped_millis is None)
        return next((each for each in known if each.identifier == identifier), None)


def disagreements(
    birth: NamedBirth,
    subject: Subject[TableState, TableEvent],
    verified: Verification[TableState, TableEvent],
) -> Iterator[Finding]:
    """Yield where a table's stream, verified before, and the catalog tell different stories."""
    key = subject.layout.commit(0)
    if verified.version < 0:
        yield Finding(
            "damage",
            f"the catalog's version {birth.created_version} created the table, but it has no "
            "stream",
            key,
            0,
            "if nothing was ever written to it, open it: that finishes its creation; else "
            "restore its folder from a backup",
        )
    elif verified.first_digest is not None and verified.first_digest != birth.digest:
        yield Finding(
            "damage",
            f"it is not the version 0 of table {birth.table_id}, which the catalog's version "
            f"{birth.created_version} contains",
            key,
            0,
            f"another table's stream may stand there, or one of the two was changed: {FROM_BACKUP}",
        )
    elif verified.state is not None:
        yield from _ends(birth, subject, verified.state)


def _ends(
    birth: NamedBirth, subject: Subject[TableState, TableEvent], state: TableState
) -> Iterator[Finding]:
    key = subject.layout.commit(state.version)
    if state.dropped and birth.dropped_millis is None:
        yield Finding(
            "unfinished",
            "the table's stream is sealed, but the catalog still names it",
            key,
            state.version,
            "open the table: that finishes the drop",
        )
    elif not state.dropped and birth.dropped_millis is not None:
        yield Finding(
            "damage",
            "the catalog says that the table was dropped, but its stream is not sealed: its end "
            "is missing",
            subject.layout.commit(state.version + 1),
            state.version + 1,
        )
