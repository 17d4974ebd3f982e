"""Version of lakeledger, read without any library."""

from __future__ import annotations


def version() -> str:
    """Return the version of lakeledger that is installed."""
    from importlib import metadata

    try:
        return metadata.version("lakeledger")
    except metadata.PackageNotFoundError:
        return "not installed"
