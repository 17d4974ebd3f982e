"""Bounded reading of foreign Parquet files.

A few bytes of Parquet can decode to any amount of memory: runs of nulls or of one dictionary entry
take bytes for millions of rows, a compressed page of zeros unpacks 30,000 times, and a footer may
declare sizes that its pages do not have. Arrow allocates what a file declares. So before Arrow
decodes anything this module reads the Thrift structures itself: the schema in the footer and the
header of each page that is going to be read.

A file may hold `floor + ratio * size` rows and decoded bytes. The floors let every small file pass.
The ratios are above what writers produce: the most repetitive lists measured (sequential paths, the
same statistics in every row, zstd) take 0.43 bytes a row, and unpack 1,840 times where twenty
columns have statistics; files with UUIDs in their paths take 20 bytes a row.

Source: the Parquet format, parquet.thrift; the Thrift compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, cached_property
from itertools import repeat
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from attrs import frozen

from ledger.model.errors import InvalidInputError, TooLargeError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet


_SCHEMA: Final = 2
_CHILDREN: Final = 5
_UNPACKED, _PACKED = 2, 3
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8
_BOOLEANS: Final = (1, 2)
_BYTE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 3, 8, 9, 10, 11, 12
_FIXED: Final = {1: 0, 2: 0, _BYTE: 1, 7: 8}
"""Bytes of a value by Thrift kind: booleans (kept in the field header), a byte, a double."""
_INTEGERS: Final = (4, 5, 6)
_LONG_LIST: Final = 15
_MORE: Final = 0x80
"""Continuation bit: set in each byte of a varint except the last."""
_NEXT_FIELD: Final = 0x10
"""A field header below this value is followed by the field id."""
_FIELDS: Final = 64
"""A bound above all field ids in parquet.thrift."""
_PAGES: Final = ([_DATA], [_DATA_V2], [_DICTIONARY])
_LONGEST_NUMBER: Final = 10
_STRUCTURE_DEPTH: Final = 16


def schema_depth(body: bytes, start: int, end: int, most: int) -> int:
    """Return the nesting depth of the groups in a footer's schema.

    Args:
        body: Bytes that contain the footer.
        start: Offset of the footer's first byte.
        end: Offset after the footer's last byte.
        most: A schema with at most this number of elements is not read; the number is returned as
            an upper bound.

    Raises:
        IndexError: The footer ends early.
        ValueError: The bytes are not a footer.
    """
    footer = _CompactReader(body, start, end)
    for number, kind in footer.fields():
        if number == _SCHEMA:
            return _schema_elements_depth(footer, most)
        footer.skip_value(kind)
    raise ValueError("it has no schema")


def _schema_elements_depth(footer: _CompactReader, most: int) -> int:
    """Return the depth of the schema elements that follow, which are listed in pre-order."""
    elements = footer.read_list_size()
    if elements <= most:
        return elements
    left: list[int] = []
    deepest = 0
    for _ in range(elements):
        children = 0
        for number, kind in footer.fields():
            if number == _CHILDREN:
                children = footer.read_integer()
            else:
                footer.skip_value(kind)
        while left and not left[-1]:
            left.pop()
        if left:
            left[-1] -= 1
        if children > 0:
            left.append(children)
        deepest = max(deepest, len(left))
    return deepest


class PageHeader(NamedTuple):
    """Header of a Parquet page.

    Attributes:
        end: Offset in the file after the page's last byte.
        unpacked: Size of the decompressed page in bytes.
        values: Number of values in the page.
        is_dictionary: True for a dictionary page, whose values are dictionary entries.
    """

    end: int
    unpacked: int
    values: int
    is_dictionary: bool


def read_page_header(body: bytes, start: int, end: int) -> PageHeader:  # noqa: C901, PLR0912 - one loop without calls
    """Return the decoded header of a page.

    Args:
        body: The file.
        start: Offset of the header.
        end: Offset after the page's column chunk.

    Raises:
        OSError: The bytes are not a header, or the page exceeds its column chunk.
    """
    sizes = {_UNPACKED: 0, _PACKED: 0}
    values, is_dictionary = 0, False
    at, number = start, 0
    around: list[int] = []
    try:
        # One loop without function calls, for speed: a file may have thousands of pages, and every
        # commit that removes a file reads lists of files.
        while (head := body[at]) or around:
            at += 1
            if not head:
                number = around.pop()
                continue
            if head < _NEXT_FIELD:
                raise _page_header_error("a field's number is written out")
            number, kind = number + (head >> 4), head & 0x0F
            if kind in _INTEGERS or kind == _BINARY:
                raw = shift = 0
                while (byte := body[at]) >= _MORE:
                    raw, at, shift = raw | (byte & 0x7F) << shift, at + 1, shift + 7
                    if shift >= 7 * _LONGEST_NUMBER:
                        raise _page_header_error("a number does not end")
                raw, at = raw | byte << shift, at + 1
                if kind == _BINARY:
                    at += raw
                elif not around:
                    sizes[number] = raw >> 1 ^ -(raw & 1)
                elif number == 1 and around in _PAGES:
                    values, is_dictionary = raw >> 1 ^ -(raw & 1), around == [_DICTIONARY]
            elif kind == _STRUCT:
                if len(around) >= _STRUCTURE_DEPTH:
                    raise _page_header_error("structures nest too deep")
                around.append(number)
                number = 0
            elif kind in _FIXED:
                at += _FIXED[kind]
            else:
                raise _page_header_error(f"a page's header has no value of kind {kind}")
            if at > end:
                raise _page_header_error("it ends early")
    except (IndexError, ValueError) as error:
        raise OSError(f"the header of the page at byte {start} is no Thrift") from error
    at += 1
    unpacked, packed = sizes[_UNPACKED], sizes[_PACKED]
    if min(packed, unpacked, values) < 0 or at + packed > end:
        raise OSError(f"the page at byte {start} has sizes that do not fit")
    return PageHeader(at + packed, unpacked, values, is_dictionary)


class ChunkValue(NamedTuple):
    """A value in the metadata of a column chunk that has to match the schema.

    Attributes:
        column: The index of the column among the leaves of the schema; 0 for `chunks`.
        part: One of `minimum or maximum`, `repetition levels`, `definition levels`,
            `unencoded bytes`, `physical type` and `chunks`.
        value: Length of a minimum or maximum in bytes, number of entries of a histogram, a number
            of bytes, a type's number in parquet.thrift, or a row group's number of column chunks.
    """

    column: int
    part: str
    value: int


_GROUP: Final = 4
_CHUNK: Final = _GROUP << 6 | 1
_METADATA: Final = _CHUNK << 6 | 3
_ENCRYPTION: Final = (_CHUNK << 6 | 8, _CHUNK << 6 | 9)
_MEASURED: Final = {
    _CHUNK: "chunks",
    **dict.fromkeys(
        ((_METADATA << 6 | 12) << 6 | each for each in (1, 2, 5, 6)), "minimum or maximum"
    ),
    (_METADATA << 6 | 16) << 6 | 2: "repetition levels",
    (_METADATA << 6 | 16) << 6 | 3: "definition levels",
}
"""Field paths in a footer, six bits for each field id: lists of column chunks, values of
statistics, histograms of size statistics."""
_NUMBERS: Final = {
    _METADATA << 6 | 1: "physical type",
    (_METADATA << 6 | 16) << 6 | 1: "unencoded bytes",
}
_NAMES: Final = (_SCHEMA << 6 | 4, _METADATA << 6 | 3)
"""Field paths of columns' names, which are UTF-8."""
_INT32, _INT64 = 5, 6
_ELEMENTS: Final = {
    **dict.fromkeys((_SCHEMA, _GROUP, 5, 7, _CHUNK, _GROUP << 6 | 4), _STRUCT),
    _METADATA << 6 | 2: _INT32,
    _METADATA << 6 | 3: _BINARY,
    **dict.fromkeys((_METADATA << 6 | 8, _METADATA << 6 | 13), _STRUCT),
    (_METADATA << 6 | 16) << 6 | 2: _INT64,
    (_METADATA << 6 | 16) << 6 | 3: _INT64,
}
"""Element kinds of lists, by field path. Thrift's C++ reader reads the kind that it expects, not
the one that a list declares; with the latter, the rest of the footer would be read differently."""


def read_chunk_values(body: bytes, start: int, end: int) -> set[ChunkValue]:  # noqa: C901, PLR0912, PLR0915 - one loop without calls
    """Return the values in a footer that PyArrow does not validate, without duplicates.

    Args:
        body: Bytes that contain the footer.
        start: Offset of the footer's first byte.
        end: Offset after the footer's last byte.

    Raises:
        IndexError: The footer ends early.
        ValueError: The bytes are not a footer, or a column is encrypted.
    """
    found: set[ChunkValue] = set()
    at, number, path, left, column = start, 0, 0, 0, 0
    around: tuple[int, int, int, Any] | None = None
    while True:
        head = body[at]
        at += 1
        if not head:
            if path == _CHUNK:
                column += 1
            if left:
                left, number = left - 1, 0
            elif around is None:
                return found
            else:
                number, path, left, around = around
            continue
        kind = head & 0x0F
        if head < _NEXT_FIELD:
            number, at = _read_field_id(body, at, number)
        else:
            number += head >> 4
        place = path << 6 | number
        if place in _ENCRYPTION:
            raise _page_header_error("a column is encrypted")
        size = 1
        if kind in {_LIST, _SET}:
            kind, size, at = _read_list_header(body, at, end, place)
            if place == _CHUNK:
                column = 0
            if place in _MEASURED:
                found.add(ChunkValue(column, _MEASURED[place], size))
        if kind == _STRUCT:
            if size:
                around, number, path, left = (number, path, left, around), 0, place, size - 1
        elif kind in _FIXED:
            at += _FIXED[kind] * size
        elif kind in _INTEGERS or kind == _BINARY:
            for _ in range(size):
                raw = shift = 0
                while (byte := body[at]) >= _MORE and shift < 7 * _LONGEST_NUMBER:
                    raw, at, shift = raw | (byte & 0x7F) << shift, at + 1, shift + 7
                raw, at = raw | byte << shift, at + 1
                if kind == _BINARY:
                    at += raw
                    if place in _NAMES:
                        str(body[at - raw : at], "utf-8")
                    if place in _MEASURED:
                        found.add(ChunkValue(column, _MEASURED[place], raw))
                elif place in _NUMBERS:
                    found.add(ChunkValue(column, _NUMBERS[place], raw >> 1 ^ -(raw & 1)))
        else:
            raise _page_header_error(f"a footer has no value of kind {kind}")
        if at > end:
            raise IndexError("it ends early")


def _read_list_header(body: bytes, at: int, end: int, place: int) -> tuple[int, int, int]:
    """Return the kind and the number of a list's elements, and the offset after its header."""
    head = body[at]
    at += 1
    kind, size = head & 0x0F, head >> 4
    if size == _LONG_LIST:
        size, at = _read_varint(body, at)
    if size > end - at:
        raise _page_header_error(f"it declares {size} elements, more than there are bytes")
    if size and kind != _ELEMENTS.get(place, kind):
        raise _page_header_error(f"it declares a list with elements of kind {kind}")
    return _BYTE if kind in _BOOLEANS or not size else kind, size, at


def _read_field_id(body: bytes, at: int, before: int) -> tuple[int, int]:
    """Return a field id that is not delta-encoded, and the offset after it."""
    raw, at = _read_varint(body, at)
    if not before + 15 < raw >> 1 < _FIELDS or raw & 1:
        raise _page_header_error("a field is there twice, or its number is not the shortest")
    return raw >> 1, at


def _read_varint(body: bytes, at: int) -> tuple[int, int]:
    """Return the varint at an offset, and the offset after it."""
    found = shift = 0
    while (byte := body[at]) >= _MORE and shift < 7 * _LONGEST_NUMBER:
        found, at, shift = found | (byte & 0x7F) << shift, at + 1, shift + 7
    return found | byte << shift, at + 1


def _page_header_error(why: str) -> ValueError:
    return ValueError(why)


class _CompactReader:
    """Reader of structures in Thrift's compact protocol."""

    __slots__ = ("_body", "_end", "position")

    def __init__(self, body: bytes, start: int, end: int) -> None:
        self._body = body
        self._end = end
        self.position = start

    def _read_byte(self) -> int:
        if self.position >= self._end:
            raise IndexError("it ends early")
        self.position += 1
        return self._body[self.position - 1]

    def _read_unsigned_varint(self) -> int:
        found = self._read_byte()
        if found < 0x80:  # noqa: PLR2004
            return found
        found &= 0x7F
        for shift in range(7, 7 * _LONGEST_NUMBER, 7):
            byte = self._read_byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004
                return found
        raise ValueError("a number does not end")

    def read_integer(self) -> int:
        """Return the next number."""
        raw = self._read_unsigned_varint()
        return raw >> 1 ^ -(raw & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the id and the kind of each field of a structure; the caller reads the value."""
        number = 0
        while head := self._read_byte():
            step = head >> 4
            number = number + step if step else self.read_integer()
            yield number, head & 0x0F

    def read_list_size(self) -> int:
        """Return the number of elements of the list at the current position.

        Raises:
            ValueError: The list declares more elements than there are bytes left.
        """
        return self._check_size(self._read_list_header()[0])

    def _check_size(self, size: int) -> int:
        if size > self._end - self.position:
            raise ValueError(f"it declares {size} elements, more than there are bytes")
        return size

    def _read_list_header(self) -> tuple[int, int]:
        head = self._read_byte()
        size = head >> 4
        size = self._read_unsigned_varint() if size == _LONG_LIST else size
        return size, head & 0x0F

    def skip_value(self, kind: int, depth: int = 0) -> None:
        """Skip a value."""
        if depth > _STRUCTURE_DEPTH:
            raise ValueError("structures nest too deep")
        if kind in _FIXED:
            self.position += _FIXED[kind]
        elif kind in _INTEGERS:
            self._read_unsigned_varint()
        elif kind == _BINARY:
            length = self._read_unsigned_varint()
            self.position += length
        elif kind == _STRUCT:
            for _, inside in self.fields():
                self.skip_value(inside, depth + 1)
        else:
            self._skip_container(kind, depth + 1)

    def _skip_container(self, kind: int, depth: int) -> None:
        if kind in {_LIST, _SET}:
            size, inside = self._read_list_header()
            kinds = [inside]
        elif kind == _MAP:
            size = self._read_unsigned_varint()
            both = self._read_byte() if size else 0
            kinds = [both >> 4, both & 0x0F]
        else:
            raise ValueError(f"no value is of kind {kind}")
        for _ in range(self._check_size(size)):
            for each in kinds:
                # Inside a container a boolean takes a byte.
                self.skip_value(_BYTE if each in _BOOLEANS else each, depth)


ROWS_FLOOR: Final = 1 << 16
ROWS_PER_BYTE: Final = 3
"""Limit of rows by a file's size; a list of files has one row, with its own path, per file."""

ROW_GROUPS_FLOOR: Final = 4_096
ROW_GROUP_BYTES: Final = 512
"""Minimum file size per row group, in bytes, above the floor."""

VALUES_FLOOR: Final = 1 << 20
VALUES_PER_BYTE: Final = 16
"""Limit of values of one column by a file's size; list and map elements count."""

PAGES_FLOOR: Final = 64 << 20
PAGES_PER_BYTE: Final = 256
"""Limit of decompressed page bytes by a file's size."""

DECODED_FLOOR: Final = 128 << 20
DECODED_PER_BYTE: Final = 2_048
"""Limit of decoded Arrow bytes by a file's size."""

FOOTER_BYTES: Final = 256 << 20
"""Limit of a footer's bytes; 5,000 columns in 500 row groups take some 100 bytes each."""

SCHEMA_DEPTH: Final = 100
"""Limit of nested groups. Arrow recurses, and some thousands of levels crash the process."""

_SLOT_BYTES: Final = 8
"""Memory of a value without its text: an offset, a number, a validity bit."""

_BATCH_ROWS: Final = 8_192
_SMALL_BYTES: Final = 1_000_000
_NOWHERE: Final = -1
_CONTAINER_FLOOR: Final = 1_024
_ELEMENT_BYTES: Final = 3
"""Minimum size of a list element in a footer, in bytes; short lists of encodings excepted."""

_TRAILER_BYTES: Final = 8
_MAGIC: Final = b"PAR1"


def read_bounded_table(body: bytes, file: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a Parquet file as a table, within the limits for its size.

    Args:
        body: The whole file.
        file: Its name, for errors.
        columns: Names of top-level or nested columns; None for all.

    Raises:
        TooLargeError: The file declares or decodes to more than the limits of its size.
        pa.ArrowException, OSError: The bytes are no Parquet file.
    """
    return open_checked_parquet(body, file, columns).table()


def copy_to_arrow_memory(body: bytes) -> pa.BufferReader:
    """Return a copy of a file in Arrow's memory, safe to read with Arrow's threads.

    Arrow's threads release their buffers shortly after the rows are returned. Releasing a Python
    bytes object takes the interpreter lock, and a thread that waits for it while the interpreter
    exits crashes the process.

    Example:
        >>> copy_to_arrow_memory(b"abc").read()
        b'abc'
    """
    import pyarrow as pa

    buffer = pa.allocate_buffer(len(body))
    with pa.FixedSizeBufferWriter(buffer) as writer:
        writer.write(body)
    return pa.BufferReader(buffer)


def open_checked_parquet(
    body: bytes, file: str, columns: Sequence[str] | None = None
) -> BoundedParquetFile:
    """Open a Parquet file after checking its footer.

    Args:
        body: The whole file.
        file: Its name, for errors.
        columns: Names of the columns to read, top-level or nested; None for all.

    Raises:
        TooLargeError: The footer declares more than the limits of the file's size.
        pa.ArrowException, OSError: The bytes are no Parquet file.
    """
    from pyarrow import parquet

    size = len(body)
    footer = check_footer(body, size, file)
    kind = _whole_file_class() if columns is None else parquet.ParquetFile
    arrow = kind(
        copy_to_arrow_memory(body),
        page_checksum_verification=True,
        thrift_container_size_limit=footer.longest_list,
    )
    check_chunks(arrow.metadata, footer, file)
    found = BoundedParquetFile(body, file, columns, arrow)
    found.check_rows()
    return found


def read_metadata(tail: bytes, file: str) -> parquet.FileMetaData:
    """Return the metadata in a file's footer.

    Args:
        tail: The end of the file, with the whole footer.
        file: Its name, for errors.

    Raises:
        TooLargeError: The footer declares more than it has bytes for.
        pa.ArrowException, OSError: There is no footer.
    """
    import pyarrow as pa

    footer = check_footer(tail, len(tail), file)
    found: parquet.FileMetaData = _whole_file_class()(
        pa.BufferReader(tail), thrift_container_size_limit=footer.longest_list
    ).metadata
    check_chunks(found, footer, file)
    return found


def open_parquet_stream(stream: IO[bytes], size: int, file: str) -> parquet.ParquetFile:
    """Open a data file for reading in batches; only its footer is limited, not its rows.

    Texts are read as dictionary arrays, so that a repeated one takes memory once.

    Args:
        stream: The file.
        size: The file's size in bytes.
        file: Its name, for errors.

    Raises:
        TooLargeError: The footer declares more than it has bytes for.
        pa.ArrowException, OSError: The bytes are no Parquet file.
    """
    from pyarrow import parquet

    stream.seek(max(0, size - _TRAILER_BYTES))
    length = int.from_bytes(stream.read(_TRAILER_BYTES)[: -len(_MAGIC)], "little")
    # A footer that is longer than the limit is rejected by its length alone.
    start = max(0, size - _TRAILER_BYTES - (length if length <= FOOTER_BYTES else 0))
    stream.seek(start)
    metadata = read_metadata(stream.read(size - start), file)
    columns = map(metadata.schema.column, range(metadata.num_columns))
    texts = [each.path for each in columns if each.physical_type == "BYTE_ARRAY"]
    return parquet.ParquetFile(stream, metadata=metadata, read_dictionary=texts)


@frozen
class CheckedFooter:
    """A footer that is safe for Arrow to parse.

    Attributes:
        longest_list: Maximum number of elements of its lists.
        values: Values of its column chunks that have to match its schema.
    """

    longest_list: int
    values: AbstractSet[ChunkValue]


def check_footer(tail: bytes, size: int, file: str) -> CheckedFooter:
    """Check the length, the Thrift structures and the schema of a footer.

    Args:
        tail: The end of the file, with the whole footer.
        size: Number of bytes of `tail` that belong to the file.
        file: Its name, for errors.

    Raises:
        TooLargeError: The footer is too long, or its schema nests too deep.
        InvalidInputError: The bytes are not a footer, or a column is encrypted.
    """
    length = int.from_bytes(tail[-_TRAILER_BYTES : -len(_MAGIC)], "little")
    if tail[-len(_MAGIC) :] != _MAGIC or length + _TRAILER_BYTES > size:
        raise InvalidInputError(
            f"{file} is no Parquet file, or is torn: it does not end with a footer; write it again"
        )
    if length > FOOTER_BYTES:
        raise _too_large_error(file, f"the footer has {length} bytes", FOOTER_BYTES, "bytes")
    start = len(tail) - _TRAILER_BYTES - length
    try:
        # First: it rejects duplicate fields, of which Thrift keeps the last.
        values = read_chunk_values(tail, start, start + length)
        depth = schema_depth(tail, start, start + length, SCHEMA_DEPTH)
    except (IndexError, ValueError) as error:
        raise InvalidInputError(f"{file} has a footer that cannot be read: {error}") from error
    if depth > SCHEMA_DEPTH:
        raise _too_large_error(file, f"the schema nests {depth} levels", SCHEMA_DEPTH, "levels")
    return CheckedFooter(_CONTAINER_FLOOR + length // _ELEMENT_BYTES, values)


_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_TYPES: Final = (*_WIDTHS, "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
"""Physical types, indexed by their numbers in parquet.thrift."""


def check_chunks(metadata: parquet.FileMetaData, footer: CheckedFooter, file: str) -> None:
    """Check the column chunks in a footer against its schema.

    PyArrow terminates the process with an uncaught exception, or reads out of bounds, if a row
    group has other columns than the schema, a chunk has an unknown type, a minimum or maximum is
    shorter than a value of its column, a histogram has other levels than the column, or a column
    of numbers declares a size of texts. Call this before any access to a column chunk.

    Args:
        metadata: The footer as Arrow parsed it.
        footer: The same footer, from `check_footer`.
        file: Its name, for errors.

    Raises:
        InvalidInputError: A column chunk does not match the schema.
    """
    columns = metadata.num_columns
    for _, part, count in footer.values:
        if part == "chunks" and count != columns:
            raise InvalidInputError(
                f"{file} has a row group of {count} column chunks, and a schema of {columns} "
                "columns; write the file again"
            )
    for each in footer.values:
        if each.part != "chunks" and not _matches_column(metadata.schema.column(each.column), each):
            raise InvalidInputError(
                f"{file} has a footer whose {each.part} of column {each.column} do not fit its "
                f"schema: {each.value}; write the file again"
            )


def _matches_column(column: Any, found: ChunkValue) -> bool:
    value, kind = found.value, column.physical_type
    if found.part == "physical type":
        return 0 <= value < len(_TYPES) and _TYPES[value] == kind
    if found.part == "unencoded bytes":
        return bool(kind == "BYTE_ARRAY")
    if found.part == "repetition levels":
        return value in {0, int(column.max_repetition_level) + 1}
    if found.part == "definition levels":
        return value in {0, int(column.max_definition_level) + 1}
    if kind == "FIXED_LEN_BYTE_ARRAY":
        return bool(value >= column.length)
    return value == 0 or value >= _WIDTHS.get(kind, 0)


@frozen
class BoundedParquetFile:
    """A Parquet file whose footer is within the limits.

    Attributes:
        body: The whole file.
        name: The file's name, for errors.
        columns: Names of the columns to read; None for all.
        arrow: Arrow's reader; reading through it directly bypasses the limits.
    """

    body: bytes
    name: str
    columns: Sequence[str] | None
    arrow: parquet.ParquetFile

    def check_rows(self) -> None:
        """Check the numbers of rows and row groups.

        Raises:
            TooLargeError: There are more than the limits.
        """
        metadata = self.arrow.metadata
        groups = metadata.num_row_groups
        self._check_limit(
            groups,
            ROW_GROUPS_FLOOR,
            1 / ROW_GROUP_BYTES,
            f"it has {groups} row groups",
            "row groups",
        )
        rows = max(
            metadata.num_rows, sum(metadata.row_group(each).num_rows for each in range(groups))
        )
        self._check_limit(rows, ROWS_FLOOR, ROWS_PER_BYTE, f"it has {rows} rows", "rows")

    def _check_limit(self, found: int, floor: int, per_byte: float, what: str, unit: str) -> None:
        most = floor + int(per_byte * len(self.body))
        if found > most:
            raise _too_large_error(self.name, what, most, unit)

    def table(self) -> pa.Table:
        """Return the rows.

        Raises:
            TooLargeError: Pages or rows decode to more than the limits.
            pa.ArrowException, OSError: The file is damaged.
        """
        self._check_dictionary_texts(range(self.arrow.metadata.num_row_groups))
        wanted = None if self.columns is None else list(self.columns)
        # Threads take longer to begin than a small file takes to read.
        return self.arrow.read(wanted, use_threads=len(self.body) > _SMALL_BYTES)

    def tables(self, rows: int) -> Iterator[pa.Table]:
        """Yield the rows as `table` returns them, at most some at a time; a small file's at once.

        Args:
            rows: Maximum number of rows in a table.

        Raises:
            TooLargeError, pa.ArrowException, OSError: As `table`.
        """
        import pyarrow as pa

        if self.arrow.metadata.num_rows <= rows:
            yield self.table()
            return
        self._check_dictionary_texts(range(self.arrow.metadata.num_row_groups))
        wanted = None if self.columns is None else list(self.columns)
        for batch in self.arrow.iter_batches(rows, columns=wanted, use_threads=False):
            yield pa.Table.from_batches([batch])

    def row_groups(self, indexes: Sequence[int]) -> pa.Table:
        """Return the rows of some row groups; raises as `table`.

        Args:
            indexes: Their places in the file, in ascending order.
        """
        self._check_dictionary_texts(indexes)
        wanted = None if self.columns is None else list(self.columns)
        return self.arrow.read_row_groups(list(indexes), wanted, use_threads=False)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of some thousand; texts are dictionary arrays.

        So a batch's memory does not depend on the repetition of texts.

        Raises:
            TooLargeError: Pages hold more than the limits.
            pa.ArrowException, OSError: The file is damaged.
        """
        leaves = self._leaves
        self._check_pages(leaves, range(self.arrow.metadata.num_row_groups))
        reader = self._open_with_dictionaries([each.path for each in leaves if each.is_text])
        wanted = None if self.columns is None else list(self.columns)
        yield from reader.iter_batches(_BATCH_ROWS, columns=wanted, use_threads=False)

    def _open_with_dictionaries(self, paths: list[str]) -> parquet.ParquetFile:
        from pyarrow import parquet

        # The footer is within the limits, and is not parsed again. Spark's INT96 timestamps have
        # years that nanoseconds in 64 bits cannot hold.
        return parquet.ParquetFile(
            copy_to_arrow_memory(self.body),
            metadata=self.arrow.metadata,
            read_dictionary=paths,
            coerce_int96_timestamp_unit="us",
        )

    @cached_property
    def _leaves(self) -> list[_LeafColumn]:
        metadata, schema = self.arrow.metadata, self.arrow.metadata.schema
        found = []
        for index in range(metadata.num_columns):
            column = schema.column(index)
            path = column.path
            if self.columns is None or any(f"{path}.".startswith(f"{e}.") for e in self.columns):
                kind = column.physical_type
                width = column.length if kind == "FIXED_LEN_BYTE_ARRAY" else _SLOT_BYTES
                found.append(
                    _LeafColumn(index, path, kind == "BYTE_ARRAY", max(width, _SLOT_BYTES))
                )
        return found

    def _check_pages(
        self, leaves: Sequence[_LeafColumn], indexes: Sequence[int]
    ) -> list[_PageSums]:
        """Check the decompressed size of row groups' pages, and return the sums of each leaf."""
        groups = [self.arrow.metadata.row_group(each) for each in indexes]
        unpacked = decoded = 0
        found = []
        for leaf in leaves:
            pages = _PageSums()
            for group in groups:
                self._sum_page_headers(group.column(leaf.index), pages)
            what = f"column {leaf.path} has {pages.values} values"
            self._check_limit(pages.values, VALUES_FLOOR, VALUES_PER_BYTE, what, "values")
            unpacked += pages.unpacked
            what = f"pages unpack to {unpacked} bytes"
            self._check_limit(unpacked, PAGES_FLOOR, PAGES_PER_BYTE, what, "bytes of pages")
            decoded += leaf.width * pages.values
            self._check_decoded_size(decoded)
            found.append(pages)
        return found

    def _check_decoded_size(self, found: int) -> None:
        what = f"rows decode to {found} bytes or more"
        self._check_limit(found, DECODED_FLOOR, DECODED_PER_BYTE, what, "bytes of rows")

    def _sum_page_headers(self, chunk: Any, into: _PageSums) -> None:
        """Add up the page headers of a column chunk, in the order in which Arrow reads pages."""
        start = chunk.data_page_offset
        dictionary = chunk.dictionary_page_offset
        if dictionary is not None and 0 < dictionary < start:
            start = dictionary
        end = start + chunk.total_compressed_size
        if not 0 <= start <= end <= len(self.body):
            raise OSError(f"column {chunk.path_in_schema} lies outside of the file")
        values = 0
        while start < end and values < chunk.num_values:
            header = read_page_header(self.body, start, end)
            into.unpacked += header.unpacked
            if header.is_dictionary:
                into.entry = max(into.entry, header.unpacked)
            else:
                values += header.values
            start = header.end
        into.values += max(values, chunk.num_values)

    def _check_dictionary_texts(self, indexes: Sequence[int]) -> None:
        """Check the size of texts that are decoded from the dictionaries of row groups."""
        leaves = self._leaves
        sums = self._check_pages(leaves, indexes)
        total = sum(leaf.width * each.values for leaf, each in zip(leaves, sums, strict=True))
        total += sum(each.unpacked for each in sums)
        self._check_decoded_size(total)
        repeated = [
            (leaf.path, each.entry * each.values)
            for leaf, each in zip(leaves, sums, strict=True)
            if leaf.is_text and each.entry
        ]
        most = DECODED_FLOOR + DECODED_PER_BYTE * len(self.body)
        if total + sum(longest for _, longest in repeated) <= most:
            return
        # An entry may be as long as its whole dictionary; usually none is, so take the exact sum.
        for path, _ in repeated:
            reader = self._open_with_dictionaries([path])
            for batch in reader.iter_batches(
                _BATCH_ROWS, row_groups=list(indexes), columns=[path], use_threads=False
            ):
                total += _decoded_text_bytes(batch.column(0))
                self._check_decoded_size(total)


@frozen
class _LeafColumn:
    """A leaf column: its index, its path, and the size of a value's slot in bytes."""

    index: int
    path: str
    is_text: bool
    width: int


class _PageSums:
    """Sums over the pages of a leaf: decompressed bytes, values, the largest dictionary."""

    def __init__(self) -> None:
        self.unpacked = 0
        self.values = 0
        self.entry = 0


def _decoded_text_bytes(array: Any) -> int:
    """Return the size of a column's texts in bytes, counting each repetition."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        if not len(array.dictionary):
            return 0
        lengths = pc.cast(pc.binary_length(array.dictionary), pa.int64())
        return int(pc.sum(lengths.take(array.indices)).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(map(_decoded_text_bytes, array.flatten()))
    if pa.types.is_map(kind):
        return _decoded_text_bytes(array.keys) + _decoded_text_bytes(array.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _decoded_text_bytes(array.flatten())
    return int(array.nbytes)


def python_values(array: Any) -> list[Any]:
    """Return an array as Python values; equal texts of a dictionary share one object.

    Structs become dicts of the members that are not null, and maps become dicts.

    Example:
        >>> import pyarrow as pa
        >>> python_values(pa.array([{"a": 1, "b": None}, None]))
        [{'a': 1}, None]
    """
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        places = array.indices
        places = _number_list(places.fill_null(_NOWHERE) if places.null_count else places)
        return [*map(_dictionary_texts_at(array.dictionary, {*places}).__getitem__, places)]
    if pa.types.is_struct(kind):
        return _struct_rows(array)
    if pa.types.is_map(kind):
        keys, items = python_values(array.keys), python_values(array.items)
        return [
            None if span is None else dict(zip(keys[span], items[span], strict=True))
            for span in _list_slices(array)
        ]
    if pa.types.is_list(kind):
        values = python_values(array.values)
        return [None if span is None else values[span] for span in _list_slices(array)]
    if not array.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return _number_list(array)
    found: list[Any] = array.to_pylist()
    return found


def _number_list(array: Any) -> list[Any]:
    """Return an array of numbers without nulls as a list, ten times faster than Arrow does."""
    found: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    return found


def _dictionary_texts_at(array: Any, places: AbstractSet[int]) -> dict[int, Any]:
    """Return the texts at the given indexes of a dictionary; a batch uses few of them."""
    import pyarrow as pa

    found: dict[int, Any] = {_NOWHERE: None}
    if array.type != pa.string() or array.null_count:
        return found | {each: array[each].as_py() for each in places if each != _NOWHERE}
    _, ends, text = array.buffers()
    if ends is None or not len(array):
        return found
    offsets = memoryview(ends)[: 4 * (array.offset + len(array) + 1)].cast("i")[array.offset :]
    body = memoryview(b"" if text is None else text)
    for each in places:
        if each != _NOWHERE:
            found[each] = str(body[offsets[each] : offsets[each + 1]], "utf-8")
    return found


def _struct_rows(array: Any) -> list[Any]:
    names = [each.name for each in array.type]
    rows: list[Any] = [None] * len(array)
    if array.null_count == len(array):
        return rows
    members = [python_values(each) for each in array.flatten()]
    present = zip(*members, strict=True) if members else repeat((), len(array))
    for row, (is_there, values) in enumerate(
        zip(_number_list(array.is_valid()), present, strict=True)
    ):
        if is_there:
            rows[row] = {
                name: value for name, value in zip(names, values, strict=True) if value is not None
            }
    return rows


def _list_slices(array: Any) -> Iterator[slice | None]:
    offsets = _number_list(array.offsets)
    for row, is_there in enumerate(_number_list(array.is_valid())):
        yield slice(offsets[row], offsets[row + 1]) if is_there else None


def _too_large_error(file: str, what: str, most: int, unit: str) -> TooLargeError:
    return TooLargeError(
        f"{file}: {what}, and the limit for a file of its size is {most} {unit}, which is more "
        "than writers are known to make: have its owner write it again, or leave it out"
    )


@cache
def _whole_file_class() -> type[parquet.ParquetFile]:
    from pyarrow import parquet

    class WholeFile(parquet.ParquetFile):  # type: ignore[misc]
        """A Parquet file that is always read with all columns.

        It skips PyArrow's index of column names, which is built when a file is opened, takes as
        long as reading a small file, and is not needed to read all columns.
        """

        def _build_nested_paths(self) -> dict[str, list[int]]:
            return {}

    return WholeFile
