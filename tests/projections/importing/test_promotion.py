"""A promotion, whatever the format: it takes all commits, happens once, and survives kills."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ledger
from ledger import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    Ledger,
    NotFoundError,
    UnsupportedError,
)
from ledger.stores import LocalStore
from projections.materialising import Difference
from tests.faults import Died, DiesAfter
from tests.lakes import lake_on
from tests.projections.iceberg.importing.writing import sql_catalog
from tests.projections.importing.sources import Call, Source, maker
from tests.projections.importing.what_came import now

Make = Callable[[Path], Source]
FOLDERS = ["delta", "paimon"]
"""The formats whose writers are kept out by a file in the source's folder."""


@pytest.fixture(params=["delta", "iceberg", "paimon"])
def make(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make tables of others in folders."""
    return maker(request.param, tmp_path, monkeypatch)


@pytest.fixture
def source(make: Make, tmp_path: Path) -> Source:
    return make(tmp_path / "theirs")


def following(folder: Path, source: Source) -> Ledger:
    """Return a ledger that has imported the source."""
    lake = ledger.open(str(folder))
    lake.import_table("a.b", source.place, format_name=source.format.name)
    return lake


def facts(lake: Ledger) -> list[str]:
    return [
        type(each).__name__
        for commit in lake.table("a.b").events()
        for transaction in commit.transactions
        for each in transaction.events
    ]


def test_concurrent_commits_of_the_source_are_imported_first(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = following(tmp_path / "lake", source)
    left = [1, 2]

    def racing(pass_gate: Call) -> Call:
        def raced(*asked: Any) -> Any:
            if left:
                left.pop()
                source.commit()
            return pass_gate(*asked)

        return raced

    source.gate.replace(monkeypatch, racing)
    planned = lake.plan_promotion("a.b")
    assert (planned.version, planned.is_new, len(left)) == (None, True, 2)
    done = lake.promote("a.b")
    table = lake.table("a.b")
    assert done.transactions == TAKEN[source.format.name]
    assert done.files == len(table.at().files) == FILES[source.format.name]
    assert source.rows_of(table) == source.rows()


TAKEN = {"delta": 3, "iceberg": 2, "paimon": 2}
"""Two commits; the one that keeps the writers of a Delta table out is imported, too."""
FILES = {"delta": 3, "iceberg": 3, "paimon": 10}


def test_a_source_that_is_always_committed_to_keeps_its_owner(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = following(tmp_path / "lake", source)

    def racing(pass_gate: Call) -> Call:
        def raced(*asked: Any) -> Any:
            source.commit()
            return pass_gate(*asked)

        return raced

    source.gate.replace(monkeypatch, racing)
    with pytest.raises(InvalidInputError, match="stop its writers"):
        lake.promote("a.b")
    assert lake.table("a.b").state.is_mirrored
    assert lake.table("a.b").state.origin.source == source.place
    source.commit()


def test_a_table_is_promoted_once(source: Source, tmp_path: Path) -> None:
    lake = following(tmp_path / "lake", source)
    beside = ledger.open(str(tmp_path / "lake"))
    held = beside.table("a.b")
    done = lake.promote("a.b")
    taken = int(source.format.name == "delta")
    assert (done.is_new, done.transactions, done.catalog) == (True, taken, source.catalog)
    for each in (lake, beside):
        again = each.promote("a.b")
        assert (again.is_new, again.transactions, again.files) == (False, 0, 0)
    held.create_tag("v1")
    with pytest.raises(AlreadyExistsError, match="was promoted: the ledger owns it"):
        lake.import_table("a.b", source.place, format_name=source.format.name)
    assert facts(lake).count("TablePromoted") == 1


@pytest.mark.parametrize(
    ("make", "call"),
    list(itertools.product(("delta", "iceberg", "paimon"), ("plan_promotion", "promote"))),
    indirect=["make"],
)
def test_a_table_is_promoted_by_one_ledger_and_read_by_others(
    source: Source, call: str, tmp_path: Path
) -> None:
    lake, other = (following(tmp_path / each, source) for each in ("lake", "other"))
    rows = source.rows()
    lake.promote("a.b")
    with pytest.raises(UnsupportedError, match="is already written by a ledger's table"):
        getattr(other, call)("a.b")
    assert other.table("a.b").state.is_mirrored
    assert other.table("a.b").state.origin.source == source.place
    other.import_table("a.b", source.place, format_name=source.format.name)
    with pytest.raises(UnsupportedError, match="is already written by a ledger's table"):
        getattr(other, call)("a.b")
    third = following(tmp_path / "third", source)
    assert source.rows_of(third.table("a.b")) == source.rows() == rows
    assert source.is_closed_by(lake.table("a.b"))
    assert not lake.promote("a.b").is_new


def test_a_table_of_a_catalog_is_not_promoted_from_a_ledger_that_was_first_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = maker("iceberg", tmp_path, monkeypatch)(tmp_path / "theirs")
    lake, other = (following(tmp_path / each, source) for each in ("lake", "other"))
    first = [lake]

    def racing(pass_gate: Call) -> Call:
        def raced(*asked: Any) -> Any:
            if first:
                first.pop().promote("a.b")
            return pass_gate(*asked)

        return raced

    with monkeypatch.context() as raced:
        source.gate.replace(raced, racing)
        with pytest.raises(UnsupportedError, match="is already written by a ledger's table"):
            other.promote("a.b")
    assert other.table("a.b").state.is_mirrored
    assert source.is_closed_by(lake.table("a.b"))


def test_a_catalogs_table_that_a_ledger_projects_is_not_promoted_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = sql_catalog(tmp_path, monkeypatch)
    owner = ledger.open(str(tmp_path / "owner"))
    owner.create_database("a")
    theirs = owner.create_table("a.own", {"id": "BIGINT"})
    theirs.project("iceberg")
    (newest,) = Path(theirs.location.removeprefix("file://")).glob("metadata/0*.json")
    catalog.register_table("s.own", f"file://{newest}")
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", "here:s.own")
    with pytest.raises(UnsupportedError, match="is already written by a ledger's table"):
        lake.promote("a.b")
    assert lake.table("a.b").state.is_mirrored


def test_a_table_without_a_source_is_not_promoted(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path / "lake")
    lake.create_database("a")
    lake.create_table("a.own", {"id": "INT"})
    with pytest.raises(InvalidInputError, match="has no source to promote"):
        lake.promote("a.own")
    with pytest.raises(NotFoundError):
        lake.promote("a.none")


KILLS = [
    *((each, 0, 1, 3) for each in ("delta", "iceberg", "iceberg in a folder")),
    ("paimon", 0, 5, 10),
    *(pytest.param("paimon", first, 5, 10, marks=pytest.mark.long) for first in range(1, 5)),
]
"""Kinds of sources, and the writes to die before: the first, the distance of the others, and a
number that a promotion exceeds."""


RECORDED = {
    "delta": ("DeltaFollowed", 5),
    "iceberg": ("SnapshotCommitted", 1),
    "paimon": ("SnapshotCommitted", 5),
}
"""Count the events of a kind in the log of a promoted table, one commit after its import."""


@pytest.mark.parametrize(("make", "first", "stride", "fewest"), KILLS, indirect=["make"])
def test_a_kill_at_any_write_is_ended_by_asking_again(
    make: Make, first: int, stride: int, fewest: int, tmp_path: Path
) -> None:
    def mirrored(name: str) -> tuple[Source, LocalStore]:
        source = make(tmp_path / name)
        store = LocalStore(tmp_path / name / "lake")
        lake = lake_on(store, clock=now)
        lake.import_table("a.b", source.place, format_name=source.format.name)
        source.commit()
        return source, store

    source, store = mirrored("whole")
    whole = lake_on(store, clock=now)
    whole.promote("a.b", source=source.place)
    wanted = facts(whole)
    kind, count = RECORDED[source.format.name]
    assert (wanted.count("TablePromoted"), wanted.count(kind)) == (1, count)
    for writes in itertools.count(first, stride):
        source, store = mirrored(str(writes))
        origin = lake_on(store, clock=now).table("a.b").state.origin.source
        try:
            lake_on(DiesAfter(store, writes), clock=now).promote("a.b", source=source.place)
        except Died:
            again = lake_on(store, clock=now)
            assert again.table("a.b").state.origin.source == origin
            again.promote("a.b", source=source.place)
            assert facts(again) == wanted
            assert not again.promote("a.b", source=source.place).is_new
            assert facts(again) == wanted
            table = again.table("a.b")
            assert source.rows_of(table) == source.rows()
            assert source.is_closed_by(table)
            assert source.format.verify(table) == Difference()
        else:
            break
    assert writes > fewest


def killed_at_gate(
    lake: Ledger, source: Source, writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Promote in a process that dies where it closes the source, before or after that is done."""
    with monkeypatch.context() as dying:
        source.gate.replace(dying, lambda pass_gate: source.gate.dying(pass_gate, writes))
        with pytest.raises(Died):
            lake.promote("a.b")


@pytest.mark.parametrize("writes", [0, 1], ids=["before", "after"])
def test_a_kill_before_or_after_the_source_is_closed_is_ended_by_asking_again(
    make: Make, writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make(tmp_path / "whole")
    promoted = following(tmp_path / "promoted", whole)
    promoted.promote("a.b")

    source = make(tmp_path / "theirs")
    lake = following(tmp_path / "lake", source)
    killed_at_gate(lake, source, writes, monkeypatch)
    assert lake.table("a.b").state.is_mirrored
    lake.promote("a.b")
    assert facts(lake) == facts(promoted)
    assert source.commits() == whole.commits()
    assert source.rows_of(lake.table("a.b")) == source.rows()
    assert source.is_closed_by(lake.table("a.b"))


@pytest.mark.parametrize("make", FOLDERS, indirect=True)
@pytest.mark.parametrize("writes", [0, 1], ids=["before", "after"])
def test_an_import_after_such_a_kill_takes_no_more_than_what_closed_the_source(
    source: Source, writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = following(tmp_path / "lake", source)
    killed_at_gate(lake, source, writes, monkeypatch)
    done = lake.import_table("a.b", source.place, format_name=source.format.name)
    # Paimon's closing file repeats the last snapshot.
    assert done.transactions == (writes if source.format.name == "delta" else 0)
    lake.promote("a.b")
    assert source.rows_of(lake.table("a.b")) == source.rows()
    assert source.is_closed_by(lake.table("a.b"))


@pytest.mark.parametrize("make", FOLDERS, indirect=True)
def test_without_a_write_barrier_the_owner_is_instructed_to_stop_writers(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.gate.replace(monkeypatch, lambda _: lambda *_: None)
    lake = following(tmp_path / "lake", source)
    rows = source.rows()
    done = lake.promote("a.b")
    assert done.instructions[0].startswith(f"stop all writers of {source.place}")
    source.commit()
    assert source.rows_of(lake.table("a.b")) == rows


@pytest.mark.parametrize("named_at", ["promotion", "repetition"])
def test_a_repeated_promotion_updates_the_catalog_that_the_first_one_was_given(
    named_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = sql_catalog(tmp_path, monkeypatch)
    rows = pa.table({"id": [1, 2]})
    catalog.create_table("s.b", rows.schema).append(rows)
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", catalog.load_table("s.b").location())
    assert lake.promote("a.b", source="here:s.b").catalog == "here:s.b"
    lake.table("a.b").append(rows)
    again = None if named_at == "promotion" else "here:s.b"
    assert lake.promote("a.b", source=again).catalog == "here:s.b"
    assert catalog.load_table("s.b").scan().to_arrow().num_rows == 4

    catalog.load_table("s.b").append(rows)
    for call in (lake.promote, lake.plan_promotion):
        with pytest.raises(CommitConflictError, match="which the ledger did not write"):
            call("a.b", source=again)
