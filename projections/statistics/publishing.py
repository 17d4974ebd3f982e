"""Publication of statistics to a format's readers, and their verification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from ledger.formats import having, part_if_any

if TYPE_CHECKING:
    from ledger.table_at import TableAt
    from ledger.table_handle import TableHandle
    from projections.statistics.analyze import Analysis
    from projections.statistics.tile_rows import Kept


@frozen
class Published:
    """Result of a publication.

    Attributes:
        format: The readers' format.
        snapshot_id: The snapshot of the statistics.
        path: Path of their file, below the table's location.
        version: The version of the format's projected files.
        is_new: Whether an event was committed to the log.
    """

    format: str
    snapshot_id: int
    path: str
    version: int
    is_new: bool


class Publisher(Protocol):
    """Publication for a format's readers; its import should be cheap, as `--help` needs it."""

    @property
    def what(self) -> str:
        """Description of the published statistics, for the help text."""

    @property
    def makes_snapshot(self) -> bool:
        """Return whether publishing commits a snapshot, which limits it to the newest one."""

    def check(self, table: TableHandle, at: TableAt, analysis: Analysis | None) -> None:
        """Reject statistics that cannot be published, before any write; raises as `publish`."""

    def publish(
        self, table: TableHandle, kept: Kept, at: TableAt, analysis: Analysis | None
    ) -> Iterator[Published]:
        """Publish the statistics of an instant's snapshot, and yield their locations.

        Args:
            table: The table.
            kept: Its statistics.
            at: The instant.
            analysis: Estimated distinct counts of its columns, if requested.

        Raises:
            InvalidInputError: There is no snapshot yet.
            NotFoundError: The snapshot was expired.
            UnsupportedError: The format cannot have them, or the table is not declared to be its.
            DamagedLogError: A needed part of the log is missing or damaged.
        """


def publishers() -> dict[str, Publisher]:
    """Return the publishers of the installed formats, by format name."""
    found = {name: part_if_any(name, "publisher") for name in having("publisher")}
    return {name: each for name, each in found.items() if each is not None}
