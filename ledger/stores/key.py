"""Which keys there are: the one place that decides whether a key is safe as a path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ledger.model.errors import InvalidInputError, InvalidNameError

DRAFT_PREFIX: Final = ".tmp-"
"""What the names of half-written files begin with; no key's last segment may."""

LOCK_NAME: Final = ".lock"
"""The lock file of a folder; no key's last segment may be it."""

_SEGMENT = r"(?!\.{1,2}(?:/|\Z))[^/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]++"
_RESERVED = rf"(?:{re.escape(DRAFT_PREFIX)}|{re.escape(LOCK_NAME)}\Z)"
_is_path = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*+").fullmatch
_is_key = re.compile(rf"(?:{_SEGMENT}/)*+(?!{_RESERVED}){_SEGMENT}").fullmatch

_RULE = (
    "a key is a relative path of segments joined by '/', none of them empty, '.' or '..', "
    "without backslashes and control characters"
)


def is_key(text: str) -> bool:
    """Say whether `text` can be a key.

    Example:
        >>> [is_key(text) for text in ("shop.db/orders/snapshot/LATEST", "../x", "a/.tmp-1")]
        [True, False, False]
    """
    return _is_key(text) is not None


def check_key(key: str) -> None:
    """Refuse a key that could escape the root or collide with a store's own files.

    Raises:
        InvalidNameError: The key is not one.
    """
    if _is_key(key) is None:
        check_path(key)
        raise InvalidNameError(
            f"the key {key!r} is reserved: names that begin with {DRAFT_PREFIX!r} and the name "
            f"{LOCK_NAME!r} belong to the store; choose another name"
        )


def are_keys(texts: Sequence[str]) -> bool:
    """Say whether all of some texts can be keys, as a quick look tells; False: ask for each.

    Example:
        >>> are_keys(["log/1", "log/2"]), are_keys(["log/1", "../x"]), are_keys([".lock-free"])
        (True, False, False)
    """
    joined = "/".join(texts)
    # Every segment of theirs is one of this path's, and a text that is empty makes an empty one.
    return DRAFT_PREFIX not in joined and LOCK_NAME not in joined and _is_path(joined) is not None


def check_path(path: str) -> None:
    """Refuse a path that could escape the root; reserved names pass.

    Raises:
        InvalidNameError: The path is not one.
    """
    if _is_path(path) is None:
        raise InvalidNameError(f"{path!r} cannot be a key: {_RULE}; rename it")


def folder_of(path: str) -> str:
    """Return the folder that `path` stands in, `""` for the root.

    Example:
        >>> folder_of("_ledger/log"), folder_of("log")
        ('_ledger', '')

    Raises:
        InvalidNameError: The path is not one.
    """
    check_path(path)
    return path.rpartition("/")[0]


def folder_prefix(prefix: str) -> str:
    """Return what every key in the folder `prefix` and below begins with.

    Example:
        >>> folder_prefix("shop.db"), folder_prefix("shop.db/"), folder_prefix("")
        ('shop.db/', 'shop.db/', '')

    Raises:
        InvalidNameError: The prefix is not a folder's path.
    """
    if not prefix:
        return ""
    folder = prefix.removesuffix("/")
    check_path(folder)
    return f"{folder}/"


def check_body(key: str, body: bytes) -> None:
    """Refuse an empty body.

    Some stores create an empty object without the condition, and an empty file could not be told
    from one that a crash left behind.

    Raises:
        InvalidInputError: The body is empty.
    """
    if not body:
        raise InvalidInputError(
            f"the body of {key!r} is empty; a stored body has at least one byte"
        )
