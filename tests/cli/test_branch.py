"""`lakeledger branch`, and what takes a branch: commits, `--at branch:NAME`, lists and logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ledger
from tests.cli.conftest import Run


@pytest.fixture
def output_of(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs a command line on a ledger whose table has one file, and returns what it prints."""
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    lake.create_table("shop.visits", {"id": "BIGINT"})
    for name, ids in {"a": [1, 2], "b": [3], "c": [4, 5, 6]}.items():
        parquet.write_table(pa.table({"id": ids}), tmp_path / f"{name}.parquet")
    monkeypatch.setenv("LAKELEDGER_URL", str(tmp_path / "lake"))
    monkeypatch.chdir(tmp_path)

    def output_of(*words: str, exits: int = 0) -> str:
        ran = run(*words)
        assert ran.code == exits, ran.err
        return ran.err if exits else ran.out

    output_of("add-files", "shop.visits", "a.parquet")
    return output_of


def document(output_of: Callable[..., str], *words: str) -> Any:
    return json.loads(output_of(*words, "--output", "json"))


def rows(output_of: Callable[..., str], *words: str) -> int:
    return int(
        document(output_of, "show", "shop.visits", *words)["tableSnapshot"]["snapshot"][
            "totalRecordCount"
        ]
    )


def test_a_branch_is_made_committed_to_read_and_fast_forwarded(
    output_of: Callable[..., str],
) -> None:
    assert "has no branches" in output_of("branch", "shop.visits")
    assert "branch audit points to snapshot 1" in output_of("branch", "shop.visits", "audit")
    output_of("add-files", "shop.visits", "b.parquet", "--branch", "audit")
    assert rows(output_of) == 2
    assert rows(output_of, "--at", "branch:audit") == 3
    assert "3" in output_of("head", "shop.visits", "--at", "branch:audit")
    (listed,) = document(output_of, "branch", "shop.visits")["branches"]
    assert listed == {
        "branchName": "audit",
        "snapshotId": 1_000_000_000_001,
        "baseSnapshotId": 1,
        "recordCount": 3,
        "fileCount": 2,
    }
    assert "1000000000001" in output_of("show", "shop.visits")
    assert "1000000000001" in output_of("snapshots", "shop.visits", "--branch", "audit")
    assert "1000000000001" not in output_of("snapshots", "shop.visits")
    differs = document(output_of, "diff", "shop.visits", "main", "branch:audit")["differences"]
    assert {"what": "rows", "before": "2", "after": "3"} in differs
    said = output_of("branch", "shop.visits", "audit", "--fast-forward")
    assert "fast-forwarded to branch audit" in said
    assert rows(output_of) == 3
    log = output_of("log", "shop.visits", "--branch", "audit")
    assert log.count("branch audit") == 3
    assert "added 1 file" not in log
    output_of("branch", "shop.visits", "audit", "--drop", "--yes")
    assert "has no branches" in output_of("branch", "shop.visits")
    assert output_of("log", "shop.visits", "--branch", "audit").count("branch audit") >= 3
    of_main = output_of("log", "shop.visits", "--branch", "main", "--output", "json")
    assert of_main.count('"commitSnapshot"') == 2


def test_files_are_overwritten_and_taken_out_of_a_branch(output_of: Callable[..., str]) -> None:
    output_of("branch", "shop.visits", "audit", "--at", "snapshot:1")
    output_of("overwrite", "shop.visits", "c.parquet", "--branch", "audit")
    assert rows(output_of, "--at", "branch:audit") == 3
    output_of("delete-files", "shop.visits", "c.parquet", "--branch", "audit")
    assert rows(output_of, "--at", "branch:audit") == 0
    output_of("rollback", "shop.visits", "--to", "snapshot:1", "--branch", "audit")
    assert rows(output_of, "--at", "branch:audit") == 2
    output_of("branch", "shop.visits", "audit", "--reset", "--yes")
    assert document(output_of, "branch", "shop.visits")["branches"][0]["snapshotId"] == 1
    assert rows(output_of) == 2


def test_files_go_by_the_names_that_they_have_in_the_table_and_on_disk_at_once(
    output_of: Callable[..., str],
) -> None:
    output_of("add-files", "shop.visits", "b.parquet", "c.parquet")
    live = (Path.cwd() / "b.parquet").as_uri()
    output_of("delete-files", "shop.visits", live, "c.parquet")
    assert rows(output_of) == 2


def test_an_impossible_branch_command_is_one_line_with_the_next_step(
    output_of: Callable[..., str],
) -> None:
    output_of("branch", "shop.visits", "audit")
    assert "exists" in output_of("branch", "shop.visits", "audit", exits=3)
    assert "equals branch" in output_of("branch", "shop.visits", "audit", "--fast-forward", exits=1)
    assert "does not exist" in output_of("show", "shop.visits", "--at", "branch:audti", exits=3)
    assert "give one of --reset" in output_of(
        "branch", "shop.visits", "audit", "--drop", "--fast-forward", exits=2
    )
    assert "no branch is given" in output_of("branch", "shop.visits", "--drop", exits=2)


def test_an_expiry_keeps_the_snapshot_that_a_branch_begins_with(
    output_of: Callable[..., str],
) -> None:
    output_of("branch", "shop.visits", "audit")
    output_of("add-files", "shop.visits", "b.parquet")
    output_of("add-files", "shop.visits", "c.parquet")
    assert document(output_of, "expire", "shop.visits", "--before", "3", "--yes")["expired"] == [2]
    assert rows(output_of, "--at", "branch:audit") == 2


def test_the_log_of_a_branch_that_never_was_is_an_error(output_of: Callable[..., str]) -> None:
    output_of("branch", "shop.visits", "audit")
    for more in ((), ("--follow",), ("--author", "nobody")):
        said = output_of("log", "shop.visits", "--branch", "nope", *more, exits=3)
        assert "branch 'nope' does not exist" in said
        assert "audit" in said
    assert (
        said.splitlines()[0]
        == output_of("show", "shop.visits", "--at", "branch:nope", exits=3).splitlines()[0]
    )
    assert "name a table" in output_of("log", "--branch", "audit", exits=2)
