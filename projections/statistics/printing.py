"""Statistics as text on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ledger.cli.output import Screen, id_cell
from ledger.model.messages import moment, size
from projections.statistics.query import TableTotals

if TYPE_CHECKING:
    import pyarrow as pa


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
            "snapshot": id_cell(document["snapshotId"]),
            "partitions": document["partitionCount"],
            "rows": document["recordCount"],
            "files": document["fileCount"],
            "size": size(document["fileSizeInBytes"]),
        }
    )
    if "openingSnapshotId" in document:
        screen.line(
            f"Snapshot {document['openingSnapshotId']} includes older ones, whose manifest lists "
            "expired before they were counted."
        )
    shown = list(document["partitions"])
    print_partitions(screen, shown)
    if (more := document["partitionCount"] - len(shown)) > 0:
        screen.line(f"and {more:,} more; see --limit")


def print_history(screen: Screen, history: Sequence[dict[str, Any]]) -> None:
    """Print the sums right after each snapshot."""
    screen.table(
        ("snapshot", "rows", "files", "size"),
        (
            (
                id_cell(each["snapshotId"]),
                each["recordCount"],
                each["fileCount"],
                size(each["fileSizeInBytes"]),
            )
            for each in history
        ),
    )


def print_columns(screen: Screen, title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print a line per column, partition and snapshot; unknown values are empty."""
    screen.line(title, style="bold")
    if not rows:
        screen.line("no file has column statistics")
        return
    screen.table(
        ("snapshot", "partition", "column", "values", "nulls", "lower", "upper", "exact"),
        (
            (
                id_cell(each["snapshot_id"]),
                each["partition"],
                each["column"],
                *("" if each[name] is None else each[name] for name in _COUNTED),
                "yes" if each["is_exact"] else "no",
            )
            for each in rows
        ),
    )


def print_distinct(screen: Screen, found: dict[str, Any] | None) -> None:
    """Print the estimated distinct counts of columns, if counted."""
    if found is None:
        return
    screen.table(("column", "distinct values, about"), tuple(found["columns"].items()))
    if not found["isExact"]:
        screen.line("Rows that delete files remove are counted, too.")


_COUNTED = ("value_count", "null_count", "lower", "upper")


def print_many(screen: Screen, documents: Sequence[dict[str, Any]]) -> None:
    """Print one line per table."""
    screen.table(
        ("table", "snapshot", "partitions", "rows", "files", "size"),
        (
            (
                each["table"],
                id_cell(each["snapshotId"]),
                each["partitionCount"],
                each["recordCount"],
                each["fileCount"],
                size(each["fileSizeInBytes"]),
            )
            for each in documents
        ),
    )


def print_view(screen: Screen, title: str, shown: dict[str, Any]) -> None:
    """Print a view as a table."""
    screen.line(title, style="bold")
    print_partitions(screen, shown.get("partitions", shown.get("statistics", ())))


def print_partitions(screen: Screen, partitions: Iterable[dict[str, Any]]) -> None:
    """Print the sums of partitions, from their JSON, as a table."""
    screen.table(
        ("partition", "rows", "files", "size", "last file"),
        (
            (
                ", ".join(f"{key}={value}" for key, value in each["spec"].items()),
                each["recordCount"],
                each["fileCount"],
                signed_size(each["fileSizeInBytes"]),
                moment(each["lastFileCreationTime"]),
            )
            for each in partitions
        ),
    )


def signed_size(count: int) -> str:
    """Return a signed number of bytes in human-readable form."""
    return f"-{size(-count)}" if count < 0 else size(count)


def print_answer(screen: Screen, title: str, answer: pa.Table) -> None:
    """Print an answer as a table."""
    screen.line(title, style="bold")
    if not len(answer):
        screen.line("the answer has no rows")
        return
    screen.table(
        tuple(_SHOWN.get(name, name.replace("_", " ")) for name in answer.column_names),
        (tuple(_cell_text(*each) for each in row.items()) for row in answer.to_pylist()),
    )


def _cell_text(name: str, value: str | float) -> str | int:
    if isinstance(value, int) and name.endswith("_id"):
        return str(value)
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
