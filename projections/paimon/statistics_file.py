"""Statistics files `statistics/stat-...`, and their publication.

Source: Paimon's Statistics and ColStats classes; InternalSerializers, `serializeToString`.

The file is written first, then the snapshot is committed, then the files are projected. The
snapshot's user and identifier name the analysed snapshot, so that it is not committed twice.

The projection is imported on first use, since the help of a command imports this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
from attrs import field, frozen

from ledger.files.snapshot_plan import SnapshotPlan
from ledger.log.request import CommitOptions
from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.schema import Schema
from ledger.model.single_values import Value, decimal_text, unit_digits
from ledger.model.snapshot import Snapshot
from ledger.model.types import DataField
from ledger.table_at import TableAt
from ledger.table_handle import TableHandle
from ledger.table_writes import commit_snapshot
from projections.materialising import outputs_of
from projections.paimon.materialise import PAIMON as PAIMON_FILES
from projections.paimon.materialise import project
from projections.paimon.paths import PaimonFileNames, statistics_path
from projections.paimon.schema_file import decode_file, paimon_json
from projections.statistics.column_history import ColumnSums, column_sums
from projections.statistics.publishing import Published

if TYPE_CHECKING:
    from projections.statistics.analyze import Analysis
    from projections.statistics.tile_rows import Kept


@frozen(kw_only=True)
class ColumnStatistics:
    """One column's statistics; None for a value that was not measured.

    Attributes:
        column_id: The column's field id.
        distinct_count: Number of distinct values.
        min: The minimum as text.
        max: The maximum as text.
        null_count: Number of nulls.
        average_length: Average length, bytes.
        maximum_length: Maximum length, bytes.
    """

    column_id: int
    distinct_count: int | None = None
    min: str | None = None
    max: str | None = None
    null_count: int | None = None
    average_length: int | None = None
    maximum_length: int | None = None


@frozen(kw_only=True)
class TableStatistics:
    """A table's statistics.

    Attributes:
        snapshot_id: The snapshot that was analysed: the one before the ANALYZE snapshot.
        schema_id: The schema then; the statistics are valid while it is the newest.
        merged_record_count: Number of rows, after merging by primary key.
        merged_record_size: Their size in bytes.
        columns: By column name, in the file's order.
    """

    snapshot_id: int
    schema_id: int
    merged_record_count: int | None = None
    merged_record_size: int | None = None
    columns: Mapping[str, ColumnStatistics] = field(factory=dict, hash=False)


class _ColumnKeys(msgspec.Struct, kw_only=True, rename="camel"):
    col_id: int
    distinct_count: int | None = None
    min: str | None = None
    max: str | None = None
    null_count: int | None = None
    avg_len: int | None = None
    max_len: int | None = None


class _StatisticsFile(msgspec.Struct, kw_only=True, rename="camel"):
    snapshot_id: int
    schema_id: int
    merged_record_count: int | None = None
    merged_record_size: int | None = None
    col_stats: dict[str, _ColumnKeys] | None = None


def statistics_from_json(obj: Mapping[str, Any] | str | bytes) -> TableStatistics:
    """Read a statistics file.

    Args:
        obj: The file's bytes or text, or its decoded JSON.

    Raises:
        InvalidInputError: It is no statistics file; the message names the place.

    Example:
        >>> found = statistics_from_json('{"snapshotId": 4, "schemaId": 0, "colStats": {}}')
        >>> found.snapshot_id, found.merged_record_count
        (4, None)
    """
    file = decode_file(obj, _StatisticsFile, "statistics file")
    return TableStatistics(
        snapshot_id=file.snapshot_id,
        schema_id=file.schema_id,
        merged_record_count=file.merged_record_count,
        merged_record_size=file.merged_record_size,
        columns={
            name: ColumnStatistics(
                column_id=each.col_id,
                distinct_count=each.distinct_count,
                min=each.min,
                max=each.max,
                null_count=each.null_count,
                average_length=each.avg_len,
                maximum_length=each.max_len,
            )
            for name, each in (file.col_stats or {}).items()
        },
    )


def statistics_to_json(statistics: TableStatistics) -> dict[str, Any]:
    """Return the content of a statistics file, keys in Paimon's order, None left out."""
    content = {
        "snapshotId": statistics.snapshot_id,
        "schemaId": statistics.schema_id,
        "mergedRecordCount": statistics.merged_record_count,
        "mergedRecordSize": statistics.merged_record_size,
        "colStats": {name: _column_json(each) for name, each in statistics.columns.items()},
    }
    return _drop_nulls(content)


def statistics_file(statistics: TableStatistics) -> bytes:
    """Return the bytes of a statistics file, as Paimon's Java writes them."""
    return paimon_json(statistics_to_json(statistics)).encode()


def _column_json(column: ColumnStatistics) -> dict[str, Any]:
    return _drop_nulls(
        {
            "colId": column.column_id,
            "distinctCount": column.distinct_count,
            "min": column.min,
            "max": column.max,
            "nullCount": column.null_count,
            "avgLen": column.average_length,
            "maxLen": column.maximum_length,
        }
    )


def _drop_nulls(content: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if value is not None}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS_A_MILLISECOND = 1000
_DIGITS = 9
_MILLISECONDS = 3


def statistics_text(value: Value, data_type: t.DataType) -> str | None:
    """Return a value's text; None where a file's bounds are not exact values.

    Bounds of text and bytes may be truncated, and those of FLOAT and DOUBLE leave NaN out.

    Args:
        value: In the form of `ledger.model.single_values`.
        data_type: The column's type.

    Example:
        >>> statistics_text(1420, t.DecimalType(9, 2)), statistics_text(19000, t.DateType())
        ('14.20', '19000')
        >>> statistics_text(1_500_000, t.TimestampType(3))
        '1970-01-01 00:00:01.500'
    """
    match data_type:
        case t.BooleanType():
            return str(bool(value)).lower()
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.BigIntType() | t.DateType():
            return str(value)
        case t.DecimalType():
            return decimal_text(int(value), data_type.scale)
        case t.TimeType() if data_type.precision <= _MILLISECONDS:
            return str(int(value) // _MICROSECONDS_A_MILLISECOND)
        case t.TimestampType() | t.LocalZonedTimestampType():
            return _timestamp_text(int(value), data_type)
        case _:
            return None


def _timestamp_text(value: int, data_type: t.TimestampType | t.LocalZonedTimestampType) -> str:
    seconds, rest = divmod(value, 10 ** unit_digits(data_type))
    fraction = str(rest).rjust(unit_digits(data_type), "0").ljust(_DIGITS, "0")
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")
    digits = fraction[: data_type.precision]
    return f"{text}.{digits}" if digits else text


COMMIT_USER = "lakeledger-statistics"
"""Commit user of ANALYZE snapshots; the commit identifier is the analysed snapshot's id."""


def publish(
    table: TableHandle,
    distinct: Mapping[int, int] | None = None,
    **options: Unpack[CommitOptions],
) -> Published:
    """Commit an ANALYZE snapshot with the newest snapshot's statistics, unless it has some.

    A lost or damaged statistics file is written again.

    Args:
        table: The table.
        distinct: By field id, the number of distinct values of columns, where counted.
        options: See CommitOptions.

    Raises:
        InvalidInputError: There is no snapshot yet.
        UnsupportedError: The table is not declared to be a Paimon table, cannot be projected, or
            its number of rows cannot be computed from its files.
    """
    state = table.state
    at = TableAt(state, state.schema, table)
    analysed = snapshot_to_analyze(table, at)
    if _is_analyze_snapshot(analysed, at.schema) and _restore_statistics_file(
        table, at, analysed, distinct
    ):
        path = statistics_path(analysed.statistics or "")
        return Published("paimon", analysed.id - 1, path, project(table), is_new=False)
    name, body = _render_statistics(table, at, analysed.id, distinct)
    # So that nothing is committed that readers could not find.
    project(table)
    outputs_of(table).put(statistics_path(name), body)
    plan = SnapshotPlan(
        "ANALYZE",
        commit_user=COMMIT_USER,
        commit_identifier=analysed.id,
        facts={"statistics": name},
    )
    is_new = not commit_snapshot(table, plan, options).repeated
    return Published("paimon", analysed.id, statistics_path(name), project(table), is_new)


def snapshot_to_analyze(table: TableHandle, at: TableAt) -> Snapshot:
    """Return the snapshot whose statistics can be published; raises as `publish`."""
    PAIMON_FILES.refuse_undeclared(table, at.state)
    if at.snapshot is None:
        raise InvalidInputError(
            f"{table.identifier} has no snapshot yet, so nothing to publish: add files first"
        )
    if at.schema.primary_keys or at.snapshot.base_manifest_list is not None:
        raise UnsupportedError(
            f"only its engine can count the rows of {table.identifier} after merging: let the "
            "engine run ANALYZE"
        )
    return at.snapshot


def _render_statistics(
    table: TableHandle, at: TableAt, snapshot_id: int, distinct: Mapping[int, int] | None = None
) -> tuple[str, bytes]:
    """Return the name and the bytes of a snapshot's file."""
    body = statistics_file(table_statistics(table, at, snapshot_id, distinct))
    return _statistics_file_name(at, snapshot_id, body), body


def _statistics_file_name(at: TableAt, snapshot_id: int, body: bytes) -> str:
    check = hashlib.sha256(body).hexdigest()
    return PaimonFileNames(at.state.table_id).statistics(snapshot_id, check)


def _restore_statistics_file(
    table: TableHandle, at: TableAt, analysis: Snapshot, distinct: Mapping[int, int] | None
) -> bool:
    """Return whether the file of an ANALYZE snapshot exists or could be restored."""
    outputs, path = outputs_of(table), statistics_path(analysis.statistics or "")
    found = outputs.read(path)
    if distinct is not None:
        # Only a file with the same contents is accepted.
        name, _ = _render_statistics(table, at, analysis.id - 1, distinct)
        return found is not None and name == analysis.statistics
    if analysis.commit_user != COMMIT_USER:
        return found is not None
    analysed = analysis.id - 1
    if found is not None and _statistics_file_name(at, analysed, found) == analysis.statistics:
        return True
    name, body = _render_statistics(table, at, analysed)
    if name != analysis.statistics:
        return False
    outputs.store.replace(outputs.key(path), body)
    return True


def _is_analyze_snapshot(snapshot: Snapshot, schema: Schema) -> bool:
    is_analysis = snapshot.commit_kind == "ANALYZE" and snapshot.statistics is not None
    return is_analysis and snapshot.schema_id == schema.id


def table_statistics(
    table: TableHandle, at: TableAt, snapshot_id: int, distinct: Mapping[int, int] | None = None
) -> TableStatistics:
    """Return the statistics of an append table and its columns from its live files.

    Args:
        table: The table.
        at: The table with the schema of the statistics.
        snapshot_id: The snapshot of its state.
        distinct: By field id, the number of distinct values of columns, where counted.

    Raises:
        UnsupportedError: Delete files are live, so that the live rows are unknown.
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
        field.name: _analyzed_column(
            field, by_column.get(field.id, []), len(at.files), counts.get(field.id)
        )
        for field in at.schema.fields
    }
    return TableStatistics(
        snapshot_id=snapshot_id,
        schema_id=at.schema.id,
        merged_record_count=sum(each.record_count for each in at.files),
        merged_record_size=sum(each.file_size_in_bytes for each in at.files),
        columns={name: each for name, each in found.items() if each is not None},
    )


def _analyzed_column(
    field: DataField, parts: list[ColumnSums], file_count: int, distinct: int | None
) -> ColumnStatistics | None:
    """Return a column's statistics; None when nothing is known of it.

    Args:
        field: The column.
        parts: Its statistics in each partition whose files have some.
        file_count: The number of live files: a partition may be missing.
        distinct: The number of distinct values, where counted.
    """
    if sum(each.file_count for each in parts) < file_count:
        parts = []
    null_count = _sum_if_complete(each.null_count for each in parts) if parts else None
    # A partition with only nulls has no bounds, and needs none.
    valued = [
        each for each in parts if each.null_count is None or each.null_count != each.value_count
    ]
    least = _extreme_text(field, [each.lower for each in valued], min)
    greatest = _extreme_text(field, [each.upper for each in valued], max)
    has_values = not parts or bool(valued)
    if has_values and None in (least, greatest) and not isinstance(field.type, _WITHOUT_BOUNDS):
        # Spark takes a number without bounds for a column of NULLs, and estimates no row for it.
        distinct = None
    if null_count is None and least is None and distinct is None:
        return None
    return ColumnStatistics(
        column_id=field.id,
        distinct_count=distinct,
        min=least,
        max=greatest,
        null_count=null_count,
    )


_WITHOUT_BOUNDS = (t.CharType, t.VarCharType, t.BinaryType, t.VarBinaryType)
"""Types for which Spark's cost model uses a distinct count without bounds."""


def _sum_if_complete(counts: Iterable[int | None]) -> int | None:
    listed = list(counts)
    known = [each for each in listed if each is not None]
    return sum(known) if len(known) == len(listed) else None


def _extreme_text(
    field: DataField, values: list[Value | None], choose: Callable[[list[Any]], Value]
) -> str | None:
    known = [each for each in values if each is not None]
    if not known or len(known) < len(values):
        return None
    return statistics_text(choose(known), field.type)


@frozen
class PaimonPublisher:
    """See `projections.statistics.publishing.Publisher`."""

    what: str = "Paimon's ANALYZE"
    makes_snapshot: bool = True

    def check(self, table: TableHandle, at: TableAt, analysis: Analysis | None) -> None:
        """Reject a table whose rows only an engine can count."""
        del analysis
        snapshot_to_analyze(table, at)

    def publish(
        self, table: TableHandle, kept: Kept, at: TableAt, analysis: Analysis | None
    ) -> Iterator[Published]:
        """Publish the files' column statistics, and counts of the same snapshot."""
        del kept
        holds = analysis is not None and analysis.snapshot_id == at.state.last_snapshot_id
        yield publish(table, analysis.distinct if analysis is not None and holds else None)


PAIMON = PaimonPublisher()
