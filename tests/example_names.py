"""Names defined for the examples in the docstrings of `Ledger`, `Table` and `TableAt`."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ledger import Ledger, Table

_numbers = count()


@pytest.fixture(autouse=True)
def _names(request: pytest.FixtureRequest) -> None:
    """Give an example a ledger, and a table of two columns with one file and one tag.

    The file of TableAt's examples is there to be read. Table's and TableBranch's know a `new_file`
    that is in no table yet, Ledger's and Table's the folder of `theirs`, a Delta table that others
    write.
    """
    if not isinstance(request.node, pytest.DoctestItem):
        return
    names: dict[str, Any] = request.getfixturevalue("doctest_namespace")
    of = request.node.name.rpartition(".")[0]
    if of not in _OF:
        return
    import ledger

    if of == "ledger.table_at.TableAt":
        folder: Path = request.getfixturevalue("tmp_path")
        lake, orders = _table(folder.as_uri())
        file = folder / "shop.db" / "orders" / "a.parquet"
        write_two_rows(file)
        orders.add_files(file)
    else:
        lake, orders = _table(f"memory://example-{next(_numbers)}")
        orders.append([ledger.FileChange(path="a.parquet", record_count=2, file_size_in_bytes=90)])
    if of in _WITH_A_TABLE_OF_OTHERS:
        names["theirs"] = str(request.getfixturevalue("tmp_path") / "web" / "visits")
        write_delta_log(Path(names["theirs"]))
    if of in _WITH_A_NEW_FILE:
        names["new_file"] = request.getfixturevalue("tmp_path") / "b.parquet"
        write_two_rows(names["new_file"])
    orders.create_tag("v1")
    names.update(ledger=ledger, lake=lake, orders=orders)


_WITH_A_NEW_FILE = ("ledger.table.Table", "ledger.table_branch.TableBranch")
_WITH_A_TABLE_OF_OTHERS = ("ledger.ledger.Ledger", "ledger.table.Table")
_FRONTS = tuple(f"ledger.updates.{each}" for each in ("UpdateSchema", "UpdateSpec", "ReplaceOrder"))
_OF = ("ledger.ledger.Ledger", "ledger.table_at.TableAt", *_WITH_A_NEW_FILE, *_FRONTS)


def _table(url: str) -> tuple[Ledger, Table]:
    import ledger

    # Commits of one millisecond would have no order between streams.
    clock = count(1_700_000_000_000, 1000)
    lake = ledger.open(url, author="ann", clock=lambda: next(clock))
    lake.create_database("shop")
    return lake, lake.create_table("shop.orders", {"id": "BIGINT", "addr": "STRING"})


def write_delta_log(folder: Path) -> None:
    """Write a Delta table of one column whose file is not there."""
    column = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    metadata = {
        "id": "8c9d",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [column]}),
        "partitionColumns": [],
        "configuration": {},
    }
    file = {
        "path": "a.parquet",
        "partitionValues": {},
        "size": 90,
        "modificationTime": 1_600_000_000_000,
        "dataChange": True,
        "stats": json.dumps({"numRecords": 2}),
    }
    actions = [
        {"commitInfo": {"timestamp": 1_600_000_000_000, "operation": "WRITE"}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
        {"add": file},
    ]
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))


def write_two_rows(file: Path) -> None:
    """Write a Parquet file of the columns `id` and `addr`."""
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"id": [1, 2], "addr": ["Oslo", "Rome"]}), file)
