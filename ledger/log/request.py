"""Who appends, why, and under which id; and what an append came to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from attrs import field, frozen

S = TypeVar("S")

NowMillis = Callable[[], int]
"""A clock: Unix time in milliseconds."""


@frozen(kw_only=True)
class Request:
    """The envelope of one transaction, but for its events.

    Attributes:
        commit_id: Unique; the caller's own or a fresh one.
        asked: SHA-256 of what is asked, hex; None where nobody may compare it.
        is_given: Whether the caller gave the id, so that it may stand in the log already.
        author: Who.
        message: Why.
        properties: Anything else to keep with it.
        expect_version: Land right after this version, or be refused; None to rebase.
        effective_millis: When it happened, for imported history; None for now.
    """

    commit_id: str
    asked: str | None = None
    is_given: bool = True
    author: str = ""
    message: str = ""
    properties: Mapping[str, str] = field(factory=dict, hash=False)
    expect_version: int | None = None
    effective_millis: int | None = None


@frozen
class Appended(Generic[S]):
    """What an append came to.

    Attributes:
        state: The newest state known.
        version: The commit that holds the transaction.
        repeated: The same commit id had landed before; nothing was written now.
    """

    state: S
    version: int
    repeated: bool = False
