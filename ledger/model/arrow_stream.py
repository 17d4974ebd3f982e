"""Arrow streams that consumers open again for each reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    import pyarrow as pa


@frozen
class ArrowStream:
    """Rows that DuckDB, Polars, pandas and Arrow read through the Arrow PyCapsule interface.

    DuckDB reads the schema on its own when it binds a query, and opens the stream once per scan;
    without the schema it opens the stream several times.

    Attributes:
        open: Returns a new reader of the rows; called for each consumer.
    """

    open: Callable[[], pa.RecordBatchReader]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows, cast to a requested schema if their columns allow it."""
        return self.open().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export the schema of the rows."""
        return self.open().schema.__arrow_c_schema__()
