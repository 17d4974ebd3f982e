"""Partition specs, sort orders and their transforms.

Source: the Iceberg table specification; Paimon's partition keys are the spec whose transforms
are all identity.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from attrs import field, frozen

from ledger.model.errors import InvalidInputError

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
