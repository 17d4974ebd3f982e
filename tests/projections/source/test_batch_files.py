from __future__ import annotations

import pickle
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ledger
from ledger import DataField, InvalidInputError, Schema, Table
from ledger.model import PartitionSpec, parse_type
from ledger.model.types import ArrayType, MapType, RowType
from ledger.stores.file_access import FileAccess
from ledger.table_handle import handle_of
from ledger.transforms import bucket, hour, identity, month, truncate, year
from projections.source.sink import (
    BatchFiles,
    attempt_folder,
    commit_batch,
    is_committed,
    refuse_unfit_columns,
)

COLUMNS = {
    "id": "BIGINT",
    "day": "DATE",
    "amount": "DECIMAL(10, 2)",
    "at": "TIMESTAMP(6)",
    "name": "STRING",
}
ROWS: dict[str, list[Any]] = {
    "id": [1, 2, 3, 4],
    "day": [date(2024, 1, 1), date(2024, 1, 2), None, date(2024, 1, 1)],
    "amount": [Decimal("2.50"), None, Decimal("-1.00"), Decimal("2.50")],
    "at": [
        datetime(2024, 1, 1, 10, tzinfo=UTC),
        datetime(1969, 12, 31, 23, tzinfo=UTC),
        None,
        datetime(2024, 2, 1, 10, tzinfo=UTC),
    ],
    "name": ["a/b", "", None, "a/b"],
}


HERE = FileAccess(("file", ""), {}, frozenset({("file", "")}))


def a_table(folder: Path, spec: Sequence[Any] = ()) -> Table:
    lake = ledger.open(str(folder))
    lake.create_database("shop")
    schema = Schema.of(COLUMNS, options={"ledger.formats": "iceberg", "format-version": "2"})
    return lake.create_table("shop.orders", schema, partition_spec=list(spec) or None)


def batch(names: Sequence[str] = tuple(COLUMNS)) -> pa.RecordBatch:
    types = dict(
        zip(
            COLUMNS,
            (pa.int64(), pa.date32(), pa.decimal128(10, 2), pa.timestamp("us"), pa.string()),
            strict=True,
        )
    )
    moments = [None if each is None else each.replace(tzinfo=None) for each in ROWS["at"]]
    values = ROWS | {"at": moments}
    return pa.RecordBatch.from_pydict({name: pa.array(values[name], types[name]) for name in names})


def written(table: Table, batches: Sequence[pa.RecordBatch], number: int = 0) -> list[str]:
    state = table.state
    files = BatchFiles(
        folder=attempt_folder(table, "me", number),
        schema=state.schema,
        spec=state.spec,
        columns=tuple(batches[0].schema.names),
        access=handle_of(table).file_access,
    )
    # As it comes to an executor.
    files = pickle.loads(pickle.dumps(files))  # noqa: S301 - made one line above
    return [path for each in files.write(batches) for path in each["path"].to_pylist()]


def rows_in(table: Table) -> list[dict[str, Any]]:
    found = []
    for each in table.at().files:
        path = f"{table.location.removeprefix('file://')}/{each.path}"
        found += pq.ParquetFile(path).read().to_pylist()
    return sorted(found, key=lambda row: row["id"])


SPECS: list[tuple[Sequence[Any], int]] = [
    ((), 1),
    ((identity("day"),), 3),
    ((identity("name"),), 3),
    ((identity("amount"),), 3),
    ((bucket("id", 3),), 2),
    ((year("at"),), 3),
    ((month("at"), identity("day")), 4),
    ((hour("at"),), 4),
    ((truncate("name", 1),), 3),
    ((identity("day"), bucket("id", 2), truncate("amount", 100)), 4),
]


@pytest.mark.parametrize(("spec", "at_least"), SPECS, ids=str)
def test_rows_become_files_that_the_table_takes_by_any_spec(
    tmp_path: Path, spec: Sequence[Any], at_least: int
) -> None:
    table = a_table(tmp_path, spec)
    commit_batch(table, written(table, [batch(), batch()]), "me", 0)

    files = table.at().files
    assert all(each.field_ids for each in files)
    assert {each.spec_id for each in files} == {table.state.default_spec_id}
    assert len({each.partition for each in files}) == len(files) >= at_least - 1
    assert [row["id"] for row in rows_in(table)] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert rows_in(table)[::2] == batch().to_pylist()
    assert table.at().totals.record_count == 8


def test_columns_that_rows_do_not_have_are_left_out_of_the_files(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    commit_batch(table, written(table, [batch(["name", "id"])]), "me", 0)
    assert rows_in(table)[0] == {"id": 1, "name": "a/b"}


def test_a_task_without_rows_writes_no_file(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    assert written(table, [batch().slice(0, 0)]) == []


def test_a_task_of_many_partitions_holds_few_files_open_and_loses_no_row(tmp_path: Path) -> None:
    table = a_table(tmp_path, (identity("id"),))
    many = pa.RecordBatch.from_pydict({"id": pa.array(list(range(100)) * 2, pa.int64())})
    paths = written(table, [many, many])
    assert len(paths) > 100
    commit_batch(table, paths, "me", 0)
    assert table.at().totals.record_count == 400


def test_a_value_that_its_column_cannot_hold_is_rejected_and_not_cut(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    wide = pa.RecordBatch.from_pydict({"amount": pa.array([Decimal("1.234")])})
    with pytest.raises(pa.ArrowInvalid, match="would cause data loss"):
        written(table, [wide])


def test_a_batch_is_committed_once_by_any_writer_that_retries(tmp_path: Path) -> None:
    table = a_table(tmp_path, (identity("day"),))
    assert not is_committed(table, "me", 0)
    first, second = written(table, [batch()]), written(table, [batch()])
    assert not set(first) & set(second)
    commit_batch(table, first, "me", 0)

    # As after a kill between the commit and Spark's own note of it; and as by a driver that
    # looked before the other one had committed.
    again = ledger.open(str(tmp_path)).table("shop.orders")
    assert is_committed(again, "me", 0)
    commit_batch(again, second, "me", 0)

    assert table.state.last_snapshot_id == 1
    assert {f"{table.location}/{each.path}" for each in table.at().files} == set(first)
    assert [is_committed(again, *each) for each in (("me", 1), ("you", 0))] == [False, False]
    assert [row["id"] for row in rows_in(table)] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["id", "nme"], {}, "has no column nme"),
        (["name"], {}, "needs column id, which is NOT NULL"),
        (["id", "name"], {"primary_keys": ["id"]}, "merged by key"),
    ],
)
def test_rows_that_do_not_fit_the_table_are_rejected(
    columns: list[str], options: dict[str, Any], message: str
) -> None:
    schema = Schema.of({"id": "BIGINT NOT NULL", "name": "STRING"}, **options)
    with pytest.raises(InvalidInputError, match=message):
        refuse_unfit_columns(columns, schema, "shop.orders")


def test_a_streams_name_cannot_lead_out_of_the_table(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    folder = attempt_folder(table, "../../x=y", 0)
    assert folder.startswith(f"{table.location}/data/stream-..%2F..%2Fx%3Dy/batch-0000000000/")


TOO_LONG: dict[str, tuple[Any, Any]] = {
    "VARCHAR(3)": ("abc", "abcd"),
    "CHAR(3)": ("äöü", "äöüß"),
    "VARBINARY(2)": (b"ab", b"abc"),
    "BINARY(2)": (b"ab", b"abc"),
}


@pytest.mark.parametrize("depth", ["column", "member", "element", "value"])
@pytest.mark.parametrize("declared", TOO_LONG)
def test_nothing_longer_than_its_type_is_written(tmp_path: Path, declared: str, depth: str) -> None:
    fits, longer = TOO_LONG[declared]
    inner = parse_type(declared)
    kinds: dict[str, Any] = {
        "column": inner,
        "member": RowType([DataField(1, "m", inner)]),
        "element": ArrayType(inner),
        "value": MapType(parse_type("INT NOT NULL"), inner),
    }
    schema = Schema.of({"v": kinds[depth]})
    files = BatchFiles(str(tmp_path), schema, PartitionSpec(0), ("v",), HERE)

    def written(value: Any) -> list[pa.RecordBatch]:
        held = {"column": value, "member": {"m": value}, "element": [value], "value": {1: value}}
        kind = schema.to_arrow().field("v").type
        given = [(1, value)] if depth == "value" else held[depth]
        column = pa.array([given, None], kind)
        return list(files.write([pa.RecordBatch.from_arrays([column], ["v"])]))

    assert len(written(fits)[0]) == 1
    with pytest.raises(InvalidInputError, match=r"column v.* has the length [34]"):
        written(longer)
