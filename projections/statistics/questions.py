"""Questions about partitions, days, late data, filter costs and retention.

An answer is a table with a row per partition or day, the most relevant first; sizes are in bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from attrs import frozen

from ledger.history.older import TableLog
from ledger.model.errors import InvalidInputError
from ledger.model.types import LONG_MAX
from ledger.table import Table
from ledger.table_at import TableAt
from ledger.table_handle import handle_of
from projections.statistics.definition import DATA, DAY_MILLIS
from projections.statistics.engine_listed import EngineListedStatistics
from projections.statistics.late_rows import late_rows
from projections.statistics.partition_rendering import Instant
from projections.statistics.query import (
    Moments,
    StatisticsSource,
    TableTotals,
    last_changes,
    map_distinct,
    partitions,
    totals,
)
from projections.statistics.retention import freed

if TYPE_CHECKING:
    import pyarrow as pa


Question = Literal["compaction", "growth", "untouched", "late", "retention", "filter"]

TARGET_FILE_SIZE = 128 * 1024 * 1024
"""Target file size in bytes: Paimon's default; those of engines are similar."""


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
            return _compaction(partitions(kept, at), bounds.target_file_size)
        case "growth":
            rows = _growth_rows(totals(kept, at), kept.moments(at.state))
            return pa.Table.from_pylist(list(rows), schema=_arrow_schema(_GROWTH))
        case "untouched":
            return _untouched(kept, at, bounds)
        case "late":
            return late_rows(kept, at, bounds.late_days)
        case "retention":
            cut_millis = bounds.now_millis - bounds.retained_days * DAY_MILLIS
            return freed(kept, log, at, cut_millis)
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


def _compaction(shown: pa.Table, target: int) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    shown = shown.filter(pc.not_equal(shown["data_file_count"], 0))
    files, sizes = shown["data_file_count"], shown["data_file_size_in_bytes"]
    listed = sizes.to_pylist()
    middle = median(listed) if listed else 0
    skew = [round(each / middle, 2) if middle else 1.0 for each in listed]
    filled = pc.add(pc.divide(pc.subtract(sizes, 1), min(target, LONG_MAX)), 1)
    after = pc.min_element_wise(files, pc.max_element_wise(filled, 1))
    found = pa.table(
        {
            "partition": shown["path"],
            "file_count": files,
            "file_size_in_bytes": sizes,
            "mean_file_size_in_bytes": pc.divide(sizes, files),
            "skew": pa.array(skew, pa.float64()),
            "file_count_after": after,
            "files_gained": pc.subtract(files, after),
        }
    )
    return found.sort_by([("files_gained", "descending"), ("partition", "ascending")])


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


def _untouched(kept: StatisticsSource, at: Instant, bounds: Thresholds) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    shown = last_changes(kept, at).sort_by([("version", "ascending"), ("path", "ascending")])
    moments = kept.moments(at.state)
    place = shown["version"]

    def days_since(each: int) -> int:
        return (bounds.now_millis - moments.of(each)) // DAY_MILLIS

    def utc_text(each: int) -> str:
        return datetime.fromtimestamp(moments.of(each) / 1000, UTC).isoformat()

    days = map_distinct(place, days_since, pa.int64())
    found = pa.table(
        {
            "partition": shown["path"],
            "last_change_version": map_distinct(
                place, lambda each: kept.version_of(each, 0), pa.int64()
            ),
            "last_change": map_distinct(place, utc_text, pa.string()),
            "untouched_days": days,
            **{name: shown[name] for name in ("record_count", "file_count", "file_size_in_bytes")},
        }
    )
    return found.filter(pc.greater_equal(days, min(bounds.untouched_days, LONG_MAX)))


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
        rows[each.spec_id] += each.record_count if each.content == DATA else 0
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


_Row = dict[str, str | int | float]

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
