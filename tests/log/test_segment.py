"""The bytes of a segment: nothing is lost, and nothing but a segment is taken for one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from ledger.log import digest, is_same_segment, read_segment, write_segment
from ledger.log.segments import MOST_BYTES, segment_of, split_at_segments
from tests.log.long_logs import ROOT, long_log
from tests.thorough import examples


def lines_of(first: int, last: int) -> list[bytes]:
    log = long_log(1_700)
    return [log[f"{ROOT}/log/{version:020d}.json"] for version in range(first, last + 1)]


def commit(version: int, text: str) -> bytes:
    start = f'{{"format":3,"version":{version},"timeMillis":{version},"transactions":[{{"id":"'
    return f'{start}{version}","message":"{text}","requestDigest":""}}]}}\n'.encode()


@given(st.integers(0, 10**7))
def test_every_version_lies_in_one_segment_that_ends_at_a_checkpoint(version: int) -> None:
    first, last = segment_of(version)

    assert first <= version <= last
    assert last % 800 == 0
    assert segment_of(first) == segment_of(last) == (first, last)
    assert segment_of(last + 1)[0] == last + 1


@given(st.integers(0, 5_000), st.integers(-1, 9_000))
def test_stretches_cover_every_version_once_and_lie_in_one_segment(first: int, last: int) -> None:
    found = list(split_at_segments(first, last))

    covered = [each for low, high in found for each in range(low, high + 1)]
    assert covered == list(range(first, last + 1))
    assert all(segment_of(low) == segment_of(high) for low, high in found)


@pytest.mark.parametrize(("first", "last"), [(0, 800), (801, 1_600)])
def test_a_segment_gives_back_every_byte(first: int, last: int) -> None:
    lines = lines_of(first, last)
    body = write_segment(lines)

    assert read_segment(body, first, last) == lines
    assert body == write_segment(lines)
    # The other columns cost less than the lines do.
    assert len(body) < sum(map(len, lines)) / 2


def test_the_columns_say_what_the_commits_say() -> None:
    table = parquet.read_table(pa.BufferReader(write_segment(lines_of(0, 800))))

    assert table.column("version").to_pylist() == list(range(801))
    (created,) = table.column("transactions")[0].as_py()
    assert (created["author"], created["events"][0]["type"]) == ("tester", "createTable")
    assert '"type":"createTable"' in created["events"][0]["event"]
    times = table.column("time").to_pylist()
    assert times == sorted(times)
    assert str(times[0].tzinfo) == "UTC"
    lines = table.column("line").to_pylist()
    assert all(f'"parent":"{digest(a.encode())}"' in b for a, b in pairwise(lines))


def test_imported_history_shows_when_it_took_effect() -> None:
    line = commit(0, "x").replace(b'"message"', b'"effectiveTimeMillis":-5,"message"')
    (row,) = parquet.read_table(pa.BufferReader(write_segment([line]))).to_pylist()

    assert row["transactions"][0]["effective_time"].timestamp() == -0.005


SAID: list[list[dict[str, Any]]] = [
    [{"id": "a", "author": "ann", "message": "why", "properties": {"k": "v", "n": "1"}}],
    [{"id": "b"}, {"id": "c", "properties": {"job": "nightly"}}, {"id": "d", "author": "bob"}],
    [{"id": "e", "events": [{"type": "setOption", "key": "k"}, {"type": "dropPrimaryKey"}]}],
    [],
]


def test_whatever_a_transaction_says_stands_in_its_own_row() -> None:
    commits = [
        {"format": 3, "version": version, "timeMillis": version, "transactions": each}
        for version, each in enumerate(SAID)
    ]
    body = write_segment([msgspec.json.encode(each) + b"\n" for each in commits])

    found = parquet.read_table(pa.BufferReader(body)).column("transactions").to_pylist()

    nothing = {"author": "", "message": "", "properties": {}, "events": []}
    assert [
        [
            {
                "id": each["id"],
                "author": each["author"],
                "message": each["message"],
                "properties": dict(each["properties"]),
                "events": [msgspec.json.decode(event["event"]) for event in each["events"]],
            }
            for each in row
        ]
        for row in found
    ] == [[{**nothing, **each} for each in row] for row in SAID]


def test_a_segment_may_be_as_long_as_it_is_said_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = lines_of(0, 800)
    body = write_segment(lines)

    monkeypatch.setattr("ledger.log.segments.MOST_BYTES", sum(map(len, lines)))
    assert read_segment(body, 0, 800) == lines
    monkeypatch.setattr("ledger.log.segments.MOST_BYTES", sum(map(len, lines)) * 9 // 10)
    with pytest.raises(ValueError, match="too long"):
        read_segment(body, 0, 800)


@pytest.mark.parametrize(
    "line",
    [
        b"{}\n",
        b"\xff\n",
        b"[" * 5_000,
        commit(0, "x").replace(b'"timeMillis":0', b'"timeMillis":99999999999999999999'),
    ],
    ids=["no commit", "no text", "nested without an end", "no time"],
)
def test_what_cannot_stand_in_parquet_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be written to a segment"):
        write_segment([line])


@settings(deadline=None, max_examples=examples(50))
@given(st.data())
def test_whatever_bytes_come_they_are_a_segment_or_refused(data: st.DataObject) -> None:
    lines = lines_of(0, 20)
    body = bytearray(write_segment(lines))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    body = body[: data.draw(st.sampled_from([len(body), len(body) // 2]))]
    try:
        found = read_segment(bytes(body), 0, 20)
    except ValueError:
        return
    assert len(found) == 21


def test_a_segment_of_other_commits_or_another_format_is_refused() -> None:
    body = write_segment(lines_of(0, 20))
    with pytest.raises(ValueError, match="21 commits and not 20"):
        read_segment(body, 0, 19)
    table = parquet.read_table(pa.BufferReader(body))
    for metadata in ({}, {b"lakeledger.segment": b"2"}):
        sink = pa.BufferOutputStream()
        parquet.write_table(table.replace_schema_metadata(metadata), sink, use_dictionary=False)
        with pytest.raises(ValueError, match="in a known format"):
            read_segment(sink.getvalue().to_pybytes(), 0, 20)
    with pytest.raises(ValueError, match="no Parquet"):
        read_segment(b"PAR1", 0, 20)


def test_lines_that_a_dictionary_unpacks_are_refused_before_they_are_read() -> None:
    body = write_segment([commit(0, "a" * 100)] * 100)
    table = parquet.read_table(pa.BufferReader(body))
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    with pytest.raises(ValueError, match="no plainly encoded column"):
        read_segment(sink.getvalue().to_pybytes(), 0, 99)


def test_too_long_lines_are_refused_before_they_are_read() -> None:
    body = write_segment([commit(number, "a" * 1_000_000) for number in range(60)])
    assert len(body) < MOST_BYTES / 10
    with pytest.raises(ValueError, match="expands to more than"):
        read_segment(body, 0, 59)


def test_two_segments_are_the_same_by_what_they_say() -> None:
    mine = write_segment(lines_of(0, 50))
    table = parquet.read_table(pa.BufferReader(mine))

    def written(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        parquet.write_table(
            table, sink, compression="gzip", use_dictionary=["time"], data_page_size=1_000
        )
        return bytes(sink.getvalue())

    assert is_same_segment(mine, written(table))
    place = table.schema.get_field_index("version")
    versions = table.column("version").to_pylist()
    versions[7] = 8
    other = table.set_column(place, table.schema.field(place), pa.array(versions))
    assert not is_same_segment(mine, written(other))
    assert not is_same_segment(mine, written(table.slice(1)))
    assert not is_same_segment(mine, b"other")
