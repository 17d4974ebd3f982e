"""The ledger that the current folder is in, found upwards as git finds a repository."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from ledger import open as open_ledger
from ledger.cli.discovery import find_ledger_above

if TYPE_CHECKING:
    from tests.cli.conftest import Run

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a file system of its own


@pytest.fixture
def deep(tmp_path: Path, shop: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder deep in the ledger with the table shop.orders, where the process is."""
    del shop
    folder = tmp_path / "lake" / "shop.db" / "orders" / "day=1"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def url_of(run: Run, *options: object) -> str:
    url: str = run("doctor", *options, "--output", "json").document["url"]
    return url.rpartition("/")[2]


def test_a_command_in_a_folder_of_a_ledger_works_on_that_ledger(run: Run, deep: Path) -> None:
    assert "shop.orders" in run("show", "shop.orders").out
    assert run("alter", "shop.orders", "--set", "a=b").code == 0
    lake = open_ledger(str(deep.parents[2]))
    assert lake.table("shop.orders").at().options["a"] == "b"


def test_the_nearest_ledger_is_found(run: Run, deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert url_of(run) == "lake"
    assert run("init", "inner").code == 0
    monkeypatch.chdir(deep / "inner")
    assert url_of(run) == "inner"


def test_options_and_the_environment_override_the_folder_and_it_overrides_the_default_profile(
    run: Run, deep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "profiles.toml"
    file.write_text(
        f'profile = "work"\n[work]\nledger = "{tmp_path}/work"\nauthor = "ada"\n'
        f'[home]\nledger = "{tmp_path}/home"\n'
    )
    monkeypatch.setenv("LAKELEDGER_CONFIG", str(file))
    other = tmp_path / "other"

    assert url_of(run) == "lake"
    assert url_of(run, "--ledger", other) == "other"
    assert url_of(run, "--profile", "home") == "home"
    monkeypatch.setenv("LAKELEDGER_PROFILE", "home")
    assert url_of(run) == "home"
    monkeypatch.delenv("LAKELEDGER_PROFILE")
    monkeypatch.setenv("LAKELEDGER_URL", str(other))
    assert url_of(run) == "other"
    monkeypatch.delenv("LAKELEDGER_URL")
    monkeypatch.chdir(tmp_path)
    assert url_of(run) == "work"
    del deep


def test_the_author_of_the_default_profile_is_not_that_of_a_discovered_ledger(
    run: Run, deep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "profiles.toml"
    file.write_text(f'profile = "work"\n[work]\nledger = "{tmp_path}/work"\nauthor = "ada"\n')
    monkeypatch.setenv("LAKELEDGER_CONFIG", str(file))

    assert run("alter", "shop.orders", "--set", "a=b").code == 0

    (newest,) = list(open_ledger(str(deep.parents[2])).table("shop.orders").events())[-1:]
    assert newest.transactions[0].author != "ada"


def test_init_names_its_folder_and_no_ledger_is_created_by_accident(
    run: Run, deep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = run("init")
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.chdir(outside)

    assert (inside.code, run("init").code) == (2, 2)
    assert "write lakeledger init FOLDER, or . for the current folder" in inside.err
    assert run("ls").code == 2
    assert not list(outside.iterdir())
    assert run("init", ".").code == 0
    assert run("create", "inn").code == 0
    assert open_ledger(str(outside)).databases() == ["inn"]
    del deep


def test_without_a_ledger_the_four_ways_to_name_one_are_listed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("ls")

    assert (ran.code, ran.out) == (2, "")
    ways = ("--ledger URL", "LAKELEDGER_URL", "run the command in a ledger's folder", "profile")
    assert [each for each in ways if each not in ran.err] == []


def test_a_folder_that_only_holds_a_log_is_no_ledger(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "table" / "_ledger" / "log"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)

    assert run("ls").code == 2


def test_a_deleted_current_folder_is_in_no_ledger(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    ran = run("ls")
    # Otherwise pytest cannot go back to it.
    os.chdir(tmp_path)

    assert (ran.code, "no ledger is given" in ran.err) == (2, True)


def test_the_search_ends_where_another_file_system_begins(deep: Path) -> None:
    lake = deep.parents[2]
    assert find_ledger_above(deep) == lake
    with TemporaryDirectory(dir=SHARED_MEMORY) as other:
        if Path(other).stat().st_dev == lake.stat().st_dev:
            pytest.skip("needs two file systems")
        # As with a mount point, the folder above is of another file system.
        (lake / "mounted").symlink_to(other)

        assert find_ledger_above(lake / "mounted") is None
