"""Change files: lists of file changes as Parquet files next to the log, without loss."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from ledger.events.commit import FORMAT, Commit
from ledger.events.partitions import PartitionsUpdated
from ledger.events.snapshots import ChangesReference, ListingEvent
from ledger.log.codec import unsupported_format_error
from ledger.log.layout import Layout
from ledger.model.arrow_types import boolean_array, integer_array, text_values, texts
from ledger.model.errors import DamagedLogError, StoreError, UpgradeRequiredError
from ledger.model.file_change import RARE_FACTS, FileChange, find_unknown_key, inline_files
from ledger.model.parquet_limits import BoundedParquetFile, open_checked_parquet
from ledger.stores import Store

if TYPE_CHECKING:
    import pyarrow as pa


_FORMAT_KEY = b"lakeledger.changes"
_FORMAT = b"%d" % FORMAT
_FEW_ROWS = 1_000
_GROUP_ROWS: Final = 2_560
"""Rows in a row group of a list, which a lookup of one file decodes.

With fewer, opening the list takes longer: the metadata of each row group is checked in Python.
"""

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
"""Text columns in which most files have the same value."""
_LISTS = {"partition": "string", "extra_files": "string", "equality_ids": "int64"}
_MAPS = {
    "value_counts": "int64",
    "null_value_counts": "int64",
    "lower_bounds": "string",
    "upper_bounds": "string",
    "sidecar": "string",
    "column_names": "string",
}
_OPTIONAL = frozenset({"first_row_id", "extra_files", *_MAPS, *RARE_FACTS})
_RARE = ("sidecar", *RARE_FACTS)
"""Optional columns: a list has one only if a file sets the attribute."""


def to_table(files: Sequence[FileChange]) -> pa.Table:
    """Return file changes as an Arrow table."""
    import pyarrow as pa

    arrays = {
        name: _column_to_arrow_array(name, [*map(attrgetter(name), files)])
        for name in FileChange.__struct_fields__
    }
    return without_unset_columns(pa.table(arrays)).replace_schema_metadata({_FORMAT_KEY: _FORMAT})


def without_unset_columns(table: pa.Table) -> pa.Table:
    """Return a table without the rare columns that no file sets."""
    there = {*table.column_names}
    rare = [name for name in _RARE if name in there]
    return table.drop_columns([each for each in rare if table[each].null_count == len(table)])


def with_written_types(table: pa.Table) -> pa.Table:
    """Return a table that was read, with the names of nested values that `to_table` gives.

    Raises:
        pa.ArrowException: A column has another type.
    """
    schema = table.schema
    for place, name in enumerate(table.column_names):
        if name in _LISTS or name in _MAPS:
            schema = schema.set(place, schema.field(place).with_type(_optional_arrow_type(name)))
    return table.cast(schema)


def _column_to_arrow_array(name: str, column: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    if name == "partition":
        parts = [_encode_json_texts(each) for each in column] if any(column) else [()] * len(column)
        starts = [*accumulate(map(len, parts), initial=0)]
        inside = texts([*chain.from_iterable(parts)])
        return pa.ListArray.from_arrays(integer_array(starts, pa.int32()), inside)
    if name in _OPTIONAL:
        if column.count(UNSET) == len(column):
            # Most files have none of these attributes.
            return pa.nulls(len(column), _optional_arrow_type(name))
        return _optional_arrow_array(name, [*map(_unset_to_none, column)])
    kind = _PLAIN[name]
    if kind == "string":
        return texts(column)
    return boolean_array(column) if kind == "bool" else integer_array(column, pa.int64())


def _optional_arrow_array(name: str, values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    kind = _optional_arrow_type(name)
    if not any(each is not None for each in values):
        return pa.nulls(len(values), kind)
    return _map_array(values, kind.item_type) if name in _MAPS else pa.array(values, kind)


def _optional_arrow_type(name: str) -> pa.DataType:
    import pyarrow as pa

    if name in _MAPS:
        return pa.map_(pa.int64(), getattr(pa, _MAPS[name])())
    if name in _LISTS:
        return pa.list_(getattr(pa, _LISTS[name])())
    return getattr(pa, _PLAIN[name])()


def _unset_to_none(value: Any) -> Any:
    return None if value is UNSET else value


def _encode_json_texts(values: Iterable[Any]) -> list[str]:
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
        offsets = integer_array([*(each or 0 for each in starts), total], pa.int32())
    items = [*chain.from_iterable(each.values() for each in present)]
    return pa.MapArray.from_arrays(
        offsets,
        integer_array([*chain.from_iterable(present)], pa.int64()),
        texts(items) if values == pa.string() else integer_array(items, values),
    )


def changes_from_table(table: pa.Table) -> list[FileChange]:
    """Return the file changes of an Arrow table from `to_table`; additional columns are ignored.

    Raises:
        ValueError: A column is missing.
    """
    _refuse_missing_columns(table)
    there = set(table.column_names)
    names = [each for each in FileChange.__struct_fields__ if each in there]
    columns = (_column_values(table, name) for name in names)
    return [FileChange(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _refuse_missing_columns(table: pa.Table) -> None:
    missing = missing_required_columns(table.column_names)
    if missing:
        raise ValueError(f"it lacks the columns {missing}")


def missing_required_columns(names: Collection[str]) -> list[str]:
    """Return the required columns of file changes that are missing, sorted.

    Example:
        >>> from ledger.model.file_change import FileChange
        >>> missing_required_columns({*FileChange.__struct_fields__} - {"path"})
        ['path']
    """
    every = (each for each in FileChange.__struct_fields__ if each not in _RARE)
    return sorted(each for each in every if each not in names)


def _column_values(table: pa.Table, name: str) -> list[Any]:
    array = table.column(name).combine_chunks()
    if name in _MAPS:
        values: list[Any] = _map_array_values(array)
    elif name in _LISTS:
        values = _list_array_values(array)
    else:
        values = array.to_pylist()
    if name == "partition":
        known: dict[tuple[str, ...], tuple[Any, ...]] = {}
        return [
            known.get(each) or known.setdefault(each, _decode_json_texts(each)) for each in values
        ]
    return [UNSET if each is None else each for each in values] if name in _OPTIONAL else values


def _decode_json_texts(texts: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(msgspec.json.decode(each) for each in texts)


def _map_array_values(array: pa.MapArray) -> list[dict[int, Any] | None]:
    keys, items = array.keys.to_pylist(), array.items.to_pylist()
    return [
        None
        if span is None
        else dict(zip(keys[span[0] : span[1]], items[span[0] : span[1]], strict=True))
        for span in _value_offset_ranges(array)
    ]


def _list_array_values(array: pa.ListArray) -> list[tuple[str, ...] | None]:
    values = array.values.to_pylist()
    return [
        None if span is None else tuple(values[span[0] : span[1]])
        for span in _value_offset_ranges(array)
    ]


def _value_offset_ranges(array: Any) -> Iterator[tuple[int, int] | None]:
    offsets = array.offsets.to_pylist()
    for index, present in enumerate(_validity_flags(array)):
        yield (offsets[index], offsets[index + 1]) if present else None


def _validity_flags(array: Any) -> list[bool]:
    # Usually all values are null or none is; a check of each would load Arrow's compute functions.
    if array.null_count in (0, len(array)):
        return [not array.null_count] * len(array)
    present: list[bool] = array.is_valid().to_pylist()
    return present


def table_to_parquet(table: pa.Table, group_rows: int | None = None) -> bytes:
    """Return a table as the bytes of a Parquet file.

    Args:
        table: The table.
        group_rows: The number of rows in a row group; None: a million.
    """
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    if table.num_rows < _FEW_ROWS:
        # In a small file the overhead takes longer to read than the values: unused statistics, and
        # the setup of decompression.
        parquet.write_table(
            table, sink, compression="snappy", use_dictionary=_REPEATED, write_statistics=False
        )
    else:
        # A dictionary of paths or sizes, which do not repeat, is larger and slower to read. Lookups
        # use the statistics of paths only.
        parquet.write_table(
            table,
            sink,
            compression="zstd",
            use_dictionary=_REPEATED,
            row_group_size=group_rows,
            write_statistics=["path"],
        )
    return bytes(sink.getvalue())


def read_changes_table(
    body: bytes, count: int | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return the table in the bytes of a Parquet file of file changes.

    Args:
        body: The bytes.
        count: The expected number of file changes, if known.
        columns: The columns to read; None for all.

    Raises:
        ValueError: The bytes are not such a file, or exceed the limits for its size.
        UpgradeRequiredError: A newer version wrote them.
    """
    import pyarrow as pa

    try:
        return open_changes(body, count, columns).table()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"they are no Parquet file: {error}") from error


def read_changes_in_batches(body: bytes, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """Yield some columns of a file of file changes, at most some rows at a time.

    Args:
        body: The bytes.
        columns: The columns.
        rows: Maximum number of rows in a table.

    Raises:
        ValueError: As `read_changes_table`.
        UpgradeRequiredError: A newer version wrote them.
    """
    import pyarrow as pa

    try:
        yield from open_changes(body, None, columns).tables(rows)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"they are no Parquet file: {error}") from error


def open_changes(
    body: bytes, count: int | None, columns: Sequence[str] | None
) -> BoundedParquetFile:
    """Return a file of file changes whose metadata is checked, before any row is read.

    Args:
        body: The bytes.
        count: The expected number of file changes, if known.
        columns: The columns to read; None for all.

    Raises:
        ValueError: The bytes declare no such file, or exceed the limits for its size.
        UpgradeRequiredError: A newer version wrote them.
        pa.ArrowException, OSError: They are no Parquet file.
    """
    file = open_checked_parquet(body, "the list of file changes", columns)
    metadata = file.arrow.metadata
    check_format_version((metadata.metadata or {}).get(_FORMAT_KEY, b""), _NOUN)
    if count not in {None, metadata.num_rows}:
        raise ValueError(f"it holds {metadata.num_rows} file changes, not {count}")
    return file


_NOUN: Final = "a list of file changes"


def check_format_version(text: bytes, noun: str) -> None:
    """Check the format number in a change file's metadata.

    Args:
        text: The number; empty if the metadata has none.
        noun: The kind of file, for messages.

    Raises:
        ValueError: The file is not of that kind.
        UpgradeRequiredError: A newer version wrote it.
    """
    if not text.isdigit():
        raise ValueError(f"the file's metadata does not declare {noun}")
    if text != _FORMAT:
        raise unsupported_format_error(noun, int(text))


INLINE_LIMIT = 1000
"""Maximum number of file changes in a commit; a longer list is written to a change file."""

COMMITTABLE_MILLIS: Final = 24 * 3_600_000
"""Maximum age of a change file when a commit names it, in milliseconds.

The age is measured by the commit's own time, so that it does not depend on any machine's clock: a
change file that is older than the newest commit by more, and not named yet, never will be.
"""

_name_of = re.compile(r"(\d{13,})-[0-9a-f]{64}\.parquet").fullmatch


def write_changes(files: Sequence[FileChange]) -> bytes:
    """Return a list of file changes as the bytes of a Parquet file.

    Each attribute is a column. Partition values are a list of JSON scalars, so that text, numbers,
    booleans and NULL stay distinct; an unset attribute is NULL.
    """
    return table_to_parquet(to_table(files), _GROUP_ROWS)


def write_changes_by_path(files: Sequence[FileChange]) -> bytes:
    """Return a list of file changes in the order of paths, in which lookups decode little.

    The files themselves are read in their own order: in another one, most are not in the
    processor's caches.
    """
    import pyarrow as pa

    paths = [each.path for each in files]
    order = integer_array(sorted(range(len(paths)), key=paths.__getitem__), pa.int64())
    return table_to_parquet(to_table(files).take(order), _GROUP_ROWS)


def read_changes(body: bytes, count: int | None = None) -> tuple[FileChange, ...]:
    """Return the file changes in a change file's bytes; the inverse of `write_changes`.

    Args:
        body: The bytes.
        count: The expected number of file changes, if known; checked before rows are read.

    Raises:
        ValueError: The bytes are not such a file.
        UpgradeRequiredError: A newer version wrote them.
    """
    return tuple(changes_from_table(read_changes_table(body, count)))


def rows_of_files(table: pa.Table, paths: Collection[str]) -> pa.Table:
    """Return the rows of some files: the others do not become objects."""
    import pyarrow.compute as pc

    if not len(table):
        # Arrow's search in an array without memory ends the process.
        return table
    return table.take(pc.indices_nonzero(pc.is_in(table["path"], texts([*paths]))))


def column_texts(table: pa.Table, name: str) -> list[str]:
    """Return a text column of an Arrow table without nulls.

    Raises:
        KeyError: The table has no such column.
        ValueError: The column is not of texts.
    """
    return [*chain.from_iterable(map(text_values, table[name].chunks))]


def store_changes(
    store: Store, layout: Layout, files: Sequence[FileChange], written_millis: int
) -> ChangesReference:
    """Write a change file durably, and return the reference to it for the commit.

    The file's name has the time and the content's hash: its age is known on every store.

    Args:
        store: The store of the log.
        layout: The keys of the stream's files.
        files: The list.
        written_millis: The current Unix time in milliseconds, by the clock of the commit.

    Raises:
        OSError: It is unknown whether the file was written; nothing was committed, so retry.
        DamagedLogError: A file of that name has another content.
    """
    return store_change_file(store, layout, write_changes(files), len(files), written_millis)


def store_change_file(
    store: Store, layout: Layout, body: bytes, count: int, written_millis: int
) -> ChangesReference:
    """Write the bytes of a list of `count` changes durably; see `store_changes`."""
    digest = hashlib.sha256(body).hexdigest()
    name = f"{written_millis:013d}-{digest}.parquet"
    key = layout.changes(name)
    if not store.create(key, body) and store.confirm(key) != body:
        raise DamagedLogError(
            f"{key} was changed after it was written. Restore it from a backup", key
        )
    return ChangesReference(path=f"changes/{name}", sha256=digest, count=count)


def written_millis(name: str) -> int | None:
    """Return the Unix milliseconds in a change file's name; None if the name has none.

    Example:
        >>> written_millis(f"1700000000000-{64 * 'a'}.parquet")
        1700000000000
    """
    found = _name_of(name)
    return int(found[1]) if found else None


def refuse_stale_change_file(commit: Commit[Any]) -> None:
    """Reject a pending commit that names a change file which garbage collection may remove.

    Raises:
        StoreError: A change file was written more than a day before the commit; nothing was
            committed.
    """
    for reference in change_references(commit):
        written = written_millis(reference.path.removeprefix("changes/"))
        if written is not None and commit.time_millis - written > COMMITTABLE_MILLIS:
            raise StoreError(
                f"{reference.path} was written more than a day before its commit and may have "
                "been removed since; nothing was committed, so retry",
                kind="STALE_CHANGES",
            )


def change_references(commit: Commit[Any]) -> Iterator[ChangesReference]:
    """Yield the references to change files in a commit: of files, and of partitions."""
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, ListingEvent | PartitionsUpdated):
                changes = event.changes
                if not isinstance(changes, UnsetType):
                    yield changes


def load_changes(
    store: Store, layout: Layout, reference: ChangesReference
) -> tuple[FileChange, ...]:
    """Return the file changes in the change file that a commit names; see `event_files`.

    Raises:
        DamagedLogError: The file is missing, or its content is not what the commit names.
        UpgradeRequiredError: A newer version wrote it.
    """
    body = load_change_file(store, layout, reference)
    try:
        return read_changes(body, reference.count)
    except ValueError as error:
        raise invalid_changes_error(f"{layout.root}/{reference.path}", error) from error


def load_changes_table(store: Store, layout: Layout, reference: ChangesReference) -> pa.Table:
    """Return the table of the change file that a commit names; raises as `load_changes`."""
    body = load_change_file(store, layout, reference)
    try:
        table = read_changes_table(body, reference.count)
        _refuse_missing_columns(table)
    except ValueError as error:
        raise invalid_changes_error(f"{layout.root}/{reference.path}", error) from error
    return table


def invalid_changes_error(key: str, error: Exception) -> DamagedLogError:
    """Return the error for a change file that does not hold what its commit names."""
    return DamagedLogError(
        f"{key} does not hold the file changes that its commit names: {error}", key
    )


def load_change_file(store: Store, layout: Layout, reference: ChangesReference) -> bytes:
    """Return the bytes of the change file that a commit names.

    Raises:
        DamagedLogError: The file is missing, or its content is not what the commit names.
    """
    key = f"{layout.root}/{reference.path}"
    body = store.read(key)
    if body is None:
        raise DamagedLogError(
            f"{key} is missing, but a commit names it. Restore it from a backup", key
        )
    if hashlib.sha256(body).hexdigest() != reference.sha256:
        raise DamagedLogError(
            f"{key} is torn or was changed after it was written ({len(body)} bytes). Restore it "
            "from a backup; nothing was skipped",
            key,
        )
    return body


def event_files(store: Store, layout: Layout, event: ListingEvent) -> tuple[FileChange, ...]:
    """Return the file changes of a snapshot, from its event or its change file.

    Args:
        store: The store of the log.
        layout: The keys of the stream's files.
        event: The snapshot.

    Raises:
        DamagedLogError: The change file is missing or changed, or the list is invalid.
        UpgradeRequiredError: A newer version wrote them.
    """
    if isinstance(event.changes, UnsetType):
        try:
            return inline_files(event.files)
        except (ValueError, RecursionError) as error:
            unknown = find_unknown_key(event.files)
            if unknown is not None:
                raise UpgradeRequiredError(
                    f"the commit of snapshot {event.snapshot_id} in {layout.root}/log holds a file "
                    f"with the key {unknown!r}, which this version does not know: upgrade "
                    "lakeledger"
                ) from error
            raise DamagedLogError(
                f"the commit of snapshot {event.snapshot_id} in {layout.root}/log holds an invalid "
                f"list of files: {error}",
                f"{layout.root}/log",
            ) from error
    return load_changes(store, layout, event.changes)


def commit_files(store: Store, layout: Layout, commit: Commit[Any]) -> Iterator[FileChange]:
    """Yield the file changes of all snapshots of a commit; raises as `event_files`.

    A commit of the catalog has none.
    """
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, ListingEvent):
                yield from event_files(store, layout, event)
