"""Format: what a table format brings, and how those that are installed are found.

The ledger lists no format. A table declares formats by name (`ledger.formats`), and each is found
by an entry point of its package's metadata:

    [project.entry-points."lakeledger.formats"]
    delta = "projections.delta.format:DELTA"

To add one, add a folder with an object like `Format` and that line. Its rules are asked whenever a
change of a table that declares it is decided; see `ledger.evolution.declared.format` for the
questions and the values that they carry, and `projections.iceberg.rules` for an example. They are
pure: no clock, no I/O, the same answer everywhere. Importing them should be cheap: every process
that commits imports all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from ledger.evolution.declared.format import FormatRules, Refusal
from ledger.evolution.declared.rules import DEFAULT_FORMATS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FORMATS = "lakeledger.formats"
"""The group of entry points: by a format's name, an object like `Format`."""


class Format(Protocol):
    """A table format."""

    @property
    def rules(self) -> FormatRules:
        """Whether a table stays expressible in it."""


class InstalledFormats:
    """The formats that installed packages bring; each is looked for once a process."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all, the default ones first."""
        first = DEFAULT_FORMATS.split(",")
        return tuple(sorted(_offered(), key=lambda each: (each not in first, _place(each, first))))

    def find(self, name: str) -> FormatRules | Refusal:
        """Return a format's rules, or why nobody can ask them."""
        found = _found(name)
        return found if isinstance(found, Refusal) else found.rules

    def load(self) -> None:
        """Import the rules of all, which takes time once."""
        for each in _offered():
            _found(each)


INSTALLED = InstalledFormats()


def forget() -> None:
    """Look for formats anew: something was installed meanwhile."""
    _offered.cache_clear()
    _found.cache_clear()


def _place(name: str, first: list[str]) -> tuple[int, str]:
    return (first.index(name) if name in first else 0, name)


@lru_cache(maxsize=1)
def _offered() -> Mapping[str, tuple[EntryPoint, ...]]:
    # It reads the metadata of all that is installed, and most processes commit nothing.
    from importlib.metadata import entry_points

    return by_name(entry_points(group=FORMATS))


def by_name(offers: Iterable[EntryPoint]) -> dict[str, tuple[EntryPoint, ...]]:
    """Return entry points by name; what one package offers twice counts once.

    A package that is on the path twice offers everything twice.
    """
    found: dict[str, dict[tuple[str, str], EntryPoint]] = {}
    for each in offers:
        found.setdefault(each.name, {}).setdefault((_package(each), each.value), each)
    return {name: tuple(different.values()) for name, different in found.items()}


def _package(offer: EntryPoint) -> str:
    return offer.dist.name.lower().replace("_", "-") if offer.dist is not None else "?"


@lru_cache(maxsize=64)
def _found(name: str) -> Format | Refusal:
    what = f"format {name!r}"
    offers = _offered().get(name, ())
    if not offers:
        return Refusal(
            what,
            "the table is declared to stay expressible in it, and nothing that is installed "
            "brings its rules",
            "install the package that does",
        )
    if len(offers) > 1:
        packages = sorted(f"{_package(each)} ({each.value})" for each in offers)
        return Refusal(
            what,
            f"{len(offers)} installed packages bring rules of that name, {', '.join(packages)}, "
            "and nobody can say whose are meant",
            "uninstall all but one",
        )
    try:
        found: Format = offers[0].load()
    except (ImportError, AttributeError) as error:
        return Refusal(
            what,
            f"its rules ({offers[0].value}) cannot be loaded: {error}",
            f"install {_package(offers[0])} anew",
        )
    return found
