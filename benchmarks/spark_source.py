"""Speed of reading a table's events by Spark's executors, compared with Spark's own readers.

All give the same rows of the same commits: version, transaction, author and each event's JSON;
Spark itself from the segments' Parquet, which it reads natively, and from the log's own files as
JSON. The data source also checks the hash chain and every event; a plain loop in one process does
the same without Spark. It is read with all its columns, and with the four by name. The lower bound
of any source in Python is one that only passes the same number of ready batches of those four to
Spark. A million events: `--size 100000`. Executors in separate processes: `--master
"local-cluster[2,1,1024]"`.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import cyclopts
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import ledger
from benchmarks.history import TABLE, Author, commit_of
from benchmarks.measure import WORKDIR, Figure, Output, Report, Spent, in_turn, question_of, show
from ledger.log.codec import digest, encode
from ledger.log.layout import SEGMENT_LENGTH, Layout
from ledger.table_handle import handle_of
from projections.source import register
from projections.source.columns import spark_ddl
from projections.source.read_options import VERSIONS_PER_PARTITION
from projections.source.span_reading import LogScan, SpanEnd
from projections.source.view import view_of
from projections.source.view_reading import scan_rows
from projections.spark_tasks import clear_archive_importers
from projections.statistics.session import spark_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

EVENTS = 10
"""Number of events in each commit."""

SOURCE_OVER_PARQUET = 3.0

_SOURCE = "ledger source"
_NAMED = "ledger source, its columns named"
_FLOOR = "a source of ready batches"
_COLUMNS = ("version", "commit_id", "author", "event")
_READY = "ready.arrow"
_SEALED = "spark.read.parquet of segments"

_READY_COMMITS = 6_400

_MOST_AS_JSON = 20_000
"""Number of commits; with a file each, Spark takes minutes for a hundred thousand of them."""

_WIDTH = 20
_COMMIT = (
    "version BIGINT, timeMillis BIGINT, "
    "transactions ARRAY<STRUCT<id: STRING, author: STRING, events: ARRAY<STRING>>>"
)

Found = tuple[int, int]
"""Number of events, and number of characters of JSON."""


def run(workdir: Path, *, size: int, repeats: int, master: str = "local[2]") -> Report:
    root = _lake(workdir, size)
    spark = session_on(master)
    register(spark)
    spark.dataSource.register(ReadySource)
    _make_ready(root, workdir, min(size, _READY_COMMITS))
    readers: dict[str, Callable[[], Found]] = {
        _SOURCE: lambda: _summed(_by_source(spark, root)),
        _NAMED: lambda: _summed(_by_name(spark, root)),
        _FLOOR: lambda: _summed(_ready_made(spark, workdir, size * EVENTS + 1)),
        _SEALED: lambda: _summed(_by_parquet(spark, root)),
        "one process": lambda: _in_process(root, size),
    }
    if size <= _MOST_AS_JSON:
        readers["spark.read.json"] = lambda: _summed(_by_json(spark, root))
    found: dict[str, Found] = {}
    cases = {name: partial(_noted, found, name, read) for name, read in readers.items()}
    times = in_turn(cases, repeats)
    # The events of version 0 are spelled by the JSON reader in one, and by the log in the other.
    assert found[_SOURCE] == found[_NAMED] == found["one process"]
    assert {found[each][0] for each in readers if each != _SEALED} == {size * EVENTS + 1}
    sealed = found[_SEALED][0]
    assert sealed == size // SEGMENT_LENGTH * SEGMENT_LENGTH * EVENTS + (size >= SEGMENT_LENGTH)
    processor = {each: Spent() for each in (_SOURCE, _NAMED, _FLOOR, _SEALED)}
    for _ in range(repeats):
        for name, each in processor.items():
            with each.timed():
                readers[name]()
    cpu_s = {name: min(each.cpu_s) for name, each in processor.items()}
    rates = {name: found[name][0] * 1e9 / each.minimum_ns for name, each in times.items()}
    return Report(
        question_of(__doc__),
        f"events={found[_SOURCE][0]}",
        (
            *(Figure(name, rate, "events/s") for name, rate in rates.items()),
            *(
                Figure(
                    f"time of {each} / of Spark's own Parquet",
                    rates[_SEALED] / rates[each],
                    "x",
                    at_most=None if each == _FLOOR else SOURCE_OVER_PARQUET,
                )
                for each in (_SOURCE, _NAMED, _FLOOR)
            ),
            *(
                Figure(f"the same of {each}, processor time", cpu_s[each] / cpu_s[_SEALED], "x")
                for each in (_SOURCE, _NAMED, _FLOOR)
            ),
        ),
        (f"{size:,} commits of {EVENTS} events, {master}, the least of {repeats}",),
    )


def _noted(found: dict[str, Found], name: str, read: Callable[[], Found]) -> None:
    found[name] = read()


def _by_source(spark: SparkSession, root: Path) -> DataFrame:
    rows = spark.read.format("ledger").option("table", TABLE).option("view", "events")
    return rows.load(str(root)).select(*_COLUMNS)


def _by_name(spark: SparkSession, root: Path) -> DataFrame:
    rows = spark.read.format("ledger").option("table", TABLE).option("view", "events")
    return rows.option("columns", ",".join(_COLUMNS)).load(str(root))


class ReadyReader(DataSourceReader):
    """Repeats the batches of a file up to a number of rows."""

    def __init__(self, file: str, rows: int) -> None:
        self._file = file
        self._rows = rows

    def partitions(self) -> Sequence[InputPartition]:
        """Return as many tasks as the ledger's own source, with the same number of rows each."""
        most = VERSIONS_PER_PARTITION * EVENTS
        return [
            InputPartition(min(most, self._rows - start)) for start in range(0, self._rows, most)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        import pyarrow as pa

        clear_archive_importers()
        left = partition.value
        while left:
            for batch in pa.ipc.open_stream(pa.memory_map(self._file)):
                if left:
                    yield batch.slice(0, left)
                    left -= min(left, batch.num_rows)


class ReadySource(DataSource):
    """Lower bound of every source in Python: nothing is read and nothing decoded."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "ready"

    def schema(self) -> str:
        """Return the columns that the benchmark reads from the ledger's source."""
        return spark_ddl([each for each in view_of("events").columns if each.name in _COLUMNS])

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        """Return a reader of ready rows."""
        return ReadyReader(self.options["path"], int(self.options["rows"]))


def _make_ready(root: Path, workdir: Path, last: int) -> None:
    import pyarrow as pa

    table = ledger.open(str(root)).table(TABLE)
    scan = LogScan(handle_of(table), 1, SpanEnd(last))
    batches = [*scan_rows(view_of("events"), scan, (TABLE, ""), None, _COLUMNS)]
    with (
        pa.OSFile(str(workdir / _READY), "wb") as file,
        pa.ipc.new_stream(file, batches[0].schema) as sink,
    ):
        for each in batches:
            sink.write_batch(each)


def _ready_made(spark: SparkSession, workdir: Path, rows: int) -> DataFrame:
    return spark.read.format("ready").option("rows", rows).load(str(workdir / _READY))


def _by_parquet(spark: SparkSession, root: Path) -> DataFrame:
    files = f"{root}/{TABLE.replace('.', '.db/')}/_ledger/segments"
    transactions = spark.read.parquet(files).selectExpr(
        "version", "explode(transactions) AS transaction"
    )
    events = transactions.selectExpr(
        "version",
        "transaction.id AS commit_id",
        "transaction.author AS author",
        "explode(transaction.events) AS found",
    )
    return events.selectExpr("version", "commit_id", "author", "found.event AS event")


def _by_json(spark: SparkSession, root: Path) -> DataFrame:
    files = f"{root}/{TABLE.replace('.', '.db/')}/_ledger/log"
    transactions = (
        spark.read.schema(_COMMIT)
        .json(files)
        .selectExpr("version", "explode(transactions) AS transaction")
    )
    return transactions.selectExpr(
        "version",
        "transaction.id AS commit_id",
        "transaction.author AS author",
        "explode(transaction.events) AS event",
    )


def _summed(rows: DataFrame) -> Found:
    found = rows.selectExpr(
        "count(version) AS events", "sum(length(event)) AS characters", "max(commit_id)"
    ).collect()[0]
    return found.events, found.characters


def _in_process(root: Path, size: int) -> Found:
    view = view_of("events")
    table = ledger.open(str(root)).table(TABLE)
    scan = LogScan(handle_of(table), 0, SpanEnd(size))
    events = characters = 0
    for batch in scan_rows(view, scan, (TABLE, "")):
        events += batch.num_rows
        characters += sum(map(len, batch["event"].to_pylist()))
    return events, characters


def _lake(workdir: Path, commits: int) -> Path:
    """Return a ledger with some commits; built at the first call and cached."""
    lake = workdir / f"sealed-{EVENTS}-{commits}"
    if lake.exists():
        return lake
    workdir.mkdir(parents=True, exist_ok=True)
    draft = workdir / f".building-{os.getpid()}-{lake.name}"
    author = Author(_WIDTH)
    ticks = itertools.count(1_600_000_000_000, 1000)
    handle = ledger.open(str(draft), author="bench", clock=lambda: next(ticks))
    handle.create_database(TABLE.split(".", maxsplit=1)[0])
    log = handle_of(handle.create_table(TABLE, author.schema())).log
    parent, layout = log.head.digest if log.head else "", Layout(log.layout.root)
    transactions = itertools.islice(author.transactions(events=EVENTS), commits)
    for version, transaction in enumerate(transactions, 1):
        body = encode(commit_of(transaction, version, parent))
        (draft / layout.commit(version)).write_bytes(body)
        parent = digest(body)
    log.refresh()
    assert log.head is not None
    # As any writer leaves one every hundred commits.
    log.checkpoints.save(log.head)
    for end in range(SEGMENT_LENGTH, commits + 1, SEGMENT_LENGTH):
        log.segments.save(end)
    draft.rename(lake)
    return lake


def session_on(master: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    if master == "local[2]":
        return spark_session()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executorEnv.PYTHONPATH", str(Path(__file__).parents[1]))
    )
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main(
    *,
    size: int = 1_600,
    repeats: int = 3,
    master: str = "local[2]",
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Read the events of a table.

    Args:
        size: Commits, of ten events each.
        repeats: Number of repeats of each reader; the minimum counts.
        master: Master URL of Spark.
        workdir: Folder of the cached histories.
        output: text or json.
    """
    show(run(workdir, size=size, repeats=repeats, master=master), output)


if __name__ == "__main__":
    cyclopts.run(main)
