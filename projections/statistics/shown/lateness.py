"""Late data: rows that came into a partition of a day, an hour, a month long after it was over.

What snapshots did to partitions tells it: one that leaves a partition with more rows than before
brought some. A compaction leaves as many, and an hour's files of the hour itself are in time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from attrs import define

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.transforms import Identity, Period, transform_of
from ledger.model.transforms.paths import field_types
from ledger.model.transforms.values import decode_value, unit_digits
from projections.statistics.fold import up_to
from projections.statistics.shown.query import Counted, Instant, rendering_of

DAY_MILLIS = 86_400_000

_HOUR_MILLIS = 3_600_000
_FIRST_YEAR, _MONTHS = 1970, 12
_DAY_TEXT = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})").fullmatch


@define
class _Late:
    """What came late into a shown partition."""

    partition: str
    ended_millis: int
    snapshot_count: int = 0
    record_count: int = 0
    file_count: int = 0
    size: int = 0
    newest_millis: int = 0


def late(kept: Counted, at: Instant, late_days: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each partition that got rows late, that with the most of them first.

    Args:
        kept: The table's statistics.
        at: The instant.
        late_days: So many days after a partition's time was over, rows are late.

    Raises:
        InvalidInputError: No partition spec has a field of a day or another time.
        DamagedLogError: What has to be read of the log is missing or damaged.
    """
    ends = _Ends(at)
    state, rendering = at.state, rendering_of(at)
    found: dict[str, _Late] = {}
    rows = (
        row
        for block in kept.deltas(state.version)
        for row in _grown(up_to(block, version=state.version, snapshot_id=state.last_snapshot_id))
    )
    moments = kept.moments(state, _COMMITS_AT_ONCE)
    for row in rows:
        ended = ends.of(row["spec_id"], row["partition"])
        moment = moments.of(row["version"])
        if ended is None or moment < ended + late_days * DAY_MILLIS:
            continue
        path = rendering.spec(row["spec_id"], row["partition"]).path
        one = found.setdefault(path, _Late(path, ended))
        one.snapshot_count += 1
        one.record_count += row["record_count"]
        one.file_count += row["file_count"]
        one.size += row["file_size_in_bytes"]
        one.newest_millis = max(one.newest_millis, moment)
    for each in sorted(found.values(), key=lambda each: (-each.record_count, each.partition)):
        yield {
            "partition": each.partition,
            "ended": _text(each.ended_millis),
            "newest_arrival": _text(each.newest_millis),
            "late_days": (each.newest_millis - each.ended_millis) // DAY_MILLIS,
            "snapshot_count": each.snapshot_count,
            "late_record_count": each.record_count,
            "late_file_count": each.file_count,
            "late_file_size_in_bytes": each.size,
        }


def _grown(rows: Any) -> list[dict[str, Any]]:
    import pyarrow.compute as pc

    is_data = pc.and_(pc.equal(rows["content"], "data"), pc.greater(rows["record_count"], 0))
    found: list[dict[str, Any]] = rows.filter(is_data).to_pylist()
    return found


_COMMITS_AT_ONCE = 64


class _Ends:
    """When the time of each partition is over, Unix milliseconds."""

    def __init__(self, at: Instant) -> None:
        types = field_types(at.schema)
        self._places = {
            each.spec_id: place
            for each in at.state.specs
            if (place := _time_of(each, types)) is not None
        }
        self._known: dict[tuple[int, str], int | None] = {}
        if not self._places:
            raise InvalidInputError(
                "no partition is of a day or another time, so nothing can be late: partition by "
                "day(column), or by a DATE"
            )

    def of(self, spec_id: int, partition: str) -> int | None:
        """Return the end of a partition; None where it is of no time."""
        key = spec_id, partition
        if key not in self._known:
            place = self._places.get(spec_id)
            self._known[key] = None if place is None else place.end(partition)
        return self._known[key]


@define
class _Time:
    """Which of a spec's values is a time, and of which kind."""

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


def _time_of(spec: PartitionSpec, types: Mapping[int, t.DataType]) -> _Time | None:
    """Return the first of a spec's fields that is a time."""
    for place, each in enumerate(spec.fields):
        source, transform = types.get(each.source_id), transform_of(each.transform)
        if source is None or not isinstance(transform, Identity | Period):
            continue
        if isinstance(source, _TIMES):
            return _Time(place, transform, transform.result_type(source))
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
    """Return the end of a day that stands as text, as Hive's partitions have it."""
    found = _DAY_TEXT(text)
    if found is None:
        return None
    year, month, day = map(int, found.groups())
    try:
        begin = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None
    return int(begin.timestamp()) * 1000 + DAY_MILLIS


def _text(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat()
