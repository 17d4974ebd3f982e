from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidInputError, InvalidNameError
from ledger.model import Snapshot
from projections.paimon import bucket_path, tag_file, tag_from_json, tag_path
from projections.paimon.snapshot_file import TagFile

ROOT = Path(__file__).parents[2] / "data/paimon"
TAGS = [*ROOT.glob("*_wh/**/tag/tag-*"), *(ROOT / "extracted").glob("tag_*")]
SNAPSHOT = Snapshot(
    id=1,
    schema_id=0,
    commit_kind="APPEND",
    commit_user="u",
    commit_identifier=1,
    time_millis=1000,
    total_record_count=1,
    delta_record_count=1,
)


def rewritten(tag: TagFile) -> bytes:
    return tag_file(
        tag.snapshot,
        create_time_millis=tag.create_time_millis,
        time_retained_millis=tag.time_retained_millis,
    )


@pytest.mark.parametrize("path", TAGS, ids=str)
def test_every_tag_reads_and_is_written_again_alike(path: Path) -> None:
    tag = tag_from_json(path.read_bytes())

    assert tag_from_json(rewritten(tag)) == tag
    assert tag_from_json(json.loads(path.read_bytes())) == tag


def test_a_tag_of_java_is_written_again_byte_for_byte() -> None:
    for path in ROOT.glob("java_wh/**/tag/tag-t-1"):
        assert rewritten(tag_from_json(path.read_bytes())) == path.read_bytes()


def test_a_retention_of_java_is_written_again_to_the_millisecond() -> None:
    [path] = ROOT.glob("java_wh/**/tag/tag-ttl")
    text = path.read_text(encoding="utf-8")

    tag = tag_from_json(text)

    assert tag.create_time_millis == 1795190200953
    assert tag.time_retained_millis == 86_400_000
    assert rewritten(tag).decode() == text.replace("953894404", "953000000")


@pytest.mark.parametrize(
    ("millis", "parts"),
    [
        (0, [1970, 1, 1, 0, 0]),
        (5_000, [1970, 1, 1, 0, 0, 5]),
        (60_001, [1970, 1, 1, 0, 1, 0, 1_000_000]),
        (-1, [1969, 12, 31, 23, 59, 59, 999_000_000]),
    ],
)
def test_zeros_at_the_end_of_the_time_are_left_out(millis: int, parts: list[int]) -> None:
    body = tag_file(SNAPSHOT, create_time_millis=millis, time_retained_millis=1)

    assert json.loads(body)["tagCreateTime"] == parts
    assert b'"tagTimeRetained" : 0.001000000\n}' in body


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999), st.integers(0, 2**53))
def test_every_time_reads_as_it_was_written(created: int, retained: int) -> None:
    tag = TagFile(SNAPSHOT, created, retained)

    assert tag_from_json(rewritten(tag)) == tag


def test_without_a_retention_a_tag_is_its_snapshot() -> None:
    body = tag_file(SNAPSHOT, create_time_millis=5, time_retained_millis=None)

    assert tag_from_json(body) == TagFile(SNAPSHOT)


@pytest.mark.parametrize(
    ("created", "retained"), [(None, 1), (1, -1), (2**60, 1), (2**80, 1)], ids=str
)
def test_times_that_no_tag_has_are_rejected(created: int | None, retained: int) -> None:
    with pytest.raises(InvalidInputError):
        tag_file(SNAPSHOT, create_time_millis=created, time_retained_millis=retained)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tagCreateTime", [2024, 1, 1]),
        ("tagCreateTime", [2024, 13, 1, 0, 0]),
        ("tagCreateTime", [10**30, 1, 1, 0, 0]),
        ("tagCreateTime", [2024, 1, 1, 0, 0, 0, 10**9]),
        ("tagCreateTime", [2024, 1, 1, 0, 0, 0, 0, 0]),
        ("tagCreateTime", "soon"),
        ("tagTimeRetained", -1.0),
        ("tagTimeRetained", 1e300),
        ("tagTimeRetained", "PT24H"),
    ],
    ids=str,
)
def test_odd_times_are_rejected_by_their_place(key: str, value: Any) -> None:
    content = {"id": 1, "commitKind": "APPEND", key: value}

    with pytest.raises(InvalidInputError, match=rf"\$\.{key}"):
        tag_from_json(json.dumps(content))


def test_a_retention_with_a_great_exponent_is_rejected_at_once() -> None:
    with pytest.raises(InvalidInputError, match="tagTimeRetained"):
        tag_from_json('{"id": 1, "commitKind": "APPEND", "tagTimeRetained": 1e999999}')


@pytest.mark.parametrize("name", ["", " ", "../x", "a/b", "a\\b", "a\nb", "\x7f"])
def test_a_tag_name_that_leaves_its_folder_is_rejected(name: str) -> None:
    with pytest.raises(InvalidNameError, match="tag name"):
        tag_path(name)


def test_buckets_lie_where_java_puts_them() -> None:
    folders = {
        bucket_path({"dt": "19723", "hh": "5"}, 0),
        bucket_path({"dt": "__DEFAULT_PARTITION__", "hh": "7"}, 0),
    }

    assert folders == {"dt=19723/hh=5/bucket-0", "dt=__DEFAULT_PARTITION__/hh=7/bucket-0"}
