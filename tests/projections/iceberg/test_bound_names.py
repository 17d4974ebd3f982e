"""Names of files without field ids stay bound for as long as a snapshot holds such a file."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ledger import (
    AddColumn,
    CommitConflictError,
    DropColumn,
    FormatError,
    RenameColumn,
    Schema,
    SetOption,
    Table,
)
from ledger.model.types import IntType
from tests.evolution.declared import (
    REUSED,
    refused,
    row,
    table_of,
    unnamed,
)
from tests.lakes import lake_on, memory


def test_a_name_that_files_without_ids_use_keeps_its_column() -> None:
    table = table_of({"id": "INT", "v": "INT"})
    table.append([unnamed("f")])
    error = refused(table, REUSED)
    assert error.format == "iceberg"
    assert "field 2" in error.rule
    assert "field 1" in error.rule
    assert "expire" in error.alternative

    paimon = table_of({"id": "INT", "v": "INT"}, formats="paimon")
    paimon.append([unnamed("f")])
    assert paimon.alter(REUSED).version == 2


def test_the_name_of_a_dropped_column_is_kept_for_it_too() -> None:
    table = table_of({"id": "INT", "v": "INT"})
    table.append([unnamed("f")])
    table.alter([DropColumn(("v",))])
    assert "field 1" in refused(table, [AddColumn(("v",), "INT")]).rule


def test_names_are_compared_inside_their_struct_whatever_it_is_called_now() -> None:
    table = table_of({"id": "INT", "r": row(("x", IntType()), ("y", IntType()))})
    table.append([unnamed("f")])
    table.alter([RenameColumn(("r",), "s"), DropColumn(("s", "x"))])
    assert "s.x" not in refused(table, [AddColumn(("s", "x"), "INT")]).alternative
    assert table.alter([AddColumn(("x",), "INT")]).state.schema.names == ("id", "s", "x")


def test_a_column_may_take_its_own_name_again() -> None:
    table = table_of({"id": "INT", "v": "INT"})
    table.append([unnamed("f")])
    table.alter([RenameColumn(("v",), "w")])
    assert table.alter([RenameColumn(("w",), "v")]).state.schema.names == ("id", "v")


def test_a_name_is_free_once_no_readable_snapshot_holds_such_a_file() -> None:
    table = table_of({"id": "INT", "v": "INT"})
    table.append([unnamed("f")])
    table.create_tag("kept")
    table.delete_files(["f.parquet"])
    table.append([replace(unnamed("g"), field_ids=True)])
    table.expire_snapshots(before=2)
    refused(table, REUSED)

    table.delete_tag("kept")
    assert table.alter(REUSED).state.schema.names == ("id", "old", "v")


def test_files_with_ids_bind_no_names() -> None:
    table = table_of({"id": "INT", "v": "INT"})
    table.append([replace(unnamed("f"), field_ids=True)])
    assert table.alter(REUSED).version == 2


def test_files_whose_names_mean_other_columns_by_now_are_rejected() -> None:
    table = table_of({"id": "INT", "v": "INT"})
    table.alter(REUSED)
    with pytest.raises(FormatError, match="field 1"):
        table.append([unnamed("f", schema_id=0)])
    assert table.append([unnamed("f", schema_id=1)]).version == 2

    paimon = table_of({"id": "INT", "v": "INT"}, formats="paimon")
    paimon.alter(REUSED)
    assert paimon.append([unnamed("f", schema_id=0)]).version == 2


def two_handles() -> tuple[Table, Table]:
    store = memory()
    made = lake_on(store)
    made.create_database("shop")
    mine = made.create_table("shop.t", Schema.of({"id": "INT", "v": "INT"}))
    return mine, lake_on(store).table("shop.t")


@pytest.mark.parametrize("order", [0, 1])
def test_what_became_illegal_by_a_race_is_a_conflict(order: int) -> None:
    asks: list[Callable[[Table], object]] = [
        lambda table: table.alter(REUSED),
        lambda table: table.append([unnamed("f")]),
    ]
    mine, theirs = two_handles()
    asks[order](theirs)
    with pytest.raises(CommitConflictError, match="files without field ids"):
        asks[1 - order](mine)


def test_iceberg_is_not_declared_over_a_name_that_meant_two_columns_and_is_gone() -> None:
    table = table_of({"id": "INT", "v": "INT"}, formats="paimon")
    table.append([unnamed("f")])
    table.alter(REUSED)
    table.append([unnamed("g", schema_id=1)])
    table.alter([DropColumn(("v",))])
    assert "field" in refused(table, [SetOption("ledger.formats", "paimon,iceberg")]).rule
