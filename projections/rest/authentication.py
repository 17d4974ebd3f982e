"""Authentication of requests by the scheme of their header Authorization, and by bearer tokens.

Of static bearer tokens only salted hashes are stored. A token file has one token a line: the
principal's name, a salt, and the SHA-256 of salt and token, both in hex. Tokens are generated with
256 random bits, so a slow hash would protect nothing more.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from attrs import field, frozen

from ledger.model.errors import InvalidInputError
from ledger.model.messages import excerpt
from projections.rest.requests import RequestError


@frozen
class RequestHead:
    """The part of a request that comes before its body.

    Attributes:
        method: The HTTP method.
        path: The path as it was sent, percent-encoded, without the path that its protocol is
            mounted at.
        query: The query as it was sent, without the question mark.
        headers: Headers, by name in lower case.
    """

    method: str = "GET"
    path: str = "/"
    query: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(factory=dict, repr=False)


def accept_any_body(body: bytes) -> None:
    """Accept a body that the credentials say nothing about."""
    del body


@frozen
class Caller:
    """Sender of a request.

    Attributes:
        principal: Name of the principal; None for the default author.
        check_body: Raises a RequestError of status 401 if the body is not the one that was signed.
            The request changes nothing before that.
    """

    principal: str | None
    check_body: Callable[[bytes], None] = accept_any_body


Authenticate = Callable[[RequestHead], Caller]
"""Returns who sent a request, before its body is read; or raises a RequestError of status 401 or
403."""

BEARER: Final = "bearer"
_SALT_BYTES: Final = 16
_TOKEN_BYTES: Final = 32
_LONGEST_HEADER: Final = 8192


@frozen
class TokenHash:
    """A principal, and the salted hash of its token."""

    principal: str
    salt: bytes = field(repr=False)
    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, principal: str, token: str) -> TokenHash:
        """Return the hash of a token, with a fresh salt.

        Raises:
            InvalidInputError: The name is empty, or has blanks or control characters.
        """
        check_principal(principal)
        salt = secrets.token_bytes(_SALT_BYTES)
        return cls(principal, salt, _digest(salt, token))

    @classmethod
    def parse(cls, line: str, where: str) -> TokenHash:
        """Read a line of a token file.

        Raises:
            InvalidInputError: It is not one; the message does not repeat it.
        """
        try:
            name, salt, digest = line.split()
            return cls(name, bytes.fromhex(salt), bytes.fromhex(digest))
        except ValueError:
            raise InvalidInputError(
                f"{where} is not a name, a salt and a hash; create lines with: lakeledger "
                "serve-token NAME --token-file FILE"
            ) from None

    @property
    def line(self) -> str:
        """The line of a token file."""
        return f"{self.principal} {self.salt.hex()} {self.digest.hex()}\n"

    def accepts(self, token: str) -> bool:
        """Return whether a token has this hash; takes the same time for every token."""
        return hmac.compare_digest(self.digest, _digest(self.salt, token))


def check_principal(name: str) -> None:
    """Check the name of a principal.

    Raises:
        InvalidInputError: It is empty, or has blanks or control characters.
    """
    if not name.isprintable() or len(name.split()) != 1 or "#" in name:
        raise InvalidInputError(
            f"{excerpt(name)} is no name of a principal; write one word without '#'"
        )


def _digest(salt: bytes, token: str) -> bytes:
    return hashlib.sha256(salt + token.encode("utf-8", "surrogateescape")).digest()


def read_token_file(path: Path) -> tuple[TokenHash, ...]:
    """Return the tokens of a file; blank lines and those that begin with `#` are skipped.

    Raises:
        InvalidInputError: It cannot be read, has no token, or has a line that is none.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"the token file {path} cannot be read: {error}") from error
    found = tuple(
        TokenHash.parse(line, f"line {number} of the token file {path}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.startswith("#")
    )
    if not found:
        raise InvalidInputError(
            f"the token file {path} has no token; create one with: lakeledger serve-token NAME "
            f"--token-file {path}"
        )
    return found


def add_token(path: Path, principal: str) -> str:
    """Add a new token of a principal to a file, readable by its owner only, and return the token.

    Raises:
        InvalidInputError: The name is not valid, or the file cannot be written.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    line = TokenHash.of(principal, token).line
    try:
        path.touch(mode=0o600)
        with path.open("a", encoding="utf-8") as file:
            file.write(line)
    except OSError as error:
        raise InvalidInputError(f"the token file {path} cannot be written: {error}") from error
    return token


def bearer_authentication(tokens: tuple[TokenHash, ...]) -> Authenticate:
    """Return the authentication by bearer tokens."""

    def authenticate(head: RequestHead) -> Caller:
        scheme, _, token = head.headers.get("authorization", "").partition(" ")
        if scheme.lower() != BEARER or not token or len(token) > _LONGEST_HEADER:
            raise RequestError(
                401,
                "the request has no bearer token; set the client's option token, which sends "
                "Authorization: Bearer TOKEN",
            )
        # No early end, so that the time does not depend on the position of the token.
        found = [each.principal for each in tokens if each.accepts(token.strip())]
        if not found:
            raise RequestError(401, "the bearer token is not one of the server's; check it")
        return Caller(found[0])

    return authenticate


def authentication_by_scheme(schemes: Mapping[str, Authenticate]) -> Authenticate:
    """Return the authentication that the scheme of the header Authorization selects.

    Args:
        schemes: Authentications, by scheme in lower case; the first answers requests of others.
    """
    first = next(iter(schemes.values()))

    def authenticate(head: RequestHead) -> Caller:
        scheme = head.headers.get("authorization", "").partition(" ")[0].lower()
        return schemes.get(scheme, first)(head)

    return authenticate


def is_loopback(host: str) -> bool:
    """Return whether a host name or an address reaches this machine only.

    Host names ignore case and a dot at the end.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("Localhost."), is_loopback("0.0.0.0")
        (True, True, False)
    """
    name = host.lower().removesuffix(".")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def authenticate_local_program(head: RequestHead) -> Caller:
    """Accept programs of this machine, and reject requests that a web page sends through a browser.

    For a server that binds to loopback without tokens: a page of any site can send requests to it,
    with an `Origin`, or with the site's name as `Host` after it points the name to 127.0.0.1.

    Raises:
        RequestError: The request comes from a web page.
    """
    host = head.headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    if "origin" in head.headers or not is_loopback(name):
        raise RequestError(
            403,
            "a server without tokens accepts requests of this machine's programs only: to its "
            "loopback address, and without the header Origin; for others use lakeledger serve "
            "with --token-file",
        )
    return Caller(None)


def accept_everybody(head: RequestHead) -> Caller:
    """Accept every request: the operator chose a server without authentication."""
    del head
    return Caller(None)
