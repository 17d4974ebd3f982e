"""Finding what a name means in a schema, as Iceberg does: dotted, and with parts left out.

`stops.value.lat` may be written `stops.lat`: a list's `element` and a map's `value` go without
saying where they are structs. Source: the Iceberg reference implementation's index by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, cast

from attrs import frozen

from ledger.evolution.refusals import argument
from ledger.evolution.tree.paths import dotted
from ledger.model.types import DataField, DataType, MultisetType, RowType
from ledger.model.types.walk import parts_of

Path = tuple[str, ...]
"""A column's path in full, as `SchemaChange.field_names` has it."""

Part = Literal["column", "element", "key", "value"]


@frozen
class Spot:
    """Something that a name stands for.

    Attributes:
        path: In full, every `element`, `key` and `value` said.
        type: The type that stands there.
        column: The column or ROW member; None for a list's element, a map's key or value.
        part: Which of these it is.
        in_key: Whether it is a map's key or stands inside of one, which never changes.
    """

    path: Path
    type: DataType
    column: DataField | None
    part: Part = "column"
    in_key: bool = False

    def __str__(self) -> str:
        return dotted(self.path)


class NameIndex:
    """What every name of a schema stands for.

    Example:
        >>> from ledger.model.schema import Schema
        >>> from ledger.model.types.sql import read_type
        >>> stops = read_type("MAP<STRING, ROW<lat FLOAT>>")
        >>> index = NameIndex(Schema.of({"stops": stops}).fields)
        >>> index.find("stops.lat").path, index.find("STOPS")
        (('stops', 'value', 'lat'), None)
    """

    __slots__ = ("_full", "_short", "spots")

    def __init__(self, columns: Sequence[DataField]) -> None:
        self.spots: dict[Path, Spot] = {}
        self._full: dict[str, Spot] = {}
        self._short: dict[str, Spot] = {}
        for spot, short in _members(columns, (), (), in_key=False):
            self.spots[spot.path] = spot
            self._full.setdefault(dotted(spot.path), spot)
            self._short.setdefault(dotted(short), spot)

    def find(self, name: str) -> Spot | None:
        """Return what a name stands for, or None."""
        return self._full.get(name) or self._short.get(name)

    def find_ignoring_case(self, name: str) -> Spot | None:
        """Return what a name stands for in any case, or None.

        Raises:
            InvalidChangeError: It could mean more than one column.
        """
        wanted = name.lower()
        for names in (self._full, self._short):
            found = [spot for each, spot in names.items() if each.lower() == wanted]
            if len(found) > 1:
                raise argument(f"{name} could mean {' or '.join(map(str, found))}; mind the case")
            if found:
                return found[0]
        return None


_Found = tuple[Spot, Path]


def _members(
    members: Sequence[DataField], path: Path, short: Path, *, in_key: bool
) -> Iterator[_Found]:
    for each in members:
        spot = Spot((*path, each.name), each.type, each, in_key=in_key)
        named = (*short, each.name)
        yield spot, named
        yield from _inside(spot, named)


def _inside(spot: Spot, short: Path) -> Iterator[_Found]:
    if isinstance(spot.type, MultisetType):
        return
    for each in parts_of(spot.type):
        if each.field is not None:
            yield from _members([each.field], spot.path, short, in_key=spot.in_key)
        else:
            yield from _part(spot, each.type, cast("Part", each.name), short)


def _part(owner: Spot, data_type: DataType, part: Part, short: Path) -> Iterator[_Found]:
    in_key = owner.in_key or part == "key"
    spot = Spot((*owner.path, part), data_type, None, part, in_key)
    yield spot, (*short, part)
    is_skipped = isinstance(data_type, RowType) and part != "key"
    yield from _inside(spot, short if is_skipped else (*short, part))
