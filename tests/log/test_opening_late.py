"""Opening a table reads and decodes no more than the caller's commit needs."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from attrs import evolve
from msgspec import Raw

from ledger import (
    AddPartitionField,
    DamagedLogError,
    RemovePartitionField,
    UpdatePartitionSpec,
)
from ledger.decide import layout as operations
from ledger.events import PartitionSpecUpdated
from ledger.log import Checkpoints, Head
from ledger.log import key_index as lookup
from ledger.model import PartitionField, PartitionSpec, SortOrder, Tag
from ledger.model import iceberg_layout as layout
from ledger.model.iceberg_layout import LazyPartitionSpecs, SomeSpecs, spec_of_id
from ledger.state import LayoutTrail, TableStream
from ledger.stores import local as posix
from ledger.table_handle import handle_of
from tests.lakes import data_file, lake_on, memory, orders

LAYOUTS = 300
SPECS = tuple(
    PartitionSpec(number, (PartitionField(f"by_{number}", "bucket[8]", 0, field_id=1000 + number),))
    for number in range(LAYOUTS)
)


def decoded() -> int:
    """Return how many partition fields were looked at so far: each has its transform normalised."""
    seen = layout.normalize_transform.cache_info()
    return seen.hits + seen.misses


def test_specs_of_a_record_are_decoded_when_somebody_looks_at_them() -> None:
    stream, state = TableStream(), evolve(orders(lake_on(memory())).state, specs=SPECS)
    record = stream.encode_state(state)
    before = decoded()

    read = stream.decode_state(record)

    newest = evolve(read, default_spec_id=LAYOUTS - 1)
    assert (len(read.specs), newest.spec, read.spec_by_id(7)) == (LAYOUTS, SPECS[-1], SPECS[7])
    assert decoded() - before == len({LAYOUTS - 1, 7})
    assert (read.specs[:2], read.specs[-1]) == (SPECS[:2], SPECS[-1])
    assert (read.specs, tuple(read.specs)) == (SPECS, SPECS)
    assert hash(read.specs) == hash(SPECS)
    assert (read, stream.encode_state(read)) == (state, record)


def test_a_spec_is_found_wherever_it_stands() -> None:
    turned = SPECS[::-1][:3]
    late = LazyPartitionSpecs(map(Raw, map(msgspec.json.encode, turned)))
    for specs in (turned, late):
        assert [spec_of_id(specs, each.spec_id) for each in turned] == list(turned)
        assert spec_of_id(specs, 1) is None


def test_a_new_layout_decodes_no_older_one() -> None:
    late = LazyPartitionSpecs(map(Raw, map(msgspec.json.encode, SPECS)))
    trail, before = LayoutTrail.of(evolve(orders(lake_on(memory())).state, specs=late)), decoded()
    trail.update_spec(PartitionSpecUpdated((), spec_id=LAYOUTS, fields=()))
    assert decoded() == before
    assert tuple(trail.specs) == (*SPECS, PartitionSpec(LAYOUTS))
    # Once all were looked at, they are a tuple, which is the faster to look through.
    assert late + () == SPECS  # noqa: RUF005 - as callers that add one do


def test_the_numbers_of_specs_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    late = LazyPartitionSpecs(map(Raw, map(msgspec.json.encode, SPECS)))
    read: list[int] = []

    def numbers_of(specs: Sequence[PartitionSpec | Raw]) -> list[int]:
        found = real(specs)
        read.extend(found)
        return found

    real = layout._spec_ids
    monkeypatch.setattr(layout, "_spec_ids", numbers_of)
    assert late[7] == SPECS[7]
    for each in range(LAYOUTS, LAYOUTS + 3):
        assert spec_of_id(late, each) is None
    assert read == [*range(LAYOUTS)]

    # Nor do several changes of layout in a row.
    more: SomeSpecs = late
    for each in range(LAYOUTS + 10, LAYOUTS + 13):
        added = PartitionSpec(each)
        assert spec_of_id(more, each) is None
        more = more + (added,)  # noqa: RUF005 - as a change of layout does
        assert spec_of_id(more, each) is added
    assert spec_of_id(more, 9) == SPECS[9]
    assert read == [*range(LAYOUTS)]


def test_a_spec_that_was_there_before_is_compared_with_those_of_as_many_fields(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = orders(lake_on(memory()))
    for number in range(5):
        table.alter([UpdatePartitionSpec((AddPartitionField(("id",), f"bucket[{number + 2}]"),))])
    compared = []

    def spec_comparison_key(fields: Sequence[PartitionField]) -> object:
        compared.append(len(fields))
        return real(fields)

    real = operations.spec_comparison_key
    monkeypatch.setattr(operations, "spec_comparison_key", spec_comparison_key)
    newest = table.state.spec.fields[-1]
    table.alter([UpdatePartitionSpec((RemovePartitionField(newest.name),))])
    width = len(table.state.spec.fields)
    assert table.state.default_spec_id == 4
    assert set(compared) == {width}


def test_a_commit_to_a_table_of_many_layouts_decodes_the_one_that_it_uses() -> None:
    store = memory()
    table = orders(lake_on(store))
    state = evolve(table.state, specs=(table.state.spec, *SPECS[1:]))
    stream, log = TableStream(), handle_of(table).log
    record, before = stream.encode_state(state), decoded()
    held = stream.decode_state(record)
    log._read_to = Head(held, log.head.digest if log.head else "")
    log._own_head = None

    table.append([data_file("a.parquet")])

    assert table.state.specs is held.specs
    assert decoded() - before == len({0})


def test_a_checkpoint_is_not_copied_before_it_is_decoded() -> None:
    store = memory()
    table = orders(lake_on(store))
    tags = {name: Tag(name, 1, 1) for name in (f"tag-{number}" for number in range(20_000))}
    state = evolve(table.state, version=100, tags=tags, sort_orders=(SortOrder(0),))
    Checkpoints(store, handle_of(table).log.layout, TableStream()).save(Head(state, "sha256:"))
    size = len(store.read(handle_of(table).log.layout.checkpoint(100)) or b"")
    reading = Checkpoints(store, handle_of(table).log.layout, TableStream())
    tracemalloc.start()
    try:
        found = reading.at(100)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found is not None
    assert len(found.state.tags) == len(tags)
    assert peak < size / 2


def test_a_long_file_is_read_in_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = os.urandom(300_000)
    (tmp_path / "long").write_bytes(body)
    whole: list[bytes] = []

    def pread(file: int, size: int, at: int) -> bytes:
        some = real(file, size, at)
        whole.append(some)
        return some

    real = os.pread
    monkeypatch.setattr(os, "pread", pread)
    found = posix.read(str(tmp_path / "long"))
    assert found == body
    assert any(found is each for each in whole)


def test_a_file_that_is_handed_out_in_parts_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, at: real(file, min(size, 5_000), at))
    for size in (0, 1, 16_383, 16_384, 16_385, 100_000):
        body = os.urandom(size)
        (tmp_path / "some").write_bytes(body)
        assert posix.read(str(tmp_path / "some")) == body


def test_a_newly_opened_table_walks_no_tiers_of_the_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = memory()
    writer = orders(lake_on(store))
    for number in range(810):
        writer.append([data_file(f"f{number}.parquet")])
    handle_of(writer).log.wait_for_caches()
    fresh = lake_on(store).table("shop.orders")
    walked = []

    def below(span: tuple[int, int]) -> list[tuple[int, int]]:
        walked.append(span)
        return real(span)

    real = lookup._lower_tier_intervals
    monkeypatch.setattr(lookup, "_lower_tier_intervals", below)
    fresh.append([data_file("new.parquet")])
    assert walked == []


@pytest.mark.parametrize("text", [b"[]", b'{"spec_id":"x"}', b'{"spec_id":1,"fields":7}', b"{"])
def test_a_spec_that_is_none_is_damage_when_it_is_looked_at(text: bytes) -> None:
    specs = LazyPartitionSpecs([Raw(text)])

    for look in (lambda: specs[0], lambda: [*specs], lambda: specs.of_id(1)):
        with pytest.raises(DamagedLogError, match="a checkpoint holds an invalid partition spec"):
            look()
