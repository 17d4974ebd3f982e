"""The changes of each clause of ALTER TABLE, and the position of the fault in a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from ledger import (
    AddColumn,
    AddPartitionField,
    DropColumn,
    InvalidInputError,
    Move,
    RemoveOption,
    RemovePartitionField,
    RenameColumn,
    RenamePartitionField,
    ReplaceSortOrder,
    SetIdentifierFields,
    SetOption,
    SortColumn,
    UndropColumn,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ledger.decide import CreateTag, DeleteTag, ReplaceTag
from ledger.model import format_type, type_to_wire
from ledger.model.types.sql import read_spark_type
from ledger.sql.parser import (
    ConditionalColumnChange,
    ConditionalTagChange,
    DropIdentifierFields,
    PartitionSpecClause,
    RemovePartitionTerm,
)
from ledger.sql.statement import AlterTable, RenameStatement, parse


def wire(text: str) -> Any:
    return type_to_wire(read_spark_type(text))


COLUMNS = [
    ("ADD COLUMN x INT", [AddColumn(("x",), "INT")]),
    ("add columns (x int, y string)", [AddColumn(("x",), "INT"), AddColumn(("y",), "STRING")]),
    (
        "ADD COLUMN point.z DOUBLE COMMENT 'the height' AFTER y",
        [AddColumn(("point", "z"), "DOUBLE", "the height", Move("z", "AFTER", "y"))],
    ),
    ("ADD COLUMNS (x: INT, y : long)", [AddColumn(("x",), "INT"), AddColumn(("y",), "BIGINT")]),
    ("ADD COLUMN x timestamp[us, tz=UTC]", [AddColumn(("x",), wire("timestamptz"))]),
    (
        "ADD COLUMN x array<array<int>> FIRST",
        [
            AddColumn(("x",), wire("ARRAY<ARRAY<INT>>"), None, Move("x", "FIRST")),
        ],
    ),
    ("ADD COLUMN x INT FIRST", [AddColumn(("x",), "INT", None, Move("x", "FIRST"))]),
    ("ADD COLUMN x INT NOT NULL DEFAULT 7", [AddColumn(("x",), "INT NOT NULL", None, None, "7")]),
    ("ADD COLUMN x INT COMMENT 'it' 's'", [AddColumn(("x",), "INT", "its")]),
    ("ADD COLUMN `a b`.`c.d` ARRAY<INT>", [AddColumn(("a b", "c.d"), wire("ARRAY<INT>"))]),
    (
        "ADD COLUMN IF NOT EXISTS x INT",
        [ConditionalColumnChange(("x",), change=AddColumn(("x",), "INT"), exists=False)],
    ),
    ("DROP COLUMN a.b", [DropColumn(("a", "b"))]),
    ("DROP COLUMNS (a, b)", [DropColumn(("a",)), DropColumn(("b",))]),
    ("UNDROP COLUMN a.b", [UndropColumn(("a", "b"))]),
    (
        "UNDROP COLUMNS (a ID 7 FIRST, b AFTER c)",
        [
            UndropColumn(("a",), 7, Move("a", "FIRST")),
            UndropColumn(("b",), None, Move("b", "AFTER", "c")),
        ],
    ),
    (
        "DROP COLUMN IF EXISTS a",
        [ConditionalColumnChange(("a",), change=DropColumn(("a",)), exists=True)],
    ),
    ("RENAME COLUMN a.b TO c", [RenameColumn(("a", "b"), "c")]),
    ("ALTER COLUMN a TYPE bigint", [UpdateColumnType(("a",), "BIGINT", keep_nullability=True)]),
    (
        "ALTER COLUMN m.value TYPE decimal(12, 2)",
        [UpdateColumnType(("m", "value"), "DECIMAL(12, 2)", keep_nullability=True)],
    ),
    ("ALTER COLUMN a COMMENT ''", [UpdateColumnComment(("a",), "")]),
    ("ALTER COLUMN a DROP NOT NULL", [UpdateColumnNullability(("a",), new_nullability=True)]),
    ("ALTER COLUMN a SET NOT NULL", [UpdateColumnNullability(("a",), new_nullability=False)]),
    ("ALTER COLUMN a SET DEFAULT -1", [UpdateColumnDefaultValue(("a",), "-1")]),
    ("ALTER COLUMN a DROP DEFAULT", [UpdateColumnDefaultValue(("a",))]),
    ("ALTER COLUMN a FIRST", [UpdateColumnPosition(Move("a", "FIRST"))]),
    ("ALTER COLUMN p.a AFTER b", [UpdateColumnPosition(Move("a", "AFTER", "b"), ("p", "a"))]),
    (
        "ALTER COLUMN a TYPE bigint, b COMMENT 'x'",
        [
            UpdateColumnType(("a",), "BIGINT", keep_nullability=True),
            UpdateColumnComment(("b",), "x"),
        ],
    ),
]
PROPERTIES = [
    ("SET TBLPROPERTIES ('a'='b', c.d=1, 'e' 'f')", None),
    ("SET TBLPROPERTIES ('a'='b', c.d=1)", [SetOption("a", "b"), SetOption("c.d", "1")]),
    ("SET TBLPROPERTIES ('comment'='orders')", [UpdateComment("orders")]),
    ("UNSET TBLPROPERTIES ('a', 'comment')", [RemoveOption("a"), UpdateComment()]),
    ("UNSET TBLPROPERTIES IF EXISTS ('a')", [RemoveOption("a")]),
]
LAYOUT = [
    ("ADD PARTITION FIELD category", [PartitionSpecClause((AddPartitionField(("category",)),))]),
    (
        "ADD PARTITION FIELD bucket(16, id) AS shard",
        [PartitionSpecClause((AddPartitionField(("id",), "bucket[16]", "shard"),))],
    ),
    (
        "ADD PARTITION FIELD truncate(data, 4)",
        [PartitionSpecClause((AddPartitionField(("data",), "truncate[4]"),))],
    ),
    (
        "ADD PARTITION FIELD hours(a.ts)",
        [PartitionSpecClause((AddPartitionField(("a", "ts"), "hour"),))],
    ),
    ("ADD PARTITION FIELD day(ts)", [PartitionSpecClause((AddPartitionField(("ts",), "day"),))]),
    ("DROP PARTITION FIELD shard", [PartitionSpecClause((RemovePartitionTerm("shard"),))]),
    (
        "DROP PARTITION FIELD years(ts)",
        [PartitionSpecClause((RemovePartitionField(None, ("ts",), "year"),))],
    ),
    (
        "REPLACE PARTITION FIELD ts_day WITH months(ts) AS m",
        [
            PartitionSpecClause(
                (RemovePartitionTerm("ts_day"), AddPartitionField(("ts",), "month", "m"))
            )
        ],
    ),
    ("RENAME PARTITION FIELD a TO b", [PartitionSpecClause((RenamePartitionField("a", "b"),))]),
    (
        "WRITE ORDERED BY category ASC NULLS LAST, bucket(4, id) DESC",
        [
            ReplaceSortOrder(
                (
                    SortColumn(("category",), "identity", "asc", "nulls-last"),
                    SortColumn(("id",), "bucket[4]", "desc"),
                )
            ),
            SetOption("write.distribution-mode", "range"),
        ],
    ),
    (
        "WRITE LOCALLY ORDERED BY id",
        [ReplaceSortOrder((SortColumn(("id",)),)), SetOption("write.distribution-mode", "none")],
    ),
    (
        "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id",
        [ReplaceSortOrder((SortColumn(("id",)),)), SetOption("write.distribution-mode", "hash")],
    ),
    ("WRITE UNORDERED", [ReplaceSortOrder(()), SetOption("write.distribution-mode", "none")]),
    (
        "WRITE DISTRIBUTED BY PARTITION",
        [ReplaceSortOrder(()), SetOption("write.distribution-mode", "hash")],
    ),
    ("SET IDENTIFIER FIELDS id, a.b", [SetIdentifierFields((("id",), ("a", "b")))]),
    ("DROP IDENTIFIER FIELDS id", [DropIdentifierFields((("id",),))]),
]
TAGS = [
    ("CREATE TAG v1", [CreateTag("v1")]),
    ("CREATE TAG `v 1` AS OF VERSION 3 RETAIN 2 DAYS", [CreateTag("v 1", 3, 172_800_000)]),
    ("CREATE TAG IF NOT EXISTS v1", [ConditionalTagChange(CreateTag("v1"), exists=False)]),
    (
        "CREATE OR REPLACE TAG v1 AS OF VERSION 2",
        [
            ConditionalTagChange(CreateTag("v1", 2), exists=False),
            ConditionalTagChange(ReplaceTag("v1", 2), exists=True),
        ],
    ),
    ("REPLACE TAG v1 RETAIN 5 MINUTES", [ReplaceTag("v1", None, 300_000)]),
    ("DROP TAG v1", [DeleteTag("v1")]),
    ("DROP TAG IF EXISTS v1", [ConditionalTagChange(DeleteTag("v1"), exists=True)]),
]


@pytest.mark.parametrize(
    ("clause", "asked"),
    [each for each in [*COLUMNS, *PROPERTIES, *LAYOUT, *TAGS] if each[1] is not None],
)
def test_a_clause_asks_for(clause: str, asked: list[Any]) -> None:
    statement = parse(f"ALTER TABLE shop.orders {clause};  -- why")
    assert isinstance(statement, AlterTable)
    assert list(statement.asked) == asked


def test_a_table_gets_another_name() -> None:
    assert parse("ALTER TABLE a.b RENAME TO a.c") == RenameStatement(("a", "b"), ("a", "c"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected ALTER TABLE at the end"),
        ("SELECT 1", "expected ALTER TABLE at position 1"),
        ("ALTER TABLE", "expected a name at the end"),
        ("ALTER TABLE t", "expected one of RENAME TO, ADD PARTITION FIELD"),
        ("ALTER TABLE t ADD COLUMN", "expected a name at the end"),
        ("ALTER TABLE t ADD COLUMN x", "expected a data type"),
        ("ALTER TABLE t ADD COLUMN x INTT", "INTT is not read as a type"),
        ("ALTER TABLE t ADD COLUMN x INT FRST", "INT FRST"),
        ("ALTER TABLE t ADD COLUMN x INT AFTER", "expected a name at the end"),
        ("ALTER TABLE t ADD COLUMN x INT COMMENT y", "expected a text in quotes at position"),
        ("ALTER TABLE t ADD COLUMNS (x INT", "expected ) at the end"),
        ("ALTER TABLE t ALTER COLUMN x UP", "expected TYPE, COMMENT"),
        ("ALTER TABLE t DROP TAG a b", "expected the end of the statement at position 26"),
        ("ALTER TABLE t CREATE TAG a RETAIN 3 WEEKS", "expected DAYS, HOURS, MINUTES"),
        ("ALTER TABLE t CREATE TAG a AS OF VERSION x", "expected a whole number"),
        ("ALTER TABLE t ADD PARTITION FIELD bucket(id)", "expected ,"),
        ("ALTER TABLE t WRITE SOMEHOW", "expected ORDERED BY"),
        ("ALTER TABLE t SET TBLPROPERTIES ('a'=", "expected a value"),
        ("ALTER TABLE t DROP COLUMN 'a'", "expected a name"),
        ("ALTER TABLE t DROP COLUMN 'a", "close every quote"),
        ("ALTER TABLE t DROP TAG a; ALTER TABLE t DROP TAG b", "expected the end of the statement"),
    ],
)
def test_a_wrong_statement_says_where(text: str, said: str) -> None:
    with pytest.raises(
        InvalidInputError, match="(?s)" + said.replace("(", r"\(").replace(")", r"\)")
    ):
        parse(text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("long", "BIGINT"),
        ("timestamp", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("timestamp_ntz", "TIMESTAMP(6)"),
        ("decimal", "DECIMAL(10, 0)"),
        ("string", "STRING"),
        (
            "struct<a: int, b: array<string> comment 'x'>",
            "ROW<`a` INT, `b` ARRAY<STRING> COMMENT 'x'>",
        ),
        ("map<string, struct<x int not null>>", "MAP<STRING, ROW<`x` INT NOT NULL>>"),
        ("MULTISET<INT>", "MULTISET<INT>"),
        ("varchar(10)", "VARCHAR(10)"),
        ("char(5)", "CHAR(5)"),
        ("struct<a: varchar(3)>", "ROW<`a` VARCHAR(3)>"),
        ("BLOB", "BLOB"),
        ("TIMESTAMP(3)", "TIMESTAMP(3)"),
        ("timestamptz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ],
)
def test_a_type_is_sparks_or_the_ledgers(text: str, read: str) -> None:
    assert format_type(read_spark_type(text)) == read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("varchar(0)", "out of range"),
        ("varchar(99999999999)", "out of range"),
        ("char", "CHAR needs a length"),
        ("string collate utf8_lcase", "cannot read type"),
        ("int) using parquet (", "cannot read type"),
        ("array<" * 3_000 + "int" + ">" * 3_000, "nests deeper than 100"),
    ],
    ids=lambda each: each[:30],
)
def test_what_a_type_says_is_never_left_out(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        read_spark_type(text)
