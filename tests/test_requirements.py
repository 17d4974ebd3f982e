"""Old resolvers, which try versions one by one, find the package's requirements."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.metadata import requires, version
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.pypaimon_or_skip import needs_pypaimon

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def capped(texts: Iterable[str]) -> dict[str, Version]:
    """Return the upper bound of each requirement that has one and is for this Python."""
    found: dict[str, Version] = {}
    for each in map(Requirement, texts):
        bounds = [Version(one.version) for one in each.specifier if one.operator in {"<", "<="}]
        if bounds and (each.marker is None or each.marker.evaluate({"extra": ""})):
            found[canonicalize_name(each.name)] = min(bounds)
    return found


def test_pypaimon_is_missing_only_with_a_pyarrow_that_it_does_not_take() -> None:
    # Else hundreds of tests of its readers would be skipped unnoticed.
    taken = capped(EXTRAS["test"]).get("pyarrow")
    is_taken = taken is not None and Version(version("pyarrow")) < taken
    assert find_spec("pypaimon") is not None or not is_taken


def test_what_pypaimon_holds_back_is_said_before_a_resolver_tries_what_is_newer() -> None:
    needs_pypaimon()
    asked = capped((*EXTRAS["spark"], *EXTRAS["newest"], *EXTRAS["test"]))
    held = capped(requires("pypaimon") or [])
    for name in ("fsspec", "pandas", "polars", "pyarrow"):
        assert asked[name] <= held[name], f"pypaimon takes {name} below {held[name]} alone"
    # They are of the same months as their fsspec, and the rest comes with them.
    assert max(asked["s3fs"], asked["gcsfs"]) <= held["fsspec"]
    assert {"aiobotocore", "boto3"} <= asked.keys()
