"""Flink SQL does the same through this server as through Paimon's own catalog of files.

After every statement its rows are compared, and what pypaimon finds of the table in both places.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ledger
from ledger.cli import main
from tests.projections.rest.paimon.flink_session import Flink, flink_session
from tests.projections.rest.paimon.paimon_clients import Observer
from tests.projections.rest.paimon.pypaimon_client import DATABASE, PypaimonClient
from tests.projections.rest.rest_servers import RestServer, ledger_server

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

STATEMENTS = (
    (
        "CREATE TABLE {t} (id INT, city STRING, amount INT, PRIMARY KEY (id) NOT ENFORCED) "
        "COMMENT 'all orders' WITH ('bucket'='2', 'changelog-producer'='input')"
    ),
    "INSERT INTO {t} VALUES (1, 'Oslo', 10), (2, 'Rome', 20), (3, CAST(NULL AS STRING), 30)",
    "INSERT INTO {t} VALUES (2, 'Roma', 21), (4, 'Lima', 40)",
    "ALTER TABLE {t} ADD (note STRING COMMENT 'free' AFTER id)",
    "ALTER TABLE {t} RENAME city TO town",
    "ALTER TABLE {t} MODIFY (amount BIGINT)",
    "ALTER TABLE {t} SET ('owner.team'='sales')",
    "ALTER TABLE {t} RESET ('owner.team')",
    "INSERT INTO {t} VALUES (5, 'n', 'Kyiv', 50)",
    "UPDATE {t} SET note = 'changed' WHERE id = 1",
    "DELETE FROM {t} WHERE id = 3",
    "CALL {c}.sys.create_tag(`table` => '{d}.orders', tag => 'early', snapshot_id => 2)",
    "SELECT * FROM {t} /*+ OPTIONS('scan.snapshot-id'='1') */",
    "SELECT * FROM {t} /*+ OPTIONS('scan.tag-name'='early') */",
    "SELECT snapshot_id, schema_id, commit_kind FROM {c}.{d}.`orders$snapshots`",
    "SELECT tag_name, snapshot_id FROM {c}.{d}.`orders$tags`",
    "CALL {c}.sys.create_branch('{d}.orders', 'work', 'early')",
    "INSERT INTO {c}.{d}.`orders$branch_work` VALUES (9, 'Bern', 90)",
    "SELECT * FROM {c}.{d}.`orders$branch_work`",
    "CALL {c}.sys.fast_forward('{d}.orders', 'work')",
    "CALL {c}.sys.rollback_to(`table` => '{d}.orders', snapshot_id => CAST(2 AS BIGINT))",
    "INSERT INTO {t} VALUES (10, 'Pisa', 5)",
    "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id > 1",
    "SELECT * FROM {t}",
    "ALTER TABLE {t} DROP amount",
    "TRUNCATE TABLE {t}",
)


def test_flink_does_the_same_as_with_files(tmp_path: Path, served: RestServer) -> None:
    warehouse = str(tmp_path / "files")
    uri = f"{served.uri}/paimon"
    token = {"token.provider": "bear", "token": "any"}
    # A cached table would be written with a schema that a forwarded branch does not have.
    fresh = {"cache-enabled": "false"}
    rest = {"metastore": "rest", "uri": uri, "warehouse": served.warehouse}
    catalogs = {
        "files": {"warehouse": warehouse, **fresh},
        "served": {**rest, **token, **fresh},
    }
    folder = tmp_path / "flink"
    folder.mkdir()
    with flink_session(folder, catalogs) as flink:
        clients = {
            "files": PypaimonClient.of_files(warehouse),
            "served": PypaimonClient.of_server(uri, served.warehouse),
        }
        observers = {name: Observer(client) for name, client in clients.items()}
        for name in clients:
            flink.run(f"CREATE DATABASE {name}.{DATABASE}")
        for statement in STATEMENTS:
            expected = _run(flink, "files", statement)
            assert _run(flink, "served", statement) == expected, statement
            seen = observers["files"].table("orders")
            assert observers["served"].table("orders") == seen, statement


@pytest.fixture
def served(tmp_path: Path) -> Iterator[RestServer]:
    """The command `serve` on a new ledger, which is intact afterwards."""
    url = str(tmp_path / "ledger")
    ledger.open(url).init()
    with ledger_server(tmp_path, url) as server:
        yield server
    assert main(["verify", "--ledger", url]) == 0


def _run(flink: Flink, catalog: str, statement: str) -> list[str]:
    table = f"{catalog}.{DATABASE}.orders"
    return flink.run(statement.format(t=table, c=catalog, d=DATABASE))
