"""A diff names both of its sides, and matches the columns of unrelated tables by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from msgspec.structs import replace

import ledger
from ledger import (
    AddColumn,
    InvalidInputError,
    RenameColumn,
    ReplaceSortOrder,
    Schema,
    SortColumn,
    Table,
)
from ledger.audit.difference import TableDiff
from ledger.cli import main
from ledger.events import TableEvent
from ledger.log import Codec
from ledger.model.types import STRING, ArrayType, DataField, IntType, MapType, RowType
from ledger.state import TableBuilder
from ledger.state.iceberg_origin import IcebergOrigin
from tests.lakes import data_file, lake_on, memory

OF_A, OF_B = (Schema.of({"id": "INT", name: "INT"}) for name in "ab")
Capture = pytest.CaptureFixture[str]


def nested(first: int, *names: str) -> RowType:
    return RowType([DataField(first + at, name, IntType()) for at, name in enumerate(names)])


def two_tables(one: Schema, two: Schema) -> tuple[Table, Table]:
    lake = lake_on(memory())
    lake.create_database("shop")
    return lake.create_table("shop.one", one), lake.create_table("shop.two", two)


def rows(found: TableDiff) -> dict[str, tuple[str | None, str | None]]:
    return {each.what: (each.before, each.after) for each in found.rows}


def test_columns_of_unrelated_tables_with_other_ids_do_not_differ() -> None:
    one, two = two_tables(
        Schema.of({"id": "INT", "day": "DATE", "x": "INT"}, partition_keys=["day"]),
        Schema.of({"x": "INT", "id": "INT", "day": "DATE"}, partition_keys=["day"]),
    )

    found = two.diff(one, two)

    assert found.match == "name"
    assert rows(found) == {"column order": ("id day x", "x id day")}
    assert [each["type"] for each in found.to_json()] == ["updateColumnPosition"]
    assert found.migration.refusal is None


def test_columns_of_unrelated_tables_with_one_id_are_no_rename() -> None:
    one, two = two_tables(
        Schema.of({"id": "INT", "a": "INT"}), Schema.of({"id": "INT", "b": "INT"})
    )

    found = one.diff(one, two)

    assert rows(found) == {"column a": ("a INT", None), "column b": (None, "b INT")}
    assert [each["type"] for each in found.to_json()] == ["dropColumn", "addColumn"]


def test_columns_are_matched_by_id_if_that_is_requested() -> None:
    one, two = two_tables(
        Schema.of({"id": "INT", "a": "INT"}), Schema.of({"id": "INT", "b": "INT"})
    )

    found = one.diff(one, two, match="id")

    assert rows(found) == {"field 1": ("a INT", "b INT")}
    assert found.to_json() == [{"type": "renameColumn", "fieldNames": ["a"], "newName": "b"}]


def test_versions_of_one_table_are_matched_by_name_if_that_is_requested() -> None:
    table, _ = two_tables(Schema.of({"id": "INT", "a": "INT"}), Schema.of({"id": "INT"}))
    table.alter([RenameColumn(("a",), "b")])

    assert rows(table.diff(0)) == {"field 1": ("a INT", "b INT")}
    assert rows(table.diff(0, match="name")) == {
        "column a": ("a INT", None),
        "column b": (None, "b INT"),
    }


def test_an_unknown_rule_is_rejected() -> None:
    table, _ = two_tables(Schema.of({"id": "INT"}), Schema.of({"id": "INT"}))

    with pytest.raises(InvalidInputError, match="match='ids' is not one of id, name"):
        table.diff(0, match="ids")  # type: ignore[arg-type]


@pytest.mark.parametrize("around", ["row", "array", "map"])
def test_members_of_unrelated_tables_are_matched_by_name(around: str) -> None:
    def wrapped(members: RowType) -> Any:
        return {"row": members, "array": ArrayType(members), "map": MapType(STRING, members)}[
            around
        ]

    one, two = two_tables(
        Schema.of({"id": "INT", "s": wrapped(nested(0, "a", "b", "c"))}),
        Schema.of({"s": wrapped(nested(0, "b", "a", "d")), "id": "INT"}),
    )

    path = {"row": "s", "array": "s.element", "map": "s.value"}[around]
    shown = rows(one.diff(one, two))
    assert shown.pop("column order") == ("id s", "s id")
    assert shown == {
        f"column {path}.c": (f"{path}.c INT", None),
        f"column {path}.d": (None, f"{path}.d INT"),
    }


def test_layouts_of_unrelated_tables_are_compared_without_their_numbers() -> None:
    declared = {"ledger.formats": "iceberg"}
    one, two = two_tables(
        Schema.of({"id": "INT", "x": "INT"}, options=declared),
        Schema.of({"x": "INT", "id": "INT"}, options=declared),
    )
    two.alter([ReplaceSortOrder((SortColumn(("id",)),))])
    for table in (one, two):
        table.alter([ReplaceSortOrder((SortColumn(("x",)),))])

    assert set(rows(one.diff(one, two))) == {"column order"}


def test_states_of_one_table_at_two_places_are_matched_by_id() -> None:
    table, _ = two_tables(Schema.of({"a": "INT"}), Schema.of({"a": "INT"}))
    table.alter([RenameColumn(("a",), "b")])

    # As of a copy in another ledger, which has the same id.
    assert TableDiff(table.at(version=0).state, table.state).match == "id"


@pytest.mark.parametrize(
    ("first", "second", "match"),
    [("u-1", "u-1", "id"), ("u-1", "u-2", "name"), (None, None, "name"), ("u-1", None, "name")],
)
def test_tables_imported_from_one_iceberg_table_are_matched_by_id(
    first: str | None, second: str | None, match: str
) -> None:
    codec: Codec[TableEvent] = Codec(TableEvent)
    builder = TableBuilder()
    lines = (Path(__file__).parents[1] / "data/born/commits.jsonl").read_bytes().splitlines()
    for each in lines:
        builder.commit(codec.decode(each, "a line"))
    state = builder.freeze()
    origin = state.origin_of_kind(IcebergOrigin)
    one, two = (
        attrs.evolve(state, table_id=name, origin=replace(origin, table_uuid=uuid))
        for name, uuid in (("one", first), ("two", second))
    )

    assert TableDiff(one, two).match == match


def test_both_sides_are_named_in_python() -> None:
    one, two = two_tables(
        Schema.of({"id": "INT", "day": "DATE"}, partition_keys=["day"]), Schema.of({"a": "INT"})
    )
    one.append([data_file("a.parquet")])
    one.create_tag("v1")
    one.create_branch("audit")

    assert repr(one.diff(0)).startswith("TableDiff(versions 0 to 3:")
    assert repr(one.diff(one, two)).startswith("TableDiff(shop.one version 3 to shop.two version 0")
    for branch in (one.at(branch="audit"), one.branch("audit").at()):
        assert one.diff(branch).span == "branch audit (version 3) to main (version 3)"
    assert one.diff(one.at(tag="v1")).span == "tag v1 (version 1) to version 3"
    assert one.diff(one.at(snapshot=1)).span == "snapshot 1 (version 1) to version 3"
    assert "shop.one version 3 to shop.two" in one.diff(one, two)._repr_html_()
    assert two.diff(one.at(branch="audit")).sides[0].to_json() == {
        "table": "shop.one",
        "version": 3,
        "branch": "audit",
    }


@pytest.fixture
def lake(tmp_path: Path) -> str:
    url = str(tmp_path / "lake")
    made = ledger.open(url, author="tester")
    made.create_database("shop")
    one = made.create_table("shop.one", Schema.of({"id": "INT", "a": "INT"}))
    two = made.create_table("shop.two", Schema.of({"b": "INT", "id": "INT"}))
    for table in (one, two):
        table.append([ledger.FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9)])
    one.create_tag("v1")
    one.create_branch("audit")
    two.alter([AddColumn(("c",), "INT")])
    return url


def diff(lake: str, capsys: Capture, *words: str) -> str:
    assert main(["diff", *words, "--ledger", lake]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "heading", "one", "two"),
    [
        (
            ("shop.one", "0", "1"),
            "shop.one: version 0 to 1",
            {"table": "shop.one", "version": 0},
            {"table": "shop.one", "version": 1},
        ),
        (
            ("shop.one", "shop.two"),
            "shop.two version 2 to shop.one version 3",
            {"table": "shop.two", "version": 2},
            {"table": "shop.one", "version": 3},
        ),
        (
            ("shop.one", "branch:audit"),
            "shop.one: branch audit (version 3) to main (version 3)",
            {"table": "shop.one", "version": 3, "branch": "audit"},
            {"table": "shop.one", "version": 3},
        ),
        (
            ("shop.one", "main", "branch:audit"),
            "shop.one: main (version 3) to branch audit (version 3)",
            {"table": "shop.one", "version": 3},
            {"table": "shop.one", "version": 3, "branch": "audit"},
        ),
        (
            ("shop.one", "tag:v1", "branch:audit"),
            "shop.one: tag v1 (version 1) to branch audit (version 3)",
            {"table": "shop.one", "version": 1, "tag": "v1"},
            {"table": "shop.one", "version": 3, "branch": "audit"},
        ),
        (
            ("shop.one", "snapshot:1", "shop.two"),
            "shop.one snapshot 1 (version 1) to shop.two version 2",
            {"table": "shop.one", "version": 1, "snapshot": 1},
            {"table": "shop.two", "version": 2},
        ),
        (
            ("shop.one", "-2", "now"),
            "shop.one: version 1 to 3",
            {"table": "shop.one", "version": 1},
            {"table": "shop.one", "version": 3},
        ),
    ],
)
def test_the_command_names_both_sides_in_text_and_json(
    lake: str, capsys: Capture, words: tuple[str, ...], heading: str, one: Any, two: Any
) -> None:
    text = diff(lake, capsys, *words)
    document = json.loads(diff(lake, capsys, *words, "--output", "json"))

    assert text.splitlines()[0] == heading
    assert (document["from"], document["to"]) == (one, two)
    assert document["matchedBy"] == ("id" if one["table"] == two["table"] else "name")


def test_the_command_matches_by_id_only_if_that_is_requested(lake: str, capsys: Capture) -> None:
    by_name = diff(lake, capsys, "shop.one", "shop.two")
    by_id = diff(lake, capsys, "shop.one", "shop.two", "--match", "id")

    assert "column b" in by_name
    assert "field 0" not in by_name
    assert "field 0" in by_id
    assert "column c" in by_name
    assert "field 2" in by_id
    assert "cannot be reused" not in by_name
    (heads,) = (line for line in by_name.splitlines() if line.startswith(" what"))
    assert heads.split() == ["what", "shop.two", "shop.one"]
