"""The columns of what the statistics read and of what they give, declared once."""

from __future__ import annotations

from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType

_SPEC = MapType(StringType(), StringType(), valueContainsNull=False)

CHANGES = StructType(
    [
        StructField("version", LongType(), nullable=False),
        StructField("snapshot_id", LongType(), nullable=False),
        StructField("kind", StringType(), nullable=False),
        StructField("path", StringType(), nullable=False),
        StructField("partition", StringType(), nullable=False),
        StructField("spec", _SPEC, nullable=False),
        StructField("record_count", LongType(), nullable=False),
        StructField("file_size_in_bytes", LongType(), nullable=False),
        StructField("creation_time", LongType(), nullable=False),
    ]
)
"""One row a file that came or went. `partition` is the path of `spec`: maps cannot be grouped by.

`kind` is ADD or DELETE; `creation_time` is Unix time in milliseconds.
"""

SNAPSHOTS = StructType(
    [
        StructField("version", LongType(), nullable=False),
        StructField("snapshot_id", LongType(), nullable=False),
    ]
)
"""One row a snapshot, those without any file change included."""

_SUMS = [
    StructField("recordCount", LongType(), nullable=False),
    StructField("fileSizeInBytes", LongType(), nullable=False),
    StructField("fileCount", LongType(), nullable=False),
    StructField("lastFileCreationTime", LongType()),
]

PARTITIONS = StructType([StructField("spec", _SPEC, nullable=False), *_SUMS])
"""One row a partition: the DLF metadata API's Partition."""

TOTALS = StructType([StructField("snapshotId", LongType(), nullable=False), *_SUMS])
"""One row a snapshot: the sums of the DLF metadata API's TableSnapshot."""
