"""Diff, undo and restore of a table on a store."""

from __future__ import annotations

import pytest

from ledger import (
    AddColumn,
    InvalidChangeError,
    InvalidInputError,
    RenameColumn,
    Schema,
    SetOption,
    UpdateColumnComment,
)
from ledger.decide import in_words
from tests.lakes import data_file, lake_on, memory, orders

COLUMNS = {"id": "BIGINT NOT NULL", "day": "DATE", "amount": "INT"}


def test_undo_keeps_what_came_later_and_says_what_it_did() -> None:
    table = orders(lake_on(memory()))
    table.alter([RenameColumn(("amount",), "total")], message="a better name")
    table.alter([AddColumn(("note",), "STRING"), UpdateColumnComment(("total",), "in cents")])

    assert table.plan_undo(1).is_possible
    table.undo(1, author="ann")

    assert table.state.schema.names == ("id", "day", "amount", "note")
    assert table.state.schema.field("amount").description == "in cents"
    commit = next(table.events(3))
    assert commit.transactions[0].message == "undo version 1: a better name"
    assert commit.transactions[0].author == "ann"


def test_an_undo_that_is_retried_under_its_id_is_committed_once() -> None:
    table = orders(lake_on(memory()))
    table.alter([SetOption("k", "1")])

    first = table.undo(1, commit_id="back")
    again = table.undo(1, commit_id="back")

    assert (again.version, again.repeated) == (first.version, True)


def test_tags_are_undone_and_data_is_not() -> None:
    table = orders(lake_on(memory()))
    table.append([data_file("a.parquet")])
    table.create_tag("v1")

    table.undo(2)

    assert "v1" not in table.state.tags
    with pytest.raises(InvalidChangeError, match="committed snapshot 1, whose data stays"):
        table.undo(1)
    with pytest.raises(InvalidInputError, match="version 0 created the table"):
        table.undo(0)


def test_a_table_is_restored_to_an_instant_and_its_data_stays() -> None:
    table = orders(lake_on(memory()))
    table.append([data_file("a.parquet")])
    table.create_tag("then")
    table.alter([RenameColumn(("amount",), "total"), SetOption("k", "1")])

    table.restore(table.at(tag="then"))

    assert table.state.schema.names == ("id", "day", "amount")
    assert "k" not in table.state.schema.options
    assert table.state.totals.record_count == 10
    with pytest.raises(InvalidChangeError, match="none of its changes is left"):
        table.restore(table.at(tag="then"))


def test_another_table_becomes_what_a_diff_says() -> None:
    lake = lake_on(memory())
    one = orders(lake, Schema.of(COLUMNS))
    two = lake.create_table("shop.other", Schema.of({"id": "BIGINT NOT NULL", "note": "STRING"}))

    two.alter(two.diff(two, one).to_json())

    assert two.state.schema.names == one.state.schema.names
    assert not two.diff(one).changes


def test_a_planned_undo_is_described_before_its_ids_are_assigned() -> None:
    table = orders(lake_on(memory()))
    table.alter([SetOption("ledger.formats", "iceberg")])
    table.append([data_file("a.parquet")])
    table.replace_sort_order().asc("id").commit()
    table.update_spec().add_field("id").commit()
    table.create_tag("v1")
    table.delete_tag("v1")

    phrases = []
    for version in (3, 4, 5, 6):
        plan = table.plan_undo(version)
        phrases += [in_words(each) for each in (*plan.migration.changes, *plan.tags)]

    assert "files are unsorted" in phrases
    assert "changed the partition spec: remove id" in phrases
    assert any("v1" in each for each in phrases)
