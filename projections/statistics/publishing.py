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
    """What a publication came to.

    Attributes:
        format: The readers' format.
        snapshot_id: The snapshot that the statistics are of.
        path: Of their file, below the table's location.
        version: The version of the table that the format's files stand at.
        is_new: Whether something was written to the log.
    """

    format: str
    snapshot_id: int
    path: str
    version: int
    is_new: bool


class Publisher(Protocol):
    """Lets a format's readers find statistics; importing it should be cheap: `--help` names it."""

    @property
    def what(self) -> str:
        """What they find, for people."""

    @property
    def makes_snapshot(self) -> bool:
        """Whether publishing makes a snapshot, so that only the newest one's can be published."""

    def check(self, table: TableHandle, at: TableAt, analysis: Analysis | None) -> None:
        """Refuse what cannot be published, before anything is; raises as `publish`."""

    def publish(
        self, table: TableHandle, kept: Kept, at: TableAt, analysis: Analysis | None
    ) -> Iterator[Published]:
        """Let readers find the statistics of an instant's snapshot, and say where they are.

        Args:
            table: The table.
            kept: Its statistics.
            at: The instant.
            analysis: How many different values its columns have, if that was asked, too.

        Raises:
            InvalidInputError: There is no snapshot yet.
            NotFoundError: The snapshot was expired.
            UnsupportedError: The format cannot have them, or the table is not declared to be its.
            DamagedLogError: What has to be read of the log is missing or damaged.
        """


def publishers() -> dict[str, Publisher]:
    """Return what installed formats publish by, by their names."""
    found = {name: part_if_any(name, "publisher") for name in having("publisher")}
    return {name: each for name, each in found.items() if each is not None}
