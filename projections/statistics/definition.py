"""Schema of the statistics, as data that both engines use.

An entry is an added or deleted file; a delta is the change of one partition by one snapshot; a sum
is many deltas of a partition folded. The measures define the fold.

Source: Paimon's PartitionEntry. Counts and sizes are sums with the sign of the change; the last
file creation time is the maximum over all changes, removals included, so that it never goes back
and folds without the files.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

from attrs import frozen

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["int64", "string"]

DAY_MILLIS = 86_400_000


@frozen
class EngineColumn:
    """A column of a table that an engine reads or returns."""

    name: str
    kind: Kind = "int64"
    nullable: bool = False


@frozen
class Measure:
    """A numeric measure of a partition.

    Attributes:
        name: Its column.
        source: The entries' column to fold; None counts the entries themselves.
        fold: `sum` takes the sign of the entry, `max` does not.
    """

    name: str
    source: str | None
    fold: Literal["sum", "max"]


PLACE = (EngineColumn("version"), EngineColumn("snapshot_id"))
"""Position in the log. In a sum: position of the partition's last change."""

KEYS = (
    EngineColumn("spec_id", nullable=True),
    EngineColumn("partition", "string", nullable=True),
    EngineColumn("content", "string", nullable=True),
)
"""Key of a partition: the spec, its values as a JSON array, and the content of its files.

Values are those of the log: their display depends on the schema, which changes. All NULL: the whole
table.
"""

ENTRIES = (
    *PLACE,
    *KEYS,
    EngineColumn("sign"),
    EngineColumn("record_count"),
    EngineColumn("file_size_in_bytes"),
    EngineColumn("creation_time", nullable=True),
)
"""One row per added (sign 1) or deleted (-1) file, and one per snapshot (0), its keys NULL."""

MEASURES = (
    Measure("record_count", "record_count", "sum"),
    Measure("file_size_in_bytes", "file_size_in_bytes", "sum"),
    Measure("file_count", None, "sum"),
    Measure("last_file_creation_time", "creation_time", "max"),
)

ROWS = (
    *PLACE,
    *KEYS,
    *(EngineColumn(each.name, nullable=each.fold == "max") for each in MEASURES),
)
"""Columns of deltas and sums. A snapshot has an additional row for the whole table."""

PLACE_NAMES = [each.name for each in PLACE]
KEY_NAMES = [each.name for each in KEYS]
FOLDS: tuple[tuple[str, Literal["sum", "max"]], ...] = (
    *((each.name, "max") for each in PLACE),
    *((each.name, each.fold) for each in MEASURES),
)
"""Fold of the rows of one partition: each column, and its aggregate function."""

SHOWN = {
    "record_count": "recordCount",
    "file_size_in_bytes": "fileSizeInBytes",
    "file_count": "fileCount",
    "last_file_creation_time": "lastFileCreationTime",
}
"""The measures' names in the DLF metadata API."""


DATA = "data"
"""The content of data files."""

DELETION_VECTORS = "deletion-vectors"
"""The content of position deletes in a Puffin file."""

VECTORS = ("position-deletes", "puffin")
"""The content and format that a deletion vector's file has in the log."""


def content_of(content: str, file_format: str) -> str:
    """Return the content of a file, with deletion vectors distinguished.

    >>> content_of("position-deletes", "puffin"), content_of("data", "parquet")
    ('deletion-vectors', 'data')
    """
    return DELETION_VECTORS if (content, file_format) == VECTORS else content


@cache
def arrow_schema(columns: tuple[EngineColumn, ...]) -> pa.Schema:
    """Return columns as an Arrow schema."""
    import pyarrow as pa

    kinds = {"int64": pa.int64(), "string": pa.string()}
    return pa.schema(
        [pa.field(each.name, kinds[each.kind], nullable=each.nullable) for each in columns]
    )
