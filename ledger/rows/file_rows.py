"""Rows of CSV, JSON lines and Parquet files, converted to a table's types.

Files are read as streams. Texts of CSV and JSON are parsed by the types of the table's columns, so
that `007` stays a text in a text column; none is inferred.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from shutil import copyfileobj
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec
from attrs import frozen

from ledger.model import types as t
from ledger.model.errors import InvalidInputError, StoreError
from ledger.model.messages import excerpt
from ledger.model.schema import Schema
from ledger.model.types.text import bare_type_text
from ledger.rows.json_values import parse_text, python_row
from ledger.rows.python_values import ROWS_A_BATCH, DictRows, python_array
from ledger.rows.row_columns import ColumnMatch, match_names, row_error
from ledger.rows.row_input import RowInput
from ledger.stores.file_access import local_file, open_location
from ledger.stores.object_errors import reading

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_LINE: Final = 64 << 20
"""Maximum length of a line of JSON, in bytes."""

_CSV_BLOCK: Final = 4 << 20


def open_row_files(paths: Iterable[str], storage_options: Mapping[str, Any]) -> RowInput:
    """Return the rows of files, one after the other; nothing is read yet.

    Args:
        paths: Paths or URLs that end in .csv, .jsonl, .ndjson or .parquet.
        storage_options: Options of the URLs' client.

    Raises:
        InvalidInputError: A name has another ending.

    Example:
        >>> open_row_files(["a.xls"], {})
        Traceback (most recent call last):
        ledger.model.errors.InvalidInputError: a.xls is none of .csv, .jsonl, .ndjson, .parquet; ...
    """
    files = list(paths)
    for path in files:
        if _reader_of(path) is None:
            raise InvalidInputError(
                f"{path} is none of {', '.join(_READERS)}; convert it, or register Parquet files "
                "of other names with add-files"
            )

    def read(schema: Schema, table: str) -> Iterator[pa.RecordBatch]:
        for path in files:
            yield from _FileRows(path, schema, table).read(storage_options)

    return RowInput(None, read)


def is_text_file(path: str) -> bool:
    """Return whether a file's name ends as those of CSV and JSON lines, which have no types."""
    return path.lower().endswith(tuple(each for each in _READERS if each != ".parquet"))


@frozen
class _FileRows:
    """Rows of one file for a table."""

    path: str
    schema: Schema
    table: str

    def read(self, storage_options: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """Yield the rows as the table's columns.

        Raises:
            InvalidInputError: The file cannot be read, or a row does not fit; the message has the
                file, the row, the column and the rule.
            StoreError: The file is damaged, or its store failed.
            NotFoundError: The file does not exist.
        """
        import pyarrow as pa

        reader = _reader_of(self.path)
        if reader is None:
            raise AssertionError(self.path)
        with reading(self.path):
            place, inside = open_location(self.path, storage_options)
            stream: IO[bytes] = place.open(inside, "rb")
        before = 0
        try:
            with stream:
                for batch in reader(self, stream):
                    match = ColumnMatch.of(batch.schema, self.schema, self.table)
                    yield from match.convert(batch, before).to_batches()
                    before += batch.num_rows
        except (ValueError, pa.ArrowException) as error:
            # A client raises ValueError if its server cannot return parts of files.
            raise InvalidInputError(f"{self.path}: {error}") from error
        except OSError as error:
            # The text of a client may quote a credential.
            text = f" ({error})" if local_file(self.path) is not None else ""
            raise StoreError(
                f"{self.path} cannot be read to its end: {type(error).__name__}{text}; if it is "
                "damaged, write it again"
            ) from error


def _csv_batches(file: _FileRows, stream: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV file; the first line has the names of the columns."""
    import pyarrow as pa
    from pyarrow import csv

    options = csv.ReadOptions(use_threads=False, block_size=_CSV_BLOCK)
    parsing = csv.ParseOptions(newlines_in_values=True)
    # Rows of another length are an error only after the names have been checked.
    any_rows = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda _: "skip")
    types = file.schema.to_arrow()
    before = 0
    with _native_path(file.path, stream) as path:
        try:
            names = csv.open_csv(path, options, any_rows).schema.names
        except UnicodeDecodeError as error:
            raise InvalidInputError("the names in its first line are not in UTF-8") from error
        if len(names) == 1 and (found := re.search(r"[;\t|]", names[0])):
            raise InvalidInputError(
                f"its first line, {excerpt(names[0])}, is one column; separate columns by commas "
                f"instead of {found[0]!r}"
            )
        fields = _csv_fields(file, names)
        texts = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        for batch in csv.open_csv(path, options, parsing, texts):
            arrays = [
                _TextColumn(field, types.field(field.name).type, file.table).convert(column, before)
                for field, column in zip(fields, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=[each.name for each in fields])
            before += batch.num_rows


@contextmanager
def _native_path(path: str, stream: IO[bytes]) -> Iterator[str]:
    """Yield the path of a local file with the bytes of a stream: a copy unless it is local.

    Arrow reads CSV ahead in a thread. On a stream of Python two readers would take each other's
    blocks, and a thread that still reads while Python exits aborts the process.
    """
    local = local_file(path)
    if local is not None:
        yield local
        return
    with NamedTemporaryFile(prefix="lakeledger-", suffix=".csv") as copy:
        with reading(path):
            copyfileobj(stream, copy, _CSV_BLOCK)
        copy.flush()
        yield copy.name


def _csv_fields(file: _FileRows, names: list[str]) -> list[t.DataField]:
    """Return the column of each name of a CSV file's first line."""
    columns = file.schema.fields
    places = match_names(names, file.schema.names, file.table)
    fields = {place: each for each, place in zip(columns, places, strict=True) if place is not None}
    for each in fields.values():
        if isinstance(
            each.type, t.RowType | t.ArrayType | t.MapType | t.MultisetType | t.VectorType
        ):
            raise InvalidInputError(
                f"column {each.name} of {file.table} is {bare_type_text(each.type)}, which a CSV "
                "file cannot hold; write JSON lines or Parquet"
            )
    return [fields[place] for place in range(len(names))]


@frozen
class _TextColumn:
    """Texts of a CSV file that are parsed as the values of a column."""

    field: t.DataField
    arrow_type: pa.DataType
    table: str

    def convert(self, texts: pa.Array, before: int) -> pa.Array:
        """Return the values; an empty text is NULL, but in a column of texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(self.field.type, t.CharType | t.VarCharType):
            return texts
        values = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
        is_plain = pc.all(pc.match_substring_regex(values, _PLAIN), min_count=0).as_py()
        if not isinstance(self.field.type, _ARROW_PARSES) or not is_plain:
            return self._parsed(values, before)
        try:
            return values.cast(self.arrow_type)
        except pa.ArrowException:
            # The same values one by one, for the number of the row.
            return self._parsed(values, before)

    def _parsed(self, texts: pa.Array, before: int) -> pa.Array:
        values = []
        for number, text in enumerate(texts.to_pylist()):
            try:
                value = None if text is None else parse_text(text, self.field.type)
            except ValueError as error:
                wanted = bare_type_text(self.field.type)
                raise row_error(
                    before + number,
                    InvalidInputError(
                        f"column {self.field.name} of {self.table} is {wanted}, and "
                        f"{excerpt(text)} is none; {error}"
                    ),
                ) from error
            values.append(value)
        return python_array(values, self.field, self.arrow_type, self.table, before)


_ARROW_PARSES: Final = (
    t.TinyIntType
    | t.SmallIntType
    | t.IntType
    | t.BigIntType
    | t.DoubleType
    | t.DateType
    | t.DecimalType
)
"""Types whose plain texts Arrow parses as `parse_text` does, and faster."""

_PLAIN: Final = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}|[+-]?[0-9]{1,50}([.][0-9]{0,50})?)$"
"""Dates and numbers without an exponent.

Arrow also reads `0x10` as 16 and `1e400` as infinity, and an exponent such as that of `1e-99999999`
ends the process.
"""


def _json_batches(file: _FileRows, stream: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with one JSON object a line; blank lines are skipped."""
    return DictRows(file.schema, file.table).batches(_json_rows(file, stream))


def _json_rows(file: _FileRows, stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    from decimal import Decimal

    decoder = msgspec.json.Decoder(float_hook=Decimal)
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        if not line.strip():
            continue
        if len(line) > LONGEST_LINE:
            raise row_error(number, InvalidInputError(f"it has more than {LONGEST_LINE} bytes"))
        try:
            row = python_row(decoder.decode(line), file.schema, file.table)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise row_error(number, InvalidInputError(f"it is no JSON object: {error}")) from error
        except InvalidInputError as error:
            raise row_error(number, error) from error
        yield row
        number += 1


def _parquet_batches(file: _FileRows, stream: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file."""
    from ledger.model.parquet_limits import open_parquet_stream

    size = stream.seek(0, 2)
    yield from open_parquet_stream(stream, size, file.path).iter_batches(ROWS_A_BATCH * 16)


_READERS: Final[Mapping[str, Callable[[_FileRows, IO[bytes]], Iterator[pa.RecordBatch]]]] = {
    ".csv": _csv_batches,
    ".jsonl": _json_batches,
    ".ndjson": _json_batches,
    ".parquet": _parquet_batches,
}


def _reader_of(path: str) -> Callable[[_FileRows, IO[bytes]], Iterator[pa.RecordBatch]] | None:
    lower = path.lower()
    return next((read for ending, read in _READERS.items() if lower.endswith(ending)), None)
