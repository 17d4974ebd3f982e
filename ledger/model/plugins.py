"""Discovery of entry points of other packages.

`ledger` never imports the projections. Their package metadata declares entry points by group and
name, which are loaded on demand. `ledger.formats` finds the formats through this module. Rules of
the decision core do not use it, since it reads folders.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ledger.model.errors import MissingDependencyError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class PluginEntryPoint(NamedTuple):
    """Entry point of an installed package.

    Attributes:
        name: The entry point's name.
        value: The object's location, such as `projections.delta.format:DELTA`.
        package: The normalized name of the package, in lower case and with hyphens.
    """

    name: str
    value: str
    package: str

    def load(self) -> Any:
        """Import and return the object.

        Raises:
            ImportError: The module is missing, or cannot be imported.
            AttributeError: The module has no such attribute.
        """
        from importlib.metadata import EntryPoint

        return EntryPoint(self.name, self.value, "").load()


def installed_entry_points(group: str) -> tuple[PluginEntryPoint, ...]:
    """Return the entry points of installed packages in a group.

    They are cached for the process until `sys.path` changes or `reload_plugins` is called.
    """
    return _find_entry_points(group, tuple(map(str, sys.path)))


def reload_plugins() -> None:
    """Clear the cache of entry points, after a package was installed."""
    _find_entry_points.cache_clear()


def load(group: str, name: str) -> Any:
    """Return the object of an entry point, by group and name.

    Raises:
        MissingDependencyError: No installed package has it, or it cannot be imported.
    """
    offered = next((each for each in installed_entry_points(group) if each.name == name), None)
    if offered is None:
        raise missing_plugin_error(name, names(group))
    return _load_entry_point(offered)


def names(group: str) -> set[str]:
    """Return the names of the entry points in a group."""
    return {each.name for each in installed_entry_points(group)}


def load_all_plugins(group: str) -> dict[str, Any]:
    """Return the objects of all entry points in a group, by name.

    Raises:
        MissingDependencyError: One of them cannot be imported.
    """
    # A package that is on the path twice has each entry point twice.
    offered = {each.name: each for each in installed_entry_points(group)}
    return {name: _load_entry_point(each) for name, each in sorted(offered.items())}


def missing_plugin_error(name: str, others: set[str]) -> MissingDependencyError:
    """Return the error for a missing entry point, with the names that exist."""
    instead = f", but {', '.join(sorted(others))}" if others else ""
    return MissingDependencyError(
        f"no installed package provides {name!r}{instead}; install the package that does: "
        "pip install lakeledger (in a checkout: pip install -e .)"
    )


def unloadable_plugin_error(offered: PluginEntryPoint, error: Exception) -> MissingDependencyError:
    """Return the error for an entry point that cannot be imported."""
    return MissingDependencyError(
        f"{offered.name} ({offered.value}) cannot be loaded: {error}; reinstall lakeledger"
    )


@lru_cache(maxsize=32)
def _find_entry_points(group: str, path: tuple[str, ...]) -> tuple[PluginEntryPoint, ...]:
    del path
    # Imported late: processes that only read need no entry points.
    from importlib.metadata import entry_points

    return tuple(
        PluginEntryPoint(each.name, each.value, _package_name(each))
        for each in entry_points(group=group)
    )


def _package_name(point: EntryPoint) -> str:
    # A metadata folder without a METADATA file has no name.
    name = getattr(point.dist, "name", None) or ""
    return re.sub("[-_.]+", "-", name).lower()


def _load_entry_point(offered: PluginEntryPoint) -> Any:
    try:
        return offered.load()
    except (ImportError, AttributeError) as error:
        raise unloadable_plugin_error(offered, error) from error
