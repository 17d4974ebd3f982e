"""Files of an older renderer are reported, rewritten and deleted; never mixed with new ones."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import ledger
from ledger import DamagedLogError, FileChange, NotFoundError, Table
from ledger.table_handle import handle_of
from projections.iceberg import Names, advance, expected, position, rebuild, verify
from projections.iceberg.materialise import project, projected
from projections.iceberg.position import RENDERER
from projections.materialising import outputs_of
from tests.faults import Died, DiesAfter
from tests.lakes import lake_on, memory
from tests.projections.iceberg.projecting import Left, is_consistent

DATA = Path(__file__).parents[2] / "data/iceberg"
TABLES = ((3, "v3"), (4, "v3"))
"""Tables by the renderer that projected them; their files say the ids of their rows."""


@pytest.fixture(params=TABLES, ids=str)
def older(request: pytest.FixtureRequest) -> tuple[int, str]:
    """An older renderer, and the name of a table that it projected."""
    found: tuple[int, str] = request.param
    return found


@pytest.fixture
def table(older: tuple[int, str], tmp_path: Path) -> Table:
    """That table, with a rollback, a tag and an expiry in its log."""
    renderer, name = older
    with zipfile.ZipFile(DATA / f"renderer-{renderer}.zip") as files:
        files.extractall(tmp_path / "lake")
    lake = ledger.open(str(tmp_path / "lake"))
    lake.record_move()
    return lake.table(f"shop.{name}")


def test_files_of_an_older_renderer_are_reported(older: tuple[int, str], table: Table) -> None:
    stood = position.FILE.load(handle_of(table).log.store, handle_of(table).log.layout)
    assert (stood.renderer, stood.version) == (older[0], table.state.version)
    with pytest.raises(NotFoundError, match="older renderer; write them again: lakeledger project"):
        verify(handle_of(table))


def test_they_are_all_known_for_the_ledgers_own(older: tuple[int, str], table: Table) -> None:
    own = projected(outputs_of(handle_of(table)), Names(table.state.table_id, older[0]))
    assert own == Left.by(table).files.keys() - {"metadata/version-hint.text"}


@pytest.mark.parametrize("make", [project, advance, rebuild])
@pytest.mark.parametrize("has_more", [False, True], ids=["as it was", "with more commits"])
def test_they_are_made_anew(
    older: tuple[int, str], table: Table, make: object, *, has_more: bool
) -> None:
    names = Names(table.state.table_id, older[0])
    versions = {names.version_of(path) for path in Left.by(table).files}
    if has_more:
        table.append([FileChange(path="e", record_count=1, file_size_in_bytes=1, field_ids=True)])
    assert callable(make)
    make(handle_of(table))
    if make is rebuild:
        # It restores the version that the files stood at.
        project(handle_of(table))

    left = Left.by(table)
    assert left.newest(table) == expected(handle_of(table))
    assert verify(handle_of(table)).is_empty
    assert verify(handle_of(table)).foreign == ()
    stood = position.FILE.load(handle_of(table).log.store, handle_of(table).log.layout)
    assert (stood.renderer, stood.garbage) == (RENDERER, ())
    names = Names(table.state.table_id)
    assert versions - {None} <= {names.version_of(path) for path in left.files}


def test_readers_see_whole_tables_whenever_the_renewal_is_killed(table: Table) -> None:
    bodies = {
        key: handle_of(table).log.store.read(key) or b""
        for key in handle_of(table).log.store.keys("")
    }
    name = str(table.identifier)
    newest = table.state.version
    for writes in range(200):
        store = memory()
        for key, body in bodies.items():
            store.create(key, body)
        try:
            project(handle_of(lake_on(DiesAfter(store, writes)).table(name)))
        except Died:
            _assert_whole(lake_on(store).table(name), newest)
        else:
            assert writes > 10
            return
        again = lake_on(store).table(name)
        project(handle_of(again))
        assert Left.by(again).newest(again) == expected(handle_of(again))
        assert verify(handle_of(again)).foreign == ()
    pytest.fail("it never came to an end")


def _assert_whole(table: Table, version: int) -> None:
    """Assert that whatever Hadoop's name leads to is there, be it the old files or the new ones."""
    left = Left.by(table)
    metadata = left.files[f"metadata/v{version}.metadata.json"]
    location = metadata.split(b'"location":"')[1].split(b'"')[0].decode()
    assert is_consistent(Left(left.files, location))


def test_a_log_that_was_cut_below_the_files_is_rejected(table: Table) -> None:
    project(handle_of(table))
    store, key = handle_of(table).log.store, handle_of(table).log.layout.commit(table.state.version)
    assert store.read(key) is not None
    store.delete(key)
    cut = ledger.open(handle_of(table).ledger_url).table(str(table.identifier))
    found = verify(handle_of(cut))
    assert position.FILE.key(handle_of(table).log.layout) in found.changed
    with pytest.raises(DamagedLogError, match="are at version 8, and its log ends at version 7"):
        project(handle_of(cut))

    rebuild(handle_of(cut))
    assert verify(handle_of(cut)).is_empty
    assert Left.by(cut).newest(cut) == expected(handle_of(cut))
