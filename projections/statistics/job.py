"""The statistics job: read the log, compute, keep the result. Reading and writing happen here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from attrs import frozen

from ledger.evolution.state import TableState
from ledger.model.errors import InvalidInputError
from ledger.model.identifier import Identifier
from ledger.model.schema import Schema
from projections.partition_text import PartitionText
from projections.statistics.log_source import ChangeSource, LogSource
from projections.statistics.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POINTER = "latest.json"


class TableHandle(Protocol):
    """What the job asks of a table's handle."""

    @property
    def ledger_url(self) -> str:
        """The ledger's root."""

    @property
    def storage_options(self) -> Mapping[str, Any]:
        """How to reach the root."""

    @property
    def identifier(self) -> Identifier:
        """The table's name."""

    def at(self) -> TableInstant:
        """Return the table as it is."""


class TableInstant(Protocol):
    """What the job asks of a table at an instant; `Table.at` gives it."""

    @property
    def state(self) -> TableState:
        """All that the fold knows."""

    @property
    def schema(self) -> Schema:
        """The schema to read with."""


@frozen(kw_only=True)
class Statistics:
    """Statistics of one table at one instant.

    Attributes:
        version: The last version that they take in.
        snapshot_id: The snapshot that they stand at; 0 before the first.
        partitions: Rows of `columns.PARTITIONS`; lazy.
        snapshots: Rows of `columns.TOTALS`, for every snapshot up to `snapshot_id`; lazy.
    """

    version: int
    snapshot_id: int
    partitions: DataFrame
    snapshots: DataFrame


def compute(
    table: TableHandle, *, at: TableInstant | None = None, spark: SparkSession | None = None
) -> Statistics:
    """Return a table's statistics, read from its log in parallel.

    Args:
        table: The table, in a ledger that other processes can reach: not `memory://`.
        at: What `table.at(snapshot=3)` gives; the table as it is, without.
        spark: The session to use; the active one, or a small local one, without.

    Raises:
        InvalidInputError: The ledger is in memory.
        MissingDependencyError: A session has to be started, and pyspark or Java is missing.
    """
    if table.ledger_url.startswith("memory:"):
        raise InvalidInputError(
            f"{table.ledger_url} lives in this process alone, and Spark reads in others: "
            "keep the ledger in a folder or a bucket"
        )
    instant = at or table.at()
    source = LogSource(
        url=table.ledger_url,
        storage_options=table.storage_options,
        identifier=str(table.identifier),
        text=PartitionText.of(instant.schema),
    )
    state = instant.state
    return compute_from(
        source, version=state.version, snapshot_id=state.last_snapshot_id, spark=spark
    )


def compute_from(
    source: ChangeSource, *, version: int, snapshot_id: int, spark: SparkSession | None = None
) -> Statistics:
    """Return the statistics of whatever `source` reads.

    Args:
        source: Where file changes and snapshots come from.
        version: The last version to take in.
        snapshot_id: The snapshot to stand at.
        spark: As in `compute`.

    Raises:
        MissingDependencyError: As in `compute`.
    """
    session = spark or spark_session()
    from projections.statistics import reader, transforms

    changes = reader.file_changes(session, source, last_version=version)
    snapshots = reader.snapshots(session, source, last_version=version)
    return Statistics(
        version=version,
        snapshot_id=snapshot_id,
        partitions=transforms.partition_statistics(changes, at_snapshot=snapshot_id),
        snapshots=transforms.snapshot_totals(
            changes, snapshots.where(snapshots.snapshot_id <= snapshot_id)
        ),
    )


def write(
    statistics: Statistics, location: str, storage_options: Mapping[str, Any] | None = None
) -> str:
    """Keep statistics under a table's location, and return the folder that they stand in.

    `_ledger/statistics/snapshot-N/` gets `partitions.parquet` and `snapshots.parquet`; then
    `_ledger/statistics/latest.json` names the newest N. Writing the same again changes nothing,
    and a write that was killed is repaired by the next. The rows go through this process, one a
    partition and one a snapshot, so that Spark needs no driver for the store.

    Args:
        statistics: What `compute` gave.
        location: The table's location as a URL or a path.
        storage_options: How to reach it.
    """
    import fsspec
    import pyarrow.parquet as pq

    root = f"{location.rstrip('/')}/_ledger/statistics"
    filesystem, base = fsspec.core.url_to_fs(root, **(storage_options or {}))
    folder = f"snapshot-{statistics.snapshot_id}"
    filesystem.makedirs(f"{base}/{folder}", exist_ok=True)
    tables = {"partitions": statistics.partitions, "snapshots": statistics.snapshots}
    for name, rows in tables.items():
        table = rows.toArrow()
        draft = f"{base}/{folder}/.{name}.parquet.draft"
        with filesystem.open(draft, "wb") as file:
            pq.write_table(table, file, compression="zstd")
        filesystem.mv(draft, f"{base}/{folder}/{name}.parquet")
    _point(filesystem, f"{base}/{POINTER}", statistics)
    return f"{root}/{folder}"


def _point(filesystem: Any, pointer: str, statistics: Statistics) -> None:
    """Let the pointer name these statistics, unless it names newer ones already."""
    if filesystem.exists(pointer):
        named = json.loads(filesystem.cat_file(pointer))
        if named["version"] > statistics.version:
            return
    body = {"snapshotId": statistics.snapshot_id, "version": statistics.version}
    filesystem.pipe_file(f"{pointer}.draft", json.dumps(body).encode())
    filesystem.mv(f"{pointer}.draft", pointer)
