"""Which columns can identify a row: Iceberg's identifier fields, checked on a batch's result.

Source: the Iceberg table specification, "Identifier Field IDs".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ledger.evolution.refusals import argument
from ledger.evolution.tree.paths import dotted
from ledger.model.errors import InvalidChangeError
from ledger.model.types import DataField, DataType
from ledger.model.types.walk import parts_of

_INEXACT = frozenset({"FLOAT", "DOUBLE"})
_NOT_PRIMITIVE = frozenset({"ARRAY", "MAP", "ROW", "MULTISET", "VECTOR", "VARIANT"})


def check_identifier_fields(
    columns: Sequence[DataField], field_ids: Iterable[int], old_names: Mapping[int, str]
) -> None:
    """Refuse identifier fields that are gone, or that could not tell two rows apart.

    Args:
        columns: The table's columns.
        field_ids: The identifier fields.
        old_names: Names of columns before the batch by id, for those that it dropped.

    Raises:
        InvalidChangeError: One does not exist, may be NULL, is no exact primitive, or stands
            inside a list, a map or a struct that may be NULL.

    Example:
        >>> from ledger.model.schema import Schema
        >>> check_identifier_fields(Schema.of({"id": "DOUBLE NOT NULL"}).fields, [0], {})
        Traceback (most recent call last):
            ...
        ledger.model.errors.InvalidChangeError: identifier field id is DOUBLE: ...
    """
    wanted = tuple(field_ids)
    if not wanted:
        return
    found = {each.id: (each, above) for each, above in _with_ancestors(columns, ())}
    for field_id in wanted:
        if field_id not in found:
            raise _gone(old_names.get(field_id, f"with id {field_id}"))
        column, above = found[field_id]
        _check(column, above)


def _check(column: DataField, above: tuple[DataField | DataType, ...]) -> None:
    names = [each.name for each in above if isinstance(each, DataField)]
    name = dotted([*names, column.name])
    wrapper = next((each for each in above if isinstance(each, DataType)), None)
    if wrapper is not None:
        raise argument(f"identifier field {name} is inside a {wrapper.root}: a row has many")
    if column.type.root in _NOT_PRIMITIVE:
        raise argument(f"identifier field {name} is {column.type.root}, which is no single value")
    if column.type.root in _INEXACT:
        raise argument(f"identifier field {name} is {column.type.root}: equality is inexact there")
    for each in (*above, column):
        if isinstance(each, DataField) and each.type.nullable:
            raise argument(
                f"identifier field {name}: {each.name} may be NULL; make it NOT NULL, or reset "
                "the identifier fields first"
            )


def _gone(name: str) -> InvalidChangeError:
    return argument(
        f"column {name} is an identifier field; it cannot go before the identifier fields are reset"
    )


def _with_ancestors(
    members: Sequence[DataField], above: tuple[DataField | DataType, ...]
) -> Iterator[tuple[DataField, tuple[DataField | DataType, ...]]]:
    for each in members:
        yield each, above
        yield from _inside(each.type, (*above, each))


def _inside(
    data_type: DataType, above: tuple[DataField | DataType, ...]
) -> Iterator[tuple[DataField, tuple[DataField | DataType, ...]]]:
    for each in parts_of(data_type):
        if each.field is None:
            yield from _inside(each.type, (*above, data_type))
        else:
            yield from _with_ancestors([each.field], above)
