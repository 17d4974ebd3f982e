"""Trino does the same through this server as through Iceberg's reference server.

After every statement the metadata of the table and the rows of each new snapshot are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import frozen
from pyiceberg.catalog.rest import RestCatalog

import ledger
from ledger.cli import main
from projections.rest.authentication import add_token
from tests.independent.agreeing import agrees
from tests.projections.rest.catalog_observer import Observer
from tests.projections.rest.client_scripts import Step
from tests.projections.rest.rest_servers import RestServer, ledger_server
from tests.projections.rest.test_serving_page import ADDRESS, blocks, statements
from tests.projections.rest.trino_server import TRINO, Trino, trino_server

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

STATEMENTS = (
    (
        "CREATE TABLE {t} (id BIGINT NOT NULL, city VARCHAR COMMENT 'where', day DATE, "
        "price DECIMAL(9, 2), seen TIMESTAMP(6) WITH TIME ZONE, tags ARRAY(VARCHAR), "
        "place ROW(x INTEGER, y INTEGER), counts MAP(VARCHAR, BIGINT)) COMMENT 'all orders' WITH "
        "(partitioning = ARRAY['bucket(id, 2)', 'month(day)'], sorted_by = ARRAY['id'])"
    ),
    (
        "INSERT INTO {t} VALUES (1, 'Oslo', DATE '2024-01-05', 1.50, "
        "TIMESTAMP '2024-01-05 10:00:00 UTC', ARRAY['a', NULL], ROW(1, 2), "
        "MAP(ARRAY['k'], ARRAY[BIGINT '1'])), (2, 'Rome', NULL, NULL, NULL, NULL, NULL, NULL), "
        "(3, 'Lima', DATE '2024-02-01', 3.25, NULL, ARRAY[], ROW(NULL, 5), NULL)"
    ),
    "ALTER TABLE {t} RENAME COLUMN city TO town",
    "ALTER TABLE {t} ADD COLUMN note VARCHAR COMMENT 'free'",
    "ALTER TABLE {t} ADD COLUMN place.z INTEGER",
    "ALTER TABLE {t} RENAME COLUMN place.y TO why",
    "ALTER TABLE {t} ALTER COLUMN place.x SET DATA TYPE BIGINT",
    "ALTER TABLE {t} ALTER COLUMN price SET DATA TYPE DECIMAL(12, 2)",
    "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL",
    "ALTER TABLE {t} DROP COLUMN place.why",
    "ALTER TABLE {t} DROP COLUMN counts",
    "COMMENT ON TABLE {t} IS 'every order'",
    "COMMENT ON COLUMN {t}.note IS 'a note'",
    "ALTER TABLE {t} SET PROPERTIES extra_properties = MAP(ARRAY['team'], ARRAY['sales'])",
    "DELETE FROM {t} WHERE id = 2",
    "UPDATE {t} SET note = 'changed' WHERE town = 'Oslo'",
    (
        "MERGE INTO {t} t USING (VALUES (BIGINT '3', 'Quito'), (BIGINT '4', 'Kyiv')) "
        "AS s (id, town) ON t.id = s.id WHEN MATCHED THEN UPDATE SET town = s.town "
        "WHEN NOT MATCHED THEN INSERT (id, town) VALUES (s.id, s.town)"
    ),
    "ANALYZE {t}",
    "ALTER TABLE {t} SET PROPERTIES partitioning = ARRAY['town'], sorted_by = ARRAY[]",
    "INSERT INTO {t} (id, town) VALUES (9, 'Bonn'), (10, 'Pisa')",
    "DELETE FROM {t} WHERE town = 'Pisa'",
    "ALTER TABLE {t} EXECUTE optimize",
    "ALTER TABLE {t} EXECUTE optimize_manifests",
    "ALTER TABLE {t} EXECUTE drop_extended_stats",
    "ALTER TABLE {t} EXECUTE expire_snapshots(retention_threshold => '0s')",
    "INSERT INTO {t} (id, town) VALUES (11, 'Nice')",
    "ALTER TABLE {t} EXECUTE remove_orphan_files(retention_threshold => '0s')",
    "TRUNCATE TABLE {t}",
)
REPLACEMENTS = (
    "CREATE TABLE {t} WITH (format = 'ORC') AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) s (id, x)",
    "CREATE OR REPLACE TABLE {t} (other VARCHAR)",
    "INSERT INTO {t} VALUES ('c')",
    "CREATE OR REPLACE TABLE {t} AS SELECT 3 AS id, 'd' AS x",
)
VIEWS = (
    "CREATE VIEW {c}.db.seen AS SELECT id, town FROM {c}.db.orders",
    "CREATE OR REPLACE VIEW {c}.db.seen AS SELECT id FROM {c}.db.orders",
    "COMMENT ON VIEW {c}.db.seen IS 'ids'",
)
ENDINGS = (
    "ALTER VIEW {c}.db.seen RENAME TO {c}.db.looked",
    "ALTER TABLE {c}.db.made RENAME TO {c}.db.renamed",
    "SHOW TABLES FROM {c}.db",
    "SHOW COLUMNS FROM {c}.db.orders",
    "DROP VIEW {c}.db.looked",
    "DROP TABLE {c}.db.renamed",
    "DROP TABLE {c}.db.orders",
    "CREATE TABLE {c}.db.orders (again INTEGER)",
    "DROP SCHEMA {c}.db CASCADE",
)
_FREEDOMS = """iceberg.allowed-extra-properties=*
iceberg.expire-snapshots.min-retention=0s
iceberg.remove-orphan-files.min-retention=0s
"""


@frozen
class OwnedServer:
    """A server that needs tokens.

    Attributes:
        server: The server.
        tokens: Tokens by the names of their owners.
    """

    server: RestServer
    tokens: Mapping[str, str]


def trino_script(trino: Trino, catalog: str, uri: str, location: str) -> Iterator[Step]:
    """Run what Trino can do in a catalog.

    Args:
        trino: The node.
        catalog: The catalog's name.
        uri: Its server.
        location: A clause that says where the tables of a schema go, or nothing.
    """

    def rows(name: str, snapshot: int) -> list[str]:
        found = trino.run(f"SELECT * FROM {catalog}.db.{name} FOR VERSION AS OF {snapshot}")  # noqa: S608
        return sorted(map(str, found))

    seen = Observer(uri, rows)
    trino.run(f"CREATE SCHEMA {catalog}.db {location}")
    yield "namespaces", seen.namespaces()
    for name, changes in (("orders", STATEMENTS), ("made", REPLACEMENTS)):
        for each in changes:
            trino.run(each.format(t=f"{catalog}.db.{name}"))
            yield each, seen.table(name)
    for each in VIEWS:
        trino.run(each.format(c=catalog))
        # Its text names the catalog, which no two servers share.
        yield each, json.loads(json.dumps(seen.view("seen")).replace(catalog, "catalog"))
    for each in ENDINGS:
        yield each, (trino.run(each.format(c=catalog)), seen.namespaces())


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnedServer]:
    """A server that Trino has a token of."""
    folder = tmp_path_factory.mktemp("owned")
    url = str(folder / "ledger")
    ledger.open(url).init()
    tokens = {name: add_token(folder / "tokens", name) for name in ("trino", "zoe")}
    with ledger_server(folder, url, "--token-file", str(folder / "tokens")) as server:
        yield OwnedServer(server, tokens)


@pytest.fixture(scope="module")
def trino(served: RestServer, reference: RestServer, owned: OwnedServer) -> Iterator[Trino]:
    properties, _, _, secured = blocks("Trino")
    catalogs = {
        "served": properties.replace(ADDRESS, served.uri) + _FREEDOMS,
        "reference": properties.replace(ADDRESS, reference.uri) + _FREEDOMS,
        "lake": properties.replace(ADDRESS, owned.server.uri)
        + secured.replace("TOKEN", owned.tokens["trino"]),
    }
    with trino_server(catalogs) as found:
        yield found


def test_trino_does_the_same_as_with_the_reference_server(
    trino: Trino, reference: RestServer, served: RestServer
) -> None:
    # Trino reads no location without a scheme, such as the reference server's own.
    place = f"WITH (location = 'file://{reference.warehouse}/db')"
    expected = trino_script(trino, "reference", reference.uri, place)
    for one, other in zip_longest(expected, trino_script(trino, "served", served.uri, "")):
        assert other == one, one[0]
    assert main(["verify", "--ledger", served.warehouse]) == 0


def test_trino_and_other_programs_write_one_table_whose_history_tells_all(
    trino: Trino, owned: OwnedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = RestCatalog("lake", uri=owned.server.uri, token=owned.tokens["zoe"])
    catalog.create_namespace("shop")
    rows = pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]})
    orders = catalog.create_table("shop.orders", rows.schema)
    orders.append(rows)
    first = orders.current_snapshot()
    assert first is not None
    orders.manage_snapshots().create_tag(first.snapshot_id, "start").commit()
    _, script, shown, _ = blocks("Trino")
    assert f"{[trino.run(each) for each in statements(script)][-1][0][0]}\n" == shown
    trino.run("ALTER TABLE lake.shop.orders RENAME COLUMN city TO town")
    trino.run("DELETE FROM lake.shop.orders WHERE id = 1")
    lake = ledger.open(owned.server.warehouse, author="bob")
    lake.table("shop.orders").alter([ledger.AddColumn("note", "STRING")], message="a merger")
    trino.run("UPDATE lake.shop.orders SET note = 'new' WHERE id = 5")
    orders.refresh()
    added = {"id": [6], "town": ["Lima"], "note": [None]}
    orders.append(pa.table(added, orders.schema().as_arrow()))

    now = [[2, "Rome", None], [5, "Berlin", "new"], [6, "Lima", None]]
    assert trino.run("SELECT * FROM lake.shop.orders ORDER BY id") == now
    assert _rows(orders.scan().to_arrow()) == now
    assert _rows(lake.table("shop.orders").to_arrow()) == now
    for version in (f"{first.snapshot_id}", "'start'"):
        old = f"SELECT * FROM lake.shop.orders FOR VERSION AS OF {version} ORDER BY id"  # noqa: S608
        assert trino.run(old) == [[1, "Oslo"], [2, "Rome"]]

    agrees(Path(owned.server.warehouse), lake)
    at = ("shop.orders", "--ledger", owned.server.warehouse)
    lines = _printed(capsys, "log", *at, "--output", "jsonl")
    commits = [each for line in lines for each in json.loads(line)["transactions"]]
    assert {each["author"] for each in commits} == {"zoe", "trino", "bob"}
    engines = [each["properties"].get("engine") for each in commits if each["author"] == "trino"]
    assert engines.count(f"trino {TRINO}") == 4
    assert engines.count(None) == 1
    renamed = [each for each in _printed(capsys, "log", *at) if "renamed column city" in each]
    blamed = [each for each in _printed(capsys, "blame", *at) if "name: town" in each]
    assert ["trino" in line for line in (*renamed, *blamed)] == [True, True]
    assert main(["verify", "--ledger", owned.server.warehouse]) == 0


def test_trino_finds_names_with_blanks_and_signs(trino: Trino, served: RestServer) -> None:
    trino.run('CREATE SCHEMA served."a b-ä"')
    trino.run('CREATE TABLE served."a b-ä"."t +ü" AS SELECT 1 AS "x .y"')
    trino.run('ALTER TABLE served."a b-ä"."t +ü" RENAME COLUMN "x .y" TO "z +"')

    assert trino.run('SELECT "z +" FROM served."a b-ä"."t +ü"') == [[1]]
    fields = ledger.open(served.warehouse).table("a b-ä.t +ü").state.schema.fields
    assert [each.name for each in fields] == ["z +"]
    assert main(["verify", "--ledger", served.warehouse]) == 0


def _rows(found: pa.Table) -> list[list[Any]]:
    return [[*row.values()] for row in found.sort_by("id").to_pylist()]


def _printed(capsys: pytest.CaptureFixture[str], *line: str) -> list[str]:
    capsys.readouterr()
    assert main([*line]) == 0
    return capsys.readouterr().out.splitlines()
