"""Transactions that say outside of their lines who asked, and why."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ledger.events.commit import Transaction, said_by
from ledger.model.errors import InvalidChangeError


def kept_outside(transaction: Transaction[Any]) -> str:
    """Return what the state says of the author, in a stream that keeps such values outside.

    Args:
        transaction: One that has `outside`.

    Raises:
        InvalidChangeError: Its line holds what is kept outside here.
    """
    if transaction.author or transaction.message or transaction.properties:
        raise _refused(transaction, "its line holds some of them")
    return said_by(transaction)


def keeps_outside(transaction: Transaction[Any], *, before: bool | None) -> bool:
    """Return whether a stream keeps such values outside of its lines: all of them, or none.

    Args:
        transaction: The stream's next one.
        before: What the ones before it say; None before the first.

    Raises:
        InvalidChangeError: It keeps them elsewhere than the ones before it.
    """
    is_outside = transaction.outside is not UNSET
    if before is None or before is is_outside:
        return is_outside
    if before:
        raise _refused(transaction, "its line does not say what was kept")
    raise InvalidChangeError(
        f"transaction {transaction.id}: this stream keeps authors, messages and properties in its "
        "lines since its first transaction, and cannot keep them outside from now on",
        kind="ILLEGAL_STATE",
    )


def _refused(transaction: Transaction[Any], why: str) -> InvalidChangeError:
    return InvalidChangeError(
        f"transaction {transaction.id}: authors, messages and properties are kept outside of the "
        f"lines here, and {why}",
        kind="ILLEGAL_STATE",
    )
