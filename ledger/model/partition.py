"""Partition specs, sort orders and their transforms.

Source: the Iceberg table specification; Paimon's partition keys are the spec whose transforms
are all identity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, overload

import msgspec
from attrs import field, frozen
from msgspec import Raw, Struct

from ledger.model.errors import InvalidInputError, NotFoundError
from ledger.model.late import decoded

FIRST_PARTITION_FIELD_ID = 1000

Direction = Literal["asc", "desc"]
NullOrder = Literal["nulls-first", "nulls-last"]

_PARAMETERISED = re.compile(r"^(bucket|truncate)\[([1-9][0-9]*)\]$")
_PLAIN = frozenset({"identity", "year", "month", "day", "hour", "void"})


@lru_cache
def _is_transform(text: str) -> bool:
    return text in _PLAIN or _PARAMETERISED.match(text) is not None


def _check_transform(_instance: object, _attribute: object, text: str) -> None:
    if not _is_transform(text):
        raise InvalidInputError(
            f"transform {text!r} is none of {sorted(_PLAIN)}, bucket[N], truncate[W]"
        )


@frozen
class PartitionField:
    """One field of a partition spec.

    Attributes:
        source_id: Field id of the column that the value derives from.
        field_id: The partition field's own id, from 1000.
        name: Its name, which stands in paths (`name=value`).
        transform: `identity`, `bucket[N]`, `truncate[W]`, `year`, `month`, `day`, `hour`, `void`.
    """

    source_id: int
    field_id: int
    name: str
    transform: str = field(default="identity", validator=_check_transform)


@frozen
class PartitionSpec:
    """How files are laid out; a file names the spec that it was written with."""

    spec_id: int = 0
    fields: tuple[PartitionField, ...] = ()


class _Numbered(Struct, frozen=True, gc=False):
    spec_id: int


_SPEC_DECODER: Final = msgspec.json.Decoder(PartitionSpec)
_NUMBERS_DECODER: Final = msgspec.json.Decoder(list[_Numbered])
_NO_SPEC: Final = "a partition spec that is none"


def _numbers_of(specs: Sequence[PartitionSpec | Raw]) -> list[int]:
    # All at once: of a hundred, each takes longer to begin with than to read.
    late = b",".join(each for each in specs if isinstance(each, Raw))
    found = decoded(_NUMBERS_DECODER, b"[%b]" % late, _NO_SPEC)
    read = iter(found)
    return [next(read).spec_id if isinstance(each, Raw) else each.spec_id for each in specs]


class Specs(Sequence[PartitionSpec]):
    """Some specs, each decoded when somebody looks at it; equal to the tuple of them.

    A table has as many as it ever had layouts, and a commit uses one.

    Args:
        found: Each, or its JSON. One that is none is a `DamagedLogError` when it is looked at.

    Example:
        >>> Specs([Raw(b'{"spec_id": 7}')]).of_id(7)
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
            found = self._found[place] = decoded(_SPEC_DECODER, found, _NO_SPEC)
        return found

    def __iter__(self) -> Iterator[PartitionSpec]:
        if self._whole is None:
            self._whole = tuple(map(self.__getitem__, range(len(self._found))))
        return iter(self._whole)

    def of_id(self, spec_id: int) -> PartitionSpec | None:
        """Return the one of an id; None where there is none."""
        if self._places is None:
            self._places = {each: at for at, each in enumerate(_numbers_of(self._found))}
        place = self._places.get(spec_id)
        return None if place is None else self[place]

    def __len__(self) -> int:
        return len(self._found)

    def __add__(self, more: tuple[PartitionSpec, ...]) -> SomeSpecs:
        if self._whole is not None:
            return (*self._whole, *more)
        joined = Specs((*self._found, *more))
        if self._places is not None:
            # Several changes of layout in a row look through the older ones once.
            there = enumerate(more, len(self._found))
            joined._places = {**self._places, **{each.spec_id: at for at, each in there}}
        return joined

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, Specs) else other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


SomeSpecs = tuple[PartitionSpec, ...] | Specs
"""A table's specs, decoded or not."""


def spec_of_id(specs: SomeSpecs, spec_id: int) -> PartitionSpec | None:
    """Return the spec of an id among a table's; None where there is none.

    Example:
        >>> spec_of_id((PartitionSpec(0), PartitionSpec(3)), 3)
        PartitionSpec(spec_id=3, fields=())
    """
    # They are numbered as they come, so that of many none but this one has to be looked at.
    if 0 <= spec_id < len(specs) and specs[spec_id].spec_id == spec_id:
        return specs[spec_id]
    if isinstance(specs, Specs):
        return specs.of_id(spec_id)
    return next((each for each in specs if each.spec_id == spec_id), None)


def spec_by_id(specs: SomeSpecs, spec_id: int) -> PartitionSpec:
    """Return the spec of an id among a table's.

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


@frozen
class SortField:
    """One field of a sort order: direction `asc` or `desc`, nulls `nulls-first` or `nulls-last`."""

    source_id: int
    transform: str = field(default="identity", validator=_check_transform)
    direction: Direction = "asc"
    null_order: NullOrder = "nulls-first"


@frozen
class SortOrder:
    """How rows are ordered inside files; order 0 is unsorted."""

    order_id: int = 0
    fields: tuple[SortField, ...] = ()
