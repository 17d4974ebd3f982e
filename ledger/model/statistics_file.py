"""StatisticsFile: where the statistics of one snapshot stand."""

from __future__ import annotations

from attrs import frozen


@frozen
class StatisticsFile:
    """A file of statistics that somebody computed for a snapshot.

    Attributes:
        path: Relative to the table's location, or absolute.
        file_size_in_bytes: Its size.
    """

    path: str
    file_size_in_bytes: int
