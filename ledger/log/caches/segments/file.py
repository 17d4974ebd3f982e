"""The bytes of a sealed segment: a run of commits as Parquet, one row a commit.

`line` holds the exact bytes of the commit's file, and is all that the ledger itself reads. The
other columns say the same once more for engines that read Parquet natively, such as Spark.

A segment is a function of its commits' files. Two of them are compared by content, since Parquet's
bytes depend on who wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, islice, pairwise
from operator import eq
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ledger.events.commit import Commit, Transaction
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


_AskedAtOnce = _Transaction | Transaction[Any]
_Asked = _Commit | Commit[Any]

_ENCODER: Final = msgspec.json.Encoder()
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
        table = SegmentColumns.of(lines).table()
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


def is_segment_of(columns: SegmentColumns, body: bytes) -> bool:
    """Return whether bytes are a segment of some commits, whoever wrote it.

    Args:
        columns: The commits.
        body: Any bytes.

    Raises:
        ValueError: The commits cannot stand in a segment.
    """
    import pyarrow as pa

    try:
        mine = columns.table()
    except (msgspec.DecodeError, pa.ArrowException, *_UNFIT) as error:
        raise ValueError(f"the commits cannot stand in a segment: {error}") from error
    try:
        file = opened(body, "the segment")
        theirs = file.arrow
        _check(theirs, len(columns.lines))
        moment = mine.schema.field("time").type
        times = (pa.scalar(each(columns.times), moment).as_py() for each in (min, max))
        return (
            _is_as_small(theirs, columns.leaves())
            and _bounds(theirs) == [(min(columns.versions), max(columns.versions)), (*times,)]
            # Another library calls what is inside lists by other names.
            and file.table().cast(mine.schema).equals(mine)
        )
    except (ValueError, OverflowError, pa.ArrowException, OSError):
        return False


def _is_as_small(theirs: Any, leaves: Mapping[str, tuple[int, int]]) -> bool:
    """Return whether each column of a file is no longer than wanted, before any of them is read.

    Args:
        theirs: The file.
        leaves: Of each leaf how many values it has, and at most how many bytes.
    """
    group = theirs.metadata.row_group(0)
    columns = {each.path_in_schema: each for each in map(group.column, range(group.num_columns))}
    return columns.keys() == leaves.keys() and all(
        each.num_values == leaves[name][0]
        and each.total_uncompressed_size <= 2 * leaves[name][1] + _SLACK_BYTES
        for name, each in columns.items()
    )


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

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.versions: list[int] = []
        self.times: list[int] = []
        self.transaction_starts = [0]
        self.ids: list[str] = []
        self.authors: list[str] = []
        self.messages: list[str] = []
        self.property_starts = [0]
        self.property_keys: list[str] = []
        self.property_values: list[str] = []
        self.effective_times: list[int] = []
        self.event_starts = [0]
        self.types: list[str] = []
        self.events: list[bytes] = []

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> SegmentColumns:
        """Return the columns of commits, given as the bytes of their files.

        Raises:
            msgspec.DecodeError: One is no commit.
            RecursionError: One nests too deep.
        """
        columns = cls()
        commits = [*map(_COMMITS.decode, lines)]
        events = [
            bytes(event) for each in commits for one in each.transactions for event in one.events
        ]
        columns.types.extend(map(_type_of, events))
        columns.events.extend(events)
        columns.lines.extend(lines)
        columns._add(commits)
        return columns

    def extend(self, commits: Sequence[Commit[Any]], lines: Sequence[bytes]) -> None:
        """Take in further commits that are written as lakeledger writes them.

        Args:
            commits: They.
            lines: The bytes of their files.
        """
        found = [event for each in commits for one in each.transactions for event in one.events]
        events = _ENCODER.encode_lines(found).split(b"\n")[:-1]
        if len(events) != len(found):
            # What stands raw in an event may be on several lines.
            events = [*map(_ENCODER.encode, found)]
        kinds: list[Any] = [*map(type, found)]
        tags = {kind: kind.__struct_config__.tag for kind in {*kinds}}
        self.types.extend([tags[kind] for kind in kinds])
        self.events.extend(events)
        self.lines.extend(lines)
        self._add(commits)

    def _add(self, commits: Sequence[_Asked]) -> None:
        """Take in all of some commits but their events."""
        transactions: list[_AskedAtOnce] = [one for each in commits for one in each.transactions]
        self.versions.extend([each.version for each in commits])
        self.times.extend([each.time_millis for each in commits])
        _go_on(self.transaction_starts, [len(each.transactions) for each in commits])
        _go_on(self.event_starts, [len(each.events) for each in transactions])
        self.ids.extend([each.id for each in transactions])
        self.authors.extend([each.author for each in transactions])
        self.messages.extend([each.message for each in transactions])
        properties = [each.properties for each in transactions]
        _go_on(self.property_starts, [*map(len, properties)])
        if any(properties):
            self.property_keys.extend(chain.from_iterable(properties))
            self.property_values.extend(chain.from_iterable(map(dict.values, properties)))
        self.effective_times.extend(
            [
                each.time_millis
                if one.effective_time_millis is UNSET
                else one.effective_time_millis
                for each in commits
                for one in each.transactions
            ]
        )

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

    def leaves(self) -> dict[str, tuple[int, int]]:
        """Return of each leaf how many values it has in Parquet, and at most how many bytes.

        An empty list counts as one value, and no text is longer than the lines that it stands in.
        """
        rows, transactions = len(self.lines), len(self.ids)
        events = len(self.types) + _count_empty(self.event_starts)
        properties = len(self.property_keys) + _count_empty(self.property_starts)
        texts = sum(map(len, self.lines))
        inside = {
            "id": (transactions, texts),
            "author": (transactions, texts),
            "message": (transactions, texts),
            "effective_time": (transactions, 0),
            "properties.key_value.key": (properties, texts),
            "properties.key_value.value": (properties, texts),
            "events.list.element.type": (events, texts),
            "events.list.element.event": (events, texts),
        }
        found = {f"{_TRANSACTION}.{name}": each for name, each in inside.items()}
        found |= {"version": (rows, 0), "time": (rows, 0), _LINE: (rows, texts)}
        # A number has eight bytes, and a text's length fewer.
        return {name: (count, 8 * count + size) for name, (count, size) in found.items()}


def _go_on(starts: list[int], counts: Sequence[int]) -> None:
    """Add where further lists end, given how long they are."""
    starts.extend(islice(accumulate(counts, initial=starts[-1]), 1, None))


def _count_empty(starts: Sequence[int]) -> int:
    return sum(map(eq, starts, islice(starts, 1, None)))
