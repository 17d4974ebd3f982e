"""update_schema on real tables: its result, concurrent writers, and what stays unchanged."""

from __future__ import annotations

import pytest

from ledger import (
    AddColumn,
    ColumnExistsError,
    CommitConflictError,
    DropColumn,
    FormatError,
    InvalidChangeError,
    InvalidInputError,
    RenameColumn,
    Schema,
    Table,
    UpdateColumnType,
)
from ledger.model import format_type, read_type
from tests.lakes import lake_on, memory

COLUMNS = {"a": "INT", "b": "STRING"}
ICEBERG = {"ledger.formats": "iceberg", "format-version": "3"}


def table_of(columns: dict[str, str], options: dict[str, str] | None = None) -> Table:
    lake = lake_on(memory())
    lake.create_database("shop")
    schema = Schema.of({name: read_type(text) for name, text in columns.items()}, options=options)
    return lake.create_table("shop.orders", schema)


def ids(table: Table) -> dict[str, int]:
    return {each.name: each.id for each in table.state.schema.fields}


def test_names_that_change_places_keep_their_ids_and_no_schema_shows_a_third_name() -> None:
    table = table_of(COLUMNS)

    table.update_schema().rename_column("a", "b").rename_column("b", "a").commit()

    assert ids(table) == {"b": 0, "a": 1}
    assert {name for each in table.schemas() for name in each.names} == {"a", "b"}


def test_an_update_is_resolved_where_it_was_begun() -> None:
    table = table_of(COLUMNS)
    update = table.update_schema().delete_column("b")
    table.alter([RenameColumn(("b",), "c"), AddColumn(("b",), "DATE")])

    update.commit()

    assert ids(table) == {"a": 0, "b": 2}


def test_two_updates_that_add_different_columns_both_commit() -> None:
    table = table_of(COLUMNS)
    one = table.update_schema().add_column("x", "INT").move_first("x")
    two = table.update_schema().add_column("y", "ROW<z INT>").rename_column("a", "c")

    one.commit()
    two.commit()

    assert ids(table) == {"x": 2, "c": 0, "b": 1, "y": 3}


def test_two_updates_that_want_the_same_are_no_conflict() -> None:
    table = table_of(COLUMNS)
    one = table.update_schema().add_column("x", "INT", doc="new").update_column("a", "BIGINT")
    two = table.update_schema().add_column("x", "INT", doc="new").update_column("a", "BIGINT")

    one.commit()
    again = two.commit()

    assert ids(table) == {"a": 0, "b": 1, "x": 2}
    assert again.state.schema.id == 1


def test_a_new_column_with_another_default_for_older_files_is_another_column() -> None:
    table = table_of(COLUMNS, ICEBERG)
    updates = [table.update_schema().add_column("x", "INT", default=each) for each in "778"]

    updates[0].commit()
    updates[1].commit()

    assert ids(table) == {"a": 0, "b": 1, "x": 2}
    with pytest.raises(CommitConflictError):
        updates[2].commit()


def test_two_updates_that_want_different_names_of_one_column_conflict() -> None:
    table = table_of(COLUMNS)
    one = table.update_schema().rename_column("a", "c")
    two = table.update_schema().rename_column("a", "d")

    one.commit()
    with pytest.raises(CommitConflictError, match=r"the name of column a \(id 0\) was changed by"):
        two.commit()


def test_two_updates_that_identify_rows_by_their_own_new_columns_conflict() -> None:
    table = table_of({"a": "INT NOT NULL", "b": "STRING NOT NULL"}, ICEBERG)
    one = table.update_schema().allow_incompatible_changes().add_column("x", "INT", required=True)
    two = table.update_schema().allow_incompatible_changes().add_column("y", "INT", required=True)
    one.set_identifier_fields("x").commit()

    with pytest.raises(CommitConflictError, match="the set of identifier fields was changed by"):
        two.set_identifier_fields("y").commit()


def test_identifier_fields_follow_a_column_that_somebody_renamed_meanwhile() -> None:
    table = table_of({"a": "INT NOT NULL", "s": "ROW<b INT NOT NULL> NOT NULL"})
    update = table.update_schema().set_identifier_fields("a", "s.b")
    table.alter([RenameColumn(("a",), "c"), RenameColumn(("s", "b"), "d")])

    state = update.commit().state

    assert state.schema.identifier_field_ids == (0, 2)


def test_a_column_that_identifies_rows_cannot_go_meanwhile() -> None:
    table = table_of({"a": "INT NOT NULL", "b": "INT"})
    update = table.update_schema().set_identifier_fields("a")
    table.alter([DropColumn(("a",))])

    with pytest.raises(CommitConflictError, match=r"column a \(id 0\) was dropped by"):
        update.commit()


def test_the_same_update_asked_again_under_its_id_gives_the_first_commit() -> None:
    table = table_of(COLUMNS)
    first = table.update_schema().add_column("x", "INT").commit(commit_id="once")

    again = table.update_schema().add_column("x", "INT").commit(commit_id="once")

    assert (again.version, again.repeated) == (first.version, True)
    with pytest.raises(InvalidInputError, match="used for something else"):
        table.update_schema().add_column("y", "INT").commit(commit_id="once")


def test_apply_shows_the_schema_and_writes_nothing() -> None:
    table = table_of(COLUMNS)
    update = table.update_schema().add_column("x", "INT").delete_column("a")

    planned = update.apply()

    assert planned.names == ("b", "x")
    assert table.state.version == 0
    assert update.commit().state.schema == planned


def test_an_update_that_changes_nothing_makes_no_schema() -> None:
    table = table_of(COLUMNS)

    state = table.update_schema().move_first("a").make_optional("b").commit().state

    assert (state.version, state.schema.id) == (1, 0)


def test_the_only_column_can_be_replaced_by_one_of_its_name() -> None:
    table = table_of({"a": "INT"})

    table.update_schema().delete_column("a").add_column("a", "STRING").commit()

    assert ids(table) == {"a": 1}
    with pytest.raises(InvalidInputError, match="no column left"):
        table.update_schema().delete_column("a").commit()


def test_new_columns_go_last_whatever_paimons_option_says() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    options = {"add-column-before-partition": "true"}
    schema = Schema.of({"a": "INT", "day": "DATE"}, partition_keys=["day"], options=options)
    table = lake.create_table("shop.orders", schema)

    state = table.update_schema().add_column("x", "INT").commit().state

    assert state.schema.names == ("a", "day", "x")


def test_a_default_for_older_files_is_refused_where_paimon_reads() -> None:
    table = table_of(COLUMNS)

    with pytest.raises(FormatError, match="reads as NULL") as refusal:
        table.update_schema().add_column("x", "INT", default="7").commit()

    assert (refusal.value.format, "ledger.formats" in refusal.value.alternative) == ("paimon", True)
    table.update_schema().add_column("x", "INT").update_column("x", default="7").commit()
    added = table.state.schema.field("x")
    assert (added.default_value, added.initial_default) == ("7", None)


def test_a_union_takes_what_the_other_schema_has_more_at_every_depth() -> None:
    table = table_of({"a": "INT NOT NULL", "s": "ROW<x INT, l ARRAY<ROW<y INT>>>"})
    other = Schema.of(
        {
            "s": read_type("ROW<l ARRAY<ROW<y BIGINT, z STRING NOT NULL>>, x TINYINT>"),
            "b": "DATE NOT NULL",
        }
    )

    state = table.update_schema().union_by_name(other).commit().state

    assert {each.name: format_type(each.type) for each in state.schema.fields} == {
        "a": "INT NOT NULL",
        "s": "ROW<`x` INT, `l` ARRAY<ROW<`y` BIGINT, `z` STRING>>>",
        "b": "DATE",
    }


def test_a_union_with_another_kind_of_type_is_refused() -> None:
    table = table_of({"a": "INT", "m": "MAP<INT, STRING>"})

    for columns, message in (
        ({"a": "ARRAY<INT>"}, "neither of INT and ARRAY"),
        ({"a": "STRING"}, "neither of INT and STRING"),
        ({"m": "MAP<BIGINT, STRING>"}, "a map's key never changes"),
    ):
        other = Schema.of({name: read_type(text) for name, text in columns.items()})
        with pytest.raises(InvalidChangeError, match=message):
            table.update_schema().union_by_name(other).commit()


def test_names_of_other_case_are_found_and_clash_when_case_does_not_matter() -> None:
    table = table_of({"a": "INT", "B": "STRING"})

    table.update_schema().case_sensitive(False).rename_column("b", "c").commit()  # noqa: FBT003
    assert ids(table) == {"a": 0, "c": 1}
    with pytest.raises(ColumnExistsError):
        table.update_schema().case_sensitive(False).rename_column("c", "A").commit()  # noqa: FBT003
    both = table_of({"a": "INT", "A": "INT"})
    with pytest.raises(InvalidInputError, match="could mean a or A"):
        both.update_schema().case_sensitive(False).delete_column("a").commit()  # noqa: FBT003


def test_a_type_that_a_paimon_key_has_is_still_refused_by_an_update() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    table = lake.create_table("shop.o", Schema.of({"a": "INT", "d": "INT"}, partition_keys=["d"]))

    with pytest.raises(InvalidChangeError, match="partition column d cannot be re-typed"):
        table.update_schema().update_column("d", "BIGINT").commit()
    with pytest.raises(InvalidChangeError, match="partition column d cannot be re-typed"):
        table.alter([UpdateColumnType(("d",), "BIGINT")])
