from __future__ import annotations

import datetime as dt
import operator
import time
from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import ColumnNotFoundError, InvalidInputError, Schema
from ledger.model import types as t
from ledger.model.messages import excerpt
from ledger.planning import FALSE, TRUE, And, Expression, Not, Or, holds_for, parse_filter, text_of
from ledger.planning.expression import evaluate_if_known
from tests.thorough import examples

INFO = t.RowType(
    (
        t.DataField(0, "code", t.IntType()),
        t.DataField(0, "deep", t.RowType((t.DataField(0, "er", t.STRING),))),
        t.DataField(0, "tags", t.ArrayType(t.STRING)),
    )
)
SCHEMA = Schema.of(
    {
        "id": "BIGINT",
        "small": "TINYINT",
        "name": "STRING",
        "day": "DATE",
        "at": "TIME(6)",
        "ts": "TIMESTAMP(6)",
        "nanos": "TIMESTAMP(9)",
        "ltz": "TIMESTAMP_LTZ(6)",
        "price": "DECIMAL(9, 2)",
        "amount": "DECIMAL(38, 18)",
        "ratio": "DOUBLE",
        "single": "FLOAT",
        "flag": "BOOLEAN",
        "key": "UUID",
        "raw": "BYTES",
        "info": INFO,
        "a.b": "INT",
    }
)
BERLIN = ZoneInfo("Europe/Berlin")


def shown(where: Any) -> str:
    return text_of(parse_filter(where, SCHEMA))


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (None, "true"),
        ([], "true"),
        ("TRUE", "true"),
        ([("id", "=", 5)], "id == 5"),
        (("id", "==", 5), "id == 5"),
        ([("id", "!=", np.int64(5)), ("id", "<", 9.0)], "id != 5 and id < 9"),
        ([[("id", ">", 5), ("id", "<=", 7)], [("name", "=", "a")]],
         '(id > 5 and id <= 7) or name == "a"'),
        ([("id", "in", {3, 1})], "id in (1, 3)"),
        ([("id", "in", [3])], "id == 3"),
        ([("id", "not in", (1, 2))], "id not in (1, 2)"),
        ([("id", "in", [])], "false"),
        ([("id", "NOT  IN", [])], "true"),
        ([("id", "is null")], "is_null(id)"),
        ([("info", "is not null", None)], "not_null(info)"),
        ([("ratio", "is nan")], "is_nan(ratio)"),
        ([("name", "starts with", "a")], 'name startsWith "a"'),
        ([("info.code", "=", 5), ("info.deep.er", "=", "x")],
         'info.code == 5 and info.deep.er == "x"'),
        ([("a.b", "=", 5)], "a.b == 5"),
        ([("day", "=", dt.date(2017, 12, 1))], "day == 2017-12-01"),
        ([("at", "<", dt.time(22, 31, 8, 5))], "at < 22:31:08.000005"),
        ([("ts", ">=", dt.datetime(2017, 12, 1, 10))], "ts >= 2017-12-01T10:00:00"),  # noqa: DTZ001
        ([("ts", ">=", dt.date(2017, 12, 1))], "ts >= 2017-12-01T00:00:00"),
        ([("ts", ">=", "2017-12-01")], "ts >= 2017-12-01T00:00:00"),
        ([("nanos", "=", pd.Timestamp("2017-12-01 00:00:00.000000001"))],
         "nanos == 2017-12-01T00:00:00.000000001"),
        ([("ltz", "<", dt.datetime(2017, 7, 1, tzinfo=BERLIN))], "ltz < 2017-06-30T22:00:00"),
        ([("ltz", "<", "2017-12-01 00:00:00+01:00")], "ltz < 2017-11-30T23:00:00"),
        ([("price", "=", Decimal("1.5"))], "price == 1.50"),
        ([("price", "=", 0.1)], "price == 0.10"),
        ([("price", "=", 5)], "price == 5.00"),
        ([("ratio", ">", 1)], "ratio > 1.0"),
        ([("single", "=", 0.1)], "single == 0.10000000149011612"),
        ([("flag", "=", True)], "flag == True"),
        ([("key", "=", UUID(int=5))], "key == 00000000-0000-0000-0000-000000000005"),
        ([("raw", "=", b"\x00\xff")], 'raw == "00ff"'),
        # SQL
        ("amount = -12345678901234567890.123456789012345678",
         "amount == -12345678901234567890.123456789012345678"),
        ("amount > 12345678901234567890.123456789012345678",
         "amount > 12345678901234567890.123456789012345678"),
        ("ts >= TIMESTAMP '2024-01-01' AND name IN ('a','b')",
         'ts >= 2024-01-01T00:00:00 and name in ("a", "b")'),
        ("NOT (id IS NULL) AND name LIKE 'ab%'", 'not_null(id) and name startsWith "ab"'),
        ("day BETWEEN DATE '2024-01-01' AND '2024-02-01'",
         "day >= 2024-01-01 and day <= 2024-02-01"),
        ("5 < id", "id > 5"),
        ("-5 >= id", "id <= -5"),
        ("NOT (id = 1 OR id = 2)", "id != 1 and id != 2"),
        ("id NOT IN (1, 2) OR name NOT LIKE 'a%'", 'id not in (1, 2) or name notStartsWith "a"'),
        ("id NOT BETWEEN 1 AND 2", "id < 1 or id > 2"),
        ("NOT (id BETWEEN 1 AND 2 AND flag)", "id < 1 or id > 2 or flag != True"),
        ("name LIKE 'abc'", 'name == "abc"'),
        ("name = 'it''s'", 'name == "it\'s"'),
        ("flag", "flag == True"),
        ("NOT flag", "flag != True"),
        ("flag IS NOT TRUE", "flag != True or is_null(flag)"),
        ("info.deep.er IS NOT NULL", "not_null(info.deep.er)"),
        ('"a.b" = 1', "a.b == 1"),
        ("is_nan(ratio) OR ratio <> 1.5e3", "is_nan(ratio) or ratio != 1500.0"),
        ("NOT ratio < 1", "ratio >= 1.0 or is_nan(ratio)"),
        ("starts_with(name, '50%')", 'name startsWith "50%"'),
        ("raw = X'00ff' AND price < 0.5", 'raw == "00ff" and price < 0.50'),
        ("key = UUID '00000000-0000-0000-0000-000000000005'",
         "key == 00000000-0000-0000-0000-000000000005"),
        ("ltz < TIMESTAMP '2024-01-01 00:00:00 +01:00'", "ltz < 2023-12-31T23:00:00"),
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_is_read(where: Any, text: str) -> None:
    assert shown(where) == text


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ([("id", "=", "5")], r"column id is BIGINT and cannot be compared with '5' \(str\)"),
        ([("id", "=", 1.5)], "column id is BIGINT and cannot be compared with 1.5"),
        ([("id", "=", True)], r"True \(bool\)"),
        ([("small", "=", 128)], "column small is TINYINT .* 128"),
        ([("id", "=", None)], "column id is compared with NULL.*'is null'"),
        ([("id", "in", [1, None])], "is compared with NULL"),
        ([("id", "in", "12")], "'in' wants a list"),
        ([("id", "in", 1)], "'in' wants a list"),
        ([("id", "~", 1)], "op '~' of column id is none of"),
        ([("id", "is null", 5)], "wants no value"),
        ([("id", "is nan")], "column id is neither FLOAT nor DOUBLE"),
        ([("id", "starts with", 1)], "column id is no text"),
        ([("ratio", "<", float("nan"))], "ask for 'is nan'"),
        ([("info", "=", 1)], "column info is ROW.* do not compare"),
        ([("price", "=", "0.001")], "column price is DECIMAL"),
        ([("price", "=", 10**8)], "column price is DECIMAL"),
        ([("price", "=", float("inf"))], "column price is DECIMAL"),
        ([("day", "=", dt.datetime(2017, 1, 1))], "column day is DATE"),  # noqa: DTZ001
        ([("day", "=", 17501)], "column day is DATE .* ISO 8601"),
        ([("day", "=", "2017-02-29")], "column day is DATE"),
        ([("ts", "=", dt.datetime(2017, 1, 1, tzinfo=BERLIN))], "leave the time zone out"),
        ([("ltz", "=", dt.datetime(2017, 1, 1))], "give the datetime a time zone"),  # noqa: DTZ001
        ([("ts", "=", "2017-01-01 00:00:00+01:00")], "column ts is TIMESTAMP"),
        ([("ts", "=", "2017-01-01 00:00:00.0000001")], "no finer than the column's unit"),
        ([("name", "=", "\ud800")], "column name is"),
        ([("id", "=")], "cannot be read"),
        ([["id", "=", 1]], "cannot be read"),
        ([1], "cannot be read"),
        (5, "cannot be read"),
        ("id = ", "is no SQL condition"),
        ("", "is no SQL condition"),
        ("id = 1; drop table x", "is no SQL condition"),
        ("id + 1 = 5", "cannot be planned by"),
        ("id = small", "cannot be planned by"),
        ("id IN (SELECT 1)", "cannot be planned by"),
        ("lower(name) = 'a'", "cannot be planned by"),
        ("name LIKE 'a%b'", "only a % at the end"),
        ("name LIKE 'a_'", "only a % at the end"),
        ("name LIKE 'a!%' ESCAPE '!'", "cannot be planned by"),
        ("name ILIKE 'a%'", "cannot be planned by"),
        ("name = DATE '2024-01-01'", "column name is text"),
        ("day > DATE '2024-01-01' + INTERVAL '1' DAY", "cannot be planned by"),
        ("id BETWEEN SYMMETRIC 2 AND 1", "cannot be planned by"),
        ("id = CAST('5' AS BIGINT)", "cannot be planned by"),
        ("id", "column id is not BOOLEAN"),
        ("5 = 5", "cannot be planned by"),
        ("id = NULL", "is compared with NULL"),
        ("count(*) > 1", "cannot be planned by"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_refused_by_name(where: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_filter(where, SCHEMA)


@pytest.mark.parametrize("name", ["nix", "info.nix", "info.tags.element", "ID", "id.x"])
def test_a_column_that_one_row_has_not_once_is_not_found(name: str) -> None:
    with pytest.raises(ColumnNotFoundError, match=f"column {name} cannot be filtered by"):
        parse_filter([(name, "is null")], SCHEMA)


ROWS = st.fixed_dictionaries(
    {"id": st.none() | st.integers(0, 4), "small": st.none() | st.integers(0, 4)}
)
TERMS = st.tuples(
    st.sampled_from(["id", "small"]),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null"]),
    st.integers(0, 4),
)


def _term(name: str, op: str, value: int) -> tuple[Any, ...]:
    if "null" in op:
        return (name, op)
    return (name, op, [value, 3] if "in" in op else value)


PYTHON: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, values: value in values,
    "not in": lambda value, values: value not in values,
}


def _python(row: dict[str, int | None], term: tuple[Any, ...]) -> bool:
    """Return whether a row matches, worked out by Python."""
    value, op = row[term[0]], term[1]
    if "null" in op:
        return bool((value is None) == (op == "is null"))
    return value is not None and bool(PYTHON[op](value, term[2]))


@given(ROWS, st.lists(st.lists(TERMS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_lists_of_lists_let_through_what_python_lets_through(
    row: dict[str, int | None], terms: list[list[tuple[str, str, int]]]
) -> None:
    where = [[_term(*each) for each in part] for part in terms]
    expected = any(all(_python(row, each) for each in part) for part in where)
    expression = parse_filter(where, SCHEMA)
    found = evaluate_if_known(expression, lambda each: holds_for(each, row[each.column.name]))
    assert (found is True) == expected


@settings(max_examples=examples(60), deadline=None)
@given(ROWS, st.lists(st.lists(TERMS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_sql_lets_through_what_duckdb_lets_through(
    row: dict[str, int | None], terms: list[list[tuple[str, str, int]]]
) -> None:
    duckdb = pytest.importorskip("duckdb")
    parts = [
        " AND ".join(f"{'NOT ' if value == 2 else ''}({_sql(name, op, value)})"
                     for name, op, value in part)
        for part in terms
    ]  # fmt: skip
    condition = f"NOT (({') OR ('.join(parts)}))"
    values = ", ".join(
        "NULL::INT" if each is None else f"{each}::INT" for each in (row["id"], row["small"])
    )
    query = f"SELECT ({condition}) FROM (VALUES ({values})) AS t(id, small)"  # noqa: S608
    ((expected,),) = duckdb.connect().execute(query).fetchall()
    expression = parse_filter(condition, SCHEMA)
    found = evaluate_if_known(expression, lambda each: holds_for(each, row[each.column.name]))
    assert (found is True) == (expected is True)


def _sql(name: str, op: str, value: int) -> str:
    if "null" in op:
        return f"{name} {op.upper()}"
    return f"{name} {op} ({value}, 3)" if "in" in op else f"{name} {op} {value}"


def test_a_built_filter_passes() -> None:
    built = parse_filter("id = 5", SCHEMA)
    assert parse_filter(built, SCHEMA) == built
    assert parse_filter([("id", "in", [])], SCHEMA) == FALSE
    assert parse_filter(None, SCHEMA) == TRUE


@pytest.mark.parametrize("word", ["AND", "OR"])
@pytest.mark.parametrize("count", [400, 20_001])
def test_a_chain_may_be_of_any_length(word: str, count: int) -> None:
    text = f" {word} ".join(f"id <> {each}" for each in range(count))
    parts = cast(And | Or, parse_filter(text, SCHEMA)).parts

    assert isinstance(parse_filter("id <> 1 OR id <> 2", SCHEMA), Or)
    assert len(parts) == count
    assert text_of(parts[-1]) == f"id != {count - 1}"


def test_a_chain_of_both_words_means_what_it_says() -> None:
    assert shown("id = 1 OR id = 2 AND id = 3 OR NOT (id = 4 OR id = 5)") == (
        "id == 1 or (id == 2 and id == 3) or (id != 4 and id != 5)"
    )


def nested(part: Expression, deep: int) -> Expression:
    for _ in range(deep):
        part = Not(part)
    return part


@pytest.mark.parametrize(
    "where",
    [
        "(" * 100_000 + "id = 1" + ")" * 100_000,
        "NOT " * 100_000 + "id = 1",
        nested(TRUE, 100_000),
    ],
    ids=["brackets", "not", "built"],
)
def test_what_nests_too_deep_is_refused(where: Any) -> None:
    with pytest.raises(InvalidInputError, match="is no SQL condition|nests too deep"):
        parse_filter(where, SCHEMA)


DIGITS = "9" * 5_000


@pytest.mark.parametrize("column", ["id", "small", "price", "ratio", "single", "name", "day", "ts"])
@pytest.mark.parametrize(
    "number",
    [DIGITS, f"-{DIGITS}", f"{DIGITS}.5", "1e200000", "1e999999999", "1e-999999999"],
)
def test_a_number_beyond_all_columns_is_refused_soon(column: str, number: str) -> None:
    begun = time.monotonic()
    # Every FLOAT and DOUBLE is below what rounds to infinity, and above what rounds to zero.
    taken = column in {"ratio", "single"} and number.strip("-") != DIGITS
    with nullcontext() if taken else pytest.raises(InvalidInputError):
        parse_filter(f"{column} < {number}", SCHEMA)
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize(
    "number",
    [10**5_000, -(10**5_000), Decimal("1e999999999"), Decimal("1e-999999999")],
    ids=excerpt,
)
def test_a_number_of_pythons_beyond_all_columns_is_refused_soon(number: Any) -> None:
    begun = time.monotonic()
    for column in ("id", "price"):
        with pytest.raises(InvalidInputError, match=f"column {column} is"):
            parse_filter([(column, "<", number)], SCHEMA)
    assert time.monotonic() - begun < 1
