"""A metadata log with other entries than earlier files does not change the imported history."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from ledger import Ledger
from ledger.events import TableEvent
from ledger.events.imported import MetadataLogUpdated
from ledger.state.iceberg_origin import IcebergOrigin
from tests.lakes import lake_on, memory
from tests.projections.iceberg.importing.test_looking_again import (
    append,
    evolve,
    expire,
    metadata,
    say_more,
    tag,
)
from tests.projections.importing.what_came import now, transactions_of

Metadata = dict[str, Any]
Entries = list[Metadata]
OTHER = "5b1f0c3e-0000-4000-8000-000000000001"
STEPS: tuple[Callable[[Metadata], None], ...] = (append, evolve, tag, append, say_more, expire, tag)
FILES = len(STEPS) + 1
FOREIGN, COPY, GONE, TORN = "00002-foreign", "00002-copy", "00003-gone", "00004-torn"


def name(number: int, kind: str = "catalog") -> str:
    end = "metadata.json"
    return f"v{number + 1}.{end}" if kind == "hadoop" else f"{number:05d}-m.{end}"


def history() -> list[Metadata]:
    """Return the metadata of a table after each of its commits, without a metadata log."""
    made = metadata(3)
    found = [copy.deepcopy(made)]
    for step in STEPS:
        step(made)
        made["last-updated-ms"] += 1
        found.append(copy.deepcopy(made))
    return found


@frozen
class File:
    """One of the metadata files of a table.

    Attributes:
        log: The entries of the earlier files, oldest first.
        names: The entries of all files, oldest first.
        at: Its place among them.
    """

    log: Entries
    names: Entries
    at: int


def entry(millis: int, file: str) -> Metadata:
    return {"timestamp-ms": millis, "metadata-file": f"s3://lake/t/metadata/{file}"}


def other(millis: int, file: str) -> Metadata:
    return entry(millis, f"{file}.metadata.json")


def itself(file: File) -> Entries:
    return [*file.log, file.names[file.at]]


def itself_first(file: File) -> Entries:
    return [file.names[file.at], *file.log]


def everything_twice(file: File) -> Entries:
    return [each for each in file.log for _ in range(2)]


def everything_again(file: File) -> Entries:
    return [*file.log, *file.log]


def reversed_order(file: File) -> Entries:
    return file.log[::-1]


def any_order(file: File) -> Entries:
    return random.Random(file.at).sample(file.log, len(file.log))


def oldest_last(file: File) -> Entries:
    return [*file.log[1:], *file.log[:1]]


def a_cycle_of_all_files(file: File) -> Entries:
    return [*file.names[file.at + 1 :], *file.log, file.names[file.at]]


def a_cycle_of_later_files(file: File) -> Entries:
    return [*file.log, *file.names[file.at + 1 :]]


def missing_files(file: File) -> Entries:
    return [each for own in file.log for each in (own, other(own["timestamp-ms"], GONE))]


def files_of_another_table(file: File) -> Entries:
    return [each for own in file.log for each in (own, other(own["timestamp-ms"], FOREIGN))]


def files_that_are_torn(file: File) -> Entries:
    return [each for own in file.log for each in (other(own["timestamp-ms"], TORN), own)]


def a_copy_by_another_name(file: File) -> Entries:
    millis = file.names[2]["timestamp-ms"]
    return [*file.log[:3], other(millis, COPY), *file.log[3:]] if file.at > 2 else file.log


def empty_names(file: File) -> Entries:
    return [each for own in file.log for each in (own, entry(own["timestamp-ms"], ""))]


LOGS = [
    *(itself, itself_first, everything_twice, everything_again, reversed_order, any_order),
    *(oldest_last, a_cycle_of_all_files, a_cycle_of_later_files, missing_files),
    *(files_of_another_table, files_that_are_torn, a_copy_by_another_name, empty_names),
]


def plain(file: File) -> Entries:
    return file.log


def written(folder: Path, log: Callable[[File], Entries], kind: str) -> list[Path]:
    """Write a table's history, each file with such a log; return its files, oldest first."""
    inside = folder / "metadata"
    inside.mkdir(parents=True)
    states = history()
    names = [entry(each["last-updated-ms"], name(at, kind)) for at, each in enumerate(states)]
    files = []
    for at, each in enumerate(states):
        each["metadata-log"] = log(File(names[:at], names, at))
        files.append(inside / name(at, kind))
        files[-1].write_text(json.dumps(each))
    foreign = {**states[2], "table-uuid": OTHER, "metadata-log": []}
    (inside / f"{FOREIGN}.metadata.json").write_text(json.dumps(foreign))
    (inside / f"{COPY}.metadata.json").write_bytes(files[2].read_bytes())
    (inside / f"{TORN}.metadata.json").write_text(json.dumps(states[4])[:-9])
    return files


def imported(files: Iterable[Path]) -> Ledger:
    """Import files one after the other, each of them twice."""
    lake = lake_on(memory(), clock=now)
    for each in files:
        lake.import_table("a.b", str(each), format_name="iceberg")
        assert lake.import_table("a.b", str(each), format_name="iceberg").transactions == 0
    return lake


def changes(lake: Ledger) -> list[Any]:
    """Return times and events of the table's transactions, but for its metadata log's."""

    def kept(events: Iterable[TableEvent]) -> list[str]:
        return [
            str(each).replace("/plain/", "/t/")
            for each in events
            if not isinstance(each, MetadataLogUpdated)
        ]

    return [(millis, kept(events)) for _, _, millis, events in transactions_of(lake)]


@pytest.mark.parametrize("kind", ["catalog", "hadoop"])
@pytest.mark.parametrize("log", LOGS, ids=lambda each: each.__name__)
def test_a_history_with_such_a_log_is_imported_as_with_a_plain_one(
    tmp_path: Path, log: Callable[[File], Entries], kind: str
) -> None:
    usual = written(tmp_path / "plain", plain, kind)
    files = written(tmp_path / "t", log, kind)

    at_once, followed = imported(files[-1:]), imported(files)

    assert len(changes(imported(usual))) > FILES
    assert changes(at_once) == changes(imported(usual[-1:]))
    assert changes(followed) == changes(imported(usual))
    origin = followed.table("a.b").state.origin
    assert isinstance(origin, IcebergOrigin)
    said = [each.metadata_file for each in origin.metadata_log]
    assert said == [
        each["metadata-file"] for each in json.loads(files[-1].read_text())["metadata-log"]
    ]


def test_files_under_both_kinds_of_names_are_followed_once(tmp_path: Path) -> None:
    usual = written(tmp_path / "plain", plain, "catalog")
    inside = tmp_path / "t/metadata"
    inside.mkdir(parents=True)
    lake = lake_on(memory(), clock=now)
    for at, each in enumerate(usual):
        (inside / name(at)).write_bytes(each.read_bytes())
        (inside / name(at, "hadoop")).write_bytes(each.read_bytes())
        (inside / "version-hint.text").write_text(str(at + 1))
        lake.import_table("a.b", str(tmp_path / "t"), format_name="iceberg")

    def of_table(lake: Ledger) -> list[tuple[int, list[str]]]:
        return [
            (millis, [each for each in events if not each.startswith("SourceFollowed")])
            for millis, events in changes(lake)
        ]

    assert of_table(lake) == of_table(imported(usual))


def test_an_older_file_is_imported_without_the_later_ones_that_its_log_names(
    tmp_path: Path,
) -> None:
    usual = written(tmp_path / "plain", plain, "catalog")
    files = written(tmp_path / "t", a_cycle_of_later_files, "catalog")

    lake = imported([files[2]])

    assert changes(lake) == changes(imported([usual[2]]))
    lake.import_table("a.b", str(files[5]), format_name="iceberg")
    assert changes(lake) == changes(imported([usual[2], usual[5]]))


def test_clocks_that_differ_by_less_than_a_minute_do_not_change_the_order_of_a_log(
    tmp_path: Path,
) -> None:
    inside = tmp_path / "t/metadata"
    inside.mkdir(parents=True)
    made, log = metadata(1), Entries()
    for at, millis in enumerate((0, 900, 300, 700)):
        made["properties"] = {**made["properties"], f"k{at}": "v"}
        made["last-updated-ms"] = made["snapshots"][0]["timestamp-ms"] + millis
        made["metadata-log"] = [*log]
        newest = inside / name(at)
        newest.write_text(json.dumps(made))
        log.append(entry(made["last-updated-ms"], newest.name))
    events = [[str(each) for each in events] for *_, events in transactions_of(imported([newest]))]
    assert [sum("Option" in each for each in said) for said in events] == [1, 1, 1, 1]
