"""A task's rows as Parquet files of a table: its field ids, one partition a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ledger.files.registering.hive import escape
from ledger.log.request import fresh_id
from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import PartitionValue
from ledger.model.iceberg.layout import PartitionField, PartitionSpec
from ledger.model.messages.similar import meant
from ledger.model.schema import Schema, paths_of
from ledger.model.transforms import Period, Void, transform_of
from ledger.model.transforms.paths import field_types
from ledger.model.transforms.values import encode_value
from ledger.model.types.text import bare_text
from ledger.stores.file_access import FileAccess

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_OPEN = 32
"""Files that a task holds open; the rows of further partitions begin new ones."""

_MONTHS, _HOURS = 12, 24
_EPOCH_YEAR = 1970


@frozen
class BatchFiles:
    """Where and how the rows of one attempt at a micro-batch are written; pickled to executors.

    Attributes:
        folder: The attempt's own, as a URL: nothing else was ever written there.
        schema: The table's.
        spec: The partition spec to write by.
        columns: Names of the columns that the rows have.
        access: Permission to open files in the folder.
    """

    folder: str
    schema: Schema
    spec: PartitionSpec
    columns: tuple[str, ...]
    access: FileAccess = field(hash=False)

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows of a task; yield the URLs of its files, when they are durable.

        Raises:
            ArrowInvalid: A value does not fit its column without loss.
            InvalidInputError: Text or bytes are longer than their column's type.
        """
        import pyarrow as pa

        writer = _TaskFiles(self)
        try:
            for batch in batches:
                if batch.num_rows:
                    for folder, rows in self._partitions(self._fitted(batch)):
                        writer.add(folder, rows)
        finally:
            writer.close()
        yield pa.RecordBatch.from_pydict({"path": pa.array(writer.urls, pa.string())})

    def arrow_schema(self) -> pa.Schema:
        """Return the files' schema, every column with its field id."""
        import pyarrow as pa

        wanted = set(self.columns)
        return pa.schema([each for each in self.schema.to_arrow() if each.name in wanted])

    def _fitted(self, batch: pa.RecordBatch) -> pa.Table:
        import pyarrow as pa

        schema = self.arrow_schema()
        arrays = [batch.column(each.name).cast(each.type) for each in schema]
        for each, values in zip(schema, arrays, strict=True):
            _refuse_longer(values, self.schema.field(each.name).type, each.name)
        return pa.Table.from_arrays(arrays, schema=schema)

    def _partitions(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of each partition, with its folders."""
        import pyarrow as pa
        import pyarrow.compute as pc

        codes: Any = pa.array([0] * len(rows), pa.int64())
        folders: list[str] = [""]
        for each in self.spec.fields:
            names, places = self._folders(rows, each)
            codes = pc.add(pc.multiply(codes, len(names)), places)
            folders = [f"{outer}{inner}" for outer in folders for inner in names]
        ordered = rows.take(pc.array_sort_indices(codes))
        start = 0
        for each in pc.value_counts(pc.take(codes, pc.array_sort_indices(codes))):
            count = each["counts"].as_py()
            yield folders[each["values"].as_py()], ordered.slice(start, count)
            start += count

    def _folders(self, rows: pa.Table, wanted: PartitionField) -> tuple[list[str], pa.Array]:
        """Return a partition field's folders, and for each row which of them it belongs into."""
        import pyarrow as pa
        import pyarrow.compute as pc

        source = field_types(self.schema).get(wanted.source_id)
        transform = transform_of(wanted.transform)
        if source is None or isinstance(transform, Void):
            return [""], pa.array([0] * len(rows), pa.int64())
        encoded = self._source(rows, wanted).dictionary_encode(null_encoding="encode")
        result = transform.result_type(source)
        found: dict[str, int] = {}
        places = []
        for value in encoded.dictionary.to_pylist():
            applied = transform.apply(_value(value, source), source)
            text = _folder(wanted, encode_value(applied, result))
            places.append(found.setdefault(text, len(found)))
        return list(found), pc.take(pa.array(places, pa.int64()), encoded.indices)

    def _source(self, rows: pa.Table, wanted: PartitionField) -> pa.Array:
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
    """The files that one task writes."""

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
                self._finish(next(iter(self._open)))
            # Task attempts, too, must not meet in one name.
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
            self._finish(folder)

    def _finish(self, folder: str) -> None:
        sink, writer = self._open.pop(folder)
        writer.close()
        if hasattr(sink, "fileno"):
            # A commit is durable, so what it names has to be, too.
            sink.flush()
            os.fsync(sink.fileno())
        sink.close()


def _refuse_longer(values: Any, data_type: t.DataType, name: str) -> None:
    """Check that no text or bytes are longer than their type, at any depth.

    Raises:
        InvalidInputError: Some are.
    """
    import pyarrow.compute as pc

    match data_type:
        case t.RowType(fields=fields):
            for each in fields:
                inner = pc.struct_field(values, each.name)
                _refuse_longer(inner, each.type, f"{name}.{each.name}")
        case t.ArrayType(element=element):
            _refuse_longer(values.flatten(), element, f"{name}.element")
        case t.MapType(key=key, value=value):
            _refuse_longer(values.keys, key, f"{name}.key")
            _refuse_longer(values.items, value, f"{name}.value")
        case t.CharType(length=length) | t.VarCharType(length=length):
            _refuse_above(pc.max(pc.utf8_length(values)).as_py(), length, data_type, name)
        case t.BinaryType(length=length) | t.VarBinaryType(length=length):
            _refuse_above(pc.max(pc.binary_length(values)).as_py(), length, data_type, name)


def _refuse_above(found: int | None, most: int, data_type: t.DataType, name: str) -> None:
    if found is not None and found > most:
        shown = bare_text(data_type)
        raise InvalidInputError(
            f"column {name} is {shown}, and a value has the length {found}; cut the values, or "
            "change the column's type"
        )


def _value(value: Any, source: t.DataType) -> Any:
    """Return an Arrow value as transforms take it."""
    if isinstance(value, Decimal) and isinstance(source, t.DecimalType):
        return int(value.scaleb(source.scale))
    return value


def _folder(wanted: PartitionField, value: PartitionValue) -> str:
    """Return the folder of one value, as Iceberg's paths have it.

    A blank text has none: a folder of that name would be NULL's, and the file's own statistics
    say which of the two it is.
    """
    if isinstance(value, str) and not value.strip():
        return ""
    text = "__HIVE_DEFAULT_PARTITION__" if value is None else _text(wanted.transform, value)
    return f"{escape(wanted.name)}={escape(text)}/"


def _text(transform: str, value: str | int | bool) -> str:  # noqa: FBT001 - a value
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


def refuse_unfit(columns: Sequence[str], schema: Schema, name: str) -> None:
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
            f"{name} has no column {unknown[0]}; {meant(unknown[0], schema.names)} "
            "Add it, or select the others"
        )
    missing = [
        each.name for each in schema.fields if not each.type.nullable and each.name not in columns
    ]
    if missing:
        raise InvalidInputError(f"{name} needs column {missing[0]}, which is NOT NULL; select it")
