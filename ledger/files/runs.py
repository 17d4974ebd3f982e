"""Runs: net file changes of an interval of commits, as Parquet.

A file that is added and removed within the interval is left out; the DELETE of an older file stays.
Eight runs merge into one of the next tier, so that live files are read from few files however long
the log is. Runs are a cache: a missing or damaged one is rebuilt from the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from ledger.files.change_lists import (
    changes_from_table,
    column_texts,
    missing_required_columns,
    read_changes_table,
    table_to_parquet,
    to_table,
    with_written_types,
    without_unset_columns,
)
from ledger.log.layout import Layout
from ledger.model.arrow_types import integer_array, texts
from ledger.model.errors import UpgradeRequiredError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.observing.telemetry import warn
from ledger.stores import Store

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

NO_ROWS = b"no rows"
"""Check of an empty run, in place of a digest: it has no Parquet file and needs no PyArrow."""

_LOGGER = "ledger.files"

_MANY_ROWS = 5_000
"""Rows of a run from which on they are chosen in Arrow, whose functions take time to import."""

_PLACE = ("version", "snapshot_id")
"""The columns of a run in addition to those of file changes."""


class Placed(NamedTuple):
    """A file change with its position in the log.

    Attributes:
        version: The version of its commit.
        snapshot_id: The snapshot that it belongs to.
        change: The file change.
    """

    version: int
    snapshot_id: int
    change: FileChange


class Net:
    """Net file changes of an interval: files added and not removed, and older files removed.

    Example:
        >>> from ledger.model.file_change import FileChange, PartitionValue
        >>> a = FileChange(path="a", record_count=1, file_size_in_bytes=1)
        >>> b = FileChange(kind="DELETE", path="b", record_count=1, file_size_in_bytes=1)
        >>> net = Net([Placed(1, 1, a), Placed(2, 2, b)])
        >>> list(net.added), list(net.deleted)
        (['a'], ['b'])
    """

    def __init__(self, changes: Iterable[Placed] = ()) -> None:
        self.added: dict[str, Placed] = {}
        self.deleted: dict[str, Placed] = {}
        self.apply(changes)

    def apply(self, changes: Iterable[Placed]) -> None:
        """Fold in more changes, in the log's order."""
        added, deleted = self.added, self.deleted
        for each in changes:
            path = each.change.path
            if each.change.kind == "ADD":
                added[path] = each
            elif added.pop(path, None) is None:
                deleted.setdefault(path, each)

    def rows(self) -> Iterator[Placed]:
        """Yield the net changes; folding them onto older changes equals folding all changes."""
        yield from self.deleted.values()
        yield from self.added.values()


class RunStore:
    """Stored runs of one table.

    Args:
        store: The store of the table's log.
        layout: The keys of the table's files.
    """

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store = store
        self._layout = layout

    def save(self, first: int, last: int, changes: Sequence[pa.Table]) -> None:
        """Write the run of the commits `first` to `last`.

        Args:
            first: The first version.
            last: The last version.
            changes: Tables of their file changes, oldest first, as `run_rows_to_table` makes them.

        Raises:
            OSError: The run could not be written; it is only a cache.
            ValueError: A table is not of a run, or their columns differ.
        """
        key = self._layout.file_run(first, last)
        table = _net_table(changes) if changes else None
        if table is None or not len(table):
            self._store.replace(check_file_key(key), NO_ROWS)
            return
        body = table_to_parquet(table)
        self._store.replace(key, body)
        # The check is a separate file, so that any Parquet reader can open the run.
        self._store.replace(check_file_key(key), check_file_content(body))

    def load(self, first: int, last: int) -> list[Placed] | None:
        """Return the run of the commits `first` to `last`; None if it is missing or damaged."""
        return self._read_run(first, last, read_run_rows)

    def tables(
        self, first: int, last: int, columns: Sequence[str] | None = None
    ) -> list[pa.Table] | None:
        """Return a run as a list of Arrow tables, empty without rows; None if it is unusable.

        Args:
            first: The first version.
            last: The last version.
            columns: The columns to read; None for all.
        """
        return self._read_run(first, last, lambda body: [_parse_run_table(body, columns)])

    def _read_run(self, first: int, last: int, read: Callable[[bytes], list[T]]) -> list[T] | None:
        key = self._layout.file_run(first, last)
        check = self._store.read(check_file_key(key))
        if check == NO_ROWS:
            return []
        body = self._store.read(key)
        if body is None or check is None:
            return None
        if check_file_content(body) != check:
            warn(_LOGGER, "file_run_damaged", file=key)
            return None
        try:
            return read(body)
        except (ValueError, UpgradeRequiredError) as error:
            warn(_LOGGER, "file_run_unreadable", file=key, error=str(error))
            return None


def check_file_key(key: str) -> str:
    """Return the key of a run's check file, by the run's key."""
    return f"{key}.sha256"


def check_file_content(body: bytes) -> bytes:
    """Return the content of a run's check file: the digest of the run's bytes."""
    return hashlib.sha256(body).hexdigest().encode()


def run_rows_to_table(rows: Sequence[Placed]) -> pa.Table:
    """Return the rows of a run as the Arrow table of its file."""
    import pyarrow as pa

    table = to_table([each.change for each in rows])
    for name, values in (
        ("version", [each.version for each in rows]),
        ("snapshot_id", [each.snapshot_id for each in rows]),
    ):
        table = table.append_column(name, integer_array(values, pa.int64()))
    return table


def place_changes(table: pa.Table, version: int, snapshot_id: int) -> pa.Table:
    """Return the table of a snapshot's file changes with the columns of a run."""
    import pyarrow as pa

    for name, value in (("version", version), ("snapshot_id", snapshot_id)):
        table = table.append_column(name, integer_array([value] * len(table), pa.int64()))
    return table


def _net_table(changes: Sequence[pa.Table]) -> pa.Table:
    if sum(map(len, changes)) > _MANY_ROWS:
        return net_changes(changes)
    placed = chain.from_iterable(map(run_rows_from_table, changes))
    return run_rows_to_table([*Net(placed).rows()])


def net_changes(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of `Net` after file changes in tables of runs, oldest first.

    Raises:
        ValueError: A table is not of a run, or their columns differ.
    """
    import pyarrow as pa

    table = _concat_runs(map(with_written_types, tables))
    added: dict[str, int] = {}
    deleted: dict[str, int] = {}
    for row, (kind, path) in enumerate(_kinds_and_paths(table)):
        if kind == "ADD":
            added[path] = row
        elif added.pop(path, None) is None:
            deleted.setdefault(path, row)
    if deleted or len(added) < len(table):
        table = table.take(integer_array([*deleted.values(), *added.values()], pa.int64()))
    # As `run_rows_to_table` makes it of the same rows.
    there = {*table.column_names}
    names = [*(each for each in FileChange.__struct_fields__ if each in there), *_PLACE]
    return without_unset_columns(table.select(names).combine_chunks())


def _kinds_and_paths(table: pa.Table) -> Iterable[tuple[str, str]]:
    return zip(column_texts(table, "kind"), column_texts(table, "path"), strict=True)


def _concat_runs(tables: Iterable[pa.Table]) -> pa.Table:
    import pyarrow as pa

    try:
        # Concatenated first: in many small tables, the overhead per column exceeds the reading.
        return pa.concat_tables(tables, promote_options="default")
    except pa.ArrowException as error:
        raise ValueError(f"the runs do not fit together: {error}") from error


def _parse_run_table(body: bytes, columns: Sequence[str] | None) -> pa.Table:
    table = read_changes_table(body, columns=columns)
    there = set(table.column_names)
    missing = (
        sorted({*columns} - there)
        if columns
        else [*missing_required_columns(there), *sorted({*_PLACE} - there)]
    )
    if missing:
        raise ValueError(f"the run lacks the columns {missing}")
    return table


def read_run_rows(body: bytes) -> list[Placed]:
    """Return the rows of a run from its file's bytes.

    Raises:
        ValueError: The bytes are not a run.
        UpgradeRequiredError: A newer version wrote them.
    """
    return run_rows_from_table(read_changes_table(body))


def run_rows_from_table(table: pa.Table) -> list[Placed]:
    """Return the rows of a run from its Arrow table; the inverse of `run_rows_to_table`.

    Raises:
        ValueError: A column is missing.
    """
    if not {*_PLACE}.issubset(table.column_names):
        raise ValueError("the run lacks the columns version and snapshot_id")
    versions = table.column("version").to_pylist()
    snapshot_ids = table.column("snapshot_id").to_pylist()
    return list(map(Placed, versions, snapshot_ids, changes_from_table(table)))


def additions_still_live(tables: Sequence[pa.Table], gone: Collection[str] = ()) -> list[Placed]:
    """Return the additions of files that are still live after consecutive runs, in order.

    Args:
        tables: Tables of the runs, oldest first.
        gone: Paths of files that are removed after the last run; they are left out.

    Raises:
        ValueError: A table is not a run, or their columns differ.
    """
    import pyarrow as pa

    if not tables:
        return []
    table = _concat_runs(tables)
    rows: dict[str, int] = {}
    for row, (kind, path) in enumerate(_kinds_and_paths(table)):
        if kind == "ADD":
            rows[path] = row
        else:
            rows.pop(path, None)
    for path in gone:
        rows.pop(path, None)
    if not rows:
        return []
    return run_rows_from_table(
        table
        if len(rows) == len(table)
        else table.take(integer_array([*rows.values()], pa.int64()))
    )


def additions_in_partitions(
    tables: Sequence[pa.Table],
    newest_id: int,
    may_be: Callable[[int, tuple[PartitionValue, ...]], bool],
) -> list[FileChange]:
    """Return the additions of files in some partitions that are live after consecutive runs.

    Args:
        tables: Tables of the runs, oldest first.
        newest_id: The newest snapshot that counts.
        may_be: Return whether files of a partition spec, by its id, with some partition values are
            wanted.

    Raises:
        ValueError: A table is not a run, or their columns differ.
    """
    import pyarrow.compute as pc

    table = _concat_runs(map(with_written_types, tables))
    if (pc.max(table["snapshot_id"]).as_py() or 0) > newest_id:
        table = table.filter(pc.less_equal(table["snapshot_id"], newest_id))
    if not len(table):
        # Arrow's search in an array without memory ends the process.
        return []
    paths = table["path"].filter(_rows_in_partitions(table, may_be)).combine_chunks()
    # With their removals, and what came before and after.
    live = additions_still_live([table.filter(pc.is_in(table["path"], paths))])
    changes = (each.change for each in live)
    return [each for each in changes if may_be(each.spec_id, each.partition)]


def _rows_in_partitions(
    table: pa.Table, may_be: Callable[[int, tuple[PartitionValue, ...]], bool]
) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    # JSON has no line ends. Few files have partition values of their own. Of Python values, Arrow
    # makes scalars by importing pandas.
    keys = pc.binary_join(table["partition"], texts(["\n"])[0])
    found = pc.is_null(table["path"])
    for spec_id in pc.unique(table["spec_id"]).to_pylist():
        is_of_spec = pc.is_in(table["spec_id"], integer_array([spec_id], pa.int64()))
        there = pc.unique(keys.filter(is_of_spec)).to_pylist()
        wanted = texts([each for each in there if may_be(spec_id, _decode_partition(each))])
        found = pc.or_(found, pc.and_(is_of_spec, pc.is_in(keys, wanted)))
    return found


def _decode_partition(key: str) -> tuple[PartitionValue, ...]:
    return tuple(msgspec.json.decode(each) for each in key.split("\n")) if key else ()
