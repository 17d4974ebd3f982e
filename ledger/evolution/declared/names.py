"""What names of columns stand for, level by level: files without field ids are read by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ledger.model.schema import Schema
from ledger.model.types.walk import TypePlace, type_places

Binding = tuple[tuple[int | str | None, ...], str]
"""A level of a schema and a name in it; see `TypePlace.level`."""


def bindings(schema: Schema) -> dict[Binding, int]:
    """Return the field id that each name stands for, level by level.

    Example:
        >>> from ledger.model.types import DataField, IntType, RowType
        >>> bindings(Schema.of({"a": "INT", "b": RowType([DataField(0, "a", IntType())])}))
        {((None,), 'a'): 0, ((None,), 'b'): 1, ((1,), 'a'): 2}
    """
    return {binding_of(place): field_id for place, field_id in named_places(schema)}


class BoundNames:
    """What the names of many schemas stand for, asked without going through the schemas again.

    It only grows, by steps that any thread may take, and take twice: nobody waits for a lock.

    Example:
        >>> names = BoundNames()
        >>> names.add(Schema.of({"a": "INT", "b": "INT"}))
        >>> names.agree({((None,), "b"): 1}), names.agree({((None,), "b"): 2})
        (True, False)
    """

    def __init__(self) -> None:
        self._schema_ids: set[int] = set()
        self._meant: dict[Binding, set[int]] = {}
        self._doubtful: set[Binding] = set()

    @property
    def schema_ids(self) -> set[int]:
        """The schemas that were added."""
        return self._schema_ids

    def add(self, schema: Schema) -> None:
        """Take in a schema's names."""
        self.bind(((binding, (each,)) for binding, each in bindings(schema).items()), (schema.id,))

    def bind(
        self, meant: Iterable[tuple[Binding, tuple[int, ...]]], schema_ids: Iterable[int]
    ) -> None:
        """Take in what the names of some schemas mean."""
        for binding, field_ids in meant:
            known = self._meant.setdefault(binding, set())
            known.update(field_ids)
            if len(known) > 1:
                self._doubtful.add(binding)
        # Only now, so that who finds a schema here finds its names, too.
        self._schema_ids.update(schema_ids)

    @property
    def is_doubtful(self) -> bool:
        """Whether some name means two things."""
        return bool(self._doubtful)

    def agree(self, bound: Mapping[Binding, int]) -> bool:
        """Whether each of these names means the same in every schema that has it."""
        return all(
            self._meant.get(each, {field_id}) == {field_id} for each, field_id in bound.items()
        )

    def are_one(self, schemas: Iterable[Schema]) -> bool:
        """Whether no name of these schemas means two things."""
        return all(self._doubtful.isdisjoint(bindings(each)) for each in schemas)

    def meant(self) -> Iterator[tuple[Binding, tuple[int, ...]]]:
        """Yield every name with the field ids that it means."""
        return ((each, tuple(sorted(ids))) for each, ids in list(self._meant.items()))


def named_places(schema: Schema) -> Iterator[tuple[TypePlace, int]]:
    """Yield every place of a schema that has a field id, with it."""
    for place in type_places(schema.fields):
        if place.field is not None:
            yield place, place.field.id


def binding_of(place: TypePlace) -> Binding:
    """Return the level and the name that a place has."""
    return place.level, place.path[-1]
