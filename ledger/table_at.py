"""TableAt: a table as it was at one instant."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from ledger.evolution.state import TableState
from ledger.files.live import LiveFiles
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot, Tag, Totals


@frozen
class TableAt:
    """A table at an instant; nothing here changes when others write.

    Attributes:
        state: All that the fold knows.
        schema: The schema to read with: by snapshot or tag the snapshot's, else the one current
            then.
    """

    state: TableState
    schema: Schema
    _live: LiveFiles

    @property
    def version(self) -> int:
        """The commit that it stands at."""
        return self.state.version

    @property
    def snapshot(self) -> Snapshot | None:
        """The latest snapshot then; None before the first."""
        return self.state.snapshot

    @property
    def options(self) -> Mapping[str, str]:
        """The table options then."""
        return self.schema.options

    @property
    def totals(self) -> Totals:
        """Sums over the live files."""
        return self.state.totals

    @property
    def tags(self) -> Mapping[str, Tag]:
        """The tags then, by name."""
        return self.state.tags

    @property
    def files(self) -> tuple[FileChange, ...]:
        """The live files, in the order in which they were added; read when asked for."""
        return tuple(self._live.at(self.version).values())
