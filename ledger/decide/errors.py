"""Constructors of the four kinds of rejection, named after Paimon's exceptions."""

from __future__ import annotations

from ledger.model.errors import InvalidChangeError


def argument(message: str) -> InvalidChangeError:
    """Return the refusal of a change that is wrong in itself."""
    return InvalidChangeError(message, "ILLEGAL_ARGUMENT")


def state(message: str) -> InvalidChangeError:
    """Return the refusal of a change that does not fit the schema as it is."""
    return InvalidChangeError(message, "ILLEGAL_STATE")


def unsupported(message: str) -> InvalidChangeError:
    """Return the refusal of a change that no table of this kind can take."""
    return InvalidChangeError(message, "UNSUPPORTED")


def runtime(message: str) -> InvalidChangeError:
    """Return the refusal that Paimon raises as a plain RuntimeException."""
    return InvalidChangeError(message, "RUNTIME")
