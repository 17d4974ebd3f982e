"""Facts from Parquet footers, by one ranged read per file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ledger.files.bounds import ColumnFacts, Footer, FooterColumn
from ledger.model.arrow_types import FIELD_ID_KEY, from_arrow_type
from ledger.model.errors import (
    InvalidInputError,
    InvalidTypeError,
    NotFoundError,
    TooLargeError,
    UnsupportedError,
)
from ledger.model.parquet_limits import FOOTER_BYTES, read_metadata
from ledger.model.types import DataType, DecimalType
from ledger.stores.object_errors import reading

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow as pa
    from fsspec import AbstractFileSystem


OnProgress = Callable[[int, int], None]
"""Called with the number of files done and the number of all, after each file."""

_WORKERS = 8
_FIRST_READ_BYTES = 64 * 1024
_TRAILER_BYTES = 8
_MAGIC = b"PAR1"


def read_footers(
    paths: Sequence[str],
    *,
    filesystem: AbstractFileSystem,
    infos: Mapping[str, Mapping[str, Any]] | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[Footer, ...]:
    """Return the footers of several files, in their order; they are read concurrently.

    Args:
        paths: Paths in the spelling of `filesystem`.
        filesystem: The file system of the files.
        infos: Entries of a listing by path, which save one request per file.
        on_progress: Called with the number of files read and of all, after each file.

    Raises:
        NotFoundError: A file does not exist.
        StoreError: A file cannot be read, or its file system does not answer.
        InvalidInputError: A file is not a Parquet file, or is torn.
    """
    known = infos or {}
    footers: list[Footer] = []
    with _pool() as pool:

        def read(path: str) -> Footer:
            return read_footer(path, filesystem=filesystem, info=known.get(path))

        try:
            for footer in pool.map(read, paths):
                footers.append(footer)
                if on_progress is not None:
                    on_progress(len(footers), len(paths))
        finally:
            # After a failure the queued files need not be read.
            pool.shutdown(cancel_futures=True)
    return tuple(footers)


_CHUNK = 64


def existing_footers(
    names: Iterable[str], open_file: Callable[[str], tuple[AbstractFileSystem, str]]
) -> Iterator[tuple[str, Footer]]:
    """Yield the footers of the files that exist, with their names; they are read concurrently.

    Args:
        names: The files' names.
        open_file: Function from a name to a file system and the path in it.

    Raises:
        StoreError: A file cannot be read, or its file system does not answer.
        InvalidInputError: A file is not a Parquet file, or is torn.
        UnsupportedError: A file is outside of the permitted locations.
    """

    def read(name: str) -> tuple[str, Footer] | None:
        filesystem, path = open_file(name)
        try:
            return name, read_footer(path, filesystem=filesystem)
        except NotFoundError:
            return None

    left = iter(names)
    with _pool() as pool:
        # In chunks, so that a caller which stops early waits for few files.
        while some := list(islice(left, _CHUNK)):
            yield from filter(None, pool.map(read, some))


def read_footer(
    path: str, *, filesystem: AbstractFileSystem, info: Mapping[str, Any] | None = None
) -> Footer:
    """Read the footer of one Parquet file.

    Args:
        path: Path in the spelling of `filesystem`.
        filesystem: The file system of the file.
        info: The file's entry in a listing; None to request it.

    Raises:
        NotFoundError: The file does not exist.
        StoreError: The file cannot be read, or its file system does not answer.
        InvalidInputError: It is not a Parquet file, is torn, or has two columns of one name.
        TooLargeError: The footer declares more than its size allows.
    """
    with reading(f"file {path}"):
        known = info if info is not None else filesystem.info(path)
        size = int(known["size"])
        tail = _read_file_tail(path, filesystem, size)
    return footer_from_metadata(path, tail, size, _file_time_millis(known))


def footer_from_metadata(path: str, metadata: bytes, size: int, creation_time: int) -> Footer:
    """Return the footer in the end of a Parquet file.

    Args:
        path: The file's path, also for messages.
        metadata: The end of the file, with the whole footer.
        size: Size of the whole file, in bytes.
        creation_time: Time of the last write, Unix milliseconds.

    Raises:
        InvalidInputError: It is not the end of a Parquet file, or has two columns of one name.
        TooLargeError: The footer declares more than its size allows.
    """
    import pyarrow as pa

    try:
        read = read_metadata(metadata, path)
        columns = _footer_columns(read)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{path} is no readable Parquet file: {error}. Leave it out, or write it again"
        ) from error
    _refuse_duplicate_columns(path, columns, "")
    return Footer(path, read.num_rows, size, creation_time, columns)


def _refuse_duplicate_columns(path: str, columns: Sequence[FooterColumn], around: str) -> None:
    """Raise if a struct has two columns of one name, which readers could not distinguish."""
    seen: set[str] = set()
    for each in columns:
        if each.name in seen:
            raise InvalidInputError(
                f"{path} has two columns named {around + each.name!r}, and no reader could tell "
                "which is meant. Write it again with a name for each, or leave it out"
            )
        seen.add(each.name)
        _refuse_duplicate_columns(path, each.members, f"{around}{each.name}.")


def _read_file_tail(path: str, filesystem: AbstractFileSystem, size: int) -> bytes:
    """Return the end of a file, including its whole footer."""
    tail = bytes(filesystem.cat_file(path, start=max(0, size - _FIRST_READ_BYTES), end=size))
    if size <= _TRAILER_BYTES or tail[-len(_MAGIC) :] != _MAGIC:
        raise InvalidInputError(
            f"{path} is no Parquet file, or is torn or encrypted ({size} bytes): it does not end "
            f"as one. {_unreadable_file_advice(path)}"
        )
    length = int.from_bytes(tail[-_TRAILER_BYTES : -len(_MAGIC)], "little") + _TRAILER_BYTES
    if length > size:
        raise InvalidInputError(
            f"{path} is torn: its footer has {length} bytes, the file only {size}. Write it again"
        )
    if length > FOOTER_BYTES:
        raise TooLargeError(
            f"{path}: its footer has {length} bytes, and the limit is {FOOTER_BYTES}: write it "
            "again with fewer row groups, or leave it out"
        )
    if length > len(tail):
        tail = bytes(filesystem.cat_file(path, start=size - length, end=size))
    return tail


def _unreadable_file_advice(path: str) -> str:
    if path.endswith(".parquet"):
        return "Write it again, or leave it out"
    return "Leave it out, for example by a glob such as folder/**/*.parquet"


def _file_time_millis(info: Mapping[str, Any]) -> int:
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        moment = info.get(key)
        if isinstance(moment, str):
            try:
                moment = datetime.fromisoformat(moment)
            except ValueError:
                continue
        if isinstance(moment, datetime):
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return int(aware.timestamp() * 1000)
        if isinstance(moment, int | float):
            return int(moment * 1000)
    return 0


@frozen
class _ColumnChunks:
    """Metadata of all row groups; returns the statistics of the leaf columns one by one."""

    groups: tuple[Any, ...]
    schema: Any
    leaves: Iterator[int]

    def facts(self, data_type: DataType | None) -> ColumnFacts | None:
        leaf = next(self.leaves)
        if self.schema.column(leaf).max_repetition_level > 0 or data_type is None:
            return None
        return _combine_chunk_statistics([group.column(leaf) for group in self.groups], data_type)


def _footer_columns(metadata: Any) -> tuple[FooterColumn, ...]:
    groups = tuple(metadata.row_group(each) for each in range(metadata.num_row_groups))
    chunks = _ColumnChunks(groups, metadata.schema, iter(range(metadata.num_columns)))
    arrow = metadata.schema.to_arrow_schema()
    return tuple(_footer_column(each, chunks) for each in arrow)


def _footer_column(field: pa.Field, chunks: _ColumnChunks) -> FooterColumn:
    arrow_type = field.type
    members = tuple(_footer_column(each, chunks) for each in _nested_arrow_fields(arrow_type))
    data_type = _type_or_none(arrow_type)
    return FooterColumn(
        name=field.name,
        field_id=_field_id(field),
        type=data_type,
        type_text=str(arrow_type),
        members=members,
        facts=None if members else chunks.facts(data_type),
    )


def _nested_arrow_fields(arrow_type: pa.DataType) -> list[pa.Field]:
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_struct(arrow_type):
        return list(arrow_type)
    if is_a.is_map(arrow_type):
        return [arrow_type.key_field, arrow_type.item_field]
    if is_a.is_list(arrow_type) or is_a.is_large_list(arrow_type):
        return [arrow_type.value_field]
    if is_a.is_fixed_size_list(arrow_type):
        return [arrow_type.value_field]
    return []


def _field_id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(FIELD_ID_KEY)
    return None if text is None else int(text)


@lru_cache(maxsize=1024)
def _type_or_none(arrow_type: pa.DataType) -> DataType | None:
    try:
        return from_arrow_type(arrow_type)
    except (UnsupportedError, InvalidTypeError):
        return None


def _combine_chunk_statistics(chunks: Sequence[Any], data_type: DataType) -> ColumnFacts:
    values = 0
    nulls: int | None = 0
    lows: list[Any] | None = []
    highs: list[Any] = []
    for chunk in chunks:
        if not chunk.num_values:
            continue
        values += chunk.num_values
        found = chunk.statistics
        counted = found.null_count if found is not None and found.has_null_count else None
        nulls = None if nulls is None or counted is None else nulls + counted
        if found is not None and found.has_min_max and lows is not None:
            lows.append(_comparable_statistic(found.min_raw, data_type))
            highs.append(_comparable_statistic(found.max_raw, data_type))
        elif counted != chunk.num_values:
            # A chunk with values but without minimum and maximum: the column has no bounds.
            lows = None
    if not lows or any(each != each for each in (*lows, *highs)):  # noqa: PLR0124 - NaN alone differs from itself
        return ColumnFacts(values, nulls)
    return ColumnFacts(values, nulls, min(lows), max(highs))


def _comparable_statistic(raw: Any, data_type: DataType) -> Any:
    # Parquet keeps long decimals as big-endian bytes, which do not sort as numbers do.
    if isinstance(data_type, DecimalType) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    return raw


def _pool() -> ThreadPoolExecutor:
    # Once the main thread has ended, the module cannot be imported any more, and other threads may
    # still append files.
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="footers")
