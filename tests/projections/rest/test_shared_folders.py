"""Folders that Iceberg's clients give tables: none meets another table's, or holds a ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, assert_never

import pytest
from httpx import Response

from ledger import InvalidChangeError
from tests.projections.rest.application import SCHEMA, Application, error_of

TAKEN = {
    "shop.db/native": "meets the folder of table shop.native",
    "shop.db/native/data/x": "meets the folder of table shop.native",
    "SHOP.db/Native": "meets the folder of table shop.native",
    "out/./z/../t": "meets the folder of table shop.other",
    "out": "meets the folder of table shop.other",
    "out/t/inside": "meets the folder of table shop.other",
    "link/t": "meets the folder of table shop.other",
    "shop.db": "holds the folder of database shop",
    "": "holds the ledger's root",
    "_ledger/t": "folder _ledger",
}
"""Reasons against a place below the ledger's root."""

Call = Literal["create", "stage", "register", "move"]


def lake_with_tables(app: Application) -> Path:
    """Create a native table, and one of engines in the folder `out/t`; return the root."""
    app.create("other", location=f"{app.lake.url}/out/t")
    app.lake.create_table("shop.native", {"id": "INT"})
    root = Path(app.lake.url.removeprefix("file://"))
    (root / "link").symlink_to(root / "out")
    return root


def ask(app: Application, call: Call, location: str) -> Response:
    """Ask for a table shop.orders in a folder, by one of the requests that name one."""
    body: dict[str, Any] = {"name": "orders", "schema": SCHEMA, "location": location}
    match call:
        case "create":
            return app.post("namespaces/shop/tables", body)
        case "stage":
            return app.post("namespaces/shop/tables", {**body, "stage-create": True})
        case "register":
            made = json.loads(app.get("namespaces/shop/tables/other").content)["metadata"]
            file = Path(app.lake.url.removeprefix("file://")) / "old.metadata.json"
            file.write_text(json.dumps(made | {"location": location}))
            wanted = {"name": "orders", "metadata-location": str(file)}
            return app.post("namespaces/shop/register", wanted)
        case "move":
            app.create("orders")
            return app.commit({"action": "set-location", "location": location})
        case never:
            assert_never(never)


@pytest.mark.parametrize("path", TAKEN)
@pytest.mark.parametrize("call", ["create", "stage", "register", "move"])
def test_a_folder_that_meets_another_table_s_or_a_ledger_s_is_rejected(
    app: Application, call: Call, path: str
) -> None:
    lake_with_tables(app)
    status, _, message = error_of(ask(app, call, f"{app.lake.url}/{path}".rstrip("/")))

    assert status == 400
    assert TAKEN[path] in message
    if call == "move":
        assert app.lake.table("shop.orders").state.version == 0
    else:
        assert app.lake.tables("shop") == ["native", "other"]


@pytest.mark.parametrize("path", ["out/t2", "elsewhere/t", "shop.db/chosen"])
@pytest.mark.parametrize("call", ["create", "stage", "register", "move"])
def test_a_folder_of_its_own_is_not(app: Application, call: Call, path: str) -> None:
    lake_with_tables(app)
    made = ask(app, call, f"{app.lake.url}/{path}")
    assert made.json()["metadata"]["location"] == f"{app.lake.url}/{path}"


def test_nor_is_that_of_a_dropped_table(app: Application) -> None:
    location = f"{lake_with_tables(app)}/out/t"
    app.delete("namespaces/shop/tables/other")
    assert ask(app, "create", location).status_code == 200


def test_a_table_of_the_library_is_not_created_over_that_of_engines(
    app: Application, tmp_path: Path
) -> None:
    lake_with_tables(app)
    outside = tmp_path / "mirrored"
    app.lake.create_table("shop.source", {"id": "INT"}, location=str(outside))
    for location in (f"{app.lake.url}/out/t/x", str(outside), str(outside / "x")):
        with pytest.raises(InvalidChangeError, match="meets the folder of table shop"):
            app.lake.create_table("shop.orders", {"id": "INT"}, location=location)
    assert app.lake.tables("shop") == ["native", "other", "source"]
