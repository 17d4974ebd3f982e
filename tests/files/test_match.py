from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve

from ledger import InvalidChangeError, Schema
from ledger.files import FooterColumn
from ledger.files.register import match_schema, pair_columns_with_fields
from ledger.model import parse_type
from ledger.model import types as t


def column(
    name: str, type_text: str, field_id: int | None = None, *members: FooterColumn
) -> FooterColumn:
    return FooterColumn(name, field_id, parse_type(type_text), type_text, members)


def row(name: str, *members: FooterColumn, field_id: int | None = None) -> FooterColumn:
    fields = [t.DataField(n, each.name, each.type or t.STRING) for n, each in enumerate(members)]
    return FooterColumn(name, field_id, t.RowType(fields), "struct", members)


def schema(number: int, **columns: tuple[int, str]) -> Schema:
    fields = [t.DataField(i, name, parse_type(text)) for name, (i, text) in columns.items()]
    return Schema(fields, id=number)


FIRST = schema(0, id=(0, "INT"), addr=(1, "STRING"))
RENAMED = schema(1, id=(0, "INT"), address=(1, "STRING"))
WIDENED = schema(2, id=(0, "BIGINT"), address=(1, "STRING"), note=(2, "STRING"))
INTS = t.ArrayType(t.IntType())
HISTORY = [WIDENED, RENAMED, FIRST]


def matched(*columns: FooterColumn, history: Any = None) -> tuple[int, bool]:
    found = match_schema(columns, history or HISTORY, file="f.parquet")
    return found.schema_id, found.field_ids


def refused(*columns: FooterColumn, history: Any = None) -> str:
    with pytest.raises(InvalidChangeError) as caught:
        match_schema(columns, history or HISTORY, file="f.parquet")
    assert "f.parquet" in str(caught.value)
    return str(caught.value)


def test_a_file_without_ids_fits_the_newest_schema_that_has_its_names() -> None:
    assert matched(column("id", "BIGINT"), column("address", "STRING")) == (2, False)
    assert matched(column("id", "INT"), column("addr", "STRING")) == (0, False)


def test_narrower_values_fit_the_widened_column() -> None:
    assert matched(column("id", "INT"), column("address", "STRING")) == (2, False)


def test_a_file_with_ids_fits_the_newest_schema_whose_names_it_uses() -> None:
    assert matched(column("id", "BIGINT", 0), column("address", "STRING", 1)) == (2, True)
    assert matched(column("id", "INT", 0), column("addr", "STRING", 1)) == (0, True)


def test_no_more_schemas_are_taken_than_are_needed() -> None:
    def history() -> Iterator[Schema]:
        yield WIDENED
        raise AssertionError("older schemas are not needed")

    assert matched(column("id", "INT"), history=history()) == (2, False)


@pytest.mark.parametrize(
    ("foreign", "reason"),
    [
        (column("id", "INT", 1), "field id 1, which is 'address' or 'addr' in this table"),
        (column("id", "INT", 9), "field id 9, which is no column in this table"),
    ],
)
def test_foreign_ids_are_refused(foreign: FooterColumn, reason: str) -> None:
    message = refused(foreign)

    assert "column 'id' carries" in message
    assert reason in message
    assert "schema.to_arrow()" in message


def test_an_id_of_a_nested_field_is_foreign_to_a_column() -> None:
    nested = Schema.of({"a": t.RowType([t.DataField(0, "x", t.IntType())])})

    assert "is inside another column" in refused(column("x", "INT", 1), history=[nested])


def test_ids_on_some_columns_only_are_refused() -> None:
    assert "columns ['address'] carry no field id" in refused(
        column("id", "INT", 0), column("address", "STRING")
    )


def test_unknown_columns_are_named_with_near_ones() -> None:
    message = refused(column("Adress", "STRING"), column("zzz", "STRING"))

    assert "columns 'Adress', 'zzz' are not among its columns" in message
    assert "(did you mean 'address' for 'Adress'? there are: 'id', 'address', 'note')" in message


def test_many_unknown_columns_are_one_problem_reported_once() -> None:
    message = refused(*(column(f"strange_{each}", "STRING") for each in range(40)))

    assert message.count("not among its columns") == message.count("'id', 'address'") == 1
    assert "and 28 more" in message
    assert len(message) < 600


def test_names_of_different_schemas_fit_none() -> None:
    message = refused(column("addr", "STRING", 1), column("note", "STRING", 2))

    assert "fits no schema" in message
    assert "'addr'" in message


def test_a_wider_file_asks_to_widen_the_column() -> None:
    message = refused(column("id", "BIGINT"), history=[FIRST])

    assert "column 'id' holds BIGINT, but the table's column is INT: widen the column" in message


def test_a_missing_not_null_column_is_refused_unless_it_partitions() -> None:
    table = Schema.of({"id": "INT NOT NULL", "day": "DATE NOT NULL", "v": "INT"})

    assert "NOT NULL column 'day' is missing" in refused(column("id", "INT"), history=[table])
    partitioned = evolve(table, partition_keys=("day",))
    assert matched(column("id", "INT"), history=[partitioned]) == (0, False)


def test_a_file_without_columns_is_refused() -> None:
    assert "has no columns" in refused()


@pytest.mark.parametrize(
    ("found", "wanted", "fits"),
    [
        ("INT", "TINYINT", True),
        ("TINYINT", "INT", True),
        ("BIGINT", "INT", False),
        ("INT", "DATE", False),
        ("INT", "BIGINT", True),
        ("FLOAT", "DOUBLE", True),
        ("DOUBLE", "FLOAT", False),
        ("STRING", "CHAR(3)", True),
        ("STRING", "BYTES", False),
        ("BYTES", "STRING", False),
        ("BYTES", "BLOB", True),
        ("BINARY(4)", "VARBINARY(8)", True),
        ("BINARY(9)", "VARBINARY(8)", False),
        ("BINARY(16)", "UUID", True),
        ("UUID", "UUID", True),
        ("DECIMAL(9, 2)", "DECIMAL(10, 2)", True),
        ("DECIMAL(11, 2)", "DECIMAL(10, 2)", False),
        ("DECIMAL(9, 1)", "DECIMAL(10, 2)", False),
        ("TIMESTAMP(9)", "TIMESTAMP(3)", True),
        ("TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", False),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)", True),
        ("UNKNOWN", "INT", True),
        ("UNKNOWN", "INT NOT NULL", False),
    ],
)
def test_values_are_read_as_the_column_or_refused(found: str, wanted: str, fits: bool) -> None:  # noqa: FBT001 - the case
    table = Schema.of({"a": wanted})

    if fits:
        assert matched(column("a", found), history=[table]) == (0, False)
    else:
        assert "column 'a'" in refused(column("a", found), history=[table])


def test_nested_columns_are_matched_member_by_member() -> None:
    inner = t.RowType([t.DataField(0, "x", t.BigIntType()), t.DataField(0, "y", t.STRING)])
    table = Schema.of({"a": inner, "l": INTS})
    element = column("element", "INT")
    a_list = FooterColumn("l", None, INTS, "list", (element,))

    assert matched(row("a", column("x", "INT")), a_list, history=[table]) == (0, False)
    assert "column 'a.z' is not among the members ['x', 'y']" in refused(
        row("a", column("z", "INT")), history=[table]
    )
    assert "column 'a.x' holds STRING" in refused(row("a", column("x", "STRING")), history=[table])
    assert "column 'l' holds INT" in refused(column("l", "INT"), history=[table])
    wrong = FooterColumn("l", None, INTS, "list", (column("e", "BIGINT"),))
    assert "column 'l.element' holds BIGINT" in refused(wrong, history=[table])


def test_members_carry_the_tables_ids_when_their_column_does() -> None:
    table = Schema.of({"a": t.RowType([t.DataField(0, "x", t.IntType())])})

    assert matched(row("a", column("x", "INT", 1), field_id=0), history=[table]) == (0, True)
    assert "column 'a.x' carries field id 5; the table's is 1" in refused(
        row("a", column("x", "INT", 5), field_id=0), history=[table]
    )


def test_a_type_that_no_column_can_hold_is_named() -> None:
    unsigned = FooterColumn("id", None, None, "uint32")

    assert "column 'id' holds uint32, which no column type can hold" in refused(unsigned)


def test_columns_are_paired_with_fields_at_every_level() -> None:
    table = Schema.of({"a": t.RowType([t.DataField(0, "x", t.IntType())]), "b": "INT"})

    found = pair_columns_with_fields(
        [column("b", "INT"), row("a", column("x", "INT"))], table.fields
    )

    assert [(each.name, field.id) for each, field in found] == [("b", 2), ("a", 0), ("x", 1)]
