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
def told(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs a command line on a ledger whose table has one file, and returns what it prints."""
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    lake.create_table("shop.visits", {"id": "BIGINT"})
    for name, ids in {"a": [1, 2], "b": [3], "c": [4, 5, 6]}.items():
        parquet.write_table(pa.table({"id": ids}), tmp_path / f"{name}.parquet")
    monkeypatch.setenv("LAKELEDGER_URL", str(tmp_path / "lake"))
    monkeypatch.chdir(tmp_path)

    def asked(*words: str, exits: int = 0) -> str:
        ran = run(*words)
        assert ran.code == exits, ran.err
        return ran.err if exits else ran.out

    asked("add-files", "shop.visits", "a.parquet")
    return asked


def document(told: Callable[..., str], *words: str) -> Any:
    return json.loads(told(*words, "--output", "json"))


def rows(told: Callable[..., str], *words: str) -> int:
    return int(
        document(told, "show", "shop.visits", *words)["tableSnapshot"]["snapshot"][
            "totalRecordCount"
        ]
    )


def test_a_branch_is_made_committed_to_read_and_fast_forwarded(told: Callable[..., str]) -> None:
    assert "has no branches" in told("branch", "shop.visits")
    assert "branch audit points to snapshot 1" in told("branch", "shop.visits", "audit")
    told("add-files", "shop.visits", "b.parquet", "--branch", "audit")
    assert rows(told) == 2
    assert rows(told, "--at", "branch:audit") == 3
    assert "3" in told("head", "shop.visits", "--at", "branch:audit")
    (listed,) = document(told, "branch", "shop.visits")["branches"]
    assert listed == {
        "branchName": "audit",
        "snapshotId": 1_000_000_000_001,
        "baseSnapshotId": 1,
        "recordCount": 3,
        "fileCount": 2,
    }
    assert "1000000000001" in told("show", "shop.visits")
    assert "1000000000001" in told("snapshots", "shop.visits", "--branch", "audit")
    assert "1000000000001" not in told("snapshots", "shop.visits")
    differs = document(told, "diff", "shop.visits", "main", "branch:audit")["differences"]
    assert {"what": "rows", "before": "2", "after": "3"} in differs
    said = told("branch", "shop.visits", "audit", "--fast-forward")
    assert "fast-forwarded to branch audit" in said
    assert rows(told) == 3
    log = told("log", "shop.visits", "--branch", "audit")
    assert log.count("branch audit") == 3
    assert "added 1 file" not in log
    told("branch", "shop.visits", "audit", "--drop")
    assert "has no branches" in told("branch", "shop.visits")


def test_files_are_overwritten_and_taken_out_of_a_branch(told: Callable[..., str]) -> None:
    told("branch", "shop.visits", "audit", "--at", "snapshot:1")
    told("overwrite", "shop.visits", "c.parquet", "--branch", "audit")
    assert rows(told, "--at", "branch:audit") == 3
    told("delete-files", "shop.visits", "c.parquet", "--branch", "audit")
    assert rows(told, "--at", "branch:audit") == 0
    told("rollback", "shop.visits", "--snapshot", "1", "--branch", "audit")
    assert rows(told, "--at", "branch:audit") == 2
    told("branch", "shop.visits", "audit", "--reset")
    assert document(told, "branch", "shop.visits")["branches"][0]["snapshotId"] == 1
    assert rows(told) == 2


def test_files_go_by_the_names_that_they_have_in_the_table_and_on_disk_at_once(
    told: Callable[..., str],
) -> None:
    told("add-files", "shop.visits", "b.parquet", "c.parquet")
    live = (Path.cwd() / "b.parquet").as_uri()
    told("delete-files", "shop.visits", live, "c.parquet")
    assert rows(told) == 2


def test_what_cannot_be_is_one_line_with_the_next_step(told: Callable[..., str]) -> None:
    told("branch", "shop.visits", "audit")
    assert "exists" in told("branch", "shop.visits", "audit", exits=3)
    assert "equals branch" in told("branch", "shop.visits", "audit", "--fast-forward", exits=1)
    assert "does not exist" in told("show", "shop.visits", "--at", "branch:audti", exits=3)
    assert "give one of --reset" in told(
        "branch", "shop.visits", "audit", "--drop", "--fast-forward", exits=2
    )
    assert "no branch is given" in told("branch", "shop.visits", "--drop", exits=2)


def test_an_expiry_says_that_what_a_branch_begins_with_stays(told: Callable[..., str]) -> None:
    told("branch", "shop.visits", "audit")
    told("add-files", "shop.visits", "b.parquet")
    told("add-files", "shop.visits", "c.parquet")
    assert document(told, "expire", "shop.visits", "--before", "3")["expired"] == [2]
    assert rows(told, "--at", "branch:audit") == 2
