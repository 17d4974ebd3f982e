"""Ledgers by name, from a file of the user's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ledger import open as open_ledger
from tests.cli.conftest import Run


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """Return the file: `work` is used when nothing else is said, and `home` is there."""
    del run
    file = tmp_path / "lakeledger.toml"
    file.write_text(
        'profile = "work"\n'
        f'[work]\nledger = "{tmp_path}/work"\nauthor = "ada"\n'
        f'[home]\nledger = "{tmp_path}/home"\n'
    )
    monkeypatch.setenv("LAKELEDGER_CONFIG", str(file))
    return file


def where(run: Run, *options: object) -> str:
    """Return the folder of the ledger that a command works on."""
    url: str = run("init", *options, "--output", "json").document["url"]
    return url.rpartition("/")[2]


def test_a_profile_gives_the_url_of_the_ledger_and_the_author(run: Run, profiles: Path) -> None:
    assert where(run) == "work"
    assert run("create", "shop").code == 0
    assert run("create", "inn", "--author", "bob").code == 0

    commits = list(open_ledger(str(profiles.parent / "work")).events())
    assert [each.transactions[0].author for each in commits[-2:]] == ["ada", "bob"]


def test_options_override_the_environment_and_the_environment_overrides_the_file(
    run: Run, profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = profiles.parent / "other"

    assert where(run, "--profile", "home") == "home"
    assert where(run, "--ledger", other) == "other"
    monkeypatch.setenv("LAKELEDGER_URL", str(profiles.parent / "set"))
    assert where(run) == "set"
    assert where(run, "--profile", "home") == "home"
    monkeypatch.delenv("LAKELEDGER_URL")
    monkeypatch.setenv("LAKELEDGER_PROFILE", "home")
    assert where(run) == "home"
    assert where(run, "--ledger", other) == "other"
    assert where(run, other) == "other"


def test_a_profile_gives_what_its_store_needs(run: Run, profiles: Path) -> None:
    profiles.write_text(
        '[s3]\nledger = "s3://bucket/lake"\n'
        'storage-options = { endpoint_url = "http://127.0.0.1:9", key = "k", secret = "s" }\n'
    )
    ran = run("ls", "--profile", "s3")

    assert ran.code != 0
    assert "cannot read '_ledger/ledger.json' at http://127.0.0.1:9: " in ran.err
    # A client that tries again by itself may give up before the wait for it does.
    assert re.search(r"no answer came( within 6 s)?; check the network", ran.err)
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", ["--profile", "wrk"], "has no profile 'wrk'; did you mean 'work'"),
        ("", ["--profile", "work", "--ledger", "x"], "give one of --ledger x and --profile work"),
        ('[work]\nurl = "x"\n', ["--profile", "work"], "unknown key 'url'"),
        ("[work]\n", ["--profile", "work"], "has no root of the ledger"),
        ('[work]\nledger = "lake"\n', ["--profile", "work"], "lake is a relative path"),
        ('[work]\nledger = "/x"\nauthor = 1\n', ["--profile", "work"], "author must be a string"),
        ("[work\n", ["--profile", "work"], "cannot be read: "),
        ('profile = "none"\n', [], "has no profile 'none'; it has no profiles yet"),
    ],
)
def test_mistakes_in_profiles_name_the_file_and_the_rule(
    run: Run, profiles: Path, text: str, options: list[str], said: str
) -> None:
    if text:
        profiles.write_text(text)
    ran = run("ls", *options)

    assert (ran.code, ran.out, said in ran.err) == (2, "", True), ran.err
    assert ran.err.count("\n") == 1


def test_without_a_root_the_places_to_say_one_are_named(run: Run) -> None:
    ran = run("ls")

    assert ran.code == 2
    assert "--ledger URL, set LAKELEDGER_URL, " in ran.err
    assert "or add a profile to " in ran.err


def test_help_is_a_command_too(run: Run) -> None:
    assert run("help", "ls").out == run("ls", "--help").out
    assert run("help").out == run("--help").out
