"""Paimon's own Java core, spoken to through the JVM of a Spark session.

It is what Paimon's Spark and Flink connectors read tables with.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COORDINATES = "org.apache.paimon:paimon-bundle:1.4.2"


class PaimonUnavailableError(Exception):
    """Maven Central could not be reached, so there is nothing to read with."""


def java_classes(spark: SparkSession) -> Any:
    """Return a class loader with Paimon's jar, fetched by Ivy from Maven Central or its caches.

    Raises:
        PaimonUnavailableError: It is in no cache, and Maven Central does not answer.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # ships none
    from pyspark.errors import PySparkException

    try:
        spark.sql(f"ADD JAR 'ivy://{COORDINATES}?transitive=false'")
    except (Py4JJavaError, PySparkException) as error:
        if "unresolved dependency" not in str(error):
            raise
        raise PaimonUnavailableError(
            f"{COORDINATES} is in no Ivy or Maven cache, and Maven Central gives no answer"
        ) from error
    return spark._jsparkSession.sharedState().jarClassLoader()


@frozen
class JavaPaimon:
    """A catalog of a warehouse, and what it reads, as text.

    Py4J calls only methods of public classes, and most of Paimon's are not: every call goes
    through the public interface that has it.
    """

    _gateway: Any
    _loader: Any
    _before: Any
    _catalog: Any
    _database: str = "shop"

    @classmethod
    def start(cls, spark: SparkSession, warehouse: str) -> JavaPaimon:
        """Load Paimon's classes, and open a catalog of files.

        Raises:
            PaimonUnavailableError: It is in no cache, and Maven Central does not answer.
        """
        loader = java_classes(spark)
        jvm, gateway = spark._jvm, spark.sparkContext._gateway
        assert jvm is not None
        thread = jvm.java.lang.Thread.currentThread()
        before = thread.getContextClassLoader()
        thread.setContextClassLoader(loader)
        return cls(gateway, loader, before, _catalog(jvm, warehouse))

    def elsewhere(self, warehouse: str, database: str) -> JavaPaimon:
        """Return a catalog of another warehouse."""
        catalog = _catalog(self._gateway.jvm, warehouse)
        return evolve(self, catalog=catalog, database=database)

    def stop(self) -> None:
        """Leave the JVM's thread as it was."""
        self._gateway.jvm.java.lang.Thread.currentThread().setContextClassLoader(self._before)

    def rows(
        self,
        name: str,
        options: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
        equal: tuple[str, Any] | None = None,
    ) -> tuple[list[str], list[str]]:
        """Return a table's column names, and its rows as Paimon casts them to text.

        Times have six decimals whatever their precision, and an empty array looks like a map.

        Args:
            name: Of the table, in its database.
            options: Such as `scan.snapshot-id`.
            columns: All when None.
            equal: A column and a value; files that cannot hold it are passed over, other rows of
                the files that can are not.
        """
        table = self._table(name, options or {})
        fields = self._call("table.Table", "rowType", table)
        builder = self._call("table.Table", "newReadBuilder", table)
        if equal is not None:
            predicate = self._equal(fields, *equal)
            builder = self._call("table.source.ReadBuilder", "withFilter", builder, predicate)
        if columns is not None:
            fields = fields.project(self._strings(columns))
            wanted = {"org.apache.paimon.types.RowType": fields}
            builder = self._call("table.source.ReadBuilder", "withReadType", builder, wanted)
        return list(fields.getFieldNames()), list(self._texts(builder, fields))

    def truncate(self, name: str) -> None:
        """Commit that a table has no rows.

        Raises:
            Py4JJavaError: Paimon refuses the commit.
        """
        table = self._table(name, {})
        builder = self._call("table.Table", "newBatchWriteBuilder", table)
        commit = self._call("table.sink.BatchWriteBuilder", "newCommit", builder)
        self._call("table.sink.BatchTableCommit", "truncateTable", commit)

    def statistics(self, name: str) -> dict[str, tuple[str | None, str | None, int]]:
        """Return least and greatest value and nulls of each column that was analysed, as text."""
        found = self._call("table.Table", "statistics", self._table(name, {})).get().colStats()
        return {
            column: (_text(each.min()), _text(each.max()), each.nullCount().orElse(-1))
            for column, each in ((key, found.get(key)) for key in found.keySet())
        }

    def distinct(self, name: str) -> dict[str, int]:
        """Return how many different values each analysed column has; -1 where nobody counted."""
        found = self._call("table.Table", "statistics", self._table(name, {})).get().colStats()
        return {key: found.get(key).distinctCount().orElse(-1) for key in found.keySet()}

    def _strings(self, values: Sequence[str]) -> Any:
        array = self._gateway.new_array(self._gateway.jvm.java.lang.String, len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array

    def _equal(self, fields: Any, column: str, value: Any) -> dict[str, Any]:
        paimon, index = self._gateway.jvm.org.apache.paimon, fields.getFieldIndex(column)
        predicates = paimon.predicate.PredicateBuilder(fields)
        if value is None:
            return {_PREDICATE: predicates.isNull(index)}
        kind = fields.getTypeAt(index)
        if kind.getTypeRoot().name() == "BIGINT":
            # Py4J sends a small number back as an Integer; only Java keeps it a Long.
            inside = self._gateway.jvm.java.util.stream.LongStream.rangeClosed(value, value)
            return {_PREDICATE: getattr(predicates, "in")(index, inside.boxed().toList())}
        cast = paimon.casting.CastExecutors.resolve(paimon.types.DataTypes.STRING(), kind)
        string = {"java.lang.Object": paimon.data.BinaryString.fromString(text(value))}
        inside = self._call("casting.CastExecutor", "cast", cast, string)
        return {_PREDICATE: predicates.equal(index, inside)}

    def _table(self, name: str, options: Mapping[str, str]) -> Any:
        identifier = self._gateway.jvm.org.apache.paimon.catalog.Identifier.create(
            self._database, name
        )
        self._call("catalog.Catalog", "invalidateTable", self._catalog, {_IDENTIFIER: identifier})
        table = self._call("catalog.Catalog", "getTable", self._catalog, {_IDENTIFIER: identifier})
        if options:
            wanted = self._gateway.jvm.java.util.HashMap()
            for key, value in options.items():
                wanted.put(key, value)
            table = self._call("table.Table", "copy", table, {"java.util.Map": wanted})
        return table

    def _texts(self, builder: Any, fields: Any) -> Iterator[str]:
        scan = self._call("table.source.ReadBuilder", "newScan", builder)
        plan = self._call("table.source.TableScan", "plan", scan)
        splits = self._call("table.source.TableScan$Plan", "splits", plan)
        read = self._call("table.source.ReadBuilder", "newRead", builder)
        reader = self._call(
            "table.source.TableRead", "createReader", read, {"java.util.List": splits}
        )
        rows = self._call("reader.RecordReader", "toCloseableIterator", reader)
        paimon = self._gateway.jvm.org.apache.paimon
        executor = paimon.casting.CastExecutors.resolve(fields, paimon.types.DataTypes.STRING())
        cast = self._method("casting.CastExecutor", "cast", ["java.lang.Object"])
        row = self._gateway.new_array(self._gateway.jvm.java.lang.Object, 1)
        while rows.hasNext():
            row[0] = rows.next()
            cells = cast.invoke(executor, row).toString()
            yield _MILLIS.sub(r"\g<0>000", cells).replace("[]", "{}")
        rows.close()

    def _call(
        self, interface: str, method: str, on: Any, taking: Mapping[str, Any] | None = None
    ) -> Any:
        arguments = taking or {}
        values = self._gateway.new_array(self._gateway.jvm.java.lang.Object, len(arguments))
        for index, value in enumerate(arguments.values()):
            values[index] = value
        return self._method(interface, method, list(arguments)).invoke(on, values)

    def _method(self, interface: str, name: str, taking: Sequence[str]) -> Any:
        types = self._gateway.new_array(self._gateway.jvm.java.lang.Class, len(taking))
        for index, each in enumerate(taking):
            types[index] = self._loader.loadClass(each)
        return self._loader.loadClass(f"org.apache.paimon.{interface}").getMethod(name, types)


def _catalog(jvm: Any, warehouse: str) -> Any:
    options = jvm.org.apache.paimon.options.Options()
    options.set("warehouse", warehouse)
    context = jvm.org.apache.paimon.catalog.CatalogContext.create(options)
    return jvm.org.apache.paimon.catalog.CatalogFactory.createCatalog(context)


def _text(value: Any) -> str | None:
    # Of a boolean Py4J makes Python's.
    return text(value.get()) if value.isPresent() else None


_MILLIS = re.compile(r":\d\d:\d\d\.\d{3}\b")
_PREDICATE = "org.apache.paimon.predicate.Predicate"
_IDENTIFIER = "org.apache.paimon.catalog.Identifier"


def text(value: Any) -> str:
    """Return a value as `JavaPaimon.rows` writes it.

    >>> text({"a": 1, "b": [True, None], "c": [("k", "v")]})
    '{1, [true, null], {k -> v}}'
    """
    if isinstance(value, dict):
        return f"{{{', '.join(map(text, value.values()))}}}"
    if isinstance(value, list):
        return _list(value)
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def _list(value: list[Any]) -> str:
    if value and not isinstance(value[0], tuple):
        return f"[{', '.join(map(text, value))}]"
    return f"{{{', '.join(f'{text(k)} -> {text(v)}' for k, v in value)}}}"
