"""The one place where the statistics touch the log; it runs on executors.

Everything here is pickled to them, so that it opens the ledger itself and holds plain values only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field, frozen

from ledger.events.snapshot_events import RolledBack, SnapshotCommitted
from ledger.model.file_change import FileChange, PartitionValue
from projections.partition_text import PartitionText, partition_path

if TYPE_CHECKING:
    from ledger.table import Table

_SPECS_KEPT = 100_000

Row = dict[str, Any]
"""A row of `columns.CHANGES` or `columns.SNAPSHOTS`, by column name."""


@frozen
class RenderedSpec:
    """A partition as text: its path, which stands for it, and its keys with their values."""

    path: str
    items: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls, text: PartitionText, names: tuple[str, ...], values: tuple[PartitionValue, ...]
    ) -> RenderedSpec:
        """Return the partition that has these values."""
        spec = text.spec(names, values)
        return cls(partition_path(spec), tuple(spec.items()))


class ChangeSource(Protocol):
    """Gives the rows of a range of versions; must survive pickling."""

    def changes(self, first_version: int, last_version: int) -> Iterator[Row]:
        """Yield the rows of `CHANGES` of the commits in the range, both ends included."""

    def snapshots(self, first_version: int, last_version: int) -> Iterator[Row]:
        """Yield the rows of `SNAPSHOTS` of the commits in the range, both ends included."""


@frozen(kw_only=True)
class LogSource:
    """Rows read from a table's log.

    Attributes:
        url: The ledger's root.
        identifier: The table's full name.
        text: How the table writes partition values.
        storage_options: How to reach the root.
    """

    url: str
    identifier: str
    text: PartitionText
    storage_options: Mapping[str, Any] = field(factory=dict, hash=False)

    def changes(self, first_version: int, last_version: int) -> Iterator[Row]:
        """Yield the file changes of the commits in the range, both ends included."""
        between = changes_between(
            self.url, self.storage_options, self.identifier, first_version, last_version
        )
        # Rendering a spec costs more than all the rest of a row, and files share partitions.
        rendered = lru_cache(_SPECS_KEPT)(partial(RenderedSpec.of, self.text))
        for version, snapshot_id, change, names in between:
            yield change_row(version, snapshot_id, change, rendered(names, change.partition))

    def snapshots(self, first_version: int, last_version: int) -> Iterator[Row]:
        """Yield the snapshots of the commits in the range, both ends included."""
        between = snapshots_between(
            self.url, self.storage_options, self.identifier, first_version, last_version
        )
        for version, snapshot_id in between:
            yield {"version": version, "snapshot_id": snapshot_id}


def changes_between(
    url: str, storage_options: Mapping[str, Any], identifier: str, first: int, last: int
) -> Iterator[tuple[int, int, FileChange, tuple[str, ...]]]:
    """Yield version, snapshot id, file change and partition field names, in the log's order."""
    from ledger.files.change_file import event_files
    from ledger.stores import open_store

    table = _table(url, storage_options, identifier)
    store = open_store(url, storage_options)
    names = {spec.spec_id: tuple(each.name for each in spec.fields) for spec in table.state.specs}
    for version, event in _snapshot_events(table, first, last):
        for change in event_files(store, table.log.layout, event):
            yield version, event.snapshot_id, change, names[change.spec_id]


def snapshots_between(
    url: str, storage_options: Mapping[str, Any], identifier: str, first: int, last: int
) -> Iterator[tuple[int, int]]:
    """Yield version and snapshot id of every snapshot, in the log's order."""
    for version, event in _snapshot_events(_table(url, storage_options, identifier), first, last):
        yield version, event.snapshot_id


def change_row(version: int, snapshot_id: int, change: FileChange, spec: RenderedSpec) -> Row:
    """Return a row of `CHANGES`."""
    return {
        "version": version,
        "snapshot_id": snapshot_id,
        "kind": change.kind,
        "path": change.path,
        "partition": spec.path,
        "spec": spec.items,
        "record_count": change.record_count,
        "file_size_in_bytes": change.file_size_in_bytes,
        "creation_time": change.creation_time,
    }


def _table(url: str, storage_options: Mapping[str, Any], identifier: str) -> Table:
    # Here, so that reading a row's shape does not open the whole house.
    from ledger.catalog import open as open_ledger

    return open_ledger(url, storage_options).table(identifier)


def _snapshot_events(
    table: Table, first: int, last: int
) -> Iterator[tuple[int, SnapshotCommitted | RolledBack]]:
    for commit in table.events(first, last):
        for transaction in commit.transactions:
            for event in transaction.events:
                if isinstance(event, SnapshotCommitted | RolledBack):
                    yield commit.version, event
