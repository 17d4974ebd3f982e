"""How a format's refusal is worded: what, the format, its rule, and the ways out."""

from __future__ import annotations

from ledger.evolution.rules import FORMATS_OPTION
from ledger.model.errors import FormatError

_OTHER = {"iceberg": "paimon", "paimon": "iceberg"}


def broken(format_name: str, what: str, rule: str, alternative: str) -> FormatError:
    """Return the refusal of something that a format cannot express.

    Args:
        format_name: `iceberg` or `paimon`.
        what: The thing and what is wanted of it.
        rule: What the format says, as half a sentence.
        alternative: What can be done instead; leaving the format is offered besides.

    Example:
        >>> broken("iceberg", "column v", "Iceberg has no BLOB", "keep v in another table").message
        "column v: Iceberg has no BLOB; keep v in another table, or leave format 'iceberg': \
set ledger.formats=paimon"
    """
    ways = (
        f"{alternative}, or leave format {format_name!r}: "
        f"set {FORMATS_OPTION}={_OTHER[format_name]}"
    )
    return FormatError(f"{what}: {rule}; {ways}", format_name, rule, ways)
