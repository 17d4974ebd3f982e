"""TableHandle: reading one table, at any instant, and the way in for all that is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from ledger.commit_options import CommitOptions, request_of
from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.evolution.state import TableState
from ledger.evolution.stream import Landed
from ledger.evolution.table_intent import TableIntent
from ledger.evolution.table_record import TableStream
from ledger.evolution.touched import RecentlyTouched
from ledger.files.change_file import event_files, refuse_stale
from ledger.files.live import LiveFiles
from ledger.log.append import Appender
from ledger.log.request import Appended
from ledger.log.stream_log import StreamLog
from ledger.log.travel import at_timestamp, at_version, head_state
from ledger.model.errors import LedgerError, NotFoundError
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
from ledger.snapshot_search import schema_of_snapshot, schemas, state_at_snapshot
from ledger.stores import open_store
from ledger.table_at import TableAt
from ledger.table_past import TablePast
from ledger.table_setting import Plan, TableSetting


class TableHandle:
    """One table's log, read; `Table` is what a user holds."""

    def __init__(self, identifier: Identifier, path: str, setting: TableSetting) -> None:
        self.identifier = identifier
        self.path = path
        self._setting = setting
        # An external table's stream is in its own folder, which is a store of its own.
        external = "://" in path or path.startswith("/")
        store = open_store(path, setting.options_for(path)) if external else setting.store
        self.log: StreamLog[TableState, TableEvent] = StreamLog(
            store, "_ledger" if external else f"{path}/_ledger", TableStream()
        )
        self.live = LiveFiles(self.log)
        self.past = TablePast(self.log, self.live)
        self._touched = RecentlyTouched(partial(event_files, store, self.log.layout))
        self.log.remember(self.live.keys_of, self.live.save)
        self._appender: Appender[TableState, TableEvent] = Appender(
            self.log, setting.now_millis, setting.patience, refuse_stale
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
        return TableAt(state, state.schema, self)

    def _at_snapshot(self, head: TableState, snapshot_id: int) -> TableAt:
        if not head.reachable(snapshot_id):
            known = f"{head.earliest_snapshot_id} to {head.last_snapshot_id} and the tagged ones"
            raise NotFoundError(
                f"snapshot {snapshot_id} does not exist or was expired; there are {known}. "
                "Its commit can still be read by version="
            )
        state = state_at_snapshot(self.log, snapshot_id)
        return TableAt(state, schema_of_snapshot(self.log, state), self)

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

    def _commit(
        self, asked: Any, options: CommitOptions, plan: Plan, base: TableState | None = None
    ) -> Appended[TableState]:
        """Commit what a plan means on `base`: by default on the state that this handle holds."""
        request = request_of(options, asked=asked, default_author=self._setting.author)
        landed = self._appender.landed_before(request)
        if landed is not None:
            return landed
        head = self.log.head
        held = self.state if head is None or request.expect_version is not None else head.state
        held = base or held
        try:
            intent = self._intent(held, plan)
        except LedgerError:
            # What contradicts a stale state may be fine by now, or be this very request, landed.
            landed = self._appender.landed_before(request)
            if landed is not None:
                return landed
            newest = self.state
            if base is not None or newest.version == held.version:
                raise
            intent = self._intent(newest, plan)
        if isinstance(intent, Landed):
            return self._appender.acknowledge(intent.version, request)
        return self._appender.append(intent, request)

    def _intent(self, base: TableState, plan: Plan) -> TableIntent | Landed:
        changes = plan(base)
        if isinstance(changes, Landed):
            return changes
        return TableIntent(changes, base, self._touched, self.past)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.identifier)!r}, {self.location!r})"

