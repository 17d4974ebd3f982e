"""Rules for commits: declared by a table, decided like a format's refusals."""

from __future__ import annotations

import pytest

from ledger import (
    AddColumn,
    CommitConflictError,
    FormatError,
    InvalidChangeError,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    Table,
    UpdateColumnComment,
)
from ledger.table_handle import handle_of
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders, ticking


@pytest.fixture
def table() -> Table:
    return orders(lake_on(memory(), ticking(START_MILLIS, 1)))


def ruled(table: Table, key: str, value: str) -> Table:
    table.alter([SetOption(f"ledger.{key}", value)], message="as agreed")
    return table


@pytest.mark.parametrize(
    ("key", "value", "bad", "good"),
    [
        ("column-names", "[a-z_]+", RenameColumn(("amount",), "Amount"), AddColumn(("ok",), "INT")),
        ("allowed-types", "INT, STRING", AddColumn(("x",), "DOUBLE"), AddColumn(("x",), "STRING")),
        (
            "allowed-types",
            "INT, BYTES",
            AddColumn(("x",), "STRING"),
            AddColumn(("x",), "VARBINARY(4)"),
        ),
        ("allowed-types", "int64, text", AddColumn("x", "int32"), AddColumn("x", "BIGINT")),
        (
            "owners.2",
            "ann,etl@*",
            UpdateColumnComment(("amount",), "mine"),
            UpdateColumnComment(("day",), "mine"),
        ),
        (
            "freeze",
            "2000-01-01T00:00:00+00:00/2999-01-01T00:00:00+00:00",
            AddColumn(("x",), "INT"),
            RemoveOption("ledger.freeze"),
        ),
        ("freeze", "true", SetOption("k", "v"), RemoveOption("ledger.freeze")),
    ],
)
def test_a_rule_rejects_what_it_says_and_takes_the_rest(
    table: Table, key: str, value: str, bad: SchemaChange, good: SchemaChange
) -> None:
    ruled(table, key, value)
    version = table.state.version

    with pytest.raises(FormatError, match=f"ledger.{key}") as refused:
        table.alter([bad])
    assert refused.value.format == "ledger"
    assert table.state.version == version
    assert not table.plan([bad]).verdicts[-1].is_allowed
    assert [str(each) for each in table.plan([bad]).refusals] == [str(refused.value)]

    table.alter([good])
    assert table.state.version == version + 1


def test_a_message_is_asked_for_and_may_have_to_match(table: Table) -> None:
    ruled(table, "require-message", "true")
    with pytest.raises(FormatError, match="requires a message"):
        table.alter([SetOption("k", "v")], message=" ")
    with pytest.raises(FormatError, match="requires a message"):
        table.update_schema().add_column("x", "INT").commit()
    table.append([data_file("a.parquet")])
    table.alter([SetOption("ledger.require-message", "^JIRA-[0-9]+")], message="stricter")

    with pytest.raises(FormatError, match="matches"):
        table.alter([SetOption("k", "v")], message="because")
    table.alter([SetOption("k", "v")], message="JIRA-7 because")


def test_an_owner_may_and_a_rename_takes_the_rule_along(table: Table) -> None:
    ruled(table, "owners.2", "ann,etl@*")
    table.alter([RenameColumn(("amount",), "total")], author="etl@prod")

    with pytest.raises(FormatError, match="column total"):
        table.alter([RenameColumn(("total",), "sum")], author="bob")
    with pytest.raises(FormatError, match="ledger.owners.2"):
        table.alter([RemoveOption("ledger.owners.2")], author="bob")
    table.alter([RemoveOption("ledger.owners.2")], author="ann")
    table.alter([RenameColumn(("total",), "sum")], author="bob")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("column-names", "["),
        ("freeze", "soon"),
        ("freeze", "2024-01-01/2025-01-01"),
        ("owners.x", "a"),
    ],
)
def test_a_rule_that_no_commit_could_satisfy_is_rejected(
    table: Table, key: str, value: str
) -> None:
    with pytest.raises(InvalidChangeError, match="cannot be read"):
        ruled(table, key, value)


def test_the_loser_of_a_race_is_checked_against_the_newest_rules(table: Table) -> None:
    ruled(lake_on(handle_of(table).log.store).table("shop.orders"), "freeze", "true")

    with pytest.raises(CommitConflictError, match=r"ledger\.freeze") as lost:
        table.alter([SetOption("k", "v")])
    assert lost.value.version == 1


@pytest.mark.parametrize("key", ["freezing-point", "column-names-of-old", "require-message.soon"])
def test_an_option_that_only_begins_like_a_rule_is_none(table: Table, key: str) -> None:
    ruled(table, key, "(")

    table.alter([AddColumn(("x",), "INT")])

    assert table.plan([AddColumn(("y",), "INT")]).refusals == ()
