"""Column mapping by name: what each column is called in the files that can be met.

Delta finds a column of all files by one name. As long as columns keep their names that is their
own, and every reader knows it; after the first rename or drop it is the physical name, which is the
one that the live files hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from attrs import define, field

from ledger.model.schema import Schema
from ledger.model.types.walk import TypePlace, type_places

Level = tuple[int | str | None, ...]


@define
class HeldNames:
    """What files of some schemas call columns, those that are gone included.

    Attributes:
        names: The names by field id.
        meant: The field ids by level and name, told without case, as Spark tells them.
    """

    names: dict[int, set[str]] = field(factory=lambda: defaultdict(set))
    meant: dict[tuple[Level, str], set[int]] = field(factory=lambda: defaultdict(set))

    @classmethod
    def of(cls, schemas: Iterable[Schema]) -> HeldNames:
        """Return what files call columns that use the names of some schemas."""
        found = cls()
        for schema in schemas:
            for place, field_id in fields_of(schema):
                name = place.path[-1]
                found.names[field_id].add(name)
                found.meant[place.level, name.casefold()].add(field_id)
        return found

    def physical(self, place: TypePlace, field_id: int) -> str:
        """Return the name by which readers find a column in all files."""
        held, name = self.names.get(field_id), place.path[-1]
        if held:
            return min(held)
        taken = self.meant.get((place.level, name.casefold()), set())
        return f"col-{field_id}" if taken - {field_id} else name


def fields_of(schema: Schema) -> Iterator[tuple[TypePlace, int]]:
    """Yield every place of a schema that has a name, with its field id."""
    for place in type_places(schema.fields):
        if place.field is not None:
            yield place, place.field.id


def physical_names(schema: Schema, held: HeldNames) -> dict[int, str]:
    """Return what a schema's columns are called in files, by field id.

    Example:
        >>> old, new = Schema.of({"a": "INT"}), Schema.of({"b": "INT"})
        >>> physical_names(new, HeldNames.of([old]))
        {0: 'a'}
    """
    return {field_id: held.physical(place, field_id) for place, field_id in fields_of(schema)}


def clashes(schema: Schema, held: HeldNames) -> Iterator[tuple[TypePlace, str]]:
    """Yield the columns of a schema that no one name finds in all files, each with the reason."""
    for place, field_id in fields_of(schema):
        names = sorted(held.names.get(field_id, ()))
        if len(names) > 1:
            yield place, f"files hold it as {' and as '.join(names)}"
            continue
        for name in names:
            others = held.meant[place.level, name.casefold()] - {field_id}
            if others:
                yield place, f"files hold field {min(others)} under its name {name}, too"


def renames_or_drops(before: Schema, after: Schema) -> bool:
    """Return whether a column of a schema has another name in a later one, or none.

    Example:
        >>> from ledger.model.types import DataField, IntType, RowType
        >>> before, after = (
        ...     Schema((DataField(0, "r", RowType((DataField(1, name, IntType()),))),))
        ...     for name in ("a", "b")
        ... )
        >>> renames_or_drops(before, after), renames_or_drops(before, before)
        (True, False)
    """
    later = {field_id: place.path[-1] for place, field_id in fields_of(after)}
    return any(later.get(field_id) != place.path[-1] for place, field_id in fields_of(before))
