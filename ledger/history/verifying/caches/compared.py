"""The caches beside a log, compared with what the log makes them.

The small ones, of up to a segment's commits, are made of the commits at hand. A larger one merges
smaller ones, which were compared before: it has to be made of those that fit, and of the log where
one does not.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from attrs import frozen

from ledger.evolution.stream import StateLike
from ledger.files.change_table import parquet_of, parsed
from ledger.files.live import LiveFiles
from ledger.files.runs import NO_ROWS, Net, Placed, check_of, key_of_check, rows_of, table_of
from ledger.history.verifying.finding import FROM_BACKUP, REPAIR, Finding
from ledger.history.verifying.spans.chain import nearly
from ledger.history.verifying.subject import Subject
from ledger.log.caches.checkpoint import Head, named_digest
from ledger.log.caches.lookup import KeyIndex, tiles
from ledger.log.caches.segments.file import MOST_BYTES, SegmentColumns, is_segment_of, write_segment
from ledger.log.layout import SEGMENT_LENGTH
from ledger.model.arrow_arrays import unsigned, unsigned_of
from ledger.model.errors import UpgradeRequiredError
from ledger.stores import Store

if TYPE_CHECKING:
    import pyarrow as pa

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

_piece_of = re.compile(
    r"(?:keys|files)/(\d{20})-(\d{20})\.(?:idx|\d{4,}\.idx|parquet|parquet\.sha256)"
).fullmatch
_filter_of = re.compile(r"filters/\d+-(\d{20})(?:\.\d{4,})?\.flt").fullmatch
_checkpoint_of = re.compile(r"(\d{20})\.json").fullmatch

Tile = tuple[int, int]
"""The first and last version of an index or a run."""

Pairs = Sequence[tuple[int, int]]
"""The (hash, version) of the keys of some commits."""


def last_of(name: str) -> int | None:
    """Return a version that a cache was made of, by its name among the caches; None: no cache.

    The last one, where its name says that.

    Example:
        >>> last_of("00000000000000000100.json"), last_of("notes.txt")
        (100, None)
    """
    found = _checkpoint_of(name) or _filter_of(name)
    if found:
        return int(found[1])
    piece = _piece_of(name)
    return int(piece[2]) if piece else None


def tile_of(boundary: int) -> Tile:
    """Return the tile of the index and the run that end at a checkpoint's version."""
    return next(tiles(boundary))


def is_merged(tile: Tile) -> bool:
    """Whether a tile is made of more commits than a segment has."""
    return tile[1] - tile[0] > SEGMENT_LENGTH


class _Envelope(msgspec.Struct, rename="camel"):
    """As much of a checkpoint as tells who reads it."""

    fold_version: int


@frozen
class Caches(Generic[S, E]):
    """Compares a stream's caches, one after the other.

    Attributes:
        subject: The stream.
        mends: Whether findings bring the bytes that restore what they are about.
    """

    subject: Subject[S, E]
    mends: bool = True

    @property
    def _store(self) -> Store:
        return self.subject.store

    def checkpoint(self, head: Head[S]) -> Iterator[Finding]:
        """Yield what is wrong with the checkpoint of a state, which was replayed."""
        version = head.state.version
        key = self.subject.layout.checkpoint(version)
        there, right = self._store.read(key), self.subject.log.checkpoints.body(head)
        if there == right:
            return
        remedy = ((key, right),) if self.mends else ()
        if there is None:
            yield Finding("absent", "the checkpoint is not there", key, version, REPAIR, remedy)
        elif _is_of_another_fold(there, right):
            said = "another version of lakeledger made the checkpoint; this one passes it over"
            yield Finding("absent", said, key, version, "nothing needs to be done")
        elif _is_of_another_log(there, head):
            said = "the checkpoint was made from another commit of that version"
            yield Finding("damage", said, key, version, f"the log was changed: {FROM_BACKUP}")
        else:
            said = "the checkpoint is other than replaying the log makes it"
            yield Finding("derived", said, key, version, REPAIR, remedy)

    def segment(self, first: int, last: int, columns: SegmentColumns) -> Iterator[Finding]:
        """Yield what is wrong with the segment of some commits."""
        key = self.subject.layout.segment(first, last)
        there = self._store.read(key)
        if sum(map(len, columns.lines)) > MOST_BYTES:
            if there is not None:
                said = "its commits are too long for a segment, and it is passed over"
                yield Finding("foreign", said, key, last, "remove it; the log holds them all")
            return
        try:
            if there is not None and is_segment_of(columns, there):
                return
            right = write_segment(columns.lines) if self.mends else b""
        except ValueError:
            # They cannot stand in one.
            return
        remedy = ((key, right),) if self.mends else ()
        if there is None:
            yield Finding("absent", "the segment is not there", key, last, REPAIR, remedy)
        else:
            said = "the segment is other than the log makes it"
            yield Finding("derived", said, key, last, REPAIR, remedy)

    def index(self, tile: Tile, right: KeyIndex) -> Iterator[Finding]:
        """Yield what is wrong with a key index and its cuts; all that is not there is one finding.

        Args:
            tile: The commits that it is of.
            right: The index that the log makes of them.
        """
        absent: list[tuple[str, bytes]] = []
        for key, part in self.subject.log.lookup.named.files(tile, right):
            there, body = self._store.read(key), part.to_bytes()
            if there is None:
                absent.append((key, body))
            elif there != body:
                said = "the key index is other than the log makes it"
                remedy = ((key, body),) if self.mends else ()
                yield Finding("derived", said, key, tile[1], REPAIR, remedy)
        if absent:
            yield self._absent(absent[0][0], tile, tuple(absent) if self.mends else ())

    def _absent(self, key: str, tile: Tile, remedy: tuple[tuple[str, bytes], ...]) -> Finding:
        return Finding("absent", "the key index is not there", key, tile[1], REPAIR, remedy)

    def runs(
        self, rows: Sequence[Placed], tiles_of: Sequence[tuple[Tile, slice]]
    ) -> Iterator[Finding]:
        """Yield what is wrong with some runs of file changes.

        Args:
            rows: All file changes of some commits.
            tiles_of: The tiles, each with the part of the rows that are its commits'.
        """
        if any(each.change.kind == "DELETE" for each in rows):
            for tile, part in tiles_of:
                yield from self.run(tile, [*Net(rows[part]).rows()])
            return
        # Nothing takes away another, so that each run is a part of one table.
        table = table_of(rows) if rows else None
        for tile, part in tiles_of:
            yield from self.run(
                tile,
                rows[part],
                None if table is None else table.slice(part.start, part.stop - part.start),
            )

    def run(
        self, tile: Tile, rows: Sequence[Placed], table: pa.Table | None = None
    ) -> Iterator[Finding]:
        """Yield what is wrong with a run of file changes.

        Args:
            tile: The run's.
            rows: Those that it is to have.
            table: The same as a table, where that is at hand.
        """
        key = self.subject.layout.file_run(*tile)
        there, check = self._store.read(key), self._store.read(key_of_check(key))
        if not rows:
            if check != NO_ROWS:
                empty = ((key_of_check(key), NO_ROWS),) if self.mends else ()
                yield self._run(key_of_check(key), tile, check is None, empty)
            return
        is_right = there is not None and holds_rows(there, rows, table)
        if not is_right or there is None or check != check_of(there):
            remedy = self._rows_remedy(key, rows) if self.mends else ()
            # Its writer puts the check there last.
            is_absent = there is None or (is_right and check is None)
            yield self._run(key, tile, is_absent, remedy)

    def _rows_remedy(self, key: str, rows: Sequence[Placed]) -> tuple[tuple[str, bytes], ...]:
        body = parquet_of(table_of(rows))
        right = ((key, body), (key_of_check(key), check_of(body)))
        return tuple(each for each in right if self._store.read(each[0]) != each[1])

    def _run(
        self,
        key: str,
        tile: Tile,
        is_absent: bool,  # noqa: FBT001 - the value that it is about
        remedy: tuple[tuple[str, bytes], ...],
    ) -> Finding:
        if is_absent:
            said = "the run of file changes is not there"
            return Finding("absent", said, key, tile[1], REPAIR, remedy)
        said = "the run of file changes is other than the log makes it"
        return Finding("derived", said, key, tile[1], REPAIR, remedy)

    def merged(
        self,
        tile: Tile,
        named: Pairs,
        rows: Sequence[Placed],
        wrong: AbstractSet[str],
    ) -> Iterator[Finding]:
        """Yield what is wrong with the indexes and the run of a tile that merges many.

        Args:
            tile: Its last commits are those of one segment.
            named: All (hash, version) of these.
            rows: Their net file changes.
            wrong: The keys of caches before it that are missing or do not fit.
        """
        parts = _parts(tile)
        yield from self._merged_index(tile, parts, named, wrong)
        if self.subject.has_files:
            yield from self._merged_run(tile, parts, rows, wrong)

    def _merged_index(
        self, tile: Tile, parts: Sequence[Tile], pairs: Pairs, wrong: AbstractSet[str]
    ) -> Iterator[Finding]:
        kind = self.subject.log.lookup.named
        files = (key for key, _ in kind.files(tile, KeyIndex()))
        if not self.mends and not any(map(self._store.exists, files)):
            yield self._absent(kind.file(tile), tile, ())
            return
        below = [KeyIndex.from_bytes(self._store.read(kind.file(each)) or b"") for each in parts]
        whole = [each for each in below if each is not None]
        if wrong.isdisjoint(map(kind.file, parts)) and len(whole) == len(parts):
            right = merged_index([*whole, KeyIndex.of(pairs)])
        else:
            right = self.from_log(wrong).lookup.named.made(tile)
        yield from self.index(tile, right)

    def from_log(self, wrong: AbstractSet[str]) -> Any:
        """Return the stream's log without some caches, so that they are made of what is right.

        Args:
            wrong: Their keys.
        """
        return self.subject.on(_Without(self._store, frozenset(wrong)))

    def _merged_run(
        self, tile: Tile, parts: Sequence[Tile], rows: Sequence[Placed], wrong: AbstractSet[str]
    ) -> Iterator[Finding]:
        key = self.subject.layout.file_run(*tile)
        there, check = self._store.read(key), self._store.read(key_of_check(key))
        if there is None and check is None and not self.mends:
            yield self._run(key, tile, is_absent=True, remedy=())
            return
        below = [self.subject.layout.file_run(*each) for each in parts]
        if wrong.isdisjoint(below) and wrong.isdisjoint(map(key_of_check, below)):
            tables = [each for each in map(self._table, below) if each is not None]
            if rows:
                tables.append(table_of(rows))
            if is_run_of(there, check, tables):
                return
            made: Any = Net(each for table in tables for each in _placed(table))
        else:
            log = self.from_log(wrong)
            made = Net(LiveFiles(log).built(*tile))
        yield from self.run(tile, list(made.rows()))

    def _table(self, key: str) -> pa.Table | None:
        """Return the rows of a run that was found to fit; None where it has none."""
        body = self._store.read(key)
        is_empty = self._store.read(key_of_check(key)) == NO_ROWS
        return None if is_empty or body is None else parsed(body)


def _is_of_another_fold(there: bytes, right: bytes) -> bool:
    try:
        found = msgspec.json.decode(there, type=_Envelope)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return found.fold_version != msgspec.json.decode(right, type=_Envelope).fold_version


def _is_of_another_log(there: bytes, head: Head[Any]) -> bool:
    """Whether a checkpoint is whole, of the head's version, and names another commit's digest."""
    found = named_digest(there, head.state.version)
    return found is not None and found != head.digest and not nearly(found, head.digest)


def _parts(tile: Tile) -> list[Tile]:
    """Return the tiles on the store that cover all of a merged one but its last segment."""
    covering = [each for each in tiles(tile[1] - SEGMENT_LENGTH) if each[0] >= tile[0]]
    return covering[::-1]


def holds_rows(body: bytes, rows: Sequence[Placed], table: pa.Table | None = None) -> bool:
    """Return whether the bytes of a run hold some rows, and those alone.

    Args:
        body: The bytes.
        rows: The rows.
        table: The same as a table, where that is at hand.
    """
    try:
        right = table_of(rows) if table is None else table
        return _is_equal(parsed(body, len(rows)), right) or rows_of(body) == list(rows)
    except (ValueError, UpgradeRequiredError):
        return False


def _is_equal(one: pa.Table, other: pa.Table) -> bool:
    return one.schema.equals(other.schema) and bool(one.equals(other))


def is_run_of(there: bytes | None, check: bytes | None, tables: Sequence[pa.Table]) -> bool:
    """Return whether a run is some tables, one after the other, where none of them takes away.

    Args:
        there: The run's bytes; None where there is none.
        check: Its check's, likewise.
        tables: What it merges, as they were found to fit.
    """
    import pyarrow as pa
    from pyarrow import compute

    if not tables:
        return check == NO_ROWS
    if there is None or check != check_of(there):
        return False
    if any(compute.any(compute.equal(each["kind"], "DELETE")).as_py() for each in tables):
        return False
    with suppress(ValueError, UpgradeRequiredError):
        return _is_equal(parsed(there), pa.concat_tables(tables))
    return False


def _placed(table: pa.Table) -> Iterator[Placed]:
    return iter(rows_of(parquet_of(table)))


def merged_index(parts: Sequence[KeyIndex]) -> KeyIndex:
    """Return the index of all that some indexes hold.

    Example:
        >>> merged_index([KeyIndex.of([(7, 1)]), KeyIndex.of([(3, 2)])]).hashes.tolist()
        [3, 7]
    """
    import pyarrow as pa
    from pyarrow import compute

    hashes, versions = array("Q"), array("Q")
    for each in parts:
        hashes.extend(each.hashes)
        versions.extend(each.versions)
    names = ["hash", "version"]
    table = pa.Table.from_arrays([unsigned(hashes), unsigned(versions)], names)
    order = compute.sort_indices(table, sort_keys=[(each, "ascending") for each in names])
    return KeyIndex(*(unsigned_of(each.take(order)) for each in table.columns))


@frozen
class _Without:
    """A store that some caches are hidden in, so that they are made again."""

    inner: Store
    hidden: frozenset[str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def read(self, key: str) -> bytes | None:
        return None if key in self.hidden else self.inner.read(key)
