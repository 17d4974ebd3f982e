"""Paimon's readers take struct members by position: only files that they read rightly come in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    FileChange,
    FormatError,
    Ledger,
    Move,
    RenameColumn,
    Schema,
    SchemaChange,
    SetOption,
    Table,
)
from ledger.model import read_type
from tests.projections.delta.importing.test_following import PROTOCOL, add, info, metadata, write
from tests.pypaimon_or_skip import CatalogFactory
from tests.readers.lakehouse import bare, folder_of
from tests.thorough import examples

STRUCT = "ROW<p INT, q INT>"
HOLDERS = {
    "c": STRUCT,
    "c.element": f"ARRAY<{STRUCT}>",
    "c.value": f"MAP<STRING NOT NULL, {STRUCT}>",
    "c.key": f"MAP<{STRUCT} NOT NULL, INT>",
    "c.s": f"ROW<s {STRUCT}>",
    "c.element.element": f"ARRAY<ARRAY<{STRUCT}>>",
    "c.s.element": f"ROW<o INT, s ARRAY<{STRUCT}>>",
    "c.value.s.value": f"MAP<STRING NOT NULL, ROW<s MAP<INT NOT NULL, {STRUCT}>>>",
}
"""Types of column c, by the path of the struct in them."""
ORDERS = {"swapped": ("q", "p"), "without the last": ("p",), "without the first": ("q",)}


@pytest.fixture
def lake(tmp_path: Path) -> Ledger:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    return lake


def table_of(lake: Ledger, column: str, formats: str = "paimon,iceberg") -> Table:
    columns = {"id": read_type("INT"), "c": read_type(column)}
    return lake.create_table("shop.t", Schema.of(columns, options={"ledger.formats": formats}))


def with_members(data_type: pa.DataType, names: tuple[str, ...]) -> pa.DataType:
    """Return a type in which each struct with the first of these names has them alone."""
    if pa.types.is_struct(data_type):
        members = {each.name: each for each in data_type}
        wanted = names if names[0] in members else tuple(members)
        return pa.struct(
            [members[each].with_type(with_members(members[each].type, names)) for each in wanted]
        )
    if pa.types.is_list(data_type):
        inner = data_type.value_field
        return pa.list_(inner.with_type(with_members(inner.type, names)))
    if pa.types.is_map(data_type):
        key, item = data_type.key_field, data_type.item_field
        return pa.map_(
            key.with_type(with_members(key.type, names)),
            item.with_type(with_members(item.type, names)),
        )
    return data_type


def value_of(data_type: pa.DataType) -> Any:
    """Return a value of a type whose integers differ by the name of their member."""
    if pa.types.is_struct(data_type):
        return {
            each.name: sum(each.name.encode())
            if pa.types.is_integer(each.type)
            else value_of(each.type)
            for each in data_type
        }
    if pa.types.is_list(data_type):
        return [value_of(data_type.value_type)]
    if pa.types.is_map(data_type):
        return [(value_of(data_type.key_type), value_of(data_type.item_type))]
    return "k" if pa.types.is_string(data_type) else 7


def written(table: Table, data_type: pa.DataType, name: str = "f.parquet") -> str:
    """Write a file whose column c has a type; return its path."""
    column = pa.array([value_of(data_type)], data_type)
    field = table.at().schema.to_arrow().field("c")
    has_ids = data_type != bare(data_type)
    identity = table.at().schema.to_arrow().field("id")
    fields = [identity, field.with_type(data_type)]
    schema = pa.schema(fields if has_ids else [each.remove_metadata() for each in fields])
    path = folder_of(table) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table([pa.array([1], pa.int32()), column], schema=schema), path)
    return str(path)


def arrow_type(table: Table, names: tuple[str, ...], *, has_ids: bool = False) -> pa.DataType:
    own = with_members(table.at().schema.to_arrow().field("c").type, names)
    return own if has_ids else bare(own)


def pypaimon_rows(lake: Ledger, table: Table) -> list[Any]:
    """Return column c as pypaimon reads it."""
    table.project("paimon")
    catalog = CatalogFactory.create({"warehouse": lake.url})
    builder = catalog.get_table(str(table.identifier)).new_read_builder()
    read = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return list(read["c"].to_pylist())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("place", "has_ids"), [*((each, False) for each in HOLDERS), ("c", True), ("c.s.element", True)]
)
def test_a_file_whose_members_are_not_the_schemas_is_rejected(
    lake: Ledger, place: str, order: str, *, has_ids: bool
) -> None:
    table = table_of(lake, HOLDERS[place])
    table.add_files([written(table, arrow_type(table, ("p", "q")), "1.parquet")])
    path = written(table, arrow_type(table, ORDERS[order], has_ids=has_ids))
    found = ", ".join(ORDERS[order])
    with pytest.raises(FormatError) as raised:
        table.add_files([path])
    assert raised.value.format == "paimon"
    assert f"f.parquet: column {place}: " in raised.value.message
    assert f"(p, q), and the file has ({found})" in raised.value.message
    assert "write the file again" in raised.value.alternative
    with pytest.raises(FormatError):
        table.data_files([path])
    table.create_branch("audit")
    with pytest.raises(FormatError):
        table.branch("audit").add_files([path])
    assert table.at().totals.record_count == 1


@pytest.mark.parametrize("place", HOLDERS)
def test_a_file_with_the_schemas_members_is_read_rightly(lake: Ledger, place: str) -> None:
    table = table_of(lake, HOLDERS[place])
    for has_ids in (True, False):
        own = arrow_type(table, ("p", "q"), has_ids=has_ids)
        table.add_files([written(table, own, f"{has_ids}.parquet")])
    assert pypaimon_rows(lake, table) == [value_of(own)] * 2


@pytest.mark.parametrize("formats", ["iceberg", "delta", "iceberg,delta"])
def test_tables_of_other_formats_take_members_in_any_order(lake: Ledger, formats: str) -> None:
    table = table_of(lake, STRUCT, formats)
    for number, names in enumerate(ORDERS.values()):
        table.add_files([written(table, arrow_type(table, names), f"{number}.parquet")])
    assert table.at().totals.record_count == len(ORDERS)


def below(place: str, *names: str) -> tuple[str, ...]:
    return (*place.split("."), *names)


CHANGES: dict[str, tuple[Callable[[str], SchemaChange], dict[str, str | None]]] = {
    "a member comes": (
        lambda at: AddColumn(below(at, "r"), "INT"),
        {"p": "p", "q": "q", "r": None},
    ),
    "a member comes first": (
        lambda at: AddColumn(below(at, "r"), "INT", move=Move("r", "FIRST")),
        {"r": None, "p": "p", "q": "q"},
    ),
    "a member goes": (lambda at: DropColumn(below(at, "p")), {"q": "q"}),
    "a member is renamed": (lambda at: RenameColumn(below(at, "p"), "z"), {"z": "p", "q": "q"}),
}
"""Changes of a struct, and the earlier name of each member after them."""


def moved(value: Any, names: dict[str, str | None]) -> Any:
    """Return an earlier value with the members of a later schema."""
    if isinstance(value, dict) and "q" in value:
        return {new: value.get(old) for new, old in names.items()}
    if isinstance(value, dict):
        return {key: moved(each, names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(moved(each, names) for each in value)
    return value


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("place", [each for each in HOLDERS if not each.endswith("key")])
def test_files_from_before_a_change_of_a_struct_are_read_by_the_schema_before(
    lake: Ledger, place: str, what: str
) -> None:
    table = table_of(lake, HOLDERS[place])
    older, before = arrow_type(table, ("p", "q")), table.state.schema.id
    table.add_files([written(table, older, "1.parquet")])
    change, names = CHANGES[what]
    warnings = table.plan([change(place)]).warnings
    (said,) = [each for each in warnings if "Paimon's readers" in each]
    assert said.startswith(f"column {place}: Paimon's readers take the members of a struct by")
    assert f"all of ({', '.join(names)}), in that order; one with (p, q)" in said
    table.alter([change(place)])
    newer = bare(table.at().schema.to_arrow().field("c").type)
    table.add_files([written(table, newer, "2.parquet")])
    # A writer that does not know of the change yet.
    table.add_files([written(table, older, "3.parquet")])
    assert [each.schema_id for each in table.at().files] == [before, before + 1, before]
    old = moved(value_of(older), names)
    assert pypaimon_rows(lake, table) == [old, value_of(newer), old]


def test_a_file_is_not_read_by_a_schema_in_which_its_names_mean_other_columns(
    lake: Ledger,
) -> None:
    table = table_of(lake, STRUCT, "paimon")
    older = arrow_type(table, ("p", "q"))
    table.alter([DropColumn(("c", "p"))])
    table.alter([AddColumn(("c", "p"), "INT")])
    path = written(table, older)
    with pytest.raises(FormatError, match=r"\(q, p\), and the file has \(p, q\)"):
        table.add_files([path])


@pytest.mark.parametrize("order", [*ORDERS, "ordered"])
@pytest.mark.parametrize(
    ("place", "formats"), [*((each, "iceberg") for each in HOLDERS), ("c", "delta")]
)
def test_paimon_is_declared_only_where_all_readable_files_have_the_members_in_order(
    lake: Ledger, place: str, formats: str, order: str
) -> None:
    table = table_of(lake, HOLDERS[place], formats)
    declare = SetOption("ledger.formats", f"paimon,{formats}")
    kept = arrow_type(table, ("p", "q"))
    table.add_files([written(table, kept, "1.parquet")])
    path = written(table, arrow_type(table, ORDERS.get(order, ("p", "q"))), "2.parquet")
    table.add_files([path])
    if order == "ordered":
        table.alter([declare])
        assert pypaimon_rows(lake, table) == [value_of(kept)] * 2
        return
    planned = table.plan([declare])
    assert [each.message for each in planned.refusals if f"column {place}: readers" in each.message]
    with pytest.raises(FormatError, match=rf"2\.parquet: column {place}: readers take"):
        table.alter([declare])
    table.delete_files([path])
    with pytest.raises(FormatError, match=r"2\.parquet"):
        table.alter([declare])
    table.expire_snapshots(before=table.state.last_snapshot_id)
    table.alter([declare])
    assert pypaimon_rows(lake, table) == [value_of(kept)]


def test_a_plan_reads_no_data_files_for_formats_that_are_not_declared(lake: Ledger) -> None:
    table = table_of(lake, STRUCT, "iceberg")
    path = written(table, arrow_type(table, ("p", "q")))
    table.add_files([path])
    Path(path).write_bytes(b"no Parquet file any more")
    assert table.plan([AddColumn(("d",), "INT")]).refusals == ()
    table.alter([AddColumn(("d",), "INT")])


STRUCT_JSON = {
    "type": "struct",
    "fields": [
        {"name": name, "type": "integer", "nullable": True, "metadata": {}} for name in ("p", "q")
    ],
}


@pytest.mark.parametrize("order", [*ORDERS, "ordered"])
def test_an_imported_delta_table_declares_paimon_only_with_members_in_order(
    tmp_path: Path, lake: Ledger, order: str
) -> None:
    folder = tmp_path / "source"
    own = pa.struct([(each, pa.int32()) for each in ORDERS.get(order, ("p", "q"))])
    rows = pa.table({"id": pa.array([1], pa.int32()), "c": pa.array([value_of(own)], own)})
    folder.mkdir()
    parquet.write_table(rows, folder / "f.parquet")
    columns = [
        {"name": name, "type": data_type, "nullable": True, "metadata": {}}
        for name, data_type in (("id", "integer"), ("c", STRUCT_JSON))
    ]
    size = (folder / "f.parquet").stat().st_size
    file = add("f.parquet", size=size, stats=json.dumps({"numRecords": 1}))
    write(folder, 0, info(1), PROTOCOL, metadata(*columns))
    write(folder, 1, info(2), file)
    lake.import_table("shop.t", str(folder), format_name="delta")
    lake.promote("shop.t")
    table = lake.table("shop.t")
    declare = SetOption("ledger.formats", "paimon,delta")
    if order == "ordered":
        table.alter([declare])
        assert pypaimon_rows(lake, table) == [value_of(own)]
        return
    with pytest.raises(FormatError, match=r"f\.parquet: column c: readers take the members"):
        table.alter([declare])


NAMES = st.lists(st.sampled_from("pqrs"), unique=True, min_size=1, max_size=3)


def kinds(depth: int) -> st.SearchStrategy[str]:
    if not depth:
        return st.just("INT")
    inner = kinds(depth - 1)
    struct = st.builds(
        lambda names, types: f"ROW<{', '.join(map(' '.join, zip(names, types, strict=False)))}>",
        NAMES,
        st.lists(inner, min_size=3, max_size=3),
    )
    return st.one_of(
        inner,
        struct,
        inner.map(lambda each: f"ARRAY<{each}>"),
        inner.map(lambda each: f"MAP<STRING NOT NULL, {each}>"),
    )


def shuffled(draw: Callable[[st.SearchStrategy[Any]], Any], data_type: pa.DataType) -> pa.DataType:
    """Return a type whose structs have some of the members, in some order."""
    if pa.types.is_struct(data_type):
        members = [
            pa.field(each.name, shuffled(draw, each.type))
            for each in draw(st.permutations(list(data_type)))
        ]
        return pa.struct(members[: draw(st.integers(1, len(members)))])
    if pa.types.is_list(data_type):
        return pa.list_(shuffled(draw, data_type.value_type))
    if pa.types.is_map(data_type):
        return pa.map_(data_type.key_type, shuffled(draw, data_type.item_type))
    return data_type


@given(kinds(3), st.data())
@settings(max_examples=examples(60))
def test_every_file_that_is_accepted_is_read_rightly(
    tmp_path_factory: pytest.TempPathFactory, column: str, data: st.DataObject
) -> None:
    lake = ledger.open(str(tmp_path_factory.mktemp("lake")))
    lake.create_database("shop")
    table = table_of(lake, column, "paimon")
    own = bare(table.at().schema.to_arrow().field("c").type)
    in_file = data.draw(st.one_of(st.just(own), st.builds(lambda: shuffled(data.draw, own))))
    path = written(table, in_file)
    if in_file != own:
        with pytest.raises(FormatError, match="readers take the members"):
            table.add_files([path])
        return
    table.add_files([path])
    assert pypaimon_rows(lake, table) == [value_of(in_file)]


def claimed(table: Table, path: str) -> None:
    """Commit a file as an engine does: the ledger does not read it."""
    file = Path(path)
    change = FileChange(path=file.name, record_count=1, file_size_in_bytes=file.stat().st_size)
    table.append([change])


@pytest.mark.parametrize("place", [each for each in HOLDERS if not each.endswith("key")])
def test_pypaimon_swaps_members_and_fails_on_lacking_ones(lake: Ledger, place: str) -> None:
    table = table_of(lake, HOLDERS[place])
    claimed(table, written(table, arrow_type(table, ("q", "p"))))
    with pytest.raises(pa.ArrowTypeError, match="in the wrong order"):
        pypaimon_rows(lake, table)
    table.alter([AddColumn(("d",), "INT")])
    right = value_of(arrow_type(table, ("p", "q")))
    assert pypaimon_rows(lake, table) == [moved(right, {"p": "q", "q": "p"})]
    claimed(table, written(table, arrow_type(table, ("p",)), "2.parquet"))
    with pytest.raises(IndexError):
        pypaimon_rows(lake, table)
