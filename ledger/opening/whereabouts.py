"""Where a ledger is said to be, and whether that is where it was opened.

A ledger's root says where it began, and its catalog where it went since: what names files by whole
URLs (position deletes, projected files) is right at that place alone. Other ways to the same
storage are aliases: those that were told, and on this machine those that links make.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ledger.evolution.catalog.state import CatalogState
from ledger.locations import place_of
from ledger.stores.file_access import behind_links

_NOWHERE: Final = "memory://"


def recordable(url: str) -> str:
    """Return a root's URL as it is recorded; empty for one that means nothing to others."""
    return "" if url.startswith(_NOWHERE) else url


class Whereabouts:
    """Shared by all handles of a ledger; it learns as the catalog is read.

    Attributes:
        place: The URL that the ledger is said to be at; empty where nobody ever said.
        aliases: Other URLs that lead to the same storage.
    """

    __slots__ = ("_began", "_canonical", "_since", "aliases", "place")

    def __init__(self) -> None:
        self.place = self._began = ""
        self._since = 0
        self.aliases: tuple[str, ...] = ()
        self._canonical: dict[str, str] = {}

    def begin(self, place: str, since: int) -> None:
        """Learn where the ledger began, which commits of the catalog before a version knew not."""
        self._began, self._since = place, since
        self.place = self.place or place

    def learn(self, state: CatalogState) -> None:
        """Learn what the catalog says."""
        is_newer = state.placed_version >= self._since
        said = (state.place, state.aliases) if is_newer else (self._began, ())
        if said != (self.place, self.aliases):
            self.place, self.aliases = said
            self._canonical.clear()

    @property
    def is_settled(self) -> bool:
        """Whether somebody said where the ledger is."""
        return bool(self.place)

    def is_here(self, url: str) -> bool:
        """Whether a URL is the ledger's place or leads to it, as far as is known.

        Nothing that is asked when nobody ever said where the ledger is.
        """
        return not self.place or self.canonical(url) == self.place

    def is_recorded_at(self, url: str) -> bool:
        """Return whether the ledger is recorded to be at a URL, or at one that leads there."""
        return self.is_settled and self.is_here(url)

    def canonical(self, url: str) -> str:
        """Return the recorded URL of the place that a URL leads to; itself where none does."""
        if not self.place or url == self.place:
            return url
        found = self._canonical.get(url)
        if found is None:
            found = self._canonical[url] = self.place if self._leads_here(url) else url
        return found

    def _leads_here(self, url: str) -> bool:
        place = place_of(url)
        known = [*map(place_of, self._known())]
        return place in known or behind_links(place) in map(behind_links, known)

    def others(self, url: str) -> tuple[str, ...]:
        """Return the known URLs of a ledger that do not lead where it was opened."""
        return () if self.is_here(url) else tuple(self._known())

    def _known(self) -> Iterator[str]:
        yield self.place
        yield from self.aliases


class Settled(Whereabouts):
    """Of who says where a ledger is: wherever it was opened, it is at home."""

    __slots__ = ()

    def is_here(self, url: str) -> bool:
        """Say so."""
        del url
        return True

    def canonical(self, url: str) -> str:
        """Return the URL itself."""
        return url

    @property
    def is_settled(self) -> bool:
        """Whether nothing needs to be looked at before a commit."""
        return True
