"""Listings of snapshots, partitions and every table a ledger ever had."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from attrs import evolve, frozen

from ledger.audit.entries import (
    FIRST_READ_OF_MANY,
    Entry,
    EntryFilter,
    entries,
    merge_lazily_by_time,
)
from ledger.audit.table_heads import TableHead
from ledger.audit.views import Columns, Row, Rows
from ledger.events.snapshots import snapshot_events
from ledger.history.older import TableLog, state_at_snapshot
from ledger.log.personal_data import ERASED
from ledger.log.request import find_commit
from ledger.log.stream_log import StreamLog
from ledger.log.time_travel import effective_millis
from ledger.model.errors import LedgerError
from ledger.model.file_change import FileChange, sidecar_location_of
from ledger.model.instant import ClockCorrection, corrected_commit_millis
from ledger.model.snapshot import Snapshot
from ledger.state.catalog_builder import LiveOrDroppedTable
from ledger.state.native_origin import OriginSnapshot
from ledger.state.snapshots import snapshot_of
from ledger.state.table import TableState

Sums = tuple[int, int, int]
"""Sums of rows, files and bytes."""


def partition_sums(state: TableState, files: Iterable[FileChange]) -> dict[str, Sums]:
    """Return the sums of each partition, by its path under the spec of its files.

    Args:
        state: The state of the table.
        files: Its live files.
    """
    running = RunningSums(state)
    running.take(files)
    return running.by_path


class RunningSums:
    """Running sums of each partition; file changes are added in the log's order.

    Args:
        state: The state of the table, which has the specs of the files.

    Attributes:
        by_path: The sums, by the partition's path under the spec of its files.
    """

    def __init__(self, state: TableState) -> None:
        self._state = state
        self.by_path: dict[str, Sums] = {}

    def take(self, changes: Iterable[FileChange]) -> None:
        """Add file changes, in the log's order: the ADD of a file before its DELETE."""
        for each in changes:
            path = partition_path(self._state, each)
            sign = 1 if each.kind == "ADD" else -1
            rows, count, length = self.by_path.get(path, (0, 0, 0))
            rows += sign * each.record_count
            length += sign * each.file_size_in_bytes
            count += sign
            if count:
                self.by_path[path] = rows, count, length
            else:
                del self.by_path[path]


def partition_path(state: TableState, file: FileChange) -> str:
    """Return the partition of a file as text, such as `day=2024-01-01`."""
    names = (each.name for each in state.spec_by_id(file.spec_id).fields)
    pairs = zip(names, file.partition, strict=False)
    shown = (
        f"{name}={value if sidecar_location_of(value) is None else ERASED}" for name, value in pairs
    )
    return "/".join(shown) or "(unpartitioned)"


def changed_partitions(
    before: dict[str, Sums], after: dict[str, Sums]
) -> list[tuple[str, Sums, Sums]]:
    """Return the partitions whose sums changed, with the sums before and after."""
    none = (0, 0, 0)
    return [
        (path, before.get(path, none), after.get(path, none))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    ]


_AT_ONCE = 16


def entries_of_all_streams(
    catalog: StreamLog[Any, Any],
    heads: Iterable[TableHead],
    log_of: Callable[[LiveOrDroppedTable], StreamLog[Any, Any] | None],
    database: str | None,
    wanted: EntryFilter,
) -> Iterator[Entry]:
    """Yield the entries of a catalog and of every table that it ever had, newest first.

    A table is opened once no other can have a newer entry, so the newest entries of many tables are
    read from few of them. Commits after the given heads are left out.

    Args:
        catalog: The catalog's stream, read to its head.
        heads: The newest commit of each table.
        log_of: Opens a table's stream; None if a dropped table left none.
        database: Restricts the entries to tables of one database; None for all and the catalog.
        wanted: The filter of the entries.
    """
    until = math.inf if wanted.until_millis is None else wanted.until_millis
    since = -math.inf if wanted.since_millis is None else wanted.since_millis
    tables = [
        each
        for each in heads
        if each.time_millis >= since
        and (database is None or each.table.identifier.database == database)
    ]
    latest: list[float] = [min(each.time_millis, until) for each in tables]
    head = catalog.head
    if database is not None or head is None:
        return merge_lazily_by_time(
            latest, lambda place: _entries_of_table(tables[place], log_of, wanted)
        )
    of_catalog = entries(catalog, "", wanted, FIRST_READ_OF_MANY)
    return merge_lazily_by_time(
        [min(head.state.time_millis, until), *latest],
        lambda place: _entries_of_table(tables[place - 1], log_of, wanted) if place else of_catalog,
    )


def _entries_of_table(
    head: TableHead,
    log_of: Callable[[LiveOrDroppedTable], StreamLog[Any, Any] | None],
    wanted: EntryFilter,
) -> Iterator[Entry]:
    log = log_of(head.table)
    if log is None:
        return
    last = head.version if wanted.last is None else min(wanted.last, head.version)
    until_head = evolve(wanted, last=last)
    for entry in entries(log, str(head.table.identifier), until_head, FIRST_READ_OF_MANY):
        yield _with_later_table_name(head.table, entry)


@frozen
class SearchedStream:
    """Stream to search for a commit id.

    Attributes:
        table: The table's name, the last one if it was dropped; empty for the catalog.
        open: Opens the stream.
        is_dropped: True if the table was dropped.
    """

    table: str
    open: Callable[[], StreamLog[Any, Any]]
    is_dropped: bool = False

    def find_entry(self, commit_id: str) -> Entry | str | None:
        """Return the entry of a commit id, None, or the reason why the log is not readable."""
        try:
            log = self.open()
            if log.refresh() is None:
                return "there is no log, or none any more"
            matching = find_commit(log, commit_id)
            if matching is None:
                return None
        except (LedgerError, OSError) as error:
            return str(getattr(error, "message", error))
        mine = next(each for each in matching.transactions if each.id == commit_id)
        return Entry(self.table, matching, mine, is_dropped=self.is_dropped)


@frozen
class FoundCommits:
    """Result of a search for a commit id in all streams of a ledger.

    Attributes:
        entries: The transactions with that id, the catalog's first: a drop is in both streams.
        tables: Number of tables, including dropped ones.
        unread: Reasons why logs could not be read, by table.
    """

    entries: tuple[Entry, ...]
    tables: int
    unread: Mapping[str, str]


def find_commits(
    commit_id: str, streams: Sequence[SearchedStream], on_progress: Callable[[int, int], None]
) -> FoundCommits:
    """Search several streams for a commit id, concurrently because remote stores are slow."""
    entries: list[Entry] = []
    unread: dict[str, str] = {}
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="find-commits") as pool:
        looks = pool.map(lambda each: each.find_entry(commit_id), streams)
        for done, (each, found) in enumerate(zip(streams, looks, strict=True), 1):
            if isinstance(found, Entry):
                entries.append(found)
            elif found is not None:
                unread[each.table] = found
            on_progress(done, len(streams))
    return FoundCommits(tuple(entries), len(streams) - 1, unread)


def _with_later_table_name(table: LiveOrDroppedTable, entry: Entry) -> Entry:
    """Return an entry of a table's log with the table's later name and drop."""
    then = str(table.name_at(entry.commit.time_millis))
    return evolve(entry, then=then, is_dropped=table.dropped_millis is not None)


SNAPSHOTS: Columns = {
    "snapshot": "number",
    "version": "number",
    "time": "time",
    "kind": "text",
    "schema_id": "number",
    "rows": "number",
    "change": "number",
    "tags": "text",
}


class ListedSnapshot(NamedTuple):
    """A snapshot, with the commit that added it."""

    version: int
    snapshot: Snapshot

    @classmethod
    def of(cls, listed: OriginSnapshot, schema_id: int) -> ListedSnapshot:
        """Return a snapshot that the table's origin lists.

        Args:
            listed: The snapshot.
            schema_id: Id of its schema, if the snapshot does not name one.
        """
        return cls(listed.version, listed.with_default_schema(schema_id))


def snapshot_rows(log: TableLog, state: TableState, corrections: Sequence[ClockCorrection]) -> Rows:
    """Return one row for each snapshot, newest first; arguments as in `listed`."""

    def rows() -> Iterator[Row]:
        for version, each in listed(log, state, list(state.snapshot_ids), corrections):
            yield {
                "snapshot": each.id,
                "version": version,
                "time": each.time_millis,
                "kind": each.commit_kind,
                "schema_id": each.schema_id,
                "rows": each.total_record_count,
                "change": each.delta_record_count,
                "tags": ", ".join(tags_of(state, each.id)) or None,
            }

    return Rows(SNAPSHOTS, rows)


def tags_of(state: TableState, snapshot_id: int) -> list[str]:
    """Return the names of a snapshot's tags, sorted."""
    return sorted(name for name, tag in state.tags.items() if tag.snapshot_id == snapshot_id)


def listed(
    log: TableLog,
    state: TableState,
    ids: Sequence[int],
    corrections: Sequence[ClockCorrection],
) -> list[ListedSnapshot]:
    """Return the snapshots of a table with the given ids, in that order.

    Args:
        log: The table's log.
        state: The state of the table, or of a branch.
        ids: Ids of its snapshots.
        corrections: The corrections of clocks that were ahead.
    """
    known = [ListedSnapshot.of(each, state.schema.id) for each in _origin_snapshots(state, ids)]
    if known:
        return known
    of_main = () if state.on_branch is not None else ids
    kept = [each for each in of_main if each >= state.earliest_snapshot_id]
    first = state_at_snapshot(log, min(kept)).version if kept else state.version + 1
    found = {
        each.snapshot.id: each
        for each in _snapshots_of_commits(log, first, state.version, corrections)
    }
    for snapshot_id in ids:
        if snapshot_id not in found:
            then = state_at_snapshot(log, snapshot_id)
            if then.snapshot is not None:
                then_millis = corrected_commit_millis(
                    corrections, then.version, then.snapshot.time_millis
                )
                snapshot = evolve(then.snapshot, time_millis=then_millis)
                found[snapshot_id] = ListedSnapshot(then.version, snapshot)
    return [found[each] for each in ids if each in found]


def _origin_snapshots(state: TableState, ids: Sequence[int]) -> Iterator[OriginSnapshot]:
    found = map(state.origin.listed_snapshot, ids)
    return (each for each in found if each is not None)


def _snapshots_of_commits(
    log: TableLog, first: int, last: int, corrections: Sequence[ClockCorrection]
) -> Iterator[ListedSnapshot]:
    for read in log.commits(first, last):
        commit = read.commit
        for event in snapshot_events(commit):
            moment_millis = effective_millis(commit, corrections)
            yield ListedSnapshot(commit.version, snapshot_of(event, moment_millis))
