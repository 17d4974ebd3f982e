"""Origin of a table that engines own through Paimon's protocol, and the folder that they write."""

from __future__ import annotations

from typing import assert_never

from ledger.model.errors import InvalidChangeError, UnsupportedError
from ledger.state.paimon_origin import OWN_FOLDER, PaimonOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle


def served_origin(state: TableState) -> PaimonOrigin:
    """Return the origin of a table whose data engines own through Paimon's protocol.

    Raises:
        InvalidChangeError: They do not, or not any more.
        UnsupportedError: The ledger lists the table's files, which engines' manifests cannot.
    """
    if state.owner.kind != "served" or state.owner.protocol != "paimon":
        raise not_served_error(state)
    if not isinstance(state.origin, PaimonOrigin) or state.origin.is_promoted:
        raise UnsupportedError(
            f"the ledger lists the files of table {state.table_id}, whose origin is "
            f"{state.origin.format_name}, and engines of Paimon cannot commit to it; create a "
            "table through Paimon's REST API, or register one"
        )
    return state.origin


def not_served_error(state: TableState) -> InvalidChangeError:
    """Return the error for a change by Paimon's clients to a table that is another's to change."""
    owner = state.owner
    match owner.kind:
        case "ledger":
            reason = (
                "the ledger commits the data of this table (Table.append and the library's other "
                "calls), and Paimon's clients read it and change its columns, options and tags. "
                "For engines that commit data, create or register a table through the server"
            )
        case "mirrored":
            reason = (
                "the table's owner is elsewhere, and the ledger follows it (lakeledger import "
                f"{state.origin.format_name}); Paimon's clients only read it"
            )
        case "served":
            reason = (
                f"engines commit to the table through the {owner.protocol} protocol alone, since "
                f"version {owner.since_version}"
            )
        case never:
            assert_never(never)
    return InvalidChangeError(f"{reason}. Nothing was committed", kind="SERVED")


def is_engine_table(state: TableState) -> bool:
    """Return whether engines of Paimon commit the data of a table."""
    origin = state.origin
    is_served = (state.owner.kind, state.owner.protocol) == ("served", "paimon")
    return is_served and isinstance(origin, PaimonOrigin) and not origin.is_promoted


def folder_of(table: TableHandle, state: TableState) -> str:
    """Return the URL of the folder that a served table's engines write into."""
    return served_origin(state).folder(table.location)


def is_external(state: TableState) -> bool:
    """Return whether a served table's folder is not its own, so that a drop keeps its files."""
    return served_origin(state).location != OWN_FOLDER
