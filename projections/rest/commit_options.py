"""Options of a request's commit: author, reason, client and engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ledger.log.request import CommitOptions
from projections.rest.requests import Call, RequestError, header_text

MESSAGE_HEADER: Final = "x-lakeledger-message"
MESSAGE_PROPERTY: Final = "lakeledger.message"
"""Property of a request, or of a snapshot, with the reason of its commit."""

_MOST_MESSAGE: Final = 4096
_MOST_CLIENT: Final = 256


def commit_options(
    call: Call, default_author: str, asked: Sequence[Any], properties: Mapping[str, str] = {}
) -> CommitOptions:
    """Return the options of a call's commit: author, reason and client.

    Args:
        call: The call.
        default_author: The author without authentication.
        asked: The request in plain data, by which a repeated key is recognised.
        properties: Properties of the request, or of its snapshot.

    Raises:
        RequestError: A text is too long.
    """
    return {
        "author": call.principal or default_author,
        "message": _message(call, properties),
        "properties": _client_properties(call, properties),
        "asked": asked,
    }


def _message(call: Call, properties: Mapping[str, str]) -> str:
    in_header = header_text(call, MESSAGE_HEADER, _MOST_MESSAGE)
    if in_header:
        return in_header
    message = properties.get(MESSAGE_PROPERTY, "")
    if len(message) > _MOST_MESSAGE:
        raise RequestError(
            400,
            f"property {MESSAGE_PROPERTY} has {len(message)} characters; a commit's message has at "
            f"most {_MOST_MESSAGE}",
        )
    return message


def _client_properties(call: Call, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the client and the engine of a commit, as far as the request names them."""
    engine = " ".join(
        properties[key] for key in ("engine-name", "engine-version") if properties.get(key)
    )
    client = call.headers.get("user-agent", "")
    found = {"client": client, "engine": engine}
    return {name: text[:_MOST_CLIENT] for name, text in found.items() if text}
