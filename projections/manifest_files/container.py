"""Avro object containers: deterministic writing, bounded reading.

The frame is parsed first: each block's size is checked before it is decompressed.

Source: the Avro specification, object container files.

Source: the Avro specification, required and optional codecs; the Snappy and LZ4 block formats.

A container has its own schema, so a damaged one could declare endless or unbounded values.
"""

from __future__ import annotations

import bz2
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from attrs import frozen

from ledger.model.errors import DamagedLogError, LedgerError, MissingDependencyError, TooLargeError

_RAW_DEFLATE: Final = -15
_SNAPPY_CHECKSUM: Final = 4
_LZ4_HEADER: Final = 4
_XZ_MEMORY_BYTES: Final = 128 << 20


class _Decompressor(Protocol):
    """Common interface of the decompressors of bz2, lzma and Zstandard."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def decompress_block(codec: str, block: bytes, most: int) -> bytes:
    """Return a block's content, decompressed.

    Args:
        codec: The name of the container's codec.
        block: The block's bytes in the file.
        most: The limit for the decompressed bytes.

    Raises:
        ValueError: The block is damaged, or the codec is not one of Avro's.
        TooLargeError: It decompresses to more.
        MissingDependencyError: The package for the codec is not installed.

    Example:
        >>> decompress_block("deflate", zlib.compress(b"abc" * 9, wbits=-15), 27)[:6]
        b'abcabc'
    """
    unpack = _UNPACK.get(codec)
    if unpack is None:
        raise ValueError(f"Avro has no codec {codec!r}")
    return unpack(block, most)


def _unpacked_size_error(most: int) -> TooLargeError:
    return TooLargeError(f"it unpacks to more than {most} bytes, the limit for a file of its size")


def _check_uncompressed(block: bytes, most: int) -> bytes:
    if len(block) > most:
        raise _unpacked_size_error(most)
    return block


def _decompress_deflate(block: bytes, most: int) -> bytes:
    inflater = zlib.decompressobj(_RAW_DEFLATE)
    # 0 would mean no limit.
    found = inflater.decompress(block, most + 1)
    if len(found) > most:
        raise _unpacked_size_error(most)
    if not inflater.eof:
        raise ValueError("its deflated bytes end early")
    return found


def _decompress_bzip2(block: bytes, most: int) -> bytes:
    return _decompress_streams(bz2.BZ2Decompressor, block, most)


def _decompress_xz(block: bytes, most: int) -> bytes:
    return _decompress_streams(
        lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES), block, most
    )


def _decompress_zstandard(block: bytes, most: int) -> bytes:
    standard = sys.version_info >= (3, 14)
    library = _import_codec_library(
        "compression.zstd" if standard else "backports.zstd", "zstandard"
    )
    return _decompress_streams(library.ZstdDecompressor, block, most)


def _decompress_snappy(block: bytes, most: int) -> bytes:
    block = block[:-_SNAPPY_CHECKSUM]
    snappy = _import_codec_library("cramjam", "snappy").snappy
    # The length is declared at the beginning, and memory is reserved for it.
    if snappy.decompress_raw_len(block) > most:
        raise _unpacked_size_error(most)
    return bytes(snappy.decompress_raw(block))


def _decompress_lz4(block: bytes, most: int) -> bytes:
    lz4 = _import_codec_library("lz4.block", "lz4")
    if int.from_bytes(block[:_LZ4_HEADER], "little") > most:
        raise _unpacked_size_error(most)
    return bytes(lz4.decompress(block))


def _decompress_streams(begin: Callable[[], _Decompressor], block: bytes, most: int) -> bytes:
    """Return the joined content of consecutive compressed streams."""
    found = bytearray()
    while block:
        stream = begin()
        found += stream.decompress(block, most - len(found) + 1)
        if len(found) > most:
            raise _unpacked_size_error(most)
        if not stream.eof:
            raise ValueError("its packed bytes end early")
        block = stream.unused_data
    return bytes(found)


def _import_codec_library(module: str, codec: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        package = module.removesuffix(".block")
        raise MissingDependencyError(
            f"an Avro file is compressed with {codec}: install {package} to read it"
        ) from error


_UNPACK: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "null": _check_uncompressed,
    "deflate": _decompress_deflate,
    "bzip2": _decompress_bzip2,
    "xz": _decompress_xz,
    "zstandard": _decompress_zstandard,
    "snappy": _decompress_snappy,
    "lz4": _decompress_lz4,
}


_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_DEEPEST = 16
_MOST_TYPES = 100_000
"""Limit for types in a schema: a manifest has some 60, and one per partition field."""
_VALUES_A_BYTE = 4
_SPARE_VALUES = 64
"""Limits for values without bytes, such as an empty record or null, which use memory all the same:
so many per byte of a list element or a record, and for a record some more."""


def readable_schema(schema: Any) -> Any:
    """Return a file's parsed schema, with logical types replaced by their plain types.

    Args:
        schema: The schema in the file, names in full.

    Raises:
        ValueError: It is not a record, contains itself, nests too deep, or has values without bytes
            in arrays, where their number is unlimited.
    """
    import fastavro

    plain = _plain_type(schema, {}, 0)
    if not isinstance(plain, dict) or plain["type"] != "record" or not _takes_bytes(plain, {}):
        raise ValueError("its schema is not a record with fields")
    _check_value_densities(plain)
    return fastavro.parse_schema(plain)


def _plain_type(schema: Any, known: dict[str, Any], depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError(f"its schema nests more than {_DEEPEST} types")
    if isinstance(schema, list):
        return [_plain_type(each, known, depth + 1) for each in schema]
    if isinstance(schema, str):
        if schema not in _PRIMITIVES and not _takes_bytes(known.get(schema, "null"), known):
            raise ValueError(f"its schema uses {schema} before it is complete, or it is empty")
        return schema
    return _plain_complex(schema, known, depth)


def _plain_complex(schema: dict[str, Any], known: dict[str, Any], depth: int) -> Any:
    match schema["type"]:
        case "record":
            fields = [
                {"name": each["name"], "type": _plain_type(each["type"], known, depth + 1)}
                for each in schema["fields"]
            ]
            plain = {"type": "record", "name": schema["name"], "fields": fields}
            known[schema["name"]] = plain
            return plain
        case "array":
            items = _plain_type(schema["items"], known, depth + 1)
            if not _takes_bytes(items, known):
                raise ValueError("its schema has an array of values without bytes")
            return {"type": "array", "items": items}
        case "map":
            return {"type": "map", "values": _plain_type(schema["values"], known, depth + 1)}
        case "enum" | "fixed" as kind:
            plain = {"type": kind, "name": schema["name"]}
            plain |= {key: schema[key] for key in ("symbols", "size") if key in schema}
            known[schema["name"]] = plain
            return plain
        case kind:
            return _plain_type(kind, known, depth + 1)


def _check_value_densities(plain: Any) -> None:
    """Check that the number of values in a value is limited by its least bytes.

    Raises:
        ValueError: It is not for some value, or there are too many types.
    """
    sizes: dict[str, tuple[int, int]] = {}
    types = 0

    def sizes_of(schema: Any) -> tuple[int, int]:
        """Return the least bytes of a value, and the number of values in it."""
        nonlocal types
        types += 1
        if types > _MOST_TYPES:
            raise ValueError(f"its schema has more than {_MOST_TYPES} types")
        if isinstance(schema, str):
            return sizes.get(schema, (int(schema != "null"), 1))
        if isinstance(schema, list):
            found = [sizes_of(each) for each in schema]
            return 1, max((values for _, values in found), default=1)
        if schema["type"] == "record":
            inside = [sizes_of(each["type"]) for each in schema["fields"]]
            least, values = (sum(each) for each in zip((0, 1), *inside, strict=True))
            sizes[schema["name"]] = least, values
            return least, values
        if schema["type"] == "fixed":
            sizes[schema["name"]] = int(schema["size"]), 1
            return int(schema["size"]), 1
        if schema["type"] in {"array", "map"}:
            inner = sizes_of(schema["items" if schema["type"] == "array" else "values"])
            _refuse_dense(*inner, spare=0)
        return 1, 1

    _refuse_dense(*sizes_of(plain), spare=_SPARE_VALUES)


def _refuse_dense(least: int, values: int, *, spare: int) -> None:
    if values > _VALUES_A_BYTE * (least + 1) + spare:
        raise ValueError(f"its schema has {values} values in {least} bytes")


def _takes_bytes(schema: Any, known: dict[str, Any]) -> bool:
    """Return whether every value of a plain schema takes at least one byte."""
    if isinstance(schema, str):
        return schema in known or schema != "null"
    if isinstance(schema, dict) and schema["type"] == "record":
        return any(_takes_bytes(each["type"], known) for each in schema["fields"])
    if isinstance(schema, dict) and schema["type"] == "fixed":
        return int(schema["size"]) > 0
    # The branch of a union, the end of an array or map, and an enum's symbol take a byte each.
    return True


_BLOCK_BYTES = 65_536

_T = TypeVar("_T")


def write_container(
    schema: dict[str, Any],
    records: Iterable[dict[str, Any] | EncodedRecord],
    *,
    sync_marker: bytes,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """Return an uncompressed container; its bytes do not depend on a compression library.

    Args:
        schema: The Avro schema, decoded.
        records: The records in order. An `EncodedRecord` that `build_copy_predicate` accepts is
            copied unchanged.
        sync_marker: The 16 bytes between blocks; derive them from the file's identity.
        metadata: Keys and values for the file's header.
    """
    runs = [records]
    return write_runs(
        schema, runs, sync_marker=sync_marker, metadata=metadata, block_bytes=_BLOCK_BYTES
    )


def write_runs(
    schema: dict[str, Any],
    runs: Iterable[Iterable[dict[str, Any] | EncodedRecord | EncodedBlock]],
    *,
    sync_marker: bytes,
    metadata: Mapping[str, str] | None = None,
    block_bytes: int,
) -> bytes:
    """Return a container as `write_container` does, of runs of records that share no block.

    Args:
        schema: The Avro schema, decoded.
        runs: Lists of records in order; blocks that fit the schema are copied unchanged.
        sync_marker: 16 bytes.
        metadata: Keys and values for the file's header.
        block_bytes: A block ends at this size, or before a copied one that would exceed it.
    """
    import fastavro

    if len(sync_marker) != SYNC_BYTES:
        raise ValueError(f"a sync marker has {SYNC_BYTES} bytes, not {len(sync_marker)}")
    out = io.BytesIO()
    header = dict(metadata or {})
    fastavro.writer(out, schema, (), codec="null", sync_marker=sync_marker, metadata=header)
    parsed = fastavro.parse_schema(schema)
    for records in runs:
        block, count = io.BytesIO(), 0
        for each in records:
            if isinstance(each, EncodedBlock):
                if count and block.tell() + len(each.body) > block_bytes:
                    out.write(_encode_block(block.getvalue(), count, sync_marker))
                    block, count = io.BytesIO(), 0
                block.write(each.body)
                count += each.size
            else:
                if isinstance(each, EncodedRecord):
                    block.write(each.body)
                else:
                    fastavro.schemaless_writer(block, parsed, each)
                count += 1
            if block.tell() >= block_bytes:
                out.write(_encode_block(block.getvalue(), count, sync_marker))
                block, count = io.BytesIO(), 0
        if count:
            out.write(_encode_block(block.getvalue(), count, sync_marker))
    return out.getvalue()


def _encode_block(content: bytes, count: int, sync_marker: bytes) -> bytes:
    return b"".join((_encode_long(count), _encode_long(len(content)), content, sync_marker))


def _encode_long(number: int) -> bytes:
    """Return a non-negative number as an Avro long."""
    raw, found = number << 1, bytearray()
    while raw >= _MORE:
        found.append(raw & ~_MORE & 0xFF | _MORE)
        raw >>= 7
    found.append(raw)
    return bytes(found)


def encode_avro_text(text: str) -> bytes:
    r"""Return a text in Avro's binary form.

    Example:
        >>> encode_avro_text("a.parquet")
        b'\x12a.parquet'
    """
    body = text.encode()
    return _encode_long(len(body)) + body


class EncodedRecord(NamedTuple):
    """A record in its encoded form.

    Attributes:
        schema: The container's schema, from `readable_schema`.
        body: Its bytes.
    """

    schema: Any
    body: bytes


class EncodedBlock(NamedTuple):
    """Consecutive records in their encoded form.

    Attributes:
        schema: The container's schema, from `readable_schema`.
        size: The number of records.
        body: Their bytes, decompressed.
    """

    schema: Any
    size: int
    body: bytes

    def records(self) -> Iterator[tuple[dict[str, Any], EncodedRecord]]:
        """Yield each record with its bytes.

        Raises:
            ValueError: The bytes do not hold that many records.
        """
        length = len(self.body)
        if not 0 <= self.size <= length:
            raise ValueError(f"{self.size} records do not fit in {length} bytes")
        window = self.body[:MOST_RECORD_BYTES]
        stream, base, begin = io.BytesIO(window), 0, 0
        for _ in range(self.size):
            if begin - base > MOST_RECORD_BYTES // 2:
                window, base = self.body[begin : begin + MOST_RECORD_BYTES], begin
                stream = io.BytesIO(window)
            record = _read_record(stream, self.schema, is_last=base + len(window) == length)
            end = base + stream.tell()
            yield record, EncodedRecord(self.schema, self.body[begin:end])
            begin = end
        if begin != length:
            raise ValueError(f"{length - begin} bytes follow a block's last record")

    def first(self) -> EncodedBlock:
        """Return the first record, decoded."""
        stream = io.BytesIO(self.body[:MOST_RECORD_BYTES])
        _read_record(stream, self.schema, is_last=len(self.body) <= MOST_RECORD_BYTES)
        return EncodedBlock(self.schema, 1, self.body[: stream.tell()])


def _read_record(stream: io.BytesIO, schema: Any, *, is_last: bool) -> Any:
    """Return the next record of a stream with a part of a block's bytes.

    Args:
        stream: The stream, at the beginning of the record.
        schema: The block's schema.
        is_last: Whether the block ends where the stream does.

    Raises:
        TooLargeError: The record is longer than a record may be.
        EOFError, IndexError: The block ends within the record.
    """
    import fastavro

    begin = stream.tell()
    try:
        found: Any = fastavro.schemaless_reader(stream, schema, None)
    except (EOFError, IndexError):
        if is_last:
            raise
        found = None
    if is_last or stream.tell() < len(stream.getbuffer()):
        return found
    raise TooLargeError(
        f"a record is longer than {len(stream.getbuffer()) - begin} bytes, and the limit is "
        f"{MOST_RECORD_BYTES // 2}"
    )


def build_copy_predicate(schema: Any) -> Callable[[EncodedRecord | EncodedBlock], bool]:
    """Return a predicate: whether a record may be copied into a container of a schema.

    Args:
        schema: The Avro schema, decoded.
    """
    wanted = readable_schema(schema)
    known: dict[int, tuple[Any, bool]] = {}

    def does(record: EncodedRecord | EncodedBlock) -> bool:
        # Records of one container share its schema.
        found = known.get(id(record.schema))
        if found is None:
            found = known[id(record.schema)] = record.schema, record.schema == wanted
        return found[1]

    return does


def read_container(body: bytes, file: str) -> Iterator[dict[str, Any]]:
    """Yield a container's records, logical types as their plain types.

    Only one block is decompressed at a time.

    A file cut exactly at the end of a block reads as a shorter file: Avro has no total. Compare
    the file's size with the recorded one.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError: The bytes are not a container, or are cut short or changed.
        TooLargeError: They decompress to more than a file of their size may.
        MissingDependencyError: The package for the file's codec is not installed.
    """
    for record, _ in read_records_with_bytes(body, file):
        yield record


def read_records_with_bytes(
    body: bytes, file: str
) -> Iterator[tuple[dict[str, Any], EncodedRecord]]:
    """Yield a container's records as `read_container` does, each with its bytes.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError, TooLargeError, MissingDependencyError: As in `read_container`.
    """
    left = MOST_RECORDS + len(body) // RECORD_BYTES
    blocks = checked_records(_read_encoded_blocks(body), file)
    for block in blocks:
        # A block that declares more records than it has bytes fails when it is decoded.
        left -= min(block.size, len(block.body))
        if left < 0:
            most = MOST_RECORDS + len(body) // RECORD_BYTES
            raise _too_large_error(file, f"it has more than {most} records, the limit")
        yield from checked_records(block.records(), file)


def checked_records(found: Iterator[_T], file: str) -> Iterator[_T]:
    """Yield a decoder's items, with its errors translated by `translating_decoder_errors`."""
    while True:
        with translating_decoder_errors(file):
            try:
                each = next(found)
            except StopIteration:
                return
        yield each


def read_blocks(body: bytes, file: str) -> list[EncodedBlock]:
    """Return a container's blocks, with records not decoded.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError: The bytes are not a container, or are cut short or changed.
        MissingDependencyError: The package for the file's codec is not installed.
    """
    with translating_decoder_errors(file):
        return list(_read_encoded_blocks(body))


def container_schema(body: bytes, file: str) -> Any:
    """Return the schema in a container's header, from `readable_schema`.

    Args:
        body: The file, or its beginning.
        file: Its name, for errors.

    Raises:
        DamagedLogError: The bytes are not the beginning of a container.
    """
    import fastavro

    with translating_decoder_errors(file):
        header: Any = fastavro.block_reader(io.BytesIO(body))
        return readable_schema(header.writer_schema)


@contextmanager
def translating_decoder_errors(file: str) -> Iterator[None]:
    """Translate errors of a decoder to errors about a damaged file.

    Raises:
        DamagedLogError: The decoder failed.
        TooLargeError: The bytes decompress to more than they may.
        MissingDependencyError: The package for the file's codec is not installed.
    """
    try:
        yield
    except TooLargeError as error:
        raise _too_large_error(file, error.message) from error
    except LedgerError:
        raise
    except Exception as error:
        # Decoders raise errors of any type on damaged bytes; all of them mean the same.
        raise DamagedLogError(
            f"{file} is not a readable Avro file: {type(error).__name__}: {error}; take the "
            "snapshot that names it as lost, or restore the file from a copy",
            file,
        ) from error


def _read_encoded_blocks(body: bytes) -> Iterator[EncodedBlock]:
    import fastavro

    stream = io.BytesIO(body)
    # fastavro reads only the header here: it would decompress a block without a limit.
    header: Any = fastavro.block_reader(stream)
    schema = readable_schema(header.writer_schema)
    for block, content in decompressed_blocks(body, stream.tell(), str(header.codec)):
        yield EncodedBlock(schema, block.count, content)


def _too_large_error(file: str, what: str) -> TooLargeError:
    return TooLargeError(
        f"{file}: {what}; no writer is known to make such Avro files: have its owner write it "
        "again, or take the snapshot that names it as lost"
    )


SYNC_BYTES: Final = 16

MOST_BLOCK_BYTES: Final = 64 << 20
"""Limit for a decompressed block: writers end one after some 16 to 64 kB, and PyIceberg,
which writes a whole manifest list in one, after some 100 bytes per manifest."""

MOST_EXPANSION: Final = 64
"""Limit for a file's expansion beyond the first `MOST_BLOCK_BYTES`: the paths and
statistics of two files are never the same."""

MOST_RECORD_BYTES: Final = 2 << 20
"""Twice the limit for a record's bytes. Statistics of 20,000 columns take some 1 MB; as Python
objects, the shortest list elements take 100 times their bytes."""

MOST_RECORDS: Final = 1 << 16
RECORD_BYTES: Final = 4
"""Least bytes in the file per record beyond the first `MOST_RECORDS`: each names a
different file."""

_MORE: Final = 0x80
_LONGEST_NUMBER: Final = 10


@frozen
class RawBlock:
    """A block in its encoded form.

    Attributes:
        count: The declared number of records.
        body: The compressed bytes.
        position: Its offset in the file, in bytes.
    """

    count: int
    body: bytes
    position: int


def decompressed_blocks(body: bytes, start: int, codec: str) -> Iterator[tuple[RawBlock, bytes]]:
    """Yield a container's blocks, each with its decompressed content.

    Args:
        body: The whole file.
        start: The offset of the first block, right after the header.
        codec: The container's codec.

    Raises:
        ValueError: The blocks do not fill the file to its end, or are damaged.
        TooLargeError: They decompress to more than an ordinary writer's do.
        MissingDependencyError: The package for the codec is not installed.
    """
    left = MOST_BLOCK_BYTES + MOST_EXPANSION * len(body)
    for block in _raw_blocks(body, start):
        try:
            content = decompress_block(codec, block.body, min(MOST_BLOCK_BYTES, left))
        except (MissingDependencyError, TooLargeError):
            raise
        except Exception as error:
            # Each library raises its own errors on damaged bytes.
            raise ValueError(
                f"the block at byte {block.position} cannot be decompressed: {error}"
            ) from error
        left -= len(content)
        yield block, content


def _raw_blocks(body: bytes, start: int) -> Iterator[RawBlock]:
    marker = body[start - SYNC_BYTES : start]
    position = start
    while position < len(body):
        begin = position
        count, position = _read_long(body, position)
        size, position = _read_long(body, position)
        end = position + size
        if size < 0 or body[end : end + SYNC_BYTES] != marker:
            raise ValueError(
                f"a block of {size} bytes at byte {position} does not end in its marker"
            )
        yield RawBlock(count, body[position:end], begin)
        position = end + SYNC_BYTES


def _read_long(body: bytes, position: int) -> tuple[int, int]:
    raw = 0
    for index, byte in enumerate(body[position : position + _LONGEST_NUMBER]):
        raw |= (byte & ~_MORE) << 7 * index
        if byte < _MORE:
            return raw >> 1 ^ -(raw & 1), position + index + 1
    raise ValueError(f"no number ends after byte {position}")
