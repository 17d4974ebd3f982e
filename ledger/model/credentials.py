"""Detection and removal of credentials in URLs.

The log is never rewritten, so every entry point rejects a URL that contains a password or a
signature, and messages show it without them. Credentials are passed in `storage_options`.
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
"""URL schemes without authentication, where `?` is a part of a file's name."""
_CONTAINERS: Final = frozenset({"abfs", "abfss", "az", "wasb", "wasbs"})
"""Azure's URL schemes, in which the part before the `@` is a container, not a user."""
_WEB: Final = frozenset({"http", "https"})

_between_parameters = re.compile(r"[?&;#]").split
_names_secret = re.compile(
    r"sig|token|secret|key|passw|pwd|cred|auth|sas|delegation|session", re.IGNORECASE
).search
_surely_names_secret = re.compile(r"sig|token|secret|passw|pwd|cred", re.IGNORECASE).search


def carries_credentials(url: str) -> bool:
    """Return True if a URL contains a user, or a query, which may hold a signature or token.

    Example:
        >>> [carries_credentials(each) for each in ("s3://a/b", "s3://me:pw@a/b", "s3://a/b?sig=x")]
        [False, True, True]
    """
    begun = _begins_url(url)
    if begun is None:
        return False
    scheme, rest = begun[1].lower(), url[begun.end() :]
    return (
        _userinfo_length(scheme, begun[2], rest) > 0
        or _credential_query_start(scheme, rest) is not None
    )


def _userinfo_length(scheme: str, separator: str, rest: str) -> int:
    """Return the length of a URL's user part, including `@`; 0 without one."""
    found = _user(rest) if "@" in rest else None
    if found is None or (scheme in _HERE and (scheme, separator) != ("file", "://")):
        return 0
    if scheme == "file" and "/" in found[1]:
        return 0
    return found.end() if scheme not in _CONTAINERS or ":" in found[1] else 0


def _credential_query_start(scheme: str, rest: str) -> int | None:
    """Return the offset of a URL's query parameters that may authenticate; None without any."""
    if scheme in _HERE:
        return None
    mark = rest.find("?")
    if mark >= 0 and ("=" in rest[mark:] or "%3d" in rest[mark:].lower()):
        return mark
    if _is_credential_parameter(rest):
        return min(each for each in map(rest.find, "#;") if each >= 0)
    return rest.find("%") if "%" in rest and _is_credential_parameter(unquote(rest)) else None


def _is_credential_parameter(rest: str) -> bool:
    """Return True if the name of a URL parameter denotes a credential."""
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
    length = _userinfo_length(scheme, begun[2], rest)
    rest = f"...@{rest[length:]}" if length else rest
    cut = _credential_query_start(scheme, rest)
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
"""Find a `name=value` property that object store and database clients read as a secret."""
_connection: Final = re.compile(
    r"((?:account|sharedaccess)key|sharedaccesssignature)=(?=[A-Za-z0-9+/])", re.IGNORECASE
).search

_SECRETS: Final = ("key", "secret", "token", "password", "access")
"""Substrings that both searches above require; a text without any of them is not searched."""


def find_credentials(text: str) -> str | None:
    """Return the first URL or property in a text that carries credentials, with them removed.

    A web link may have a query; it counts only if a parameter's name denotes a credential.

    Args:
        text: Any text, also JSON, and JSON within JSON.

    Example:
        >>> find_credentials('{"path":"s3://me:secret@bucket/a"}')
        's3://...@'
        >>> find_credentials("see https://wiki/page?id=3") is None
        True
        >>> find_credentials('{"s3.secret-access-key":"secret"}')
        'secret-access-key'
    """
    if "\\" in text:
        text = _escapes.sub(lambda found: chr(int(found[1], 16)) if found[1] else "/", text)
    found = _find_unencoded_credentials(text) or (
        _find_unencoded_credentials(unquote(text)) if "%" in text else None
    )
    if found is not None:
        return found
    for url in _urls(text) if ":/" in text and ("=" in text or "%" in text) else ():
        scheme, rest = url[1].lower(), url[2]
        if scheme not in _WEB and _credential_query_start(scheme, rest) is not None:
            return shown(url[0])
    return None


def _find_unencoded_credentials(text: str) -> str | None:
    has_urls = ":/" in text
    for found in _users(text) if has_urls and "@" in text else ():
        if carries_credentials(found[0]):
            return f"{found[1]}://...@"
    for found in _urls(text) if has_urls and "=" in text else ():
        if found[1].lower() not in _HERE and _is_credential_parameter(found[2]):
            return shown(found[0])
    folded = text.casefold()
    if not any(map(folded.__contains__, _SECRETS)):
        return None
    named = _property(text) or _connection(text)
    return None if named is None else named[1]


def credentials_error_text(url: str) -> str:
    """Return the error message for a URL that carries credentials, with the fix."""
    return (
        f"{shown(url)!r} carries a user or a query, and a ledger keeps no credentials: leave them "
        "out, and pass them as storage_options"
    )
