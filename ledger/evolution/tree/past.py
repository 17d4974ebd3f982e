"""PastColumns: every column that a table had, as it was last, for those that are to come back.

What a column was last is what its newest schema says: between two schemas no file was written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from attrs import evolve
from msgspec import Struct

from ledger.model.schema import Schema
from ledger.model.types import DataField
from ledger.model.types.walk import type_places

Level = tuple[int | str | None, ...]
Path = tuple[str, ...]


class PastColumn(Struct, frozen=True):
    """A column as it was last.

    Attributes:
        field: It.
        path: Where it stood.
        level: The struct that it stood in; see `TypePlace.level`.
        schema: The schema that says so.
        is_missing: Whether rows may have been written since that have no value for it.
    """

    field: DataField
    path: Path
    level: Level
    schema: Schema
    is_missing: bool

    @property
    def returned(self) -> DataField:
        """The column as it comes back: it may be NULL where rows have neither value nor default."""
        if not self.is_missing or self.field.initial_default is not None:
            return self.field
        return evolve(self.field, type=self.field.type.with_nullability(nullable=True))

    @property
    def before(self) -> tuple[int, ...]:
        """The ids of those that stood before it in that struct, the nearest first."""
        places = (each for each in type_places(self.schema.fields) if each.level == self.level)
        members = [each.field.id for each in places if each.field is not None]
        return tuple(reversed(members[: members.index(self.field.id)]))

    @property
    def owner(self) -> int | None:
        """The id of the named field around it; None on top."""
        owner = self.level[0]
        return owner if isinstance(owner, int) else None

    @property
    def hops(self) -> Path:
        """`element` and `value` between that field and it."""
        return tuple(map(str, self.level[1:]))


class PastColumns:
    """The columns of some schemas, each as the newest of them has it; read as far as is asked.

    Args:
        schemas: Newest first; none where nothing is known.
        lacks: Whether rows may have been written since a schema, by its id, was the newest.

    Example:
        >>> one, two = Schema.of({"a": "INT", "b": "INT"}), Schema.of({"a": "STRING"})
        >>> past = PastColumns([two, one])
        >>> past.at(("b",), (None,), standing={0}).field.id, past.by_id(1).path
        (1, ('b',))
    """

    def __init__(
        self, schemas: Iterable[Schema] = (), lacks: Callable[[int], bool] = lambda _: False
    ) -> None:
        self._rest = self._read(schemas, lacks)
        self._found: dict[int, PastColumn] = {}
        self._called: dict[Path, int] = {}

    def by_id(self, field_id: int) -> PastColumn | None:
        """Return a column by its id; None where there never was one."""
        found = self._found.get(field_id)
        return found or next((each for each in self._rest if each.field.id == field_id), None)

    def at(self, path: Path, level: Level | None, standing: Collection[int]) -> PastColumn | None:
        """Return the column that stood last at a path, of those that do not stand now.

        Args:
            path: Where, by the names then; or what is now at `level`.
            level: What the path leads to now, but for its last name; None where that is nothing.
            standing: The ids of columns that stand.
        """

        def fits(past: PastColumn) -> bool:
            is_there = past.level == level and past.path[-1] == path[-1]
            return past.field.id not in standing and (is_there or past.path == path)

        return next(filter(fits, self._all()), None)

    def called(self, path: Path) -> PastColumn | None:
        """Return the column that had a path once; reads everything."""
        for _ in self._all():
            pass
        field_id = self._called.get(path)
        return None if field_id is None else self._found[field_id]

    def _all(self) -> Iterator[PastColumn]:
        yield from tuple(self._found.values())
        # `yield from` would end the reading for good as soon as somebody has found enough.
        for each in self._rest:  # noqa: UP028
            yield each

    def _read(
        self, schemas: Iterable[Schema], lacks: Callable[[int], bool]
    ) -> Iterator[PastColumn]:
        known: dict[int, DataField] = {}
        for schema in schemas:
            # Schemas share what is the same in them, so that little of each is looked at.
            new = [each for each in schema.fields if known.get(each.id) is not each]
            known.update((each.id, each) for each in new)
            is_missing = bool(new) and lacks(schema.id)
            for place in type_places(new):
                column = place.field
                if column is None:
                    continue
                self._called.setdefault(place.path, column.id)
                if column.id not in self._found:
                    past = PastColumn(column, place.path, place.level, schema, is_missing)
                    self._found[column.id] = past
                    yield past


PastOf = Callable[[], PastColumns]
"""Gives a table's past, which nothing but an undrop asks for."""
