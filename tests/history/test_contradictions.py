"""A log that hashes rightly and says what cannot be: each is found, by its version and its rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import DamagedLogError, SetOption
from ledger.events import TableEvent
from ledger.log import Codec, digest, encode
from tests.history.ledgers import Place
from tests.lakes import START_MILLIS, data_file, orders, ticking

Events = list[dict[str, Any]]


def forge(place: Place, events: Events, **transaction: Any) -> int:
    """Write a commit behind the newest one, with the right chain; return its version."""
    newest = max((place.stream / "log").glob("*.json"))
    body = newest.read_bytes()
    before = json.loads(body)
    version: int = before["version"] + 1
    commit = {
        "format": before["format"],
        "version": version,
        "timeMillis": before["timeMillis"] + 1,
        "parent": digest(body),
        "transactions": [
            {"id": f"forged-{version}", "requestDigest": 64 * "0", **transaction, "events": events}
        ],
    }
    decoded = Codec[Any](TableEvent).decode(json.dumps(commit).encode(), "forged")
    place.commit(version).write_bytes(encode(decoded))
    return version


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Three snapshots, the first of them expired; the newest commit is the third."""
    place = Place(tmp_path)
    table = orders(place.lake(ticking(START_MILLIS)))
    table.append([data_file("a.parquet")], commit_id="K")
    table.append([data_file("b.parquet")])
    table.expire_snapshots(before=2)
    table.append([data_file("c.parquet")])
    return place


def snapshot(place: Place, **facts: Any) -> dict[str, Any]:
    """Return the newest snapshot's event as the next one's, with other facts."""
    newest = max((place.stream / "log").glob("*.json"))
    event = json.loads(newest.read_bytes())["transactions"][0]["events"][0]
    event["snapshotId"] += 1
    event["totalRecordCount"] += event["deltaRecordCount"]
    event["files"] = [{**event["files"][0], "path": "d.parquet"}]
    return {**event, **facts}


def listed(place: Place, **file: Any) -> dict[str, Any]:
    """Return the next snapshot with other facts of its file."""
    event = snapshot(place)
    return {**event, "files": [{**event["files"][0], **file}]}


def rollback(place: Place, target: int, **facts: Any) -> dict[str, Any]:
    event = snapshot(place)
    del event["commitKind"]
    less = {"deltaRecordCount": 0, "deltaFileCount": 0, "deltaFileSizeInBytes": 0}
    total = event["totalRecordCount"] - event["deltaRecordCount"]
    for each in ("files", "lastFileCreationTime", "nameMappingSchemaIds"):
        event.pop(each, None)
    return {
        **event,
        **less,
        "totalRecordCount": total,
        "type": "rollback",
        "targetSnapshotId": target,
        **facts,
    }


def puffin(snapshot_id: int, path: str) -> dict[str, Any]:
    sizes = {"file-size-in-bytes": 9, "file-footer-size-in-bytes": 3, "blob-metadata": []}
    return {"snapshot-id": snapshot_id, "statistics-path": path, **sizes}


def total(place: Place, change: int) -> int:
    found: int = snapshot(place)["totalRecordCount"]
    return found + change


def option(key: str = "k") -> dict[str, Any]:
    return {"type": "setOption", "key": key, "value": "v"}


def column(field_id: int, data_type: Any = "INT") -> dict[str, Any]:
    return {"type": "addColumn", "fieldNames": ["z"], "dataType": data_type, "fieldId": field_id}


def test_what_is_forged_soundly_is_not_found(place: Place) -> None:
    forge(place, [snapshot(place)])
    forge(place, [option()])
    forge(place, [column(3)])

    assert place.look().findings == []


CONTRADICTIONS: dict[str, tuple[Callable[[Place], Events], str]] = {
    "adds a live file": (lambda place: [listed(place, path="b.parquet")], "live since version 2"),
    "adds a live file by another name": (
        lambda place: [listed(place, path=f"file://{place.stream.parent}/b.parquet")],
        "live since version 2",
    ),
    "removes an absent one": (
        lambda place: [
            snapshot(
                place,
                files=[{**snapshot(place)["files"][0], "kind": "DELETE", "path": "x.parquet"}],
                deltaRecordCount=-snapshot(place)["deltaRecordCount"],
                totalRecordCount=total(place, -2 * snapshot(place)["deltaRecordCount"]),
                deltaFileCount=-1,
                deltaFileSizeInBytes=-snapshot(place)["deltaFileSizeInBytes"],
                nameMappingSchemaIds=[],
            )
        ],
        "which is not live",
    ),
    "a wrong sum of records": (
        lambda place: [
            snapshot(
                place,
                deltaRecordCount=snapshot(place)["deltaRecordCount"] + 1,
                totalRecordCount=total(place, 1),
            )
        ],
        "has deltaRecordCount",
    ),
    "a wrong count of files": (lambda place: [snapshot(place, deltaFileCount=7)], "deltaFileCount"),
    "a wrong size of files": (
        lambda place: [snapshot(place, deltaFileSizeInBytes=7)],
        "deltaFileSizeInBytes",
    ),
    "a wrong time of files": (
        lambda place: [snapshot(place, lastFileCreationTime=7)],
        "lastFileCreationTime",
    ),
    "a rollback to nothing": (lambda place: [rollback(place, 77)], "snapshot 77"),
    "a rollback to itself": (lambda place: [rollback(place, 4)], "snapshot 4"),
    "a rollback to what expired": (lambda place: [rollback(place, 1)], "expired"),
    "a rollback to no tag": (
        lambda place: [rollback(place, 2, targetTagName="gone")],
        "does not name snapshot 2",
    ),
    "a path that leads out": (
        lambda place: [listed(place, path="../../x")],
        "outside of its folder",
    ),
    "a path that leads out of a URL": (
        lambda place: [listed(place, path="s3://b/../x")],
        "outside of its folder",
    ),
    "a bucket of more than 32 bits": (
        lambda place: [listed(place, bucket=2**31)],
        "bucket",
    ),
    "a bucket of more than 32 bits below 0": (
        lambda place: [listed(place, bucket=-(2**31) - 1)],
        "bucket",
    ),
    "an empty path": (lambda place: [listed(place, path="")], "outside of its folder"),
    "statistics that lead out": (
        lambda _: [
            {
                "type": "setPartitionStatistics",
                "partitionStatistics": {
                    "snapshot-id": 2,
                    "statistics-path": "../../../x",
                    "file-size-in-bytes": 1,
                },
            }
        ],
        "outside of its folder",
    ),
    "a Puffin file that leads out": (
        lambda _: [{"type": "setStatistics", "statistics": puffin(2, "../../../x")}],
        "outside of its folder",
    ),
    "too many partition values": (
        lambda place: [listed(place, partition=["2024-01-01", 1])],
        "partition values",
    ),
    "no such spec": (lambda place: [listed(place, specId=9)], "spec 9"),
    "a schema that is none yet": (lambda place: [listed(place, schemaId=9)], "schema 9"),
    "a negative count": (
        lambda place: [
            listed(place, recordCount=-1)
            | {"deltaRecordCount": -1}
            | {"totalRecordCount": total(place, -1 - snapshot(place)["deltaRecordCount"])}
        ],
        "recordCount is -1",
    ),
    "a field id of more than 32 bits": (lambda _: [column(2**31)], "fieldId is 2147483648"),
    "a field id of more than 64 bits": (lambda _: [column(2**70)], "out of 0 to 2147483647"),
    "a field id inside a type": (
        lambda _: [
            column(3, {"type": "ROW", "fields": [{"id": 2**40, "name": "a", "type": "INT"}]})
        ],
        "id is 1099511627776",
    ),
    "a time retained of less than nothing": (
        lambda _: [
            {"type": "createTag", "tagName": "t", "snapshotId": 2, "timeRetainedMillis": -5}
        ],
        "timeRetainedMillis is -5",
    ),
    "a manifest list of less than nothing": (
        lambda place: [snapshot(place, baseManifestListSize=-5)],
        "baseManifestListSize is -5",
    ),
    "fewer rows changed than none": (
        lambda place: [snapshot(place, changelogRecordCount=-7)],
        "changelogRecordCount is -7",
    ),
    "a row id below the first": (
        lambda place: [snapshot(place, nextRowId=-3)],
        "nextRowId is -3",
    ),
    "a footer of less than nothing": (
        lambda _: [
            {
                "type": "setStatistics",
                "statistics": {**puffin(2, "x.puffin"), "file-footer-size-in-bytes": -9},
            }
        ],
        "file-footer-size-in-bytes is -9",
    ),
    "a count of values that is none": (
        lambda place: [listed(place, valueCounts={"0": -1})],
        "valueCounts holds -1",
    ),
    "a count of no column's values": (
        lambda place: [listed(place, nullValueCounts={"-1": 0})],
        "nullValueCounts holds -1",
    ),
    "a commit identifier of more than 64 bits": (
        lambda place: [snapshot(place, commitIdentifier=2**63)],
        "commitIdentifier",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_cannot_be_is_found_by_its_version_and_its_rule(place: Place, name: str) -> None:
    make, said = CONTRADICTIONS[name]
    version = forge(place, make(place))
    forge(place, [option()])

    found = [each for each in place.look().findings if each.kind == "contradiction"]

    assert {each.version for each in found} == {version}, place.look().findings
    assert {each.file for each in found} == {
        place.commit(version).relative_to(place.folder).as_posix()
    }
    assert any(said in each.what for each in found), [each.what for each in found]
    assert all(each.fails for each in found)


def test_an_id_used_twice_is_found(place: Place) -> None:
    version = forge(place, [option()], id="K")

    (found,) = place.look().findings

    assert (found.kind, found.version) == ("contradiction", version)
    assert "'K' was used in version 1 already" in found.what


COPY = {"location": "memory://b", "ledgerId": "b", "copiedFrom": "a"}


def test_an_id_used_twice_in_one_commit_is_found(place: Place) -> None:
    forge(place, [option()])
    path = max((place.stream / "log").glob("*.json"))
    commit = json.loads(path.read_bytes())
    commit["transactions"] *= 2
    path.write_text(json.dumps(commit, separators=(",", ":")) + "\n")

    (found,) = place.look().findings
    assert "was used in version 5 already" in found.what


def test_a_snapshots_key_used_twice_is_found(place: Place) -> None:
    forge(place, [snapshot(place, commitUser="job", commitIdentifier=7)])
    file = {**snapshot(place)["files"][0], "path": "e.parquet"}
    version = forge(place, [snapshot(place, commitUser="job", commitIdentifier=7, files=[file])])

    (found,) = place.look().findings
    assert (found.version, "snapshot:APPEND:7:job" in found.what) == (version, True)


def test_a_file_that_went_may_come_again(place: Place) -> None:
    table = place.lake().table("shop.orders")
    table.delete_files(["b.parquet"])
    table.rollback(snapshot=3)

    assert place.look().findings == []


def test_a_value_that_is_none_of_its_partition_is_found(place: Place) -> None:
    forge(place, [listed(place, path="e.parquet", partition=["2024-01-02"])])
    assert place.look().findings == []
    forge(place, [listed(place, path="f.parquet", partition=["yesterday"])])

    (found,) = place.look().findings
    assert "'yesterday'" in found.what


def test_a_duplicate_among_many_ids_kept_on_disk_is_found(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.history.verifying.commits._BLOCK", 2)
    monkeypatch.setattr("ledger.history.verifying.commits._IN_MEMORY_BYTES", 64)
    table = place.lake().table("shop.orders")
    for number in range(60):
        table.append([data_file(f"f{number}.parquet")], commit_id=f"id-{number}")
    assert place.look().findings == []
    version = forge(place, [option()], id="id-17")

    assert [each.version for each in place.look().findings] == [version]


def test_a_table_without_its_creation_is_damaged_and_named(place: Place) -> None:
    body = json.loads(place.commit(0).read_bytes())
    body["transactions"][0]["events"] = [option()]
    place.commit(0).write_text(json.dumps(body, separators=(",", ":")) + "\n")

    found = place.look().damages[0]

    assert (found.version, "begins with its creation" in found.what) == (0, True)
    with pytest.raises(DamagedLogError):
        place.lake().table("shop.orders").alter([SetOption("a", "b")])
