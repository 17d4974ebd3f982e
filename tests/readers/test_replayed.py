"""A table replayed to a version: into steps, lines, a second ledger, and files of every format.

What readers of the formats see in a folder of its own is what the ledger says of that version.
"""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

import ledger
from ledger import (
    AddColumn,
    AlreadyExistsError,
    DropColumn,
    InvalidInputError,
    NotFoundError,
    RenameColumn,
    Schema,
    StoreError,
    Table,
)
from ledger.relocation.replaying import Step
from ledger.state import TableStream
from ledger.table_handle import handle_of
from tests.pypaimon_or_skip import CatalogFactory
from tests.readers.engines import duckdb_connection
from tests.readers.lakehouse import add_rows

FORMATS = "iceberg,paimon,delta"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Rows before and after a rename, an added column and a dropped one, with a rollback."""
    lake = ledger.open(str(tmp_path_factory.mktemp("replayed") / "lake"), author="ann")
    lake.create_database("shop")
    options = {"ledger.formats": FORMATS}
    made = lake.create_table("shop.t", Schema.of({"id": "BIGINT", "a": "INT"}, options=options))
    # One name has to find a column in all of Delta's files.
    made.alter([RenameColumn(("a",), "b")])
    add_rows(made, "one/1.parquet", [{"id": 1, "b": 10}, {"id": 2, "b": 20}])
    add_rows(made, "two/2.parquet", [{"id": 3, "b": 30}])
    made.alter([AddColumn(("c",), "STRING")])
    made.delete_files("one/1.parquet")
    made.rollback(snapshot=2)
    made.alter([DropColumn(("b",))])
    return made


def rows_of(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: int(row["id"]))


def by_iceberg(folder: Path) -> list[dict[str, Any]]:
    version = (folder / "metadata" / "version-hint.text").read_text()
    found = StaticTable.from_metadata(str(folder / "metadata" / f"v{version}.metadata.json"))
    rows: list[dict[str, Any]] = found.scan().to_arrow().to_pylist()
    return rows


def by_paimon(folder: Path) -> list[dict[str, Any]]:
    warehouse, database, name = folder.parents[1], folder.parent.name, folder.name
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    read = catalog.get_table(f"{database.removesuffix('.db')}.{name}").new_read_builder()
    splits = read.new_scan().plan().splits()
    rows: list[dict[str, Any]] = read.new_read().to_arrow(splits).to_pylist()
    return rows


def test_steps_are_the_commits_with_the_table_around_each(table: Table) -> None:
    steps: list[Step] = []
    newest = table.state.version

    found = table.replay(steps.append)

    assert (found.first, found.last) == (0, newest)
    assert [each.version for each in steps] == [*range(newest + 1)]
    assert steps[0].before is None
    assert steps[0].diff is None
    for before, after in pairwise(steps):
        assert after.before == before.after
    for each in steps:
        assert each.after == table.at(version=each.version).state
    renamed = next(each for each in steps if each.diff and each.diff.changes)
    assert renamed.diff is not None
    assert renamed.diff.to_json() == [{"type": "renameColumn", "fieldNames": ["a"], "newName": "b"}]


@pytest.mark.parametrize("until", [0, 3])
def test_a_replay_ends_where_it_is_asked_to_and_reads_no_further(table: Table, until: int) -> None:
    steps = iter(table.replay(until=until))
    assert [each.version for each in steps] == [*range(until + 1)]
    one = next(iter(table.replay(first=until)))
    assert one.after == table.at(version=until).state
    assert table.replay(until=table.at(snapshot=1)).last == table.at(snapshot=1).state.version
    with pytest.raises(NotFoundError, match="version 99"):
        table.replay(until=99)
    with pytest.raises(InvalidInputError, match="comes after"):
        table.replay(first=3, until=2)


@pytest.mark.parametrize("version", [2, 4, 7])
@pytest.mark.parametrize("name", ["iceberg", "paimon"])
def test_files_as_of_a_version_are_read_as_the_ledger_says(
    table: Table, tmp_path: Path, name: str, version: int
) -> None:
    folder = tmp_path / "warehouse" / "away.db" / "t"

    where = table.replay(until=version).into_files(name, str(folder))

    read = {"iceberg": by_iceberg, "paimon": by_paimon}[name]
    wanted = table.at(version=version).to_arrow().to_pylist()
    assert where == folder.as_uri() or where.endswith(str(folder))
    assert rows_of(read(folder)) == rows_of(wanted)
    # Asked again, it makes what is there already.
    table.replay(until=version).into_files(name, str(folder))
    assert rows_of(read(folder)) == rows_of(wanted)


@pytest.mark.parametrize("version", [2, 4, 7])
def test_deltas_log_as_of_a_version_leads_to_the_files_where_they_are(
    table: Table, tmp_path: Path, version: int
) -> None:
    table.replay(until=version).into_files("delta", str(tmp_path / "away"))

    wanted = rows_of(table.at(version=version).to_arrow().to_pylist())
    # delta-rs takes no file outside of the table's folder.
    with duckdb_connection("delta") as connection:
        query = "select * from delta_scan($1)"
        read = connection.execute(query, [str(tmp_path / "away")]).to_arrow_table()
    assert rows_of(read.to_pylist()) == wanted


def test_the_table_itself_is_not_touched(table: Table, tmp_path: Path) -> None:
    folder = Path(str(table.location).removeprefix("file://"))
    before = sorted(folder.rglob("*"))
    for name in FORMATS.split(","):
        table.replay().into_files(name, str(tmp_path / name))

    assert sorted(folder.rglob("*")) == before


def test_a_folder_that_holds_something_else_is_left_as_it_is(table: Table, tmp_path: Path) -> None:
    table.replay(until=2).into_files("iceberg", str(tmp_path))
    hint = tmp_path / "metadata" / "v2.metadata.json"
    hint.write_text("{}")

    with pytest.raises(StoreError):
        table.replay(until=2).into_files("iceberg", str(tmp_path))
    assert hint.read_text() == "{}"


def test_a_second_ledger_holds_the_table_up_to_a_version_and_continues(
    table: Table, tmp_path: Path
) -> None:
    place = str(tmp_path / "second")
    table.replay(until=3).into_ledger(place)
    second = ledger.open(place)
    copied = second.table("shop.t")
    assert copied.state == table.at(version=3).state
    assert second.ledger_id != ledger.open(handle_of(table).ledger_url).ledger_id

    table.replay(until=5).into_ledger(place)
    assert ledger.open(place).table("shop.t").state == table.at(version=5).state
    with pytest.raises(InvalidInputError, match="the ledger itself"):
        table.replay().into_ledger(handle_of(table).ledger_url)
    other = ledger.open(str(tmp_path / "other"))
    other.create_database("x")
    with pytest.raises(AlreadyExistsError):
        table.replay(until=3).into_ledger(other.url)


def test_lines_are_the_commits_byte_for_byte(table: Table) -> None:
    out = io.BytesIO()

    done = table.replay(until=4).into_lines(out)

    assert ("shop.t", 4) in done.streams
    bodies = [read.body for read in handle_of(table).log.commits(0, 4)]
    assert [each for each in out.getvalue().splitlines(keepends=True) if each in bodies] == bodies
    with pytest.raises(InvalidInputError, match="no whole log"):
        table.replay(first=1).into_lines(out)


def test_a_fold_of_the_steps_events_is_the_state_that_they_show(table: Table) -> None:
    builder = TableStream().builder(None)
    for step in table.replay():
        builder.commit(step.commit)
        assert builder.freeze() == step.after
