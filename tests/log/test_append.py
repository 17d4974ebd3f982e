"""Guarantees of `append` on a real store that misbehaves in one way."""

from __future__ import annotations

import pytest

from ledger import (
    AddColumn,
    CommitConflictError,
    CommitUnknownError,
    DropColumn,
    InvalidInputError,
    Ledger,
    Move,
    NotFoundError,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UpdateColumnComment,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.decide import TableIntent
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.faults import DeliversTwice, LosesAnswers, LosesRequests
from tests.lakes import data_file, lake_on, memory, no_time, orders


def two_handles(formats: str = "paimon,iceberg") -> tuple[Table, Table]:
    """Two writers that both saw version 0."""
    store = memory()
    columns = {"id": "BIGINT NOT NULL", "day": "DATE", "amount": "INT"}
    options = {"ledger.formats": formats}
    asked = Schema.of(columns, partition_keys=["day"], options=options)
    mine = orders(lake_on(store), asked)
    theirs = lake_on(store).table("shop.orders")
    return mine, theirs


def is_commit(key: str) -> bool:
    return "orders/_ledger/log" in key


def reopened(store: Store) -> Ledger:
    return lake_on(store)


def test_changes_of_different_columns_are_all_committed() -> None:
    mine, theirs = two_handles()
    theirs.alter([AddColumn(("a",), "STRING")])
    done = mine.alter([AddColumn(("b",), "STRING")])

    assert done.version == 2
    assert done.state.schema.names == ("id", "day", "amount", "a", "b")
    assert done.state.schema.field("b").id == 4


def test_a_path_follows_the_column_that_somebody_renamed() -> None:
    mine, theirs = two_handles()
    theirs.alter([RenameColumn(("amount",), "total")])
    done = mine.alter([UpdateColumnComment(("amount",), "in cents")])

    assert done.state.schema.field("total").description == "in cents"


def test_dropping_never_falls_on_a_new_column_of_the_same_name() -> None:
    mine, theirs = two_handles()
    theirs.alter([DropColumn(("amount",)), AddColumn(("amount",), "DOUBLE")])
    done = mine.alter([DropColumn(("amount",))])

    assert done.state.schema.field("amount").id == 3
    assert handle_of(mine).log.commit_at(done.version).transactions[0].events == ()


def test_a_move_follows_its_reference() -> None:
    mine, theirs = two_handles()
    theirs.alter([RenameColumn(("id",), "key")])
    move = Move(field_name="amount", type="AFTER", reference_field_name="id")
    done = mine.alter([UpdateColumnPosition(move)])

    assert done.state.schema.names == ("key", "amount", "day")


@pytest.mark.parametrize(
    ("theirs_asks", "mine_asks", "cell"),
    [
        (RenameColumn(("amount",), "a"), RenameColumn(("amount",), "b"), "column 2 name"),
        (SetOption("k", "1"), SetOption("k", "2"), "option k"),
        (
            UpdateColumnType(("amount",), "BIGINT"),
            UpdateColumnType(("amount",), "DOUBLE"),
            "column 2 type",
        ),
        (
            DropColumn(("amount",)),
            UpdateColumnComment(("amount",), "x"),
            "column 2 exists",
        ),
        (AddColumn(("n",), "INT"), AddColumn(("n",), "STRING"), "name -1 n"),
        (RenameColumn(("amount",), "n"), AddColumn(("n",), "STRING"), "name -1 n"),
    ],
)
def test_the_same_cell_with_another_value_is_a_conflict_that_names_the_winner(
    theirs_asks: object, mine_asks: object, cell: str
) -> None:
    # Iceberg would let INT become BIGINT alone.
    mine, theirs = two_handles(formats="paimon")
    theirs.alter([theirs_asks], author="winner")  # type: ignore[list-item]  # any of the twelve
    with pytest.raises(CommitConflictError) as caught:
        mine.alter([mine_asks])  # type: ignore[list-item]  # any of the twelve

    assert (caught.value.cell, caught.value.version) == (cell, 1)
    assert caught.value.author == "winner"
    assert caught.value.winner is not None
    assert mine.state.version == 1


@pytest.mark.parametrize(
    "both_ask",
    [
        RenameColumn(("amount",), "total"),
        SetOption("k", "1"),
        DropColumn(("amount",)),
        AddColumn(("n",), "INT", comment="c"),
        UpdateColumnType(("amount",), "BIGINT"),
    ],
)
def test_an_equal_value_is_success(both_ask: object) -> None:
    mine, theirs = two_handles()
    theirs.alter([both_ask])  # type: ignore[list-item]  # any of the twelve
    before = theirs.state.schema
    done = mine.alter([both_ask])  # type: ignore[list-item]  # any of the twelve

    assert done.version == 2
    assert done.state.schema.fields == before.fields


def test_expect_version_is_strict() -> None:
    mine, theirs = two_handles()
    theirs.alter([AddColumn(("a",), "STRING")], author="ada")
    with pytest.raises(CommitConflictError, match="ada committed version 1 since"):
        mine.alter([AddColumn(("b",), "STRING")], expect_version=0)
    assert mine.alter([AddColumn(("b",), "STRING")], expect_version=1).version == 2
    with pytest.raises(InvalidInputError, match="the newest is 2"):
        mine.alter([SetOption("k", "v")], expect_version=9)


def test_an_option_that_is_set_to_what_it_is_is_said_again() -> None:
    table = orders(lake_on(memory()))
    table.alter([SetOption("k", "v")])
    again = table.alter([SetOption("k", "v")]).version
    assert [each.events for each in next(table.events(again)).transactions] == [
        (SetOption("k", "v"),)
    ]


def test_in_a_stream_without_commits_no_version_can_be_expected() -> None:
    lake = lake_on(memory())
    with pytest.raises(InvalidInputError, match="expected version 0, but the newest is -1"):
        lake.create_database("a", expect_version=0)
    assert lake.databases() == []


def test_a_commit_id_given_twice_gives_the_first_commit() -> None:
    mine, theirs = two_handles()
    first = mine.alter([AddColumn(("a",), "STRING")], commit_id="job-1")
    theirs.alter([AddColumn(("b",), "STRING")])
    again = theirs.alter([AddColumn(("a",), "STRING")], commit_id="job-1")

    assert (again.version, again.repeated) == (first.version, True)
    assert theirs.state.version == 2


def test_a_commit_id_is_remembered_behind_checkpoints() -> None:
    mine, theirs = two_handles()
    first = mine.alter([SetOption("a", "1")], commit_id="old")
    for number in range(230):
        mine.alter([SetOption("k", str(number))])
    fresh = lake_on(handle_of(mine).log.store).table("shop.orders")

    assert fresh.alter([SetOption("a", "1")], commit_id="old").version == first.version
    assert theirs.state.version == 231


def test_a_commit_id_for_something_else_is_refused() -> None:
    mine, _ = two_handles()
    mine.alter([AddColumn(("a",), "STRING")], commit_id="job-1")
    with pytest.raises(InvalidInputError, match="was used for something else in version 1"):
        mine.alter([AddColumn(("b",), "STRING")], commit_id="job-1")


@pytest.mark.parametrize("fault", [LosesAnswers, LosesRequests, DeliversTwice])
@pytest.mark.parametrize("times", [1, 3])
def test_a_lost_answer_is_neither_lost_nor_done_twice(fault: type, times: int) -> None:
    store = memory()
    orders(lake_on(store))
    faulty = fault(store, on=is_commit, times=times)
    mine = lake_on(faulty, retry_policy=no_time()).table("shop.orders")

    done = [mine.alter([AddColumn((f"c{n}",), "INT")]).version for n in range(3)]

    table = reopened(store).table("shop.orders")
    assert done == [1, 2, 3]
    assert table.state.version == 3
    assert table.state.schema.names[3:] == ("c0", "c1", "c2")
    assert faulty.hits == times


def test_an_outcome_that_cannot_be_found_out_is_unknown() -> None:
    store = memory()
    orders(lake_on(store))
    mine = lake_on(LosesRequests(store, on=is_commit), retry_policy=no_time()).table("shop.orders")

    with pytest.raises(CommitUnknownError) as caught:
        mine.alter([AddColumn(("a",), "INT")], commit_id="mine")

    assert (caught.value.commit_id, caught.value.version) == ("mine", 1)
    table = reopened(store).table("shop.orders")
    assert table.alter([AddColumn(("a",), "INT")], commit_id="mine").version == 1


def test_a_contradiction_is_refused_before_any_write() -> None:
    mine, _ = two_handles()
    keys = list(handle_of(mine).log.store.keys(""))
    with pytest.raises(InvalidInputError):
        mine.alter([AddColumn(("a",), "INT"), DropColumn(("nowhere",))])
    assert list(handle_of(mine).log.store.keys("")) == keys


def test_a_stale_handle_sees_what_it_is_asked_about() -> None:
    mine, theirs = two_handles()
    theirs.alter([AddColumn(("a",), "INT")])
    assert mine.alter([RenameColumn(("a",), "b")]).state.schema.names[-1] == "b"


def test_a_snapshot_is_committed_once_by_its_key() -> None:
    from ledger import SnapshotPlan

    mine, theirs = two_handles()
    plan = SnapshotPlan("APPEND", (data_file("a.parquet"),), commit_user="job", commit_identifier=7)
    first = mine.commit_snapshot(plan)
    again = theirs.commit_snapshot(plan)
    assert (again.version, again.repeated) == (first.version, True)

    batch = SnapshotPlan("APPEND", (), commit_user="job")
    assert mine.commit_snapshot(batch).version == 2
    assert mine.commit_snapshot(batch).version == 3


def test_appends_rebase_and_overlapping_removals_conflict() -> None:
    mine, theirs = two_handles()
    mine.append([data_file("a.parquet"), data_file("b.parquet")])
    theirs.at()
    mine.append([data_file("c.parquet")])
    theirs.append([data_file("d.parquet")])
    assert [each.path for each in mine.at().files] == [f"{each}.parquet" for each in "abcd"]

    mine.at(), theirs.at()
    theirs.delete_files(["a.parquet"], author="cleaner")
    with pytest.raises(CommitConflictError, match="file a.parquet was removed by cleaner"):
        mine.delete_files(["a.parquet"])
    with pytest.raises(InvalidInputError, match=r"a\.parquet is not a live file"):
        mine.delete_files(["a.parquet"])


def test_a_file_is_added_once() -> None:
    mine, theirs = two_handles()
    mine.append([data_file("a.parquet")])
    with pytest.raises(InvalidInputError, match=r"a\.parquet is a live file already"):
        mine.append([data_file("a.parquet")])
    with pytest.raises(InvalidInputError, match="named twice"):
        mine.append([data_file("b.parquet"), data_file("b.parquet")])
    theirs.at()
    mine.append([data_file("c.parquet")], author="first")
    with pytest.raises(CommitConflictError, match="file c.parquet was added by first"):
        theirs.append([data_file("c.parquet")])


def test_an_overwrite_sees_what_others_add_to_its_partitions() -> None:
    mine, theirs = two_handles()
    mine.append([data_file("a.parquet", "2013-01-01"), data_file("b.parquet", "2013-01-02")])
    theirs.at()
    theirs.append([data_file("c.parquet", "2013-01-01")])
    with pytest.raises(CommitConflictError, match="file c.parquet was added"):
        mine.overwrite([data_file("n.parquet", "2013-01-01")], where={"day": "2013-01-01"})

    mine.at()
    theirs.append([data_file("d.parquet", "2013-01-02")])
    mine.overwrite([data_file("n.parquet", "2013-01-01")], where={"day": "2013-01-01"})
    assert {each.path for each in mine.at().files} == {"b.parquet", "d.parquet", "n.parquet"}

    theirs.at()
    mine.append([data_file("e.parquet", "2013-01-02")])
    theirs.overwrite([], where={"day": "2013-01-02"}, isolation="snapshot")
    assert {each.path for each in mine.at().files} == {"n.parquet", "e.parquet"}


def test_a_rollback_does_not_take_back_what_it_did_not_see() -> None:
    mine, theirs = two_handles()
    mine.append([data_file("a.parquet")])
    mine.append([data_file("b.parquet")])
    theirs.at()
    theirs.append([data_file("c.parquet")], author="busy")
    with pytest.raises(
        CommitConflictError,
        match="the newest snapshot was changed by busy in version 3 .* to 3, and you asked for 2",
    ):
        mine.rollback(snapshot=1)


def test_a_schema_of_many_types_is_committed_as_asked() -> None:
    store = memory()
    columns = {"a": "DECIMAL(10, 2)", "b": "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL"}
    table = orders(lake_on(store), Schema.of(columns))
    assert reopened(store).table("shop.orders").at().schema == table.at().schema


def test_partition_keys_given_as_an_option_lay_out_files_anew() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    table = lake.create_table("shop.t", Schema.of({"id": "INT", "day": "DATE"}))
    assert table.state.spec.fields == ()
    done = table.alter([SetOption("partition", "day")])

    assert done.state.schema.partition_keys == ("day",)
    assert [each.name for each in done.state.spec.fields] == ["day"]
    table.append([data_file("a.parquet")])
    with pytest.raises(InvalidInputError):
        table.alter([SetOption("partition", "id")])


def test_a_change_may_be_its_json_object() -> None:
    mine, _ = two_handles()
    mine.alter([{"type": "addColumn", "fieldNames": ["a"], "dataType": "INT"}])
    mine.alter([{"action": "renameColumn", "fieldNames": ["a"], "newName": "b"}])
    assert mine.at().schema.names[-1] == "b"
    with pytest.raises(InvalidInputError, match="is no SchemaChange"):
        mine.alter(["addColumn"])  # type: ignore[list-item]  # the mistake under test


def test_what_was_decided_on_a_table_is_nothing_without_it() -> None:
    mine, _ = two_handles()
    intent = handle_of(mine).intent(mine.state, lambda _: [SetOption("k", "1")])
    assert isinstance(intent, TableIntent)

    with pytest.raises(NotFoundError, match="has no version 0"):
        intent.decide(None, ())
