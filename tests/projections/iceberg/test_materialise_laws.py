"""Laws of the Iceberg files on a store, over random histories."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ledger import SetOption, Table
from ledger.events import RolledBack, SnapshotCommitted
from ledger.files import event_files
from ledger.table_handle import handle_of
from projections.iceberg import IcebergFiles, advance, read_metadata, verify
from projections.iceberg import manifest_avro as avro
from projections.iceberg import manifest_writing as layout
from projections.iceberg.materialise import project
from projections.materialising import Difference, Materialisation
from tests.lakes import memory
from tests.projections.formats import ICEBERG
from tests.projections.iceberg.projecting import (
    ADDED,
    DELETED,
    Left,
    go_on,
    is_consistent,
    is_metadata,
    metadata_names,
    random_table,
)
from tests.thorough import some

SEEDS = some(range(6), 2)


@pytest.fixture(autouse=True, params=[3, 10_000], ids=["small manifests", "large manifests"])
def _most_entries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MOST_ENTRIES", request.param)
    # Of few files, too, most blocks stay as they are.
    monkeypatch.setattr(avro, "_BLOCK_BYTES", 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_live_file_is_in_one_manifest_of_every_snapshot(seed: int) -> None:
    table = random_table(seed, memory(), 80)
    project(handle_of(table))
    left, state = Left.by(table), table.state

    metadata = left.metadata(state.version, table)
    tagged = {each.snapshot_id for each in state.tags.values()}
    kept = tagged | set(range(state.earliest_snapshot_id, state.last_snapshot_id + 1))
    assert {each["snapshot-id"] for each in metadata["snapshots"]} == kept
    for snapshot in metadata["snapshots"]:
        then = table.at(snapshot=snapshot["snapshot-id"])
        entries = list(left.entries(snapshot))
        live = Counter(each["path"] for each in entries if each["status"] != DELETED)
        wanted = {f"{table.location}/{each.path}" for each in then.files}
        assert live == Counter(wanted)
        assert int(snapshot["summary"]["total-records"]) == then.totals.record_count
        assert int(snapshot["summary"]["total-files-size"]) == then.totals.file_size_in_bytes
        assert int(snapshot["summary"]["total-data-files"]) == len(then.files)


@pytest.mark.parametrize("seed", SEEDS)
def test_entries_say_what_the_log_says_of_the_snapshot_that_they_are_of(seed: int) -> None:
    table = random_table(seed, memory(), 80)
    project(handle_of(table))
    left = Left.by(table)
    adders = Adders.of(table)

    for snapshot in left.metadata(table.state.version, table)["snapshots"]:
        snapshot_id = snapshot["snapshot-id"]
        own = {ADDED: set[str](), DELETED: set[str]()}
        for each in left.entries(snapshot):
            path = each["path"].removeprefix(f"{table.location}/")
            if each["snapshot_id"] == snapshot_id:
                own[each["status"]].add(path)
            if each["status"] != DELETED:
                assert each["snapshot_id"] == adders.at(path)
                assert each["sequence_number"] in {0, each["snapshot_id"]}
        new = {e for e in adders.added[snapshot_id] if adders.at(e) == snapshot_id}
        assert own == {ADDED: new, DELETED: adders.deleted[snapshot_id]}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_two_rows_ever_have_one_row_id_and_none_changes_its_own(seed: int) -> None:
    table = random_table(seed, memory(), 80)
    project(handle_of(table))
    left = Left.by(table)
    seen: dict[str, int] = {}
    metadata = left.metadata(table.state.version, table)

    for snapshot in metadata["snapshots"]:
        for each in left.entries(snapshot):
            if each["row_id"] is not None:
                if each["status"] != DELETED:
                    assert seen.setdefault(each["path"], each["row_id"]) == each["row_id"]
                assert each["row_id"] + each["records"] <= metadata["next-row-id"]
    rows = sorted((seen[each], each) for each in seen)
    assert len({row_id for row_id, _ in rows}) == len(rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_versions_metadata_is_sound(seed: int) -> None:
    table = random_table(seed, memory())
    project(handle_of(table), every=1)
    left, last = Left.by(table), table.state.version
    assert is_consistent(left)

    for version in range(last + 1):
        name = metadata_names(table, version)[0]
        metadata = read_metadata(left.files[name])
        then = table.at(version=version).state
        most = int(then.schema.options.get("write.metadata.previous-versions-max", 10))
        logged = [each.metadata_file for each in metadata.metadata_log]
        assert logged == [
            f"{table.location}/{metadata_names(table, each)[0]}"
            for each in range(version - len(logged), version)
        ]
        assert len(logged) <= max(1, most)
        assert metadata.last_updated_ms == then.effective_millis
        assert [each.name for each in metadata.schema.fields] == list(then.schema.names)
        assert {name: ref.snapshot_id for name, ref in metadata.refs.items() if name != "main"} == {
            name: tag.snapshot_id for name, tag in then.tags.items()
        }


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_version_on_request_is_the_file_that_following_wrote(seed: int) -> None:
    table, follows = random_table(seed, memory(), 20), random_table(seed, memory(), 20)
    project(handle_of(follows), every=1)
    project(handle_of(table))
    before = Left.by(table).files
    every = Materialisation(IcebergFiles(lambda _: True)).expected(handle_of(table))

    for version in range(table.state.version):
        assert handle_of(table).log.store is not handle_of(follows).log.store
        name = metadata_names(table, version)[0]
        if name in before:
            continue
        assert project(handle_of(table), version=version) == version
        left = Left.by(table)
        named = {path for path, _ in left.logged(name)}
        assert left.files.keys() == before.keys() | {name} | named
        assert {path: left.files[path] for path in {name} | named} == {
            path: every[path] for path in {name} | named
        }
        assert verify(handle_of(table)) == Difference()
        for path in ({name} | named) - before.keys():
            handle_of(table).log.store.delete(f"{handle_of(table).path}/{path}")


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_lost_file_is_written_again_by_the_next_run_that_needs_it(seed: int) -> None:
    table = random_table(seed, memory())
    project(handle_of(table))
    rng = random.Random(seed)
    newest = metadata_names(table, table.state.version)[0]
    manifests = [each.path for each in ICEBERG.position(table).manifests]
    for path in (newest, *manifests):
        handle_of(table).log.store.delete(f"{handle_of(table).path}/{path}")
    go_on(table, rng, 10)

    project(handle_of(table))
    ICEBERG.assert_exact(table)


def test_old_metadata_files_go_one_run_after_the_log_no_longer_names_them() -> None:
    table = random_table(3, memory(), 60)
    table.alter([SetOption("ledger.reader-grace", "0")])
    last: set[str] = set()
    for version in range(table.state.version + 1):
        advance(handle_of(table), version=version)
        left = Left.by(table)
        left.assert_logs_are_true()
        logged = left.metadata(version, table)["metadata-log"]
        named = {
            name
            for each in range(version - len(logged), version + 1)
            for name in metadata_names(table, each)
        }
        assert {path for path in left.files if is_metadata(path)} == named | last
        last = named


class Adders:
    """Files that each snapshot of a table's log adds and removes."""

    def __init__(self) -> None:
        self.added: dict[int, set[str]] = {}
        self.deleted: dict[int, set[str]] = {}

    @classmethod
    def of(cls, table: Table) -> Adders:
        found = cls()
        for commit in table.events():
            for transaction in commit.transactions:
                for event in transaction.events:
                    if isinstance(event, SnapshotCommitted | RolledBack):
                        files = event_files(
                            handle_of(table).log.store, handle_of(table).log.layout, event
                        )
                        found.added[event.snapshot_id] = {e.path for e in files if e.kind == "ADD"}
                        found.deleted[event.snapshot_id] = {
                            each.path for each in files if each.kind == "DELETE"
                        }
        return found

    def at(self, path: str) -> int:
        """Return the snapshot that first added a file: what a rollback brings back is not new."""
        return min(n for n, paths in self.added.items() if path in paths)
