"""Ways round the formats' rules that were found open: names of partition fields, comings and
goings of a format."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve
from msgspec.structs import replace

from ledger import (
    AddColumn,
    DataField,
    DropColumn,
    DropPrimaryKey,
    FileChange,
    FormatError,
    InvalidChangeError,
    InvalidInputError,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UpdateColumnType,
)
from ledger.decide import Batch
from ledger.model.types import IntType
from ledger.state import LayoutTrail, Rules
from ledger.table_handle import handle_of
from ledger.transforms import day
from ledger.updates import UpdateSchema
from tests.lakes import data_file, lake_on, memory
from tests.projections.iceberg.older_logs import record_file

BOTH = SetOption("ledger.formats", "paimon,iceberg")


def table_of(columns: dict[str, str], formats: str = "iceberg", **keys: object) -> Table:
    lake = lake_on(memory())
    lake.create_database("d")
    options = {"ledger.formats": formats, **keys.pop("options", {})}  # type: ignore[dict-item]
    schema = Schema.of(columns, options=options, **keys)  # type: ignore[arg-type]
    return lake.create_table("d.t", schema)


def file(name: str, *partition: str | int) -> FileChange:
    bare: dict[str, object] = {
        "value_counts": {},
        "null_value_counts": {},
        "lower_bounds": {},
        "upper_bounds": {},
    }
    return replace(data_file(name), partition=partition, field_ids=True, **bare)


@pytest.mark.parametrize("change", [AddColumn(("ts_day",), "INT"), RenameColumn(("id",), "ts_day")])
def test_no_column_takes_the_name_of_a_partition_field(change: AddColumn | RenameColumn) -> None:
    table = table_of({"id": "INT", "ts": "TIMESTAMP(6)"}, "paimon,iceberg")
    table.update_spec().add_field(day("ts")).commit()
    # Readers bind every spec, so that an older one counts as much.
    table.update_spec().remove_field("ts_day").commit()

    with pytest.raises(FormatError, match="day of field 1, has that name"):
        table.alter([change])


def test_the_name_of_a_renamed_source_stays_its_partition_fields() -> None:
    table = table_of({"id": "INT", "b": "INT"})
    table.update_spec().add_field("b").commit()
    table.alter([RenameColumn(("b",), "c")])

    with pytest.raises(FormatError, match="identity of field 1, has that name"):
        table.alter([AddColumn(("b",), "INT")])
    table.alter([RenameColumn(("c",), "b")])


def test_the_name_is_free_once_the_source_is_gone() -> None:
    table = table_of({"id": "INT", "b": "INT"})
    table.update_spec().add_field("b").commit()
    table.update_spec().remove_field("b").commit()
    table.alter([DropColumn(("b",))])

    assert table.alter([AddColumn(("b",), "INT")]).state.schema.names == ("id", "b")


def test_a_table_is_not_declared_for_iceberg_with_such_a_name() -> None:
    table = table_of({"id": "INT", "ts": "TIMESTAMP(6)"}, "paimon")
    table.update_spec().add_field(day("ts")).commit()
    table.alter([AddColumn(("ts_day",), "INT")])

    with pytest.raises(FormatError, match="day of field 1, has that name"):
        table.alter([BOTH])


def test_paimon_does_not_come_back_to_a_key_of_another_type() -> None:
    table = table_of({"id": "INT", "p": "INT"}, partition_keys=["p"])
    table.append([file("a.parquet", -1)])
    table.alter([UpdateColumnType(("p",), "BIGINT")])

    with pytest.raises(FormatError, match="it was INT in schema 0, which has files"):
        table.alter([BOTH])


def test_paimon_does_not_come_back_to_files_of_a_key_that_was_dropped() -> None:
    table = table_of({"id": "INT NOT NULL"}, primary_keys=["id"], options={"bucket": "2"})
    record_file(table, file("a.parquet"))
    table.alter([DropPrimaryKey(), SetOption("bucket-key", "id")])

    with pytest.raises(FormatError, match="the primary key: files of schema 0 are laid out by"):
        table.alter([BOTH])


def test_paimon_does_not_come_back_to_options_that_snapshots_fix() -> None:
    table = table_of({"id": "INT"}, options={"bucket": "2", "bucket-key": "id"})
    table.append([file("a.parquet")])
    table.alter([SetOption("bucket-function.type", "mod")])

    with pytest.raises(FormatError, match="option bucket-function.type: it is fixed"):
        table.alter([BOTH])


def test_paimon_does_not_come_back_to_a_required_column_that_files_lack() -> None:
    table = table_of({"id": "INT"})
    table.append([file("a.parquet")])
    update = table.update_schema().allow_incompatible_changes()
    update.add_column("q", "INT", required=True).commit()

    with pytest.raises(FormatError, match="column q: it is NOT NULL, and older files have no"):
        table.alter([BOTH])


def test_without_files_paimon_comes_back_to_anything_that_it_can_say() -> None:
    table = table_of({"id": "INT", "p": "INT"}, partition_keys=["p"])
    table.alter([UpdateColumnType(("p",), "BIGINT")])

    assert table.alter([BOTH]).state.schema.options["ledger.formats"] == "paimon,iceberg"


def test_a_format_version_does_not_go_down_by_way_of_leaving() -> None:
    table = table_of({"id": "INT"}, options={"format-version": "3"})
    table.append([file("a.parquet")])
    table.alter([SetOption("ledger.formats", "paimon"), SetOption("format-version", "2")])

    with pytest.raises(FormatError, match="only go up, and the table's is 3"):
        table.alter([BOTH])


def test_version_1_has_no_gaps_in_the_ids_of_a_spec() -> None:
    table = table_of({"id": "INT", "b": "INT", "c": "INT"}, options={"format-version": "1"})
    table.update_spec().add_field("b").add_non_default_spec().commit()

    with pytest.raises(FormatError, match=r"without gaps, and they would be \[1001\]"):
        table.update_spec().add_field("c").commit()
    with pytest.raises(FormatError, match="without gaps"):
        table.update_spec().add_field("c").add_non_default_spec().commit()
    table.alter([SetOption("format-version", "2")])
    assert table.update_spec().add_field("c").commit().state.spec.fields[0].field_id == 1001


def test_version_1_is_not_declared_over_specs_that_lost_fields() -> None:
    table = table_of({"id": "INT", "b": "INT"}, "paimon")
    table.update_spec().add_field("id").add_field("b").commit()
    table.update_spec().remove_field("id").commit()

    with pytest.raises(FormatError, match="without gaps"):
        table.alter([BOTH, SetOption("format-version", "1")])


class Untouched(IntType):
    """A type that must not be looked into."""

    def __eq__(self, _other: object) -> bool:
        raise AssertionError

    __hash__ = None  # type: ignore[assignment]


def test_unchanged_columns_are_not_compared() -> None:
    table = table_of({"id": "INT"})
    state = table.state
    column = DataField(1, "u", Untouched())
    before = Schema((column, DataField(2, "v", IntType())))
    after = Schema((column, DataField(2, "w", IntType())))
    layout, rules = LayoutTrail.of(state), Rules.of({})

    for schema, changed in ((before, ()), (after, (2,))):
        batch = Batch(evolve(state, schema=before), schema, layout, rules, handle_of(table).past)
        assert tuple(each.id for each in batch.changed_columns) == changed


def test_asking_the_same_update_in_other_words_is_the_same_request() -> None:
    table = table_of({"id": "INT"})
    asked = table.update_schema()
    first = asked.update_column("id", "BIGINT", doc="key").commit(commit_id="k")
    again = table.update_schema().update_column(name="id", data_type="BIGINT", doc="key")

    assert again.commit(commit_id="k").version == first.version
    with pytest.raises(InvalidInputError, match="used for something else"):
        table.update_schema().update_column("id", "BIGINT").commit(commit_id="k")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda update: update.delete_column(5),
        lambda update: update.add_column(None, "INT"),
        lambda update: update.add_column("m", 5),
        lambda update: update.rename_column("id", None),
        lambda update: update.rename_column("id", ""),
        lambda update: update.union_by_name({"a": "INT"}),
    ],
)
def test_what_is_no_name_type_or_schema_is_rejected_in_words(
    wrong: Callable[[UpdateSchema], UpdateSchema],
) -> None:
    table = table_of({"id": "INT"})
    with pytest.raises(InvalidChangeError, match="give|take"):
        wrong(table.update_schema()).commit()
    with pytest.raises(InvalidInputError, match="5 names no column"):
        table.update_spec().add_field(5)  # type: ignore[arg-type]
    assert table.state.version == 0
