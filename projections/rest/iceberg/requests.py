"""Parts that requests have in common: names, the options of a commit, pages.

A namespace has one level, a database of the ledger. Names of several levels are answered as absent.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from ledger.log.request import CommitOptions
from ledger.model.errors import InvalidNameError
from ledger.model.messages import excerpt
from ledger.model.names import Identifier
from projections.rest.commit_options import commit_options as shared_options
from projections.rest.iceberg.errors import no_such_namespace, no_such_table
from projections.rest.requests import Call, RequestError

LEVEL_SEPARATOR: Final = "\x1f"
"""Separator of a namespace's levels in paths and query parameters."""

IDEMPOTENCY_KEY: Final = "idempotency-key"
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class TableIdentifier(Struct, frozen=True):
    """A table's or view's name on the wire."""

    namespace: tuple[str, ...]
    name: str

    @property
    def text(self) -> str:
        """The name as messages show it."""
        return ".".join((*self.namespace, self.name))

    @property
    def identifier(self) -> Identifier | None:
        """The name in the ledger; None if no table can have it."""
        if len(self.namespace) != 1:
            return None
        with suppress(InvalidNameError):
            return Identifier(self.namespace[0], self.name).checked()
        return None


def namespace_levels(call: Call) -> tuple[str, ...]:
    """Return the levels of the namespace in a call's path."""
    return tuple(call.values["namespace"].split(LEVEL_SEPARATOR))


def namespace_of(call: Call) -> str:
    """Return the namespace in a call's path.

    Raises:
        RequestError: It has several levels, so it does not exist.
    """
    levels = namespace_levels(call)
    if len(levels) != 1:
        raise no_such_namespace(".".join(levels))
    return levels[0]


def table_of(call: Call) -> Identifier:
    """Return the table in a call's path.

    Raises:
        RequestError: No table can have the name, so it does not exist.
    """
    name = TableIdentifier(namespace_levels(call), call.values["table"])
    found = name.identifier
    if found is None:
        raise no_such_table(name.text)
    return found


def new_name(namespace: str, name: str) -> Identifier:
    """Return the name of a new table or view.

    Raises:
        InvalidNameError: It is not valid; the message names the rule.
    """
    return Identifier(namespace, name).checked()


def commit_options(
    call: Call, default_author: str, asked: Iterable[Any], said: Mapping[str, str] = {}
) -> CommitOptions:
    """Return the options of a call's commit: author, reason, client and commit id.

    Args:
        call: The call.
        default_author: The author without authentication.
        asked: The request in plain data, by which a repeated key is recognised.
        said: Properties of the request, or of the summary of its snapshot.

    Raises:
        RequestError: The idempotency key is no UUID, or a text is too long.
    """
    options = shared_options(call, default_author, ["icebergRest", *asked], said)
    key = call.headers.get(IDEMPOTENCY_KEY)
    if key is not None:
        if not _UUID.fullmatch(key):
            raise RequestError(
                400,
                f"Idempotency-Key {excerpt(key)} is no UUID of 36 characters; send a new UUID of "
                "version 7 with each new request, and the same one with its retries",
            )
        options["commit_id"] = key.lower()
    return options


class Page(Struct, frozen=True):
    """Items of a page, and the token of the next one; None after the last one."""

    items: list[str]
    token: str | None


def page_of(call: Call, names: Iterable[str]) -> Page:
    """Return the page of names that a call asks for; all of them without a page size.

    A token is the last name of the page before, so that pages need no state, and names that exist
    all the time are listed exactly once.

    Raises:
        RequestError: The size or token is not valid.
    """
    found = sorted(names)
    after = _read_token(call.query.get("pageToken", ""))
    size = call.query.get("pageSize")
    if size is not None and not (size.isascii() and size.isdecimal() and int(size[:10]) > 0):
        raise RequestError(400, f"pageSize {excerpt(size)} is not a number above 0")
    rest = [each for each in found if each > after]
    if size is None or len(rest) <= int(size[:10]):
        return Page(rest, None)
    items = rest[: int(size[:10])]
    token = base64.urlsafe_b64encode(items[-1].encode()).decode()
    return Page(items, token)


def _read_token(token: str) -> str:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise RequestError(
            400, f"pageToken {excerpt(token)} is none of this server's; begin without one"
        ) from error
