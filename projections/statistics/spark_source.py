"""Sources of entries for Spark's executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from attrs import evolve, field, frozen

from ledger.events.snapshots import snapshot_events
from ledger.model.errors import InvalidInputError
from ledger.stores.wrappers import Trust
from ledger.table import Table
from ledger.table_handle import handle_of
from projections.manifest_files.lists import names_lists
from projections.source.span_reading import LedgerLocation, TablePlace
from projections.statistics.entries import Opening

if TYPE_CHECKING:
    import pyarrow as pa

    from ledger.history.older import TableLog


_LATELY = 64
"""Number of commits sampled to find out whether a table's engine names manifest lists."""


class EntrySource(Protocol):
    """Source of the entries of a range of versions; must be picklable."""

    def entries(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield rows of `ENTRIES` of the commits in the range, both ends included.

        All rows of a snapshot are in one table, and the tables in the order of the log.
        """


@frozen(kw_only=True)
class LogSource:
    """Entries read from a table's log, and from its engine's manifests.

    Attributes:
        url: The ledger's root.
        identifier: The table's full name.
        path: Path of its stream.
        storage_options: Options of the storage client.
        trust: The parts of the ledger that are trusted without verification.
        opening: The start of the statistics, if not the first snapshot.
        names_lists: Whether its snapshots are known to name manifest lists, so that reading
            manifests in separate tasks pays; such a snapshot is read either way.
    """

    url: str
    identifier: str
    path: str
    storage_options: Mapping[str, Any] = field(factory=dict, hash=False)
    trust: Trust = "all"
    opening: Opening | None = None
    names_lists: bool = False

    @classmethod
    def of(cls, table: Table) -> LogSource:
        """Return the source of a table for executors, with a sample of its manifest lists.

        Raises:
            InvalidInputError: The ledger is in memory.
        """
        return evolve(cls.place(table), names_lists=_names_lists_lately(table))

    @classmethod
    def place(cls, table: Table) -> LogSource:
        """Return the source of a table for executors; its log is not read.

        Raises:
            InvalidInputError: The ledger is in memory.
        """
        handle = handle_of(table)
        if handle.ledger_url.startswith("memory:"):
            raise InvalidInputError(
                f"{handle.ledger_url} exists in this process alone, and Spark reads in others: "
                "keep the ledger in a folder or a bucket"
            )
        return cls(
            url=handle.ledger_url,
            identifier=str(handle.identifier),
            path=handle.path,
            storage_options=handle.storage_options,
            trust=handle.setting.trust,
        )

    def log(self) -> TableLog:
        """Return a new handle of the table's log, without reading the catalog."""
        place = TablePlace(self.identifier, "", self.path)
        return place.open(LedgerLocation(self.url, self.storage_options, self.trust)).log

    def entries(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield the entries of the commits in the range, both ends included.

        Raises:
            DamagedLogError: A commit, a list of file changes, a manifest list or a manifest is
                missing or damaged.
        """
        # Imported here, so that a plan is pickled without all dependencies.
        from projections.statistics.entries import entries

        return entries(self.log(), first, last, self.opening)

    def listed(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield the entries that the log lists itself; as `entries`."""
        from projections.statistics.entries import listed_entries

        return listed_entries(self.log(), first, last, self.opening)

    def parts(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield rows of `PARTS` for the other entries; as `entries`."""
        from projections.statistics.engine_files import parts_to_table
        from projections.statistics.entries import manifest_parts

        for parts in manifest_parts(self.log(), first, last, self.opening):
            yield parts_to_table(parts)

    def found(self, batches: Iterable[pa.RecordBatch], compared: int) -> Iterator[pa.Table]:
        """Yield the entries of parts, as rows of `FOUND`.

        Args:
            batches: Rows of `PARTS`.
            compared: The value of `compared` of the parts to read.

        Raises:
            DamagedLogError: A manifest is missing or damaged.
        """
        from projections.statistics.engine_files import parts_from_batch
        from projections.statistics.entries import PartReader
        from projections.statistics.snapshot_contents import SnapshotContents

        wanted = (
            part
            for batch in batches
            for part in parts_from_batch(batch)
            if part.compared == compared
        )
        reader: PartReader | None = None
        for part in wanted:
            if reader is None:
                log = self.log()
                reader = PartReader(log, SnapshotContents(log))
            yield reader.found(part)


def _names_lists_lately(table: Table) -> bool:
    last = table.state.version
    reads = handle_of(table).log.commits(max(0, last - _LATELY), last)
    return any(names_lists(each) for read in reads for each in snapshot_events(read.commit))
