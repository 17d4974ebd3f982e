"""Statistics of tables that engines of Paimon commit to: `stats`, and what Spark can count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger import Table, UnsupportedError
from ledger.table_handle import handle_of
from projections.paimon.served_partitions import read_partitions
from projections.statistics import query, refresh
from projections.statistics.engine_listed import EngineListedStatistics, merges_rows
from projections.statistics.partition_rendering import paimon_rendering_of
from tests.projections.rest.application import Application, application
from tests.projections.statistics.lives import listed_partitions
from tests.pypaimon_or_skip import needs_pypaimon

needs_pypaimon()

from tests.projections.rest.paimon.paimon_clients import TableSpec  # noqa: E402
from tests.projections.rest.paimon.pypaimon_client import PypaimonClient  # noqa: E402


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    with application(tmp_path / "lake") as found:
        client_of(found).create_database()
        yield found


def client_of(app: Application) -> PypaimonClient:
    return PypaimonClient.of_server(f"{app.http.base_url}/paimon", "lake")


def orders(app: Application, **more: object) -> Table:
    client = client_of(app)
    columns = {"id": "BIGINT NOT NULL", "dt": "STRING NOT NULL"}
    client.create_table("orders", TableSpec(columns, ["dt"], **more))  # type: ignore[arg-type]
    client.write("orders", [(1, "a"), (2, "b"), (3, "b")])
    client.write("orders", [(1, "a"), (4, "c")])
    client.truncate("orders", [{"dt": "b"}])
    return app.lake.table("shop.orders")


def test_partitions_of_stats_are_those_of_the_api(app: Application) -> None:
    table = orders(app)
    at = table.at()
    kept = EngineListedStatistics(handle_of(table), at)
    counted = {
        tuple(each.spec.values()): (each.record_count, each.file_size_in_bytes, each.file_count)
        for each in listed_partitions(kept, at, paimon_rendering_of(at))
    }
    listed = read_partitions(
        handle_of(table),
        lambda index: {
            tuple(each.spec.values()): (each.records, each.size_in_bytes, each.files)
            for each in index.descending()
        },
    )
    assert counted == listed
    assert counted.keys() == {("a",), ("c",)}
    assert [each.record_count for each in query.totals(kept, at)] == [3, 5, 3]


def test_nothing_is_kept_of_what_only_manifests_list(app: Application) -> None:
    with pytest.raises(UnsupportedError, match="manifests"):
        refresh(handle_of(orders(app)).log)


def test_rows_that_engines_merge_are_not_exact(app: Application) -> None:
    assert not merges_rows(orders(app).state)
    client_of(app).drop_table("orders")
    keyed = orders(app, primary_keys=["id", "dt"], options={"bucket": "1"})
    assert merges_rows(keyed.state)
