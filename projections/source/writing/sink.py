"""A streaming query's batches as snapshots of a table: each once, whatever is run again.

Spark runs a batch again when it does not know that it succeeded. The snapshot's key is the query's
id, which stands in its checkpoint, and the batch's number: what has landed is not committed again.
Every attempt writes into a folder of its own. Overwriting an earlier attempt's files would be
tidier, but that attempt's commit may still be on its way, and a snapshot must not name a file that
changed under it. What a failed attempt leaves is named by no commit, and reading never sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ledger.files.registering.hive import escape
from ledger.files.snapshot_plan import SnapshotPlan
from ledger.ledger import open as open_ledger
from ledger.log.request import fresh_id
from ledger.model.errors import InvalidInputError
from ledger.table import Table
from projections.source.writing.batch_files import BatchFiles, refuse_unfit
from projections.source.writing.zones import in_the_tables_zones

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WriteFiles = Callable[["DataFrame", Table, str], Sequence[str]]
"""Writes rows for a table as new files below a folder (a URL); returns the files' paths."""

_QUERY_ID = "sql.streaming.queryId"


def ledger_sink(
    url: str,
    table: str,
    *,
    storage_options: Mapping[str, Any] | None = None,
    commit_user: str | None = None,
    author: str | None = None,
    write_files: WriteFiles | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that appends each micro-batch to a table, exactly once.

    Args:
        url: The ledger's root.
        table: The table's full name.
        storage_options: How to reach the root.
        commit_user: Who the stream is to the table; by default from the query's id, which its
            checkpoint keeps, so that another checkpoint is another stream.
        author: Who commits.
        write_files: Writes the Parquet files; by default executors do, with the table's field
            ids, into its location, by its partition spec.

    Raises:
        NotFoundError: The table does not exist; raised by the query.
        InvalidInputError: The rows do not fit the table, or the function is called by no query.

    Example:
        query = (rows.writeStream.option("checkpointLocation", checkpoint)
                 .foreachBatch(ledger_sink(url, "shop.orders")).start())
    """
    write = write_files or write_parquet

    def commit(rows: DataFrame, batch_id: int) -> None:
        handle = open_ledger(url, storage_options, author=author).table(table)
        user = commit_user or _user_of(rows)
        if has_landed(handle, user, batch_id):
            return
        folder = attempt_folder(handle, user, batch_id)
        paths = list(write(rows, handle, folder))
        if paths:
            commit_batch(handle, paths, user, batch_id)

    return commit


def has_landed(table: Table, commit_user: str, batch_id: int) -> bool:
    """Return whether a batch is in the table already."""
    key = SnapshotPlan("APPEND", commit_user=commit_user, commit_identifier=batch_id).key or ""
    log = table.log
    log.refresh()
    # The index goes by hashes, so what it finds has to be looked at.
    return any(key in table.live.keys_of(log.commit_at(version)) for version in log.last_named(key))


def attempt_folder(table: Table, commit_user: str, batch_id: int) -> str:
    """Return a new folder for an attempt at a batch; no two attempts ever share one."""
    batch = f"batch-{batch_id:010d}"
    return f"{table.location}/data/stream-{escape(commit_user)}/{batch}/{fresh_id()}"


def commit_batch(table: Table, paths: Sequence[str], commit_user: str, batch_id: int) -> None:
    """Commit a batch's files; if it has landed meanwhile, nothing is committed.

    Raises:
        InvalidChangeError: A file does not fit the table.
        CommitUnknownError: The store gave no answer; running the batch again finds out.
    """
    plan = SnapshotPlan(
        "APPEND",
        table.data_files(paths),
        commit_user=commit_user,
        commit_identifier=batch_id,
    )
    table.commit_snapshot(plan, message=f"batch {batch_id} of {commit_user}")


def write_parquet(rows: DataFrame, table: Table, folder: str) -> Sequence[str]:
    """Write rows as Parquet files with the table's field ids, on the executors.

    Raises:
        InvalidInputError: The rows' columns do not fit the table.
    """
    if table.ledger_url.startswith("memory:"):
        raise InvalidInputError(
            f"{table.ledger_url} lives in this process alone, and executors write in others: keep "
            "the ledger in a folder or a bucket"
        )
    state = table.state
    refuse_unfit(rows.columns, state.schema, str(table.identifier))
    files = BatchFiles(
        folder=folder,
        schema=state.schema,
        spec=state.spec,
        columns=tuple(rows.columns),
        access=table.file_access,
    )
    # Only the paths come here, of the tasks that succeeded.
    written = in_the_tables_zones(rows, state.schema).mapInArrow(files.write, "path string")
    return [each.path for each in written.collect()]


def _user_of(rows: DataFrame) -> str:
    found = _query_of(rows.sparkSession)
    if not found:
        raise InvalidInputError(
            "nothing says which stream this batch is of: no streaming query is running here, or, "
            "through Spark Connect, several are; pass the function to foreachBatch, or give "
            "commit_user"
        )
    return f"spark-{found}"


def _query_of(session: SparkSession) -> str | None:
    """Return the id of the streaming query that runs here, as its checkpoint keeps it."""
    java = getattr(session, "_jsc", None)
    if java is not None:
        return cast("str | None", java.getLocalProperty(_QUERY_ID))
    # Through Spark Connect a batch does not say whose it is, but the session's queries are known.
    ids = {each.id for each in session.streams.active}
    return ids.pop() if len(ids) == 1 else None
