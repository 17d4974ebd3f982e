"""Random lives of partitioned tables on a disk, with tags on their way; no file has any bytes."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen
from msgspec.structs import replace

from ledger import FileChange, Ledger, Schema, Table
from ledger.events import RolledBack, SnapshotCommitted, SnapshotsExpired
from ledger.stores import open_store
from ledger.table_handle import handle_of
from projections.dlf import Partition
from projections.statistics import Kept, refresh
from tests.lakes import lake_on, no_time
from tests.projections.statistics.lives import Life, listed_partitions

STEPS = 14


@frozen
class DecisionContext:
    """The parameters of a table's history.

    Attributes:
        seed: Of all that happens.
        options: Of the table.
        deletes: Whether some files hold deletes.
        evolves: Whether its partition spec changes.
    """

    seed: int
    options: tuple[tuple[str, str], ...] = ()
    deletes: bool = False
    evolves: bool = True

    @property
    def name(self) -> str:
        """The table's."""
        return f"life_{self.seed}"

    def __str__(self) -> str:
        options = "".join(f" {key}={value}" for key, value in self.options)
        return f"seed {self.seed}{options}{' with deletes' if self.deletes else ''}"


class DiskLife(Life):
    """A life of files that have a suffix, as Paimon wants, and deletes only where they may be."""

    def __init__(self, table: Table, course: DecisionContext) -> None:
        super().__init__(table, course.seed)
        self._course = course

    def _file(self) -> FileChange:
        made = super()._file()
        content = made.content if self._course.deletes else "data"
        return replace(made, path=f"{made.path}.parquet", content=content)

    def append_one(self) -> None:
        """Append a file, so that there is something to compare."""
        self.table.append((self._file(),))

    def evolve_spec(self) -> None:
        if self._course.evolves:
            super().evolve_spec()


@frozen
class Lived:
    """A table after its life.

    Attributes:
        table: It.
        kept: Its statistics.
    """

    table: Table
    kept: Kept

    def instants(self) -> dict[str | None, int]:
        """Return the snapshots to compare by tag; that of the head under None."""
        state = self.table.state
        tags: dict[str | None, int] = {n: each.snapshot_id for n, each in state.tags.items()}
        return tags | {None: state.last_snapshot_id}

    def shown(self, tag: str | None) -> dict[str, Partition]:
        """Return what `lakeledger stats` shows at a tag, or now, by the day."""
        at = self.table.at(tag=tag)
        return {each.spec["day"]: each for each in listed_partitions(self.kept, at)}

    def happenings(self) -> set[str]:
        """Return the kinds of what happened."""
        found: set[str] = set()
        for commit in self.table.events():
            for event in (each for one in commit.transactions for each in one.events):
                if isinstance(event, SnapshotCommitted):
                    found.add(event.commit_kind)
                elif isinstance(event, RolledBack | SnapshotsExpired):
                    found.add(type(event).__name__)
        if len(self.table.state.specs) > 1:
            found.add("evolution")
        return found


def a_lake(root: Path) -> Ledger:
    """Return a new ledger on a disk, with a database `shop`."""
    lake = lake_on(open_store(str(root)), retry_policy=no_time())
    lake.create_database("shop")
    return lake


def lived(lake: Ledger, course: DecisionContext) -> Lived:
    """Let a table live, tagging it three times."""
    schema = Schema.of(
        {"id": "BIGINT", "day": "DATE", "kind": "STRING"},
        partition_keys=["day"],
        options={"partition.legacy-name": "false", **dict(course.options)},
    )
    table = lake.create_table(f"shop.{course.name}", schema)
    life = DiskLife(table, course)
    for number in range(3):
        life.goes_on(STEPS)
        refresh(handle_of(table).log)
        life.append_one()
        table.create_tag(f"t{number}")
    life.goes_on(STEPS)
    life.append_one()
    return Lived(table, Kept.of(handle_of(table).log))
