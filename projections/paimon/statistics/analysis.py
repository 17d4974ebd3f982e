"""Publishing a table's statistics as Paimon's: a file that an ANALYZE snapshot names.

The file is written first, then the snapshot is committed, then the files are projected. The
snapshot's user and identifier say what was analysed, so that nobody commits it twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack

from ledger.files.snapshot_plan import SnapshotPlan
from ledger.log.request import CommitOptions
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.model.transforms.values import Value
from ledger.model.types import DataField
from ledger.table import Table
from ledger.table_at import TableAt
from projections.materialising import outputs_of
from projections.paimon.files.statistics_file import (
    ColumnStatistics,
    TableStatistics,
    statistics_file,
    statistics_text,
)
from projections.paimon.materialise import PAIMON, project
from projections.paimon.paths import Names, statistics_path
from projections.statistics.columns.sums import ColumnSums, column_sums
from projections.statistics.publishing import Published

COMMIT_USER = "lakeledger-statistics"
"""Who commits ANALYZE snapshots; the identifier is the snapshot that was analysed."""


def publish(
    table: Table,
    distinct: Mapping[int, int] | None = None,
    **options: Unpack[CommitOptions],
) -> Published:
    """Commit an ANALYZE snapshot with the newest snapshot's statistics, unless it has some.

    A file of theirs that was lost or damaged is written again.

    Args:
        table: The table.
        distinct: By field id, how many different values columns have, where that was counted.
        options: See CommitOptions.

    Raises:
        InvalidInputError: There is no snapshot yet.
        UnsupportedError: The table is not declared to be a Paimon table, cannot be projected, or
            how many rows it has cannot be told from its files.
    """
    at = table.at()
    analysed = analysable(table, at)
    if _is_analysed(analysed, at.schema) and _is_kept(table, at, analysed, distinct):
        path = statistics_path(analysed.statistics or "")
        return Published("paimon", analysed.id - 1, path, project(table), is_new=False)
    name, body = _file(table, at, analysed.id, distinct)
    # So that nothing is committed that no reader could come to see.
    project(table)
    outputs_of(table).put(statistics_path(name), body)
    plan = SnapshotPlan(
        "ANALYZE",
        commit_user=COMMIT_USER,
        commit_identifier=analysed.id,
        facts={"statistics": name},
    )
    is_new = not table.commit_snapshot(plan, **options).repeated
    return Published("paimon", analysed.id, statistics_path(name), project(table), is_new)


def analysable(table: Table, at: TableAt) -> Snapshot:
    """Return the snapshot whose statistics can be published; raises as `publish`."""
    PAIMON.refuse_undeclared(table, at.state)
    if at.snapshot is None:
        raise InvalidInputError(
            f"{table.identifier} has no snapshot yet, so nothing to publish: add files first"
        )
    if at.schema.primary_keys or at.snapshot.base_manifest_list is not None:
        raise UnsupportedError(
            f"how many rows {table.identifier} has after merging only its engine knows: let the "
            "engine run ANALYZE"
        )
    return at.snapshot


def _file(
    table: Table, at: TableAt, snapshot_id: int, distinct: Mapping[int, int] | None = None
) -> tuple[str, bytes]:
    """Return the name and the bytes of a snapshot's file."""
    body = statistics_file(table_statistics(table, at, snapshot_id, distinct))
    return _name(at, snapshot_id, body), body


def _name(at: TableAt, snapshot_id: int, body: bytes) -> str:
    check = hashlib.sha256(body).hexdigest()
    return Names(at.state.table_id).statistics(snapshot_id, check)


def _is_kept(
    table: Table, at: TableAt, analysis: Snapshot, distinct: Mapping[int, int] | None
) -> bool:
    """Whether the file that an ANALYZE snapshot names is there, or could be restored."""
    outputs, path = outputs_of(table), statistics_path(analysis.statistics or "")
    found = outputs.read(path)
    if distinct is not None:
        # Only a file that says the same will do.
        name, _ = _file(table, at, analysis.id - 1, distinct)
        return found is not None and name == analysis.statistics
    if analysis.commit_user != COMMIT_USER:
        return found is not None
    analysed = analysis.id - 1
    if found is not None and _name(at, analysed, found) == analysis.statistics:
        return True
    name, body = _file(table, at, analysed)
    if name != analysis.statistics:
        return False
    outputs.store.replace(outputs.key(path), body)
    return True


def _is_analysed(snapshot: Snapshot, schema: Schema) -> bool:
    is_analysis = snapshot.commit_kind == "ANALYZE" and snapshot.statistics is not None
    return is_analysis and snapshot.schema_id == schema.id


def table_statistics(
    table: Table, at: TableAt, snapshot_id: int, distinct: Mapping[int, int] | None = None
) -> TableStatistics:
    """Return what the live files of an append table say of it and of its columns.

    Args:
        table: The table.
        at: It, with the schema that the statistics are to hold for.
        snapshot_id: The snapshot that it stands at.
        distinct: By field id, how many different values columns have, where that was counted.

    Raises:
        UnsupportedError: Delete files are live, so that nobody knows which rows are.
    """
    deletes = next((each for each in at.files if each.content != "data"), None)
    if deletes is not None:
        raise UnsupportedError(
            f"{deletes.path} deletes rows of other files, so that counts and bounds are not those "
            "of the table: compact it first"
        )
    by_column: dict[int, list[ColumnSums]] = {}
    for each in column_sums(table.log, at):
        by_column.setdefault(each.field_id, []).append(each)
    counts = distinct or {}
    found = {
        field.name: _column(field, by_column.get(field.id, []), len(at.files), counts.get(field.id))
        for field in at.schema.fields
    }
    return TableStatistics(
        snapshot_id=snapshot_id,
        schema_id=at.schema.id,
        merged_record_count=sum(each.record_count for each in at.files),
        merged_record_size=sum(each.file_size_in_bytes for each in at.files),
        columns={name: each for name, each in found.items() if each is not None},
    )


def _column(
    field: DataField, parts: list[ColumnSums], file_count: int, distinct: int | None
) -> ColumnStatistics | None:
    """Return a column's statistics; None when nothing is known of it.

    Args:
        field: The column.
        parts: Its statistics in each partition whose files say something.
        file_count: How many files are live: a partition may be missing.
        distinct: How many different values it has, if that was counted.
    """
    if sum(each.file_count for each in parts) < file_count:
        parts = []
    null_count = _sum(each.null_count for each in parts) if parts else None
    # A partition that holds nulls alone has no bounds, and needs none.
    valued = [
        each for each in parts if each.null_count is None or each.null_count != each.value_count
    ]
    least = _text(field, [each.lower for each in valued], min)
    greatest = _text(field, [each.upper for each in valued], max)
    if null_count is None and least is None and distinct is None:
        return None
    return ColumnStatistics(
        column_id=field.id,
        distinct_count=distinct,
        min=least,
        max=greatest,
        null_count=null_count,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    listed = list(counts)
    known = [each for each in listed if each is not None]
    return sum(known) if len(known) == len(listed) else None


def _text(
    field: DataField, values: list[Value | None], choose: Callable[[list[Any]], Value]
) -> str | None:
    known = [each for each in values if each is not None]
    if not known or len(known) < len(values):
        return None
    return statistics_text(choose(known), field.type)
