"""Declared formats of a table, and the rules they bring.

What a change means is Paimon's to say wherever the table declares it, and what a partition spec
means is Iceberg's, by its version: that is the ledger's own language, and known here. What a format
can hold is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ledger.model.errors import InvalidChangeError

FORMATS_OPTION = "ledger.formats"
FOLLOW_OPTION = "ledger.follow"
"""Names the formats whose files go on with every commit, parted by commas."""

READER_GRACE_OPTION = "ledger.reader-grace"
"""How long files stay that no snapshot needs any more, for readers that opened the table before."""

FORMAT_VERSION_OPTION = "format-version"
DEFAULT_FORMATS = "paimon,iceberg"
DEFAULT_FORMAT_VERSION = 2
_VERSIONS = ("1", "2", "3")
_DEFAULT_VERSION = str(DEFAULT_FORMAT_VERSION)
OWN_PREFIX = "ledger."


def declares_rules(key: str) -> bool:
    """Return whether an option is the ledger's or Iceberg's word on whose rules hold.

    Example:
        >>> declares_rules("ledger.formats"), declares_rules("bucket")
        (True, False)
    """
    return key.startswith(OWN_PREFIX) or key == FORMAT_VERSION_OPTION


class Rules(Struct, frozen=True):
    """Whose rules apply when a change is decided; replaying what was decided asks nobody.

    Attributes:
        formats: The declared ones, by name; whether anybody knows them is not asked here.
        format_version: Iceberg's: 1, 2 or 3.
        allow_incompatible: Whether a column may become required although older rows may lack it.
    """

    formats: frozenset[str]
    format_version: int = DEFAULT_FORMAT_VERSION
    allow_incompatible: bool = False

    @property
    def paimon(self) -> bool:
        """Whether changes mean what they mean in Paimon, its guards included."""
        return "paimon" in self.formats

    @property
    def only_promotes(self) -> bool:
        """Whether types change as Iceberg lets them; other formats say themselves what they read.

        Paimon casts on reading, and has its own words for what it casts.
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
        rules = _declared(formats, version)
        return replace(rules, allow_incompatible=True) if allow_incompatible else rules


def followed(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the formats that follow a table with some options.

    Example:
        >>> followed({"ledger.follow": "paimon, iceberg,paimon"}), followed({})
        (('paimon', 'iceberg'), ())
    """
    names = (each.strip() for each in options.get(FOLLOW_OPTION, "").split(","))
    return tuple(dict.fromkeys(each for each in names if each))


_UNIT_MILLIS: Final = {"s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DEFAULT_GRACE_MILLIS: Final = 3_600_000
_LONGEST_GRACE_MILLIS: Final = 30 * 86_400_000
_is_duration = re.compile(r"([0-9]{1,9}) ?(s|min|h|d)").fullmatch


def reader_grace_millis(options: Mapping[str, str]) -> int:
    """Return for how long a table's readers may hold what no snapshot needs any more.

    One hour where the table does not say, or says what nobody can read.

    Example:
        >>> reader_grace_millis({}), reader_grace_millis({"ledger.reader-grace": "15 min"})
        (3600000, 900000)
    """
    try:
        return _grace_millis(options.get(READER_GRACE_OPTION))
    except InvalidChangeError:
        # Whoever set it did not know the option.
        return _DEFAULT_GRACE_MILLIS


def refuse_grace(options: Mapping[str, str]) -> None:
    """Refuse a time for readers that is none, or longer than thirty days.

    Raises:
        InvalidChangeError: It is.
    """
    _grace_millis(options.get(READER_GRACE_OPTION))


def _grace_millis(text: str | None) -> int:
    if text is None:
        return _DEFAULT_GRACE_MILLIS
    found = _is_duration(text.strip())
    millis = int(found[1]) * _UNIT_MILLIS[found[2]] if found else -1
    if text.strip() == "0":
        return 0
    if not 0 <= millis <= _LONGEST_GRACE_MILLIS:
        raise InvalidChangeError(
            f"option {READER_GRACE_OPTION} is {text!r}, which is no time for readers; give 0, or "
            "up to thirty days in s, min, h or d, such as 15 min"
        )
    return millis


# Every commit asks a few times, and tables have few answers.
@lru_cache(maxsize=64)
def _declared(text: str, version: str) -> Rules:
    formats = frozenset(each.strip() for each in text.split(","))
    if version not in _VERSIONS:
        raise InvalidChangeError(
            f"option {FORMAT_VERSION_OPTION} is {version!r}; Iceberg's are {', '.join(_VERSIONS)}"
        )
    return Rules(formats, int(version))


PAIMON_RULES = Rules(frozenset({"paimon"}))
"""The rules of Paimon alone, which the pure `evolve` knows."""
