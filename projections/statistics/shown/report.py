"""What `lakeledger stats` says of one table, and the same as plain JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from ledger.cli.screen import Screen
from ledger.model.errors import StoreError
from ledger.model.messages.excerpt import moment, size
from ledger.table import Table
from ledger.table_at import TableAt
from projections.dlf import Style, render
from projections.dlf.objects.partitions import Partition
from projections.materialising import Progress, nobody
from projections.statistics.keeping.engine_listed import EngineListed
from projections.statistics.keeping.kept import Kept
from projections.statistics.keeping.materialise import Engine, refresh
from projections.statistics.shown.query import (
    Counted,
    Instant,
    Order,
    TableTotals,
    first_by,
    partitions,
)


@frozen(kw_only=True)
class Report:
    """A table's statistics at one instant.

    Attributes:
        table: Its full name.
        version: The commit.
        snapshot_id: The snapshot; 0 before the first.
        engine: Which engine read what was new.
        partitions: All that have files, by their path.
        opening_snapshot_id: The first snapshot that is counted by itself, where the manifest lists
            of older ones expired before anybody counted them; None if all are.
    """

    table: str
    version: int
    snapshot_id: int
    engine: str
    partitions: tuple[Partition, ...]
    opening_snapshot_id: int | None = None

    @property
    def sums(self) -> dict[str, int]:
        """The whole table's sums, by their names in the DLF metadata API."""
        return {
            "recordCount": sum(each.record_count for each in self.partitions),
            "fileSizeInBytes": sum(each.file_size_in_bytes for each in self.partitions),
            "fileCount": sum(each.file_count for each in self.partitions),
        }

    def document(self, order: Order, top: int) -> dict[str, Any]:
        """Return the report as plain JSON; partitions in the shape of the DLF metadata API."""
        first = first_by(self.partitions, order, top)
        opening = self.opening_snapshot_id
        return {
            "table": self.table,
            "version": self.version,
            "snapshotId": self.snapshot_id,
            "engine": self.engine,
            **({} if opening is None else {"openingSnapshotId": opening}),
            "partitionCount": len(self.partitions),
            **self.sums,
            "partitions": [render(each, Style.DLF) for each in first],
        }


def brought_up_to_date(
    table: Table,
    at: TableAt,
    engine: Engine,
    notice: Callable[[str], None],
    on_progress: Progress = nobody,
) -> Counted:
    """Return a table's statistics after a refresh; where nothing can be kept, they are computed."""
    if not at.state.lists_files:
        return EngineListed(table, at)
    try:
        refresh(table.log, engine, on_progress=on_progress)
    except (OSError, StoreError) as error:
        notice(f"the statistics cannot be kept ({error}); they are computed all the same")
    return Kept.of(table.log)


def report_of(table: Table, kept: Counted, at: Instant, engine: str) -> Report:
    """Return what the statistics say of a table at an instant."""
    return Report(
        table=str(table.identifier),
        version=at.state.version,
        snapshot_id=at.state.last_snapshot_id,
        engine=engine,
        partitions=partitions(kept, at),
        opening_snapshot_id=kept.opening_snapshot_id,
    )


def totals_json(each: TableTotals) -> dict[str, Any]:
    """Return sums right after a snapshot as plain JSON, by their names in the DLF metadata API."""
    return {
        "snapshotId": each.snapshot_id,
        "version": each.version,
        "recordCount": each.record_count,
        "fileSizeInBytes": each.file_size_in_bytes,
        "fileCount": each.file_count,
        "lastFileCreationTime": each.last_file_creation_time,
    }


def print_report(screen: Screen, title: str, document: dict[str, Any]) -> None:
    """Print a table's report."""
    screen.line(title, style="bold")
    screen.facts(
        {
            "snapshot": document["snapshotId"],
            "partitions": document["partitionCount"],
            "rows": document["recordCount"],
            "files": document["fileCount"],
            "size": size(document["fileSizeInBytes"]),
        }
    )
    if "openingSnapshotId" in document:
        screen.line(
            f"Snapshot {document['openingSnapshotId']} stands for older ones, too: their manifest "
            "lists expired before they were counted."
        )
    screen.table(
        ("partition", "rows", "files", "size", "last file"),
        (
            (
                ", ".join(f"{key}={value}" for key, value in each["spec"].items()),
                each["recordCount"],
                each["fileCount"],
                size(each["fileSizeInBytes"]),
                moment(each["lastFileCreationTime"]),
            )
            for each in document["partitions"]
        ),
    )


def print_history(screen: Screen, history: Sequence[dict[str, Any]]) -> None:
    """Print the sums right after each snapshot."""
    screen.table(
        ("snapshot", "rows", "files", "size"),
        (
            (
                each["snapshotId"],
                each["recordCount"],
                each["fileCount"],
                size(each["fileSizeInBytes"]),
            )
            for each in history
        ),
    )


def print_columns(screen: Screen, title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print a line a column, partition and snapshot; what is not known is left empty."""
    screen.line(title, style="bold")
    if not rows:
        screen.line("no file says anything of a column")
        return
    screen.table(
        ("snapshot", "partition", "column", "values", "nulls", "lower", "upper", "exact"),
        (
            (
                each["snapshot_id"],
                each["partition"],
                each["column"],
                *("" if each[name] is None else each[name] for name in _COUNTED),
                "yes" if each["is_exact"] else "no",
            )
            for each in rows
        ),
    )


def print_distinct(screen: Screen, found: dict[str, Any] | None) -> None:
    """Print about how many different values columns have, where that was counted."""
    if found is None:
        return
    screen.table(("column", "different values, about"), tuple(found["columns"].items()))
    if not found["isExact"]:
        screen.line("Rows that delete files take away are counted, too.")


_COUNTED = ("value_count", "null_count", "lower", "upper")


def print_many(screen: Screen, documents: Sequence[dict[str, Any]]) -> None:
    """Print one line a table."""
    screen.table(
        ("table", "snapshot", "partitions", "rows", "files", "size"),
        (
            (
                each["table"],
                each["snapshotId"],
                each["partitionCount"],
                each["recordCount"],
                each["fileCount"],
                size(each["fileSizeInBytes"]),
            )
            for each in documents
        ),
    )
