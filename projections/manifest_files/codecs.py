"""A block of an Avro object container unpacked, never further than it was allowed.

Source: the Avro specification, required and optional codecs; the Snappy and LZ4 block formats.
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Protocol

from ledger.model.errors import MissingDependencyError, TooLargeError

_RAW_DEFLATE: Final = -15
_SNAPPY_CHECKSUM: Final = 4
_LZ4_HEADER: Final = 4
_XZ_MEMORY_BYTES: Final = 128 << 20


class _Decompressor(Protocol):
    """What bz2, lzma and Zstandard have alike."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def unpacked(codec: str, block: bytes, most: int) -> bytes:
    """Return a block's content.

    Args:
        codec: The container's word for how its blocks are packed.
        block: As it stands in the file.
        most: How many bytes may come out of it.

    Raises:
        ValueError: It is torn, or is packed in a way that Avro does not know.
        TooLargeError: It holds more.
        MissingDependencyError: The package for the codec is not installed.

    Example:
        >>> unpacked("deflate", zlib.compress(b"abc" * 9, wbits=-15), 27)[:6]
        b'abcabc'
    """
    unpack = _UNPACK.get(codec)
    if unpack is None:
        raise ValueError(f"no codec of Avro's is called {codec!r}")
    return unpack(block, most)


def _too_long(most: int) -> TooLargeError:
    return TooLargeError(f"it unpacks to more than {most} bytes, the limit for a file of its size")


def _plain(block: bytes, most: int) -> bytes:
    if len(block) > most:
        raise _too_long(most)
    return block


def _deflate(block: bytes, most: int) -> bytes:
    inflater = zlib.decompressobj(_RAW_DEFLATE)
    # A limit of 0 would be none.
    found = inflater.decompress(block, most + 1)
    if len(found) > most:
        raise _too_long(most)
    if not inflater.eof:
        raise ValueError("its deflated bytes end early")
    return found


def _bzip2(block: bytes, most: int) -> bytes:
    return _streams(bz2.BZ2Decompressor, block, most)


def _xz(block: bytes, most: int) -> bytes:
    return _streams(lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES), block, most)


def _zstandard(block: bytes, most: int) -> bytes:
    standard = sys.version_info >= (3, 14)
    library = _library("compression.zstd" if standard else "backports.zstd", "zstandard")
    return _streams(library.ZstdDecompressor, block, most)


def _snappy(block: bytes, most: int) -> bytes:
    block = block[:-_SNAPPY_CHECKSUM]
    snappy = _library("cramjam", "snappy").snappy
    # It says beforehand how long it will get, and room is made for that.
    if snappy.decompress_raw_len(block) > most:
        raise _too_long(most)
    return bytes(snappy.decompress_raw(block))


def _lz4(block: bytes, most: int) -> bytes:
    lz4 = _library("lz4.block", "lz4")
    if int.from_bytes(block[:_LZ4_HEADER], "little") > most:
        raise _too_long(most)
    return bytes(lz4.decompress(block))


def _streams(begin: Callable[[], _Decompressor], block: bytes, most: int) -> bytes:
    """Return what streams that follow each other hold together."""
    found = bytearray()
    while block:
        stream = begin()
        found += stream.decompress(block, most - len(found) + 1)
        if len(found) > most:
            raise _too_long(most)
        if not stream.eof:
            raise ValueError("its packed bytes end early")
        block = stream.unused_data
    return bytes(found)


def _library(module: str, codec: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        package = module.removesuffix(".block")
        raise MissingDependencyError(
            f"an Avro file is compressed with {codec}: install {package} to read it"
        ) from error


_UNPACK: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "null": _plain,
    "deflate": _deflate,
    "bzip2": _bzip2,
    "xz": _xz,
    "zstandard": _zstandard,
    "snappy": _snappy,
    "lz4": _lz4,
}
