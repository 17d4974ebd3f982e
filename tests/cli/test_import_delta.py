"""`lakeledger import delta`, and what the other commands say of a table that came in so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

deltalake = pytest.importorskip("deltalake")

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("installed")

NAME = "here.visits"


def written(folder: Path, *ids: int) -> None:
    info = {"userName": "ann", "userMetadata": "the night's"}
    deltalake.write_deltalake(
        str(folder),
        pa.table({"id": ids, "name": ["a"] * len(ids)}),
        mode="append",
        commit_properties=deltalake.CommitProperties(custom_metadata=info),
    )


def test_a_table_comes_in_and_what_is_new_in_it(shop: Run, tmp_path: Path) -> None:
    written(tmp_path / "t", 1)
    command = ("import", "delta", tmp_path / "t", NAME)
    planned = shop(*command, "--dry-run", "--output", "json").document
    assert (planned["dryRun"], planned["snapshots"], planned["version"]) == (True, [1], None)
    assert shop("show", NAME).code == 3
    ran = shop(*command)
    assert (ran.code, ran.err) == (0, "")
    assert f"{NAME} stands at version 1" in ran.out
    written(tmp_path / "t", 2)
    assert shop(*command, "--output", "json").document["snapshots"] == [2]
    assert "nothing is new" in shop(*command).out


def test_the_other_commands_know_it(shop: Run, tmp_path: Path) -> None:
    written(tmp_path / "t", 1)
    written(tmp_path / "t", 2, 3)
    assert shop("import", "delta", tmp_path / "t", NAME).code == 0
    log = shop("log", NAME)
    assert "followed the source up to its version 1" in log.out
    assert "ann" in log.out
    assert "the night's" in log.out
    for command in (
        ("show", NAME),
        ("snapshots", NAME),
        ("show", NAME, "--snapshot", "1"),
        ("stats", NAME),
        ("blame", NAME),
        ("verify",),
        ("maintain",),
        ("project", "delta", NAME),
        ("project", "delta", NAME, "--verify"),
        ("project", "delta", NAME, "--rebuild"),
    ):
        ran = shop(*command)
        assert ran.code == 0, (command, ran.err)
    owned = shop("alter", NAME, "--set", "a=b")
    assert owned.code != 0
    assert "which others own" in owned.err
    assert "lakeledger import delta" in owned.err


@pytest.mark.parametrize("what", ["nowhere", "empty", "half"])
def test_a_bad_source_is_one_line_and_leaves_nothing(shop: Run, tmp_path: Path, what: str) -> None:
    said = {
        "nowhere": "it has no folder _delta_log/",
        "empty": "holds no version of a Delta table",
        "half": "is no file of a Delta log",
    }
    (tmp_path / "empty/_delta_log").mkdir(parents=True)
    written(tmp_path / "half", 1)
    (commit,) = (tmp_path / "half/_delta_log").glob("*.json")
    commit.write_bytes(commit.read_bytes()[:-20])
    ran = shop("import", "delta", tmp_path / what, NAME)
    assert ran.code in {1, 3}, ran
    assert ran.err.count("\n") == 1
    assert said[what] in ran.err
    assert "here" not in shop("list", "--output", "json").out
