"""Classification of the errors of object store clients.

Clients wrap the server's response several times, and not always correctly: s3fs raises
`FileExistsError` for one server's 412 and `OSError(EINVAL)` for another's; adlfs raises
`FileExistsError` for every 409, also that of a container being deleted. So the server's own code
and status, found along the chain of causes, take precedence over the exception's class. Unclear
responses are classified as unknown: the caller reads back.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from attrs import frozen

from ledger.model.errors import NotFoundError, StoreError
from ledger.stores.services import PROVEN, BucketRoot


class Answer(enum.Enum):
    """Classification of a failed request."""

    EXISTS = "exists"
    """The condition did not hold: there is an object under the key."""

    ABSENT = "absent"
    """There is no object under the key."""

    NO_BUCKET = "no bucket"
    """There is no such bucket or container."""

    DENIED = "denied"
    """The credentials do not allow it, or there are none."""

    UNSUPPORTED = "unsupported"
    """The server does not support this kind of request."""

    FULL = "full"
    """A quota is exceeded, or there is no space."""

    REFUSED = "refused"
    """The server understood and rejected it, for a reason that it names."""

    UNKNOWN = "unknown"
    """Any other failure: the request may have been applied or not."""


_BY_CODE: Final = {
    "PreconditionFailed": Answer.EXISTS,
    "BlobAlreadyExists": Answer.EXISTS,
    "ConditionNotMet": Answer.EXISTS,
    "NoSuchKey": Answer.ABSENT,
    "BlobNotFound": Answer.ABSENT,
    "NoSuchBucket": Answer.NO_BUCKET,
    "ContainerNotFound": Answer.NO_BUCKET,
    "NotImplemented": Answer.UNSUPPORTED,
    **dict.fromkeys(("ExpiredToken", "InvalidToken", "TokenRefreshRequired"), Answer.DENIED),
    "AuthorizationHeaderMalformed": Answer.DENIED,
    **dict.fromkeys(("QuotaExceeded", "XMinioAdminBucketQuotaExceeded"), Answer.FULL),
    **dict.fromkeys(("XMinioStorageFull", "InsufficientStorage"), Answer.FULL),
    # Caused by the network, although the status blames the client.
    **dict.fromkeys(("RequestTimeout", "IncompleteBody", "BadDigest"), Answer.UNKNOWN),
    **dict.fromkeys(("InvalidDigest", "XAmzContentSHA256Mismatch"), Answer.UNKNOWN),
    **dict.fromkeys(("Md5Mismatch", "IncompleteSignature"), Answer.UNKNOWN),
}
_BY_STATUS: Final = {
    401: Answer.DENIED,
    403: Answer.DENIED,
    404: Answer.ABSENT,
    405: Answer.REFUSED,
    411: Answer.REFUSED,
    412: Answer.EXISTS,
    413: Answer.REFUSED,
    414: Answer.REFUSED,
    501: Answer.UNSUPPORTED,
    507: Answer.FULL,
}
_BAD_REQUEST: Final = 400
_BY_CLASS: Final = (
    (FileExistsError, Answer.EXISTS),
    (FileNotFoundError, Answer.ABSENT),
    (PermissionError, Answer.DENIED),
)
# Errors without a server's response: raised before the request, or of obstore, which drops it.
_BY_NAME: Final = {
    "AlreadyExistsError": Answer.EXISTS,
    "PreconditionError": Answer.EXISTS,
    "PermissionDeniedError": Answer.DENIED,
    "UnauthenticatedError": Answer.DENIED,
    "NotSupportedError": Answer.UNSUPPORTED,
    "NoCredentialsError": Answer.DENIED,
    "PartialCredentialsError": Answer.DENIED,
    "DefaultCredentialsError": Answer.DENIED,
    "RefreshError": Answer.DENIED,
    "ClientAuthenticationError": Answer.DENIED,
}
_CLIENTS: Final = frozenset(
    {"adlfs", "aiobotocore", "aiohttp", "azure", "botocore", "gcsfs", "google"}
    | {"obstore", "requests", "s3fs"}
)
"""Packages whose exceptions are errors of a client."""

_NEXT_STEPS: Final = {
    Answer.ABSENT: "it does not exist; check its path",
    Answer.NO_BUCKET: "there is no such bucket; check its name",
    Answer.DENIED: "the credentials do not allow it, or there are none; allow to get and list",
}
_REFUSALS: Final = {
    # For a write, only the bucket can be absent.
    Answer.ABSENT: ("NO_BUCKET", "there is no such bucket; create it"),
    Answer.NO_BUCKET: ("NO_BUCKET", "there is no bucket {bucket!r}; create it"),
    Answer.DENIED: (
        "NO_PERMISSION",
        "the credentials do not allow it, or there are none; allow to get, put and list",
    ),
    Answer.UNSUPPORTED: ("STORE", f"its store has no conditional create; use {PROVEN}"),
    Answer.FULL: ("NO_SPACE", "there is no space, or a quota is exceeded; free some or raise it"),
    Answer.REFUSED: ("STORE", "its store rejected it; see the server's error code"),
}
_LONGEST_CHAIN: Final = 8


@frozen
class ErrorResponse:
    """Status and error code of a server's response, as far as the client passed them on.

    Attributes:
        status: The HTTP status, or None.
        code: The server's error code, such as `NoSuchBucket`; empty when it gave none.
    """

    status: int | None = None
    code: str = ""

    def __str__(self) -> str:
        return " ".join(str(each) for each in (self.status, self.code) if each)


def classify_failure(error: BaseException) -> Answer:
    """Return the classification of a client's exception.

    Example:
        >>> classify_failure(FileNotFoundError("a")), classify_failure(ConnectionResetError())
        (<Answer.ABSENT: 'absent'>, <Answer.UNKNOWN: 'unknown'>)
    """
    cause = error_response(error)
    if cause.code in _BY_CODE:
        return _BY_CODE[cause.code]
    if cause.status is not None:
        if cause.status == _BAD_REQUEST and cause.code and not cause.code.isdecimal():
            # Without an error code, a gateway may have sent it for a request damaged on the way.
            return Answer.REFUSED
        return _BY_STATUS.get(cause.status, Answer.UNKNOWN)
    for kind, answer in _BY_CLASS:
        if isinstance(error, kind):
            return answer
    # Only clients' exceptions: one of the ledger's own in the chain may have the same name.
    names = (type(each).__name__ for each in _error_chain(error) if _is_client_error(each))
    return next((_BY_NAME[name] for name in names if name in _BY_NAME), Answer.UNKNOWN)


def refusal(root: BucketRoot, what: str, error: Exception) -> StoreError | None:
    """Return the error for a write that the server rejected; None if the outcome is unknown.

    Args:
        root: The store's root.
        what: The attempted operation, as in `create 'log/0'`.
        error: The client's exception; its text is left out, since it may quote a credential.
    """
    found = _REFUSALS.get(classify_failure(error))
    if found is None:
        return None
    kind, step = found
    cause = str(error_response(error))
    return StoreError(
        f"{root.url}: cannot {what}: {type(error).__name__}{f' ({cause})' if cause else ''}. "
        f"Nothing was written: {step.format(bucket=root.bucket)}, then try again",
        kind,
    )


def failure(root: BucketRoot, what: str, key: str, error: Exception) -> OSError:
    """Return the error for a request that failed, with the address, operation and next step.

    The outcome may be unknown. The client's text is left out, since it may quote a credential.

    Raises:
        StoreError: There is no such bucket.
    """
    answer, said = classify_failure(error), str(error_response(error))
    tried = f"cannot {what} {key!r} at {root.endpoint}: {type(error).__name__}"
    if answer is Answer.NO_BUCKET:
        raise StoreError(
            f"{root.url}: there is no bucket {root.bucket!r}; create it at {root.endpoint}, then "
            "try again"
        ) from error
    if answer is Answer.DENIED:
        return PermissionError(
            f"{root.url}: {tried}{f' ({said})' if said else ''}: the credentials do not allow it, "
            "or there are none; give some (environment, storage options or a profile) that may "
            "get, put and list"
        )
    step = f" ({said})" if said else ": no answer came; check the network and the address"
    return OSError(f"{root.url}: {tried}{step}")


def write_failure(root: BucketRoot, what: str, key: str, error: Exception) -> StoreError | OSError:
    """Return the error for a write that failed: a `StoreError` if the server rejected it."""
    return refusal(root, f"{what} {key!r}", error) or failure(root, what, key, error)


@contextmanager
def convert_request_errors(root: BucketRoot, what: str, key: str) -> Iterator[None]:
    """Convert a client's exception in the body to the error that `failure` returns.

    Raises:
        OSError: The request failed.
        StoreError: There is no such bucket.
    """
    try:
        yield
    except Exception as error:
        raise failure(root, what, key, error) from error


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Convert a client's exception while the body reads to an error that names the place.

    The client's text is left out, since it may quote a credential; the cause has it.

    Raises:
        NotFoundError: There is nothing there.
        StoreError: It could not be read; the message has the server's code and the next step.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and not _is_client_error(error):
            raise
        answer, cause = classify_failure(error), error_response(error)
        step = _NEXT_STEPS.get(answer)
        if step is None and cause.status is None:
            step = "no answer came; check the network and the storage_options, then try again"
        kind = NotFoundError if answer is Answer.ABSENT else StoreError
        raise kind(
            f"{place} cannot be read: {type(error).__name__}{f' ({cause})' if str(cause) else ''}: "
            f"{step or 'try again'}"
        ) from error


def error_response(error: BaseException) -> ErrorResponse:
    """Return the server's status and code, from the first exception of the chain with one."""
    return next(
        (found for each in _error_chain(error) if (found := _response_in(each)) is not None),
        ErrorResponse(),
    )


def date_header_of(error: BaseException) -> str | None:
    """Return the `Date` header of the response that an exception is about; None if not kept.

    botocore and azure-core keep it, gcsfs does not.
    """
    return next((found for each in _error_chain(error) if (found := _date_header(each))), None)


def _is_client_error(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in _CLIENTS


def _error_chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_LONGEST_CHAIN):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _response_in(error: BaseException) -> ErrorResponse | None:
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        # botocore: the parsed response; HEAD has no body, so that its code is the status again.
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return ErrorResponse(_http_status(status), str(response.get("Error", {}).get("Code", "")))
    for name in ("status_code", "status", "code"):
        # azure-core, aiohttp and gcsfs, in this order.
        status = _http_status(getattr(error, name, None))
        if status is not None:
            word = getattr(error, "error_code", None)
            return ErrorResponse(status, str(getattr(word, "value", word) or ""))
    return None


def _date_header(error: BaseException) -> str | None:
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        headers = response.get("ResponseMetadata", {}).get("HTTPHeaders")
    else:
        headers = getattr(response, "headers", None)
    # Each client has its own mapping class, and not every one of them ignores case.
    found = {str(name).lower(): value for name, value in dict(headers or {}).items()}.get("date")
    return found if isinstance(found, str) else None


def _http_status(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and value >= 100 else None  # noqa: PLR2004 - HTTP's least
