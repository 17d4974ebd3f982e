"""Distribution of rows by a table's partitions before they are written.

A Python source cannot ask Spark for a distribution, so that each task would write a file for every
partition. Here Spark brings the rows of a partition together first: rows are rebalanced by a key,
which lets adaptive execution merge small partitions into one task and split large ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import PartitionValue
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.schema import Schema, paths_of
from ledger.rows.partition_split import PartitionSplit
from ledger.rows.row_columns import ColumnMatch
from ledger.table import Table
from ledger.table_handle import handle_of
from projections.source.write_options import Mode
from projections.spark_tasks import encode_storage_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField

_KEY: Final = "_ledger_partition"
_SAVE_MODES: Final[Mapping[Mode, str]] = {
    "append": "append",
    "overwrite": "overwrite",
    "dynamic": "overwrite",
}


def write(  # noqa: PLR0913 - each is an option of the commit
    rows: DataFrame,
    table: Table,
    *,
    mode: Mode = "append",
    where: Mapping[str, PartitionValue] | None = None,
    author: str | None = None,
    message: str | None = None,
    key: tuple[str, int] | None = None,
) -> None:
    """Write rows as one snapshot of a table, with few files per partition.

    The format `ledger` has to be registered with the session.

    Args:
        rows: The rows; columns are matched by name.
        table: The table.
        mode: `append`; `overwrite`, which replaces the table, or the partitions of `where`; or
            `dynamic`, which replaces exactly the partitions that get rows.
        where: Values by partition key.
        author: The commit's author; None for the ledger's default.
        message: The commit's message.
        key: Commit user and identifier of the job; the same key is committed once.

    Raises:
        InvalidInputError: `where` is given with another mode than `overwrite`, or is empty.
        PySparkException: The rows do not fit the table, or the commit failed; its message has the
            reason.
    """
    if where is not None and (mode != "overwrite" or not where):
        raise InvalidInputError(
            f"where={dict(where)} names the partitions to replace, and mode={mode!r} is given; "
            "give at least one partition key and mode='overwrite', or leave where out"
        )
    handle = handle_of(table)
    options = {
        "table": str(handle.identifier),
        "storageOptions": encode_storage_options(handle.storage_options),
        "author": author or handle.setting.author,
    }
    if message:
        options["message"] = message
    if mode == "dynamic":
        options["partitionOverwriteMode"] = "dynamic"
    if where is not None:
        options["replaceWhere"] = " AND ".join(map(_equality, where.items()))
    if key is not None:
        options["commitUser"], options["commitIdentifier"] = key[0], str(key[1])
    writer = distribute(rows, table).write.format("ledger").mode(_SAVE_MODES[mode])
    writer.options(**options).save(handle.ledger_url)


def _equality(item: tuple[str, PartitionValue]) -> str:
    name, value = item
    return f"{_quoted(name)} IS NULL" if value is None else f"{_quoted(name)} = {_literal(value)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(value: str | int | bool) -> str:  # noqa: FBT001 - a value
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def distribute(rows: DataFrame, table: Table) -> DataFrame:
    """Return rows brought together by the table's partitions, for `write` or `writeStream`.

    Times without a zone get the session's where the table has instants.

    Args:
        rows: The rows.
        table: The table.

    Raises:
        InvalidInputError: A column that the partition spec needs is ambiguous.
    """
    state = table.state
    found = _cast_to_instants(rows, state.schema)
    return _rebalanced(found, state.schema, state.spec)


def _rebalanced(rows: DataFrame, schema: Schema, spec: PartitionSpec) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

    paths = {field_id: path for path, field_id in paths_of(schema)}
    fields = [each for each in spec.fields if each.transform != "void"]
    sources = [paths[each.source_id] for each in fields if each.source_id in paths]
    if not sources:
        return rows
    names = {path[0]: _find_column(rows.columns, path[0]) for path in sources}
    there = {wanted: name for wanted, name in names.items() if name is not None}
    if not there:
        return rows
    if all(each.transform == "identity" for each in fields) and all(len(p) == 1 for p in sources):
        return rows.hint("rebalance", *(_quoted(each) for each in there.values()))
    keys = _key_function(schema, spec, tuple(there))
    with warnings.catch_warnings():
        # Type hints instead of a function type would need Arrow when this module is imported.
        warnings.simplefilter("ignore", UserWarning)
        key = arrow_udf(keys, "string", ArrowUDFType.SCALAR)
    columns = (F.col(_quoted(each)) for each in there.values())
    return rows.withColumn(_KEY, key(*columns)).hint("rebalance", _KEY).drop(_KEY)


def _key_function(
    schema: Schema, spec: PartitionSpec, names: tuple[str, ...]
) -> Callable[..., Any]:
    """Return a function from some columns to the folder of each row's partition."""
    fields = tuple(each for each in schema.fields if each.name in names)
    needed = evolve(schema, fields=fields, partition_keys=(), primary_keys=(), options={})

    def keys(*columns: Any) -> Any:
        import pyarrow as pa

        batch = pa.RecordBatch.from_arrays(list(columns), names=list(names))
        rows = ColumnMatch(batch.schema, needed, "the table", "localized").convert(batch)
        return PartitionSplit(needed, spec).folders(rows)

    return keys


def _find_column(columns: Sequence[str], wanted: str) -> str | None:
    if wanted in columns:
        return wanted
    folded = [each for each in columns if each.casefold() == wanted.casefold()]
    if len(folded) > 1:
        raise InvalidInputError(
            f"{' and '.join(folded)} both mean column {wanted}; drop or rename all but one"
        )
    return folded[0] if folded else None


def _cast_to_instants(rows: DataFrame, schema: Schema) -> DataFrame:
    """Return rows whose times are instants where the table's are, by the session's zone."""
    found = rows
    for column in rows.schema.fields:
        field = _find_field(schema.fields, column.name)
        if field is not None:
            wanted = _instant_type(column.dataType, field.type)
            if wanted != column.dataType:
                found = found.withColumn(column.name, found[_quoted(column.name)].cast(wanted))
    return found


def _find_field(fields: Sequence[t.DataField], name: str) -> t.DataField | None:
    """Return the field that a column of the rows means, by the rule of `ColumnMatch`."""
    place = _find_column([each.name for each in fields], name)
    return None if place is None else next(each for each in fields if each.name == place)


def _instant_member(member: StructField, fields: Sequence[t.DataField]) -> StructField:
    from pyspark.sql import types as s

    field = _find_field(fields, member.name)
    if field is None:
        return member
    return s.StructField(member.name, _instant_type(member.dataType, field.type), member.nullable)


def _instant_type(found: DataType, wanted: t.DataType) -> DataType:
    from pyspark.sql import types as s

    match found, wanted:
        case s.TimestampNTZType(), t.LocalZonedTimestampType():
            return s.TimestampType()
        case s.StructType(), t.RowType(fields=fields):
            return s.StructType([_instant_member(each, fields) for each in found.fields])
        case s.ArrayType(), t.ArrayType(element=element):
            return s.ArrayType(_instant_type(found.elementType, element), found.containsNull)
        case s.MapType(), t.MapType(key=key, value=value):
            return s.MapType(
                _instant_type(found.keyType, key),
                _instant_type(found.valueType, value),
                found.valueContainsNull,
            )
    return found
