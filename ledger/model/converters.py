"""What the values' collections accept: any iterable, kept as a tuple; any mapping, as a dict.

attrs takes the parameter types of `__init__` from converters, and `tuple` has none to give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ledger.model.types import DataField


def as_fields(values: Iterable[DataField]) -> tuple[DataField, ...]:
    """Return columns as a tuple."""
    return tuple(values)


def as_names(values: Iterable[str]) -> tuple[str, ...]:
    """Return names as a tuple; one text is a mistake, not a sequence of letters.

    Example:
        >>> as_names(["day"])
        ('day',)
    """
    if isinstance(values, str):
        return (values,)
    return tuple(values)


def as_texts(values: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of a mapping of texts."""
    return dict(values)
