"""Tables whose logs are damaged: lists have the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.projections.rest.paimon.paimon_application import paimon_application


def test_a_damaged_table_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with paimon_application(tmp_path) as paimon:
        paimon.create()
        lost = paimon.create("bills")["path"].removeprefix("file://")
    for each in Path(lost, "_ledger", "log").iterdir():
        each.write_bytes(b"damaged")

    with paimon_application(tmp_path) as paimon:
        details = paimon.get("databases/shop/table-details").json()["tableDetails"]
        typed = paimon.get("databases/shop/tables", tableType="table").json()["tables"]
        plain = paimon.get("databases/shop/tables").json()["tables"]

    assert [each["name"] for each in details] == ["orders"]
    assert typed == ["orders"]
    assert plain == ["bills", "orders"]
    logged = capsys.readouterr()
    assert "table_not_listed" in logged.out + logged.err
