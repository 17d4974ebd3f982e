"""Schemas of new tables from JSON, checked for contradictions.

A schema that names a column, an id or a key twice, or a key that is no column, is rejected when it
is read, with the place in the document. `create_schema` checks the rules of formats and options.

Source: Paimon's Schema and TableSchema; the DLF metadata API.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

from ledger.decide.bounds import HIGHEST_ID
from ledger.decide.change_reading import (
    invalid_value_error,
    read_optional_number,
    read_optional_text,
    read_text_map,
    read_texts,
    require_json_object,
)
from ledger.decide.errors import runtime_error, state_error
from ledger.decide.option_changes import resolve_key_lists
from ledger.decide.table_options import KEY_OPTIONS
from ledger.model.errors import InvalidChangeError, InvalidTypeError
from ledger.model.messages import excerpt, name_hint
from ledger.model.names import quote_path
from ledger.model.schema import Schema, highest_field_id
from ledger.model.types import INT_MAX, DataField, type_places, walk_ids
from ledger.model.types.sql import json_of_text
from ledger.model.types.wire import field_from_json


def schema_from_json(obj: Mapping[str, Any], *, path: str = "$") -> Schema:
    """Read `{fields, highestFieldId, partitionKeys, primaryKeys, options, comment}`.

    Types may be DLF's wrappers, Paimon's objects or text, in Paimon's spelling or another that
    `read_type` reads; members of a ROW in a text get the ids after the highest of the document.
    Unknown keys are ignored. Without `highestFieldId` the greatest id of the columns counts.
    Primary-key columns may be nullable here: `create_schema` makes them NOT NULL.

    Args:
        obj: The decoded JSON.
        path: Path of `obj` in the document, for messages.

    Raises:
        InvalidChangeError: It is not a schema, or contradicts itself: two columns of one id or
            name, a key that is no column or is named twice, or a `highestFieldId` that is below an
            id or out of range; the message has the path, like `$.fields[2].type`.

    Example:
        >>> schema_from_json({"fields": [{"id": 0, "name": "a", "type": "int"}]}).names
        ('a',)
    """
    members = require_json_object(obj, path)
    listed = members.get("fields")
    if not isinstance(listed, list | tuple):
        raise invalid_value_error(f"{path}.fields", "is missing; give a list of columns")
    highest = read_optional_number(members, "highestFieldId", path)
    if highest is not None:
        HIGHEST_ID.check(highest, f"{path}.highestFieldId")
    first_new = max(_highest_json_id(listed), -1 if highest is None else highest) + 1
    new_ids = count(first_new)
    fields = tuple(
        _field_from_json(each, f"{path}.fields[{i}]", new_ids) for i, each in enumerate(listed)
    )
    next_new = next(new_ids)
    if highest is not None and next_new > first_new:
        highest = next_new - 1
    schema = Schema(
        fields=fields,
        partition_keys=read_texts(members, "partitionKeys", path),
        primary_keys=read_texts(members, "primaryKeys", path),
        options=read_text_map(members, "options", path),
        comment=read_optional_text(members, "comment", path),
        highest_field_id=highest_field_id(fields) if highest is None else highest,
    )
    check_schema(schema, path=path)
    return schema


def check_schema(schema: Schema, *, path: str = "$") -> None:
    """Reject a schema that contradicts itself.

    Args:
        schema: The schema as it was read.
        path: Path of the schema in its document, for messages.

    Raises:
        InvalidChangeError: Two columns have one id or one name, a key is no column or is named
            twice, or the highest field id is below an id; the message has the place.

    Example:
        >>> check_schema(Schema.of({"id": "INT"}, primary_keys=["ID"]))
        Traceback (most recent call last):
            ...
        ledger.model.errors.InvalidChangeError: $.primaryKeys: 'ID' is no column; did you mean 'id'?
    """
    _check_names(schema.fields, f"{path}.fields")
    _check_ids(schema.fields, f"{path}.fields")
    names = schema.names
    for place, key in _key_lists(schema, path):
        _check_key(place, key, names)
    _check_highest_id(schema, f"{path}.highestFieldId")


def _field_from_json(obj: object, path: str, new_ids: Iterator[int]) -> DataField:
    try:
        return field_from_json(obj, path=path, convert_text=partial(json_of_text, ids=new_ids))
    except InvalidTypeError as error:
        raise InvalidChangeError(error.message) from error


def _highest_json_id(fields: Iterable[object]) -> int:
    """Return the highest id of columns and members in decoded JSON; -1 if there is none."""
    highest, pending = -1, list(fields)
    # By identity: what is no JSON may contain itself.
    seen: set[int] = set()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        if isinstance(each, Mapping):
            seen.add(id(each))
            pending.extend(each.values())
            given = each.get("id")
            if isinstance(given, int) and given <= INT_MAX:
                highest = max(highest, given)
        elif isinstance(each, list | tuple):
            seen.add(id(each))
            pending.extend(each)
    return highest


def _check_names(fields: Sequence[DataField], path: str) -> None:
    """Reject two columns of one name; a ROW type rejects them among its members itself."""
    seen: dict[str, int] = {}
    for index, each in enumerate(fields):
        first = seen.setdefault(each.name, index)
        if first != index:
            raise state_error(
                f"{path}[{index}].name: {excerpt(each.name)} is the name of {path}[{first}], too; "
                "rename one of the columns"
            )


def _check_ids(fields: Sequence[DataField], path: str) -> None:
    owners: dict[int, str] = {}
    for index, column in enumerate(fields):
        for place in type_places([column]):
            if place.field is None:
                continue
            name = quote_path(place.path)
            if place.field.id in owners:
                raise runtime_error(
                    f"{path}[{index}]: column {name} has the id {place.field.id} of column "
                    f"{owners[place.field.id]}; give every column and member its own id"
                )
            owners[place.field.id] = name


def _key_lists(schema: Schema, path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the place and the columns of each key, given as a list or as an option."""
    lists = (schema.primary_keys, schema.partition_keys)
    try:
        resolved = resolve_key_lists(schema.options, *lists)
    except InvalidChangeError as error:
        raise InvalidChangeError(f"{path}.options: {error.message}", error.kind) from error
    names = ("primaryKeys", "partitionKeys")
    for name, option, listed, key in zip(names, KEY_OPTIONS, lists, resolved, strict=True):
        yield f"{path}.{name}" if listed else f"{path}.options.{option}", key


def _check_key(place: str, key: Sequence[str], names: Sequence[str]) -> None:
    for index, each in enumerate(key):
        if each not in names:
            raise state_error(f"{place}: {excerpt(each)} is no column; {name_hint(each, names)}")
        if each in key[:index]:
            raise state_error(f"{place}: names column {excerpt(each)} twice; remove one")


def _check_highest_id(schema: Schema, path: str) -> None:
    highest = highest_field_id(schema.fields)
    if schema.highest_field_id >= highest:
        return
    owner = next(e.name for e in schema.fields if highest in (e.id, *walk_ids(e.type)))
    raise runtime_error(
        f"{path}: is {schema.highest_field_id}, below the id {highest} in column {owner}; "
        f"give at least {highest}"
    )
