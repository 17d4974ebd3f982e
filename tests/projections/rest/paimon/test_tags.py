"""Tags through Paimon's protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from tests.projections.rest.paimon.paimon_application import (
    ORDERS,
    SCHEMA,
    PaimonApplication,
    resource_error,
)

TAGS = f"{ORDERS}/tags"


def create(paimon: PaimonApplication, name: str, **more: Any) -> Response:
    return paimon.post(TAGS, {"tagName": name, **more})


def created(paimon: PaimonApplication, name: str, **more: Any) -> dict[str, Any]:
    made = create(paimon, name, **more)
    assert made.status_code == 200, made.text
    return dict(paimon.get(f"{TAGS}/{name}").json())


def names(paimon: PaimonApplication, **query: str) -> Any:
    return paimon.get(TAGS, **query).json()["tags"]


def folder_of(table: dict[str, Any]) -> Path:
    return Path(table["path"].removeprefix("file://"))


@pytest.fixture
def table(paimon: PaimonApplication) -> dict[str, Any]:
    """A table of two snapshots."""
    found = paimon.create()
    paimon.commit_next()
    paimon.commit_next()
    return found


@pytest.mark.usefixtures("table")
def test_a_tag_is_of_the_newest_snapshot_or_of_the_given_one(paimon: PaimonApplication) -> None:
    newest, older = created(paimon, "v2"), created(paimon, "v1", snapshotId=1)

    assert (newest["tagName"], newest["snapshot"]["id"]) == ("v2", 2)
    assert older["snapshot"]["id"] == 1
    assert newest["tagCreateTime"] is newest["tagTimeRetained"] is None
    assert paimon.get(f"{ORDERS}/snapshots/v1").json()["snapshot"]["id"] == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [("1 d", "PT24H"), ("1d", "PT24H"), ("90 min", "PT1H30M"), ("1500", "PT1.5S")],
)
@pytest.mark.usefixtures("table")
def test_a_tag_has_its_retention(paimon: PaimonApplication, text: str, kept: str) -> None:
    tag = created(paimon, "v1", timeRetained=text)

    assert tag["tagTimeRetained"] == kept
    assert tag["tagCreateTime"] > 0


@pytest.mark.parametrize(
    "text", ["", "0 s", "soon", "1 week", "-1 d", "5 µs", "9" * 19 + " d", "1 d 2 h"]
)
@pytest.mark.usefixtures("table")
def test_a_retention_that_cannot_be_kept_is_rejected(paimon: PaimonApplication, text: str) -> None:
    assert create(paimon, "v1", timeRetained=text).status_code == 400
    assert names(paimon) == []


def test_a_table_may_have_a_default_retention(paimon: PaimonApplication) -> None:
    options = {**SCHEMA["options"], "tag.default-time-retained": "2 h"}
    paimon.create(schema={**SCHEMA, "options": options})
    paimon.commit_next()

    assert created(paimon, "v1")["tagTimeRetained"] == "PT2H"
    assert created(paimon, "v2", timeRetained="1 h")["tagTimeRetained"] == "PT1H"


@pytest.mark.usefixtures("table")
def test_tags_are_listed_in_pages_and_by_their_prefix(paimon: PaimonApplication) -> None:
    for each in ("b", "a2", "a_1", "a%"):
        assert create(paimon, each).status_code == 200

    first = paimon.get(TAGS, maxResults="3").json()
    last = paimon.get(TAGS, maxResults="3", pageToken=first["nextPageToken"]).json()
    assert [*first["tags"], *last["tags"]] == ["a%", "a2", "a_1", "b"]
    assert last["nextPageToken"] is None
    assert names(paimon, tagNamePrefix="a_") == ["a_1"]
    assert names(paimon, tagNamePrefix="") == ["a%", "a2", "a_1", "b"]


@pytest.mark.usefixtures("table")
def test_errors_name_the_tag_the_snapshot_or_the_table(paimon: PaimonApplication) -> None:
    created(paimon, "v1", snapshotId=1)

    assert resource_error(create(paimon, "v1")) == (409, "TAG", "v1")
    assert create(paimon, "v1", ignoreIfExists=True).status_code == 200
    assert paimon.get(f"{TAGS}/v1").json()["snapshot"]["id"] == 1
    assert resource_error(create(paimon, "v9", snapshotId=99)) == (404, "SNAPSHOT", "99")
    assert resource_error(paimon.get(f"{TAGS}/v9")) == (404, "TAG", "v9")
    assert resource_error(paimon.delete(f"{TAGS}/v9")) == (404, "TAG", "v9")
    assert resource_error(paimon.get("databases/shop/tables/none/tags")) == (404, "TABLE", "none")
    for name in ("", " ", "a/b", "a\nb", "x" * 300):
        assert create(paimon, name).status_code == 400
    assert names(paimon) == ["v1"]


def test_a_table_without_snapshots_has_none_to_tag(paimon: PaimonApplication) -> None:
    paimon.create()

    assert resource_error(create(paimon, "v1"))[:2] == (404, "SNAPSHOT")


def test_a_tag_has_a_file_until_it_is_deleted(
    paimon: PaimonApplication, table: dict[str, Any]
) -> None:
    created(paimon, "v1", snapshotId=1, timeRetained="1 d")

    file = folder_of(table) / "tag/tag-v1"
    assert json.loads(file.read_text())["id"] == 1
    assert paimon.delete(f"{TAGS}/v1").status_code == 200
    assert not file.exists()
    assert names(paimon) == []


def test_a_tag_that_an_engine_writes_is_listed(
    paimon: PaimonApplication, table: dict[str, Any]
) -> None:
    folder = folder_of(table)
    (folder / "tag").mkdir()
    (folder / "tag/tag-auto").write_text((folder / "snapshot/snapshot-1").read_text())

    assert names(paimon) == ["auto"]
    assert paimon.get(f"{TAGS}/auto").json()["snapshot"]["id"] == 1
    rolled_back = paimon.post(f"{ORDERS}/rollback", {"instant": {"type": "tag", "tagName": "auto"}})
    assert rolled_back.status_code == 200, rolled_back.text
    assert paimon.delete(f"{TAGS}/auto").status_code == 200
    assert names(paimon) == []


@pytest.mark.usefixtures("table")
def test_a_branch_has_tags_of_its_own(paimon: PaimonApplication) -> None:
    created(paimon, "v1")
    assert paimon.post(f"{ORDERS}/branches", {"branch": "b1", "fromTag": "v1"}).status_code == 200
    branch = "databases/shop/tables/orders$branch_b1/tags"

    assert paimon.post(branch, {"tagName": "w", "timeRetained": "1 d"}).status_code == 200
    assert paimon.get(branch).json()["tags"] == ["v1", "w"]
    assert paimon.get(f"{branch}/w").json()["tagTimeRetained"] == "PT24H"
    assert paimon.delete(f"{branch}/v1").status_code == 200
    assert (paimon.get(branch).json()["tags"], names(paimon)) == (["w"], ["v1"])
