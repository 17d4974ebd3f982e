"""Avro object containers in bytes: written so that equal records give equal bytes, read with care.

The frame is read apart: each block is checked before it is unpacked.

Source: the Avro specification, object container files.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

from attrs import frozen

from ledger.model.errors import (
    DamagedLogError,
    LedgerError,
    MissingDependencyError,
    TooLargeError,
)
from projections.manifest_files.codecs import unpacked
from projections.manifest_files.schema import readable_schema

_BLOCK_BYTES = 65_536

_T = TypeVar("_T")


def write_container(
    schema: dict[str, Any],
    records: Iterable[dict[str, Any] | WrittenRecord],
    *,
    sync_marker: bytes,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """Return an uncompressed container; a compression library's version must not change it.

    Args:
        schema: Avro's, decoded.
        records: In order. What `fits` it is copied as it stands in another container.
        sync_marker: 16 bytes that stand between blocks; derive them from what the file is.
        metadata: Keys and values for the file's header.
    """
    runs = [records]
    return write_runs(
        schema, runs, sync_marker=sync_marker, metadata=metadata, block_bytes=_BLOCK_BYTES
    )


def write_runs(
    schema: dict[str, Any],
    runs: Iterable[Iterable[dict[str, Any] | WrittenRecord | WrittenBlock]],
    *,
    sync_marker: bytes,
    metadata: Mapping[str, str] | None = None,
    block_bytes: int,
) -> bytes:
    """Return a container as `write_container` does, of runs of records that share no block.

    Args:
        schema: Avro's, decoded.
        runs: Each with its records in order; blocks that fit the schema are copied as they stand.
        sync_marker: 16 bytes.
        metadata: Keys and values for the file's header.
        block_bytes: A block ends when it has so many, or before one that is copied would make it
            longer.
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
            if isinstance(each, WrittenBlock):
                if count and block.tell() + len(each.body) > block_bytes:
                    out.write(_block(block.getvalue(), count, sync_marker))
                    block, count = io.BytesIO(), 0
                block.write(each.body)
                count += each.size
            else:
                if isinstance(each, WrittenRecord):
                    block.write(each.body)
                else:
                    fastavro.schemaless_writer(block, parsed, each)
                count += 1
            if block.tell() >= block_bytes:
                out.write(_block(block.getvalue(), count, sync_marker))
                block, count = io.BytesIO(), 0
        if count:
            out.write(_block(block.getvalue(), count, sync_marker))
    return out.getvalue()


def _block(content: bytes, count: int, sync_marker: bytes) -> bytes:
    return b"".join((_numeral(count), _numeral(len(content)), content, sync_marker))


def _numeral(number: int) -> bytes:
    """Return a number that is not negative as Avro writes a long."""
    raw, found = number << 1, bytearray()
    while raw >= _MORE:
        found.append(raw & ~_MORE & 0xFF | _MORE)
        raw >>= 7
    found.append(raw)
    return bytes(found)


def written_text(text: str) -> bytes:
    r"""Return a text as a container has it.

    Example:
        >>> written_text("a.parquet")
        b'\x12a.parquet'
    """
    body = text.encode()
    return _numeral(len(body)) + body


class WrittenRecord(NamedTuple):
    """A record as it stands in a container.

    Attributes:
        schema: The container's, as `readable_schema` gives it.
        body: Its bytes.
    """

    schema: Any
    body: bytes


class WrittenBlock(NamedTuple):
    """Some records as they stand in a container, one behind the other.

    Attributes:
        schema: The container's, as `readable_schema` gives it.
        size: How many there are.
        body: Their bytes, unpacked.
    """

    schema: Any
    size: int
    body: bytes

    def records(self) -> Iterator[tuple[dict[str, Any], WrittenRecord]]:
        """Yield each record with its bytes.

        Raises:
            ValueError: The bytes are not so many records.
        """
        length = len(self.body)
        if not 0 <= self.size <= length:
            raise ValueError(f"{self.size} records cannot stand in {length} bytes")
        window = self.body[:MOST_RECORD_BYTES]
        stream, base, begin = io.BytesIO(window), 0, 0
        for _ in range(self.size):
            if begin - base > MOST_RECORD_BYTES // 2:
                window, base = self.body[begin : begin + MOST_RECORD_BYTES], begin
                stream = io.BytesIO(window)
            record = _record(stream, self.schema, is_last=base + len(window) == length)
            end = base + stream.tell()
            yield record, WrittenRecord(self.schema, self.body[begin:end])
            begin = end
        if begin != length:
            raise ValueError(f"{length - begin} bytes follow a block's last record")

    def first(self) -> WrittenBlock:
        """Return the first record alone."""
        stream = io.BytesIO(self.body[:MOST_RECORD_BYTES])
        _record(stream, self.schema, is_last=len(self.body) <= MOST_RECORD_BYTES)
        return WrittenBlock(self.schema, 1, self.body[: stream.tell()])


def _record(stream: io.BytesIO, schema: Any, *, is_last: bool) -> Any:
    """Return the next record of a stream that holds some of a block's bytes.

    Args:
        stream: At the record's begin.
        schema: The block's.
        is_last: Whether the block ends where the stream does.

    Raises:
        TooLargeError: The record is longer than a record may be.
        EOFError, IndexError: The block ends inside of it.
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


def fits(schema: Any) -> Callable[[WrittenRecord | WrittenBlock], bool]:
    """Return what tells whether records may be copied into a container of a schema.

    Args:
        schema: Avro's, decoded.
    """
    wanted = readable_schema(schema)
    known: dict[int, tuple[Any, bool]] = {}

    def does(record: WrittenRecord | WrittenBlock) -> bool:
        # Records of one container share its schema.
        found = known.get(id(record.schema))
        if found is None:
            found = known[id(record.schema)] = record.schema, record.schema == wanted
        return found[1]

    return does


def read_container(body: bytes, file: str) -> Iterator[dict[str, Any]]:
    """Yield a container's records, logical types as their plain numbers.

    So the memory that it takes is what the caller keeps, beside one block.

    A file cut exactly behind a block reads as a shorter file: Avro keeps no total. Compare its
    size with the one that was recorded for it.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError: The bytes are no container, or are cut or changed.
        TooLargeError: They unpack to more than a file of their size may.
        MissingDependencyError: The package for the file's codec is not installed.
    """
    for record, _ in read_written(body, file):
        yield record


def read_written(body: bytes, file: str) -> Iterator[tuple[dict[str, Any], WrittenRecord]]:
    """Yield a container's records as `read_container` does, each with its bytes.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError, TooLargeError, MissingDependencyError: As of `read_container`.
    """
    left = MOST_RECORDS + len(body) // RECORD_BYTES
    blocks = telling(_written_blocks(body), file)
    for block in blocks:
        # A block that says more records than it has bytes is damaged, as its reader finds.
        left -= min(block.size, len(block.body))
        if left < 0:
            most = MOST_RECORDS + len(body) // RECORD_BYTES
            raise _too_large(file, f"it has more than {most} records, the limit")
        yield from telling(block.records(), file)


def telling(found: Iterator[_T], file: str) -> Iterator[_T]:
    """Yield what a decoder yields, its errors as `telling_damage` tells them."""
    while True:
        with telling_damage(file):
            try:
                each = next(found)
            except StopIteration:
                return
        yield each


def read_blocks(body: bytes, file: str) -> list[WrittenBlock]:
    """Return a container's blocks, of which no record is read yet.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError: The bytes are no container, or are cut or changed.
        MissingDependencyError: The package for the file's codec is not installed.
    """
    with telling_damage(file):
        return list(_written_blocks(body))


def container_schema(body: bytes, file: str) -> Any:
    """Return the schema that a container's header says, as `readable_schema` gives it.

    Args:
        body: The file, or its beginning.
        file: Its name, for errors.

    Raises:
        DamagedLogError: The bytes begin no container.
    """
    import fastavro

    with telling_damage(file):
        header: Any = fastavro.block_reader(io.BytesIO(body))
        return readable_schema(header.writer_schema)


@contextmanager
def telling_damage(file: str) -> Iterator[None]:
    """Tell whatever a decoder says of a file's bytes as damage.

    Raises:
        DamagedLogError: The decoder failed.
        TooLargeError: The bytes unpack to more than they may.
        MissingDependencyError: The package for the file's codec is not installed.
    """
    try:
        yield
    except TooLargeError as error:
        raise _too_large(file, error.message) from error
    except LedgerError:
        raise
    except Exception as error:
        # Decoders fail in their own ways on bytes that nobody wrote; all of them mean the same.
        raise DamagedLogError(
            f"{file} is no readable Avro file: {type(error).__name__}: {error}; take the "
            "snapshot that names it as lost, or restore the file from a copy",
            file,
        ) from error


def _written_blocks(body: bytes) -> Iterator[WrittenBlock]:
    import fastavro

    stream = io.BytesIO(body)
    # fastavro reads the header here, and would unpack a block whole, however big that gets.
    header: Any = fastavro.block_reader(stream)
    schema = readable_schema(header.writer_schema)
    for block, content in contents(body, stream.tell(), str(header.codec)):
        yield WrittenBlock(schema, block.count, content)


def _too_large(file: str, what: str) -> TooLargeError:
    return TooLargeError(
        f"{file}: {what}; no writer is known to make such Avro files: have its owner write it "
        "again, or take the snapshot that names it as lost"
    )


SYNC_BYTES: Final = 16

MOST_BLOCK_BYTES: Final = 64 << 20
"""How many bytes a block may unpack to: writers end one after some 16 to 64 kB, and PyIceberg,
which puts a whole manifest list into one, after some 100 bytes a manifest."""

MOST_EXPANSION: Final = 64
"""How many times its size a file may unpack to, beyond the first `MOST_BLOCK_BYTES`: the paths and
statistics of two files are never the same."""

MOST_RECORD_BYTES: Final = 2 << 20
"""Twice as many bytes as a record may have. Statistics of 20,000 columns take some 1 MB; as objects
of Python, the shortest elements of lists take 100 times their bytes."""

MOST_RECORDS: Final = 1 << 16
RECORD_BYTES: Final = 4
"""A record beyond the first `MOST_RECORDS` takes at least so many bytes of the file: each names a
file of its own."""

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
        ValueError: The blocks do not fill the file to its end, or are torn.
        TooLargeError: They unpack to more than an honest writer's do.
        MissingDependencyError: The package for the codec is not installed.
    """
    left = MOST_BLOCK_BYTES + MOST_EXPANSION * len(body)
    for block in _blocks(body, start):
        try:
            content = unpacked(codec, block.body, min(MOST_BLOCK_BYTES, left))
        except (MissingDependencyError, TooLargeError):
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
