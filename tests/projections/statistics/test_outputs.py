"""Outputs of the statistics: Paimon's deltas, Iceberg's file, columns, a plot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from ledger import FileChange, MissingDependencyError, NotFoundError, Schema, SetOption, Table
from ledger.model import PartitionField, PartitionSpec
from ledger.table_handle import handle_of
from ledger.transforms import bucket
from projections.dlf import Style, render
from projections.iceberg import partition_statistics_table
from projections.iceberg.statistics_files import partition_statistics_file
from projections.statistics import Kept, query
from projections.statistics.column_history import ColumnSums, column_sums
from projections.statistics.definition import ROWS, arrow_schema
from projections.statistics.partition_rendering import paimon_rendering_of
from projections.statistics.report import draw_report, report_of
from tests.projections.iceberg.older_logs import record_file
from tests.projections.statistics.lives import Life, a_table, listed_partitions

DAY = 19_723


def a_file(path: str, partition: tuple[str | int | None, ...], **more: object) -> FileChange:
    given = {"record_count": 5, "file_size_in_bytes": 50, "creation_time": 100, **more}
    path = path if "." in path else f"{path}.parquet"
    return FileChange(path=path, partition=partition, field_ids=True, **given)  # type: ignore[arg-type]


def evolved() -> Table:
    """Return a table with one file under each of two specs in the same day."""
    table = a_table()
    table.append([a_file("a", ("2024-01-01",))])
    table.update_spec().add_field(bucket("id", 8)).commit()
    table.append([a_file("b", ("2024-01-01", 3), spec_id=1, creation_time=90)])
    return table


def test_files_of_two_specs_in_one_day_are_one_partition() -> None:
    table = evolved()

    at = table.at()
    (found,) = listed_partitions(Kept.of(handle_of(table).log), at, paimon_rendering_of(at))

    assert render(found, Style.DLF) == {
        "spec": {"day": str(DAY)},
        "recordCount": 10,
        "fileSizeInBytes": 100,
        "fileCount": 2,
        "lastFileCreationTime": 100,
    }


def test_a_commits_partition_statistics_are_its_deltas_and_may_be_negative() -> None:
    table = evolved()
    table.overwrite([a_file("c", (None, 1), spec_id=1)], where={"day": "2024-01-01"})

    found = query.partition_deltas(Kept.of(handle_of(table).log), table.at(), total_buckets=4)

    assert [render(each, Style.PAIMON_REST) for each in found] == [
        {
            "spec": {"day": str(DAY)},
            "recordCount": -10,
            "fileSizeInBytes": -100,
            "fileCount": -2,
            "lastFileCreationTime": 100,
            "totalBuckets": 4,
        },
        {
            "spec": {"day": "__DEFAULT_PARTITION__"},
            "recordCount": 5,
            "fileSizeInBytes": 50,
            "fileCount": 1,
            "lastFileCreationTime": 100,
            "totalBuckets": 4,
        },
    ]
    assert query.partition_deltas(Kept.of(handle_of(a_table()).log), a_table().at()) == ()


def test_deltas_of_all_snapshots_add_up_to_the_listing() -> None:
    table = a_table()
    Life(table, 17).goes_on(25)
    kept = Kept.of(handle_of(table).log)
    before = table.state.earliest_snapshot_id - 1
    version = next(
        each.version for each in query.totals(kept, table.at()) if each.snapshot_id == before
    )
    shown = paimon_rendering_of(table.at())
    sums = {
        each.spec["day"]: each.file_count
        for each in listed_partitions(kept, table.at(version=version), shown)
    }
    for snapshot_id in range(before + 1, table.state.last_snapshot_id + 1):
        for each in query.partition_deltas(kept, table.at(snapshot=snapshot_id)):
            sums[each.spec["day"]] = sums.get(each.spec["day"], 0) + each.file_count

    assert {day: count for day, count in sums.items() if count} == {
        each.spec["day"]: each.file_count for each in listed_partitions(kept, table.at(), shown)
    }


def test_icebergs_file_has_a_row_for_each_partition_of_each_spec() -> None:
    table = evolved()
    table.alter([SetOption("ledger.formats", "iceberg")])
    table.append([a_file("d", (None, 0), spec_id=1, content="position-deletes", record_count=2)])
    place = {"referenced_data_file": "b.parquet", "content_offset": 4, "content_size_in_bytes": 9}
    sort = {"content": "position-deletes", "format": "puffin", **place}
    vector = a_file("v.puffin#4", (None, 0), spec_id=1, **sort)
    record_file(table, vector)
    state = table.at().state
    sums = query.partition_sums(Kept.of(handle_of(table).log), table.at().state)

    found = partition_statistics_table(
        sums, state.schema, state.specs, times={1: 1000}, format_version=3
    )

    assert [row["partition"] for row in found.to_pylist()] == [
        {"day": None, "id_bucket_8": 0},
        {"day": _date(), "id_bucket_8": None},
        {"day": _date(), "id_bucket_8": 3},
    ]
    assert found.drop_columns(["partition"]).to_pydict() == {
        "spec_id": [1, 0, 1],
        "data_record_count": [0, 5, 5],
        "data_file_count": [0, 1, 1],
        "total_data_file_size_in_bytes": [0, 50, 50],
        "position_delete_record_count": [7, 0, 0],
        "position_delete_file_count": [1, 0, 0],
        "dv_count": [1, 0, 0],
        "equality_delete_record_count": [0, 0, 0],
        "equality_delete_file_count": [0, 0, 0],
        "total_record_count": [None, 5, 5],
        "last_updated_at": [None, 1000, None],
        "last_updated_snapshot_id": [4, 1, 2],
    }


def _date() -> object:
    return pa.scalar(DAY, pa.date32()).as_py()


def test_icebergs_file_carries_the_field_ids_of_the_specification(tmp_path: Path) -> None:
    table = evolved()
    state = table.at().state
    sums = query.partition_sums(Kept.of(handle_of(table).log), table.at().state)
    path = tmp_path / "partition-stats.parquet"
    for version, count in ((2, 12), (3, 13)):
        content = partition_statistics_table(
            sums, state.schema, state.specs, times={}, format_version=version
        )
        path.write_bytes(partition_statistics_file(content))
        read = parquet.read_schema(path)

        ids = {each.name: int(each.metadata[b"PARQUET:field_id"]) for each in read}
        assert len(ids) == count
        assert (ids["partition"], ids["spec_id"], ids["last_updated_snapshot_id"]) == (1, 2, 12)
        members = read.field("partition").type
        assert [int(each.metadata[b"PARQUET:field_id"]) for each in members] == [1000, 1001]
        required = [ids[each.name] for each in read if not each.nullable]
        assert sorted(required) == ([*range(1, 10), 13] if version == 3 else [*range(1, 6)])
        assert duckdb.read_parquet(str(path)).sum("data_record_count").fetchall() == [(10,)]


def test_partition_values_of_every_type_become_icebergs() -> None:
    types = {
        "d": ("DECIMAL(9, 2)", "14.20"),
        "t": ("TIMESTAMP(3)", "2024-01-01T00:00:00.5"),
        "z": ("TIMESTAMP_LTZ(6)", "2024-01-01T00:00:00"),
        "n": ("TIMESTAMP(9)", "1970-01-01T00:00:00.000000001"),
        "b": ("BOOLEAN", True),
        "s": ("VARCHAR(9)", "x"),
        "i": ("SMALLINT", 7),
        "h": ("TIME(3)", "00:00:01"),
        "x": ("BYTES", "ff"),
    }
    schema = Schema.of({name: kind for name, (kind, _) in types.items()})
    fields = tuple(
        PartitionField(each.name, "identity", each.id, field_id=1000 + each.id)
        for each in schema.fields
    )
    counts = dict.fromkeys(("version", "snapshot_id", "record_count", "file_size_in_bytes"), 1)
    row = {
        **counts,
        "spec_id": 0,
        "partition": '["14.20","2024-01-01T00:00:00.5","2024-01-01T00:00:00",'
        '"1970-01-01T00:00:00.000000001",true,"x",7,"00:00:01","ff"]',
        "content": "data",
        "file_count": 1,
        "last_file_creation_time": 1,
    }
    sums = pa.Table.from_pylist([row], schema=arrow_schema(ROWS))

    found = partition_statistics_table(sums, schema, [PartitionSpec(0, fields)], times={})

    kinds = [str(each.type) for each in found.schema.field("partition").type]
    assert kinds == [
        "decimal128(9, 2)",
        "timestamp[us]",
        "timestamp[us, tz=UTC]",
        "timestamp[ns]",
        "bool",
        "string",
        "int32",
        "time64[us]",
        "binary",
    ]
    values = found["partition"].combine_chunks()
    texts = [str(each.cast(pa.string())[0]) for each in values.flatten()[:4]]
    assert texts == [
        "14.20",
        "2024-01-01 00:00:00.500000",
        "2024-01-01 00:00:00.000000Z",
        "1970-01-01 00:00:00.000000001",
    ]


def counted(path: str, day: str | None, low: int, high: int, nulls: int = 0) -> FileChange:
    def encoded(number: int) -> str:
        return number.to_bytes(8, "little", signed=True).hex()

    return a_file(
        path,
        (day,),
        value_counts={0: 5},
        null_value_counts={0: nulls},
        lower_bounds={0: encoded(low)},
        upper_bounds={0: encoded(high)},
    )


def test_column_statistics_are_those_of_the_live_files() -> None:
    table = a_table()
    table.append(
        [
            counted("a", "2024-01-01", -5, 900),
            counted("b", "2024-01-01", 256, 300, nulls=2),
            counted("c", None, 1, 2),
        ]
    )
    one = {"day": str(DAY)}
    assert column_sums(handle_of(table).log, table.at()) == (
        ColumnSums(
            spec=one, field_id=0, file_count=2, value_count=10, null_count=2, lower=-5, upper=900
        ),
        ColumnSums(
            spec={"day": "__DEFAULT_PARTITION__"},
            field_id=0,
            file_count=1,
            value_count=5,
            null_count=0,
            lower=1,
            upper=2,
        ),
    )

    table.delete_files(["a.parquet", "c.parquet"])

    assert column_sums(handle_of(table).log, table.at()) == (
        ColumnSums(
            spec=one, field_id=0, file_count=1, value_count=5, null_count=2, lower=256, upper=300
        ),
    )
    assert len(column_sums(handle_of(table).log, table.at(snapshot=1))) == 2


def test_a_file_that_does_not_say_leaves_nothing_known() -> None:
    table = a_table()
    table.append([counted("a", None, 1, 2), a_file("b", (None,)), counted("c", None, 1, 2)])

    (found,) = column_sums(handle_of(table).log, table.at())

    assert (found.file_count, found.value_count, found.null_count) == (3, None, None)
    assert (found.lower, found.upper) == (None, None)


def test_a_file_of_nulls_alone_takes_no_bounds_away() -> None:
    table = a_table()
    nulls = a_file("b", (None,), value_counts={0: 5}, null_value_counts={0: 5})
    table.append([nulls, counted("a", None, 1, 2)])

    (found,) = column_sums(handle_of(table).log, table.at())

    assert (found.value_count, found.null_count, found.lower, found.upper) == (10, 5, 1, 2)


def test_the_growth_of_a_partition_that_never_was_is_an_error() -> None:
    table = evolved()

    with pytest.raises(NotFoundError, match="no file was ever in partition"):
        query.growth(Kept.of(handle_of(table).log), table.at(), {"day": "0"})


def test_a_picture_is_a_png_of_growth_and_skew(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    table = a_table()
    Life(table, 2).goes_on(20)
    kept, at = Kept.of(handle_of(table).log), table.at()
    path = tmp_path / "growth.png"

    draw_report(path, report_of(table, kept, at, "local"), query.totals(kept, at), lambda _: 0)

    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    empty = a_table()
    draw_report(
        path, report_of(empty, Kept.of(handle_of(empty).log), empty.at(), "local"), (), lambda _: 0
    )


def test_a_picture_says_rows_and_size_apart_in_peoples_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    save = Figure.savefig

    def saved(figure: Figure, path: Path, **options: Any) -> None:
        drawn.append(figure)
        save(figure, path, **options)

    monkeypatch.setattr(Figure, "savefig", saved)
    table = evolved()
    history = [
        query.TableTotals(
            version=each,
            snapshot_id=each,
            record_count=1000 * each,
            file_size_in_bytes=1_500_000 * each,
            file_count=each,
            last_file_creation_time=None,
        )
        for each in (1, 2)
    ]
    report = report_of(table, Kept.of(handle_of(table).log), table.at(), "local")
    draw_report(tmp_path / "growth.png", report, history, lambda version: version * 86_400_000)

    rows, skew, size = drawn[0].axes
    assert [each.get_title() for each in (rows, size, skew)] == ["Rows", "Size", "Skew"]
    snapshots = [label.get_text() for label in size.get_xticklabels()]
    assert [each for each in snapshots if each] == ["1\n1970-01-02", "2\n1970-01-03"]
    assert {label.get_text() for label in size.get_yticklabels()} >= {"0 B", "1 MB", "3 MB"}
    assert "2,000" in {label.get_text() for label in rows.get_yticklabels()}


def test_without_matplotlib_a_picture_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    table = evolved()
    report = report_of(table, Kept.of(handle_of(table).log), table.at(), "local")

    with pytest.raises(MissingDependencyError, match=r"pip install .*\[plot\]"):
        draw_report(tmp_path / "x.png", report, (), lambda _: 0)
