"""The frame of an Avro object container: its blocks, each checked before it is unpacked.

Source: the Avro specification, object container files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from ledger.model.errors import MissingDependencyError
from projections.avro_codecs import unpacked

SYNC_BYTES: Final = 16

MOST_BLOCK_BYTES: Final = 64 << 20
"""How many bytes a block may unpack to: writers end one after some 16 to 64 kB, and PyIceberg,
which puts a whole manifest list into one, after some 100 bytes a manifest."""

MOST_EXPANSION: Final = 64
"""How many times its size a file may unpack to, beyond the first `MOST_BLOCK_BYTES`: the paths and
statistics of two files are never the same."""

_MORE: Final = 0x80
_LONGEST_NUMBER: Final = 10


@frozen
class Block:
    """A block as it stands in the file.

    Attributes:
        count: How many records it says that it holds.
        body: Packed.
        position: Where it begins, in bytes from the file's begin.
    """

    count: int
    body: bytes
    position: int


def contents(body: bytes, start: int, codec: str) -> Iterator[tuple[Block, bytes]]:
    """Yield a container's blocks, each with its content.

    Args:
        body: The whole file.
        start: Where the first block begins, right behind the header.
        codec: The container's.

    Raises:
        ValueError: The blocks do not fill the file to its end, are torn, or unpack to more than
            an honest writer's do.
        MissingDependencyError: The package for the codec is not installed.
    """
    left = MOST_BLOCK_BYTES + MOST_EXPANSION * len(body)
    for block in _blocks(body, start):
        try:
            content = unpacked(codec, block.body, min(MOST_BLOCK_BYTES, left))
        except MissingDependencyError:
            raise
        except Exception as error:
            # Each library has errors of its own for bytes that nobody wrote.
            raise ValueError(
                f"the block at byte {block.position} cannot be unpacked: {error}"
            ) from error
        left -= len(content)
        yield block, content


def _blocks(body: bytes, start: int) -> Iterator[Block]:
    marker = body[start - SYNC_BYTES : start]
    position = start
    while position < len(body):
        begin = position
        count, position = _number(body, position)
        size, position = _number(body, position)
        end = position + size
        if size < 0 or body[end : end + SYNC_BYTES] != marker:
            raise ValueError(f"a block of {size} bytes at byte {position} does not end in its mark")
        yield Block(count, body[position:end], begin)
        position = end + SYNC_BYTES


def _number(body: bytes, position: int) -> tuple[int, int]:
    raw = 0
    for index, byte in enumerate(body[position : position + _LONGEST_NUMBER]):
        raw |= (byte & ~_MORE) << 7 * index
        if byte < _MORE:
            return raw >> 1 ^ -(raw & 1), position + index + 1
    raise ValueError(f"no number ends behind byte {position}")
