"""Key index: finds the commits that name a commit id or a file path; with filters.

The newest commits are indexed in memory. Every hundred older commits have one small file of sorted
64-bit hashes; eight of them are merged into one of the next tier, and so on, so that a lookup reads
few files however long the log is. Larger index files are also stored in parts (cuts) by ranges of
the hash, for single lookups. A hit is a candidate: the caller reads the commit to verify it. The
files are a cache; what is missing or damaged is rebuilt from the log.

Most keys that are looked up were never named, and every index would have to be read to know that.
A filter tells it for a whole layer: the newest up to 63 hundreds of commits are a layer, then up to
63 times 64 hundreds, and so on, so that a new handle reads about one small file per layer, however
long the log is. A filter is rewritten as its layer grows, and names the last version that it
covers; newer versions are looked up in the indexes. Larger filters are stored in cuts, too.

A filter is a function of the log, and a cache: without it the indexes are read.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import chain, islice, repeat
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct, field

from ledger.events.commit import Commit, Transaction
from ledger.log.layout import CHECKPOINT_INTERVAL, Layout, cut_key
from ledger.log.replay import Position, Reader
from ledger.model.snapshot import parts, tiles_covering
from ledger.stores import Store

_FAN_OUT: Final = 64
_CUT_BITS: Final = 3
_FILTER_MAGIC: Final = b"LLFILT1\n"
_FILTER_DIGEST_SIZE: Final = 32
_FILTER_HASH_BITS: Final = 64
_PRINT_BITS: Final = 32
_PRINT_SIZE: Final = 4
"""Bytes of a hash prefix in a filter: false positives are one in many thousands of lookups."""
_LAST: Final = struct.Struct("<Q")

_MOST_FILTER_CUTS: Final = 8
"""Number of cuts of a remote filter that are read before the whole filter is."""
_MOST_NEAR: Final = 32
"""The same of a local filter: reading it whole takes as long as half of its first 64 cuts."""
_SMALL: Final = 1 << 18
"""Number of prefixes (a megabyte) up to which a remote filter is read whole at the second cut."""


class FilterLayer(NamedTuple):
    """Range of commits that one filter covers.

    Attributes:
        level: Size class: the range is counted in units of 100 commits times 64 to this power.
        first: The first version.
        last: The last version, a checkpoint's.
    """

    level: int
    first: int
    last: int

    @property
    def bits(self) -> int:
        """Number of leading hash bits that choose a cut of its filter; 0: it has no cuts."""
        return _CUT_BITS * (self.level + 1) if self.level else 0


def filter_layers(last: int) -> Iterator[FilterLayer]:
    """Yield the layers that cover the versions 0 to `last`, a checkpoint's; newest first.

    Example:
        >>> [*filter_layers(6500)]
        [FilterLayer(level=0, first=6401, last=6500), FilterLayer(level=1, first=0, last=6400)]
    """
    end, width, level = last // CHECKPOINT_INTERVAL, 1, 0
    while end > 0:
        start = end - end % (width * _FAN_OUT)
        if start < end:
            first = start * CHECKPOINT_INTERVAL + 1 if start else 0
            yield FilterLayer(level, first, end * CHECKPOINT_INTERVAL)
        end, width, level = start, width * _FAN_OUT, level + 1


class KeyFilter(Struct, frozen=True):
    """Sorted hash prefixes of the keys of a layer, or of one cut of it.

    Attributes:
        last: The last version that it covers.
        prints: The first 32 bits of each hash, ascending, without duplicates.
    """

    last: int
    prints: array[int]

    def lacks(self, hash_value: int) -> bool:
        """Return True when certainly no key has this hash.

        Example:
            >>> KeyFilter(100, array("I", [7])).lacks(8 << 32)
            True
        """
        wanted = hash_value >> (_FILTER_HASH_BITS - _PRINT_BITS)
        at = bisect_left(self.prints, wanted)
        return at == len(self.prints) or self.prints[at] != wanted

    def part_with_prefix(self, bits: int, number: int) -> KeyFilter:
        """Return the part whose hashes begin with `number`, written in `bits` bits."""
        if not bits:
            return self
        low, high = (
            bisect_left(self.prints, each << (_PRINT_BITS - bits)) for each in (number, number + 1)
        )
        return KeyFilter(self.last, self.prints[low:high])

    def to_bytes(self) -> bytes:
        """Return the file: magic, last version, prints, and the SHA-256 of all that."""
        body = _FILTER_MAGIC + _LAST.pack(self.last) + _to_little_endian(self.prints).tobytes()
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, body: bytes) -> KeyFilter | None:
        """Return the filter in a file; None when the file is torn or changed."""
        # Views, so that opening a table does not copy each filter.
        whole = memoryview(body)
        content, check = whole[:-_FILTER_DIGEST_SIZE], whole[-_FILTER_DIGEST_SIZE:]
        head, numbers = (
            content[: len(_FILTER_MAGIC) + _LAST.size],
            content[len(_FILTER_MAGIC) + _LAST.size :],
        )
        if (
            bytes(head[: len(_FILTER_MAGIC)]) != _FILTER_MAGIC
            or hashlib.sha256(content).digest() != check
        ):
            return None
        if len(head) != len(_FILTER_MAGIC) + _LAST.size or len(numbers) % _PRINT_SIZE:
            return None
        prints = array("I")
        prints.frombytes(numbers)
        return cls(_LAST.unpack_from(head, len(_FILTER_MAGIC))[0], _to_little_endian(prints))


def _to_little_endian(numbers: array[int]) -> array[int]:
    if sys.byteorder == "little":
        return numbers
    swapped = array("I", numbers)
    swapped.byteswap()
    return swapped


def extend_filter(base: KeyFilter | None, last: int, hashes: Iterable[array[int]]) -> KeyFilter:
    """Return the filter of a layer that has grown.

    Args:
        base: The filter of an earlier range of the layer; None for a new one.
        last: The last version that the result covers.
        hashes: Hashes of the added keys, ascending, one array per index.
    """
    prints, some = array("I"), [*hashes]
    bits = (sum(map(len, some)) + len(base.prints if base else ())).bit_length() // 2
    # In small parts: one large sort would block every other thread.
    for number in range(1 << bits):
        low, high = (each << (_FILTER_HASH_BITS - bits) for each in (number, number + 1))
        found = [*base.part_with_prefix(bits, number).prints] if base else []
        for each in some:
            some_of_it = each[bisect_left(each, low) : bisect_left(each, high)]
            found += [one >> (_FILTER_HASH_BITS - _PRINT_BITS) for one in some_of_it]
        # Mostly sorted already, which makes sorting fast.
        prints.extend(dict.fromkeys(sorted(found)))
    return KeyFilter(last, prints)


class KeyFilters:
    """A stream's filters, cached in memory as they are read.

    Every change is one atomic step, so that no thread needs a lock.

    Args:
        store: The stream's store.
        layout: The stream's keys.
    """

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store = store
        self._layout = layout
        self._kept: dict[tuple[int, int], dict[int, KeyFilter]] = {}
        self._asked: dict[tuple[int, int, int], int] = {}

    def last_absent_version(self, layer: FilterLayer, hash_value: int) -> int:
        """Return the last version of a layer up to which a hash is certainly absent; -1: none.

        Uses the filters in memory only; see `ask`.
        """
        kept = self._kept.get(layer[:2])
        if kept is None:
            return -1
        found = kept.get(_WHOLE) or kept.get(_cut_number(layer, hash_value))
        return found.last if found is not None and found.lacks(hash_value) else -1

    def ask(self, layer: FilterLayer, hash_value: int) -> int:
        """Return the same after reading filters that are not in memory or may have grown."""
        kept = self._kept.setdefault(layer[:2], {})
        number = (
            _WHOLE if self._prefers_whole_filter(kept, layer) else _cut_number(layer, hash_value)
        )
        at = (*layer[:2], number)
        if self._asked.get(at, -1) < layer.last:
            self._asked[at] = layer.last
            found = self._read_from_store(layer, number)
            if found is not None:
                kept[number] = found
        return self.last_absent_version(layer, hash_value)

    def _prefers_whole_filter(self, kept: Mapping[int, KeyFilter], layer: FilterLayer) -> bool:
        """Return whether to read a whole filter, given the cuts that were read of it."""
        # On a local store, checking and unpacking a megabyte takes longer than a few small files.
        if self._store.is_near:
            return len(kept) >= _MOST_NEAR
        if len(kept) >= _MOST_FILTER_CUTS:
            return True
        # Hashes are uniform, so that the size of one cut tells the size of the whole.
        return any(len(each.prints) << layer.bits <= _SMALL for each in kept.values())

    def whole(self, layer: FilterLayer) -> KeyFilter | None:
        """Return a layer's filter from the store; None when it is missing or damaged."""
        return self._read_from_store(layer, _WHOLE)

    def take(self, layer: FilterLayer, made: KeyFilter) -> None:
        """Cache a layer's new filter in memory, if the layer was looked up before."""
        kept = self._kept
        for level, first in list(kept):
            if level <= layer.level and first < layer.first:
                kept.pop((level, first), None)
        if layer[:2] in kept:
            kept[layer[:2]] = {_WHOLE: made}

    def files(self, layer: FilterLayer, made: KeyFilter) -> Iterator[tuple[str, KeyFilter]]:
        """Yield the files of a layer's filter, the whole and its cuts, each with its key."""
        yield self._filter_file_key(layer, _WHOLE), made
        for number in range(1 << layer.bits) if layer.bits else ():
            yield self._filter_file_key(layer, number), made.part_with_prefix(layer.bits, number)

    def _filter_file_key(self, layer: FilterLayer, number: int) -> str:
        whole = self._layout.filter(layer.level, layer.first)
        return whole if number == _WHOLE else cut_key(whole, number)

    def _read_from_store(self, layer: FilterLayer, number: int) -> KeyFilter | None:
        body = self._store.read(self._filter_file_key(layer, number))
        return None if body is None else KeyFilter.from_bytes(body)


_WHOLE: Final = -1


def _cut_number(layer: FilterLayer, hash_value: int) -> int:
    """Return the number of the cut of a layer's filter that covers a hash."""
    return hash_value >> (_FILTER_HASH_BITS - layer.bits) if layer.bits else _WHOLE


E = TypeVar("E")


class KeyList(Protocol):
    """Many keys that a commit names, which are looked up where they are stored."""

    def may_hold(self, key: str) -> bool:
        """Return whether `key` is one of them, apart from colliding hashes."""

    def __iter__(self) -> Iterator[str]:
        """Yield the keys."""


KeysOf = Callable[[Commit[E]], Iterable[str | KeyList]]
"""Function that returns the keys that a commit names: one by one, and lists of them."""

_ID: Final = "id:"

_HASH_BITS = 64
_PART_BITS: Final = 8
_HASHED_AT_ONCE: Final = 1_000
_UNCUT = 8
"""Hundreds of commits beyond which an index has cuts, one for each eight hundred."""

_MOST_CUTS = 4
"""Number of cuts of an index that are read before the whole index is."""

_MAGIC = b"LLKEYS1\n"
_DIGEST_SIZE = 32
_ENTRY_SIZE = 16
"""Bytes of an entry: a hash and a version, of eight bytes each."""


def tiles(last: int) -> Iterator[tuple[int, int]]:
    """Yield the intervals of commits, newest first, that cover 0 to `last` in the fewest files.

    `last` is a multiple of the checkpoint interval. The first interval includes version 0.

    Example:
        >>> list(tiles(1000))
        [(901, 1000), (801, 900), (0, 800)]
    """
    return (interval(start, end) for start, end in tiles_covering(last // CHECKPOINT_INTERVAL))


def interval(start: int, end: int) -> tuple[int, int]:
    """Return the first and last version between two checkpoint numbers."""
    first = start * CHECKPOINT_INTERVAL + 1 if start else 0
    return first, end * CHECKPOINT_INTERVAL


def hash_key(key: str) -> int:
    """Return a key's 64-bit hash, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


def hash_keys(keys: Sequence[str]) -> tuple[int, ...]:
    """Return the 64-bit hashes of some keys.

    Example:
        >>> hash_keys(["a"]) == (hash_key("a"),)
        True
    """
    digests = [hashlib.blake2b(key, digest_size=8).digest() for key in map(str.encode, keys)]
    return struct.unpack(f"<{len(keys)}Q", b"".join(digests))


def commit_id_key(commit_id: str) -> str:
    """Return the index key of a transaction's id."""
    return f"{_ID}{commit_id}"


class KeyIndex(Struct, frozen=True):
    """Sorted hashes of keys, each with the version that names it."""

    hashes: array[int] = field(default_factory=lambda: array("Q"))
    versions: array[int] = field(default_factory=lambda: array("Q"))

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> KeyIndex:
        """Return the index of (hash, version) pairs in any order."""
        # In small parts: one large sort would block every other thread.
        parts: list[list[tuple[int, int]]] = [[] for _ in range(1 << _PART_BITS)]
        for each in pairs:
            parts[each[0] >> (_HASH_BITS - _PART_BITS)].append(each)
        return cls.of_sorted(chain.from_iterable(map(sorted, parts)))

    @classmethod
    def of_sorted(cls, pairs: Iterable[tuple[int, int]]) -> KeyIndex:
        """Return the index of (hash, version) pairs that are sorted already."""
        hashes, versions = array("Q"), array("Q")
        for each, version in pairs:
            hashes.append(each)
            versions.append(version)
        return cls(hashes, versions)

    def find(self, key: str) -> list[int]:
        """Return the versions that may have named `key`, newest first."""
        return self.find_hash(hash_key(key))

    def find_hash(self, wanted: int) -> list[int]:
        """Return the versions that may have named the key of a hash, newest first."""
        low = bisect_left(self.hashes, wanted)
        if low == len(self.hashes) or self.hashes[low] != wanted:
            return []
        high = bisect_right(self.hashes, wanted, lo=low)
        return sorted(self.versions[low:high], reverse=True)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield every (hash, version)."""
        return zip(self.hashes, self.versions, strict=True)

    def part_with_prefix(self, bits: int, number: int) -> KeyIndex:
        """Return the part whose hashes begin with `number`, written in `bits` bits."""
        if not bits:
            return self
        low = bisect_left(self.hashes, number << (_HASH_BITS - bits))
        high = bisect_left(self.hashes, (number + 1) << (_HASH_BITS - bits), lo=low)
        return KeyIndex(self.hashes[low:high], self.versions[low:high])

    def to_bytes(self) -> bytes:
        """Return the file: magic, hashes, versions, and the SHA-256 of all that."""
        body = (
            _MAGIC + _to_little_endian_bytes(self.hashes) + _to_little_endian_bytes(self.versions)
        )
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, body: bytes) -> KeyIndex | None:
        """Return the index in a file; None when the file is torn or changed."""
        content, check = body[:-_DIGEST_SIZE], body[-_DIGEST_SIZE:]
        numbers = content[len(_MAGIC) :]
        if content[: len(_MAGIC)] != _MAGIC or hashlib.sha256(content).digest() != check:
            return None
        if len(numbers) % _ENTRY_SIZE:
            return None
        half = len(numbers) // 2
        return cls(
            _from_little_endian_bytes(numbers[:half]), _from_little_endian_bytes(numbers[half:])
        )


def _to_little_endian_bytes(numbers: array[int]) -> bytes:
    if sys.byteorder == "little":
        return numbers.tobytes()
    swapped = array("Q", numbers)
    swapped.byteswap()
    return swapped.tobytes()


def _from_little_endian_bytes(body: bytes) -> array[int]:
    numbers = array("Q")
    numbers.frombytes(body)
    if sys.byteorder != "little":
        numbers.byteswap()
    return numbers


class IntervalTail(Generic[E]):
    """In-memory index of the commits of one interval, filled as they are read or written.

    Every change is one atomic, idempotent step, so that no thread needs a lock.

    Args:
        number: The interval's number; see `interval`.
        keys_of: Returns the keys of a commit.
    """

    def __init__(self, number: int, keys_of: KeysOf[E]) -> None:
        self.first, self.last = interval(number, number + 1)
        self._keys_of = keys_of
        self._unseen: dict[int, Commit[E]] = {}
        self._keys: dict[int, tuple[str, ...]] = {}
        self._sets: dict[int, frozenset[str]] = {}
        self._all: set[str] = set()
        self._lists: dict[int, tuple[KeyList, ...]] = {}
        self._known_to = self.first - 1

    def add_commits(self, commits: Iterable[Commit[E]]) -> None:
        """Add commits; their keys are extracted at the next lookup."""
        seen = self._sets
        self._unseen.update({each.version: each for each in commits if each.version not in seen})

    @property
    def has_been_searched(self) -> bool:
        """True when a key was looked up here."""
        return bool(self._sets)

    def lacks(self, last: int) -> range:
        """Return the versions up to `last` from the first one on that was not added."""
        known = self._known_to
        while known < last and (known + 1 in self._sets or known + 1 in self._unseen):
            known += 1
        self._known_to = known
        return range(known + 1, last + 1)

    def find(self, key: str, last: int | None = None) -> Iterator[int]:
        """Yield the versions up to `last` that named `key`, newest first."""
        if not self.has_key(key):
            return
        for version in sorted(self._sets, reverse=True):
            if (last is None or version <= last) and (
                key in self._sets[version] or self._is_listed(key, version)
            ):
                yield version

    def has_key(self, key: str) -> bool:
        """Return whether an added commit may name `key`."""
        return bool(self.among([key]))

    def among(self, keys: Iterable[str]) -> list[str]:
        """Return those of `keys` that an added commit may name."""
        self._index_unseen_commits()
        named, listed = self._all, [*self._lists]
        if not listed:
            return [key for key in keys if key in named]
        return [
            key
            for key in keys
            if key in named or any(self._is_listed(key, each) for each in listed)
        ]

    def _is_listed(self, key: str, version: int) -> bool:
        return any(each.may_hold(key) for each in self._lists.get(version, ()))

    def keys_of_commit(self, commit: Commit[E]) -> frozenset[str] | None:
        """Return the keys of a commit; None when it was not added.

        A commit not written yet may have the version of an added one, but never its last id.
        """
        self._index_unseen_commits()
        found = self._sets.get(commit.version)
        if not found or _transaction_id_key(commit.transactions[-1]) not in found:
            return None
        listed = self._lists.get(commit.version, ())
        return found.union(*listed) if listed else found

    def keys_by_version(self) -> Iterator[tuple[int, Iterable[str]]]:
        """Yield the version of each commit and the keys that it names."""
        self._index_unseen_commits()
        for version, keys in list(self._keys.items()):
            yield version, chain(keys, *self._lists.get(version, ()))

    def _index_unseen_commits(self) -> None:
        for version, commit in list(self._unseen.items()):
            named = [*self._keys_of(commit)]
            keys = tuple(each for each in named if isinstance(each, str))
            if len(keys) < len(named):
                self._lists[version] = tuple(each for each in named if not isinstance(each, str))
            self._all.update(keys)
            self._keys[version] = keys
            # Last: other threads take an entry here as a sign that the other maps have theirs.
            self._sets[version] = frozenset(keys)
            self._unseen.pop(version, None)


def _cut_prefix_bits(span: tuple[int, int]) -> int:
    """Return the number of leading hash bits that choose a cut of an index; 0: it has no cuts.

    Example:
        >>> [1 << _cut_prefix_bits((0, last)) for last in (800, 1_600, 6_400)]
        [1, 2, 8]
    """
    hundreds = span[1] // CHECKPOINT_INTERVAL - span[0] // CHECKPOINT_INTERVAL
    return (hundreds // _UNCUT).bit_length() - 1 if hundreds > _UNCUT else 0


def _layered_tiles(last: int) -> Iterator[tuple[FilterLayer, list[tuple[int, int]]]]:
    """Yield the layers up to `last` and the intervals inside each, newest first."""
    for layer in filter_layers(last):
        yield layer, [span for span in tiles(layer.last) if span[0] >= layer.first]


class KeyIndexes(Generic[E]):
    """A stream's key indexes.

    Args:
        store: The stream's store.
        file_of: Returns the store key of the index over the commits `first` to `last`.
        reader: Reads the commits whose index is missing.
        keys_of: Returns the keys of a commit.
        filters: The filters, which exclude keys that were never named; None: none.
    """

    def __init__(
        self,
        store: Store,
        file_of: Callable[[int, int], str],
        reader: Reader[E],
        keys_of: KeysOf[E],
        filters: KeyFilters | None = None,
    ) -> None:
        self._filters = filters
        self._store = store
        self._file_of = file_of
        self._reader = reader
        self._keys_of = keys_of
        self._at_hand: dict[tuple[int, int], KeyIndex | IntervalTail[E]] = {}
        self._cuts: dict[tuple[int, int], dict[int, KeyIndex]] = {}

    def find(self, key: str, last: int) -> Iterator[int]:
        """Yield the versions up to `last`, a checkpoint's, that may have named `key`.

        Newest first.
        """
        return self._find_hashed(key, hash_key(key), _layered_tiles(last))

    def _find_hashed(
        self, key: str, wanted: int, layers: Iterable[tuple[FilterLayer, list[tuple[int, int]]]]
    ) -> Iterator[int]:
        for layer, spans in layers:
            clear = (
                -1 if self._filters is None else self._filters.last_absent_version(layer, wanted)
            )
            for span in spans:
                # A filter covers its layer from the first version on, so older intervals are
                # excluded, too.
                if span[1] <= clear:
                    break
                pieces = self._in_memory_parts(span)
                if pieces is None:
                    clear = -1 if self._filters is None else self._filters.ask(layer, wanted)
                    if span[1] <= clear:
                        break
                    pieces = [self._cut_covering_hash(span, wanted)]
                for each in pieces:
                    if isinstance(each, KeyIndex):
                        yield from each.find_hash(wanted)
                    else:
                        yield from each.find(key)

    def among(self, keys: Collection[str], last: int) -> list[str]:
        """Return those of `keys` that commits up to `last`, a checkpoint's, may name."""
        layers, listed = [*_layered_tiles(last)], [*keys]
        return [
            key
            for key, wanted in zip(listed, hash_keys(listed), strict=True)
            if next(self._find_hashed(key, wanted, layers), None) is not None
        ]

    def keep(self, tail: IntervalTail[E]) -> None:
        """Use the in-memory index of a complete interval, until its index file is saved."""
        self._at_hand.setdefault((tail.first, tail.last), tail)

    def save(self, version: int) -> None:
        """Write the index that ends at a checkpoint's version.

        Raises:
            OSError: It could not be written; the log is unaffected.
        """
        span = next(tiles(version))
        for file, part in self.files(span, self._load_whole_index(span)):
            self._store.replace(file, part.to_bytes())

    def save_filter(self, version: int) -> None:
        """Write the filter that covers the commits up to a checkpoint's version.

        Raises:
            OSError: It could not be written; the log is unaffected.
        """
        layer = next(filter_layers(version), None)
        if self._filters is None or layer is None:
            return
        base = self._filters.whole(layer)
        # A filter that goes further is of a log that was since restored from an older copy.
        made = self.build_filter(layer, base if base and base.last < version else None)
        for file, part in self._filters.files(layer, made):
            self._store.replace(file, part.to_bytes())
        self._filters.take(layer, made)

    def build_filter(self, layer: FilterLayer, base: KeyFilter | None = None) -> KeyFilter:
        """Return a layer's filter, built from the indexes of its commits.

        Args:
            layer: The layer.
            base: The filter of an earlier range of the layer, if there is one.
        """
        known = base.last if base else -1
        spans = [each for each in tiles(layer.last) if each[0] >= layer.first and each[1] > known]
        return extend_filter(
            base, layer.last, (self._load_index_uncached(each).hashes for each in spans)
        )

    def _load_index_uncached(self, span: tuple[int, int]) -> KeyIndex:
        """Return the index of an interval without caching it."""
        found = self._at_hand.get(span)
        if isinstance(found, KeyIndex):
            return found
        whole = self._read_from_store(self._file_of(*span)) if found is None else None
        return whole or self.made(span)

    def file(self, span: tuple[int, int]) -> str:
        """Return the store's key of an interval's index."""
        return self._file_of(*span)

    def files(self, span: tuple[int, int], whole: KeyIndex) -> Iterator[tuple[str, KeyIndex]]:
        """Yield the files of an interval's index, the whole and its cuts, each with its key."""
        file, bits = self._file_of(*span), _cut_prefix_bits(span)
        yield file, whole
        for number in range(1 << bits) if bits else ():
            yield cut_key(file, number), whole.part_with_prefix(bits, number)

    def merge(self, version: int) -> None:
        """Merge the in-memory indexes of the interval that ends at a checkpoint's version.

        Does nothing unless all of them are in memory.
        """
        span = next(tiles(version))
        if all(each in self._at_hand for each in _lower_tier_intervals(span) or [span]):
            self._replace_parts(span, self.made(span))

    def _replace_parts(self, span: tuple[int, int], whole: KeyIndex) -> None:
        self._at_hand[span] = whole
        self._cuts.pop(span, None)
        for each in _lower_tier_intervals(span):
            # The merged index has all of their entries.
            self._at_hand.pop(each, None)

    def _in_memory_parts(self, span: tuple[int, int]) -> list[KeyIndex | IntervalTail[E]] | None:
        """Return the in-memory indexes of an interval, newest first; None unless they cover it."""
        found = self._at_hand.get(span)
        if found is not None:
            return [found]
        if not self._at_hand:
            # A handle that has just opened the table: do not walk every tier in vain.
            return None
        pieces: list[KeyIndex | IntervalTail[E]] = []
        for each in reversed(_lower_tier_intervals(span)):
            some = self._in_memory_parts(each)
            if some is None:
                return None
            pieces += some
        return pieces or None

    def _cut_covering_hash(self, span: tuple[int, int], wanted: int) -> KeyIndex:
        """Return the cut of an interval's index that covers a hash, or the whole index."""
        bits = _cut_prefix_bits(span)
        if not bits:
            return self._load_whole_index(span)
        number = wanted >> (_HASH_BITS - bits)
        cuts = self._cuts.setdefault(span, {})
        found = cuts.get(number)
        if found is None and len(cuts) < _MOST_CUTS:
            found = self._read_from_store(cut_key(self._file_of(*span), number))
            if found is not None:
                cuts[number] = found
        return self._load_whole_index(span) if found is None else found

    def _load_whole_index(self, span: tuple[int, int]) -> KeyIndex:
        """Return the whole index of an interval, and cache it in place of its parts."""
        whole = self._load_index_uncached(span)
        if self._at_hand.get(span) is not whole:
            self._replace_parts(span, whole)
        return whole

    def _read_from_store(self, file: str) -> KeyIndex | None:
        body = self._store.read(file)
        return None if body is None else KeyIndex.from_bytes(body)

    def made(self, span: tuple[int, int]) -> KeyIndex:
        """Return the index of an interval, built from those of the tier below, or from the log."""
        below = _lower_tier_intervals(span)
        if below:
            # A merge in small steps: one large sort would block every other thread.
            return KeyIndex.of_sorted(
                merge(*(self._load_whole_index(each).pairs() for each in below))
            )
        tail = self._at_hand.get(span)
        if isinstance(tail, KeyIndex):
            return tail
        if isinstance(tail, IntervalTail):
            return KeyIndex.of(_hashed(tail.keys_by_version()))
        return KeyIndex.of(_hashed(self._scan_log(*span)))

    def _scan_log(self, first: int, last: int) -> Iterator[tuple[int, Iterable[str]]]:
        for read in self._reader.after(Position(first - 1, ""), last):
            named = self._keys_of(read.commit)
            yield (
                read.commit.version,
                chain.from_iterable([each] if isinstance(each, str) else each for each in named),
            )


def _hashed(named: Iterable[tuple[int, Iterable[str]]]) -> Iterator[tuple[int, int]]:
    """Yield the hash of each key with the version that names it."""
    for version, keys in named:
        left = iter(keys)
        while some := [*islice(left, _HASHED_AT_ONCE)]:
            yield from zip(hash_keys(some), repeat(version))


def _lower_tier_intervals(span: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the intervals of the tier below that merge into one, oldest first."""
    numbers = parts(span[0] // CHECKPOINT_INTERVAL, span[1] // CHECKPOINT_INTERVAL)
    return [interval(*each) for each in numbers]


class KeyLookup(Generic[E]):
    """Lookup of a stream's commits by key: the newest in memory, older ones by index files.

    Args:
        store: The stream's store.
        layout: The stream's keys.
        reader: Reads its commits.
        keys_of: Returns the keys of a commit besides the ids of its transactions.
    """

    def __init__(self, store: Store, layout: Layout, reader: Reader[E], keys_of: KeysOf[E]) -> None:
        self._reader = reader
        self._keys_of = _with_id_keys(keys_of)
        self._tails: dict[int, IntervalTail[E]] = {}
        self._unmerged: deque[int] = deque()
        self._debts = 0
        self.filters = KeyFilters(store, layout)
        self._named: KeyIndexes[E] = KeyIndexes(
            store,
            layout.index,
            reader,
            self._keys_of,
            self.filters,
        )

    @property
    def named(self) -> KeyIndexes[E]:
        """Indexes of older commits."""
        return self._named

    def add_commits(self, commits: Sequence[Commit[E]]) -> None:
        """Add consecutive commits that were read or written."""
        noted = 0
        while noted < len(commits):
            first = commits[noted].version
            tail = self._tail_of_interval(_interval_number(first))
            end = noted + tail.last + 1 - first
            tail.add_commits(commits[noted:end])
            noted = end

    def keys_of_commit(self, commit: Commit[E]) -> frozenset[str] | None:
        """Return the keys of a commit that was added lately; None for any other."""
        tail = self._tails.get(_interval_number(commit.version))
        return None if tail is None else tail.keys_of_commit(commit)

    def among(self, keys: Iterable[str], last: int) -> list[str]:
        """Return those of `keys` that commits up to `last` may name."""
        recent = self._newest_tail(last)
        boundary = last - last % CHECKPOINT_INTERVAL
        wanted = dict.fromkeys(keys)
        found = [] if recent is None else recent.among(wanted)
        if not boundary:
            return found
        older = self._named.among(wanted.keys() - found, boundary)
        return [*found, *older]

    def last_named(self, key: str, last: int) -> Iterator[int]:
        """Yield the versions up to `last` that may name `key`, newest first."""
        older = self._named.find(key, last - last % CHECKPOINT_INTERVAL)
        return chain(self._find_in_recent(key, last), older)

    def with_id(self, commit_id: str, last: int) -> Iterator[int]:
        """Yield the versions up to `last` that may hold a transaction of an id, newest first."""
        return self.last_named(commit_id_key(commit_id), last)

    def save(self, version: int) -> None:
        """Write the index that ends at a checkpoint's version, and the filter up to it.

        Raises:
            OSError: They could not be written; the log is unaffected.
        """
        self._named.save(version)
        self._named.save_filter(version)

    @property
    def queued_merges(self) -> int:
        """Number of in-memory intervals that were ever queued for `merge_next`."""
        return self._debts

    def merge_next(self) -> bool:
        """Merge the in-memory indexes of the next complete interval; False: none is left.

        Raises:
            LedgerError: A list of file changes is missing or damaged.
            OSError: The store does not answer.
        """
        try:
            version = self._unmerged.popleft()
        except IndexError:
            return False
        self._named.merge(version)
        return True

    def _find_in_recent(self, key: str, last: int) -> Iterator[int]:
        tail = self._newest_tail(last)
        if tail is not None:
            yield from tail.find(key, last)

    def _newest_tail(self, last: int) -> IntervalTail[E] | None:
        """Return the index of the commits after the last checkpoint version; None at one."""
        boundary = last - last % CHECKPOINT_INTERVAL
        # Also at a checkpoint version, so that the interval that ends there is kept in memory.
        tail = self._tail_of_interval(boundary // CHECKPOINT_INTERVAL)
        if last == boundary and last:
            return None
        missing = tail.lacks(last)
        if missing:
            for read in self._reader.after(Position(missing.start - 1, ""), last):
                tail.add_commits([read.commit])
        return tail

    def _tail_of_interval(self, number: int) -> IntervalTail[E]:
        found = self._tails.get(number)
        if found is None:
            found = self._tails.setdefault(number, IntervalTail(number, self._keys_of))
            for older in [each for each in self._tails if each < number]:
                tail = self._tails.pop(older, None)
                # A handle that only reads keeps nothing: it would grow as long as it reads.
                if tail is not None and tail.has_been_searched and not tail.lacks(tail.last):
                    self._named.keep(tail)
                    self._unmerged.append(tail.last)
                    self._debts += 1
        return found


def _with_id_keys(more_of: KeysOf[E]) -> KeysOf[E]:
    def keys_of(commit: Commit[E]) -> Iterator[str | KeyList]:
        yield from map(_transaction_id_key, commit.transactions)
        yield from more_of(commit)

    return keys_of


def _transaction_id_key(transaction: Transaction[Any]) -> str:
    return commit_id_key(transaction.id)


def _interval_number(version: int) -> int:
    """Return the number of the interval that contains a version; the first includes 0."""
    return max(0, version - 1) // CHECKPOINT_INTERVAL
