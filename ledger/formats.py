"""Format: what a table format brings, and how those that are installed are found.

The ledger lists no format. A table declares formats by name (`ledger.formats`), and each is found
by one entry point of its package's metadata:

    [project.entry-points."lakeledger.formats"]
    delta = "projections.delta.format:DELTA"

To add one, add a folder with an object like `Format` and that line. Its rules are asked whenever a
change of a table that declares it is decided; see `ledger.decide.format_rules` for the
questions and the values that they carry, and `projections.iceberg.rules` for an example. They are
pure: no clock, no I/O, the same answer everywhere. Importing them should be cheap: a process that
commits imports those of the tables that it meets. Its other parts are each imported when they are
asked for, and a format has those that it has.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, Protocol

from ledger.decide.format_rules import FormatRules, Refusal
from ledger.model.errors import MissingDependencyError
from ledger.model.plugins import Offer, look_anew, missing, offers, unloadable
from ledger.state.declared_formats import DEFAULT_FORMATS

FORMATS = "lakeledger.formats"
"""The group of entry points: by a format's name, an object like `Format`."""

Part = Literal[
    "kept",
    "project",
    "command",
    "planned",
    "scan",
    "importer",
    "import_command",
    "engine_files",
    "promoter",
    "engine_manifests",
    "publisher",
]
"""What a format may bring beside its rules, as attributes of its object:

Each gets a table as its `TableHandle` and a ledger as its `LedgerHandle`, never a public object.

- `kept`: what keeps a table's files of the format: a `projections.materialising.Materialisation`,
  which `ledger.follow` and `lakeledger verify` ask;
- `project`: a function that brings a table's files up to a version, for `Table.project`;
- `command`: what `lakeledger project` takes of it: a `projections.command.FormatCommand`;
- `planned`: for `lakeledger plan`, a function from a table's state before and after a change to the
  files that projecting the change would write; as its attribute `warnings`, if it has one, a
  function from the same to what readers get wrong then;
- `scan`: a function that reads the rows of a table at an instant, for `TableAt.scan`;
- `importer`: what brings a table of others into a ledger, or what is new: for
  `Ledger.import_table`;
- `import_command`: a function that adds to the family `lakeledger import`;
- `engine_files`: a function from a table that was born in the format and a state of it to the live
  files that its engines' manifests list, for `TableAt.files` and `TableAt.plan`;
- `promoter`: what lets the ledger own a table that others owned, for `Ledger.promote`;
- `engine_manifests`: what its engines' manifest lists and manifests say to the statistics: a
  `projections.statistics.engine_files.EngineManifests`;
- `publisher`: what lets its readers find statistics: a
  `projections.statistics.publishing.Publisher`, for `lakeledger stats --publish`.
"""


class Format(Protocol):
    """A table format; see `Part` for what its object may have besides."""

    @property
    def rules(self) -> FormatRules:
        """Whether a table stays expressible in it."""


class InstalledFormats:
    """The formats that installed packages bring; each is looked for once a process."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all, the default ones first."""
        first = DEFAULT_FORMATS.split(",")
        offered = _offered()
        return tuple(sorted(offered, key=lambda each: (each not in first, _place(each, first))))

    def find(self, name: str) -> FormatRules | Refusal:
        """Return a format's rules, or why nobody can ask them."""
        return _rules(name, tuple(sys.path))

    def load(self) -> None:
        """Import the rules that most tables ask; those of others are when one is met."""
        for each in DEFAULT_FORMATS.split(","):
            self.find(each)


INSTALLED = InstalledFormats()


def forget() -> None:
    """Look for formats anew: something was installed meanwhile."""
    look_anew()
    _by_name.cache_clear()
    _found.cache_clear()
    _rules.cache_clear()


def having(what: Part) -> list[str]:
    """Return the names of the formats that bring a part, and of those that nobody can ask."""
    return [each for each in sorted(_offered()) if _has(each, what)]


def part(name: str, what: Part) -> Any:
    """Return a part of a format.

    Raises:
        MissingDependencyError: Nothing that is installed brings it, or it cannot be imported.
    """
    offered = _offered().get(name, ())
    found = _found(name, offered)
    if isinstance(found, Refusal):
        if not offered:
            raise missing(name, set(having(what)))
        raise MissingDependencyError(f"{found.what}: {found.rule}; {found.alternative}")
    if what not in dir(found):
        if what in _OF_FILES:
            others = ", ".join(sorted(having(what)))
            raise MissingDependencyError(f"{name} has no files of its own; {others} have")
        raise missing(name, set(having(what)))
    try:
        return getattr(found, what)
    except ImportError as error:
        raise unloadable(offered[0], error) from error


_OF_FILES = frozenset({"kept", "project", "command"})


def part_if_any(name: str, what: Part) -> Any | None:
    """Return a part of a format; None where nothing that is installed brings it.

    Raises:
        MissingDependencyError: It cannot be imported.
    """
    found = _found(name, _offered().get(name, ()))
    return None if isinstance(found, Refusal) or what not in dir(found) else part(name, what)


def _offered() -> Mapping[str, tuple[Offer, ...]]:
    return _by_name(tuple(sys.path))


@lru_cache(maxsize=1)
def _by_name(path: tuple[str, ...]) -> Mapping[str, tuple[Offer, ...]]:
    del path
    return by_name(offers(FORMATS))


def by_name(points: Iterable[Offer]) -> dict[str, tuple[Offer, ...]]:
    """Return entry points by name; what one package offers twice counts once.

    A package that is on the path twice offers everything twice.
    """
    found: dict[str, dict[tuple[str, str], Offer]] = {}
    for each in points:
        found.setdefault(each.name, {}).setdefault((each.package, each.value), each)
    return {name: tuple(different.values()) for name, different in found.items()}


def _has(name: str, what: Part) -> bool:
    found = _found(name, _offered()[name])
    # Not `hasattr`, which would import the part.
    return isinstance(found, Refusal) or what in dir(found)


def _place(name: str, first: list[str]) -> tuple[int, str]:
    return (first.index(name) if name in first else 0, name)


@lru_cache(maxsize=64)
def _found(name: str, offered: tuple[Offer, ...]) -> Format | Refusal:
    what = f"format {name!r}"
    if not offered:
        return Refusal(
            what,
            "the table is declared to stay expressible in it, and nothing that is installed "
            "brings its rules",
            "install the package that does",
        )
    if len(offered) > 1:
        packages = sorted(f"{each.package} ({each.value})" for each in offered)
        return Refusal(
            what,
            f"{len(offered)} installed packages bring rules of that name, {', '.join(packages)}, "
            "and nobody can say whose are meant",
            "uninstall all but one",
        )
    try:
        found: Format = offered[0].load()
    except (ImportError, AttributeError) as error:
        return _unloadable(name, offered[0], error)
    return found


# Every commit asks, and what a path consists of is hashed faster than entry points.
@lru_cache(maxsize=64)
def _rules(name: str, path: tuple[str, ...]) -> FormatRules | Refusal:
    offered = _by_name(path).get(name, ())
    found = _found(name, offered)
    try:
        return found if isinstance(found, Refusal) else found.rules
    except (ImportError, AttributeError) as error:
        return _unloadable(name, offered[0], error)


def _unloadable(name: str, offer: Offer, error: Exception) -> Refusal:
    return Refusal(
        f"format {name!r}",
        f"its rules ({offer.value}) cannot be loaded: {error}",
        f"install {offer.package} anew",
    )
