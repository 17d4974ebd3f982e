"""What a folder holds, as it comes: unsorted, and the drafts that writers left behind.

`Store.keys` sorts, and so holds every name in memory; a long log is walked instead. A store that
is no folder lists its keys, and has no drafts.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

from attrs import frozen

from ledger.stores import posix
from ledger.stores.base import Store
from ledger.stores.key import DRAFT_PREFIX, folder_prefix
from ledger.stores.local import LocalStore

_is_draft = re.compile(rf"{re.escape(DRAFT_PREFIX)}[0-9a-f]{{16}}").fullmatch


@frozen
class Draft:
    """A half-written file, or a second name of a whole one.

    Attributes:
        path: Where it is, relative to the store's root.
        modified_millis: When it was last written, Unix milliseconds by the file system's clock.
    """

    path: str
    modified_millis: int


def walk(store: Store, prefix: str) -> Iterator[str]:
    """Yield every key in the folder `prefix` and below, in no order and without holding them.

    Example:
        >>> from ledger.stores import open_store
        >>> store = open_store("memory://walk")
        >>> store.create("log/0", b"0"), list(walk(store, "log"))
        (True, ['log/0'])
    """
    if isinstance(store, LocalStore):
        return posix.walk(_base(store), folder_prefix(prefix))
    return store.keys(prefix)


def drafts(store: Store, prefix: str) -> Iterator[Draft]:
    """Yield the drafts in the folder `prefix` and below, those of writers at work included."""
    if isinstance(store, LocalStore):
        yield from _drafts(_base(store), folder_prefix(prefix))


def discard(store: Store, draft: Draft) -> None:
    """Remove a draft; one that is gone is fine.

    A writer that comes back to it is told that the outcome is unknown, finds nothing under the
    key, and sends the body again.
    """
    if isinstance(store, LocalStore):
        with suppress(*posix.ABSENT):
            os.unlink(_base(store) + draft.path)  # noqa: PTH108 - beside its siblings


def _base(store: LocalStore) -> str:
    return store.url.removeprefix("file://").rstrip("/") + "/"


def _drafts(base: str, prefix: str) -> Iterator[Draft]:
    try:
        entries = os.scandir(base + prefix)
    except posix.ABSENT:
        return
    with entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _drafts(base, f"{prefix}{entry.name}/")
            elif _is_draft(entry.name):
                # Whoever wrote it may have finished meanwhile.
                with suppress(*posix.ABSENT):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode):
                        yield Draft(prefix + entry.name, found.st_mtime_ns // 1_000_000)
