"""Tiles of statistics: their commits, and their files.

Sixty-four commits are a block. A complete block is one tile of deltas, kept for ever; eight tiles
merge into one of sums, eight of those into the next, and so on. Commits after the last complete
block are in tiles of eight and of one, which are deleted when their block is complete. So a
refresh writes only new tiles, and any instant is a sum over few tiles.

The rows of a tile are ordered: those of whole tables, then by partition, and each by place. A row
group has 16,384 rows, and its column statistics tell which partitions it holds, so that the history
of one partition is read from one row group or two of each tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, Protocol

from attrs import frozen

from ledger.model.parquet_limits import BoundedParquetFile, open_checked_parquet
from ledger.model.snapshot import FAN_OUT, parts, tiles_covering
from ledger.observing.telemetry import warn
from ledger.stores import Store
from projections.statistics.definition import ROWS, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


BLOCK = FAN_OUT**2
"""Commits in a block."""

NARROWEST_SUMS = BLOCK * FAN_OUT
"""Commits in the narrowest tile of sums."""


@frozen(order=True)
class Tile:
    """Statistics of the commits from `start` to `end`, exclusive."""

    start: int
    end: int

    @property
    def is_sums(self) -> bool:
        """Return whether it holds sums by partition, as larger tiles do, or else deltas."""
        return self.end - self.start > BLOCK

    @property
    def is_kept(self) -> bool:
        """Return whether it is kept when larger tiles cover it."""
        return self.end - self.start >= BLOCK

    @property
    def name(self) -> str:
        """Its file's path below the statistics' folder.

        >>> Tile(64, 128).name
        'deltas/00000000000000000064-00000000000000000127.parquet'
        """
        folder = "sums" if self.is_sums else "deltas"
        return f"{folder}/{self.start:020d}-{self.end - 1:020d}.parquet"

    def parts(self) -> tuple[Tile, ...]:
        """Return the eight tiles that it merges, oldest first."""
        return tuple(Tile(*each) for each in parts(self.start, self.end))


@lru_cache(maxsize=64)
def covering_tiles(count: int) -> tuple[Tile, ...]:
    """Return the tiles that cover the versions before `count`, newest first.

    Example:
        >>> [(each.start, each.end) for each in covering_tiles(74)]
        [(73, 74), (72, 73), (64, 72), (0, 64)]
    """
    return tuple(Tile(*each) for each in tiles_covering(count))


def block_of(version: int) -> Tile:
    """Return the block of a version."""
    start = version - version % BLOCK
    return Tile(start, start + BLOCK)


def blocks(first: int, last: int) -> Iterator[Tile]:
    """Yield the blocks of the versions `first` to `last`."""
    for start in range(block_of(first).start, last + 1, BLOCK):
        yield Tile(start, start + BLOCK)


def tiles_completed_by(block: Tile) -> Iterator[Tile]:
    """Yield the tiles of sums that a block completes, smallest first.

    Example:
        >>> [(each.start, each.end) for each in tiles_completed_by(Tile(960, 1024))]
        [(512, 1024)]
    """
    width = NARROWEST_SUMS
    while block.end % width == 0:
        yield Tile(block.end - width, block.end)
        width *= FAN_OUT


def tiles_within(first: int, last: int) -> Iterator[Tile]:
    """Yield the narrowest tiles of sums that are completely in the versions `first` to `last`.

    Example:
        >>> [each.name for each in tiles_within(70, 1100)]
        ['sums/00000000000000000512-00000000000000001023.parquet']
    """
    begin = first + -first % NARROWEST_SUMS
    for start in range(begin, last + 2 - NARROWEST_SUMS, NARROWEST_SUMS):
        yield Tile(start, start + NARROWEST_SUMS)


class RowFilter(Protocol):
    """Selection of a tile's rows."""

    def narrow(self, spec_id: Any, partition: Any) -> RowFilter | None:
        """Return a filter that selects the same rows of a row group; None if it has none.

        Args:
            spec_id: Arrow's column statistics of the row group's `spec_id`.
            partition: Those of `partition`.
        """

    def select(self, rows: pa.Table) -> pa.Table:
        """Return the selected rows."""


@frozen
class TableRows:
    """The rows of the whole table, one per snapshot."""

    def narrow(self, spec_id: Any, partition: Any) -> RowFilter | None:
        """See `RowFilter`."""
        del partition
        return self if spec_id.null_count else None

    def select(self, rows: pa.Table) -> pa.Table:
        """See `RowFilter`."""
        import pyarrow.compute as pc

        return rows.filter(pc.is_null(rows["spec_id"]))


@frozen
class AllPartitions:
    """The rows of all partitions."""

    def narrow(self, spec_id: Any, partition: Any) -> RowFilter | None:
        """See `RowFilter`."""
        del partition
        return self if spec_id.num_values else None

    def select(self, rows: pa.Table) -> pa.Table:
        """See `RowFilter`."""
        import pyarrow.compute as pc

        first = rows["spec_id"].null_count
        if rows["spec_id"].slice(0, first).null_count == first:
            # As in a tile: the others are not copied.
            return rows.slice(first)
        return rows.filter(pc.is_valid(rows["spec_id"]))


@frozen
class PartitionRange:
    """Range of the column `partition`, in the order of its UTF-8 bytes.

    Attributes:
        low: The least text.
        high: The least text after the range; None for all from `low` on.
    """

    low: str
    high: str | None = None

    @classmethod
    def of_prefix(cls, prefix: str) -> PartitionRange:
        """Return the range of the texts that begin with a prefix, which ends in ASCII.

        Example:
            >>> PartitionRange.of_prefix('["2024-01-01"')
            PartitionRange(low='["2024-01-01"', high='["2024-01-01#')
        """
        return cls(prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1))

    def overlaps(self, least: str, greatest: str) -> bool:
        """Return whether it has a text from `least` to `greatest`, both included."""
        return self.low <= greatest and (self.high is None or least < self.high)

    def mask(self, partition: pa.ChunkedArray) -> Any:
        """Return whether each text is in the range."""
        import pyarrow.compute as pc

        found = pc.greater_equal(partition, self.low)
        return found if self.high is None else pc.and_(found, pc.less(partition, self.high))


@frozen
class PartitionRows:
    """The rows of the partitions in some ranges."""

    ranges: tuple[PartitionRange, ...]

    def narrow(self, spec_id: Any, partition: Any) -> RowFilter | None:
        """See `RowFilter`."""
        del spec_id
        if not partition.has_min_max:
            # A long value has no statistics; a group of NULLs holds rows of the whole table alone.
            return self if partition.num_values else None
        ends = partition.min, partition.max
        found = tuple(each for each in self.ranges if each.overlaps(*ends))
        return PartitionRows(found) if found else None

    def select(self, rows: pa.Table) -> pa.Table:
        """See `RowFilter`."""
        import pyarrow.compute as pc

        masks = [each.mask(rows["partition"]) for each in self.ranges]
        return rows.filter(reduce(pc.or_, masks)) if masks else rows.slice(0, 0)


FORMAT = 2
_FORMAT_KEY = b"lakeledger.statistics"

_ROWS_A_GROUP = 16_384
"""Small enough that one partition costs little, and large enough that all of them do."""

_BYTES_IN_MEMORY = 16_000_000

_LOGGER = "projections.statistics"

_NUMBERS = [each.name for each in ROWS if each.kind == "int64"]


@frozen
class TileFiles:
    """Storage of the tiles of one table.

    A cache: a missing, torn or incompatible tile is recomputed from the log.

    Attributes:
        store: The table's store.
        root: The statistics' folder on it.
    """

    store: Store
    root: str

    def key(self, tile: Tile) -> str:
        """Return the key of a tile."""
        return f"{self.root}/{tile.name}"

    def load(self, tile: Tile, rows: RowFilter | None = None) -> pa.Table | None:
        """Return a tile's rows, by default all; None if it is missing or not usable."""
        body = self.store.read(self.key(tile))
        if body is None:
            return None
        found = decode_parquet(body, rows)
        if found is None:
            warn(_LOGGER, "statistics_tile_unreadable", file=self.key(tile))
        return found

    def tables(self, tile: Tile, rows: int) -> Iterator[pa.Table] | None:
        """Return a tile's rows, at most some at a time; None if it is missing or not usable."""
        body = self.store.read(self.key(tile))
        found = None if body is None else decode_in_parts(body, rows)
        if body is not None and found is None:
            warn(_LOGGER, "statistics_tile_unreadable", file=self.key(tile))
        return found

    def save(self, tile: Tile, rows: Iterable[pa.Table]) -> None:
        """Write a tile, and replace an existing one.

        Args:
            tile: The tile.
            rows: Its rows in the order of `ordered`, in any number of tables.

        Raises:
            OSError: The store failed; the tile may have been written.
        """
        self.store.replace(self.key(tile), encode_parquet(rows))

    def remove(self, tile: Tile) -> None:
        """Delete a tile."""
        self.store.delete(self.key(tile))


def encode_parquet(rows: Iterable[pa.Table]) -> bytes:
    """Return ordered rows as the bytes of a Parquet file; each page has a checksum."""
    from pyarrow import parquet

    schema = arrow_schema(ROWS).with_metadata({_FORMAT_KEY: str(FORMAT)})
    # Beyond memory that a growing buffer would take twice.
    with SpooledTemporaryFile(_BYTES_IN_MEMORY) as sink:
        with parquet.ParquetWriter(
            sink,
            schema,
            compression="zstd",
            # Ordered partitions compress better, and are faster to read, than their dictionary.
            use_dictionary=["content"],
            column_encoding=dict.fromkeys(_NUMBERS, "DELTA_BINARY_PACKED"),
            # Only what selects rows: each lengthens the footer, which every read checks.
            write_statistics=["spec_id", "partition"],
            write_page_checksum=True,
        ) as writer:
            for each in _in_groups(rows):
                writer.write_table(each.replace_schema_metadata(schema.metadata), _ROWS_A_GROUP)
        sink.seek(0)
        return sink.read()


def _in_groups(rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield rows in tables of complete row groups; the last one may end in a smaller group."""
    import pyarrow as pa

    rest: list[pa.Table] = []
    count = 0
    for each in rows:
        rest.append(each)
        count += len(each)
        whole = count - count % _ROWS_A_GROUP
        if whole:
            found = pa.concat_tables(rest)
            yield found.slice(0, whole)
            rest, count = [found.slice(whole)], count - whole
    if count:
        yield pa.concat_tables(rest)


def decode_parquet(body: bytes, rows: RowFilter | None = None) -> pa.Table | None:
    """Return the rows of a file, by default all; None if it is torn, changed, or incompatible."""
    import pyarrow as pa

    try:
        file = _open_tile(body)
        if rows is None:
            return _cast_to_rows(file.table())
        groups = _matching_groups(file, rows)
        found = _cast_to_rows(file.row_groups([*groups]))
        return (groups.popitem()[1] if len(groups) == 1 else rows).select(found)
    except (pa.ArrowException, OSError, KeyError, ValueError):
        return None


def decode_in_parts(body: bytes, rows: int) -> Iterator[pa.Table] | None:
    """Return the rows of a file, at most some at a time; None as `decode_parquet`."""
    import pyarrow as pa

    try:
        file = _open_tile(body)
        if file.arrow.metadata.num_rows > rows:
            # Nothing may be used of a file whose end cannot be.
            for each in file.tables(rows):
                _cast_to_rows(each)
            return map(_cast_to_rows, file.tables(rows))
        return iter([_cast_to_rows(file.table())])
    except (pa.ArrowException, OSError, KeyError, ValueError):
        return None


def _open_tile(body: bytes) -> BoundedParquetFile:
    file = open_checked_parquet(body, "the tile")
    if (file.arrow.schema_arrow.metadata or {}).get(_FORMAT_KEY) != str(FORMAT).encode():
        raise ValueError("the tile has another format")
    return file


def _cast_to_rows(found: pa.Table) -> pa.Table:
    schema = arrow_schema(ROWS)
    # A cast to the same type takes as long as any other.
    return found if found.schema.equals(schema) else found.select(schema.names).cast(schema)


def _matching_groups(file: BoundedParquetFile, rows: RowFilter) -> dict[int, RowFilter]:
    """Return the row groups that may hold selected rows, each with what selects them there."""
    metadata = file.arrow.metadata
    places = {metadata.schema.column(each).name: each for each in range(metadata.num_columns)}
    spec_id, partition = places["spec_id"], places["partition"]
    found = {}
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        said = group.column(spec_id).statistics, group.column(partition).statistics
        # PyArrow crashes where statistics are compared with None by `==`.
        is_unknown = any(each is None for each in said)
        narrowed = rows if is_unknown else rows.narrow(*said)
        if narrowed is not None:
            found[index] = narrowed
    return found
