"""Where Spark's executors read entries from; everything here is pickled to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field, frozen

from projections.statistics.opening import Opening

if TYPE_CHECKING:
    import pyarrow as pa

    from ledger.history.older import TableLog


class EntrySource(Protocol):
    """Gives the entries of a range of versions; must survive pickling."""

    def entries(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield rows of `ENTRIES` of the commits in the range, both ends included."""


@frozen(kw_only=True)
class LogSource:
    """Entries read from a table's log, and from its engine's manifests.

    Attributes:
        url: The ledger's root.
        identifier: The table's full name.
        storage_options: How to reach the root.
        opening: Where the statistics begin, if not with the first snapshot.
        names_lists: Whether its snapshots are known to name manifest lists, so that it pays to
            read manifests by themselves; a snapshot that does is read either way.
    """

    url: str
    identifier: str
    storage_options: Mapping[str, Any] = field(factory=dict, hash=False)
    opening: Opening | None = None
    names_lists: bool = False

    def entries(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield the entries of the commits in the range, both ends included.

        Raises:
            DamagedLogError: A commit, a list of file changes, a manifest list or a manifest is
                missing or damaged.
        """
        # Here, so that a plan is pickled without the whole house.
        from projections.statistics.entries import entries

        return entries(self._log(), first, last, self.opening)

    def listed(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield those that stand in the log; as `entries`."""
        from projections.statistics.entries import listed_entries

        return listed_entries(self._log(), first, last, self.opening)

    def parts(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield rows of `PARTS`: where the others stand; as `entries`."""
        from projections.statistics.entries import manifest_parts
        from projections.statistics.manifest_part import table_of

        for parts in manifest_parts(self._log(), first, last, self.opening):
            yield table_of(parts)

    def found(self, batches: Iterable[pa.RecordBatch], compared: int) -> Iterator[pa.Table]:
        """Yield what stands in parts, as rows of `FOUND`.

        Args:
            batches: Rows of `PARTS`.
            compared: Of which parts.

        Raises:
            DamagedLogError: A manifest is missing or damaged.
        """
        from projections.statistics.manifest_part import parts_of
        from projections.statistics.part_reading import PartReader
        from projections.statistics.snapshot_contents import SnapshotContents

        wanted = (
            part for batch in batches for part in parts_of(batch) if part.compared == compared
        )
        reader: PartReader | None = None
        for part in wanted:
            if reader is None:
                log = self._log()
                reader = PartReader(log, SnapshotContents(log))
            yield reader.found(part)

    def _log(self) -> TableLog:
        from ledger.ledger import open as open_ledger

        return open_ledger(self.url, self.storage_options).table(self.identifier).log
