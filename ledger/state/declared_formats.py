"""Declared formats of a table, and the rules that they imply.

A change has Paimon's meaning where the table declares Paimon, and a partition spec has Iceberg's,
by its version: that is the ledger's own language, and known here. The limits of a format are not:
they are in its FormatRules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ledger.model.errors import InvalidChangeError
from ledger.model.messages import excerpt

FORMATS_OPTION = "ledger.formats"
FOLLOW_OPTION = "ledger.follow"
"""Option: the formats whose files are updated with every commit, separated by commas."""

READER_GRACE_OPTION = "ledger.reader-grace"
"""Option: how long files that no snapshot needs stay, for readers that opened the table before."""

FORMAT_VERSION_OPTION = "format-version"
DEFAULT_FORMATS = "paimon,iceberg"
DEFAULT_FORMAT_VERSION = 2
_VERSIONS = ("1", "2", "3")
_DEFAULT_VERSION = str(DEFAULT_FORMAT_VERSION)
OWN_PREFIX = "ledger."


def is_rules_option(key: str) -> bool:
    """Return whether an option decides which rules apply: the ledger's or Iceberg's.

    Example:
        >>> is_rules_option("ledger.formats"), is_rules_option("bucket")
        (True, False)
    """
    return key.startswith(OWN_PREFIX) or key == FORMAT_VERSION_OPTION


class Rules(Struct, frozen=True):
    """Rules under which a change is decided; replaying decided events does not use them.

    Attributes:
        formats: The declared ones, by name; whether they are known is not checked here.
        format_version: Iceberg's: 1, 2 or 3.
        allow_incompatible: Whether a column may become required although older rows may lack it.
    """

    formats: frozenset[str]
    format_version: int = DEFAULT_FORMAT_VERSION
    allow_incompatible: bool = False

    @property
    def paimon(self) -> bool:
        """True if changes have Paimon's meaning, with its guards."""
        return "paimon" in self.formats

    @property
    def only_promotes(self) -> bool:
        """True if types change only by Iceberg's promotions; other formats check what they read.

        Paimon casts on reading, and has its own rules for casts.
        """
        return not self.paimon and (not self.formats or "iceberg" in self.formats)

    @classmethod
    def of(cls, options: Mapping[str, str], *, allow_incompatible: bool = False) -> Rules:
        """Return the rules that a table's options declare.

        Raises:
            InvalidChangeError: They name an unknown version.

        Example:
            >>> sorted(Rules.of({}).formats), Rules.of({"ledger.formats": "iceberg"}).paimon
            (['iceberg', 'paimon'], False)
        """
        formats = options.get(FORMATS_OPTION, DEFAULT_FORMATS)
        version = options.get(FORMAT_VERSION_OPTION, _DEFAULT_VERSION)
        rules = _parse_rules(formats, version)
        return replace(rules, allow_incompatible=True) if allow_incompatible else rules


def following_format_names(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the formats that follow a table with some options.

    Example:
        >>> (
        ...     following_format_names({"ledger.follow": "paimon, iceberg,paimon"}),
        ...     following_format_names({}),
        ... )
        (('paimon', 'iceberg'), ())
    """
    names = (each.strip() for each in options.get(FOLLOW_OPTION, "").split(","))
    return tuple(dict.fromkeys(each for each in names if each))


_UNIT_MILLIS: Final = {"s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DEFAULT_GRACE_MILLIS: Final = 3_600_000
_LONGEST_GRACE_MILLIS: Final = 30 * 86_400_000
_is_duration = re.compile(r"([0-9]{1,9}) ?(s|min|h|d)").fullmatch


def reader_grace_millis(options: Mapping[str, str]) -> int:
    """Return how long files that no snapshot needs are kept for readers, in milliseconds.

    One hour where the table has no such option, or one that cannot be parsed.

    Example:
        >>> reader_grace_millis({}), reader_grace_millis({"ledger.reader-grace": "15 min"})
        (3600000, 900000)
    """
    try:
        return _parse_grace_millis(options.get(READER_GRACE_OPTION))
    except InvalidChangeError:
        # The writer that set it did not know the option.
        return _DEFAULT_GRACE_MILLIS


TARGET_FILE_SIZE_OPTION = "ledger.target-file-size"
_SIZE_UNITS: Final = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
_DEFAULT_TARGET_BYTES: Final = 512 << 20
_LARGEST_TARGET_BYTES: Final = 1 << 40
_is_size = re.compile(r"([0-9]{1,13}) ?(|b|kb|mb|gb)").fullmatch


def target_file_size(options: Mapping[str, str]) -> int:
    """Return the size at which a writer closes a data file, in bytes; 512 MiB without the option.

    Raises:
        InvalidChangeError: The option is no size, or not between 1 byte and 1024 GiB.

    Example:
        >>> target_file_size({}), target_file_size({"ledger.target-file-size": "128 mb"})
        (536870912, 134217728)
    """
    text = options.get(TARGET_FILE_SIZE_OPTION)
    if text is None:
        return _DEFAULT_TARGET_BYTES
    found = _is_size(text.strip().lower())
    size = int(found[1]) * _SIZE_UNITS[found[2]] if found else 0
    if not 1 <= size <= _LARGEST_TARGET_BYTES:
        raise InvalidChangeError(
            f"option {TARGET_FILE_SIZE_OPTION} is {excerpt(text)}; set a size from 1 byte to 1024 "
            "GiB, such as 128 mb"
        )
    return size


def refuse_invalid_grace(options: Mapping[str, str]) -> None:
    """Reject a grace period for readers that cannot be parsed or is longer than thirty days.

    Raises:
        InvalidChangeError: It is.
    """
    _parse_grace_millis(options.get(READER_GRACE_OPTION))


def _parse_grace_millis(text: str | None) -> int:
    if text is None:
        return _DEFAULT_GRACE_MILLIS
    found = _is_duration(text.strip())
    millis = int(found[1]) * _UNIT_MILLIS[found[2]] if found else -1
    if text.strip() == "0":
        return 0
    if not 0 <= millis <= _LONGEST_GRACE_MILLIS:
        raise InvalidChangeError(
            f"option {READER_GRACE_OPTION} is {text!r}, which is not a grace period; give 0, or "
            "up to thirty days in s, min, h or d, such as 15 min"
        )
    return millis


# Every commit calls it a few times, and there are few different options.
@lru_cache(maxsize=64)
def _parse_rules(text: str, version: str) -> Rules:
    formats = frozenset(each.strip() for each in text.split(","))
    if version not in _VERSIONS:
        raise InvalidChangeError(
            f"option {FORMAT_VERSION_OPTION} is {version!r}; Iceberg's are {', '.join(_VERSIONS)}"
        )
    return Rules(formats, int(version))


PAIMON_RULES = Rules(frozenset({"paimon"}))
"""The rules of Paimon alone, which the pure `evolve` applies."""
