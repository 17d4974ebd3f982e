"""Position: how far the Paimon projection has come, and what it needs to go on from there."""

from __future__ import annotations

from attrs import evolve, field, frozen

from projections.paimon.manifest_avro import ManifestFileMeta
from projections.position_file import PositionFile

RENDERER = 2
"""How files are made; one by another rule is made anew. The first listed, for every rollback, all
files that were live then, so that tables without rollbacks had the same files as now."""


@frozen
class PaimonPosition:
    """Where a projection stands.

    Attributes:
        version: The last commit applied; -1 before the first.
        rollbacks: The ids of all rollbacks so far and of their targets, ascending.
        manifests: By name, those that the next snapshot may read; None for one without entries.
        unlisted: See `UnlistedFiles.flips`.
        renderer: The rule that the files were made by; an older one leaves only version and
            rollbacks here, without their targets.
        commit: The digest of the commit at that version; empty where it was not kept.
        garbage: Files that nothing names any more and that are still to be taken away.
        location: The table's URL, by which manifests name files that are not in their bucket's
            folder; empty where it was not kept.
        leaving_since: See `projections.position_file.FilesPosition`.
    """

    version: int = -1
    rollbacks: tuple[tuple[int, int], ...] = ()
    manifests: dict[str, ManifestFileMeta | None] = field(factory=dict, hash=False)
    unlisted: tuple[int, ...] = ()
    renderer: int = RENDERER
    commit: str = ""
    garbage: tuple[str, ...] = ()
    location: str = ""
    leaving_since: int = 0

    @property
    def is_older(self) -> bool:
        """Whether the files were made by an older rule."""
        return self.renderer != RENDERER

    def with_leaving(self, garbage: tuple[str, ...], since: int) -> PaimonPosition:
        """Return this position with other garbage and another time since when files leave."""
        return evolve(self, garbage=garbage, leaving_since=since)


FILE = PositionFile("paimon", PaimonPosition())
