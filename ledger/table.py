"""Table: the handle that a user holds on one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from ledger.commit_options import CommitOptions, fresh_id, request_of
from ledger.events import SchemaChange, TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshot_events import ChangesReference, RolledBack, SnapshotCommitted
from ledger.evolution.change_json import as_change
from ledger.evolution.state import TableState
from ledger.evolution.stream import Landed
from ledger.evolution.table_changes import (
    CreateTag,
    DeleteTag,
    DropTable,
    ExpireSnapshots,
    Isolation,
    ReplaceTag,
    Rollback,
    TableChange,
)
from ledger.evolution.table_intent import TableIntent
from ledger.evolution.table_record import TableStream
from ledger.files.change_file import INLINE_LIMIT, event_files, store_changes
from ledger.files.live import LiveFiles
from ledger.files.register import data_files
from ledger.log.append import Appender
from ledger.log.request import Appended
from ledger.log.stream_log import StreamLog
from ledger.log.travel import at_timestamp, at_version, head_state
from ledger.model.errors import InvalidInputError, LedgerError, NotFoundError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.identifier import Identifier
from ledger.model.instant import (
    Instant,
    SnapshotInstant,
    TagInstant,
    TimestampInstant,
    VersionInstant,
    instant_of,
)
from ledger.model.schema import Schema
from ledger.plugins import PROJECTIONS, load
from ledger.snapshot_plan import SnapshotPlan
from ledger.snapshot_search import schema_of_snapshot, schemas, state_at_snapshot
from ledger.stores import open_store
from ledger.table_at import TableAt
from ledger.table_setting import Plan, Progress, TableSetting, no_progress


class Table:
    """One table: append to it, read it at any instant.

    A handle stays with its table through renames, and is safe to share between threads.
    """

    def __init__(self, identifier: Identifier, path: str, setting: TableSetting) -> None:
        self.identifier = identifier
        self.path = path
        self._setting = setting
        # An external table's stream is in its own folder, which is a store of its own.
        external = "://" in path or path.startswith("/")
        store = open_store(path, setting.storage_options) if external else setting.store
        self.log: StreamLog[TableState, TableEvent] = StreamLog(
            store, "_ledger" if external else f"{path}/_ledger", TableStream()
        )
        self.live = LiveFiles(self.log)
        self.log.remember(self.live.keys_of, self.live.save)
        self._appender: Appender[TableState, TableEvent] = Appender(
            self.log, setting.now_millis, setting.patience
        )

    @property
    def location(self) -> str:
        """The absolute URL of the table's folder."""
        root = self.log.layout.root.removesuffix("_ledger").rstrip("/")
        return f"{self.log.store.url}/{root}" if root else self.log.store.url

    @property
    def ledger_url(self) -> str:
        """The root of the ledger that the table is in."""
        return self._setting.store.url

    @property
    def storage_options(self) -> Mapping[str, Any]:
        """What fsspec takes for files beside the log."""
        return self._setting.storage_options

    @property
    def state(self) -> TableState:
        """The newest state, after reading what others appended since the last look."""
        self.log.refresh()
        return head_state(self.log)

    # Reading

    def at(
        self,
        *,
        version: int | None = None,
        timestamp: datetime | int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> TableAt:
        """Return the table as it was; nothing given: as it is.

        Args:
            version: Right after that commit.
            timestamp: As of a datetime with a time zone, or Unix milliseconds.
            snapshot: A snapshot's id; the schema is the snapshot's.
            tag: A tag's name; the schema is the snapshot's.

        Raises:
            NotFoundError: It does not exist, or was expired; the message says what does.
            InvalidInputError: More than one was given.
        """
        head = self.state
        instant = instant_of(version=version, timestamp=timestamp, snapshot=snapshot, tag=tag)
        return self._at(head, instant)

    def _at(self, head: TableState, instant: Instant | None) -> TableAt:
        match instant:
            case None:
                state = head
            case VersionInstant(version=version):
                state = at_version(self.log, version)
            case TimestampInstant(timestamp_millis=moment):
                state = at_timestamp(self.log, moment)
            case TagInstant(tag_name=name):
                return self._at_snapshot(head, head.tag(name).snapshot_id)
            case SnapshotInstant(snapshot_id=snapshot_id):
                return self._at_snapshot(head, snapshot_id)
        return TableAt(state, state.schema, self.live)

    def _at_snapshot(self, head: TableState, snapshot_id: int) -> TableAt:
        if not head.reachable(snapshot_id):
            known = f"{head.earliest_snapshot_id} to {head.last_snapshot_id} and the tagged ones"
            raise NotFoundError(
                f"snapshot {snapshot_id} does not exist or was expired; there are {known}. "
                "Its commit can still be read by version="
            )
        state = state_at_snapshot(self.log, snapshot_id)
        return TableAt(state, schema_of_snapshot(self.log, state), self.live)

    def schemas(self) -> Iterator[Schema]:
        """Yield every schema that the table ever had, newest first."""
        self.log.refresh()
        return schemas(self.log)

    def events(self, first: int = 0, last: int | None = None) -> Iterator[Commit[TableEvent]]:
        """Yield the commits `first` to `last` (the head when None), with all their events.

        Raises:
            NotFoundError: `last` does not exist yet.
        """
        head = self.state.version
        end = head if last is None else last
        if end > head:
            raise NotFoundError(f"version {end} does not exist; the newest is {head}")
        return (read.commit for read in self.log.commits(first, end))

    def project(self, format_name: str, *, version: int | None = None) -> int:
        """Bring a format's files, such as "paimon", up to a version; return where they stand."""
        return int(load(PROJECTIONS, format_name)(self, version=version))

    # Writing

    def alter(
        self,
        changes: Sequence[SchemaChange | Mapping[str, Any]],
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Change the schema, options or comment; all changes land or none.

        Concurrent changes to other things land beside these. Column paths follow their columns
        when somebody else renames them meanwhile.

        Raises:
            InvalidChangeError: A rule forbids a change; nothing was written.
            CommitConflictError: Somebody else set the same thing to another value meanwhile.
            CommitUnknownError: The store gave no answer.
        """
        asked = tuple(map(as_change, changes))
        if not asked:
            raise InvalidInputError(f"{self.identifier}: no changes were given; name at least one")
        return self._commit(["alter", asked], options, lambda _: asked)

    def append(
        self, files: Iterable[FileChange], **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Commit a snapshot that adds files.

        Raises:
            InvalidChangeError: A file is live already, or does not fit the table.
        """
        return self.commit_snapshot(SnapshotPlan("APPEND", tuple(files)), **options)

    def add_files(
        self,
        paths: Iterable[str],
        on_progress: Progress = no_progress,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Register existing Parquet files as one snapshot; their footers are read, not their rows.

        Args:
            paths: Files, folders or patterns.
            on_progress: Told how many footers were read, of how many.
            options: See CommitOptions.

        Raises:
            InvalidChangeError: A file's columns, field ids or partition do not fit the table.
        """
        return self.append(self.data_files(paths, on_progress), **options)

    def data_files(
        self, paths: Iterable[str], on_progress: Progress = no_progress
    ) -> tuple[FileChange, ...]:
        """Return what `add_files` would register, without registering it."""
        return data_files(
            list(paths),
            state=self.state,
            history=schemas(self.log),
            location=self.location,
            storage_options=dict(self._setting.storage_options),
            on_progress=on_progress,
        )

    def delete_files(
        self, paths: Iterable[str], **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Commit a snapshot that takes live files out of the table; nothing is deleted on disk.

        Raises:
            InvalidChangeError: A path is not live.
        """
        return self.commit_snapshot(SnapshotPlan("OVERWRITE", delete=tuple(paths)), **options)

    def overwrite(
        self,
        files: Iterable[FileChange],
        *,
        where: Mapping[str, PartitionValue] | None = None,
        isolation: Isolation = "serializable",
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Commit a snapshot that replaces what is in some partitions, or everything.

        Args:
            files: What is there afterwards.
            where: Values of partition keys; every live file that has them goes. None: all files.
            isolation: With "serializable" a file that somebody else adds there meanwhile is a
                conflict; with "snapshot" it stays.
            options: See CommitOptions.
        """
        plan = SnapshotPlan("OVERWRITE", tuple(files), where=where or {}, isolation=isolation)
        return self.commit_snapshot(plan, **options)

    def commit_snapshot(
        self, plan: SnapshotPlan, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Commit a snapshot of any kind.

        Raises:
            InvalidChangeError: A file to add is live, or one to delete is not.
        """

        def planned(head: TableState) -> list[TableChange] | Landed:
            known = self._known_snapshot(plan)
            return known or [plan.on(head, self.live, self._outsourced)]

        return self._commit(["snapshot", plan], options, planned)

    def _outsourced(self, files: Sequence[FileChange]) -> ChangesReference | None:
        if len(files) <= INLINE_LIMIT:
            return None
        return store_changes(self.log.store, self.log.layout, files)

    def _known_snapshot(self, plan: SnapshotPlan) -> Landed | None:
        if plan.key is None:
            return None
        self.log.refresh()
        for version in self.log.last_named(plan.key):
            if plan.key in self.live.keys_of(self.log.commit_at(version)):
                return Landed(version)
        return None

    def rollback(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Put a snapshot's contents back as a new snapshot; history stays as it was.

        The schema stays the current one. A snapshot that others commit meanwhile is a conflict.

        Raises:
            NotFoundError: The snapshot or tag does not exist, or was expired without a tag.
        """
        if (snapshot is None) == (tag is None):
            raise InvalidInputError("rollback takes one of snapshot= and tag=")

        def plan(head: TableState) -> list[TableChange]:
            then = self._at(head, instant_of(snapshot=snapshot, tag=tag))
            files = self.live.difference(head.version, then.version)
            target = then.state.last_snapshot_id
            return [
                Rollback(
                    target_snapshot_id=target,
                    target_tag_name=tag,
                    commit_user=fresh_id(),
                    files=files,
                    reference=self._outsourced(files),
                )
            ]

        return self._commit(["rollback", snapshot, tag], options, plan)

    def create_tag(
        self,
        name: str,
        *,
        snapshot: int | None = None,
        time_retained_millis: int | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Name a snapshot (the newest when None); a tagged one outlives expiry."""
        change = CreateTag(name, snapshot, time_retained_millis)
        return self._commit(["createTag", change], options, lambda _: [change])

    def replace_tag(
        self,
        name: str,
        *,
        snapshot: int | None = None,
        time_retained_millis: int | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Let an existing tag name another snapshot (the newest when None)."""
        change = ReplaceTag(name, snapshot, time_retained_millis)
        return self._commit(["replaceTag", change], options, lambda _: [change])

    def delete_tag(self, name: str, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Take a tag away; its snapshot stays unless it was expired."""
        return self._commit(["deleteTag", name], options, lambda _: [DeleteTag(name)])

    def expire_snapshots(
        self, *, before: int, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Expire the snapshots with ids below `before`; tagged ones stay, no file is deleted."""
        return self._commit(
            ["expireSnapshots", before], options, lambda _: [ExpireSnapshots(before)]
        )

    def seal(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Write the last event of the table's stream; `Ledger.drop_table` does the rest."""
        end = DropTable(self.identifier.database, self.identifier.name)
        return self._commit(["dropTable"], options, lambda _: [end])

    def _commit(self, asked: Any, options: CommitOptions, plan: Plan) -> Appended[TableState]:
        request = request_of(options, asked=asked, default_author=self._setting.author)
        landed = self._appender.landed_before(request)
        if landed is not None:
            return landed
        head = self.log.head
        held = self.state if head is None or request.expect_version is not None else head.state
        try:
            intent = self._intent(held, plan)
        except LedgerError:
            # What contradicts a stale state may be fine by now, or be this very request, landed.
            landed = self._appender.landed_before(request)
            if landed is not None:
                return landed
            newest = self.state
            if newest.version == held.version:
                raise
            intent = self._intent(newest, plan)
        if isinstance(intent, Landed):
            return self._appender.acknowledge(intent.version, request)
        return self._appender.append(intent, request)

    def _intent(self, base: TableState, plan: Plan) -> TableIntent | Landed:
        changes = plan(base)
        if isinstance(changes, Landed):
            return changes
        return TableIntent(changes, base, self._files_of)

    def _files_of(self, event: SnapshotCommitted | RolledBack) -> Iterable[FileChange]:
        return event_files(self.log.store, self.log.layout, event)

    def __repr__(self) -> str:
        return f"Table({str(self.identifier)!r}, {self.location!r})"
