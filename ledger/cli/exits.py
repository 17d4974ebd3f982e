"""Exit codes: stable, so that scripts can tell what to do next."""

from __future__ import annotations

from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    DamagedLogError,
    LedgerError,
    MissingDependencyError,
    NotFoundError,
    StoreError,
    UpgradeRequiredError,
)

OK = 0
INVALID_INPUT = 1
USAGE = 2
NAME = 3
CONFLICT = 4
UNKNOWN = 5
DAMAGED = 6
MISSING_DEPENDENCY = 7
STORE = 8
INTERRUPTED = 130
BROKEN_PIPE = 141

MEANINGS: dict[int, str] = {
    OK: "done",
    INVALID_INPUT: "what was asked for cannot be done; the message names the rule",
    USAGE: "the command line itself is wrong",
    NAME: "something does not exist, or exists already",
    CONFLICT: "somebody else changed the same thing first; nothing was written",
    UNKNOWN: "the store gave no answer; look at the log before asking again",
    DAMAGED: "stored bytes do not fit, or a newer lakeledger wrote them",
    MISSING_DEPENDENCY: "something is not installed; the message says how to get it",
    STORE: "the store cannot be used, or failed",
    INTERRUPTED: "interrupted",
    BROKEN_PIPE: "whoever read the output stopped reading",
}

_CODES: tuple[tuple[type[LedgerError], int], ...] = (
    (NotFoundError, NAME),
    (AlreadyExistsError, NAME),
    (CommitConflictError, CONFLICT),
    (CommitUnknownError, UNKNOWN),
    (DamagedLogError, DAMAGED),
    (UpgradeRequiredError, DAMAGED),
    (MissingDependencyError, MISSING_DEPENDENCY),
    (StoreError, STORE),
)


class UsageError(Exception):
    """The command line itself is wrong: nothing was looked at yet."""


def code_of(error: LedgerError) -> int:
    """Return the exit code of an error.

    Example:
        >>> code_of(NotFoundError("table shop.orders does not exist"))
        3
    """
    return next((code for kind, code in _CODES if isinstance(error, kind)), INVALID_INPUT)
