from __future__ import annotations

import io
import json
import shutil
import tomllib
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from ledger.cli import main

ROOT = Path(__file__).parents[2]


@frozen
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """Run the command in this process, without whatever the environment says about ledgers."""
    _forget_the_environment(monkeypatch, tmp_path_factory)

    def ran(*argv: object) -> Ran:
        code = main([str(each) for each in argv])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return ran


def _forget_the_environment(
    patch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for each in ("LAKELEDGER_URL", "LAKELEDGER_AUTHOR", "LAKELEDGER_PROFILE"):
        patch.delenv(each, raising=False)
    patch.setenv("LAKELEDGER_CONFIG", str(tmp_path_factory.getbasetemp() / "no-profiles.toml"))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the package's metadata on the path, as an installation does; a checkout has none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site" / "lakeledger-0.0.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: lakeledger\nVersion: 0.0.0\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in points.items())])
        for group, points in project["entry-points"].items()
    ]
    (folder / "entry_points.txt").write_text("\n\n".join(groups))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


@pytest.fixture(scope="session")
def shop_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with the table shop.orders (id, day, addr.city), as commands make it."""
    folder = tmp_path_factory.mktemp("shop") / "lake"
    with pytest.MonkeyPatch.context() as patch:
        _forget_the_environment(patch, tmp_path_factory)
        for line in (
            ("init",),
            ("create", "shop"),
            (
                *("create", "shop.orders", "--partition-key", "day"),
                *("--option", "partition.legacy-name=false"),
                *("--column", "id BIGINT NOT NULL", "--column", "day DATE"),
                *("--column", "addr ROW<city STRING>"),
            ),
        ):
            stderr = io.StringIO()
            with redirect_stdout(io.StringIO()), redirect_stderr(stderr):
                assert main([*line, "--ledger", str(folder)]) == 0, stderr.getvalue()
        assert stderr.getvalue() == ""
    return folder


@pytest.fixture
def shop(run: Run, tmp_path: Path, shop_template: Path) -> Run:
    """Return a runner on a ledger with the table shop.orders (id, day, addr.city)."""
    lake = str(shutil.copytree(shop_template, tmp_path / "lake"))

    def there(*argv: object) -> Ran:
        return run(*argv, "--ledger", lake)

    return there
