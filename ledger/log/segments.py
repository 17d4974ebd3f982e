"""Segments: sealed runs of commits as Parquet; a cache.

`line` contains the exact bytes of the commit's file, and is all that the ledger itself reads. The
other columns contain the same data for engines that read Parquet natively, such as Spark.

A segment is a function of its commits' files. Two of them are compared by content, since Parquet's
bytes depend on the library that wrote them.

A segment is verified before use. Its lines have to form the hash chain up to its last commit, and
that one has to be the same as its file in the log, so that the log proves every line. A segment
that does not match is ignored, and the commit files are read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, islice, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ledger.log.codec import digest
from ledger.log.layout import SEGMENT_LENGTH, Layout
from ledger.model.arrow_types import integer_array, string_array_of_utf8, texts
from ledger.model.parquet_limits import open_checked_parquet
from ledger.observing.telemetry import warn
from ledger.stores import Store

if TYPE_CHECKING:
    import pyarrow as pa


MOST_BYTES: Final = 16 * 1024 * 1024
"""Total bytes of commits beyond which they are not sealed into a segment."""

_FORMAT_KEY: Final = b"lakeledger.segment"
_FORMAT: Final = b"1"
_LINE: Final = "line"
_ORDERED: Final = ["version", "time"]
"""Columns with statistics, by which readers choose segments."""
_TRANSACTIONS: Final = "transactions"
_TRANSACTION: Final = f"{_TRANSACTIONS}.list.element"
_REPEATED: Final = [
    f"{_TRANSACTION}.author",
    f"{_TRANSACTION}.message",
    f"{_TRANSACTION}.events.list.element.type",
]
_SLACK_BYTES: Final = 65_536
_UNPACKED: Final = frozenset({"PLAIN", "RLE", "BIT_PACKED"})
"""Encodings whose size in the metadata is the real one; a dictionary may expand to any length."""


_UNFIT: Final = (OverflowError, UnicodeEncodeError, RecursionError)
"""Errors for commits that a segment cannot contain, besides those of msgspec and Arrow."""


class _EventType(Struct):
    """The part that all events have in common."""

    type: str


class _Transaction(Struct, rename="camel"):
    id: str
    author: str = ""
    message: str = ""
    properties: dict[str, str] = {}
    effective_time_millis: int | UnsetType = UNSET
    events: tuple[Raw, ...] = ()


class _Commit(Struct, rename="camel"):
    """The fields of a commit that a segment has as columns."""

    version: int
    time_millis: int
    transactions: tuple[_Transaction, ...]


_COMMITS: Final = msgspec.json.Decoder(_Commit)
_FRONT: Final = b'{"type":"'
_EVENTS: Final = msgspec.json.Decoder(_EventType)


def segment_of(version: int) -> tuple[int, int]:
    """Return the first and last version of the segment of a commit; the first includes version 0.

    Example:
        >>> segment_of(0), segment_of(800), segment_of(801)
        ((0, 800), (0, 800), (801, 1600))
    """
    number = max(version - 1, 0) // SEGMENT_LENGTH
    return number * SEGMENT_LENGTH + (number > 0), (number + 1) * SEGMENT_LENGTH


def split_at_segments(first: int, last: int | None) -> Iterator[tuple[int, int]]:
    """Yield the versions `first` to `last`, split at segment boundaries; None: without end.

    Example:
        >>> list(split_at_segments(700, 1700))
        [(700, 800), (801, 1600), (1601, 1700)]
    """
    while last is None or first <= last:
        _, end = segment_of(first)
        yield first, end if last is None else min(end, last)
        first = end + 1


def write_segment(lines: Sequence[bytes]) -> bytes:
    """Return the segment file of commits, given as the bytes of their files.

    Raises:
        ValueError: They are not commits, or have values that Parquet cannot represent.
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
        raise ValueError(f"the commits cannot be written to a segment: {error}") from error
    return bytes(sink.getvalue())


def read_segment(body: bytes, first: int, last: int) -> list[bytes]:
    """Return the commit files `first` to `last` in a segment.

    The caller verifies that they are those of the log.

    Raises:
        ValueError: The bytes are not a segment of these commits.
    """
    import pyarrow as pa

    try:
        file = open_checked_parquet(body, "the segment", [_LINE])
        _check_metadata(file.arrow, last - first + 1)
        column = file.table().column(_LINE)
        # No cast, which would load Arrow's compute functions; the hash chain detects invalid text.
        lines = [chunk.view(pa.binary()) for chunk in column.chunks]
    except (pa.ArrowException, OSError, KeyError) as error:
        raise ValueError(f"it is not a Parquet file of commits: {error}") from error
    if (
        len(column) != last - first + 1
        or column.null_count
        or column.nbytes > _max_arrow_bytes(len(column))
    ):
        raise ValueError("it lacks commits, or they are too long")
    return [line for chunk in lines for line in _array_values(chunk)]


def _max_arrow_bytes(count: int) -> int:
    """Return the most bytes that `count` lines may have in Arrow, including their offsets."""
    return MOST_BYTES + 8 * count


def _array_values(chunk: pa.Array) -> list[bytes]:
    """Return the values of an array without nulls, in a third of the time of Arrow's own method."""
    _, ends, text = chunk.buffers()
    if not len(chunk) or text is None:
        return [b""] * len(chunk)
    places = memoryview(ends)[: 4 * (chunk.offset + len(chunk) + 1)].cast("i")[chunk.offset :]
    body = text.to_pybytes()
    return [body[begin:end] for begin, end in pairwise(places)]


def is_same_segment(made: bytes, body: bytes) -> bool:
    """Return whether bytes are a segment with the content of another, written by any library.

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
        file = open_checked_parquet(body, "the segment")
        _check_metadata(file.arrow, mine.metadata.num_rows)
        return (
            _are_columns_no_larger(file.arrow, mine)
            and _column_statistics(file.arrow) == _column_statistics(mine)
            # Other libraries name the elements of lists differently.
            and file.table().cast(_segment_schema()).equals(mine.read(use_threads=False))
        )
    except (ValueError, OverflowError, pa.ArrowException, OSError):
        return False


def _are_columns_no_larger(theirs: Any, mine: Any) -> bool:
    """Return whether the columns of a file are no larger than a segment's, before reading them.

    Limits: a text is part of a line and no longer than it; a number has eight bytes, and the length
    of a text fewer.
    """
    columns, right = _column_metadata(theirs), _column_metadata(mine)
    longest = right[_LINE].total_uncompressed_size
    return columns.keys() == right.keys() and all(
        column.num_values == right[name].num_values
        and column.total_uncompressed_size <= 2 * (8 * column.num_values + longest) + _SLACK_BYTES
        for name, column in columns.items()
    )


def _column_metadata(file: Any) -> dict[str, Any]:
    group = file.metadata.row_group(0)
    return {each.path_in_schema: each for each in map(group.column, range(group.num_columns))}


def _column_statistics(file: Any) -> list[tuple[Any, Any]]:
    """Return the statistics of the columns by which readers choose segments."""
    group = file.metadata.row_group(0)
    columns = (group.column(index) for index in range(group.num_columns))
    found = [each.statistics for each in columns if each.path_in_schema in _ORDERED]
    return [(each.min, each.max) if each is not None else (None, None) for each in found]


def _check_metadata(file: Any, count: int) -> None:
    """Check a file's metadata before any row is read: few bytes can expand to gigabytes.

    Raises:
        ValueError: It is not a segment of `count` commits.
    """
    metadata = file.metadata
    if (metadata.metadata or {}).get(_FORMAT_KEY) != _FORMAT:
        raise ValueError("its metadata is not that of a segment in a known format")
    if metadata.num_rows != count:
        raise ValueError(f"it has {metadata.num_rows} commits and not {count}")
    if metadata.num_row_groups != 1 or metadata.row_group(0).num_rows != count:
        raise ValueError("it does not have exactly one row group")
    group = metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    lines = [each for each in columns if each.path_in_schema == _LINE]
    if len(lines) != 1 or not set(lines[0].encodings) <= _UNPACKED:
        raise ValueError("it has no plainly encoded column of lines")
    if sum(each.total_uncompressed_size for each in columns) > 3 * MOST_BYTES:
        raise ValueError(f"by its metadata it expands to more than {3 * MOST_BYTES} bytes")


@lru_cache(maxsize=1)
def _segment_schema() -> pa.Schema:
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


def _event_type(event: bytes) -> str:
    """Return an event's type, which is the first key in events that lakeledger wrote."""
    if event.startswith(_FRONT):
        text = event[len(_FRONT) : event.find(b'"', len(_FRONT))]
        if b"\\" not in text:
            return text.decode()
    return _EVENTS.decode(event).type


class SegmentColumns:
    """Columns of a segment: a list of values per leaf column, and offsets of nested lists."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        """Extract the columns from commits, given as the bytes of their files.

        Raises:
            msgspec.DecodeError: One is not a commit.
            RecursionError: One is nested too deeply.
        """
        commits = [*map(_COMMITS.decode, lines)]
        transactions = [one for each in commits for one in each.transactions]
        properties = [each.properties for each in transactions]
        self.lines = lines
        self.versions = [each.version for each in commits]
        self.times = [each.time_millis for each in commits]
        self.transaction_starts = _list_offsets(len(each.transactions) for each in commits)
        self.ids = [each.id for each in transactions]
        self.authors = [each.author for each in transactions]
        self.messages = [each.message for each in transactions]
        self.property_starts = _list_offsets(map(len, properties))
        self.property_keys = [*chain.from_iterable(properties)]
        self.property_values = [*chain.from_iterable(map(dict.values, properties))]
        self.effective_times = [
            each.time_millis if one.effective_time_millis is UNSET else one.effective_time_millis
            for each in commits
            for one in each.transactions
        ]
        self.event_starts = _list_offsets(len(each.events) for each in transactions)
        self.events = [bytes(event) for each in transactions for event in each.events]
        self.types = [*map(_event_type, self.events)]

    def table(self) -> pa.Table:
        """Return them as an Arrow table.

        Raises:
            pa.ArrowException: A commit is not UTF-8, or has values that Arrow cannot represent.
            OverflowError: A number is too large.
            UnicodeEncodeError: A text of a commit is not valid Unicode.
        """
        import pyarrow as pa

        schema = _segment_schema()
        transaction = schema.field(_TRANSACTIONS).type.value_type
        moment = schema.field("time").type
        event = transaction.field("events").type.value_type
        starts = pa.int32()
        events = pa.StructArray.from_arrays(
            # Validated as text; Spark shows them as text.
            [texts(self.types), string_array_of_utf8(self.events)],
            fields=list(event),
        )
        arrays = [
            texts(self.ids),
            texts(self.authors),
            texts(self.messages),
            pa.MapArray.from_arrays(
                integer_array(self.property_starts, starts),
                texts(self.property_keys),
                texts(self.property_values),
            ),
            integer_array(self.effective_times, moment),
            pa.ListArray.from_arrays(
                integer_array(self.event_starts, starts),
                events,
                type=transaction.field("events").type,
            ),
        ]
        transactions = pa.ListArray.from_arrays(
            integer_array(self.transaction_starts, starts),
            pa.StructArray.from_arrays(arrays, fields=list(transaction)),
            type=schema.field(_TRANSACTIONS).type,
        )
        columns = [
            integer_array(self.versions, pa.int64()),
            integer_array(self.times, moment),
            transactions,
            string_array_of_utf8(self.lines),
        ]
        return pa.Table.from_arrays(columns, schema=schema)


def _list_offsets(counts: Iterable[int]) -> list[int]:
    """Return the offsets of lists, and the end of the last one, given their lengths."""
    return [*accumulate(counts, initial=0)]


class SegmentBuffer:
    """Buffer of the commit files of the current segment, from its first one on, without a gap.

    So the writer that completes a segment need not read its commits, which on an object store takes
    seconds.

    Example:
        >>> lines = SegmentBuffer()
        >>> for version in range(800, 803):
        ...     if lines.accepts(version):
        ...         lines.take(version, b"%d" % version)
        >>> lines.of(801, 802), lines.of(0, 800)
        ([b'801', b'802'], None)
    """

    def __init__(self) -> None:
        self._first = 0
        self._bodies: list[bytes] = []
        self._size = 0

    def accepts(self, version: int) -> bool:
        """Return whether a commit is the first of a segment, or the next after those buffered."""
        follows = bool(self._bodies) and version == self._first + len(self._bodies)
        return follows or version == segment_of(version)[0]

    def take(self, version: int, body: bytes) -> None:
        """Add the file of a commit that `accepts` accepts."""
        if version == segment_of(version)[0]:
            self._first, self._bodies, self._size = version, [], 0
        self._bodies.append(body)
        self._size += len(body)
        if self._size > MOST_BYTES:
            # The segment will not be sealed, so its files are not needed.
            self._bodies = []

    def of(self, first: int, last: int) -> Sequence[bytes] | None:
        """Return the files of a segment's commits; None unless all are buffered."""
        if first != self._first or last >= first + len(self._bodies):
            return None
        return self._bodies[: last + 1 - first]


AHEAD: Final = 16
"""Number of segments that are read at a time."""

WORTH: Final = 200
"""Number of commits from which on a segment is read instead of their commit files."""

_LOGGER = "ledger.log"


class TrustedBodies(NamedTuple):
    """Consecutive commit files from a segment that was verified against the log.

    Attributes:
        bodies: Their bytes.
        digests: The digest of each.
    """

    bodies: Sequence[bytes]
    digests: Sequence[str]

    def part(self, begin: int, count: int) -> TrustedBodies:
        """Return `count` of them, from the index `begin` on."""
        end = begin + count
        return TrustedBodies(self.bodies[begin:end], self.digests[begin:end])


class _ParentLink(Struct):
    """The part of a commit that links it to its parent."""

    parent: str = ""


_LINKS: Final = msgspec.json.Decoder(_ParentLink)
_PARENT: Final = b'"parent":"%s"'
_HEAD: Final = 192
"""Bytes at the beginning of a commit's line that contain its parent: only numbers precede it."""


class Segments:
    """A stream's segments.

    Args:
        store: The stream's store.
        layout: The stream's keys.
    """

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store = store
        self._layout = layout
        self._asked = 0

    @property
    def is_near(self) -> bool:
        """True when commit files are cheap to read; see `Store.is_near`."""
        return self._store.is_near

    def save(self, version: int, lines: Sequence[bytes] | None = None) -> None:
        """Write the segment that ends at a checkpoint's version, if one does.

        On a remote store only if its commit files are in memory: reading them would block the
        writer for seconds. Maintenance writes the other segments.

        Args:
            version: The checkpoint's version.
            lines: The commit files of the segment, if they are in memory.

        Raises:
            OSError: It could not be written; the log is unaffected.
        """
        span = segment_of(version)
        if span[1] != version or (lines is None and not self.is_near):
            return
        body = self.made(*span) if lines is None else self._encode_verified_segment(span, lines)
        if body is not None:
            self._store.replace(self._segment_key(span), body)

    def made(self, first: int, last: int) -> bytes | None:
        """Return the segment of the commits `first` to `last`, built from their files.

        None if they cannot be sealed: they are too large, one is missing, or the chain is broken.
        """
        lines: list[bytes] = []
        size = 0
        for line in self._store.read_many(self._layout.commits(range(first, last + 1))):
            if line is None:
                return None
            lines.append(line)
            size += len(line)
            if size > MOST_BYTES:
                return None
        return self._encode_verified_segment((first, last), lines)

    def _encode_verified_segment(
        self, span: tuple[int, int], lines: Sequence[bytes]
    ) -> bytes | None:
        try:
            _verify_hash_chain(lines, lines[-1])
            return write_segment(lines)
        except ValueError as error:
            # Reading the damaged commit itself raises an error.
            warn(_LOGGER, "segment_skipped", file=self._segment_key(span), error=str(error))
            return None

    def read(self, wanted: Sequence[tuple[int, int]]) -> Iterator[TrustedBodies | None]:
        """Yield the commits of each range of versions; None: read the commit files.

        Args:
            wanted: Ranges within one segment each, in order. Segments of short ranges are not read.
        """
        asked = [segment_of(last) for first, last in wanted if last - first + 1 >= WORTH]
        if not self._is_cheaper_than_files(len(asked)):
            yield from (None for _ in wanted)
            return
        keys = (
            key for each in asked for key in (self._layout.commit(each[1]), self._segment_key(each))
        )
        bodies = self._store.read_many(list(keys))
        is_beyond = False
        for first, last in wanted:
            if is_beyond or last - first + 1 < WORTH:
                yield None
                continue
            vouching = next(bodies)
            # The first incomplete segment is the end of the log.
            is_beyond = vouching is None
            body = None if vouching is None else next(bodies)
            found = None if body is None else self._trusted_bodies(segment_of(last), body, vouching)
            begin = first - segment_of(last)[0]
            yield None if found is None else found.part(begin, last - first + 1)

    def _is_cheaper_than_files(self, count: int) -> bool:
        """Return whether `count` segments are cheaper to read than their commit files.

        Importing the Parquet library takes as long as reading ten thousand small local files, so it
        is worth it once that many were requested.
        """
        is_loaded = "pyarrow" in sys.modules
        self._asked += count
        return count > 0 and (is_loaded or self._asked >= AHEAD or not self.is_near)

    def _segment_key(self, span: tuple[int, int]) -> str:
        return self._layout.segment(*span)

    def _trusted_bodies(
        self, span: tuple[int, int], body: bytes, vouching: bytes | None
    ) -> TrustedBodies | None:
        """Return a segment's commits if they verify against the file of its last commit."""
        try:
            return _verify_hash_chain(read_segment(body, *span), vouching)
        except ValueError as error:
            warn(
                _LOGGER,
                "segment_passed_over",
                file=self._segment_key(span),
                error=str(error),
                advice="rebuild it with: lakeledger verify --repair",
            )
            return None


def _verify_hash_chain(bodies: Sequence[bytes], vouching: bytes | None) -> TrustedBodies:
    """Return commit files with their digests, after verifying the hash chain.

    Args:
        bodies: The commit files.
        vouching: The last one, as read from the log.

    Raises:
        ValueError: The last one differs, or one does not name the one before it as parent.
    """
    if bodies[-1] != vouching:
        raise ValueError("its last commit differs from that of the log")
    digests = [*map(digest, bodies)]
    place = 0
    for body, before in zip(islice(bodies, 1, None), digests, strict=False):
        parent = _PARENT % before.encode()
        # At the same offset as in the line before, unless a number has one more digit.
        if not body.startswith(parent, place):
            place = body.find(parent, 0, _HEAD)
            if place < 0:
                _refuse_other_parent(body, before)
    return TrustedBodies(bodies, digests)


def _refuse_other_parent(body: bytes, before: str) -> None:
    """Check that a commit names the one before it as parent, anywhere in its line.

    Raises:
        ValueError: It names another, or is not a commit.
    """
    try:
        parent = _LINKS.decode(body).parent
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"a line in it is not a commit: {error}") from error
    if parent != before:
        raise ValueError("its commits do not follow one another")
