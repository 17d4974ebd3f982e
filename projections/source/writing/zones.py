"""Moments with and without a zone, as the table's columns have them.

Spark's TIMESTAMP is a moment and its TIMESTAMP_NTZ a wall clock's reading; between the two lies the
session's zone, which only Spark knows. Arrow would take the zone for UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.model import types as t
from ledger.model.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def in_the_tables_zones(rows: DataFrame, schema: Schema) -> DataFrame:
    """Return rows whose moments are of the table's kind, cast by Spark in the session's zone.

    Args:
        rows: Their columns are among the table's.
        schema: The table's.
    """
    found = rows
    for field in rows.schema.fields:
        wanted = _of_kind(field.dataType, schema.field(field.name).type)
        if wanted != field.dataType:
            found = found.withColumn(field.name, found[f"`{field.name}`"].cast(wanted))
    return found


def _of_kind(found: DataType, wanted: t.DataType) -> DataType:
    from pyspark.sql import types as s

    match found, wanted:
        case s.TimestampType(), t.TimestampType():
            return s.TimestampNTZType()
        case s.TimestampNTZType(), t.LocalZonedTimestampType():
            return s.TimestampType()
        case s.StructType(), t.RowType(fields=fields):
            inner = {each.name: each.type for each in fields}
            return s.StructType(
                [
                    s.StructField(
                        each.name,
                        _of_kind(each.dataType, inner[each.name])
                        if each.name in inner
                        else each.dataType,
                        each.nullable,
                    )
                    for each in found.fields
                ]
            )
        case s.ArrayType(), t.ArrayType(element=element):
            return s.ArrayType(_of_kind(found.elementType, element), found.containsNull)
        case s.MapType(), t.MapType(key=key, value=value):
            return s.MapType(
                _of_kind(found.keyType, key),
                _of_kind(found.valueType, value),
                found.valueContainsNull,
            )
    return found
