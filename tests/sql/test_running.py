"""Statements run on a real table, in one commit each."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ledger import ColumnNotFoundError, InvalidInputError, Schema, Table
from ledger.model import format_type
from tests.lakes import data_file, lake_on, memory


@pytest.fixture
def table() -> Table:
    lake = lake_on(memory())
    lake.create_database("db")
    schema = Schema.of({"id": "BIGINT NOT NULL", "ts": "TIMESTAMP(6)", "category": "STRING"})
    return lake.create_table("db.t", schema)


def test_one_statement_is_one_commit(table: Table) -> None:
    done = table.sql("ALTER TABLE db.t ADD COLUMNS (x INT, y STRING FIRST)", author="ann")
    assert done.version == 1
    assert done.state.schema.names == ("y", "id", "ts", "category", "x")
    (commit,) = table.events(1)
    assert commit.transactions[0].author == "ann"


def test_columns_that_are_there_are_not_added_again(table: Table) -> None:
    done = table.sql("ALTER TABLE t ADD COLUMN IF NOT EXISTS id INT")
    assert done.state.schema.field("id").id == 0
    assert table.sql("ALTER TABLE t DROP COLUMN IF EXISTS nobody").state.schema == done.state.schema


def test_the_layout_follows_the_statements(table: Table) -> None:
    table.sql("ALTER TABLE t ADD PARTITION FIELD months(ts)")
    state = table.sql("ALTER TABLE t REPLACE PARTITION FIELD ts_month WITH days(ts)").state
    assert [(each.name, each.transform) for each in state.spec.fields] == [("ts_day", "day")]
    state = table.sql("ALTER TABLE t WRITE ORDERED BY category DESC NULLS FIRST, id").state
    assert [each.direction for each in state.sort_order.fields] == ["desc", "asc"]
    assert state.schema.options["write.distribution-mode"] == "range"
    assert table.sql("ALTER TABLE t WRITE UNORDERED").state.sort_order.fields == ()


def test_a_bare_word_is_a_column_before_it_is_a_field(table: Table) -> None:
    table.sql("ALTER TABLE t ADD PARTITION FIELD category AS shelf")
    assert table.sql("ALTER TABLE t DROP PARTITION FIELD category").state.spec.fields == ()
    table.sql("ALTER TABLE t ADD PARTITION FIELD bucket(4, id) AS shard")
    assert table.sql("ALTER TABLE t DROP PARTITION FIELD shard").state.spec.fields == ()


def test_tags_and_identifier_fields(table: Table) -> None:
    table.append([replace(data_file("a.parquet"), partition=())])
    assert table.sql("ALTER TABLE t CREATE OR REPLACE TAG v1").state.tags["v1"].snapshot_id == 1
    table.append([replace(data_file("b.parquet"), partition=())])
    state = table.sql("ALTER TABLE t CREATE OR REPLACE TAG v1 RETAIN 1 HOURS").state
    assert (state.tags["v1"].snapshot_id, state.tags["v1"].time_retained_millis) == (2, 3_600_000)
    assert table.sql("ALTER TABLE t DROP TAG v1").state.tags == {}
    assert table.sql("ALTER TABLE t DROP TAG IF EXISTS v1").state.tags == {}
    assert table.sql(
        "ALTER TABLE t SET IDENTIFIER FIELDS id"
    ).state.schema.identifier_field_ids == (0,)
    assert (
        table.sql("ALTER TABLE t DROP IDENTIFIER FIELDS id").state.schema.identifier_field_ids == ()
    )
    with pytest.raises(ColumnNotFoundError, match="id is no identifier field; there are: none"):
        table.sql("ALTER TABLE t DROP IDENTIFIER FIELDS id")


def test_a_statement_about_another_table_is_refused(table: Table) -> None:
    with pytest.raises(InvalidInputError, match=r"alters other\.t, and this is db\.t"):
        table.sql("ALTER TABLE other.t DROP COLUMN id")
    with pytest.raises(InvalidInputError, match="a table's name is its ledger's"):
        table.sql("ALTER TABLE db.t RENAME TO db.u")
    assert table.state.version == 0


@pytest.mark.parametrize("null", ["NULL", "null"])
def test_a_default_of_null_is_no_default(table: Table, null: str) -> None:
    table.sql(f"ALTER TABLE t ADD COLUMN q STRING DEFAULT {null} AFTER id")
    table.sql(f"ALTER TABLE t ADD COLUMN r STRUCT<a: STRING DEFAULT {null}>")
    table.sql("ALTER TABLE t ALTER COLUMN category SET DEFAULT 'NULL'")
    schema = table.state.schema
    assert schema.field("q").default_value is None
    assert format_type(schema.field("r").type) == "ROW<`a` STRING>"
    assert schema.field("category").default_value == "NULL"
    table.sql(f"ALTER TABLE t ALTER COLUMN category SET DEFAULT {null}")
    assert table.state.schema.field("category").default_value is None
