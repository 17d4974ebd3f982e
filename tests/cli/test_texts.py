from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidTypeError
from ledger.cli.changes import (
    changes_from_options,
    parse_column_path,
    parse_leading_path,
    read_column,
    split_key_and_value,
    split_path_and_value,
)
from ledger.cli.exits import UsageError
from ledger.cli.options import read_instant
from ledger.model import format_type, read_type
from ledger.model.messages import printable_line
from ledger.model.names import quote_path
from ledger.model.types import RowType

if TYPE_CHECKING:
    from tests.cli.conftest import Run

NAMES = st.text(min_size=1, max_size=8)


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_every_path_can_be_written(names: list[str]) -> None:
    assert parse_leading_path(quote_path(tuple(names)) + " rest") == (tuple(names), " rest")


@pytest.mark.parametrize("text", ["", ".", "a.", " ", "=x", "a b", "`open"])
def test_a_malformed_path_is_rejected(text: str) -> None:
    with pytest.raises(UsageError):
        parse_column_path(text)


def test_a_value_may_hold_equal_signs_and_be_missing() -> None:
    assert split_path_and_value("a.b=c=d", "--default") == (("a", "b"), "c=d")
    assert split_path_and_value("`a=b`=", "--default") == (("a=b",), "")
    assert split_path_and_value("a", "--default") == (("a",), None)
    assert split_key_and_value("k=v=w") == ("k", "v=w")
    with pytest.raises(UsageError, match="is not KEY=VALUE"):
        split_key_and_value("k")


@pytest.mark.parametrize(
    "text",
    [
        "INT",
        "DECIMAL(9, 2) NOT NULL",
        "ROW<`a` INT, `b c` ROW<`d` STRING NOT NULL> NOT NULL>",
        "ROW<`a` INT COMMENT 'x, ''y''>'>",
        "MAP<STRING NOT NULL, ARRAY<DECIMAL(9, 2)>>",
        "ARRAY<MAP<INT NOT NULL, STRING>> NOT NULL",
        "MULTISET<STRING>",
    ],
)
def test_types_are_read_as_show_prints_them(text: str) -> None:
    assert format_type(read_type(text)) == text


def test_a_struct_may_have_sparks_colons() -> None:
    read = read_type("STRUCT<zip: INT, `a:b` : STRING, c:ROW<d: INT>>")
    assert read == read_type("ROW<zip INT, `a:b` STRING, c ROW<d INT>>")


def test_types_are_read_as_json_too() -> None:
    assert format_type(read_type('{"type": "ARRAY", "element": "INT"}')) == "ARRAY<INT>"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("STRNG", "STRNG is not read as a type"),
        ("ROW<a INT", "position 9: '>' is missing"),
        ("ROW<a>", "position 4: .* write NAME TYPE"),
        ("MAP<INT>", "MAP takes two types"),
        ("MAP<INT, INT, INT>", "MAP takes two types"),
        ("ARRAY<INT, INT>", "position 9: '>' is missing, found ', INT>'"),
        ("ARRAY<INT> NOT", "position 14: NULL is missing"),
        ("{oops", "is no JSON"),
    ],
)
def test_a_type_that_cannot_be_read_says_why(text: str, said: str) -> None:
    with pytest.raises((InvalidTypeError, UsageError), match=said):
        read_type(text)


def test_a_column_says_type_comment_default_and_place() -> None:
    column = read_column("`a.b`.c decimal(9,2) not null comment 'it''s' default 'x y' before `d e`")

    assert column.path == ("a.b", "c")
    assert format_type(column.type) == "DECIMAL(9, 2) NOT NULL"
    assert (column.says_nullability, column.comment, column.default) == (True, "it's", "x y")
    assert column.move is not None
    assert (column.move.type, column.move.reference_field_name) == ("BEFORE", "d e")


def test_a_column_without_a_type_is_rejected_with_an_example() -> None:
    with pytest.raises(UsageError, match="has no type; for example, write 'zip STRING'"):
        read_column("zip")


@pytest.mark.parametrize(
    "wrong", ["snapshot:x", "--3", "-", "", "tag:", "someday", "2013-01-31T24:00"]
)
def test_a_text_that_is_no_instant_is_a_mistake_of_the_command_line(wrong: str) -> None:
    with pytest.raises(UsageError):
        read_instant(wrong)


@given(st.text())
def test_nothing_shown_can_steer_a_terminal(text: str) -> None:
    assert printable_line(text).isprintable()


@pytest.mark.parametrize(
    ("text", "path", "read"),
    [
        ("id: BIGINT", ("id",), "BIGINT"),
        ("id:BIGINT NOT NULL", ("id",), "BIGINT NOT NULL"),
        ("id :list<item: int64>", ("id",), "ARRAY<BIGINT>"),
        ("address.zip: text", ("address", "zip"), "STRING"),
        ("`a:b` INT", ("a:b",), "INT"),
        ("`a:b`.`c.d`: INT", ("a:b", "c.d"), "INT"),
        ("tz timestamp[us, tz=+02:00]", ("tz",), "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("r ROW<a INT DEFAULT 5>", ("r",), "ROW<`a` INT DEFAULT 5>"),
        ("r ROW<a INT COMMENT 'x FIRST'>", ("r",), "ROW<`a` INT COMMENT 'x FIRST'>"),
    ],
)
def test_a_colon_ends_a_columns_name(text: str, path: tuple[str, ...], read: str) -> None:
    column = read_column(text)
    assert (column.path, format_type(column.type)) == (path, read)
    assert (column.default, column.comment, column.move) == (None, None, None)


@pytest.mark.parametrize(
    "clauses",
    [
        "COMMENT 'x' DEFAULT 5 FIRST",
        "FIRST DEFAULT 5 COMMENT 'x'",
        "DEFAULT '5' FIRST COMMENT 'x'",
    ],
)
def test_clauses_follow_a_type_in_any_order(clauses: str) -> None:
    column = read_column(f"r: ROW<a INT> NOT NULL {clauses}")
    assert (column.default, column.comment, column.says_nullability) == ("5", "x", True)
    assert column.move is not None


@pytest.mark.parametrize(
    "text", ["a:b INT", "id INT FRST", "id INT FIRST LAST", "id INT COMMENT x", "id:: INT", "id:"]
)
def test_a_definition_that_has_more_or_less_than_a_column_is_rejected(text: str) -> None:
    with pytest.raises((InvalidTypeError, UsageError), match="column|has no type"):
        read_column(text)


def test_commands_never_make_a_column_with_a_colon(shop: Run) -> None:
    shop("create", "shop.b", "--column", "id: INT", "--column", "r:struct<a: int>")
    shop("alter", "shop.b", "--add", "zip: text", "--type", "id: int64")
    columns = json.loads(shop("show", "shop.b", "--output", "json").out)["table"]["schema"][
        "fields"
    ]
    assert [each["name"] for each in columns] == ["id", "r", "zip"]


@pytest.mark.parametrize(
    "name",
    ['"id"', "'id'", "id,", "id;", "[id]", "(id)", "{id}", "id)", "--", "r.id,", 'r."id"', "a,b"],
)
def test_a_name_with_stray_punctuation_needs_backticks(name: str) -> None:
    new = name.removeprefix("r.")
    for option, text in (("--add", f"{name} INT"), ("--rename", f"id={new}")):
        with pytest.raises(UsageError, match="between backticks: `") as refused:
            changes_from_options([(option, text)])
        assert str(refused.value).endswith(f" `{new}`")
    assert read_column(f"`{new}` INT").path == (new,)


@pytest.mark.parametrize("name", ["id", "_", "größe", "unit-price", "c#", "a/b", "x$", "9"])
def test_a_name_with_other_characters_needs_no_backticks(name: str) -> None:
    assert read_column(f"{name} INT").path == (name,)


@pytest.mark.parametrize(
    ("clauses", "array", "comment", "default"),
    [
        ("COMMENT 'x'", "ARRAY<INT>", "x", None),
        (" NOT NULL  COMMENT 'x'", "ARRAY<INT> NOT NULL", "x", None),
        ("NULL DEFAULT 'y'", "ARRAY<INT>", None, "y"),
        ("FIRST", "ARRAY<INT>", None, None),
    ],
)
def test_clauses_follow_a_type_in_json(
    clauses: str, array: str, comment: str | None, default: str | None
) -> None:
    column = read_column(f'id {{"type": "ARRAY", "element": "INT"}} {clauses}')
    assert (format_type(column.type), column.comment, column.default) == (array, comment, default)


@pytest.mark.parametrize(
    ("literal", "default"),
    [("NULL", None), ("null", None), ("'NULL'", "NULL"), ("'null'", "null"), ("NULLS", "NULLS")],
)
def test_a_default_of_null_is_no_default_unless_it_is_quoted(
    literal: str, default: str | None
) -> None:
    assert read_column(f"s STRING DEFAULT {literal} FIRST").default == default
    nested = read_type(f"ROW<s STRING DEFAULT {literal} COMMENT 'x'>")
    assert isinstance(nested, RowType)
    assert nested.fields[0].default_value == default
    assert read_type(format_type(nested)) == nested


def test_a_type_change_takes_no_default_of_null() -> None:
    with pytest.raises(UsageError, match="has more than a type"):
        changes_from_options([("--type", "a STRING DEFAULT NULL")])
