"""Writers of the data source: rows of a DataFrame or a stream as one snapshot.

Each task writes files of its own and returns their file changes as its commit message; no footer is
read again. Spark passes on one message per partition, whatever it repeats or runs twice, and the
driver commits the files in these messages once. The key of a stream's snapshot is the query's id,
which its checkpoint keeps, and the batch's number; so a batch that Spark repeats is committed once.
Files of other attempts are named by no commit, and `lakeledger maintain` removes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, frozen
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema

from ledger.files.snapshot_plan import SnapshotPlan, live_files_in_partition
from ledger.log.request import CommitOptions, fresh_id
from ledger.model.errors import (
    CommitConflictError,
    CommitUnknownError,
    InvalidInputError,
    NotFoundError,
    TableDroppedError,
    UnsupportedError,
)
from ledger.model.file_change import FileChange
from ledger.rows.attempts import WriteAttempt
from ledger.rows.row_columns import ColumnMatch
from ledger.rows.row_commits import refuse_other_writers
from ledger.rows.row_files import RowTarget, write_rows
from ledger.state.layout import PartitionFilter
from ledger.state.table import TableState
from ledger.table import Table
from ledger.table_handle import TableHandle, handle_of
from projections.source.write_options import WriteOptions
from projections.spark_tasks import clear_archive_importers

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
_MOST_OVERWRITES: Final = 20
# Spark 4.1 takes the zone of instants in Arrow to be UTC; 4.3 asks for it.
_ZONE_OF_INSTANTS: Final[Mapping[str, Any]] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


class WrittenFiles(WriterCommitMessage):
    """Commit message of a task.

    Attributes:
        files: The file changes of its files.
        query_id: Id of the streaming query; None in a batch job.
    """

    def __init__(self, files: tuple[FileChange, ...], query_id: str | None) -> None:
        self.files = files
        self.query_id = query_id


@frozen
class WriteJob:
    """A write, planned by the driver; pickled to executors.

    Attributes:
        options: The options.
        table_id: The table's id, since another table may get its name.
        target: The target of its rows; the folder is that of the table's data.
        attempt: The attempt of a batch job; for a stream one without a number.
    """

    options: WriteOptions
    table_id: str
    target: RowTarget
    attempt: WriteAttempt

    @classmethod
    def plan(cls, options: WriteOptions, schema: StructType) -> WriteJob:
        """Return the plan of a write; nothing is written.

        Raises:
            NotFoundError: The ledger or the table does not exist.
            InvalidInputError: The rows do not fit the table.
            UnsupportedError: The table's rows are merged by key, or engines write its files.
        """
        table = options.root.open().table(options.table)
        state = table.state
        refuse_other_writers(state, options.table)
        try:
            columns = to_arrow_schema(schema, **_ZONE_OF_INSTANTS)
        except PySparkException as error:
            raise InvalidInputError(f"the rows cannot be written: {error}") from error
        # Arrow's instants have the session's zone, in which Spark converts them to local times.
        ColumnMatch.of(columns, state.schema, options.table, "localized")
        attempt = WriteAttempt.of(table, fresh_id())
        target = evolve(RowTarget.of(handle_of(table), attempt.folder), instants="localized")
        if options.mode == "overwrite" and not options.where:
            target = target.for_all_rows()
        return cls(options, state.table_id, target, attempt)

    def write(self, batches: Iterator[pa.RecordBatch], attempt: WriteAttempt) -> Any:
        """Write the rows of one task, and return its file changes."""
        clear_archive_importers()
        return write_rows(evolve(self.target, folder=attempt.folder), attempt.registered(batches))

    def table(self) -> Table:
        """Return the table.

        Raises:
            NotFoundError: It was dropped, or another one has its name.
        """
        lake = self.options.root.open()
        found = lake.table(self.options.table)
        if found.state.table_id != self.table_id:
            raise NotFoundError(
                f"{self.options.table} was dropped or renamed while rows were written for it, and "
                "another table has its name; nothing was committed"
            )
        return found

    def commit(self, files: Sequence[FileChange], key: tuple[str, int] | None) -> None:
        """Commit files as one snapshot, unless the key was committed already.

        Args:
            files: The files of all tasks.
            key: Commit user and identifier; None without.
        """
        mode = self.options.mode
        if not files and mode != "overwrite":
            return
        table = self.table()
        options: CommitOptions = {}
        if self.options.author:
            options["author"] = self.options.author
        if self.options.message:
            options["message"] = self.options.message
        plan = SnapshotPlan(
            "APPEND" if mode == "append" else "OVERWRITE",
            tuple(files),
            where=(self.options.where or {}) if mode == "overwrite" else None,
        )
        if key is not None:
            plan = evolve(plan, commit_user=key[0], commit_identifier=key[1])
        try:
            if mode == "dynamic":
                _replace_partitions(handle_of(table), table, plan, options)
            else:
                table.commit_snapshot(plan, **options)
        except TableDroppedError as error:
            raise TableDroppedError(
                f"{self.options.table} was dropped while rows were written for it; nothing was "
                "committed"
            ) from error


def _replace_partitions(
    handle: TableHandle, table: Table, plan: SnapshotPlan, options: CommitOptions
) -> None:
    """Commit files in place of all files of their partitions.

    Each attempt is decided on one version and committed directly after it, so that the replaced
    files are exactly those of the partitions at the commit.
    """
    for _ in range(_MOST_OVERWRITES):
        state = table.state
        gone = _files_in_partitions(handle, state, plan.files)
        try:
            options["expect_version"] = state.version
            table.commit_snapshot(evolve(plan, delete=tuple(gone)), **options)
        except CommitConflictError:
            handle.log.refresh()
        else:
            return
    raise CommitConflictError(
        f"{handle.identifier} changed each of the {_MOST_OVERWRITES} times that its partitions "
        "were to be replaced; run the job again when fewer writers commit. Nothing was committed",
        "partitions",
        table.state.version,
    )


def _files_in_partitions(
    handle: TableHandle, state: TableState, files: Sequence[FileChange]
) -> list[str]:
    """Return the paths of the live files in the partitions of new files."""
    wanted = {(each.spec_id, each.partition) for each in files}
    there = [*handle.live.live_files_at_state(state).values()]
    opened = handle.log.personal.columns.opened
    specs = {each.spec_id for each in there}
    if specs <= {spec_id for spec_id, _ in wanted}:
        pairs = zip(there, opened(there), strict=True)
        return [each.path for each, full in pairs if (full.spec_id, full.partition) in wanted]
    gone: dict[str, None] = {}
    for spec_id, values in wanted:
        spec = state.spec_by_id(spec_id)
        where = PartitionFilter(
            {
                (each.source_id, each.transform): value
                for each, value in zip(spec.fields, values, strict=True)
                if each.transform != "void"
            }
        )
        found = live_files_in_partition(handle.live, state, where, opened)
        gone |= dict.fromkeys(each.path for each in found)
    return list(gone)


class BatchRowWriter(DataSourceArrowWriter):
    """Writer of `df.write.format("ledger")`.

    Args:
        job: The planned write.
    """

    def __init__(self, job: WriteJob) -> None:
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task."""
        return WrittenFiles(self._job.write(iterator, self._job.attempt), None)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks once.

        Raises:
            CommitUnknownError: The store did not answer; the message says how to find out.
        """
        key = self._job.options.key
        try:
            self._job.commit(_files_of(messages), key)
        except CommitUnknownError as error:
            if key is not None:
                raise
            raise CommitUnknownError(
                f"{error}. Look for this commit in the table's log before you write these rows "
                "again; a job with commitUser and commitIdentifier can just be repeated",
                error.commit_id,
                error.version,
            ) from error

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Keep the files: the outcome of the commit may be unknown; `maintain` removes them."""


class StreamRowWriter(DataSourceStreamArrowWriter):
    """Writer of `df.writeStream.format("ledger")`.

    Args:
        job: The planned write.
    """

    def __init__(self, job: WriteJob) -> None:
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task of a batch."""
        query_id, batch = _stream_properties()
        attempt = self._job.attempt.renamed(f"{_commit_user(query_id)}-{batch}")
        return WrittenFiles(self._job.write(iterator, attempt), query_id)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit the files of all tasks of a batch once."""
        files = _files_of(messages)
        ids = {each.query_id for each in messages if isinstance(each, WrittenFiles)}
        if files:
            (query_id,) = ids
            self._job.commit(files, (_commit_user(str(query_id)), batchId))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Keep the files, as a batch writer does."""


def _commit_user(query_id: str) -> str:
    return f"spark-{query_id}"


def _stream_properties() -> tuple[str, str]:
    """Return the ids of the streaming query and its batch, which Spark gives to each task."""
    context = TaskContext.get()
    found = [
        None if context is None else context.getLocalProperty(each)
        for each in (_QUERY_ID, _BATCH_ID)
    ]
    if found[0] is None or found[1] is None:
        raise UnsupportedError(
            "this task does not say which streaming query it is of; write with a streaming query "
            "of Spark 4.1 or newer"
        )
    return found[0], found[1]


def _files_of(messages: Sequence[WriterCommitMessage | None]) -> list[FileChange]:
    return [file for each in messages if isinstance(each, WrittenFiles) for file in each.files]
