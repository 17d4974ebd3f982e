"""Which part of which table's log one task reads; all of it is pickled to executors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from attrs import field, frozen

from ledger.ledger import Ledger
from ledger.ledger import open as open_ledger
from ledger.log.layout import SEGMENT_LENGTH
from ledger.model.identifier import Identifier
from ledger.opening.setting import TableSetting
from ledger.stores import client_options, open_store
from ledger.stores.log_alone import Trust, trusting
from ledger.table import Table


@frozen
class Root:
    """Where a ledger is, and how to reach it."""

    url: str
    storage_options: Mapping[str, Any] = field(factory=dict, hash=False)
    trust: Trust = "all"

    def open(self) -> Ledger:
        """Return the ledger, opened anew."""
        return open_ledger(self.url, self.storage_options, trust=self.trust)

    def setting(self) -> TableSetting:
        """Return what handles of its tables share; one client a process."""
        options = msgspec.json.encode(dict(self.storage_options), order="sorted")
        return _setting(self.url, options, self.trust)


@lru_cache(maxsize=16)
def _setting(url: str, options: bytes, trust: Trust) -> TableSetting:
    given: dict[str, Any] = msgspec.json.decode(options)
    return TableSetting(
        store=trusting(open_store(url, given), trust),
        storage_options=client_options(url, given),
        author="",
        trust=trust,
    )


@frozen
class TablePlace:
    """A table of a ledger: its name, which is for people, and where its stream is."""

    identifier: str
    table_id: str
    path: str

    def open(self, root: Root) -> Table:
        """Return its handle; the catalog is not read."""
        database, _, name = self.identifier.partition(".")
        return Table(Identifier(database, name), self.path, root.setting())


@frozen
class End:
    """Where reading ends: in commit `version`, after some of its transactions (None: all)."""

    version: int
    transactions: int | None = None


@frozen
class Span:
    """The commits `first` to `end`, both included, of one table."""

    root: Root
    table: TablePlace
    first: int
    end: End


def ranges(first: int, last: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of versions that share the reading of `first` to `last`.

    A range ends at a multiple of `length`, which is one of the checkpoint interval's: so the fold
    of the next one starts at a checkpoint. From a segment's length on it is cut to whole segments,
    so that no two tasks read the same one.

    Example:
        >>> list(ranges(0, 2500, 1000)), list(ranges(7, 6, 1000))
        ([(0, 800), (801, 1600), (1601, 2400), (2401, 2500)], [])
    """
    length -= length % SEGMENT_LENGTH if length > SEGMENT_LENGTH else 0
    while first <= last:
        end = min(last, max(length, -(-first // length) * length))
        yield first, end
        first = end + 1
