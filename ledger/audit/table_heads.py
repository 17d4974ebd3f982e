"""Heads of all tables that a ledger ever had: the newest commit of each, without opening them.

A listing of the newest commits has to know which tables have them, and must not miss a commit whose
writer died before it could tell anyone. So every table is probed: a table that was at version 7 is
unchanged if there is no version 8. This costs a request per table, and reads no commit.

A handle keeps the heads in memory. A cache below the catalog's folder has the tables, with their
names, and the version of each head, for other processes. It says only where to look: a process
reads the time of each head from the commit itself, once, and a version that the log does not have
is searched anew.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ledger.log.checkpoints import Checkpoints, Head
from ledger.log.codec import Codec, Sketch, digest
from ledger.log.commit_queue import register_after_fork
from ledger.log.layout import Layout
from ledger.log.stream_log import StreamLog
from ledger.model.errors import DamagedLogError, LedgerError
from ledger.model.names import Identifier
from ledger.state.catalog import CatalogState
from ledger.state.catalog_builder import ABOUT_TABLES, LiveOrDroppedTable, LiveOrDroppedTables
from ledger.state.records import TableStream
from ledger.stores import Store
from ledger.stores.concurrency import answers

A = TypeVar("A")

_FORMAT: Final = 1

_AT_ONCE: Final = 32
"""Number of tables of remote stores that are probed concurrently."""

_WORTH_SAVING: Final = 64
"""Number of changes that are not in the cache, at least, before it is written."""

_SAVED_SHARE: Final = 16
"""The cache is written once its changes are more than the tables divided by this number."""


class TableHead(Struct, frozen=True):
    """The newest commit of a table.

    Attributes:
        table: The table.
        store: The store of its log.
        layout: The keys of its log.
        next_key: The key of the commit after it.
        version: The commit's version; -1 where none is known or can be read.
        time_millis: The commit's time, Unix milliseconds; no entry of the table is later.
    """

    table: LiveOrDroppedTable
    store: Store
    layout: Layout
    next_key: str
    version: int = -1
    time_millis: int = 0

    @property
    def is_live(self) -> bool:
        """True unless the table was dropped."""
        return self.table.dropped_millis is None

    def is_outdated(self) -> bool:
        """Return whether there is a newer commit, or a table that exists has no known head.

        False if a dropped table cannot be read: its folder may be deleted.
        """
        if self.version < 0 and self.is_live:
            return True
        try:
            return self.store.exists(self.next_key)
        except (LedgerError, OSError):
            if self.is_live:
                raise
            return False


class _CacheHeader(Struct, frozen=True, rename="camel"):
    """First line of the cache.

    Attributes:
        format: Number of the cache's format.
        version: The catalog's version that the tables were read to.
        head: The digest of that commit's file.
        check: SHA-256 of the second line.
    """

    format: int
    version: int
    head: str
    check: str


class _TableRecord(Struct, frozen=True, gc=False, array_like=True):
    table_id: str
    path: str
    created_version: int
    names: tuple[tuple[int, str, str], ...]
    head: int
    dropped_millis: int | None
    is_purged: bool

    @classmethod
    def of(cls, head: TableHead) -> _TableRecord:
        each = head.table
        names = tuple((since, name.database, name.name) for since, name in each.names)
        return cls(
            *(each.table_id, each.path, each.created_version, names),
            *(head.version, each.dropped_millis, each.is_purged),
        )

    def table(self) -> LiveOrDroppedTable:
        names = tuple((since, Identifier(*name)) for since, *name in self.names)
        return LiveOrDroppedTable(
            *(self.table_id, self.path, self.created_version),
            *(names, self.dropped_millis, self.is_purged),
        )


_HEADERS = msgspec.json.Decoder(_CacheHeader)
_RECORDS = msgspec.json.Decoder(tuple[_TableRecord, ...])


class _CachedTables(LiveOrDroppedTables):
    """Tables that go on from those of a cache."""

    def __init__(self, tables: Iterable[LiveOrDroppedTable] = ()) -> None:
        super().__init__()
        self._by_id.update((each.table_id, each) for each in tables)


class TableHeads:
    """Heads of a ledger's tables; safe to share between threads.

    Args:
        catalog: The catalog's stream.
        place_of: Returns the store of a table's stream and its folder there, by the table's path.
    """

    def __init__(
        self,
        catalog: StreamLog[CatalogState, Any],
        place_of: Callable[[str], tuple[Store, str]],
    ) -> None:
        self._catalog = catalog
        self._place_of = place_of
        self._stream = TableStream()
        self._codec: Codec[Any] = Codec(self._stream.event_types)
        self._tables: Iterable[LiveOrDroppedTable] = ()
        self._tables_version = -1
        self._heads: dict[str, TableHead] = {}
        self._cached: dict[str, int] = {}
        self._cached_version = -1
        self.after_fork()
        register_after_fork(self)

    def after_fork(self) -> None:
        """Replace the lock: a forked child has none of the threads that hold it."""
        self._mutex = threading.RLock()

    def refresh(self, open_missing: Callable[[LiveOrDroppedTable], object]) -> list[TableHead]:
        """Return the heads of all tables that have a log, in order of creation.

        Tables that a copied ledger left to its original are excluded.

        Args:
            open_missing: Opens a table that exists and has no log, which writes a missing version 0
                or raises an error.

        Raises:
            DamagedLogError: The log of a table that exists is missing, or its head is damaged.
        """
        with self._mutex:
            catalog = self._catalog.head
            if catalog is None:
                return []
            self._learn(catalog)
            outdated = self._outdated()
            if outdated:
                self._search(outdated, open_missing)
                self._save(catalog)
            return [each for each in self._heads.values() if each.version >= 0]

    def _learn(self, catalog: Head[CatalogState]) -> None:
        """Read the catalog's new commits that name tables."""
        version = catalog.state.version
        if version == self._tables_version:
            return
        # A copy, so that an error or a signal handler leaves nothing half done.
        tables, read = _CachedTables(self._tables), self._tables_version
        if read < 0:
            tables, read = self._load(catalog)
        for _, commit in self._catalog.find_matching_commits(read + 1, version, _is_about_tables):
            tables.learn(commit)
        # No path is used twice.
        self._heads = {each.path: self._renamed(each) for each in tables}
        self._tables, self._tables_version = tables, version

    def _renamed(self, table: LiveOrDroppedTable) -> TableHead:
        """Return the head known of a table, with its newest name; without a version if unknown."""
        known = self._heads.get(table.path)
        if known is None:
            store, root = self._place_of(table.path)
            return _unknown(table, store, Layout.of_fold(root, self._stream.fold_version))
        return known if known.table is table else replace(known, table=table)

    def _outdated(self) -> list[TableHead]:
        heads = [*self._heads.values()]
        are_outdated = _ask_each(TableHead.is_outdated, heads)
        return [each for each, is_outdated in zip(heads, are_outdated, strict=True) if is_outdated]

    def _search(
        self,
        outdated: Sequence[TableHead],
        open_missing: Callable[[LiveOrDroppedTable], object],
    ) -> None:
        """Search the newest commits of some tables."""
        for head in _ask_each(self._newest, outdated):
            if head.version < 0 and head.is_live:
                # Its creation was interrupted, or its log was lost.
                open_missing(head.table)
                head = self._newest(head)  # noqa: PLW2901
            self._heads[head.table.path] = head

    def _newest(self, known: TableHead) -> TableHead:
        """Return the newest head of a table; one without a version if it cannot be read."""
        try:
            return self._search_after(known)
        except (LedgerError, OSError):
            if known.is_live:
                raise
            return _unknown(known.table, known.store, known.layout)

    def _search_after(self, known: TableHead) -> TableHead:
        store, layout = known.store, known.layout
        last = max(known.version, self._cached.get(known.table.path, -1))
        if last < 0:
            last = Checkpoints(store, layout, self._stream).read_hint() or -1
        body = store.read(layout.commit(last)) if last >= 0 else None
        if body is None:
            last = -1
        newest = _last_version(store, layout, last)
        if newest < 0:
            return _unknown(known.table, known.store, known.layout)
        key = layout.commit(newest)
        if newest > last:
            body = store.read(key)
        if body is None:
            raise DamagedLogError(f"{key} was there and is missing now", key)
        time_millis = self._codec.sketch(body, key).time_millis
        next_key = layout.commit(newest + 1)
        return TableHead(known.table, store, layout, next_key, newest, time_millis)

    @property
    def _cache_key(self) -> str:
        return self._catalog.layout.heads

    def _load(self, catalog: Head[CatalogState]) -> tuple[_CachedTables, int]:
        """Return the tables of the cache and their version, and keep the versions of the heads."""
        body = self._catalog.store.read(self._cache_key)
        found = None if body is None else _decode_cache(body)
        if found is None or not self._is_of_this_catalog(found[0], catalog):
            return _CachedTables(), -1
        header, records = found
        self._cached = {each.path: each.head for each in records}
        self._cached_version = header.version
        return _CachedTables(each.table() for each in records), header.version

    def _is_of_this_catalog(self, header: _CacheHeader, catalog: Head[CatalogState]) -> bool:
        if header.version >= catalog.state.version:
            return (header.version, header.head) == (catalog.state.version, catalog.digest)
        body = self._catalog.store.read(self._catalog.layout.commit(header.version))
        return body is not None and digest(body) == header.head

    def _save(self, catalog: Head[CatalogState]) -> None:
        """Write the cache once it misses enough; not being able to write it costs time only."""
        heads, cached = self._heads.values(), self._cached
        missing = sum(each.version != cached.get(each.table.path, -1) for each in heads)
        missing += catalog.state.version - self._cached_version
        if missing < max(_WORTH_SAVING, len(heads) // _SAVED_SHARE):
            return
        body = _encode_cache(catalog, heads)
        with suppress(LedgerError, OSError):
            self._catalog.store.replace(self._cache_key, body)
        self._cached = {each.table.path: each.version for each in heads}
        self._cached_version = catalog.state.version


def _ask_each(ask: Callable[[TableHead], A], heads: Sequence[TableHead]) -> list[A]:
    """Return the answer about each head; concurrently if a log is on a remote store."""
    if all(each.store.is_near for each in heads):
        return [ask(each) for each in heads]
    return answers(ask, heads, _AT_ONCE)


def _unknown(table: LiveOrDroppedTable, store: Store, layout: Layout) -> TableHead:
    return TableHead(table, store, layout, layout.commit(0))


def _last_version(store: Store, layout: Layout, known: int) -> int:
    """Return the last version of a gapless log, given one that exists; -1 for none.

    Most logs end there or soon after, so the steps start small and double.
    """
    step = 1
    while store.exists(layout.commit(known + step)):
        known += step
        step *= 2
    while step > 1:
        step //= 2
        if store.exists(layout.commit(known + step)):
            known += step
    return known


def _is_about_tables(commit: Sketch) -> bool:
    return any(event.type in ABOUT_TABLES for each in commit.transactions for event in each.events)


def _encode_cache(catalog: Head[CatalogState], heads: Iterable[TableHead]) -> bytes:
    records = msgspec.json.encode([*map(_TableRecord.of, heads)])
    header = _CacheHeader(
        _FORMAT, catalog.state.version, catalog.digest, hashlib.sha256(records).hexdigest()
    )
    return b"%s\n%s\n" % (msgspec.json.encode(header), records)


def _decode_cache(body: bytes) -> tuple[_CacheHeader, tuple[_TableRecord, ...]] | None:
    """Return the contents of the cache; None if it is torn, changed or of another format."""
    first, _, rest = body.partition(b"\n")
    records = rest.removesuffix(b"\n")
    try:
        header = _HEADERS.decode(first)
        is_whole = header.check == hashlib.sha256(records).hexdigest()
        if header.format != _FORMAT or not is_whole:
            return None
        return header, _RECORDS.decode(records)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
