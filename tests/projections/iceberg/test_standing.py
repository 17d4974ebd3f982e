"""Rows are read from existing files, or from files that are rendered in memory."""

from __future__ import annotations

from attrs import evolve

from ledger import Table
from ledger.opening.context import TableSetting
from ledger.table_handle import TableHandle, handle_of
from projections.iceberg import Names
from projections.iceberg import position as positions
from projections.iceberg.rows import _is_manifest_list_intact
from projections.materialising import outputs_of
from tests.lakes import data_file, lake_on, memory, orders


def appended() -> Table:
    table = orders(lake_on(memory()))
    table.append([data_file("a.parquet")])
    return table


def test_existing_files_are_updated_and_read() -> None:
    table = appended()
    assert _is_manifest_list_intact(handle_of(table), table.at())
    assert (
        positions.FILE.load(handle_of(table).log.store, handle_of(table).log.layout).version
        == table.state.version
    )


def test_files_that_lead_elsewhere_are_left_as_they_are() -> None:
    table = appended()
    table.project("iceberg")
    store, layout = handle_of(table).log.store, handle_of(table).log.layout
    there = evolve(positions.FILE.load(store, layout), location="file:///elsewhere")
    positions.FILE.save(store, layout, there)
    table.append([data_file("b.parquet")])

    assert not _is_manifest_list_intact(handle_of(table), table.at())

    assert positions.FILE.load(store, layout) == there


def test_a_reader_that_trusts_only_the_log_reads_no_existing_files() -> None:
    table = appended()
    table.project("iceberg")
    setting: TableSetting = evolve(handle_of(table).setting, trust="log")
    assert not _is_manifest_list_intact(
        TableHandle(table.identifier, handle_of(table).path, setting), table.at()
    )


def test_a_deleted_manifest_list_makes_the_files_incomplete() -> None:
    table = appended()
    table.project("iceberg")
    lost = Names(table.state.table_id).manifest_list(1)
    outputs_of(handle_of(table)).remove(lost)
    assert not _is_manifest_list_intact(handle_of(table), table.at())
