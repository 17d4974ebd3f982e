"""Files are taken out of manifests block by block: what stays is what it was, and is said so."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Iterator

import fastavro
import pytest

from ledger import FileChange, Schema, SetOption, Table
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG, expected
from projections.iceberg import manifest_avro as avro
from projections.iceberg import manifest_writing as layout
from projections.manifest_files.container import EncodedBlock
from tests.lakes import lake_on, memory, orders, reader_grace
from tests.projections.iceberg.projecting import DELETED, Left, records

BLOCK = 300
"""So few bytes that a manifest has many blocks of some entries each."""


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "_BLOCK_BYTES", BLOCK)


def file(path: str, content: str = "data") -> FileChange:
    return FileChange(
        path=path, record_count=3, file_size_in_bytes=10, field_ids=True, content=content
    )


def filled(version: str, files: int = 60, **more: str) -> Table:
    options = {"ledger.formats": "iceberg", "format-version": version} | reader_grace(0) | more
    table = orders(lake_on(memory()), Schema.of({"id": "INT"}, options=options))
    for number in range(12):
        table.append([file(f"early-{number}")])
    table.append([file(f"file-{number}") for number in range(files)])
    ICEBERG.project(handle_of(table))
    return table


def newest(table: Table) -> dict[str, tuple[int, int | None]]:
    """Return the live files of the newest snapshot, with sequence number and row id.

    Lists have to count what manifests hold, and their least sequence number.
    """
    left = Left.by(table)
    snapshot = left.metadata(table.state.version, table)["snapshots"][-1]
    entries = list(left.entries(snapshot))
    for manifest in records(left.under(snapshot["manifest-list"])):
        path = manifest["manifest_path"]
        live = [e for e in entries if e["manifest"] == path and e["status"] != DELETED]
        if live and "min_sequence_number" in manifest:
            least = min(each["sequence_number"] for each in live)
            assert manifest["min_sequence_number"] == least
    live = [each for each in entries if each["status"] != DELETED]
    assert max(Counter(each["path"] for each in live).values()) == 1
    return {
        each["path"].rpartition("/")[2]: (each["sequence_number"], each["row_id"]) for each in live
    }


def statuses(table: Table) -> Iterator[set[int]]:
    """Yield the statuses that stand together in a block, of every manifest that is there."""
    for path, body in Left.by(table).files.items():
        if "-m" in path and path.endswith(".avro"):
            for block in fastavro.block_reader(io.BytesIO(body)):
                yield {each["status"] for each in block if isinstance(each, dict)}


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_what_stays_keeps_its_age_and_its_row_ids(version: str) -> None:
    table, rng = filled(version), random.Random(7)
    there = newest(table)

    for number in range(14):
        gone = rng.sample(sorted(there), rng.choice([1, 1, 2, 5]))
        if number == 9:
            table.append([file("late")])
            ICEBERG.project(handle_of(table))
            there["late"] = newest(table)["late"]
        table.delete_files(gone)
        ICEBERG.project(handle_of(table))
        for each in gone:
            del there[each]
        assert newest(table) == there

    assert all(len(each) == 1 for each in statuses(table))
    assert Left.by(table).newest(table) == expected(handle_of(table))


def test_the_oldest_files_go_first() -> None:
    table = filled("2")
    there = newest(table)
    for path in [f"early-{number}" for number in range(12)]:
        table.delete_files([path])
        ICEBERG.project(handle_of(table))
        del there[path]
        assert newest(table) == there


@pytest.mark.parametrize("name", ["file-1", "file-11"])
def test_a_name_that_begins_like_another_is_not_taken_for_it(name: str) -> None:
    table = filled("3")
    there = newest(table)
    for each in (name, "file-12"):
        table.delete_files([each])
        ICEBERG.project(handle_of(table))
        del there[each]
    assert newest(table) == there


@pytest.mark.parametrize("last", ["2", "3"])
def test_a_new_format_version_between_two_removals_changes_nothing_that_stays(last: str) -> None:
    table = filled("1" if last == "2" else "2")
    table.delete_files(["file-3"])
    ICEBERG.project(handle_of(table))
    before = newest(table)

    table.alter([SetOption("format-version", last)])
    table.delete_files(["file-4"])
    table.append([file("late")])
    table.delete_files(["file-5", "early-2"])
    ICEBERG.project(handle_of(table))

    after = newest(table)
    assert before.keys() - after.keys() == {"file-4", "file-5", "early-2"}
    assert {path: after[path][0] for path in before.keys() & after.keys()} == {
        path: before[path][0] for path in before.keys() & after.keys()
    }
    rows = [row_id for _, row_id in after.values()]
    assert rows == [None] * len(rows) if last == "2" else len({*rows} - {None}) == len(rows)
    assert Left.by(table).newest(table) == expected(handle_of(table))


def test_a_removal_reads_the_blocks_that_hold_what_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled("2", files=400)
    table.delete_files(["file-200"])
    ICEBERG.project(handle_of(table))
    read: list[int] = []
    every = EncodedBlock.records

    def noted(block: EncodedBlock) -> object:
        read.append(block.size if "manifest_entry" in block.schema["name"] else 0)
        return every(block)

    monkeypatch.setattr(EncodedBlock, "records", noted)
    table.delete_files(["file-7"])
    ICEBERG.project(handle_of(table))

    assert 0 < sum(read) < 8


def test_manifests_hold_more_files_of_a_larger_table_and_lists_name_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layout, "MOST_ENTRIES", 4)
    monkeypatch.setattr(layout, "MOST_FULL", 2)
    table = filled("2", files=100)
    left = Left.by(table)
    snapshot = left.metadata(table.state.version, table)["snapshots"][-1]

    listed = records(left.under(snapshot["manifest-list"]))
    own = [each for each in listed if each["added_snapshot_id"] == snapshot["snapshot-id"]]

    assert layout.max_entries_per_manifest(112) == 16
    assert [each["added_files_count"] for each in own] == [16, 16, 16, 16, 16, 16, 4]
