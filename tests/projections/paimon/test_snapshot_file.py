from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidInputError
from ledger.model import Snapshot
from projections.paimon import (
    consumer_from_json,
    schema_file,
    schema_from_json,
    snapshot_from_json,
    statistics_from_json,
)
from projections.paimon.snapshot_file import (
    NO_WATERMARK,
    consumer_file,
    snapshot_file,
    snapshot_to_json,
)
from projections.paimon.statistics_file import statistics_file

ROOT = Path(__file__).parents[2] / "data/paimon"
JAVA = sorted((ROOT / "java_wh").glob("**/snapshot/snapshot-*"))
PYTHON = sorted((ROOT / "pypaimon_wh").glob("**/snapshot/snapshot-*"))
ODD = sorted((ROOT / "extracted").glob("snapshot_*"))
SCHEMAS = sorted(ROOT.glob("*_wh/**/schema/schema-*"))
CONSUMERS = [*ROOT.glob("java_wh/**/consumer-*"), *(ROOT / "extracted").glob("consumer_*")]

MINIMAL: dict[str, Any] = {"id": 1, "commitKind": "APPEND"}
LONG = st.integers(-(2**63) + 1, 2**63 - 1)
TEXT = st.none() | st.text()
SNAPSHOTS = st.builds(
    Snapshot,
    id=st.integers(0, 2**63 - 1),
    schema_id=LONG,
    commit_kind=st.sampled_from(["APPEND", "COMPACT", "OVERWRITE", "ANALYZE"]),
    commit_user=st.text(),
    commit_identifier=LONG,
    time_millis=LONG,
    total_record_count=LONG,
    delta_record_count=LONG,
    version=st.integers(0, 9),
    base_manifest_list=TEXT,
    base_manifest_list_size=st.none() | LONG,
    delta_manifest_list=TEXT,
    delta_manifest_list_size=st.none() | LONG,
    changelog_manifest_list=TEXT,
    changelog_manifest_list_size=st.none() | LONG,
    index_manifest=TEXT,
    log_offsets=st.none() | st.dictionaries(LONG, LONG, min_size=1),
    changelog_record_count=st.none() | LONG,
    watermark=st.none() | LONG,
    statistics=TEXT,
    uuid=TEXT,
    properties=st.none() | st.dictionaries(st.text(), st.text(), min_size=1),
    next_row_id=st.none() | LONG,
    writer_version=TEXT,
    operation=TEXT,
)


@pytest.mark.parametrize("path", JAVA, ids=str)
def test_what_java_wrote_is_written_again_byte_for_byte(path: Path) -> None:
    assert snapshot_file(snapshot_from_json(path.read_bytes())) == path.read_bytes()


@pytest.mark.parametrize("path", [*JAVA, *PYTHON, *ODD], ids=lambda each: each.name)
def test_every_snapshot_reads_and_what_is_written_again_says_the_same(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))

    snapshot = snapshot_from_json(content)

    assert snapshot == snapshot_from_json(path.read_bytes())
    assert snapshot_from_json(snapshot_file(snapshot)) == snapshot
    again = snapshot_to_json(snapshot)
    dropped = {key for key in content if again.get(key) != content[key]}
    numbers = {key for key in dropped if content[key] is None and again.get(key) == 0}
    meaningless = {"logOffsets", "unknownKey", "watermark"}
    if content["commitUser"] is None:
        meaningless.add("commitUser")
    assert dropped - numbers <= meaningless


def test_missing_numbers_read_as_zero() -> None:
    snapshot = snapshot_from_json({**MINIMAL, "totalRecordCount": None})

    assert (snapshot.version, snapshot.schema_id, snapshot.total_record_count) == (0, 0, 0)
    assert (snapshot.base_manifest_list, snapshot.commit_user) == (None, "")


def test_the_watermark_of_old_writers_reads_as_none() -> None:
    assert snapshot_from_json({**MINIMAL, "watermark": NO_WATERMARK}).watermark is None


def test_manifest_lists_are_printed_when_there_are_none() -> None:
    text = snapshot_file(snapshot_from_json(MINIMAL)).decode()

    assert '"baseManifestList" : null' in text
    assert '"deltaManifestList" : null' in text
    assert "changelogManifestList" not in text


@given(SNAPSHOTS)
def test_every_snapshot_reads_as_it_was_written(snapshot: Snapshot) -> None:
    assert snapshot_from_json(snapshot_file(snapshot)) == snapshot


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"commitKind": "APPEND"}, "`id`"),
        ({"id": 1}, "`commitKind`"),
        ({**MINIMAL, "id": "1"}, r"\$\.id"),
        ({**MINIMAL, "commitKind": "MERGE"}, r"\$\.commitKind"),
        ({**MINIMAL, "properties": {"a": 1}}, r"\$\.properties"),
        (b"", "not a Paimon snapshot file"),
        (b'{"id": 1', "not a Paimon snapshot file"),
        (b'{"id": 1, "commitKind": "\xff"}', "not a Paimon snapshot file"),
        ('{"uuid": "\ud800"}', "not a Paimon snapshot file"),
        ("[" * 100_000, "not a Paimon snapshot file"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_what_is_no_snapshot_is_rejected_by_its_place(content: Any, place: str) -> None:
    with pytest.raises(InvalidInputError, match=place):
        snapshot_from_json(content)


def test_a_snapshot_cut_anywhere_is_rejected() -> None:
    body = JAVA[0].read_bytes()

    for end in range(len(body)):
        with pytest.raises(InvalidInputError, match="not a Paimon snapshot file"):
            snapshot_from_json(body[:end])


@pytest.mark.parametrize("path", SCHEMAS, ids=str)
def test_every_schema_of_the_warehouses_reads_and_writes_the_same(path: Path) -> None:
    schema = schema_from_json(path.read_bytes())

    assert schema_from_json(schema_file(schema)) == schema


def test_statistics_of_java_are_written_again_byte_for_byte() -> None:
    [path] = ROOT.glob("java_wh/**/statistics/*")

    statistics = statistics_from_json(path.read_bytes())

    assert statistics_file(statistics) == path.read_bytes()
    assert (statistics.snapshot_id, statistics.columns["id"].distinct_count) == (4, 4)


def test_what_was_not_measured_is_left_out_of_statistics() -> None:
    content = {"snapshotId": 1, "schemaId": 0, "colStats": {"a": {"colId": 3}}}

    text = statistics_file(statistics_from_json(content)).decode()

    assert json.loads(text) == content
    with pytest.raises(InvalidInputError, match="statistics file"):
        statistics_from_json({"snapshotId": 1})


def test_consumers_read_and_are_written_as_java_writes_them() -> None:
    found = {path.name: consumer_from_json(path.read_bytes()) for path in CONSUMERS}
    [java] = ROOT.glob("java_wh/**/consumer-c1")

    assert found == {"consumer-c1": 3} | {f"consumer_{n}.json": 42 for n in (1, 2, 3)}
    assert consumer_file(3) == java.read_bytes()
