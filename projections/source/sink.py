"""Sink of streaming queries: each batch as one snapshot.

Spark repeats a batch when it does not know that it succeeded. The snapshot's idempotency key is the
query's id from its checkpoint and the batch's number, so that a committed batch is not committed
again. Every attempt writes into its own folder. Overwriting an earlier attempt's files is not safe:
that attempt's commit may still be in flight, and a snapshot must not name a file that changed. The
files of a failed attempt are named by no commit, and readers never see them.

Spark's TIMESTAMP is an instant and its TIMESTAMP_NTZ a local time; the conversion needs the
session's zone, which only Spark knows. Arrow would assume UTC.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from attrs import field, frozen

from ledger.files.partition_values import escape_path
from ledger.files.snapshot_plan import SnapshotPlan
from ledger.ledger import open as open_ledger
from ledger.log.request import fresh_id
from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import PartitionValue
from ledger.model.iceberg_layout import PartitionField, PartitionSpec
from ledger.model.messages import name_hint
from ledger.model.schema import Schema, paths_of
from ledger.model.single_values import EXACT_DECIMALS, encode_value
from ledger.model.transforms import Period, Void, field_types, transform_of
from ledger.model.types.text import bare_type_text
from ledger.stores.file_access import FileAccess
from ledger.table import Table
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType


_MOST_OPEN = 32
"""Maximum number of files that a task holds open; more partitions start new files."""

_MONTHS, _HOURS = 12, 24
_EPOCH_YEAR = 1970


@frozen
class BatchFiles:
    """Target and layout of the files of one attempt at a micro-batch; pickled to executors.

    Attributes:
        folder: The attempt's own folder, as a URL: nothing else is written there.
        schema: The table's schema.
        spec: The partition spec to write by.
        columns: Names of the rows' columns.
        access: Permission to open files in the folder.
    """

    folder: str
    schema: Schema
    spec: PartitionSpec
    columns: tuple[str, ...]
    access: FileAccess = field(hash=False)

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows of a task; yield the URLs of its files once they are durable.

        Raises:
            ArrowInvalid: A value does not fit its column without loss.
            InvalidInputError: Text or bytes are longer than their column's type.
        """
        import pyarrow as pa

        writer = _TaskFiles(self)
        try:
            for batch in batches:
                if batch.num_rows:
                    for folder, rows in self._split_by_partition(self._cast_to_schema(batch)):
                        writer.add(folder, rows)
        finally:
            writer.close()
        yield pa.RecordBatch.from_pydict({"path": pa.array(writer.urls, pa.string())})

    def arrow_schema(self) -> pa.Schema:
        """Return the files' schema, every column with its field id."""
        import pyarrow as pa

        wanted = set(self.columns)
        return pa.schema([each for each in self.schema.to_arrow() if each.name in wanted])

    def _cast_to_schema(self, batch: pa.RecordBatch) -> pa.Table:
        import pyarrow as pa

        schema = self.arrow_schema()
        arrays = [batch.column(each.name).cast(each.type) for each in schema]
        for each, values in zip(schema, arrays, strict=True):
            _refuse_too_long(values, self.schema.field(each.name).type, each.name)
        return pa.Table.from_arrays(arrays, schema=schema)

    def _split_by_partition(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of each partition, with its folder."""
        import pyarrow as pa
        import pyarrow.compute as pc

        codes: Any = pa.array([0] * len(rows), pa.int64())
        folders: list[str] = [""]
        for each in self.spec.fields:
            names, places = self._folder_indices(rows, each)
            codes = pc.add(pc.multiply(codes, len(names)), places)
            folders = [f"{outer}{inner}" for outer in folders for inner in names]
        ordered = rows.take(pc.array_sort_indices(codes))
        start = 0
        for each in pc.value_counts(pc.take(codes, pc.array_sort_indices(codes))):
            count = each["counts"].as_py()
            yield folders[each["values"].as_py()], ordered.slice(start, count)
            start += count

    def _folder_indices(self, rows: pa.Table, wanted: PartitionField) -> tuple[list[str], pa.Array]:
        """Return a partition field's folders, and for each row the index of its folder."""
        import pyarrow as pa
        import pyarrow.compute as pc

        source = field_types(self.schema).get(wanted.source_id)
        transform = transform_of(wanted.transform)
        if source is None or isinstance(transform, Void):
            return [""], pa.array([0] * len(rows), pa.int64())
        encoded = self._source_column(rows, wanted).dictionary_encode(null_encoding="encode")
        result = transform.result_type(source)
        found: dict[str, int] = {}
        places = []
        for value in encoded.dictionary.to_pylist():
            applied = transform.apply(_to_transform_input(value, source), source)
            text = _partition_folder(wanted, encode_value(applied, result))
            places.append(found.setdefault(text, len(found)))
        return list(found), pc.take(pa.array(places, pa.int64()), encoded.indices)

    def _source_column(self, rows: pa.Table, wanted: PartitionField) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        path = next(path for path, each in paths_of(self.schema) if each == wanted.source_id)
        if path[0] not in self.columns:
            return pa.nulls(len(rows), pa.int32())
        column = rows[path[0]].combine_chunks()
        for name in path[1:]:
            column = pc.struct_field(column, name)
        kind = column.type
        if pa.types.is_date(kind):
            return column.cast(pa.int32())
        if pa.types.is_timestamp(kind) and kind.unit == "ms":
            column = column.cast(pa.timestamp("us", kind.tz))
        return column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column


class _TaskFiles:
    """Open files of one task."""

    def __init__(self, files: BatchFiles) -> None:
        self._files = files
        self._open: dict[str, tuple[Any, Any]] = {}
        self._place, self._inside = files.access.open(files.folder)
        self.urls: list[str] = []

    def add(self, folder: str, rows: pa.Table) -> None:
        """Write rows of one partition."""
        from pyarrow import parquet

        if folder not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self._close_file(next(iter(self._open)))
            # Concurrent task attempts must not use the same name.
            name = f"{folder}part-{fresh_id()}.parquet"
            path = f"{self._inside}/{name}"
            self._place.makedirs(path.rpartition("/")[0], exist_ok=True)
            sink = self._place.open(path, "wb")
            writer = parquet.ParquetWriter(sink, self._files.arrow_schema(), compression="zstd")
            self._open[folder] = sink, writer
            self.urls.append(f"{self._files.folder}/{name}")
        self._open[folder][1].write_table(rows)

    def close(self) -> None:
        """Finish all files."""
        for folder in list(self._open):
            self._close_file(folder)

    def _close_file(self, folder: str) -> None:
        sink, writer = self._open.pop(folder)
        writer.close()
        if hasattr(sink, "fileno"):
            # A commit is durable, so the files that it names must be, too.
            sink.flush()
            os.fsync(sink.fileno())
        sink.close()


def _refuse_too_long(values: Any, data_type: t.DataType, name: str) -> None:
    """Check that no text or bytes are longer than their type, at any depth.

    Raises:
        InvalidInputError: A value is longer.
    """
    import pyarrow.compute as pc

    match data_type:
        case t.RowType(fields=fields):
            for each in fields:
                inner = pc.struct_field(values, each.name)
                _refuse_too_long(inner, each.type, f"{name}.{each.name}")
        case t.ArrayType(element=element):
            _refuse_too_long(values.flatten(), element, f"{name}.element")
        case t.MapType(key=key, value=value):
            _refuse_too_long(values.keys, key, f"{name}.key")
            _refuse_too_long(values.items, value, f"{name}.value")
        case t.CharType(length=length) | t.VarCharType(length=length):
            _refuse_length_above(pc.max(pc.utf8_length(values)).as_py(), length, data_type, name)
        case t.BinaryType(length=length) | t.VarBinaryType(length=length):
            _refuse_length_above(pc.max(pc.binary_length(values)).as_py(), length, data_type, name)


def _refuse_length_above(found: int | None, most: int, data_type: t.DataType, name: str) -> None:
    if found is not None and found > most:
        shown = bare_type_text(data_type)
        raise InvalidInputError(
            f"column {name} is {shown}, and a value has the length {found}; shorten the values, or "
            "change the column's type"
        )


def _to_transform_input(value: Any, source: t.DataType) -> Any:
    """Return an Arrow value in the form that transforms take."""
    if isinstance(value, Decimal) and isinstance(source, t.DecimalType):
        return int(value.scaleb(source.scale, EXACT_DECIMALS))
    return value


def _partition_folder(wanted: PartitionField, value: PartitionValue) -> str:
    """Return the folder of one value, as in Iceberg's paths.

    Blank text has none: a folder of that name would be that of NULL, and the file's own
    statistics tell the two apart.
    """
    if isinstance(value, str) and not value.strip():
        return ""
    text = (
        "__HIVE_DEFAULT_PARTITION__" if value is None else _partition_text(wanted.transform, value)
    )
    return f"{escape_path(wanted.name)}={escape_path(text)}/"


def _partition_text(transform: str, value: str | int | bool) -> str:  # noqa: FBT001 - a value
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(transform_of(transform), Period) or isinstance(value, str):
        return str(value)
    if transform == "year":
        return f"{_EPOCH_YEAR + value:04d}"
    if transform == "month":
        return f"{_EPOCH_YEAR + value // _MONTHS:04d}-{value % _MONTHS + 1:02d}"
    day = encode_value(value // _HOURS, t.DateType())
    return f"{day}-{value % _HOURS:02d}"


def refuse_unfit_columns(columns: Sequence[str], schema: Schema, name: str) -> None:
    """Check that rows with these columns can be written into a table.

    Raises:
        InvalidInputError: The table has no such column, needs another one, or merges by key.
    """
    if schema.primary_keys:
        raise InvalidInputError(
            f"{name} has the primary key {list(schema.primary_keys)}: its files are merged by key, "
            "and this sink only appends; write with an engine of the format, or drop the key"
        )
    unknown = [each for each in columns if each not in schema.names]
    if unknown:
        raise InvalidInputError(
            f"{name} has no column {unknown[0]}; {name_hint(unknown[0], schema.names)} "
            "Add it, or select the others"
        )
    missing = [
        each.name for each in schema.fields if not each.type.nullable and each.name not in columns
    ]
    if missing:
        raise InvalidInputError(f"{name} needs column {missing[0]}, which is NOT NULL; select it")


def cast_timestamps_to_table(rows: DataFrame, schema: Schema) -> DataFrame:
    """Return rows whose timestamps have the table's types, cast by Spark in the session's zone.

    Args:
        rows: Rows whose columns are among the table's.
        schema: The table's schema.
    """
    found = rows
    for column in rows.schema.fields:
        wanted = _timestamp_type_for(column.dataType, schema.field(column.name).type)
        if wanted != column.dataType:
            found = found.withColumn(column.name, found[f"`{column.name}`"].cast(wanted))
    return found


def _timestamp_type_for(found: DataType, wanted: t.DataType) -> DataType:
    from pyspark.sql import types as s

    match found, wanted:
        case s.TimestampType(), t.TimestampType():
            return s.TimestampNTZType()
        case s.TimestampNTZType(), t.LocalZonedTimestampType():
            return s.TimestampType()
        case s.StructType(), t.RowType(fields=fields):
            inner = {each.name: each.type for each in fields}
            return s.StructType(
                [
                    s.StructField(
                        each.name,
                        _timestamp_type_for(each.dataType, inner[each.name])
                        if each.name in inner
                        else each.dataType,
                        each.nullable,
                    )
                    for each in found.fields
                ]
            )
        case s.ArrayType(), t.ArrayType(element=element):
            return s.ArrayType(_timestamp_type_for(found.elementType, element), found.containsNull)
        case s.MapType(), t.MapType(key=key, value=value):
            return s.MapType(
                _timestamp_type_for(found.keyType, key),
                _timestamp_type_for(found.valueType, value),
                found.valueContainsNull,
            )
    return found


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
        storage_options: Options of the storage client.
        commit_user: The stream's identity in the table; by default derived from the query's id,
            which its checkpoint keeps, so that another checkpoint is another stream.
        author: The commits' author.
        write_files: Writes the Parquet files; by default executors do, with the table's field
            ids, into its location, by its partition spec.

    Raises:
        NotFoundError: The ledger or the table does not exist; raised by the query.
        InvalidInputError: The rows do not fit the table, or no query calls the function.

    Example:
        query = (rows.writeStream.option("checkpointLocation", checkpoint)
                 .foreachBatch(ledger_sink(url, "shop.orders")).start())
    """
    write = write_files or write_parquet

    def commit(rows: DataFrame, batch_id: int) -> None:
        lake = open_ledger(url, storage_options, author=author)
        handle_of(lake).refuse_missing()
        handle = lake.table(table)
        user = commit_user or _default_commit_user(rows)
        if is_committed(handle, user, batch_id):
            return
        folder = attempt_folder(handle, user, batch_id)
        paths = list(write(rows, handle, folder))
        if paths:
            commit_batch(handle, paths, user, batch_id)

    return commit


def is_committed(table: Table, commit_user: str, batch_id: int) -> bool:
    """Return whether a batch is committed already."""
    key = SnapshotPlan("APPEND", commit_user=commit_user, commit_identifier=batch_id).key or ""
    handle = handle_of(table)
    log = handle.log
    log.refresh()
    # The index compares hashes, so a match has to be verified.
    return any(
        key in handle.live.keys_of(log.commit_at(version)) for version in log.last_named(key)
    )


def attempt_folder(table: Table, commit_user: str, batch_id: int) -> str:
    """Return a new folder for an attempt at a batch, unique to the attempt."""
    batch = f"batch-{batch_id:010d}"
    return f"{table.location}/data/stream-{escape_path(commit_user)}/{batch}/{fresh_id()}"


def commit_batch(table: Table, paths: Sequence[str], commit_user: str, batch_id: int) -> None:
    """Commit a batch's files, unless the batch is committed already.

    Raises:
        InvalidChangeError: A file does not fit the table.
        CommitUnknownError: The store gave no answer; repeat the batch to find out.
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
    handle = handle_of(table)
    if handle.ledger_url.startswith("memory:"):
        raise InvalidInputError(
            f"{handle.ledger_url} exists in this process alone, and executors write in others: "
            "keep the ledger in a folder or a bucket"
        )
    state = table.state
    refuse_unfit_columns(rows.columns, state.schema, str(table.identifier))
    files = BatchFiles(
        folder=folder,
        schema=state.schema,
        spec=state.spec,
        columns=tuple(rows.columns),
        access=handle.file_access,
    )
    # Only the paths of successful tasks are collected here.
    written = cast_timestamps_to_table(rows, state.schema).mapInArrow(files.write, "path string")
    return [each.path for each in written.collect()]


def _default_commit_user(rows: DataFrame) -> str:
    found = _streaming_query_id(rows.sparkSession)
    if not found:
        raise InvalidInputError(
            "this batch's stream is unknown: no streaming query is running here, or, "
            "through Spark Connect, several are; pass the function to foreachBatch, or give "
            "commit_user"
        )
    return f"spark-{found}"


def _streaming_query_id(session: SparkSession) -> str | None:
    """Return the id of the streaming query that runs here, as in its checkpoint."""
    java = getattr(session, "_jsc", None)
    if java is not None:
        return cast("str | None", java.getLocalProperty(_QUERY_ID))
    # Spark Connect has no such property, but knows the session's queries.
    ids = {each.id for each in session.streams.active}
    return ids.pop() if len(ids) == 1 else None
