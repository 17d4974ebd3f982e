"""Paths below a stream's `_ledger` folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, overload

from msgspec import Struct

STREAM_FOLDER: Final = "_ledger"
"""What the folder of a stream is called; the catalog's lies at the ledger's root."""

CHECKPOINT_INTERVAL = 100
"""A checkpoint is due after every commit whose version is a multiple of this."""

SEGMENT_LENGTH = 8 * CHECKPOINT_INTERVAL
"""So many commits make a sealed segment; version 0 rides in the first."""


def stream_root(folder: str) -> str:
    """Return the root of the stream that lies in a folder; empty for the store's root.

    Example:
        >>> stream_root("shop.db/orders"), stream_root("")
        ('shop.db/orders/_ledger', '_ledger')
    """
    return f"{folder}/{STREAM_FOLDER}" if folder else STREAM_FOLDER


class Layout(Struct, frozen=True):
    """The keys of one stream.

    Attributes:
        root: The stream's `_ledger` folder, relative to the store's root.
        caches: Which of its folders holds the caches; one for each fold version, so that clients
            of different versions leave each other's alone.

    Example:
        >>> Layout("shop.db/orders/_ledger").commit(12)
        'shop.db/orders/_ledger/log/00000000000000000012.json'
    """

    root: str
    caches: str = "caches"

    @classmethod
    def of_fold(cls, root: str, fold_version: int) -> Layout:
        """Return the keys of a stream as the clients of a fold version have them."""
        return cls(root, f"caches/{fold_version}")

    @property
    def folder(self) -> str:
        """The folder that the stream lies in, its table's location; empty for the store's root.

        Example:
            >>> Layout("shop.db/orders/_ledger").folder, Layout("_ledger").folder
            ('shop.db/orders', '')
        """
        return self.root.removesuffix(STREAM_FOLDER).removesuffix("/")

    def key_of(self, path: str) -> str:
        """Return the key of a file of the table's, by its path below the location.

        Example:
            >>> Layout("shop.db/orders/_ledger").key_of("a"), Layout("_ledger").key_of("a")
            ('shop.db/orders/a', 'a')
        """
        return f"{self.folder}/{path}" if self.folder else path

    def commit(self, version: int) -> str:
        """Return the key of a commit."""
        return f"{self.root}/log/{version:020d}.json"

    def commits(self, versions: Iterable[int]) -> list[str]:
        """Return the keys of commits, at the cost of one call for many that are looked for."""
        folder = f"{self.root}/log"
        return [f"{folder}/{version:020d}.json" for version in versions]

    def checkpoint(self, version: int) -> str:
        """Return the key of the checkpoint after a commit."""
        return f"{self.root}/{self.caches}/{version:020d}.json"

    @property
    def hint(self) -> str:
        """The key that names a recent checkpoint; a floor to search from, never the truth."""
        return f"{self.root}/{self.caches}/LATEST"

    def index(self, first: int, last: int) -> str:
        """Return the key of the key index over the commits `first` to `last`."""
        return f"{self.root}/{self.caches}/keys/{first:020d}-{last:020d}.idx"

    def filter(self, level: int, first: int) -> str:
        """Return the key of the filter over a layer that begins with the commit `first`."""
        return f"{self.root}/{self.caches}/filters/{level}-{first:020d}.flt"

    def file_run(self, first: int, last: int) -> str:
        """Return the key of the file changes of the commits `first` to `last`, as Parquet."""
        return f"{self.root}/{self.caches}/files/{first:020d}-{last:020d}.parquet"

    @property
    def lookup_folders(self) -> tuple[str, ...]:
        """The folders of the caches that only writers and projections read."""
        return tuple(f"{self.root}/{self.caches}/{each}" for each in ("keys", "filters", "files"))

    @property
    def names(self) -> str:
        """The key of what the names of older schemas stood for."""
        return f"{self.root}/{self.caches}/names.json"

    def segment(self, first: int, last: int) -> str:
        """Return the key of the sealed segment of the commits `first` to `last`, as Parquet."""
        return f"{self.root}/segments/{first:020d}-{last:020d}.parquet"

    @property
    def lock(self) -> str:
        """The key whose folder local writers take turns in."""
        return f"{self.root}/lock"

    @property
    def line(self) -> str:
        """The key whose folder the one who is next waits in, where several local writers do."""
        return f"{self.root}/log/line"

    def changes(self, name: str) -> str:
        """Return the key of a file-change list too long for a commit."""
        return f"{self.root}/changes/{name}"


def cut_of(whole: str, number: int) -> str:
    """Return the key of one of the cuts of an index, or of a filter.

    Example:
        >>> cut_of("keys/0-6400.idx", 3)
        'keys/0-6400.0003.idx'
    """
    name, _, kind = whole.rpartition(".")
    return f"{name}.{number:04d}.{kind}"


class CommitKeys(Sequence[str]):
    """The keys of some commits, each made when it is asked for: most readers look for one.

    Args:
        layout: The stream's.
        versions: The commits'.

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
