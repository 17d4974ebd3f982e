"""Constructors of the four kinds of rejection, named after Paimon's exceptions."""

from __future__ import annotations

from ledger.model.errors import InvalidChangeError


def argument_error(message: str) -> InvalidChangeError:
    """Return the error for a change that is invalid in itself."""
    return InvalidChangeError(message, "ILLEGAL_ARGUMENT")


def state_error(message: str) -> InvalidChangeError:
    """Return the error for a change that does not fit the current schema."""
    return InvalidChangeError(message, "ILLEGAL_STATE")


def unsupported_error(message: str) -> InvalidChangeError:
    """Return the error for a change that no table of this kind supports."""
    return InvalidChangeError(message, "UNSUPPORTED")


def runtime_error(message: str) -> InvalidChangeError:
    """Return the error that Paimon raises as a plain RuntimeException."""
    return InvalidChangeError(message, "RUNTIME")
