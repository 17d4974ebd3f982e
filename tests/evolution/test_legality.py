"""What a declared format cannot express is refused when it is decided, and only then."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from attrs import evolve
from hypothesis import given, settings, strategies
from msgspec.structs import replace

from ledger import (
    AddColumn,
    DataField,
    DropColumn,
    FileChange,
    InvalidInputError,
    Ledger,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UpdateColumnNullability,
    UpdateColumnType,
)
from ledger.events import SchemaChange, SpecChange, TableEvent
from ledger.events.commit import Commit, Transaction
from ledger.events.schema_changes import RemoveOption
from ledger.events.schema_events import ColumnTypeUpdated
from ledger.events.spec_changes import (
    AddPartitionField,
    RemovePartitionField,
    ReplaceSortOrder,
    SortColumn,
    UpdatePartitionSpec,
)
from ledger.evolution.legality import creation_problems
from ledger.evolution.rules import Rules
from ledger.evolution.specs import identity_spec
from ledger.evolution.table_builder import TableBuilder
from ledger.evolution.table_intent import TableIntent
from ledger.evolution.type_places import type_places
from ledger.model.errors import CommitConflictError, FormatError
from ledger.model.iceberg_types import iceberg_type
from ledger.model.partition import SortOrder
from ledger.model.type_json import type_to_wire
from ledger.model.types import (
    STRING,
    ArrayType,
    DataType,
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
from ledger.table_past import TablePast
from tests.histories import random_change, start_schema
from tests.lakes import data_file, lake_on, memory

BOTH = "paimon,iceberg"
MAY_REQUIRE = {"alter-column-null-to-not-null.disabled": "false"}
Change = SchemaChange | SpecChange


def lake() -> Ledger:
    made = lake_on(memory())
    made.create_database("shop")
    return made


def table_of(
    columns: dict[str, str | DataType],
    formats: str = BOTH,
    partition_keys: Sequence[str] = (),
    **options: str,
) -> Table:
    told = {"ledger.formats": formats, **MAY_REQUIRE}
    told |= {key.replace("_", "-"): value for key, value in options.items()}
    schema = Schema.of(columns, partition_keys=partition_keys, options=told)
    return lake().create_table("shop.t", schema)


def unkeyed_schema() -> Schema:
    """Nested columns, and neither keys nor options that would keep columns in place."""
    return evolve(start_schema(), primary_keys=(), partition_keys=(), options={})


def row(*members: tuple[str, DataType]) -> RowType:
    return RowType([DataField(0, name, each) for name, each in members])


def unnamed(name: str, *, schema_id: int = 0) -> FileChange:
    """A file without field ids."""
    return replace(data_file(name), partition=(), schema_id=schema_id)


def refused(table: Table, changes: Sequence[Change]) -> FormatError:
    version = table.state.version
    with pytest.raises(FormatError) as caught:
        table.alter(changes)
    assert table.state.version == version
    assert caught.value.rule in caught.value.message
    assert caught.value.alternative in caught.value.message
    return caught.value


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
def test_a_type_that_would_read_old_values_otherwise_is_refused_under_iceberg_alone(
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


LACKING: list[tuple[DataType, str]] = [
    (MultisetType(IntType()), "MULTISET"),
    (VectorType(IntType(), 3), "VECTOR"),
    (TimeType(9), "microseconds"),
    (TimestampType(9), "format version 3"),
    (VariantType(), "format version 3"),
    (ArrayType(GeometryType()), "format version 3"),
]


@pytest.mark.parametrize(("data_type", "said"), LACKING, ids=[each[1] for each in LACKING])
def test_types_that_iceberg_lacks_are_refused_at_creation_and_later(
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
def test_types_that_paimon_lacks_are_refused_under_paimon_alone(data_type: DataType) -> None:
    columns: dict[str, str | DataType] = {"id": "INT", "v": data_type}
    with pytest.raises(FormatError) as caught:
        table_of(columns, format_version="3")
    assert caught.value.format == "paimon"
    made = table_of(columns, formats="iceberg", format_version="3")
    assert made.state.schema.names == ("id", "v")


def test_a_column_becomes_required_only_while_no_row_can_lack_it() -> None:
    change = UpdateColumnNullability(("v",), new_nullability=False)
    table = table_of({"id": "INT", "v": "INT"})
    table.append([unnamed("f")])
    error = refused(table, [change])
    assert (error.format, "NOT NULL" in error.rule) == ("iceberg", True)
    assert "allow incompatible" in error.alternative

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


def test_a_date_widens_only_where_no_partition_field_would_change() -> None:
    change = UpdateColumnType(("d",), "TIMESTAMP(6)", keep_nullability=True)
    for transform, is_fine in (("day", True), ("bucket[4]", False)):
        table = table_of({"id": "INT", "d": "DATE"}, format_version="3")
        table.alter([UpdatePartitionSpec((AddPartitionField(("d",), transform),))])
        if is_fine:
            assert table.alter([change]).version == 2
        else:
            assert "partition field" in refused(table, [change]).rule

    assert "only ever widens" in refused(table_of({"id": "INT", "d": "DATE"}), [change]).rule


def test_under_paimon_every_default_spec_keeps_the_partition_keys() -> None:
    columns: dict[str, str | DataType] = {"id": "INT", "day": "DATE"}
    change = UpdatePartitionSpec((RemovePartitionField(name="day"),))
    error = refused(table_of(columns, partition_keys=["day"]), [change])
    assert (error.format, "identity(day)" in error.rule) == ("paimon", True)

    more = UpdatePartitionSpec((AddPartitionField(("id",), "bucket[4]"),))
    assert table_of(columns, partition_keys=["day"]).alter([more]).version == 1
    iceberg = table_of(columns, formats="iceberg", partition_keys=["day"])
    assert iceberg.alter([change]).version == 1


def test_format_versions_only_go_up() -> None:
    table = table_of({"id": "INT"}, format_version="3")
    error = refused(table, [SetOption("format-version", "2")])
    assert (error.format, "only go up" in error.rule) == ("iceberg", True)
    assert "only go up" in refused(table, [RemoveOption("format-version")]).rule
    assert table_of({"id": "INT"}).alter([SetOption("format-version", "3")]).version == 1

    paimon = table_of({"id": "INT"}, formats="paimon", format_version="3")
    assert paimon.alter([SetOption("format-version", "2")]).version == 1


def test_a_primary_key_that_cannot_identify_a_row_is_refused_under_iceberg() -> None:
    schema = Schema.of({"k": "DOUBLE NOT NULL"}, primary_keys=["k"], options={"bucket": "1"})

    def problems(formats: str) -> list[FormatError]:
        rules = Rules.of({"ledger.formats": formats})
        return list(creation_problems(schema, identity_spec(schema), SortOrder(), rules))

    assert [each.format for each in problems(BOTH)] == ["iceberg"]
    assert problems("paimon") == []


def test_a_default_for_older_files_needs_version_three_and_is_nothing_to_paimon() -> None:
    made = Schema.of({"id": "INT"})
    schema = evolve(made, fields=[evolve(each, initial_default="1") for each in made.fields])

    def formats(version: str) -> list[str]:
        rules = Rules.of({"format-version": version})
        return [
            each.format
            for each in creation_problems(schema, identity_spec(schema), SortOrder(), rules)
        ]

    assert formats("2") == ["paimon", "iceberg"]
    assert formats("3") == ["paimon"]


# Names of files without field ids


REUSED: list[Change] = [RenameColumn(("v",), "old"), AddColumn(("v",), "INT")]
"""What binds the name `v` to another column."""


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
    table.delete_files(["f"])
    table.append([replace(unnamed("g"), field_ids=True)])
    table.expire_snapshots(before=2)
    refused(table, REUSED)

    table.delete_tag("kept")
    assert table.alter(REUSED).state.schema.names == ("id", "old", "v")


def test_files_with_ids_bind_no_names() -> None:
    table = table_of({"id": "INT", "v": "INT"})
    table.append([replace(unnamed("f"), field_ids=True)])
    assert table.alter(REUSED).version == 2


def test_files_whose_names_mean_other_columns_by_now_are_refused() -> None:
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


# Declaring a format


def test_declaring_iceberg_checks_the_types_that_readable_snapshots_have() -> None:
    table = table_of({"id": "INT", "v": "INT"}, formats="paimon")
    table.append([replace(unnamed("f"), field_ids=True)])
    table.alter([UpdateColumnType(("v",), "STRING", keep_nullability=True)])
    declare = [SetOption("ledger.formats", BOTH)]
    assert "column v from INT to STRING" in refused(table, declare).message

    table.append([replace(unnamed("g", schema_id=1), field_ids=True)])
    table.delete_files(["f"])
    refused(table, declare)
    table.expire_snapshots(before=3)
    assert table.alter(declare).version == 6


def test_declaring_iceberg_checks_the_current_types() -> None:
    table = table_of({"id": "INT", "v": MultisetType(IntType())}, formats="paimon")
    declare = SetOption("ledger.formats", BOTH)
    assert "MULTISET" in refused(table, [declare]).rule
    assert table.alter([DropColumn(("v",)), declare]).version == 1


def test_declaring_iceberg_checks_the_names_of_files_without_ids() -> None:
    table = table_of({"id": "INT", "v": "INT"}, formats="paimon")
    table.append([unnamed("f")])
    table.alter(REUSED)
    error = refused(table, [SetOption("ledger.formats", BOTH)])
    assert "files without field ids" in error.rule


def test_declaring_paimon_checks_types_and_specs() -> None:
    declare = SetOption("ledger.formats", BOTH)
    table = table_of({"id": "INT", "v": UuidType()}, formats="iceberg")
    assert refused(table, [declare]).format == "paimon"

    table = table_of({"id": "INT", "day": "DATE"}, formats="iceberg", partition_keys=["day"])
    table.alter([UpdatePartitionSpec((RemovePartitionField(name="day"),))])
    assert "identity(day)" in refused(table, [declare]).rule


def test_leaving_a_format_is_always_possible() -> None:
    table = table_of({"id": "INT", "v": "INT"})
    leave = SetOption("ledger.formats", "paimon")
    change = UpdateColumnType(("v",), "STRING", keep_nullability=True)
    assert table.alter([leave, change]).state.schema.field("v").type == STRING


def test_what_was_so_before_is_not_held_against_a_change() -> None:
    table = table_of({"id": "INT", "v": VectorType(IntType(), 2)}, formats="paimon")
    options = {"ledger.formats": BOTH}
    # As a log from before the rules has it: the option says both, and nobody checked.
    state = evolve(table.state, schema=table.state.schema.with_options(options))
    intent = TableIntent(
        [AddColumn(("w",), "INT")], state, lambda _: (), TablePast(table.log, table.live)
    )
    events = intent.decide(state, ())
    assert isinstance(events, tuple)
    assert len(events) == 1


# Laws


def test_replaying_asks_no_rules() -> None:
    table = table_of({"id": "INT", "v": "INT"})
    table.append([unnamed("f")])
    builder = TableBuilder(table.state)
    illegal = ColumnTypeUpdated(
        field_names=("v",), new_data_type="STRING", keep_nullability=True, field_id=1
    )
    transaction: Transaction[TableEvent] = Transaction(id="x", events=(illegal,))
    state = table.state
    builder.commit(
        Commit(
            format=1,
            version=state.version + 1,
            time_millis=state.time_millis + 1,
            transactions=(transaction,),
        )
    )
    assert builder.freeze().schema.field("v").type == STRING


def test_what_iceberg_reads_never_changes() -> None:
    """Whatever is accepted: types only widen, a name of files without ids has one column."""

    @settings(max_examples=60, deadline=None)
    @given(seed=strategies.integers(0, 2**32))
    def law(seed: int) -> None:
        rng = random.Random(seed)
        table = lake().create_table("shop.t", unkeyed_schema())
        for number in range(10):
            with suppress(InvalidInputError):
                if rng.random() < 0.2:
                    file = unnamed(f"f{number}", schema_id=rng.randint(0, table.state.schema.id))
                    table.append([replace(file, field_ids=rng.random() < 0.3)])
                else:
                    table.alter([random_change(rng, table.state.schema) for _ in range(2)])
        schemas = list(table.schemas())[::-1]
        assert_only_widened(schemas)
        used = set(table.state.named_schema_ids)
        assert_one_column_a_name([*(each for each in schemas if each.id in used), schemas[-1]])

    law()


def assert_only_widened(schemas: Sequence[Schema]) -> None:
    widest: dict[tuple[int, str], str] = {}
    for schema in schemas:
        for place in type_places(schema.fields):
            if isinstance(place.type, ArrayType | MapType | RowType):
                continue
            key = (place.field.id, "") if place.field else (int(place.level[0] or 0), place.name)
            now = iceberg_type(place.type, format_version=2)
            before = widest.setdefault(key, now)
            assert (before, now) in _ICEBERG_WIDENS or before == now, (before, now)
            widest[key] = now


_ICEBERG_WIDENS = {("int", "long"), ("float", "double")}


def assert_one_column_a_name(schemas: Sequence[Schema]) -> None:
    bound: dict[object, int] = {}
    for schema in schemas:
        for place in type_places(schema.fields):
            if place.field is not None:
                key = (place.level, place.path[-1])
                assert bound.setdefault(key, place.field.id) == place.field.id
