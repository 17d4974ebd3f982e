"""Transforms of columns, for `table.update_spec` and `table.replace_sort_order`.

A column is its name, or the path of names to a member of a ROW: `("address", "zip")`, or
`address.zip` where no name contains a dot.

Example:
    >>> bucket("id", 8)
    Term(source=('id',), transform='bucket[8]')
    >>> day("event.ts")
    Term(source=('event', 'ts'), transform='day')
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from ledger.model import arguments as its
from ledger.model.errors import InvalidInputError
from ledger.model.messages import excerpt
from ledger.model.transforms import transform_of

__all__ = [
    "Column",
    "Term",
    "bucket",
    "day",
    "hour",
    "identity",
    "month",
    "term_of",
    "truncate",
    "void",
    "year",
]

Column = str | Sequence[str]
"""A column's path; a string is split at its dots."""


@frozen
class Term:
    """A transform of a column."""

    source: tuple[str, ...]
    transform: str = "identity"


def term_of(given: Term | Column) -> Term:
    """Return a term unchanged, or the identity transform of a column.

    Raises:
        InvalidInputError: It is neither a term nor a column.

    Example:
        >>> term_of("id") == term_of(identity("id"))
        True
    """
    return given if isinstance(given, Term) else identity(given)


def identity(column: Column) -> Term:
    """Return the identity transform: the column's own values.

    Example:
        >>> identity(("address", "zip")).source
        ('address', 'zip')
    """
    return Term(_column_path(column))


def bucket(column: Column, count: int) -> Term:
    """Return the bucket transform: the hash of a value modulo `count`, from 0.

    Example:
        >>> bucket("id", 8).transform
        'bucket[8]'
    """
    return Term(
        _column_path(column), transform_of(f"bucket[{_check_integer('count', count)}]").text
    )


def truncate(column: Column, width: int) -> Term:
    """Return the truncate transform: a prefix of `width`, or a multiple of it for numbers.

    Example:
        >>> truncate("name", 3).transform
        'truncate[3]'
    """
    return Term(
        _column_path(column), transform_of(f"truncate[{_check_integer('width', width)}]").text
    )


def year(column: Column) -> Term:
    """Return the year transform of a date or timestamp, in UTC.

    Example:
        >>> year("ts").transform
        'year'
    """
    return Term(_column_path(column), "year")


def month(column: Column) -> Term:
    """Return the month transform of a date or timestamp, in UTC.

    Example:
        >>> month("ts").transform
        'month'
    """
    return Term(_column_path(column), "month")


def day(column: Column) -> Term:
    """Return the day transform of a date or timestamp, in UTC.

    Example:
        >>> day("ts").transform
        'day'
    """
    return Term(_column_path(column), "day")


def hour(column: Column) -> Term:
    """Return the hour transform of a timestamp, in UTC.

    Example:
        >>> hour("ts").transform
        'hour'
    """
    return Term(_column_path(column), "hour")


def void(column: Column) -> Term:
    """Return the void transform: always NULL.

    Example:
        >>> void("ts").transform
        'void'
    """
    return Term(_column_path(column), "void")


def _column_path(column: Column) -> tuple[str, ...]:
    path = column.split(".") if isinstance(column, str) else column
    if not _is_path_of_names(path):
        raise InvalidInputError(
            f"{excerpt(column)} names no column; give a name or a path of names"
        )
    return tuple(path)


def _check_integer(name: str, value: int) -> int:
    its.whole.check(name, value)
    return value


def _is_path_of_names(path: object) -> bool:
    if not isinstance(path, Sequence) or not path:
        return False
    return all(isinstance(each, str) and each for each in path)
