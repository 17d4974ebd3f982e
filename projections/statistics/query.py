"""Queries on statistics, and the rendering of partitions.

Files of several specs can be in one shown partition: for example after a bucket field was added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec
from attrs import evolve, field, frozen

from ledger.events.commit import OUTSIDE
from ledger.log.personal_data import PersonalColumns
from ledger.model.errors import NotFoundError, UnsupportedError
from ledger.model.file_change import sidecar_location_of
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.messages import join_names
from ledger.model.schema import Schema
from ledger.state.table import TableState
from projections.dlf.objects import Partition, PartitionStatistics
from projections.partition_text import PartitionText, key_places, partition_path
from projections.statistics.definition import PLACE_NAMES
from projections.statistics.fold import (
    concat_rows,
    fold_by_columns,
    sums,
    totals_by_snapshot,
    up_to,
)
from projections.statistics.tile_rows import Tile, block_of

if TYPE_CHECKING:
    import pyarrow as pa


@frozen
class RenderedSpec:
    """A partition as text: its path, which identifies it, and its keys with their values."""

    path: str
    items: tuple[tuple[str, str], ...]


@frozen
class DisplayedPartitionFields:
    """Displayed partition fields of one spec's files.

    If a spec has the table's partition keys, only these, whatever other fields it has: they are the
    partitions of the DLF metadata API. Otherwise the spec's own fields, with the values of the log:
    another column may have a field's name by now.
    """

    names: tuple[str, ...]
    places: tuple[int, ...]
    text: PartitionText

    @classmethod
    def of(
        cls, schema: Schema, spec: PartitionSpec, text: PartitionText
    ) -> DisplayedPartitionFields:
        """Return the displayed fields of a spec, with values written by `text`."""
        try:
            places = key_places(schema, spec)
        except UnsupportedError:
            places = ()
        if places:
            return cls(schema.partition_keys, places, text)
        shown = [each for each in enumerate(spec.fields) if each[1].transform != "void"]
        names = tuple(each.name for _, each in shown)
        return cls(names, tuple(place for place, _ in shown), evolve(text, types={}))


def partition_texts(columns: PersonalColumns, partitions: Iterable[str]) -> dict[str, str]:
    """Return the full values of partitions whose personal values are stored separately.

    An erased value is NULL.

    Args:
        columns: The personal values.
        partitions: JSON arrays from rows of statistics, which are the keys of the result.
    """
    outside = {each: msgspec.json.decode(each) for each in partitions if OUTSIDE in each}
    wanted = {
        at for values in outside.values() for each in values if (at := sidecar_location_of(each))
    }
    known = columns.values(wanted)
    return {
        text: msgspec.json.encode(
            [
                each if (at := sidecar_location_of(each)) is None else known.get(at)
                for each in values
            ]
        ).decode()
        for text, values in outside.items()
    }


@frozen
class PartitionRendering:
    """A table's rendering of partitions, at one instant.

    Attributes:
        shown: By spec id, the displayed fields.
        columns: Personal partition values, which rows do not contain.
    """

    shown: Mapping[int, DisplayedPartitionFields] = field(hash=False)
    columns: PersonalColumns | None = None

    @classmethod
    def of(cls, schema: Schema, specs: Sequence[PartitionSpec]) -> PartitionRendering:
        """Return the rendering for people: a date is a date.

        Example:
            >>> from ledger.state.layout import identity_spec
            >>> schema = Schema.of({"id": "INT", "day": "DATE"}, partition_keys=["day"])
            >>> PartitionRendering.of(schema, [identity_spec(schema)]).spec(
            ...     0, '["2024-01-01"]'
            ... ).path
            'day=2024-01-01'
        """
        text = evolve(PartitionText.of(schema), legacy_name=False)
        return cls(
            {each.spec_id: DisplayedPartitionFields.of(schema, each, text) for each in specs}
        )

    @classmethod
    def paimon(cls, schema: Schema, specs: Sequence[PartitionSpec]) -> PartitionRendering:
        """Return the rendering of Paimon's and the DLF metadata API's objects.

        It follows the table's option `partition.legacy-name`, by which a date is a day number.

        Example:
            >>> from ledger.state.layout import identity_spec
            >>> schema = Schema.of({"id": "INT", "day": "DATE"}, partition_keys=["day"])
            >>> PartitionRendering.paimon(schema, [identity_spec(schema)]).spec(
            ...     0, '["2024-01-01"]'
            ... ).path
            'day=19723'
        """
        text = PartitionText.of(schema)
        return cls(
            {each.spec_id: DisplayedPartitionFields.of(schema, each, text) for each in specs}
        )

    def spec(self, spec_id: int, partition: str) -> RenderedSpec:
        """Return the partition of a row's keys.

        Args:
            spec_id: The row's spec.
            partition: Its values, a JSON array.

        Raises:
            InvalidInputError: A value does not have its column's type.
        """
        fields = self.shown[spec_id]
        values = msgspec.json.decode(partition)
        spec = fields.text.spec(fields.names, [values[each] for each in fields.places])
        return RenderedSpec(partition_path(spec), tuple(spec.items()))


Order = Literal["size", "records", "files"]


class Instant(Protocol):
    """A table at an instant; `Table.at` returns it."""

    @property
    def state(self) -> TableState:
        """The folded state."""

    @property
    def schema(self) -> Schema:
        """The schema to read with."""


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

    def up_to(self, version: int, snapshot_id: int) -> Iterator[pa.Table]:
        """Yield rows that add up to a state."""

    def history(self, version: int, snapshot_id: int) -> Iterator[pa.Table]:
        """Yield rows that include one for each snapshot up to a state."""

    def deltas(self, last: int) -> Iterator[pa.Table]:
        """Yield the changes of each snapshot, up to a version, oldest first."""

    def block(self, block: Tile, last: int) -> pa.Table:
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


def rendering_of(at: Instant) -> PartitionRendering:
    """Return the rendering of partitions for people at an instant."""
    return PartitionRendering.of(at.schema, at.state.specs)


def paimon_rendering_of(at: Instant) -> PartitionRendering:
    """Return the rendering of Paimon and the DLF metadata API at an instant."""
    return PartitionRendering.paimon(at.schema, at.state.specs)


def partition_sums(kept: StatisticsSource, at: Instant) -> pa.Table:
    """Return one row of `definition.ROWS` for every partition of every spec that ever had files.

    Raises:
        DamagedLogError: A needed part of the log is missing or damaged.
    """
    state = at.state
    return _fold_partition_sums(kept, kept.up_to(state.version, state.last_snapshot_id))


def last_changes(kept: StatisticsSource, at: Instant) -> pa.Table:
    """Return the same, with `version` as the place of the snapshot of the last change.

    Raises:
        DamagedLogError: A needed part of the log is missing or damaged.
    """
    state = at.state
    return _fold_partition_sums(kept, kept.history(state.version, state.last_snapshot_id))


def _fold_partition_sums(kept: StatisticsSource, rows: Iterable[pa.Table]) -> pa.Table:
    import pyarrow.compute as pc

    found = _fill_personal_values(kept, sums(rows))
    return found.filter(pc.is_valid(found["spec_id"]))


def _fill_personal_values(kept: StatisticsSource, rows: pa.Table) -> pa.Table:
    """Return rows with the personal values of partitions filled in; erased ones are NULL."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.unique(rows["partition"]).to_pylist()
    said = partition_texts(kept.columns, [each for each in texts if each is not None])
    if not said:
        return rows
    found = [said.get(each, each) for each in rows["partition"].to_pylist()]
    place = rows.schema.get_field_index("partition")
    return rows.set_column(place, rows.schema.field(place), pa.array(found, pa.string()))


def partitions(
    kept: StatisticsSource, at: Instant, rendering: PartitionRendering | None = None
) -> tuple[Partition, ...]:
    """Return the partitions that have files at an instant, by their path.

    Args:
        kept: The table's statistics.
        at: The instant.
        rendering: The rendering; None for that for people.
    """
    rendering = rendering or rendering_of(at)
    found: dict[str, Partition] = {}
    for row in partition_sums(kept, at).to_pylist():
        spec = rendering.spec(row["spec_id"], row["partition"])
        found[spec.path] = _add_row_to_partition(found.get(spec.path), spec, row)
    return tuple(found[path] for path in sorted(found) if found[path].file_count > 0)


def greatest_partitions(
    partitions: tuple[Partition, ...], order: Order, top: int
) -> tuple[Partition, ...]:
    """Return the greatest partitions, ties by their values.

    Example:
        >>> one, two = (Partition(spec={"d": d}, record_count=n, file_size_in_bytes=0, file_count=1)
        ...             for d, n in (("a", 1), ("b", 2)))
        >>> [dict(each.spec) for each in greatest_partitions((one, two), "records", 1)]
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


def totals(kept: StatisticsSource, at: Instant) -> tuple[TableTotals, ...]:
    """Return the totals of the table after every snapshot up to an instant, in commit order."""
    state = at.state
    return _running_totals(kept, kept.history(state.version, state.last_snapshot_id))


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
    state = at.state
    for rendering in (rendering_of(at), paimon_rendering_of(at)):
        found: list[pa.Table] = []
        for rows in kept.deltas(state.version):
            mine = up_to(rows, version=state.version, snapshot_id=state.last_snapshot_id)
            mine = _fill_personal_values(kept, mine)
            found += _rows_shown_as_spec(mine, rendering, dict(spec))
        whole = fold_by_columns(concat_rows(found), PLACE_NAMES)
        if len(whole):
            return _running_totals(kept, [whole])
    raise NotFoundError(_unknown_partition_message(spec, partitions(kept, at)))


def _unknown_partition_message(spec: Mapping[str, str], there: tuple[Partition, ...]) -> str:
    def text(items: Mapping[str, str]) -> str:
        return ", ".join(f"{key}={value}" for key, value in items.items())

    problem = f"no file was ever in partition {text(spec)}"
    known = [each.spec for each in there if each.spec]
    if not known:
        return f"{problem}: there are no partitions; query the whole table"
    if any(each.keys() == spec.keys() for each in known):
        return f"{problem}; there are: {join_names([text(each) for each in known])}"
    return f"{problem}: partitions have the keys {', '.join(known[0])}, such as {text(known[0])}"


def _rows_shown_as_spec(
    rows: pa.Table, rendering: PartitionRendering, spec: dict[str, str]
) -> Iterator[pa.Table]:
    """Yield the rows of the log's partitions that are shown as one."""
    import pyarrow.compute as pc

    rows = rows.filter(pc.is_valid(rows["spec_id"]))
    names = rows.group_by(["spec_id", "partition"], use_threads=False).aggregate([])
    for spec_id, partition in zip(*names.to_pydict().values(), strict=True):
        if dict(rendering.spec(spec_id, partition).items) == spec:
            yield rows.filter(
                pc.and_(pc.equal(rows["spec_id"], spec_id), pc.equal(rows["partition"], partition))
            )


def _add_row_to_partition(
    before: Partition | None, spec: RenderedSpec, row: Mapping[str, int]
) -> Partition:
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
    rows = _fill_personal_values(kept, kept.block(block_of(state.version), state.version))
    mine = rows.filter(
        pc.and_(pc.equal(rows["snapshot_id"], state.last_snapshot_id), pc.is_valid(rows["spec_id"]))
    )
    found: dict[str, Partition] = {}
    for row in mine.to_pylist():
        spec = rendering.spec(row["spec_id"], row["partition"])
        found[spec.path] = _add_row_to_partition(found.get(spec.path), spec, row)
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
