"""Garbage collection beside concurrent writers, and missing segments.

Nothing here asks whether a writer is at work; the age rules make that unnecessary.

- A list of file changes that no commit names may go once the log's own newest commit is seven days
  younger. Whoever would commit it later does so with a time that is later still, and a commit that
  is more than a day younger than its list is refused (`ledger.files.change_lists`). No clock of
  this machine is asked.
- After its seal nothing can follow in a dropped table's stream, so its unnamed lists and those of
  its caches that only writers need may go.
- A draft was left by a writer that was killed. A stalled one that comes back does not find it,
  is told that it does not know the outcome, and writes it again.

Logs, checkpoints and what a commit names are never among them.

Making one reads the log and writes a cache, so that it harms nobody at work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, Literal

from attrs import frozen
from msgspec import UNSET

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.files.change_lists import commit_files, written_millis
from ledger.history.verifying.subject import Subject, references
from ledger.log import personal_data
from ledger.log.personal_data import COLUMNS, FOLDER, Personal, decoded, first, key_of, newest
from ledger.log.replay import START
from ledger.log.stream_log import StreamLog
from ledger.model.errors import DamagedLogError
from ledger.state.table import TableState
from ledger.stores import Store
from ledger.stores.base import Draft

KEPT_MILLIS: Final = 7 * 24 * 3_600_000
"""How long whatever nobody names is kept."""

Sort = Literal["changes", "draft", "cache", "values"]


@frozen
class Orphan:
    """One file that may go.

    Attributes:
        sort: A list of file changes, a draft, a cache of a dropped table, or what a transaction
            that never landed says of who and why.
        path: Where it is, below the store's root.
        written_millis: When it was written, Unix milliseconds; None when nobody knows.
        draft: The draft that it is, if it is one.
    """

    sort: Sort
    path: str
    written_millis: int | None
    draft: Draft | None = None


def orphaned_changes(subject: Subject[TableState, TableEvent]) -> Iterator[Orphan]:
    """Yield a table's lists of file changes that no commit names and none will.

    Raises:
        DamagedLogError: The log cannot be read, so that nobody knows what its commits name.
    """
    folder = subject.layout.changes("")
    # In this order: what a commit names was there before the commit was.
    found = {key: written_millis(key.removeprefix(folder)) for key in subject.store.walk(folder)}
    ages = {key: written for key, written in found.items() if written is not None}
    if not ages:
        return
    state = subject.log.refresh()
    if state is None:
        return
    for read in subject.log.reader.after(START, state.version):
        for each in references(read.commit):
            ages.pop(f"{subject.layout.root}/{each.path}", None)
    for key, written in sorted(ages.items()):
        if state.dropped or state.time_millis - written >= KEPT_MILLIS:
            yield Orphan("changes", key, written)


def orphaned_caches(
    subject: Subject[TableState, TableEvent], dropped_millis: int, now_millis: int
) -> Iterator[Orphan]:
    """Yield those caches of a dropped table that only its writers and projections asked for."""
    if now_millis - dropped_millis < KEPT_MILLIS:
        return
    layout = subject.layout
    folders = (*layout.lookup_folders, f"{layout.root}/statistics")
    for folder in folders:
        for key in sorted(subject.store.walk(folder)):
            yield Orphan("cache", key, dropped_millis)
    if subject.store.exists(layout.names):
        yield Orphan("cache", layout.names, dropped_millis)


def orphaned_drafts(store: Store, folder: str, now_millis: int) -> Iterator[Orphan]:
    """Yield the drafts in a folder and below that were not written to for seven days."""
    for each in store.drafts(folder):
        if now_millis - each.modified_millis >= KEPT_MILLIS:
            yield Orphan("draft", each.path, each.modified_millis, each)


def orphaned_values(
    personal: Personal, streams: Iterable[StreamLog[Any, Any]], now_millis: int
) -> Iterator[Orphan]:
    """Yield what no stream names of its values outside of lines, seven days after its writing.

    Its writer gave up, or was killed: who commits does so within minutes.

    Raises:
        LedgerError: A log cannot be read, so that nobody knows what its commits name.
        OSError: Likewise.
    """
    old: dict[str, int] = {}
    for key in personal.store.walk(FOLDER):
        written = _written(personal.store, key)
        if written is not None and now_millis - written >= KEPT_MILLIS:
            old[key] = written
    # What was taken out of a file left others beside it, which go when it goes.
    later = {key for key in old if key != first(key)}
    for log in streams if old else ():
        state = log.refresh()
        if state is None:
            # Its log is elsewhere, or lost; nobody knows what it names.
            return
        for read in log.reader.after(START, state.version):
            for key in _named(log, read.commit):
                old.pop(key, None)
    for key, written in sorted(old.items()):
        if key not in later or first(key) in old:
            yield Orphan("values", key, written)


def _named(log: StreamLog[Any, Any], commit: Commit[Any]) -> Iterator[str]:
    """Yield the files of values that a commit names."""
    for transaction in commit.transactions:
        if transaction.outside is not UNSET:
            yield key_of(transaction.outside) or ""
    files = commit_files(log.store, log.layout, commit)
    yield from map(personal_data.key_of_values, personal_data.references(files))


def _written(store: Store, key: str) -> int | None:
    """Return when a file of values was written; None where nobody knows."""
    (body,) = newest(store, [first(key)])
    if body is None:
        return None
    with suppress(DamagedLogError):
        if key.startswith(f"{COLUMNS}/"):
            return personal_data.decode_values(body, key).time_millis
        return decoded(body, key).time_millis
    return None


def remove(store: Store, orphan: Orphan) -> None:
    """Take an orphan away; one that is gone is fine.

    Raises:
        OSError: The store failed; asking again goes on from there.
    """
    if orphan.draft is not None:
        store.discard(orphan.draft)
    else:
        store.delete(orphan.path)
