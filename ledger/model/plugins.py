"""Discovery of entry points of other packages.

`ledger` never imports the projections. They say in their package's metadata what they offer, by
group and name, and it is loaded when it is needed. Formats are found by `ledger.formats`, which
asks here, too. No rule asks here: it reads folders.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ledger.model.errors import MissingDependencyError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Offer(NamedTuple):
    """What a package offers.

    Attributes:
        name: Under which.
        value: Where it is, such as `projections.delta.format:DELTA`.
        package: Whose it is, in lower case and with hyphens.
    """

    name: str
    value: str
    package: str

    def load(self) -> Any:
        """Import it.

        Raises:
            ImportError: Its module is not there, or cannot be imported.
            AttributeError: Its module has no such thing.
        """
        from importlib.metadata import EntryPoint

        return EntryPoint(self.name, self.value, "").load()


def offers(group: str) -> tuple[Offer, ...]:
    """Return what installed packages offer in a group.

    It is looked for once a process, and again on another `sys.path`, or after `look_anew`.
    """
    return _offers(group, tuple(map(str, sys.path)))


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


def unloadable(offered: Offer, error: Exception) -> MissingDependencyError:
    """Return the error that something is offered and cannot be imported."""
    return MissingDependencyError(
        f"{offered.name} ({offered.value}) cannot be loaded: {error}; install lakeledger anew"
    )


@lru_cache(maxsize=32)
def _offers(group: str, path: tuple[str, ...]) -> tuple[Offer, ...]:
    del path
    # Processes that only read need no entry points.
    from importlib.metadata import entry_points

    return tuple(Offer(each.name, each.value, _package(each)) for each in entry_points(group=group))


def _package(point: EntryPoint) -> str:
    # A folder of metadata without METADATA has no name.
    name = getattr(point.dist, "name", None) or ""
    return re.sub("[-_.]+", "-", name).lower()


def _loaded(offered: Offer) -> Any:
    try:
        return offered.load()
    except (ImportError, AttributeError) as error:
        raise unloadable(offered, error) from error
