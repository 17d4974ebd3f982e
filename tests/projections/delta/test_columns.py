"""Names of the columns inside rows, lists and maps in Delta's files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

from ledger import FileChange, InvalidInputError, RenameColumn, Schema, SetOption
from ledger.model import format_type, parse_type, read_type
from ledger.model import types as t
from ledger.model.single_values import WHOLE_BITS
from ledger.model.types import walk_fields
from projections.delta.columns import ColumnNamesInFiles, columns_by_physical_path, columns_of
from projections.delta.values import StatisticsFormatter, partition_value
from tests.lakes import lake_on, memory


def member(name: str, kind: Any, **said: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": said}


def struct(*members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(members)}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def mapped(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


NESTED = struct(
    member("a", "integer"),
    member("l", array(struct(member("x", "integer"), member("y", array("string"))))),
    member(
        "m", mapped(struct(member("k", "integer")), mapped("string", struct(member("v", "long"))))
    ),
)


def test_members_are_found_in_lists_and_in_the_keys_and_values_of_maps() -> None:
    assert [path for path, _ in columns_by_physical_path(NESTED, {})] == [
        *("a", "l", "l.element.x", "l.element.y"),
        *("m", "m.key.k", "m.value.value.v"),
    ]


def test_every_member_at_any_depth_gets_an_id_of_its_own() -> None:
    columns = columns_of(NESTED, {}, {}, 0)
    assert sorted(columns.new.values()) == list(range(1, 8))
    assert [format_type(each.type) for each in columns.fields] == [
        "INT",
        "ARRAY<ROW<`x` INT, `y` ARRAY<STRING>>>",
        "MAP<ROW<`k` INT> NOT NULL, MAP<STRING NOT NULL, ROW<`v` BIGINT>>>",
    ]


def test_files_call_members_of_lists_and_maps_by_the_sources_names() -> None:
    kinds = {"l": "ARRAY<ROW<x INT>>", "m": "MAP<STRING, ROW<v ARRAY<ROW<w INT>>>>"}
    schema = Schema.of({name: read_type(text) for name, text in kinds.items()})
    (of_list, of_map) = schema.fields
    assert isinstance(of_list.type, t.ArrayType)
    assert isinstance(of_map.type, t.MapType)
    ids = {each.name: each.id for each in walk_fields(schema.fields)}
    called = ColumnNamesInFiles(
        {ids["x"]: "col-x", ids["w"]: "col-w", ids["m"]: "col-m"}, schema.id
    )

    found = called.schema(schema)

    assert [each.name for each in found.fields] == ["l", "col-m"]
    assert [format_type(each.type) for each in found.fields] == [
        "ARRAY<ROW<`col-x` INT>>",
        "MAP<STRING, ROW<`v` ARRAY<ROW<`col-w` INT>>>>",
    ]
    assert called.schema(evolve(schema, id=schema.id + 1)).names == ("l", "m")


def test_a_bound_that_delta_has_not_is_left_out_and_the_others_stay() -> None:
    schema = Schema.of({"n": "INT", "raw": "BYTES"})
    (number, raw) = (each.id for each in schema.fields)
    file = FileChange(
        path="a.parquet",
        record_count=1,
        file_size_in_bytes=1,
        lower_bounds={number: "07000000", raw: "00ff"},
    )
    said = json.loads(StatisticsFormatter(schema.fields, frozenset()).text(file))
    assert said["minValues"] == {"n": 7}


STATS_COLUMNS = "delta.dataSkippingStatsColumns"


@pytest.mark.parametrize("formats", ["delta", "paimon,iceberg,delta"])
@pytest.mark.parametrize(
    ("said", "renames", "then"),
    [
        ("a", [[("a", "x")], [("b", "a")]], "x"),
        ("a, b", [[("a", "x")], [("b", "a")]], "x, a"),
        ("a,b", [[("a", "x"), ("b", "a")]], "x,a"),
        ("r.m,b", [[("r", "s")], [("s.m", "n")]], "s.n,b"),
        ("gone,a", [[("a", "x")]], "gone,x"),
    ],
)
def test_the_columns_with_statistics_stay_the_same_ones_when_they_are_renamed(
    formats: str, said: str, renames: list[list[tuple[str, str]]], then: str
) -> None:
    lake = lake_on(memory())
    lake.create_database("a")
    columns: dict[str, str | t.DataType] = {
        "a": "INT",
        "b": "INT",
        "r": t.RowType((t.DataField(0, "m", t.IntType()),)),
    }
    options = {"ledger.formats": formats, STATS_COLUMNS: said}
    table = lake.create_table("a.t", Schema.of(columns, options=options))
    for batch in renames:
        table.alter([RenameColumn(tuple(old.split(".")), new) for old, new in batch])

    assert table.schema.options[STATS_COLUMNS] == then


def test_columns_with_statistics_are_set_on_the_column_that_was_meant() -> None:
    store = memory()
    lake = lake_on(store)
    lake.create_database("a")
    schema = Schema.of({"a": "INT", "b": "INT"}, options={"ledger.formats": "delta"})
    mine, theirs = lake.create_table("a.t", schema), lake_on(store).table("a.t")
    theirs.alter([RenameColumn(("a",), "x")])
    theirs.alter([RenameColumn(("b",), "a")])
    mine.alter([SetOption(STATS_COLUMNS, "a")])

    assert mine.schema.options[STATS_COLUMNS] == "x"


@pytest.mark.parametrize(("root", "bits"), WHOLE_BITS.items())
def test_a_whole_number_of_a_partition_is_one_of_its_type(root: str, bits: int) -> None:
    kind = parse_type(root)
    most = 2 ** (bits - 1)
    assert [partition_value(str(each), kind) for each in (-most, most - 1)] == [-most, most - 1]
    for each in (-most - 1, most):
        with pytest.raises(ValueError, match=str(each)):
            partition_value(str(each), kind)


def named(name: str, physical: str, **said: Any) -> dict[str, Any]:
    return member(name, "long", **{"delta.columnMapping.physicalName": physical, **said})


@pytest.mark.parametrize(
    ("members", "mode"),
    [
        ((member("id", "long"), member("p", "long"), member("id", "long")), "none"),
        ((named("a", "x"), named("b", "x")), "name"),
        ((named("a", "x"), named("a", "y")), "name"),
        (
            tuple(named("a", str(each), **{"delta.columnMapping.id": each}) for each in (1, 2)),
            "id",
        ),
    ],
)
def test_columns_of_one_name_are_rejected(members: tuple[dict[str, Any], ...], mode: str) -> None:
    with pytest.raises(InvalidInputError, match="give each its own name"):
        columns_of(struct(*members), {"delta.columnMapping.mode": mode}, {}, 0)
