"""A plan says what a change would come to, and writes nothing."""

from __future__ import annotations

import pytest

from ledger import (
    AddColumn,
    AddPartitionField,
    ColumnNotFoundError,
    DropColumn,
    FormatError,
    InvalidInputError,
    RenameColumn,
    Schema,
    SchemaChange,
    SetOption,
    Table,
    UpdateColumnType,
    UpdatePartitionSpec,
)
from ledger.events import SpecChange
from ledger.plan import ChangePlan, Verdict
from ledger.table_handle import handle_of
from projections.delta.materialise import verify
from tests.lakes import data_file, lake_on, memory, orders


def table(formats: str = "paimon,iceberg") -> Table:
    columns = {"id": "BIGINT NOT NULL", "day": "DATE", "amount": "INT", "note": "STRING"}
    options = {"ledger.formats": formats}
    return orders(lake_on(memory()), Schema.of(columns, partition_keys=["day"], options=options))


def verdict(planned: ChangePlan, name: str) -> Verdict:
    return next(each for each in planned.verdicts if each.format == name)


def differences_of(planned: ChangePlan) -> list[tuple[str, str | None, str | None]]:
    return [(each.what, each.before, each.after) for each in planned.differences]


def test_a_plan_is_what_alter_then_does() -> None:
    asked = table()
    changes: list[SchemaChange | SpecChange] = [
        AddColumn(("zip",), "STRING", "where"),
        RenameColumn(("note",), "remark"),
        UpdateColumnType(("amount",), "BIGINT"),
        SetOption("k", "v"),
        UpdatePartitionSpec((AddPartitionField(("id",), "bucket[4]"),)),
    ]
    planned = asked.plan(changes)
    assert asked.state.version == 0

    done = asked.alter(changes).state
    assert planned.after.schema == done.schema
    assert planned.after.specs == done.specs
    assert planned.events == next(asked.events(1)).transactions[0].events
    assert (planned.before.schema.id, planned.after.schema.id) == (0, 1)
    assert planned.refusals == ()


def test_differences_are_found_by_field_id() -> None:
    planned = table().plan(
        [
            DropColumn(("note",)),
            RenameColumn(("amount",), "total"),
            AddColumn(("zip",), "STRING", "where"),
            SetOption("k", "v"),
            UpdatePartitionSpec((AddPartitionField(("id",), "bucket[4]"),)),
        ]
    )
    assert differences_of(planned) == [
        ("field 2", "amount INT", "total INT"),
        ("field 3", "note STRING", None),
        ("field 4", None, "zip STRING COMMENT 'where'"),
        ("option k", None, "v"),
        (
            "partition spec",
            "spec 0: day=identity(day)",
            "spec 1: day=identity(day), id_bucket_4=bucket[4](id)",
        ),
    ]


def test_each_format_says_its_own_declared_or_not() -> None:
    change = UpdateColumnType(("amount",), "STRING", keep_nullability=True)
    planned = table(formats="paimon").plan([change])
    assert planned.refusals == ()
    iceberg = verdict(planned, "iceberg")
    assert (iceberg.is_declared, iceberg.is_allowed) == (False, False)
    assert verdict(planned, "paimon").is_allowed

    planned = table().plan([change])
    assert [each.message for each in planned.refusals] == [
        each.message for each in iceberg.refusals
    ]
    assert verdict(planned, "iceberg").is_declared


def test_every_reason_is_reported_not_only_the_first() -> None:
    planned = table().plan(
        [
            UpdateColumnType(("amount",), "STRING", keep_nullability=True),
            AddColumn(("v",), "TIMESTAMP(9)"),
            AddColumn(("w",), "VARIANT"),
        ]
    )
    refusals = verdict(planned, "iceberg").refusals
    assert len(refusals) == 3
    for each in refusals:
        assert isinstance(each, FormatError)
        assert each.rule
        assert each.alternative
    assert verdict(planned, "paimon").is_allowed


def test_the_past_counts_for_a_format_that_is_not_declared() -> None:
    asked = table(formats="paimon")
    asked.append([data_file("f.parquet")])
    asked.alter([UpdateColumnType(("amount",), "STRING", keep_nullability=True)])
    planned = asked.plan([SetOption("k", "v")])
    assert "INT to STRING" in verdict(planned, "iceberg").refusals[0].message


def test_files_are_planned_for_formats_that_can_name_them() -> None:
    planned = table().plan([AddColumn(("zip",), "STRING")])
    assert verdict(planned, "paimon").files == ("schema/schema-1",)
    planned = table().plan([UpdatePartitionSpec((AddPartitionField(("id",), "bucket[4]"),))])
    assert verdict(planned, "paimon").files == ()


def test_a_refused_format_gets_no_files() -> None:
    columns = {"id": "BIGINT NOT NULL", "u": "UUID"}
    options = {"ledger.formats": "iceberg"}
    asked = orders(lake_on(memory()), Schema.of(columns, options=options))
    assert verdict(asked.plan([AddColumn(("v",), "UUID")]), "paimon").files is None


def test_what_means_nothing_in_any_format_is_refused_as_alter_does() -> None:
    with pytest.raises(ColumnNotFoundError, match="nothing"):
        table().plan([DropColumn(("nothing",))])
    with pytest.raises(InvalidInputError, match="no changes were given"):
        table().plan([])


def test_what_holds_already_changes_nothing() -> None:
    asked = table()
    planned = asked.plan([SetOption("ledger.formats", "paimon,iceberg")])
    assert differences_of(planned) == []
    assert planned.refusals == ()


@pytest.mark.parametrize("formats", ["paimon,delta", "iceberg,delta"])
def test_renames_that_keep_rows_out_of_paimon_and_delta_are_warned_of(formats: str) -> None:
    asked = table(formats)
    asked.append([data_file("a.parquet")])
    said = asked.plan([RenameColumn(("note",), "remark")]).warnings
    is_warned = any("only after all older files were overwritten" in each for each in said)
    assert is_warned == (formats == "paimon,delta")
    assert asked.plan([AddColumn(("zip",), "STRING")]).warnings == ()


def test_formats_that_have_no_branches_are_said_to_leave_them_out() -> None:
    found = table(formats="iceberg")
    found.append([data_file("a.parquet")])
    found.branch("audit").create()
    declared = SetOption("ledger.formats", "iceberg,paimon,delta")
    said = [each for each in found.plan([declared]).warnings if "audit" in each]
    assert sorted(each.partition(" ")[0] for each in said) == ["Delta's", "Paimon's"]
    found.alter([declared])
    assert not [each for each in found.plan([SetOption("k", "v")]).warnings if "audit" in each]
    found.project("delta")
    assert any("audit" in each for each in verify(handle_of(found)).inexpressible)
