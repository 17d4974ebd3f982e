"""`lakeledger follow`, and where freshness is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger import open as open_ledger
from ledger.following.files import wait
from tests.cli.conftest import Run


@pytest.fixture
def lake(run: Run, tmp_path: Path, installed: None) -> Path:
    del installed
    place = tmp_path / "lake"
    for line in (
        ("init",),
        ("create", "shop"),
        ("create", "shop.orders", "--column", "id INT"),
        ("create", "shop.still", "--column", "id INT"),
        ("alter", "shop.orders", "--set", "ledger.follow=iceberg,paimon"),
    ):
        assert run(*line, "--ledger", place).code == 0
    # In this process; one that ends would wait.
    assert wait(open_ledger(place).url, 60)
    return place


def test_one_round_brings_every_followed_format_on(run: Run, lake: Path) -> None:
    assert run("follow", "--once", "--ledger", lake).code == 0
    shown = run("show", "shop.orders", "--ledger", lake, "--output", "json").document
    assert [(each["format"], each["behind"]) for each in shown["following"]] == [
        ("iceberg", 0),
        ("paimon", 0),
    ]
    assert "iceberg files" in run("show", "shop.orders", "--ledger", lake).out
    assert (lake / "shop.db/orders/metadata").is_dir()
    assert not (lake / "shop.db/still/metadata").exists()


def test_what_is_behind_is_told_everywhere_and_fails_nothing(run: Run, lake: Path) -> None:
    assert run("follow", "--once", "--ledger", lake).code == 0
    log = lake / "shop.db/orders/_ledger"
    for name in ("iceberg", "paimon"):
        (log / "projections" / f"{name}.json").unlink()
    shown = run("show", "shop.orders", "--ledger", lake, "--output", "json").document
    assert [each["behind"] for each in shown["following"]] == [2, 2]
    assert all(each["millisBehind"] > 0 for each in shown["following"])
    logged = run("log", "shop.orders", "--ledger", lake).err
    assert "the iceberg files of shop.orders are at version -1, 2 commits" in logged
    assert "the paimon files" in logged
    assert "files" not in run("log", "shop.still", "--ledger", lake).err
    told = run("doctor", lake, "--output", "json").document["following"]
    assert {each["table"] for each in told} == {"shop.orders"}
    assert "follow shop.orders --once" in run("verify", "shop.orders", "--ledger", lake).out
    lines = run("follow", "shop.orders", "--once", "--ledger", lake, "--output", "json").out
    said = [json.loads(each) for each in lines.splitlines()]
    assert {(each["format"], each["version"]) for each in said} == {("iceberg", 1), ("paimon", 1)}


def test_what_cannot_go_on_is_told_and_ends_with_a_code(run: Run, lake: Path) -> None:
    run("follow", "--once", "--ledger", lake)
    metadata = lake / "shop.db/orders/schema"
    for each in metadata.iterdir():
        each.unlink()
    metadata.rmdir()
    metadata.write_text("in the way")
    run("alter", "shop.orders", "--set", "a=b", "--ledger", lake)
    ran = run("follow", "--once", "--ledger", lake)
    assert ran.code == 8
    assert "shop.orders, paimon" in ran.err
    assert "could not go on" in ran.err
    assert (lake / "shop.db/orders/metadata").is_dir()


def test_doctor_tells_a_copy(run: Run, lake: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text(run("export", "--ledger", lake).out)
    copy = tmp_path / "copy"
    assert run("import", "ledger", lines, "--copy", "--ledger", copy).code == 0
    assert "copiedFrom" in run("doctor", copy, "--output", "json").document
    assert "copiedFrom" not in run("doctor", lake, "--output", "json").document
