"""Files state their order, their rows' ids and what they delete; contradictions are rejected."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from ledger import (
    CommitConflictError,
    FileChange,
    FormatError,
    InvalidChangeError,
    Schema,
    SetOption,
    SnapshotPlan,
    Table,
)
from ledger.cli import exits, main
from ledger.model.types import STRING, ArrayType, DataType
from ledger.state import TableStream
from ledger.stores import Durability, LocalStore, Store
from ledger.table_handle import handle_of
from projections.iceberg import partition_statistics_table
from projections.statistics import Kept, query
from tests.history.ledgers import Place
from tests.history.test_contradictions import forge, snapshot
from tests.lakes import START_MILLIS, lake_on, memory, ticking
from tests.thorough import some

V3 = {"ledger.formats": "iceberg", "format-version": "3"}


def table_on(store: Store, options: dict[str, str] | None = None) -> Table:
    lake = lake_on(store)
    lake.create_database("shop")
    columns: dict[str, str | DataType] = {
        "id": "INT",
        "name": "STRING",
        "rate": "DOUBLE",
        "tags": ArrayType(STRING),
    }
    return lake.create_table("shop.orders", Schema.of(columns, options=V3 | (options or {})))


def data(path: str, **said: Any) -> FileChange:
    return FileChange(path=path, record_count=10, file_size_in_bytes=100, field_ids=True, **said)


def vector(of: str, at: int, file: str = "v.puffin", **said: Any) -> FileChange:
    """Three rows of a file, in a Puffin file of several vectors."""
    facts: dict[str, Any] = {
        "path": f"{file}#{at}",
        "content": "position-deletes",
        "format": "puffin",
        "record_count": 3,
        "file_size_in_bytes": 1000,
        "field_ids": True,
        "referenced_data_file": of,
        "content_offset": at,
        "content_size_in_bytes": 40,
    }
    return FileChange(**facts | said)


def by_value(path: str, *ids: int, **said: Any) -> FileChange:
    return data(path, content="equality-deletes", equality_ids=ids, **said)


def by_position(path: str, of: str) -> FileChange:
    return data(path, content="position-deletes", referenced_data_file=of)


def test_what_files_say_stands_in_the_log_and_comes_back(tmp_path: Path) -> None:
    table = table_on(LocalStore(tmp_path, durable=Durability.NONE))
    table.replace_sort_order().asc("id").commit()
    files = [data("a.parquet", sort_order_id=1, first_row_id=50), by_value("e.parquet", 0, 1)]
    table.append(files)
    table.append([vector("a.parquet", 4), data("b.parquet")])
    again = lake_on(LocalStore(tmp_path)).table("shop.orders")

    live = {each.path: each for each in again.at().files}
    assert [live[each.path] for each in files] == files
    assert live["v.puffin#4"] == vector("a.parquet", 4)
    assert main(["verify", "--ledger", str(tmp_path)]) == exits.OK


REFUSED: dict[str, tuple[FileChange, str]] = {
    "an order that there is not": (
        data("x", sort_order_id=7),
        "names sort order 7; the table has 0",
    ),
    "an order of positions": (
        replace(by_position("x", "a.parquet"), sort_order_id=0),
        "whose order is always their own",
    ),
    "columns that nothing compares": (data("x", equality_ids=(0,)), "leave them out"),
    "no columns": (by_value("x"), "name one or more"),
    "a column twice": (by_value("x", 0, 0), "each once"),
    "a column that there is not": (by_value("x", 99), "compares column 99"),
    "a data file that deletes": (data("x", referenced_data_file="a.parquet"), "leave it out"),
    "a vector without its place": (
        vector("a.parquet", 4, content_offset=UNSET),
        "give its content_offset",
    ),
    "a vector of nothing": (
        vector("a.parquet", 4, referenced_data_file=UNSET),
        "give its referenced_data_file",
    ),
    "a vector past the end": (vector("a.parquet", 980), "its vector ends at 1020"),
    "a vector by its file alone": (vector("a.parquet", 4, path="v.puffin"), "end its path in #4"),
    "a place in a whole file": (data("x", content_offset=4), "is no deletion vector"),
    "an offset before the beginning": (
        vector("a.parquet", -1),
        "bytes -1 is not between",
    ),
    "rows beyond every number": (data("x", first_row_id=2**63 - 5), "row id"),
    "a path that leads out": (vector("../a.parquet", 4), "is not a live file"),
    "a file that there is not": (vector("z.parquet", 4), "is not a live file"),
    "a file of deletes": (vector("e.parquet", 4), "no data file of the table"),
    "a second vector": (vector("b.parquet", 90), "can have one at most"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_contradicts_itself_or_the_table_is_refused_before_anything_is_written(
    what: str,
) -> None:
    table = table_on(memory())
    table.append([data("a.parquet"), data("b.parquet"), by_value("e.parquet", 0)])
    table.append([vector("b.parquet", 50)])
    file, message = REFUSED[what]
    version = table.state.version
    with pytest.raises(InvalidChangeError, match=message):
        table.append([file])
    assert handle_of(table).again().state.version == version


def test_a_vector_is_replaced_by_one_that_goes_and_one_that_comes() -> None:
    table = table_on(memory())
    table.append([data("a.parquet")])
    table.append([vector("a.parquet", 4)])
    plan = SnapshotPlan("OVERWRITE", (vector("a.parquet", 60),), delete=("v.puffin#4",))
    table.commit_snapshot(plan)
    assert {each.path for each in table.at().files} == {"a.parquet", "v.puffin#60"}
    both = SnapshotPlan("OVERWRITE", (vector("a.parquet", 70),), delete=("a.parquet",))
    with pytest.raises(InvalidChangeError, match="no data file of the table after this snapshot"):
        table.commit_snapshot(both)


def test_what_no_other_format_can_say_is_refused_by_its_name() -> None:
    for formats, version, file, message in (
        ("iceberg", "2", vector("a.parquet", 4), "no deletion vectors"),
        ("iceberg", "1", vector("a.parquet", 4), "no deletion vectors"),
        ("iceberg", "1", by_value("e.parquet", 0), "no files of deletes"),
        ("iceberg", "2", by_value("e.parquet", 2), "compare no DOUBLE"),
        ("iceberg", "3", by_value("e.parquet", 3), "compare no ARRAY"),
        ("paimon", "2", vector("a.parquet", 4), "its manifests list data files"),
        ("paimon", "2", by_value("e.parquet", 0), "its manifests list data files"),
        ("paimon", "2", data("b.parquet", sort_order_id=1), "have no sort order"),
        ("delta", "2", vector("a.parquet", 4), "no files of 'position-deletes'"),
        ("delta", "2", data("b.parquet", sort_order_id=1), "has no sort orders"),
    ):
        table = table_on(memory(), {"ledger.formats": formats, "format-version": version})
        table.append([data("a.parquet")])
        if formats == "iceberg":
            table.replace_sort_order().asc("id").commit()
        elif file.sort_order_id:
            # What the table has an order for was decided while it was Iceberg's.
            continue
        with pytest.raises(FormatError, match=message):
            table.append([file])


def two(store: Store) -> tuple[Table, Table]:
    """Two writers of one table that has files and a vector."""
    table = table_on(store)
    table.append([data("a.parquet"), data("b.parquet")])
    table.append([vector("b.parquet", 4)])
    return table, lake_on(store).table("shop.orders")


def test_of_two_writers_that_delete_rows_of_one_file_one_conflicts() -> None:
    one, other = two(memory())
    one.append([vector("a.parquet", 100, "one.puffin")])
    with pytest.raises((CommitConflictError, InvalidChangeError), match=r"one\.puffin#100"):
        other.append([vector("a.parquet", 100, "other.puffin")])


def test_a_file_is_not_rewritten_without_what_somebody_deleted_meanwhile() -> None:
    one, other = two(memory())
    one.append([vector("a.parquet", 100, "one.puffin")])
    rewritten = SnapshotPlan("COMPACT", (data("c.parquet"),), delete=("a.parquet",))
    with pytest.raises(CommitConflictError, match=r"one\.puffin#100"):
        other.commit_snapshot(rewritten)
    other.commit_snapshot(rewritten)


def test_rows_are_not_deleted_of_a_file_that_went_meanwhile() -> None:
    one, other = two(memory())
    one.delete_files("a.parquet")
    with pytest.raises((CommitConflictError, InvalidChangeError), match=r"a\.parquet"):
        other.append([vector("a.parquet", 100, "other.puffin")])


@pytest.mark.parametrize("seed", some(range(12), 2))
def test_what_is_live_is_the_same_by_replay_by_checkpoint_by_runs_and_by_plan(seed: int) -> None:
    store, rng = memory(), random.Random(seed)
    table = table_on(store)
    lived(table, rng, 120)
    fresh = lake_on(store).table("shop.orders")
    live = {each.path: each for each in fresh.at().files}
    counted: dict[str, FileChange] = {}
    for each in handle_of(fresh).live.changes(0, fresh.state.version):
        if each.change.kind == "ADD":
            counted[each.change.path] = each.change
        else:
            del counted[each.change.path]
    assert live == counted
    assert any(each.is_vector for each in live.values())
    planned = {each.file.path: each.file for each in fresh.at().plan("id >= 0").files}
    assert planned == live
    kept = TableStream().decode_state(TableStream().encode_state(fresh.state))
    assert kept == fresh.state
    table.rollback(snapshot=table.state.last_snapshot_id // 2)
    back = {each.path: each for each in table.at().files}
    then = table.at(snapshot=table.state.last_snapshot_id // 2).files
    assert back == {each.path: each for each in then}


def lived(table: Table, rng: random.Random, steps: int) -> None:
    """Let files come and go, with deletes of every sort."""
    for number in range(table.state.last_snapshot_id, table.state.last_snapshot_id + steps):
        live = {each.path: each for each in table.at().files}
        rows = [each for each in live.values() if each.content == "data"]
        vectors = {e.referenced_data_file: e.path for e in live.values() if e.is_vector}
        kind = rng.randrange(5) if rows else 0
        if kind == 0:
            more = {"first_row_id": 10_000 + 10 * number} if rng.randrange(2) else {}
            table.append([data(f"{number}.parquet", **more)])
        elif kind == 1:
            table.append([by_value(f"{number}.parquet", rng.randrange(2))])
        elif kind == 2 and len(rows) > 3:
            gone = rng.choice(rows).path
            table.delete_files([gone, *filter(None, [vectors.get(gone)])])
        else:
            of = rng.choice(rows).path
            new = vector(of, 4 + 50 * rng.randrange(9), f"{number}.puffin")
            old = tuple(filter(None, [vectors.get(of)]))
            table.commit_snapshot(SnapshotPlan("OVERWRITE", (new,), delete=old))


FORGED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "names a vector by its file": ({}, {"path": "w.puffin"}, "not called by where it begins"),
    "leads out": ({}, {"referencedDataFile": "../../a.parquet"}, "outside of its folder"),
    "begins before the beginning": ({}, {"contentOffset": -1, "path": "w#-1"}, "contentOffset"),
    "compares a number of 70 bits": ({}, {"equalityIds": [2**70]}, "list of files|equalityIds"),
    "has an order below none": ({}, {"sortOrderId": -2}, "sortOrderId is -2"),
    "has text for a place": ({}, {"contentSizeInBytes": "x"}, "list of files"),
    "has a key to come": ({}, {"rowGroups": 3}, "the key 'rowGroups'.*upgrade lakeledger"),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_log_that_hashes_rightly_and_says_what_cannot_be_is_found(
    what: str, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    lake = place.lake(ticking(START_MILLIS))
    lake.create_database("shop")
    table = lake.create_table("shop.orders", Schema.of({"id": "INT"}, options=V3))
    table.append([data("a.parquet"), data("b.parquet")])
    table.append([vector("a.parquet", 4)])
    of_event, of_file, message = FORGED[what]
    event = snapshot(place)
    file = {**event["files"][0], "path": "w.puffin#4", "referencedDataFile": "b.parquet"}
    event = {**event, "files": [{**file, **of_file}], **of_event}
    forge(place, [{key: each for key, each in event.items() if each is not None}])
    assert re.search(message, " ".join(each.what for each in place.look().findings))


def test_statistics_count_files_of_every_sort() -> None:
    table = table_on(memory())
    table.append([data("a.parquet"), data("b.parquet"), by_value("e.parquet", 0)])
    table.append([vector("a.parquet", 4), vector("b.parquet", 90)])
    sums = query.partition_sums(Kept.of(handle_of(table).log), table.state)
    state = table.state
    found = partition_statistics_table(
        sums, state.schema, state.specs, times={}, format_version=3
    ).to_pylist()
    assert [
        (
            each["data_file_count"],
            each["data_record_count"],
            each["position_delete_record_count"],
            each["position_delete_file_count"],
            each["dv_count"],
            each["equality_delete_file_count"],
            each["equality_delete_record_count"],
        )
        for each in found
    ] == [(2, 20, 6, 0, 2, 1, 10)]


def test_deletes_in_files_of_rows_may_be_as_many_as_they_are_next_to_a_vector() -> None:
    table = table_on(memory(), {"format-version": "2"})
    table.append([data("a.parquet"), data("b.parquet")])
    table.append([by_position(f"{name}.parquet", "a.parquet") for name in ("d1", "d2")])
    table.alter([SetOption("format-version", "3")])
    table.append([vector("b.parquet", 4)])

    live = {each.path for each in table.at().files}
    assert live == {"a.parquet", "b.parquet", "d1.parquet", "d2.parquet", "v.puffin#4"}
    with pytest.raises(InvalidChangeError, match="can have one at most"):
        table.append([vector("b.parquet", 90)])
