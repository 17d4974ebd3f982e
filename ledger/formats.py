"""Table formats: the parts that a format provides, and the discovery of installed formats.

The ledger lists no format. A table declares formats by name (`ledger.formats`), and each is found
by one entry point of its package's metadata:

    [project.entry-points."lakeledger.formats"]
    delta = "projections.delta.format:DELTA"

To add one, add a folder with an object like `Format` and that line. Its rules validate every change
of a table that declares it; see `ledger.decide.format_rules` for the rule methods and their
arguments, and `projections.iceberg.rules` for an example. Rules are pure: no clock, no I/O, the
same answer everywhere. Importing them should be cheap: a committing process imports the rules of
the tables that it opens. The other parts are optional, and each is imported on first use.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, Protocol

from ledger.decide.format_rules import FormatRules, Refusal
from ledger.model.errors import MissingDependencyError
from ledger.model.plugins import (
    PluginEntryPoint,
    installed_entry_points,
    missing_plugin_error,
    reload_plugins,
    unloadable_plugin_error,
)
from ledger.state.declared_formats import DEFAULT_FORMATS

FORMATS = "lakeledger.formats"
"""The group of entry points; each maps a format's name to an object like `Format`."""

Part = Literal[
    "kept",
    "project",
    "command",
    "planned",
    "scan",
    "column_names",
    "importer",
    "import_command",
    "engine_files",
    "referenced_files",
    "promoter",
    "engine_manifests",
    "engine_lists",
    "engine_writes",
    "engine_tags",
    "engine_problems",
    "publisher",
]
"""Optional parts of a format besides its rules, as attributes of its object:

Each gets a table as its `TableHandle` and a ledger as its `LedgerHandle`, never a public object.

- `kept`: the `projections.materialising.Materialisation` that keeps a table's files of the format
  up to date, for `ledger.follow` and `lakeledger verify`;
- `project`: a function that projects a table's files up to a version, for `Table.project`;
- `command`: the options of `lakeledger project`: a `projections.command.FormatCommand`;
- `planned`: for `lakeledger plan`, a function from a table's state before and after a change to the
  files that projecting the change would write; its optional attribute `warnings` is a function
  from these states, and a function that returns the table's schemas up to the first of them, to
  known faults of readers;
- `scan`: a function that reads the rows of a table at an instant, for `TableAt.scan`;
- `column_names`: for `Table.add_files`, a function from a table's state and its history
  (`ledger.decide.format_rules.History`) to the names that columns must have in new files where they
  differ from the schema's, by field id;
- `importer`: imports an external table into a ledger, or its new commits, for
  `Ledger.import_table`;
- `import_command`: a function that adds a subcommand to `lakeledger import`;
- `engine_files`: a function from a table imported from the format, a state of it and the ids of
  snapshots to the live files of these snapshots, as its engines' manifests list them, for
  `TableAt.files`, `TableAt.plan` and `lakeledger verify --data`;
- `referenced_files`: for `lakeledger maintain`, a function from a state of a table imported from
  the format, and a function that reads a file by its URL, to the URLs of all files that the state
  references besides those in the log, each after the files that only it lists;
- `promoter`: transfers ownership of an imported table to the ledger, for `Ledger.promote`;
- `engine_manifests`: reads its engines' manifest lists and manifests for statistics: a
  `projections.statistics.engine_files.EngineManifests`;
- `engine_lists`: reads them for the projection of another format: a
  `projections.manifest_files.engine_lists.EngineLists`;
- `engine_writes`: writes data and branches to a table whose data the format's engines commit: a
  `ledger.engine_writes.EngineWrites`;
- `engine_problems`: for `lakeledger verify --data`, a function from a table imported from the
  format and a state of it to sentences about what its engines' manifests contradict in the log;
- `engine_tags`: creates, replaces and deletes tags of a table whose data the format's engines
  commit, and whose tags they keep in its folder: a `ledger.engine_writes.TagCall`;
- `publisher`: publishes statistics to the format's readers: a
  `projections.statistics.publishing.Publisher`, for `lakeledger stats --publish`.
"""


class Format(Protocol):
    """A table format; see `Part` for the optional attributes."""

    @property
    def rules(self) -> FormatRules:
        """Return the rules that keep a table expressible in the format."""


class InstalledFormats:
    """Formats of the installed packages; each is looked up once per process."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all formats, the default ones first."""
        first = DEFAULT_FORMATS.split(",")
        offered = _offers_by_format()
        return tuple(
            sorted(offered, key=lambda each: (each not in first, _sort_position(each, first)))
        )

    def find(self, name: str) -> FormatRules | Refusal:
        """Return a format's rules, or the reason that they cannot be loaded."""
        return _load_rules(name, tuple(sys.path))

    def load(self) -> None:
        """Import the rules of the default formats; others are imported on first use."""
        for each in DEFAULT_FORMATS.split(","):
            self.find(each)


INSTALLED = InstalledFormats()


def forget() -> None:
    """Clear the cache of installed formats, so that the next lookup reads entry points again."""
    reload_plugins()
    _offers_on_path.cache_clear()
    _load_format.cache_clear()
    _load_rules.cache_clear()


def having(what: Part) -> list[str]:
    """Return the names of formats that have a part, and of those that cannot be loaded."""
    return [each for each in sorted(_offers_by_format()) if _has_part(each, what)]


def part(name: str, what: Part) -> Any:
    """Return a part of a format.

    Raises:
        MissingDependencyError: No installed package provides it, or it cannot be imported.
    """
    offered = _offers_by_format().get(name, ())
    found = _load_format(name, offered)
    if isinstance(found, Refusal):
        if not offered:
            raise missing_plugin_error(name, set(having(what)))
        raise MissingDependencyError(f"{found.what}: {found.rule}; {found.alternative}")
    if what not in dir(found):
        if what in _OF_FILES:
            others = ", ".join(sorted(having(what)))
            raise MissingDependencyError(f"{name} has no files of its own; these do: {others}")
        raise missing_plugin_error(name, set(having(what)))
    try:
        return getattr(found, what)
    except ImportError as error:
        raise unloadable_plugin_error(offered[0], error) from error


_OF_FILES = frozenset({"kept", "project", "command"})


def part_if_any(name: str, what: Part) -> Any | None:
    """Return a part of a format; None where no installed package provides it.

    Raises:
        MissingDependencyError: It cannot be imported.
    """
    found = _load_format(name, _offers_by_format().get(name, ()))
    return None if isinstance(found, Refusal) or what not in dir(found) else part(name, what)


def _offers_by_format() -> Mapping[str, tuple[PluginEntryPoint, ...]]:
    return _offers_on_path(tuple(sys.path))


@lru_cache(maxsize=1)
def _offers_on_path(path: tuple[str, ...]) -> Mapping[str, tuple[PluginEntryPoint, ...]]:
    del path
    return by_name(installed_entry_points(FORMATS))


def by_name(points: Iterable[PluginEntryPoint]) -> dict[str, tuple[PluginEntryPoint, ...]]:
    """Return entry points by name; duplicates from one package count once.

    A package that is on the path twice provides all its entry points twice.
    """
    found: dict[str, dict[tuple[str, str], PluginEntryPoint]] = {}
    for each in points:
        found.setdefault(each.name, {}).setdefault((each.package, each.value), each)
    return {name: tuple(different.values()) for name, different in found.items()}


def _has_part(name: str, what: Part) -> bool:
    found = _load_format(name, _offers_by_format()[name])
    # Not `hasattr`, which would import the part.
    return isinstance(found, Refusal) or what in dir(found)


def _sort_position(name: str, first: list[str]) -> tuple[int, str]:
    return (first.index(name) if name in first else 0, name)


@lru_cache(maxsize=64)
def _load_format(name: str, offered: tuple[PluginEntryPoint, ...]) -> Format | Refusal:
    what = f"format {name!r}"
    if not offered:
        return Refusal(
            what,
            "the table is declared to stay expressible in it, and no installed package "
            "provides its rules",
            "install the package that does",
        )
    if len(offered) > 1:
        packages = sorted(f"{each.package} ({each.value})" for each in offered)
        return Refusal(
            what,
            f"{len(offered)} installed packages provide rules of that name, {', '.join(packages)}, "
            "and which are meant is ambiguous",
            "uninstall all but one",
        )
    try:
        found: Format = offered[0].load()
    except (ImportError, AttributeError) as error:
        return _unloadable_refusal(name, offered[0], error)
    return found


# Called on every commit; hashing the parts of a path is faster than reading entry points.
@lru_cache(maxsize=64)
def _load_rules(name: str, path: tuple[str, ...]) -> FormatRules | Refusal:
    offered = _offers_on_path(path).get(name, ())
    found = _load_format(name, offered)
    try:
        return found if isinstance(found, Refusal) else found.rules
    except (ImportError, AttributeError) as error:
        return _unloadable_refusal(name, offered[0], error)


def _unloadable_refusal(name: str, offer: PluginEntryPoint, error: Exception) -> Refusal:
    return Refusal(
        f"format {name!r}",
        f"its rules ({offer.value}) cannot be loaded: {error}",
        f"reinstall {offer.package}",
    )
