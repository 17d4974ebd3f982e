"""Files and tags that Iceberg cannot express are rejected at the commit, not at projection."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from ledger import (
    FileChange,
    FormatError,
    InvalidChangeError,
    Schema,
    SetOption,
    SnapshotPlan,
    Table,
    UpdateColumnType,
)
from ledger.table_handle import handle_of
from ledger.transforms import bucket, month
from projections.iceberg import ICEBERG
from tests.lakes import lake_on, memory
from tests.projections.iceberg.older_logs import record_file

COLUMNS = {
    "id": "BIGINT NOT NULL",
    "day": "DATE",
    "price": "DECIMAL(6, 2)",
    "name": "STRING",
    "n": "INT",
    "at": "TIMESTAMP(6)",
}
PAIMON = SetOption("ledger.formats", "paimon")
BOTH = SetOption("ledger.formats", "paimon,iceberg")


def table_of(*keys: str, primary_keys: tuple[str, ...] = (), **options: Any) -> Table:
    lake = lake_on(memory())
    lake.create_database("d")
    texts = {name.replace("_", "-"): value for name, value in options.items()}
    schema = Schema.of(COLUMNS, partition_keys=keys, primary_keys=primary_keys, options=texts)
    return lake.create_table("d.t", schema)


def file(path: str, *partition: Any, **facts: Any) -> FileChange:
    whole = FileChange(
        path=path, partition=partition, record_count=1, file_size_in_bytes=9, field_ids=True
    )
    return replace(whole, **facts)


def refused(table: Table, wrong: FileChange) -> str:
    """Return the rule that rejects a file and its whole commit."""
    before = table.state.version
    sound = file("sound.parquet", *(None for _ in wrong.partition), spec_id=wrong.spec_id)
    with pytest.raises(FormatError) as caught:
        table.append([sound, wrong])
    assert table.state.version == before
    error = caught.value
    assert error.format == "iceberg"
    assert error.message == f"file {wrong.path}: {error.rule}; {error.alternative}"
    return error.rule


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ({"format": "lance"}, "files are parquet, orc, avro, and this one is 'lance'"),
        ({"content": "equality-deletes"}, "which columns they compare"),
        ({"content": "changelog"}, "files hold data, position-deletes or equality-deletes"),
        ({"lower_bounds": {0: "zz"}}, "bounds are bytes in hex, and that of field 0 is 'zz'"),
        ({"upper_bounds": {99: "f"}}, "bounds are bytes in hex, and that of field 99"),
        ({"lower_bounds": {0: "010000"}}, "a bound of field 0, BIGINT, is 8 bytes"),
        ({"upper_bounds": {4: "0100000000000000"}}, "a bound of field 4, INT, is 4 bytes"),
        ({"lower_bounds": {2: ""}}, "a bound of field 2, DECIMAL.*, is 1 to 16 bytes"),
        ({"lower_bounds": {3: "ff"}}, "a bound of field 3, STRING, is UTF-8"),
        ({"lower_bounds": {5: "00" * 9}}, "a bound of field 5, TIMESTAMP.*, is 8 bytes"),
    ],
)
def test_a_fact_that_no_manifest_can_hold_is_refused(facts: dict[str, Any], rule: str) -> None:
    wrong = file("f.parquet", **facts)
    assert re.search(rule, refused(table_of(), wrong))

    # Nobody but Iceberg minds bounds, and what goes is no problem.
    table = table_of()
    record_file(table, wrong)
    table.delete_files(["f.parquet"])
    table.alter([PAIMON])
    if {"content", "format"}.isdisjoint(facts):
        table.append([replace(wrong, path="g.parquet")])
    else:
        with pytest.raises(FormatError, match="paimon"):
            table.append([replace(wrong, path="g.parquet")])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n", 1 << 31),
        ("n", "7"),
        ("n", True),
        ("id", 1 << 63),
        ("day", "2024-02-30"),
        ("day", 19_000),
        ("price", "10000.00"),
        ("price", "1.234"),
        ("at", "2024-01-01T00:00:00+01:00"),
    ],
)
def test_a_partition_value_that_its_field_cannot_have_is_refused(key: str, value: Any) -> None:
    rule = refused(table_of(key), file("f.parquet", value))
    assert rule.startswith(f"partition field {key} has values of ")
    assert rule.endswith(f"and {value!r} is not one")


def test_a_partition_value_is_judged_by_what_its_transform_gives() -> None:
    table = table_of()
    table.update_spec().add_field(bucket("name", 4)).add_field(month("day")).commit()
    assert "name_bucket_4 has values of INT" in refused(
        table, file("f.parquet", "ann", 1, spec_id=1)
    )
    assert "day_month has values of INT" in refused(
        table, file("f.parquet", 1, "2024-01", spec_id=1)
    )
    table.append([file("g.parquet", 1, 648, spec_id=1), file("h.parquet", None, None, spec_id=1)])
    ICEBERG.project(handle_of(table))


def test_bounds_from_before_a_promotion_are_taken() -> None:
    table = table_of()
    table.append([file("f.parquet", lower_bounds={4: "01000000"})])
    table.alter([UpdateColumnType(("n",), "BIGINT")])
    table.append([file("g.parquet", lower_bounds={4: "01000000"}, upper_bounds={4: "ff" * 8})])
    ICEBERG.project(handle_of(table))


def test_format_version_1_has_no_files_of_deletes() -> None:
    deletes = file("f.parquet", content="position-deletes")
    table = table_of(format_version="1")
    assert refused(table, deletes) == "format version 1 has no files of deletes"
    table.alter([SetOption("format-version", "2"), SetOption("ledger.formats", "iceberg")])
    table.append([deletes])
    ICEBERG.project(handle_of(table))


def test_format_version_3_takes_no_new_position_deletes_and_keeps_those_it_has() -> None:
    deletes = file("f", content="position-deletes")
    table = table_of(**{"format_version": "2", "ledger.formats": "iceberg"})  # type: ignore[arg-type]
    table.append([file("a")])
    table.append([deletes])
    table.alter([SetOption("format-version", "3")])
    ICEBERG.project(handle_of(table))

    more = file("g", content="position-deletes")
    assert refused(table, more).startswith("format version 3 has deletion vectors in place of")
    with pytest.raises(FormatError, match="accepts no new ones"):
        table.overwrite([more])
    with pytest.raises(FormatError, match="accepts no new ones"):
        table.commit_snapshot(SnapshotPlan("COMPACT", (more,), delete=("f",)))

    # What a rollback brings back is not new.
    table.delete_files(["f"])
    table.rollback(snapshot=2)
    assert {each.path for each in table.at().files} == {"a", "f"}
    ICEBERG.project(handle_of(table))


@pytest.mark.parametrize(
    ("version", "by_value", "vectors"),
    [
        ("1", "format version 1 has no files of deletes", "format version 1 has no deletion"),
        ("2", "which columns they compare", "format version 2 has no deletion"),
    ],
)
def test_a_format_version_refuses_the_deletes_that_it_has_not(
    version: str, by_value: str, vectors: str
) -> None:
    table = table_of(format_version=version)
    table.append([file("a.parquet")])
    assert by_value in refused(table, file("f", content="equality-deletes"))
    vector = file(
        "f#4",
        content="position-deletes",
        format="puffin",
        file_size_in_bytes=99,
        referenced_data_file="a.parquet",
        content_offset=4,
        content_size_in_bytes=40,
    )
    assert vectors in refused(table, vector)


def test_a_table_with_a_primary_key_does_not_list_its_files_itself() -> None:
    table = table_of(primary_keys=("id",), bucket="1")
    with pytest.raises(
        FormatError, match="^file f.parquet: only Paimon's merge finds the newest rows"
    ):
        table.append([file("f.parquet")])
    table.commit_snapshot(SnapshotPlan("APPEND", facts={"base_manifest_list": "manifest-list-1"}))

    alone = table_of(primary_keys=("id",), bucket="1")
    alone.alter([PAIMON])
    record_file(alone, file("f.parquet"))
    with pytest.raises(FormatError, match="only Paimon's merge"):
        alone.alter([BOTH])
    assert "only Paimon's merge" in alone.plan([BOTH]).refusals[0].message


def test_a_rollback_does_not_bring_back_what_iceberg_cannot_say() -> None:
    table = table_of()
    record_file(table, file("f.parquet", format="lance"))
    table.delete_files(["f.parquet"])
    with pytest.raises(FormatError, match="file f.parquet: files are parquet"):
        table.rollback(snapshot=1)


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("s3:/lake/f.parquet", "s3://lake/f.parquet"),
    ],
)
def test_half_a_url_is_neither_inside_nor_outside_the_table(path: str, instead: str) -> None:
    table = table_of()
    with pytest.raises(InvalidChangeError, match=f"neither a URL nor below .* write {instead}$"):
        table.append([file(path)])
    table.append([file(instead), file("at=10:/f.parquet"), file("/lake/f.parquet")])
