"""Rows as callers pass them: Arrow data, frames of other libraries, and dicts.

Each is a stream of record batches, which is read once, so that memory is bounded whatever its
length. Data without an Arrow schema of its own, as a list of dicts is, is converted by the schema
of the table that it is written to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from math import isnan
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import evolve, frozen

from ledger.model.arrow_types import to_arrow_schema
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange
from ledger.model.frames import is_pandas_frame, refuse_python_objects
from ledger.model.messages import excerpt
from ledger.model.schema import ArrowStreamExporter, Schema

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowArrayExporter(Protocol):
    """Record batch of another library with Arrow's PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object: ...


GivenRows = ArrowStreamExporter | ArrowArrayExporter | Iterable[Mapping[str, Any]]
"""Rows as callers pass them."""

GivenData = ArrowStreamExporter | ArrowArrayExporter | Iterable[FileChange | Mapping[str, Any]]
"""Data files with their statistics, or rows."""

SAMPLED_ROWS: Final = 1024
"""Dicts from whose values the types of a new table's columns are inferred."""

_NOTHING: Final = object()
"""First item of an iterable that has none."""

_KINDS: Final = (
    "FileChanges (as data_files makes them of Parquet files), dicts, an Arrow table or reader, or "
    "a frame of pandas, Polars or another library with __arrow_c_stream__"
)


@frozen
class RowInput:
    """Rows of one call.

    Attributes:
        schema: Their Arrow schema; None if the table's schema decides it.
        read: Function from the table's schema and full name to the record batches; called once.
    """

    schema: pa.Schema | None
    read: Callable[[Schema, str], Iterator[pa.RecordBatch]]


def open_data(data: GivenData) -> tuple[FileChange, ...] | RowInput:
    """Return the file changes in a caller's argument, or its rows; only the first item is read.

    An empty list has no files.

    Raises:
        InvalidInputError: It is neither; the message names what is accepted.

    Example:
        >>> open_data([])
        ()
        >>> import pyarrow as pa
        >>> open_data(pa.table({"id": [1]})).schema.names
        ['id']
    """
    rows = _open_arrow(data)
    if rows is not None:
        return rows
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise InvalidInputError(f"data={excerpt(data)} is neither files nor rows; give {_KINDS}")
    items: Iterator[Any] = iter(data)
    first = next(items, _NOTHING)
    if first is _NOTHING:
        return ()
    if isinstance(first, Mapping):
        return _open_dicts(chain([first], items))
    if _open_arrow(first) is not None:
        raise InvalidInputError(
            f"data[0] is a {type(first).__name__}, and data has to be one; join them with "
            "pyarrow.concat_tables, or pyarrow.RecordBatchReader.from_batches for a stream"
        )
    # Items that are no FileChanges are rejected where the files are checked.
    return tuple(data if isinstance(data, list | tuple) else chain([first], items))


def open_rows(data: GivenRows, table: str) -> RowInput:
    """Return the rows of a caller's argument, for a table that is created for them.

    The types of dicts are inferred from the first 1,024, each of which has to fit them.

    Args:
        data: The rows.
        table: The table's full name, for messages.

    Raises:
        InvalidInputError: It has no rows, or the values of a key are of several types.
        UnsupportedError: No type holds the values of a key.

    Example:
        >>> open_rows([{"id": 1, "name": "a"}], "shop.orders").schema.names
        ['id', 'name']
    """
    import pyarrow as pa

    from ledger.rows.python_values import DictRows, without_nulls_of_pandas
    from ledger.rows.row_columns import ColumnMatch

    found = _open_arrow(data)
    if found is not None:
        # A frame of pandas has no Arrow schema unless it is asked for, which reads its values.
        schema = found.schema if found.schema is not None else to_arrow_schema(data)
        ColumnMatch.of(schema, Schema.of(schema), table)
        if found.schema is None:
            _refuse_columns_of_nulls(schema)
            # A column of objects may have values of more classes than its type.
            next(found.read(Schema.of(schema), table), None)
        return evolve(found, schema=schema)
    items: Iterator[Any] = iter(data) if isinstance(data, Iterable) else iter(())
    sample = list(islice(items, SAMPLED_ROWS))
    if not sample or not all(isinstance(each, Mapping) for each in sample):
        raise InvalidInputError(
            f"schema={excerpt(data)} has no rows to infer columns from; give a Schema, dicts, or "
            "an Arrow table or frame"
        )
    names = list(dict.fromkeys(key for each in sample for key in each))
    columns = []
    for name in names:
        if not isinstance(name, str):
            raise InvalidInputError(f"{excerpt(name)} is no name of a column; names are texts")
        values = without_nulls_of_pandas([each.get(name) for each in sample])
        try:
            columns.append(pa.array(values).type)
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            has_nan = any(isinstance(each, float) and isnan(each) for each in values)
            hint = "give None for NULL, since NaN is a number, or " if has_nan else ""
            raise InvalidInputError(
                f"the type of column {name} cannot be inferred: {error}; {hint}give a Schema"
            ) from error
    schema = pa.schema(list(zip(names, columns, strict=True)))
    _refuse_columns_of_nulls(schema)
    ColumnMatch.of(schema, Schema.of(schema), table)
    # Arrow infers more than is written, such as one type of times with and without a zone.
    for _ in DictRows(Schema.of(schema), table).batches(sample):
        pass
    return RowInput(schema, _open_dicts(chain(sample, items)).read)


def _refuse_columns_of_nulls(schema: pa.Schema) -> None:
    """Reject columns whose type is inferred from values that are all NULL."""
    for each in schema:
        if _has_null_type(each.type):
            raise InvalidInputError(
                f"column {each.name} has no value but NULL, or only empty lists, so that its type "
                "is unknown; give a Schema, or leave the column out and add it later"
            )


def _has_null_type(data_type: pa.DataType) -> bool:
    import pyarrow.types as kinds

    parts = (data_type.field(each) for each in range(data_type.num_fields))
    return kinds.is_null(data_type) or any(_has_null_type(each.type) for each in parts)


def has_rows(data: object) -> bool:
    """Return whether an argument is rows, not a schema; nothing is read."""
    if isinstance(data, Schema | Mapping | str | bytes):
        return False
    is_arrow = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    is_schema = hasattr(data, "__arrow_c_schema__") or hasattr(data, "as_arrow")
    return is_arrow or (isinstance(data, Iterable) and not is_schema)


def _open_dicts(rows: Iterable[object]) -> RowInput:
    def read(schema: Schema, table: str) -> Iterator[pa.RecordBatch]:
        from ledger.rows.python_values import DictRows

        return DictRows(schema, table).batches(rows)

    return RowInput(None, read)


def _open_arrow(data: Any) -> RowInput | None:
    """Return the rows of Arrow data or a frame; None for anything else."""
    if is_pandas_frame(data):
        from ledger.rows.pandas_rows import frame_batches

        return RowInput(None, partial(frame_batches, data))
    is_stream = hasattr(data, "__arrow_c_stream__")
    if not is_stream and not hasattr(data, "__arrow_c_array__"):
        return None
    refuse_python_objects(data)
    import pyarrow as pa

    try:
        if isinstance(data, pa.RecordBatchReader):
            reader = data
        elif is_stream:
            reader = pa.RecordBatchReader.from_stream(data)
        else:
            batch = pa.record_batch(data)
            reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"a {type(data).__name__} is no table of columns ({error}); give {_KINDS}"
        ) from error
    return RowInput(reader.schema, lambda _schema, _table: iter(reader))
