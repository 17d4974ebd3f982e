"""`lakeledger import iceberg`, and what the other commands say of a table that came in so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.projections.iceberg.importing.writing import appended, created

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("installed")

NAME = "here.visits"


def test_a_table_comes_in_and_what_is_new_in_it(shop: Run, tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    first = appended(theirs, 1, name=["a"])
    command = ("import", "iceberg", tmp_path / "t", NAME)
    planned = shop(*command, "--dry-run", "--output", "json").document
    assert (planned["dryRun"], planned["snapshots"], planned["version"]) == (True, [first], None)
    assert shop("show", NAME).code == 3
    ran = shop(*command)
    assert (ran.code, ran.err) == (0, "")
    assert f"{NAME} stands at version 2" in ran.out
    second = appended(theirs, 2, name=["b"])
    assert shop(*command, "--output", "json").document["snapshots"] == [second]
    assert "nothing is new" in shop(*command).out


def test_the_other_commands_know_it(shop: Run, tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    first = appended(theirs, 1, name=["a"])
    theirs.manage_snapshots().create_tag(first, "v1").commit()
    appended(theirs, 2, name=["b"])
    assert shop("import", "iceberg", tmp_path / "t", NAME).code == 0
    log = shop("log", NAME)
    assert f"tag v1 points to snapshot {first}" in log.out
    assert "ann" in log.out
    listed = shop("snapshots", NAME, "--output", "json").document["snapshots"]
    assert [each["snapshot"]["id"] for each in listed][-1] == first
    assert listed[-1]["tags"] == ["v1"]
    for command in (
        ("show", NAME),
        ("show", NAME, "--tag", "v1"),
        ("head", NAME, "--snapshot", first),
        ("verify",),
        ("maintain",),
        ("project", "iceberg", NAME),
        ("project", "iceberg", NAME, "--verify"),
        ("project", "iceberg", NAME, "--rebuild"),
    ):
        ran = shop(*command)
        assert ran.code == 0, (command, ran.err)
    owned = shop("alter", NAME, "--set", "a=b")
    assert owned.code != 0
    assert "which others own" in owned.err
    for refused, said in (
        (("stats", NAME), "which statistics do not count"),
        (("project", "paimon", NAME), "was born in Iceberg"),
    ):
        ran = shop(*refused)
        assert ran.code != 0
        assert said in ran.err


def test_a_bad_source_is_one_line(shop: Run, tmp_path: Path) -> None:
    ran = shop("import", "iceberg", tmp_path / "nowhere", NAME)
    assert ran.code == 3
    assert ran.err.count("\n") == 1
    assert "no folder metadata/" in ran.err
