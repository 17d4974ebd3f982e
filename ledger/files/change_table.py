"""File changes as Arrow tables and Parquet bytes, and back without loss."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from ledger.events.commit import FORMAT
from ledger.log.codec import other_format
from ledger.model.arrow_arrays import flags, numbers, texts
from ledger.model.bounded.parquet import opened
from ledger.model.file_change import RARE_FACTS, FileChange

if TYPE_CHECKING:
    import pyarrow as pa


_FORMAT_KEY = b"lakeledger.changes"
_FORMAT = b"%d" % FORMAT
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
    "sort_order_id": "int64",
    "referenced_data_file": "string",
    "content_offset": "int64",
    "content_size_in_bytes": "int64",
}
_REPEATED = ["kind", "format", "content"]
"""Texts that most files share."""
_LISTS = {"partition": "string", "extra_files": "string", "equality_ids": "int64"}
_MAPS = {
    "value_counts": "int64",
    "null_value_counts": "int64",
    "lower_bounds": "string",
    "upper_bounds": "string",
    "sidecar": "string",
}
_OPTIONAL = frozenset({"first_row_id", "extra_files", *_MAPS, *RARE_FACTS})
_RARE = ("sidecar", *RARE_FACTS)
"""The columns that a list has only where a file says so."""


def to_table(files: Sequence[FileChange]) -> pa.Table:
    """Return file changes as an Arrow table."""
    import pyarrow as pa

    names = FileChange.__struct_fields__
    columns: list[Sequence[Any]] = [*zip(*map(astuple, files), strict=True)] or [() for _ in names]
    arrays = {name: _array(name, column) for name, column in zip(names, columns, strict=True)}
    for name in _RARE:
        if arrays[name].null_count == len(files):
            del arrays[name]
    return pa.table(arrays).replace_schema_metadata({_FORMAT_KEY: _FORMAT})


def _array(name: str, column: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    if name == "partition":
        parts = [_json_texts(each) for each in column] if any(column) else [()] * len(column)
        starts = [*accumulate(map(len, parts), initial=0)]
        inside = texts([*chain.from_iterable(parts)])
        return pa.ListArray.from_arrays(numbers(starts, pa.int32()), inside)
    if name in _OPTIONAL:
        if column.count(UNSET) == len(column):
            # Most files say none of this.
            return pa.nulls(len(column), _optional_type(name))
        return _optional_array(name, [*map(_present, column)])
    kind = _PLAIN[name]
    if kind == "string":
        return texts(column)
    return flags(column) if kind == "bool" else numbers(column, pa.int64())


def _optional_array(name: str, values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    kind = _optional_type(name)
    if not any(each is not None for each in values):
        return pa.nulls(len(values), kind)
    return _map_array(values, kind.item_type) if name in _MAPS else pa.array(values, kind)


def _optional_type(name: str) -> pa.DataType:
    import pyarrow as pa

    if name in _MAPS:
        return pa.map_(pa.int64(), getattr(pa, _MAPS[name])())
    if name in _LISTS:
        return pa.list_(getattr(pa, _LISTS[name])())
    return getattr(pa, _PLAIN[name])()


def _present(value: Any) -> Any:
    return None if value is UNSET else value


def _json_texts(values: Iterable[Any]) -> list[str]:
    return [msgspec.json.encode(each).decode() for each in values] if values else []


def _map_array(maps: Sequence[dict[int, Any] | None], values: pa.DataType) -> pa.Array:
    import pyarrow as pa

    # An offset of NULL marks a row without a map; the last one only ends the last row.
    ends = accumulate((len(each or ()) for each in maps), initial=0)
    starts = [None if each is None else start for each, start in zip(maps, ends, strict=False)]
    present = [each for each in maps if each]
    total = sum(map(len, present))
    if None in starts:
        offsets = pa.array([*starts, total], pa.int32())
    else:
        offsets = numbers([*(each or 0 for each in starts), total], pa.int32())
    items = [*chain.from_iterable(each.values() for each in present)]
    return pa.MapArray.from_arrays(
        offsets,
        numbers([*chain.from_iterable(present)], pa.int64()),
        texts(items) if values == pa.string() else numbers(items, values),
    )


def from_table(table: pa.Table) -> list[FileChange]:
    """Return the file changes of an Arrow table that `to_table` made; further columns may follow.

    Raises:
        ValueError: The table is no such table.
    """
    there = set(table.column_names)
    missing = lacking(there)
    if missing:
        raise ValueError(f"it lacks the columns {missing}")
    names = [each for each in FileChange.__struct_fields__ if each in there]
    columns = (_column(table, name) for name in names)
    return [FileChange(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def lacking(names: Collection[str]) -> list[str]:
    """Return which columns a table lacks that every table of file changes has, sorted.

    Example:
        >>> from ledger.model.file_change import FileChange
        >>> lacking({*FileChange.__struct_fields__} - {"path"})
        ['path']
    """
    every = (each for each in FileChange.__struct_fields__ if each not in _RARE)
    return sorted(each for each in every if each not in names)


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
    for index, present in enumerate(_those_there(array)):
        yield (offsets[index], offsets[index + 1]) if present else None


def _those_there(array: Any) -> list[bool]:
    # Mostly all are there or none is, and asking for each loads Arrow's functions.
    if array.null_count in (0, len(array)):
        return [not array.null_count] * len(array)
    present: list[bool] = array.is_valid().to_pylist()
    return present


def parquet_of(table: pa.Table) -> bytes:
    """Return a table as the bytes of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    if table.num_rows < _FEW_ROWS:
        # Of what is small, what stands beside the values takes longer to read than they do: a page
        # of a dictionary a column, bounds that nobody asks for, and how to begin to decompress.
        parquet.write_table(
            table, sink, compression="snappy", use_dictionary=_REPEATED, write_statistics=False
        )
    else:
        parquet.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def parsed(body: bytes, count: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the table in the bytes of a Parquet file of file changes.

    Args:
        body: The bytes.
        count: How many it must hold, if that is known.
        columns: Which are read; all of them, without.

    Raises:
        ValueError: The bytes are no such file, or decode to more than a list of their size.
        UpgradeRequiredError: A newer version wrote them.
    """
    import pyarrow as pa

    try:
        file = opened(body, "the list of file changes", columns)
        # Before any row is read.
        metadata = file.arrow.metadata
        _check_format((metadata.metadata or {}).get(_FORMAT_KEY, b""))
        if count not in {None, metadata.num_rows}:
            raise ValueError(f"it holds {metadata.num_rows} and not {count}")
        return file.table()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"they are no Parquet file: {error}") from error


def _check_format(text: bytes) -> None:
    if not text.isdigit():
        raise ValueError("the file does not say that it holds file changes")
    if text != _FORMAT:
        raise other_format("a list of file changes", int(text))
