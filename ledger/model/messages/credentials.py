"""Credentials in URLs: none of them may reach an event, a log line or an error.

A ledger keeps what it is told for ever, so that a URL with a password or a signature in it is
refused at every door, and shown without them. What opens a place goes into `storage_options`.
"""

from __future__ import annotations

import re
from typing import Final

_ABSOLUTE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*(?:::[A-Za-z0-9+.-]+)*)://([^/?#]*)")
_HERE: Final = frozenset({"file", "memory"})
"""Places that nobody signs in to: what looks like a query is a part of the name."""
_CONTAINERS: Final = frozenset({"abfs", "abfss", "az", "wasb", "wasbs"})
"""Where a container stands before the `@`, and no user."""


def carries_credentials(url: str) -> bool:
    """Whether a URL has a user in it, or a query, where signatures and tokens stand.

    Example:
        >>> [carries_credentials(each) for each in ("s3://a/b", "s3://me:pw@a/b", "s3://a/b?sig=x")]
        [False, True, True]
    """
    found = _ABSOLUTE.match(url)
    if found is None or found[1].lower() in _HERE:
        return False
    scheme, (user, at, _) = found[1].lower(), found[2].rpartition("@")
    has_user = bool(at) and (scheme not in _CONTAINERS or ":" in user)
    query = url[found.end() :].partition("?")[2]
    return has_user or "=" in query


def shown(url: str) -> str:
    """Return a URL for messages: without a user's name and password, and without a query.

    Example:
        >>> shown("sftp://me:secret@host/lake"), shown("https://host/x?token=secret")
        ('sftp://...@host/lake', 'https://host/x?...')
    """
    found = _ABSOLUTE.match(url)
    if found is None:
        return url
    without = re.sub(r"(?<=://)[^/]*@", "...@", url)
    path, mark, query = without.partition("?")
    is_query = mark and "=" in query and found[1].lower() not in _HERE
    return f"{path}?..." if is_query else without


_SCHEME: Final = r"([A-Za-z][A-Za-z0-9+.-]{0,31})://"
_users: Final = re.compile(_SCHEME + r"""([^\s"'<>\\/?#@]*)@""").finditer
_urls: Final = re.compile(_SCHEME + r"""[^\s"'<>\\]*""").finditer
_names_secret: Final = re.compile(
    r"[?&][^=&]*(?:sig|token|secret|key|passw|pwd|cred|auth|sas|delegation|session)[^=&]*=",
    re.IGNORECASE,
).search
_WEB: Final = frozenset({"http", "https"})
_ESCAPES: Final = (("\\/", "/"), ("\\u003d", "="), ("\\u0026", "&"), ("\\u003f", "?"))


def credentials_in(text: str) -> str | None:
    """Return the first URL within a text that carries credentials, shown without them.

    A link to a page may have a query; it carries credentials only where a parameter's name says so.

    Args:
        text: Any text, also JSON, and JSON within JSON.

    Example:
        >>> credentials_in('{"path":"s3://me:secret@bucket/a"}')
        's3://...@'
        >>> credentials_in("see https://wiki/page?id=3") is None
        True
    """
    if "\\" in text:
        for escape, meant in _ESCAPES:
            text = text.replace("\\" + escape, meant).replace(escape, meant)
    for found in _users(text):
        scheme = found[1].lower()
        if scheme not in _HERE and (scheme not in _CONTAINERS or ":" in found[2]):
            return f"{found[1]}://...@"
    for found in _urls(text):
        scheme, url = found[1].lower(), found[0]
        has_query = "=" in url.partition("?")[2] and scheme not in _HERE
        if has_query and (scheme not in _WEB or _names_secret(url)):
            return shown(url)
    return None


def advice(url: str) -> str:
    """Return what is wrong with a URL that carries credentials, and what to do."""
    return (
        f"{shown(url)!r} carries a user or a query, and a ledger keeps no credentials: leave them "
        "out, and give what opens the place as storage_options"
    )
