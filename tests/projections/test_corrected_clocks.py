"""Files of a table whose clock was ahead, then corrected: readers want times in order."""

from __future__ import annotations

import json

import pytest
from attrs import define

from ledger import Schema, StoreError, Table
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders
from tests.projections.delta import projecting as delta_projecting
from tests.projections.formats import DELTA, ICEBERG, PAIMON, Format

A_YEAR = 365 * 86_400_000
AN_HOUR = 3_600_000


@define
class Clock:
    millis: int = START_MILLIS

    def __call__(self) -> int:
        self.millis += AN_HOUR
        return self.millis


def ahead(store: Store, clock: Clock) -> Table:
    """Return a table with snapshots 1 and 2 at their times, 3 and 4 a year ahead, 5 after them."""
    columns = {"id": "BIGINT NOT NULL", "day": "DATE", "amount": "INT"}
    options = {"ledger.formats": "paimon,iceberg,delta"}
    schema = Schema.of(columns, partition_keys=["day"], options=options)
    table = orders(lake_on(store, clock), schema)
    table.append([data_file("1.parquet")])
    table.append([data_file("2.parquet")])
    fast = lake_on(store, lambda: clock() + A_YEAR).table("shop.orders")
    fast.append([data_file("3.parquet")])
    fast.create_tag("fast")
    fast.append([data_file("4.parquet")])
    table.append([data_file("5.parquet")])
    return table


def corrected(table: Table) -> Table:
    table.correct_clock()
    table.append([data_file("6.parquet")])
    table.create_tag("later")
    table.append([data_file("7.parquet")])
    return table


def paimon_times(table: Table) -> list[int]:
    files = PAIMON.left(table)
    return [json.loads(files[f"snapshot/snapshot-{each}"])["timeMillis"] for each in range(1, 8)]


def test_the_files_are_those_of_the_log_wherever_the_correction_met_them(kept: Format) -> None:
    for before in range(6):
        store, clock = memory(), Clock()
        table = ahead(store, clock)
        kept.advance(table, version=before)
        corrected(table)
        kept.project(table)
        kept.assert_exact(table)
        table.append([data_file("8.parquet")])
        kept.project(table)
        kept.assert_exact(table)


def test_a_projection_that_is_killed_during_a_correction_continues(kept: Format) -> None:
    writes = 0
    is_killed = True
    while is_killed:
        store, clock = memory(), Clock()
        table = ahead(store, clock)
        kept.project(table)
        corrected(table)
        is_killed = kept.kill(store, writes)
        kept.project(table)
        kept.assert_exact(table)
        writes += 5
    assert writes > 5


def test_paimons_snapshots_are_found_by_their_true_times() -> None:
    table = ahead(memory(), Clock())
    PAIMON.project(table)
    corrected(table)
    PAIMON.project(table)

    times = paimon_times(table)
    (known,) = table.state.corrections
    assert times == sorted(times)
    assert times[2:5] == [known.true_time_millis] * 3
    assert times[6] <= table.state.effective_millis
    for snapshot_id, moment in enumerate(times, 1):
        newest = max(number for number, each in enumerate(times, 1) if each <= moment)
        assert table.at(timestamp=moment).state.last_snapshot_id == newest >= snapshot_id


def test_deltas_versions_are_found_by_their_true_times() -> None:
    table = ahead(memory(), Clock())
    DELTA.project(table)
    corrected(table)
    DELTA.project(table)

    infos = delta_projecting.Left.by(table).infos()
    times = [infos[each]["inCommitTimestamp"] for each in sorted(infos)]
    (known,) = table.state.corrections
    assert times == sorted(set(times))
    assert times[3:6] == [known.true_time_millis + each for each in range(3)]
    assert times[-1] <= table.state.effective_millis


def test_icebergs_logs_are_in_order() -> None:
    table = ahead(memory(), Clock())
    ICEBERG.project(table)
    corrected(table)
    ICEBERG.project(table)
    name = max(each for each in ICEBERG.left(table) if each.endswith(".metadata.json"))
    metadata = json.loads(ICEBERG.left(table)[name])

    for log in ("snapshot-log", "metadata-log"):
        times = [each["timestamp-ms"] for each in metadata[log]]
        assert times == sorted(times), log
        assert times[-1] <= metadata["last-updated-ms"] <= table.state.effective_millis
    said = {each["snapshot-id"]: each["timestamp-ms"] for each in metadata["snapshots"]}
    PAIMON.project(table)
    assert [said[each] for each in sorted(said)] == paimon_times(table)


def test_a_foreign_file_in_the_place_of_a_snapshot_is_not_overwritten() -> None:
    table = ahead(memory(), Clock())
    PAIMON.project(table)
    corrected(table)
    key = "shop.db/orders/snapshot/snapshot-3"
    handle_of(table).log.store.replace(key, b"{}")

    with pytest.raises(StoreError, match="not the file that the ledger projects"):
        PAIMON.project(table)

    assert handle_of(table).log.store.read(key) == b"{}"
