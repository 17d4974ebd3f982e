"""Verification of caches against the log, and segments that are missing.

Small caches, of up to a segment's commits, are compared with what the commits at hand make. A
larger one merges smaller ones, which were compared before: it has to be made of those that fit, and
of the log where one does not.

A cache says itself how far it goes, and is right as far as that: a writer that was killed between
two of them, or is of an older version, leaves them behind the checkpoints.

Readers without field ids are answered by the cache of older schemas, so that a wrong one would
reject what is right, or let a name mean two things.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from attrs import define, field, frozen

from ledger.files.change_lists import parquet_of, parsed
from ledger.files.live import LiveFiles
from ledger.files.runs import NO_ROWS, Net, Placed, check_of, key_of_check, rows_of, table_of
from ledger.history.past import kept_names, names_made
from ledger.history.verifying.commits import nearly
from ledger.history.verifying.subject import FROM_BACKUP, REPAIR, Finding, Subject
from ledger.log.checkpoints import Head, named_digest
from ledger.log.codec import digest
from ledger.log.key_index import KeyFilter, KeyIndex, Layer, Lookup, layers, tiles
from ledger.log.layout import CHECKPOINT_INTERVAL, SEGMENT_LENGTH
from ledger.log.segments import MOST_BYTES, is_same_segment, segment_of, write_segment
from ledger.log.stream_log import StreamLog
from ledger.log.time_travel import at_version
from ledger.model.errors import LedgerError, UpgradeRequiredError
from ledger.state.stream import StateLike
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

    def segment(self, first: int, last: int, lines: Sequence[bytes]) -> Iterator[Finding]:
        """Yield what is wrong with the segment of some commits, given as their files."""
        key = self.subject.layout.segment(first, last)
        there = self._store.read(key)
        if sum(map(len, lines)) > MOST_BYTES:
            if there is not None:
                said = "its commits are too long for a segment, and it is passed over"
                yield Finding("foreign", said, key, last, "remove it; the log holds them all")
            return
        try:
            right = write_segment(lines)
        except ValueError:
            # They cannot stand in one.
            return
        remedy = ((key, right),) if self.mends else ()
        if there is None:
            yield Finding("absent", "the segment is not there", key, last, REPAIR, remedy)
        elif not is_same_segment(right, there):
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

    def merged(self, tile: Tile, wrong: AbstractSet[str]) -> Iterator[Finding]:
        """Yield what is wrong with the index and the run of a tile that merges smaller ones.

        They are built again of the smaller ones, and of the log where those do not fit.

        Args:
            tile: The tile.
            wrong: The keys of caches before it that are missing or do not fit.
        """
        log = self.from_log(wrong)
        named = self.subject.log.lookup.named
        files = [key for key, _ in named.files(tile, KeyIndex())]
        if self.mends or any(map(self._store.exists, files)):
            yield from self.index(tile, log.lookup.named.made(tile))
        else:
            yield self._absent(files[0], tile, ())
        if not self.subject.has_files:
            return
        key = self.subject.layout.file_run(*tile)
        if self.mends or self._store.exists(key) or self._store.exists(key_of_check(key)):
            yield from self.run(tile, [*Net(LiveFiles(log).built(*tile)).rows()])
        else:
            yield self._run(key, tile, is_absent=True, remedy=())

    def from_log(self, wrong: AbstractSet[str]) -> Any:
        """Return the stream's log without some caches, so that they are made of what is right.

        Args:
            wrong: Their keys.
        """
        return self.subject.on(_Without(self._store, frozenset(wrong)))


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


@frozen
class _Without:
    """A store that some caches are hidden in, so that they are made again."""

    inner: Store
    hidden: frozenset[str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def read(self, key: str) -> bytes | None:
        return None if key in self.hidden else self.inner.read(key)


def filter_findings(
    caches: Caches[Any, Any], boundary: int, wrong: AbstractSet[str]
) -> Iterator[Finding]:
    """Yield what is wrong with a stream's filters.

    Args:
        caches: The stream's, whose indexes were compared.
        boundary: The newest checkpoint's version that was reached.
        wrong: The keys of caches that are missing or do not fit.
    """
    log: StreamLog[Any, Any] = caches.from_log(wrong) if wrong else caches.subject.log
    for layer in layers(boundary):
        yield from _Comparison(caches, log.lookup, layer).findings()


@define
class _Comparison:
    """One layer's filter and its cuts beside what they should be."""

    caches: Caches[Any, Any]
    lookup: Lookup[Any]
    layer: Layer
    _made: dict[int, dict[str, KeyFilter]] = field(factory=dict)

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong; all that is not there is one finding."""
        store = self.caches.subject.store
        nothing = KeyFilter(0, array("I"))
        there = {key: store.read(key) for key, _ in self.lookup.filters.files(self.layer, nothing)}
        if not self.caches.mends and set(there.values()) == {None}:
            yield self._late([*there])
            return
        late: list[str] = []
        for key, body in there.items():
            found = None if body is None else KeyFilter.from_bytes(body)
            if body is None or (found is not None and self._is_behind(key, found)):
                late.append(key)
            elif found != self._right(self.layer.last)[key] and not self._is_ahead(found):
                said = "the filter of keys is other than the log makes it"
                yield Finding("derived", said, key, self.layer.last, REPAIR, self._anew([key]))
        if late:
            yield self._late(late)

    def _right(self, last: int) -> dict[str, KeyFilter]:
        """Return the layer's filter and its cuts, by their keys, as they go up to a version."""
        if last not in self._made:
            layer = self.layer._replace(last=last)
            whole = self.lookup.named.filter_made(layer)
            self._made[last] = dict(self.lookup.filters.files(layer, whole))
        return self._made[last]

    def _is_behind(self, key: str, found: KeyFilter) -> bool:
        is_shorter = self.layer.first <= found.last < self.layer.last
        is_at_checkpoint = not found.last % CHECKPOINT_INTERVAL
        return is_shorter and is_at_checkpoint and found == self._right(found.last)[key]

    def _is_ahead(self, found: KeyFilter | None) -> bool:
        """Whether somebody has gone on since, so that a filter is of what was not looked at."""
        subject = self.caches.subject
        return (
            found is not None
            and self.layer.last < found.last < 2**63
            and subject.store.exists(subject.layout.commit(found.last))
        )

    def _late(self, keys: Sequence[str]) -> Finding:
        said = "a filter of keys is not there, or does not go as far as the checkpoints"
        return Finding("absent", said, keys[0], self.layer.last, REPAIR, self._anew(keys))

    def _anew(self, keys: Sequence[str]) -> tuple[tuple[str, bytes], ...]:
        if not self.caches.mends:
            return ()
        right = self._right(self.layer.last)
        return tuple((each, right[each].to_bytes()) for each in keys)


def name_findings(caches: Caches[Any, Any], wrong: AbstractSet[str]) -> Iterator[Finding]:
    """Yield what is wrong with the file of a table's names; that there is none is fine.

    Args:
        caches: The stream's, whose log was found to fit.
        wrong: The keys of caches that are missing or do not fit.
    """
    store, layout = caches.subject.store, caches.subject.layout
    key = layout.names
    body = store.read(key)
    if body is None:
        return
    found = kept_names(body)
    commit = None if found is None else store.read(layout.commit(found.version))
    if found is not None and commit is None:
        said = f"this was made from version {found.version}, which the log does not have"
        yield Finding("damage", said, key, found.version)
        return
    if found is not None and commit is not None and digest(commit) != found.head:
        said = "the names were made from another commit of that version"
        advice = f"the log was changed: {FROM_BACKUP}"
        yield Finding("damage", said, key, found.version, advice)
        return
    log = caches.from_log(wrong)
    log.refresh()
    head = log.head if found is None else Head(at_version(log, found.version), found.head)
    try:
        ids = head.state.named_schema_ids if found is None else found.schema_ids
        right = names_made(log, ids, head)
    except LedgerError:
        # It says that it is of schemas that there never were.
        right = names_made(log, head.state.named_schema_ids, head)
    if right != body:
        said = "what the names of older schemas meant is other than the log makes it"
        remedy = ((key, right),) if caches.mends else ()
        yield Finding("derived", said, key, head.state.version, REPAIR, remedy)


_segment_of = re.compile(r"(\d{20})-(\d{20})\.parquet").fullmatch


def sealed_last(name: str) -> int | None:
    """Return the version that a segment ends at, by its name below `segments/`; None: no segment.

    Example:
        >>> sealed_last(f"{801:020d}-{1600:020d}.parquet"), sealed_last("notes.txt")
        (1600, None)
    """
    found = _segment_of(name)
    if found is None or (span := (int(found[1]), int(found[2]))) != segment_of(span[1]):
        return None
    return span[1]


@frozen
class Unsealed:
    """A segment that is not there, and that its log makes.

    Attributes:
        path: Where it belongs, below the store's root.
        first: Its first version.
        last: Its last version.
        body: The segment.
    """

    path: str
    first: int
    last: int
    body: bytes = field(repr=False)


def unsealed(subject: Subject[Any, Any]) -> Iterator[Unsealed]:
    """Yield the segments that a stream lacks, oldest first.

    Raises:
        DamagedLogError: The newest commits cannot be read.
    """
    log, layout = subject.log, subject.layout
    folder = layout.segment(0, 0).rpartition("/")[0]
    there = set(subject.store.walk(folder))
    state = log.refresh()
    first, last = segment_of(0)
    while state is not None and last <= state.version:
        path = layout.segment(first, last)
        body = None if path in there else log.segments.made(first, last)
        if body is not None:
            yield Unsealed(path, first, last, body)
        first, last = segment_of(last + 1)
