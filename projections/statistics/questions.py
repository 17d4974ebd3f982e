"""Reports on partitions, days, late data, filter costs and retention.

An answer is a table with a row per partition or day, the most relevant first; sizes are in bytes.

Late data is derived from the changes of partitions: a snapshot that leaves a partition with more
rows added some. A compaction leaves the number unchanged; files of the same hour are on time.

`expire_snapshots(before=...)` keeps the snapshot current at the cut, and all later ones. It makes
files unreachable that only older snapshots read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from attrs import define, frozen
from msgspec import json

from ledger.cli.output import Screen
from ledger.events.snapshots import snapshot_events
from ledger.files.change_lists import event_files
from ledger.history.older import TableLog
from ledger.log.time_travel import effective_millis
from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.messages import moment, size
from ledger.model.single_values import decode_value, unit_digits
from ledger.model.transforms import Identity, Period, field_types, transform_of
from ledger.state.table import TableState
from ledger.table import Table
from ledger.table_at import TableAt
from ledger.table_handle import handle_of
from projections.dlf import Style, render
from projections.dlf.objects import ListPartitionsResponse, PartitionStatistics
from projections.manifest_files.lists import names_lists
from projections.statistics.engine_listed import EngineListedStatistics
from projections.statistics.fold import up_to
from projections.statistics.query import (
    Instant,
    Moments,
    StatisticsSource,
    TableTotals,
    last_changes,
    paimon_rendering_of,
    partition_deltas,
    partition_sums,
    partitions,
    rendering_of,
    totals,
)

if TYPE_CHECKING:
    import pyarrow as pa


View = Literal["list-partitions", "partition-statistics"]

_UNBUCKETED = -1
"""Bucket count of a table without buckets in commits to Paimon's REST catalog."""


def document(view: View, kept: StatisticsSource, at: Instant) -> dict[str, Any]:
    """Return a view of an instant as plain JSON.

    `list-partitions` is the DLF metadata API's answer to ListPartitions, of one page.
    `partition-statistics` is the change of each partition by the instant's snapshot, which may be
    negative: the field `statistics` of its commit to Paimon's REST catalog.

    Args:
        view: The view.
        kept: The table's statistics.
        at: The instant.
    """
    if view == "list-partitions":
        listed = partitions(kept, at, paimon_rendering_of(at))
        return render(ListPartitionsResponse(partitions=listed), Style.DLF)
    return {
        "snapshotId": at.state.last_snapshot_id,
        "statistics": [render(each, Style.PAIMON_REST) for each in snapshot_statistics(kept, at)],
    }


def snapshot_statistics(kept: StatisticsSource, at: Instant) -> tuple[PartitionStatistics, ...]:
    """Return the change of each partition by a projected snapshot, as in Paimon's commits.

    Example:
        >>> import ledger
        >>> from projections.statistics.tile_rows import Kept
        >>> from ledger.table_handle import handle_of
        >>> lake = ledger.open("memory://snapshot-statistics")
        >>> _ = lake.create_database("shop")
        >>> orders = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
        >>> file = ledger.FileChange(path="a.parquet", record_count=2, file_size_in_bytes=900)
        >>> at = orders.append([file]).version
        >>> (found,) = snapshot_statistics(Kept.of(handle_of(orders).log), orders.at(version=at))
        >>> found.record_count, found.file_count, found.total_buckets
        (2, 1, -1)
    """
    return partition_deltas(kept, at, total_buckets=_UNBUCKETED)


def every_snapshot(
    table: Table, kept: StatisticsSource
) -> Iterator[tuple[int, tuple[PartitionStatistics, ...]]]:
    """Yield each readable snapshot, oldest first, with its change of each partition."""
    state = table.state
    for snapshot_id in reversed(state.snapshot_ids):
        yield snapshot_id, snapshot_statistics(kept, table.at(snapshot=snapshot_id))


def print_view(screen: Screen, title: str, shown: dict[str, Any]) -> None:
    """Print a view as a table."""
    screen.line(title, style="bold")
    print_partitions(screen, shown.get("partitions", shown.get("statistics", ())))


def print_partitions(screen: Screen, partitions: Iterable[dict[str, Any]]) -> None:
    """Print the sums of partitions, from their JSON, as a table."""
    screen.table(
        ("partition", "rows", "files", "size", "last file"),
        (
            (
                ", ".join(f"{key}={value}" for key, value in each["spec"].items()),
                each["recordCount"],
                each["fileCount"],
                signed_size(each["fileSizeInBytes"]),
                moment(each["lastFileCreationTime"]),
            )
            for each in partitions
        ),
    )


def signed_size(count: int) -> str:
    """Return a signed number of bytes in human-readable form."""
    return f"-{size(-count)}" if count < 0 else size(count)


def filter_cost(at: TableAt, where: str | None) -> Iterator[dict[str, Any]]:
    """Yield a row for each spec that has files, in the order of specs.

    Args:
        at: The table at an instant.
        where: The filter, as SQL; None for all rows.

    Raises:
        InvalidInputError: The filter cannot be read.
        UnsupportedError: An engine's manifests list the files, and not the ledger.
    """
    plan = at.plan(where)
    sizes: Counter[int] = Counter()
    rows: Counter[int] = Counter()
    for each in at.files:
        sizes[each.spec_id] += each.file_size_in_bytes
        rows[each.spec_id] += each.record_count if each.content == "data" else 0
    to_read: Counter[int] = Counter()
    for planned in plan.files:
        to_read[planned.file.spec_id] += planned.file.file_size_in_bytes
    for spec in at.state.specs:
        counts = plan.counts.get(spec.spec_id)
        if counts is None or not counts.total:
            continue
        size = sizes[spec.spec_id]
        yield {
            "spec_id": spec.spec_id,
            "fields": ", ".join(
                each.name if each.transform == "identity" else f"{each.name} ({each.transform})"
                for each in spec.fields
            ),
            "asked_of_partitions": plan.by_spec[spec.spec_id],
            "file_count": counts.total,
            "files_read": counts.kept,
            "left_out_by_partition": counts.by_partition,
            "left_out_by_bounds": counts.by_metrics,
            "record_count": rows[spec.spec_id],
            "file_size_in_bytes": size,
            "read_size_in_bytes": to_read[spec.spec_id],
            "read_share": round(to_read[spec.spec_id] / size, 4) if size else 0.0,
        }


DAY_MILLIS = 86_400_000

_HOUR_MILLIS = 3_600_000
_FIRST_YEAR, _MONTHS = 1970, 12
_DAY_TEXT = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})").fullmatch


@define
class _LateRows:
    """Late rows of a shown partition."""

    partition: str
    ended_millis: int
    snapshot_count: int = 0
    record_count: int = 0
    file_count: int = 0
    size: int = 0
    newest_millis: int = 0


def late(kept: StatisticsSource, at: Instant, late_days: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each partition that got rows late, in descending order of their number.

    Args:
        kept: The table's statistics.
        at: The instant.
        late_days: Number of days after the end of a partition's time from which rows are late.

    Raises:
        InvalidInputError: No partition spec has a field of a day or another time.
        DamagedLogError: A needed part of the log is missing or damaged.
    """
    ends = _PartitionEnds(at)
    state, rendering = at.state, rendering_of(at)
    found: dict[str, _LateRows] = {}
    rows = (
        row
        for block in kept.deltas(state.version)
        for row in _added_data_rows(
            up_to(block, version=state.version, snapshot_id=state.last_snapshot_id)
        )
    )
    moments = kept.moments(state, _COMMITS_AT_ONCE)
    for row in rows:
        ended = ends.of(row["spec_id"], row["partition"])
        moment = moments.of(row["version"])
        if ended is None or moment < ended + late_days * DAY_MILLIS:
            continue
        path = rendering.spec(row["spec_id"], row["partition"]).path
        one = found.setdefault(path, _LateRows(path, ended))
        one.snapshot_count += 1
        one.record_count += row["record_count"]
        one.file_count += row["file_count"]
        one.size += row["file_size_in_bytes"]
        one.newest_millis = max(one.newest_millis, moment)
    for each in sorted(found.values(), key=lambda each: (-each.record_count, each.partition)):
        yield {
            "partition": each.partition,
            "ended": _lateness_text(each.ended_millis),
            "newest_arrival": _lateness_text(each.newest_millis),
            "late_days": (each.newest_millis - each.ended_millis) // DAY_MILLIS,
            "snapshot_count": each.snapshot_count,
            "late_record_count": each.record_count,
            "late_file_count": each.file_count,
            "late_file_size_in_bytes": each.size,
        }


def _added_data_rows(rows: Any) -> list[dict[str, Any]]:
    import pyarrow.compute as pc

    is_data = pc.and_(pc.equal(rows["content"], "data"), pc.greater(rows["record_count"], 0))
    found: list[dict[str, Any]] = rows.filter(is_data).to_pylist()
    return found


_COMMITS_AT_ONCE = 64


class _PartitionEnds:
    """End of the period of each partition, Unix milliseconds."""

    def __init__(self, at: Instant) -> None:
        types = field_types(at.schema)
        self._places = {
            each.spec_id: place
            for each in at.state.specs
            if (place := _find_time_field(each, types)) is not None
        }
        self._known: dict[tuple[int, str], int | None] = {}
        if not self._places:
            raise InvalidInputError(
                "no partition spec has a field of a day or another time, so nothing can be late: "
                "partition by day(column), or by a DATE"
            )

    def of(self, spec_id: int, partition: str) -> int | None:
        """Return the end of a partition; None where it has no time."""
        key = spec_id, partition
        if key not in self._known:
            place = self._places.get(spec_id)
            self._known[key] = None if place is None else place.end(partition)
        return self._known[key]


@define
class _PartitionTimeField:
    """Position and unit of the time among a spec's values."""

    place: int
    transform: Identity | Period
    type: t.DataType

    def end(self, partition: str) -> int | None:
        text = msgspec.json.decode(partition)[self.place]
        value = decode_value(text, self.type)
        if value is None:
            return None
        if isinstance(self.transform, Period) and self.transform.unit != "day":
            return _period_end(self.transform.unit, int(value))
        match self.type:
            case t.DateType():
                return (int(value) + 1) * DAY_MILLIS
            case t.CharType() | t.VarCharType():
                return _day_end(str(value))
            case t.TimestampType() | t.LocalZonedTimestampType():
                return int(value) * 1000 // int(10 ** unit_digits(self.type))
        return None


def _find_time_field(
    spec: PartitionSpec, types: Mapping[int, t.DataType]
) -> _PartitionTimeField | None:
    """Return the first of a spec's fields that is a time."""
    for place, each in enumerate(spec.fields):
        source, transform = types.get(each.source_id), transform_of(each.transform)
        if source is None or not isinstance(transform, Identity | Period):
            continue
        if isinstance(source, _TIMES):
            return _PartitionTimeField(place, transform, transform.result_type(source))
    return None


_TIMES = (t.DateType, t.TimestampType, t.LocalZonedTimestampType, t.CharType, t.VarCharType)


def _period_end(unit: str, count: int) -> int:
    if unit == "hour":
        return (count + 1) * _HOUR_MILLIS
    months = count + 1 if unit == "month" else (count + 1) * _MONTHS
    year, month = divmod(months, _MONTHS)
    moment = datetime(_FIRST_YEAR + year, month + 1, 1, tzinfo=UTC)
    return int(moment.timestamp()) * 1000


def _day_end(text: str) -> int | None:
    """Return the end of a day in a text column, as in Hive's partitions."""
    found = _DAY_TEXT(text)
    if found is None:
        return None
    year, month, day = map(int, found.groups())
    try:
        begin = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None
    return int(begin.timestamp()) * 1000 + DAY_MILLIS


def _lateness_text(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat()


@define
class _FreedFiles:
    """Files of a partition that would be deleted."""

    partition: str
    record_count: int = 0
    file_count: int = 0
    size: int = 0


def freed(
    kept: StatisticsSource, log: TableLog, at: Instant, cut_millis: int
) -> Iterator[dict[str, Any]]:
    """Yield a row for each partition with files that would be deleted, the most bytes first.

    Args:
        kept: The table's statistics.
        log: The table's log.
        at: The instant.
        cut_millis: Time from which snapshots are kept, and the one current then; Unix millis.

    Raises:
        UnsupportedError: A snapshot of the ledger's own names an engine's manifest lists.
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    rendering = rendering_of(at)
    found: dict[str, _FreedFiles] = {}
    listed = kept if isinstance(kept, EngineListedStatistics) else None
    files = (
        _HistoryReplay(log, at, cut_millis).freed()
        if listed is None
        else _freed_engine_files(listed, cut_millis)
    )
    for file in files:
        path = rendering.spec(file.spec_id, json.encode(file.partition).decode()).path
        one = found.setdefault(path, _FreedFiles(path))
        one.record_count += file.record_count if file.content == "data" else 0
        one.file_count += 1
        one.size += file.file_size_in_bytes
    for each in sorted(found.values(), key=lambda each: (-each.size, each.partition)):
        yield {
            "partition": each.partition,
            "freed_file_count": each.file_count,
            "freed_file_size_in_bytes": each.size,
            "freed_record_count": each.record_count,
        }


def _freed_engine_files(listed: EngineListedStatistics, cut_millis: int) -> list[FileChange]:
    """Return the same where an engine lists the files, from the engine's snapshots."""
    state = listed.at.state
    moments = listed.moments(state)
    older = [each for each in listed.line if moments.of_snapshot(0, each) <= cut_millis]
    stays = {*listed.line[max(0, len(older) - 1) :], *_referenced_snapshot_ids(state)}
    read: dict[str, FileChange] = {}
    kept: set[str] = set()
    for time_millis, snapshot_id, files in listed.there():
        read |= {each.path: each for each in files}
        if snapshot_id in stays or time_millis > cut_millis:
            kept.update(each.path for each in files)
    return [each for path, each in read.items() if path not in kept]


def _referenced_snapshot_ids(state: TableState) -> set[int]:
    """Return the snapshots that a source's branches and tags refer to."""
    return {*state.held_snapshot_ids, *(each.snapshot_id for each in state.refs)}


class _HistoryReplay:
    """Replay of the table's history up to an instant."""

    def __init__(self, log: TableLog, at: Instant, cut_millis: int) -> None:
        self._log = log
        self._state = at.state
        self._cut_millis = cut_millis
        self._held = at.state.held_snapshot_ids

    def freed(self) -> list[FileChange]:
        """Return the files that only snapshots before the cut read."""
        live: dict[str, FileChange] = {}
        # Files of all existing snapshots, and of those that would be kept.
        read: dict[str, FileChange] = {}
        kept: set[str] = set()
        earliest = self._state.earliest_snapshot_id or 1
        is_cut = False
        for time_millis, snapshot_id, files in self._timed_snapshots():
            if time_millis > self._cut_millis and not is_cut:
                kept |= live.keys()
                is_cut = True
            came = [each for each in files if each.kind == "ADD"]
            live = _apply_file_changes(live, files)
            if snapshot_id == earliest:
                read = dict(live)
            elif snapshot_id > earliest:
                read |= {each.path: each for each in came}
            if snapshot_id in self._held:
                kept |= live.keys()
            if is_cut:
                kept |= {each.path for each in came}
        kept |= live.keys()
        return [each for path, each in read.items() if path not in kept]

    def _timed_snapshots(self) -> Iterator[tuple[int, int, tuple[FileChange, ...]]]:
        state, log = self._state, self._log
        for read in log.commits(0, state.version):
            moment = effective_millis(read.commit, state.corrections)
            for event in snapshot_events(read.commit):
                if event.snapshot_id > state.last_snapshot_id:
                    return
                if names_lists(event):
                    raise UnsupportedError(
                        f"snapshot {event.snapshot_id} names its engine's own manifest lists: "
                        "its files are not in the ledger. Ask the engine"
                    )
                yield moment, event.snapshot_id, event_files(log.store, log.layout, event)


def _apply_file_changes(
    live: dict[str, FileChange], files: tuple[FileChange, ...]
) -> dict[str, FileChange]:
    for each in files:
        if each.kind == "ADD":
            live[each.path] = each
        else:
            live.pop(each.path, None)
    return live


Question = Literal["compaction", "growth", "untouched", "late", "retention", "filter"]

TARGET_FILE_SIZE = 128 * 1024 * 1024
"""Target file size in bytes: Paimon's default; those of engines are similar."""

_DATA = "data"


@frozen(kw_only=True)
class Thresholds:
    """Thresholds of the questions.

    Attributes:
        target_file_size: Target file size of a compaction, in bytes.
        untouched_days: Number of days without a change that make a partition untouched.
        late_days: Number of days after their partition's time from which rows are late.
        retained_days: Snapshot retention in days.
        where: The filter to plan, as SQL; None for all rows.
        now_millis: Current time, Unix milliseconds.
    """

    now_millis: int
    target_file_size: int = TARGET_FILE_SIZE
    untouched_days: int = 30
    late_days: int = 1
    retained_days: int = 30
    where: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.target_file_size < 1:
            raise InvalidInputError(
                f"the target file size cannot be {self.target_file_size} bytes; give at least 1"
            )


def answer(
    question: Question, kept: StatisticsSource, log: TableLog, at: TableAt, bounds: Thresholds
) -> pa.Table:
    """Return the answer to a question, a row per partition, day, or partition spec.

    Args:
        question: `compaction`: distribution of files and bytes over partitions, and the best gain
            of a compaction; `growth`: the added data of each day (UTC); `untouched`: partitions
            that no commit has changed for long; `late`: rows that arrived after their partition's
            time; `retention`: files that would be deleted with older snapshots; `filter`: the data
            that a filter has to read under each partition spec.
        kept: The table's statistics.
        log: The table's log.
        at: The instant.
        bounds: The thresholds.

    Raises:
        DamagedLogError: A needed part of the log is missing or damaged.
        InvalidInputError: No partition has a time, or the filter is invalid.
        UnsupportedError: It needs files that are in no list or manifest known to the ledger.
    """
    import pyarrow as pa

    match question:
        case "compaction":
            rows = _compaction_rows(
                _shown_partitions(partition_sums(kept, at), at), bounds.target_file_size
            )
            return pa.Table.from_pylist(list(rows), schema=_arrow_schema(_COMPACTION))
        case "growth":
            rows = _growth_rows(totals(kept, at), kept.moments(at.state))
            return pa.Table.from_pylist(list(rows), schema=_arrow_schema(_GROWTH))
        case "untouched":
            rows = _untouched_rows(kept, at, bounds)
            return pa.Table.from_pylist(list(rows), schema=_arrow_schema(_UNTOUCHED))
        case "late":
            rows = late(kept, at, bounds.late_days)
            return pa.Table.from_pylist(list(rows), schema=_arrow_schema(_LATE))
        case "retention":
            cut_millis = bounds.now_millis - bounds.retained_days * DAY_MILLIS
            rows = freed(kept, log, at, cut_millis)
            return pa.Table.from_pylist(list(rows), schema=_arrow_schema(_FREED))
        case "filter":
            rows = filter_cost(at, bounds.where)
            return pa.Table.from_pylist(list(rows), schema=_arrow_schema(_FILTER))


def statistics_for_question(
    question: Question, table: Table, at: TableAt, kept: StatisticsSource
) -> StatisticsSource:
    """Return the statistics that a question needs.

    For retention that includes snapshots of the table's former owner, which are not in the kept
    statistics.
    """
    is_owned = at.state.origin.lists_files_since > 0
    return (
        EngineListedStatistics(handle_of(table), at)
        if question == "retention" and is_owned
        else kept
    )


def print_answer(screen: Screen, title: str, answer: pa.Table) -> None:
    """Print an answer as a table."""
    screen.line(title, style="bold")
    if not len(answer):
        screen.line("the answer has no rows")
        return
    screen.table(
        tuple(_SHOWN.get(name, name.replace("_", " ")) for name in answer.column_names),
        (tuple(_cell_text(*each) for each in row.items()) for row in answer.to_pylist()),
    )


def _cell_text(name: str, value: str | float) -> str | int:
    if isinstance(value, int) and name.endswith("in_bytes"):
        return signed_size(value)
    return f"{value:.2f}" if isinstance(value, float) else value


_SHOWN = {
    "file_count": "files",
    "file_size_in_bytes": "size",
    "mean_file_size_in_bytes": "mean size",
    "file_count_after": "files after",
    "snapshot_count": "snapshots",
    "added_record_count": "rows added",
    "added_file_count": "files added",
    "added_file_size_in_bytes": "size added",
    "record_count": "rows",
    "last_change_version": "version",
    "untouched_days": "days",
    "late_days": "days late",
    "late_record_count": "rows",
    "late_file_count": "files",
    "late_file_size_in_bytes": "size",
    "freed_file_count": "files",
    "freed_file_size_in_bytes": "size",
    "freed_record_count": "rows",
    "spec_id": "spec",
    "read_size_in_bytes": "to read",
    "read_share": "share",
}

_Row = dict[str, str | int | float]

_COMPACTION = {
    "partition": "string",
    "file_count": "int64",
    "file_size_in_bytes": "int64",
    "mean_file_size_in_bytes": "int64",
    "skew": "float64",
    "file_count_after": "int64",
    "files_gained": "int64",
}
_GROWTH = {
    "day": "string",
    "snapshot_count": "int64",
    "added_record_count": "int64",
    "added_file_count": "int64",
    "added_file_size_in_bytes": "int64",
    "record_count": "int64",
    "file_count": "int64",
    "file_size_in_bytes": "int64",
}
_UNTOUCHED = {
    "partition": "string",
    "last_change_version": "int64",
    "last_change": "string",
    "untouched_days": "int64",
    "record_count": "int64",
    "file_count": "int64",
    "file_size_in_bytes": "int64",
}
_LATE = {
    "partition": "string",
    "ended": "string",
    "newest_arrival": "string",
    "late_days": "int64",
    "snapshot_count": "int64",
    "late_record_count": "int64",
    "late_file_count": "int64",
    "late_file_size_in_bytes": "int64",
}
_FREED = {
    "partition": "string",
    "freed_file_count": "int64",
    "freed_file_size_in_bytes": "int64",
    "freed_record_count": "int64",
}
_FILTER = {
    "spec_id": "int64",
    "fields": "string",
    "asked_of_partitions": "string",
    "file_count": "int64",
    "files_read": "int64",
    "left_out_by_partition": "int64",
    "left_out_by_bounds": "int64",
    "record_count": "int64",
    "file_size_in_bytes": "int64",
    "read_size_in_bytes": "int64",
    "read_share": "float64",
}


def _arrow_schema(columns: dict[str, str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns.items()])


@define
class _ShownPartition:
    """A shown partition, with the sums over the files of all its specs."""

    path: str
    place: int | None = None
    record_count: int = 0
    file_count: int = 0
    size: int = 0
    data_files: int = 0
    data_size: int = 0


def _shown_partitions(sums: pa.Table, at: Instant) -> list[_ShownPartition]:
    """Return the partitions that have files, from the sums of all that ever had some."""
    rendering = rendering_of(at)
    found: dict[str, _ShownPartition] = {}
    for row in sums.to_pylist():
        path = rendering.spec(row["spec_id"], row["partition"]).path
        one = found.setdefault(path, _ShownPartition(path))
        one.place = row["version"] if one.place is None else max(one.place, row["version"])
        one.record_count += row["record_count"]
        one.file_count += row["file_count"]
        one.size += row["file_size_in_bytes"]
        if row["content"] == _DATA:
            one.data_files += row["file_count"]
            one.data_size += row["file_size_in_bytes"]
    return [each for each in found.values() if each.file_count]


def _compaction_rows(partitions: list[_ShownPartition], target: int) -> Iterator[_Row]:
    with_data = [each for each in partitions if each.data_files]
    middle = median([each.data_size for each in with_data]) if with_data else 0

    def after(each: _ShownPartition) -> int:
        return min(each.data_files, max(1, -(-each.data_size // target)))

    for each in sorted(with_data, key=lambda each: (after(each) - each.data_files, each.path)):
        yield {
            "partition": each.path,
            "file_count": each.data_files,
            "file_size_in_bytes": each.data_size,
            "mean_file_size_in_bytes": each.data_size // each.data_files,
            "skew": round(each.data_size / middle, 2) if middle else 1.0,
            "file_count_after": after(each),
            "files_gained": each.data_files - after(each),
        }


def _growth_rows(history: tuple[TableTotals, ...], moments: Moments) -> Iterator[_Row]:
    def day_of(place: int) -> int:
        each = history[place]
        return moments.of_snapshot(each.version, each.snapshot_id) // DAY_MILLIS

    before = TableTotals(
        version=-1,
        snapshot_id=0,
        record_count=0,
        file_size_in_bytes=0,
        file_count=0,
        last_file_creation_time=None,
    )
    start = 0
    while start < len(history):
        # Times do not decrease, so that only a few commits per day are read.
        day = day_of(start)
        end = bisect_right(range(len(history)), day, lo=start, key=day_of)
        last = history[end - 1]
        yield {
            "day": (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).date().isoformat(),
            "snapshot_count": end - start,
            "added_record_count": last.record_count - before.record_count,
            "added_file_count": last.file_count - before.file_count,
            "added_file_size_in_bytes": last.file_size_in_bytes - before.file_size_in_bytes,
            "record_count": last.record_count,
            "file_count": last.file_count,
            "file_size_in_bytes": last.file_size_in_bytes,
        }
        before, start = last, end


def _untouched_rows(kept: StatisticsSource, at: Instant, bounds: Thresholds) -> Iterator[_Row]:
    moments = kept.moments(at.state)
    found = [(each.place or 0, each) for each in _shown_partitions(last_changes(kept, at), at)]
    for place, each in sorted(found, key=lambda pair: (pair[0], pair[1].path)):
        moment = moments.of(place)
        days = (bounds.now_millis - moment) // DAY_MILLIS
        if days >= bounds.untouched_days:
            yield {
                "partition": each.path,
                "last_change_version": kept.version_of(place, 0),
                "last_change": datetime.fromtimestamp(moment / 1000, UTC).isoformat(),
                "untouched_days": days,
                "record_count": each.record_count,
                "file_count": each.file_count,
                "file_size_in_bytes": each.size,
            }
