"""Rows as Arrow record batches, none of them large however long the log is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from projections.source.views.column import Column, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Any, ...]
Arrays = Sequence[Any]
"""The columns of some rows, each an Arrow array."""

MOST_ROWS = 8_192
MOST_CHARACTERS = 8_000_000
"""A batch ends with the row that reaches either; both keep an executor's memory in megabytes."""


def batches(
    rows: Iterable[Row], columns: Sequence[Column], constants: Sequence[Any] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield rows as record batches.

    Args:
        rows: A value for each column, but for the first ones, which `constants` has.
        columns: All of them.
        constants: What the first columns are in every row.

    Example:
        >>> [each.num_rows for each in batches([("a",), ("b",)], [Column("x", "string")])]
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
            yield _batch(gathered, schema, constants)
            gathered, weight = [], 0
    if gathered:
        yield _batch(gathered, schema, constants)


def batches_of_arrays(
    chunks: Iterable[Arrays], columns: Sequence[Column], constants: Sequence[Any] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the arrays of some rows each as record batches; see `batches`."""
    schema = arrow_schema(columns)
    for chunk in chunks:
        yield _of_arrays(chunk, schema, constants)


def _batch(rows: list[Row], schema: pa.Schema, constants: Sequence[Any]) -> pa.RecordBatch:
    import pyarrow as pa

    own = list(schema)[len(constants) :]
    values = zip(zip(*rows, strict=True), own, strict=True)
    return _of_arrays([pa.array(each, found.type) for each, found in values], schema, constants)


def _of_arrays(arrays: Arrays, schema: pa.Schema, constants: Sequence[Any]) -> pa.RecordBatch:
    import pyarrow as pa

    count = len(arrays[0])
    same = [
        pa.repeat(pa.scalar(each, field.type), count)
        for each, field in zip(constants, schema, strict=False)
    ]
    return pa.RecordBatch.from_arrays([*same, *arrays], schema=schema)
