"""Which formats a table has to stay expressible in, and so whose rules a change has to pass."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from attrs import frozen

from ledger.model.errors import InvalidChangeError

FORMATS_OPTION = "ledger.formats"
FORMAT_VERSION_OPTION = "format-version"
DEFAULT_FORMATS = "paimon,iceberg"
DEFAULT_FORMAT_VERSION = 2
FORMATS = ("paimon", "iceberg")
"""Every format that a table can be declared to stay expressible in."""

_VERSIONS = ("1", "2", "3")
_OWN_PREFIX = "ledger."


def declares_rules(key: str) -> bool:
    """Return whether an option is the ledger's or Iceberg's word on whose rules hold.

    Example:
        >>> declares_rules("ledger.formats"), declares_rules("bucket")
        (True, False)
    """
    return key.startswith(_OWN_PREFIX) or key == FORMAT_VERSION_OPTION


@frozen
class Rules:
    """Whose rules apply when a change is decided; replaying what was decided asks nobody.

    Attributes:
        formats: `paimon`, `iceberg`, or both.
        format_version: Iceberg's: 1, 2 or 3.
        allow_incompatible: Whether a column may become required although older rows may lack it.
    """

    formats: frozenset[str]
    format_version: int = DEFAULT_FORMAT_VERSION
    allow_incompatible: bool = False

    @property
    def paimon(self) -> bool:
        """Whether the table stays expressible in Paimon."""
        return "paimon" in self.formats

    @property
    def iceberg(self) -> bool:
        """Whether the table stays expressible in Iceberg."""
        return "iceberg" in self.formats

    @classmethod
    def of(cls, options: Mapping[str, str], *, allow_incompatible: bool = False) -> Rules:
        """Return the rules that a table's options declare.

        Raises:
            InvalidChangeError: They name an unknown format or version.

        Example:
            >>> sorted(Rules.of({}).formats), Rules.of({"ledger.formats": "paimon"}).iceberg
            (['iceberg', 'paimon'], False)
        """
        formats = options.get(FORMATS_OPTION, DEFAULT_FORMATS)
        version = options.get(FORMAT_VERSION_OPTION, str(DEFAULT_FORMAT_VERSION))
        return _declared(formats, version, allow_incompatible=allow_incompatible)


# Every commit asks a few times, and tables have few answers.
@lru_cache(maxsize=64)
def _declared(text: str, version: str, *, allow_incompatible: bool) -> Rules:
    formats = frozenset(each.strip() for each in text.split(","))
    if not formats <= set(FORMATS):
        raise InvalidChangeError(
            f"option {FORMATS_OPTION} is {text!r}; name one or more of {', '.join(FORMATS)}, "
            "separated by commas"
        )
    if version not in _VERSIONS:
        raise InvalidChangeError(
            f"option {FORMAT_VERSION_OPTION} is {version!r}; Iceberg's are {', '.join(_VERSIONS)}"
        )
    return Rules(formats, int(version), allow_incompatible)


PAIMON_RULES = Rules(frozenset({"paimon"}))
"""The rules of Paimon alone, which the pure `evolve` knows."""
