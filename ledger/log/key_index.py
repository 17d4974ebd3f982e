"""Where a key was last named: which commit holds a caller-given id, or touched a file path.

For every hundred commits there is one small file of sorted 64-bit hashes; eight of them are merged
into one of the next tier, and so on, so that a lookup reads few files however long the log is. A
hit says where to look, never what is true: the commit named is read. All of it is a cache; what is
missing or damaged is made again from the log.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from attrs import field, frozen

from ledger.events.commit import Commit
from ledger.log.layout import CHECKPOINT_INTERVAL, Layout
from ledger.log.replay import Position, Reader
from ledger.model.tiles import covering, parts
from ledger.stores import Store

E = TypeVar("E")

_MAGIC = b"LLKEYS1\n"
_DIGEST_SIZE = 32
_ENTRY_SIZE = 16
"""A hash and a version, of eight bytes each."""


def tiles(last: int) -> Iterator[tuple[int, int]]:
    """Yield the intervals of commits, newest first, that cover 0 to `last` in the fewest files.

    `last` is a multiple of the checkpoint interval. The first interval holds version 0, too.

    Example:
        >>> list(tiles(1000))
        [(901, 1000), (801, 900), (0, 800)]
    """
    return (interval(start, end) for start, end in covering(last // CHECKPOINT_INTERVAL))


def interval(start: int, end: int) -> tuple[int, int]:
    """Return the first and last version between two checkpoint numbers."""
    first = start * CHECKPOINT_INTERVAL + 1 if start else 0
    return first, end * CHECKPOINT_INTERVAL


def hashed(key: str) -> int:
    """Return a key's 64-bit hash, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


@frozen
class KeyIndex:
    """Sorted hashes, and the version that each was named in."""

    hashes: array[int] = field(factory=lambda: array("Q"))
    versions: array[int] = field(factory=lambda: array("Q"))

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> KeyIndex:
        """Return the index of (hash, version) pairs in any order."""
        ordered = sorted(pairs)
        return cls(array("Q", (a for a, _ in ordered)), array("Q", (b for _, b in ordered)))

    def find(self, key: str) -> list[int]:
        """Return the versions that may have named `key`, newest first."""
        wanted = hashed(key)
        low = bisect_left(self.hashes, wanted)
        high = bisect_right(self.hashes, wanted, lo=low)
        return sorted(self.versions[low:high], reverse=True)

    def before(self, hash_value: int) -> int:
        """Return how many of its hashes are less than one."""
        return bisect_left(self.hashes, hash_value)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield every (hash, version)."""
        return zip(self.hashes, self.versions, strict=True)

    def to_bytes(self) -> bytes:
        """Return the file: magic, hashes, versions, and the SHA-256 of all that."""
        body = _MAGIC + _little(self.hashes) + _little(self.versions)
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, body: bytes) -> KeyIndex | None:
        """Return the index that a file holds; None when the file is torn or changed."""
        content, check = body[:-_DIGEST_SIZE], body[-_DIGEST_SIZE:]
        numbers = content[len(_MAGIC) :]
        if content[: len(_MAGIC)] != _MAGIC or hashlib.sha256(content).digest() != check:
            return None
        if len(numbers) % _ENTRY_SIZE:
            return None
        half = len(numbers) // 2
        return cls(_array(numbers[:half]), _array(numbers[half:]))


def _little(numbers: array[int]) -> bytes:
    if sys.byteorder == "little":
        return numbers.tobytes()
    swapped = array("Q", numbers)
    swapped.byteswap()
    return swapped.tobytes()


def _array(body: bytes) -> array[int]:
    numbers = array("Q")
    numbers.frombytes(body)
    if sys.byteorder != "little":
        numbers.byteswap()
    return numbers


class KeyIndexes(Generic[E]):
    """One stream's key indexes.

    Args:
        store: Where they are.
        layout: Under which keys.
        reader: Reads the commits that an index is missing for.
        keys_of: What to remember of a commit.
    """

    def __init__(
        self,
        store: Store,
        layout: Layout,
        reader: Reader[E],
        keys_of: Callable[[Commit[E]], Iterable[str]],
    ) -> None:
        self._store = store
        self._layout = layout
        self._reader = reader
        self._keys_of = keys_of
        self._loaded: dict[tuple[int, int], KeyIndex] = {}

    def find(self, key: str, last: int) -> Iterator[int]:
        """Yield the versions up to `last`, a checkpoint's, that may have named `key`.

        Newest first.
        """
        for first, end in tiles(last):
            yield from self._load(first, end).find(key)

    def save(self, version: int) -> None:
        """Keep the index that ends at a checkpoint's version.

        Raises:
            OSError: It could not be kept; that harms nothing.
        """
        first, last = next(tiles(version))
        self._store.replace(self._layout.index(first, last), self._load(first, last).to_bytes())

    def _load(self, first: int, last: int) -> KeyIndex:
        found = self._loaded.get((first, last))
        if found is None:
            body = self._store.read(self._layout.index(first, last))
            found = KeyIndex.from_bytes(body) if body is not None else None
            found = self._loaded[first, last] = found or self.made(first, last)
        return found

    def _scan(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        for read in self._reader.after(Position(first - 1, ""), last):
            for key in self._keys_of(read.commit):
                yield hashed(key), read.commit.version

    def made(self, first: int, last: int) -> KeyIndex:
        """Return the index of the commits `first` to `last` of the tiers below, or of the log."""
        below = list(parts(first // CHECKPOINT_INTERVAL, last // CHECKPOINT_INTERVAL))
        if not below:
            return KeyIndex.of(self._scan(first, last))
        loaded = [self._load(*interval(*each)) for each in below]
        return KeyIndex.of(pair for part in loaded for pair in part.pairs())
