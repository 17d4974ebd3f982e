"""A mirrored Delta table: exactly once, after a kill anywhere, and what cannot come is named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledger import (
    AlreadyExistsError,
    InvalidInputError,
    Ledger,
    LedgerError,
    NotFoundError,
    UnsupportedError,
)
from ledger.events import ColumnUndropped
from ledger.model import inline_files
from ledger.state.delta_origin import DeltaOrigin
from ledger.table_handle import handle_of
from tests.lakes import lake_on, memory
from tests.projections.importing.what_came import now, transactions_of

ID = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
NAME = {"name": "name", "type": "string", "nullable": True, "metadata": {}}
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def metadata(*fields: Any, **more: Any) -> dict[str, Any]:
    schema = json.dumps({"type": "struct", "fields": fields})
    form = {"provider": "parquet", "options": {}}
    said = {"id": "u", "format": form, "schemaString": schema, "partitionColumns": []}
    return {"metaData": {**said, "configuration": {}, "createdTime": 1, **more}}


def add(path: str, **more: Any) -> dict[str, Any]:
    stats = json.dumps({"numRecords": 2, "minValues": {"id": 1}, "nullCount": {"id": 0}})
    said = {"path": path, "partitionValues": {}, "size": 9, "modificationTime": 5}
    return {"add": {**said, "dataChange": True, "stats": stats, **more}}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 9, "dataChange": True, **more}}


def info(millis: int, **more: Any) -> dict[str, Any]:
    return {"commitInfo": {"timestamp": millis, "operation": "WRITE", **more}}


def write(folder: Path, version: int, *actions: dict[str, Any]) -> Path:
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    path = log / f"{version:020d}.json"
    path.write_text("".join(json.dumps(each) + "\n" for each in actions))
    return path


def written(folder: Path) -> str:
    """A table of four versions: files, a new column, a key, a compaction."""
    write(folder, 0, info(10, userName="ann"), PROTOCOL, metadata(ID), add("a"), add("b%20c"))
    write(folder, 1, info(20), metadata(ID, NAME), add("d"), remove("a"))
    txn = {"txn": {"appId": "job", "version": 7, "lastUpdated": 30}}
    write(folder, 2, info(30, userId="bob", userMetadata="nightly"), txn, add("e"))
    kept = {"dataChange": False}
    write(folder, 3, info(40), remove("d", **kept), remove("e", **kept), add("f", **kept))
    return str(folder)


def imported(lake: Ledger, source: str) -> Any:
    return lake.import_table("a.b", source, format_name="delta")


def test_each_version_comes_at_its_time_by_its_author_with_its_reason(tmp_path: Path) -> None:
    lake = lake_on(memory(), clock=now)
    source = written(tmp_path / "t")
    done = imported(lake, source)
    assert (done.snapshots, done.schemas, done.version) == ((1, 2, 3, 4), (0, 1), 4)
    said = [(author, message, millis) for author, message, millis, _ in transactions_of(lake)]
    plain = f"imported from {source}"
    assert said == [("ann", plain, 10), ("", plain, 20), ("bob", "nightly", 30), ("", plain, 40)]
    table = lake.table("a.b")
    kinds = [table.at(snapshot=each).snapshot for each in (1, 2, 3, 4)]
    assert [each and each.commit_kind for each in kinds] == [
        "APPEND",
        "OVERWRITE",
        "APPEND",
        "COMPACT",
    ]
    assert kinds[2] is not None
    assert (kinds[2].commit_user, kinds[2].commit_identifier) == ("job", 7)
    paths = [each.path.removeprefix(source) for each in table.at(snapshot=3).files]
    assert paths == ["/b c", "/d", "/e"]
    assert table.at(timestamp=25).schema.names == ("id", "name")
    assert [each.id for each in table.at().schema.fields] == [1, 2]


def test_another_table_in_the_same_place_is_reported(tmp_path: Path) -> None:
    lake = lake_on(memory(), clock=now)
    source = written(tmp_path / "t")
    imported(lake, source)
    last = write(tmp_path / "t", 3, info(41), add("z"))
    with pytest.raises(AlreadyExistsError, match="has another version 3: it is another table"):
        imported(lake, source)
    last.unlink()
    with pytest.raises(AlreadyExistsError, match="ends at version 2"):
        imported(lake, source)


def test_a_name_that_comes_back_is_the_column_that_had_it(tmp_path: Path) -> None:
    lake = lake_on(memory(), clock=now)
    write(tmp_path, 0, PROTOCOL, metadata(ID, NAME))
    write(tmp_path, 1, metadata(NAME))
    imported(lake, str(tmp_path))
    write(tmp_path, 2, metadata(NAME, {**ID, "type": "string"}, {**ID, "name": "new"}))
    imported(lake, str(tmp_path))
    ids = {each.name: each.id for each in lake.table("a.b").at().schema.fields}
    assert ids == {"id": 1, "name": 2, "new": 3}
    table = lake.table("a.b")
    (commit,) = table.events(table.state.version)
    (back,) = (
        each
        for transaction in commit.transactions
        for each in transaction.events
        if isinstance(each, ColumnUndropped)
    )
    assert (back.field_names, back.field_id) == (("id",), 1)


def test_a_mapped_table_keeps_its_ids_and_a_table_that_becomes_one_its_own(tmp_path: Path) -> None:
    def mapped(name: str, number: int, physical: str) -> dict[str, Any]:
        said = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
        return {**ID, "name": name, "metadata": said}

    lake = lake_on(memory(), clock=now)
    mode = {"configuration": {"delta.columnMapping.mode": "name"}}
    own, later = tmp_path / "own", tmp_path / "later"
    write(own, 0, PROTOCOL, metadata(mapped("a", 9, "p"), mapped("b", 4, "q"), **mode))
    write(own, 1, metadata(mapped("c", 4, "q"), mapped("d", 12, "r"), **mode), add("x"))
    write(later, 0, PROTOCOL, metadata(ID, NAME), add("x"))
    write(later, 1, metadata(mapped("new", 5, "name"), mapped("id", 6, "id"), **mode), add("y"))
    lake.import_table("a.own", str(own), format_name="delta")
    lake.import_table("a.later", str(later), format_name="delta")
    fields = {name: lake.table(f"a.{name}").at().schema.fields for name in ("own", "later")}
    assert [(each.name, each.id) for each in fields["own"]] == [("c", 4), ("d", 12)]
    assert [(each.name, each.id) for each in fields["later"]] == [("new", 2), ("id", 1)]
    carried = [each.field_ids for name in fields for each in lake.table(f"a.{name}").at().files]
    assert carried == [True, False, False]


def checkpointed(folder: Path, kind: str) -> None:
    """Leave a checkpoint of version 1 and what came after it."""
    log, stem = folder / "_delta_log", f"{1:020d}.checkpoint"
    rows = [PROTOCOL, metadata(ID, NAME), add("b%20c"), add("d")]
    if kind == "classic":
        parquet_rows(log / f"{stem}.parquet", rows)
    elif kind == "parts":
        parquet_rows(log / f"{stem}.{1:010d}.{2:010d}.parquet", rows[:3])
        parquet_rows(log / f"{stem}.{2:010d}.{2:010d}.parquet", rows[3:])
    else:
        (log / "_sidecars").mkdir()
        parquet_rows(log / "_sidecars/s.parquet", rows[2:])
        side = {"sidecar": {"path": "s.parquet", "sizeInBytes": 1, "modificationTime": 1}}
        top = [{"checkpointMetadata": {"version": 1}}, *rows[:2], side]
        path = log / f"{stem}.80a083e8-7026-4e79-81be-64bd76c43a11.{kind}"
        if kind == "json":
            path.write_text("".join(json.dumps(each) + "\n" for each in top))
        else:
            parquet_rows(path, top[1:])
    (log / f"{0:020d}.json").unlink()
    (log / f"{1:020d}.json").unlink()


def parquet_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    def said(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        maps = {"partitionValues", "configuration", "options"}
        return {k: list(v.items()) if k in maps else said(v) for k, v in value.items()}

    texts = pa.map_(pa.string(), pa.string())
    kinds = {
        "protocol": [("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())],
        "metaData": [
            ("id", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", texts)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", texts),
            ("createdTime", pa.int64()),
        ],
        "add": [
            ("path", pa.string()),
            ("partitionValues", texts),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats", pa.string()),
        ],
        "sidecar": [("path", pa.string()), ("sizeInBytes", pa.int64())],
    }
    schema = pa.schema([(name, pa.struct(fields)) for name, fields in kinds.items()])
    table = pa.Table.from_pylist([said(each) for each in rows], schema=schema)
    pq.write_table(table, path)


@pytest.mark.parametrize("kind", ["classic", "parts", "json", "parquet"])
def test_every_kind_of_checkpoint_begins_a_log_that_was_cleaned(tmp_path: Path, kind: str) -> None:
    source = written(tmp_path / "t")
    whole = lake_on(memory(), clock=now)
    imported(whole, source)
    checkpointed(tmp_path / "t", kind)
    lake = lake_on(memory(), clock=now)
    assert imported(lake, source).snapshots == (1, 2, 3)
    for ours, theirs in ((1, 2), (3, 4)):
        found = lake.table("a.b").at(snapshot=ours).files
        wanted = whole.table("a.b").at(snapshot=theirs).files
        assert [(e.path, e.record_count, e.lower_bounds) for e in found] == [
            (e.path, e.record_count, e.lower_bounds) for e in wanted
        ]
    parts = list((tmp_path / "t/_delta_log").glob("*.checkpoint.*"))
    parts[0].unlink()
    with pytest.raises(InvalidInputError, match="lacks version 1, and no checkpoint covers"):
        imported(lake_on(memory(), clock=now), source)


def test_a_long_list_of_files_is_stored_in_a_sidecar(tmp_path: Path) -> None:
    write(tmp_path, 0, PROTOCOL, metadata(ID), *(add(f"f{each}") for each in range(1500)))
    lake = lake_on(memory(), clock=now)
    imported(lake, str(tmp_path))
    table = lake.table("a.b")
    assert len(table.at().files) == 1500
    assert (
        len(
            (
                handle_of(table).log.store.read(
                    f"{handle_of(table).log.layout.root}/log/{1:020d}.json"
                )
            )
            or b""
        )
        < 5000
    )


def test_files_that_go_are_listed_in_the_order_of_the_source(tmp_path: Path) -> None:
    names = [f"f{each}" for each in range(12)]
    write(tmp_path, 0, PROTOCOL, metadata(ID), *map(add, names))
    write(tmp_path, 1, *map(remove, reversed(names)))
    lake = lake_on(memory(), clock=now)
    imported(lake, str(tmp_path))
    _, _, _, events = transactions_of(lake)[-1]
    gone = [each.path.rpartition("/")[2] for each in inline_files(events[0].files)]
    assert gone == names[::-1]


VECTOR = {"deletionVector": {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1}}
DAY = {**ID, "name": "day", "type": "date"}
REFUSED: dict[str, tuple[type[LedgerError], str, list[dict[str, Any]]]] = {
    "a deletion vector": (
        UnsupportedError,
        "version 1 of .* file .*/a has a deletion vector.*REORG TABLE",
        [add("a", **VECTOR)],
    ),
    "a feature of readers": (
        UnsupportedError,
        "version 1 of .* must support catalogManaged",
        [
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": ["catalogManaged"],
                    "writerFeatures": [],
                }
            }
        ],
    ),
    "commits that a coordinator has": (
        UnsupportedError,
        "version 1 of .* it has coordinatedCommits-preview: a coordinator holds its newest commits",
        [
            {
                "protocol": {
                    "minReaderVersion": 1,
                    "minWriterVersion": 7,
                    "writerFeatures": ["coordinatedCommits-preview"],
                }
            }
        ],
    ),
    "a type": (
        UnsupportedError,
        "column s.x has Delta's type interval second",
        [
            metadata(
                {
                    **ID,
                    "name": "s",
                    "type": {
                        "type": "struct",
                        "fields": [{**ID, "name": "x", "type": "interval second"}],
                    },
                }
            )
        ],
    ),
    "a partition value": (
        UnsupportedError,
        "has the value 'yesterday' in partition column day",
        [
            metadata(ID, DAY, partitionColumns=["day"]),
            add("a", partitionValues={"day": "yesterday"}),
        ],
    ),
    "a truth that is none": (
        UnsupportedError,
        "has the value 'maybe' in partition column day",
        [
            metadata(ID, {**DAY, "type": "boolean"}, partitionColumns=["day"]),
            add("a", partitionValues={"day": "maybe"}),
        ],
    ),
    "rows that nobody counted": (
        NotFoundError,
        "version 1 of .* file .*/a has no row count in its statistics, and does not exist",
        [add("a", stats=None)],
    ),
    "half a schema": (
        InvalidInputError,
        "has invalid metadata",
        [{"metaData": {**metadata(ID)["metaData"], "schemaString": "{"}}],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_unsupported_source_is_named_before_anything_is_written(
    tmp_path: Path, case: str
) -> None:
    error, said, actions = REFUSED[case]
    write(tmp_path, 0, PROTOCOL, metadata(ID))
    write(tmp_path, 1, *actions)
    lake = lake_on(memory(), clock=now)
    with pytest.raises(error, match=said) as refused:
        imported(lake, str(tmp_path))
    assert "\n" not in str(refused.value)
    assert not lake.is_begun


def test_bad_sources_are_reported_in_a_line(tmp_path: Path) -> None:
    lake = lake_on(memory(), clock=now)
    (tmp_path / "empty/_delta_log").mkdir(parents=True)
    (tmp_path / "file").write_text("no")
    write(tmp_path / "gap", 0, PROTOCOL, metadata(ID))
    write(tmp_path / "gap", 2, add("a"))
    write(tmp_path / "torn", 2, add("a"))
    parquet_rows(
        tmp_path / "torn/_delta_log" / f"{1:020d}.checkpoint.parquet", [PROTOCOL, add("b")]
    )
    bad: list[tuple[str, type[Exception], str]] = [
        ("nowhere", NotFoundError, "it has no folder _delta_log/"),
        ("file", NotFoundError, "it has no folder _delta_log/"),
        ("empty", InvalidInputError, "holds no version of a Delta table"),
        ("gap", InvalidInputError, "lacks version 1, and no checkpoint covers"),
        ("torn", InvalidInputError, r"1\.checkpoint\.parquet has no protocol or metadata"),
    ]
    for name, error, said in bad:
        with pytest.raises(error, match=said):
            imported(lake, str(tmp_path / name))
    with pytest.raises(InvalidInputError, match="credentials|user|password"):
        imported(lake, "s3://me:secret@bucket/t")
    assert not lake.is_begun


def test_every_table_of_a_folder_comes_in_by_one_call(tmp_path: Path) -> None:
    lake = lake_on(memory(), clock=now)
    written(tmp_path / "shop.db/one")
    write(tmp_path / "shop.db/two", 0, PROTOCOL, metadata(ID))
    write(tmp_path / "shop.db/bad", 0, PROTOCOL)
    done = {
        str(each.identifier): each
        for each in lake.import_tables(str(tmp_path), format_name="delta")
    }
    assert sorted(done) == ["shop.bad", "shop.one", "shop.two"]
    assert "begins a table without metadata" in str(done["shop.bad"].error)
    assert lake.tables("shop") == ["one", "two"]


VALID, LONG = 1_600_000_000_000, 2**63
TIMES: dict[str, tuple[dict[str, Any], int | None]] = {
    "negative": ({"timestamp": -5}, None),
    "the least": ({"timestamp": -LONG}, None),
    "negative, and one that is valid": ({"inCommitTimestamp": -5, "timestamp": VALID}, VALID),
    "both negative": ({"inCommitTimestamp": -5, "timestamp": -1}, None),
    "too large": ({"timestamp": LONG}, None),
    "one without a later one": ({"timestamp": LONG - 1}, None),
    "a text": ({"timestamp": "2020-01-01"}, None),
    "a float": ({"timestamp": 1.6e12}, None),
    "a truth": ({"timestamp": True}, None),
    "null": ({"timestamp": None}, None),
    "zero": ({"timestamp": 0}, 0),
    "a time": ({"timestamp": VALID}, VALID),
}


@pytest.mark.parametrize("created", [None, -5, -LONG, 0, 1])
@pytest.mark.parametrize("times", TIMES)
def test_a_time_that_is_none_is_that_of_the_file(
    tmp_path: Path, times: str, created: int | None
) -> None:
    stated, wanted = TIMES[times]
    how = {"commitInfo": {"operation": "WRITE", **stated}}
    first = write(tmp_path / "t", 0, how, PROTOCOL, metadata(ID, createdTime=created), add("a"))
    second = write(tmp_path / "t", 1, how, add("b"))
    for each in (first, second):
        os.utime(each, (1_500_000_000, 1_500_000_000))
    lake = lake_on(memory(), clock=now)
    imported(lake, str(tmp_path / "t"))
    table = lake.table("a.b")
    assert table.at(version=1).totals.record_count == 2
    assert table.at().totals.record_count == 4
    delta = table.state.origin_of_kind(DeltaOrigin)
    millis = 1_500_000_000_000 if wanted is None else wanted
    assert delta.timestamp_millis == millis
    assert table.state.created_at == min(millis, created if created == 1 else millis)
