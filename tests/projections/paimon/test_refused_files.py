"""A commit rejects files that Paimon cannot express; all others are read."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ledger
from ledger import FileChange, FormatError, InvalidInputError, Schema, SetOption, SnapshotPlan
from ledger.log import head_state
from ledger.table_handle import handle_of
from projections.paimon import PAIMON, verify
from projections.paimon.rules import FileRules
from tests.lakes import lake_on, memory
from tests.pypaimon_or_skip import CatalogFactory
from tests.thorough import some

TYPES = (
    *("BOOLEAN", "TINYINT", "INT", "BIGINT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(30, 2)"),
    *("CHAR(3)", "STRING", "VARBINARY(4)", "DATE", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(9)"),
    *("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 127, 128, 2**31, 2**63, -(2**63), 2**70, "", " ", "a", "abcd", "ä"),
    *("1", "1.5", "-0", "1e5", "NaN", "-Infinity", "1.005", "99999.99", "0.10", "ff", "abc"),
    *("2013-01-01", "2013-1-1", "9999-12-31", "10000-01-01", "-0001-01-01", "0000-01-01", "15706"),
    *("10:20", "10:20:30.123", "23:59:60", "24:00", "2013-01-01T10:20:30", "2013-01-01 10:20"),
    *("2013-01-01T10:20:30.123456789", "2013-01-01T10:20:30Z", "2013-01-01T10:20:30+02:00"),
    *("+10000-01-01T00:00:00", "0001-01-01T00:00:00", "a/b", "..", "%2F", "x=y", "\u2028"),
)


@pytest.mark.parametrize("legacy", ["true", "false"])
@pytest.mark.parametrize("data_type", TYPES)
def test_a_partition_that_is_committed_is_projected(data_type: str, legacy: str) -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    options = {"ledger.formats": "paimon", "partition.legacy-name": legacy}
    schema = Schema.of({"id": "INT", "k": data_type}, partition_keys=["k"], options=options)
    table = lake.create_table("shop.t", schema)
    refused: set[str | None] = set()
    for number, value in enumerate(VALUES):
        file = a_file(f"{number}.parquet", partition=(value,))
        try:
            table.append([file])
        except FormatError as error:
            refused.add(error.format)
    assert table.state.last_snapshot_id > 1
    assert refused <= {"paimon"}
    PAIMON.project(handle_of(table))
    assert verify(handle_of(table)).is_empty


def a_file(path: str, **facts: Any) -> FileChange:
    given: dict[str, Any] = {"path": path, "record_count": 1, "file_size_in_bytes": 9, **facts}
    return FileChange(**given)


FACTS: dict[str, tuple[Any, ...]] = {
    "content": ("data", "data", "data", "data", "position-deletes", "equality-deletes", "foo"),
    "format": ("parquet", "parquet", "parquet", "PARQUET", "avro", "csv", ""),
    "bucket": (0, 0, 0, 5, -1, -2, 2**31 - 1, 2**31, 2**70),
    "level": (0, 0, 3, -1, 2**31),
    "creation_time": (0, 1_700_000_000_000, -5, 253_402_300_800_000, 2**62, 2**64),
    "first_row_id": (7, 0, -1, 2**63, 2**64),
    "null_value_counts": ({0: 0}, {0: 1}, {0: -1}, {0: 2**63}, {9: 0}),
    "lower_bounds": ({0: "0000000000000000"}, {0: "zz"}, {0: ""}, {0: "00"}, {7: "00"}),
    "upper_bounds": ({0: "ffffffffffffff7f"}, {0: "zz"}, {0: "ff"}),
    "value_counts": ({0: 1}, {0: 2**70}, {0: -3}),
    "extra_files": ((), ("a.index",)),
}
NAMES = (
    *("{}.parquet", "{}.parquet", "x/{}.parquet", "bucket-0/{}.parquet", "{} b.parquet"),
    *("{}%20.parquet", "{}#b?.parquet", "k=1:2/{}.parquet", "ä{}.parquet", "{}.gz.parquet"),
    *("{}.PARQUET", "{}", "{}.avro", "{}parquet", "{}.parquet.crc", "{}\n.parquet", "{}\t.parquet"),
    *("ABSOLUTE/{}.parquet", "file://ABSOLUTE/{}.parquet", "one/same.parquet", "two/same.parquet"),
)


@pytest.mark.parametrize("seed", some(range(6), 2))
@pytest.mark.parametrize("formats", ["paimon", "paimon,iceberg"])
def test_pypaimon_reads_all_files_that_are_committed(
    tmp_path: Path, seed: int, formats: str
) -> None:
    rng = random.Random(seed)
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    options = {"ledger.formats": formats}
    table = lake.create_table("shop.t", Schema.of({"id": "BIGINT"}, options=options))
    wanted: list[int] = []
    refused = 0
    for number in range(40):
        name = rng.choice(NAMES).format(number).replace("ABSOLUTE", str(tmp_path / "else where"))
        facts = {what: rng.choice(FACTS[what]) for what in FACTS if rng.random() < 0.15}
        target = tmp_path / "lake" / handle_of(table).path / name.removeprefix("file://")
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table({"id": [number]}), target)
        try:
            table.append([a_file(name, file_size_in_bytes=target.stat().st_size, **facts)])
        except (FormatError, InvalidInputError):
            refused += 1
        else:
            wanted.append(number)
    assert min(refused, len(wanted)) > 3

    PAIMON.project(handle_of(table))

    builder = CatalogFactory.create({"warehouse": lake.url}).get_table("shop.t").new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
    assert sorted(row["id"] for row in rows) == wanted


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"content": "position-deletes"}, "list data files", "compact the deletes"),
    ({"path": "a"}, "from its extension", "rename it to end in .parquet"),
    ({"path": "d.avro"}, "from its extension", "rename it to end in .parquet"),
    ({"path": "d.PARQUET"}, "from its extension", "rename it to end in .parquet"),
    ({"path": "d.csv", "format": "csv"}, "parquet, orc, avro", "write it again"),
    ({"path": "a\nb.parquet"}, "no control characters", "rename it"),
]


@pytest.mark.parametrize(("facts", "rule", "way"), REFUSED, ids=[each[1] for each in REFUSED])
def test_a_refusal_names_the_format_its_rule_and_the_ways_out(
    facts: dict[str, Any], rule: str, way: str
) -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    options = {"ledger.formats": "paimon"}
    table = lake.create_table("shop.t", Schema.of({"id": "INT"}, options=options))
    with pytest.raises(FormatError) as caught:
        table.append([a_file(**({"path": "a.parquet"} | facts))])
    error = caught.value
    assert (error.format, rule in error.rule, way in error.alternative) == ("paimon", True, True)
    assert "set ledger.formats=iceberg" in error.message
    assert "\n" not in error.message
    assert table.state.version == 0


@pytest.mark.parametrize("facts", [{"content": "position-deletes"}, {"path": "a"}])
def test_declaring_paimon_asks_for_the_files_that_are_there(facts: dict[str, Any]) -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    options = {"ledger.formats": "iceberg"}
    table = lake.create_table("shop.t", Schema.of({"id": "INT"}, options=options))
    table.append([a_file("first.parquet")])
    table.append([a_file(**({"path": "b.parquet"} | facts))])
    with pytest.raises(FormatError) as caught:
        table.alter([SetOption("ledger.formats", "paimon,iceberg")])
    assert caught.value.format == "paimon"


def test_a_spec_without_the_partition_keys_takes_no_more_files() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    options = {"ledger.formats": "iceberg"}
    schema = Schema.of({"id": "INT", "day": "DATE"}, partition_keys=["day"], options=options)
    table = lake.create_table("shop.t", schema)
    table.update_spec().remove_field("day").commit()
    table.update_spec().add_field("day", "identity").commit()
    table.alter([SetOption("ledger.formats", "paimon")])
    bare = next(each.spec_id for each in table.state.specs if not each.fields)
    with pytest.raises(FormatError, match=r"no identity\(day\), a partition key"):
        table.append([a_file("a.parquet", spec_id=bare)])
    keyed = table.state.spec.spec_id
    table.append([a_file("a.parquet", spec_id=keyed, partition=("2013-01-01",))])
    PAIMON.project(handle_of(table))


def test_files_of_a_primary_key_come_with_their_engines_lists() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    options = {"ledger.formats": "paimon", "bucket": "2"}
    schema = Schema.of({"id": "BIGINT NOT NULL"}, primary_keys=["id"], options=options)
    table = lake.create_table("shop.t", schema)
    with pytest.raises(FormatError, match="only the engine knows the keys"):
        table.append([a_file("a.parquet")])
    lists = {"base_manifest_list": "manifest-list-1", "delta_manifest_list": "manifest-list-2"}
    plan = SnapshotPlan("APPEND", (a_file("a.parquet"),), commit_user="flink", facts=lists)
    table.commit_snapshot(plan)
    PAIMON.project(handle_of(table))
    assert verify(handle_of(table)).is_empty


def test_what_goes_is_no_problem() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    table = lake.create_table("shop.t", Schema.of({"id": "INT"}))
    state = head_state(handle_of(table).log)
    gone = a_file("a", kind="DELETE")
    assert list(FileRules(state.schema, state.specs).problems([gone])) == []


@pytest.mark.parametrize("other", ["V\u00c9", "ve\u0301", "VE\u0301"])
def test_two_tags_that_some_stores_take_for_one_file_are_rejected(other: str) -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    options = {"ledger.formats": "iceberg"}
    table = lake.create_table("shop.t", Schema.of({"id": "INT"}, options=options))
    table.append([a_file("a.parquet")])
    table.create_tag("v\u00e9")
    table.create_tag(other)
    with pytest.raises(FormatError, match="treat it as that of tag"):
        table.alter([SetOption("ledger.formats", "paimon")])
    table.delete_tag(other)
    table.alter([SetOption("ledger.formats", "paimon")])
    with pytest.raises(FormatError, match="treat it as that of tag v\u00e9"):
        table.create_tag(other)
    table.create_tag("w")
    table.replace_tag("v\u00e9")
    table.delete_tag("v\u00e9")
    table.create_tag(other)
