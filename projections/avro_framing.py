"""The frame of an Avro object container, checked before anything is decompressed.

Source: the Avro specification, object container files; the Snappy and LZ4 block formats.
"""

from __future__ import annotations

SYNC_BYTES = 16

_MORE = 0x80
_LONGEST_NUMBER = 10
_SNAPPY_EXPANSION = 64
_LZ4_EXPANSION = 255
_LZ4_HEADER = 4


def check_blocks(body: bytes, start: int, codec: str) -> None:
    """Check that a container's blocks fill it to its end and promise no more than they can hold.

    Args:
        body: The whole file.
        start: Where the first block begins, right behind the header.
        codec: The container's; Snappy and LZ4 blocks say beforehand how long they will get.

    Raises:
        ValueError: They do not.
    """
    marker = body[start - SYNC_BYTES : start]
    position = start
    while position < len(body):
        _, position = _number(body, position)
        size, position = _number(body, position)
        end = position + size
        if size < 0 or body[end : end + SYNC_BYTES] != marker:
            raise ValueError(f"a block of {size} bytes at byte {position} does not end in its mark")
        _check_promise(body[position:end], codec)
        position = end + SYNC_BYTES


def _check_promise(block: bytes, codec: str) -> None:
    if codec == "snappy":
        promised, most = _unsigned(block, 0)[0], len(block) * _SNAPPY_EXPANSION
    elif codec == "lz4":
        promised, most = int.from_bytes(block[:_LZ4_HEADER], "little"), len(block) * _LZ4_EXPANSION
    else:
        return
    if promised > most:
        raise ValueError(f"a block of {len(block)} bytes promises {promised}")


def _number(body: bytes, position: int) -> tuple[int, int]:
    raw, position = _unsigned(body, position)
    return raw >> 1 ^ -(raw & 1), position


def _unsigned(body: bytes, position: int) -> tuple[int, int]:
    raw = 0
    for index, byte in enumerate(body[position : position + _LONGEST_NUMBER]):
        raw |= (byte & ~_MORE) << 7 * index
        if byte < _MORE:
            return raw, position + index + 1
    raise ValueError(f"no number ends behind byte {position}")
