"""Snapshots whose files only manifests of their engine list: none is made that lacks them."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ledger import FileChange, SnapshotPlan, Table, UnsupportedError
from ledger.cli.commands.verify import differences
from ledger.events import snapshot_events
from ledger.table_handle import handle_of
from projections.delta.delta_log import SnapshotVersions
from projections.manifest_files.lists import UnlistedFiles
from projections.materialising import outputs_of
from projections.paimon import PAIMON, expected, rebuild, verify
from projections.paimon import project as positions
from projections.paimon import statistics_file as publish_paimon
from tests.lakes import data_file, lake_on, memory, orders
from tests.projections.statistics.paimon_writer import PaimonWriter, a_ledger_table, rows

LISTS = {"base_manifest_list": "manifest-list-1-0", "delta_manifest_list": "manifest-list-1-1"}
UNLISTED = "only manifests of their engine list"


def engine_commits(table: Table, *files: FileChange) -> None:
    table.commit_snapshot(SnapshotPlan("APPEND", files, commit_user="flink", facts=LISTS))


def a_file(path: str) -> FileChange:
    return data_file(f"{path}.parquet")


def a_table() -> Table:
    return orders(lake_on(memory()))


@pytest.fixture
def written(tmp_path: Path) -> PaimonWriter:
    writer = PaimonWriter(a_ledger_table(tmp_path), tmp_path)
    writer.write(rows(20))
    writer.write(rows(7, start=3))
    return writer


def test_a_table_that_pypaimon_wrote_lacks_nothing_of_the_ledgers(written: PaimonWriter) -> None:
    # The hint holds the same number for every writer.
    hint = "snapshot/LATEST"
    assert expected(handle_of(written.table))[hint] == outputs_of(handle_of(written.table)).read(
        hint
    )

    found = verify(handle_of(written.table))
    assert found.is_empty
    assert "snapshot/snapshot-2" in found.foreign
    assert {each.kind for _, all_ in differences(handle_of(written.table)) for each in all_} == {
        "foreign"
    }


@pytest.mark.parametrize("how", ["rollback", "append"])
def test_what_pypaimon_reads_keeps_its_files_when_the_ledger_adds_a_snapshot(
    written: PaimonWriter, how: str
) -> None:
    seen, table = written.partitions(), written.table
    if how == "rollback":
        table.rollback(snapshot=1)
    else:
        table.append([replace(data_file("z.parquet"), partition=("2024-01-01", "a"))])

    assert verify(handle_of(table)).is_empty
    for attempt in (rebuild, expected):
        with pytest.raises(UnsupportedError, match=rf"snapshot 3 of shop.orders.*{UNLISTED}"):
            attempt(handle_of(table))
    assert sum(each[0] for each in seen.values()) == 27
    assert written.partitions() == seen


def test_a_run_that_continues_knows_the_files_of_the_previous_run() -> None:
    table = a_table()
    table.append([a_file("a")])
    PAIMON.project(handle_of(table))
    engine_commits(table)
    PAIMON.project(handle_of(table))
    table.append([a_file("b")])
    with pytest.raises(UnsupportedError, match=rf"snapshot 3 of .*{UNLISTED}"):
        PAIMON.project(handle_of(table))
    with pytest.raises(UnsupportedError, match=UNLISTED):
        publish_paimon.publish(handle_of(table))
    assert table.state.last_snapshot_id == 3


@pytest.mark.parametrize("steps", ["one run", "many runs"])
def test_a_rollback_to_what_the_ledger_lists_can_be_made_and_gone_on_from(steps: str) -> None:
    table = a_table()
    table.append([a_file("a")])
    engine_commits(table)
    if steps == "many runs":
        PAIMON.project(handle_of(table))
    table.rollback(snapshot=1)
    table.append([a_file("b")])
    PAIMON.project(handle_of(table))
    assert verify(handle_of(table)).is_empty
    unlisted = UnlistedFiles(
        positions.FILE.load(handle_of(table).log.store, handle_of(table).log.layout).unlisted
    )
    assert [unlisted.held_by(each) for each in (1, 2, 3, 4)] == [False, True, False, False]


def test_a_rollback_to_what_only_the_engine_lists_is_rejected_from_anywhere() -> None:
    table = a_table()
    engine_commits(table)
    engine_commits(table)
    PAIMON.project(handle_of(table))
    table.rollback(snapshot=1)
    with pytest.raises(UnsupportedError, match=rf"snapshot 3 of .*{UNLISTED}"):
        PAIMON.project(handle_of(table))


def test_a_snapshot_that_expired_need_not_be_made() -> None:
    table = a_table()
    engine_commits(table)
    table.append([a_file("b")])
    engine_commits(table)
    table.expire_snapshots(before=3)
    PAIMON.project(handle_of(table))
    assert "snapshot/snapshot-3" in expected(handle_of(table))
    table.append([a_file("c")])
    with pytest.raises(UnsupportedError, match=rf"snapshot 4 of .*{UNLISTED}"):
        PAIMON.project(handle_of(table))


def test_an_engine_that_lists_its_files_here_too_leaves_nothing_out() -> None:
    table = a_table()
    engine_commits(table, a_file("a"))
    PAIMON.project(handle_of(table))
    table.append([a_file("b")])
    PAIMON.project(handle_of(table))
    assert verify(handle_of(table)).is_empty
    engine_commits(table)
    engine_commits(table, a_file("c"))
    PAIMON.project(handle_of(table))
    table.append([a_file("d")])
    with pytest.raises(UnsupportedError, match=rf"snapshot 5 of .*{UNLISTED}"):
        PAIMON.project(handle_of(table))


def test_delta_knows_which_of_its_versions_are_of_snapshots_that_list_files_elsewhere() -> None:
    table = a_table()
    table.append([a_file("a")])
    engine_commits(table)
    table.rollback(snapshot=1)
    versions = SnapshotVersions((), last=0)
    for number, commit in enumerate(table.events()):
        for event in snapshot_events(commit):
            versions.add(event, number)
    assert [versions.unlisted.held_by(each) for each in (1, 2, 3)] == [False, True, False]
