"""Paimon's own Java core reads what was projected, and its system tables agree with the ledger."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # ships none
from pyarrow import parquet

from ledger import AddColumn, FileChange, Ledger, Schema, Table
from ledger.model import field_to_json, read_type
from ledger.table_handle import handle_of
from projections.paimon import PAIMON
from projections.partition_text import PartitionText
from tests.projections.paimon.importing.paimon_source import grown, impatient
from tests.projections.paimon.importing.test_promoting import changed
from tests.readers.book import Book, Rows
from tests.readers.evolutions import EVOLUTIONS
from tests.readers.java_core import JavaPaimon, text
from tests.readers.lakehouse import folder_of
from tests.readers.partitions import LAYOUTS

_LIVES = ["life_at_once", "life_step_by_step"]


def _texts(rows: Rows, columns: list[str]) -> list[str]:
    return sorted(text({column: row[column] for column in columns}) for row in rows)


def _agrees(java: JavaPaimon, book: Book, snapshot: int | None = None, **options: str) -> None:
    named = {f"scan.{key.replace('_', '-')}": value for key, value in options.items()}
    columns, rows = java.rows(book.table.identifier.name, named)
    schema = book.table.at(snapshot=snapshot).schema
    assert columns == list(schema.names)
    assert sorted(rows) == _texts(book.expected(snapshot), columns)


@pytest.mark.parametrize("ids", ["", "_no_ids"])
@pytest.mark.parametrize("name", EVOLUTIONS)
def test_every_snapshot_reads_with_the_schema_of_its_time(
    java: JavaPaimon, evolved: dict[str, Book], name: str, ids: str
) -> None:
    book = evolved[name + ids]

    _agrees(java, book)
    for number in range(1, book.last + 1):
        _agrees(java, book, number, snapshot_id=str(number))


@pytest.mark.parametrize("name", LAYOUTS)
def test_partitions_of_every_kind_read_whole(
    java: JavaPaimon, partitioned: dict[str, Book], name: str
) -> None:
    _agrees(java, partitioned[name])


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_filter_on_a_partition_finds_that_partition(
    java: JavaPaimon, partitioned: dict[str, Book], name: str
) -> None:
    rows = partitioned[name].expected()

    for value in {row["k"] for row in rows}:
        columns, found = java.rows(name, equal=("k", value))
        assert sorted(found) == _texts([row for row in rows if row["k"] == value], columns)


@pytest.mark.parametrize("name", ["flat", "casts"])
def test_bounds_of_old_files_lose_no_rows(
    java: JavaPaimon, evolved: dict[str, Book], name: str
) -> None:
    rows = evolved[name].expected()

    for column in [key for key, value in rows[0].items() if not isinstance(value, Decimal)]:
        for value in {row[column] for row in rows[::20]}:
            columns, found = java.rows(name, equal=(column, value))
            wanted = _texts([row for row in rows if row[column] == value], columns)
            assert not Counter(wanted) - Counter(found), (column, value)


def test_java_rejects_filters_on_decimals_that_a_file_keeps_as_bytes(
    java: JavaPaimon, evolved: dict[str, Book]
) -> None:
    # Paimon's Java core reads them, but its filter wants integers up to 18 digits, as it writes
    # them itself; pyarrow writes these with `store_decimal_as_integer=True` only.
    price = evolved["flat"].expected()[-1]["price"]

    with pytest.raises(Py4JJavaError, match="FIXED_LEN_BYTE_ARRAY"):
        java.rows("flat", equal=("price", price))


@pytest.mark.parametrize("name", _LIVES)
def test_snapshots_and_tags_read_after_removals_rollback_and_expiry(
    java: JavaPaimon, lived: dict[str, Book], name: str
) -> None:
    book = lived[name]

    _agrees(java, book)
    for number in range(5, book.last + 1):
        _agrees(java, book, number, snapshot_id=str(number))
    for tag, number in book.tags.items():
        _agrees(java, book, number, tag_name=tag)


@pytest.mark.parametrize("number", [1, 8, 9, 64, 65, 66, 72, 73, 74, 80])
def test_snapshots_on_both_sides_of_a_merge_read_whole(
    java: JavaPaimon, long: Book, number: int
) -> None:
    _agrees(java, long, number, snapshot_id=str(number))


def _moment(millis: int) -> str:
    return text(dt.datetime.fromtimestamp(millis / 1000, dt.UTC))


@pytest.mark.parametrize("name", _LIVES)
def test_its_snapshots_are_the_ledgers(java: JavaPaimon, lived: dict[str, Book], name: str) -> None:
    table = lived[name].table
    columns = [
        "snapshot_id",
        "schema_id",
        "commit_user",
        "commit_identifier",
        "commit_kind",
        "commit_time",
        "total_record_count",
        "delta_record_count",
    ]

    _, rows = java.rows(f"{name}$snapshots", columns=columns)

    ours = [table.at(snapshot=number).snapshot for number in range(5, lived[name].last + 1)]
    assert rows == [
        f"{{{each.id}, {each.schema_id}, {each.commit_user}, {each.commit_identifier}, "
        f"{each.commit_kind}, {_moment(each.time_millis)}, {each.total_record_count}, "
        f"{each.delta_record_count}}}"
        for each in ours
        if each is not None
    ]


@pytest.mark.parametrize("name", ["flat", "map", "life_at_once"])
def test_its_schemas_are_the_ledgers(
    java: JavaPaimon, evolved: dict[str, Book], lived: dict[str, Book], name: str
) -> None:
    _, ids = java.rows(f"{name}$schemas", columns=["schema_id"])
    _, fields = java.rows(f"{name}$schemas", columns=["fields"])

    found = {
        int(number[1:-1]): json.loads(each[1:-1]) for number, each in zip(ids, fields, strict=True)
    }

    ours = (evolved | lived)[name].table.schemas()
    assert found == {each.id: [field_to_json(field) for field in each.fields] for each in ours}


@pytest.mark.parametrize("name", [*_LIVES, "by_date_string_legacy", "by_date_string_cast"])
def test_its_files_are_the_ledgers_live_files(
    java: JavaPaimon, lived: dict[str, Book], partitioned: dict[str, Book], name: str
) -> None:
    book = (lived | partitioned)[name]
    columns = ["file_path", "schema_id", "record_count", "file_size_in_bytes", "creation_time"]

    _, rows = java.rows(f"{name}$files", columns=columns)

    ours = sorted(
        f"{book.root / each.path}, {each.schema_id}, {each.record_count}, "
        f"{each.file_size_in_bytes}, {_moment(each.creation_time)}"
        for each in book.table.at().files
    )
    assert sorted(row[1:-1].removeprefix("file:").replace("///", "/") for row in rows) == ours


@pytest.mark.parametrize("name", [*_LIVES, "by_date_string_legacy", "by_date_string_cast"])
def test_its_partitions_are_sums_of_the_ledgers_live_files(
    java: JavaPaimon, lived: dict[str, Book], partitioned: dict[str, Book], name: str
) -> None:
    book = (lived | partitioned)[name]
    columns = ["partition", "record_count", "file_size_in_bytes", "file_count"]

    _, rows = java.rows(f"{name}$partitions", columns=columns)

    schema = book.table.at().schema
    # Its paths may name partitions by what it keeps inside; this table of its never does.
    keys = evolve(PartitionText.of(schema), legacy_name=False)
    sums: dict[str, list[int]] = {}
    for file in book.table.at().files:
        spec = keys.spec(schema.partition_keys, file.partition)
        sums_of = sums.setdefault("/".join(f"{k}={v}" for k, v in spec.items()), [0, 0, 0])
        for index, value in enumerate((file.record_count, file.file_size_in_bytes, 1)):
            sums_of[index] += value
    assert sorted(rows) == sorted(f"{{{key}, {a}, {b}, {c}}}" for key, (a, b, c) in sums.items())


@pytest.mark.parametrize("name", _LIVES)
def test_its_tags_are_the_ledgers(java: JavaPaimon, lived: dict[str, Book], name: str) -> None:
    table = lived[name].table
    columns = ["tag_name", "snapshot_id", "schema_id", "commit_time", "record_count"]

    _, rows = java.rows(f"{name}$tags", columns=columns)

    ours = {tag: table.at(tag=tag).snapshot for tag in table.at().tags}
    assert sorted(rows) == sorted(
        f"{{{tag}, {each.id}, {each.schema_id}, {_moment(each.time_millis)}, "
        f"{each.total_record_count}}}"
        for tag, each in ours.items()
        if each is not None
    )


_STRUCTS = ["ROW<p INT, q INT>", "ARRAY<ROW<p INT, q INT>>", "MAP<STRING, ROW<p INT, q INT>>"]


def _with_struct(lake: Ledger, name: str, column: str) -> Table:
    table = lake.create_table(f"shop.{name}", Schema.of({"c": read_type(column)}))
    folder_of(table).mkdir(parents=True, exist_ok=True)
    return table


def _struct_file(table: Table, name: str, members: str) -> tuple[str, str]:
    """Write a file whose structs have some members; return its path, and its row as text."""
    struct = pa.struct([(each, pa.int32()) for each in members])
    value: Any = {each: ord(each) for each in members}
    kind, said = table.at().schema.to_arrow().field("c").type, text(value)
    column = struct
    if pa.types.is_list(kind):
        column, value, said = pa.list_(struct), [value], f"[{said}]"
    if pa.types.is_map(kind):
        column, value, said = pa.map_(pa.string(), struct), [("k", value)], f"{{k -> {said}}}"
    path = folder_of(table) / name
    parquet.write_table(pa.table({"c": pa.array([value], column)}), path)
    return str(path), f"{{{said}}}"


@pytest.mark.parametrize("column", _STRUCTS)
def test_java_finds_members_of_structs_by_name_and_fails_where_a_file_lacks_one(
    java: JavaPaimon, lake: Ledger, column: str
) -> None:
    table = _with_struct(lake, f"members_{_STRUCTS.index(column)}", column)
    name = table.identifier.name
    for number, members in enumerate(("pq", "qp", "p")):
        path, _ = _struct_file(table, f"{number}.parquet", members)
        size = Path(path).stat().st_size
        # As an engine commits them: the ledger does not read the files.
        table.append(
            [FileChange(path=f"{number}.parquet", record_count=1, file_size_in_bytes=size)]
        )
    PAIMON.project(handle_of(table))
    _, right = _struct_file(table, "right.parquet", "pq")
    assert _read(java, name, snapshot_id=2)[1] == [right, right]
    with pytest.raises(Py4JJavaError, match="field q is missing"):
        _read(java, name, snapshot_id=3)


@pytest.mark.parametrize("column", _STRUCTS)
def test_java_reads_files_from_before_a_change_of_a_struct(
    java: JavaPaimon, lake: Ledger, column: str
) -> None:
    table = _with_struct(lake, f"changed_members_{_STRUCTS.index(column)}", column)
    below = {"ROW": (), "ARR": ("element",), "MAP": ("value",)}[column[:3]]
    older, row = _struct_file(table, "1.parquet", "pq")
    table.add_files([older])
    table.alter([AddColumn(("c", *below, "r"), "INT")])
    again, _ = _struct_file(table, "2.parquet", "pq")
    newer, later = _struct_file(table, "3.parquet", "pqr")
    for path in (again, newer):
        table.add_files([path])
    PAIMON.project(handle_of(table))
    earlier = row.replace("113}", "113, null}")
    assert _read(java, table.identifier.name)[1] == sorted([earlier, earlier, later])


def _read(java: JavaPaimon, name: str, **options: int | str) -> tuple[list[str], list[str]]:
    """Rows that Java reads, in an order of its own."""
    said = {f"scan.{key.replace('_', '-')}": str(value) for key, value in options.items()}
    columns, rows = java.rows(name, said)
    return columns, sorted(rows)


def test_a_promoted_table_reads_the_same_and_rejects_commits_at_its_source(
    java: JavaPaimon, lake: Ledger, tmp_path: Path
) -> None:
    source = impatient(grown(tmp_path / "theirs"))
    theirs = java.elsewhere(str(tmp_path / "theirs"), "s")
    before = {each: _read(theirs, "t", snapshot_id=each) for each in (1, 2, 3)}
    newest = _read(theirs, "t")
    lake.import_table("shop.promoted", str(source.folder), format_name="paimon")
    lake.promote("shop.promoted")
    table = lake.table("shop.promoted")
    assert _read(java, "promoted") == _read(theirs, "t") == newest
    assert _read(java, "promoted", snapshot_id=4)[1] == newest[1]
    wanted = dict(changed(table))
    PAIMON.project(handle_of(table))
    for number, expected in before.items():
        assert _read(java, "promoted", snapshot_id=number) == expected
        assert _read(theirs, "t", snapshot_id=number) == expected
    for number, ids in wanted.items():
        _, rows = java.rows("promoted", {"scan.snapshot-id": str(number)}, columns=["id"])
        assert sorted(int(row.strip("{}")) for row in rows) == ids
    assert _read(java, "promoted", tag_name="t1") == before[1]
    with pytest.raises(Py4JJavaError, match="maybe exist commit conflicts"):
        theirs.truncate("t")
    assert _read(theirs, "t") == newest
    assert source.snapshots == [1, 2, 3, 4]
