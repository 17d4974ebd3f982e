"""Lists of file changes that are too long for a commit: on the store and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import UnsetType

from ledger.events.commit import Commit
from ledger.events.snapshot_events import ChangesReference, ListingEvent
from ledger.files.change_table import from_table, parquet_of, parsed, to_table
from ledger.log.layout import Layout
from ledger.model.errors import DamagedLogError, StoreError, UpgradeRequiredError
from ledger.model.file_change import FileChange, inline_files, unknown_key
from ledger.stores import Store

INLINE_LIMIT = 1000
"""A list of more file changes than this stands in a file of its own."""

COMMITTABLE_MILLIS: Final = 24 * 3_600_000
"""A commit may name a list that was written so long before it, and no longer.

By the commit's own time, so that it holds whatever anybody's clock says: what is older than the
newest commit by more, and is not named yet, never will be.
"""

_name_of = re.compile(r"(\d{13,})-[0-9a-f]{64}\.parquet").fullmatch


def write_changes(files: Sequence[FileChange]) -> bytes:
    """Return a list of file changes as the bytes of a Parquet file.

    One column an attribute. Partition values are a list of JSON scalars, so that text, numbers,
    booleans and NULL stay apart; what a file does not say is NULL.
    """
    return parquet_of(to_table(files))


def read_changes(body: bytes, count: int | None = None) -> tuple[FileChange, ...]:
    """Return the list that `write_changes` was given.

    Args:
        body: The bytes.
        count: How many it must hold, if that is known; looked at before any of them is read.

    Raises:
        ValueError: The bytes are no such file.
        UpgradeRequiredError: A newer version wrote them.
    """
    return tuple(from_table(parsed(body, count)))


def store_changes(
    store: Store, layout: Layout, files: Sequence[FileChange], written_millis: int
) -> ChangesReference:
    """Keep a list beside the log, durably, and return what a commit says of it.

    Its name is the time and its content's hash: a key's age can be told on every store.

    Args:
        store: Where the log is.
        layout: Under which keys.
        files: The list.
        written_millis: Now, Unix milliseconds by the clock that the commit will be timed by.

    Raises:
        OSError: Kept or not, nobody knows; nothing was committed, so try again.
        DamagedLogError: Another content stands under that name.
    """
    body = write_changes(files)
    digest = hashlib.sha256(body).hexdigest()
    name = f"{written_millis:013d}-{digest}.parquet"
    key = layout.changes(name)
    if not store.create(key, body) and store.confirm(key) != body:
        raise DamagedLogError(
            f"{key} was changed after it was written. Restore it from a backup", key
        )
    return ChangesReference(path=f"changes/{name}", sha256=digest, count=len(files))


def written_millis(name: str) -> int | None:
    """Return when a list was written, by its name; None when the name does not say.

    Example:
        >>> written_millis(f"1700000000000-{64 * 'a'}.parquet")
        1700000000000
    """
    found = _name_of(name)
    return int(found[1]) if found else None


def refuse_stale(commit: Commit[Any]) -> None:
    """Check that a commit on its way names no list that maintenance may take away.

    Raises:
        StoreError: A list was written more than a day before; nothing was committed.
    """
    for transaction in commit.transactions:
        for event in transaction.events:
            if not isinstance(event, ListingEvent):
                continue
            if isinstance(event.changes, UnsetType):
                continue
            written = written_millis(event.changes.path.removeprefix("changes/"))
            if written is not None and commit.time_millis - written > COMMITTABLE_MILLIS:
                raise StoreError(
                    f"{event.changes.path} was written more than a day before its commit and may "
                    "have been removed since; nothing was committed, ask again",
                    kind="STALE_CHANGES",
                )


def load_changes(
    store: Store, layout: Layout, reference: ChangesReference
) -> tuple[FileChange, ...]:
    """Return the list that a commit names.

    Raises:
        DamagedLogError: The file is missing, or is not the one that the commit names.
        UpgradeRequiredError: A newer version wrote it.
    """
    key = f"{layout.root}/{reference.path}"
    body = store.read(key)
    if body is None:
        raise DamagedLogError(
            f"{key} is missing, but a commit names it. Restore it from a backup", key
        )
    if hashlib.sha256(body).hexdigest() != reference.sha256:
        raise DamagedLogError(
            f"{key} is torn or was changed after it was written ({len(body)} bytes). Restore it "
            "from a backup; nothing was skipped",
            key,
        )
    try:
        return read_changes(body, reference.count)
    except ValueError as error:
        raise DamagedLogError(
            f"{key} does not hold the file changes that its commit names: {error}", key
        ) from error


def event_files(store: Store, layout: Layout, event: ListingEvent) -> tuple[FileChange, ...]:
    """Return the file changes of a snapshot, wherever they stand.

    Raises:
        DamagedLogError: The file that holds them is missing or changed, or they are none.
        UpgradeRequiredError: A newer version wrote them.
    """
    if isinstance(event.changes, UnsetType):
        try:
            return inline_files(event.files)
        except (ValueError, RecursionError) as error:
            unknown = unknown_key(event.files)
            if unknown is not None:
                raise UpgradeRequiredError(
                    f"the commit of snapshot {event.snapshot_id} in {layout.root}/log holds a file "
                    f"with the key {unknown!r}, which this version does not know: upgrade "
                    "lakeledger"
                ) from error
            raise DamagedLogError(
                f"the commit of snapshot {event.snapshot_id} in {layout.root}/log holds a list of "
                f"files that is none: {error}",
                f"{layout.root}/log",
            ) from error
    return load_changes(store, layout, event.changes)


def commit_files(store: Store, layout: Layout, commit: Commit[Any]) -> Iterator[FileChange]:
    """Yield the file changes of a commit's snapshots, wherever they stand; raises as `event_files`.

    A commit of the catalog has none.
    """
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, ListingEvent):
                yield from event_files(store, layout, event)
