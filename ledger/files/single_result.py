"""What a footer says of a partition field: its one value, that it has several, or nothing."""

from __future__ import annotations

from enum import Enum

from ledger.files.bounds import in_unit
from ledger.files.facts import ColumnFacts, Extreme
from ledger.model import types as t
from ledger.model.file_change import PartitionValue
from ledger.model.transforms import Transform
from ledger.model.transforms.values import WHOLE_BITS, Value, encode_value


class Unsaid(Enum):
    """Why there is no one value."""

    UNKNOWN = "unknown"
    SEVERAL = "several"


def single_result(
    facts: ColumnFacts, found: t.DataType, wanted: t.DataType, transform: Transform
) -> PartitionValue | Unsaid:
    """Return the one result that a transform has for all rows of a file.

    Numbers with a floating point never have one: their extremes leave NaN out and do not tell the
    zeros apart.

    Args:
        facts: What the file says of the column.
        found: The file's type, which gives its unit.
        wanted: The column's type in the table.
        transform: The partition field's.

    Example:
        >>> from ledger.model.transforms import transform_of
        >>> facts = ColumnFacts(9, 0, 17_501, 17_502)
        >>> single_result(facts, t.DateType(), t.DateType(), transform_of("month"))
        575
        >>> single_result(facts, t.DateType(), t.DateType(), transform_of("day"))
        <Unsaid.SEVERAL: 'several'>
    """
    if not facts.value_count or facts.null_count is None:
        return Unsaid.UNKNOWN
    if facts.null_count:
        return None if facts.null_count == facts.value_count else Unsaid.SEVERAL
    low = _value(facts.lower, found, wanted, upper=False)
    high = _value(facts.upper, found, wanted, upper=True)
    if low is None or high is None:
        return Unsaid.UNKNOWN
    if low != high and not transform.preserves_order:
        return Unsaid.UNKNOWN
    first, last = transform.apply(low, wanted), transform.apply(high, wanted)
    if first == last:
        return encode_value(first, transform.result_type(wanted))
    # Writers may cut the extremes of text and bytes, so these need not be values of a row.
    return Unsaid.UNKNOWN if isinstance(low, str | bytes) else Unsaid.SEVERAL


def _value(
    extreme: Extreme | None, found: t.DataType, wanted: t.DataType, *, upper: bool
) -> Value | None:
    """Return an extreme as transforms compute with it; None where that is not safe."""
    if extreme is None or isinstance(extreme, float) or not _is_same_kind(found, wanted):
        return None
    if isinstance(extreme, bool):
        return extreme
    if isinstance(extreme, int):
        return in_unit(extreme, found, wanted, upper=upper)
    if not isinstance(wanted, t.CharType | t.VarCharType):
        return extreme
    try:
        return extreme.decode()
    except UnicodeDecodeError:
        return None


_TEXTS = ("CHAR", "VARCHAR")
_BYTES = ("BINARY", "VARBINARY", "UUID")


def _is_same_kind(found: t.DataType, wanted: t.DataType) -> bool:
    """Whether a value of the file's type means the same in the column's."""
    if isinstance(found, t.DecimalType) and isinstance(wanted, t.DecimalType):
        return found.scale == wanted.scale
    kinds = (tuple(WHOLE_BITS), _TEXTS, _BYTES)
    return found.root == wanted.root or any(
        found.root in each and wanted.root in each for each in kinds
    )
