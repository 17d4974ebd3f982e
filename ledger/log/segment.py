"""The bytes of a sealed segment: a run of commits as Parquet, one row a commit.

`line` holds the exact bytes of the commit's file, and is all that the ledger itself reads. The
other columns say the same once more for engines that read Parquet natively, such as Spark.

A segment is a function of its commits' files. Two of them are compared by content, since Parquet's
bytes depend on who wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct

from ledger.log.layout import SEGMENT_LENGTH

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES: Final = 16 * 1024 * 1024
"""Commits that are longer together are not sealed: they are worth a request each."""

_FORMAT_KEY: Final = b"lakeledger.segment"
_FORMAT: Final = b"1"
_LINE: Final = "line"
_ORDERED: Final = ["version", "time"]
"""Columns whose bounds lead readers to a segment."""
_TRANSACTION: Final = "transactions.list.element"
_REPEATED: Final = [
    f"{_TRANSACTION}.author",
    f"{_TRANSACTION}.message",
    f"{_TRANSACTION}.events.list.element.type",
]
_BATCH: Final = 64
_SLACK_BYTES: Final = 65_536
_UNPACKED: Final = frozenset({"PLAIN", "RLE", "BIT_PACKED"})
"""A column so encoded is as long as its file says; a dictionary may unpack to any length."""


class _Event(Struct):
    """As much of an event as every one has."""

    type: str


class _Transaction(Struct, rename="camel"):
    id: str
    author: str = ""
    message: str = ""
    properties: dict[str, str] = {}
    effective_time_millis: int | None = None
    events: tuple[Raw, ...] = ()


class _Commit(Struct, rename="camel"):
    """A commit as its columns show it."""

    version: int
    time_millis: int
    transactions: tuple[_Transaction, ...]


_COMMITS: Final = msgspec.json.Decoder(_Commit)
_EVENTS: Final = msgspec.json.Decoder(_Event)


def segment_of(version: int) -> tuple[int, int]:
    """Return the first and last version of the segment that holds a commit; version 0 in the first.

    Example:
        >>> segment_of(0), segment_of(800), segment_of(801)
        ((0, 800), (0, 800), (801, 1600))
    """
    number = max(version - 1, 0) // SEGMENT_LENGTH
    return number * SEGMENT_LENGTH + (number > 0), (number + 1) * SEGMENT_LENGTH


def stretches(first: int, last: int | None) -> Iterator[tuple[int, int]]:
    """Yield the parts of the versions `first` to `last` that lie in one segment each; None: no end.

    Example:
        >>> list(stretches(700, 1700))
        [(700, 800), (801, 1600), (1601, 1700)]
    """
    while last is None or first <= last:
        _, end = segment_of(first)
        yield first, end if last is None else min(end, last)
        first = end + 1


def write_segment(lines: Sequence[bytes]) -> bytes:
    """Return the segment of commits, given as the bytes of their files.

    Raises:
        ValueError: They are no commits, or hold what Parquet has no room for.
    """
    import pyarrow as pa
    from pyarrow import parquet

    schema = _schema()
    try:
        rows = [_row(_COMMITS.decode(each)) for each in lines]
        table = pa.Table.from_pylist(rows, schema.remove(schema.get_field_index(_LINE)))
        # Casting checks that they are text; Spark shows them as that.
        table = table.append_column(_LINE, pa.array(lines, pa.binary()).cast(pa.string()))
        sink = pa.BufferOutputStream()
        parquet.write_table(
            table.cast(schema),
            sink,
            row_group_size=len(lines),
            compression="zstd",
            use_dictionary=_REPEATED,
            write_statistics=_ORDERED,
            write_page_checksum=True,
        )
    except (msgspec.DecodeError, pa.ArrowException, OverflowError, RecursionError) as error:
        raise ValueError(f"the commits cannot stand in a segment: {error}") from error
    return bytes(sink.getvalue())


def read_segment(body: bytes, first: int, last: int) -> list[bytes]:
    """Return the files of the commits `first` to `last` that a segment holds.

    Whether they are the log's is for the caller to find out.

    Raises:
        ValueError: The bytes are no segment of these commits.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(body), page_checksum_verification=True)
        _check(file, last - first + 1)
        column = file.read([_LINE], use_threads=False).column(_LINE)
        lines: list[bytes] = column.cast(pa.binary()).to_pylist()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise ValueError(f"it is no Parquet file of commits: {error}") from error
    if None in lines or sum(map(len, lines)) > MOST_BYTES:
        raise ValueError("it lacks commits, or they are too long")
    return lines


def is_same_segment(one: bytes, other: bytes) -> bool:
    """Return whether two segments say the same in every column, whoever wrote them.

    Args:
        one: A segment that `write_segment` made.
        other: Any bytes.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        theirs = parquet.ParquetFile(pa.BufferReader(other), page_checksum_verification=True)
        mine = parquet.ParquetFile(pa.BufferReader(one))
        _check(theirs, mine.metadata.num_rows)
        return (
            _is_as_long(theirs, mine) and _bounds(theirs) == _bounds(mine) and _says(theirs, mine)
        )
    except (ValueError, pa.ArrowException, OSError):
        return False


def _is_as_long(theirs: Any, mine: Any) -> bool:
    """Return whether the columns of two files are about as long, before any of them is read."""
    groups = [each.metadata.row_group(0) for each in (theirs, mine)]
    counts = {each.num_columns for each in groups}
    pairs = [[each.column(index) for each in groups] for index in range(min(counts))]
    return len(counts) == 1 and all(
        other.num_values == own.num_values
        and other.total_uncompressed_size <= 2 * own.total_uncompressed_size + _SLACK_BYTES
        for other, own in pairs
    )


def _says(theirs: Any, mine: Any) -> bool:
    """Return whether two files of as many rows hold the same ones; few are held at a time."""
    batches = (each.iter_batches(_BATCH, use_threads=False) for each in (theirs, mine))
    return all(other.equals(own) for other, own in zip(*batches, strict=True))


def _bounds(file: Any) -> list[tuple[Any, Any]]:
    """Return what a file says of the columns that readers choose segments by."""
    group = file.metadata.row_group(0)
    columns = (group.column(index) for index in range(group.num_columns))
    found = [each.statistics for each in columns if each.path_in_schema in _ORDERED]
    return [(each.min, each.max) if each is not None else (None, None) for each in found]


def _check(file: Any, count: int) -> None:
    """Look at what the file says of itself, before any row is read: bytes can unpack to gigabytes.

    Raises:
        ValueError: It is no segment of so many commits.
    """
    metadata = file.metadata
    if (metadata.metadata or {}).get(_FORMAT_KEY) != _FORMAT:
        raise ValueError("it does not say that it is a segment of a format known here")
    if metadata.num_rows != count:
        raise ValueError(f"it holds {metadata.num_rows} commits and not {count}")
    if metadata.num_row_groups != 1 or metadata.row_group(0).num_rows != count:
        raise ValueError("it is not of one row group")
    group = metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    lines = [each for each in columns if each.path_in_schema == _LINE]
    if len(lines) != 1 or not set(lines[0].encodings) <= _UNPACKED:
        raise ValueError("it has no plain column of lines")
    if sum(each.total_uncompressed_size for each in columns) > 3 * MOST_BYTES:
        raise ValueError(f"it says that it unpacks to more than {3 * MOST_BYTES} bytes")


def _schema() -> pa.Schema:
    import pyarrow as pa

    text, moment = pa.string(), pa.timestamp("ms", tz="UTC")
    event = pa.struct(
        [pa.field("type", text, nullable=False), pa.field("event", text, nullable=False)]
    )
    transaction = pa.struct(
        [
            pa.field("id", text, nullable=False),
            pa.field("author", text, nullable=False),
            pa.field("message", text, nullable=False),
            pa.field("properties", pa.map_(text, text), nullable=False),
            pa.field("effective_time", moment, nullable=False),
            pa.field(
                "events", pa.list_(pa.field("element", event, nullable=False)), nullable=False
            ),
        ]
    )
    transactions = pa.list_(pa.field("element", transaction, nullable=False))
    return pa.schema(
        [
            pa.field("version", pa.int64(), nullable=False),
            pa.field("time", moment, nullable=False),
            pa.field("transactions", transactions, nullable=False),
            pa.field(_LINE, text, nullable=False),
        ],
        {_FORMAT_KEY: _FORMAT},
    )


def _row(commit: _Commit) -> dict[str, Any]:
    return {
        "version": commit.version,
        "time": commit.time_millis,
        "transactions": [_transaction(each, commit.time_millis) for each in commit.transactions],
    }


def _transaction(transaction: _Transaction, commit_millis: int) -> dict[str, Any]:
    moment = transaction.effective_time_millis
    return {
        "id": transaction.id,
        "author": transaction.author,
        "message": transaction.message,
        "properties": list(transaction.properties.items()),
        "effective_time": commit_millis if moment is None else moment,
        "events": [
            {"type": _EVENTS.decode(each).type, "event": bytes(each).decode()}
            for each in transaction.events
        ],
    }
