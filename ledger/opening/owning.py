"""Whose format lets the ledger own a table that others owned."""

from __future__ import annotations

from typing import Any

from ledger.evolution.state import TableState
from ledger.formats import part
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.identifier import Identifier


def promoter(identifier: Identifier, state: TableState) -> Any:
    """Return what promotes a table; see `ledger.formats.Part`.

    Raises:
        InvalidInputError: The ledger made it.
        UnsupportedError: It was born in Paimon, whose engines alone commit to it.
    """
    if state.paimon is not None:
        raise UnsupportedError(
            f"{identifier} was born in Paimon: its engines' manifests, buckets and merges "
            "stay with them, and the ledger goes on following. To own its rows, write them into a "
            "table of the ledger's own (lakeledger create, then add-files)"
        )
    birth = state.born or state.delta
    if birth is None:
        raise InvalidInputError(f"{identifier} is the ledger's own, and was never anybody else's")
    return part(birth.format_name, "promoter")
