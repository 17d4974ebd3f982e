"""`lakeledger stats`: what the statistics add to the command line, through entry points."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter, validators

from ledger.cli.example import help_and_example
from ledger.cli.options import Place, When
from ledger.cli.screen import Screen, size
from ledger.table import Table
from ledger.table_at import TableAt
from projections.statistics.job import Statistics, compute

_SUMS = ("recordCount", "fileSizeInBytes", "fileCount")


def register(app: App) -> None:
    """Add the command `stats`."""
    text, example = help_and_example(stats)
    app.command(stats, name="stats", help=text, help_epilogue=example)


def stats(
    name: Annotated[str, Parameter(help="DATABASE.TABLE.")],
    /,
    *,
    top: Annotated[
        int, Parameter(validator=validators.Number(gte=1), help="How many partitions at most.")
    ] = 10,
    when: When = When(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Compute a table's busiest partitions and totals with Spark, from its log alone.

    Needs pyspark and Java 17 or newer: pip install 'lakeledger[spark]'.

    Example:
        lakeledger stats shop.orders --at tag:end-of-week --top 3
    """
    table = place.table(name)
    screen = place.screen
    screen.notice("computing with Spark ...")
    document = busiest(table, when.of(table), top=top)
    screen.result(document, lambda to: _print(to, f"{table.identifier}{when}", document))


def busiest(table: Table, at: TableAt, *, top: int) -> dict[str, Any]:
    """Return the partitions with the most rows, and the sums over all, as plain JSON.

    Args:
        table: The table.
        at: The instant of it.
        top: How many partitions at most.

    Raises:
        MissingDependencyError: pyspark or Java is missing.
    """
    from projections.statistics.session import spark_session

    active = _active_session()
    session = active or spark_session()
    try:
        return _document(compute(table, at=at, spark=session), top)
    finally:
        if active is None:
            session.stop()


def _active_session() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        return None
    return SparkSession.getActiveSession()


def _document(statistics: Statistics, top: int) -> dict[str, Any]:
    from pyspark.sql import functions as F

    partitions = statistics.partitions.persist()
    try:
        sums = partitions.agg(
            F.count(F.lit(1)).alias("partitionCount"),
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _SUMS),
        ).first()
        # Maps cannot be ordered by; their values can, and break ties the same way each time.
        first = partitions.orderBy(F.desc("recordCount"), F.map_values("spec")).limit(top)
        rows = [each.asDict(recursive=True) for each in first.collect()]
    finally:
        partitions.unpersist()
    return {
        "version": statistics.version,
        "snapshotId": statistics.snapshot_id,
        **({} if sums is None else sums.asDict()),
        "partitions": rows,
    }


def _print(screen: Screen, title: str, document: dict[str, Any]) -> None:
    screen.line(title, style="bold")
    screen.facts(
        {
            "snapshot": document["snapshotId"],
            "partitions": document["partitionCount"],
            "rows": document["recordCount"],
            "files": document["fileCount"],
            "size": size(document["fileSizeInBytes"]),
        }
    )
    screen.table(
        ("partition", "rows", "files", "size"),
        (
            (
                ", ".join(f"{key}={value}" for key, value in each["spec"].items()),
                each["recordCount"],
                each["fileCount"],
                size(each["fileSizeInBytes"]),
            )
            for each in document["partitions"]
        ),
    )
