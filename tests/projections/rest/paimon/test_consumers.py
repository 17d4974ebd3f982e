"""Consumers through Paimon's REST API: the files that engines write beside a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from ledger.table_handle import handle_of
from projections.paimon.served_branches import create_branch
from projections.paimon.served_tags import create_tag
from tests.projections.rest.application import Application, application
from tests.projections.rest.paimon.paimon_application import PaimonApplication
from tests.projections.rest.paimon.test_partitions import ORDERS, commit, create_orders, delta


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    with application(tmp_path / "lake") as found:
        create_orders(found)
        for number in (1, 2, 3):
            assert commit(found, number, [delta(dt=str(number))]).json() == {"success": True}
        yield found


def consumers(app: Application, table: str = ORDERS, **query: Any) -> dict[str, int]:
    answer = app.http.get(f"/paimon/v1/lakeledger/{table}/consumers", params=query)
    assert answer.status_code == 200, answer.text
    return {each["consumerId"]: each["nextSnapshot"] for each in answer.json()["consumers"]}


def reset(app: Application, table: str = ORDERS, **body: Any) -> Response:
    return app.http.post(f"/paimon/v1/lakeledger/{table}/consumers/reset", json=body)


def folder(app: Application) -> Path:
    return Path(handle_of(app.lake.table("shop.orders")).location.removeprefix("file://"))


def test_consumers_are_the_files_of_engines(app: Application) -> None:
    assert consumers(app) == {}
    files = folder(app) / "consumer"
    files.mkdir()
    (files / "consumer-b").write_text('{"nextSnapshot": 2}')
    (files / "consumer-a").write_text('{\n  "nextSnapshot" : 3,\n  "later" : true\n}')
    (files / "other").write_text("{")

    assert consumers(app) == {"a": 3, "b": 2}
    assert list(consumers(app)) == ["a", "b"]
    assert consumers(app, maxResults=1) == {"a": 3}
    assert consumers(app, maxResults=1, pageToken="a") == {"b": 2}


def test_a_reset_sets_the_file_or_removes_it(app: Application) -> None:
    version = app.lake.table("shop.orders").state.version
    assert reset(app, consumerId="a", nextSnapshotId=2).status_code == 200
    assert reset(app, consumerId="a", nextSnapshotId=3).status_code == 200
    assert (folder(app) / "consumer/consumer-a").read_text() == '{\n  "nextSnapshot": 3\n}'
    assert consumers(app) == {"a": 3}

    assert reset(app, consumerId="a").status_code == 200
    assert reset(app, consumerId="a").status_code == 200
    assert consumers(app) == {}
    assert app.lake.table("shop.orders").state.version == version


def test_a_reset_to_no_snapshot_changes_nothing(app: Application) -> None:
    reset(app, consumerId="a", nextSnapshotId=2)
    missing = reset(app, consumerId="a", nextSnapshotId=9)
    assert (missing.status_code, missing.json()["resourceType"]) == (404, "SNAPSHOT")
    for wrong in (0, -1, 2**63):
        assert reset(app, consumerId="a", nextSnapshotId=wrong).status_code == 400
    assert consumers(app) == {"a": 2}


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a\\b", "a\n", "x" * 247])
def test_an_id_that_is_no_file_name_is_rejected(app: Application, name: str) -> None:
    assert reset(app, consumerId=name, nextSnapshotId=2).status_code == 400
    assert consumers(app) == {}


def test_a_damaged_file_is_named(app: Application) -> None:
    files = folder(app) / "consumer"
    files.mkdir()
    (files / "consumer-a").write_text("{")
    answer = app.http.get(f"/paimon/v1/lakeledger/{ORDERS}/consumers")
    assert answer.status_code == 500
    assert "consumer-a" in answer.json()["message"]


def test_a_branch_has_consumers_of_its_own(app: Application) -> None:
    handle = handle_of(app.lake.table("shop.orders"))
    create_tag(handle, "t", snapshot_id=2)
    create_branch(handle, "work", tag="t")
    work = f"{ORDERS}$branch_work"
    assert reset(app, work, consumerId="a", nextSnapshotId=2).status_code == 200
    assert reset(app, work, consumerId="a", nextSnapshotId=3).status_code == 404
    assert consumers(app, work) == {"a": 2}
    assert consumers(app) == {}
    assert (folder(app) / "branch/branch-work/consumer/consumer-a").exists()


def test_missing_tables_are_not_found(app: Application) -> None:
    for table in ("databases/shop/tables/none", f"{ORDERS}$branch_none"):
        answer = app.http.get(f"/paimon/v1/lakeledger/{table}/consumers")
        assert (answer.status_code, answer.json()["resourceType"]) == (404, "TABLE")
        assert reset(app, table, consumerId="a").status_code == 404


def test_a_rejected_id_is_quoted_once(paimon: PaimonApplication) -> None:
    paimon.create()

    answer = paimon.post(f"{ORDERS}/consumers/reset", {"consumerId": "a/b", "nextSnapshotId": 1})

    assert "consumer id 'a/b' cannot" in answer.json()["message"]
