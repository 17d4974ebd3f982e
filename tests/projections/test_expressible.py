"""A change that a declared format cannot express is rejected when it is validated."""

from __future__ import annotations

import pytest
from attrs import evolve

from ledger import (
    AddColumn,
    AddPartitionField,
    DataField,
    DropColumn,
    FileChange,
    FormatError,
    RemoveOption,
    RemovePartitionField,
    ReplaceSortOrder,
    Schema,
    SetOption,
    SortColumn,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdatePartitionSpec,
)
from ledger.decide import Batch
from ledger.decide.format_rules import TableCreation, creation_problems, problems
from ledger.formats import INSTALLED
from ledger.model import SortOrder, type_to_wire
from ledger.model.types import (
    STRING,
    ArrayType,
    DataType,
    DateType,
    GeometryType,
    IntType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
    UnknownType,
    UuidType,
    VariantType,
    VectorType,
)
from ledger.state import LayoutTrail, Rules, identity_spec
from ledger.table_handle import handle_of
from tests.evolution.declared import (
    BOTH,
    Change,
    refused,
    row,
    table_of,
    unnamed,
)

RETYPED: list[tuple[str, DataType | str, str]] = [
    ("int to text", "INT", "STRING"),
    ("int to double", "INT", "DOUBLE"),
    ("narrowed integer", "BIGINT", "INT"),
    ("narrowed within Iceberg's int", "INT", "TINYINT"),
    ("shorter text", "VARCHAR(10)", "VARCHAR(4)"),
    ("fewer digits of a second", "TIMESTAMP(6)", "TIMESTAMP(3)"),
    ("another scale", "DECIMAL(10, 2)", "DECIMAL(12, 3)"),
    ("a zone", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
]


@pytest.mark.parametrize(("what", "before", "after"), RETYPED, ids=[each[0] for each in RETYPED])
def test_a_type_that_would_read_old_values_otherwise_is_rejected_under_iceberg_alone(
    what: str, before: str, after: str
) -> None:
    change = UpdateColumnType(("v",), after, keep_nullability=True)
    error = refused(table_of({"id": "INT", "v": before}), [change])
    assert (error.format, "column v from" in error.message) == ("iceberg", True), what
    assert "add a column of the new type" in error.alternative

    table = table_of({"id": "INT", "v": before}, formats="paimon")
    assert table.alter([change]).version == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("INT", "BIGINT"),
        ("TINYINT", "INT"),
        ("FLOAT", "DOUBLE"),
        ("DECIMAL(10, 2)", "DECIMAL(20, 2)"),
        ("VARCHAR(4)", "VARCHAR(10)"),
        ("TIMESTAMP(3)", "TIMESTAMP(6)"),
    ],
)
def test_widening_is_fine(before: str, after: str) -> None:
    table = table_of({"id": "INT", "v": before})
    assert table.alter([UpdateColumnType(("v",), after, keep_nullability=True)]).version == 1


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (("r", "x"), "STRING"),
        (("list", "element"), "STRING"),
        (("list", "element"), "TINYINT"),
        (("map", "value", "x"), "DOUBLE"),
    ],
)
def test_types_are_compared_at_every_depth(path: tuple[str, ...], wanted: str) -> None:
    columns: dict[str, str | DataType] = {
        "r": row(("x", IntType())),
        "list": ArrayType(IntType()),
        "map": MapType(STRING, row(("x", IntType()))),
    }
    change = UpdateColumnType(path, wanted, keep_nullability=True)
    assert ".".join(path) in refused(table_of(columns), [change]).message
    assert table_of(columns, formats="paimon").alter([change]).version == 1


def test_full_names_are_unique_inside_a_column_too() -> None:
    columns: dict[str, str | DataType] = {"a": row(("b", row(("c", IntType()))))}
    error = refused(table_of(columns), [AddColumn(("a", "b.c"), "INT")])
    assert (error.format, "full names" in error.rule) == ("iceberg", True)


LACKING: list[tuple[DataType, str]] = [
    (MultisetType(IntType()), "MULTISET"),
    (VectorType(IntType(), 3), "VECTOR"),
    (TimeType(9), "microseconds"),
    (TimestampType(9), "format version 3"),
    (VariantType(), "format version 3"),
    (ArrayType(GeometryType()), "format version 3"),
]


@pytest.mark.parametrize(("data_type", "said"), LACKING, ids=[each[1] for each in LACKING])
def test_types_that_iceberg_lacks_are_rejected_at_creation_and_later(
    data_type: DataType, said: str
) -> None:
    columns: dict[str, str | DataType] = {"id": "INT", "v": data_type}
    with pytest.raises(FormatError) as caught:
        table_of(columns)
    assert (caught.value.format, said in caught.value.rule) == ("iceberg", True)
    assert table_of(columns, formats="paimon").state.schema.names == ("id", "v")
    if said == "format version 3":
        assert "format-version=3" in caught.value.alternative
        assert table_of(columns, format_version="3").state.schema.names == ("id", "v")

    change = AddColumn(("v",), type_to_wire(data_type))
    assert said in refused(table_of({"id": "INT"}), [change]).rule
    assert table_of({"id": "INT"}, formats="paimon").alter([change]).version == 1


@pytest.mark.parametrize("data_type", [UuidType(), UnknownType(), ArrayType(UuidType())])
def test_types_that_paimon_lacks_are_rejected_under_paimon_alone(data_type: DataType) -> None:
    columns: dict[str, str | DataType] = {"id": "INT", "v": data_type}
    with pytest.raises(FormatError) as caught:
        table_of(columns, format_version="3")
    assert caught.value.format == "paimon"
    made = table_of(columns, formats="iceberg", format_version="3")
    assert made.state.schema.names == ("id", "v")


TIMES: list[DataType] = [TimeType(), TimeType(3), ArrayType(TimeType(6)), row(("x", TimeType(6)))]


@pytest.mark.parametrize("data_type", TIMES, ids=str)
def test_a_time_is_rejected_where_both_formats_are_to_read_it(data_type: DataType) -> None:
    columns: dict[str, str | DataType] = {"id": "INT", "v": data_type}
    for formats in ("paimon", "iceberg"):
        assert table_of(columns, formats=formats).state.schema.names == ("id", "v")
        dropped = table_of(columns, formats=formats)
        dropped.append([unnamed("f")])
        for changes in ([SetOption("ledger.formats", BOTH)], [DropColumn(("v",))]):
            if isinstance(changes[0], DropColumn):
                dropped.alter(changes)
            error = refused(dropped, [SetOption("ledger.formats", BOTH)])
            assert "milliseconds in 4 bytes" in error.rule, formats
    with pytest.raises(FormatError, match="TIME"):
        table_of(columns)
    error = refused(table_of({"id": "INT"}), [AddColumn(("v",), type_to_wire(data_type))])
    assert (error.format, "take INT or TIMESTAMP" in error.alternative) == ("paimon", True)


def test_a_time_that_both_formats_had_before_the_rule_stays_as_it_is() -> None:
    table = table_of({"id": "INT", "v": TimeType(6), "w": "INT"}, formats="iceberg")
    before = table.state
    options = {**before.schema.options, "ledger.formats": BOTH}
    stood = evolve(before, schema=evolve(before.schema, options=options))

    def found(columns: tuple[DataField, ...]) -> list[str]:
        changed = evolve(stood.schema, fields=columns)
        layout = LayoutTrail(stood.specs, stood.sort_orders)
        batch = Batch(stood, changed, layout, Rules.of(options), handle_of(table).past)
        return [each.message for each in problems(batch, INSTALLED)]

    first, time, last = stood.schema.fields
    assert found((first, evolve(time, description="when"), last)) == []
    assert "TIME" in found((first, time, evolve(last, type=TimeType(6))))[-1]


STRUCT = row(("c", IntType()), ("d", IntType()))


@pytest.mark.parametrize("formats", ["paimon", "iceberg", BOTH])
@pytest.mark.parametrize("layout", ["spec", "order"])
def test_the_column_of_a_layout_in_force_stays(formats: str, layout: str) -> None:
    table = table_of({"a": "TIMESTAMP(6)", "b": STRUCT}, formats=formats)
    if layout == "spec":
        asked = (AddPartitionField(("a",), "day"), AddPartitionField(("b", "c"), "bucket[4]"))
        table.alter([UpdatePartitionSpec(asked)])
        undone: Change = UpdatePartitionSpec((RemovePartitionField("a_day"),))
    else:
        table.alter([ReplaceSortOrder((SortColumn(("a",)), SortColumn(("b", "c"))))])
        undone = ReplaceSortOrder((SortColumn(("b", "c")),))
    for path in (("a",), ("b",), ("b", "c")):
        error = refused(table, [DropColumn(path)])
        assert error.format == ("paimon" if formats == "paimon" else "iceberg")
        assert "first" in error.alternative
    if (formats, layout) == ("paimon", "spec"):
        assert "has no day" in refused(table, [UpdateColumnType(("a",), "STRING")]).rule

    table.alter([undone, DropColumn(("a",))])
    assert table.state.schema.names == ("b",)


def test_a_column_becomes_required_only_while_no_row_can_lack_it() -> None:
    change = UpdateColumnNullability(("v",), new_nullability=False)
    table = table_of({"id": "INT", "v": "INT"})
    table.append([unnamed("f")])
    error = refused(table, [change])
    assert (error.format, "NOT NULL" in error.rule) == ("iceberg", True)
    assert "allow_incompatible_changes()" in error.alternative

    assert table_of({"id": "INT", "v": "INT"}).alter([change]).version == 1
    paimon = table_of({"id": "INT", "v": "INT"}, formats="paimon")
    paimon.append([unnamed("f")])
    assert paimon.alter([change]).version == 2


def test_an_element_becomes_required_only_while_no_row_can_lack_it() -> None:
    table = table_of({"id": "INT", "v": ArrayType(IntType())})
    table.append([unnamed("f")])
    change = UpdateColumnNullability(("v", "element"), new_nullability=False)
    assert "v.element" in refused(table, [change]).message


def test_full_names_are_unique_under_iceberg() -> None:
    columns: dict[str, str | DataType] = {"a": row(("b", IntType()))}
    change = AddColumn(("a.b",), "INT")
    error = refused(table_of(columns), [change])
    assert (error.format, "full names" in error.rule) == ("iceberg", True)
    assert table_of(columns, formats="paimon").alter([change]).version == 1


def test_a_column_of_the_default_spec_or_order_stays() -> None:
    bucket = UpdatePartitionSpec((AddPartitionField(("v",), "bucket[4]"),))
    for layout in (bucket, ReplaceSortOrder((SortColumn(("v",)),))):
        table = table_of({"id": "INT", "v": "INT"})
        table.alter([layout])
        error = refused(table, [DropColumn(("v",))])
        assert (error.format, "cannot be dropped" in error.rule) == ("iceberg", True)

    table = table_of({"id": "INT", "v": "INT"})
    table.alter([bucket])
    table.alter(
        [UpdatePartitionSpec((RemovePartitionField(source=("v",), transform="bucket[4]"),))]
    )
    assert table.alter([DropColumn(("v",))]).version == 3


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize(
    ("columns", "path"),
    [
        ({"id": "INT", "d": "DATE"}, ("d",)),
        ({"id": "INT", "r": RowType([DataField(9, "d", DateType())])}, ("r", "d")),
        ({"id": "INT", "l": ArrayType(DateType())}, ("l", "element")),
        ({"id": "INT", "m": MapType(IntType(), DateType())}, ("m", "value")),
    ],
    ids=["column", "member", "element", "value"],
)
def test_a_date_never_becomes_a_timestamp_since_no_engine_reads_it(
    columns: dict[str, str | DataType], path: tuple[str, ...], version: str
) -> None:
    change = UpdateColumnType(path, "TIMESTAMP(6)", keep_nullability=True)
    formats = "iceberg" if version == "3" else BOTH
    rule = refused(table_of(columns, formats, format_version=version), [change]).rule
    assert ("cannot read older files' dates" if version == "3" else "only ever widens") in rule

    # Under Paimon alone it is a cast; declaring Iceberg later raises the same error.
    paimon = table_of(columns, formats="paimon", format_version=version)
    if len(path) == 1:
        paimon.append(
            [FileChange(path="f.parquet", record_count=1, file_size_in_bytes=1, field_ids=True)]
        )
        paimon.alter([change])
        error = refused(paimon, [SetOption("ledger.formats", "paimon,iceberg")])
        assert error.rule == rule


def test_under_paimon_every_default_spec_keeps_the_partition_keys() -> None:
    columns: dict[str, str | DataType] = {"id": "INT", "day": "DATE"}
    change = UpdatePartitionSpec((RemovePartitionField(name="day"),))
    error = refused(table_of(columns, partition_keys=["day"]), [change])
    assert (error.format, "identity(day)" in error.rule) == ("paimon", True)

    more = UpdatePartitionSpec((AddPartitionField(("id",), "bucket[4]"),))
    assert table_of(columns, partition_keys=["day"]).alter([more]).version == 1
    iceberg = table_of(columns, formats="iceberg", partition_keys=["day"])
    assert iceberg.alter([change]).version == 1


LAYOUTS: dict[str, Change] = {
    "a partition field": UpdatePartitionSpec((AddPartitionField(("day",), "identity"),)),
    "a sort field": ReplaceSortOrder((SortColumn(("day",)),)),
}


@pytest.mark.parametrize("what", LAYOUTS)
@pytest.mark.parametrize("formats", ["paimon", "iceberg", "delta", BOTH, "paimon,delta"])
def test_the_column_of_a_layout_in_force_cannot_be_dropped(formats: str, what: str) -> None:
    table = table_of({"id": "INT", "day": "DATE"}, formats=formats)
    table.alter([LAYOUTS[what]])
    error = refused(table, [DropColumn(("day",))])
    assert error.format in formats.split(",")
    assert "first" in error.alternative
    # In another order, or together with the layout, it goes.
    without: Change = (
        UpdatePartitionSpec((RemovePartitionField(name="day"),))
        if what == "a partition field"
        else ReplaceSortOrder(())
    )
    table.alter([without])
    assert table.alter([DropColumn(("day",))]).state.schema.names == ("id",)


@pytest.mark.parametrize(
    ("file", "rule"),
    [
        ({"path": "x"}, "from its extension"),
        ({"path": "d.avro", "format": "parquet"}, "from its extension"),
        ({"path": "d.parquet", "content": "position-deletes"}, "list data files"),
    ],
)
def test_a_file_that_paimon_cannot_say_is_rejected_when_it_comes(
    file: dict[str, str], rule: str
) -> None:
    for formats in (BOTH, "paimon"):
        table = table_of({"id": "INT"}, formats=formats)
        with pytest.raises(FormatError, match=rule):
            table.append([FileChange(record_count=1, file_size_in_bytes=9, **file)])  # type: ignore[arg-type]  # texts all
        assert table.state.version == 0


def test_format_versions_only_go_up() -> None:
    table = table_of({"id": "INT"}, format_version="3")
    error = refused(table, [SetOption("format-version", "2")])
    assert (error.format, "only go up" in error.rule) == ("iceberg", True)
    assert "only go up" in refused(table, [RemoveOption("format-version")]).rule
    assert table_of({"id": "INT"}).alter([SetOption("format-version", "3")]).version == 1

    paimon = table_of({"id": "INT"}, formats="paimon", format_version="3")
    assert paimon.alter([SetOption("format-version", "2")]).version == 1


def test_a_primary_key_that_cannot_identify_a_row_is_rejected_under_iceberg() -> None:
    schema = Schema.of({"k": "DOUBLE NOT NULL"}, primary_keys=["k"], options={"bucket": "1"})

    def problems(formats: str) -> list[FormatError]:
        rules = Rules.of({"ledger.formats": formats})
        layout = LayoutTrail((identity_spec(schema),), (SortOrder(0),))
        return list(creation_problems(TableCreation(schema, layout, rules), INSTALLED))

    assert [each.format for each in problems(BOTH)] == ["iceberg"]
    assert problems("paimon") == []


def test_a_default_for_older_files_needs_version_three_and_is_nothing_to_paimon() -> None:
    made = Schema.of({"id": "INT"})
    schema = evolve(made, fields=[evolve(each, initial_default="1") for each in made.fields])

    def formats(version: str) -> list[str]:
        rules = Rules.of({"format-version": version})
        layout = LayoutTrail((identity_spec(schema),), (SortOrder(0),))
        return [
            each.format
            for each in creation_problems(TableCreation(schema, layout, rules), INSTALLED)
        ]

    assert formats("2") == ["paimon", "iceberg"]
    assert formats("3") == ["paimon"]


"""Changes that bind the name `v` to another column."""
