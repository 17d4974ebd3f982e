"""The owner of a table: each change of it by each origin, and what each owner lets be committed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    AddColumn,
    AlreadyExistsError,
    CommitConflictError,
    FileChange,
    InvalidChangeError,
    InvalidInputError,
    Ledger,
    LedgerError,
    Schema,
    SetOption,
    SnapshotPlan,
    Table,
    UnsupportedError,
    UpgradeRequiredError,
)
from ledger.events import ServingProtocol, TableEvent
from ledger.log import Codec
from ledger.state import Owner, TableBuilder, TableStream
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from tests.lakes import lake_on, memory
from tests.projections.delta.importing.test_following import written
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.importing.what_came import now
from tests.projections.paimon.importing.test_paimon_import import DATA as PAIMON
from tests.projections.source.reading_all import rows_of

ICEBERG = {"ledger.formats": "iceberg"}
FILE = FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9, field_ids=True)
NEW = FileChange(path="new.parquet", record_count=1, file_size_in_bytes=9, field_ids=True)


def from_iceberg(folder: Path) -> str:
    theirs = created(folder)
    appended(theirs, 1, 2)
    return theirs.metadata_location


def from_paimon(folder: Path, name: str = "append_part") -> str:
    shutil.copytree(PAIMON / "pypaimon_wh/ledger.db" / name, folder)
    return str(folder)


MIRRORS: dict[str, Callable[[Path], str]] = {
    "iceberg": from_iceberg,
    "paimon": from_paimon,
    "delta": written,
}
SERVABLE: tuple[ServingProtocol, ...] = ("iceberg", "paimon")


def lake_in(tmp_path: Path) -> Ledger:
    return lake_on(LocalStore(tmp_path / "lake"), clock=now)


def native(lake: Ledger, formats: str = "iceberg") -> Table:
    lake.create_database("a")
    schema = Schema.of({"id": "BIGINT"}, options={"ledger.formats": formats})
    table = lake.create_table("a.b", schema)
    table.append([FILE])
    return table


def mirrored(tmp_path: Path, name: str) -> tuple[Ledger, Table, str]:
    lake = lake_in(tmp_path)
    source = MIRRORS[name](tmp_path / "theirs")
    lake.import_table("a.b", source, format_name=name)
    return lake, lake.table("a.b"), source


def owned(tmp_path: Path, name: str) -> tuple[Ledger, Table]:
    """Return a table of the ledger's own that can be served, by its origin."""
    if name == "native":
        lake = lake_in(tmp_path)
        return lake, native(lake)
    lake, table, _ = mirrored(tmp_path, name)
    lake.promote("a.b")
    if name == "delta":
        table.alter([SetOption("ledger.formats", "iceberg")])
    return lake, table


ORIGINS = ("native", *MIRRORS)


# mirrored -> ledger


@pytest.mark.parametrize("name", MIRRORS)
def test_a_mirrored_table_becomes_the_ledgers_by_promotion(name: str, tmp_path: Path) -> None:
    lake, table, _ = mirrored(tmp_path, name)
    assert table.state.owner == Owner("mirrored")
    lake.promote("a.b")
    assert table.state.owner == Owner("ledger", since_version=table.state.version)


# mirrored -> served


@pytest.mark.parametrize("name", SERVABLE)
def test_a_mirrored_table_is_promoted_for_engines(name: Any, tmp_path: Path) -> None:
    lake, table, source = mirrored(tmp_path, name)
    before = table.state
    files = {each.path for each in table.at().files}
    done = lake.promote("a.b", protocol=name)
    state = table.state
    assert (done.version, state.owner) == (state.version, Owner("served", name, state.version))
    assert state.snapshot == before.snapshot
    assert {each.path for each in table.at().files} == files
    with pytest.raises(AlreadyExistsError, match="was promoted"):
        lake.import_table("a.b", source, format_name=name)
    assert not lake.promote("a.b", protocol=name).is_new
    assert not lake.promote("a.b").is_new
    other: Any = "paimon" if name == "iceberg" else "iceberg"
    with pytest.raises(InvalidChangeError, match="serve-table --back"):
        lake.promote("a.b", protocol=other)
    assert table.state == state


def test_a_mirrored_table_from_delta_is_not_served(tmp_path: Path) -> None:
    lake, table, _ = mirrored(tmp_path, "delta")
    version = table.state.version
    for call in (lake.promote, lake.plan_promotion):
        with pytest.raises(InvalidChangeError, match="the table declares 'delta'"):
            call("a.b", protocol="iceberg")
    assert table.state.version == version
    assert not (tmp_path / "theirs/_delta_log/00000000000000000004.json").exists()


@pytest.mark.parametrize("name", MIRRORS)
def test_a_mirrored_table_is_not_served_without_a_promotion(name: str, tmp_path: Path) -> None:
    _, table, _ = mirrored(tmp_path, name)
    with pytest.raises(InvalidChangeError, match="lakeledger promote"):
        table.start_serving()
    with pytest.raises(InvalidChangeError, match="lakeledger promote"):
        table.stop_serving()


def test_a_paimon_table_with_a_primary_key_is_served_and_not_taken_back(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    lake.import_table("a.b", from_paimon(tmp_path / "theirs", "pk_b2"), format_name="paimon")
    table = lake.table("a.b")
    with pytest.raises(UnsupportedError, match="primary key"):
        lake.promote("a.b")
    lake.promote("a.b", protocol="paimon")
    table.alter([SetOption("k", "1")])
    version = table.state.version
    for call in (table.stop_serving, table.plan_stop_serving):
        with pytest.raises(UnsupportedError, match="primary key"):
            call()
    assert (table.state.version, table.state.owner.kind) == (version, "served")


# ledger -> served -> ledger


@pytest.mark.parametrize("name", ORIGINS)
def test_a_table_of_the_ledgers_is_served_and_taken_back(name: str, tmp_path: Path) -> None:
    _, table = owned(tmp_path, name)
    before = table.state
    files = {each.path for each in table.at().files}
    protocol = "paimon" if name == "paimon" else "iceberg"
    assert table.plan_serving().protocol == protocol
    assert table.state.version == before.version
    served = table.start_serving()
    assert served.state.owner == Owner("served", protocol, before.version + 1)
    assert table.start_serving().version == table.start_serving(protocol).version == served.version
    assert (served.state.schema.fields, served.state.snapshot) == (
        before.schema.fields,
        before.snapshot,
    )
    if name == "iceberg":
        table.append([NEW])
        files.add(f"{table.location}/{NEW.path}")
    else:
        with pytest.raises(InvalidChangeError, match="serve-table TABLE --back"):
            table.append([NEW])
    table.alter([AddColumn(("later",), "STRING")])
    table.create_tag("kept")
    back = table.stop_serving()
    assert back.state.owner == Owner("ledger", None, back.version)
    assert table.stop_serving().version == back.version
    assert {each.path for each in table.at().files} == files
    table.delete_files(min(files))


@pytest.mark.parametrize("name", SERVABLE)
def test_a_table_that_was_promoted_for_engines_lists_its_files_once_it_is_taken_back(
    name: Any, tmp_path: Path
) -> None:
    lake, table, _ = mirrored(tmp_path, name)
    files = {each.path for each in table.at().files}
    lake.promote("a.b", protocol=name)
    table.alter([AddColumn(("later",), "STRING")])
    table.project(name)
    assert table.plan_stop_serving().kind == "ledger"
    back = table.stop_serving(message="home again", commit_id="back")
    assert table.stop_serving(commit_id="back").version == back.version
    state = table.state
    assert state.lists_files
    assert {each.path for each in table.at().files} == files
    table.project(name)
    table.delete_files(min(files))
    table.rollback(snapshot=state.last_snapshot_id)
    table.project(name)
    assert {each.path for each in table.at().files} == files
    (transaction,) = handle_of(table).log.commit_at(back.version).transactions
    assert transaction.message == "home again"


def test_pyiceberg_reads_the_same_rows_of_an_imported_table_served_or_not(tmp_path: Path) -> None:
    lake, table, _ = mirrored(tmp_path, "iceberg")
    rows = table.at().to_arrow().to_pylist()
    lake.promote("a.b", protocol="iceberg")
    table.alter([SetOption("k", "1")])
    assert table.at().to_arrow().to_pylist() == rows
    table.stop_serving()
    assert table.at().to_arrow().to_pylist() == rows


@pytest.mark.parametrize("view", ["files", "tiles"])
@pytest.mark.parametrize("name", SERVABLE)
def test_views_of_files_are_rejected_while_engines_manifests_list_them(
    name: ServingProtocol, view: str, tmp_path: Path
) -> None:
    lake, table, _ = mirrored(tmp_path, name)
    lake.promote("a.b", protocol=name)
    with pytest.raises(UnsupportedError, match="manifest"):
        rows_of(table, view)
    table.stop_serving()
    assert rows_of(table, view)


def test_a_table_that_declares_other_formats_is_not_served(tmp_path: Path) -> None:
    table = native(lake_in(tmp_path), "paimon,iceberg")
    with pytest.raises(InvalidInputError, match="name one of iceberg, paimon"):
        table.start_serving()
    for protocol in SERVABLE:
        with pytest.raises(InvalidChangeError, match=f"Before serving it set .*={protocol}"):
            table.start_serving(protocol)


@pytest.mark.parametrize("name", ORIGINS)
def test_a_table_is_not_served_through_a_protocol_whose_format_it_does_not_declare(
    name: str, tmp_path: Path
) -> None:
    _, table = owned(tmp_path, name)
    with pytest.raises(InvalidChangeError, match="the table declares"):
        table.start_serving("iceberg" if name == "paimon" else "paimon")


def test_a_promoted_table_from_delta_is_not_served_while_it_declares_delta(tmp_path: Path) -> None:
    lake, table, _ = mirrored(tmp_path, "delta")
    lake.promote("a.b")
    with pytest.raises(InvalidChangeError, match="the table declares 'delta'"):
        table.start_serving()


@pytest.mark.parametrize("formats", ["iceberg,paimon", "paimon", "delta,iceberg"])
def test_a_served_table_keeps_declaring_only_its_format(formats: str, tmp_path: Path) -> None:
    table = native(lake_in(tmp_path))
    table.start_serving()
    with pytest.raises(InvalidChangeError, match="a served table declares"):
        table.alter([SetOption("ledger.formats", formats)])


def test_another_protocol_waits_until_the_table_is_taken_back(tmp_path: Path) -> None:
    table = native(lake_in(tmp_path))
    table.start_serving("iceberg")
    with pytest.raises(InvalidChangeError, match="take it back first"):
        table.start_serving("paimon")


# ledger, served -> mirrored


@pytest.mark.parametrize("kind", ["ledger", "served"])
@pytest.mark.parametrize("name", ORIGINS)
def test_no_table_of_the_ledgers_follows_a_source_again(
    name: str, kind: str, tmp_path: Path
) -> None:
    lake, table = owned(tmp_path, name)
    if kind == "served":
        table.start_serving()
    head = table.state
    format_name = "iceberg" if name == "native" else name
    source = MIRRORS[format_name](tmp_path / "other")
    with pytest.raises(AlreadyExistsError, match="import under another name"):
        lake.import_table("a.b", source, format_name=format_name)
    assert table.state == head


# Everything that a served table refuses, and takes


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.append([NEW]),
        lambda table: table.overwrite([NEW]),
        lambda table: table.delete_files("a.parquet"),
        lambda table: table.commit_snapshot(SnapshotPlan("COMPACT", (NEW,))),
        lambda table: table.rollback(snapshot=1),
        lambda table: table.branch("audit").append([NEW]),
        lambda table: table.branch("audit").fast_forward(),
    ],
    ids=["append", "overwrite", "delete", "compact", "rollback", "branch", "fast-forward"],
)
def test_a_served_table_rejects_lists_of_files(call: Any, tmp_path: Path) -> None:
    table = native(lake_in(tmp_path))
    table.branch("audit").create()
    table.branch("audit").append(
        [FileChange(path="b.parquet", record_count=1, file_size_in_bytes=9)]
    )
    table.start_serving()
    version = table.state.version
    with pytest.raises(InvalidChangeError, match="serve-table TABLE --back") as refused:
        call(table)
    assert (refused.value.kind, table.state.version) == ("SERVED", version)


def test_a_served_table_is_projected_as_one_of_the_ledgers(tmp_path: Path) -> None:
    table = native(lake_in(tmp_path))
    table.start_serving()
    table.alter([AddColumn(("later",), "STRING")])
    assert table.project("iceberg") == table.state.version
    assert table.at().totals.record_count == 1


# Concurrent writers


def test_an_append_that_lost_to_serving_is_a_conflict_that_names_it() -> None:
    store = memory()
    table = native(lake_on(store))
    other = lake_on(store).table("a.b")
    stale = SnapshotPlan("APPEND", (NEW,))
    other.start_serving(author="eve")
    with pytest.raises(CommitConflictError) as lost:
        table.commit_snapshot(stale)
    assert (lost.value.author, lost.value.version) == ("eve", 2)


def test_what_was_committed_before_the_table_was_served_is_found_again(tmp_path: Path) -> None:
    table = native(lake_in(tmp_path))
    new = [FileChange(path="b.parquet", record_count=1, file_size_in_bytes=9)]
    committed = table.append(new, commit_id="k")
    table.start_serving()
    assert table.append(new, commit_id="k").version == committed.version


def test_serving_goes_past_appends_that_come_first() -> None:
    store = memory()
    table = native(lake_on(store))
    other = lake_on(store).table("a.b")
    table.state  # noqa: B018 - is read
    other.append([FileChange(path="b.parquet", record_count=1, file_size_in_bytes=9)])
    assert table.start_serving().version == other.state.version
    assert len(table.at().files) == 2


def test_a_commit_based_on_an_earlier_time_of_serving_is_older_than_the_owner(
    tmp_path: Path,
) -> None:
    table = native(lake_in(tmp_path))
    base = table.start_serving().version
    table.stop_serving()
    assert table.start_serving().state.owner.since_version > base


# The log


def test_clients_that_do_not_know_the_event_require_an_upgrade(tmp_path: Path) -> None:
    table = native(lake_in(tmp_path))
    table.start_serving()
    (read,) = handle_of(table).log.commits(2, 2)
    body = ledger_line(tmp_path, 2)
    codec: Codec[TableEvent] = Codec(TableEvent)
    assert codec.decode(body, "file") == read.commit
    with pytest.raises(UpgradeRequiredError):
        codec.decode(body.replace(b'"setOwner"', b'"setOwner2"'), "file")


def ledger_line(tmp_path: Path, version: int) -> bytes:
    (path,) = (tmp_path / "lake").glob(f"a.db/b/_ledger/log/{version:020d}.json")
    return path.read_bytes()


@pytest.mark.parametrize("forged", ["ledger", "mirrored", "served"])
def test_a_log_that_gives_an_owner_twice_is_broken(forged: str, tmp_path: Path) -> None:
    table = native(lake_in(tmp_path))
    table.start_serving()
    line = json.loads(ledger_line(tmp_path, 2))
    (event,) = line["transactions"][0]["events"]
    assert event == {"type": "setOwner", "owner": "served", "protocol": "iceberg"}
    event["owner"] = forged
    line["version"] = 3
    codec: Codec[TableEvent] = Codec(TableEvent)
    builder = TableBuilder(table.state)
    with pytest.raises(LedgerError):
        builder.commit(codec.decode(json.dumps(line).encode(), "file"))


# Any course of owners, against a model


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["serve", "paimon", "back", "append", "alter", "tag", "other"])))
def test_any_course_of_owners_is_as_the_table_of_changes_says(steps: list[str]) -> None:
    lake = lake_on(memory())
    table = native(lake)
    kind, files = "ledger", 1
    for number, step in enumerate(steps):
        calls: dict[str, Callable[[], object]] = {
            "serve": table.start_serving,
            "paimon": lambda: table.start_serving("paimon"),
            "back": table.stop_serving,
            "append": lambda: table.append(
                [FileChange(path=f"{number}.parquet", record_count=1, file_size_in_bytes=9)]  # noqa: B023
            ),
            "alter": lambda: table.alter([SetOption("k", str(number))]),  # noqa: B023
            "tag": lambda: table.create_tag(f"t{number}"),  # noqa: B023
            "other": lambda: table.alter([SetOption("ledger.formats", "iceberg,delta")]),
        }
        is_refused = step == "paimon" or (kind == "served" and step in {"append", "other"})
        if step == "other" and kind == "ledger":
            continue
        if is_refused:
            with pytest.raises(InvalidChangeError):
                calls[step]()
        else:
            calls[step]()
        kind = {"serve": "served", "back": "ledger"}.get(step, kind)
        files += step == "append" and not is_refused
        state = table.state
        assert (state.owner.kind, state.totals.file_count) == (kind, files)
        stream = TableStream()
        assert stream.decode_state(stream.encode_state(state)).owner == state.owner
    builder = TableBuilder()
    for commit in table.events():
        builder.commit(commit)
    assert builder.freeze() == table.state
