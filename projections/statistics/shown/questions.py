"""What people ask of a table's partitions, days and files, answered without reading data.

An answer is a table with a row a partition or a day, the most telling first; sizes are in bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Literal

from attrs import define, frozen

from ledger.cli.screen import Screen
from ledger.history.older import TableLog
from ledger.model.errors import InvalidInputError
from ledger.table import Table
from ledger.table_at import TableAt
from projections.statistics.keeping.engine_listed import EngineListed
from projections.statistics.shown.filter_cost import filter_cost
from projections.statistics.shown.lateness import DAY_MILLIS, late
from projections.statistics.shown.query import (
    Counted,
    Instant,
    Moments,
    TableTotals,
    last_changes,
    partition_sums,
    rendering_of,
    totals,
)
from projections.statistics.shown.retention import freed
from projections.statistics.shown.views import signed_size

if TYPE_CHECKING:
    import pyarrow as pa

Question = Literal["compaction", "growth", "untouched", "late", "retention", "filter"]

TARGET_FILE_SIZE = 128 * 1024 * 1024
"""What files are to be brought to, in bytes: Paimon's default; engines have like ones."""

_DATA = "data"


@frozen(kw_only=True)
class Thresholds:
    """From where on something is worth telling.

    Attributes:
        target_file_size: As large a compaction makes files, in bytes.
        untouched_days: So many days without a change make a partition untouched.
        late_days: Rows that come so many days after their partition's time are late.
        retained_days: For so many days snapshots would be kept.
        where: The filter whose cost is asked, as SQL; None for all rows.
        now_millis: Until when days are counted, Unix milliseconds.
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
                f"files cannot be brought to {self.target_file_size} bytes; give at least 1"
            )


def answer(
    question: Question, kept: Counted, log: TableLog, at: TableAt, bounds: Thresholds
) -> pa.Table:
    """Return what is asked, a row a partition, a day, or a partition spec.

    Args:
        question: `compaction`: how files and bytes lie on partitions, and what a compaction would
            gain at best; `growth`: what each day (UTC) brought; `untouched`: partitions that no
            commit has changed for long; `late`: rows that came after their partition's time;
            `retention`: files that would go with older snapshots; `filter`: what a filter has to
            read under each partition spec.
        kept: The table's statistics.
        log: Its log.
        at: The instant.
        bounds: From where on something is told.

    Raises:
        DamagedLogError: What has to be read of the log is missing or damaged.
        InvalidInputError: No partition is of a time, or the filter cannot be read.
        UnsupportedError: Files are asked about that the ledger knows from no list or manifest.
    """
    import pyarrow as pa

    match question:
        case "compaction":
            rows = _compaction(_partitions(partition_sums(kept, at), at), bounds.target_file_size)
            return pa.Table.from_pylist(list(rows), schema=_schema(_COMPACTION))
        case "growth":
            rows = _growth(totals(kept, at), kept.moments(at.state))
            return pa.Table.from_pylist(list(rows), schema=_schema(_GROWTH))
        case "untouched":
            rows = _untouched(kept, at, bounds)
            return pa.Table.from_pylist(list(rows), schema=_schema(_UNTOUCHED))
        case "late":
            rows = late(kept, at, bounds.late_days)
            return pa.Table.from_pylist(list(rows), schema=_schema(_LATE))
        case "retention":
            cut_millis = bounds.now_millis - bounds.retained_days * DAY_MILLIS
            rows = freed(kept, log, at, cut_millis)
            return pa.Table.from_pylist(list(rows), schema=_schema(_FREED))
        case "filter":
            rows = filter_cost(at, bounds.where)
            return pa.Table.from_pylist(list(rows), schema=_schema(_FILTER))


def asked_of(question: Question, table: Table, at: TableAt, kept: Counted) -> Counted:
    """Return the statistics that a question is answered from.

    What a retention would free, snapshots that the table's former owner made hold, too, and those
    are not in what is kept.
    """
    is_owned = at.state.origin.lists_files_since > 0
    return EngineListed(table, at) if question == "retention" and is_owned else kept


def print_answer(screen: Screen, title: str, answer: pa.Table) -> None:
    """Print an answer as a table."""
    screen.line(title, style="bold")
    if not len(answer):
        screen.line("there is nothing to tell")
        return
    screen.table(
        tuple(_SHOWN.get(name, name.replace("_", " ")) for name in answer.column_names),
        (tuple(_text(*each) for each in row.items()) for row in answer.to_pylist()),
    )


def _text(name: str, value: str | float) -> str | int:
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


def _schema(columns: dict[str, str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns.items()])


@define
class _Partition:
    """A shown partition, with what all its specs' files add up to."""

    path: str
    place: int | None = None
    record_count: int = 0
    file_count: int = 0
    size: int = 0
    data_files: int = 0
    data_size: int = 0


def _partitions(sums: pa.Table, at: Instant) -> list[_Partition]:
    """Return the partitions that have files, of what all that ever had some add up to."""
    rendering = rendering_of(at)
    found: dict[str, _Partition] = {}
    for row in sums.to_pylist():
        path = rendering.spec(row["spec_id"], row["partition"]).path
        one = found.setdefault(path, _Partition(path))
        one.place = row["version"] if one.place is None else max(one.place, row["version"])
        one.record_count += row["record_count"]
        one.file_count += row["file_count"]
        one.size += row["file_size_in_bytes"]
        if row["content"] == _DATA:
            one.data_files += row["file_count"]
            one.data_size += row["file_size_in_bytes"]
    return [each for each in found.values() if each.file_count]


def _compaction(partitions: list[_Partition], target: int) -> Iterator[_Row]:
    with_data = [each for each in partitions if each.data_files]
    middle = median([each.data_size for each in with_data]) if with_data else 0

    def after(each: _Partition) -> int:
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


def _growth(history: tuple[TableTotals, ...], moments: Moments) -> Iterator[_Row]:
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
        # Times do not decrease, so that only a few commits a day are looked at.
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


def _untouched(kept: Counted, at: Instant, bounds: Thresholds) -> Iterator[_Row]:
    moments = kept.moments(at.state)
    found = [(each.place or 0, each) for each in _partitions(last_changes(kept, at), at)]
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
