"""Options of `spark.read.format("ledger")`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, cast, get_args

import msgspec
from attrs import frozen

from ledger.log.layout import CHECKPOINT_INTERVAL, SEGMENT_LENGTH
from ledger.model.errors import InvalidInputError
from ledger.model.instant import Instant, TimestampInstant, instant_of, iso_moment
from ledger.model.messages import meant
from ledger.model.names import Identifier
from ledger.stores.wrappers import Trust
from projections.source.span_reading import Root
from projections.source.view import View, view_of

Starting = Literal["earliest", "latest"]
Filters = Literal["checked", "pushed"]

VERSIONS_PER_PARTITION = 8 * SEGMENT_LENGTH
"""How many commits one task reads unless told otherwise: worth a good deal more than its start."""

_OPTIONS = (
    "path",
    "table",
    "view",
    "version",
    "timestamp",
    "snapshot",
    "tag",
    "versionsPerPartition",
    "startingOffsets",
    "filters",
    "columns",
    "storageOptions",
    "trust",
)
_KNOWN = {each.lower(): each for each in _OPTIONS}


@frozen
class Tables:
    """Which tables: one by its full name, all of a database (`shop.*`), or all (`*`)."""

    pattern: str

    @property
    def is_one(self) -> bool:
        """Whether it names a single table."""
        return not self.pattern.endswith("*")

    def has(self, identifier: Identifier) -> bool:
        """Return whether a table is among them.

        Example:
            >>> Tables("shop.*").has(Identifier("shop", "orders"))
            True
        """
        return self.pattern in ("*", f"{identifier.database}.*", str(identifier))


@frozen
class Asked:
    """What is to be read.

    Attributes:
        root: Of which ledger.
        tables: Of which tables.
        view: Which view of them.
        instant: Up to when; None for now.
        versions_per_partition: How many commits one task reads.
        starting: Where a new stream begins.
        filters: Whether a query's filters may decide which commits are read.
        names: Of the columns to give, in this order; None for all.
    """

    root: Root
    tables: Tables
    view: View
    instant: Instant | None = None
    versions_per_partition: int = VERSIONS_PER_PARTITION
    starting: Starting = "earliest"
    filters: Filters = "checked"
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Asked:
        """Return what options ask for; their names are in any case.

        Args:
            options: `path` (the ledger's root), `table`, and those of the package's docstring.

        Raises:
            InvalidInputError: One is missing, unknown, or makes no sense.
            InvalidNameError: `table` is no table's name.
        """
        given = {name.lower(): str(value) for name, value in options.items()}
        unknown = sorted(given.keys() - _KNOWN.keys())
        if unknown:
            raise InvalidInputError(
                f"there is no option {unknown[0]!r}; {meant(unknown[0], _OPTIONS)}"
            )
        url = given.get("path", "")
        if not url:
            raise InvalidInputError("which ledger? give its root: .load(URL)")
        if url.startswith("memory:"):
            raise InvalidInputError(
                f"{url} lives in one process alone, and Spark reads in others: keep the ledger "
                "in a folder or a bucket"
            )
        tables = _tables(given.get("table", ""))
        return cls(
            root=Root(
                url,
                _storage_options(given.get("storageoptions", "{}")),
                _trust(given.get("trust", "all")),
            ),
            tables=tables,
            view=view_of(given.get("view", "events")),
            instant=_instant(given, tables),
            versions_per_partition=_length(given),
            starting=_starting(given.get("startingoffsets", "earliest")),
            filters=_filters(given.get("filters", "checked")),
            names=_names(given["columns"]) if "columns" in given else None,
        )


def _tables(pattern: str) -> Tables:
    if not pattern:
        raise InvalidInputError(
            'which table? give .option("table", "DATABASE.TABLE"), "DATABASE.*" or "*"'
        )
    if pattern != "*":
        Identifier.parse(f"{pattern[:-1]}any" if pattern.endswith(".*") else pattern)
    return Tables(pattern)


def _instant(given: Mapping[str, str], tables: Tables) -> Instant | None:
    instant = instant_of(
        version=_number(given, "version"),
        timestamp=_moment(given["timestamp"]) if "timestamp" in given else None,
        snapshot=_number(given, "snapshot"),
        tag=given.get("tag"),
    )
    if instant is not None and not tables.is_one and not isinstance(instant, TimestampInstant):
        raise InvalidInputError(
            f"{instant} means something else in every table; for {tables.pattern} give a timestamp"
        )
    return instant


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(f"option {name} is {text!r}; give a whole number") from None


def _moment(text: str) -> datetime | int:
    try:
        return int(text) if text.lstrip("-").isdigit() else iso_moment(text)
    except ValueError:
        raise InvalidInputError(
            f"option timestamp is {text!r}; give Unix milliseconds, or ISO 8601 with a time zone"
        ) from None


def _length(given: Mapping[str, str]) -> int:
    found = _number(given, "versionsPerPartition")
    if found is None:
        return VERSIONS_PER_PARTITION
    if found < 1:
        raise InvalidInputError(f"option versionsPerPartition is {found}; give at least 1")
    # Rounded up, so that every task's fold begins at a checkpoint.
    return -(-found // CHECKPOINT_INTERVAL) * CHECKPOINT_INTERVAL


def _starting(text: str) -> Starting:
    if text.lower() not in ("earliest", "latest"):
        raise InvalidInputError(f"option startingOffsets is {text!r}; give earliest or latest")
    return cast("Starting", text.lower())


def _filters(text: str) -> Filters:
    if text.lower() not in ("checked", "pushed"):
        raise InvalidInputError(f"option filters is {text!r}; give checked or pushed")
    return cast("Filters", text.lower())


def _names(text: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in text.split(","))
    if not all(names) or len({*names}) < len(names):
        raise InvalidInputError(
            f"option columns is {text!r}; give names of columns, each once, parted by commas"
        )
    return names


def _trust(text: str) -> Trust:
    if text.lower() not in get_args(Trust):
        raise InvalidInputError(f"option trust is {text!r}; give all or log")
    return cast("Trust", text.lower())


def _storage_options(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"option storageOptions is no JSON object: {error}") from error
