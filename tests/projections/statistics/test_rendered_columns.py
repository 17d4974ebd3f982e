"""Paths made a column at a time, and ranges of keys, agree with rendering each partition."""

from __future__ import annotations

import string
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import FileChange, Schema, Table
from ledger.ledger import Ledger
from ledger.model import PartitionField, PartitionSpec
from ledger.table_handle import handle_of
from ledger.transforms import bucket
from projections.dlf.objects import Partition
from projections.statistics import Kept, query, refresh
from projections.statistics.definition import ROWS, arrow_schema
from projections.statistics.partition_rendering import PartitionRendering
from projections.statistics.report import report_of
from projections.statistics.tile_files import PartitionRows
from tests.lakes import lake_on, memory
from tests.projections.statistics.lives import Life, a_table, listed_partitions

TYPES = (
    "STRING",
    "INT",
    "BOOLEAN",
    "DATE",
    "TIME(3)",
    "TIMESTAMP(6)",
    "TIMESTAMP_LTZ(3)",
    "DECIMAL(9, 2)",
)
NUMBERS = st.integers(-(2**40), 2**40)
DAYS = st.dates().map(str)
TIMES = st.times().map(lambda each: each.isoformat())
MOMENTS = st.tuples(DAYS, st.sampled_from("T "), TIMES).map("".join)
SHORT = st.tuples(DAYS, st.just("T"), st.sampled_from(["00:00", "10:20", "10:20:00"])).map("".join)
SIDECAR = "sidecar:" + "0" * 32 + ":" + "f" * 64
TEXTS = st.one_of(
    st.text(max_size=4),
    st.text(string.ascii_letters + "_-.+", max_size=4),
    st.sampled_from(["", " ", "\t", "null", "a,null", "7", "true", "__DEFAULT_PARTITION__", "é"]),
    st.just(SIDECAR),
)
VALUES = {
    "STRING": TEXTS,
    "INT": NUMBERS,
    "BOOLEAN": st.booleans(),
    "DATE": st.one_of(DAYS, st.dates().map(lambda each: str(each).replace("-", ""))),
    "TIME(3)": TIMES,
    "TIMESTAMP(6)": st.one_of(MOMENTS, SHORT),
    "TIMESTAMP_LTZ(3)": st.one_of(MOMENTS, SHORT, SHORT.map(lambda each: f"{each}Z")),
    "DECIMAL(9, 2)": st.sampled_from(["1.50", "-0.01", "0.00"]),
}


@st.composite
def partitioned(draw: st.DrawFn) -> tuple[PartitionRendering, list[tuple[int, str]]]:
    """Return a rendering of two specs, and keys of both."""
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=0, max_size=3))
    names = [f"c{each}" for each in range(len(kinds))]
    columns = {"id": "INT", **dict(zip(names, kinds, strict=True))}
    option = {"partition.legacy-name": draw(st.sampled_from(["true", "false"]))}
    keys = names if draw(st.booleans()) else []
    schema = Schema.of(columns, partition_keys=keys, options=option)
    fields = [
        PartitionField(name, "identity", schema.field(name).id, field_id=1000 + place)
        for place, name in enumerate(names)
    ]
    hidden = PartitionField("id_bucket_8", "bucket[8]", 0, field_id=1009)
    other = draw(st.permutations([*fields, hidden]))
    specs = [PartitionSpec(0, tuple(fields)), PartitionSpec(1, tuple(other))]
    values = {
        name: st.one_of(st.none(), VALUES[kind]) for name, kind in zip(names, kinds, strict=True)
    }
    values["id_bucket_8"] = st.integers(0, 7)
    found: list[tuple[int, str]] = []
    for spec in specs:
        row = st.tuples(*(values[each.name] for each in spec.fields))
        rows = draw(st.lists(row, max_size=6))
        found += [(spec.spec_id, msgspec.json.encode(each).decode()) for each in rows]
    make = draw(st.sampled_from([PartitionRendering.of, PartitionRendering.paimon]))
    return make(schema, specs), found


def table_of(keys: list[tuple[int, str]]) -> pa.Table:
    counts = dict.fromkeys((each.name for each in ROWS if each.kind == "int64"), 1)
    rows: list[dict[str, Any]] = [
        {**counts, "spec_id": spec_id, "partition": partition, "content": "data"}
        for spec_id, partition in keys
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(ROWS))


@given(partitioned())
def test_paths_of_a_column_are_those_of_its_rows(
    given_keys: tuple[PartitionRendering, list[tuple[int, str]]],
) -> None:
    rendering, keys = given_keys

    if keys:
        found = rendering.paths(table_of(keys)).to_pylist()
        assert found == [rendering.spec(*key).path for key in keys]


@given(partitioned())
def test_the_ranges_of_a_partition_hold_all_keys_that_are_shown_as_it(
    given_keys: tuple[PartitionRendering, list[tuple[int, str]]],
) -> None:
    rendering, keys = given_keys
    shown = [rendering.spec(*key) for key in keys]

    for each in shown:
        spec = dict(each.items)
        chosen = PartitionRows(tuple(rendering.ranges_of(spec))).select(table_of(keys))
        selected = set(
            zip(chosen["spec_id"].to_pylist(), chosen["partition"].to_pylist(), strict=True)
        )
        wanted = {key for key, one in zip(keys, shown, strict=True) if dict(one.items) == spec}
        assert wanted <= selected
        paths = rendering.paths_of(spec)
        assert {one.path for one in shown if dict(one.items) == spec} <= {*paths}


@given(partitioned())
def test_rows_that_are_shown_as_one_are_merged(
    given_keys: tuple[PartitionRendering, list[tuple[int, str]]],
) -> None:
    rendering, keys = given_keys
    if keys:
        found = query.merge_shown(table_of(keys), rendering)
        paths = [rendering.spec(*key).path for key in keys]
        assert found["path"].to_pylist() == sorted({*paths})
        assert found["file_count"].to_pylist() == [paths.count(each) for each in sorted({*paths})]
        assert [each.spec for each in query.render_partitions(found, rendering)] == [
            dict(rendering.spec(*keys[paths.index(path)]).items) for path in sorted({*paths})
        ]


@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["a", "b/", "b-", "é"]), st.sampled_from("xy"), st.integers(0, 3))
    ),
    top=st.integers(1, 9),
)
def test_the_greatest_partitions_are_those_of_a_sort(
    rows: list[tuple[str, str, int]], top: int
) -> None:
    schema = Schema.of({"a": "STRING", "b": "STRING"}, partition_keys=["a", "b"])
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField(each.name, "identity", each.id, field_id=1000 + each.id)
            for each in schema.fields
        ),
    )
    rendering = PartitionRendering.of(schema, [spec])
    counts = {msgspec.json.encode((a, b)).decode(): count for a, b, count in rows}
    given_rows = table_of([(0, key) for key in counts])
    place = given_rows.schema.get_field_index("record_count")
    numbers = pa.array(counts.values(), pa.int64())
    given_rows = given_rows.set_column(place, given_rows.schema.field(place), numbers)
    if counts:
        merged = query.merge_shown(given_rows, rendering)
        found = query.render_partitions(
            query.greatest_partitions(merged, "records", top), rendering
        )
        every = query.render_partitions(merged, rendering)

        def rank(each: Partition) -> tuple[int, tuple[str, ...]]:
            return -each.record_count, tuple(each.spec.values())

        assert list(found) == sorted(every, key=rank)[:top]


def test_a_history_of_one_partition_has_the_rows_of_every_spec_and_spelling() -> None:
    lake: Ledger = lake_on(memory())
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "at": "TIMESTAMP(3)"}, partition_keys=["at"])
    table = lake.create_table("shop.t", schema)

    def append(name: str, *partition: str | int | None, spec_id: int = 0) -> None:
        file = FileChange(
            path=f"{name}.parquet",
            partition=partition,
            record_count=1,
            file_size_in_bytes=1,
            spec_id=spec_id,
        )
        table.append([file])

    append("a", "2024-01-01T00:00:00")
    append("b", "2024-01-01 00:00")
    append("c", "2024-01-01T00:00:01")
    table.update_spec().add_field(bucket("id", 8)).commit()
    append("d", "2024-01-01T00:00:00", 3, spec_id=1)
    append("e", None, 3, spec_id=1)
    refresh(handle_of(table).log)
    kept, at = Kept.of(handle_of(table).log), table.at()

    for shown in listed_partitions(kept, at):
        grown = query.growth(kept, at, shown.spec)
        assert grown[-1].file_count == shown.file_count
    assert [each.file_count for each in listed_partitions(kept, at)] == [3, 1, 1]
    assert [each.snapshot_id for each in query.growth(kept, at, {"at": "2024-01-01T00:00"})] == [
        1,
        2,
        4,
    ]


@pytest.mark.parametrize("count", [0, 1, 30])
def test_only_the_shown_partitions_of_a_report_are_rendered(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    table: Table = a_table()
    Life(table, 5).goes_on(3)
    files = [
        FileChange(
            path=f"{each}.parquet",
            partition=(f"2024-02-{each % 28 + 1:02d}",),
            record_count=each,
            file_size_in_bytes=1,
            field_ids=True,
        )
        for each in range(count)
    ]
    table.append(files)
    kept, at = Kept.of(handle_of(table).log), table.at()
    rendered: list[str] = []
    spec = PartitionRendering.spec

    def counted(self: PartitionRendering, spec_id: int, partition: str) -> Any:
        rendered.append(partition)
        return spec(self, spec_id, partition)

    monkeypatch.setattr(PartitionRendering, "spec", counted)
    document = report_of(table, kept, at, "local").document("records", 2)

    assert len(rendered) == len(document["partitions"]) == min(2, document["partitionCount"])
