"""A mirrored table, whatever the format: imported exactly once, and owned by its source."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import AddColumn, AlreadyExistsError, InvalidChangeError, NotFoundError, Schema
from tests.faults import Died, DiesAfter
from tests.lakes import lake_on, memory
from tests.projections.delta.importing import test_following as delta
from tests.projections.iceberg.importing import test_following as iceberg
from tests.projections.importing.sources import Source, maker
from tests.projections.importing.what_came import now, transactions_of
from tests.projections.paimon.importing.paimon_source import PaimonSource


def paimon_life(folder: Path) -> str:
    """Write a table with a primary key, schemas, rollbacks, expired snapshots and tags."""
    source = PaimonSource(folder, keyed=True)
    for _ in source.life(3, 8):
        pass
    source.table.create_tag("last")
    return str(source.folder)


HISTORIES = {"delta": delta.written, "iceberg": iceberg.written, "paimon": paimon_life}


@pytest.fixture(params=["delta", "iceberg", "iceberg in a folder", "paimon"])
def source(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Source:
    return maker(request.param, tmp_path, monkeypatch)(tmp_path / "theirs")


@pytest.mark.parametrize("name", HISTORIES)
def test_a_retry_after_a_kill_at_any_write_completes_the_import_and_repeats_nothing(
    name: str, tmp_path: Path
) -> None:
    write: Callable[[Path], str] = HISTORIES[name]
    source = write(tmp_path / "t")
    whole = lake_on(memory(), clock=now)
    whole.import_table("a.b", source, format_name=name)
    wanted = transactions_of(whole)
    for writes in itertools.count():
        store = memory()
        try:
            lake_on(DiesAfter(store, writes), clock=now).import_table(
                "a.b", source, format_name=name
            )
        except Died:
            again = lake_on(store, clock=now)
            again.import_table("a.b", source, format_name=name)
            assert transactions_of(again) == wanted
            assert again.import_table("a.b", source, format_name=name).transactions == 0
        else:
            break
    assert writes > len(wanted)


def test_concurrent_commits_of_the_source_are_imported_once(source: Source) -> None:
    store, name = memory(), source.format.name
    lake, other = lake_on(store, clock=now), lake_on(store, clock=now)
    lake.import_table("a.b", source.place, format_name=name)
    before = transactions_of(lake)
    last = lake.table("a.b").state.last_snapshot_id
    source.commit()
    done = other.import_table("a.b", source.place, format_name=name)
    assert done.transactions == 1
    assert done.snapshots == (other.table("a.b").state.last_snapshot_id,)
    assert done.snapshots != (last,)
    assert lake.import_table("a.b", source.place, format_name=name).transactions == 0
    found = transactions_of(lake)
    assert found[:-1] == before
    events = [event for _, _, _, events in found for event in events]
    assert len(events) == len(set(map(repr, events)))


def test_a_mirror_rejects_commits_and_names_its_owner(source: Source) -> None:
    lake = lake_on(memory(), clock=now)
    lake.import_table("a.b", source.place, format_name=source.format.name)
    table = lake.table("a.b")
    theirs = table.state.origin.source
    changes: tuple[Callable[[], object], ...] = (
        lambda: table.alter([AddColumn(("x",), "INT")]),
        lambda: table.create_tag("mine"),
        lambda: table.alter([{"action": "setOption", "key": "a", "value": "b"}]),
    )
    for change in changes:
        with pytest.raises(
            InvalidChangeError,
            match=f"follows {theirs}, which others own.*import {source.format.name}",
        ):
            change()
    lake.drop_table("a.b")
    assert lake.tables("a") == []


def test_a_table_of_the_ledgers_own_is_not_imported_over(source: Source) -> None:
    lake = lake_on(memory(), clock=now)
    lake.create_database("a")
    lake.create_table("a.own", Schema.of({"id": "INT"}))
    with pytest.raises(AlreadyExistsError, match="is the ledger's own"):
        lake.import_table("a.own", source.place, format_name=source.format.name)


@pytest.mark.parametrize("source", ["iceberg", "iceberg in a folder", "paimon"], indirect=True)
def test_unreadable_files_are_named(source: Source) -> None:
    lake = lake_on(memory(), clock=now)
    lake.import_table("a.b", source.place, format_name=source.format.name)
    with pytest.raises(NotFoundError, match="allowed_locations"):
        _ = lake.table("a.b").at().files
