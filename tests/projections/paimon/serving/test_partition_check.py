"""`verify --data` compares the statistics that engines reported with the files that they wrote."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from ledger.cli import main
from ledger.table_handle import TableHandle, handle_of
from projections.paimon.partition_check import partition_problems
from projections.paimon.served_partitions import create_partitions, drop_partitions
from tests.projections.rest.application import Application, application
from tests.pypaimon_or_skip import needs_pypaimon

needs_pypaimon()

from pypaimon.write.file_store_commit import FileStoreCommit  # noqa: E402

from tests.projections.rest.paimon.paimon_clients import TableSpec  # noqa: E402
from tests.projections.rest.paimon.pypaimon_client import PypaimonClient  # noqa: E402


@frozen
class Written:
    """A table that pypaimon wrote, and its client."""

    app: Application
    client: PypaimonClient
    path: Path

    @property
    def table(self) -> TableHandle:
        return handle_of(self.app.lake.table("shop.orders"))

    def problems(self) -> list[str]:
        return [*partition_problems(self.table, self.table.state)]


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    path = tmp_path / "lake"
    with application(path) as app:
        client = PypaimonClient.of_server(f"{app.http.base_url}/paimon", "lake")
        client.create_database()
        client.create_table("orders", TableSpec({"id": "BIGINT", "dt": "STRING"}, ["dt"]))
        client.write("orders", [(1, "a"), (2, "b"), (3, "b")])
        client.truncate("orders", [{"dt": "a"}])
        yield Written(app, client, path)


def misreport(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pypaimon report one row too many."""
    reports = FileStoreCommit._generate_partition_statistics

    def wrong(self: Any, entries: Any) -> Any:
        found = reports(self, entries)
        for each in found:
            each.record_count += 1
        return found

    monkeypatch.setattr(FileStoreCommit, "_generate_partition_statistics", wrong)


def test_right_statistics_have_no_problems(written: Written) -> None:
    assert written.problems() == []
    create_partitions(written.table, [{"dt": "new"}])
    assert written.problems() == []


def test_wrong_statistics_are_found(
    written: Written, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    misreport(monkeypatch)
    written.client.write("orders", [(4, "c")])

    (problem,) = written.problems()
    assert "partition 'dt=c' has 2 rows" in problem
    assert "and 1 rows" in problem
    assert main(["verify", "--ledger", str(written.path)]) == 0
    capsys.readouterr()
    code = main(
        ["verify", "shop.orders", "--data", "--ledger", str(written.path), "--output", "json"]
    )
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (code, finding["kind"], finding["what"]) == (6, "data", problem)


def test_a_partition_that_was_dropped_from_the_list_is_compared_by_its_files(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_partitions(written.table, [{"dt": "b"}])
    assert written.problems() == []
    written.client.write("orders", [(4, "b")])
    assert written.problems() == []
    drop_partitions(written.table, [{"dt": "b"}])
    create_partitions(written.table, [{"dt": "b"}])
    assert written.problems() == []
    drop_partitions(written.table, [{"dt": "b"}])
    written.client.truncate("orders", [{"dt": "b"}])
    assert written.problems() == []
    misreport(monkeypatch)
    written.client.write("orders", [(5, "b")])
    drop_partitions(written.table, [{"dt": "b"}])
    (problem,) = written.problems()
    assert problem.startswith("partition 'dt=b' has 2 rows")


def test_lost_manifests_are_reported(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    (folder,) = written.path.rglob("manifest")
    shutil.rmtree(folder)
    code = main(
        ["verify", "shop.orders", "--data", "--ledger", str(written.path), "--output", "json"]
    )
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert (code, {each["kind"] for each in findings}) == (6, {"data"})
    assert all("is missing" in each["what"] for each in findings)


def test_sums_of_manifests_are_not_compared_with_themselves(written: Written) -> None:
    # Its statistics do not tell which partition it is.
    written.client.write("orders", [(5, None)])
    assert written.problems() == []
