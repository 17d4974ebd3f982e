"""Partitions of tables whose engines commit through Paimon's protocol: read, create, drop, mark.

A handle keeps the index of each line at the newest version that it read, and folds only new commits
into it.

Source: Paimon's RESTCatalog and RESTCatalogServer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Literal, TypeVar, Unpack
from weakref import WeakKeyDictionary

import msgspec
from attrs import Factory, define, frozen
from msgspec import UNSET

from ledger.decide.recorded_values import check_recorded_values
from ledger.decide.table_options import MarkedColumns
from ledger.events import TableEvent
from ledger.events.partitions import PartitionAction, PartitionChange, PartitionsUpdated
from ledger.files.partition_lists import (
    is_long_partition_list,
    partition_changes,
    store_long_partition_list,
)
from ledger.log.request import CommitOptions
from ledger.log.time_travel import at_version
from ledger.model.credentials import find_credentials
from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidChangeError,
    NotFoundError,
    UnsupportedError,
)
from ledger.model.messages import excerpt
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.snapshots import MAIN
from ledger.state.stream import DecisionPostponed
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.paimon.branch_lines import line_state
from projections.paimon.branch_starts import BranchStart, BranchStarts
from projections.paimon.partition_changes import (
    PartitionSpec,
    ReportedStatistics,
    SpecReader,
    observed_change,
    partitions_event,
)
from projections.paimon.partition_counts import manifest_partitions
from projections.paimon.partitions import PartitionIndex

T = TypeVar("T")
_MOST_LISTS: Final = 20


class PartitionExistsError(AlreadyExistsError):
    """A partition exists already; `partition` is its name."""

    kind = "PARTITION_ALREADY_EXIST"

    def __init__(self, partition: str) -> None:
        super().__init__(f"partition {excerpt(partition)} exists already; nothing was created")
        self.partition = partition


class PartitionMissingError(NotFoundError):
    """A partition does not exist; `partition` is its name."""

    kind = "PARTITION_NOT_EXIST"

    def __init__(self, partition: str) -> None:
        super().__init__(f"partition {excerpt(partition)} does not exist; nothing was dropped")
        self.partition = partition


@define
class _Lines:
    """The indexes of a table's lines.

    Attributes:
        lock: Held while they are read or brought up to date.
        newest: By the beginning of the branch; None is the main line.
        starts: The beginnings of the branches.
    """

    lock: threading.RLock = Factory(threading.RLock)
    newest: dict[BranchStart | None, PartitionIndex] = Factory(dict)
    starts: BranchStarts = Factory(BranchStarts)

    def start_of(self, table: TableHandle, line: str | None, version: int) -> BranchStart | None:
        """Return the beginning of a branch that exists at a version; None of the main line."""
        if line is None:
            return None
        starts = self.starts if self.starts.version <= version else BranchStarts()
        for each in table.log.commits(starts.version + 1, version):
            starts.apply(each.commit)
        if starts is self.starts:
            there = {None, *starts.by_name.values()}
            self.newest = {key: each for key, each in self.newest.items() if key in there}
        return starts.by_name[line]


_lines: WeakKeyDictionary[TableHandle, _Lines] = WeakKeyDictionary()
_new_lines = threading.Lock()


def read_partitions(
    table: TableHandle,
    read: Callable[[PartitionIndex], T],
    *,
    branch: str | None = None,
    version: int | None = None,
) -> T:
    """Return what a function reads from a table's partitions.

    The log is folded once for a handle, then only new commits are.

    Args:
        table: The table.
        read: The function; it must not keep the index, which changes later.
        branch: The branch; None for the main line.
        version: The version of the table; None for the newest. An older one than the newest that
            was read costs a fold of the log.

    Raises:
        NotFoundError: The branch or the version does not exist, or a manifest is missing.
        UnsupportedError: The table's partitions are not those of engines of Paimon.
        DamagedLogError: A commit, change file or manifest is damaged.
    """
    return read_line(table, lambda index, _: read(index), branch=branch, version=version)


def read_line(
    table: TableHandle,
    read: Callable[[PartitionIndex, TableState], T],
    *,
    branch: str | None = None,
    version: int | None = None,
) -> T:
    """Return what a function reads from a line's partitions and its state at the same version.

    Args, errors: As of `read_partitions`.
    """
    line = None if branch == MAIN else branch
    head = table.log.head
    if version is None or head is None or head.state.version < version:
        at_least = table.state.version
    else:
        at_least = head.state.version
    with _new_lines:
        lines = _lines.setdefault(table, _Lines())
    with lines.lock:
        if version is None:
            # Another thread may have read newer commits meanwhile.
            version = max(at_least, *(each.version for each in lines.newest.values()), -1)
        state = at_version(table.log, version)
        check_engine_partitions(state)
        seen = line_state(table, state, line)
        start, keys = lines.start_of(table, line, version), seen.schema.partition_keys
        newest = lines.newest.get(start)
        if newest is None or newest.version > version:
            index = PartitionIndex.of_line(keys, start)
        else:
            # Is not kept if a commit cannot be folded: it may have been folded in part.
            index = lines.newest.pop(start)
        index.keys = keys
        _fold(table, index, version)
        if newest is None or newest.version <= version:
            lines.newest[start] = index
        if index.needs_manifests:
            snapshot_id = 0 if seen.snapshot is None else seen.snapshot.id
            index.rebase(manifest_partitions(table, seen), snapshot_id)
        return read(index, seen)


def check_engine_partitions(state: TableState) -> None:
    """Check that engines of Paimon list a table's files, in manifests or in their commits.

    Raises:
        UnsupportedError: The ledger, or another format, lists them.
    """
    origin = state.origin
    if not isinstance(origin, PaimonOrigin) or origin.is_promoted:
        raise UnsupportedError(
            f"the partitions of table {state.table_id} are not kept for Paimon's API, since its "
            f"origin is {origin.format_name} and engines of Paimon do not commit to it; list them "
            "from its manifests, or by lakeledger stats"
        )


def _fold(table: TableHandle, index: PartitionIndex, version: int) -> None:
    log = table.log
    if index.version >= version:
        return
    read = partial(partition_changes, log.store, log.layout)
    for each in log.commits(index.version + 1, version):
        index.apply(each.commit, read, log.commit_at)


def statistics_event(
    table: TableHandle,
    state: TableState,
    statistics: Sequence[ReportedStatistics] | None,
    snapshot_id: int,
) -> PartitionsUpdated | None:
    """Return the event that records the statistics of an engine's commit with its snapshot.

    A long list is written to a change file first. Values of personal columns are not recorded,
    since the log could not erase them, nor URLs with credentials, which it does not keep: then the
    sums are read from manifests.

    Args:
        table: The table.
        state: The state of the line that the snapshot is committed to.
        statistics: Those of the request; None if it has none.
        snapshot_id: The snapshot.

    Raises:
        InvalidInputError: A spec does not have the table's partition keys, or occurs twice.
        StoreError: The change file cannot be written; nothing was committed.
    """
    if _has_personal_keys(state):
        return None
    event = partitions_event(statistics, SpecReader.of(state.schema), snapshot_id)
    if event is None or find_credentials(msgspec.json.encode(event.partitions).decode()):
        return None
    return _outsourced(table, event)


def _has_personal_keys(state: TableState) -> bool:
    marked = MarkedColumns.of(state.schema) if state.keeps_outside else None
    return marked is not None and any(
        state.schema.field(each).id in marked for each in state.schema.partition_keys
    )


def _outsourced(table: TableHandle, event: PartitionsUpdated) -> PartitionsUpdated:
    # The numbers of a change file are not checked with those of the commit.
    check_recorded_values((event,), str(table.identifier))
    # Dated like its commit, which is never earlier than the newest commit.
    head = table.log.head
    newest = head.state.time_millis if head else 0
    now = max(table.setting.now_millis(), newest)
    return store_long_partition_list(table.log.store, table.log.layout, event, now)


@frozen
class PartitionsFound:
    """The partitions of a request: those that it changed, and the others.

    Attributes:
        changed: Those that were created or dropped.
        unchanged: Those that existed already, or did not exist.
    """

    changed: tuple[PartitionSpec, ...] = ()
    unchanged: tuple[PartitionSpec, ...] = ()


Decide = Callable[[PartitionIndex, SpecReader], Sequence[PartitionChange]]
"""Returns the changes of a request; none if it changes nothing."""


def create_partitions(
    table: TableHandle,
    specs: Sequence[PartitionSpec],
    *,
    on_existing: Literal["ignore", "raise"] = "ignore",
    statistics: Sequence[ReportedStatistics] = (),
    reported: Literal["ADD", "REPLACE"] = "ADD",
    branch: str | None = None,
    **commit: Unpack[CommitOptions],
) -> PartitionsFound:
    """Create partitions before they hold a file, with unknown counts.

    Args:
        table: The table.
        specs: The partitions.
        on_existing: What happens if one exists, or is given twice.
        statistics: Counts that a client observed; negative ones are unknown. They are ignored if
            one is of a partition that does not exist afterwards.
        reported: Whether the counts are those of new files, or of whole partitions.
        branch: The branch; None for the main line.
        commit: See CommitOptions.

    Raises:
        PartitionExistsError: A partition exists, and nothing was created.
        InvalidInputError: A spec does not have the table's partition keys.
        UnsupportedError: A partition key is a personal column.
        NotFoundError: The branch does not exist.
    """

    def decide(index: PartitionIndex, reader: SpecReader) -> Sequence[PartitionChange]:
        created: dict[tuple[str, ...], dict[str, str]] = {}
        for each in specs:
            spec = reader.read(each)
            if index.get(spec) is None and tuple(spec.values()) not in created:
                created[tuple(spec.values())] = spec
            elif on_existing == "raise":
                raise PartitionExistsError(_name(spec))
        changes = [PartitionChange(spec=each, action="CREATE") for each in created.values()]
        counts = [observed_change(each, reader, reported) for each in statistics]
        if all(index.get(each.spec) or tuple(each.spec.values()) in created for each in counts):
            changes += counts
        return changes

    asked = ["createPartitions", on_existing, reported, [*map(_plain, statistics)]]
    return _commit(table, _PartitionRequest("CREATE", specs, asked), decide, branch, commit)


def drop_partitions(
    table: TableHandle,
    specs: Sequence[PartitionSpec],
    *,
    on_missing: Literal["ignore", "raise"] = "ignore",
    branch: str | None = None,
    **commit: Unpack[CommitOptions],
) -> PartitionsFound:
    """Drop partitions from the list; engines delete their files by a commit, or themselves.

    Args:
        table: The table.
        specs: The partitions.
        on_missing: What happens if one does not exist.
        branch: The branch; None for the main line.
        commit: See CommitOptions.

    Raises:
        PartitionMissingError: A partition does not exist, and nothing was dropped.
        NotFoundError: The branch does not exist.
        InvalidInputError: A spec does not have the table's partition keys.
        UnsupportedError: A partition key is a personal column.
    """

    def decide(index: PartitionIndex, reader: SpecReader) -> Sequence[PartitionChange]:
        wanted = {tuple(spec.values()): spec for spec in map(reader.read, specs)}
        missing = [each for each in wanted.values() if index.get(each) is None]
        if missing and on_missing == "raise":
            raise PartitionMissingError(_name(missing[0]))
        dropped = (each for each in wanted.values() if index.get(each) is not None)
        return [PartitionChange(spec=each, action="DROP") for each in dropped]

    asked = _PartitionRequest("DROP", specs, ["dropPartitions", on_missing])
    return _commit(table, asked, decide, branch, commit)


def mark_done_partitions(
    table: TableHandle,
    specs: Sequence[PartitionSpec],
    *,
    branch: str | None = None,
    **commit: Unpack[CommitOptions],
) -> PartitionsFound:
    """Mark partitions as complete; those that do not exist, or are marked, stay as they are.

    Args:
        table: The table.
        specs: The partitions.
        branch: The branch; None for the main line.
        commit: See CommitOptions.

    Raises:
        InvalidInputError: A spec does not have the table's partition keys.
        UnsupportedError: A partition key is a personal column.
        NotFoundError: The branch does not exist.
    """

    def decide(index: PartitionIndex, reader: SpecReader) -> Sequence[PartitionChange]:
        wanted = {tuple(spec.values()): spec for spec in map(reader.read, specs)}
        found = [(each, index.get(each)) for each in wanted.values()]
        marked = (each for each, known in found if known is not None and not known.is_done)
        return [PartitionChange(spec=each, action="MARK_DONE") for each in marked]

    asked = _PartitionRequest("MARK_DONE", specs, ["markDonePartitions"])
    return _commit(table, asked, decide, branch, commit)


def _plain(statistics: ReportedStatistics) -> list[object]:
    return [
        dict(statistics.spec),
        statistics.record_count,
        statistics.file_size_in_bytes,
        statistics.file_count,
        statistics.last_file_creation_time,
    ]


@frozen
class _PartitionRequest:
    """A request about partitions.

    Attributes:
        action: The change of each of them.
        specs: The partitions.
        others: The kind of the request and its other arguments, as JSON.
    """

    action: PartitionAction
    specs: Sequence[PartitionSpec]
    others: Sequence[object]

    def found(self, changes: Sequence[PartitionChange], reader: SpecReader) -> PartitionsFound:
        """Return the answer of the request that made these changes.

        A partition that is created twice existed the second time; one that is dropped or marked
        twice is one.
        """
        made = {tuple(each.spec.values()) for each in changes if each.action == self.action}
        changed: dict[tuple[str, ...], PartitionSpec] = {}
        others: dict[tuple[object, ...], PartitionSpec] = {}
        for number, each in enumerate(self.specs):
            spec = reader.read(each)
            key = tuple(spec.values())
            if key in made and key not in changed:
                changed[key] = spec
            elif self.action == "CREATE":
                others[number, *key] = spec
            elif key not in made:
                others[key] = spec
        return PartitionsFound(tuple(changed.values()), tuple(others.values()))


@frozen
class _WrittenList:
    """A long list of changes in its change file.

    Attributes:
        of: The event with the list.
        event: The event that names the file.
    """

    of: PartitionsUpdated
    event: PartitionsUpdated


class _LongListError(InvalidChangeError):
    """A list was decided that has to be in a change file, which is not written yet."""

    def __init__(self, event: PartitionsUpdated) -> None:
        super().__init__("the partitions changed while a long list was written; retry")
        self.event = event


def _commit(
    table: TableHandle,
    asked: _PartitionRequest,
    decide: Decide,
    branch: str | None,
    commit: CommitOptions,
) -> PartitionsFound:
    """Commit the changes that a function decides on the partitions; none is no commit."""
    line = None if branch == MAIN else branch
    changes: Sequence[PartitionChange] = ()
    written: _WrittenList | None = None
    # Folds the log before the commit, which may hold a lock while it decides.
    reader = read_line(table, lambda _, seen: SpecReader.of(seen.schema), branch=line)

    def decide_on(state: TableState) -> tuple[TableEvent, ...]:
        nonlocal changes, reader
        head = table.log.head
        if head is None or head.state.version < state.version:
            # The partitions of a commit that is not in the log yet cannot be read.
            raise DecisionPostponed
        known = reader = _reader_of(line_state(table, state, line))
        changes = read_partitions(
            table, lambda index: decide(index, known), branch=line, version=state.version
        )
        if not changes:
            return ()
        event = PartitionsUpdated(
            branch_name=UNSET if line is None else line, partitions=tuple(changes)
        )
        if not is_long_partition_list(event):
            return (event,)
        if written is None or written.of != event:
            raise _LongListError(event)
        return (written.event,)

    change = ["partitions", line, *asked.others, [dict(each) for each in asked.specs]]
    for _ in range(_MOST_LISTS):
        try:
            done = table.commit_events(change, decide_on, **commit)
            break
        except _LongListError as error:
            written = _WrittenList(error.event, _outsourced(table, error.event))
    else:
        raise CommitConflictError(
            f"the partitions of {table.identifier} changed each of the {_MOST_LISTS} times that a "
            "long list of changes was written for them; send fewer partitions at once. Nothing was "
            "committed",
            "partitions",
            table.state.version,
        )
    if done.repeated:
        earlier = _changes_under(table, done.version, commit.get("commit_id"))
        changes = changes if earlier is None else earlier
    return asked.found(changes, reader)


def _changes_under(
    table: TableHandle, version: int, commit_id: str | None
) -> Sequence[PartitionChange] | None:
    """Return the changes that a commit made under a commit id; None if it has none of that id."""
    log = table.log
    for transaction in log.commit_at(version).transactions:
        if transaction.id == commit_id:
            return tuple(
                change
                for event in transaction.events
                if isinstance(event, PartitionsUpdated)
                for change in partition_changes(log.store, log.layout, event)
            )
    return None


def _reader_of(state: TableState) -> SpecReader:
    if not state.schema.partition_keys:
        raise InvalidChangeError(
            "the table has no partition keys; its rows are in one partition, which exists"
        )
    if _has_personal_keys(state):
        raise UnsupportedError(
            "a partition key of the table is a personal column, whose values the log does not "
            "keep; write the partition's files instead"
        )
    return SpecReader.of(state.schema)


def _name(spec: Mapping[str, str]) -> str:
    return "/".join(f"{key}={value}" for key, value in spec.items())
