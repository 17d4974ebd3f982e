"""Requests and replies, independent of the HTTP library, and the limits checked before decoding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from attrs import field, frozen

from ledger.model.messages import excerpt

S = TypeVar("S")

Effect = Literal["read", "write"]
"""Effect of a request: one that may append to a log fails with an unknown outcome."""

MOST_BODY_BYTES: Final = 16 << 20
"""Size of a request's body, in bytes, beyond which it is rejected before it is decoded."""

MOST_NESTING: Final = 200
"""Depth of arrays and objects beyond which a body is rejected before it is decoded.

A schema may nest 64 types, each in up to three objects and arrays.
"""

_UNKNOWN_OUTCOME: Final = 500


class RequestError(Exception):
    """A request that is answered with an error.

    Attributes:
        status: The HTTP status.
        message: The message for people.
        kind: The protocol's name of the error, or of the kind of object that it is about; empty for
            that of the status.
        resource: The name of the object that it is about, for protocols that have it apart.
    """

    def __init__(self, status: int, message: str, kind: str = "", resource: str = "") -> None:
        super().__init__(status, message, kind, resource)
        self.status = status
        self.message = message
        self.kind = kind
        self.resource = resource

    def __str__(self) -> str:
        return self.message


@contextmanager
def after_commit(what: str) -> Iterator[None]:
    """Report each failure in the body as an unknown outcome: a commit before it was made.

    Args:
        what: The commit, for the message.

    Raises:
        RequestError: The body failed; its status is 500.
    """
    try:
        yield
    except Exception as error:
        raise RequestError(
            _UNKNOWN_OUTCOME,
            f"{what} was committed, but a later step of the request failed: {error}; load it again",
        ) from error


@frozen
class Call:
    """A request, with its body read and its principal authenticated.

    Attributes:
        values: Values of the path's parameters, percent-decoded, by name.
        query: Query parameters, by name.
        headers: Headers, by name in lower case.
        body: The body.
        principal: Name of the authenticated principal; None without authentication.
    """

    values: Mapping[str, str]
    query: Mapping[str, str] = field(factory=dict)
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    principal: str | None = None

    def decode(self, kind: type[S]) -> S:
        """Return the body as an object of a class.

        Raises:
            RequestError: It is no JSON, nested too deeply, or of another shape; the message names
                the place.
        """
        if is_nested_deeper_than(self.body, MOST_NESTING):
            raise RequestError(
                400,
                f"the body has arrays and objects nested more than {MOST_NESTING} deep, or "
                "brackets without a counterpart; nothing was changed",
            )
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RequestError(
                400, f"the body cannot be read: {error}; nothing was changed"
            ) from error


@frozen
class Reply:
    """An answer.

    Attributes:
        status: The HTTP status.
        body: The body, as JSON.
        headers: Further headers.
    """

    status: int = 200
    body: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(factory=dict)

    @classmethod
    def of(cls, content: Any, status: int = 200) -> Reply:
        """Return the answer with some content as JSON."""
        return cls(status, msgspec.json.encode(content))


NO_CONTENT: Final = Reply(204)


@frozen
class Endpoint(Generic[S]):
    """A row of a protocol: a method and a path, and the function that answers them.

    Attributes:
        method: The HTTP method.
        path: The path as the protocol's specification spells it, with `{parameters}`.
        handle: Answers a call with the protocol's service; runs in a worker thread.
        effect: Whether it may append to a log.
    """

    method: str
    path: str
    handle: Callable[[S, Call], Reply]
    effect: Effect = "read"


_BRACKETS: Final = re.compile(
    rb'(?:[^][{}"]++|"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))*+([][{}]*+)', re.DOTALL
)
"""Everything up to the next brackets outside of strings, and those; a string without an end reaches
to the end of the text.

Possessive, so that the time is linear in the text whatever it holds.
"""

_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def is_nested_deeper_than(text: bytes, limit: int) -> bool:
    """Return whether the brackets of a JSON text are nested deeper than a limit.

    Args:
        text: The JSON, valid or not; brackets without a counterpart count as too deep.
        limit: The number of levels that are allowed.

    Example:
        >>> is_nested_deeper_than(b'[{"a": "]"}]', 2), is_nested_deeper_than(b"[[[]]]", 2)
        (False, True)
    """
    level = 0
    for found in _BRACKETS.finditer(text):
        for bracket in found[1]:
            level += _STEPS[bracket]
            if not 0 <= level <= limit:
                return True
    return level != 0


def header_text(call: Call, name: str, most: int) -> str:
    """Return the text of a header of a bounded length; empty if it is missing.

    Raises:
        RequestError: It is longer, or has control characters.
    """
    raw = call.headers.get(name, "")
    try:
        text = raw.encode("latin-1").decode()
    except UnicodeError:
        text = raw
    if len(text) > most or not text.isprintable():
        raise RequestError(
            400,
            f"header {name} is {excerpt(text)}; write at most {most} characters without control "
            "characters",
        )
    return text.strip()
