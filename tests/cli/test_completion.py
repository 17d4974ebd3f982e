"""Completions that a shell gets for the Tab key."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import ledger
from ledger.cli import main


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    lake = ledger.open(tmp_path / "lake")
    lake.create_database("shop")
    for name in ("orders", "offers"):
        table = lake.create_table(f"shop.{name}", {"id": "INT"})
        table.append([ledger.FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9)])
        table.create_tag(f"first-{name}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return str(tmp_path / "lake")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["head", "sh"], ["shop.offers", "shop.orders"]),
        (["show", "shop.or"], ["shop.offers", "shop.orders"]),
        (["log", ""], ["shop.offers", "shop.orders"]),
        (["project", "iceberg", ""], ["shop.offers", "shop.orders"]),
        (["show", "shop.orders", "--tag", ""], ["first-orders"]),
        (["show", "shop.nowhere", "--tag", ""], []),
    ],
)
def test_names_are_those_of_the_ledger(
    root: str,
    words: list[str],
    found: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LAKELEDGER_URL", root)
    assert main(["__complete", *words]) == 0

    shown = capsys.readouterr().out.partition("\x1fbegin\n")[2].splitlines()
    assert [each.partition("\t")[0] for each in shown] == found


def test_a_failed_lookup_completes_to_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["__complete", "head", "--ledger", "s3://", ""]) == 0

    out, err = capsys.readouterr()
    assert (out.partition("\x1fbegin\n")[2], err) == ("", "")


def test_bash_completes_by_the_script_that_was_installed(root: str, tmp_path: Path) -> None:
    assert main(["--install-completion", "bash"]) == 0

    script = tmp_path / "home/.local/share/bash-completion/completions/lakeledger"
    asked = (
        f"source {script}; COMP_WORDS=(lakeledger sh); COMP_CWORD=1; _lakeledger;"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(
        ["bash", "-c", asked],
        env={**os.environ, "LAKELEDGER_URL": root},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert ran.stdout.split() == ["show"]


def test_the_fish_and_zsh_instructions_name_the_file_and_the_setup_it_needs(
    root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del root
    found = {}
    for shell in ("fish", "zsh"):
        assert main(["--install-completion", shell]) == 0
        found[shell] = capsys.readouterr().out
    home = tmp_path / "home"
    assert str(home / ".config/fish/completions/lakeledger.fish") in found["fish"]
    assert "compinit" not in found["fish"]
    assert "autoload -Uz compinit && compinit" in found["zsh"]
    script = (home / ".zsh/completions/_cyclopts_lakeledger").read_text()
    assert script.startswith("#compdef lakeledger")


def test_an_unsupported_shell_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--install-completion", "tcsh"]) == 2
    assert "unsupported shell tcsh; choose one of: bash" in capsys.readouterr().err
