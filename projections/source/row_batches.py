"""Rows of views as Arrow record batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from projections.source.columns import Column, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


Row = tuple[Any, ...]
Arrays = Sequence[Any]
"""The columns of some rows, as Arrow arrays."""

MOST_ROWS = 8_192
MOST_CHARACTERS = 8_000_000
"""Limit of a batch, besides that of rows; both keep an executor's memory in megabytes."""


def rows_to_batches(
    rows: Iterable[Row], columns: Sequence[Column], constants: Sequence[Any] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield rows as record batches.

    Args:
        rows: The values of the columns after those of `constants`.
        columns: All columns.
        constants: Values of the first columns, the same in every row.

    Example:
        >>> [each.num_rows for each in rows_to_batches([("a",), ("b",)], [Column("x", "string")])]
        [2]
    """
    schema = arrow_schema(columns)
    texts = [
        place - len(constants)
        for place, each in enumerate(columns)
        if each.kind == "string" and place >= len(constants)
    ]
    gathered: list[Row] = []
    weight = 0
    for row in rows:
        gathered.append(row)
        for place in texts:
            text = row[place]
            if text is not None:
                weight += len(text)
        if len(gathered) >= MOST_ROWS or weight >= MOST_CHARACTERS:
            yield _batch_of_rows(gathered, schema, constants)
            gathered, weight = [], 0
    if gathered:
        yield _batch_of_rows(gathered, schema, constants)


def arrays_to_batches(
    chunks: Iterable[Arrays], columns: Sequence[Column], constants: Sequence[Any] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the arrays of some rows each as record batches; see `rows_to_batches`."""
    schema = arrow_schema(columns)
    for chunk in chunks:
        yield _batch_of_arrays(chunk, schema, constants)


def _batch_of_rows(rows: list[Row], schema: pa.Schema, constants: Sequence[Any]) -> pa.RecordBatch:
    import pyarrow as pa

    own = list(schema)[len(constants) :]
    values = zip(zip(*rows, strict=True), own, strict=True)
    return _batch_of_arrays(
        [pa.array(each, found.type) for each, found in values], schema, constants
    )


def _batch_of_arrays(arrays: Arrays, schema: pa.Schema, constants: Sequence[Any]) -> pa.RecordBatch:
    import pyarrow as pa

    count = len(arrays[0])
    same = [
        pa.repeat(pa.scalar(each, field.type), count)
        for each, field in zip(constants, schema, strict=False)
    ]
    return pa.RecordBatch.from_arrays([*same, *arrays], schema=schema)
