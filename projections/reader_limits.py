"""Known errors of common readers, and the changes that cause them.

Each format lists the errors of its readers in one table, which the tests keep true: a plan warns of
each change that a reader then gets wrong, and the documentation shows the same rows. When a reader
is fixed, the test of its row fails, and the row is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from attrs import define, evolve, field, frozen

from ledger.decide.format_rules import declared_rules
from ledger.model.schema import Schema
from ledger.model.types import DataType, TypePlace, type_places
from ledger.state.table import TableState

PlaceKey = tuple[int | str | None, ...]
"""Identity of a place in a schema; a rename does not change it."""

_KINDS = ("column ", "partition field ")


def place_key(place: TypePlace) -> PlaceKey:
    """Return the identity of a place: its field's id, or the path below the nearest field's."""
    return (place.field.id,) if place.field else (*place.level, place.path[-1])


@define
class PlannedChange:
    """A change of schema or layout, from the view of one format's readers.

    Attributes:
        before: The table before the change; without columns and specs if the format is new.
        after: The table after it.
        is_new: Whether the table declares the format from this change on.
    """

    before: TableState
    after: TableState
    is_new: bool
    _earlier: Callable[[], Iterable[Schema]] = field(repr=False)

    @classmethod
    def of(
        cls,
        format_name: str,
        before: TableState,
        after: TableState,
        earlier: Callable[[], Iterable[Schema]],
    ) -> PlannedChange:
        """Return the change as a format's readers see it.

        Args:
            format_name: The format.
            before: The table before the change.
            after: The table after it.
            earlier: Returns the table's schemas up to `before`; called only if they are needed.
        """
        is_new = format_name in _formats(after) and format_name not in _formats(before)
        if is_new:
            before = evolve(before, schema=evolve(before.schema, fields=()), specs=())
        return cls(before, after, is_new, earlier)

    @cached_property
    def _changed_places(self) -> tuple[tuple[TypePlace, ...], tuple[TypePlace, ...]]:
        """The places in columns that the change affects, before it and after it."""
        before, after = self.before.schema.fields, self.after.schema.fields
        # Columns that a change does not affect are the same objects: most of a wide table's are.
        kept = set(map(id, before)) & set(map(id, after))
        one, two = (
            tuple(type_places(e for e in each if id(e) not in kept)) for each in (before, after)
        )
        return one, two

    @cached_property
    def _types_ever(self) -> dict[PlaceKey, list[DataType]]:
        found: dict[PlaceKey, list[DataType]] = {}
        for schema in self._earlier():
            for each in type_places(schema.fields):
                known = found.setdefault(place_key(each), [])
                if each.type not in known:
                    known.append(each.type)
        return found

    def new_places(self, is_meant: Callable[[TypePlace], bool]) -> Iterator[TypePlace]:
        """Yield the places that satisfy a predicate, and did not before the change."""
        before, after = self._changed_places
        had = {place_key(each) for each in before if is_meant(each)}
        return (each for each in after if is_meant(each) and place_key(each) not in had)

    def retyped_places(self, is_meant: Callable[[TypePlace], bool]) -> Iterator[TypePlace]:
        """Yield the places whose type the change sets, and that older files may have as another."""
        before, after = self._changed_places
        types = {place_key(each): each.type for each in before}
        for each in after:
            old = types.get(place_key(each))
            is_changed = self.is_new if old is None else old != each.type
            if is_changed and is_meant(each):
                yield each

    def older_types(self, place: TypePlace) -> list[DataType]:
        """Return the types that a place had before the change; reads the table's history."""
        return self._types_ever.get(place_key(place), [])


def _formats(state: TableState) -> frozenset[str]:
    return declared_rules(state.schema.options).formats


@frozen
class ReaderLimit:
    """One error of a reader.

    Attributes:
        reader: Its display name.
        version: The version in which it was observed.
        says: Its behaviour, as the end of a sentence.
        added_names: Function from a change to the names that it adds: columns, partition fields, or
            the table.
    """

    reader: str
    version: str
    says: str
    added_names: Callable[[PlannedChange], Iterable[str]]

    def warnings(self, change: PlannedChange) -> Iterator[str]:
        """Yield one sentence per kind of thing for which a change causes the error.

        Things of one kind are listed together: `columns a, b: ...`.
        """
        named: dict[str, list[str]] = {}
        for each in self.added_names(change):
            kind = next((kind for kind in _KINDS if each.startswith(kind)), "")
            named.setdefault(kind, []).append(each.removeprefix(kind))
        for kind, names in named.items():
            several = f"{kind.rstrip()}s " if kind and len(names) > 1 else kind
            yield f"{several}{', '.join(names)}: {self.reader} {self.version} {self.says}"


def new_columns_where(
    is_meant: Callable[[TypePlace], bool],
) -> Callable[[PlannedChange], Iterator[str]]:
    """Return a function that yields new places, at every depth, that satisfy a predicate."""

    def added_names(change: PlannedChange) -> Iterator[str]:
        return (f"column {each.name}" for each in change.new_places(is_meant))

    return added_names
