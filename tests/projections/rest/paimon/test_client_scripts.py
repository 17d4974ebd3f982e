"""Paimon's clients do the same through this server as through their own catalogs of files.

After every step the rows, schemas, snapshots, tags, branches and partitions of its tables are
compared, and the other client reads the same rows through the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ledger
from ledger.cli import main
from tests.projections.rest.paimon.client_scripts import APPEND_ONLY, JAVA, PYPAIMON, Step, observed
from tests.projections.rest.paimon.java_client import JavaClient
from tests.projections.rest.paimon.java_objects import PaimonJvm
from tests.projections.rest.paimon.paimon_clients import Json, PaimonClient
from tests.projections.rest.paimon.pypaimon_client import DATABASE, PypaimonClient
from tests.projections.rest.paimon.served_calls import CALLS, prepare
from tests.projections.rest.rest_servers import RestServer, ledger_server
from tests.readers.java_core import PaimonUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Java's client of that version knows no deletions by row ids, and rejects their tables.
_ONLY_PYPAIMON_READS = ("evolved",)


def test_pypaimon_does_the_same_as_with_files(
    paimon_served: RestServer, jvm: PaimonJvm, tmp_path: Path
) -> None:
    files = PypaimonClient.of_files(str(tmp_path / "files"))
    served = PypaimonClient.of_server(_uri(paimon_served), paimon_served.warehouse)
    java = JavaClient.of_server(jvm, _uri(paimon_served), paimon_served.warehouse)
    _assert_same(files, served, PYPAIMON, java)


def test_java_does_the_same_as_with_files(
    paimon_served: RestServer, jvm: PaimonJvm, tmp_path: Path
) -> None:
    files = JavaClient.of_files(jvm, str(tmp_path / "files"))
    served = JavaClient.of_server(jvm, _uri(paimon_served), paimon_served.warehouse)
    pypaimon = PypaimonClient.of_server(_uri(paimon_served), paimon_served.warehouse)
    _assert_same(files, served, JAVA, pypaimon)


def test_java_calls_what_only_a_server_has(paimon_served: RestServer, jvm: PaimonJvm) -> None:
    client = JavaClient.of_server(jvm, _uri(paimon_served), paimon_served.warehouse)
    prepare(client)
    for call in CALLS:
        assert call.run(client) == call.expected, call.name


def test_the_log_names_what_a_client_did_with_field_ids(paimon_served: RestServer) -> None:
    client = PypaimonClient.of_server(_uri(paimon_served), paimon_served.warehouse)
    client.create_database()
    for step in APPEND_ONLY:
        step.run(client)
    table = ledger.open(paimon_served.warehouse).table(f"{DATABASE}.orders")
    found = {
        (row["version"], row["kind"], row["field_id"])
        for row in table.history()
        if row["kind"] != "assignSchemaId"
    }
    assert found == {
        (0, "createTable", None),
        *((version, "commitSnapshot", None) for version in (1, 2, 11, 15, 16)),
        *((version, "updatePartitions", None) for version in (1, 2, 11, 15, 16)),
        (3, "setOption", None),
        (3, "updateComment", None),
        (4, "renameColumn", 2),
        (5, "addColumn", 11),
        (6, "addColumn", 12),
        (6, "addColumn", 13),
        (7, "updateColumnType", 11),
        (7, "updateColumnComment", 2),
        (7, "updateColumnPosition", 10),
        (8, "updateColumnPosition", 10),
        (8, "updateColumnNullability", 0),
        (9, "dropColumn", 9),
        (10, "removeOption", None),
        (12, "dropColumn", 6),
        (13, "createTag", None),
        (14, "createTag", None),
        (17, "deleteTag", None),
    }
    (title,) = table.blame("name")
    assert title.field_id == 2
    assert [(each.aspect, each.value, each.cause.version) for each in title.origins] == [
        ("created", "name", 0),
        ("name", "title", 4),
        ("comment", "of the order", 7),
    ]


@pytest.fixture
def paimon_served(tmp_path: Path) -> Iterator[RestServer]:
    """The command `serve` on a new ledger, which is intact afterwards."""
    url = str(tmp_path / "ledger")
    ledger.open(url).init()
    with ledger_server(tmp_path, url) as server:
        yield server
    assert main(["verify", "--ledger", url]) == 0


@pytest.fixture(scope="module")
def jvm(spark: SparkSession) -> Iterator[PaimonJvm]:
    """Paimon's Java classes, in the JVM that the run has anyway."""
    try:
        with PaimonJvm.running(spark) as found:
            yield found
    except PaimonUnavailableError as error:
        pytest.skip(str(error))


def _uri(server: RestServer) -> str:
    return f"{server.uri}/paimon"


def _assert_same(
    files: JavaClient | PypaimonClient,
    served: JavaClient | PypaimonClient,
    steps: tuple[Step, ...],
    other: PaimonClient,
) -> None:
    files.create_database()
    served.create_database()
    for (step, expected), (_, found) in zip(
        observed(files, steps), observed(served, steps), strict=True
    ):
        assert found == expected, (step.name, step.tables)
        for table in step.tables:
            if table not in _ONLY_PYPAIMON_READS:
                _assert_read(other, table, found[table])


def _assert_read(other: PaimonClient, table: str, found: Json) -> None:
    assert other.rows(table) == found["rows"], table
