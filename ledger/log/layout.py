"""Paths below a stream's `_ledger` folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, overload

from msgspec import Struct

STREAM_FOLDER: Final = "_ledger"
"""Name of a stream's folder; the catalog's is at the ledger's root."""

CHECKPOINT_INTERVAL = 100
"""Number of commits per checkpoint: one is due at each version that is a multiple of it."""

SEGMENT_LENGTH = 8 * CHECKPOINT_INTERVAL
"""Number of commits per sealed segment; the first one includes version 0."""


_PAGE_NAME: Final = re.compile("[0-9a-f]{32}")


def stream_root(folder: str) -> str:
    """Return the root of the stream in a folder; an empty folder is the store's root.

    Example:
        >>> stream_root("shop.db/orders"), stream_root("")
        ('shop.db/orders/_ledger', '_ledger')
    """
    return f"{folder}/{STREAM_FOLDER}" if folder else STREAM_FOLDER


class Layout(Struct, frozen=True):
    """The keys of one stream.

    Attributes:
        root: The stream's `_ledger` folder, relative to the store's root.
        caches: The subfolder of its caches; one for each fold version, so that clients of
            different versions do not overwrite each other's.

    Example:
        >>> Layout("shop.db/orders/_ledger").commit(12)
        'shop.db/orders/_ledger/log/00000000000000000012.json'
    """

    root: str
    caches: str = "caches"

    @classmethod
    def of_fold(cls, root: str, fold_version: int) -> Layout:
        """Return the keys of a stream, with the cache folder of a fold version."""
        return cls(root, f"caches/{fold_version}")

    @property
    def folder(self) -> str:
        """Folder that contains the stream, its table's location; empty for the store's root.

        Example:
            >>> Layout("shop.db/orders/_ledger").folder, Layout("_ledger").folder
            ('shop.db/orders', '')
        """
        return self.root.removesuffix(STREAM_FOLDER).removesuffix("/")

    def key_of(self, path: str) -> str:
        """Return the key of a file of the table, given its path below the location.

        Example:
            >>> Layout("shop.db/orders/_ledger").key_of("a"), Layout("_ledger").key_of("a")
            ('shop.db/orders/a', 'a')
        """
        return f"{self.folder}/{path}" if self.folder else path

    def commit(self, version: int) -> str:
        """Return the key of a commit."""
        return f"{self.root}/log/{version:020d}.json"

    def commits(self, versions: Iterable[int]) -> list[str]:
        """Return the keys of many commits; faster than one call each."""
        folder = f"{self.root}/log"
        return [f"{folder}/{version:020d}.json" for version in versions]

    def checkpoint(self, version: int) -> str:
        """Return the key of the checkpoint after a commit."""
        return f"{self.root}/{self.caches}/{version:020d}.json"

    def page(self, name: str) -> str:
        """Return the key of a page of checkpoints, given its name."""
        return f"{self.root}/{self.caches}/pages/{name}.json"

    def is_page(self, key: str) -> bool:
        """Return whether a key is that of a page of checkpoints."""
        name = key.removeprefix(f"{self.root}/{self.caches}/pages/").removesuffix(".json")
        return key == self.page(name) and _PAGE_NAME.fullmatch(name) is not None

    @property
    def hint(self) -> str:
        """Key of the file that names a recent checkpoint; a hint where to begin the search."""
        return f"{self.root}/{self.caches}/LATEST"

    def index(self, first: int, last: int) -> str:
        """Return the key of the key index over the commits `first` to `last`."""
        return f"{self.root}/{self.caches}/keys/{first:020d}-{last:020d}.idx"

    def filter(self, level: int, first: int) -> str:
        """Return the key of the filter of a layer that begins with the commit `first`."""
        return f"{self.root}/{self.caches}/filters/{level}-{first:020d}.flt"

    def file_run(self, first: int, last: int) -> str:
        """Return the key of the file changes of the commits `first` to `last`, as Parquet."""
        return f"{self.root}/{self.caches}/files/{first:020d}-{last:020d}.parquet"

    @property
    def lookup_folders(self) -> tuple[str, ...]:
        """Folders of the caches that only writers and projections read."""
        return tuple(f"{self.root}/{self.caches}/{each}" for each in ("keys", "filters", "files"))

    @property
    def names(self) -> str:
        """Key of the cache of column names in older schemas."""
        return f"{self.root}/{self.caches}/names.json"

    @property
    def heads(self) -> str:
        """Key of the catalog's cache of all tables and the versions of their newest commits."""
        return f"{self.root}/{self.caches}/heads.json"

    def segment(self, first: int, last: int) -> str:
        """Return the key of the sealed segment of the commits `first` to `last`, as Parquet."""
        return f"{self.root}/segments/{first:020d}-{last:020d}.parquet"

    @property
    def lock(self) -> str:
        """Key of the append lock of local writers."""
        return f"{self.root}/lock"

    @property
    def line(self) -> str:
        """Key of a second lock: of several waiting local writers, its holder appends next."""
        return f"{self.root}/log/line"

    def changes(self, name: str) -> str:
        """Return the key of a file-change list too long for a commit."""
        return f"{self.root}/changes/{name}"

    def attempt(self, name: str) -> str:
        """Return the key of an entry in the list of write attempts."""
        return f"{self.root}/attempts/{name}"


def cut_key(whole: str, number: int) -> str:
    """Return the key of one of the cuts of an index, or of a filter.

    Example:
        >>> cut_key("keys/0-6400.idx", 3)
        'keys/0-6400.0003.idx'
    """
    name, _, kind = whole.rpartition(".")
    return f"{name}.{number:04d}.{kind}"


class CommitKeys(Sequence[str]):
    """Lazy sequence of the keys of commits: most readers need only the first.

    Args:
        layout: The stream's keys.
        versions: The commits' versions.

    Example:
        >>> keys = CommitKeys(Layout("_ledger"), range(3, 9))
        >>> len(keys), keys[0], len(keys[1:3])
        (6, '_ledger/log/00000000000000000003.json', 2)
    """

    __slots__ = ("_layout", "_versions")

    def __init__(self, layout: Layout, versions: Sequence[int]) -> None:
        self._layout = layout
        self._versions = versions

    def __len__(self) -> int:
        return len(self._versions)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return self._layout.commits(self._versions[place])
        return self._layout.commit(self._versions[place])
