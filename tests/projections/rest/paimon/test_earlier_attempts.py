"""A commit that is sent again is never said to be rejected if its first attempt was applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.projections.rest.paimon.paimon_application import (
    BATCH,
    ORDERS,
    PaimonApplication,
    resource_error,
    snapshot,
)

SALES = "databases/shop/tables/sales"


def rename(app: PaimonApplication) -> None:
    names = {
        key: {"database": "shop", "object": name}
        for key, name in (("source", "orders"), ("destination", "sales"))
    }
    assert app.post("tables/rename", names).status_code == 200


def drop(app: PaimonApplication) -> None:
    assert app.delete(ORDERS).status_code == 200


def replace_by_rename(app: PaimonApplication) -> None:
    rename(app)
    app.create()


def replace_by_drop(app: PaimonApplication) -> None:
    drop(app)
    app.create()


def rename_and_drop(app: PaimonApplication) -> None:
    rename(app)
    assert app.delete(SALES).status_code == 200


Change = Callable[[PaimonApplication], None]
CHANGES: list[Change] = [rename, replace_by_rename, drop, replace_by_drop, rename_and_drop]
EACH_CHANGE = pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)


def commit_body(app: PaimonApplication, identifier: int) -> dict[str, Any]:
    return {
        "tableId": app.table()["id"],
        "baseSnapshotUuid": None,
        "snapshot": snapshot(1, commitIdentifier=identifier),
        "statistics": [],
    }


@EACH_CHANGE
@pytest.mark.parametrize("identifier", [1, BATCH], ids=["stream", "batch"])
@pytest.mark.parametrize("branch", ["", "$branch_work"], ids=["main", "branch"])
def test_a_commit_that_was_applied_is_not_rejected_after_its_table_lost_the_name(
    paimon: PaimonApplication, change: Change, identifier: int, branch: str
) -> None:
    paimon.create()
    assert paimon.post(f"{ORDERS}/branches", {"branch": "work"}).status_code == 200
    body = commit_body(paimon, identifier)
    path = f"{ORDERS}{branch}/commit"
    assert paimon.post(path, body).json() == {"success": True}
    change(paimon)
    again = paimon.post(path, body)

    if change in (rename, replace_by_rename):
        assert again.json() == {"success": True}
        found = paimon.get(f"{SALES}{branch}/snapshots").json()["snapshots"]
        assert [each["uuid"] for each in found] == [body["snapshot"]["uuid"]]
    else:
        assert resource_error(again)[0] == 500
    if change in (replace_by_rename, replace_by_drop):
        assert paimon.get(f"{ORDERS}/snapshot").status_code == 404


@EACH_CHANGE
def test_a_commit_that_was_not_applied_is_rejected_after_its_table_lost_the_name(
    paimon: PaimonApplication, change: Change
) -> None:
    paimon.create()
    body = commit_body(paimon, 1)
    change(paimon)

    assert resource_error(paimon.post(f"{ORDERS}/commit", body))[0] == 404
