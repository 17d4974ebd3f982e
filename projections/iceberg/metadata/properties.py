"""Values of table and view properties, which are all texts."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.model.errors import InvalidInputError


def whole_number(properties: Mapping[str, str], key: str, default: int) -> int:
    """Return a property that is a whole number.

    Raises:
        InvalidInputError: It is set to something else.
    """
    text = properties.get(key)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError as error:
        raise InvalidInputError(f"property {key} is {text!r:.80} and should be a number") from error


def truth(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    """Return a property that is true or false; as in Java, all but `true` is false."""
    text = properties.get(key)
    return default if text is None else text.lower() == "true"
