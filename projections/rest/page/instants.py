"""Instant that a page shows a table at: a version of the slider, or a text."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ledger.table import Table
from ledger.table_at import TableAt
from projections.rest.page.queries import PageQuery

INSTANT_EXAMPLES: Final = (
    "7, HEAD~3, tag:v1, branch:audit, snapshot:3, yesterday, 15m ago, 2013-01-31"
)


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


def requested_instant(table: Table, query: PageQuery) -> tuple[TableAt, ShownInstant]:
    """Return a table at the instant of a query, and the instant for the page's form.

    Raises:
        InvalidInputError, NotFoundError: As for `Table.at`.
        RequestError: A parameter is too long or no number.
    """
    newest = table.state.version
    text, version = query.text("at"), query.whole("version")
    at = table.at(text or None, version=None if text else version)
    is_newest = not text and (version is None or version == newest)
    return at, ShownInstant(text, at.version, max(newest, at.version), is_newest)
