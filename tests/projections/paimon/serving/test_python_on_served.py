"""The library on served Paimon tables: it changes schemas and tags, and commits no data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ledger import (
    CommitConflictError,
    InvalidChangeError,
    InvalidInputError,
    Ledger,
    Schema,
    Table,
    UnsupportedError,
)
from ledger.events import schema as s
from ledger.log.request import now_millis
from ledger.purge import plan_purges, run_purge
from ledger.table_handle import handle_of
from projections.paimon.materialise import verify
from projections.paimon.served import alter_table
from projections.paimon.served_files import write_files
from projections.paimon.served_folder import record_folder
from tests.lakes import data_file, memory
from tests.projections.paimon.serving.engines import NAME, Engine, lake_at

WIDE = Schema.of(
    {
        "id": "BIGINT NOT NULL",
        "day": "STRING NOT NULL",
        "value": "INT",
        "note": "STRING",
        "inner": "ROW<a INT>",
    },
    primary_keys=["id", "day"],
    partition_keys=["day"],
    options={
        "bucket": "4",
        "changelog-producer": "input",
        "merge-engine": "deduplicate",
        "deletion-vectors.enabled": "false",
    },
)
CHANGES: list[s.SchemaChange] = [
    s.SetOption("team", "x"),
    s.SetOption("snapshot.num-retained.min", "3"),
    s.RemoveOption("nothing"),
    s.UpdateComment("all of them"),
    s.AddColumn(("more",), "DOUBLE", "a comment", s.Move("more", "FIRST")),
    s.AddColumn(("inner", "b"), "STRING"),
    s.RenameColumn(("note",), "remark"),
    s.UpdateColumnType(("value",), "BIGINT"),
    s.UpdateColumnNullability(("remark",), new_nullability=True),
    s.UpdateColumnComment(("remark",), "said"),
    s.UpdateColumnDefaultValue(("value",), "7"),
    s.UpdateColumnPosition(s.Move("value", "LAST")),
    s.DropColumn(("more",)),
]


def lake_with(engine_options: dict[str, str] | None = None) -> tuple[Ledger, Engine, Table]:
    store = memory()
    schema = WIDE.with_options({**WIDE.options, **(engine_options or {})})
    engine = Engine.of_new_table(store, schema)
    lake = lake_at(store)
    return lake, engine, lake.table("a.t")


@pytest.mark.parametrize("by", ["an engine", "the library"])
def test_all_changes_of_a_request_make_one_schema(by: str) -> None:
    _, engine, table = lake_with()
    engine.commit()
    if by == "an engine":
        alter_table(engine.table, CHANGES)
    else:
        table.alter(CHANGES)
    state = engine.table.state
    assert state.version == 2
    assert state.schema.id == 1
    assert state.schema.names == ("id", "day", "remark", "inner", "value")
    assert state.schema.primary_keys == ("id", "day")
    write_files(engine.table, state)
    assert {"schema/schema-0", "schema/schema-1"} <= engine.files().keys()
    assert verify(engine.table).is_empty
    assert b"ledger.formats" not in engine.files()["schema/schema-1"]


def test_a_primary_key_is_dropped_before_the_first_snapshot_alone() -> None:
    _, engine, _ = lake_with({"bucket-key": "id"})
    plain = Engine.of_new_table(memory(), Schema.of({"id": "INT", "v": "INT"}, primary_keys=["id"]))
    alter_table(plain.table, [s.DropPrimaryKey()])
    assert plain.table.state.schema.primary_keys == ()
    engine.commit()
    with pytest.raises(InvalidChangeError):
        alter_table(engine.table, [s.DropPrimaryKey()])


@pytest.mark.parametrize(
    "change",
    [
        s.SetOption("ledger.formats", "iceberg"),
        s.RemoveOption("ledger.formats"),
        s.SetOption("ledger.follow", "iceberg"),
    ],
)
def test_engines_do_not_change_options_of_the_ledger(change: Any) -> None:
    _, engine, _ = lake_with()
    with pytest.raises(InvalidInputError, match="option of the ledger"):
        alter_table(engine.table, [change])
    assert engine.table.state.version == 0


def test_an_option_of_the_ledger_is_changed_by_the_library() -> None:
    _, engine, table = lake_with()
    with pytest.raises(InvalidChangeError, match="paimon"):
        table.alter([s.SetOption("ledger.formats", "iceberg")])
    table.alter([s.SetOption("ledger.max-columns", "100")])
    write_files(engine.table, engine.table.state)
    assert b"ledger.max-columns" in engine.files()["schema/schema-1"]


def test_the_same_cell_set_twice_is_a_conflict_that_names_the_winner() -> None:
    store = memory()
    engine = Engine.of_new_table(store, WIDE)
    late = lake_at(store).table("a.t")
    alter_table(engine.table, [s.UpdateColumnComment(("note",), "one")])
    with pytest.raises(CommitConflictError, match="note"):
        late.alter([s.UpdateColumnComment(("note",), "other")])


def test_the_library_tags_as_engines_see_it() -> None:
    _, engine, table = lake_with()
    engine.commit()
    engine.commit()
    table.create_tag("v1", snapshot=1)
    assert engine.tags() == ["v1"]
    # A server that has seen nothing takes it for no tag that an engine deleted.
    assert sorted(record_folder(engine.table.again()).tags) == ["v1"]
    table.replace_tag("v1", snapshot=2)
    assert record_folder(engine.table.again()).tags["v1"].snapshot_id == 2
    table.delete_tag("v1")
    assert engine.tags() == []
    assert not record_folder(engine.table.again()).tags


def test_the_library_commits_no_data_and_says_so() -> None:
    _, engine, table = lake_with()
    engine.commit()
    calls: tuple[Callable[[], object], ...] = (
        lambda: table.append([data_file("a.parquet")]),
        lambda: table.rollback(snapshot=1),
        lambda: table.create_branch("b"),
    )
    for call in calls:
        with pytest.raises((InvalidChangeError, UnsupportedError), match=r"serve|Paimon"):
            call()
    assert engine.table.state.version == 1


def test_no_filter_prunes_files_of_a_table_whose_rows_are_merged() -> None:
    _, engine, table = lake_with()
    engine.commit()
    with pytest.raises(UnsupportedError, match=r"chosen by a filter.*primary key"):
        table.at().plan("value = 1")


def test_a_purged_table_leaves_no_file_behind() -> None:
    store = memory()
    engine = Engine.of_new_table(store)
    engine.commit()
    engine.put("bucket-0/data-1.parquet", b"rows")
    lake = lake_at(store)
    other = Engine(handle_of(lake).table(NAME))
    assert other.table.state.version == 1
    lake.drop_table("a.t", purge=True)
    handle = handle_of(lake)
    for each in plan_purges(handle, now_millis() * 2):
        run_purge(handle, each)
    assert [each for each in store.keys("a.db/t") if "_ledger" not in each] == []
