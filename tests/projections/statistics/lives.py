"""Tables with random lives: every kind of snapshot, branches, specs, expiry, many writers."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

from ledger import FileChange, LedgerError, RenameColumn, Schema, SnapshotPlan, Table
from ledger.model import PartitionField, PartitionValue
from ledger.stores import Store
from ledger.table_handle import handle_of
from ledger.transforms import bucket
from projections.dlf.objects import Partition
from projections.statistics import query
from projections.statistics.partition_rendering import Instant, PartitionRendering, rendering_of
from tests.lakes import lake_on, memory, no_time

NAME = "shop.orders"
DAYS = ("2024-01-01", "2024-01-02", None)


def a_table(store: Store | None = None) -> Table:
    lake = lake_on(store or memory(), retry_policy=no_time())
    lake.create_database("shop")
    columns = {"id": "BIGINT", "day": "DATE", "kind": "STRING"}
    return lake.create_table(
        NAME, Schema.of(columns, partition_keys=["day"], options={"ledger.formats": "iceberg"})
    )


def reopened(table: Table, store: Store) -> Table:
    return lake_on(store).table(str(table.identifier))


def listed_partitions(
    kept: query.StatisticsSource, at: Instant, rendering: PartitionRendering | None = None
) -> tuple[Partition, ...]:
    """Return the partitions that have files at an instant, by their path."""
    rendering = rendering or rendering_of(at)
    return query.render_partitions(query.partitions(kept, at, rendering), rendering)


class Life:
    """Lets things happen to a table, from a seed."""

    def __init__(self, table: Table, seed: int) -> None:
        self.table = table
        self._rng = random.Random(seed)
        self._files = 0

    def goes_on(self, steps: int) -> None:
        for _ in range(steps):
            happening = self._rng.choice(_HAPPENINGS)
            happening(self)

    def files(self, most: int = 3) -> tuple[FileChange, ...]:
        return tuple(self._file() for _ in range(self._rng.randrange(most + 1)))

    def _file(self) -> FileChange:
        self._files += 1
        state = self.table.at().state
        deletes = self._rng.random() < 0.2
        return FileChange(
            path=f"f{self._files}.parquet",
            partition=tuple(self._value(each) for each in state.spec.fields),
            spec_id=state.default_spec_id,
            schema_id=state.schema.id,
            record_count=self._rng.randrange(100),
            file_size_in_bytes=self._rng.randrange(10_000),
            creation_time=self._rng.randrange(10**12),
            content="position-deletes" if deletes else "data",
            field_ids=True,
        )

    def _value(self, field: PartitionField) -> PartitionValue:
        if field.transform.startswith("bucket"):
            return self._rng.randrange(2)
        return self._rng.choice(DAYS)

    def live(self) -> list[str]:
        return [each.path for each in self.table.at().files]

    def append(self) -> None:
        self.table.append(self.files())

    def append_many(self) -> None:
        self.table.append(tuple(self._file() for _ in range(1001)))

    def overwrite(self) -> None:
        where = {"day": self._rng.choice(DAYS)} if self._rng.random() < 0.7 else None
        self.table.overwrite(self.files(), where=where)

    def compact(self) -> None:
        live = self.live()
        gone = tuple(self._rng.sample(live, min(len(live), 2)))
        self.table.commit_snapshot(SnapshotPlan("COMPACT", self.files(1), delete=gone))

    def delete(self) -> None:
        if live := self.live():
            self.table.delete_files([self._rng.choice(live)])

    def rollback(self) -> None:
        state = self.table.at().state
        if state.last_snapshot_id > state.earliest_snapshot_id:
            target = self._rng.randrange(state.earliest_snapshot_id, state.last_snapshot_id)
            self.table.rollback(snapshot=target)

    def expire(self) -> None:
        state = self.table.at().state
        if state.last_snapshot_id > state.earliest_snapshot_id:
            self.table.expire_snapshots(before=state.earliest_snapshot_id + 1)

    def evolve_spec(self) -> None:
        if len(self.table.at().state.specs) < 3:
            self.table.update_spec().add_field(
                bucket("id", 2 + len(self.table.at().state.specs))
            ).commit()

    def rename(self) -> None:
        names = self.table.at().schema.names
        old = next(each for each in names if each.startswith("kind"))
        self.table.alter([RenameColumn((old,), f"kind{self._files}_{self.table.at().version}")])

    def branch(self) -> None:
        """Let a branch begin, go on, come to main, begin anew or end; main's figures are main's."""
        state = self.table.at().state
        if "audit" not in state.branches:
            if state.last_snapshot_id:
                self.table.create_branch("audit")
            return
        branch = self.table.branch("audit")
        match self._rng.randrange(6):
            case 0:
                branch.delete()
            case 1:
                # What main or the branch has meanwhile may stand in the way.
                with suppress(LedgerError):
                    branch.fast_forward()
            case 2:
                branch.reset()
            case 3:
                branch.overwrite(self.files(), where={"day": self._rng.choice(DAYS)})
            case 4 | 5:
                branch.append(self.files())

    def crowd(self) -> None:
        """Let three writers commit at once; whatever of it is refused did not happen."""
        batches = [self.files(), self.files(), self.files()]
        together(self.table, [lambda files=each: self.table.append(files) for each in batches])  # type: ignore[misc]


def together(table: Table, work: list[Callable[[], object]]) -> None:
    """Let threads commit at once: those that wait for the lock are grouped into one commit."""
    log = handle_of(table).log
    with ThreadPoolExecutor(len(work)) as pool:
        with log.store.lock(log.layout.lock):
            asked = [pool.submit(each) for each in work]
            wait(asked, timeout=0.03)
        for each in asked:
            try:
                each.result(30)
            except LedgerError:
                continue


_HAPPENINGS: tuple[Callable[[Life], None], ...] = (
    Life.append,
    Life.append,
    Life.append,
    Life.overwrite,
    Life.compact,
    Life.delete,
    Life.rollback,
    Life.expire,
    Life.evolve_spec,
    Life.rename,
    Life.crowd,
    Life.branch,
    Life.branch,
)
