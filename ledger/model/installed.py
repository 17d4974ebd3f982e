"""What other packages bring, found by the entry points of their metadata.

`ledger` never imports the projections. They say in their package's metadata what they offer, by
group and name, and it is loaded when it is needed. Formats are found by `ledger.formats`, which
asks here, too.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ledger.model.errors import MissingDependencyError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def offers(group: str) -> tuple[EntryPoint, ...]:
    """Return what installed packages offer in a group.

    It is looked for once a process, and again on another `sys.path`, or after `look_anew`.
    """
    return _offers(group, tuple(sys.path))


def look_anew() -> None:
    """Look for everything anew: something was installed meanwhile."""
    _offers.cache_clear()


def load(group: str, name: str) -> Any:
    """Return what an installed package offers under a name.

    Raises:
        MissingDependencyError: No installed package offers it, or it cannot be imported.
    """
    offered = next((each for each in offers(group) if each.name == name), None)
    if offered is None:
        raise missing(name, names(group))
    return _loaded(offered)


def names(group: str) -> set[str]:
    """Return the names under which installed packages offer something."""
    return {each.name for each in offers(group)}


def load_all(group: str) -> dict[str, Any]:
    """Return all that installed packages offer in a group, by name.

    Raises:
        MissingDependencyError: Something cannot be imported.
    """
    # A package that is on the path twice offers everything twice.
    offered = {each.name: each for each in offers(group)}
    return {name: _loaded(each) for name, each in sorted(offered.items())}


def missing(name: str, others: set[str]) -> MissingDependencyError:
    """Return the error that nothing offers a name, though there may be others."""
    instead = f", but {', '.join(sorted(others))}" if others else ""
    return MissingDependencyError(
        f"nothing that is installed gives {name!r}{instead}; install the package "
        "itself, which brings it: pip install lakeledger (in a checkout: pip install -e .)"
    )


def unloadable(offered: EntryPoint, error: Exception) -> MissingDependencyError:
    """Return the error that something is offered and cannot be imported."""
    return MissingDependencyError(
        f"{offered.name} ({offered.value}) cannot be loaded: {error}; install lakeledger anew"
    )


@lru_cache(maxsize=32)
def _offers(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    del path
    # It reads the metadata of all that is installed, and few commands need any.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _loaded(offered: EntryPoint) -> Any:
    try:
        return offered.load()
    except (ImportError, AttributeError) as error:
        raise unloadable(offered, error) from error
