"""Tables as clients load them: the schema of a branch, the location of its files, the audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from ledger.locations import place_of, with_scheme
from ledger.model.schema import Schema
from ledger.state.declared_formats import OWN_PREFIX
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.dlf import GetTableResponse, get_table_response
from projections.paimon.served import PATH_OPTION
from projections.paimon.served_files import write_files
from projections.paimon.served_origin import folder_of, is_engine_table, is_external
from projections.rest.paimon.lines import Line
from projections.rest.paimon.readable import project_readable

TYPE_OPTION: Final = "type"
DEFAULT_TYPE: Final = "table"


def table_response(line: Line) -> GetTableResponse:
    """Return a line of a table as clients load it; the files that they read exist then.

    Raises:
        UnsupportedError: The ledger lists the table's files, and Paimon cannot express it.
        StoreError: A file cannot be written.
    """
    table, state = line.table, line.whole
    if is_engine_table(state):
        write_files(table, state, line.branch)
        place = folder_of(table, state)
        outside = is_external(state) and not _is_given_by_server(table, state, place)
    else:
        place, outside = project_readable(table, state), state.is_external
    schema = line.state.schema
    response = get_table_response(state, line.identifier, root_url="")
    return evolve(
        response,
        path=with_scheme(place),
        is_external=outside,
        schema_id=schema.id,
        schema=engine_schema(schema),
    )


def _is_given_by_server(table: TableHandle, state: TableState, place: str) -> bool:
    """Return whether a table of files alone is where the server put it, in the ledger."""
    is_apart = table_type(state.schema.options) != DEFAULT_TYPE
    return is_apart and place_of(table.setting.home).holds(place_of(place))


def engine_schema(schema: Schema) -> Schema:
    """Return a schema as engines see it: without the options of the ledger."""
    options = {
        key: value
        for key, value in schema.options.items()
        if not key.startswith(OWN_PREFIX) and key != PATH_OPTION
    }
    return evolve(schema, options=options)


def table_type(options: Mapping[str, str]) -> str:
    """Return the type of a table by its options, such as `format-table`.

    Example:
        >>> table_type({}), table_type({"type": "object-table"})
        ('table', 'object-table')
    """
    return options.get(TYPE_OPTION, DEFAULT_TYPE)
