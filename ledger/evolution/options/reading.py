"""Typed reading of table options, with Paimon's defaults and its words for what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ledger.evolution.refusals import argument

_TRUE_FALSE = {"true": True, "false": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_SIZE = re.compile(
    r"\s*[0-9]{1,19}\s*(?:b|bytes|(?:k|m|g|t)b?|(?:ki|me|gi|te)bibytes)?\s*", re.IGNORECASE
)


class TableOptions(Struct, frozen=True):
    """Table options as the rules read them. A value that cannot be read raises ILLEGAL_ARGUMENT.

    Example:
        >>> TableOptions({"bucket": "4"}).number("bucket", -1)
        4
    """

    values: Mapping[str, str]

    def text(self, key: str, *older_keys: str) -> str | None:
        """Return a value as it stands, under this key or one of its older names."""
        for each in (key, *older_keys):
            if each in self.values:
                return self.values[each]
        return None

    def number(self, key: str, default: int) -> int:
        """Return a whole number of 32 bits."""
        value = self.values.get(key)
        return default if value is None else whole(key, value)

    def check_size(self, key: str) -> None:
        """Refuse a value that is no number of bytes, such as `64 mb`."""
        value = self.values.get(key)
        if value is not None and _SIZE.fullmatch(value) is None:
            raise argument(f"option {key}={value!r} is not a size, such as 64 mb")

    def flag(self, key: str, *older_keys: str) -> bool:
        """Return a switch that is off by default."""
        value = self.text(key, *older_keys)
        if value is None:
            return False
        read = _TRUE_FALSE.get(value.lower())
        if read is None:
            raise argument(f"option {key}={value!r} is neither true nor false")
        return read

    def is_true(self, key: str, *, default: bool = False) -> bool:
        """Return a switch for which, as in Paimon's schema rules, anything but true means off."""
        value = self.values.get(key)
        return default if value is None else value.lower() == "true"

    def choice(self, key: str, default: str, allowed: Sequence[str]) -> str:
        """Return one of `allowed`, in lower case."""
        value = self.values.get(key)
        if value is None:
            return default
        read = value.lower()
        if read not in allowed:
            raise argument(f"option {key}={value!r} is unknown: use one of {', '.join(allowed)}")
        return read

    def names(self, key: str) -> tuple[str, ...]:
        """Return a comma list; blank entries do not count."""
        listed = self.values.get(key)
        return comma_list(listed) if listed else ()

    def fraction(self, key: str, default: float) -> float:
        """Return a number that may have a point."""
        value = self.values.get(key)
        try:
            return default if value is None else float(value)
        except ValueError as error:
            raise argument(f"option {key}={value!r} is not a number") from error

    @property
    def ignores_delete(self) -> bool:
        """Whether deletions are left out when rows merge."""
        engines = ("first-row", "deduplicate", "partial-update")
        return self.flag("ignore-delete", *(f"{each}.ignore-delete" for each in engines))

    @property
    def bucket(self) -> int:
        """The number of buckets; -1 is dynamic or none, -2 is postponed."""
        return self.number("bucket", -1)

    @property
    def file_format(self) -> str:
        """The format of data files, as Paimon compares it."""
        return (self.text("file.format") or "parquet").lower()

    @property
    def full_compaction_commits(self) -> int:
        """After how many commits files are compacted whole; 0 where nothing is said."""
        return self.number("full-compaction.delta-commits", 0)

    @property
    def merge_engine(self) -> str:
        """How rows of one key become one."""
        return self.choice("merge-engine", "deduplicate", MERGE_ENGINES)

    @property
    def changelog_producer(self) -> str:
        """Where changelog files come from."""
        return self.choice("changelog-producer", "none", CHANGELOG_PRODUCERS)


MERGE_ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")
CHANGELOG_PRODUCERS = ("none", "input", "full-compaction", "lookup")


FILE_FORMATS = frozenset(
    {
        *("avro", "blob", "csv", "json", "lance", "mosaic", "orc"),
        *("parquet", "row", "text", "vortex"),
    }
)
"""Paimon's file formats, those of its optional modules included."""


def comma_list(text: str) -> tuple[str, ...]:
    """Return the trimmed, non-blank entries of a comma list.

    >>> comma_list("a, b,,")
    ('a', 'b')
    """
    return tuple(each.strip() for each in text.split(",") if each.strip())


def whole(key: str, value: str, *, bits: int = 32) -> int:
    """Return the whole number that an option's value spells.

    Raises:
        InvalidChangeError: It is none, or has more bits.

    Example:
        >>> whole("a", "-2147483648"), whole("a", "-9223372036854775808", bits=64)
        (-2147483648, -9223372036854775808)
    """
    # int() alone would take "1_000" and digits of any script.
    if _WHOLE.fullmatch(value) is None or not -(1 << bits - 1) <= int(value) < 1 << bits - 1:
        raise argument(f"option {key}={value!r} is not a whole number of {bits} bits")
    return int(value)
