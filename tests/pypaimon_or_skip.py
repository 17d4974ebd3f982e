"""pypaimon, an independent reader and writer of Paimon's tables: a test that asks for it needs it.

It takes old pyarrow alone, of which none is built for Python 3.14.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NoReturn

import pytest

__all__ = ["AtomicType", "CatalogFactory", "Schema", "SchemaChange", "needs_pypaimon"]


def needs_pypaimon() -> None:
    """Skip the test that calls this where it is not installed."""
    if find_spec("pypaimon") is None:
        pytest.skip("pypaimon is not here; it takes no new pyarrow", allow_module_level=True)


class _Missing:
    """The substitute for each of its names where it is not installed."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            needs_pypaimon()
        # Test discovery reads attributes of each name of a module that are not pypaimon's, either.
        raise AttributeError(name)

    def __call__(self, *_: Any) -> NoReturn:
        needs_pypaimon()
        raise TypeError("a name of pypaimon's that is missing")


try:
    from pypaimon import CatalogFactory, Schema
    from pypaimon.schema.data_types import AtomicType
    from pypaimon.schema.schema_change import SchemaChange
except ModuleNotFoundError:
    AtomicType = CatalogFactory = Schema = SchemaChange = _Missing()
