"""Errors as answers of Paimon's REST protocol: a status, the kind of a resource and its name.

A status is a statement about the log: 4xx and 501 if the request was certainly not applied, and 500
if that is unknown. Java's client sends a request again after 503 and 429, so a 503 is answered only
before anything is appended, and `Retry-After` never.

Source: Paimon's ErrorResponse, DefaultErrorHandler and RESTCatalog.
"""

from __future__ import annotations

from typing import Final

from ledger.model.errors import (
    AlreadyExistsError,
    ColumnExistsError,
    ColumnNotFoundError,
    CommitConflictError,
    CommitUnknownError,
    InvalidChangeError,
    InvalidInputError,
    LedgerError,
    StoreError,
    TableDroppedError,
    UnsupportedError,
)
from ledger.model.names import Identifier
from projections.dlf.keys import Style
from projections.dlf.objects import ErrorResponse
from projections.dlf.rendering import render
from projections.rest.requests import Effect, Reply, RequestError

DATABASE: Final = "DATABASE"
TABLE: Final = "TABLE"
PARTITION: Final = "PARTITION"
COLUMN: Final = "COLUMN"
SNAPSHOT: Final = "SNAPSHOT"
BRANCH: Final = "BRANCH"
TAG: Final = "TAG"
VIEW: Final = "VIEW"
DIALECT: Final = "DIALECT"
FUNCTION: Final = "FUNCTION"
DEFINITION: Final = "DEFINITION"

_UNKNOWN_OUTCOME: Final = 500
_UNSUPPORTED: Final = 501
_UNAVAILABLE: Final = 503
_UNAUTHORIZED: Final = 401

_STATUSES: Final[tuple[tuple[type[Exception], int], ...]] = (
    (ColumnNotFoundError, 404),
    (ColumnExistsError, 409),
    # Java's client takes 409 for a name that exists.
    (CommitConflictError, 400),
    (AlreadyExistsError, 409),
    # Of another one, handlers say what does not exist: clients take each 404 for that of a table.
    (TableDroppedError, 404),
    (UnsupportedError, _UNSUPPORTED),
    (InvalidInputError, 400),
    (CommitUnknownError, _UNKNOWN_OUTCOME),
    (StoreError, _UNAVAILABLE),
    (OSError, _UNAVAILABLE),
)
"""Statuses by class of error, the first that fits; an error of another class is a 500."""


def status_of(error: Exception, effect: Effect) -> int:
    """Return the status of an error.

    Args:
        error: The error.
        effect: Whether the request may have appended to a log; a failure of the server is an
            unknown outcome then.

    Example:
        >>> status_of(TableDroppedError("the table was dropped"), "read")
        404
        >>> status_of(StoreError("no space"), "read"), status_of(StoreError("no space"), "write")
        (503, 500)
    """
    if isinstance(error, RequestError):
        return error.status
    if isinstance(error, InvalidChangeError) and error.kind == UnsupportedError.kind:
        return _UNSUPPORTED
    found = next((each for kind, each in _STATUSES if isinstance(error, kind)), _UNKNOWN_OUTCOME)
    return _UNKNOWN_OUTCOME if found == _UNAVAILABLE and effect == "write" else found


def answer_error(error: Exception, effect: Effect) -> Reply:
    """Return the answer to an error, with its message.

    The text of an error that is no `LedgerError` stays in the server's log.
    """
    status = status_of(error, effect)
    kind, resource = _resource_of(error)
    if isinstance(error, LedgerError | RequestError):
        message = str(error)
    else:
        message = f"the server failed ({type(error).__name__}); its log has the reason"
    headers = {"www-authenticate": "Bearer"} if status == _UNAUTHORIZED else {}
    response = ErrorResponse(kind or None, resource or None, message, code=status)
    return Reply(status, Reply.of(render(response, Style.PAIMON_REST)).body, headers)


def _resource_of(error: Exception) -> tuple[str, str]:
    if isinstance(error, RequestError):
        return error.kind, error.resource
    if isinstance(error, ColumnNotFoundError | ColumnExistsError):
        return COLUMN, ""
    if isinstance(error, TableDroppedError):
        return TABLE, ""
    return "", ""


def not_found(kind: str, resource: str, message: str) -> RequestError:
    """Return the error for a resource that does not exist."""
    return RequestError(404, message, kind, resource)


def already_exists(kind: str, resource: str, message: str) -> RequestError:
    """Return the error for a resource that exists already."""
    return RequestError(409, message, kind, resource)


def no_such_database(name: str) -> RequestError:
    """Return the error for a database that does not exist."""
    return not_found(DATABASE, name, f"Database {name} does not exist.")


def no_such_table(identifier: Identifier) -> RequestError:
    """Return the error for a table that does not exist."""
    return not_found(TABLE, identifier.name, f"Table {identifier} does not exist.")


def no_such_snapshot(version: object, table: Identifier) -> RequestError:
    """Return the error for a snapshot that does not exist."""
    return not_found(SNAPSHOT, str(version), f"Table {table} has no snapshot {version}.")


def no_such_tag(name: str, table: Identifier) -> RequestError:
    """Return the error for a tag that does not exist."""
    return not_found(TAG, name, f"Table {table} has no tag {name}.")


def no_such_branch(name: str, table: Identifier) -> RequestError:
    """Return the error for a branch that does not exist."""
    return not_found(BRANCH, name, f"Table {table} has no branch {name}.")
