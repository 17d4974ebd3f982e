"""Ledgers of many tables, made fast, on a store that counts its requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from attrs import evolve, field, frozen

from ledger import Ledger, SetOption
from ledger.decide.catalog_facts import first_table_commit
from ledger.events.commit import Commit
from ledger.events.table import TableCreated
from ledger.ledger_handle import LedgerHandle
from ledger.log.activity import MARKER, ActivityWriter
from ledger.log.codec import digest, encode
from ledger.log.request import now_millis
from ledger.opening.context import TableSetting
from ledger.stores import Store
from ledger.table_handle import handle_of
from projections.source.commit_feed import CommitFeed
from projections.source.data_source import feed_of
from projections.source.feed_offset import Offset
from projections.source.read_options import ReadOptions
from projections.spark_tasks import LedgerLocation
from tests.faults import Wrapped
from tests.lakes import memory

COLUMNS = {"id": "BIGINT"}


class CountedStore(Wrapped):
    """A store far away: each call is a request, and `counts` says how many there were of each."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_near = False
        self.counts: Counter[str] = Counter()

    @property
    def url(self) -> str:
        """Not in memory, whose ledgers announce nothing."""
        return self.inner.url.replace("memory://", "file:///far/")

    def take_count(self) -> int:
        """Return the number of requests since the last call."""
        found = self.counts.total()
        self.counts.clear()
        return found

    def create(self, key: str, body: bytes) -> bool:
        self.counts["create"] += 1
        return super().create(key, body)

    def read(self, key: str) -> bytes | None:
        self.counts["read"] += 1
        return super().read(key)

    def confirm(self, key: str) -> bytes | None:
        self.counts["read"] += 1
        return super().confirm(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        for each in super().read_many(keys):
            self.counts["read"] += 1
            yield each

    def exists(self, key: str) -> bool:
        self.counts["exists"] += 1
        return super().exists(key)

    def replace(self, key: str, body: bytes) -> None:
        self.counts["replace"] += 1
        super().replace(key, body)

    def walk(self, prefix: str) -> Iterator[str]:
        return self._pages(super().walk(prefix))

    def keys(self, prefix: str) -> Iterator[str]:
        return self._pages(super().keys(prefix))

    def _pages(self, names: Iterator[str]) -> Iterator[str]:
        """Count a request for each thousand names, as services list them."""
        self.counts["list"] += 1
        for number, name in enumerate(names, 1):
            yield name
            if number % 1000 == 0:
                self.counts["list"] += 1

    def delete(self, key: str) -> None:
        self.counts["delete"] += 1
        super().delete(key)


@frozen
class StoredLocation(LedgerLocation):
    """The location of a ledger in a store of the test's choice."""

    given: TableSetting = field(kw_only=True, eq=False)

    def open(self) -> Ledger:
        return Ledger(LedgerHandle(self.given))

    def setting(self) -> TableSetting:
        return self.given


@frozen
class ManyTables:
    """A ledger with many tables in its database `many`, and its store.

    Attributes:
        store: The store.
        lake: The ledger.
        now_millis: The clock of the feeds and of the announcements.
    """

    store: CountedStore
    lake: Ledger
    now_millis: Callable[[], int]

    @classmethod
    def of(cls, count: int, clock: Callable[[], int] = now_millis) -> ManyTables:
        """Return a ledger with some tables, which the catalog creates with one commit."""
        store = CountedStore(memory())
        setting = TableSetting(store, {}, "me", activity=ActivityWriter(clock))
        lake = Ledger(LedgerHandle(setting))
        lake.init()
        # Announcements have been asked for since ever.
        store.inner.create(MARKER, b"0\n")
        lake.create_database("many")
        if count:
            lake.create_table(name_of(0), COLUMNS)
            _create_like_first(lake, store, count)
        made = cls(store, Ledger(LedgerHandle(setting)), clock)
        made.settle()
        return made

    def reopened(self) -> Ledger:
        """Return a handle of the ledger as another process has it."""
        activity = ActivityWriter(self.now_millis)
        return Ledger(LedgerHandle(TableSetting(self.store, {}, "me", activity=activity)))

    def settle(self) -> None:
        """Wait for the announcements, and count from here on."""
        self.lake.close()
        self.store.take_count()

    def feed(self, **given: Any) -> CommitFeed:
        """Return a new feed of all tables, of a process of its own."""
        options = ReadOptions.of({"path": "/far", "table": "*", "view": "commits", **given})
        setting = TableSetting(self.store, {}, "me")
        root = StoredLocation(self.store.url, given=setting)
        return evolve(feed_of(options), root=root, now_millis=self.now_millis)

    def commit(self, number: int, commits: int = 1) -> None:
        """Commit to a table."""
        table = self.lake.table(name_of(number))
        for each in range(commits):
            table.alter([SetOption("k", f"{each}")])


def name_of(number: int) -> str:
    return f"many.t{number}"


def _create_like_first(lake: Ledger, store: CountedStore, count: int) -> None:
    log = handle_of(lake).log
    head = log.head
    assert head is not None
    first = log.commit_at(head.state.version)
    ((event,),) = [each.events for each in first.transactions]
    assert isinstance(event, TableCreated)
    created = [_like(event, number) for number in range(1, count)]
    transaction = msgspec.structs.replace(first.transactions[0], id="many", events=tuple(created))
    version = first.version + 1
    commit: Commit[Any] = msgspec.structs.replace(
        first, version=version, parent=head.digest, transactions=(transaction,)
    )
    assert digest(encode(first)) == head.digest
    for each in created:
        body = encode(first_table_commit(commit, each, transaction))
        store.inner.create(f"{each.path}/_ledger/log/{0:020d}.json", body)
    store.inner.create(log.layout.commit(version), encode(commit))


def _like(event: TableCreated, number: int) -> TableCreated:
    identifier = msgspec.structs.replace(event.identifier, table_name=f"t{number}")
    return msgspec.structs.replace(
        event,
        table_id=f"00000000-0000-7000-8000-{number:012d}",
        path=f"many.db/t{number}",
        identifier=identifier,
    )


def spans_of(feed: CommitFeed, start: Offset, end: Offset) -> dict[str, list[int]]:
    """Return the versions of the batch between two offsets, by the table's name."""
    found: dict[str, list[int]] = {}
    for span in feed.spans(start, end):
        versions = range(span.first, span.end.version + 1)
        found.setdefault(span.table.identifier, []).extend(versions)
    return found
