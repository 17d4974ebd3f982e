"""What other packages bring, found by the entry points of their metadata.

`ledger` never imports the projections. They say in their package's metadata what they offer, by
group and name, and it is loaded when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ledger.model.errors import MissingDependencyError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PROJECTIONS = "lakeledger.projections"
"""By a format's name, a function that brings a table's files of that format up to a version."""

PLANS = "lakeledger.plans"
"""By a format's name, a function from a table's state before and after a change to the files that
projecting the change would write; as its attribute `warnings`, if it has one, a function from the
same to what readers get wrong then."""

IMPORTERS = "lakeledger.importers"
"""By a format's name, an import of its tables: `plan` says what would come of one, `run` brings it
into a ledger, or what is new."""

READERS = "lakeledger.readers"
"""By a format's name, a function that scans the rows of a table at an instant."""


def load(group: str, name: str) -> Any:
    """Return what an installed package offers under a name.

    Raises:
        MissingDependencyError: No installed package offers it, or it cannot be imported.
    """
    offered = next((each for each in _entry_points(group) if each.name == name), None)
    if offered is None:
        raise MissingDependencyError(
            f"nothing that is installed gives {name!r}{_instead(group)}; install the package "
            "itself, which brings it: pip install lakeledger (in a checkout: pip install -e .)"
        )
    return _loaded(offered)


def names(group: str) -> set[str]:
    """Return the names under which installed packages offer something."""
    return {each.name for each in _entry_points(group)}


def load_all(group: str) -> dict[str, Any]:
    """Return all that installed packages offer in a group, by name.

    Raises:
        MissingDependencyError: Something cannot be imported.
    """
    # A package that is on the path twice offers everything twice.
    offered = {each.name: each for each in _entry_points(group)}
    return {name: _loaded(each) for name, each in sorted(offered.items())}


def _instead(group: str) -> str:
    others = sorted(names(group))
    return f", but {', '.join(others)}" if others else ""


def _entry_points(group: str) -> Iterable[EntryPoint]:
    # It reads the metadata of all that is installed, and few commands need any.
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _loaded(offered: EntryPoint) -> Any:
    try:
        return offered.load()
    except (ImportError, AttributeError) as error:
        raise MissingDependencyError(
            f"{offered.name} ({offered.value}) cannot be loaded: {error}; install lakeledger anew"
        ) from error
