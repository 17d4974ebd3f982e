"""The bytes of a sealed segment: a run of commits as Parquet, one row a commit.

`line` holds the exact bytes of the commit's file, and is all that the ledger itself reads. The
other columns say the same once more for engines that read Parquet natively, such as Spark.

A segment is a function of its commits' files. Two of them are compared by content, since Parquet's
bytes depend on who wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ledger.log.layout import SEGMENT_LENGTH
from ledger.model.arrow_arrays import numbers, texts, texts_of
from ledger.model.bounded.parquet import opened

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES: Final = 16 * 1024 * 1024
"""Commits that are longer together are not sealed: they are worth a request each."""

_FORMAT_KEY: Final = b"lakeledger.segment"
_FORMAT: Final = b"1"
_LINE: Final = "line"
_ORDERED: Final = ["version", "time"]
"""Columns whose bounds lead readers to a segment."""
_TRANSACTIONS: Final = "transactions"
_TRANSACTION: Final = f"{_TRANSACTIONS}.list.element"
_REPEATED: Final = [
    f"{_TRANSACTION}.author",
    f"{_TRANSACTION}.message",
    f"{_TRANSACTION}.events.list.element.type",
]
_SLACK_BYTES: Final = 65_536
_UNPACKED: Final = frozenset({"PLAIN", "RLE", "BIT_PACKED"})
"""A column so encoded is as long as its file says; a dictionary may unpack to any length."""


_UNFIT: Final = (OverflowError, UnicodeEncodeError, RecursionError)
"""What commits raise that cannot stand in a segment, beside what decoding and Arrow raise."""


class _Event(Struct):
    """As much of an event as every one has."""

    type: str


class _Transaction(Struct, rename="camel"):
    id: str
    author: str = ""
    message: str = ""
    properties: dict[str, str] = {}
    effective_time_millis: int | UnsetType = UNSET
    events: tuple[Raw, ...] = ()


class _Commit(Struct, rename="camel"):
    """A commit as its columns show it."""

    version: int
    time_millis: int
    transactions: tuple[_Transaction, ...]


_COMMITS: Final = msgspec.json.Decoder(_Commit)
_FRONT: Final = b'{"type":"'
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

    try:
        table = SegmentColumns(lines).table()
        sink = pa.BufferOutputStream()
        parquet.write_table(
            table,
            sink,
            row_group_size=len(lines),
            compression="zstd",
            use_dictionary=_REPEATED,
            write_statistics=_ORDERED,
            write_page_checksum=True,
        )
    except (msgspec.DecodeError, pa.ArrowException, *_UNFIT) as error:
        raise ValueError(f"the commits cannot stand in a segment: {error}") from error
    return bytes(sink.getvalue())


def read_segment(body: bytes, first: int, last: int) -> list[bytes]:
    """Return the files of the commits `first` to `last` that a segment holds.

    Whether they are the log's is for the caller to find out.

    Raises:
        ValueError: The bytes are no segment of these commits.
    """
    import pyarrow as pa

    try:
        file = opened(body, "the segment", [_LINE])
        _check(file.arrow, last - first + 1)
        column = file.table().column(_LINE)
        # Bytes that are no text are the log's to judge; a cast would load Arrow's functions.
        lines = [chunk.view(pa.binary()) for chunk in column.chunks]
    except (pa.ArrowException, OSError, KeyError) as error:
        raise ValueError(f"it is no Parquet file of commits: {error}") from error
    if len(column) != last - first + 1 or column.null_count or column.nbytes > _most(len(column)):
        raise ValueError("it lacks commits, or they are too long")
    return [line for chunk in lines for line in _cut(chunk)]


def _most(count: int) -> int:
    """Return how many bytes so many lines may have in Arrow, where each of them says its end."""
    return MOST_BYTES + 8 * count


def _cut(chunk: pa.Array) -> list[bytes]:
    """Return the texts of an array without nulls: a third of the time that Arrow takes to."""
    _, ends, text = chunk.buffers()
    if not len(chunk) or text is None:
        return [b""] * len(chunk)
    places = memoryview(ends)[: 4 * (chunk.offset + len(chunk) + 1)].cast("i")[chunk.offset :]
    body = text.to_pybytes()
    return [body[begin:end] for begin, end in pairwise(places)]


def is_same_segment(made: bytes, body: bytes) -> bool:
    """Return whether bytes are a segment with the content of another, whatever library wrote them.

    Args:
        made: A segment that `write_segment` returned.
        body: Any bytes.
    """
    import pyarrow as pa
    from pyarrow import parquet

    if body == made:
        return True
    mine = parquet.ParquetFile(pa.BufferReader(made))
    try:
        file = opened(body, "the segment")
        _check(file.arrow, mine.metadata.num_rows)
        return (
            _is_as_small(file.arrow, mine)
            and _bounds(file.arrow) == _bounds(mine)
            # Other libraries name the elements of lists differently.
            and file.table().cast(_schema()).equals(mine.read(use_threads=False))
        )
    except (ValueError, OverflowError, pa.ArrowException, OSError):
        return False


def _is_as_small(theirs: Any, mine: Any) -> bool:
    """Return whether the columns of a file have a segment's length, before any of them is read.

    No text is longer than the lines that it is part of; a number has eight bytes, and a text's
    length fewer.
    """
    columns, right = _columns(theirs), _columns(mine)
    longest = right[_LINE].total_uncompressed_size
    return columns.keys() == right.keys() and all(
        column.num_values == right[name].num_values
        and column.total_uncompressed_size <= 2 * (8 * column.num_values + longest) + _SLACK_BYTES
        for name, column in columns.items()
    )


def _columns(file: Any) -> dict[str, Any]:
    group = file.metadata.row_group(0)
    return {each.path_in_schema: each for each in map(group.column, range(group.num_columns))}


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


@lru_cache(maxsize=1)
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
            pa.field(_TRANSACTIONS, transactions, nullable=False),
            pa.field(_LINE, text, nullable=False),
        ],
        {_FORMAT_KEY: _FORMAT},
    )


def _type_of(event: bytes) -> str:
    """Return an event's type, which stands first where lakeledger wrote it."""
    if event.startswith(_FRONT):
        text = event[len(_FRONT) : event.find(b'"', len(_FRONT))]
        if b"\\" not in text:
            return text.decode()
    return _EVENTS.decode(event).type


class SegmentColumns:
    """The columns of a segment, flat: a list a leaf, and where each row's part of it begins."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        """Take the columns from commits, given as the bytes of their files.

        Raises:
            msgspec.DecodeError: One is no commit.
            RecursionError: One nests too deep.
        """
        commits = [*map(_COMMITS.decode, lines)]
        transactions = [one for each in commits for one in each.transactions]
        properties = [each.properties for each in transactions]
        self.lines = lines
        self.versions = [each.version for each in commits]
        self.times = [each.time_millis for each in commits]
        self.transaction_starts = _starts(len(each.transactions) for each in commits)
        self.ids = [each.id for each in transactions]
        self.authors = [each.author for each in transactions]
        self.messages = [each.message for each in transactions]
        self.property_starts = _starts(map(len, properties))
        self.property_keys = [*chain.from_iterable(properties)]
        self.property_values = [*chain.from_iterable(map(dict.values, properties))]
        self.effective_times = [
            each.time_millis if one.effective_time_millis is UNSET else one.effective_time_millis
            for each in commits
            for one in each.transactions
        ]
        self.event_starts = _starts(len(each.events) for each in transactions)
        self.events = [bytes(event) for each in transactions for event in each.events]
        self.types = [*map(_type_of, self.events)]

    def table(self) -> pa.Table:
        """Return them as an Arrow table.

        Raises:
            pa.ArrowException: A commit is no text, or holds what Parquet has no room for.
            OverflowError: A number is too great.
            UnicodeEncodeError: What was read of a commit is no text.
        """
        import pyarrow as pa

        schema = _schema()
        transaction = schema.field(_TRANSACTIONS).type.value_type
        moment = schema.field("time").type
        event = transaction.field("events").type.value_type
        starts = pa.int32()
        events = pa.StructArray.from_arrays(
            # They are checked to be text; Spark shows them as that.
            [texts(self.types), texts_of(self.events)],
            fields=list(event),
        )
        arrays = [
            texts(self.ids),
            texts(self.authors),
            texts(self.messages),
            pa.MapArray.from_arrays(
                numbers(self.property_starts, starts),
                texts(self.property_keys),
                texts(self.property_values),
            ),
            numbers(self.effective_times, moment),
            pa.ListArray.from_arrays(
                numbers(self.event_starts, starts),
                events,
                type=transaction.field("events").type,
            ),
        ]
        transactions = pa.ListArray.from_arrays(
            numbers(self.transaction_starts, starts),
            pa.StructArray.from_arrays(arrays, fields=list(transaction)),
            type=schema.field(_TRANSACTIONS).type,
        )
        columns = [
            numbers(self.versions, pa.int64()),
            numbers(self.times, moment),
            transactions,
            texts_of(self.lines),
        ]
        return pa.Table.from_arrays(columns, schema=schema)


def _starts(counts: Iterable[int]) -> list[int]:
    """Return where lists begin, and where the last one ends, given how long they are."""
    return [*accumulate(counts, initial=0)]
