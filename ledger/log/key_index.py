"""Key index: the commits that name an id or a file path, and its filters.

The newest commits are remembered; for every hundred older ones there is one small file of sorted
64-bit hashes, eight of which are merged into one of the next tier, and so on, so that a lookup
reads few files however long the log is. Larger ones have cuts by the hash beside them, for whoever
asks once. A hit says where to look, never what is true: the commit named is read. The files
are a cache; what is missing or damaged is made again from the log.

Most keys that anybody asks for were never named, and every index would have to be read to say so.
One filter a layer says it at once: the newest up to 63 hundreds of commits are a layer, then up to
63 times 64 hundreds, and so on, so that a new handle reads about one small file for each, however
long the log is. A filter is written again as its layer grows, and names the version that it goes
up to; what is newer is asked of the indexes. Larger ones have cuts by the hash beside them.

A filter is a function of the log, and a cache: without it the indexes are asked.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import chain
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Struct, field

from ledger.events.commit import Commit, Transaction
from ledger.log.layout import CHECKPOINT_INTERVAL, Layout, cut_of
from ledger.log.replay import Position, Reader
from ledger.model.snapshot import covering, parts
from ledger.stores import Store

_FAN_OUT: Final = 64
_CUT_BITS: Final = 3
_FILTER_MAGIC: Final = b"LLFILT1\n"
_FILTER_DIGEST_SIZE: Final = 32
_FILTER_HASH_BITS: Final = 64
_PRINT_BITS: Final = 32
_PRINT_SIZE: Final = 4
"""A hash stands for one of those in a filter by mistake once in many thousands of questions."""
_LAST: Final = struct.Struct("<Q")

_MOST_FILTER_CUTS: Final = 8
"""Whoever asks more often from far away is better off with the whole filter."""
_MOST_NEAR: Final = 32
"""Near, reading and checking a whole filter takes as long as half of its first 64 cuts."""
_SMALL: Final = 1 << 18
"""A filter of no more prints, a megabyte, is read whole by whoever asks again from far away."""


class Layer(NamedTuple):
    """Neighbouring commits that one filter is about.

    Attributes:
        level: How many times its units were multiplied by 64.
        first: The first version.
        last: The last version, a checkpoint's.
    """

    level: int
    first: int
    last: int

    @property
    def bits(self) -> int:
        """By how many bits of the hash its filter is cut; 0: it is not."""
        return _CUT_BITS * (self.level + 1) if self.level else 0


def layers(last: int) -> Iterator[Layer]:
    """Yield the layers that cover the versions 0 to `last`, a checkpoint's; newest first.

    Example:
        >>> [*layers(6500)]
        [Layer(level=0, first=6401, last=6500), Layer(level=1, first=0, last=6400)]
    """
    end, width, level = last // CHECKPOINT_INTERVAL, 1, 0
    while end > 0:
        start = end - end % (width * _FAN_OUT)
        if start < end:
            first = start * CHECKPOINT_INTERVAL + 1 if start else 0
            yield Layer(level, first, end * CHECKPOINT_INTERVAL)
        end, width, level = start, width * _FAN_OUT, level + 1


class KeyFilter(Struct, frozen=True):
    """The keys of a layer, or of a cut of it, by the beginnings of their hashes.

    Attributes:
        last: The version that it goes up to.
        prints: The first 32 bits of each hash, ascending, each once.
    """

    last: int
    prints: array[int]

    def lacks(self, hash_value: int) -> bool:
        """Whether no key has this hash, for sure.

        Example:
            >>> KeyFilter(100, array("I", [7])).lacks(8 << 32)
            True
        """
        wanted = hash_value >> (_FILTER_HASH_BITS - _PRINT_BITS)
        at = bisect_left(self.prints, wanted)
        return at == len(self.prints) or self.prints[at] != wanted

    def cut(self, bits: int, number: int) -> KeyFilter:
        """Return what is of the hashes that begin with a number of so many bits."""
        if not bits:
            return self
        low, high = (
            bisect_left(self.prints, each << (_PRINT_BITS - bits)) for each in (number, number + 1)
        )
        return KeyFilter(self.last, self.prints[low:high])

    def to_bytes(self) -> bytes:
        """Return the file: magic, last version, prints, and the SHA-256 of all that."""
        body = _FILTER_MAGIC + _LAST.pack(self.last) + _filter_integers(self.prints).tobytes()
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, body: bytes) -> KeyFilter | None:
        """Return the filter that a file holds; None when the file is torn or changed."""
        # Views of it: whoever opens a table reads some, and would copy each again and again.
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
        return cls(_LAST.unpack_from(head, len(_FILTER_MAGIC))[0], _filter_integers(prints))


def _filter_integers(numbers: array[int]) -> array[int]:
    if sys.byteorder == "little":
        return numbers
    swapped = array("I", numbers)
    swapped.byteswap()
    return swapped


def joined(base: KeyFilter | None, last: int, hashes: Iterable[array[int]]) -> KeyFilter:
    """Return the filter of a layer that went on.

    Args:
        base: That of its beginning; None for a new one.
        last: The version that it goes up to.
        hashes: Those of the keys that came, ascending, from one index each.
    """
    prints, some = array("I"), [*hashes]
    bits = (sum(map(len, some)) + len(base.prints if base else ())).bit_length() // 2
    # Step by step: one large sort would hold up every other thread.
    for number in range(1 << bits):
        low, high = (each << (_FILTER_HASH_BITS - bits) for each in (number, number + 1))
        found = [*base.cut(bits, number).prints] if base else []
        for each in some:
            some_of_it = each[bisect_left(each, low) : bisect_left(each, high)]
            found += [one >> (_FILTER_HASH_BITS - _PRINT_BITS) for one in some_of_it]
        # In order mostly, which sorting makes use of.
        prints.extend(dict.fromkeys(sorted(found)))
    return KeyFilter(last, prints)


class KeyFilters:
    """One stream's filters, as far as they were read.

    Every change is one step that any thread may take: nobody waits for a lock.

    Args:
        store: Where they are.
        layout: Under which keys.
    """

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store = store
        self._layout = layout
        self._kept: dict[tuple[int, int], dict[int, KeyFilter]] = {}
        self._asked: dict[tuple[int, int, int], int] = {}

    def clear_to(self, layer: Layer, hash_value: int) -> int:
        """Return up to which version of a layer a hash was surely never named; -1: none.

        By what is in memory; see `ask`.
        """
        kept = self._kept.get(layer[:2])
        if kept is None:
            return -1
        found = kept.get(_WHOLE) or kept.get(_number(layer, hash_value))
        return found.last if found is not None and found.lacks(hash_value) else -1

    def ask(self, layer: Layer, hash_value: int) -> int:
        """Return the same after reading what is not in memory, or may have grown since."""
        kept = self._kept.setdefault(layer[:2], {})
        number = _WHOLE if self._is_better_whole(kept, layer) else _number(layer, hash_value)
        at = (*layer[:2], number)
        if self._asked.get(at, -1) < layer.last:
            self._asked[at] = layer.last
            found = self._read(layer, number)
            if found is not None:
                kept[number] = found
        return self.clear_to(layer, hash_value)

    def _is_better_whole(self, kept: Mapping[int, KeyFilter], layer: Layer) -> bool:
        """Whether a whole filter is read, given the cuts of it that were."""
        # Near, checking and unpacking a megabyte takes longer than what a few files ask.
        if self._store.is_near:
            return len(kept) >= _MOST_NEAR
        if len(kept) >= _MOST_FILTER_CUTS:
            return True
        # Hashes spread evenly, so that one cut says how much there is.
        return any(len(each.prints) << layer.bits <= _SMALL for each in kept.values())

    def whole(self, layer: Layer) -> KeyFilter | None:
        """Return a layer's filter as it stands; None when it is missing or damaged."""
        return self._read(layer, _WHOLE)

    def take(self, layer: Layer, made: KeyFilter) -> None:
        """Remember a layer's filter that is at hand, where it is asked for."""
        kept = self._kept
        for level, first in list(kept):
            if level <= layer.level and first < layer.first:
                kept.pop((level, first), None)
        if layer[:2] in kept:
            kept[layer[:2]] = {_WHOLE: made}

    def files(self, layer: Layer, made: KeyFilter) -> Iterator[tuple[str, KeyFilter]]:
        """Yield what is kept of a layer's filter: itself, then its cuts, each with its key."""
        yield self._file(layer, _WHOLE), made
        for number in range(1 << layer.bits) if layer.bits else ():
            yield self._file(layer, number), made.cut(layer.bits, number)

    def _file(self, layer: Layer, number: int) -> str:
        whole = self._layout.filter(layer.level, layer.first)
        return whole if number == _WHOLE else cut_of(whole, number)

    def _read(self, layer: Layer, number: int) -> KeyFilter | None:
        body = self._store.read(self._file(layer, number))
        return None if body is None else KeyFilter.from_bytes(body)


_WHOLE: Final = -1


def _number(layer: Layer, hash_value: int) -> int:
    """Return in which cut of a layer's filter a hash is looked for."""
    return hash_value >> (_FILTER_HASH_BITS - layer.bits) if layer.bits else _WHOLE


E = TypeVar("E")

KeysOf = Callable[[Commit[E]], Iterable[str]]
"""Says what a commit named."""

_ID: Final = "id:"

_HASH_BITS = 64
_UNCUT = 8
"""An index of more hundreds of commits than this has as many cuts as it has eights."""

_MOST_CUTS = 4
"""Whoever asks more often is better off with the whole index."""

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


def hashed_all(keys: Sequence[str]) -> tuple[int, ...]:
    """Return the 64-bit hashes of some keys.

    Example:
        >>> hashed_all(["a"]) == (hashed("a"),)
        True
    """
    digests = [hashlib.blake2b(key, digest_size=8).digest() for key in map(str.encode, keys)]
    return struct.unpack(f"<{len(keys)}Q", b"".join(digests))


def id_key(commit_id: str) -> str:
    """Return what is remembered of a transaction's id."""
    return f"{_ID}{commit_id}"


class KeyIndex(Struct, frozen=True):
    """Sorted hashes, and the version that each was named in."""

    hashes: array[int] = field(default_factory=lambda: array("Q"))
    versions: array[int] = field(default_factory=lambda: array("Q"))

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> KeyIndex:
        """Return the index of (hash, version) pairs in any order."""
        found = sorted(pairs)
        return cls(array("Q", [each for each, _ in found]), array("Q", [each for _, each in found]))

    @classmethod
    def of_sorted(cls, pairs: Iterable[tuple[int, int]]) -> KeyIndex:
        """Return the index of (hash, version) pairs in their order."""
        hashes, versions = array("Q"), array("Q")
        for each, version in pairs:
            hashes.append(each)
            versions.append(version)
        return cls(hashes, versions)

    def find(self, key: str) -> list[int]:
        """Return the versions that may have named `key`, newest first."""
        return self.find_hash(hashed(key))

    def find_hash(self, wanted: int) -> list[int]:
        """Return the versions that may have named the key of a hash, newest first."""
        low = bisect_left(self.hashes, wanted)
        if low == len(self.hashes) or self.hashes[low] != wanted:
            return []
        high = bisect_right(self.hashes, wanted, lo=low)
        return sorted(self.versions[low:high], reverse=True)

    def before(self, hash_value: int) -> int:
        """Return how many of its hashes are less than one."""
        return bisect_left(self.hashes, hash_value)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield every (hash, version)."""
        return zip(self.hashes, self.versions, strict=True)

    def cut(self, bits: int, number: int) -> KeyIndex:
        """Return what is of the hashes that begin with a number of so many bits."""
        if not bits:
            return self
        low = bisect_left(self.hashes, number << (_HASH_BITS - bits))
        high = bisect_left(self.hashes, (number + 1) << (_HASH_BITS - bits), lo=low)
        return KeyIndex(self.hashes[low:high], self.versions[low:high])

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


class Tail(Generic[E]):
    """What the commits of one interval named, in memory, as they come.

    Every change is one step that any thread may take, and take twice: nobody waits for a lock.

    Args:
        number: Which interval it is; see `interval`.
        keys_of: What to remember of a commit.
    """

    def __init__(self, number: int, keys_of: KeysOf[E]) -> None:
        self.first, self.last = interval(number, number + 1)
        self._keys_of = keys_of
        self._unseen: dict[int, Commit[E]] = {}
        self._keys: dict[int, tuple[str, ...]] = {}
        self._sets: dict[int, frozenset[str]] = {}
        self._all: set[str] = set()
        self._known_to = self.first - 1

    def note(self, commits: Iterable[Commit[E]]) -> None:
        """Take commits that are at hand; what they named is looked at when somebody asks."""
        seen = self._sets
        self._unseen.update({each.version: each for each in commits if each.version not in seen})

    @property
    def was_asked(self) -> bool:
        """Whether anybody looked for anything here."""
        return bool(self._sets)

    def lacks(self, last: int) -> range:
        """Return the versions up to `last` from the first on that has to be read."""
        known = self._known_to
        while known < last and (known + 1 in self._sets or known + 1 in self._unseen):
            known += 1
        self._known_to = known
        return range(known + 1, last + 1)

    def find(self, key: str, last: int | None = None) -> Iterator[int]:
        """Yield the versions up to `last` that named `key`, newest first."""
        self._look()
        if key not in self._all:
            return
        for version in sorted(self._sets, reverse=True):
            if (last is None or version <= last) and key in self._sets[version]:
                yield version

    def knows(self, key: str) -> bool:
        """Whether any commit that was taken named `key`."""
        self._look()
        return key in self._all

    def named_by(self, commit: Commit[E]) -> frozenset[str] | None:
        """Return what a commit named that was taken; None of any other.

        One that is on its way has the version of one that may land before it, and no id of it.
        """
        self._look()
        found = self._sets.get(commit.version)
        return found if found and _id_key(commit.transactions[-1]) in found else None

    def pairs(self) -> Iterator[tuple[str, int]]:
        """Yield each key, as often as it was named, with its version."""
        self._look()
        for version, keys in list(self._keys.items()):
            for key in keys:
                yield key, version

    def _look(self) -> None:
        for version, commit in list(self._unseen.items()):
            keys = tuple(self._keys_of(commit))
            self._all.update(keys)
            self._keys[version] = keys
            # Last, since whoever finds it here looks for it in the others.
            self._sets[version] = frozenset(keys)
            self._unseen.pop(version, None)


def _bits(span: tuple[int, int]) -> int:
    """Return by how many bits of the hash an interval's index is cut; 0: it is not.

    Example:
        >>> [1 << _bits((0, last)) for last in (800, 1_600, 6_400)]
        [1, 2, 8]
    """
    hundreds = span[1] // CHECKPOINT_INTERVAL - span[0] // CHECKPOINT_INTERVAL
    return (hundreds // _UNCUT).bit_length() - 1 if hundreds > _UNCUT else 0


class KeyIndexes(Generic[E]):
    """One stream's key indexes.

    Args:
        store: Where they are.
        file_of: The store's key of the index over the commits of a first to a last version.
        reader: Reads the commits that an index is missing for.
        keys_of: What commits named.
        filters: What was surely never named; None where nobody asks often.
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
        self._at_hand: dict[tuple[int, int], KeyIndex | Tail[E]] = {}
        self._cuts: dict[tuple[int, int], dict[int, KeyIndex]] = {}

    def find(self, key: str, last: int) -> Iterator[int]:
        """Yield the versions up to `last`, a checkpoint's, that may have named `key`.

        Newest first.
        """
        wanted = hashed(key)
        for layer in layers(last):
            clear = -1 if self._filters is None else self._filters.clear_to(layer, wanted)
            for span in tiles(layer.last):
                # A filter begins with its layer, so that what is older is clear, too.
                if span[1] <= clear or span[0] < layer.first:
                    break
                pieces = self._parts(span)
                if pieces is None:
                    clear = -1 if self._filters is None else self._filters.ask(layer, wanted)
                    if span[1] <= clear:
                        break
                    pieces = [self._piece(span, wanted)]
                for each in pieces:
                    if isinstance(each, KeyIndex):
                        yield from each.find_hash(wanted)
                    else:
                        yield from each.find(key)

    def keep(self, tail: Tail[E]) -> None:
        """Answer for a complete interval from memory, until its index is saved."""
        self._at_hand.setdefault((tail.first, tail.last), tail)

    def save(self, version: int) -> None:
        """Keep the index that ends at a checkpoint's version.

        Raises:
            OSError: It could not be kept; that harms nothing.
        """
        span = next(tiles(version))
        for file, part in self.files(span, self._whole(span)):
            self._store.replace(file, part.to_bytes())

    def save_filter(self, version: int) -> None:
        """Keep the filter that goes up to a checkpoint's version.

        Raises:
            OSError: It could not be kept; that harms nothing.
        """
        layer = next(layers(version), None)
        if self._filters is None or layer is None:
            return
        base = self._filters.whole(layer)
        # One that goes further is of a log that was put back from an older copy.
        made = self.filter_made(layer, base if base and base.last < version else None)
        for file, part in self._filters.files(layer, made):
            self._store.replace(file, part.to_bytes())
        self._filters.take(layer, made)

    def filter_made(self, layer: Layer, base: KeyFilter | None = None) -> KeyFilter:
        """Return a layer's filter, made of the indexes of its commits.

        Args:
            layer: The layer.
            base: A filter of its beginning, if there is one.
        """
        known = base.last if base else -1
        spans = [each for each in tiles(layer.last) if each[0] >= layer.first and each[1] > known]
        return joined(base, layer.last, (self._index(each).hashes for each in spans))

    def _index(self, span: tuple[int, int]) -> KeyIndex:
        """Return the index of an interval, which nobody will ask for again."""
        found = self._at_hand.get(span)
        if isinstance(found, KeyIndex):
            return found
        whole = self._read(self._file_of(*span)) if found is None else None
        return whole or self.made(span)

    def file(self, span: tuple[int, int]) -> str:
        """Return the store's key of an interval's index."""
        return self._file_of(*span)

    def files(self, span: tuple[int, int], whole: KeyIndex) -> Iterator[tuple[str, KeyIndex]]:
        """Yield what is kept of an interval's index: itself, then its cuts, each with its key."""
        file, bits = self._file_of(*span), _bits(span)
        yield file, whole
        for number in range(1 << bits) if bits else ():
            yield cut_of(file, number), whole.cut(bits, number)

    def merge(self, version: int) -> None:
        """Have one index of the interval that ends at a checkpoint's version, if all is at hand."""
        span = next(tiles(version))
        if all(each in self._at_hand for each in _below(span) or [span]):
            self._take(span, self.made(span))

    def _take(self, span: tuple[int, int], whole: KeyIndex) -> None:
        self._at_hand[span] = whole
        self._cuts.pop(span, None)
        for each in _below(span):
            # All that they hold is in the one that was made of them.
            self._at_hand.pop(each, None)

    def _parts(self, span: tuple[int, int]) -> list[KeyIndex | Tail[E]] | None:
        """Return what holds an interval, newest first, if all of it is at hand."""
        found = self._at_hand.get(span)
        if found is not None:
            return [found]
        if not self._at_hand:
            # Of a handle that has just opened the table, for which every tier would be walked.
            return None
        pieces: list[KeyIndex | Tail[E]] = []
        for each in reversed(_below(span)):
            some = self._parts(each)
            if some is None:
                return None
            pieces += some
        return pieces or None

    def _piece(self, span: tuple[int, int], wanted: int) -> KeyIndex:
        """Return what an interval's index holds of a hash: at first no more than its cut."""
        bits = _bits(span)
        if not bits:
            return self._whole(span)
        number = wanted >> (_HASH_BITS - bits)
        cuts = self._cuts.setdefault(span, {})
        found = cuts.get(number)
        if found is None and len(cuts) < _MOST_CUTS:
            found = self._read(cut_of(self._file_of(*span), number))
            if found is not None:
                cuts[number] = found
        return self._whole(span) if found is None else found

    def _whole(self, span: tuple[int, int]) -> KeyIndex:
        """Return the one index of an interval; the parts that it replaces go."""
        whole = self._index(span)
        if self._at_hand.get(span) is not whole:
            self._take(span, whole)
        return whole

    def _read(self, file: str) -> KeyIndex | None:
        body = self._store.read(file)
        return None if body is None else KeyIndex.from_bytes(body)

    def made(self, span: tuple[int, int]) -> KeyIndex:
        """Return the index of an interval, made of those of the tier below, or of the log."""
        below = _below(span)
        if below:
            # A merge by steps: one large sort would hold up every other thread.
            return KeyIndex.of_sorted(merge(*(self._whole(each).pairs() for each in below)))
        tail = self._at_hand.get(span)
        if isinstance(tail, KeyIndex):
            return tail
        named = tail.pairs() if isinstance(tail, Tail) else self._scan(*span)
        return KeyIndex.of((hashed(key), version) for key, version in named)

    def _scan(self, first: int, last: int) -> Iterator[tuple[str, int]]:
        for read in self._reader.after(Position(first - 1, ""), last):
            for key in self._keys_of(read.commit):
                yield key, read.commit.version


def _below(span: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the intervals of the tier below that merge into one, oldest first."""
    numbers = parts(span[0] // CHECKPOINT_INTERVAL, span[1] // CHECKPOINT_INTERVAL)
    return [interval(*each) for each in numbers]


class Lookup(Generic[E]):
    """Where one stream named something: the newest commits in memory, older ones by index.

    Args:
        store: Where it is.
        layout: Under which keys.
        reader: Reads its commits.
        keys_of: What else to remember of a commit, beside the ids of its transactions.
    """

    def __init__(self, store: Store, layout: Layout, reader: Reader[E], keys_of: KeysOf[E]) -> None:
        self._reader = reader
        self._keys_of = _with_ids(keys_of)
        self._tails: dict[int, Tail[E]] = {}
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
        """The indexes of what commits name."""
        return self._named

    def note(self, commits: Sequence[Commit[E]]) -> None:
        """Remember commits that were read or landed, each the one after the one before."""
        noted = 0
        while noted < len(commits):
            first = commits[noted].version
            tail = self._tail(_interval_of(first))
            end = noted + tail.last + 1 - first
            tail.note(commits[noted:end])
            noted = end

    def named_by(self, commit: Commit[E]) -> frozenset[str] | None:
        """Return what a commit named that was noted lately; None of any other."""
        tail = self._tails.get(_interval_of(commit.version))
        return None if tail is None else tail.named_by(commit)

    def among(self, keys: Iterable[str], last: int) -> list[str]:
        """Return those of some keys that may have been named up to `last`."""
        recent = self._newest(last)
        boundary = last - last % CHECKPOINT_INTERVAL
        return [
            key
            for key in keys
            if (recent is not None and recent.knows(key))
            or (boundary and any(True for _ in self._named.find(key, boundary)))
        ]

    def last_named(self, key: str, last: int) -> Iterator[int]:
        """Yield the versions up to `last` that may have named `key`, newest first."""
        older = self._named.find(key, last - last % CHECKPOINT_INTERVAL)
        return chain(self._recent(key, last), older)

    def with_id(self, commit_id: str, last: int) -> Iterator[int]:
        """Yield the versions up to `last` that may hold a transaction of an id, newest first."""
        return self.last_named(id_key(commit_id), last)

    def save(self, version: int) -> None:
        """Keep the indexes that end at a checkpoint's version, and the filter that goes up to it.

        Raises:
            OSError: They could not be kept; that harms nothing.
        """
        self._named.save(version)
        self._named.save_filter(version)

    @property
    def debts(self) -> int:
        """How many intervals in memory `merge_next` was left so far, merged by now or not."""
        return self._debts

    def merge_next(self) -> bool:
        """Merge what is kept of complete intervals, though others saved them; False: all is done.

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

    def _recent(self, key: str, last: int) -> Iterator[int]:
        tail = self._newest(last)
        if tail is not None:
            yield from tail.find(key, last)

    def _newest(self, last: int) -> Tail[E] | None:
        """Return what the commits after a boundary named; None at a boundary."""
        boundary = last - last % CHECKPOINT_INTERVAL
        # Asked for at a checkpoint, too, so that the interval that ends there is at hand.
        tail = self._tail(boundary // CHECKPOINT_INTERVAL)
        if last == boundary and last:
            return None
        missing = tail.lacks(last)
        if missing:
            for read in self._reader.after(Position(missing.start - 1, ""), last):
                tail.note([read.commit])
        return tail

    def _tail(self, number: int) -> Tail[E]:
        found = self._tails.get(number)
        if found is None:
            found = self._tails.setdefault(number, Tail(number, self._keys_of))
            for older in [each for each in self._tails if each < number]:
                tail = self._tails.pop(older, None)
                # Of a handle that only reads nothing is kept: it would grow as long as it reads.
                if tail is not None and tail.was_asked and not tail.lacks(tail.last):
                    self._named.keep(tail)
                    self._unmerged.append(tail.last)
                    self._debts += 1
        return found


def _with_ids(more_of: KeysOf[E]) -> KeysOf[E]:
    def keys_of(commit: Commit[E]) -> Iterator[str]:
        yield from map(_id_key, commit.transactions)
        yield from more_of(commit)

    return keys_of


def _id_key(transaction: Transaction[Any]) -> str:
    return id_key(transaction.id)


def _interval_of(version: int) -> int:
    """Return the number of the interval that a version is of; the first holds 0, too."""
    return max(0, version - 1) // CHECKPOINT_INTERVAL
