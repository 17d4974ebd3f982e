"""Runs: the net file changes of an interval of commits, kept as Parquet.

Within an interval, a file that came and went leaves no trace; the DELETE of an older file stays.
Eight runs merge into one of the next tier, so that live files are read from few files however long
the log is. All of it is a cache: what is missing or damaged is made again from the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ledger.files.change_table import from_table, parquet_of, parsed, to_table
from ledger.log.layout import Layout
from ledger.model.arrow_arrays import numbers
from ledger.model.errors import UpgradeRequiredError
from ledger.model.file_change import FileChange
from ledger.observing.notices import warn
from ledger.stores import Store

if TYPE_CHECKING:
    import pyarrow as pa

NO_ROWS = b"no rows"
"""Instead of a digest: an interval without file changes has no Parquet, and needs no library."""

_LOGGER = "ledger.files"


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
            return rows_of(body)
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


def rows_of(body: bytes) -> list[Placed]:
    """Return the rows that a run's file holds.

    Raises:
        ValueError: The bytes are no such file.
        UpgradeRequiredError: A newer version wrote them.
    """
    table = parsed(body)
    if not {"version", "snapshot_id"} <= set(table.column_names):
        raise ValueError("the run lacks the columns version and snapshot_id")
    versions = table.column("version").to_pylist()
    snapshot_ids = table.column("snapshot_id").to_pylist()
    return list(map(Placed, versions, snapshot_ids, from_table(table)))
