"""`lakeledger expire` of tables whose snapshot ids a source or an engine gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import ledger
from ledger import FileChange, Ledger, Table
from tests.cli.conftest import Ran, Run
from tests.projections.iceberg.importing import writing as iceberg
from tests.projections.iceberg.serving.served_table import Served
from tests.projections.importing.sources import OfDelta, OfPaimon

NAME = "a.b"


def native(folder: Path) -> Ledger:
    """Return a ledger with a table of its own: four snapshots."""
    lake = ledger.open(folder / "lake")
    lake.create_database("a")
    table = lake.create_table(NAME, {"id": "BIGINT"})
    for number in range(4):
        table.append([FileChange(path=f"{number}.parquet", record_count=1, file_size_in_bytes=9)])
    return lake


def mirrored_iceberg(folder: Path) -> Ledger:
    """Return a ledger that follows an Iceberg table: three snapshots."""
    theirs = iceberg.created(folder / "t")
    for number in range(3):
        iceberg.appended(theirs, number, name=["a"])
    lake = ledger.open(folder / "lake", allowed_locations=[str(folder)])
    lake.import_table(NAME, theirs.metadata_location)
    return lake


def promoted_iceberg(folder: Path) -> Ledger:
    """Return a ledger with a promoted Iceberg table: three random ids, then 1."""
    lake = mirrored_iceberg(folder)
    lake.promote(NAME)
    return lake


def served_promoted_iceberg(folder: Path) -> Ledger:
    """Return a ledger with a promoted Iceberg table that engines own: four snapshots."""
    lake = mirrored_iceberg(folder)
    lake.promote(NAME, protocol="iceberg")
    Served(lake).engine().append(pa.table({"id": [7], "name": ["z"]}))
    return lake


def served_iceberg(folder: Path) -> Ledger:
    """Return a ledger with an Iceberg table that an engine created: four random ids."""
    served = Served.created(folder)
    for number in range(4):
        served.engine_appends(number)
    return served.lake


def promoted_delta(folder: Path) -> Ledger:
    """Return a ledger with a promoted Delta table: four snapshots."""
    source = OfDelta.made(folder / "d")
    while source.commits() < 3:
        source.commit()
    lake = ledger.open(folder / "lake")
    lake.import_table(NAME, source.place, format_name="delta")
    lake.promote(NAME)
    return lake


def promoted_paimon(folder: Path) -> Ledger:
    """Return a ledger with a promoted Paimon table: several snapshots."""
    source = OfPaimon.made(folder / "w" / "s.db" / "p")
    for _ in range(3):
        source.commit()
    lake = ledger.open(folder / "lake")
    lake.import_table(NAME, source.place, format_name="paimon")
    lake.promote(NAME)
    return lake


MAKERS = [
    native,
    promoted_iceberg,
    served_promoted_iceberg,
    served_iceberg,
    promoted_delta,
    promoted_paimon,
]


@pytest.fixture(params=MAKERS, ids=lambda make: make.__name__)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    make: Callable[[Path], Ledger] = request.param
    return make(tmp_path).table(NAME)


@pytest.fixture
def there(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("LAKELEDGER_ALLOWED_LOCATIONS", str(tmp_path))

    def ran(*argv: object) -> Ran:
        return run(*argv, "--ledger", tmp_path / "lake")

    return ran


def untagged(table: Table, newest_first: Sequence[int]) -> list[int]:
    held = table.state.held_snapshot_ids
    return [each for each in reversed(newest_first) if each not in held]


def test_the_newest_snapshots_are_kept_by_their_number(table: Table, there: Run) -> None:
    ids = table.state.snapshot_ids
    assert len(ids) >= 3
    for keep in (100, len(ids)):
        ran = there("expire", NAME, "--keep", keep, "--yes")
        assert (ran.code, "there is nothing to expire" in ran.out) == (0, True), ran
        assert table.state.snapshot_ids == ids
    line = ("expire", NAME, "--keep", "2", "--output", "json")

    planned = there(*line).document
    done = there(*line, "--yes", "--commit-id", "k").document
    again = there(*line, "--yes", "--commit-id", "k").document

    assert planned["expired"] == untagged(table, ids[2:])
    assert planned["before"] == ids[1]
    assert done == {**planned, "dryRun": False, "version": table.state.version, "repeated": False}
    assert again == {**done, "repeated": True}
    assert [each for each in ids if each not in done["expired"]] == [*table.state.snapshot_ids]
    assert "there is nothing to expire" in there("expire", NAME, "--keep", "2").out
    assert there("verify").code == 0


def test_the_snapshot_that_was_current_at_a_time_is_kept_with_all_later_ones(
    table: Table, there: Run
) -> None:
    ids = table.state.snapshot_ids
    states = [table.at(version=each).state for each in range(table.state.version + 1)]
    moment = next(each.effective_millis for each in states if each.last_snapshot_id == ids[1])
    older = ids[ids.index(table.at(timestamp=moment).state.last_snapshot_id) + 1 :]
    line = ("expire", NAME, "--output", "json", "--older-than", str(moment))

    planned = there(*line).document
    assert planned["expired"] == untagged(table, older) != []
    done = there(*line, "--yes").document
    assert (done["before"], done["expired"]) == (planned["before"], planned["expired"])
    assert [each for each in ids if each not in done["expired"]] == [*table.state.snapshot_ids]
    for age in (str(moment), "3000d"):
        ran = there("expire", NAME, "--older-than", age, "--yes")
        assert (ran.code, "there is nothing to expire" in ran.out) == (0, True), ran


def test_tagged_snapshots_are_kept_and_the_result_says_so_as_the_plan_did(
    tmp_path: Path, there: Run
) -> None:
    table = promoted_iceberg(tmp_path).table(NAME)
    newest, third, second, first = table.state.snapshot_ids
    table.create_tag("second", snapshot=second)
    line = ("expire", NAME, "--keep", "2")

    planned = there(*line).out
    done = there(*line, "--yes").out
    expected = f"would expire 1 snapshot before {third}: {first}"
    assert expected in planned
    assert expected.replace("would expire", f"version {table.state.version} expired") in done
    assert all(str(second) in each for each in (planned, done))
    assert table.state.snapshot_ids == (newest, third, second)


def test_a_preview_rejects_a_mirrored_table_as_the_expiry_does(tmp_path: Path, there: Run) -> None:
    mirrored_iceberg(tmp_path)
    shown = there("expire", NAME, "--keep", "1")

    assert shown == there("expire", NAME, "--keep", "1", "--yes")
    assert (shown.code, shown.out) == (1, "")
    assert "takes no commits of its own" in shown.err


def test_a_promoted_table_without_snapshots_has_nothing_to_expire(
    tmp_path: Path, there: Run
) -> None:
    theirs = iceberg.created(tmp_path / "t")
    lake = ledger.open(tmp_path / "lake")
    lake.import_table(NAME, theirs.metadata_location)
    lake.promote(NAME)
    for number, option in enumerate((("--keep", "3"), ("--older-than", "1d"))):
        ran = there("expire", NAME, *option, "--yes", "--commit-id", f"k{number}")
        assert ran.code == 0, ran
        assert "there is nothing to expire" in there("expire", NAME, *option).out
    assert lake.table(NAME).state.snapshot_ids == ()
