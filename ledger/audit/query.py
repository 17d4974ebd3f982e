"""Queries in SQL over views, run by DuckDB in memory.

A statement is parsed by DuckDB and run only if it is a single one that reads, and calls no table
function but those listed here: others read files, change DuckDB, or take addresses in memory.
DuckDB itself has no access to files, extensions or variables of Python, and its configuration is
locked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, field, frozen

from ledger.audit.views import Row, Rows
from ledger.model.errors import InvalidInputError
from ledger.model.extras import missing_extra_error
from ledger.model.messages import excerpt, is_utf8_encodable

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_MEMORY_LIMIT: Final = "1GB"

_CONFIGURATION: Final[Mapping[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    # Nothing is spilled to disk.
    "temp_directory": "",
    "memory_limit": _MEMORY_LIMIT,
    # The rows are created by Python, which runs one thread at a time.
    "threads": "1",
}

_TABLE_FUNCTIONS: Final = frozenset(
    {"generate_series", "json_each", "json_tree", "range", "unnest"}
)

_BATCH_ROWS: Final = 8_192

_MOST_CHARACTERS: Final = 1_000_000

_READING: Final = "SELECT, WITH, FROM, VALUES, DESCRIBE, SHOW or SUMMARIZE"


def run_query(statement: str, views: Mapping[str, Rows]) -> pa.RecordBatchReader:
    """Run a statement that reads over views, and return a reader of its rows.

    Args:
        statement: One statement in DuckDB's SQL.
        views: The views by name; one creates its rows only if the statement reads it.

    Raises:
        InvalidInputError: The statement is invalid, does more than read, or fails; raised while
            batches are read, too.
        MissingDependencyError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError as error:
        raise missing_extra_error("queries in SQL need duckdb", "duckdb") from error
    import pyarrow as pa

    connection = duckdb.connect(":memory:", config=dict(_CONFIGURATION))
    with ExitStack() as cleanup:
        cleanup.callback(connection.close)
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET lock_configuration = true")
        query = _Query(statement, views)
        reader = query.execute(connection)
        cleanup.pop_all()
    return pa.RecordBatchReader.from_batches(reader.schema, query.batches(reader, connection))


@frozen
class _Query:
    """A statement with the views that it may read.

    Attributes:
        statement: The statement.
        views: The views by name.
        failures: The errors that views raised; DuckDB reports only their texts.
    """

    statement: str
    views: Mapping[str, Rows]
    failures: list[BaseException] = field(factory=list)

    def execute(self, connection: duckdb.DuckDBPyConnection) -> pa.RecordBatchReader:
        """Validate and start the statement; its rows are created as they are read."""
        with self._errors(()):
            named = _tables_named_in(connection, self.statement)
        for name, rows in self.views.items():
            connection.register(name, evolve(rows, make=partial(self._rows_of, rows)))
        with self._errors([each for each in self.views if each in named]):
            reader = connection.sql(self.statement).to_arrow_reader(_BATCH_ROWS)
        for name, count in Counter(reader.schema.names).items():
            if count > 1:
                raise InvalidInputError(
                    f"{count} columns of the result are called {name}; give each its own name: "
                    f'SELECT ... AS "{name}_2"'
                )
        return reader

    def batches(
        self, reader: pa.RecordBatchReader, connection: duckdb.DuckDBPyConnection
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the started statement, then close the connection."""
        with closing(connection), self._errors(()):
            yield from reader

    def _rows_of(self, rows: Rows) -> Iterator[Row]:
        try:
            yield from rows.make()
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failures.append(error)
            raise

    @contextmanager
    def _errors(self, named: Sequence[str]) -> Iterator[None]:
        """Convert errors of DuckDB and Arrow; those that a view raised are raised again.

        Args:
            named: The views that the statement names, for hints.
        """
        import duckdb
        import pyarrow as pa

        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            if self.failures:
                raise self.failures[0] from error
            # The rest repeats the statement, with a mark below the place.
            reason = " ".join(str(error).partition("\n\nLINE ")[0].split())
            hint = ""
            if isinstance(error, duckdb.CatalogException) and "Table with name" in reason:
                # DuckDB proposes tables of its own.
                reason = reason.partition(" Did you mean ")[0].rstrip(".!")
                hint = (
                    f"; there are the views {', '.join(self.views)}, and rows of tables are read "
                    "by lakeledger head and TableAt.to_duckdb"
                )
            elif isinstance(error, duckdb.BinderException):
                hint = "".join(
                    f"; {each} has {', '.join(self.views[each].columns)}" for each in named
                )
            raise InvalidInputError(f"{excerpt(self.statement)} fails: {reason}{hint}") from error


def _tables_named_in(connection: duckdb.DuckDBPyConnection, statement: str) -> frozenset[str]:
    """Validate a statement and return the tables that it names, views and others.

    Raises:
        InvalidInputError: It is not a single statement that reads, or calls a table function that
            may do more.
    """
    _check_text(statement)
    # Read to its end: from DuckDB 2 on, a connection with a result in progress takes no statement.
    ((serialized,),) = connection.execute("SELECT json_serialize_sql(?)", [statement]).fetchall()
    try:
        parsed = json.loads(serialized)
    except RecursionError as error:
        raise InvalidInputError(
            f"{excerpt(statement)} is nested too deeply; simplify it"
        ) from error
    if parsed["error"]:
        if parsed["error_type"] == "parser":
            raise InvalidInputError(
                f"{excerpt(statement)} cannot be parsed: {parsed['error_message']}"
            )
        raise InvalidInputError(
            f"{excerpt(statement)} does more than read; a query begins with {_READING}"
        )
    if len(parsed["statements"]) != 1:
        raise InvalidInputError(
            f"{excerpt(statement)} has {len(parsed['statements'])} statements; a query is one"
        )
    tables: set[str] = set()
    for node in _nodes(parsed["statements"]):
        if node.get("type") == "TABLE_FUNCTION":
            function = node["function"]["function_name"]
            if function not in _TABLE_FUNCTIONS:
                raise InvalidInputError(
                    f"the table function {function} is not available in queries of a ledger; those "
                    f"that are: {', '.join(sorted(_TABLE_FUNCTIONS))}"
                )
        elif node.get("type") == "BASE_TABLE":
            tables.add(node["table_name"])
    return frozenset(tables)


def _check_text(statement: str) -> None:
    if not is_utf8_encodable(statement):
        raise InvalidInputError(
            f"statement={excerpt(statement)}: half a surrogate pair is no character"
        )
    if len(statement) > _MOST_CHARACTERS:
        raise InvalidInputError(
            f"statement={excerpt(statement)} has {len(statement)} characters; a query has at most "
            f"{_MOST_CHARACTERS}"
        )


def _nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a JSON value, in no order."""
    left = [tree]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield value
            left += value.values()
        elif isinstance(value, list):
            left += value
