"""TableHandle: reading one table, at any instant, and the way in for all that is written."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ledger.commit_options import CommitOptions, request_of
from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.evolution.state import TableState
from ledger.evolution.stream import Landed
from ledger.evolution.table_record import TableStream
from ledger.files.change_file import event_files, refuse_stale
from ledger.files.live import LiveFiles
from ledger.locations import is_absolute, place_of
from ledger.log.append import Appender
from ledger.log.request import Appended
from ledger.log.stream_log import StreamLog
from ledger.log.travel import at_timestamp, at_version, head_state
from ledger.model import arguments as its
from ledger.model.arguments import takes
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

if TYPE_CHECKING:
    from ledger.evolution.table.intent import TableIntent
    from ledger.evolution.table.touched import RecentlyTouched


class TableHandle:
    """One table's log, read; `Table` is what a user holds."""

    def __init__(self, identifier: Identifier, path: str, setting: TableSetting) -> None:
        self.identifier = identifier
        self.path = path
        self._setting = setting
        # An external table's stream is in its own folder, which is a store of its own.
        external = is_absolute(path)
        store = open_store(path, setting.options_for(path)) if external else setting.store
        self.log: StreamLog[TableState, TableEvent] = StreamLog(
            store, "_ledger" if external else f"{path}/_ledger", TableStream(), setting.gate
        )
        self.live = LiveFiles(self.log)
        self.past = TablePast(self.log, self.live)
        self.log.remember(self._keys_of, self._save_caches)
        self._appender: Appender[TableState, TableEvent] = Appender(
            self.log, setting.now_millis, setting.patience, refuse_stale
        )

    @cached_property
    def _touched(self) -> RecentlyTouched:
        """What the last few commits touched, as all intents of this handle ask for it."""
        from ledger.evolution.table.touched import RecentlyTouched

        return RecentlyTouched(
            partial(event_files, self.log.store, self.log.layout), self.live.names.usual
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Elsewhere it is opened anew: threads and what was read stay here.
        return type(self), (self.identifier, self.path, self._setting)

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

    @takes(location=its.text)
    def may_fetch(self, location: str) -> bool:
        """Whether a data file may be read there: a log may name any place, and not all are its.

        On the ledger's own kind of storage, and on the table's, it may; elsewhere where whoever
        opened the ledger allowed it by name. A chain of file systems is no place.
        """
        place = place_of(location)
        own = {place_of(each).family for each in (self.ledger_url, self.location)}
        return "::" not in location and (
            place.family in own or any(each.holds(place) for each in self._setting.allowed)
        )

    @property
    def state(self) -> TableState:
        """The newest state, after reading what others appended since the last look."""
        self.log.refresh()
        return head_state(self.log)

    @takes(
        version=its.whole.or_none(),
        timestamp=its.moment.or_none(),
        snapshot=its.whole.or_none(),
        tag=its.text.or_none(),
    )
    def at(
        self,
        *,
        version: int | None = None,
        timestamp: datetime | int | str | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> TableAt:
        """Return the table as it was; nothing given: as it is.

        Args:
            version: Right after that commit.
            timestamp: As of a datetime or an ISO text with a time zone, or Unix milliseconds.
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

    @takes(first=its.whole, last=its.whole.or_none())
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

    @takes(commit_id=its.text)
    def find_commit(self, commit_id: str) -> Commit[TableEvent] | None:
        """Return the commit that holds what was asked under an id; None: it has not landed.

        Every id finds its commit, for ever: those that callers gave, and those that a
        `CommitUnknownError` or a note on an interruption named.
        """
        self.log.refresh()
        return self.log.find_commit(commit_id)

    def _commit(
        self, asked: Any, options: CommitOptions, plan: Plan, base: TableState | None = None
    ) -> Appended[TableState]:
        """Commit what a plan means on `base`: by default on the state that this handle holds."""
        request = request_of(options, asked=asked, default_author=self._setting.author)
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

    def _keys_of(self, commit: Commit[TableEvent]) -> Iterator[str]:
        self.past.meet(commit)
        return self.live.keys_of(commit)

    def _save_caches(self, version: int) -> None:
        self.live.save(version)
        self.past.save()

    def _intent(self, base: TableState, plan: Plan) -> TableIntent | Landed:
        load_what_commits_need()
        from ledger.evolution.table.intent import TableIntent

        self.past.keep([base.schema])
        changes = plan(base)
        if isinstance(changes, Landed):
            return changes
        return TableIntent(changes, base, self._touched, self.past)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.identifier)!r}, {self.location!r})"


_loaded: list[bool] = []


def load_what_commits_need() -> None:
    """Import what deciding takes, which reading does without.

    In a thread of its own: an import that a signal handler's exception interrupts leaves its module
    half there, or locked for every other thread.
    """
    if not _loaded:
        loading = threading.Thread(target=_load, name="ledger-imports", daemon=True)
        try:
            loading.start()
        except RuntimeError:
            # The interpreter is ending, or gives out no more threads.
            _load()
        else:
            loading.join()


def _load() -> None:
    import ledger.evolution.table.intent
    import ledger.evolution.wire.layout
    import ledger.snapshot_plan  # noqa: F401 - the calls that need them import them by name

    _loaded.append(True)


if hasattr(os, "register_at_fork"):
    # A child that is forked while another thread imports waits for that thread for ever.
    os.register_at_fork(before=load_what_commits_need)
