"""Rows that arrived after the time of their partition.

Late data is derived from the changes of partitions: a snapshot that leaves a partition with more
rows added some. A compaction leaves the number unchanged; files of the same hour are on time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
from attrs import define

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.single_values import decode_value, unit_digits
from ledger.model.transforms import Identity, Period, field_types, transform_of
from projections.statistics.definition import DATA, DAY_MILLIS
from projections.statistics.fold import concat_rows, up_to
from projections.statistics.partition_rendering import (
    Instant,
    fill_personal_values,
    rendering_of,
)
from projections.statistics.query import StatisticsSource, map_distinct

if TYPE_CHECKING:
    import pyarrow as pa

_HOUR_MILLIS = 3_600_000
_FIRST_YEAR, _MONTHS = 1970, 12
_DAY_TEXT = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})").fullmatch

_COMMITS_AT_ONCE = 64


def late_rows(kept: StatisticsSource, at: Instant, late_days: int) -> pa.Table:
    """Return a row for each partition that got rows late, in descending order of their number.

    Args:
        kept: The table's statistics.
        at: The instant.
        late_days: Number of days after the end of a partition's time from which rows are late.

    Raises:
        InvalidInputError: No partition spec has a field of a day or another time.
        DamagedLogError: A needed part of the log is missing or damaged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    ends, state = _PartitionEnds(at), at.state
    added = concat_rows(
        _added_data_rows(up_to(rows, version=state.version, snapshot_id=state.last_snapshot_id))
        for rows in kept.deltas(0, state.version)
    )
    keys = added.group_by(_KEYS, use_threads=False).aggregate([])
    filled = fill_personal_values(kept.columns, keys)
    ended = [ends.of(*key) for key in zip(*filled.to_pydict().values(), strict=True)]
    paths = rendering_of(at).paths(filled)
    keys = keys.append_column("ended", pa.array(ended, pa.int64())).append_column("path", paths)
    versions = pa.array(sorted(pc.unique(added["version"]).to_pylist()), pa.int64())
    moments = kept.moments(state, _COMMITS_AT_ONCE)
    times = [moments.of(each) for each in versions.to_pylist()]
    timed = pa.table({"version": versions, "arrived": pa.array(times, pa.int64())})
    rows = added.join(keys, _KEYS, use_threads=False).join(timed, "version", use_threads=False)
    waited = pc.subtract(rows["arrived"], rows["ended"])
    late = rows.filter(pc.greater_equal(waited, min(late_days * DAY_MILLIS, t.LONG_MAX)))
    found = late.group_by("path", use_threads=False).aggregate(_LATE_FOLDS)
    order = [("record_count_sum", "descending"), ("path", "ascending")]
    found = found.sort_by(order)
    waited = pc.subtract(found["arrived_max"], found["ended_min"])
    return pa.table(
        {
            "partition": found["path"],
            "ended": map_distinct(found["ended_min"], _utc_text, pa.string()),
            "newest_arrival": map_distinct(found["arrived_max"], _utc_text, pa.string()),
            "late_days": pc.divide(waited, DAY_MILLIS),
            "snapshot_count": found["version_count"],
            "late_record_count": found["record_count_sum"],
            "late_file_count": found["file_count_sum"],
            "late_file_size_in_bytes": found["file_size_in_bytes_sum"],
        }
    )


_KEYS = ["spec_id", "partition"]

_LATE_FOLDS = [
    ("ended", "min"),
    ("arrived", "max"),
    ("version", "count"),
    ("record_count", "sum"),
    ("file_count", "sum"),
    ("file_size_in_bytes", "sum"),
]


def _added_data_rows(rows: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    return rows.filter(
        pc.and_(pc.equal(rows["content"], DATA), pc.greater(rows["record_count"], 0))
    )


def _utc_text(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat()


class _PartitionEnds:
    """End of the period of each partition, Unix milliseconds."""

    def __init__(self, at: Instant) -> None:
        types = field_types(at.schema)
        self._places = {
            each.spec_id: place
            for each in at.state.specs
            if (place := _find_time_field(each, types)) is not None
        }
        if not self._places:
            raise InvalidInputError(
                "no partition spec has a field of a day or another time, so nothing can be late: "
                "partition by day(column), or by a DATE"
            )

    def of(self, spec_id: int, partition: str) -> int | None:
        """Return the end of a partition; None where it has no time."""
        place = self._places.get(spec_id)
        return None if place is None else place.end(partition)


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
