"""Declaring a format checks what was there before; replaying never does."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

from attrs import evolve
from hypothesis import given, settings, strategies
from msgspec.structs import replace

from ledger import (
    AddColumn,
    DropColumn,
    InvalidInputError,
    RemovePartitionField,
    Schema,
    SetOption,
    UpdateColumnType,
    UpdatePartitionSpec,
)
from ledger.decide import RecentlyTouched, TableIntent
from ledger.events import ColumnTypeUpdated, TableEvent
from ledger.formats import INSTALLED
from ledger.history.past import TablePast
from ledger.log import Commit, Transaction
from ledger.model.iceberg_types import iceberg_type
from ledger.model.types import (
    STRING,
    ArrayType,
    IntType,
    MapType,
    MultisetType,
    RowType,
    UuidType,
    VectorType,
    type_places,
)
from ledger.state import TableBuilder
from ledger.table_handle import handle_of
from tests.evolution.declared import (
    BOTH,
    REUSED,
    lake,
    refused,
    table_of,
    unnamed,
)
from tests.histories import random_change, start_schema
from tests.thorough import examples


def unkeyed_schema() -> Schema:
    """Nested columns, and neither keys nor options that would keep columns in place."""
    return evolve(start_schema(), primary_keys=(), partition_keys=(), options={})


def test_declaring_iceberg_checks_the_types_that_readable_snapshots_have() -> None:
    table = table_of({"id": "INT", "v": "INT"}, formats="paimon")
    table.append([replace(unnamed("f.parquet"), field_ids=True)])
    table.alter([UpdateColumnType(("v",), "STRING", keep_nullability=True)])
    declare = [SetOption("ledger.formats", BOTH)]
    assert "column v from INT to STRING" in refused(table, declare).message

    table.append([replace(unnamed("g.parquet", schema_id=1), field_ids=True)])
    table.delete_files(["f.parquet"])
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
    table.append([unnamed("f.parquet")])
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
        [AddColumn(("w",), "INT")],
        state,
        RecentlyTouched(lambda _: ()),
        TablePast(
            handle_of(table).log, handle_of(table).live, handle_of(table).past.open_data_file
        ),
        INSTALLED,
    )
    events = intent.decide(state, ())
    assert isinstance(events, tuple)
    assert len(events) == 1


def test_replaying_asks_no_rules() -> None:
    table = table_of({"id": "INT", "v": "INT"})
    table.append([unnamed("f.parquet")])
    builder = TableBuilder(table.state)
    illegal = ColumnTypeUpdated(
        field_names=("v",), new_data_type="STRING", keep_nullability=True, field_id=1
    )
    transaction: Transaction[TableEvent] = Transaction(asked="", id="x", events=(illegal,))
    state = table.state
    builder.commit(
        Commit(
            format=3,
            version=state.version + 1,
            time_millis=state.time_millis + 1,
            transactions=(transaction,),
        )
    )
    assert builder.freeze().schema.field("v").type == STRING


def test_what_iceberg_reads_never_changes() -> None:
    """Whatever is accepted: types only widen, a name of files without ids has one column."""

    @settings(max_examples=examples(60), deadline=None)
    @given(seed=strategies.integers(0, 2**32))
    def law(seed: int) -> None:
        rng = random.Random(seed)
        table = lake().create_table("shop.t", unkeyed_schema())
        for number in range(10):
            with suppress(InvalidInputError):
                if rng.random() < 0.2:
                    file = unnamed(
                        f"f{number}.parquet", schema_id=rng.randint(0, table.state.schema.id)
                    )
                    table.append([replace(file, field_ids=rng.random() < 0.3)])
                else:
                    table.alter([random_change(rng, table.state.schema) for _ in range(2)])
        schemas = list(table.schemas())[::-1]
        assert_only_widened(schemas)
        used = set(table.state.named_schema_ids)
        assert_one_column_a_name([*(each for each in schemas if each.id in used), schemas[-1]])

    law()


_ICEBERG_WIDENS = {("int", "long"), ("float", "double")}


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


def assert_one_column_a_name(schemas: Sequence[Schema]) -> None:
    bound: dict[object, int] = {}
    for schema in schemas:
        for place in type_places(schema.fields):
            if place.field is not None:
                key = (place.level, place.path[-1])
                assert bound.setdefault(key, place.field.id) == place.field.id
