"""Queries on the tiles of statistics, in Arrow.

A query returns a table; what is shown of it is rendered to text or objects by its caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Literal, Protocol

from attrs import evolve, frozen

from ledger.files.partition_values import unescape_path
from ledger.log.personal_data import PersonalColumns
from ledger.model.errors import NotFoundError
from ledger.model.messages import join_names
from ledger.state.table import TableState
from projections.dlf.objects import Partition, PartitionStatistics
from projections.statistics.definition import DATA, KEY_NAMES, PLACE_NAMES
from projections.statistics.fold import concat_rows, fold_by_columns, totals_by_snapshot, up_to
from projections.statistics.partition_rendering import (
    Instant,
    PartitionRendering,
    fill_personal_values,
    paimon_rendering_of,
    rendering_of,
)
from projections.statistics.tile_files import (
    AllPartitions,
    PartitionRows,
    RowFilter,
    TableRows,
    Tile,
    block_of,
)

if TYPE_CHECKING:
    import pyarrow as pa


Order = Literal["size", "records", "files"]


class Moments(Protocol):
    """Effective times of snapshots, Unix milliseconds."""

    def of(self, place: int) -> int:
        """Return the time of a row's `version`, which is a snapshot's place."""

    def of_snapshot(self, version: int, snapshot_id: int, /) -> int:
        """Return the time of a snapshot, by the commit that imported it and its id."""


class StatisticsSource(Protocol):
    """Source of a table's statistics: the kept tiles, or its engine's manifests."""

    @property
    def columns(self) -> PersonalColumns:
        """Personal partition values, which are stored separately."""

    @property
    def opening_snapshot_id(self) -> int | None:
        """The first snapshot that is counted by itself; None if all are."""

    def up_to(
        self, version: int, snapshot_id: int, rows: RowFilter | None = None
    ) -> Iterator[pa.Table]:
        """Yield rows that add up to a state; `rows` selects some of them."""

    def history(
        self, version: int, snapshot_id: int, rows: RowFilter | None = None
    ) -> Iterator[pa.Table]:
        """Yield rows that include one for each snapshot up to a state."""

    def deltas(self, first: int, last: int, rows: RowFilter | None = None) -> Iterator[pa.Table]:
        """Yield the changes of each snapshot of some versions."""

    def block(self, block: Tile, last: int, rows: RowFilter | None = None) -> pa.Table:
        """Return the changes of a block's snapshots, up to a version."""

    def version_of(self, version: int, snapshot_id: int, /) -> int:
        """Return the commit of a snapshot, by its place."""

    def moments(self, state: TableState, ahead: int = 1) -> Moments:
        """Return the effective times of snapshots; `ahead` is the number to prefetch."""


@frozen(kw_only=True)
class TableTotals:
    """A table's totals after one snapshot: the sums of the DLF metadata API's TableSnapshot."""

    version: int
    snapshot_id: int
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int | None


def partition_sums(
    kept: StatisticsSource,
    state: TableState,
    rows: RowFilter = AllPartitions(),  # noqa: B008 - frozen
) -> pa.Table:
    """Return one row of `definition.ROWS` for every partition of every spec that ever had files.

    Args:
        kept: The table's statistics.
        state: The table's state at the instant.
        rows: Selects partitions, such as those of a range.

    Raises:
        DamagedLogError: A needed part of the log is missing or damaged.
    """
    return _fold_partition_sums(kept, kept.up_to(state.version, state.last_snapshot_id, rows))


def _fold_partition_sums(kept: StatisticsSource, rows: Iterable[pa.Table]) -> pa.Table:
    folded = fold_by_columns(concat_rows(rows), KEY_NAMES)
    filled = fill_personal_values(kept.columns, folded)
    # One value may be stored several times.
    return folded if filled is folded else fold_by_columns(filled, KEY_NAMES)


def partitions(
    kept: StatisticsSource, at: Instant, rendering: PartitionRendering | None = None
) -> pa.Table:
    """Return the partitions that have files at an instant, a row of `merge_shown` each, by path.

    Args:
        kept: The table's statistics.
        at: The instant.
        rendering: The rendering; None for that for people.

    Raises:
        DamagedLogError: A needed part of the log is missing or damaged.
    """
    return _with_files(merge_shown(partition_sums(kept, at.state), rendering or rendering_of(at)))


def last_changes(kept: StatisticsSource, at: Instant) -> pa.Table:
    """Return the same for people, with `version` as the place of the snapshot of the last change.

    Raises:
        DamagedLogError: A needed part of the log is missing or damaged.
    """
    state = at.state
    rows = kept.history(state.version, state.last_snapshot_id, AllPartitions())
    return _with_files(merge_shown(_fold_partition_sums(kept, rows), rendering_of(at)))


def _with_files(partitions: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    return partitions.filter(pc.greater(partitions["file_count"], 0))


_MERGED = (
    ("version", "max"),
    ("record_count", "sum"),
    ("file_size_in_bytes", "sum"),
    ("file_count", "sum"),
    ("last_file_creation_time", "max"),
    ("data_file_count", "sum"),
    ("data_file_size_in_bytes", "sum"),
)


def merge_shown(rows: pa.Table, rendering: PartitionRendering) -> pa.Table:
    """Return a row for each shown partition, by path: several rows may be shown as one.

    Args:
        rows: Rows of `definition.ROWS`, none of a whole table.
        rendering: The rendering.

    Returns:
        `path`, the measures of `definition.ROWS`, `version` of the last change, the counts and
        sizes of data files, and `spec_id` and `partition` of one of the merged rows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    is_data = pc.equal(rows["content"], DATA)
    none = pa.scalar(0, pa.int64())
    paths = rendering.paths(rows)
    order = pc.array_sort_indices(paths)
    shown = pa.table(
        {
            "path": paths,
            **{name: rows[name] for name in ("spec_id", "partition", *_MERGED_NAMES)},
            "data_file_count": pc.if_else(is_data, rows["file_count"], none),
            "data_file_size_in_bytes": pc.if_else(is_data, rows["file_size_in_bytes"], none),
        }
    ).take(order)
    path = shown["path"].combine_chunks()
    if not pc.any(pc.equal(path[1:], path[:-1])).as_py():
        return shown
    numbered = shown.append_column("row", pa.array(range(len(shown)), pa.int64()))
    found = numbered.group_by("path", use_threads=False).aggregate([*_MERGED, ("row", "min")])
    found = found.sort_by("row_min")
    keys = shown.select(["path", "spec_id", "partition"]).take(found["row_min"])
    for name, fold in _MERGED:
        keys = keys.append_column(name, found[f"{name}_{fold}"])
    return keys


_MERGED_NAMES = [name for name, _ in _MERGED if not name.startswith("data_")]


def greatest_partitions(partitions: pa.Table, order: Order, top: int) -> pa.Table:
    """Return the greatest partitions, ties by their values.

    Args:
        partitions: The result of `partitions`.
        order: The measure.
        top: The number of partitions.

    Example:
        >>> import pyarrow as pa
        >>> found = pa.table({"path": ["d=a", "d=b", "d=c"], "record_count": [1, 2, 1]})
        >>> greatest_partitions(found, "records", 2)["path"].to_pylist()
        ['d=b', 'd=a']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    counts = partitions[_ORDERED_BY[order]].combine_chunks()
    if len(partitions) > top:
        # All partitions that may be among the first ones: those as great as the last of them.
        greatest = counts.take(pc.select_k_unstable(counts, top, [("", "descending")]))
        candidates = partitions.filter(pc.greater_equal(counts, pc.min(greatest)))
        counts = candidates[_ORDERED_BY[order]].combine_chunks()
    else:
        candidates = partitions
    ranks = zip(counts.to_pylist(), candidates["path"].to_pylist(), range(len(counts)), strict=True)
    first = nsmallest(top, ranks, key=lambda each: (-each[0], _values_of_path(each[1])))
    return candidates.take(pa.array([place for _, _, place in first], pa.int64()))


_ORDERED_BY: dict[Order, str] = {
    "size": "file_size_in_bytes",
    "records": "record_count",
    "files": "file_count",
}


def _values_of_path(path: str) -> tuple[str, ...]:
    return tuple(unescape_path(each.partition("=")[2]) for each in path.split("/"))


def render_partitions(rows: pa.Table, rendering: PartitionRendering) -> tuple[Partition, ...]:
    """Return rows of `partitions` as objects of the DLF metadata API.

    Args:
        rows: The rows.
        rendering: The rendering that they were made with.
    """
    return tuple(
        Partition(
            spec=dict(rendering.spec(row["spec_id"], row["partition"]).items),
            record_count=row["record_count"],
            file_size_in_bytes=row["file_size_in_bytes"],
            file_count=row["file_count"],
            last_file_creation_time=row["last_file_creation_time"],
        )
        for row in rows.to_pylist()
    )


def totals(kept: StatisticsSource, at: Instant) -> tuple[TableTotals, ...]:
    """Return the totals of the table after every snapshot up to an instant, in commit order."""
    state = at.state
    rows = kept.history(state.version, state.last_snapshot_id, TableRows())
    return _running_totals(kept, rows)


def _running_totals(kept: StatisticsSource, rows: Iterable[pa.Table]) -> tuple[TableTotals, ...]:
    found = [TableTotals(**row) for row in totals_by_snapshot(rows).to_pylist()]
    return tuple(
        evolve(each, version=kept.version_of(each.version, each.snapshot_id)) for each in found
    )


def growth(kept: StatisticsSource, at: Instant, spec: Mapping[str, str]) -> tuple[TableTotals, ...]:
    """Return the sums of one partition after every snapshot that changed it, up to an instant.

    Args:
        kept: The table's statistics.
        at: The instant, which also determines the rendering.
        spec: The partition, as from `partitions`, or as Paimon shows it.

    Raises:
        NotFoundError: It never had files.
    """
    state, renderings = at.state, (rendering_of(at), paimon_rendering_of(at))
    ranges = {each for rendering in renderings for each in rendering.ranges_of(spec)}
    wanted = PartitionRows(tuple(ranges))
    rows = concat_rows(kept.deltas(0, state.version, wanted))
    rows = up_to(rows, version=state.version, snapshot_id=state.last_snapshot_id)
    rows = fill_personal_values(kept.columns, rows)
    for rendering in renderings:
        mine = _rows_shown_as(rows, rendering, spec)
        if len(mine):
            return _running_totals(kept, [fold_by_columns(mine, PLACE_NAMES)])
    raise NotFoundError(_unknown_partition_message(spec, partitions(kept, at), renderings[0]))


def _rows_shown_as(
    rows: pa.Table, rendering: PartitionRendering, spec: Mapping[str, str]
) -> pa.Table:
    """Return the rows of the log's partitions that are shown as one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = rows.group_by(["spec_id", "partition"], use_threads=False).aggregate([])
    if not len(keys):
        return rows
    paths = pa.array(rendering.paths_of(spec), pa.string())
    mine = keys.filter(pc.is_in(rendering.paths(keys), paths))
    if len(mine) == len(keys):
        return rows
    return rows.join(mine, ["spec_id", "partition"], join_type="left semi", use_threads=False)


def _unknown_partition_message(
    spec: Mapping[str, str], there: pa.Table, rendering: PartitionRendering
) -> str:
    import pyarrow.compute as pc

    def text(items: Mapping[str, str]) -> str:
        return ", ".join(f"{key}={value}" for key, value in items.items())

    problem = f"no file was ever in partition {text(spec)}"
    known = there.filter(pc.not_equal(there["path"], ""))
    if not len(known):
        return f"{problem}: there are no partitions; query the whole table"
    # Only the first ones are named, so only those are rendered.
    first = [text(each.spec) for each in render_partitions(known.slice(0, _NAMED), rendering)]
    spec_ids = pc.unique(known["spec_id"]).to_pylist()
    if any(set(rendering.shown[each].names) == spec.keys() for each in spec_ids):
        names = [*first, *known["path"].slice(_NAMED).to_pylist()]
        return f"{problem}; there are: {join_names(names)}"
    keys = ", ".join(render_partitions(known.slice(0, 1), rendering)[0].spec)
    return f"{problem}: partitions have the keys {keys}, such as {first[0]}"


_NAMED = 20


def map_distinct(column: pa.ChunkedArray, function: Callable[[int], object], kind: Any) -> Any:
    """Return the results of a function of a column, called once for each of its values in order.

    Args:
        column: Integers.
        function: The function.
        kind: The Arrow type of the results.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pa.array(sorted(pc.unique(column).to_pylist()), column.type)
    found = pa.array([function(each) for each in values.to_pylist()], kind)
    return found.take(pc.index_in(column.combine_chunks(), values))


def partition_deltas(
    kept: StatisticsSource, at: Instant, *, total_buckets: int = 0
) -> tuple[PartitionStatistics, ...]:
    """Return the change of each partition by the newest snapshot of an instant, by path.

    A commit to Paimon's REST catalog carries it.

    Args:
        kept: The table's statistics.
        at: The instant.
        total_buckets: The table's number of buckets; 0 when it has none.
    """
    import pyarrow.compute as pc

    state, rendering = at.state, paimon_rendering_of(at)
    if state.snapshot is None:
        return ()
    rows = kept.block(block_of(state.version), state.version)
    is_mine = pc.and_(
        pc.equal(rows["snapshot_id"], state.last_snapshot_id), pc.is_valid(rows["spec_id"])
    )
    mine = merge_shown(fill_personal_values(kept.columns, rows.filter(is_mine)), rendering)
    return tuple(
        PartitionStatistics(
            spec=each.spec,
            record_count=each.record_count,
            file_size_in_bytes=each.file_size_in_bytes,
            file_count=each.file_count,
            last_file_creation_time=each.last_file_creation_time,
            total_buckets=total_buckets,
        )
        for each in render_partitions(mine, rendering)
    )
