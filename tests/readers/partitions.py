"""Partition values of every kind that a path can say: as a folder, and as SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from attrs import frozen


@frozen
class Value:
    """A partition value.

    Attributes:
        folder: As Hive's layout has it, escaped.
        sql: The same value as a literal.
    """

    folder: str
    sql: str


_NULL = Value("__HIVE_DEFAULT_PARTITION__", "NULL")

KINDS: dict[str, tuple[Value, ...]] = {
    "DATE": (
        Value("2013-01-02", "DATE '2013-01-02'"),
        Value("1969-12-31", "DATE '1969-12-31'"),
        Value("__DEFAULT_PARTITION__", "NULL"),
    ),
    "DECIMAL(6, 2)": (Value("1.50", "1.5"), Value("-3.25", "-3.25"), _NULL),
    "DECIMAL(30, 2)": (Value("12345678901234567890.50", "12345678901234567890.50"), _NULL),
    "TIMESTAMP(3)": (
        Value("2013-01-02 03%3A04%3A05.678", "TIMESTAMP '2013-01-02 03:04:05.678'"),
        _NULL,
    ),
    "TIMESTAMP(6)": (
        Value("2013-01-02 03%3A04%3A05.678901", "TIMESTAMP '2013-01-02 03:04:05.678901'"),
        _NULL,
    ),
    "INT": (Value("7", "7"), Value("-1", "-1"), _NULL),
    "BOOLEAN": (Value("true", "true"), Value("false", "false"), _NULL),
    "STRING": (Value("a%2Fb%3Dc%25 ü", "'a/b=c% ü'"), Value("plain", "'plain'"), _NULL),
}


@frozen
class Layout:
    """A partitioned table: its keys' types by name."""

    name: str
    keys: dict[str, str]
    legacy: bool

    def partitions(self) -> Iterator[dict[str, Value]]:
        """Yield every combination of the keys' values."""
        for values in product(*(KINDS[each] for each in self.keys.values())):
            yield dict(zip(self.keys, values, strict=True))


def layouts() -> Iterator[Layout]:
    """Yield one table a type, and one of two keys, with both ways of naming partitions."""
    shapes = [{"k": each} for each in KINDS] + [{"day": "DATE", "k": "STRING"}]
    for keys, legacy in product(shapes, (True, False)):
        words = re.sub("[^a-z0-9]+", "_", " ".join(keys.values()).lower()).strip("_")
        yield Layout(f"by_{words}_{'legacy' if legacy else 'cast'}", keys, legacy)


LAYOUTS = {each.name: each for each in layouts()}
