"""Garbage collection of files that no commit names, safe with concurrent writers.

Age rules replace coordination with writers:

- A change file that no commit names is removable once the log's newest commit is seven days
  younger. A later commit of that file has a later time still, and a commit that is more than a day
  younger than its change file is rejected (`ledger.files.change_lists`). The machine's clock does
  not matter.
- Of a dropped table, which may be restored, unnamed change files and caches that only writers need
  are removable seven days after the drop.
- Announcements of the activity index are removed after 30 days, by the day in their path, and
  positions of feeds after a year, by the day in their name: a feed that is in use renews them.
- A data file of a write attempt that no commit names is removable once the log's newest commit is
  more than eight days younger; for a dropped table the current time counts. A snapshot that adds a
  file so old is rejected (`ledger.model.attempt_files`). Attempts are found by their list.
- A draft is left by a writer that was killed. A writer that was only stalled finds its draft
  missing, treats the outcome as unknown, and writes it again.

Logs, checkpoints and files that a commit names are never removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, Literal

from attrs import frozen
from msgspec import UNSET

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.files.change_lists import change_references, commit_files, written_millis
from ledger.history.verifying.subject import Subject
from ledger.locations import folded
from ledger.log import personal_data
from ledger.log.activity import outdated_announcements
from ledger.log.feed_files import outdated_positions
from ledger.log.layout import Layout
from ledger.log.personal_data import (
    COLUMNS,
    FOLDER,
    PersonalSidecars,
    decoded,
    first,
    key_of,
    newest,
)
from ledger.log.replay import START
from ledger.log.stream_log import StreamLog
from ledger.model.attempt_files import (
    DATA_FOLDER,
    DAY_MILLIS,
    KEPT_ROWS_MILLIS,
    parse_attempt_entry,
    row_file_millis,
)
from ledger.model.errors import DamagedLogError
from ledger.state.table import TableState
from ledger.stores import Store
from ledger.stores.base import Draft

KEPT_MILLIS: Final = 7 * 24 * 3_600_000
"""Retention of files that no commit names, in milliseconds."""

Sort = Literal["changes", "draft", "cache", "values", "announcement", "feed", "rows", "attempt"]


@frozen
class OrphanedFile:
    """File that no commit names and that may be removed.

    Attributes:
        sort: The kind of file: a change file, a draft, a cache of a dropped table, a sidecar file
            of a transaction that was never committed, an old announcement of the activity index,
            old positions of a feed, a data file of a failed write attempt, or the entry of an
            attempt in the list.
        path: Its key, below the store's root.
        written_millis: Time of writing, Unix milliseconds; None if unknown.
        draft: The draft, if the file is one.
    """

    sort: Sort
    path: str
    written_millis: int | None
    draft: Draft | None = None


def orphaned_change_files(
    subject: Subject[TableState, TableEvent], now_millis: int
) -> Iterator[OrphanedFile]:
    """Yield a table's change files that no commit names and none will.

    Args:
        subject: The table's stream.
        now_millis: The current time, Unix milliseconds, which counts for a dropped table only.

    Raises:
        DamagedLogError: The log cannot be read, so that the files that it names are unknown.
    """
    folder = subject.layout.changes("")
    # Files are listed before the log is read: a commit's files are written before the commit.
    found = {key: written_millis(key.removeprefix(folder)) for key in subject.store.walk(folder)}
    ages = {key: written for key, written in found.items() if written is not None}
    if not ages:
        return
    state = subject.log.refresh()
    if state is None:
        return
    for read in subject.log.reader.after(START, state.version):
        for each in change_references(read.commit):
            ages.pop(f"{subject.layout.root}/{each.path}", None)
    latest = now_millis if state.dropped else state.time_millis
    for key, written in sorted(ages.items()):
        if latest - written >= KEPT_MILLIS:
            yield OrphanedFile("changes", key, written)


def orphaned_row_files(
    subject: Subject[TableState, TableEvent], now_millis: int
) -> Iterator[OrphanedFile]:
    """Yield the data files of failed write attempts, then the entries of attempts without any left.

    A file that any commit names is kept, also one that was removed from the table later. Files
    without a time in their name, and those outside of the attempts' folders, are kept, too.

    Args:
        subject: The table's stream.
        now_millis: The current time, Unix milliseconds, which counts for a dropped table only.

    Raises:
        DamagedLogError: The log cannot be read, so that the files that it names are unknown.
    """
    layout, store = subject.layout, subject.store
    state = subject.log.refresh()
    if state is None:
        return
    latest = now_millis if state.dropped else state.time_millis
    due: dict[str, list[tuple[str, int]]] = {}
    start = layout.attempt("")
    for key in store.walk(start.rstrip("/")):
        entry = parse_attempt_entry(key.removeprefix(start))
        # Tasks registered until the end of that day.
        if entry is not None and latest - entry[1] - DAY_MILLIS > KEPT_ROWS_MILLIS:
            due.setdefault(entry[0], []).append((key, entry[1]))
    if not due:
        return
    found: dict[str, dict[str, int]] = {}
    for name in due:
        inside = (
            each.removeprefix(layout.key_of("")) for each in store.walk(_folder(layout, name))
        )
        ages = ((path, row_file_millis(path)) for path in inside)
        found[name] = {path: written for path, written in ages if written is not None}
    named = _row_files_named(subject, state.version, set().union(*found.values()))
    for name, entries in sorted(due.items()):
        unnamed = {path: each for path, each in found[name].items() if path not in named}
        old = {path: each for path, each in unnamed.items() if latest - each > KEPT_ROWS_MILLIS}
        for path, written in sorted(old.items()):
            yield OrphanedFile("rows", layout.key_of(path), written)
        if len(old) == len(unnamed):
            for key, day in sorted(entries):
                yield OrphanedFile("attempt", key, day)


def _folder(layout: Layout, attempt: str) -> str:
    return layout.key_of(f"{DATA_FOLDER}/{attempt}")


def _row_files_named(
    subject: Subject[TableState, TableEvent], last: int, paths: Collection[str]
) -> set[str]:
    """Return which of some data files the commits up to a version name, on any branch.

    Files are compared by their last segment, which is unique, so that no spelling of a location
    hides one.
    """
    left = {_last_segment(path): path for path in paths}
    named: set[str] = set()
    for read in subject.log.reader.after(START, last) if left else ():
        for each in commit_files(subject.store, subject.layout, read.commit):
            path = left.pop(_last_segment(each.stored_at), None)
            if path is not None:
                named.add(path)
        if not left:
            break
    return named


def _last_segment(path: str) -> str:
    return folded(path.rpartition("/")[2])


def orphaned_caches(
    subject: Subject[TableState, TableEvent], dropped_millis: int, now_millis: int
) -> Iterator[OrphanedFile]:
    """Yield the caches of a dropped table that only writers and projections need."""
    if now_millis - dropped_millis < KEPT_MILLIS:
        return
    layout = subject.layout
    folders = (*layout.lookup_folders, f"{layout.root}/statistics")
    for folder in folders:
        for key in sorted(subject.store.walk(folder)):
            yield OrphanedFile("cache", key, dropped_millis)
    if subject.store.exists(layout.names):
        yield OrphanedFile("cache", layout.names, dropped_millis)


def orphaned_drafts(store: Store, folder: str, now_millis: int) -> Iterator[OrphanedFile]:
    """Yield the drafts below a folder that were not written to for seven days."""
    for each in store.drafts(folder):
        if now_millis - each.modified_millis >= KEPT_MILLIS:
            yield OrphanedFile("draft", each.path, each.modified_millis, each)


def orphaned_index_files(store: Store, now_millis: int) -> Iterator[OrphanedFile]:
    """Yield the old announcements of a ledger's activity index, and old positions of its feeds."""
    for key, written in outdated_announcements(store, now_millis):
        yield OrphanedFile("announcement", key, written)
    for key, written in outdated_positions(store, now_millis):
        yield OrphanedFile("feed", key, written)


def orphaned_sidecar_files(
    personal: PersonalSidecars, streams: Iterable[StreamLog[Any, Any]], now_millis: int
) -> Iterator[OrphanedFile]:
    """Yield the sidecar files that no stream names, seven days after they were written.

    Their writer gave up or was killed: a commit follows its sidecar file within minutes.

    Raises:
        LedgerError: A log cannot be read, so that the files that it names are unknown.
        OSError: Likewise.
    """
    old: dict[str, int] = {}
    for key in personal.store.walk(FOLDER):
        written = _sidecar_write_time(personal.store, key)
        if written is not None and now_millis - written >= KEPT_MILLIS:
            old[key] = written
    # An erasure leaves further files next to a sidecar file, which are removed with it.
    later = {key for key in old if key != first(key)}
    for log in streams if old else ():
        state = log.refresh()
        if state is None:
            # The table's log is elsewhere or lost; the files that it names are unknown.
            return
        for read in log.reader.after(START, state.version):
            for key in _sidecars_named_by(log, read.commit):
                old.pop(key, None)
    for key, written in sorted(old.items()):
        if key not in later or first(key) in old:
            yield OrphanedFile("values", key, written)


def _sidecars_named_by(log: StreamLog[Any, Any], commit: Commit[Any]) -> Iterator[str]:
    """Yield the sidecar files that a commit names."""
    for transaction in commit.transactions:
        if transaction.outside is not UNSET:
            yield key_of(transaction.outside) or ""
    files = commit_files(log.store, log.layout, commit)
    yield from map(personal_data.key_of_values, personal_data.references(files))


def _sidecar_write_time(store: Store, key: str) -> int | None:
    """Return the time of writing of a sidecar file, Unix milliseconds; None if unknown."""
    (body,) = newest(store, [first(key)])
    if body is None:
        return None
    with suppress(DamagedLogError):
        if key.startswith(f"{COLUMNS}/"):
            return personal_data.decode_values(body, key).time_millis
        return decoded(body, key).time_millis
    return None


def remove(store: Store, orphan: OrphanedFile) -> None:
    """Remove an orphan; it may be gone already.

    Raises:
        OSError: The store failed; a retry continues.
    """
    if orphan.draft is not None:
        store.discard(orphan.draft)
    else:
        store.delete(orphan.path)
