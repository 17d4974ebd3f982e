"""Branches through Paimon's protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from tests.projections.rest.paimon.paimon_application import (
    ORDERS,
    PaimonApplication,
    resource_error,
)

B1 = "orders$branch_b1"


def create(paimon: PaimonApplication, branch: str, tag: str | None = None) -> Response:
    return paimon.post(f"{ORDERS}/branches", {"branch": branch, "fromTag": tag})


def branches(paimon: PaimonApplication) -> Any:
    return paimon.get(f"{ORDERS}/branches").json()["branches"]


def with_branch(paimon: PaimonApplication) -> dict[str, Any]:
    """Create a table of two snapshots and a branch with the first one; return the table."""
    table = paimon.create()
    paimon.commit_next()
    assert paimon.post(f"{ORDERS}/tags", {"tagName": "v1"}).status_code == 200
    paimon.commit_next()
    assert create(paimon, "b1", "v1").status_code == 200
    return table


def folder_of(table: dict[str, Any]) -> Path:
    return Path(table["path"].removeprefix("file://"))


def files_of(folder: Path) -> list[str]:
    kinds = ("schema", "snapshot", "tag")
    found = (each for kind in kinds for each in folder.glob(f"{kind}/{kind}-*"))
    return sorted(each.relative_to(folder).as_posix() for each in found)


def snapshots(paimon: PaimonApplication, table: str = "orders") -> list[int]:
    listed = paimon.get(f"databases/shop/tables/{table}/snapshots").json()["snapshots"]
    return [each["id"] for each in listed]


def test_branches_are_created_listed_renamed_and_dropped(paimon: PaimonApplication) -> None:
    paimon.create()
    assert branches(paimon) == []

    assert create(paimon, "b2").status_code == 200
    assert create(paimon, "b1").status_code == 200
    assert branches(paimon) == ["b1", "b2"]

    renamed = paimon.post(f"{ORDERS}/branches/b2/rename", {"toBranch": "c"})
    assert renamed.status_code == 200, renamed.text
    assert branches(paimon) == ["b1", "c"]
    assert paimon.delete(f"{ORDERS}/branches/c").status_code == 200
    assert branches(paimon) == ["b1"]


def test_errors_name_the_branch_the_tag_or_the_table(paimon: PaimonApplication) -> None:
    paimon.create()
    create(paimon, "b1")
    create(paimon, "b2")
    branch = f"{ORDERS}/branches"

    assert resource_error(create(paimon, "b1")) == (409, "BRANCH", "b1")
    assert resource_error(create(paimon, "b3", "v9")) == (404, "TAG", "v9")
    assert resource_error(paimon.delete(f"{branch}/b9")) == (404, "BRANCH", "b9")
    forwarded = paimon.post(f"{branch}/b9/forward", {})
    assert resource_error(forwarded) == (404, "BRANCH", "b9")
    renamed = paimon.post(f"{branch}/b9/rename", {"toBranch": "c"})
    assert resource_error(renamed) == (404, "BRANCH", "b9")
    renamed = paimon.post(f"{branch}/b1/rename", {"toBranch": "b2"})
    assert resource_error(renamed) == (409, "BRANCH", "b2")
    other = paimon.post("databases/shop/tables/none/branches", {"branch": "b1"})
    assert resource_error(other) == (404, "TABLE", "none")
    of_branch = paimon.get("databases/shop/tables/orders$branch_b9")
    assert resource_error(of_branch) == (404, "TABLE", "orders$branch_b9")


@pytest.mark.parametrize("name", ["main", "MAIN", "", " ", "12", "a/b", "a$b", "x" * 250, "a\n"])
def test_a_name_that_engines_cannot_use_is_rejected(paimon: PaimonApplication, name: str) -> None:
    paimon.create()

    assert create(paimon, name).status_code == 400
    create(paimon, "b1")
    renamed = paimon.post(f"{ORDERS}/branches/b1/rename", {"toBranch": name})
    assert renamed.status_code == 400
    assert branches(paimon) == ["b1"]


def test_a_branch_begins_with_the_snapshot_of_a_tag(paimon: PaimonApplication) -> None:
    table = with_branch(paimon)

    folder = folder_of(table)
    inside = folder / "branch/branch-b1"
    assert files_of(inside) == ["schema/schema-0", "snapshot/snapshot-1", "tag/tag-v1"]
    for each in files_of(inside):
        assert (inside / each).read_text() == (folder / each).read_text()
    assert snapshots(paimon, B1) == [1]
    assert snapshots(paimon) == [1, 2]


def test_a_branch_has_snapshots_and_schemas_of_its_own(paimon: PaimonApplication) -> None:
    table = with_branch(paimon)
    change = {"action": "addColumn", "fieldNames": ["more"], "dataType": "INT"}

    made = [paimon.commit_next(B1), paimon.commit_next(B1)]
    assert paimon.post(f"databases/shop/tables/{B1}", {"changes": [change]}).status_code == 200

    branch = paimon.table(B1)
    assert (branch["name"], branch["id"]) == ("orders$branch_b1", table["id"])
    assert branch["schemaId"] == 1
    assert [each["name"] for each in branch["schema"]["fields"]][-1] == "more"
    assert paimon.table()["schemaId"] == 0
    assert (snapshots(paimon, B1), snapshots(paimon)) == ([1, 2, 3], [1, 2])
    inside = folder_of(table) / "branch/branch-b1"
    for each in made:
        found = json.loads((inside / f"snapshot/snapshot-{each['id']}").read_text())
        assert found.items() >= each.items()


def test_a_lost_race_on_a_branch_is_no_success(paimon: PaimonApplication) -> None:
    with_branch(paimon)
    first = paimon.get(f"databases/shop/tables/{B1}/snapshot").json()["snapshot"]["snapshot"]
    made = paimon.commit_next(B1)

    again = paimon.commit(made, B1, baseSnapshotUuid=first["uuid"])
    other = {**made, "commitIdentifier": 77, "uuid": "other"}
    lost = paimon.commit(other, B1, baseSnapshotUuid=first["uuid"])

    assert (again.json(), lost.json()) == ({"success": True}, {"success": False})
    assert snapshots(paimon, B1) == [1, 2]


def test_a_fast_forward_replaces_what_main_has_from_the_branch_on(
    paimon: PaimonApplication,
) -> None:
    table = with_branch(paimon)
    assert paimon.post(f"{ORDERS}/tags", {"tagName": "v2"}).status_code == 200
    paimon.commit_next(B1)
    made = paimon.commit_next(B1)

    done = paimon.post(f"{ORDERS}/branches/b1/forward", {})

    assert done.status_code == 200, done.text
    assert snapshots(paimon) == [1, 2, 3]
    newest = paimon.get(f"{ORDERS}/snapshot").json()["snapshot"]["snapshot"]
    assert newest.items() >= made.items()
    assert paimon.get(f"{ORDERS}/tags").json()["tags"] == ["v1"]
    folder = folder_of(table)
    assert files_of(folder) == files_of(folder / "branch/branch-b1")
    assert (folder / "snapshot/LATEST").read_text() == "3"
    paimon.commit_next()
    assert snapshots(paimon) == [1, 2, 3, 4]


def test_a_branch_without_snapshots_is_not_forwarded(paimon: PaimonApplication) -> None:
    with_branch(paimon)
    create(paimon, "empty")

    assert paimon.post(f"{ORDERS}/branches/empty/forward", {}).status_code == 400
    assert snapshots(paimon) == [1, 2]


def test_a_branch_is_rolled_back_alone(paimon: PaimonApplication) -> None:
    table = with_branch(paimon)
    paimon.commit_next(B1)

    instant = {"instant": {"type": "tag", "tagName": "v1"}}
    done = paimon.post(f"databases/shop/tables/{B1}/rollback", instant)

    assert done.status_code == 200, done.text
    assert (snapshots(paimon, B1), snapshots(paimon)) == ([1], [1, 2])
    assert "snapshot/snapshot-2" not in files_of(folder_of(table) / "branch/branch-b1")


def test_branches_of_a_branch_begin_with_its_contents(paimon: PaimonApplication) -> None:
    with_branch(paimon)
    paimon.commit_next(B1)
    of_branch = f"databases/shop/tables/{B1}"
    assert paimon.post(f"{of_branch}/tags", {"tagName": "w"}).status_code == 200

    made = paimon.post(f"{of_branch}/branches", {"branch": "b2", "fromTag": "w"})
    assert made.status_code == 200, made.text
    paimon.commit_next("orders$branch_b2")
    assert paimon.post(f"{of_branch}/branches/b2/forward", {}).status_code == 200

    assert snapshots(paimon, "orders$branch_b2") == [2, 3]
    assert snapshots(paimon, B1) == [1, 2, 3]
    assert snapshots(paimon) == [1, 2]
    assert resource_error(create(paimon, "b3", "w")) == (404, "TAG", "w")


def test_files_of_a_dropped_branch_are_no_files_of_a_new_one(paimon: PaimonApplication) -> None:
    table = with_branch(paimon)
    paimon.commit_next(B1)
    assert paimon.delete(f"{ORDERS}/branches/b1").status_code == 200
    inside = folder_of(table) / "branch/branch-b1"
    assert files_of(inside) == []
    # As if a server had been killed before it removed the file.
    (inside / "snapshot").mkdir(parents=True, exist_ok=True)
    (inside / "snapshot/snapshot-9").write_text("{}")

    assert create(paimon, "b1", "v1").status_code == 200

    assert files_of(inside) == ["schema/schema-0", "snapshot/snapshot-1", "tag/tag-v1"]
    assert snapshots(paimon, B1) == [1]


def test_a_table_that_the_library_writes_has_no_branches(paimon: PaimonApplication) -> None:
    paimon.create_database()
    paimon.lake.create_table("shop.own", {"id": "BIGINT"})

    assert paimon.get("databases/shop/tables/own/branches").json() == {"branches": []}
    made = paimon.post("databases/shop/tables/own/branches", {"branch": "b1"})
    assert made.status_code in {400, 501}
    assert "the ledger commits the data" in made.json()["message"]
