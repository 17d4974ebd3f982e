"""LazyFormat: a format's parts, each imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyFormat:
    """A table format, as named by an entry point of `lakeledger.formats`.

    Example:
        >>> PAPER = LazyFormat(rules="projections.paimon.rules:RULES")
        >>> "rules" in dir(PAPER), PAPER.rules.name
        (True, 'paimon')
    """

    def __init__(self, **parts: str) -> None:
        """Set the import paths of the parts.

        Args:
            **parts: Import path `module:name` of a part, by its name in `ledger.formats`.
        """
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._parts:
            raise AttributeError(name)
        module, _, attribute = self._parts[name].partition(":")
        found = getattr(import_module(module), attribute)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parts})
