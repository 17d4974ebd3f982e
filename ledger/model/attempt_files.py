"""Names and ages of the data files that write attempts create, and of their list.

A write attempt is a job, or a batch of a stream, whose tasks create data files before one commit
names them. The files of a failed attempt are named by no commit. Garbage collection finds them by
the list of attempts and removes them by age (`ledger.history.garbage`):

- A file is removed once the table's newest commit is more than eight days younger than the file,
  and no commit names it.
- A snapshot that adds a file more than seven days older than the newest commit is rejected, on
  every state that it is decided on.

Commit times never decrease, and a snapshot that was decided before such a newest commit loses the
race for its version and is decided again. So no commit names a removed file, whatever the clocks.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

DATA_FOLDER: Final = "data"
"""Folder of the attempts' folders, in a table's location."""

DAY_MILLIS: Final = 24 * 3_600_000

COMMITTABLE_MILLIS: Final = 7 * DAY_MILLIS
"""Maximum age of an attempt's file when a snapshot adds it, in milliseconds."""

KEPT_ROWS_MILLIS: Final = 8 * DAY_MILLIS
"""Age at most up to which a data file that no commit names is kept, in milliseconds."""

_MOST_NAME_LENGTH: Final = 100
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_entry = re.compile(rf"(\d{{8}})-([A-Za-z0-9_-]{{1,{_MOST_NAME_LENGTH}}})\.json").fullmatch
_row_file = re.compile(
    rf"{DATA_FOLDER}/[^/]+/(?:[^/]+/)*(\d{{13}})-[0-9a-f]{{32}}\.parquet"
).fullmatch


def attempt_name(attempt_id: str) -> str:
    """Return an attempt's id as a folder's name of at most 100 characters.

    Other characters than letters, digits, `_` and `-` are replaced; a hash keeps ids distinct.

    Example:
        >>> attempt_name("spark-1-7"), attempt_name("../x")
        ('spark-1-7', '___x-d6b96a97d147daaa')
    """
    if _PLAIN.fullmatch(attempt_id) and len(attempt_id) <= _MOST_NAME_LENGTH:
        return attempt_id
    digest = sha256(attempt_id.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{_OTHER.sub('_', attempt_id)[: _MOST_NAME_LENGTH - 17]}-{digest}"


def attempt_entry_name(name: str, millis: int) -> str:
    """Return the name of an attempt's entry in the list, for the UTC day of a time.

    Args:
        name: The attempt's folder, as of `attempt_name`.
        millis: The time, Unix milliseconds.

    Example:
        >>> attempt_entry_name("spark-1-7", 1_700_000_000_000)
        '20231114-spark-1-7.json'
    """
    return f"{datetime.fromtimestamp(millis / 1000, UTC):%Y%m%d}-{name}.json"


def parse_attempt_entry(entry: str) -> tuple[str, int] | None:
    """Return the folder name and the start of the UTC day in an entry's name, Unix milliseconds.

    None for any other name.

    Example:
        >>> parse_attempt_entry("19700101-spark-1-7.json"), parse_attempt_entry("x.json")
        (('spark-1-7', 0), None)
    """
    found = _entry(entry)
    if found is None:
        return None
    try:
        day = datetime.strptime(found[1], "%Y%m%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return found[2], int(day.timestamp() * 1000)


def new_row_file_name(millis: int, unique_id: str) -> str:
    """Return the name of a new data file.

    Args:
        millis: Time at which it is opened, Unix milliseconds.
        unique_id: A new UUID.

    Example:
        >>> new_row_file_name(1_700_000_000_000, "0196b0d2-4c1e-7a51-b4a5-6b0f3c1d2e4f")
        '1700000000000-0196b0d24c1e7a51b4a56b0f3c1d2e4f.parquet'
    """
    return f"{millis:013d}-{unique_id.replace('-', '')}.parquet"


def row_file_millis(path: str) -> int | None:
    """Return the Unix milliseconds in the name of an attempt's file; None for any other file.

    Args:
        path: The path below the table's location.

    Example:
        >>> row_file_millis(f"data/a/day=1/1700000000000-{32 * 'a'}.parquet")
        1700000000000
    """
    found = _row_file(path)
    return int(found[1]) if found else None
