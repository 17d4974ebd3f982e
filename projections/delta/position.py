"""Position: how far the Delta projection has come, and what it needs to go on from there.

What is live, and what was removed, stands in the log itself: in its newest checkpoint and the
commits since.
"""

from __future__ import annotations

from attrs import evolve, field, frozen

from projections.position_file import PositionFile

RENDERER = 2
"""Counts the ways of making files from one log; it grows when any byte of them changes."""


@frozen
class Checkpointed:
    """Where the newest regular checkpoint is, and what came since.

    Attributes:
        version: Delta's; -1 before the first.
        size: How many actions it has.
        weight: How many versions and file actions came after it.
    """

    version: int = -1
    size: int = 0
    weight: int = 0

    def due(self, version: int, interval: int) -> bool:
        """Return whether a version has a checkpoint of its own.

        A checkpoint costs its size, so that larger ones are further apart: what they cost stays in
        proportion to what is written.
        """
        return version - max(self.version, 0) >= interval and 100 * self.weight >= self.size


@frozen
class DeltaPosition:
    """Where a projection stands.

    Attributes:
        version: The last ledger commit applied; -1 before the first.
        commit: The digest of that commit.
        delta_version: The newest version of the Delta table; -1 before the first.
        timestamp: Its in-commit timestamp, Unix milliseconds.
        oldest: The first version whose commit still stands.
        protocol: What its protocol says, as JSON.
        metadata: What its metadata says, as JSON.
        features: The table features that were ever needed.
        schema_id: Of the ledger's schema that the metadata is of; -1 before the first.
        type_changes: What types were before, by field id.
        live: How many live files use the names of a schema, by its id.
        snapshots: Pairs of a snapshot and its version, where snapshots since count on together.
        checkpoint: The newest regular one.
        hint: What the hint says; empty without a checkpoint.
        unlisted: The snapshots from which on the answer is another one to whether there are live
            files that only an engine's manifests list.
        unsaid: Why Delta cannot say live files, by path.
        corrections: How many corrections of clocks the timestamps go by.
        renderer: Whose files they are.
        garbage: Files that nothing names any more and that are still to be taken away.
        leaving_since: See `projections.position_file.FilesPosition`.
    """

    version: int = -1
    commit: str = ""
    delta_version: int = -1
    timestamp: int = -1
    oldest: int = 0
    protocol: str = ""
    metadata: str = ""
    features: tuple[str, ...] = ()
    schema_id: int = -1
    type_changes: dict[int, tuple[dict[str, str], ...]] = field(factory=dict, hash=False)
    live: dict[int, int] = field(factory=dict, hash=False)
    snapshots: tuple[tuple[int, int], ...] = ()
    checkpoint: Checkpointed = Checkpointed()
    hint: str = ""
    unlisted: tuple[int, ...] = ()
    unsaid: dict[str, str] = field(factory=dict, hash=False)
    corrections: int = 0
    renderer: int = RENDERER
    garbage: tuple[str, ...] = ()
    leaving_since: int = 0

    def with_leaving(self, garbage: tuple[str, ...], since: int) -> DeltaPosition:
        """Return this position with other garbage and another time since when files leave."""
        return evolve(self, garbage=garbage, leaving_since=since)


FILE = PositionFile("delta", DeltaPosition())
