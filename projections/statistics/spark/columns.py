"""The definition's columns as Spark's, and those of what `compute` gives."""

from __future__ import annotations

from pyspark.sql.types import DataType, LongType, MapType, StringType, StructField, StructType

from projections.statistics.definition import ENTRIES, ROWS, SHOWN, EngineColumn

_KINDS: dict[str, DataType] = {"int64": LongType(), "string": StringType()}


def spark_schema(columns: tuple[EngineColumn, ...]) -> StructType:
    """Return columns as a Spark schema."""
    return StructType(
        [StructField(each.name, _KINDS[each.kind], each.nullable) for each in columns]
    )


ENTRY_COLUMNS = spark_schema(ENTRIES)
ROW_COLUMNS = spark_schema(ROWS)

_SPEC = MapType(StringType(), StringType(), valueContainsNull=False)
_SUMS = [
    StructField(SHOWN[each.name], LongType(), each.nullable) for each in ROWS if each.name in SHOWN
]

SHOWN_ROWS = StructType(
    [
        StructField("path", StringType(), nullable=False),
        StructField("spec", _SPEC, nullable=False),
        *(each for each in ROW_COLUMNS.fields if each.name in SHOWN),
    ]
)
"""Rows with their partition as it is shown. `path` stands for `spec`: maps cannot be grouped by."""

PARTITIONS = StructType([StructField("spec", _SPEC, nullable=False), *_SUMS])
"""One row a partition: the DLF metadata API's Partition."""

TOTALS = StructType([StructField("snapshotId", LongType(), nullable=False), *_SUMS])
"""One row a snapshot: the sums of the DLF metadata API's TableSnapshot."""
