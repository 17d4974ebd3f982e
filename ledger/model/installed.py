"""What other packages bring, found by the entry points of their metadata.

`ledger` never imports the projections. They say in their package's metadata what they offer, by
group and name, and it is loaded when it is needed. Formats are found by `ledger.formats`, which
asks here, too. No rule asks here: it reads folders.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from ledger.model.errors import MissingDependencyError

_ENTRY_POINTS: Final = "entry_points.txt"


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
        module, _, attribute = self.value.partition("[")[0].partition(":")
        found = import_module(module.strip())
        return attrgetter(attribute.strip())(found) if attribute.strip() else found


def offers(group: str) -> tuple[Offer, ...]:
    """Return what installed packages offer in a group.

    It is looked for once a process, and again on another `sys.path`, or after `look_anew`.
    """
    return _offers(tuple(map(str, sys.path))).get(group, ())


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


@lru_cache(maxsize=4)
def _offers(path: tuple[str, ...]) -> Mapping[str, tuple[Offer, ...]]:
    texts: dict[str, str] = {}
    for package, text in _in_folders(path) if _are_folders(path) else _as_python_finds():
        # The first on the path is the one that is imported.
        texts.setdefault(package, text)
    found: dict[str, list[Offer]] = {}
    for package, text in texts.items():
        for group, offer in _listed(text, package):
            found.setdefault(group, []).append(offer)
    return {group: tuple(each) for group, each in found.items()}


def _are_folders(path: tuple[str, ...]) -> bool:
    """Whether all that is installed lies in folders of the path."""
    finds = (each for each in sys.meta_path if hasattr(each, "find_distributions"))
    return all(each is PathFinder for each in finds) and not any(
        each.endswith(".egg") or Path(each).is_file() for each in path
    )


def _in_folders(path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield what `_as_python_finds` does, without the library, which parses mail.

    Importing that takes half as long as all else before a first commit of a process.
    """
    for folder in path:
        there: list[Path] = []
        with suppress(OSError):
            there = list(Path(folder).iterdir())
        for each in there:
            if each.name.lower().endswith((".dist-info", ".egg-info")):
                text = ""
                with suppress(OSError):
                    text = each.joinpath(_ENTRY_POINTS).read_text(encoding="utf-8")
                yield _package(each.stem.partition("-")[0]), text


def _as_python_finds() -> Iterator[tuple[str, str]]:
    """Yield each package that is installed, with its entry points as they are written."""
    from importlib.metadata import distributions

    for each in distributions():
        yield _package(each.name), each.read_text(_ENTRY_POINTS) or ""


def _package(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _listed(text: str, package: str) -> Iterator[tuple[str, Offer]]:
    """Yield the groups and what is offered in them."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, value = map(str.strip, line.partition("="))
            yield group, Offer(name, value, package)


def _loaded(offered: Offer) -> Any:
    try:
        return offered.load()
    except (ImportError, AttributeError) as error:
        raise unloadable(offered, error) from error
