"""A partition column that stands in the file as well has to have the value that the path says.

Readers take it from either of the two, so they would disagree about the same row.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from ledger.files.bounds import lower_bound, upper_bound
from ledger.files.facts import ColumnFacts, Extreme, FooterColumn
from ledger.model import types as t
from ledger.model.errors import InvalidChangeError
from ledger.model.file_change import PartitionValue

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
