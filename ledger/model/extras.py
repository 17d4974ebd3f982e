"""Commands that install the optional dependencies of this package.

An index may not have this package, or not this version of it, so the command names the place that
it was installed from: a checkout, a file or a repository.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ledger.model.errors import MissingDependencyError

_PACKAGE = "lakeledger"


def missing_extra_error(problem: str, extra: str) -> MissingDependencyError:
    """Return the error for a dependency that is not installed, with the command that installs it.

    Args:
        problem: What needs the dependency.
        extra: The extra of this package that has it.
    """
    return MissingDependencyError(f"{problem}: {install_command(extra)}")


def require_pandas() -> None:
    """Raise unless pandas is installed, which Arrow would miss without a word about extras.

    Raises:
        MissingDependencyError: It is not installed.
    """
    try:
        import pandas as pd  # noqa: F401 - whether it is there
    except ImportError as error:
        raise missing_extra_error("to_pandas needs pandas", "pandas") from error


def install_command(extra: str) -> str:
    """Return the pip command that installs an extra from where this package was installed.

    Example:
        >>> install_command("duckdb").startswith("pip install ")
        True
    """
    from importlib.metadata import PackageNotFoundError, distribution

    code = Path(__file__).resolve().parents[2]
    if (code / "pyproject.toml").is_file():
        return f'pip install -e "{code}[{extra}]"'
    try:
        origin = distribution(_PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        origin = None
    return f'pip install "{_requirement(extra, None if origin is None else json.loads(origin))}"'


def _requirement(extra: str, origin: dict[str, Any] | None) -> str:
    """Return the requirement for an extra, from pip's record of the origin (PEP 610).

    Example:
        >>> _requirement("s3", None)
        'lakeledger[s3]'
        >>> _requirement("s3", {"url": "file:///code", "dir_info": {}})
        'lakeledger[s3] @ file:///code'
        >>> _requirement("s3", {"url": "https://host/code.git", "vcs_info": {"vcs": "git"}})
        'lakeledger[s3] @ git+https://host/code.git'
    """
    if origin is None:
        return f"{_PACKAGE}[{extra}]"
    prefix = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return f"{_PACKAGE}[{extra}] @ {prefix}{origin['url']}"
