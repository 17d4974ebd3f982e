"""Registration of the data source, its views and its functions with a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from ledger.audit.views import BLAME, HISTORY, Columns, Rows
from ledger.table import Table
from ledger.table_handle import handle_of
from projections.source.columns import Column, spark_ddl
from projections.source.view import VIEWS
from projections.spark_tasks import LedgerLocation, encode_storage_options
from projections.statistics.executor_python import require_executor_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.udtf import UserDefinedTableFunction

_PREFIX = "ledger_"
_KINDS = {"text": "string", "number": "bigint", "time": "timestamp"}


def register(
    spark: SparkSession,
    url: str | None = None,
    *,
    tables: str = "*",
    tasks: int = 8,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Register the format `ledger` with a session, and with a URL its views and functions.

    The views `ledger_commits`, `ledger_events`, ... are temporary, and read the tables as they are
    at each query. The functions are `ledger_log('shop.orders')`, a row for each event of a table,
    and `ledger_blame('shop.orders')`, a row for each property of a column or the table, with the
    commit that set it.

    Args:
        spark: The session; filter pushdown to Python sources is enabled in it.
        url: The ledger; None registers the format only.
        tables: The tables of the views: `shop.orders`, `shop.*` or `*`.
        tasks: The number of tasks of a query on a view; each reads whole tables.
        storage_options: Options of the ledger's storage client.

    Raises:
        MissingDependencyError: Executors on this machine run another Python version than this
            program, or one without lakeledger.
        AnalysisException: The ledger does not exist, or an argument is invalid; the message of
            lakeledger is in it.
    """
    from projections.source.data_source import LedgerDataSource

    require_executor_python(spark)
    # Spark refuses to plan a source with filter pushdown while this is off, its default.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(LedgerDataSource)
    if url is None:
        return
    options = {"storageOptions": encode_storage_options(storage_options or {})}
    source = spark.read.format("ledger").options(**options, table=tables, viewTasks=str(tasks))
    for name in VIEWS:
        source.option("view", name).load(url).createOrReplaceTempView(f"{_PREFIX}{name}")
    root = LedgerLocation(url, storage_options or {})
    _register_function(spark, root, "log", HISTORY, lambda table: table.history())
    _register_function(spark, root, "blame", BLAME, lambda table: table.blame().rows)


def _register_function(
    spark: SparkSession,
    root: LedgerLocation,
    name: str,
    columns: Columns,
    rows_of: Callable[[Table], Rows],
) -> None:
    from pyspark.sql.functions import udtf

    class TableFunction:
        """A function of a table's name that returns rows."""

        def eval(self, table: str) -> Iterator[tuple[Any, ...]]:
            for row in rows_of(root.open().table(table)):
                # A time outside of Python's range is a number.
                yield tuple(
                    None if kind == "time" and isinstance(value, int) else value
                    for kind, value in zip(columns.values(), row.values(), strict=True)
                )

    shown = [Column(each, _KINDS[kind], nullable=True) for each, kind in columns.items()]
    function = cast("UserDefinedTableFunction", udtf(TableFunction, returnType=spark_ddl(shown)))
    spark.udtf.register(f"{_PREFIX}{name}", function)


def tiles(spark: SparkSession, table: Table) -> DataFrame:
    """Return the kept statistics of a table as a DataFrame, to be summed by any query.

    A row is the change of one partition by one snapshot. Commits since the last refresh are counted
    from the log.

    Args:
        spark: The session; `register` was called with it.
        table: The table.

    Raises:
        AnalysisException: The table does not exist any more.
    """
    handle = handle_of(table)
    options = {
        "table": str(handle.identifier),
        "view": "tiles",
        "storageOptions": encode_storage_options(handle.storage_options),
    }
    return spark.read.format("ledger").options(**options).load(handle.ledger_url)
