"""Runs: net file changes of an interval of commits, as Parquet.

Within an interval, a file that came and went leaves no trace; the DELETE of an older file stays.
Eight runs merge into one of the next tier, so that live files are read from few files however long
the log is. All of it is a cache: what is missing or damaged is made again from the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ledger.files.change_lists import from_table, lacking, parquet_of, parsed, to_table
from ledger.log.layout import Layout
from ledger.model.arrow_types import numbers
from ledger.model.errors import UpgradeRequiredError
from ledger.model.file_change import FileChange
from ledger.observing.telemetry import warn
from ledger.stores import Store

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

NO_ROWS = b"no rows"
"""Instead of a digest: an interval without file changes has no Parquet, and needs no library."""

_LOGGER = "ledger.files"

_PLACE = frozenset({"version", "snapshot_id"})
"""The columns that a run has beside those of file changes."""


class Placed(NamedTuple):
    """A file change, and where in the log it stands.

    Attributes:
        version: The commit that holds it.
        snapshot_id: The snapshot that it is of.
        change: The file change.
    """

    version: int
    snapshot_id: int
    change: FileChange


class Net:
    """File changes folded: what came and stayed, and what went that was older.

    Example:
        >>> from ledger.model.file_change import FileChange
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
        """Fold further changes in, in the log's order."""
        added, deleted = self.added, self.deleted
        for each in changes:
            path = each.change.path
            if each.change.kind == "ADD":
                added[path] = each
            elif added.pop(path, None) is None:
                deleted.setdefault(path, each)

    def rows(self) -> Iterator[Placed]:
        """Yield what is left; folding it onto older changes is the same as folding all."""
        yield from self.deleted.values()
        yield from self.added.values()


class Runs:
    """One table's runs.

    Args:
        store: Where they are.
        layout: Under which keys.
    """

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store = store
        self._layout = layout

    def save(self, first: int, last: int, net: Net) -> None:
        """Keep the run of the commits `first` to `last`.

        Raises:
            OSError: It could not be kept; that harms nothing.
        """
        key = self._layout.file_run(first, last)
        rows = list(net.rows())
        if not rows:
            self._store.replace(key_of_check(key), NO_ROWS)
            return
        body = parquet_of(table_of(rows))
        self._store.replace(key, body)
        # Beside the run, not inside: any Parquet reader can open it.
        self._store.replace(key_of_check(key), check_of(body))

    def load(self, first: int, last: int) -> list[Placed] | None:
        """Return the run of the commits `first` to `last`; None when there is none to use."""
        return self._read(first, last, rows_of)

    def tables(
        self, first: int, last: int, columns: Sequence[str] | None = None
    ) -> list[pa.Table] | None:
        """Return the same as an Arrow table, or none where the run has no rows.

        Args:
            first: The first version.
            last: The last version.
            columns: Which of them; all, without.
        """
        return self._read(first, last, lambda body: [_table(body, columns)])

    def _read(self, first: int, last: int, read: Callable[[bytes], list[T]]) -> list[T] | None:
        key = self._layout.file_run(first, last)
        check = self._store.read(key_of_check(key))
        if check == NO_ROWS:
            return []
        body = self._store.read(key)
        if body is None or check is None:
            return None
        if check_of(body) != check:
            warn(_LOGGER, "file_run_damaged", file=key)
            return None
        try:
            return read(body)
        except (ValueError, UpgradeRequiredError) as error:
            warn(_LOGGER, "file_run_unreadable", file=key, error=str(error))
            return None


def key_of_check(key: str) -> str:
    """Return the key of a run's check."""
    return f"{key}.sha256"


def check_of(body: bytes) -> bytes:
    """Return the check of a run's file."""
    return hashlib.sha256(body).hexdigest().encode()


def table_of(rows: Sequence[Placed]) -> pa.Table:
    """Return the rows of a run as the Arrow table that its file holds."""
    import pyarrow as pa

    table = to_table([each.change for each in rows])
    for name, values in (
        ("version", [each.version for each in rows]),
        ("snapshot_id", [each.snapshot_id for each in rows]),
    ):
        table = table.append_column(name, numbers(values, pa.int64()))
    return table


def _table(body: bytes, columns: Sequence[str] | None) -> pa.Table:
    table = parsed(body, columns=columns)
    there = set(table.column_names)
    missing = sorted({*columns} - there) if columns else [*lacking(there), *(_PLACE - there)]
    if missing:
        raise ValueError(f"the run lacks the columns {missing}")
    return table


def rows_of(body: bytes) -> list[Placed]:
    """Return the rows that a run's file holds.

    Raises:
        ValueError: The bytes are no such file.
        UpgradeRequiredError: A newer version wrote them.
    """
    return placed_of(parsed(body))


def placed_of(table: pa.Table) -> list[Placed]:
    """Return the rows of a run's table, as `table_of` makes it.

    Raises:
        ValueError: It is no such table.
    """
    if not set(table.column_names) >= _PLACE:
        raise ValueError("the run lacks the columns version and snapshot_id")
    versions = table.column("version").to_pylist()
    snapshot_ids = table.column("snapshot_id").to_pylist()
    return list(map(Placed, versions, snapshot_ids, from_table(table)))


def that_stayed(tables: Sequence[pa.Table], gone: Collection[str] = ()) -> list[Placed]:
    """Return the additions of the files that are live at the end, in their order.

    Args:
        tables: Runs, oldest first.
        gone: Paths of files that went after all of them; not looked for among what stayed.

    Raises:
        ValueError: One is no run, or they do not fit together.
    """
    import pyarrow as pa

    if not tables:
        return []
    try:
        # All at once: of many small tables, each column takes longer to begin than to read.
        table = pa.concat_tables(tables, promote_options="default")
    except pa.ArrowException as error:
        raise ValueError(f"the runs do not fit together: {error}") from error
    rows: dict[str, int] = {}
    kinds, paths = (table.column(name).to_pylist() for name in ("kind", "path"))
    for row, (kind, path) in enumerate(zip(kinds, paths, strict=True)):
        if kind == "ADD":
            rows[path] = row
        else:
            rows.pop(path, None)
    for path in gone:
        rows.pop(path, None)
    if not rows:
        return []
    return placed_of(
        table if len(rows) == len(table) else table.take(numbers([*rows.values()], pa.int64()))
    )
