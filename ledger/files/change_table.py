"""File changes as Arrow tables and Parquet bytes, and back without loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from ledger.model.errors import UpgradeRequiredError
from ledger.model.file_change import FileChange

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_owned(body: bytes) -> pa.BufferReader:
    """Return a copy to read a Parquet file from with threads.

    Arrow's threads let go of what they read a moment after the rows are there. Letting go of
    Python's own bytes takes the interpreter, and a thread that asks for it while the interpreter
    ends takes the whole process down.

    Example:
        >>> arrow_owned(b"abc").read()
        b'abc'
    """
    import pyarrow as pa

    buffer = pa.allocate_buffer(len(body))
    with pa.FixedSizeBufferWriter(buffer) as writer:
        writer.write(body)
    return pa.BufferReader(buffer)


_FORMAT_KEY = b"lakeledger.changes"
_FORMAT = 1
_SMALL_BYTES = 1_000_000
_FEW_ROWS = 1_000

# Column name to Arrow type; the names are those of FileChange.
_PLAIN = {
    "kind": "string",
    "path": "string",
    "schema_id": "int64",
    "record_count": "int64",
    "file_size_in_bytes": "int64",
    "creation_time": "int64",
    "format": "string",
    "content": "string",
    "spec_id": "int64",
    "bucket": "int64",
    "level": "int64",
    "field_ids": "bool",
    "first_row_id": "int64",
}
_LISTS = ("partition", "extra_files")
_MAPS = {
    "value_counts": "int64",
    "null_value_counts": "int64",
    "lower_bounds": "string",
    "upper_bounds": "string",
}
_OPTIONAL = frozenset({"first_row_id", "extra_files", *_MAPS})


def to_table(files: Sequence[FileChange]) -> pa.Table:
    """Return file changes as an Arrow table."""
    import pyarrow as pa

    types = {name: getattr(pa, _call(kind))() for name, kind in {**_PLAIN, **_MAPS}.items()}
    arrays: dict[str, pa.Array] = {}
    for name in FileChange.__struct_fields__:
        values = [_present(getattr(each, name)) for each in files]
        if name == "partition":
            arrays[name] = pa.array(map(_json_texts, values), pa.list_(pa.string()))
        elif name == "extra_files":
            arrays[name] = pa.array(values, pa.list_(pa.string()))
        elif name in _MAPS:
            arrays[name] = _map_array(values, types[name])
        else:
            arrays[name] = pa.array(values, types[name])
    return pa.table(arrays).replace_schema_metadata({_FORMAT_KEY: str(_FORMAT)})


def _call(kind: str) -> str:
    return "bool_" if kind == "bool" else kind


def _present(value: Any) -> Any:
    return None if value is UNSET else value


def _json_texts(values: Iterable[Any]) -> list[str]:
    return [msgspec.json.encode(each).decode() for each in values]


def _map_array(maps: Sequence[dict[int, Any] | None], values: pa.DataType) -> pa.Array:
    import pyarrow as pa

    # An offset of NULL marks a row without a map; the last one only ends the last row.
    offsets: list[int | None] = []
    end = 0
    for each in maps:
        offsets.append(None if each is None else end)
        end += len(each or ())
    present = [each for each in maps if each]
    return pa.MapArray.from_arrays(
        pa.array([*offsets, end], pa.int32()),
        pa.array(list(chain.from_iterable(present)), pa.int64()),
        pa.array(list(chain.from_iterable(each.values() for each in present)), values),
    )


def from_table(table: pa.Table) -> list[FileChange]:
    """Return the file changes of an Arrow table that `to_table` made; further columns may follow.

    Raises:
        ValueError: The table is no such table.
    """
    names = FileChange.__struct_fields__
    missing = sorted(set(names) - set(table.column_names))
    if missing:
        raise ValueError(f"it lacks the columns {missing}")
    columns = (_column(table, name) for name in names)
    return [FileChange(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _column(table: pa.Table, name: str) -> list[Any]:
    array = table.column(name).combine_chunks()
    if name in _MAPS:
        values: list[Any] = _maps(array)
    elif name in _LISTS:
        values = _lists(array)
    else:
        values = array.to_pylist()
    if name == "partition":
        known: dict[tuple[str, ...], tuple[Any, ...]] = {}
        return [known.get(each) or known.setdefault(each, _scalars(each)) for each in values]
    return [UNSET if each is None else each for each in values] if name in _OPTIONAL else values


def _scalars(texts: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(msgspec.json.decode(each) for each in texts)


def _maps(array: pa.MapArray) -> list[dict[int, Any] | None]:
    keys, items = array.keys.to_pylist(), array.items.to_pylist()
    return [
        None
        if span is None
        else dict(zip(keys[span[0] : span[1]], items[span[0] : span[1]], strict=True))
        for span in _spans(array)
    ]


def _lists(array: pa.ListArray) -> list[tuple[str, ...] | None]:
    values = array.values.to_pylist()
    return [None if span is None else tuple(values[span[0] : span[1]]) for span in _spans(array)]


def _spans(array: Any) -> Iterator[tuple[int, int] | None]:
    offsets = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    for index, present in enumerate(valid):
        yield (offsets[index], offsets[index + 1]) if present else None


def parquet_of(table: pa.Table) -> bytes:
    """Return a table as the bytes of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    # A page that is small takes longer to begin to decompress than to decompress.
    compression = "snappy" if table.num_rows < _FEW_ROWS else "zstd"
    parquet.write_table(table, sink, compression=compression)
    return bytes(sink.getvalue())


def parsed(body: bytes, count: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the table in the bytes of a Parquet file of file changes.

    Args:
        body: The bytes.
        count: How many it must hold, if that is known.
        columns: Which are read; all of them, without.

    Raises:
        ValueError: The bytes are no such file.
        UpgradeRequiredError: A newer version wrote them.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(arrow_owned(body))
        # Before any row is read: a few bytes can unpack to gigabytes.
        _check_format((file.schema_arrow.metadata or {}).get(_FORMAT_KEY, b""))
        if count not in {None, file.metadata.num_rows}:
            raise ValueError(f"it holds {file.metadata.num_rows} and not {count}")
        # Threads take longer to begin than a small file takes to read.
        wanted = None if columns is None else list(columns)
        return file.read(wanted, use_threads=len(body) > _SMALL_BYTES)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"they are no Parquet file: {error}") from error


def _check_format(text: bytes) -> None:
    if not text.isdigit():
        raise ValueError("the file does not say that it holds file changes")
    if int(text) > _FORMAT:
        raise UpgradeRequiredError(
            f"a list of file changes has format {int(text)}; this version reads format {_FORMAT}: "
            "upgrade lakeledger"
        )
