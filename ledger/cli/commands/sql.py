"""Command `sql`: a query over the ledger's history, or an ALTER TABLE statement."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ledger.cli.commands.tables import renamed
from ledger.cli.exits import Stop, UsageError, stop_flag_at_once
from ledger.cli.options import CommitFlags, LedgerFlags, read_instant, tables_of
from ledger.cli.output import Document, Screen, as_json
from ledger.cli.phrases import committed
from ledger.model.errors import InvalidInputError
from ledger.model.instant import TimestampInstant
from ledger.model.names import quote_path
from ledger.sql.statement import RenameStatement, parse
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    import pyarrow as pa

# Commands that correspond to other SQL statements.
_ELSEWHERE = {
    "CREATE": "create --help",
    "DELETE": "delete-files --help",
    "DROP": "drop --help",
    "INSERT": "append --help",
}


def sql(
    statement: Annotated[str, Parameter(help="A query, or an ALTER TABLE statement.")],
    /,
    *,
    at: Annotated[
        str | None,
        Parameter(
            help="Of a query: read the ledger as of a time, such as 2013-01-31, yesterday or 12h "
            "ago; with --table as of any instant, such as tag:v1 or HEAD~3."
        ),
    ] = None,
    table: Annotated[
        str | None,
        Parameter(help="Of a query: read the views of this table only.", completer=tables_of),
    ] = None,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    r"""Query the history and tables with SQL, or run an ALTER TABLE statement.

    A query in DuckDB's SQL (extra `duckdb`) reads these views; DESCRIBE FROM VIEW lists columns:

    | view | rows |
    |---|---|
    | `log` | events of all tables and of the catalog |
    | `tables` | tables, with rows, files, bytes and owner |
    | `columns` | columns, with the commit that changed each last |
    | `blame` | aspects of columns and settings, with the commit that set each |
    | `snapshots` | unexpired snapshots and those kept by a tag |
    | `files`, `partitions` | live files, and their sums by partition |

    ALTER TABLE, in Spark or Iceberg syntax, supports columns, properties, partition fields, write
    order, identifier fields, tags and RENAME TO. A statement is one atomic commit.

    Example:
        lakeledger sql "SELECT author, count(*) FROM log GROUP BY author"

        lakeledger sql "ALTER TABLE shop.orders WRITE ORDERED BY id" \
            --message "ids come in order"
    """
    first = statement.split(maxsplit=1)[0].upper() if statement.strip() else ""
    if first in _ELSEWHERE:
        raise UsageError(
            f"sql runs queries and ALTER TABLE; for {first} see: lakeledger {_ELSEWHERE[first]}"
        )
    if first == "ALTER":
        if at is not None or table is not None:
            raise UsageError("--at and --table are for queries; ALTER TABLE names its table")
        _alter(statement, writing, place)
        return
    if writing.options().keys() - {"author"}:
        raise UsageError(
            "a query commits nothing: --message, --commit-id, --expect-version need ALTER TABLE"
        )
    # DuckDB and Arrow call Python where the exception of a signal handler is lost.
    with stop_flag_at_once() as stop:
        reader = _query(statement, at, table, place)
        place.screen.results(
            "rows",
            _documents(reader, stop),
            lambda screen: _print_rows(screen, reader, stop),
            {"columns": reader.schema.names},
        )


def _alter(statement: str, writing: CommitFlags, place: LedgerFlags) -> None:
    read = parse(statement)
    name = ".".join(read.table)
    if isinstance(read, RenameStatement):
        new_name = ".".join(read.new_name)
        done = place.open().rename_table(name, new_name, **writing.options())
        renamed(place.screen, name, new_name, done, quote_path(read.table))
        return
    table = place.table(name)
    committed(place.screen, table, table.sql(statement, **writing.options()), writing)


def _query(
    statement: str, at: str | None, table_name: str | None, place: LedgerFlags
) -> pa.RecordBatchReader:
    from ledger.queries import query_ledger, query_table

    instant = None if at is None else read_instant(at)
    if table_name is not None:
        then = place.table(table_name).at(at)
        return query_table(handle_of(then), then.state, then.schema, statement)
    if not isinstance(instant, TimestampInstant | None):
        raise UsageError(
            f"--at {at} is an instant of one table; name the table with --table, or write a time"
        )
    at_millis = None if instant is None else instant.timestamp_millis
    return query_ledger(handle_of(place.open()), statement, at_millis)


def _documents(reader: pa.RecordBatchReader, stop: Stop) -> Iterator[Document]:
    for batch in reader:
        if stop.asked:
            raise KeyboardInterrupt
        for row in _rows_of(batch):
            yield {name: _plain(value) for name, value in row.items()}


def _rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"a value of the result is outside of what Python holds ({error}); convert it to "
            "text: CAST(... AS VARCHAR)"
        ) from error
    return rows


def _plain(value: Any) -> Any:
    """Return a value as plain JSON: times in UTC as ISO 8601, exact numbers as they are.

    Example:
        >>> _plain(datetime(2024, 1, 1, 12, tzinfo=UTC)), _plain(Decimal(7)), _plain(float("nan"))
        ('2024-01-01T12:00:00.000Z', 7, 'nan')
    """
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> str | float | None:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return int(value) if value == value.to_integral_value() else str(value)
        case date() | time():
            return _iso_text(value)
        case bytes():
            return value.hex()
        case _:
            return str(value)


def _iso_text(moment: date | time) -> str:
    if not isinstance(moment, datetime):
        return moment.isoformat()
    precision = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    if moment.tzinfo is None:
        return moment.isoformat(timespec=precision)
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def _print_rows(screen: Screen, reader: pa.RecordBatchReader, stop: Stop) -> None:
    import pyarrow as pa

    is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    numbers = {each.name for each in reader.schema if any(of(each.type) for of in is_number)}
    rows = [tuple(map(_cell, row.values())) for row in _documents(reader, stop)]
    if not rows:
        screen.line("no rows")
    screen.table(reader.schema.names, rows, numbers)


def _cell(value: Any) -> str | None:
    """Return a value as text; numbers of a query are ids and years, too, and get no separators."""
    return value if value is None or isinstance(value, str) else as_json(value)
