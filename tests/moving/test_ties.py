"""Possible ties are found by a few columns of a table's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import SetOption, Table
from ledger.files import live as live_tables
from ledger.locations import is_absolute
from ledger.log import CHECKPOINT_INTERVAL
from ledger.relocation import moving as ties
from ledger.relocation.moving import location_references_of
from ledger.table_handle import handle_of
from tests.lakes import data_file, lake_on, memory, orders

PLACE = "file:///lake"

_PATHS = st.tuples(
    st.sampled_from(["", "file", "FiLe", "s3", "\nfile"]),
    st.sampled_from(["", ":", ":/", "://", ":///", "://localhost/", "/"]),
    st.text(max_size=3),
).map("".join)


@given(path=_PATHS)
def test_every_path_that_is_absolute_may_be_a_tie(path: str) -> None:
    looks_so = pc.match_substring_regex(pa.array([path]), ties._MAY_BE_ABSOLUTE)[0].as_py()
    assert looks_so or not is_absolute(path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str] | None]:
    """The columns that each reading of a table's files asks for; None: all."""
    found: list[Sequence[str] | None] = []

    def change_tables(
        log: Any, state: Any, columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        found.append(columns)
        return live_tables.change_tables(log, state, columns)

    monkeypatch.setattr(ties, "change_tables", change_tables)
    return found


def named_by(table: Table) -> list[str]:
    return [each.what for each in location_references_of(handle_of(table), [PLACE])]


def test_a_tie_is_found_by_a_few_columns_in_runs_and_behind_them(
    asked: list[Sequence[str] | None],
) -> None:
    table = orders(lake_on(memory()))
    table.append(
        [
            data_file(f"{PLACE}/old.parquet"),
            data_file(f"{PLACE}/gone.parquet"),
            data_file("a.parquet"),
        ]
    )
    for number in range(CHECKPOINT_INTERVAL):
        table.alter([SetOption("team.option", str(number))])
    assert handle_of(table).log.store.read(
        handle_of(table).log.layout.file_run(0, CHECKPOINT_INTERVAL)
    )
    assert len(named_by(table)) == 2

    table.delete_files([f"{PLACE}/gone.parquet"])
    table.append([data_file(f"{PLACE}/new.parquet"), data_file("b.parquet")])

    assert named_by(table) == [
        f"its file {PLACE}/{each}.parquet is named by an absolute URL" for each in ("old", "new")
    ]
    table.delete_files([f"{PLACE}/old.parquet", f"{PLACE}/new.parquet"])
    asked.clear()
    assert named_by(table) == []
    assert asked == [("kind", "path", "content")]
