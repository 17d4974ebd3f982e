"""Instant that a page shows a table at: a version of the slider, or a text."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ledger.cli.options import InstantFlags, read_instant
from ledger.table import Table
from ledger.table_at import TableAt
from projections.rest.page.queries import PageQuery

INSTANT_EXAMPLES: Final = "version:7, tag:v1, branch:audit, snapshot:3, yesterday, 2013-01-31"


@frozen
class ShownInstant:
    """The instant that a page shows, for its form.

    Attributes:
        asked: The text that was given; empty for the newest version or a version of the slider.
        version: The version that is shown.
        newest: The newest version of the table.
        is_newest: True if nothing else was requested.
    """

    asked: str
    version: int
    newest: int
    is_newest: bool

    @property
    def previous(self) -> int | None:
        """The version before; None for the first."""
        return self.version - 1 if self.version > 0 else None

    @property
    def following(self) -> int | None:
        """The version after; None for the newest."""
        return self.version + 1 if self.version < self.newest else None


def read_at(table: Table, text: str) -> TableAt:
    """Return a table at an instant that is given as text.

    Raises:
        UsageError: The text is not an instant.
        NotFoundError: The instant does not exist, or was expired.
    """
    named = read_instant(text)
    ago = named.pop("ago", None)
    if ago is not None:
        return table.at(version=InstantFlags.version_of(table, ago))
    return table.at(**named)


def requested_instant(table: Table, query: PageQuery) -> tuple[TableAt, ShownInstant]:
    """Return a table at the instant of a query, and the instant for the page's form.

    Raises:
        UsageError, NotFoundError: As for `read_at`.
        RequestError: A parameter is too long or no number.
    """
    newest = table.state.version
    text, version = query.text("at"), query.whole("version")
    if text:
        at = read_at(table, text)
    else:
        at = table.at() if version is None else table.at(version=version)
    is_newest = not text and (version is None or version == newest)
    return at, ShownInstant(text, at.version, max(newest, at.version), is_newest)
