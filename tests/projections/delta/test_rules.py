"""Delta's rules, when the format is declared and when a change is validated."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ledger import (
    AddColumn,
    DropColumn,
    FileChange,
    FormatError,
    InvalidChangeError,
    RenameColumn,
    Schema,
    SetOption,
    SnapshotPlan,
    Table,
    UpdateColumnDefaultValue,
    UpdateColumnType,
)
from ledger.model.single_values import WHOLE_BITS
from tests.lakes import lake_on, memory
from tests.projections.delta.projecting import Left

DELTA = {"ledger.formats": "delta"}


def table_of(columns: dict[str, Any], **schema: Any) -> Table:
    lake = lake_on(memory())
    lake.create_database("db")
    options = {**DELTA, **schema.pop("options", {})}
    return lake.create_table("db.t", Schema.of(columns, options=options, **schema))


def file(name: str, **facts: Any) -> FileChange:
    return FileChange(path=f"{name}.parquet", record_count=3, file_size_in_bytes=900, **facts)


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"a": "TIME(3)"}, "Delta has no TIME"),
        ({"a": "TIMESTAMP(9)"}, "microseconds"),
        ({"a": "UUID"}, "Delta has no UUID"),
        ({"a": "INT", "A": "INT"}, "compared without case"),
        ({}, "a table without columns: readers fail on it"),
    ],
)
def test_a_table_that_delta_cannot_say_is_not_begun(columns: dict[str, str], rule: str) -> None:
    with pytest.raises(FormatError, match=rule) as caught:
        table_of(columns)
    assert caught.value.format == "delta"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (UpdateColumnType(("n",), "SMALLINT"), "only as a wider one"),
        (UpdateColumnType(("n",), "STRING"), "only as a wider one"),
        (UpdateColumnType(("day",), "TIMESTAMP(6)"), "only as a wider one"),
        (UpdateColumnType(("text",), "VARCHAR(4)"), "readers cast nothing"),
        (AddColumn(("N",), "INT"), "compared without case"),
        (SetOption("delta.columnMapping.mode", "id"), "the projection itself sets"),
    ],
)
def test_a_step_that_readers_would_misread_is_rejected(change: Any, rule: str) -> None:
    table = table_of({"n": "INT", "day": "DATE", "text": "STRING"})
    table.append([file("a")])
    (verdict,) = [each for each in table.plan([change]).verdicts if each.format == "delta"]
    assert any(rule in each.message for each in verdict.refusals)
    with pytest.raises(FormatError, match=rule):
        table.alter([change])


@pytest.mark.parametrize("wider", ["BIGINT", "DOUBLE", "DECIMAL(12,2)"])
def test_a_wider_type_is_a_step_and_the_plan_names_readers_that_lack_it(wider: str) -> None:
    table = table_of({"n": "INT"})
    table.append([file("a")])
    plan = table.plan([UpdateColumnType(("n",), wider)])
    assert not plan.refusals
    assert any("typeWidening" in each for each in plan.warnings)


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ({"format": "orc"}, "files are Parquet"),
        ({"content": "position-deletes"}, "no files of 'position-deletes'"),
        ({"partition": ("",)}, "an empty value in partition column p"),
    ],
)
def test_a_file_that_delta_cannot_say_is_rejected(facts: dict[str, Any], rule: str) -> None:
    table = table_of({"n": "INT", "p": "STRING"}, partition_keys=["p"])
    with pytest.raises(FormatError, match=rule):
        table.append([replace(file("a", partition=("x",)), **facts)])


@pytest.mark.parametrize("kind", ["BYTES", "VARBINARY(9)", "BINARY(2)"])
def test_bytes_partition_a_table_as_far_as_they_are_a_text(kind: str) -> None:
    table = table_of({"n": "INT", "p": kind}, partition_keys=["p"])
    for value, rule in (("", "an empty value in partition column p"), ("fffe", "cannot write")):
        with pytest.raises(FormatError, match=rule):
            table.append([file("a", partition=(value,))])
    table.append([file(f"a{each}", partition=(each,)) for each in ("0102", "c3bf", None)])
    table.project("delta")
    left = Left.by(table)
    live = left.at(left.versions()[1]).adds
    written = [live[f"a{each}.parquet"].partition_values["p"] for each in ("0102", "c3bf", None)]
    assert written == ["\x01\x02", "\xff", None]


@pytest.mark.parametrize("also", [0, 1100])
@pytest.mark.parametrize(("kind", "bits"), WHOLE_BITS.items())
def test_a_partition_value_has_room_in_its_column(kind: str, bits: int, also: int) -> None:
    table = table_of({"n": "INT", "p": kind}, partition_keys=["p"])
    limit = 1 << bits - 1
    others = [file(f"other-{each}", partition=(0,)) for each in range(also)]
    for value in (limit, -limit - 1, 2**63, -(2**63) - 1, 10**30, 10**400):
        with pytest.raises((FormatError, InvalidChangeError)):
            table.append([*others, file("a", partition=(value,))])
    edges = (limit - 1, -limit)
    table.append([*others, *(file(f"a{each}", partition=(each,)) for each in edges)])
    table.project("delta")


def test_a_file_that_says_that_it_is_in_no_order_is_one_of_deltas() -> None:
    table = table_of({"n": "INT"})
    assert table.append([replace(file("a"), sort_order_id=0)]).version == 1


def test_files_that_disagree_on_a_name_are_rejected_until_an_overwrite() -> None:
    table = table_of({"a": "INT"})
    table.append([file("old")])
    table.alter([RenameColumn(("a",), "b")])
    for carries_ids in (False, True):
        with pytest.raises(FormatError, match="files hold it as a and as b"):
            table.append([file("new", schema_id=1, field_ids=carries_ids)])

    table.append([file("by-the-old-name", schema_id=0)])
    table.overwrite([file("new", schema_id=1)])
    table.append([file("newer", schema_id=1)])


def test_a_name_that_comes_back_waits_for_the_old_files_to_go() -> None:
    table = table_of({"a": "INT", "b": "INT"})
    table.append([file("old")])
    table.alter([DropColumn(("a",))])
    table.alter([AddColumn(("a",), "INT")])
    with pytest.raises(FormatError, match="files hold field 0 under its name a"):
        table.append([file("new", schema_id=2)])
    table.overwrite([file("new", schema_id=2)])


def test_partition_columns_stay_as_long_as_there_are_files() -> None:
    table = table_of({"n": "INT", "p": "STRING"})
    table.update_spec().add_field("p").commit()
    table.append([file("a", partition=("x",), spec_id=table.state.spec.spec_id)])
    with pytest.raises(FormatError, match="keeps the columns that partition it"):
        table.update_spec().remove_field("p").commit()


def test_the_past_is_checked_when_delta_is_declared() -> None:
    table = table_of({"a": "INT"}, options={"ledger.formats": "iceberg"})
    table.append([file("old", field_ids=True)])
    table.alter([RenameColumn(("a",), "b")])
    table.append([file("new", schema_id=1, field_ids=True)])
    with pytest.raises(FormatError, match="files hold it as a and as b"):
        table.alter([SetOption("ledger.formats", "iceberg,delta")])


def test_a_plan_names_the_defaults_that_the_log_will_not_say() -> None:
    table = table_of({"a": "INT"})
    change = UpdateColumnDefaultValue(("a",), "7")
    said = [
        each for each in table.plan([change]).warnings if "does not record the default 7" in each
    ]
    assert len(said) == 1
    table.alter([change])
    warnings = table.plan([AddColumn(("b",), "INT")]).warnings
    assert not [each for each in warnings if "default" in each]


def test_files_of_the_past_are_asked_about_when_delta_is_declared() -> None:
    table = table_of({"a": "INT", "p": "INT"}, options={"ledger.formats": "iceberg"})
    table.append([replace(file("old", field_ids=True), format="avro", path="old.avro")])
    table.delete_files(["old.avro"])
    with pytest.raises(FormatError, match=r"old\.avro"):
        table.alter([SetOption("ledger.formats", "iceberg,delta")])
    table.expire_snapshots(before=2)
    assert table.alter([SetOption("ledger.formats", "iceberg,delta")]).version == 4


def test_keys_of_older_snapshots_are_asked_about_when_delta_is_declared() -> None:
    schema = Schema.of({"a": "INT"}, primary_keys=["a"], options={"ledger.formats": "paimon"})
    lake = lake_on(memory())
    lake.create_database("db")
    table = lake.create_table("db.t", schema)
    lists = {"base_manifest_list": "manifest-list-1", "delta_manifest_list": "manifest-list-2"}
    table.alter([SetOption("ledger.formats", "paimon,delta")])
    table.alter([SetOption("ledger.formats", "paimon")])
    table.commit_snapshot(SnapshotPlan("APPEND", (file("a"),), commit_user="f", facts=lists))
    with pytest.raises(FormatError):
        table.alter([SetOption("ledger.formats", "paimon,delta")])


def test_an_empty_table_is_asked_about_when_delta_is_declared_later() -> None:
    table = table_of({"a": "INT", "A": "INT"}, options={"ledger.formats": "iceberg"})
    with pytest.raises(FormatError, match="case"):
        table.alter([SetOption("ledger.formats", "iceberg,delta")])
