"""Every place of a schema that has a type: columns, members of ROWs, elements, keys and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
from attrs import frozen

from ledger.model.types import ArrayType, DataField, DataType, MapType, MultisetType, RowType


@frozen
class TypePlace:
    """One place.

    Attributes:
        path: Names from the column on; `element`, `key` and `value` for what has none.
        type: What stands there.
        field: The named field that stands there; None for an element, key or value.
        level: Among what its name has to be unique: the id of the named field around it (None on
            top), then `element`, `key` and `value` since.
        around: The types that it stands in, outermost first.
    """

    path: tuple[str, ...]
    type: DataType = attrs.field(repr=False)
    field: DataField | None = attrs.field(repr=False)
    level: tuple[int | str | None, ...]
    around: tuple[DataType, ...] = attrs.field(default=(), repr=False)

    @property
    def name(self) -> str:
        """The path as people read it."""
        return ".".join(self.path)


def type_places(fields: Iterable[DataField]) -> Iterator[TypePlace]:
    """Yield every place, each before those inside it.

    Example:
        >>> from ledger.model.types import IntType
        >>> row = RowType([DataField(1, "x", IntType())])
        >>> [each.name for each in type_places([DataField(0, "a", ArrayType(row))])]
        ['a', 'a.element', 'a.element.x']
    """
    for each in fields:
        yield from _inside(TypePlace((each.name,), each.type, each, (None,)))


def _inside(place: TypePlace) -> Iterator[TypePlace]:
    yield place
    around = (*place.around, place.type)
    if place.field is not None:
        level: tuple[int | str | None, ...] = (place.field.id,)
    else:
        level = (*place.level, place.path[-1])
    match place.type:
        case RowType(fields=fields):
            for each in fields:
                path = (*place.path, each.name)
                yield from _inside(TypePlace(path, each.type, each, level, around))
        case ArrayType(element=inner) | MultisetType(element=inner):
            yield from _member(place, "element", inner, level)
        case MapType(key=key, value=value):
            yield from _member(place, "key", key, level)
            yield from _member(place, "value", value, level)
        case _:
            return


def _member(
    place: TypePlace, name: str, inner: DataType, level: tuple[int | str | None, ...]
) -> Iterator[TypePlace]:
    around = (*place.around, place.type)
    yield from _inside(TypePlace((*place.path, name), inner, None, level, around))
