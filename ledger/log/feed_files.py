"""Names and retention of the files with positions of feeds, below the ledger's root."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import fresh_id
from ledger.stores import Store

FOLDER: Final = f"{STREAM_FOLDER}/feeds"
"""Folder of the positions that are too many for an offset."""

RENEWED_MILLIS: Final = 30 * 24 * 3_600_000
"""Age after which a feed in use replaces its file, in milliseconds."""

KEPT_MILLIS: Final = 365 * 24 * 3_600_000
"""Retention of a file that no feed replaced, in milliseconds."""

_is_name: Final = re.compile(r"(\d{8})-[0-9a-f-]{36}\.json", re.ASCII).fullmatch


def new_name(now_millis: int) -> str:
    """Return the name of a new file: the day, and a unique id."""
    return f"{datetime.fromtimestamp(now_millis / 1000, UTC):%Y%m%d}-{fresh_id()}.json"


def written_millis(name: str) -> int | None:
    """Return the start of the day in a file's name, Unix milliseconds; None for a foreign file.

    Example:
        >>> written_millis("20231114-018bcfe5-6800-7000-8000-000000000000.json")
        1699920000000
    """
    found = _is_name(name)
    try:
        day = None if found is None else datetime.strptime(f"{found[1]}Z", "%Y%m%d%z")
    except ValueError:
        return None
    return None if day is None else round(day.timestamp() * 1000)


def outdated_positions(store: Store, now_millis: int) -> Iterator[tuple[str, int]]:
    """Yield the keys of files older than `KEPT_MILLIS`, with the start of their day."""
    for key in store.walk(FOLDER):
        written = written_millis(key.rpartition("/")[2])
        if written is not None and now_millis - written >= KEPT_MILLIS:
            yield key, written
