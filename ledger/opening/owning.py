"""Whose format lets the ledger own a table that others owned."""

from __future__ import annotations

from typing import Any

from ledger.evolution.state import TableState
from ledger.formats import part
from ledger.model.errors import InvalidInputError
from ledger.model.identifier import Identifier


def promoter(identifier: Identifier, state: TableState) -> Any:
    """Return what promotes a table; see `ledger.formats.Part`.

    Raises:
        InvalidInputError: The ledger made it.
    """
    birth = state.born or state.paimon or state.delta
    if birth is None:
        raise InvalidInputError(f"{identifier} is the ledger's own, and was never anybody else's")
    return part(birth.format_name, "promoter")
