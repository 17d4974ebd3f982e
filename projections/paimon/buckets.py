"""Which bucket a row belongs to: Paimon's default bucket function.

Source: Paimon's MurmurHashUtils and KeyAndBucketExtractor.
"""

from __future__ import annotations

import math
import struct

_COUNT_BYTES = 4
_SEED = 42
_BITS = 0xFFFFFFFF
_SIGN = 0x80000000


def bucket_of(row: bytes, buckets: int) -> int:
    """Return the bucket of a row of bucket keys.

    Args:
        row: In serialised form, as `encode_row` gives it.
        buckets: How many the table has.

    Example:
        >>> from ledger.model.types import IntType
        >>> from projections.paimon.binary_row import encode_row
        >>> bucket_of(encode_row([7], [IntType()]), 4)
        3
    """
    return abs(int(math.fmod(row_hash(row), buckets)))


def row_hash(row: bytes) -> int:
    """Return the 32-bit murmur hash of a serialised row, signed as Java's int is."""
    body = row[_COUNT_BYTES:]
    mixed = _SEED
    for (word,) in struct.iter_unpack("<I", body[: len(body) // 4 * 4]):
        mixed = (_rotated(mixed ^ _scrambled(word), 13) * 5 + 0xE6546B64) & _BITS
    mixed ^= len(body)
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _BITS
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _BITS
    mixed ^= mixed >> 16
    return mixed - 2 * (mixed & _SIGN)


def _scrambled(word: int) -> int:
    return _rotated(word * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & _BITS
