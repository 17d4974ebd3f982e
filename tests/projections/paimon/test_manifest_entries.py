from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from ledger import FileChange, InvalidInputError, Schema, UnsupportedError
from ledger.model import parse_type
from ledger.model import types as t
from projections.paimon import (
    ManifestEntry,
    ManifestFileMeta,
    bucket_path,
    decode_row,
    encode_row,
    file_change,
    manifest_path,
    read_manifest,
    read_manifest_list,
    schema_from_json,
    value_stats,
)
from projections.paimon.manifest_writing import manifest_entry, manifest_file_meta
from projections.paimon.row_values import to_bound
from projections.partition_text import PartitionText

ROOT = Path(__file__).parents[2] / "data/paimon"
TABLES = [ROOT / "java_wh/j.db/append_p", ROOT / "java_wh/j.db/rt"]
EVERY_TABLE = [*TABLES, ROOT / "java_wh/j.db/pk", *(ROOT / "pypaimon_wh/ledger.db").iterdir()]
CHANGE = FileChange(
    path="bucket-0/a.parquet", record_count=3, file_size_in_bytes=900, creation_time=5
)


def entries_of(table: Path) -> dict[str, tuple[ManifestEntry, ...]]:
    return {
        path.name: read_manifest(path.read_bytes(), path.name)
        for path in sorted(table.glob("manifest/manifest-*"))
        if not path.name.startswith("manifest-list")
    }


def metas_of(table: Path) -> list[ManifestFileMeta]:
    return [
        meta
        for path in sorted(table.glob("manifest/manifest-list-*"))
        for meta in read_manifest_list(path.read_bytes(), path.name)
    ]


def schema_of(table: Path, schema_id: int = 0) -> Schema:
    return schema_from_json((table / f"schema/schema-{schema_id}").read_bytes())


def key_types(schema: Schema) -> list[t.DataType]:
    return [schema.field(name).type for name in schema.partition_keys]


def change_of(entry: ManifestEntry, schema: Schema) -> tuple[FileChange, str]:
    """Return the change of a Java table's entry, and the folder of its file."""
    plain = file_change(
        attrs.evolve(entry, file=attrs.evolve(entry.file, value_stats_cols=())),
        spec_types=key_types(schema),
        columns=schema.fields,
        folder="",
    )
    spec = PartitionText.of(schema).spec(schema.partition_keys, plain.partition)
    folder = bucket_path(spec, entry.bucket)
    change = file_change(entry, spec_types=key_types(schema), columns=schema.fields, folder=folder)
    return change, folder


def entry_of(change: FileChange, **options: Any) -> ManifestEntry:
    given_options = {
        "spec_types": [],
        "columns": [],
        "folder": "bucket-0",
        "external_path": "s3://b/t/else/a.parquet",
    }
    return manifest_entry(change, **{**given_options, **options})


@pytest.mark.parametrize("table", TABLES, ids=lambda each: each.name)
def test_entries_of_javas_append_tables_come_out_again(table: Path) -> None:
    schema = schema_of(table)
    for entries in entries_of(table).values():
        for entry in entries:
            change, folder = change_of(entry, schema)

            again = manifest_entry(
                change,
                spec_types=key_types(schema),
                columns=schema.fields,
                folder=folder,
                external_path="not used",
            )

            same: dict[str, Any] = {
                "value_stats_cols": None,
                "min_sequence_number": entry.file.min_sequence_number,
                "max_sequence_number": entry.file.max_sequence_number,
            }
            names = again.file.value_stats_cols
            assert names == tuple(each.name for each in schema.fields)
            assert attrs.evolve(again, file=attrs.evolve(again.file, **same)) == entry


def test_sequence_numbers_count_the_rows_as_javas_do() -> None:
    table = TABLES[0]
    for entries in entries_of(table).values():
        for entry in entries:
            change, _ = change_of(entry, schema_of(table))
            file = entry_of(change, spec_types=key_types(schema_of(table))).file
            expected = (entry.file.min_sequence_number, entry.file.max_sequence_number)
            assert (file.min_sequence_number, file.max_sequence_number) == expected


def test_files_of_java_lie_where_their_partition_says() -> None:
    table = TABLES[0]
    found = {
        change_of(entry, schema_of(table))[0].path
        for entries in entries_of(table).values()
        for entry in entries
    }

    assert {path.rpartition("/")[0] for path in found} == {
        "dt=19723/hh=5/bucket-0",
        "dt=19724/hh=6/bucket-0",
        "dt=__DEFAULT_PARTITION__/hh=7/bucket-0",
    }


@pytest.mark.parametrize("table", EVERY_TABLE, ids=lambda each: each.name)
def test_every_entry_becomes_a_change(table: Path) -> None:
    for entries in entries_of(table).values():
        for entry in entries:
            schema = schema_of(table, entry.file.schema_id)
            change, _ = change_of(entry, schema)
            assert change.record_count == entry.file.row_count
            assert change.path.endswith(entry.file.file_name)


@pytest.mark.parametrize("table", EVERY_TABLE, ids=lambda each: each.name)
def test_manifests_are_named_as_java_and_pypaimon_name_them(table: Path) -> None:
    entries, types = entries_of(table), key_types(schema_of(table))

    for meta in metas_of(table):
        size = (table / manifest_path(meta.file_name)).stat().st_size
        again = manifest_file_meta(
            meta.file_name, size, entries[meta.file_name], partition_types=types
        )
        assert again == meta


def test_partition_statistics_bound_all_partitions_and_count_nulls() -> None:
    types = [parse_type("STRING"), parse_type("INT")]
    entries = [
        entry_of(msgspec.structs.replace(CHANGE, partition=partition), spec_types=types)
        for partition in (("b", None), ("a", None), (None, None))
    ]

    meta = manifest_file_meta("m", 1, entries, partition_types=types)

    assert decode_row(meta.partition_stats.min_values, types) == ("a", None)
    assert decode_row(meta.partition_stats.max_values, types) == ("b", None)
    assert meta.partition_stats.null_counts == (1, 3)


def test_a_manifest_without_entries_has_no_place_in_a_list() -> None:
    with pytest.raises(InvalidInputError, match="leave it out"):
        manifest_file_meta("m", 1, [], partition_types=[])


def test_a_file_outside_its_place_is_named_in_full() -> None:
    inside = entry_of(CHANGE)
    outside = entry_of(msgspec.structs.replace(CHANGE, path="else/a.parquet"))

    assert inside.file.external_path is None
    assert (outside.file.file_name, outside.file.external_path) == (
        "a.parquet",
        "s3://b/t/else/a.parquet",
    )
    for location, path in (("s3://b/t", "else/a.parquet"), (None, "s3://b/t/else/a.parquet")):
        change = file_change(
            outside, spec_types=[], columns=[], folder="bucket-0", location=location
        )
        assert change.path == path


@pytest.mark.parametrize(
    "change",
    [
        msgspec.structs.replace(CHANGE, content="position-deletes"),
        msgspec.structs.replace(CHANGE, path="bucket-0/000000_0"),
        msgspec.structs.replace(CHANGE, format="orc"),
    ],
    ids=lambda each: f"{each.path} {each.format} {each.content}",
)
def test_what_paimon_cannot_say_is_rejected_by_the_file(change: FileChange) -> None:
    with pytest.raises(UnsupportedError, match=change.path):
        entry_of(change)


def test_a_partition_needs_one_value_for_each_key() -> None:
    with pytest.raises(InvalidInputError, match="0 partition values for 1 partition keys"):
        entry_of(CHANGE, spec_types=[t.IntType()])


def stats_of(name: str, lower: str | None, upper: str | None, *, nulls: int = 0) -> Any:
    data_type = parse_type(name)
    change = msgspec.structs.replace(
        CHANGE,
        null_value_counts={7: nulls},
        lower_bounds=UNSET if lower is None else {7: lower},
        upper_bounds=UNSET if upper is None else {7: upper},
    )
    names, stats = value_stats(change, [t.DataField(7, "x", data_type)])
    if not names:
        return None
    low, high = (decode_row(row, [data_type])[0] for row in (stats.min_values, stats.max_values))
    return low, high, stats.null_counts


def test_statistics_need_a_null_count_and_both_bounds() -> None:
    one = to_bound(1, t.IntType())
    no_count = msgspec.structs.replace(CHANGE, lower_bounds={7: one}, upper_bounds={7: one})

    assert stats_of("INT", one, one, nulls=2) == (1, 1, (2,))
    assert stats_of("INT", one, None) is None
    assert stats_of("INT", None, one) is None
    assert value_stats(no_count, [t.DataField(7, "x", t.IntType())])[0] == ()


def test_a_column_of_nothing_but_nulls_needs_no_bounds() -> None:
    assert stats_of("STRING", None, None, nulls=3) == (None, None, (3,))


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("BYTES", "00ff"),
        ("ARRAY<INT>", "00"),
        ("INT", "00"),
        ("DATE", "ffffff7f"),
        ("TINYINT", "ff000000"),
        ("DOUBLE", "000000000000f87f"),
        ("TIMESTAMP(6)", "ffffffffffffff7f"),
    ],
)
def test_bounds_that_no_row_can_hold_leave_their_column_out(name: str, bound: str) -> None:
    data_type = t.ArrayType(t.IntType()) if name.startswith("ARRAY") else parse_type(name)
    change = msgspec.structs.replace(
        CHANGE, null_value_counts={7: 0}, lower_bounds={7: bound}, upper_bounds={7: bound}
    )

    assert value_stats(change, [t.DataField(7, "x", data_type)])[0] == ()


def test_statistics_are_dense() -> None:
    one = to_bound(1, t.IntType())
    columns = [t.DataField(n, f"c{n}", t.IntType()) for n in range(4)]
    change = msgspec.structs.replace(
        CHANGE,
        null_value_counts={1: 0, 3: 1},
        lower_bounds={1: one, 3: one},
        upper_bounds={1: one, 3: one},
    )

    names, stats = value_stats(change, columns)

    assert (names, stats.null_counts) == (("c1", "c3"), (0, 1))
    assert stats.min_values == encode_row([1, 1], [t.IntType(), t.IntType()])


@given(st.datetimes(), st.sampled_from([0, 3, 6]))
def test_a_moment_lies_within_its_statistics(moment: dt.datetime, precision: int) -> None:
    data_type = t.TimestampType(precision)
    bound = to_bound(moment, data_type)

    found = stats_of(f"TIMESTAMP({precision})", bound, bound)

    assert found is None or found[0] <= moment <= found[1]


@given(st.times())
def test_a_time_lies_within_its_statistics(moment: dt.time) -> None:
    bound = to_bound(moment, t.TimeType(6))

    found = stats_of("TIME(6)", bound, bound)

    assert found is None or found[0] <= moment <= found[1]


def test_statistics_of_an_unknown_column_are_rejected_by_name() -> None:
    [entry, *_] = (each for entries in entries_of(TABLES[0]).values() for each in entries)
    other = attrs.evolve(entry, file=attrs.evolve(entry.file, value_stats_cols=("gone",)))

    with pytest.raises(InvalidInputError, match="'gone'"):
        change_of_columns(other)


def change_of_columns(entry: ManifestEntry) -> FileChange:
    schema = schema_of(TABLES[0])
    return file_change(
        entry, spec_types=key_types(schema), columns=schema.fields, folder="bucket-0"
    )


@given(
    st.integers(0, 2**40),
    st.sampled_from(["ADD", "DELETE"]),
    st.dates(),
    st.none() | st.integers(0, 2**40),
    st.lists(st.text(), max_size=2),
)
def test_a_change_survives_its_entry(
    rows: int, kind: Any, day: dt.date, first_row_id: int | None, extra: list[str]
) -> None:
    change = FileChange(
        kind=kind,
        path="x=1/bucket-3/a.b.orc",
        partition=(day.isoformat(),),
        schema_id=4,
        record_count=rows,
        file_size_in_bytes=10,
        creation_time=1_700_000_000_123,
        format="orc",
        bucket=3,
        level=2,
        first_row_id=UNSET if first_row_id is None else first_row_id,
        extra_files=tuple(extra) or UNSET,
    )

    entry = entry_of(change, spec_types=[t.DateType()], folder="x=1/bucket-3")

    assert (
        file_change(entry, spec_types=[t.DateType()], columns=[], folder="x=1/bucket-3") == change
    )
