"""Rows of pandas frames: columns only, never the index; NaN, NaT and NA are NULL."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import TYPE_CHECKING, Any, Final

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.frames import check_column_names
from ledger.model.schema import Schema
from ledger.rows.python_values import python_array

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_A_BATCH: Final = 64 * 1024

_FIRST_ROUNDED: Final = 2.0**53
"""Least float that may be another whole number, rounded."""


def frame_batches(frame: Any, schema: Schema, table: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a frame, without its index.

    Args:
        frame: The DataFrame.
        schema: The schema of the table that they are for.
        table: The table's full name, for messages.

    Raises:
        InvalidInputError: A column's name is no text, or a value is not of its column's type.

    Example:
        >>> import pandas
        >>> frame = pandas.DataFrame({"id": [1, 2]}, index=["a", "b"])
        >>> schema = Schema.of({"id": "BIGINT"})
        >>> [each.to_pydict() for each in frame_batches(frame, schema, "shop.orders")]
        [{'id': [1, 2]}]
    """
    import pyarrow as pa

    check_column_names(frame)
    _refuse_needed_index(frame, schema, table)
    wanted = schema.to_arrow()
    fields = {each.name.casefold(): each for each in schema.fields}
    fields |= {each.name: each for each in schema.fields}
    # Without rows there is still a batch, so that names and types are checked.
    for start in range(0, max(1, len(frame)), _ROWS_A_BATCH):
        part = frame.iloc[start : start + _ROWS_A_BATCH]
        arrays = []
        for place, name in enumerate(frame.columns):
            field = fields.get(name) or fields.get(name.casefold())
            column = part.iloc[:, place]
            if field is None or column.dtype != object:
                arrays.append(_typed_array(column, field, table))
            else:
                values = [None if _is_missing(each) else each for each in column]
                arrow_type = wanted.field(field.name).type
                arrays.append(python_array(values, field, arrow_type, table, start))
        yield pa.RecordBatch.from_arrays(arrays, names=list(frame.columns))


def _refuse_needed_index(frame: Any, schema: Schema, table: str) -> None:
    """Reject a frame whose index has a name that only the table's columns have."""
    columns = {each.casefold() for each in frame.columns}
    wanted = {each.casefold() for each in schema.names}
    for name in frame.index.names:
        if isinstance(name, str) and name.casefold() in wanted - columns:
            raise InvalidInputError(
                f"the frame has {name} as its index, which is not written, and {table} has a "
                "column of this name; call reset_index() to make it a column, or rename the index"
            )


def _typed_array(column: Any, field: t.DataField | None, table: str) -> pa.Array:
    import pyarrow as pa

    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"column {column.name} of the rows for {table} cannot be converted: {error}; convert "
            "it in pandas first"
        ) from error
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    integers = t.TinyIntType | t.SmallIntType | t.IntType | t.BigIntType
    if field is not None and isinstance(field.type, integers) and pa.types.is_floating(array.type):
        # pandas has whole numbers with a missing one as floats.
        return _whole_numbers(array)
    return array


def _whole_numbers(array: pa.Array) -> pa.Array:
    """Return floats as integers if each is whole; else as they are, which the table rejects.

    From 2^53 on pandas may have rounded them: 9007199254740993 with a missing value is ...992.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.any(pc.greater_equal(pc.abs(array), _FIRST_ROUNDED)).as_py():
        return array
    try:
        return array.cast(pa.int64())
    except pa.ArrowException:
        return array


def _is_missing(value: object) -> bool:
    import pandas as pd

    return value is pd.NA or value is pd.NaT or (isinstance(value, float) and isnan(value))
