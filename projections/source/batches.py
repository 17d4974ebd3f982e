"""Rows as Arrow record batches, none of them large however long the log is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from projections.source.column import Column, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Any, ...]
Chunk = tuple[list[Any], ...]
"""The columns of some rows."""

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


def batches_of_chunks(
    chunks: Iterable[Chunk], columns: Sequence[Column], constants: Sequence[Any] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield columns as record batches, a chunk of them each; see `batches`."""
    schema = arrow_schema(columns)
    for chunk in chunks:
        if chunk[0]:
            yield _batch_of_columns(chunk, schema, constants)


def _batch(rows: list[Row], schema: pa.Schema, constants: Sequence[Any]) -> pa.RecordBatch:
    return _batch_of_columns([*zip(*rows, strict=True)], schema, constants)


def _batch_of_columns(
    columns: Sequence[Sequence[Any]], schema: pa.Schema, constants: Sequence[Any]
) -> pa.RecordBatch:
    import pyarrow as pa

    values = [*(repeat(each, len(columns[0])) for each in constants), *columns]
    arrays = [pa.array(column, each.type) for column, each in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
