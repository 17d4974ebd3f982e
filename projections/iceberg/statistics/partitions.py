"""Publishing a snapshot's statistics as Iceberg's: a file that the table's metadata names.

The file is written first, then an event of the log names it, then the metadata is projected. A
publisher that is killed anywhere is begun again, and of two at once the first one's file stays for
both, since its rows are a function of the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from attrs import evolve

from ledger.evolution.declared.personal import Marked
from ledger.evolution.declared.rules import Rules
from ledger.evolution.state import TableState
from ledger.evolution.table.snapshots import check_reachable
from ledger.log.request import CommitOptions
from ledger.log.travel import effective_millis
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.iceberg.snapshot import PartitionStatisticsFile
from ledger.model.schema import Schema
from ledger.model.transforms.paths import field_types
from ledger.model.types.walk import walk_fields
from ledger.table import Table
from projections.iceberg.materialise import ICEBERG, project
from projections.iceberg.names import Names
from projections.iceberg.statistics.partition_file import (
    partition_statistics_file,
    partition_statistics_table,
)
from projections.materialising import outputs_of
from projections.statistics.keeping.kept import Kept
from projections.statistics.publishing import Published
from projections.statistics.shown.query import Instant, partition_sums

if TYPE_CHECKING:
    import pyarrow as pa


def publish(table: Table, kept: Kept, at: Instant, **options: Unpack[CommitOptions]) -> Published:
    """Let Iceberg's readers find the statistics of an instant's snapshot, and say where they are.

    Args:
        table: The table.
        kept: Its statistics.
        at: The instant.
        options: See CommitOptions.

    Raises:
        InvalidInputError: There is no snapshot yet.
        NotFoundError: The snapshot was expired.
        UnsupportedError: The table is no partitioned Iceberg table, or cannot be projected.
        DamagedLogError: What has to be read of the log is missing or damaged.
    """
    check(table, at)
    check_partitioned(table)
    # First, so that nothing is committed that no reader could come to see.
    project(table)
    head, snapshot_id = table.state, at.state.last_snapshot_id
    path = Names(head.table_id).partition_statistics(snapshot_id)
    known = head.partition_statistics.get(snapshot_id)
    size = _kept_file(table, path, kept, at, known)
    file = PartitionStatisticsFile(snapshot_id, path, size)
    is_new = known != file
    if is_new:
        table.set_partition_statistics(snapshot_id, path, file.file_size_in_bytes, **options)
    return Published("iceberg", snapshot_id, path, project(table), is_new)


def check(table: Table, at: Instant) -> None:
    """Refuse to publish what Iceberg's readers would not find; raises as `publish`."""
    head, snapshot_id = table.state, at.state.last_snapshot_id
    ICEBERG.refuse_undeclared(table, head)
    if snapshot_id == 0:
        raise InvalidInputError(
            f"{table.identifier} has no snapshot yet, so nothing to publish: add files first"
        )
    check_reachable(head, snapshot_id)


def check_partitioned(table: Table) -> None:
    """Refuse what has no partitions, or personal ones; raises as `publish`."""
    if not is_partitioned(table):
        raise UnsupportedError(
            f"{table.identifier} is not partitioned, and Iceberg keeps these statistics by "
            "partition: partition it, or publish what --analyze finds of its columns"
        )
    _refuse_personal(table.state)


def is_partitioned(table: Table) -> bool:
    """Whether any of a table's specs has a field."""
    return any(each.fields for each in table.state.specs)


def _refuse_personal(head: TableState) -> None:
    marked = Marked.of(head.schema) if head.keeps_outside else None
    if marked is None:
        return
    for spec in head.specs:
        for _, each in marked.partitions(spec):
            raise UnsupportedError(
                f"the file would hold values of partition field {each.name}, whose column is "
                "personal, and its size stands in the log: nothing could be erased from it. Go "
                "without it"
            )


def _kept_file(
    table: Table, path: str, kept: Kept, at: Instant, known: PartitionStatisticsFile | None
) -> int:
    """Write a snapshot's file unless it is there, as long as the log says; return its size."""
    outputs = outputs_of(table)
    found = outputs.read(path)
    if found is not None and (known is None or known.file_size_in_bytes == len(found)):
        return len(found)
    body = partition_statistics_file(content(table, kept, at))
    if found is not None:
        outputs.store.replace(outputs.key(path), body)
    elif not outputs.store.create(outputs.key(path), body):
        body = outputs.read(path) or body
    return len(body)


def content(table: Table, kept: Kept, at: Instant) -> pa.Table:
    """Return the rows of an instant's file, as `partition_statistics_table` does."""
    head, sums = table.state, partition_sums(kept, at)
    return partition_statistics_table(
        sums,
        with_dropped(table),
        head.specs,
        times=_times(table, head, sums),
        format_version=Rules.of(head.schema.options).format_version,
    )


def _times(table: Table, head: TableState, sums: pa.Table) -> dict[int, int]:
    """Return when the snapshots were committed that changed partitions last and can be read."""
    places = sums.group_by(["version", "snapshot_id"], use_threads=False).aggregate([]).to_pylist()
    kept = [each for each in places if head.reachable(each["snapshot_id"])]
    versions = {each["version"] for each in kept}
    commits = table.log.commits(min(versions), max(versions)) if versions else ()
    moments = {
        read.commit.version: effective_millis(read.commit, head.corrections)
        for read in commits
        if read.commit.version in versions
    }
    return {each["snapshot_id"]: moments[each["version"]] for each in kept}


def with_dropped(table: Table) -> Schema:
    """Return the newest schema and, behind its columns, those dropped ones that files are laid by.

    A partition field of a dropped column keeps the type that the column had last.
    """
    head = table.state
    known = field_types(head.schema)
    missing = {each.source_id for spec in head.specs for each in spec.fields} - known.keys()
    fields = list(head.schema.fields)
    for schema in table.schemas() if missing else ():
        found = [each for each in walk_fields(schema.fields) if each.id in missing]
        fields += found
        missing -= {each.id for each in found}
        if not missing:
            break
    return evolve(head.schema, fields=tuple(fields))
