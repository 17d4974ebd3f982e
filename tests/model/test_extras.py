"""Messages about missing dependencies name the place that the package was installed from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ledger.model.extras import install_command
from tests.programs import ROOT, run

_INSTALL = "import sys; sys.path.insert(0, sys.argv[1]); from ledger.model import extras; "


def test_a_checkout_is_installed_with_the_extra_in_place() -> None:
    assert install_command("duckdb") == f'pip install -e "{ROOT}[duckdb]"'


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, "lakeledger[duckdb]"),
        ({"url": "file:///code", "dir_info": {}}, "lakeledger[duckdb] @ file:///code"),
        (
            {"url": "https://host/code.git", "vcs_info": {"vcs": "git", "commit_id": "1" * 40}},
            "lakeledger[duckdb] @ git+https://host/code.git",
        ),
        (
            {"url": "file:///dist/lakeledger-1-py3-none-any.whl", "archive_info": {}},
            "lakeledger[duckdb] @ file:///dist/lakeledger-1-py3-none-any.whl",
        ),
    ],
)
def test_an_installed_package_is_named_by_where_it_came_from(
    tmp_path: Path, origin: dict[str, Any] | None, requirement: str
) -> None:
    shutil.copytree(
        ROOT / "ledger", tmp_path / "ledger", ignore=shutil.ignore_patterns("docs", "quickstart")
    )
    about = tmp_path / "lakeledger-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lakeledger\nVersion: 1\n")
    if origin is not None:
        (about / "direct_url.json").write_text(json.dumps(origin))

    done = run("-c", f"{_INSTALL}print(extras.install_command('duckdb'))", tmp_path)

    assert (done.stdout.strip(), done.stderr) == (f'pip install "{requirement}"', "")
