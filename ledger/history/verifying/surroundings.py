"""Verification of table creation, clocks, data files, sidecar files, removed commits.

Both streams record a table's creation and its drop: version 0 of the table's stream is a function
of the catalog's commit, and a table leaves the catalog only after its stream was sealed.

Of data files only footers are read, never rows. A file belongs to the table while a readable
snapshot contains it.

Missing commits are restored from segments if the hash chain confirms them: the commit after a gap
names the digest of the last missing one, that one the digest of the one before, and so on. Commits
after the log's end have to continue its last commit. Existing files are never rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen
from msgspec import UNSET

from ledger.decide.catalog_facts import first_table_commit
from ledger.events import TableEvent
from ledger.events.catalog import CatalogEvent
from ledger.events.commit import Commit, Outside
from ledger.events.table import TableCreated
from ledger.files.change_lists import commit_files
from ledger.files.footers import read_footer
from ledger.files.live import LiveFiles
from ledger.history.verifying.commits import Gap, list_log_folder
from ledger.history.verifying.subject import FROM_BACKUP, Finding, Subject
from ledger.history.verifying.verify import Verification
from ledger.locations import below
from ledger.log import personal_data
from ledger.log.clock import is_clock_far_off
from ledger.log.codec import digest, encode
from ledger.log.personal_data import FIELDS, decoded, key_of, newest, references
from ledger.log.replay import START
from ledger.log.request import Committed, LogFile, RetryPolicy, commit_file
from ledger.log.segments import read_segment, segment_of
from ledger.model.errors import (
    DamagedLogError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    UnsupportedError,
    UpgradeRequiredError,
)
from ledger.model.file_change import FileChange
from ledger.model.instant import TimestampInstant
from ledger.model.names import Identifier
from ledger.state.catalog_builder import LiveOrDroppedTables
from ledger.state.stream import StateLike
from ledger.state.table import TableState
from ledger.stores.file_access import FileAccess
from ledger.stores.object_errors import reading

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


@frozen
class CatalogedTable:
    """A table as recorded in the catalog's commits: creation, newest name and drop.

    Attributes:
        identifier: Its newest name.
        table_id: Its id, which renames do not change.
        path: Its location: relative to the ledger's root, absolute when external.
        created_version: The catalog's version that created it.
        digest: The digest of its version 0.
        dropped_millis: Time of its drop, Unix milliseconds; None if it is not dropped.
        is_purged: True if its files were deleted after its drop.
    """

    identifier: Identifier
    table_id: str
    path: str
    created_version: int
    digest: str
    dropped_millis: int | None = None
    is_purged: bool = False

    @property
    def is_dropped(self) -> bool:
        """True if the table was dropped."""
        return self.dropped_millis is not None

    @property
    def name(self) -> str:
        """The table's name for messages, with a mark if it was dropped."""
        return str(self.identifier) + (" (dropped)" if self.is_dropped else "")


class CatalogedTables:
    """Tables of a catalog, collected from its commits, including dropped ones.

    Tables that a copied ledger left to its original are excluded.
    """

    def __init__(self) -> None:
        self._tables = LiveOrDroppedTables()
        self._digests: dict[str, str] = {}

    @classmethod
    def of(cls, commits: Iterable[Commit[CatalogEvent]]) -> CatalogedTables:
        """Return the tables of the given commits of a catalog."""
        cataloged_tables = cls()
        for each in commits:
            cataloged_tables.learn(each)
        return cataloged_tables

    def __iter__(self) -> Iterator[CatalogedTable]:
        for each in self._tables:
            yield CatalogedTable(
                each.identifier,
                each.table_id,
                each.path,
                each.created_version,
                self._digests[each.table_id],
                each.dropped_millis,
                each.is_purged,
            )

    def learn(self, commit: Commit[CatalogEvent]) -> None:
        """Add the catalog's next commit."""
        self._tables.learn(commit)
        for transaction in commit.transactions:
            for event in transaction.events:
                if isinstance(event, TableCreated):
                    first = first_table_commit(commit, event, transaction)
                    self._digests[event.table_id] = digest(encode(first))

    def named(self, identifier: Identifier) -> CatalogedTable | None:
        """Return the current table of a name; None if there is none."""
        known = (each for each in self if each.dropped_millis is None)
        return next((each for each in known if each.identifier == identifier), None)


def catalog_contradictions(
    cataloged: CatalogedTable,
    subject: Subject[TableState, TableEvent],
    verified: Verification[TableState, TableEvent],
) -> Iterator[Finding]:
    """Yield the contradictions between a table's verified stream and the catalog."""
    key = subject.layout.commit(0)
    if verified.version < 0:
        yield Finding(
            "damage",
            f"the catalog's version {cataloged.created_version} created the table, but it has no "
            "stream",
            key,
            0,
            "if its creation was interrupted, open it: that finishes it; if this ledger is a copy "
            "of some tables, run in the original: lakeledger replay TABLE --into-ledger URL; else "
            "restore its folder from a backup",
        )
    elif verified.first_digest is not None and verified.first_digest != cataloged.digest:
        yield Finding(
            "damage",
            f"it is not the version 0 of table {cataloged.table_id}, which the catalog's version "
            f"{cataloged.created_version} contains",
            key,
            0,
            f"another table's stream may be there, or one of the two was changed: {FROM_BACKUP}",
        )
    elif verified.state is not None:
        yield from _drop_state_findings(cataloged, subject, verified.state)


def _drop_state_findings(
    cataloged: CatalogedTable, subject: Subject[TableState, TableEvent], state: TableState
) -> Iterator[Finding]:
    key = subject.layout.commit(state.version)
    if state.dropped and cataloged.dropped_millis is None:
        yield Finding(
            "unfinished",
            "the table's stream is sealed, but the catalog names it: its drop, or its restoration, "
            "was interrupted",
            key,
            state.version,
            "open the table: that completes it",
        )
    elif not state.dropped and cataloged.dropped_millis is not None:
        yield Finding(
            "damage",
            "the catalog says that the table was dropped, but its stream is not sealed: its end "
            "is missing",
            subject.layout.commit(state.version + 1),
            state.version + 1,
        )


def ahead(subject: Subject[StateLike, object], state: StateLike, now_millis: int) -> Finding | None:
    """Return a finding if a stream's newest commit is ahead of the clock and not corrected.

    Args:
        subject: The stream.
        state: Its newest state.
        now_millis: The current time of the reference clock, Unix milliseconds.
    """
    lead = state.effective_millis - now_millis
    if lead < 0 or not is_clock_far_off(lead):
        return None
    name = subject.name
    return Finding(
        "clock",
        f"the newest commit is of {TimestampInstant(state.effective_millis)}, {lead // 1000} s "
        "ahead of this machine's clock: one of the two is wrong, and reading by timestamp goes by "
        "the one that is ahead",
        subject.layout.commit(state.version),
        state.version,
        "set this machine's clock, or, if it is right, check: lakeledger correct-clock "
        f"{name} --dry-run",
    )


_AT_ONCE: Final = 16
_BATCH: Final = 256


@frozen
class DataFiles:
    """Verification of the data files of one table.

    Attributes:
        live: The lookup of the table's live files.
        at_snapshot: Returns the state right after a snapshot.
        engine_files: Yields the files of snapshots, by their ids, that only engines' manifests
            list.
        location: The table's absolute URL.
        access: Permission to open the files that the log names.
    """

    live: LiveFiles
    at_snapshot: Callable[[int], TableState]
    engine_files: Callable[[TableState, Sequence[int]], Iterable[FileChange]]
    location: str
    access: FileAccess

    def problems(
        self, state: TableState, on_progress: Callable[[int, int], None]
    ) -> Iterator[Finding]:
        """Yield the findings about the files of all readable snapshots.

        Args:
            state: The table's newest state.
            on_progress: Called with the number of files checked, and of all.
        """
        files = self._logged_files_by_path(state)
        lists_files, usual = state.origin.lists_files, self.live.names.usual
        listed_elsewhere = [each for each in state.snapshot_ids if not lists_files(each)]
        try:
            for each in self.engine_files(state, listed_elsewhere):
                files.setdefault(usual(each.path), each)
        except LedgerError as error:
            yield Finding("data", error.message, self.location, None, FROM_BACKUP)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="data-files") as pool:
            done = 0
            for some in _split_into_batches(list(files.values()), _BATCH):
                for found in pool.map(self._check_for_problem, some):
                    if found is not None:
                        yield found
                done += len(some)
                on_progress(done, len(files))

    def _logged_files_by_path(self, state: TableState) -> dict[str, FileChange]:
        """Return the files of all readable snapshots whose files the log lists, by path."""
        live = self.live
        found: dict[str, FileChange] = {}
        single, run = state.logged_snapshot_ids
        for each in (*single, *run[:1]):
            found = live.live_files_at_state(self.at_snapshot(each)) | found
        if run:
            first = self.at_snapshot(run[0]).version
            for placed in live.snapshot_changes(run[0], run[-1], first, state.version):
                if placed.change.kind == "ADD":
                    found.setdefault(placed.change.path, placed.change)
        for branch in state.branches.values():
            for placed in live.branch_changes(branch, state.version):
                if placed.change.kind == "ADD":
                    found.setdefault(placed.change.path, placed.change)
        return found

    def _check_for_problem(self, file: FileChange) -> Finding | None:
        """Return the finding about one file; None if it is right."""
        url = below(self.location, file.stored_at)
        said = self._describe_damage(file, url)
        return None if said is None else Finding("data", said, file.path, None, FROM_BACKUP)

    def _describe_damage(self, file: FileChange, url: str) -> str | None:
        try:
            return _describe_difference(file, *self.access.open(url))
        except NotFoundError:
            return "the data file is missing"
        except (InvalidInputError, UnsupportedError) as error:
            return f"the data file cannot be read: {error.message}"


def _describe_difference(file: FileChange, filesystem: AbstractFileSystem, path: str) -> str | None:
    """Return a description of the difference between a file and the log; None if they agree.

    Raises:
        NotFoundError: The file does not exist.
        InvalidInputError: The file should be a Parquet file, and is not.
        StoreError: The file system does not answer.
    """
    with reading("the data file"):
        info = filesystem.info(path)
    if info.get("type") == "directory":
        return "the data file is a folder"
    said, found = file.file_size_in_bytes, info["size"]
    if found != said:
        return f"the data file has {found} bytes, and is recorded with {said}"
    if file.format.lower() != "parquet":
        return None
    rows = read_footer(path, filesystem=filesystem, info=info).record_count
    if rows != file.record_count:
        return f"the data file has {rows} rows, and is recorded with {file.record_count}"
    return None


def _split_into_batches(files: list[FileChange], length: int) -> Iterable[list[FileChange]]:
    return (files[start : start + length] for start in range(0, len(files), length))


_Lines = list[tuple[int, bytes]]
"""Versions with the bytes of their commit files."""


def restore_missing_commits(
    subject: Subject[Any, Any], retry_policy: RetryPolicy
) -> Iterator[Finding]:
    """Restore missing commits of a log from its segments; yield a finding for each interval.

    Args:
        subject: The stream.
        retry_policy: The retry policy for a store that does not answer.

    Raises:
        OSError: The store failed; a retry continues.
        StoreError: The store rejects writes.
    """
    found = list_log_folder(subject)
    for gap in reversed(found.gaps):
        for lines in _commits_inside_gap(subject, gap):
            yield from _write_missing_commits(subject, lines, retry_policy)
    for lines in _commits_behind_end(subject, found.last):
        yield from _write_missing_commits(subject, lines, retry_policy)


def _commits_inside_gap(subject: Subject[Any, Any], gap: Gap) -> Iterator[_Lines]:
    """Yield the confirmed commits of a gap, segment by segment, the newest first."""
    first, last = gap
    behind = subject.store.read(subject.layout.commit(last + 1))
    wanted = None if behind is None else _parent_digest(subject, behind, last + 1)
    while wanted is not None and last >= first:
        span = segment_of(last)
        held = _segment_lines(subject, span)
        fitting: _Lines = []
        for version in range(last, max(first, span[0]) - 1, -1) if held else ():
            line = held[version - span[0]]
            if digest(line) != wanted:
                break
            fitting.append((version, line))
            wanted = _parent_digest(subject, line, version)
        yield fitting[::-1]
        if len(fitting) < last - max(first, span[0]) + 1:
            return
        last = span[0] - 1


def _commits_behind_end(subject: Subject[Any, Any], last: int) -> Iterator[_Lines]:
    """Yield the commits that continue the log after its end, segment by segment."""
    newest = subject.store.read(subject.layout.commit(last)) if last >= 0 else b""
    if newest is None:
        return
    before = digest(newest) if newest else ""
    while True:
        span = segment_of(last + 1)
        held = _segment_lines(subject, span)
        fitting: _Lines = []
        for version in range(last + 1, span[1] + 1) if held else ():
            line = held[version - span[0]]
            if _parent_digest(subject, line, version) != before:
                break
            fitting.append((version, line))
            before = digest(line)
        yield fitting
        if not fitting or fitting[-1][0] < span[1]:
            return
        last = span[1]


def _segment_lines(subject: Subject[Any, Any], span: tuple[int, int]) -> Sequence[bytes]:
    """Return the lines of a segment; empty if it is missing or unusable."""
    body = subject.store.read(subject.layout.segment(*span))
    try:
        return [] if body is None else read_segment(body, *span)
    except ValueError:
        # The comparison of caches reports an unusable segment.
        return []


def _parent_digest(subject: Subject[Any, Any], line: bytes, version: int) -> str | None:
    """Return a commit's parent digest, "" without one; None if the line is not that version."""
    try:
        commit = subject.log.codec.decode(line, subject.layout.commit(version))
    except (DamagedLogError, UpgradeRequiredError):
        return None
    if commit.version != version:
        return None
    return "" if commit.parent is UNSET else commit.parent


def _write_missing_commits(
    subject: Subject[Any, Any], lines: _Lines, retry_policy: RetryPolicy
) -> Iterator[Finding]:
    """Write missing commits; yield a finding unless other writers had restored all of them."""
    mine = [
        version
        for version, line in lines
        if commit_file(
            subject.store, LogFile(subject.layout.commit(version), line, version), retry_policy
        )
        == Committed(version)
    ]
    if mine:
        said = "the commit was missing, and was restored from a segment"
        if len(mine) > 1:
            said = (
                f"{len(mine):,} commits up to version {mine[-1]} were missing, and were restored "
                "from a segment"
            )
        key = subject.layout.commit(mine[0])
        yield Finding("damage", said, key, mine[0], "find out what removed them")


_SIDECARS_AT_ONCE: Final = 256


def lost_sidecar_values(subject: Subject[Any, Any], last: int) -> Iterator[Finding]:
    """Yield the sidecar values that are missing without an erasure, or were changed.

    Args:
        subject: A verified stream that keeps personal values in sidecar files.
        last: The version of its newest commit.
    """
    store = subject.log.personal.store
    named = _named_sidecars(subject, last)
    while some := list(islice(named, _SIDECARS_AT_ONCE)):
        keys = [key for _, key, _ in some]
        for (version, key, outside), body in zip(some, newest(store, keys), strict=True):
            problem = "is missing" if body is None else _check_for_problem(outside, body, key)
            if problem:
                said = f"the file of author, message and properties of version {version} {problem}"
                yield Finding("damage", said, key, version, FROM_BACKUP)
    yield from _lost_column_values(subject, last)


def _lost_column_values(subject: Subject[Any, Any], last: int) -> Iterator[Finding]:
    store = subject.log.personal.store
    known: set[str] = set()
    for read in subject.log.reader.after(START, last) if subject.has_files else ():
        files = commit_files(subject.store, subject.layout, read.commit)
        keys = sorted({personal_data.key_of_values(each) for each in references(files)} - known)
        known.update(keys)
        for key, body in zip(keys, newest(store, keys), strict=True):
            problem = "is missing" if body is None else _column_values_problem(body, key)
            if problem:
                said = f"the file of personal columns of version {read.commit.version} {problem}"
                yield Finding("damage", said, key, read.commit.version, FROM_BACKUP)


def _column_values_problem(body: bytes, key: str) -> str:
    try:
        kept = personal_data.decode_values(body, key)
    except DamagedLogError:
        return "is torn"
    is_same = all(each.digest == digest for digest, each in kept.values.items())
    return "" if is_same else "was changed"


def _named_sidecars(subject: Subject[Any, Any], last: int) -> Iterator[tuple[int, str, Outside]]:
    for read in subject.log.reader.after(START, last):
        for transaction in read.commit.transactions:
            outside = transaction.outside
            if outside is not UNSET and (key := key_of(outside)) is not None:
                yield read.commit.version, key, outside


def _check_for_problem(outside: Outside, body: bytes, key: str) -> str:
    try:
        values = decoded(body, key)
    except DamagedLogError:
        return "is torn"
    for each in FIELDS:
        value = values.get(each)
        if value is not None and value.digest(each) != getattr(outside, each):
            return "was changed"
    return ""
