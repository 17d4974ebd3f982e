from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace
from pyarrow import parquet

from ledger import DamagedLogError, FileChange, UpgradeRequiredError
from ledger.events import ChangesReference, SnapshotCommitted
from ledger.files import load_changes, store_changes, write_changes
from ledger.files.change_lists import event_files, read_changes
from ledger.files.long_lists import LongList
from ledger.log import Layout
from ledger.stores import open_store
from ledger.table_handle import handle_of
from tests.files.building import add, delete
from tests.lakes import data_file, lake_on, memory, orders

LAYOUT = Layout("t/_ledger")
WRITTEN = 1_700_000_000_000

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
whole = st.integers(-(2**63), 2**63 - 1)
ids = st.integers(0, 2**31 - 1)
counts = st.just(UNSET) | st.dictionaries(ids, whole, max_size=4)
bounds = st.just(UNSET) | st.dictionaries(ids, st.binary(max_size=6).map(bytes.hex), max_size=4)
changes = st.builds(
    FileChange,
    kind=st.sampled_from(["ADD", "DELETE"]),
    path=texts,
    partition=st.lists(st.none() | st.booleans() | whole | texts, max_size=3).map(tuple),
    schema_id=whole,
    record_count=whole,
    file_size_in_bytes=whole,
    creation_time=whole,
    format=texts,
    content=texts,
    spec_id=whole,
    bucket=whole,
    level=whole,
    field_ids=st.booleans(),
    value_counts=counts,
    null_value_counts=counts,
    lower_bounds=bounds,
    upper_bounds=bounds,
    first_row_id=st.just(UNSET) | whole,
    extra_files=st.just(UNSET) | st.lists(texts, max_size=3).map(tuple),
    sort_order_id=st.just(UNSET) | whole,
    equality_ids=st.just(UNSET) | st.lists(whole, max_size=3).map(tuple),
    referenced_data_file=st.just(UNSET) | texts,
    content_offset=st.just(UNSET) | whole,
    content_size_in_bytes=st.just(UNSET) | whole,
    column_names=st.just(UNSET) | st.dictionaries(ids, texts, max_size=3),
)


def exactly(files: tuple[FileChange, ...]) -> list[str]:
    # 1 equals True, but they are other partition values.
    return [repr([type(value) for value in each.partition]) for each in files]


@settings(deadline=None)  # the first use of Arrow takes its time
@given(st.lists(changes, max_size=6).map(tuple))
def test_a_list_comes_back_as_it_was(files: tuple[FileChange, ...]) -> None:
    read = read_changes(write_changes(files))

    assert read == files
    assert exactly(read) == exactly(files)


@settings(deadline=None)
@given(st.lists(changes, max_size=8).map(tuple), st.sets(st.integers(0, 9)))
def test_some_files_of_a_list_come_back_as_they_were(
    files: tuple[FileChange, ...], places: set[int]
) -> None:
    paths = {each.path for place, each in enumerate(files) if place in places} | {"never"}
    wanted = tuple(each for each in files if each.path in paths)

    found = LongList(write_changes(files), len(files), "list")

    read = found.changes_of(paths)
    assert read == wanted
    assert exactly(read) == exactly(wanted)
    assert [*found.paths()] == [each.path for each in files]
    assert {each for each in paths if found.may_name(each)} == {each.path for each in wanted}


@pytest.mark.parametrize("count", [2, 2_000])
def test_paths_and_some_files_of_a_snapshot_are_those_of_its_list(count: int) -> None:
    lake = lake_on(memory())
    table = orders(lake)
    table.append([data_file(f"{each}.parquet") for each in range(count)])
    log = handle_of(table).log
    (event,) = next(table.events(1)).transactions[0].events
    assert isinstance(event, SnapshotCommitted)
    assert (event.changes is UNSET) == (count == 2)

    files = event_files(log.store, log.layout, event)
    some = {"1.parquet", "never.parquet"}
    live = handle_of(table).live
    assert live.newest(some, 1) == {"1.parquet": files[1]}
    assert {f"file:{each.path}" for each in files} <= {
        *handle_of(table).log.named_among([f"file:{number}.parquet" for number in range(count + 1)])
    }


def test_partition_values_keep_their_kind() -> None:
    files = tuple(
        FileChange(path="a", record_count=1, file_size_in_bytes=1, partition=(value,))
        for value in (1, True, "1", "true", None, "null", 0, False, "")
    )

    assert exactly(read_changes(write_changes(files))) == exactly(files)


def test_every_attribute_of_a_file_change_has_a_typed_column() -> None:
    later = {
        "sort_order_id": 1,
        "equality_ids": (1,),
        "referenced_data_file": "b",
        "content_offset": 4,
        "content_size_in_bytes": 9,
        "column_names": {1: "b"},
    }
    kept = replace(add("a"), sidecar={1: "where"}, **later)
    table = parquet.read_table(pa.BufferReader(write_changes([kept])))

    assert tuple(table.column_names) == FileChange.__struct_fields__
    assert table.schema.field("record_count").type == pa.int64()
    assert table.schema.field("lower_bounds").type == pa.map_(pa.int64(), pa.string())


def test_a_stored_list_is_named_by_its_time_and_hash_and_comes_back() -> None:
    store = open_store("memory://change-file-stored")
    files = (add("a"), delete("b"))

    reference = store_changes(store, LAYOUT, files, WRITTEN)

    body = store.read(f"t/_ledger/{reference.path}")
    assert body is not None
    assert reference.path == f"changes/{WRITTEN}-{hashlib.sha256(body).hexdigest()}.parquet"
    assert reference.count == 2
    assert store_changes(store, LAYOUT, files, WRITTEN) == reference
    assert load_changes(store, LAYOUT, reference) == files


@pytest.mark.parametrize("damage", ["missing", "changed", "torn"])
def test_a_damaged_list_is_refused_by_name(damage: str) -> None:
    store = open_store(f"memory://change-file-{damage}")
    reference = store_changes(store, LAYOUT, [add("a")], WRITTEN)
    key = f"t/_ledger/{reference.path}"
    if damage == "missing":
        store.delete(key)
    elif damage == "changed":
        store.replace(key, write_changes([add("b")]))
    else:
        store.replace(key, (store.read(key) or b"")[:-9])

    with pytest.raises(DamagedLogError) as caught:
        load_changes(store, LAYOUT, reference)

    assert caught.value.file == key
    if damage != "missing":
        with pytest.raises(DamagedLogError, match="was changed"):
            store_changes(store, LAYOUT, [add("a")], WRITTEN)


def test_a_list_of_another_length_than_its_commit_says_is_refused() -> None:
    store = open_store("memory://change-file-count")
    found = store_changes(store, LAYOUT, [add("a")], WRITTEN)

    with pytest.raises(DamagedLogError, match="it holds 1 file changes, not 2"):
        load_changes(store, LAYOUT, ChangesReference(found.path, found.sha256, 2))


def test_what_is_no_list_is_refused() -> None:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"a": [1]}), sink)

    with pytest.raises(ValueError, match="does not declare"):
        read_changes(bytes(sink.getvalue()))
    with pytest.raises(ValueError, match="no Parquet file"):
        read_changes(b"PAR1")


def test_a_newer_format_asks_for_an_upgrade() -> None:
    table = parquet.read_table(pa.BufferReader(write_changes([add("a")])))
    sink = pa.BufferOutputStream()
    parquet.write_table(table.replace_schema_metadata({"lakeledger.changes": "4"}), sink)

    with pytest.raises(UpgradeRequiredError, match="upgrade lakeledger"):
        read_changes(bytes(sink.getvalue()))
