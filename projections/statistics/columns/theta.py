"""Theta sketches as every reader of them takes them.

Spark writes theirs compressed, which only newer readers know. What Iceberg's Java writes, and its
specification means, is the plain form of the same sketch.

Source: Apache DataSketches, the preambles of compact theta sketches of serial versions 3 and 4.
"""

from __future__ import annotations

import struct

from ledger.model.errors import InvalidInputError

_THETA_FAMILY = 3
_PLAIN, _COMPRESSED = 3, 4
_LEAST = 8
_READ_ONLY_COMPACT_ORDERED = 2 | 8 | 16
_HASH_BITS = 64


def plain(sketch: bytes) -> bytes:
    """Return a compact theta sketch without its compression; one that is plain as it is.

    Raises:
        InvalidInputError: The bytes are no compact theta sketch of a known version.

    Example:
        >>> two = bytes.fromhex("0104033f011acc930269cb8f136c80ff0b186cffee6f750648")
        >>> plain(two).hex(" ", 8)
        '02030300001acc93 020000000000803f 857f40b689c7e534 17c11d528507017b'
    """
    if len(sketch) < _LEAST or sketch[2] != _THETA_FAMILY:
        raise InvalidInputError(f"{len(sketch)} bytes are no theta sketch: read the data again")
    if sketch[1] == _PLAIN:
        return sketch
    if sketch[1] != _COMPRESSED:
        raise InvalidInputError(
            f"a theta sketch of version {sketch[1]} is none that is known: take a newer lakeledger"
        )
    try:
        return _written(*_read(sketch), seed_hash=sketch[6:8])
    except (struct.error, ValueError, IndexError) as error:
        raise InvalidInputError(f"a theta sketch is cut off: {error}") from error


def _read(sketch: bytes) -> tuple[bytes, list[int]]:
    """Return theta's eight bytes, none where every value was kept, and the hashes, ascending."""
    longs, bits, count_bytes = sketch[0], sketch[3], sketch[4]
    start = 8 * longs
    theta = sketch[8:start]
    count = int.from_bytes(sketch[start : start + count_bytes], "little")
    packed = sketch[start + count_bytes :]
    needed = (count * bits + 7) // 8
    if longs not in {1, 2} or not count or not 0 < bits < _HASH_BITS or len(packed) < needed:
        raise ValueError(f"{len(packed)} bytes for {count} hashes of {bits} bits")
    # The differences of neighbours, from the highest bit on.
    stream = int.from_bytes(packed[:needed], "big") >> (8 * needed - count * bits)
    hashes, last = [], 0
    differences = [0] * count
    for place in range(count - 1, -1, -1):
        differences[place] = stream & ((1 << bits) - 1)
        stream >>= bits
    for each in differences:
        last += each
        hashes.append(last)
    return theta, hashes


def _written(theta: bytes, hashes: list[int], *, seed_hash: bytes) -> bytes:
    head = bytes((3 if theta else 2, _PLAIN, _THETA_FAMILY, 0, 0, _READ_ONLY_COMPACT_ORDERED))
    counted = struct.pack("<if", len(hashes), 1.0)
    return head + seed_hash + counted + theta + struct.pack(f"<{len(hashes)}Q", *hashes)
