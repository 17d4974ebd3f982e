"""Files that a rollback brings back are as old as they were: deletes apply, rows keep their ids."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ledger import FileChange, Schema, SetOption, Table
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG, expected
from tests.lakes import lake_on, memory, orders
from tests.projections.iceberg.projecting import DELETED, EXISTING, Left, metadata_names
from tests.thorough import some

VERSIONS = ("1", "2", "3")


def table_of(version: str) -> Table:
    options = {"ledger.formats": "iceberg", "format-version": version}
    return orders(lake_on(memory()), Schema.of({"id": "INT"}, options=options))


def file(path: str, content: str = "data") -> FileChange:
    return FileChange(
        path=path, record_count=3, file_size_in_bytes=10, field_ids=True, content=content
    )


def entries(table: Table, snapshot: int = -1) -> dict[str, dict[str, Any]]:
    """Return the entries of a snapshot's manifests, the newest's by default, by path."""
    left = Left.wanted(table)
    found = left.metadata(table.state.version, table)["snapshots"][snapshot]
    # A manifest keeps the entry of a removed file as long as other files in it are live.
    there = [
        each
        for each in left.entries(found)
        if each["status"] != DELETED or each["snapshot_id"] == found["snapshot-id"]
    ]
    named = {each["path"].removeprefix(f"{table.location}/"): each for each in there}
    assert len(named) == len(there)
    return named


@pytest.mark.parametrize("version", VERSIONS)
def test_what_comes_back_is_existing_and_of_the_snapshot_that_first_added_it(version: str) -> None:
    table = table_of(version)
    table.append([file("a"), file("b")])
    table.append([file("c")])
    first = entries(table)
    for _ in range(2):
        table.delete_files(["a", "b"])
        table.rollback(snapshot=2)

        found = entries(table)
        assert {path: each["status"] for path, each in found.items()} == dict.fromkeys(
            "abc", EXISTING
        ) | {"c": found["c"]["status"]}
        for path in "ab":
            kept = ("snapshot_id", "sequence_number", "row_id")
            assert [found[path][key] for key in kept] == [first[path][key] for key in kept]


def test_position_deletes_that_come_back_keep_their_sequence_number() -> None:
    table = table_of("2")
    table.append([file("a")])
    table.append([file("d", "position-deletes")])
    table.append([file("e", "position-deletes")])
    table.delete_files(["a", "d", "e"])
    table.rollback(snapshot=3)

    found = entries(table)
    assert {path: each["sequence_number"] for path, each in found.items()} == {
        "a": 1,
        "d": 2,
        "e": 3,
    }


def test_a_returning_file_that_goes_again_is_found_in_its_manifest() -> None:
    table = table_of("2")
    table.append([file("a"), file("b")])
    table.delete_files(["a"])
    ICEBERG.project(handle_of(table))
    table.rollback(snapshot=1)
    ICEBERG.project(handle_of(table))
    table.delete_files(["a"])
    ICEBERG.project(handle_of(table))

    assert entries(table)["a"]["status"] == DELETED
    assert Left.by(table).newest(table) == expected(handle_of(table))


@pytest.mark.parametrize("seed", some(range(12), 4))
def test_steps_and_one_run_agree_on_what_comes_back(seed: int) -> None:
    """Rollbacks over upgrades, tags and expiry, projected here and there, or all at once."""
    rng = random.Random(seed)
    table = table_of(str(1 + seed % 3))
    ids: dict[str, int] = {}
    added: dict[int, int] = {}
    for number in range(50):
        _step(table, rng, number)
        if rng.random() < 0.4:
            ICEBERG.project(handle_of(table))
            assert Left.by(table).newest(table) == expected(handle_of(table))
        if rng.random() < 0.2:
            _assert_origins_are_kept(table, ids, added)
    ICEBERG.project(handle_of(table))
    assert Left.by(table).newest(table) == expected(handle_of(table))


def _step(table: Table, rng: random.Random, number: int) -> None:
    state = table.state
    live = [each.path for each in table.at().files]
    known = range(state.earliest_snapshot_id, state.last_snapshot_id + 1)
    tagged = [each.snapshot_id for each in state.tags.values()]
    match rng.randrange(8) if known else 0:
        case 0 | 1 | 2:
            table.append([file(f"{number}-{each}") for each in range(rng.randrange(1, 4))])
        case 3 if live:
            table.delete_files(rng.sample(live, rng.randrange(1, len(live) + 1)))
        case 4 | 5:
            table.rollback(snapshot=rng.choice([*known, *tagged]))
        case 6:
            name = f"t{rng.randrange(2)}"
            move = table.replace_tag if name in state.tags else table.create_tag
            move(name, snapshot=rng.choice(known))
        case 7 if rng.random() < 0.5:
            table.expire_snapshots(before=rng.choice(known))
        case _:
            version = int(state.schema.options["format-version"])
            if version < 3 and rng.random() < 0.5:
                table.alter([SetOption("format-version", str(version + 1))])


def _assert_origins_are_kept(table: Table, ids: dict[str, int], added: dict[int, int]) -> None:
    """Assert that no row id stands for two rows, and each file for one snapshot that added it."""
    if table.state.last_snapshot_id == 0:
        return
    for path, each in entries(table).items():
        if each["status"] == DELETED:
            continue
        number = int(path.partition("-")[0])
        assert added.setdefault(number, each["snapshot_id"]) == each["snapshot_id"]
        assert each["sequence_number"] in {0, each["snapshot_id"]}
        if each["row_id"] is not None:
            known = {first: name for name, first in ids.items()}
            assert known.get(each["row_id"], path) == path
            ids[path] = each["row_id"]


def test_row_ids_outlive_expiry_where_a_tag_holds_the_snapshot() -> None:
    table = table_of("3")
    table.append([file("a"), file("b")])
    first = entries(table)
    table.create_tag("kept")
    table.delete_files(["a"])
    table.append([file("c")])
    table.expire_snapshots(before=3)
    ICEBERG.project(handle_of(table))
    table.rollback(tag="kept")
    ICEBERG.project(handle_of(table))

    found = entries(table)
    assert [found[each]["row_id"] for each in "ab"] == [first[each]["row_id"] for each in "ab"]
    assert Left.by(table).newest(table) == expected(handle_of(table))
    newest = Left.by(table).metadata(table.state.version, table)
    assert newest["snapshots"][-1]["added-rows"] == 0
    assert metadata_names(table, table.state.version)[0] in Left.by(table).files


def test_a_row_keeps_its_id_where_its_file_went_in_a_manifest_that_is_still_listed() -> None:
    table = table_of("2")
    table.append([file("a"), file("b")])
    table.alter([SetOption("format-version", "3")])
    table.append([file("c")])
    first = entries(table)
    assert first["a"]["row_id"] is not None
    table.delete_files(["a"])
    ICEBERG.project(handle_of(table))
    # Rows had no ids in that snapshot, and its files have those that they were given since.
    table.rollback(snapshot=1)
    ICEBERG.project(handle_of(table))

    assert entries(table)["a"]["row_id"] == first["a"]["row_id"]
    assert Left.by(table).newest(table) == expected(handle_of(table))


def of_a_file_that_went_twice(*, is_often: bool) -> Table:
    table = table_of("2")
    table.append([file("x")])
    table.append([file("a"), *(file(f"m{number}") for number in range(300))])
    table.create_tag("kept", snapshot=2)
    table.alter([SetOption("format-version", "3")])
    table.append([file("c")])
    # In a manifest that stays as it is from here on.
    table.delete_files(["a"])
    if is_often:
        ICEBERG.project(handle_of(table))
    table.append([file("d")])
    table.expire_snapshots(before=5)
    # Nobody can read what it went in, so that its rows are new ones.
    table.rollback(tag="kept")
    table.append([file("e")])
    table.delete_files(["a"])
    if is_often:
        ICEBERG.project(handle_of(table))
    table.rollback(tag="kept")
    ICEBERG.project(handle_of(table))
    return table


def test_a_row_has_the_newest_of_the_ids_that_it_went_with() -> None:
    often, once = (of_a_file_that_went_twice(is_often=each) for each in (True, False))
    assert Left.by(often).newest(often) == expected(handle_of(often))
    ids: list[int] = []
    for table in (often, once):
        left = Left.by(table)
        newest = left.metadata(table.state.version, table)["snapshots"][-1]
        live = [each for each in left.entries(newest) if each["status"] != DELETED]
        ids += [each["row_id"] for each in live if each["path"].endswith("/a")]
    assert len(ids) == 2
    assert ids[0] == ids[1]


@pytest.mark.parametrize("version", VERSIONS)
def test_entries_name_the_order_of_unsorted_rows(version: str) -> None:
    table = table_of(version)
    table.append([file("a")])
    left = Left.wanted(table)
    (snapshot,) = left.metadata(table.state.version, table)["snapshots"]
    found = [each["sort_order_id"] for each in left.data_files(snapshot)]
    assert found == [0]
