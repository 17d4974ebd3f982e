"""TablePast: the older schemas and files that format rules need.

The field ids that names referred to are needed at every change of columns, and for every file that
uses an older schema's names. So a handle keeps them in memory, and a new handle reads them from one
file next to the log: a cache, which records its schemas, and may be stale, damaged or missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from ledger.decide.format_rules import Binding, BoundNames
from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshots import BranchCommitted, SnapshotEvent, snapshot_events
from ledger.files.live import LiveFiles
from ledger.history.older import TableLog, schemas, schemas_by_id, state_at_snapshot
from ledger.log.checkpoints import Head
from ledger.log.codec import digest
from ledger.log.time_travel import head_state
from ledger.model.errors import LedgerError
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.observing.telemetry import warn
from ledger.state.columns import PastColumns
from ledger.state.stream import DecisionPostponed
from ledger.state.table import TableState

_FORMAT = 1
_MOST_KEPT = 16
"""Maximum number of older schemas cached whole; for the others only names are cached."""

_LOGGER = "ledger.table"

OpenDataFile = Callable[[str], "tuple[AbstractFileSystem, str]"]
"""Function from a data file's path in the log to its file system and the path in it."""


class NamesCacheContent(Struct, frozen=True, rename="camel"):
    """Content of the names cache: the field ids that column names had in older schemas.

    Attributes:
        version: The table's version when it was written.
        head: The digest of that version's commit file.
        schema_ids: The schemas that it covers.
        meant: The field ids that each name referred to.
    """

    version: int
    head: str
    schema_ids: list[int]
    meant: list[tuple[Binding, tuple[int, ...]]]


class _NamesCacheFile(Struct, frozen=True):
    format: int
    check: str
    names: Raw


_DECODER = msgspec.json.Decoder(_NamesCacheFile)
_NAMES_DECODER = msgspec.json.Decoder(NamesCacheContent)

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

    from ledger.decide.format_rules import MemberMisfit, ReadableReach


class TablePast:
    """Older schemas and files of a table, read lazily from its log.

    Thread-safe without a lock: a signal handler that commits may have interrupted its own thread
    in here, which would deadlock.

    Args:
        log: The table's log.
        live: Its live files.
        open_data_file: Function that opens its data files.
    """

    def __init__(self, log: TableLog, live: LiveFiles, open_data_file: OpenDataFile) -> None:
        self.open_data_file = open_data_file
        self._log = log
        self._live = live
        self._schemas: dict[int, Schema] = {}
        self._names = BoundNames()
        self._saved: frozenset[int] | None = None
        self._covered: tuple[int, ...] = ()
        self._met: dict[int, int] = {}

    def schemas(self, schema_ids: Collection[int]) -> list[Schema]:
        """Return the schemas with the given ids, oldest first."""
        found = {each: self._schemas[each] for each in schema_ids if each in self._schemas}
        missing = [each for each in schema_ids if each not in found]
        if missing:
            if max(missing) > head_state(self._log).schema.id:
                raise DecisionPostponed
            found |= schemas_by_id(self._log, missing)
            self.cache_schemas(found[each] for each in missing[-_MOST_KEPT:])
        return [found[each] for each in sorted(schema_ids)]

    def cache_schemas(self, schemas: Iterable[Schema]) -> None:
        """Cache schemas that are loaded already; writers that lose a race need the previous one."""
        for each in schemas:
            self._schemas.setdefault(each.id, each)
        if len(self._schemas) <= _MOST_KEPT:
            return
        for oldest in list(self._schemas)[:-_MOST_KEPT]:
            self._schemas.pop(oldest, None)

    def names(self, state: TableState, more: Collection[int]) -> BoundNames:
        """Return at least the names of `state.named_schema_ids` and of more schemas."""
        # Newer schemas have higher ids, so the ids covered before are usually a prefix.
        named, covered = state.named_schema_ids, len(self._covered)
        fresh = named[covered:] if named[:covered] == self._covered else named
        missing = {*fresh, *more} - self._names.schema_ids
        if missing and self._saved is None:
            self._load_names_cache(state)
            missing -= self._names.schema_ids
        if state.schema.id in missing:
            self._bind_schema_names([state.schema])
            missing.discard(state.schema.id)
        if missing:
            self._bind_schema_names(self.schemas(missing))
        self._covered = named
        return self._names

    def _bind_schema_names(self, schemas: Collection[Schema]) -> None:
        for each in schemas:
            self._names.add(each)

    def _load_names_cache(self, state: TableState) -> None:
        body = self._log.store.read(self._log.layout.names)
        found = None if body is None else decode_names_cache(body)
        if found is None or found.version > state.version or not self._is_cache_of_this_log(found):
            self._saved = frozenset()
            return
        self._names.bind(found.meant, found.schema_ids)
        self._saved = frozenset(found.schema_ids)

    def _is_cache_of_this_log(self, found: NamesCacheContent) -> bool:
        # A log that was restored from an older copy continues with other commits.
        commit = self._log.store.read(self._log.layout.commit(found.version))
        return commit is not None and digest(commit) == found.head

    def save(self) -> None:
        """Write the names cache for handles that open the table later.

        Best effort: names that are not in the cache are read from the log.
        """
        head = self._log.head
        if head is None:
            return
        state, named = head.state, head.state.named_schema_ids
        from ledger.decide.format_rules import binds_names
        from ledger.formats import INSTALLED

        if len(named) < 2 or not binds_names(state, INSTALLED):  # noqa: PLR2004
            # The current schema is loaded anyway.
            return
        try:
            names = self.names(state, ())
            if self._saved is None:
                self._load_names_cache(state)
            if not self._saved or not self._saved.issuperset(named):
                self._log.store.replace(self._log.layout.names, _encode_names_cache(head, names))
                self._saved = frozenset(names.schema_ids)
        except (OSError, LedgerError, DecisionPostponed) as error:
            warn(_LOGGER, "names_skipped", version=state.version, error=str(error))

    def record_files_without_ids(self, commit: Commit[TableEvent]) -> None:
        """Record the files without field ids of a commit that was committed or read."""
        for event in snapshot_events(commit):
            for each in event.named_schema_ids:
                self._met[each] = max(event.snapshot_id, self._met.get(each, 0))

    def holds(self, state: TableState, schema_id: int) -> bool:
        """Return True if a readable snapshot certainly has a file that uses a schema's names."""
        if state.earliest_snapshot_id == 1 and not state.last_branch_number:
            # No snapshot was expired, and no branch was ever created.
            return schema_id in state.named_schema_ids
        return self._met.get(schema_id, 0) >= state.earliest_snapshot_id

    def live(self, state: TableState) -> Collection[FileChange]:
        """Return the live files of a state, with their personal values."""
        if state.snapshot is None:
            return ()
        if state.version > head_state(self._log).version:
            raise DecisionPostponed
        # In the form that the formats' rules get.
        return self._log.personal.columns.rendered(self._live.live_files_at_state(state).values())

    def reach(self, state: TableState) -> ReadableReach:
        """Return the schemas and files in the snapshots readable at a state, tagged ones included.

        Reads every file that is live in one of them.
        """
        from ledger.decide.format_rules import ReadableReach
        from ledger.decide.snapshots import is_read_by_name

        if state.snapshot is None:
            return ReadableReach()
        if state.version > head_state(self._log).version:
            raise DecisionPostponed
        single, run = state.logged_snapshot_ids
        starts = [self._state_at(state, each) for each in (*single, *run[:1])]
        first = starts[-1] if run else state
        files: list[FileChange] = []
        for each in starts:
            files += self._live.live_files_at_state(each).values()
        later = self._live.snapshot_changes(
            run.start + 1, run.stop - 1, first.version, state.version
        )
        files += (each.change for each in later if each.change.kind == "ADD")
        files = self._log.personal.columns.rendered(files)
        written = {each.snapshot.schema_id for each in starts if each.snapshot is not None}
        for branch in state.branches.values():
            # All files added since its base: an expired prefix of them cannot be distinguished.
            own = self._live.branch_changes(branch, state.version)
            files += (each.change for each in own if each.change.kind == "ADD")
            written |= self._schema_ids_of_snapshots(
                branch.since_version, state.version, BranchCommitted
            )
        return ReadableReach(
            files=tuple(files),
            schema_ids=frozenset(
                written.union(
                    (each.schema_id for each in files),
                    self._schema_ids_of_snapshots(first.version, state.version),
                )
            ),
            named_schema_ids=frozenset(each.schema_id for each in files if is_read_by_name(each)),
            spec_ids=frozenset(each.spec_id for each in files),
        )

    def columns(self, state: TableState) -> PastColumns:
        """Return every column that the table had up to a state."""
        now, is_ordered = state.schema, state.origin.has_ordered_ids
        if is_ordered and now.id - 1 > head_state(self._log).schema.id:
            raise DecisionPostponed
        older = iter(()) if is_ordered and not now.id else schemas(self._log)
        before = (each for each in older if each.id < now.id or not is_ordered)

        def lacks(schema_id: int) -> bool:
            # If ids are unordered, any row may be newer.
            written = state.snapshot
            return written is not None and (not is_ordered or written.schema_id > schema_id)

        return PastColumns(chain([now], before), lacks)

    def member_misfits(
        self, files: Collection[FileChange], schemas: Mapping[int, Schema]
    ) -> Iterator[MemberMisfit]:
        """Yield structs in Parquet files whose members are not as the files' schemas list them.

        Reads the footers of the files that have structs; a file that does not exist is left out.
        """
        from ledger.files.footers import existing_footers
        from ledger.files.struct_members import has_structs, member_misfits

        fields = {key: each.fields for key, each in schemas.items() if has_structs(each.fields)}
        wanted = {
            each.path: fields[each.schema_id]
            for each in files
            if each.content == "data" and each.format == "parquet" and each.schema_id in fields
        }
        for path, footer in existing_footers(wanted, self.open_data_file):
            yield from member_misfits(path, footer.columns, wanted[path])

    def _state_at(self, state: TableState, snapshot_id: int) -> TableState:
        if snapshot_id == state.last_snapshot_id:
            return state
        return state_at_snapshot(self._log, snapshot_id)

    def _schema_ids_of_snapshots(
        self, first: int, last: int, kind: Any = SnapshotEvent
    ) -> set[int]:
        return {
            event.schema_id
            for read in (self._log.commits_via_cache(first, last) if first <= last else ())
            for transaction in read.commit.transactions
            for event in transaction.events
            if isinstance(event, kind)
        }


def build_names_cache(log: TableLog, schema_ids: Iterable[int], head: Head[TableState]) -> bytes:
    """Return the bytes of the names cache, computed from the log.

    Args:
        log: The table's log.
        schema_ids: The schemas to cover.
        head: The table's head when the cache was written.

    Raises:
        NotFoundError: There never was such a schema.
    """
    names = BoundNames()
    for each in schemas_by_id(log, schema_ids).values():
        names.add(each)
    return _encode_names_cache(head, names)


def _encode_names_cache(head: Head[TableState], names: BoundNames) -> bytes:
    meant = sorted(names.meant(), key=str)
    record = msgspec.json.encode(
        NamesCacheContent(head.state.version, head.digest, sorted(names.schema_ids), meant)
    )
    check = hashlib.sha256(record).hexdigest()
    return msgspec.json.encode(_NamesCacheFile(_FORMAT, check, Raw(record)))


def decode_names_cache(body: bytes) -> NamesCacheContent | None:
    """Return the decoded names cache; None if it is damaged, or of a newer version."""
    try:
        file = _DECODER.decode(body)
        record = bytes(file.names)
        if file.format != _FORMAT or hashlib.sha256(record).hexdigest() != file.check:
            return None
        return _NAMES_DECODER.decode(record)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
