"""Order of struct members in data files, for formats whose readers take them by position.

Such readers look up a file's columns by name, and the members of each struct in them, at every
depth, as the file's schema lists them: a file that lacks a member, or has them in another order, is
read with swapped values or fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.decide.format_rules import MemberMisfit
from ledger.files.bounds import FooterColumn
from ledger.model.types import DataField, DataType, RowType, parts_of, type_places


def has_structs(fields: Sequence[DataField]) -> bool:
    """Return whether a column is a struct, or holds one at any depth."""
    return any(isinstance(each.type, RowType) for each in type_places(fields))


def member_misfits(
    file: str, columns: Sequence[FooterColumn], fields: Sequence[DataField]
) -> Iterator[MemberMisfit]:
    """Yield the structs of a file whose members are not those of its schema, in its order.

    Columns that the schema does not have are ignored, and so are those that the file lacks.

    Args:
        file: The file's name.
        columns: Its columns.
        fields: The columns of its schema.
    """
    by_name = {each.name: each.type for each in fields}
    for column in columns:
        if column.name in by_name:
            yield from _misfits_below(file, column, by_name[column.name], column.name)


def _misfits_below(
    file: str, column: FooterColumn, data_type: DataType, path: str
) -> Iterator[MemberMisfit]:
    parts = parts_of(data_type)
    if isinstance(data_type, RowType):
        found = tuple(each.name for each in column.members)
        wanted = tuple(each.name for each in parts)
        if found != wanted:
            yield MemberMisfit(file, path, wanted, found)
            return
    # A file's lists and maps name their parts in their own way.
    for member, part in zip(column.members, parts, strict=False):
        yield from _misfits_below(file, member, part.type, f"{path}.{part.name}")


def field_ids_in_file_order(
    columns: Sequence[FooterColumn], fields: Sequence[DataField]
) -> Iterator[int]:
    """Yield the field ids of a file's columns and members, found by name, in the file's order.

    Args:
        columns: The columns of a file that matches the schema.
        fields: The columns of the schema.
    """
    by_name = {each.name: each for each in fields}
    for column in columns:
        field = by_name[column.name]
        yield field.id
        yield from _ids_below(column, field.type)


def _ids_below(column: FooterColumn, data_type: DataType) -> Iterator[int]:
    if isinstance(data_type, RowType):
        yield from field_ids_in_file_order(column.members, data_type.fields)
        return
    for member, part in zip(column.members, parts_of(data_type), strict=False):
        yield from _ids_below(member, part.type)
