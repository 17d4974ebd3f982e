"""Absurd input at each entry point of the library: rejected soon with a typed error, nothing
committed. Arguments by themselves are in `test_public_arguments`, the command line in `cli`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from ledger import (
    AddColumn,
    FileChange,
    InvalidInputError,
    LedgerError,
    Schema,
    SetOption,
    SnapshotPlan,
    Table,
    UndropColumn,
)
from ledger.model.messages import excerpt
from tests.lakes import lake_on, memory

DIGITS = "9" * 5_000
HUGE = 10**5_000
HALF = "\ud800"
SOON_S = 10


def deep_type(deep: int) -> Any:
    found: Any = "INT"
    for _ in range(deep):
        found = {"type": "ARRAY", "element": found}
    return found


def a_file(path: str, **facts: Any) -> FileChange:
    return FileChange(path=path, partition=(None,), record_count=1, file_size_in_bytes=9, **facts)


def a_table(key: str) -> Table:
    lake = lake_on(memory())
    lake.create_database("a")
    schema = Schema.of({"id": "INT", "k": key}, partition_keys=["k"])
    table = lake.create_table("a.t", schema)
    table.append([a_file("a.parquet")])
    return table


def facts(**said: Any) -> Callable[[Table], object]:
    plan = SnapshotPlan("APPEND", (a_file("b.parquet"),), commit_user="u", facts=said)
    return lambda table: table.commit_snapshot(plan)


def sql(text: str) -> Callable[[Table], object]:
    return lambda table: table.sql(f"ALTER TABLE a.t {text}")


def json(**said: Any) -> Callable[[Table], object]:
    return lambda table: table.alter([said])


def field(transform: str) -> Callable[[Table], object]:
    update = {"type": "addPartitionField", "source": ["id"], "transform": transform}
    return json(type="updatePartitionSpec", updates=[update])


def added(**said: Any) -> Callable[[Table], object]:
    return lambda table: table.append([a_file("b.parquet")], **said)


DOORS: dict[str, Callable[[Table], object]] = {
    "a fact that is none": facts(nope=1),
    "a fact that is the ledger's": facts(snapshot_id=9),
    "a fact without a name": lambda table: table.commit_snapshot(
        SnapshotPlan("APPEND", (a_file("b.parquet"),), commit_user="u", facts={1: 2})  # type: ignore[dict-item]
    ),
    "a fact of half a character": facts(**{HALF: 1}),
    "a fact's huge number": facts(watermark=HUGE),
    "a count": lambda table: table.append([a_file("b.parquet", first_row_id=HUGE)]),
    "a commit's id": added(commit_id=HALF),
    "an author": added(author=HALF),
    "a message": added(message=HALF),
    "a property": added(properties={"a": HALF}),
    "a version": added(expect_version=HUGE),
    "SQL's DECIMAL of three": sql("ADD COLUMN c DECIMAL(1, 2, 3)"),
    "SQL's DECIMAL": sql(f"ADD COLUMN c DECIMAL({DIGITS})"),
    "SQL's VARCHAR": sql(f"ADD COLUMN c VARCHAR({DIGITS})"),
    "SQL's TIMESTAMP": sql(f"ADD COLUMN c TIMESTAMP({DIGITS})"),
    "SQL's column id": sql(f"UNDROP COLUMN c ID {DIGITS}"),
    "SQL's bucket": sql(f"ADD PARTITION FIELD bucket({DIGITS}, id)"),
    "SQL's snapshot": sql(f"CREATE TAG v1 AS OF VERSION {DIGITS}"),
    "SQL's retention": sql(f"CREATE TAG v1 RETAIN {DIGITS} DAYS"),
    "SQL's lists": sql("ADD COLUMN c " + "ARRAY<" * 20_000),
    "SQL's structs": sql("ADD COLUMN c " + "STRUCT<a: " * 20_000),
    "SQL's name": sql(f"ADD COLUMN `{HALF}` INT"),
    "a bucket": field(f"bucket[{DIGITS}]"),
    "a width": field(f"truncate[-{DIGITS}]"),
    "a column's id": lambda table: table.alter([UndropColumn(("c",), HUGE)]),
    "a column's id in JSON": json(type="undropColumn", fieldId=HUGE),
    "a deep type": lambda table: table.alter([AddColumn(("c",), deep_type(100_000))]),
    "a deep type in JSON": json(type="addColumn", fieldNames=["c"], dataType=deep_type(100_000)),
    "a long type": json(type="addColumn", fieldNames=["c"], dataType=f"DECIMAL({DIGITS})"),
    "a vector": json(
        type="addColumn",
        fieldNames=["c"],
        dataType={"type": "VECTOR", "element": "FLOAT", "length": HUGE},
    ),
    "a member's id": json(
        type="addColumn",
        fieldNames=["c"],
        dataType={"type": "ROW", "fields": [{"id": HUGE, "name": "a", "type": "INT"}]},
    ),
    "a VECTOR by its comment": lambda table: table.alter(
        [AddColumn(("c",), "ARRAY<FLOAT>", f"__VECTOR_FIELD;{DIGITS}")]
    ),
    "an option": lambda table: table.alter([SetOption("a", HALF)]),
    "an option's number": lambda table: table.alter([SetOption("bucket", DIGITS)]),
}


@pytest.mark.parametrize("door", DOORS)
def test_it_is_rejected_and_nothing_is_committed(door: str) -> None:
    table = a_table("DATE")
    begun = time.monotonic()
    with pytest.raises(LedgerError) as refused:
        DOORS[door](table)
    assert str(refused.value)
    assert time.monotonic() - begun < SOON_S
    assert table.state.version == 1


@pytest.mark.parametrize("key", ["DATE", "INT", "DECIMAL(5, 2)", "TIMESTAMP(6)"])
@pytest.mark.parametrize(
    "value", [10**12, -(10**12), HUGE, DIGITS, HALF], ids=lambda each: ascii(excerpt(each))
)
def test_a_partition_is_not_sought_by_what_no_column_holds(key: str, value: Any) -> None:
    table = a_table(key)
    with pytest.raises(InvalidInputError, match="is no value of partition key k|as JSON"):
        table.overwrite([a_file("b.parquet")], where={"k": value})
    assert table.state.version == 1


def test_nothing_was_committed_under_an_id_that_no_log_can_hold() -> None:
    table = a_table("DATE")
    assert table.find_commit(HALF) is None
