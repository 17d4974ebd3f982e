"""Transactions that say outside of their lines who asked, and why."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ledger.events.commit import Transaction, said_by
from ledger.events.formats import VALUES_OUTSIDE
from ledger.model.errors import InvalidChangeError


def kept_outside(transaction: Transaction[Any], format_version: int) -> str:
    """Return what the state says of the author, in a stream that keeps such values outside.

    Args:
        transaction: One that has `outside`, or that follows one.
        format_version: Of its commit.

    Raises:
        InvalidChangeError: Its line holds what is kept outside here, or its commit is of a format
            that cannot say so.
    """
    if format_version < VALUES_OUTSIDE:
        raise _refused(transaction, f"a commit of format {format_version} cannot say so")
    if transaction.outside is UNSET:
        raise _refused(transaction, "its line does not say what was kept")
    if transaction.author or transaction.message or transaction.properties:
        raise _refused(transaction, "its line holds some of them")
    return said_by(transaction)


def _refused(transaction: Transaction[Any], why: str) -> InvalidChangeError:
    return InvalidChangeError(
        f"transaction {transaction.id}: authors, messages and properties are kept outside of the "
        f"lines here, and {why}",
        kind="ILLEGAL_STATE",
    )
