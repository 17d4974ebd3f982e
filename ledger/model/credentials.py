"""Detection and removal of credentials in URLs.

A ledger keeps what it is told for ever, so that a URL with a password or a signature in it is
refused at every door, and shown without them. What opens a place goes into `storage_options`.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

_begins_url = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+(?:::[A-Za-z0-9+.-]+)*)(:/+)").match
_user = re.compile(
    # Keys of some services hold slashes; behind a host, a colon means a port.
    r"([^/?#]*|[^:/?#\[]+:(?![0-9]*(?:[/?#]|$)).{0,256})@",
    re.DOTALL,
).match
_HERE: Final = frozenset({"file", "memory"})
"""Places that nobody signs in to: what looks like a query is a part of the name."""
_CONTAINERS: Final = frozenset({"abfs", "abfss", "az", "wasb", "wasbs"})
"""Where a container stands before the `@`, and no user."""
_WEB: Final = frozenset({"http", "https"})

_between_parameters = re.compile(r"[?&;#]").split
_names_secret = re.compile(
    r"sig|token|secret|key|passw|pwd|cred|auth|sas|delegation|session", re.IGNORECASE
).search
_surely_names_secret = re.compile(r"sig|token|secret|passw|pwd|cred", re.IGNORECASE).search


def carries_credentials(url: str) -> bool:
    """Whether a URL has a user in it, or a query, where signatures and tokens stand.

    Example:
        >>> [carries_credentials(each) for each in ("s3://a/b", "s3://me:pw@a/b", "s3://a/b?sig=x")]
        [False, True, True]
    """
    begun = _begins_url(url)
    if begun is None:
        return False
    scheme, rest = begun[1].lower(), url[begun.end() :]
    return _user_length(scheme, begun[2], rest) > 0 or _query_start(scheme, rest) is not None


def _user_length(scheme: str, separator: str, rest: str) -> int:
    """Return how long the user in a URL is, with its `@`; 0 where there is none."""
    found = _user(rest) if "@" in rest else None
    if found is None or (scheme in _HERE and (scheme, separator) != ("file", "://")):
        return 0
    if scheme == "file" and "/" in found[1]:
        return 0
    return found.end() if scheme not in _CONTAINERS or ":" in found[1] else 0


def _query_start(scheme: str, rest: str) -> int | None:
    """Return where the parameters of a URL begin that may sign in."""
    if scheme in _HERE:
        return None
    mark = rest.find("?")
    if mark >= 0 and ("=" in rest[mark:] or "%3d" in rest[mark:].lower()):
        return mark
    if _is_signed(rest):
        return min(each for each in map(rest.find, "#;") if each >= 0)
    return rest.find("%") if "%" in rest and _is_signed(unquote(rest)) else None


def _is_signed(rest: str) -> bool:
    """Whether the name of a parameter of a URL says that it signs in."""
    path, _, query = rest.partition("?")
    _, *after_path = _between_parameters(path) if "#" in path or ";" in path else ("",)
    return any(
        "=" in each and says_so(each.partition("=")[0])
        for says_so, parameters in (
            (_names_secret, _between_parameters(query)),
            (_surely_names_secret, after_path),
        )
        for each in parameters
    )


def shown(url: str) -> str:
    """Return a URL for messages: without a user's name and password, and without a query.

    Example:
        >>> shown("sftp://me:secret@host/lake"), shown("https://host/x?token=secret")
        ('sftp://...@host/lake', 'https://host/x?...')
    """
    begun = _begins_url(url)
    if begun is None:
        return url
    scheme, rest = begun[1].lower(), url[begun.end() :]
    length = _user_length(scheme, begun[2], rest)
    rest = f"...@{rest[length:]}" if length else rest
    cut = _query_start(scheme, rest)
    return begun[0] + (rest if cut is None else f"{rest[:cut]}{rest[cut]}...")


_SCHEME: Final = r"([A-Za-z][A-Za-z0-9+.-]{1,31}):/+"
_users: Final = re.compile(
    _SCHEME
    + r"""([^\s"'<>\\/?#@]*|[^\s"'<>\\/?#@:\[]+:(?![0-9]*(?:[\s"'<>\\/?#]|$))[^\s"<>\\@]{0,256})@"""
).finditer
_urls: Final = re.compile(_SCHEME + r"""([^\s"'<>\\]*)""").finditer
_escapes: Final = re.compile(r"(?<!\\)\\+(?:u([0-9A-Fa-f]{4})|/)")
_property: Final = re.compile(
    r"(secret[._-]?(?:access[._-]?)?key|access[._-]?key[._-]?secret|account[._-]?key"
    r"|client[._-]?secret|private[._-]?key|sas[._-]?token|session[._-]?token|oauth2?[._-]?token"
    r'|password)\\*"\s*:\s*\\*"(?![\\"*])',
    re.IGNORECASE,
).search
"""A property that clients of object stores and databases take a secret from, with a value."""
_connection: Final = re.compile(
    r"((?:account|sharedaccess)key|sharedaccesssignature)=(?=[A-Za-z0-9+/])", re.IGNORECASE
).search

_SECRETS: Final = ("key", "secret", "token", "password", "access")
"""Words of which the two searches above need one; texts without them are searched no further."""


def credentials_in(text: str) -> str | None:
    """Return the first URL or property within a text that carries credentials, without them.

    A link to a page may have a query; it carries credentials only where a parameter's name says so.

    Args:
        text: Any text, also JSON, and JSON within JSON.

    Example:
        >>> credentials_in('{"path":"s3://me:secret@bucket/a"}')
        's3://...@'
        >>> credentials_in("see https://wiki/page?id=3") is None
        True
        >>> credentials_in('{"s3.secret-access-key":"secret"}')
        'secret-access-key'
    """
    if "\\" in text:
        text = _escapes.sub(lambda found: chr(int(found[1], 16)) if found[1] else "/", text)
    found = _in_plain(text) or (_in_plain(unquote(text)) if "%" in text else None)
    if found is not None:
        return found
    for url in _urls(text) if ":/" in text and ("=" in text or "%" in text) else ():
        scheme, rest = url[1].lower(), url[2]
        if scheme not in _WEB and _query_start(scheme, rest) is not None:
            return shown(url[0])
    return None


def _in_plain(text: str) -> str | None:
    has_urls = ":/" in text
    for found in _users(text) if has_urls and "@" in text else ():
        if carries_credentials(found[0]):
            return f"{found[1]}://...@"
    for found in _urls(text) if has_urls and "=" in text else ():
        if found[1].lower() not in _HERE and _is_signed(found[2]):
            return shown(found[0])
    folded = text.casefold()
    if not any(map(folded.__contains__, _SECRETS)):
        return None
    named = _property(text) or _connection(text)
    return None if named is None else named[1]


def advice(url: str) -> str:
    """Return what is wrong with a URL that carries credentials, and what to do."""
    return (
        f"{shown(url)!r} carries a user or a query, and a ledger keeps no credentials: leave them "
        "out, and give what opens the place as storage_options"
    )
