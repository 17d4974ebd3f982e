"""What a stream has surely never named: the sorted beginnings of the hashes of all its keys.

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
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from ledger.log.layout import CHECKPOINT_INTERVAL, Layout, cut_of
from ledger.stores import Store

_FAN_OUT: Final = 64
_CUT_BITS: Final = 3
_MAGIC: Final = b"LLFILT1\n"
_DIGEST_SIZE: Final = 32
_HASH_BITS: Final = 64
_PRINT_BITS: Final = 32
_PRINT_SIZE: Final = 4
"""A hash stands for one of those in a filter by mistake once in many thousands of questions."""
_LAST: Final = struct.Struct("<Q")

_MOST_CUTS: Final = 8
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
        wanted = hash_value >> (_HASH_BITS - _PRINT_BITS)
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
        body = _MAGIC + _LAST.pack(self.last) + _little(self.prints).tobytes()
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, body: bytes) -> KeyFilter | None:
        """Return the filter that a file holds; None when the file is torn or changed."""
        # Views of it: whoever opens a table reads some, and would copy each again and again.
        whole = memoryview(body)
        content, check = whole[:-_DIGEST_SIZE], whole[-_DIGEST_SIZE:]
        head, numbers = content[: len(_MAGIC) + _LAST.size], content[len(_MAGIC) + _LAST.size :]
        if bytes(head[: len(_MAGIC)]) != _MAGIC or hashlib.sha256(content).digest() != check:
            return None
        if len(head) != len(_MAGIC) + _LAST.size or len(numbers) % _PRINT_SIZE:
            return None
        prints = array("I")
        prints.frombytes(numbers)
        return cls(_LAST.unpack_from(head, len(_MAGIC))[0], _little(prints))


def _little(numbers: array[int]) -> array[int]:
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
        low, high = (each << (_HASH_BITS - bits) for each in (number, number + 1))
        found = [*base.cut(bits, number).prints] if base else []
        for each in some:
            some_of_it = each[bisect_left(each, low) : bisect_left(each, high)]
            found += [one >> (_HASH_BITS - _PRINT_BITS) for one in some_of_it]
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
        if len(kept) >= _MOST_CUTS:
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
    return hash_value >> (_HASH_BITS - layer.bits) if layer.bits else _WHOLE
