"""Changes of what a table holds: which of them a table takes that others own."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import fields

from ledger import InvalidInputError, LedgerError, Schema
from ledger.decide import OPERATIONS, RecentlyTouched, StateOperation, TableIntent
from ledger.decide.changes import MetBranch
from ledger.files import LiveFiles
from ledger.formats import INSTALLED
from ledger.history.past import TablePast
from ledger.model import StatisticsFile, Totals
from ledger.table_handle import handle_of
from tests.evolution.born import builder_of
from tests.lakes import lake_on, memory, orders

STATISTICS = StatisticsFile(
    snapshot_id=1,
    statistics_path="s",
    file_size_in_bytes=1,
    file_footer_size_in_bytes=1,
    blob_metadata=(),
)
VALUES: dict[str, Any] = {
    "CommitKind": "APPEND",
    "StatisticsFile": STATISTICS,
    "MetBranch": MetBranch("b", 1),
    "Totals": Totals(),
    "int": 1,
    "str": "a",
    "Literal['ledger', 'served']": "ledger",
}
ROWS = [each for each in OPERATIONS if isinstance(each, StateOperation)]


def sample(kind: Any) -> Any:
    """Return a change of a kind with some value for each attribute that has no default."""
    needed = (each for each in fields(kind) if each.required)
    return kind(**{each.name: VALUES[kind.__annotations__[each.name]] for each in needed})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.asked.__name__)
def test_a_table_that_others_own_takes_no_change_of_what_it_holds_but_its_end_and_its_times(
    row: StateOperation,
) -> None:
    table = orders(lake_on(memory()))
    past, touched = (
        TablePast(
            handle_of(table).log,
            LiveFiles(handle_of(table).log),
            handle_of(table).past.open_data_file,
        ),
        RecentlyTouched(lambda _: ()),
    )
    theirs = builder_of(0).freeze()
    assert theirs.is_mirrored
    refused = ""
    try:
        TableIntent([sample(row.asked)], theirs, touched, past, INSTALLED)
    except InvalidInputError as error:
        refused = error.kind or ""

    its_own = {"CorrectClock", "DropTable"}
    assert (refused == "MIRRORED") == (row.asked.__name__ not in its_own)
    assert ("mirrored" in row.owners) == (row.asked.__name__ in its_own)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.asked.__name__)
def test_a_served_table_takes_every_change_but_lists_of_files(row: StateOperation) -> None:
    lake = lake_on(memory())
    table = orders(lake, Schema.of({"id": "BIGINT"}, options={"ledger.formats": "iceberg"}))
    table.start_serving()
    past, touched = (
        TablePast(
            handle_of(table).log,
            LiveFiles(handle_of(table).log),
            handle_of(table).past.open_data_file,
        ),
        RecentlyTouched(lambda _: ()),
    )
    refused = ""
    try:
        TableIntent([sample(row.asked)], table.state, touched, past, INSTALLED)
    except LedgerError as error:
        refused = getattr(error, "kind", None) or ""

    of_files = {"CommitSnapshot", "FastForward", "Rollback"}
    assert (refused == "SERVED") == (row.asked.__name__ in of_files)
