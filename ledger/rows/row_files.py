"""Data files of rows: one open file at a time, sizes targeted, statistics from memory.

Rows of the open file's partition are written at once. Rows of other partitions are held in memory
up to a limit, then spilled to a temporary file on the local disk, and written partition by
partition in the end. So a task writes one file per partition, and more only beyond the target size.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, Self

from attrs import define, evolve, field, frozen
from msgspec import UNSET

from ledger.files.footers import footer_from_metadata
from ledger.files.register import (
    FileStatistics,
    MetricsModes,
    find_schema_with_names,
    metrics_modes,
)
from ledger.history.older import schemas
from ledger.locations import LOCAL, FileNames, below, place_of
from ledger.log.request import fresh_id, now_millis
from ledger.model.attempt_files import new_row_file_name
from ledger.model.file_change import FileChange
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.schema import Schema, with_column_names
from ledger.rows.partition_split import PartitionSplit, RowPartition
from ledger.rows.row_columns import ColumnMatch, Instants
from ledger.state.declared_formats import target_file_size
from ledger.stores.file_access import FileAccess
from ledger.stores.object_errors import reading
from ledger.table_handle import TableHandle
from ledger.table_writes import names_in_new_files

if TYPE_CHECKING:
    import pyarrow as pa
    from fsspec import AbstractFileSystem

HELD_BYTES: Final = 256 << 20
"""Rows of other partitions than the open file's that a task holds in memory, in bytes."""

_MOST_ROW_GROUP_BYTES: Final = 64 << 20
_LEAST_ROW_GROUP_BYTES: Final = 64 << 10
_ROW_GROUPS_A_FILE: Final = 8


@frozen(kw_only=True)
class RowTarget:
    """Target of the rows of one write attempt; pickled to executors.

    Attributes:
        folder: The URL below which every file of the attempt is created.
        location: The table's URL, to which the paths of its files are relative.
        table: The table's full name, for messages.
        schema: The table's schema.
        column_names: The names that a format needs in files, by field id, where they differ.
        schema_id: The id of the newest schema that has these names; that of `schema` if none has.
        spec: The partition spec of the files.
        target_file_size: The size at which a file is closed, in bytes.
        access: Permission to open files in the folder.
        held_bytes: As `HELD_BYTES`.
        instants: Rule for times with a zone in columns without one.
    """

    folder: str
    location: str
    table: str
    schema: Schema
    column_names: Mapping[int, str] = field(hash=False)
    schema_id: int
    spec: PartitionSpec
    target_file_size: int
    access: FileAccess = field(hash=False)
    held_bytes: int = HELD_BYTES
    instants: Instants = "rejected"

    @classmethod
    def of(cls, handle: TableHandle, folder: str) -> RowTarget:
        """Return the target for rows of a table's current schema and default partition spec.

        Args:
            handle: The table.
            folder: The attempt's folder, `WriteAttempt.folder`.

        Raises:
            InvalidChangeError: The table's option `ledger.target-file-size` is no size.
        """
        state = handle.state
        names = names_in_new_files(handle, state)
        named = find_schema_with_names(state.schema, names, schemas(handle.log)) if names else None
        return cls(
            folder=folder,
            location=handle.data_location,
            table=str(handle.identifier),
            schema=state.schema,
            column_names=names,
            schema_id=(named or state.schema).id,
            spec=state.spec,
            target_file_size=target_file_size(state.schema.options),
            access=handle.file_access,
        )

    def for_all_rows(self) -> RowTarget:
        """Return the target of rows that replace all files of main, whose names do not matter."""
        return evolve(self, column_names={}, schema_id=self.schema.id)

    @property
    def file_schema(self) -> Schema:
        """The schema with the column names of new files."""
        if not self.column_names:
            return self.schema
        return with_column_names(self.schema, self.column_names)


def write_rows(target: RowTarget, batches: Iterable[pa.RecordBatch]) -> tuple[FileChange, ...]:
    """Write rows as data files of a table, and return the file changes that add them.

    The files are durable when it returns. After an error it removes the files that it wrote, best
    effort.

    Args:
        target: The target.
        batches: The rows; their columns are matched by name, see `ColumnMatch`.

    Raises:
        InvalidInputError: A column or a value does not fit the table.
        StoreError: The store rejects a file.
        OSError: The store does not answer.

    Example:
        >>> import ledger, pyarrow as pa
        >>> lake = ledger.open("memory://row-files")
        >>> _ = lake.create_database("shop")
        >>> orders = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
        >>> from ledger.table_handle import handle_of
        >>> target = RowTarget.of(handle_of(orders), f"{orders.location}/data/example")
        >>> rows = pa.RecordBatch.from_pydict({"id": [1, 2]})
        >>> orders.append(write_rows(target, [rows])).state.totals.record_count
        2
    """
    with ExitStack() as cleanup:
        files = _FileSet(target)
        cleanup.callback(files.discard)
        split = PartitionSplit(target.schema, target.spec)
        with _HeldRows(target.held_bytes) as held:
            for chunk in _converted_chunks(target, batches):
                for partition, rows in split.divide(chunk):
                    if files.takes(partition):
                        # A slice would keep the whole chunk in memory until it is written.
                        files.write(partition, rows if len(rows) == len(chunk) else _copy(rows))
                    else:
                        held.add(partition, rows)
            files.close()
            for partition, tables in held.drain():
                for rows in tables:
                    files.write(partition, rows)
                files.close()
        files.sync_folders()
        cleanup.pop_all()
        return tuple(files.changes)


def _converted_chunks(target: RowTarget, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield rows as the table's columns, many batches at once: each is divided by partition."""
    import pyarrow as pa

    match: ColumnMatch | None = None
    gathered: list[pa.Table] = []
    size = seen = 0
    for batch in batches:
        if match is None or not match.found.equals(batch.schema):
            match = ColumnMatch.of(batch.schema, target.schema, target.table, target.instants)
        if batch.num_rows:
            gathered.append(match.convert(batch, seen))
            seen += batch.num_rows
            size += gathered[-1].nbytes
        if size >= min(target.held_bytes // 4, _MOST_ROW_GROUP_BYTES) and gathered:
            yield pa.concat_tables(gathered)
            gathered, size = [], 0
    if gathered:
        yield pa.concat_tables(gathered)


def remove_files(target: RowTarget, files: Iterable[FileChange]) -> None:
    """Remove data files that no commit names, best effort.

    Args:
        target: The target that they were written to.
        files: Their file changes.
    """
    for each in files:
        # Each client library has its own exceptions.
        with suppress(Exception):
            place, path = target.access.open(below(target.location, each.path))
            place.rm_file(path)


def _with_names_of(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows under the names of a schema of the same types, at every depth; copies nothing."""
    import pyarrow as pa

    columns = [
        column
        if column.type == each.type
        else pa.chunked_array([chunk.view(each.type) for chunk in column.chunks], each.type)
        for column, each in zip(rows.columns, schema, strict=True)
    ]
    return pa.table(columns, schema=schema)


def _copy(rows: pa.Table) -> pa.Table:
    import pyarrow as pa

    return rows.take(pa.array(range(len(rows)), pa.int64()))


@define
class _FileSet:
    """Files of one task, of which at most one is open."""

    _target: RowTarget
    changes: list[FileChange] = field(factory=list)
    _partition: RowPartition | None = None
    _file: _OpenFile | None = None
    _paths: list[str] = field(factory=list)
    _modes: MetricsModes = field(init=False)
    _place: AbstractFileSystem = field(init=False)
    _inside: str = field(init=False)
    _arrow: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        target = self._target
        self._modes = metrics_modes(target.schema)
        with reading(target.folder):
            self._place, self._inside = target.access.open(target.folder)
        self._arrow = target.file_schema.to_arrow()

    def takes(self, partition: RowPartition) -> bool:
        """Return whether rows of a partition can be written now: it is open, or none is."""
        return self._partition is None or self._partition == partition

    def write(self, partition: RowPartition, rows: pa.Table) -> None:
        """Write rows into the open file of their partition, or into a new one."""
        with reading(self._target.folder):
            self._partition = partition
            if self._file is None:
                self._file = self._open(partition)
            if self._file.write(_with_names_of(rows, self._arrow)):
                self._finish(self._file, partition)

    def close(self) -> None:
        """Finish the open file; the next rows may be of any partition."""
        with reading(self._target.folder):
            if self._file is not None and self._partition is not None:
                self._finish(self._file, self._partition)
            self._partition = None

    def _open(self, partition: RowPartition) -> _OpenFile:
        opened = now_millis()
        name = f"{partition.folder}{new_row_file_name(opened, fresh_id())}"
        path = f"{self._inside}/{name}"
        self._place.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._paths.append(path)
        sink = self._place.open(path, "wb")
        return _OpenFile(name, path, opened, sink, self._arrow, self._target.target_file_size)

    def _finish(self, file: _OpenFile, partition: RowPartition) -> None:
        target = self._target
        metadata, size = file.close(fsync=place_of(target.folder).family == LOCAL)
        # Until here `discard` abandons it.
        self._file = None
        footer = footer_from_metadata(file.path, metadata, size, file.opened_millis)
        url = f"{target.folder}/{file.name}"
        # Names that a schema has are found by its id.
        is_newest = target.schema_id == target.schema.id
        unknown_names = dict(target.column_names) if is_newest else {}
        statistics = FileStatistics.of_fields(footer, target.file_schema.fields, self._modes)
        self.changes.append(
            FileChange(
                path=FileNames(target.location).usual(url),
                partition=partition.values,
                schema_id=target.schema_id,
                record_count=footer.record_count,
                file_size_in_bytes=size,
                creation_time=file.opened_millis,
                spec_id=target.spec.spec_id,
                field_ids=True,
                value_counts=statistics.value_counts,
                null_value_counts=statistics.null_value_counts,
                lower_bounds=statistics.lower_bounds,
                upper_bounds=statistics.upper_bounds,
                column_names=unknown_names or UNSET,
            )
        )

    def sync_folders(self) -> None:
        """Make the entries of local folders durable, up to the attempt's parent folder."""
        if place_of(self._target.folder).family != LOCAL:
            return
        folders = {self._inside.rpartition("/")[0], self._inside}
        for path in self._paths:
            folder = path.rpartition("/")[0]
            while len(folder) > len(self._inside):
                folders.add(folder)
                folder = folder.rpartition("/")[0]
        for folder in folders if self._paths else ():
            number = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)

    def discard(self) -> None:
        """Remove all files, best effort."""
        if self._file is not None:
            self._file.abandon()
        for path in self._paths:
            # Each client library has its own exceptions.
            with suppress(Exception):
                self._place.rm_file(path)


@define
class _OpenFile:
    """A Parquet file that is being written."""

    name: str
    path: str
    opened_millis: int
    _sink: Any
    _arrow: Any
    _target_bytes: int
    _writer: Any = field(init=False)
    _rows: list[Any] = field(factory=list)
    _row_bytes: int = 0
    _collected: list[Any] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        from pyarrow import parquet

        self._writer = parquet.ParquetWriter(
            self._sink, self._arrow, compression="zstd", metadata_collector=self._collected
        )

    def write(self, rows: pa.Table) -> bool:
        """Add rows; return whether the file has its target size."""
        for part in _parts_of(rows, self._row_group_bytes):
            self._rows.append(part)
            self._row_bytes += part.nbytes
            if self._row_bytes >= self._row_group_bytes:
                self._flush()
        return bool(self._sink.tell() >= self._target_bytes)

    @property
    def _row_group_bytes(self) -> int:
        wanted = self._target_bytes // _ROW_GROUPS_A_FILE
        return max(_LEAST_ROW_GROUP_BYTES, min(_MOST_ROW_GROUP_BYTES, wanted))

    def _flush(self) -> None:
        import pyarrow as pa

        if self._rows:
            group = pa.concat_tables(self._rows)
            self._writer.write_table(group, row_group_size=len(group))
            self._rows, self._row_bytes = [], 0

    def close(self, *, fsync: bool) -> tuple[bytes, int]:
        """Finish the file durably; return its footer as a Parquet file, and its size in bytes."""
        self._flush()
        self._writer.close()
        size = int(self._sink.tell())
        if fsync:
            self._sink.flush()
            os.fsync(self._sink.fileno())
        self._sink.close()
        footer = BytesIO()
        self._collected[0].write_metadata_file(footer)
        return footer.getvalue(), size

    def abandon(self) -> None:
        """Close the file without finishing it."""
        # Its finaliser would write to the closed file, and print that it cannot.
        self._writer.is_open = False
        discard = getattr(self._sink, "discard", self._sink.close)
        with suppress(Exception):
            discard()


def _parts_of(rows: pa.Table, most_bytes: int) -> Iterator[pa.Table]:
    """Yield rows in parts of about a number of bytes."""
    count = max(1, len(rows) * most_bytes // max(1, rows.nbytes))
    for start in range(0, len(rows), count):
        yield rows.slice(start, count)


@define
class _HeldRows:
    """Rows of several partitions, in memory and in temporary files."""

    _most_bytes: int
    _held: dict[tuple[Any, ...], tuple[RowPartition, list[Any]]] = field(factory=dict)
    _bytes: int = 0
    _spills: list[_Spill] = field(factory=list)
    _cleanup: ExitStack = field(factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def add(self, partition: RowPartition, rows: pa.Table) -> None:
        """Hold rows of a partition."""
        self._held.setdefault(_key(partition), (partition, []))[1].append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= self._most_bytes:
            self._spill()

    def drain(self) -> Iterator[tuple[RowPartition, Iterator[pa.Table]]]:
        """Yield each partition with its rows, in the order of folders."""
        every = {key: partition for spill in self._spills for key, partition in spill.partitions}
        every |= {key: partition for key, (partition, _) in self._held.items()}
        for key, partition in sorted(every.items(), key=lambda each: each[1].folder):
            yield partition, self._rows_of(key)

    def _rows_of(self, key: tuple[Any, ...]) -> Iterator[pa.Table]:
        for spill in self._spills:
            yield from spill.read(key)
        yield from self._held.pop(key, (None, []))[1]

    def _spill(self) -> None:
        folder = self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="lakeledger-"))
        self._spills.append(_Spill.write(f"{folder}/rows.arrow", self._held))
        self._held, self._bytes = {}, 0


def _key(partition: RowPartition) -> tuple[Any, ...]:
    # 1, True and 1.0 are equal in Python.
    return tuple((type(each), each) for each in partition.values)


@frozen
class _Spill:
    """Rows of partitions in a temporary Arrow file."""

    path: str
    places: Mapping[tuple[Any, ...], tuple[RowPartition, range]]

    @classmethod
    def write(
        cls, path: str, held: Mapping[tuple[Any, ...], tuple[RowPartition, list[Any]]]
    ) -> _Spill:
        import pyarrow as pa

        schema = next(iter(held.values()))[1][0].schema
        places: dict[tuple[Any, ...], tuple[RowPartition, range]] = {}
        written = 0
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for key, (partition, tables) in held.items():
                batches = pa.concat_tables(tables).combine_chunks().to_batches()
                for each in batches:
                    writer.write_batch(each)
                places[key] = partition, range(written, written + len(batches))
                written += len(batches)
        return cls(path, places)

    @property
    def partitions(self) -> Iterator[tuple[tuple[Any, ...], RowPartition]]:
        """The partitions with rows, by their keys."""
        return ((key, partition) for key, (partition, _) in self.places.items())

    def read(self, key: tuple[Any, ...]) -> Iterator[pa.Table]:
        """Yield the rows of a partition."""
        import pyarrow as pa

        if key not in self.places:
            return
        with pa.memory_map(self.path) as source:
            reader = pa.ipc.open_file(source)
            for number in self.places[key][1]:
                yield pa.Table.from_batches([reader.get_batch(number)])
