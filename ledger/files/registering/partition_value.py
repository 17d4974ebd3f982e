"""One partition value of a file to register: what its path says, what its rows say, or neither.

A partition column that stands in the file as well has to have the value that the path says: readers
take it from either of the two, so they would disagree about the same row.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from enum import Enum

from msgspec import UNSET, UnsetType

from ledger.files.registering.bounds import in_unit, lower_bound, upper_bound
from ledger.files.registering.facts import ColumnFacts, Extreme, FooterColumn
from ledger.files.registering.hive import ICEBERG_NULL
from ledger.model import types as t
from ledger.model.errors import InvalidChangeError
from ledger.model.file_change import PartitionValue
from ledger.model.iceberg.layout import PartitionField
from ledger.model.transforms import Identity, Transform, Void, transform_of
from ledger.model.transforms.values import WHOLE_BITS, Value, encode_value
from ledger.model.types import CharType, DataField, VarCharType


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


_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def check_single_valued(
    file: str, column: FooterColumn, field: t.DataField, value: PartitionValue
) -> None:
    """Check a file's statistics of a partition column against its partition value.

    Without statistics, and for types whose bounds are not exact, there is nothing to check.

    Raises:
        InvalidChangeError: The file holds another value.
    """
    facts = column.facts
    if facts is None or column.type is None or not facts.value_count:
        return
    if value is None:
        fits = facts.null_count in (None, facts.value_count)
    else:
        fits = _all_equal(facts, column.type, field.type, value)
    if not fits:
        raise InvalidChangeError(
            f"file {file}: its path says {field.name}={value}, but its column {field.name!r} holds "
            "other values; split the file by its partition column, or move it"
        )


def _all_equal(
    facts: ColumnFacts, found: t.DataType, wanted: t.DataType, value: PartitionValue
) -> bool:
    expected = _stored(value, wanted)
    if expected is None:
        return True
    if facts.null_count == facts.value_count:
        return False
    if facts.lower is None or facts.upper is None:
        return not facts.null_count
    same = ColumnFacts(1, 0, expected, expected)
    return not facts.null_count and (
        lower_bound(facts, found, wanted) == lower_bound(same, wanted, wanted)
        and upper_bound(facts, found, wanted) == upper_bound(same, wanted, wanted)
    )


def _stored(value: PartitionValue, wanted: t.DataType) -> Extreme | None:
    """Return a value as a footer has it; None for types that are not compared."""
    match wanted:
        case t.DateType():
            return date.fromisoformat(str(value)).toordinal() - _EPOCH_ORDINAL
        case t.DecimalType():
            return int("".join(map(str, Decimal(str(value)).as_tuple().digits))) * (
                -1 if str(value).startswith("-") else 1
            )
        case t.CharType() | t.VarCharType():
            return str(value).encode()
        case _ if isinstance(value, int):
            return value
        case _:
            return None


def partition_value(
    file: str,
    field: PartitionField,
    said: PartitionValue | UnsetType,
    source: DataField | None,
    stored: Mapping[int, FooterColumn],
) -> PartitionValue:
    """Return a file's value of a partition field.

    A path's value has to be that of all rows. Where the path is silent, the statistics have to
    show one value.

    Args:
        file: Its name, for errors.
        field: Of the spec that the file is written with.
        said: What its path says; UNSET for nothing.
        source: The column that the field derives from; None when it was dropped.
        stored: The file's columns by field id.

    Raises:
        InvalidChangeError: The rows have several values, or other ones than the path says, or
            nothing says the value.
    """
    transform = transform_of(field.transform)
    if source is None or isinstance(transform, Void):
        return None
    column = stored.get(source.id)
    if isinstance(transform, Identity) and not isinstance(said, UnsetType):
        if column is None:
            return said
        if said == ICEBERG_NULL and _by_statistics(column, source, transform) is None:
            return None
        check_single_valued(file, column, source, said)
        return said
    found = _by_statistics(column, source, transform)
    what = f"partition field {field.name} ({field.transform} of {source.name})"
    if found is Unsaid.SEVERAL:
        raise InvalidChangeError(
            f"file {file}: its rows have several values of {what}; split the file by it, or append "
            "a FileChange of a spec that it fits, with spec_id= and partition="
        )
    if isinstance(found, Unsaid):
        if isinstance(said, UnsetType):
            raise InvalidChangeError(
                f"file {file}: neither its statistics nor a folder {field.name}=... say its value "
                f"of {what}; write it with statistics and one value, move it into such a folder, "
                "or append a FileChange with partition="
            )
        return said
    if said not in (UNSET, found) and _has_one_escape(source):
        raise InvalidChangeError(
            f"file {file}: its path says {field.name}={said}, but by its statistics it has {found} "
            f"as {what}; move the file"
        )
    return found


def _has_one_escape(source: DataField) -> bool:
    # Formats escape texts in paths each in its own way, and only the rows tell which it was.
    return not isinstance(source.type, CharType | VarCharType)


def _by_statistics(
    column: FooterColumn | None, source: DataField, transform: Transform
) -> PartitionValue | Unsaid:
    if column is None:
        # Readers see NULL in a column that the file lacks, unless that has a default.
        absent = not isinstance(transform, Identity) and source.initial_default is None
        return None if absent else Unsaid.UNKNOWN
    if column.facts is None or column.type is None:
        return Unsaid.UNKNOWN
    return single_result(column.facts, column.type, source.type, transform)
