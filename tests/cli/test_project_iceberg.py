from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger import FileChange, Table
from ledger import open as open_ledger
from ledger.table_handle import handle_of
from projections.iceberg import expected, verify

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"
PROJECT = ("project", "iceberg", TABLE)

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture
def orders(shop: Run, tmp_path: Path) -> Table:
    """Return the table after a snapshot and a tag, in version 2."""
    del shop
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    file = FileChange(
        path="a.parquet", partition=("2013-01-01",), record_count=3, file_size_in_bytes=900
    )
    table.append([file])
    table.create_tag("v1")
    return table


def metadata(table: Table) -> Path:
    return Path(table.location.removeprefix("file://")) / "metadata"


def test_the_files_are_where_iceberg_looks_for_them(shop: Run, orders: Table) -> None:
    ran = shop(*PROJECT)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"{TABLE} is projected up to version 2; "
        f"readers open {orders.location}/metadata/v2.metadata.json\n"
    )
    for path, body in expected(handle_of(orders)).items():
        assert (metadata(orders).parent / path).read_bytes() == body
    assert (metadata(orders) / "version-hint.text").read_text() == "2"


def test_an_older_version_is_written_next_to_the_newest(shop: Run, orders: Table) -> None:
    assert shop(*PROJECT).code == 0

    ran = shop(*PROJECT, "--at", "0", "--output", "json")

    opens = f"{orders.location}/metadata/v0.metadata.json"
    known = {"table": TABLE, "path": orders.location, "version": 0, "opens": opens}
    assert ran.document == known
    (oldest,) = metadata(orders).glob("00000-*.metadata.json")
    assert json.loads(oldest.read_bytes())["current-snapshot-id"] == -1
    assert (metadata(orders) / "version-hint.text").read_text() == "2"
    assert verify(handle_of(orders)).is_empty


def test_every_version_on_the_way_is_written_when_asked_for(shop: Run, orders: Table) -> None:
    assert shop(*PROJECT, "--every", "1").code == 0

    assert len(list(metadata(orders).glob("0000?-*.metadata.json"))) == 3


def test_verify_names_what_is_missing_and_rebuild_restores_it(shop: Run, orders: Table) -> None:
    assert shop(*PROJECT).code == 0
    assert shop(*PROJECT, "--verify").code == 0
    (gone,) = metadata(orders).glob("snap-1-*.avro")
    gone.unlink()

    found = shop(*PROJECT, "--verify", "--output", "json")
    assert (found.code, found.document["missing"]) == (6, [f"metadata/{gone.name}"])
    assert "1 of the Iceberg files of shop.orders are missing or changed" in found.err

    assert shop(*PROJECT, "--rebuild").code == 0
    assert shop(*PROJECT, "--verify").code == 0


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (
            [TABLE, "--verify"],
            3,
            "has no Iceberg files yet; create them with: lakeledger project ice",
        ),
        ([TABLE, "--at", "9"], 3, "9"),
        ([TABLE, "--every", "0"], 1, "give 1 or more"),
        ([TABLE, "--verify", "--every", "2"], 2, "give one of --at, --every, --follow"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line_with_its_own_exit_code(
    shop: Run, line: list[str], code: int, said: str
) -> None:
    ran = shop("project", "iceberg", *line)

    assert said in ran.err
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
