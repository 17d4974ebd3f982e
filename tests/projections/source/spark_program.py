"""A user's Spark program, in a session of a given configuration.

Run as `python -m tests.projections.source.spark_program JSON`. It writes, reads and follows a
ledger, and prints a JSON document that is the same under every configuration.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo

from attrs import frozen

import ledger
from ledger import Schema, Table
from ledger.table_handle import handle_of
from ledger.transforms import day, identity
from projections.source import distribute, register, tiles, write
from projections.statistics import Kept, refresh, spark_session, verify
from projections.statistics.spark_executors import SparkEngine
from projections.statistics.spark_many import refresh_all
from projections.statistics.spark_source import LogSource
from tests.projections.statistics.lives import listed_partitions
from tests.readers import delta_runtime, iceberg_runtime

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Place = Literal["classic", "connect", "local-cluster", "standalone"]

NAME = "shop.visits"
COLUMNS = {
    "id": "BIGINT",
    "day": "DATE",
    "seen": "TIMESTAMP_LTZ(6)",
    "opened": "TIMESTAMP_LTZ(6)",
    "noted": "TIMESTAMP(6)",
    "price": "DECIMAL(10, 2)",
    "page": "ROW<path STRING, ms INT>",
}
_UTC = ZoneInfo("UTC")


@frozen(kw_only=True)
class Configuration:
    """Configuration of a Spark session.

    Attributes:
        place: Where the driver's session and the executors are.
        ansi: Whether casts and arithmetic are ANSI SQL's.
        case_sensitive: Whether upper and lower case of columns differ.
        zone: The session's time zone.
        iceberg: Whether the session has Iceberg's extensions and a catalog of it.
        delta: Whether the session has Delta's extensions and its catalog.
    """

    place: Place
    ansi: bool
    case_sensitive: bool
    zone: str
    iceberg: bool = False
    delta: bool = False

    @property
    def jars(self) -> tuple[str, ...]:
        """Maven coordinates of the extensions."""
        iceberg = (iceberg_runtime.COORDINATES,) if self.iceberg else ()
        return (*iceberg, *(delta_runtime.COORDINATES if self.delta else ()))

    def settings(self, folder: str) -> dict[str, str]:
        """Return the session's settings; catalogs and folders of Spark are below `folder`."""
        found = {
            "spark.sql.ansi.enabled": str(self.ansi).lower(),
            "spark.sql.caseSensitive": str(self.case_sensitive).lower(),
            "spark.sql.session.timeZone": self.zone,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        }
        extensions = []
        if self.iceberg:
            extensions.append("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
            found["spark.sql.catalog.ice"] = "org.apache.iceberg.spark.SparkCatalog"
            found["spark.sql.catalog.ice.type"] = "hadoop"
            found["spark.sql.catalog.ice.warehouse"] = f"{folder}/ice"
        if self.delta:
            extensions.append("io.delta.sql.DeltaSparkSessionExtension")
            catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
            found["spark.sql.catalog.spark_catalog"] = catalog
        if extensions:
            found["spark.sql.extensions"] = ",".join(extensions)
            found["spark.jars.packages"] = ",".join(self.jars)
        return found


@frozen(kw_only=True)
class Work:
    """A run of the program.

    Attributes:
        configuration: The session's.
        master: Spark's master.
        folder: Folder of the ledger and of all other files.
        root: The folder of the code.
    """

    configuration: Configuration
    master: str
    folder: str
    root: str

    def session(self) -> SparkSession:
        """Start the session."""
        from pyspark.sql import SparkSession

        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executorEnv.PYTHONPATH": self.root,
            "spark.executor.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            **self.configuration.settings(self.folder),
        }
        is_connect = self.configuration.place == "connect"
        start = SparkSession.builder
        builder = start.remote(self.master) if is_connect else start.master(self.master)
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


@frozen
class User:
    """Reads and writes a ledger through a session."""

    spark: SparkSession
    zone: str
    folder: str
    table: Table
    others: tuple[Table, ...]

    @property
    def url(self) -> str:
        """The ledger's root."""
        return handle_of(self.table).ledger_url

    def rows(self, first: int, last: int) -> DataFrame:
        """Return visits of three days, in two tasks; they opened at noon of the session's zone."""
        return self.spark.range(first, last, 1, 2).selectExpr(
            "id",
            "DATE '2026-01-01' + CAST(id % 3 AS INT) AS day",
            # An hour after midnight in Greenwich, when it is still yesterday in America.
            "timestamp_seconds(1767229200 + 86400 * (id % 3)) AS seen",
            "TIMESTAMP_NTZ '2026-01-01 12:00:00.000007' AS opened",
            "TIMESTAMP_NTZ '2026-01-01 12:00:00.000007' AS noted",
            "CAST(id AS DECIMAL(10, 2)) / 4 AS price",
            "named_struct('ms', CAST(id AS INT), 'path', concat('/', id)) AS page",
        )

    def write_all(self) -> None:
        """Write versions 1 to 4: a batch, a plain append, an overwrite, a stream."""
        write(self.rows(0, 12), self.table, message="the first")
        spelled = with_instants(self.rows(12, 18)).withColumnsRenamed({"id": "ID", "page": "Page"})
        plain = spelled.write.format("ledger").option("table", NAME).option("author", "bob")
        plain.mode("append").save(self.url)
        second = with_instants(self.rows(18, 30)).where("day = DATE '2026-01-02'")
        writer = second.write.format("ledger").option("table", NAME).option("author", "eve")
        writer.option("partitionOverwriteMode", "dynamic").mode("overwrite").save(self.url)
        self.rows(30, 33).coalesce(1).write.parquet(f"{self.folder}/incoming")
        source = self.spark.readStream.schema(self.rows(0, 0).schema)
        stream = distribute(source.parquet(f"{self.folder}/incoming"), self.table).writeStream
        stream = stream.option("checkpointLocation", f"{self.folder}/checkpoint")
        stream = stream.format("ledger").option("table", NAME).option("author", "fay")
        stream.trigger(availableNow=True).start(self.url).awaitTermination()

    def is_refused(self) -> bool:
        """Return whether rows that do not fit are an error without a commit."""
        from pyspark.errors import PySparkException

        before = self.table.at().version
        rows = self.rows(0, 3)
        try:
            write(rows.withColumn("price", rows["day"]), self.table)
        except PySparkException as error:
            return "price" in str(error) and self.table.at().version == before
        return False

    def stored_rows(self) -> Iterator[list[Any]]:
        """Yield the rows of the files, as Arrow reads them, with instants in the session's zone."""
        from pyarrow.parquet import ParquetFile

        location = self.table.location.removeprefix("file://")
        for each in self.table.at().files:
            for row in ParquetFile(f"{location}/{each.path}").read().to_pylist():
                opened = row["opened"].astimezone(ZoneInfo(self.zone)).replace(tzinfo=None)
                seen = row["seen"].astimezone(_UTC)
                known = {**row, "seen": seen, "opened": opened}
                yield [str(known[name]) for name in COLUMNS]

    def load(self, view: str, **options: str) -> DataFrame:
        """Return a view of the table."""
        asked = self.spark.read.format("ledger").option("table", NAME).option("view", view)
        return asked.options(**options).load(self.url)

    def views(self) -> dict[str, object]:
        """Return rows of the views and functions in SQL."""
        register(self.spark, self.url, tables="shop.*", tasks=2)
        ask = self.spark.sql
        files = ask("SELECT version, kind, record_count FROM ledger_files")
        snapshots = ask("SELECT version, commit_kind, record_count FROM ledger_snapshots")
        partitions = ask(
            "SELECT partition['day'], partition['seen_day'], record_count FROM ledger_partitions"
        )
        changes = tiles(self.spark, self.table).groupBy("partition_values.day").sum("record_count")
        options = f"path '{self.url}', `table` '{NAME}', view 'events'"
        # Where the session's catalog is not Spark's own, Spark reads its tables by interfaces that
        # sources in Python do not have.
        if self.spark.conf.get("spark.sql.catalog.spark_catalog", None) in (None, "builtin"):
            ask(f"CREATE TABLE kept USING ledger OPTIONS ({options})")
        else:
            ask(f"CREATE TEMPORARY VIEW kept USING ledger OPTIONS ({options}, viewTasks 8)")
        return {
            "log": _sorted(ask("SELECT version, author, kind FROM ledger_log('shop.visits')")),
            "kept": _sorted(ask("SELECT version, type FROM kept")),
            "snapshots": _sorted(snapshots),
            "files": _sums(_sorted(files)),
            "partitions": _sorted(partitions),
            "tiles": _sorted(changes.selectExpr("CAST(day AS STRING)", "`sum(record_count)`")),
        }

    def commits(self) -> dict[str, object]:
        """Return the commits, and those that filters on local times find."""
        local = [_local(each.time_millis, self.zone) for each in self.table.events()]
        since, until = (f"TIMESTAMP '{local[each]}'" for each in (2, 4))
        wanted = f"time >= {since} AND {until} > time"
        commits = self.load("commits")
        texts = commits.selectExpr("version", "date_format(time, 'yyyy-MM-dd HH:mm:ss.SSS')")
        pushed = self.load("commits", filters="pushed").where(wanted)
        return {
            "commits": _sorted(commits.select("version", "author", "message")),
            "times are local": _sorted(texts) == [list(each) for each in enumerate(local)],
            "filtered": _sorted(commits.where(wanted).select("version")),
            "pushed": _sorted(pushed.select("version")),
        }

    def followed(self) -> list[list[Any]]:
        """Return the commits of all tables that a stream brings."""
        asked = self.spark.readStream.format("ledger").option("table", "*")
        commits = asked.option("view", "commits").load(self.url)
        followed = commits.writeStream.format("memory").queryName("followed")
        followed.trigger(availableNow=True).start().awaitTermination()
        return _sorted(self.spark.table("followed").select("identifier", "version"))

    def copies(self, configuration: Configuration) -> set[int]:
        """Return the numbers of commits in tables of other formats that they are copied into."""
        versions = self.load("commits").select("version")
        found = set()
        if configuration.iceberg:
            versions.writeTo("ice.log.commits").using("iceberg").create()
            # These statements are parsed by the extensions alone.
            self.spark.sql("ALTER TABLE ice.log.commits WRITE ORDERED BY version")
            found.add(self.spark.table("ice.log.commits").count())
        if configuration.delta:
            versions.write.format("delta").save(f"{self.folder}/delta")
            self.spark.sql(f"DESCRIBE HISTORY delta.`{self.folder}/delta`").collect()
            found.add(self.spark.read.format("delta").load(f"{self.folder}/delta").count())
        return found

    def statistics(self) -> dict[str, object]:
        """Return partitions by statistics that executors wrote, and a refresh of all tables."""
        assert spark_session() is self.spark
        log = handle_of(self.table).log
        position = refresh(log, SparkEngine(self.spark, LogSource.of(self.table)))
        listed = listed_partitions(Kept.of(log), self.table.at())
        return {
            "version": position.version,
            "verified": verify(log).is_empty,
            "every": [
                [each.table, each.version, each.problem]
                for each in refresh_all([self.table, *self.others], spark=self.spark)
            ],
            "partitions": sorted([*each.spec.values(), each.record_count] for each in listed),
        }


def with_instants(rows: DataFrame) -> DataFrame:
    """Return the rows for the plain writer, which does not know the session's zone."""
    return rows.withColumn("opened", rows["opened"].cast("timestamp"))


def _local(millis: int, zone: str) -> str:
    moment = dt.datetime.fromtimestamp(millis / 1000, _UTC).astimezone(ZoneInfo(zone))
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{millis % 1000:03d}"


def _sorted(rows: DataFrame) -> list[list[Any]]:
    return sorted([list(each) for each in rows.collect()], key=repr)


def _sums(files: list[list[Any]]) -> list[list[Any]]:
    """Return the rows in the added and removed files of each version: tasks decide on files."""
    sums: dict[tuple[int, str], int] = {}
    for version, kind, count in files:
        sums[version, kind] = sums.get((version, kind), 0) + count
    return [[*place, count] for place, count in sorted(sums.items())]


def document(work: Work, spark: SparkSession) -> dict[str, object]:
    """Do all of it."""
    register(spark)
    lake = ledger.open(f"{work.folder}/lake", author="ada")
    lake.create_database("shop")
    lake.create_table(NAME, Schema.of(COLUMNS), partition_spec=[identity("day"), day("seen")])
    empty = lake.create_table("shop.empty", Schema.of({"id": "BIGINT"}))
    user = User(spark, work.configuration.zone, work.folder, lake.table(NAME), (empty,))
    user.write_all()
    assert user.copies(work.configuration) <= {5}
    return {
        "refused": user.is_refused(),
        "rows": sorted(user.stored_rows(), key=lambda row: int(row[0])),
        **user.views(),
        **user.commits(),
        "followed": user.followed(),
        "statistics": user.statistics(),
    }


def main() -> None:
    """Run as a driver."""
    given = json.loads(sys.argv[1])
    work = Work(**{**given, "configuration": Configuration(**given["configuration"])})
    Path(work.folder).mkdir(exist_ok=True)
    spark = work.session()
    asked = work.configuration.settings(work.folder).items()
    for key, value in asked:
        if key.startswith("spark.sql.") and key != "spark.sql.extensions":
            found = spark.conf.get(key)
            assert found == value or key == "spark.sql.warehouse.dir", (key, found)
    sys.stdout.write(f"{json.dumps(document(work, spark))}\n")
    spark.stop()


if __name__ == "__main__":
    main()
