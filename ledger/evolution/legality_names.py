"""Names of files without field ids: each may only ever stand for one field.

Iceberg finds the columns of such files through one name mapping for the whole table, which cannot
tell two fields of one name apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.evolution.legality_rule import broken
from ledger.evolution.type_places import TypePlace, type_places
from ledger.model.errors import FormatError
from ledger.model.schema import Schema

Binding = tuple[tuple[int | str | None, ...], str]
"""A level of a schema and a name in it; see `TypePlace.level`."""


def bindings(schema: Schema) -> dict[Binding, int]:
    """Return the field id that each name stands for, level by level.

    Example:
        >>> from ledger.model.types import DataField, IntType, RowType
        >>> bindings(Schema.of({"a": "INT", "b": RowType([DataField(0, "a", IntType())])}))
        {((None,), 'a'): 0, ((None,), 'b'): 1, ((1,), 'a'): 2}
    """
    return {_binding(place): field_id for place, field_id in _named(schema)}


def name_clashes(schema: Schema, named: Iterable[Schema]) -> Iterator[FormatError]:
    """Yield the names that stand for two fields.

    Args:
        schema: The schema as it shall be.
        named: Those whose names files without field ids use.
    """
    bound = bindings(schema)
    for older in named:
        for place, field_id in _named(older):
            other = bound.setdefault(_binding(place), field_id)
            if other != field_id:
                yield _clash(place, other, field_id, older.id)


def _named(schema: Schema) -> Iterator[tuple[TypePlace, int]]:
    for place in type_places(schema.fields):
        if place.field is not None:
            yield place, place.field.id


def _binding(place: TypePlace) -> Binding:
    return place.level, place.path[-1]


def _clash(place: TypePlace, field_id: int, older_id: int, schema_id: int) -> FormatError:
    return broken(
        "iceberg",
        f"column {place.name}",
        f"the name would stand for field {field_id}, but files without field ids that can still "
        f"be read, of schema {schema_id}, mean field {older_id} by it",
        "take another name, or rewrite those files with field ids and expire the snapshots that "
        "hold them",
    )
