"""What an object store's client said, told by the cause of its exception and never by its text.

Clients wrap what the server answered more than once, and not always truly: s3fs raises
`FileExistsError` for one server's 412 and `OSError(EINVAL)` for another's; adlfs raises
`FileExistsError` for every 409, that of a container being deleted too. So the server's own code
and status, found along the chain of causes, go before the exception's class. What is not clear
stays unknown: the layer above reads back.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen


class Answer(enum.Enum):
    """What a failed request came to."""

    EXISTS = "exists"
    """The condition did not hold: there is an object under the key."""

    ABSENT = "absent"
    """There is no object under the key."""

    NO_BUCKET = "no bucket"
    """There is no such bucket or container."""

    DENIED = "denied"
    """The credentials do not allow it, or there are none."""

    UNSUPPORTED = "unsupported"
    """The server does not know this kind of request."""

    UNKNOWN = "unknown"
    """Anything else: applied or not, nobody knows."""


_BY_CODE: Final = {
    "PreconditionFailed": Answer.EXISTS,
    "BlobAlreadyExists": Answer.EXISTS,
    "ConditionNotMet": Answer.EXISTS,
    "NoSuchKey": Answer.ABSENT,
    "BlobNotFound": Answer.ABSENT,
    "NoSuchBucket": Answer.NO_BUCKET,
    "ContainerNotFound": Answer.NO_BUCKET,
    "NotImplemented": Answer.UNSUPPORTED,
}
_BY_STATUS: Final = {
    401: Answer.DENIED,
    403: Answer.DENIED,
    404: Answer.ABSENT,
    412: Answer.EXISTS,
    501: Answer.UNSUPPORTED,
}
_BY_CLASS: Final = (
    (FileExistsError, Answer.EXISTS),
    (FileNotFoundError, Answer.ABSENT),
    (PermissionError, Answer.DENIED),
)
_LONGEST_CHAIN: Final = 8


@frozen
class Cause:
    """What the server said, as far as the client passed it on.

    Attributes:
        status: The HTTP status, or None.
        code: The server's own word, as `NoSuchBucket`; empty when it gave none.
    """

    status: int | None = None
    code: str = ""

    def __str__(self) -> str:
        return " ".join(str(each) for each in (self.status, self.code) if each)


def answer_of(error: BaseException) -> Answer:
    """Return what an exception of a client means.

    Example:
        >>> answer_of(FileNotFoundError("a")), answer_of(ConnectionResetError())
        (<Answer.ABSENT: 'absent'>, <Answer.UNKNOWN: 'unknown'>)
    """
    cause = cause_of(error)
    if cause.code in _BY_CODE:
        return _BY_CODE[cause.code]
    if cause.status is not None:
        return _BY_STATUS.get(cause.status, Answer.UNKNOWN)
    for kind, answer in _BY_CLASS:
        if isinstance(error, kind):
            return answer
    return Answer.UNKNOWN


def cause_of(error: BaseException) -> Cause:
    """Return what the server said, from the first exception along the chain that knows."""
    return next((found for each in _chain(error) if (found := _said(each)) is not None), Cause())


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_LONGEST_CHAIN):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _said(error: BaseException) -> Cause | None:
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        # botocore: the parsed answer; HEAD has no body, so that its code is the status again.
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return Cause(_number(status), str(response.get("Error", {}).get("Code", "")))
    for name in ("status_code", "status", "code"):
        # azure-core, aiohttp and gcsfs, in this order.
        status = _number(getattr(error, name, None))
        if status is not None:
            word = getattr(error, "error_code", None)
            return Cause(status, str(getattr(word, "value", word) or ""))
    return None


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and value >= 100 else None  # noqa: PLR2004 - HTTP's least
