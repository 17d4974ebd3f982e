"""What people ask of the statistics: partitions at an instant, totals over time, growth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from attrs import evolve, frozen

from ledger.evolution.state import TableState
from ledger.log.outside.column_values import PersonalColumns
from ledger.model.errors import NotFoundError
from ledger.model.messages.similar import listed
from ledger.model.schema import Schema
from projections.dlf.objects.partitions import Partition, PartitionStatistics
from projections.statistics.definition import PLACE_NAMES
from projections.statistics.fold import concatenated, grouped, running_totals, sums, up_to
from projections.statistics.keeping.tiling import Tile, block_of
from projections.statistics.shown.rendering import RenderedSpec, Rendering, told

if TYPE_CHECKING:
    import pyarrow as pa

Order = Literal["size", "records", "files"]


class Instant(Protocol):
    """A table at an instant; `Table.at` gives it."""

    @property
    def state(self) -> TableState:
        """All that the fold knows."""

    @property
    def schema(self) -> Schema:
        """The schema to read with."""


class Moments(Protocol):
    """When snapshots took effect, Unix milliseconds."""

    def of(self, place: int) -> int:
        """Return the moment of a row's `version`, which is a snapshot's place."""

    def of_snapshot(self, version: int, snapshot_id: int, /) -> int:
        """Return the moment of a snapshot, by the commit that brought it and its id."""


class Counted(Protocol):
    """What a table's rows are counted by: what is kept of them, or its engine's manifests."""

    @property
    def columns(self) -> PersonalColumns:
        """What is kept elsewhere of their partitions."""

    @property
    def opening_snapshot_id(self) -> int | None:
        """The first snapshot that is counted by itself; None if all are."""

    def up_to(self, version: int, snapshot_id: int) -> Iterator[pa.Table]:
        """Yield rows that add up to a state."""

    def history(self, version: int, snapshot_id: int) -> Iterator[pa.Table]:
        """Yield rows among which each snapshot up to a state has one."""

    def deltas(self, last: int) -> Iterator[pa.Table]:
        """Yield what each snapshot did, up to a version, oldest first."""

    def block(self, block: Tile, last: int) -> pa.Table:
        """Return what the snapshots of a block of versions did, up to one."""

    def version_of(self, version: int, snapshot_id: int, /) -> int:
        """Return the commit of a snapshot, by its place."""

    def moments(self, state: TableState, ahead: int = 1) -> Moments:
        """Return when snapshots took effect; `ahead` says how many are asked for in their order."""


@frozen(kw_only=True)
class TableTotals:
    """A whole table right after one snapshot: the sums of the DLF metadata API's TableSnapshot."""

    version: int
    snapshot_id: int
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int | None


def rendering_of(at: Instant) -> Rendering:
    """Return how partitions are shown to people at an instant."""
    return Rendering.of(at.schema, at.state.specs)


def paimon_rendering_of(at: Instant) -> Rendering:
    """Return how Paimon and the DLF metadata API show the table's partitions at an instant."""
    return Rendering.paimon(at.schema, at.state.specs)


def partition_sums(kept: Counted, at: Instant) -> pa.Table:
    """Return one row of `definition.ROWS` for every partition of every spec that ever had files.

    Raises:
        DamagedLogError: What has to be read of the log is missing or damaged.
    """
    state = at.state
    return _partition_sums(kept, kept.up_to(state.version, state.last_snapshot_id))


def last_changes(kept: Counted, at: Instant) -> pa.Table:
    """Return the same, `version` being the place of the snapshot that changed a partition last.

    Raises:
        DamagedLogError: What has to be read of the log is missing or damaged.
    """
    state = at.state
    return _partition_sums(kept, kept.history(state.version, state.last_snapshot_id))


def _partition_sums(kept: Counted, rows: Iterable[pa.Table]) -> pa.Table:
    import pyarrow.compute as pc

    found = _told(kept, sums(rows))
    return found.filter(pc.is_valid(found["spec_id"]))


def _told(kept: Counted, rows: pa.Table) -> pa.Table:
    """Return rows whose partitions say the values that are kept elsewhere; erased ones are NULL."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.unique(rows["partition"]).to_pylist()
    said = told(kept.columns, [each for each in texts if each is not None])
    if not said:
        return rows
    found = [said.get(each, each) for each in rows["partition"].to_pylist()]
    place = rows.schema.get_field_index("partition")
    return rows.set_column(place, rows.schema.field(place), pa.array(found, pa.string()))


def partitions(
    kept: Counted, at: Instant, rendering: Rendering | None = None
) -> tuple[Partition, ...]:
    """Return the partitions that have files at an instant, by their path.

    Args:
        kept: The table's statistics.
        at: The instant.
        rendering: How they are shown; as to people when None.
    """
    rendering = rendering or rendering_of(at)
    found: dict[str, Partition] = {}
    for row in partition_sums(kept, at).to_pylist():
        spec = rendering.spec(row["spec_id"], row["partition"])
        found[spec.path] = _plus(found.get(spec.path), spec, row)
    return tuple(found[path] for path in sorted(found) if found[path].file_count > 0)


def first_by(partitions: tuple[Partition, ...], order: Order, top: int) -> tuple[Partition, ...]:
    """Return the greatest partitions, ties by their values.

    Example:
        >>> one, two = (Partition(spec={"d": d}, record_count=n, file_size_in_bytes=0, file_count=1)
        ...             for d, n in (("a", 1), ("b", 2)))
        >>> [dict(each.spec) for each in first_by((one, two), "records", 1)]
        [{'d': 'b'}]
    """

    def rank(each: Partition) -> tuple[int, tuple[str, ...]]:
        count = {
            "size": each.file_size_in_bytes,
            "records": each.record_count,
            "files": each.file_count,
        }[order]
        return -count, tuple(each.spec.values())

    return tuple(sorted(partitions, key=rank)[:top])


def totals(kept: Counted, at: Instant) -> tuple[TableTotals, ...]:
    """Return the whole table at every snapshot up to an instant, in commit order."""
    state = at.state
    return _running(kept, kept.history(state.version, state.last_snapshot_id))


def _running(kept: Counted, rows: Iterable[pa.Table]) -> tuple[TableTotals, ...]:
    found = [TableTotals(**row) for row in running_totals(rows).to_pylist()]
    return tuple(
        evolve(each, version=kept.version_of(each.version, each.snapshot_id)) for each in found
    )


def growth(kept: Counted, at: Instant, spec: Mapping[str, str]) -> tuple[TableTotals, ...]:
    """Return one partition at every snapshot that changed it, up to an instant.

    Args:
        kept: The table's statistics.
        at: The instant; it says how partitions are shown, too.
        spec: The partition, as `partitions` gives it; as Paimon shows it is understood, too.

    Raises:
        NotFoundError: It never had files.
    """
    state = at.state
    for rendering in (rendering_of(at), paimon_rendering_of(at)):
        found: list[pa.Table] = []
        for rows in kept.deltas(state.version):
            mine = up_to(rows, version=state.version, snapshot_id=state.last_snapshot_id)
            mine = _told(kept, mine)
            found += _rows_of(mine, rendering, dict(spec))
        whole = grouped(concatenated(found), PLACE_NAMES)
        if len(whole):
            return _running(kept, [whole])
    raise NotFoundError(_unknown(spec, partitions(kept, at)))


def _unknown(spec: Mapping[str, str], there: tuple[Partition, ...]) -> str:
    def text(items: Mapping[str, str]) -> str:
        return ", ".join(f"{key}={value}" for key, value in items.items())

    problem = f"no file was ever in partition {text(spec)}"
    known = [each.spec for each in there if each.spec]
    if not known:
        return f"{problem}: there are no partitions; ask for the whole table"
    if any(each.keys() == spec.keys() for each in known):
        return f"{problem}; there are: {listed([text(each) for each in known])}"
    return f"{problem}: partitions are told by {', '.join(known[0])}, as {text(known[0])} is"


def _rows_of(rows: pa.Table, rendering: Rendering, spec: dict[str, str]) -> Iterator[pa.Table]:
    """Yield the rows of the partitions of the log that are shown as one."""
    import pyarrow.compute as pc

    rows = rows.filter(pc.is_valid(rows["spec_id"]))
    names = rows.group_by(["spec_id", "partition"], use_threads=False).aggregate([])
    for spec_id, partition in zip(*names.to_pydict().values(), strict=True):
        if dict(rendering.spec(spec_id, partition).items) == spec:
            yield rows.filter(
                pc.and_(pc.equal(rows["spec_id"], spec_id), pc.equal(rows["partition"], partition))
            )


def _plus(before: Partition | None, spec: RenderedSpec, row: Mapping[str, int]) -> Partition:
    moment: int = row["last_file_creation_time"]
    if before is None:
        return Partition(
            spec=dict(spec.items),
            record_count=row["record_count"],
            file_size_in_bytes=row["file_size_in_bytes"],
            file_count=row["file_count"],
            last_file_creation_time=moment,
        )
    return Partition(
        spec=before.spec,
        record_count=before.record_count + row["record_count"],
        file_size_in_bytes=before.file_size_in_bytes + row["file_size_in_bytes"],
        file_count=before.file_count + row["file_count"],
        last_file_creation_time=max(before.last_file_creation_time or 0, moment),
    )


def partition_deltas(
    kept: Counted, at: Instant, *, total_buckets: int = 0
) -> tuple[PartitionStatistics, ...]:
    """Return what the newest snapshot of an instant adds to each partition, by path.

    It is what a commit to Paimon's REST catalog carries.

    Args:
        kept: The table's statistics.
        at: The instant.
        total_buckets: The table's number of buckets; 0 when it has none.
    """
    import pyarrow.compute as pc

    state, rendering = at.state, paimon_rendering_of(at)
    if state.snapshot is None:
        return ()
    rows = _told(kept, kept.block(block_of(state.version), state.version))
    mine = rows.filter(
        pc.and_(pc.equal(rows["snapshot_id"], state.last_snapshot_id), pc.is_valid(rows["spec_id"]))
    )
    found: dict[str, Partition] = {}
    for row in mine.to_pylist():
        spec = rendering.spec(row["spec_id"], row["partition"])
        found[spec.path] = _plus(found.get(spec.path), spec, row)
    return tuple(
        PartitionStatistics(
            spec=each.spec,
            record_count=each.record_count,
            file_size_in_bytes=each.file_size_in_bytes,
            file_count=each.file_count,
            last_file_creation_time=each.last_file_creation_time,
            total_buckets=total_buckets,
        )
        for _, each in sorted(found.items())
    )
