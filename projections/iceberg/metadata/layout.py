"""Partition specs and sort orders, which are their own JSON.

Source: the Iceberg table specification, "Partitioning", "Sorting" and appendix C.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from ledger.model.errors import InvalidInputError
from ledger.model.iceberg.snapshot import Int

FIRST_PARTITION_FIELD_ID = 1000
UNSORTED_ID = 0
NO_ID = -1
"""Stands for a field id that was left out and for "the last one added" in updates."""

_KNOWN = re.compile(
    r"identity|void|year|month|day|hour|(bucket|truncate)\[([0-9]{1,10})\]", re.IGNORECASE
)


def normal_transform(text: str) -> str:
    """Return a known transform in lower case, and any other as it is.

    Raises:
        InvalidInputError: It has a width or a number of buckets of 0.

    Example:
        >>> normal_transform("BUCKET[4]"), normal_transform("zOrder[4]")
        ('bucket[4]', 'zOrder[4]')
    """
    if not (found := _KNOWN.fullmatch(text)):
        return text
    if found[2] and not int(found[2]):
        raise InvalidInputError(f"transform {text}: the number is at least 1")
    return text.lower()


class PartitionField(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One field of a partition spec.

    Attributes:
        name: Its name, which stands in paths.
        transform: `identity`, `bucket[N]`, `truncate[W]`, `year`, `month`, `day`, `hour`, `void`,
            or one that nobody knows yet, kept as it is.
        source_id: The column that the value derives from; `NO_ID` if there are many.
        source_ids: The columns of a transform of many arguments.
        field_id: Its own id, from 1000; `NO_ID` until a spec numbers it.
    """

    name: str
    transform: str
    source_id: Int = NO_ID
    source_ids: tuple[Int, ...] = ()
    field_id: Int = NO_ID

    def __post_init__(self) -> None:
        _normalise(self)

    @property
    def sources(self) -> tuple[int, ...]:
        """The ids of all columns that the value derives from."""
        return _sources(self)


class PartitionSpec(msgspec.Struct, frozen=True, rename="kebab"):
    """How files are laid out; a file names the spec that it was written with.

    Fields without any ids, as old version 1 tables have them, are numbered by position.

    Example:
        >>> PartitionSpec(0, (PartitionField("day", "day", 1),)).fields[0].field_id
        1000
    """

    spec_id: Int
    fields: tuple[PartitionField, ...] = ()

    def __post_init__(self) -> None:
        missing = [each for each in self.fields if each.field_id == NO_ID]
        if missing and len(missing) < len(self.fields):
            raise InvalidInputError("either all partition fields have a field-id or none has")
        if missing:
            msgspec.structs.force_setattr(self, "fields", numbered(self.fields))

    @property
    def last_field_id(self) -> int:
        """The highest id of its fields; 999 without fields."""
        ids = (each.field_id for each in self.fields)
        return max(ids, default=FIRST_PARTITION_FIELD_ID - 1)


class SortField(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """One field of a sort order; `source_id` and `source_ids` are as in `PartitionField`."""

    transform: str
    source_id: Int = NO_ID
    source_ids: tuple[Int, ...] = ()
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]

    def __post_init__(self) -> None:
        _normalise(self)

    @property
    def sources(self) -> tuple[int, ...]:
        """The ids of all columns that the value derives from."""
        return _sources(self)


class SortOrder(msgspec.Struct, frozen=True, rename="kebab"):
    """How rows are ordered inside files; order 0 is the unsorted one and has no fields."""

    order_id: Int
    fields: tuple[SortField, ...] = ()

    def __post_init__(self) -> None:
        if (self.order_id == UNSORTED_ID) != (not self.fields):
            raise InvalidInputError("sort order 0 is the one without fields, and no other is")


def numbered(fields: tuple[PartitionField, ...]) -> tuple[PartitionField, ...]:
    """Return partition fields with ids by position, from 1000."""
    return tuple(
        msgspec.structs.replace(each, field_id=FIRST_PARTITION_FIELD_ID + position)
        for position, each in enumerate(fields)
    )


def same_spec(one: PartitionSpec, other: PartitionSpec) -> bool:
    """Return whether two specs lay files out alike: fields equal but for their ids."""
    return _layout(one) == _layout(other)


def _layout(spec: PartitionSpec) -> list[tuple[tuple[int, ...], str, str]]:
    return [(each.sources, each.name, each.transform) for each in spec.fields]


def _sources(field: PartitionField | SortField) -> tuple[int, ...]:
    return field.source_ids or (field.source_id,)


def _normalise(field: PartitionField | SortField) -> None:
    transform = normal_transform(field.transform)
    if transform != field.transform:
        msgspec.structs.force_setattr(field, "transform", transform)
    if len(field.source_ids) == 1:
        msgspec.structs.force_setattr(field, "source_id", field.source_ids[0])
        msgspec.structs.force_setattr(field, "source_ids", ())
    if field.source_id == NO_ID and not field.source_ids:
        raise InvalidInputError("a field needs a source-id, or source-ids for many arguments")
