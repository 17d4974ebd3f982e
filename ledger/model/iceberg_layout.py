"""Partition specs and sort orders in Iceberg's own JSON.

Attributes are in Java's order of keys. A key that a class does not have is rejected; readers of
files by other writers remove such keys first. Paimon's partition keys are the spec whose
transforms are all identity.

Source: the Iceberg table specification, "Partitioning", "Sorting" and appendix C.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar, overload

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import force_setattr, replace

from ledger.model.errors import DamagedLogError, InvalidInputError, NotFoundError, UnsupportedError
from ledger.model.iceberg_objects import Int

FIRST_PARTITION_FIELD_ID = 1000
UNSORTED_ID = 0
NO_ID = -1
"""Placeholder for a field id that was left out, and for "the last one added" in updates."""

Direction = Literal["asc", "desc"]
NullOrder = Literal["nulls-first", "nulls-last"]

_KNOWN = re.compile(
    r"identity|void|year|month|day|hour|(bucket|truncate)\[([0-9]{1,10})\]", re.IGNORECASE
)
_RECORDED = re.compile(r"identity|void|year|month|day|hour|(bucket|truncate)\[[1-9][0-9]*\]")


@lru_cache
def normalize_transform(text: str) -> str:
    """Return a known transform in lower case, and any other as it is.

    Raises:
        InvalidInputError: It has a width or a number of buckets of 0.

    Example:
        >>> normalize_transform("BUCKET[4]"), normalize_transform("zOrder[4]")
        ('bucket[4]', 'zOrder[4]')
    """
    if not (found := _KNOWN.fullmatch(text)):
        return text
    if found[2] and not int(found[2]):
        raise InvalidInputError(f"transform {text}: the number is at least 1")
    return text.lower()


class _LayoutField(
    Struct,
    frozen=True,
    rename="kebab",
    omit_defaults=True,
    repr_omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """A field of a partition spec or a sort order."""


class _SpecOrSortOrder(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True, gc=False):
    """A partition spec or a sort order, with every key in its JSON."""


class PartitionField(_LayoutField, frozen=True):
    """One field of a partition spec.

    Attributes:
        name: Its name, which is a part of paths.
        transform: `identity`, `bucket[N]`, `truncate[W]`, `year`, `month`, `day`, `hour`, `void`,
            or an unknown one, kept as it is.
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
        _normalize_layout_field(self)

    @property
    def sources(self) -> tuple[int, ...]:
        """The ids of all columns that the value derives from."""
        return _source_ids(self)


class PartitionSpec(_SpecOrSortOrder, frozen=True):
    """Partition spec: the layout of files; a file names the spec that it was written with.

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
            force_setattr(self, "fields", number_partition_fields(self.fields))

    @property
    def last_field_id(self) -> int:
        """The highest id of its fields; 999 without fields."""
        ids = (each.field_id for each in self.fields)
        return max(ids, default=FIRST_PARTITION_FIELD_ID - 1)


class SortField(_LayoutField, frozen=True, kw_only=True):
    """One field of a sort order; `source_id` and `source_ids` are as in `PartitionField`."""

    transform: str
    source_id: Int = NO_ID
    source_ids: tuple[Int, ...] = ()
    direction: Direction
    null_order: NullOrder

    def __post_init__(self) -> None:
        _normalize_layout_field(self)

    @property
    def sources(self) -> tuple[int, ...]:
        """The ids of all columns that the value derives from."""
        return _source_ids(self)


class SortOrder(_SpecOrSortOrder, frozen=True):
    """Sort order of rows inside files; order 0 is unsorted and has no fields."""

    order_id: Int
    fields: tuple[SortField, ...] = ()

    def __post_init__(self) -> None:
        if (self.order_id == UNSORTED_ID) != (not self.fields):
            raise InvalidInputError("sort order 0 is the one without fields, and no other is")


def number_partition_fields(fields: tuple[PartitionField, ...]) -> tuple[PartitionField, ...]:
    """Return partition fields with ids by position, from 1000."""
    return tuple(
        replace(each, field_id=FIRST_PARTITION_FIELD_ID + position)
        for position, each in enumerate(fields)
    )


def has_same_layout(one: PartitionSpec, other: PartitionSpec) -> bool:
    """Return whether two specs have the same layout: equal fields apart from their ids."""
    return _spec_field_layouts(one) == _spec_field_layouts(other)


def _spec_field_layouts(spec: PartitionSpec) -> list[tuple[tuple[int, ...], str, str]]:
    return [(each.sources, each.name, each.transform) for each in spec.fields]


def _source_ids(field: PartitionField | SortField) -> tuple[int, ...]:
    return field.source_ids or (field.source_id,)


def _normalize_layout_field(field: PartitionField | SortField) -> None:
    transform = normalize_transform(field.transform)
    if transform != field.transform:
        force_setattr(field, "transform", transform)
    if len(field.source_ids) == 1:
        force_setattr(field, "source_id", field.source_ids[0])
        force_setattr(field, "source_ids", ())
    if field.source_id == NO_ID and not field.source_ids:
        raise InvalidInputError("a field needs a source-id, or source-ids for many arguments")


def check_ledger_fields(fields: Sequence[PartitionField | SortField], parent: str) -> None:
    """Check the fields of a spec or an order that the ledger records.

    Args:
        fields: The fields.
        parent: The spec or the order with its id, for the message.

    Raises:
        UnsupportedError: A field derives from many columns.
        InvalidInputError: The specification has no such transform, or a field has no id.
    """
    for field in fields:
        if len(field.sources) != 1:
            name = f"field {field.name}" if isinstance(field, PartitionField) else "a field"
            raise UnsupportedError(
                f"{name} of {parent} derives from {len(field.sources)} columns, and the ledger "
                "knows fields of one"
            )
        if isinstance(field, PartitionField) and field.field_id == NO_ID:
            raise InvalidInputError(
                f"field {field.name} of {parent} has no field-id; an event states every id"
            )
        if not _RECORDED.fullmatch(field.transform):
            raise InvalidInputError(
                f"transform {field.transform!r} of {parent} is none of identity, void, year, "
                "month, day, hour, bucket[N], truncate[W]"
            )


_T = TypeVar("_T")


def decode_record_part(
    decoder: msgspec.json.Decoder[_T], part: bytes | msgspec.Raw, says: str
) -> _T:
    """Return the decoded value of a part of a checkpoint's record.

    Args:
        decoder: The part's decoder.
        part: The part's JSON.
        says: Description of an invalid part, for the error message.

    Raises:
        DamagedLogError: The JSON is invalid. The record's checksum was right, so a faulty writer
            wrote it.

    Example:
        >>> decode_record_part(msgspec.json.Decoder(list[int]), b"[1, 2]", "numbers that are none")
        [1, 2]
    """
    try:
        return decoder.decode(part)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DamagedLogError(
            f"a checkpoint holds {says}: {error}. Delete the folder caches next to the log; it is "
            "rebuilt",
            "caches",
        ) from error


class _SpecIdOnly(Struct, frozen=True, rename="kebab", gc=False):
    spec_id: int


_SPEC_DECODER: Final = msgspec.json.Decoder(PartitionSpec)
_NUMBERS_DECODER: Final = msgspec.json.Decoder(list[_SpecIdOnly])
_NO_SPEC: Final = "an invalid partition spec"


def _spec_ids(specs: Sequence[PartitionSpec | Raw]) -> list[int]:
    # One decoder call for all: a call costs more than decoding one spec.
    late = b",".join(each for each in specs if isinstance(each, Raw))
    found = decode_record_part(_NUMBERS_DECODER, b"[%b]" % late, _NO_SPEC)
    read = iter(found)
    return [next(read).spec_id if isinstance(each, Raw) else each.spec_id for each in specs]


class LazyPartitionSpecs(Sequence[PartitionSpec]):
    """Sequence of partition specs, each decoded on first access; equal to the tuple of them.

    A table keeps one spec for each layout that it ever had, and a commit uses one.

    Args:
        found: Each spec, or its JSON. Access to an invalid one raises `DamagedLogError`.

    Example:
        >>> LazyPartitionSpecs([Raw(b'{"spec-id": 7}')]).of_id(7)
        PartitionSpec(spec_id=7, fields=())
    """

    __slots__ = ("_found", "_places", "_whole")

    def __init__(self, found: Iterable[PartitionSpec | Raw]) -> None:
        self._found: list[PartitionSpec | Raw] = [*found]
        self._whole: tuple[PartitionSpec, ...] | None = None
        self._places: dict[int, int] | None = None

    @overload
    def __getitem__(self, place: int) -> PartitionSpec: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[PartitionSpec, ...]: ...

    def __getitem__(self, place: int | slice) -> PartitionSpec | tuple[PartitionSpec, ...]:
        if isinstance(place, slice):
            return tuple(self[each] for each in range(*place.indices(len(self))))
        found = self._found[place]
        if isinstance(found, Raw):
            found = self._found[place] = decode_record_part(_SPEC_DECODER, found, _NO_SPEC)
        return found

    def __iter__(self) -> Iterator[PartitionSpec]:
        if self._whole is None:
            self._whole = tuple(map(self.__getitem__, range(len(self._found))))
        return iter(self._whole)

    def of_id(self, spec_id: int) -> PartitionSpec | None:
        """Return the spec with an id; None if there is none."""
        if self._places is None:
            self._places = {each: at for at, each in enumerate(_spec_ids(self._found))}
        place = self._places.get(spec_id)
        return None if place is None else self[place]

    def __len__(self) -> int:
        return len(self._found)

    def __add__(self, more: tuple[PartitionSpec, ...]) -> SomeSpecs:
        if self._whole is not None:
            return (*self._whole, *more)
        joined = LazyPartitionSpecs((*self._found, *more))
        if self._places is not None:
            # Several layout changes in a row share the index of the older specs.
            there = enumerate(more, len(self._found))
            joined._places = {**self._places, **{each.spec_id: at for at, each in there}}
        return joined

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, LazyPartitionSpecs) else other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


SomeSpecs = tuple[PartitionSpec, ...] | LazyPartitionSpecs
"""A table's partition specs, decoded or lazily decoded."""


def spec_of_id(specs: SomeSpecs, spec_id: int) -> PartitionSpec | None:
    """Return the partition spec with an id; None if there is none.

    Example:
        >>> spec_of_id((PartitionSpec(0), PartitionSpec(3)), 3)
        PartitionSpec(spec_id=3, fields=())
    """
    # Ids are mostly positions, so that only this spec has to be decoded.
    if 0 <= spec_id < len(specs) and specs[spec_id].spec_id == spec_id:
        return specs[spec_id]
    if isinstance(specs, LazyPartitionSpecs):
        return specs.of_id(spec_id)
    return next((each for each in specs if each.spec_id == spec_id), None)


def spec_by_id(specs: SomeSpecs, spec_id: int) -> PartitionSpec:
    """Return the partition spec with an id.

    Raises:
        NotFoundError: There is none.

    Example:
        >>> spec_by_id((PartitionSpec(0), PartitionSpec(3)), 3).spec_id
        3
    """
    found = spec_of_id(specs, spec_id)
    if found is None:
        known = [each.spec_id for each in specs]
        raise NotFoundError(f"partition spec {spec_id} does not exist; there are: {known}")
    return found


def order_by_id(orders: Iterable[SortOrder], order_id: int) -> SortOrder:
    """Return the sort order of an id among a table's.

    Raises:
        NotFoundError: There is none.
    """
    for each in orders:
        if each.order_id == order_id:
            return each
    raise NotFoundError(f"sort order {order_id} does not exist")
