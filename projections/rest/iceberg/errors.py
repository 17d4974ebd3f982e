"""Errors as answers of Iceberg's REST protocol: a status, a type and a body.

A status is a statement about the log: 4xx if the request was certainly not applied, since clients
delete their files then, and 5xx if it is unknown. `Retry-After` is never sent: clients send a
commit again for it.

An idempotency key that was used for another request is answered with 400, the one status that the
specification has for every operation. A rejection is not stored under its key: the same key again
is decided on the newest state.

Source: the Iceberg REST catalog specification, IcebergErrorResponse; Java's ErrorHandlers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    DamagedLogError,
    InvalidInputError,
    LedgerError,
    MissingDependencyError,
    NotFoundError,
    StoreError,
    UnsupportedError,
    UpgradeRequiredError,
)
from ledger.model.names import Identifier
from projections.iceberg.rest_updates import StaleBaseError
from projections.rest.requests import Effect, Reply, RequestError


class ErrorType(NamedTuple):
    """A status, and the protocol's name of the error."""

    status: int
    name: str


BAD_REQUEST: Final = ErrorType(400, "BadRequestException")
UNKNOWN_OUTCOME: Final = ErrorType(500, "CommitStateUnknownException")
INTERNAL: Final = ErrorType(500, "InternalServerError")
UNAVAILABLE: Final = ErrorType(503, "ServiceUnavailableException")

_TYPES: Final[tuple[tuple[type[Exception], ErrorType], ...]] = (
    (StaleBaseError, ErrorType(409, "CommitFailedException")),
    (CommitConflictError, ErrorType(409, "CommitFailedException")),
    (AlreadyExistsError, ErrorType(409, "AlreadyExistsException")),
    (NotFoundError, ErrorType(404, "NotFoundException")),
    (UnsupportedError, ErrorType(400, "ValidationException")),
    (InvalidInputError, ErrorType(400, "IllegalArgumentException")),
    (CommitUnknownError, UNKNOWN_OUTCOME),
    (StoreError, UNAVAILABLE),
    (OSError, UNAVAILABLE),
    (DamagedLogError, INTERNAL),
    (UpgradeRequiredError, INTERNAL),
    (MissingDependencyError, INTERNAL),
)
"""Answers by class of error, the first that fits; an error of another class is `INTERNAL`."""

_TYPES_BY_STATUS: Final[Mapping[int, str]] = {
    400: BAD_REQUEST.name,
    401: "NotAuthorizedException",
    403: "ForbiddenException",
    404: "NotFoundException",
    405: "UnsupportedOperationException",
    406: "UnsupportedOperationException",
    409: "CommitFailedException",
    422: "UnprocessableEntityException",
    500: INTERNAL.name,
    503: UNAVAILABLE.name,
}
_SERVER_ERROR: Final = 500


def error_type_of(error: Exception, effect: Effect) -> ErrorType:
    """Return the answer to an error.

    Args:
        error: The error.
        effect: Whether the request may have appended to a log; a failure of the server is an
            unknown outcome then.

    Example:
        >>> error_type_of(NotFoundError("no such table"), "read")
        ErrorType(status=404, name='NotFoundException')
        >>> error_type_of(StoreError("no space"), "write")
        ErrorType(status=500, name='CommitStateUnknownException')
    """
    if isinstance(error, RequestError):
        if error.status == UNKNOWN_OUTCOME.status and not error.kind and effect == "write":
            return UNKNOWN_OUTCOME
        return ErrorType(error.status, error.kind or _TYPES_BY_STATUS.get(error.status, "Error"))
    found = next((answer for kind, answer in _TYPES if isinstance(error, kind)), INTERNAL)
    if found.status >= _SERVER_ERROR and effect == "write":
        return UNKNOWN_OUTCOME
    return found


def answer_error(error: Exception, effect: Effect) -> Reply:
    """Return the answer to an error, with its message.

    The text of an error that is no `LedgerError` stays in the server's log.
    """
    status, name = error_type_of(error, effect)
    if isinstance(error, LedgerError | RequestError):
        message = str(error)
    else:
        message = f"the server failed ({type(error).__name__}); its log has the reason"
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}  # noqa: PLR2004 - HTTP
    content = {"error": {"message": message, "type": name, "code": status}}
    return Reply(status, Reply.of(content).body, headers)


def unknown_outcome(reason: str) -> RequestError:
    """Return the error for a request that may have been applied, with the reason."""
    status, name = UNKNOWN_OUTCOME
    return RequestError(status, f"{reason}; look up the commit before you delete its files", name)


def no_such_namespace(name: str) -> RequestError:
    """Return the error for a namespace that does not exist."""
    return RequestError(404, f"Namespace does not exist: {name}", "NoSuchNamespaceException")


def no_such_table(name: str) -> RequestError:
    """Return the error for a table that does not exist."""
    return RequestError(404, f"Table does not exist: {name}", "NoSuchTableException")


def table_name_taken(name: Identifier, kind: str) -> RequestError:
    """Return the error for a new table whose name a table or view has, as `kind` says."""
    said = "Table" if kind == "table" else f"{kind.title()} with same name"
    return RequestError(409, f"{said} already exists: {name}", "AlreadyExistsException")


def create_requirement_failed(name: Identifier, kind: str) -> RequestError:
    """Return the error for updates that require a new table whose name is taken."""
    if kind != "table":
        return table_name_taken(name, kind)
    return RequestError(
        409,
        f"Requirement failed: table already exists: {name}; load it and commit to it",
        "CommitFailedException",
    )
