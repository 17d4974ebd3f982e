"""Append requests and results: author, message, commit id, base version."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import chain
from typing import Any, Generic, Literal, TypedDict, TypeVar

import msgspec
from attrs import field, frozen
from msgspec import Struct
from msgspec.structs import replace

from ledger.model import arguments as its
from ledger.model.errors import InvalidInputError
from ledger.model.instant import millis
from ledger.model.messages import excerpt, is_storable, similar

S = TypeVar("S")

NowMillis = Callable[[], int]
"""A clock: Unix time in milliseconds."""


class Fate(Struct):
    """What is known so far of what a request came to, for whoever is interrupted meanwhile.

    Attributes:
        is_sent: Whether it is on its way, so that it may land.
        version: Where it landed; None where nobody has said so.
        error: What was said of it instead; None where nothing was.
    """

    is_sent: bool = False
    version: int | None = None
    error: BaseException | None = None


class Request(Struct, frozen=True, kw_only=True, eq=False):
    """The envelope of one transaction, but for its events.

    Attributes:
        commit_id: Unique; the caller's own or a fresh one.
        asked: SHA-256 of what is asked, hex; None where nobody may compare it.
        otherwise: The same of what it came to, which stands in older logs in its place.
        is_given: Whether the caller gave the id, so that it may stand in the log already.
        author: Who.
        message: Why.
        properties: Anything else to keep with it.
        expect_version: Land right after this version, or be refused; None to rebase.
        effective_millis: When it happened, for imported history; None for now.
        keeps_outside: Whether who and why are kept outside of the line from this commit on.
        fate: What is known so far of what it came to.
    """

    commit_id: str
    asked: str
    otherwise: tuple[str, ...] = ()
    is_given: bool = True
    author: str = ""
    message: str = ""
    properties: Mapping[str, str] = {}
    expect_version: int | None = None
    effective_millis: int | None = None
    keeps_outside: bool = False
    fate: Fate = msgspec.field(default_factory=Fate)


def outside(request: Request) -> Request:
    """Return a request after which its stream keeps who and why outside of the lines."""
    return replace(request, keeps_outside=True)


@frozen
class Appended(Generic[S]):
    """What an append came to.

    Attributes:
        state: The newest state known.
        version: The commit that holds the transaction.
        repeated: The same commit id had landed before; nothing was written now.
        attempts: How often it was decided, as far as this process knows.
    """

    state: S = field(repr=False)
    version: int
    repeated: bool = False
    attempts: int = field(default=1, repr=False, eq=False)


class CommitOptions(TypedDict, total=False):
    """Keyword arguments of every call that writes.

    Attributes:
        author: Who; the ledger's default author when it is left out.
        message: Why.
        commit_id: A key of the caller's own, or the one that a CommitUnknownError named. The same
            key again gives the first commit; with other content it is an error. Left out, a fresh
            one is taken.
        asked: What this is, in plain data, for one who works out what to commit from the table as
            it is: the same words under the same key are the same request, whatever they come to by
            then (see `landed_before`). Left out, it is what the call is given.
        expect_version: Strict compare-and-swap: land right after this version, or be refused.
        properties: Anything else to keep with the commit.
        effective_time: When it happened, for imported history: a datetime with a time zone or
            Unix milliseconds; never before the stream's last one, never in the future.
    """

    author: str
    message: str
    commit_id: str
    asked: Any
    expect_version: int
    properties: Mapping[str, str]
    effective_time: datetime | int


def now_millis() -> int:
    """Return the Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


def fresh_id() -> str:
    """Return a new UUID of version 7: unique, and sorted by time.

    Example:
        >>> len(fresh_id()), fresh_id()[14]
        (36, '7')
    """
    stamp = now_millis().to_bytes(6, "big")
    random = bytearray(os.urandom(10))
    random[0] = 0x70 | random[0] & 0x0F
    random[2] = 0x80 | random[2] & 0x3F
    text = (stamp + bytes(random)).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def request_of(options: CommitOptions, *, asked: Any, default_author: str) -> Request:
    """Return the envelope of a call.

    Args:
        options: What the caller gave.
        asked: The subject of the call, in plain data; its digest recognises the same request
            under a given commit id.
        default_author: Who, when the caller did not say.

    Raises:
        InvalidInputError: An option is none, or cannot be written.
    """
    if options:
        _check(options)
    given = options.get("commit_id")
    effective = options.get("effective_time")
    try:
        words = (options["asked"], asked) if "asked" in options else (asked,)
        digest, *otherwise = [digest_of(each) for each in words]
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInputError(f"what was asked cannot be written as JSON: {error}") from error
    return Request(
        commit_id=given or fresh_id(),
        asked=digest,
        otherwise=tuple(otherwise),
        is_given=given is not None,
        author=options.get("author", default_author),
        message=options.get("message", ""),
        properties=options.get("properties", {}),
        expect_version=options.get("expect_version"),
        effective_millis=None if effective is None else millis(effective),
    )


def _check(options: CommitOptions) -> None:
    _refuse_unknown(options)
    for name, form in _FORMS.items():
        if name in options:
            form.check(name, options[name])
    given = options.get("commit_id")
    if given is not None and (type(given) is not str or not given):
        raise InvalidInputError(
            f"commit_id={excerpt(given)} is no key; give a text that is not empty"
        )
    if given is not None and not is_storable(given):
        raise InvalidInputError(
            f"commit_id={excerpt(given)} is no key: half a surrogate pair is no character"
        )
    _refuse_half_characters(options)


def _refuse_half_characters(options: CommitOptions) -> None:
    properties = options.get("properties", {})
    said = [("author", options.get("author", "")), ("message", options.get("message", ""))]
    said += [("properties", each) for each in chain(properties, properties.values())]
    for name, each in said:
        if not is_storable(each):
            raise InvalidInputError(
                f"{name}={excerpt(each)}: half a surrogate pair is no character"
            )


_FORMS: dict[
    Literal["author", "message", "expect_version", "properties", "effective_time"], its.Form
] = {
    "author": its.words,
    "message": its.words,
    "expect_version": its.whole.or_none(),
    "properties": its.texts,
    "effective_time": its.moment.or_none(),
}


def _refuse_unknown(options: CommitOptions) -> None:
    # A misspelt `expect_version` would commit without the check that was asked for.
    known = CommitOptions.__annotations__
    for name in options.keys() - known.keys():
        near = similar(name, known)
        meant = f"did you mean {near[0]}=?" if near else f"it takes {', '.join(known)}."
        raise InvalidInputError(
            f"{name}= is nothing that a commit takes; {meant} Nothing was written"
        )


def digest_of(asked: Any) -> str:
    """Return the SHA-256, in hex, of what is asked, in plain data."""
    try:
        content = msgspec.json.encode(asked, order="sorted")
    except TypeError:
        # Keys that are no texts are sorted as the texts that they become.
        plain = msgspec.to_builtins(asked, str_keys=True)
        content = msgspec.json.encode(plain, order="sorted")
    return hashlib.sha256(content).hexdigest()
