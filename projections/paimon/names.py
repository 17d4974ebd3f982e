"""Names of manifests and lists: of the table's id and of what they hold, never random."""

from __future__ import annotations

from uuid import UUID, uuid5

from attrs import frozen

from projections.manifest_files.lists import list_names
from projections.paimon.manifests.tiers import Tile


@frozen
class Names:
    """The names of one table's files.

    Example:
        >>> names = Names("01a1f54c-0000-7000-8000-000000000000")
        >>> names.tile(Tile(1, 8)) == names.tile(Tile(1, 8)) != names.tile(Tile(1, 1))
        True
    """

    table_id: str

    def _uuid(self, what: str) -> UUID:
        return uuid5(UUID(self.table_id), what)

    def tile(self, tile: Tile) -> str:
        """Return the name of the manifest of a tile."""
        return f"manifest-{self._uuid(f'manifest {tile.first} {tile.last}')}-0"

    def older_live(self, rollback: int, part: int) -> str:
        """Return the name that renderer 1 gave to a list of the files live at a rollback."""
        return f"manifest-{self._uuid(f'live {rollback}')}-{part}"

    def lists(self, snapshot_id: int) -> tuple[str, str]:
        """Return the names of a snapshot's base and delta manifest list."""
        return list_names(self.table_id, snapshot_id)

    def snapshot_uuid(self, snapshot_id: int) -> str:
        """Return a snapshot's uuid."""
        return str(self._uuid(f"snapshot {snapshot_id}"))

    def statistics(self, snapshot_id: int, check: str) -> str:
        """Return the name of a statistics file.

        Args:
            snapshot_id: The snapshot that was analysed.
            check: A digest of what the file says.
        """
        return f"stat-{self._uuid(f'statistics {snapshot_id} {check}')}-0"

    def sync_marker(self, name: str) -> bytes:
        """Return the sixteen bytes between a file's Avro blocks."""
        return self._uuid(name).bytes
