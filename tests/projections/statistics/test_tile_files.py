"""Tiles on the store: their order, what one partition costs to read, and tiles of older formats."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from ledger import Table
from ledger.table_handle import handle_of
from projections.outputs import save_position
from projections.statistics import Kept, query, refresh, verify
from projections.statistics import tile_files as tiles
from projections.statistics.definition import ROWS, arrow_schema
from projections.statistics.fold import ordered
from projections.statistics.tile_files import (
    AllPartitions,
    PartitionRange,
    PartitionRows,
    RowFilter,
    TableRows,
    decode_in_parts,
    decode_parquet,
    encode_parquet,
)
from tests.projections.statistics.lives import Life, a_table, reopened

KEYS = ("spec_id", "partition", "content", "version", "snapshot_id")


def rows(count: int, seed: int = 1) -> pa.Table:
    """Return the rows of some snapshots of 1,000 partitions of two specs, in random order."""
    numbers = random.Random(seed)
    found: list[dict[str, Any]] = []
    for version in range(count // 50):
        place = {"version": version, "snapshot_id": version + 1}
        measured = {"record_count": 1, "file_size_in_bytes": 2, "file_count": version}
        keys: list[tuple[int | None, str | None, str | None]] = [(None, None, None)]
        named = numbers.sample(range(1000), 49)
        keys += [(each % 2, f'["{each:03d}"]', "data") for each in named]
        found += [
            {**place, **measured, "spec_id": a, "partition": b, "content": c, _TIME: version}
            for a, b, c in keys
        ]
    numbers.shuffle(found)
    return pa.Table.from_pylist(found, schema=arrow_schema(ROWS))


_TIME = "last_file_creation_time"


def test_rows_of_whole_tables_come_first_and_then_each_partition_in_order_of_its_changes() -> None:
    unordered = rows(5_000)
    found = decode_parquet(encode_parquet([ordered(unordered)]))

    def key(row: dict[str, Any]) -> list[tuple[bool, Any]]:
        return [(row[name] is not None, row[name] or 0) for name in KEYS]

    assert found is not None
    assert found.to_pylist() == sorted(unordered.to_pylist(), key=key)


@pytest.mark.parametrize("size", [1, 100, 16_384, 16_385, 40_000])
def test_the_bytes_of_a_tile_do_not_depend_on_the_tables_that_rows_come_in(size: int) -> None:
    given = ordered(rows(40_000))
    parts = [given.slice(each, size) for each in range(0, len(given), size)][:3_000]
    whole = given.slice(0, sum(map(len, parts)))

    assert encode_parquet(parts) == encode_parquet([whole])


def test_a_tile_that_is_read_in_parts_is_used_as_a_whole_or_not_at_all() -> None:
    body = encode_parquet([ordered(rows(40_000))])

    found = decode_in_parts(body, 10_000)

    assert found is not None
    parts = [*found]
    assert max(map(len, parts)) <= 10_000
    assert pa.concat_tables(parts).equals(decode_parquet(body))
    torn = bytearray(body)
    torn[len(body) // 2] ^= 1
    assert decode_in_parts(bytes(torn), 10_000) is None


ASCII = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=3)
SELECTIONS = st.one_of(
    st.builds(TableRows),
    st.builds(AllPartitions),
    st.lists(
        st.one_of(
            st.integers(0, 999).map(lambda each: PartitionRange.of_prefix(f'["{each:03d}"]')),
            st.integers(0, 9).map(lambda each: PartitionRange.of_prefix(f'["{each}')),
            st.tuples(ASCII, ASCII | st.none()).map(lambda ends: PartitionRange(*ends)),
        ),
        max_size=3,
    ).map(lambda ranges: PartitionRows(tuple(ranges))),
)


@cache
def in_groups(group: int) -> bytes:
    """Return a tile in row groups of some rows."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(tiles, "_ROWS_A_GROUP", group)
        return encode_parquet([ordered(rows(500))])


@given(chosen=SELECTIONS, group=st.sampled_from([7, 100, 16_384]))
def test_selected_rows_are_those_of_the_whole_tile(chosen: RowFilter, group: int) -> None:
    body = in_groups(group)
    whole = decode_parquet(body)
    found = decode_parquet(body, chosen)

    assert whole is not None
    assert found is not None
    assert found.equals(chosen.select(whole))


@pytest.mark.parametrize("chosen", [TableRows(), PartitionRows((PartitionRange.of_prefix('["5'),))])
def test_row_groups_of_other_rows_are_not_decoded(
    monkeypatch: pytest.MonkeyPatch, chosen: RowFilter
) -> None:
    monkeypatch.setattr(tiles, "_ROWS_A_GROUP", 100)
    body = bytearray(encode_parquet([ordered(rows(10_000))]))
    wanted = decode_parquet(bytes(body), chosen)
    metadata = parquet.read_metadata(pa.BufferReader(bytes(body)))
    others = 0
    for index in range(metadata.num_row_groups):
        columns = [metadata.row_group(index).column(each) for each in range(9)]
        spec_id, partition = (columns[place].statistics for place in (2, 3))
        if chosen.narrow(spec_id, partition) is None:
            others += 1
            for each in columns:
                start = each.dictionary_page_offset or each.data_page_offset
                body[start : start + each.total_compressed_size] = b"\xff" * (
                    each.total_compressed_size
                )

    found = decode_parquet(bytes(body), chosen)

    assert others > metadata.num_row_groups / 2
    assert wanted is not None
    assert found is not None
    assert found.equals(wanted)
    assert decode_parquet(bytes(body)) is None


@pytest.mark.parametrize("chosen", [None, AllPartitions(), PartitionRows((PartitionRange('["'),))])
def test_a_tile_that_unpacks_beyond_all_measure_counts_as_missing(
    chosen: RowFilter | None,
) -> None:
    bomb = repeated_key(60_000)

    assert len(bomb) < 100_000
    assert decode_parquet(bomb, chosen) is None
    few = decode_parquet(repeated_key(5), chosen)
    assert few is not None
    assert len(few) == 5


def repeated_key(count: int) -> bytes:
    """Return a tile whose rows have the same long key, once in its bytes."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), [_LONG])
    numbers = pa.array([0] * count, pa.int64())
    columns = {each.name: numbers for each in ROWS if each.kind == "int64"}
    rows = pa.table(
        {**columns, "partition": texts, "content": pa.array(["data"] * count)},
        metadata={b"lakeledger.statistics": b"2"},
    )
    sink = pa.BufferOutputStream()
    parquet.write_table(rows, sink, compression="zstd")
    return bytes(sink.getvalue())


_LONG = f'["{"x" * 8_000}"]'


def kept_files(table: Table) -> dict[str, bytes | None]:
    store = handle_of(table).log.store
    return {key: store.read(key) for key in store.keys("") if "/statistics/" in key}


def as_format_1(table: Table) -> Iterator[str]:
    """Rewrite the kept statistics as the first format had them, and yield the keys of tiles."""
    store = handle_of(table).log.store
    for key, body in kept_files(table).items():
        assert body is not None
        if key.endswith(".parquet"):
            found = parquet.read_table(pa.BufferReader(body))
            old = found.sort_by([(name, "ascending") for name in ("version", "snapshot_id")])
            sink = pa.BufferOutputStream()
            said = old.replace_schema_metadata({b"lakeledger.statistics": b"1"})
            parquet.write_table(said, sink)
            store.replace(key, bytes(sink.getvalue()))
            yield key
        else:
            position = json.loads(body)["position"]
            del position["tileFormat"]
            save_position(store, key, position)


def test_tiles_of_the_first_format_count_as_missing_and_are_written_again() -> None:
    table = a_table()
    life = Life(table, 3)
    life.goes_on(70)
    refresh(handle_of(table).log)
    wanted, answer = kept_files(table), query.totals(Kept.of(handle_of(table).log), table.at())
    old = [*as_format_1(table)]
    assert old

    again = reopened(table, handle_of(table).log.store)
    kept = Kept.of(handle_of(again).log)
    assert kept.position.version == -1
    assert query.totals(kept, again.at()) == answer

    refresh(handle_of(again).log)
    assert kept_files(again) == wanted
    assert verify(handle_of(again).log).is_empty


def test_narrow_tiles_of_an_unusable_position_are_deleted() -> None:
    table = a_table()
    life = Life(table, 3)
    life.goes_on(70)
    refresh(handle_of(table).log)
    assert [*as_format_1(table)]
    life.goes_on(70)

    again = reopened(table, handle_of(table).log.store)
    refresh(handle_of(again).log)

    assert verify(handle_of(again).log).foreign == ()
