"""Offsets of a feed: positions in many tables, in an offset of less than 10 kB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from attrs import define, evolve, field, frozen

from ledger.log.feed_files import FOLDER, RENEWED_MILLIS, new_name, written_millis
from ledger.model.errors import InvalidInputError, StoreError
from ledger.stores import Store

MOST_BYTES: Final = 8_000
"""Length of an offset's JSON text, at most; only the names of two files come on top."""

Offset = dict[str, Any]
"""An offset as Spark keeps it: plain JSON."""


@frozen
class FeedOffset:
    """Position of a feed.

    Attributes:
        catalog: Version of the catalog whose tables and names the feed has; None for an offset of
            an earlier version of the feed: the newest.
        slot: Slot of the activity index up to which announcements are reflected; None: unknown.
        tables: Version read last, by table id: of all tables, or of those changed since `base`.
        base: File with the positions of all tables; None if `tables` has them all.
        replaced: File that `base` replaced, which is not needed once this offset is committed.
        turn: Id of the table that was served last, where the rate is limited.
    """

    catalog: int | None
    slot: int | None
    tables: Mapping[str, int]
    base: str | None = None
    replaced: str | None = None
    turn: str | None = None

    def as_json(self) -> Offset:
        """Return the offset as Spark keeps it; equal offsets have equal texts."""
        found: Offset = {"catalog": self.catalog, "tables": dict(sorted(self.tables.items()))}
        for name in ("slot", "base", "replaced", "turn"):
            value = getattr(self, name)
            if value is not None:
                found[name] = value
        return found

    @classmethod
    def of_json(cls, given: Offset) -> FeedOffset:
        """Return an offset of a checkpoint, also one of an earlier version of the feed.

        Raises:
            InvalidInputError: It is not an offset of a feed.

        Example:
            >>> earlier = {"id": {"identifier": "shop.a", "path": "a", "version": 3}}
            >>> FeedOffset.of_json(earlier).tables
            {'id': 3}
        """
        try:
            if "catalog" not in given and "tables" not in given:
                earlier = msgspec.convert(given, dict[str, _EarlierPosition])
                return cls(None, None, {key: each.version for key, each in earlier.items()})
            found = msgspec.convert(given, _Written)
        except msgspec.ValidationError as error:
            raise InvalidInputError(
                f"the stream's checkpoint has an offset that no feed of a ledger wrote: {error}; "
                "start the query with another checkpoint location"
            ) from error
        for name in (found.base, found.replaced):
            if name is not None and written_millis(name) is None:
                raise InvalidInputError(
                    f"the stream's checkpoint names {name!r}, which is no file of a feed's "
                    "positions; start the query with another checkpoint location"
                )
        return cls(found.catalog, found.slot, found.tables, found.base, found.replaced, found.turn)


class _EarlierPosition(msgspec.Struct):
    """Position in one table, next to its name and path, as feeds wrote it before."""

    version: int


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    """An offset's JSON."""

    catalog: int | None
    tables: dict[str, int]
    slot: int | None = None
    base: str | None = None
    replaced: str | None = None
    turn: str | None = None


class _Positions(msgspec.Struct, forbid_unknown_fields=True):
    """Content of a file of positions."""

    tables: dict[str, int]


@define
class PositionFiles:
    """The positions that offsets name, in files below the ledger's root.

    Attributes:
        store: The ledger's store.
    """

    store: Store
    _known: dict[str, Mapping[str, int]] = field(factory=dict, repr=False)

    def positions(self, offset: FeedOffset) -> Mapping[str, int]:
        """Return the positions in all tables of an offset.

        Raises:
            InvalidInputError: The file that the offset names is gone.
        """
        if offset.base is None:
            return offset.tables
        if offset.base not in self._known:
            self._keep(offset.base, self._read(offset.base))
        return {**self._known[offset.base], **offset.tables}

    def offset(
        self, positions: Mapping[str, int], wanted: FeedOffset, now_millis: int
    ) -> FeedOffset:
        """Return an offset with some positions; write them to a file if they are too long.

        Args:
            positions: The positions in all tables.
            wanted: The offset's other fields; `base` and `replaced` are those of the offset before.
            now_millis: The current time, Unix milliseconds.

        Raises:
            StoreError: They are too long, and the file cannot be written.
        """
        base = wanted.base
        if base is not None and now_millis - (written_millis(base) or 0) < RENEWED_MILLIS:
            before = self._known[base] if base in self._known else self._read(base)
            self._keep(base, before)
            changed = {key: each for key, each in positions.items() if before.get(key) != each}
            found = evolve(wanted, tables=changed)
            if _is_short(found):
                return found
        found = evolve(wanted, tables=positions, base=None, replaced=base)
        return found if _is_short(found) else self._write(found, now_millis)

    def _write(self, offset: FeedOffset, now_millis: int) -> FeedOffset:
        name = new_name(now_millis)
        body = msgspec.json.encode(_Positions(dict(offset.tables)), order="sorted")
        try:
            self.store.create(f"{FOLDER}/{name}", body)
        except StoreError as error:
            raise StoreError(
                f"the positions of a stream in {len(offset.tables):,} tables are longer than "
                f"{MOST_BYTES:,} bytes and cannot be written to {self.store.url}/{FOLDER}: "
                f"{error}. Permit writing to that folder, or follow fewer tables"
            ) from error
        self._keep(name, offset.tables)
        return evolve(offset, tables={}, base=name)

    def _read(self, name: str) -> Mapping[str, int]:
        key = f"{FOLDER}/{name}"
        body = self.store.read(key)
        try:
            return msgspec.json.decode(body or b"", type=_Positions).tables
        except msgspec.DecodeError as error:
            state = "missing" if body is None else "damaged"
            raise InvalidInputError(
                f"{self.store.url}/{key} is {state}: it has the positions of a stream, and its "
                "query cannot continue without them. Restore it from a backup, or start the query "
                "with another checkpoint location and startingOffsets=earliest or latest"
            ) from error

    def _keep(self, name: str, positions: Mapping[str, int]) -> None:
        # Those of the start and the end of a batch; more are not needed.
        self._known.pop(name, None)
        while len(self._known) > 1:
            self._known.pop(next(iter(self._known)))
        self._known[name] = positions

    def remove(self, name: str) -> None:
        """Delete a file of positions; does nothing if it is gone."""
        self.store.delete(f"{FOLDER}/{name}")


def _is_short(offset: FeedOffset) -> bool:
    return len(msgspec.json.encode(offset.as_json())) <= MOST_BYTES
