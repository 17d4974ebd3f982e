"""Several processes find what one finds, whatever is damaged and wherever spans meet."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ledger import SetOption
from ledger.history.verifying import Expected, Finding, Subject, Verification
from ledger.history.verifying.spans import Workers
from ledger.state import FOLD_VERSION
from ledger.table_handle import handle_of
from tests.history.ledgers import Place, flip
from tests.lakes import data_file, orders, ticking

COMMITS = 2_500
CHECKPOINTS = f"caches/{FOLD_VERSION}"


def no_options(_url: str) -> Mapping[str, Any]:
    return {}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A table of three segments and a tail."""
    place = Place(tmp_path_factory.mktemp("several"))
    table = orders(place.lake(ticking()))
    for number in range(1, COMMITS + 1):
        if number % 10 == 0:
            table.append([data_file(f"f{number}.parquet")], commit_id=f"id-{number}")
        elif number % 400 == 5:
            table.delete_files([f"f{number - 5}.parquet"] if number > 400 else [])
        else:
            table.alter([SetOption("k", str(number))])
    return place


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(no_options, count=2) as found:
        yield found


def nothing(_place: Place) -> None:
    """Leave everything as it is."""


def no_checkpoints(place: Place) -> None:
    for path in (place.stream / CHECKPOINTS).glob("*.json"):
        path.unlink()


def one_checkpoint_less(place: Place) -> None:
    (place.stream / CHECKPOINTS / f"{800:020d}.json").unlink()


def a_checkpoint_of_another_state(place: Place) -> None:
    """One that is whole, and begins a span."""
    folder = place.stream / CHECKPOINTS
    shutil.copy(folder / f"{1500:020d}.json", folder / f"{1600:020d}.json")


def checkpoints_that_lie(place: Place) -> None:
    """Whole ones, which say of a column what no commit has said."""
    for path in (place.stream / CHECKPOINTS).glob("*.json"):
        before = path.read_bytes()
        check = msgspec.json.decode(before)["check"]
        record = before.partition(b'"state":')[2]
        lie = record.replace(b'"name":"amount"', b'"name":"burden"')
        assert lie != record
        found = (hashlib.sha256(each[:-1]).hexdigest() for each in (record, lie))
        assert next(found) == check
        path.write_bytes(before.replace(record, lie).replace(check.encode(), next(found).encode()))


def no_caches(place: Place) -> None:
    shutil.rmtree(place.stream / "caches")
    shutil.rmtree(place.stream / "segments")


def a_flip_where_spans_meet(place: Place) -> None:
    flip(place.commit(800), 120, 1)


def another_flip(place: Place) -> None:
    flip(place.commit(801), 250, 1)


def a_gap_over_two_spans(place: Place) -> None:
    for version in range(700, 1_700):
        place.commit(version).unlink()


def a_gap_at_the_beginning(place: Place) -> None:
    for version in range(5):
        place.commit(version).unlink()


def a_wrong_index_and_a_wrong_run(place: Place) -> None:
    folder = place.stream / CHECKPOINTS
    flip(next((folder / "keys").glob("*-*1300.idx")), 50, 3)
    flip(next((folder / "files").glob("*-*900.parquet")), 500, 3)


DAMAGES: tuple[Callable[[Place], None], ...] = (
    *(nothing, no_checkpoints, one_checkpoint_less, a_checkpoint_of_another_state),
    *(checkpoints_that_lie, no_caches),
    *(a_flip_where_spans_meet, another_flip, a_gap_over_two_spans, a_gap_at_the_beginning),
    a_wrong_index_and_a_wrong_run,
)


def seen(place: Place, workers: Workers | None) -> tuple[list[Finding], Any]:
    found: Subject[Any, Any] = place.subject()
    head = Expected("sha256:" + 64 * "0")
    verification: Verification[Any, Any] = Verification(found, [head], workers=workers)
    findings = list(verification.run())
    return findings, (verification.digest, verification.first_digest, verification.state)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_several_processes_find_what_one_finds(
    template: Place,
    workers: Workers,
    damage: Callable[[Place], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ledger.history.verifying.spans.WORTH", 1_000)
    monkeypatch.setattr("ledger.history.verifying.verify._TOGETHER", 2)
    place = Place(Path(shutil.copytree(template.folder, tmp_path / "lake")))
    damage(place)

    alone = seen(place, None)

    assert seen(place, workers) == alone
    assert bool(alone[0]) == (damage is not nothing)


def test_a_log_whose_processes_die_is_verified_here(
    template: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.history.verifying.spans.WORTH", 1_000)
    monkeypatch.setattr("ledger.history.verifying.spans._verify_spans", _dies)
    with Workers(no_options, count=2) as workers:
        assert seen(template, workers)[0] == []


def _dies(*_: object) -> None:
    import os

    os._exit(9)


def test_a_store_in_memory_is_verified_in_one_process() -> None:
    from tests.lakes import lake_on, memory

    table = orders(lake_on(memory()))
    subject: Subject[Any, Any] = Subject("t", handle_of(table).log, has_files=True)
    with Workers(no_options) as workers:
        assert not workers.is_worth_processes(subject, 10**9)
