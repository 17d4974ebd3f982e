"""Published: statistics that readers of a format find."""

from __future__ import annotations

from attrs import frozen


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
