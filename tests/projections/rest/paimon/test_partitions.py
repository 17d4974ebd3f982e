"""Partitions through Paimon's REST API: of commits, rollbacks, branches and requests."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from httpx import Response

from ledger import Schema, Table
from ledger.events import PartitionsUpdated
from ledger.events.partitions import INLINE_PARTITIONS
from ledger.log.request import now_millis
from ledger.model.names import Identifier
from ledger.table_handle import handle_of
from projections.paimon import served
from projections.paimon.branch_lines import line_state
from projections.paimon.partition_counts import manifest_partitions
from projections.paimon.served_branches import create_branch, forward_branch
from projections.paimon.served_tags import create_tag
from tests.projections.rest.application import Application, application
from tests.pypaimon_or_skip import needs_pypaimon

needs_pypaimon()

from tests.projections.rest.paimon.paimon_clients import TableSpec  # noqa: E402
from tests.projections.rest.paimon.pypaimon_client import PypaimonClient  # noqa: E402

Json = dict[str, Any]
ORDERS = "databases/shop/tables/orders"
DAYS = TableSpec({"id": "BIGINT", "day": "DATE", "hour": "INT"}, partition_keys=["day", "hour"])
FIRST, SECOND = dt.date(2024, 1, 1), dt.date(2024, 1, 2)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    with application(tmp_path / "lake") as found:
        yield found


def send(app: Application, path: str, body: Any, table: str = ORDERS) -> Response:
    return app.http.post(f"/paimon/v1/lakeledger/{table}/{path}", json=body)


def page(app: Application, table: str = ORDERS, **query: Any) -> Json:
    answer = app.http.get(f"/paimon/v1/lakeledger/{quote(table)}/partitions", params=query)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def counts(found: Json) -> dict[tuple[str, ...], tuple[int, int, int]]:
    return {
        tuple(each["spec"].values()): (
            each["recordCount"],
            each["fileSizeInBytes"],
            each["fileCount"],
        )
        for each in found["partitions"]
    }


def names(found: Json) -> list[str]:
    return [
        "/".join(f"{key}={value}" for key, value in each["spec"].items())
        for each in found["partitions"]
    ]


def in_manifests(app: Application, branch: str | None = None) -> dict[Any, tuple[int, int, int]]:
    handle = handle_of(app.lake.table("shop.orders"))
    state = line_state(handle, handle.state, branch)
    return {
        tuple(each.spec.values()): (each.records or 0, each.size_in_bytes or 0, each.files or 0)
        for each in manifest_partitions(handle, state)
    }


def create_orders(app: Application, keys: Sequence[str] = ("dt",), **options: str) -> Table:
    """Create a table without pypaimon."""
    app.lake.create_database("shop")
    columns: Json = {"id": "BIGINT", **dict.fromkeys(keys, "STRING")}
    schema = Schema.of(columns, partition_keys=keys, options=options)
    served.create_table(handle_of(app.lake), Identifier("shop", "orders"), schema)
    return app.lake.table("shop.orders")


def commit(app: Application, number: int, statistics: Sequence[Json] | None) -> Response:
    """Commit a snapshot whose manifests do not exist, with statistics."""
    snapshot: Json = {
        "version": 3,
        "id": number,
        "schemaId": 0,
        "uuid": f"uuid-{number}",
        "baseManifestList": f"base-{number}",
        "deltaManifestList": f"delta-{number}",
        "commitUser": "u",
        "commitIdentifier": number,
        "commitKind": "APPEND",
        "timeMillis": now_millis(),
        "totalRecordCount": number,
        "deltaRecordCount": 1,
    }
    table_id = app.lake.table("shop.orders").state.table_id
    base = None if number == 1 else f"uuid-{number - 1}"
    body = {"tableId": table_id, "baseSnapshotUuid": base, "snapshot": snapshot}
    return send(app, "commit", {**body, "statistics": statistics})


def delta(records: int = 1, size: int = 10, files: int = 1, **spec: str) -> Json:
    return {
        "spec": spec,
        "recordCount": records,
        "fileSizeInBytes": size,
        "fileCount": files,
        "lastFileCreationTime": 1000 + records,
        "totalBuckets": 2,
    }


def test_partitions_are_those_of_the_commits_without_manifests(
    app: Application, tmp_path: Path
) -> None:
    client = PypaimonClient.of_server(f"{app.http.base_url}/paimon", "lake")
    client.create_database()
    client.create_table("orders", DAYS)
    assert page(app) == {"partitions": [], "nextPageToken": None}

    client.write("orders", [(1, FIRST, 1), (2, SECOND, 2), (3, None, None)])
    client.write("orders", [(4, FIRST, 1)])
    client.overwrite("orders", {"day": SECOND, "hour": 2}, [(5, SECOND, 2), (6, SECOND, 2)])
    found = page(app)
    assert counts(found) == in_manifests(app)
    assert set(names(found)) == {
        "day=19723/hour=1",
        "day=19724/hour=2",
        "day=__DEFAULT_PARTITION__/hour=__DEFAULT_PARTITION__",
    }
    emptied: Any = {"day": "2024-01-02", "hour": 2}
    client.truncate("orders", [emptied])
    assert counts(page(app)) == in_manifests(app)
    assert "day=19724/hour=2" not in names(page(app))

    expected = page(app)
    (folder,) = tmp_path.rglob("manifest")
    shutil.rmtree(folder)
    # A server that starts folds the log, and nothing else.
    with application(tmp_path / "lake") as again:
        assert page(again) == expected


def test_a_page_ends_where_the_next_begins(app: Application) -> None:
    create_orders(app)
    values = ["20230101", "20250101", "20250102", "20240102", "20260101", "20250104", "2025010_x"]
    commit(app, 1, [delta(dt=each) for each in values])
    expected = [f"dt={each}" for each in sorted(values, reverse=True)]

    found, token = [], None
    for _ in range(4):
        answer = page(app, maxResults=2, pageToken=token or "")
        assert len(answer["partitions"]) in {1, 2}
        found += names(answer)
        token = answer["nextPageToken"]
        assert token in {None, found[-1]}
    assert (found, token) == (expected, None)
    assert names(page(app, maxResults=7)) == expected
    assert page(app, maxResults=7)["nextPageToken"] is None


def test_a_pattern_selects_by_a_prefix(app: Application) -> None:
    create_orders(app)
    commit(app, 1, [delta(dt=each) for each in ("20250101", "20250102", "2025010_x", "2026")])
    selected = {
        "dt=2025": [],
        "dt=2025%": ["dt=2025010_x", "dt=20250102", "dt=20250101"],
        "dt=2025010_%": ["dt=2025010_x"],
        "dt=2025010_": [],
        r"dt=2025010\_x": ["dt=2025010_x"],
        "dt=20250101": ["dt=20250101"],
        "%": ["dt=2026", "dt=2025010_x", "dt=20250102", "dt=20250101"],
        "dt=9%": [],
    }
    found = {each: names(page(app, partitionNamePattern=each)) for each in selected}
    assert found == selected

    for pattern in ("dt=%01", "%a", "dt=1%1%", "x" * 1025):
        answer = app.http.get(
            f"/paimon/v1/lakeledger/{ORDERS}/partitions", params={"partitionNamePattern": pattern}
        )
        assert answer.status_code == 400
        assert "partitionNamePattern" in answer.json()["message"]


def test_created_partitions_are_listed_until_they_are_dropped(app: Application) -> None:
    create_orders(app, ("dt", "hh"))
    first, second = {"dt": "1", "hh": "2"}, {"hh": "3", "dt": "1"}

    made = send(app, "partitions", {"partitionSpecs": [first, second, first]}).json()
    assert made == {"created": [first, second], "existed": [first]}
    again = send(app, "partitions", {"partitionSpecs": [second, {"dt": "2", "hh": "1"}]}).json()
    assert again == {"created": [{"dt": "2", "hh": "1"}], "existed": [second]}
    (unknown,) = send(app, "partitions/list-by-names", {"specs": [second]}).json()["partitions"]
    assert unknown["recordCount"] == unknown["fileCount"] == unknown["totalBuckets"] == -1

    dropped = send(app, "partitions/drop", {"partitionSpecs": [first, {"dt": "9", "hh": "9"}]})
    assert dropped.json() == {"dropped": [first], "missing": [{"dt": "9", "hh": "9"}]}
    assert names(page(app)) == ["dt=2/hh=1", "dt=1/hh=3"]


def test_a_table_without_partition_keys_has_no_partitions(app: Application) -> None:
    create_orders(app, ())

    assert page(app) == {"partitions": [], "nextPageToken": None}


def test_a_rejected_request_changes_nothing(app: Application) -> None:
    table = create_orders(app)
    send(app, "partitions", {"partitionSpecs": [{"dt": "1"}]})
    version = table.state.version

    exists = send(
        app, "partitions", {"partitionSpecs": [{"dt": "2"}, {"dt": "1"}], "ignoreIfExists": False}
    )
    assert exists.status_code == exists.json()["code"] == 409
    assert exists.json()["resourceType"] == "PARTITION"
    assert exists.json()["resourceName"] == "dt=1"
    missing = send(
        app,
        "partitions/drop",
        {"partitionSpecs": [{"dt": "1"}, {"dt": "2"}], "ignoreIfNotExists": False},
    )
    assert (missing.status_code, missing.json()["resourceName"]) == (404, "dt=2")
    for path, key in (("partitions", "partitionSpecs"), ("partitions/mark", "specs")):
        for spec in ({}, {"dt": "1", "x": "2"}, {"x": "1"}, {"dt": 1}, {"dt": None}):
            assert send(app, path, {key: [spec]}).status_code == 400, spec
    assert send(app, "partitions", {"partitionSpecs": []}).json()["created"] == []
    assert table.state.version == version


def test_observed_statistics_add_up_or_replace(app: Application) -> None:
    create_orders(app)

    def reported(*statistics: Json, **more: Any) -> Json:
        body = {"partitionSpecs": [{"dt": "1"}], "partitionStatistics": statistics}
        assert send(app, "partitions", {**body, **more}).status_code == 200
        (found,) = page(app)["partitions"]
        return {key: found[key] for key in ("recordCount", "fileCount", "lastFileCreationTime")}

    assert reported(delta(5, files=-1, dt="1"), replaceStatistics=False) == {
        "recordCount": 5,
        "fileCount": -1,
        "lastFileCreationTime": 1005,
    }
    assert reported(delta(2, files=4, dt="1"))["recordCount"] == 7
    assert reported(delta(3, files=-1, dt="1"), replaceStatistics=True) == {
        "recordCount": 3,
        "fileCount": 4,
        "lastFileCreationTime": 1003,
    }
    # One of them is of a partition that does not exist: none counts.
    assert reported(delta(3, dt="1"), delta(3, dt="2"))["recordCount"] == 3


def test_marks_stay_while_the_partition_does(app: Application) -> None:
    create_orders(app)
    commit(app, 1, [delta(dt="1"), delta(dt="2")])
    assert send(app, "partitions/mark", {"specs": [{"dt": "1"}, {"dt": "9"}]}).status_code == 200
    commit(app, 2, [delta(dt="1")])

    done = {each["spec"]["dt"]: each["done"] for each in page(app)["partitions"]}
    assert done == {"1": True, "2": False}
    commit(app, 3, [delta(-2, -20, -2, dt="1")])
    commit(app, 4, [delta(dt="1")])
    assert {each["done"] for each in page(app)["partitions"]} == {False}


def test_a_rollback_takes_partitions_back(app: Application) -> None:
    create_orders(app)
    commit(app, 1, [delta(dt="1")])
    first = page(app)
    commit(app, 2, [delta(dt="2"), delta(7, dt="1")])
    commit(app, 3, [delta(-1, -10, -1, dt="1")])
    before = counts(page(app))

    answer = send(app, "rollback", {"instant": {"type": "snapshot", "snapshotId": 1}})
    assert answer.status_code == 200, answer.text
    assert counts(page(app)) == counts(first)
    # The id is given again, to another snapshot.
    table_id = app.lake.table("shop.orders").state.table_id
    assert table_id
    commit(app, 2, [delta(dt="3")])
    assert counts(page(app)) == {("1",): (1, 10, 1), ("3",): (1, 10, 1)}
    assert before == {("1",): (7, 10, 1), ("2",): (1, 10, 1)}


def test_a_commit_without_statistics_is_counted_from_manifests(app: Application) -> None:
    client = PypaimonClient.of_server(f"{app.http.base_url}/paimon", "lake")
    client.create_database()
    client.create_table("orders", TableSpec({"id": "BIGINT", "dt": "STRING"}, ["dt"]))
    # pypaimon spells NULL as the text does, so that its statistics do not tell the partition.
    client.write("orders", [(1, None), (2, "None"), (3, "a")])
    events = [each for it in app.lake.table("shop.orders").events() for each in it.transactions]
    assert not any(isinstance(it, PartitionsUpdated) for each in events for it in each.events)

    assert counts(page(app)) == in_manifests(app)
    assert set(names(page(app))) == {"dt=a", "dt=None", "dt=__DEFAULT_PARTITION__"}
    client.write("orders", [(4, "a"), (5, "b")])
    assert counts(page(app)) == in_manifests(app)


def test_a_registered_history_is_counted_from_manifests(app: Application, tmp_path: Path) -> None:
    files = PypaimonClient.of_files(str(tmp_path / "lake/files"))
    files.create_database()
    files.create_table("orders", TableSpec({"id": "BIGINT", "dt": "STRING"}, ["dt"]))
    for number, day in enumerate("aab"):
        files.write("orders", [(number, day)])
    app.lake.create_database("shop")
    registered = send(
        app,
        "register",
        {
            "identifier": {"database": "shop", "object": "orders"},
            "path": str(tmp_path / "lake/files/shop.db/orders"),
        },
        "databases/shop",
    )
    assert registered.status_code == 200, registered.text

    assert counts(page(app)) == in_manifests(app)
    assert {each: rows for (each,), (rows, _, _) in counts(page(app)).items()} == {"a": 2, "b": 1}
    client = PypaimonClient.of_server(f"{app.http.base_url}/paimon", "lake")
    client.write("orders", [(4, "b"), (5, "c")])
    client.truncate("orders", [{"dt": "a"}])
    assert counts(page(app)) == in_manifests(app)
    assert set(names(page(app))) == {"dt=b", "dt=c"}
    with application(tmp_path / "lake") as again:
        assert counts(page(again)) == counts(page(app))
    # The snapshots after it have statistics, and those before it do not.
    for snapshot_id in (4, 2):
        send(app, "rollback", {"instant": {"type": "snapshot", "snapshotId": snapshot_id}})
        assert counts(page(app)) == in_manifests(app)
    assert names(page(app)) == ["dt=a"]


def test_a_branch_has_partitions_of_its_own(app: Application) -> None:
    client = PypaimonClient.of_server(f"{app.http.base_url}/paimon", "lake")
    client.create_database()
    client.create_table("orders", TableSpec({"id": "BIGINT", "dt": "STRING"}, ["dt"]))
    client.write("orders", [(1, "a"), (2, "b")])
    handle = handle_of(app.lake.table("shop.orders"))
    create_tag(handle, "t")
    create_branch(handle, "work", tag="t")
    work = f"{ORDERS}$branch_work"
    assert counts(page(app, work)) == counts(page(app))

    client.write("orders$branch_work", [(3, "b"), (4, "c")])
    assert counts(page(app, work)) == in_manifests(app, "work")
    assert set(names(page(app, work))) == {"dt=a", "dt=b", "dt=c"}
    assert set(names(page(app))) == {"dt=a", "dt=b"}
    created = send(app, "partitions", {"partitionSpecs": [{"dt": "d"}]}, quote(work))
    assert created.json()["created"] == [{"dt": "d"}]
    assert set(names(page(app, work))) == {"dt=a", "dt=b", "dt=c", "dt=d"}
    assert set(names(page(app))) == {"dt=a", "dt=b"}

    forward_branch(handle, "work")
    assert counts(page(app)) == in_manifests(app)
    assert set(names(page(app))) == {"dt=a", "dt=b", "dt=c"}


def leaf(function: str, *literals: Any, name: str = "dt", kind: str = "STRING") -> Json:
    field = {"index": 0, "name": name, "type": kind}
    return {
        "kind": "LEAF",
        "transform": {"name": "FIELD_REF", "fieldRef": field},
        "function": function,
        "literals": literals,
    }


def test_filtered_pages_continue(app: Application) -> None:
    create_orders(app)
    commit(app, 1, [delta(dt=f"{each:02}") for each in range(30)])
    found: list[str] = []
    token = None
    while token is not None or not found:
        body = {"filter": json.dumps(leaf("LESS_THAN", "20")), "maxResults": 7}
        body |= {"partitionNamePattern": "dt=1%", "pageToken": token or ""}
        answer = send(app, "partitions/list-by-filter", body).json()
        found += names(answer)
        token = answer["nextPageToken"]
    assert found == [f"dt={each}" for each in range(19, 9, -1)]


def test_a_filter_that_is_no_json_is_rejected(app: Application) -> None:
    create_orders(app)
    for text in ("", "{", "[" * 300):
        assert send(app, "partitions/list-by-filter", {"filter": text}).status_code == 400


def test_a_long_list_of_statistics_stays_out_of_the_commit(app: Application) -> None:
    table = create_orders(app)
    many = [delta(dt=f"{each:05}") for each in range(INLINE_PARTITIONS + 500)]
    assert commit(app, 1, many).json() == {"success": True}
    commit(app, 2, [delta(dt="00007")])

    layout = handle_of(table).log.layout
    body = handle_of(table).log.store.read(layout.commit(1))
    assert body is not None
    assert len(body) < 2000
    found = page(app, maxResults=1000)
    assert len(found["partitions"]) == 1000
    rest = page(app, maxResults=1000, pageToken=found["nextPageToken"])
    assert len(rest["partitions"]) == 500
    assert rest["nextPageToken"] is None
    assert counts(rest)["00007",] == (2, 20, 2)
    send(app, "rollback", {"instant": {"type": "snapshot", "snapshotId": 1}})
    assert counts(page(app, partitionNamePattern="dt=00007")) == {("00007",): (1, 10, 1)}


def test_statistics_of_other_keys_are_rejected(app: Application) -> None:
    table = create_orders(app)
    for bad in ([delta(x="1")], [delta()], [delta(dt="1"), delta(dt="1")]):
        assert commit(app, 1, bad).status_code == 400
    assert table.state.version == 0


def test_a_table_of_another_origin_says_so(app: Application) -> None:
    app.lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "dt": "STRING"}, partition_keys=["dt"])
    app.lake.create_table("shop.orders", schema)
    answer = app.http.get(f"/paimon/v1/lakeledger/{ORDERS}/partitions")
    assert answer.status_code == 501
    assert "engines of Paimon do not commit to it" in answer.json()["message"]
    assert send(app, "partitions", {"partitionSpecs": [{"dt": "1"}]}).status_code == 501


def test_a_table_without_keys_lists_none(app: Application) -> None:
    create_orders(app, ())
    assert commit(app, 1, [delta(5)]).json() == {"success": True}

    assert page(app)["partitions"] == []
    by_names = send(app, "partitions/list-by-names", {"specs": [{}]})
    assert by_names.json()["partitions"] == []
    found = app.http.get(f"/paimon/v1/lakeledger/{ORDERS}/snapshot").json()["snapshot"]
    assert (found["recordCount"], found["fileSizeInBytes"], found["fileCount"]) == (5, 10, 1)
    assert send(app, "partitions", {"partitionSpecs": [{}]}).status_code == 400


def test_concurrent_requests_create_each_partition_once(app: Application) -> None:
    create_orders(app)
    specs = [{"dt": f"created-{each}"} for each in range(12)]
    created: list[Json] = []

    def create() -> None:
        for spec in specs:
            answer = send(app, "partitions", {"partitionSpecs": [spec]})
            assert answer.status_code == 200, answer.text
            created.extend(answer.json()["created"])

    with ThreadPoolExecutor(6) as pool:
        creating = [pool.submit(create) for _ in range(4)]
        listing = [pool.submit(page, app) for _ in range(30)]
        for number in range(1, 15):
            assert commit(app, number, [delta(dt=f"{number % 5}")]).json() == {"success": True}
        for task in creating:
            task.result()
        for listed in listing:
            listed.result()
    assert sorted(created, key=str) == sorted(specs, key=str)
    found = page(app, maxResults=1000)
    assert set(names(found)) == {
        *(f"dt={each['dt']}" for each in specs),
        *(f"dt={each}" for each in range(5)),
    }
    assert sum(records for records, _, _ in counts(found).values() if records > 0) == 14


def test_missing_tables_are_not_found(app: Application) -> None:
    create_orders(app)
    bodies: Mapping[str, Json] = {
        "partitions": {"partitionSpecs": []},
        "partitions/drop": {"partitionSpecs": []},
        "partitions/mark": {"specs": []},
        "partitions/list-by-names": {"specs": []},
        "partitions/list-by-filter": {"filter": "{}"},
    }
    for path, body in bodies.items():
        for table in ("databases/shop/tables/none", f"{ORDERS}$branch_none"):
            assert send(app, path, body, quote(table)).status_code == 404, path
