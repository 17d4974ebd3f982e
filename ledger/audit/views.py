"""Audit history as dictionaries, Arrow tables and record batches.

DuckDB, Polars and pandas read these directly. Rows are created lazily.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from attrs import frozen

from ledger.audit.blame import Blame, flatten_blames
from ledger.audit.entries import Entry
from ledger.decide.operations import in_words
from ledger.model.extras import require_pandas
from ledger.model.messages import first_few, html_table
from ledger.model.names import quote_path

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


Row = Mapping[str, Any]
Kind = Literal["text", "number", "time", "flag"]
Columns = Mapping[str, Kind]

_BATCH = 4_096
_SHOWN = 20


@frozen(repr=False)
class Rows:
    """Lazy sequence of rows; each iteration creates them again.

    Attributes:
        columns: The names of the columns, with their types; times are in UTC.
        make: Creates the rows.
    """

    columns: Columns
    make: Callable[[], Iterator[Row]]

    def __iter__(self) -> Iterator[Row]:
        times = [name for name, kind in self.columns.items() if kind == "time"]
        return (
            {**row, **{name: _datetime_of_millis(row[name]) for name in times}}
            for row in self.make()
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        some = [tuple(map(_format_cell, row.values())) for row in islice(self, _SHOWN)]
        return html_table((*self.columns,), some, caption=f"the first {_SHOWN} rows at most")

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_batches(self._arrow_batches(), schema=self._arrow_schema())

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a DataFrame, with times in UTC and nullable integers.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        require_pandas()
        import pandas as pd
        import pyarrow as pa

        return self.to_arrow().to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows as an Arrow stream to another engine, batch by batch."""
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self._arrow_schema(), self._arrow_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export the columns as an Arrow schema; no row is created."""
        return self._arrow_schema().__arrow_c_schema__()

    def _arrow_schema(self) -> pa.Schema:
        import pyarrow as pa

        types = {
            "text": pa.string(),
            "number": pa.int64(),
            "time": pa.timestamp("ms", tz="UTC"),
            "flag": pa.bool_(),
        }
        return pa.schema([(name, types[kind]) for name, kind in self.columns.items()])

    def _arrow_batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema, rows = self._arrow_schema(), self.make()
        while some := list(islice(rows, _BATCH)):
            columns = [[row[name] for row in some] for name in self.columns]
            arrays = [pa.array(each, schema.field(at).type) for at, each in enumerate(columns)]
            yield pa.record_batch(arrays, schema=schema)


def _datetime_of_millis(millis: int | None) -> datetime | int | None:
    """Return Unix milliseconds as a datetime in UTC; unchanged outside of datetime's range."""
    if millis is None:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return millis


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _format_cell(value: Any) -> Any:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else value


HISTORY: Columns = {
    "table": "text",
    "version": "number",
    "time": "time",
    "author": "text",
    "message": "text",
    "transaction": "text",
    "kind": "text",
    "what": "text",
    "field_id": "number",
    "column": "text",
    "rows": "number",
    "files": "number",
    "bytes": "number",
    "event": "text",
}


def history(entries: Callable[[], Iterator[Entry]]) -> Rows:
    """Return one row for each event of the entries."""
    return Rows(HISTORY, lambda: (row for each in entries() for row in _event_rows(each)))


def _event_rows(entry: Entry) -> Iterator[Row]:
    for event, kind in zip(entry.transaction.events, entry.kinds, strict=True):
        path = getattr(event, "field_names", ())
        named = path and isinstance(path[0], str)
        yield {
            "table": entry.table,
            "version": entry.version,
            "time": entry.time_millis,
            "author": entry.transaction.author,
            "message": entry.transaction.message,
            "transaction": entry.transaction.id,
            "kind": kind,
            "what": in_words(event),
            "field_id": getattr(event, "field_id", None),
            "column": quote_path(tuple(path)) if named else None,
            "rows": getattr(event, "delta_record_count", None),
            "files": getattr(event, "delta_file_count", None),
            "bytes": getattr(event, "delta_file_size_in_bytes", None),
            "event": json.dumps(json_without_files(json.loads(msgspec.json.encode(event)))),
        }


def json_without_files(value: Any) -> Any:
    """Return the plain JSON of a record without its lists of files."""
    if isinstance(value, list):
        return [json_without_files(each) for each in value]
    if isinstance(value, dict):
        return {
            key: json_without_files(each)
            for key, each in value.items()
            if not (key == "files" and "snapshotId" in value)
        }
    return value


BLAME: Columns = {
    "subject": "text",
    "field_id": "number",
    "aspect": "text",
    "value": "text",
    "version": "number",
    "time": "time",
    "author": "text",
    "message": "text",
    "transaction": "text",
    "repeats": "number",
}


class Blames(tuple[Blame, ...]):
    """Tuple of blames that also converts to rows."""

    __slots__ = ()

    @property
    def rows(self) -> Rows:
        """One row for each aspect; nested columns follow their enclosing columns."""
        return Rows(
            BLAME, lambda: (row for each in flatten_blames(self) for row in _origin_rows(each))
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({first_few(each.subject for each in self)})"

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self.rows.to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a DataFrame."""
        return self.rows.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows as an Arrow stream to another engine."""
        return self.rows.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export the columns as an Arrow schema."""
        return self.rows.__arrow_c_schema__()


def _origin_rows(blame: Blame) -> Iterator[Row]:
    for each in blame.origins:
        yield {
            "subject": blame.subject,
            "field_id": blame.field_id,
            "aspect": each.aspect,
            "value": each.value,
            "version": each.cause.version,
            "time": each.cause.time_millis,
            "author": each.cause.author,
            "message": each.cause.message,
            "transaction": each.cause.transaction,
            "repeats": each.repeats,
        }


DIFFERENCES: Columns = {"what": "text", "before": "text", "after": "text"}


def rows_of_attributes(columns: Columns, things: Iterable[Any]) -> Rows:
    """Return one row for each object, from its attributes with the columns' names."""
    kept: Sequence[Any] = tuple(things)
    return Rows(columns, lambda: ({name: getattr(each, name) for name in columns} for each in kept))
