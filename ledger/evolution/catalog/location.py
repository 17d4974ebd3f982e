"""Which location a new database or table gets: one that nothing ever had.

Locations are compared folded, since some stores tell neither case nor Unicode's forms apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ledger.evolution.catalog.state import CatalogState
from ledger.locations import escapes, folded, is_absolute, place_of
from ledger.model.errors import InvalidChangeError, InvalidInputError
from ledger.model.identifier import MAX_NAME_LENGTH
from ledger.model.messages.credentials import advice, carries_credentials

_SHORT_ID_DIGITS = 8
_START = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:///?|/")


def database_location(state: CatalogState, name: str) -> str:
    """Return `<name>.db`, or `<name>-2.db`, `<name>-3.db`, ... where that was ever used."""
    return next(path for path in _folders(name) if clash(state, path) is None)


def table_location(state: CatalogState, database_path: str, name: str, table_id: str) -> str:
    """Return `<database_path>/<name>`, with digits of the table's id where that was ever used.

    Raises:
        InvalidChangeError: Even the location with the whole id was used.
    """
    digits = "".join(char for char in table_id.lower() if char in "0123456789abcdef")
    for suffix in ("", f"-{digits[:_SHORT_ID_DIGITS]}", f"-{digits}"):
        path = f"{database_path}/{_fitted(name, suffix)}"
        if clash(state, path) is None:
            return path
    raise InvalidChangeError(
        f"every location for table {name!r} with id {table_id} was used; take a fresh table id"
    )


def external_location(path: str) -> str:
    """Return the canonical form of a location that a user gave: no slash at its end.

    Raises:
        InvalidInputError: It is not absolute, or has empty, `.` or `..` segments, blanks outside or
            control characters.

    Example:
        >>> external_location("s3://lake/orders/")
        's3://lake/orders'
    """
    if carries_credentials(path):
        raise InvalidInputError(f"location {advice(path)}")
    start = _START.match(path)
    if start is None or not path.isprintable() or path.strip() != path:
        raise InvalidInputError(f"location {path!r} is not absolute; write /PATH or SCHEME://PATH")
    segments = path[start.end() :].rstrip("/").split("/")
    if escapes(path) or not {"", "."}.isdisjoint(segments):
        raise InvalidInputError(
            f"location {path!r} has an empty, '.' or '..' segment; spell it out"
        )
    return path.rstrip("/")


def clash(state: CatalogState, path: str) -> str | None:
    """Return the used location that `path` equals, lies in or contains; None when it is free.

    A database's folder contains its tables, so lying in one is no clash.
    """
    if is_absolute(path):
        place = place_of(path)
        # The others lie below the ledger's root, which no table of another place may meet.
        outside = (each for each in sorted(state.used_paths) if is_absolute(each))
        return next((each for each in outside if place_of(each).meets(place)), None)
    asked = folded(path)
    for used in sorted(state.used_paths):
        other = folded(used)
        inside = "/" in other and asked.startswith(f"{other}/")
        if other == asked or other.startswith(f"{asked}/") or inside:
            return used
    return None


def _folders(name: str) -> Iterator[str]:
    yield _fitted(name, ".db")
    number = 2
    while True:
        yield _fitted(name, f"-{number}.db")
        number += 1


def _fitted(stem: str, suffix: str) -> str:
    # File systems refuse longer names than this, and a name may already be that long.
    room = MAX_NAME_LENGTH - len(suffix)
    return stem.encode()[:room].decode(errors="ignore") + suffix
