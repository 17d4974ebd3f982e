"""Verification of caches against the log, and discovery of missing segments.

Small caches, of up to a segment's commits, are compared with caches built from the commits. A
larger one merges smaller ones, which were compared before: it has to equal the merge of those that
are right, and of the log for those that are not.

A cache records the version that it covers, and may be behind the checkpoints: a writer was killed
between two caches, or is of an older version.

Files without field ids are resolved by the cache of older schemas, so a wrong one could reject
valid files, or give a name two meanings.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from attrs import define, field, frozen

from ledger.files.change_lists import read_changes_table, table_to_parquet
from ledger.files.live import LiveFiles
from ledger.files.runs import (
    NO_ROWS,
    Net,
    Placed,
    check_file_content,
    check_file_key,
    read_run_rows,
    run_rows_to_table,
)
from ledger.history.past import build_names_cache, decode_names_cache
from ledger.history.verifying.commits import is_nearly_equal_digest
from ledger.history.verifying.subject import FROM_BACKUP, REPAIR, Finding, Subject
from ledger.log.checkpoints import Head, read_commit_digest
from ledger.log.codec import digest
from ledger.log.key_index import FilterLayer, KeyFilter, KeyIndex, KeyLookup, filter_layers, tiles
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
"""First and last version of a key index or a run."""


def last_version_of_name(name: str) -> int | None:
    """Return the version in a cache's file name, the last one of an interval; None: no cache.

    Example:
        >>> last_version_of_name("00000000000000000100.json"), last_version_of_name("notes.txt")
        (100, None)
    """
    found = _checkpoint_of(name) or _filter_of(name)
    if found:
        return int(found[1])
    piece = _piece_of(name)
    return int(piece[2]) if piece else None


def tile_ending_at(boundary: int) -> Tile:
    """Return the interval of the key index and the run that end at a checkpoint's version."""
    return next(tiles(boundary))


def is_merged_tile(tile: Tile) -> bool:
    """Return True if an interval has more commits than a segment."""
    return tile[1] - tile[0] > SEGMENT_LENGTH


class _CheckpointEnvelope(msgspec.Struct, rename="camel"):
    """The part of a checkpoint that determines which versions of the ledger can read it."""

    fold_version: int


@frozen
class Caches(Generic[S, E]):
    """Comparison of a stream's caches with the log.

    Attributes:
        subject: The stream.
        mends: True if findings shall contain the bytes that restore a cache.
    """

    subject: Subject[S, E]
    mends: bool = True

    @property
    def _store(self) -> Store:
        return self.subject.store

    def checkpoint(self, head: Head[S]) -> Iterator[Finding]:
        """Yield the findings about a checkpoint, given the replayed state."""
        version = head.state.version
        key = self.subject.layout.checkpoint(version)
        files = self.subject.log.checkpoints.files(head)
        there, right = self._store.read(key), files[key]
        is_page_wrong = any(
            self._store.read(page) != body for page, body in files.items() if page != key
        )
        if there == right and not is_page_wrong:
            return
        remedy = (*files.items(),) if self.mends else ()
        if there is None:
            yield Finding("absent", "the checkpoint is missing", key, version, REPAIR, remedy)
        elif _is_of_other_fold_version(there, right):
            said = "another version of lakeledger wrote the checkpoint; this one ignores it"
            yield Finding("absent", said, key, version, "nothing needs to be done")
        elif _is_of_another_log(there, head):
            said = "the checkpoint was written for another commit of that version"
            yield Finding("damage", said, key, version, f"the log was changed: {FROM_BACKUP}")
        else:
            said = "the checkpoint differs from a replay of the log"
            yield Finding("derived", said, key, version, REPAIR, remedy)

    def segment(self, first: int, last: int, lines: Sequence[bytes]) -> Iterator[Finding]:
        """Yield the findings about a segment, given the files of its commits."""
        key = self.subject.layout.segment(first, last)
        there = self._store.read(key)
        if sum(map(len, lines)) > MOST_BYTES:
            if there is not None:
                said = "its commits are too long for a segment, so readers ignore it"
                yield Finding("foreign", said, key, last, "remove it; the log has all of them")
            return
        try:
            right = write_segment(lines)
        except ValueError:
            # The commits are too long for a segment.
            return
        remedy = ((key, right),) if self.mends else ()
        if there is None:
            yield Finding("absent", "the segment is missing", key, last, REPAIR, remedy)
        elif not is_same_segment(right, there):
            said = "the segment differs from the log"
            yield Finding("derived", said, key, last, REPAIR, remedy)

    def index(self, tile: Tile, right: KeyIndex) -> Iterator[Finding]:
        """Yield the findings about a key index and its cuts; a wholly missing one is one finding.

        Args:
            tile: The interval of its commits.
            right: The index built from the log.
        """
        absent: list[tuple[str, bytes]] = []
        for key, part in self.subject.log.lookup.named.files(tile, right):
            there, body = self._store.read(key), part.to_bytes()
            if there is None:
                absent.append((key, body))
            elif there != body:
                said = "the key index differs from the log"
                remedy = ((key, body),) if self.mends else ()
                yield Finding("derived", said, key, tile[1], REPAIR, remedy)
        if absent:
            yield self._missing_index_finding(
                absent[0][0], tile, tuple(absent) if self.mends else ()
            )

    def _missing_index_finding(
        self, key: str, tile: Tile, remedy: tuple[tuple[str, bytes], ...]
    ) -> Finding:
        return Finding("absent", "the key index is missing", key, tile[1], REPAIR, remedy)

    def runs(
        self, rows: Sequence[Placed], tiles_of: Sequence[tuple[Tile, slice]]
    ) -> Iterator[Finding]:
        """Yield the findings about runs of file changes.

        Args:
            rows: All file changes of the commits.
            tiles_of: The intervals, each with its slice of the rows.
        """
        if any(each.change.kind == "DELETE" for each in rows):
            for tile, part in tiles_of:
                yield from self.run(tile, [*Net(rows[part]).rows()])
            return
        # No file is added or removed twice: each run is a slice of one table.
        table = run_rows_to_table(rows) if rows else None
        for tile, part in tiles_of:
            yield from self.run(
                tile,
                rows[part],
                None if table is None else table.slice(part.start, part.stop - part.start),
            )

    def run(
        self, tile: Tile, rows: Sequence[Placed], table: pa.Table | None = None
    ) -> Iterator[Finding]:
        """Yield the findings about a run of file changes.

        Args:
            tile: The run's interval.
            rows: The expected rows.
            table: The same rows as an Arrow table, if it exists already.
        """
        key = self.subject.layout.file_run(*tile)
        there, check = self._store.read(key), self._store.read(check_file_key(key))
        if not rows:
            if check != NO_ROWS:
                empty = ((check_file_key(key), NO_ROWS),) if self.mends else ()
                yield self._run_finding(check_file_key(key), tile, check is None, empty)
            return
        is_right = there is not None and is_run_of_rows(there, rows, table)
        if not is_right or there is None or check != check_file_content(there):
            remedy = self._run_remedy(key, rows) if self.mends else ()
            # The check is written last.
            is_absent = there is None or (is_right and check is None)
            yield self._run_finding(key, tile, is_absent, remedy)

    def _run_remedy(self, key: str, rows: Sequence[Placed]) -> tuple[tuple[str, bytes], ...]:
        body = table_to_parquet(run_rows_to_table(rows))
        right = ((key, body), (check_file_key(key), check_file_content(body)))
        return tuple(each for each in right if self._store.read(each[0]) != each[1])

    def _run_finding(
        self,
        key: str,
        tile: Tile,
        is_absent: bool,  # noqa: FBT001 - the value that it is about
        remedy: tuple[tuple[str, bytes], ...],
    ) -> Finding:
        if is_absent:
            said = "the run of file changes is missing"
            return Finding("absent", said, key, tile[1], REPAIR, remedy)
        said = "the run of file changes differs from the log"
        return Finding("derived", said, key, tile[1], REPAIR, remedy)

    def merged(self, tile: Tile, wrong: AbstractSet[str]) -> Iterator[Finding]:
        """Yield the findings about the index and the run of an interval that merges smaller ones.

        They are rebuilt from the smaller ones, and from the log where those are wrong.

        Args:
            tile: The interval.
            wrong: The keys of earlier caches that are missing or wrong.
        """
        log = self.log_without_caches(wrong)
        named = self.subject.log.lookup.named
        files = [key for key, _ in named.files(tile, KeyIndex())]
        if self.mends or any(map(self._store.exists, files)):
            yield from self.index(tile, log.lookup.named.made(tile))
        else:
            yield self._missing_index_finding(files[0], tile, ())
        if not self.subject.has_files:
            return
        key = self.subject.layout.file_run(*tile)
        if self.mends or self._store.exists(key) or self._store.exists(check_file_key(key)):
            yield from self.run(tile, [*Net(LiveFiles(log).build_interval_changes(*tile)).rows()])
        else:
            yield self._run_finding(key, tile, is_absent=True, remedy=())

    def log_without_caches(self, wrong: AbstractSet[str]) -> Any:
        """Return the stream's log with wrong caches hidden, so that it rebuilds them.

        Args:
            wrong: The keys of the caches to hide.
        """
        return self.subject.on(_StoreHidingCaches(self._store, frozenset(wrong)))


def _is_of_other_fold_version(there: bytes, right: bytes) -> bool:
    try:
        found = msgspec.json.decode(there, type=_CheckpointEnvelope)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return found.fold_version != msgspec.json.decode(right, type=_CheckpointEnvelope).fold_version


def _is_of_another_log(there: bytes, head: Head[Any]) -> bool:
    """Return True if a valid checkpoint of the head's version names another commit's digest."""
    found = read_commit_digest(there, head.state.version)
    return (
        found is not None
        and found != head.digest
        and not is_nearly_equal_digest(found, head.digest)
    )


def is_run_of_rows(body: bytes, rows: Sequence[Placed], table: pa.Table | None = None) -> bool:
    """Return whether the bytes of a run contain exactly the given rows.

    Args:
        body: The bytes.
        rows: The rows.
        table: The same rows as an Arrow table, if it exists already.
    """
    try:
        right = run_rows_to_table(rows) if table is None else table
        return _are_tables_equal(read_changes_table(body, len(rows)), right) or read_run_rows(
            body
        ) == list(rows)
    except (ValueError, UpgradeRequiredError):
        return False


def _are_tables_equal(one: pa.Table, other: pa.Table) -> bool:
    return one.schema.equals(other.schema) and bool(one.equals(other))


@frozen
class _StoreHidingCaches:
    """Store that hides some caches, so that they are rebuilt."""

    inner: Store
    hidden: frozenset[str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def read(self, key: str) -> bytes | None:
        return None if key in self.hidden else self.inner.read(key)


def key_filter_findings(
    caches: Caches[Any, Any], boundary: int, wrong: AbstractSet[str]
) -> Iterator[Finding]:
    """Yield the findings about a stream's key filters.

    Args:
        caches: The stream's caches, whose indexes were compared.
        boundary: The version of the newest checkpoint reached.
        wrong: The keys of caches that are missing or wrong.
    """
    log: StreamLog[Any, Any] = caches.log_without_caches(wrong) if wrong else caches.subject.log
    for layer in filter_layers(boundary):
        yield from _KeyFilterComparison(caches, log.lookup, layer).findings()


@define
class _KeyFilterComparison:
    """Comparison of one layer's key filter, and its cuts, with the expected ones."""

    caches: Caches[Any, Any]
    lookup: KeyLookup[Any]
    layer: FilterLayer
    _made: dict[int, dict[str, KeyFilter]] = field(factory=dict)

    def findings(self) -> Iterator[Finding]:
        """Yield the findings; missing filters are one finding."""
        store = self.caches.subject.store
        nothing = KeyFilter(0, array("I"))
        there = {key: store.read(key) for key, _ in self.lookup.filters.files(self.layer, nothing)}
        if not self.caches.mends and set(there.values()) == {None}:
            yield self._late_filter_finding([*there])
            return
        late: list[str] = []
        for key, body in there.items():
            found = None if body is None else KeyFilter.from_bytes(body)
            if body is None or (found is not None and self._is_filter_behind(key, found)):
                late.append(key)
            elif found != self._expected_filters(self.layer.last)[
                key
            ] and not self._is_filter_ahead(found):
                said = "the key filter differs from the log"
                yield Finding(
                    "derived", said, key, self.layer.last, REPAIR, self._rebuilt_filters([key])
                )
        if late:
            yield self._late_filter_finding(late)

    def _expected_filters(self, last: int) -> dict[str, KeyFilter]:
        """Return the expected filter of the layer and its cuts up to a version, by key."""
        if last not in self._made:
            layer = self.layer._replace(last=last)
            whole = self.lookup.named.build_filter(layer)
            self._made[last] = dict(self.lookup.filters.files(layer, whole))
        return self._made[last]

    def _is_filter_behind(self, key: str, found: KeyFilter) -> bool:
        is_shorter = self.layer.first <= found.last < self.layer.last
        is_at_checkpoint = not found.last % CHECKPOINT_INTERVAL
        return is_shorter and is_at_checkpoint and found == self._expected_filters(found.last)[key]

    def _is_filter_ahead(self, found: KeyFilter | None) -> bool:
        """Return True if a filter covers commits appended after the verification began."""
        subject = self.caches.subject
        return (
            found is not None
            and self.layer.last < found.last < 2**63
            and subject.store.exists(subject.layout.commit(found.last))
        )

    def _late_filter_finding(self, keys: Sequence[str]) -> Finding:
        said = "a key filter is missing, or is behind the checkpoints"
        return Finding(
            "absent", said, keys[0], self.layer.last, REPAIR, self._rebuilt_filters(keys)
        )

    def _rebuilt_filters(self, keys: Sequence[str]) -> tuple[tuple[str, bytes], ...]:
        if not self.caches.mends:
            return ()
        right = self._expected_filters(self.layer.last)
        return tuple((each, right[each].to_bytes()) for each in keys)


def names_cache_findings(caches: Caches[Any, Any], wrong: AbstractSet[str]) -> Iterator[Finding]:
    """Yield the findings about a table's names cache, which is optional.

    Args:
        caches: The caches of a stream whose log was verified.
        wrong: The keys of caches that are missing or wrong.
    """
    store, layout = caches.subject.store, caches.subject.layout
    key = layout.names
    body = store.read(key)
    if body is None:
        return
    found = decode_names_cache(body)
    commit = None if found is None else store.read(layout.commit(found.version))
    if found is not None and commit is None:
        said = f"this was written for version {found.version}, which the log does not have"
        yield Finding("damage", said, key, found.version)
        return
    if found is not None and commit is not None and digest(commit) != found.head:
        said = "the names were written for another commit of that version"
        advice = f"the log was changed: {FROM_BACKUP}"
        yield Finding("damage", said, key, found.version, advice)
        return
    log = caches.log_without_caches(wrong)
    log.refresh()
    head = log.head if found is None else Head(at_version(log, found.version), found.head)
    try:
        ids = head.state.named_schema_ids if found is None else found.schema_ids
        right = build_names_cache(log, ids, head)
    except LedgerError:
        # The file claims schemas that never existed.
        right = build_names_cache(log, head.state.named_schema_ids, head)
    if right != body:
        said = "the cached names of older schemas differ from the log"
        remedy = ((key, right),) if caches.mends else ()
        yield Finding("derived", said, key, head.state.version, REPAIR, remedy)


_segment_of = re.compile(r"(\d{20})-(\d{20})\.parquet").fullmatch


def last_version_of_segment(name: str) -> int | None:
    """Return the last version of a segment, by its name below `segments/`; None: no segment.

    Example:
        >>> (
        ...     last_version_of_segment(f"{801:020d}-{1600:020d}.parquet"),
        ...     last_version_of_segment("notes.txt"),
        ... )
        (1600, None)
    """
    found = _segment_of(name)
    if found is None or (span := (int(found[1]), int(found[2]))) != segment_of(span[1]):
        return None
    return span[1]


@frozen
class MissingSegment:
    """A missing segment, built from the log.

    Attributes:
        path: Its key, below the store's root.
        first: Its first version.
        last: Its last version.
        body: The bytes of the segment.
    """

    path: str
    first: int
    last: int
    body: bytes = field(repr=False)


def missing_segments(subject: Subject[Any, Any]) -> Iterator[MissingSegment]:
    """Yield the missing segments of a stream, oldest first.

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
            yield MissingSegment(path, first, last, body)
        first, last = segment_of(last + 1)
