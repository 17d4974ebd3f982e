"""Options of a read of the data source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

import msgspec
from attrs import frozen

from ledger.log.layout import CHECKPOINT_INTERVAL, SEGMENT_LENGTH
from ledger.log.request import now_millis
from ledger.model.errors import InvalidInputError
from ledger.model.instant import (
    Instant,
    TimestampInstant,
    instant_from_arguments,
)
from ledger.model.instant_text import BranchInstant, CommitsAgo, parse_instant, parse_time
from ledger.model.messages import name_hint
from ledger.model.names import Identifier
from ledger.stores.wrappers import Trust
from projections.source.commit_feed import Starting
from projections.source.view import View, view_of
from projections.spark_tasks import LedgerLocation

Filters = Literal["checked", "pushed"]

VERSIONS_PER_PARTITION = 8 * SEGMENT_LENGTH
"""Default number of commits per task; large compared with the cost of starting a task."""

_MOST_TASKS = 10_000
"""Largest number of tasks of a view; each opens the ledger."""

_MOST_COMMITS = 2**63 - 1
"""Largest number of commits of a batch: Spark holds it in 64 bits."""

_OPTIONS = (
    "path",
    "table",
    "view",
    "at",
    "version",
    "timestamp",
    "snapshot",
    "tag",
    "versionsPerPartition",
    "startingOffsets",
    "maxCommitsPerTrigger",
    "filters",
    "viewTasks",
    "columns",
    "storageOptions",
    "trust",
)
_KNOWN = {each.lower(): each for each in _OPTIONS}


@frozen
class TableSelection:
    """Selected tables: one by its full name, all of a database (`shop.*`), or all (`*`)."""

    pattern: str

    @property
    def is_one(self) -> bool:
        """Return whether the pattern names a single table."""
        return not self.pattern.endswith("*")

    def has(self, identifier: Identifier) -> bool:
        """Return whether a table is selected.

        Example:
            >>> TableSelection("shop.*").has(Identifier("shop", "orders"))
            True
        """
        return self.pattern in ("*", f"{identifier.database}.*", str(identifier))


@frozen
class ReadOptions:
    """Options of a read.

    Attributes:
        root: The ledger.
        tables: The tables.
        view: The view of them.
        instant: The instant to read up to; None for now.
        versions_per_partition: Number of commits per task.
        starting: Start of a new stream.
        most_commits: Number of commits that a trigger of a stream reads, at most; None for all.
        filters: Whether a query's filters may decide which commits are read.
        names: The columns to return, in this order; None for all.
        view_tasks: The number of tasks that look the tables up when they run; None if they are
            looked up once, when the read is planned.
    """

    root: LedgerLocation
    tables: TableSelection
    view: View
    instant: Instant | CommitsAgo | None = None
    versions_per_partition: int = VERSIONS_PER_PARTITION
    starting: Starting = "earliest"
    most_commits: int | None = None
    filters: Filters = "checked"
    names: tuple[str, ...] | None = None
    view_tasks: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        """Return the parsed options; their names are case-insensitive.

        Args:
            options: `path` (the ledger's root), `table`, and those of the package's docstring.

        Raises:
            InvalidInputError: One is missing, unknown, or invalid.
            InvalidNameError: `table` is no table's name.
        """
        given = {name.lower(): str(value) for name, value in options.items()}
        unknown = sorted(given.keys() - _KNOWN.keys())
        if unknown:
            raise InvalidInputError(
                f"there is no option {unknown[0]!r}; {name_hint(unknown[0], _OPTIONS)}"
            )
        url = given.get("path", "")
        if not url:
            raise InvalidInputError(
                "no ledger is given; give its root: .load(URL), or for a table of Spark's catalog "
                "CREATE TABLE name USING ledger OPTIONS (path 'URL', `table` '*'), without columns"
            )
        if url.startswith("memory:"):
            raise InvalidInputError(
                f"{url} exists in one process alone, and Spark reads in others: keep the ledger "
                "in a folder or a bucket"
            )
        tables = _parse_tables(given.get("table", ""))
        filters = _parse_filters(given.get("filters", "checked"))
        view_tasks = _parse_count(given, "viewTasks", _MOST_TASKS)
        if view_tasks is not None and filters == "pushed":
            raise InvalidInputError(
                "filters=pushed reads what one query needs, and viewTasks is for views of many "
                "queries; leave one of them out"
            )
        return cls(
            root=LedgerLocation(
                url,
                _parse_storage_options(given.get("storageoptions", "{}")),
                _parse_trust(given.get("trust", "all")),
            ),
            tables=tables,
            view=view_of(given.get("view", "events")),
            instant=_parse_instant(given, tables, now_millis()),
            versions_per_partition=_parse_span_length(given),
            starting=_parse_starting_offsets(given.get("startingoffsets", "earliest")),
            most_commits=_parse_count(given, "maxCommitsPerTrigger", _MOST_COMMITS),
            filters=filters,
            names=_parse_names(given["columns"]) if "columns" in given else None,
            view_tasks=view_tasks,
        )


def _parse_tables(pattern: str) -> TableSelection:
    if not pattern:
        raise InvalidInputError(
            'no table is given; give .option("table", "DATABASE.TABLE"), "DATABASE.*" or "*"'
        )
    if pattern != "*":
        Identifier.parse(f"{pattern[:-1]}any" if pattern.endswith(".*") else pattern)
    return TableSelection(pattern)


def _parse_instant(
    given: Mapping[str, str], tables: TableSelection, now_millis: int
) -> Instant | CommitsAgo | None:
    timestamp = given.get("timestamp")
    instant: Instant | CommitsAgo | None = instant_from_arguments(
        version=_parse_integer(given, "version"),
        timestamp=None if timestamp is None else parse_time(timestamp, now_millis),
        snapshot=_parse_integer(given, "snapshot"),
        tag=given.get("tag"),
    )
    if "at" in given:
        if instant is not None:
            raise InvalidInputError(f"at {given['at']} and {instant} were both named; name one")
        parsed = parse_instant(given["at"], now_millis)
        if isinstance(parsed, BranchInstant):
            raise InvalidInputError(
                f"option at is {given['at']!r}, and views are of a table with all its branches: "
                "give a version, a tag, a snapshot or a time"
            )
        instant = parsed
    if instant is not None and not tables.is_one and not isinstance(instant, TimestampInstant):
        raise InvalidInputError(
            f"{instant} differs between tables; for {tables.pattern} give a timestamp"
        )
    return instant


def _parse_integer(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(f"option {name} is {text!r}; give a whole number") from None


def _parse_span_length(given: Mapping[str, str]) -> int:
    found = _parse_integer(given, "versionsPerPartition")
    if found is None:
        return VERSIONS_PER_PARTITION
    if found < 1:
        raise InvalidInputError(f"option versionsPerPartition is {found}; give at least 1")
    # Rounded up, so that every task's fold starts at a checkpoint.
    return -(-found // CHECKPOINT_INTERVAL) * CHECKPOINT_INTERVAL


def _parse_count(given: Mapping[str, str], name: str, most: int) -> int | None:
    found = _parse_integer(given, name)
    if found is not None and not 1 <= found <= most:
        raise InvalidInputError(f"option {name} is {found}; give a number from 1 to {most}")
    return found


def _parse_starting_offsets(text: str) -> Starting:
    if text.lower() not in ("earliest", "latest"):
        raise InvalidInputError(f"option startingOffsets is {text!r}; give earliest or latest")
    return cast("Starting", text.lower())


def _parse_filters(text: str) -> Filters:
    if text.lower() not in ("checked", "pushed"):
        raise InvalidInputError(f"option filters is {text!r}; give checked or pushed")
    return cast("Filters", text.lower())


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in text.split(","))
    if not all(names) or len({*names}) < len(names):
        raise InvalidInputError(
            f"option columns is {text!r}; give names of columns, each once, separated by commas"
        )
    return names


def _parse_trust(text: str) -> Trust:
    if text.lower() not in get_args(Trust):
        raise InvalidInputError(f"option trust is {text!r}; give all or log")
    return cast("Trust", text.lower())


def _parse_storage_options(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"option storageOptions is no JSON object: {error}") from error
