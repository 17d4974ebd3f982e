"""A mirror that is looked at again and again takes what is new as one that was just opened does."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger import LedgerError
from ledger.model import field_from_wire
from ledger.model.types import BYTES, BinaryType, DataType
from projections.iceberg import importing as sources
from projections.iceberg import read_after, read_metadata
from projections.iceberg.imported_metadata import ledger_schema
from projections.importing.trial import SourceFiles
from tests.lakes import lake_on, memory
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.importing.what_came import now, transactions_of

Metadata = dict[str, Any]
BEGIN_MILLIS = 1_700_000_000_000


def metadata(snapshots: int) -> Metadata:
    made: Metadata = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://lake/t",
        "last-sequence-number": 0,
        "last-updated-ms": BEGIN_MILLIS,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [schema(0)],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "refs": {},
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
    }
    for _ in range(snapshots):
        append(made)
    return made


def schema(number: int) -> Metadata:
    fields = [
        {"id": each + 1, "name": f"c{each}", "required": False, "type": "long"}
        for each in range(number + 1)
    ]
    return {"type": "struct", "schema-id": number, "fields": fields}


def append(made: Metadata) -> None:
    number = made["last-sequence-number"] + 1
    moment = BEGIN_MILLIS + 1000 * number
    made["snapshots"].append(
        {
            "snapshot-id": 100 + number,
            "sequence-number": number,
            "timestamp-ms": moment,
            "summary": {"operation": "append", "total-records": str(number)},
            "manifest-list": f"s3://lake/t/metadata/snap-{number}.avro",
            "schema-id": made["current-schema-id"],
        }
    )
    made["snapshot-log"].append({"timestamp-ms": moment, "snapshot-id": 100 + number})
    made |= {
        "last-sequence-number": number,
        "last-updated-ms": moment,
        "current-snapshot-id": 100 + number,
    }
    made["refs"]["main"] = {"snapshot-id": 100 + number, "type": "branch"}


def expire(made: Metadata) -> None:
    there = {*sorted(each["snapshot-id"] for each in made["snapshots"])[2:]}
    made["snapshots"] = [e for e in made["snapshots"] if e["snapshot-id"] in there]
    made["snapshot-log"] = [e for e in made["snapshot-log"] if e["snapshot-id"] in there]
    made["refs"] = {k: e for k, e in made["refs"].items() if e["snapshot-id"] in there}


def rewrite(made: Metadata) -> None:
    made["snapshots"][0]["manifest-list"] += ".moved"


def tag(made: Metadata) -> None:
    chosen = made["snapshots"][len(made["snapshots"]) // 2]["snapshot-id"]
    made["refs"]["v"] = {"snapshot-id": chosen, "type": "tag"}


def evolve(made: Metadata) -> None:
    number = len(made["schemas"])
    made["schemas"].append(schema(number))
    made |= {"current-schema-id": number, "last-column-id": number + 1}
    append(made)


def say_more(made: Metadata) -> None:
    made["properties"]["team"] = str(made["last-sequence-number"])
    made["refs"]["main"]["colour"] = "red"
    append(made)
    made["snapshots"][-1]["weight"] = 7
    made["snapshot-log"][-1]["height"] = 7


def reverse(made: Metadata) -> None:
    made["snapshots"].reverse()


STEPS: tuple[Callable[[Metadata], None], ...] = (
    append,
    evolve,
    expire,
    rewrite,
    tag,
    say_more,
    reverse,
)


def lives(folder: Path, seed: int) -> Iterator[str]:
    """Files of one table, each a few steps after the one before; all apart from the table."""
    rng = random.Random(seed)
    made = metadata(5)
    for number in range(12):
        for _ in range(rng.randrange(1, 3)):
            rng.choice(STEPS if len(made["snapshots"]) > 4 else STEPS[:2])(made)
        made["last-updated-ms"] += 1
        place = folder / f"{number:05d}-{seed}.metadata.json"
        place.write_text(json.dumps(made, indent=rng.choice([None, 1])))
        yield str(place)


@pytest.mark.parametrize("seed", range(8))
def test_a_ledger_that_stays_open_takes_what_one_takes_that_is_opened_anew(
    tmp_path: Path, seed: int
) -> None:
    store, other = memory(), memory()
    stays = lake_on(store, clock=now)
    for source in lives(tmp_path, seed):
        mine = stays.import_table("a.b", source)
        theirs = lake_on(other, clock=now).import_table("a.b", source)
        assert (mine.transactions, mine.snapshots, mine.refs) == (
            theirs.transactions,
            theirs.snapshots,
            theirs.refs,
        )
        assert set(mine.not_carried) == set(theirs.not_carried)
    assert transactions_of(stays) == transactions_of(lake_on(other, clock=now))


def test_what_stood_in_an_earlier_file_is_not_read_again() -> None:
    made = metadata(50)
    before = read_after(json.dumps(made), None)
    append(made)

    after = read_after(json.dumps(made), before)

    assert after.metadata == read_metadata(json.dumps(made))
    assert after.metadata.snapshots_by_id == {e.snapshot_id: e for e in after.metadata.snapshots}
    assert [len(json.loads(bytes(after.new[each]))) for each in ("snapshots", "snapshot-log")] == [
        1,
        1,
    ]
    assert json.loads(bytes(after.new["schemas"])) == []


def twice(made: Metadata) -> None:
    made["snapshots"].append(made["snapshots"][0])


def late(made: Metadata) -> None:
    append(made)
    made["last-sequence-number"] -= 1


def lower(made: Metadata) -> None:
    made["last-sequence-number"] = 3


def back(made: Metadata) -> None:
    append(made)
    made["snapshot-log"][-1]["timestamp-ms"] -= 100_000


def newer(made: Metadata) -> None:
    made["format-version"] = 4


@pytest.mark.parametrize("spoil", [twice, late, lower, back, newer])
def test_a_bad_file_raises_the_same_error_with_and_without_a_previous_file(
    spoil: Callable[[Metadata], None],
) -> None:
    made = metadata(9)
    before = read_after(json.dumps(made), None)
    spoil(made)
    with pytest.raises(LedgerError) as alone:
        read_metadata(json.dumps(made))

    with pytest.raises(LedgerError) as after:
        read_after(json.dumps(made), before)

    assert (type(after.value), str(after.value)) == (type(alone.value), str(alone.value))


@pytest.mark.parametrize("stays", ["opened anew", "open"])
def test_a_look_reads_the_new_manifests_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stays: str
) -> None:
    read: list[str] = []

    class Counting(SourceFiles):
        def read(self, url: str) -> bytes:
            read.append(url.rpartition("/")[2])
            return super().read(url)

    monkeypatch.setattr(sources, "SourceFiles", Counting)
    theirs = created(tmp_path / "t")
    for each in range(4):
        appended(theirs, each, name=["x"])
    store = memory()
    lake = lake_on(store, clock=now)
    lake.import_table("a.b", theirs.metadata_location)
    for each in range(4, 7):
        appended(theirs, each, name=["x"])
        read.clear()
        lake = lake if stays == "open" else lake_on(store, clock=now)

        lake.import_table("a.b", theirs.metadata_location)

        newest = theirs.metadata_location.rpartition("/")[2]
        lists = [each for each in read if each.startswith("snap-")]
        manifests = {each for each in read if each.endswith("-m0.avro")}
        assert (read.count(newest), len(set(lists)), len(manifests)) == (1, 1, 1)
        assert set(read) == {newest, *lists, *manifests}


@pytest.mark.parametrize(("length", "held"), [(0, BYTES), (16, BinaryType(16))])
def test_a_type_of_no_bytes_is_held_as_one_of_any_number(length: int, held: DataType) -> None:
    said = metadata(0)
    said["schemas"][0]["fields"][0]["type"] = f"fixed[{length}]"
    found = read_metadata(json.dumps(said).encode())

    (column,) = map(field_from_wire, ledger_schema(found.schema, 2).fields)

    assert column.type == held
