"""Name mapping of an Iceberg table: the fields that names in files without field ids stand for.

The table property with it follows changes of columns as in Iceberg's Java library: a new column
gets an entry, a renamed column keeps its old names next to the new one, a dropped column keeps its
entry, and a name that another field has now is taken from the earlier field.

Source: the Iceberg table specification, "Name Mapping Serialization", and MappingUtil of Java.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from ledger.model import types as t
from ledger.model.arrow_types import nested_ids
from ledger.model.schema import Schema

NAME_MAPPING: Final = "schema.name-mapping.default"
"""The table property with the name mapping."""


class NamedPart(NamedTuple):
    """A column, member, element, key or value of a schema.

    Attributes:
        id: Its field id.
        name: Its name; `element`, `key` or `value` if it is one.
        members: Its own parts.
    """

    id: int
    name: str
    members: tuple[NamedPart, ...]


class MappedField(Struct, kw_only=True, omit_defaults=True, rename="kebab"):
    """An entry of a name mapping.

    Attributes:
        field_id: The field; None for names that stand for no field.
        names: The names that stand for it.
        fields: The entries of its members; some writers put null for none.
    """

    field_id: int | None = None
    names: list[str]
    fields: list[MappedField] | None = []

    @property
    def members(self) -> list[MappedField]:
        """The entries of its members, to be changed in place."""
        if self.fields is None:
            self.fields = []
        return self.fields


_DECODER = msgspec.json.Decoder(list[MappedField])


def learn_names(text: str | None, schemas: Iterable[Sequence[NamedPart]]) -> str:
    """Return a name mapping with all names of some schemas added, as JSON.

    Args:
        text: The mapping so far; None if there is none. One that is invalid is returned unchanged.
        schemas: The columns of the schemas, oldest first: a later schema takes a name from a field
            that had it before.

    Example:
        >>> learn_names(None, [[NamedPart(1, "old", ())], [NamedPart(1, "new", ())]])
        '[{"field-id":1,"names":["old","new"]}]'
    """
    found = _decode_mapping(text or "[]")
    if found is None:
        return text or "[]"
    for each in schemas:
        _MappingLevel(found).learn(each)
    return _encode_mapping(found, text)


def follow_schema_change(text: str, before: Schema, after: Schema) -> str:
    """Return a name mapping after a change of a schema, as Iceberg's Java library updates it.

    Args:
        text: The mapping; one that is invalid is returned unchanged.
        before: The schema before the change.
        after: The schema after it.

    Example:
        >>> from attrs import evolve
        >>> before = Schema.of({"a": "INT"})
        >>> after = evolve(before, fields=(evolve(before.fields[0], name="b"),))
        >>> follow_schema_change('[{"field-id":0,"names":["a"]}]', before, after)
        '[{"field-id":0,"names":["a","b"]}]'
    """
    found = _decode_mapping(text)
    if found is None:
        return text
    _MappingLevel(found).follow(named_parts(before), named_parts(after))
    return _encode_mapping(found, text)


def misleading_name(text: str | None, schema: Schema) -> tuple[str, int, int | None] | None:
    """Return a top-level name that a mapping gives another field than a schema does.

    Args:
        text: The mapping; None if there is none.
        schema: The schema.

    Returns:
        The name, its field in the schema and its field in the mapping; None without such a name.
    """
    found = _decode_mapping(text or "[]") or []
    meant = {name: each.field_id for each in found for name in each.names}
    for each in schema.fields:
        if meant.get(each.name, each.id) != each.id:
            return each.name, each.id, meant[each.name]
    return None


def _decode_mapping(text: str) -> list[MappedField] | None:
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _encode_mapping(found: list[MappedField], text: str | None) -> str:
    """Return the JSON of a mapping; the given text if that says the same."""
    if text is not None and _decode_mapping(text) == found:
        return text
    return msgspec.json.encode(found).decode()


class _MappingLevel:
    """The entries of one struct, list or map, which are changed in place."""

    def __init__(self, entries: list[MappedField]) -> None:
        self._entries = entries
        self._by_id = {each.field_id: each for each in entries if each.field_id is not None}
        self._owners = {name: each for each in entries for name in each.names}

    def learn(self, parts: Iterable[NamedPart]) -> None:
        """Add names with those of their members."""
        for each in parts:
            entry = self._by_id.get(each.id)
            if entry is None:
                entry = self._by_id[each.id] = MappedField(field_id=each.id, names=[])
                self._entries.append(entry)
            self._give(each.name, entry)
            if each.members:
                _MappingLevel(entry.members).learn(each.members)

    def follow(self, before: Sequence[NamedPart], after: Sequence[NamedPart]) -> None:
        """Apply the changes from some parts to others."""
        known = {each.id: each for each in before}
        for each in after:
            old, entry = known.get(each.id), self._by_id.get(each.id)
            if old is None:
                self.learn([each])
            elif entry is not None:
                if old.name != each.name:
                    self._give(each.name, entry)
                _MappingLevel(entry.members).follow(old.members, each.members)

    def _give(self, name: str, entry: MappedField) -> None:
        owner = self._owners.get(name)
        if owner is entry:
            return
        if owner is not None:
            owner.names.remove(name)
        entry.names.append(name)
        self._owners[name] = entry


def named_parts(schema: Schema) -> tuple[NamedPart, ...]:
    """Return the columns of a schema with their parts, by Iceberg's field ids.

    Example:
        >>> named_parts(Schema.of({"a": t.ArrayType(t.IntType(), element_id=7)}))
        (NamedPart(id=0, name='a', members=(NamedPart(id=7, name='element', members=()),)),)
    """
    return tuple(map(_part_of_field, schema.fields))


def _part_of_field(each: t.DataField) -> NamedPart:
    return NamedPart(each.id, each.name, tuple(_parts_of_type(each.type, each.id, 1)))


def _parts_of_type(data_type: t.DataType, field_id: int, depth: int) -> Iterator[NamedPart]:
    """Yield the parts of a type.

    Args:
        data_type: The type.
        field_id: The nearest named field around it.
        depth: The number of lists and maps from that field down to this type, included.
    """
    if isinstance(data_type, t.RowType):
        yield from map(_part_of_field, data_type.fields)
        return
    inside = _list_or_map_types(data_type)
    ids = nested_ids(data_type, field_id, depth) if inside else ()
    for (name, kind), number in zip(inside, ids, strict=True):
        yield NamedPart(number, name, tuple(_parts_of_type(kind, field_id, depth + 1)))


def _list_or_map_types(data_type: t.DataType) -> tuple[tuple[str, t.DataType], ...]:
    """Return the parts of a type as Iceberg has them: a MULTISET is a map to its counts there."""
    if isinstance(data_type, t.MultisetType):
        return ("key", data_type.element), ("value", t.IntType())
    if isinstance(data_type, t.VectorType):
        return (("element", data_type.element),)
    return tuple((each.name, each.type) for each in t.parts_of(data_type))
