"""Scripts of engines that work through a REST catalog: Spark, PyIceberg, DuckDB.

Each is a function of the catalog's URI and its warehouse. It yields a name and an
observation per step; the observations of two servers are equal if both do what the engine asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, StructType
from pyiceberg.view.metadata import ViewVersion

from tests.projections.rest.catalog_observer import Observer
from tests.readers.engines import duckdb_connection
from tests.readers.iceberg_runtime import rest_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Step = tuple[str, Any]

_SPARK_TABLE = (
    "CREATE TABLE {t} (id BIGINT NOT NULL, name STRING COMMENT 'who', day DATE, "
    "place STRUCT<x: INT, y: INT>) USING iceberg PARTITIONED BY (bucket(2, id)) "
    "COMMENT 'orders' TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='copy-on-write', "
    "'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read')"
)
_MERGE = (
    "MERGE INTO {t} USING (SELECT * FROM VALUES (3L, 'three'), (8L, 'eight') AS v(id, title)) s "
    "ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET title = s.title "
    "WHEN NOT MATCHED THEN INSERT (id, title, place, qty) VALUES (s.id, s.title, NULL, 1)"
)
_FIRST_ROWS = (
    "INSERT INTO {t} VALUES (1L, 'a', DATE '2024-01-01', struct(1, 2)), "
    "(2L, 'b', DATE '2024-01-02', struct(3, 4)), (3L, 'c', NULL, NULL), "
    "(4L, NULL, DATE '2024-02-01', struct(NULL, 5))"
)

SPARK_TABLE = (
    _SPARK_TABLE,
    _FIRST_ROWS,
    "ALTER TABLE {t} RENAME COLUMN name TO title",
    "ALTER TABLE {t} ADD COLUMNS (qty INT COMMENT 'how many' AFTER id, place.z INT)",
    "ALTER TABLE {t} ALTER COLUMN qty TYPE BIGINT",
    "ALTER TABLE {t} ALTER COLUMN day COMMENT 'of the order'",
    (
        "INSERT INTO {t} VALUES (5L, 50L, 'e', DATE '2024-03-01', struct(7, 8, 9)), "
        "(6L, 60L, 'f', NULL, struct(1, 1, 1))"
    ),
    "ALTER TABLE {t} DROP COLUMN day",
    "ALTER TABLE {t} ALTER COLUMN title FIRST",
    "ALTER TABLE {t} ADD PARTITION FIELD truncate(1, title) AS initial",
    "ALTER TABLE {t} WRITE ORDERED BY id DESC NULLS LAST",
    "INSERT INTO {t} (id, title) VALUES (7L, 'g')",
    "ALTER TABLE {t} DROP PARTITION FIELD initial",
    "ALTER TABLE {t} SET TBLPROPERTIES ('owner.team'='sales', 'comment'='all orders')",
    "ALTER TABLE {t} UNSET TBLPROPERTIES ('owner.team')",
    "UPDATE {t} SET qty = 70 WHERE id = 7",
    "DELETE FROM {t} WHERE id = 2",
    _MERGE,
    "ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')",
    "DELETE FROM {t} WHERE title = 'eight'",
    "ALTER TABLE {t} CREATE TAG before_branch RETAIN 30 DAYS",
    "ALTER TABLE {t} CREATE BRANCH work WITH SNAPSHOT RETENTION 2 SNAPSHOTS",
    "INSERT INTO {t}.branch_work (id, title) VALUES (20L, 'branch')",
    "DELETE FROM {t}.branch_work WHERE id = 5",
    "CALL {c}.system.fast_forward('db.{n}', 'main', 'work')",
    "ALTER TABLE {t} CREATE OR REPLACE TAG before_branch",
    "ALTER TABLE {t} DROP BRANCH work",
    "INSERT OVERWRITE {t} SELECT 'over' AS title, id, qty, place FROM {t} WHERE id = 1",
    "CALL {c}.system.rollback_to_snapshot('db.{n}', {current - 1})",
    "CALL {c}.system.set_current_snapshot(table => 'db.{n}', ref => 'before_branch')",
    "STAGE INSERT INTO {t} (id, title) VALUES (30L, 'staged')",
    "INSERT INTO {t} (id, title) VALUES (31L, 'after')",
    "CALL {c}.system.cherrypick_snapshot('db.{n}', {staged})",
    "CALL {c}.system.rewrite_data_files(table => 'db.{n}', options => map('rewrite-all', 'true'))",
    "CALL {c}.system.rewrite_position_delete_files('db.{n}')",
    "CALL {c}.system.rewrite_manifests('db.{n}')",
    "CALL {c}.system.compute_table_stats(table => 'db.{n}', columns => array('id', 'title'))",
    "CALL {c}.system.compute_partition_stats('db.{n}')",
    "ALTER TABLE {t} DROP TAG before_branch",
    (
        "CALL {c}.system.expire_snapshots(table => 'db.{n}', older_than => TIMESTAMP "
        "'2200-01-01 00:00:00', retain_last => 2, clean_expired_metadata => true)"
    ),
    "ALTER TABLE {t} SET TBLPROPERTIES ('format-version'='3')",
    "DELETE FROM {t} WHERE id = 1",
    "INSERT INTO {t} (id, title) VALUES (40L, 'third')",
    "CREATE OR REPLACE TABLE {t} (id INT, note STRING) USING iceberg PARTITIONED BY (note)",
    "INSERT INTO {t} VALUES (1, 'new')",
    "CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT 2 AS id, 'again' AS note",
)
"""Statements on one table; `{t}` is its full name, `{c}` the catalog, `{n}` the table."""

SPARK_THIRD = (
    (
        "CREATE TABLE {t} (id BIGINT, v VARIANT) USING iceberg TBLPROPERTIES "
        "('format-version'='3', 'write.delete.mode'='merge-on-read')"
    ),
    "INSERT INTO {t} SELECT id, parse_json('{{\"a\": 1}}') FROM range(4)",
    "INSERT INTO {t} VALUES (9L, NULL)",
    "DELETE FROM {t} WHERE id = 2",
    "UPDATE {t} SET v = NULL WHERE id = 3",
    "CALL {c}.system.rewrite_data_files(table => 'db.{n}', options => map('rewrite-all', 'true'))",
)
"""Statements on a table of Iceberg's third version from its beginning."""

SPARK_VIEWS = (
    (
        "CREATE VIEW {c}.db.seen (id COMMENT 'key', label) COMMENT 'v' TBLPROPERTIES ('k'='1') "
        "AS SELECT id, note FROM {t}"
    ),
    "CREATE OR REPLACE VIEW {c}.db.seen AS SELECT id + 1 AS next FROM {t}",
    "ALTER VIEW {c}.db.seen SET TBLPROPERTIES ('k'='2', 'l'='3')",
    "ALTER VIEW {c}.db.seen UNSET TBLPROPERTIES ('l')",
)


def spark_script(spark: SparkSession, uri: str, warehouse: str) -> Iterator[Step]:
    """Run statements of every kind in Spark."""
    del warehouse
    name = f"rest{uri.rpartition(':')[2]}"
    with rest_catalog(spark, uri, name) as session:
        script = _SparkScript(session, uri, name)
        yield from script.namespace()
        yield from script.table("orders", SPARK_TABLE)
        yield from script.table("third", SPARK_THIRD)
        yield from script.views("orders")
        yield from script.end()


class _SparkScript:
    def __init__(self, session: SparkSession, uri: str, catalog: str) -> None:
        self.session = session
        self.catalog = catalog
        self.seen = Observer(uri, self._rows)
        self.staged = 0

    def namespace(self) -> Iterator[Step]:
        for each in (
            "CREATE NAMESPACE {c}.db COMMENT 'shop' WITH DBPROPERTIES ('kind'='test')",
            "ALTER NAMESPACE {c}.db SET PROPERTIES ('kind'='tests', 'more'='1')",
            "CREATE NAMESPACE IF NOT EXISTS {c}.db",
        ):
            self._sql(each.format(c=self.catalog))
        described = self._sql(f"DESCRIBE NAMESPACE EXTENDED {self.catalog}.db")
        yield "namespace", [each for each in described if each[0] in ("Comment", "Properties")]
        yield "namespaces", ("db",) in self._sql(f"SHOW NAMESPACES IN {self.catalog}")

    def table(self, name: str, statements: tuple[str, ...]) -> Iterator[Step]:
        for each in statements:
            said = self._statement(name, each)
            yield each, {"answer": said, **self.seen.table(name)}
        yield (
            f"history of {name}",
            self._sql(
                f"SELECT is_current_ancestor FROM {self.catalog}.db.{name}.history"  # noqa: S608
            ),
        )

    def views(self, table: str) -> Iterator[Step]:
        for each in SPARK_VIEWS:
            self._statement(table, each)
            rows = self._sql(f"SELECT * FROM {self.catalog}.db.seen")  # noqa: S608 - a name
            yield each, {**self._view("seen"), "rows": rows}
        self._sql(f"ALTER VIEW {self.catalog}.db.seen RENAME TO {self.catalog}.db.looked")
        yield "rename the view", {**self._view("looked"), "names": self.seen.names()}
        self._sql(f"DROP VIEW {self.catalog}.db.looked")
        yield "drop the view", self.seen.names()

    def end(self) -> Iterator[Step]:
        self._sql(f"ALTER TABLE {self.catalog}.db.orders RENAME TO db.renamed")
        yield "rename the table", {**self.seen.names(), **self.seen.table("renamed")}
        self._sql(f"DROP TABLE {self.catalog}.db.renamed PURGE")
        yield "purge", self.seen.names()
        self._sql(f"DROP TABLE {self.catalog}.db.third")
        self._sql(f"CREATE TABLE {self.catalog}.db.third (other STRING) USING iceberg")
        yield "create again after a drop", self.seen.table("third")
        self._sql(f"DROP TABLE {self.catalog}.db.third")
        self._sql(f"DROP NAMESPACE {self.catalog}.db")
        yield "no namespace", self.seen.namespaces()

    def _statement(self, name: str, statement: str) -> list[tuple[Any, ...]]:
        full = f"{self.catalog}.db.{name}"
        if statement.startswith("STAGE "):
            return self._stage(full, name, statement.removeprefix("STAGE "))
        places: dict[str, Any] = {"t": full, "c": self.catalog, "n": name, "staged": self.staged}
        if "{current - 1}" in statement:
            metadata = self.seen.metadata(name)
            places["current - 1"] = next(
                each["parent-snapshot-id"]
                for each in metadata["snapshots"]
                if each["snapshot-id"] == metadata["current-snapshot-id"]
            )
        return _counts(self._sql(statement.format(**places)))

    def _view(self, name: str) -> Any:
        # Its text names the catalog, which no two servers share.
        return json.loads(json.dumps(self.seen.view(name)).replace(self.catalog, "catalog"))

    def _stage(self, full: str, name: str, statement: str) -> list[tuple[Any, ...]]:
        """Write a snapshot that no ref reaches."""
        self._sql(f"ALTER TABLE {full} SET TBLPROPERTIES ('write.wap.enabled'='true')")
        self.session.conf.set("spark.wap.id", "later")
        try:
            self._sql(statement.format(t=full))
        finally:
            self.session.conf.unset("spark.wap.id")
        self.staged = max(self.seen.metadata(name)["snapshots"], key=_sequence)["snapshot-id"]
        return []

    def _rows(self, name: str, snapshot: int) -> list[str]:
        found = self._sql(f"SELECT * FROM {self.catalog}.db.{name} VERSION AS OF {snapshot}")  # noqa: S608
        return sorted(map(str, found))

    def _sql(self, statement: str) -> list[tuple[Any, ...]]:
        return [tuple(each) for each in self.session.sql(statement).collect()]


def _sequence(snapshot: dict[str, Any]) -> int:
    return int(snapshot["sequence-number"])


def _counts(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Leave out of an answer ids, sizes and paths, which no two runs share."""
    return [
        tuple(each for each in row if isinstance(each, int) and abs(each) < 100) for row in rows
    ]


def pyiceberg_script(uri: str, warehouse: str) -> Iterator[Step]:
    """Run what PyIceberg can do."""
    script = _PyIcebergScript(RestCatalog("rest", uri=uri, warehouse=warehouse), uri)
    yield from script.create()
    yield from script.columns()
    yield from script.rows_and_refs()
    yield from script.other_tables()
    yield from script.views()
    yield from script.end()


class _PyIcebergScript:
    _SCHEMA = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "name", StringType(), doc="who"),
        NestedField(
            3,
            "place",
            StructType(NestedField(4, "x", IntegerType()), NestedField(5, "y", LongType())),
        ),
        identifier_field_ids=[1],
    )

    def __init__(self, catalog: RestCatalog, uri: str) -> None:
        self.catalog = catalog
        self.seen = Observer(uri, self._rows, "py")

    @property
    def table(self) -> Table:
        found: Table = self.catalog.load_table("py.orders")
        return found

    def create(self) -> Iterator[Step]:
        self.catalog.create_namespace("py", {"kind": "test"})
        self.catalog.update_namespace_properties("py", removals={"kind"}, updates={"more": "1"})
        properties = self.catalog.load_namespace_properties("py")
        yield "namespace", {key: properties.get(key) for key in ("kind", "more")}
        spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
        owned = {"owner.team": "sales"}
        self.catalog.create_table("py.orders", self._SCHEMA, partition_spec=spec, properties=owned)
        yield self._step("create")
        self._append(*({"id": nth, "name": "ab"[nth % 2], "place": {"x": nth}} for nth in range(6)))
        yield self._step("append")

    def columns(self) -> Iterator[Step]:
        with self.table.update_schema() as change:
            change.rename_column("name", "title")
            change.add_column("qty", IntegerType(), doc="how many")
            change.add_column(("place", "z"), LongType())
        yield self._step("rename and add columns")
        with self.table.update_schema() as change:
            change.update_column("qty", LongType())
            change.move_first("qty")
            change.update_column("title", doc="of the order")
        yield self._step("widen, move and describe columns")
        with self.table.update_spec() as change:
            change.remove_field("name")
            change.add_field("qty", IdentityTransform(), "per_qty")
        yield self._step("change the partition spec")
        self._append({"id": 9, "title": "z", "qty": 1})
        yield self._step("append to the new spec")
        with self.table.update_schema() as change:
            change.delete_column(("place", "y"))
        yield self._step("drop a column")

    def rows_and_refs(self) -> Iterator[Step]:
        newest = self.table.current_snapshot()
        assert newest is not None
        self.table.manage_snapshots().create_tag(newest.snapshot_id, "kept").commit()
        self.table.manage_snapshots().create_branch(newest.snapshot_id, "work").commit()
        yield self._step("tag and branch")
        self.table.delete("id = 1")
        yield self._step("delete by filter")
        self.table.overwrite(self._arrow({"id": 2, "title": "over"}), "id = 2")
        yield self._step("overwrite by filter")
        self.table.append(self._arrow({"id": 11, "title": "branch"}), branch="work")
        yield self._step("append to a branch")
        self.table.manage_snapshots().remove_tag("kept").remove_branch("work").commit()
        yield self._step("remove tag and branch")
        with self.table.transaction() as transaction:
            transaction.set_properties({"a": "1", "b": "2"})
            transaction.remove_properties("owner.team")
        yield self._step("properties")

    def other_tables(self) -> Iterator[Step]:
        rows = pa.Table.from_pylist([{"id": 1, "name": "s"}], self._SCHEMA.as_arrow())
        with self.catalog.create_table_transaction("py.staged", self._SCHEMA) as transaction:
            transaction.set_properties({"k": "v"})
            transaction.append(rows)
        yield "create and append in one commit", self.seen.table("staged")
        self.catalog.rename_table("py.staged", "py.renamed")
        yield "rename", {**self.seen.names(), **self.seen.table("renamed")}
        location = self.catalog.load_table("py.renamed").metadata_location
        self.catalog.drop_table("py.renamed")
        self.catalog.register_table("py.again", location)
        yield "drop and register", {**self.seen.names(), **self.seen.table("again")}

    def views(self) -> Iterator[Step]:
        text = {"type": "sql", "sql": "SELECT id FROM py.orders", "dialect": "duckdb"}
        version = ViewVersion.model_validate(
            {"schema-id": 0, "representations": [text], "default-namespace": ["py"]}
        )
        schema = Schema(NestedField(1, "id", LongType()))
        self.catalog.create_view("py.seen", schema, version, properties={"k": "v"})
        yield "create a view", {**self.seen.names(), **self.seen.view("seen")}
        yield "views", [self.catalog.view_exists("py.seen"), self.catalog.view_exists("py.orders")]
        self.catalog.drop_view("py.seen")
        yield "drop the view", self.seen.names()

    def end(self) -> Iterator[Step]:
        self.catalog.purge_table("py.again")
        self.catalog.drop_table("py.orders")
        yield "drop", self.seen.names()
        self.catalog.drop_namespace("py")
        yield "no namespace", self.seen.namespaces()

    def _step(self, name: str) -> Step:
        return name, self.seen.table("orders")

    def _append(self, *rows: dict[str, Any]) -> None:
        self.table.append(self._arrow(*rows))

    def _arrow(self, *rows: dict[str, Any]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), self.table.schema().as_arrow())

    def _rows(self, name: str, snapshot: int) -> list[str]:
        found = self.catalog.load_table(f"py.{name}").scan(snapshot_id=snapshot).to_arrow()
        return sorted(map(str, found.to_pylist()))


DUCKDB_TABLE = (
    "CREATE TABLE {c}.duck.orders (id BIGINT, name VARCHAR, day DATE)",
    "INSERT INTO {c}.duck.orders VALUES (1, 'a', DATE '2024-01-01'), (2, 'b', NULL)",
    "INSERT INTO {c}.duck.orders SELECT range, 'r', NULL FROM range(3, 6)",
    "ALTER TABLE {c}.duck.orders ADD COLUMN qty INTEGER",
    "ALTER TABLE {c}.duck.orders RENAME COLUMN name TO title",
    "ALTER TABLE {c}.duck.orders ALTER COLUMN qty TYPE BIGINT",
    "ALTER TABLE {c}.duck.orders DROP COLUMN day",
    "INSERT INTO {c}.duck.orders VALUES (6, 'd', 5)",
    "CALL set_iceberg_table_properties({c}.duck.orders, {{'k': 'v', 'l': 'w'}})",
    "CALL remove_iceberg_table_properties({c}.duck.orders, ['l'])",
    "UPDATE {c}.duck.orders SET title = 'B' WHERE id = 2",
    "DELETE FROM {c}.duck.orders WHERE id = 1",
    (
        "MERGE INTO {c}.duck.orders USING (SELECT 9 AS id) s ON orders.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    ),
)
"""Statements on one table; `{c}` is the catalog."""

DUCKDB_TWO_TABLES = (
    "CREATE TABLE {c}.duck.parts (a INT, b VARCHAR) PARTITIONED BY (b)",
    "BEGIN",
    "INSERT INTO {c}.duck.orders (id) VALUES (10)",
    "INSERT INTO {c}.duck.parts VALUES (1, 'x'), (2, 'y')",
    "COMMIT",
    "BEGIN",
    "INSERT INTO {c}.duck.orders (id) VALUES (11)",
    "ROLLBACK",
)
"""Statements of transactions over two tables."""


def duckdb_script(uri: str, warehouse: str) -> Iterator[Step]:
    """Run what DuckDB's extension can do.

    A table is never created from a query: DuckDB would write into a folder that does not exist yet.
    """
    catalog = f"rest{uri.rpartition(':')[2]}"
    with duckdb_connection("httpfs", "avro", "iceberg") as connection:

        def rows(name: str, snapshot: int) -> list[str]:
            query = f"FROM {catalog}.duck.{name} AT (VERSION => {snapshot})"
            return sorted(map(str, connection.execute(query).fetchall()))

        seen = Observer(uri, rows, "duck")
        connection.execute(
            f"ATTACH '{warehouse}' AS {catalog} "
            f"(TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')"
        )
        connection.execute(f"CREATE SCHEMA {catalog}.duck")
        for each in DUCKDB_TABLE:
            connection.execute(each.format(c=catalog))
            yield each, seen.table("orders")
        for each in DUCKDB_TWO_TABLES:
            connection.execute(each.format(c=catalog))
        yield "two tables in a transaction", [seen.table("orders"), seen.table("parts")]
        found = connection.execute(f"FROM {catalog}.duck.orders ORDER BY ALL").fetchall()
        yield "rows now", found
        for each in ("orders", "parts"):
            connection.execute(f"DROP TABLE {catalog}.duck.{each}")
        yield "drop", seen.names()
        connection.execute(f"DROP SCHEMA {catalog}.duck")
        yield "no namespace", seen.namespaces()
        connection.execute(f"DETACH {catalog}")
