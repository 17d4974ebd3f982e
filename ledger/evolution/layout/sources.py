"""Sources: the columns that a layout is made of, found by path and then followed by id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ledger.evolution.tree.paths import dotted
from ledger.model.errors import ColumnNotFoundError, InvalidChangeError
from ledger.model.messages.similar import meant
from ledger.model.schema import Schema
from ledger.model.types import ArrayType, DataField, DataType, MapType, MultisetType, RowType


class Source(Struct, frozen=True):
    """A column, or a member of a ROW, and where it stands now."""

    path: tuple[str, ...]
    field: DataField

    @property
    def id(self) -> int:
        """Its field id."""
        return self.field.id

    @property
    def type(self) -> DataType:
        """Its type."""
        return self.field.type


class Sources:
    """Finds the columns that a layout is made of; once found, they are followed by id.

    Args:
        highest: The highest field id that the writer saw. Columns above it are its own new ones,
            whose ids may be others when the change is decided again.
    """

    def __init__(self, highest: int) -> None:
        self._highest = highest
        self._pins: dict[tuple[str, ...], int] = {}

    def find(self, schema: Schema, path: Sequence[str]) -> Source:
        """Return the column at a path, or what it has become since it was found first.

        Raises:
            ColumnNotFoundError: There is none, or it is gone.
            InvalidChangeError: It lies inside a list or a map, where a row has many values.
        """
        asked = tuple(path)
        pinned = self._pins.get(asked)
        if pinned is None:
            found = _at(schema, asked)
            if found.id <= self._highest:
                self._pins[asked] = found.id
            return found
        for each in all_sources(schema):
            if each.id == pinned:
                return each
        raise ColumnNotFoundError(f"column {dotted(asked)} does not exist any more")


def all_sources(schema: Schema) -> Iterator[Source]:
    """Yield every column and every member of a ROW, but nothing inside lists and maps.

    Example:
        >>> row = RowType([DataField(1, "b", ArrayType(RowType([])))])
        >>> [each.path for each in all_sources(Schema.of({"a": row}))]
        [('a',), ('a', 'b')]
    """
    yield from _below((), schema.fields)


def _below(path: tuple[str, ...], members: Sequence[DataField]) -> Iterator[Source]:
    for each in members:
        yield Source((*path, each.name), each)
        if isinstance(each.type, RowType):
            yield from _below((*path, each.name), each.type.fields)


def _at(schema: Schema, path: tuple[str, ...]) -> Source:
    for each in all_sources(schema):
        if each.path == path:
            return each
        is_around = each.path == path[: len(each.path)]
        if is_around and isinstance(each.type, ArrayType | MapType | MultisetType):
            raise InvalidChangeError(
                f"column {dotted(path)} lies inside {dotted(each.path)}, where one row has many "
                "values; take a column, or a member of a ROW, as the source"
            )
    raise ColumnNotFoundError(
        f"column {dotted(path)} does not exist; {meant(dotted(path), schema.names)}"
    )
