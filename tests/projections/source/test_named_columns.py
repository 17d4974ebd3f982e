"""Views give the columns that are named, as they give them among all others."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import InvalidInputError, Table, UpgradeRequiredError
from ledger.table_handle import handle_of
from projections.source.read_options import ReadOptions
from projections.source.span_planning import columns_of
from projections.source.span_reading import LogScan, SpanEnd
from projections.source.view import VIEWS, view_of
from projections.source.view_reading import scan_rows
from tests.lakes import data_file, lake_on, memory, orders
from tests.projections.source.folders import a_table_of, lake_in
from tests.projections.source.reading_all import rows_of
from tests.projections.statistics.lives import Life, a_table

SEEDS = st.integers(0, 10**6)


def lived(seed: int) -> Table:
    table = a_table()
    Life(table, seed).goes_on(15)
    return table


def named(table: Table, view: str, names: list[str]) -> list[dict[str, Any]]:
    whose = (str(table.identifier), table.state.table_id)
    found, end = view_of(view), SpanEnd(table.state.version)
    first = 0 if found.is_history else end.version
    batches = scan_rows(found, LogScan(handle_of(table), first, end), whose, None, names)
    return [row for batch in batches for row in batch.to_pylist()]


def changed(table: Table, was: bytes, shall_be: bytes) -> None:
    """Let another client have written version 1."""
    key = handle_of(table).log.layout.commit(1)
    body = handle_of(table).log.store.read(key)
    assert body is not None
    assert was in body
    handle_of(table).log.store.replace(key, body.replace(was, shall_be))


@settings(max_examples=5, deadline=None)
@given(SEEDS)
@pytest.mark.parametrize("view", VIEWS)
def test_named_columns_are_those_of_all(view: str, seed: int) -> None:
    table, rng = lived(seed), random.Random(seed)
    every = [each.name for each in view_of(view).columns]
    names = rng.sample(every, rng.randrange(1, len(every)))

    found = named(table, view, names)

    wanted = [{name: row[name] for name in names} for row in named(table, view, every)]
    assert found == wanted
    assert all([*row] == names for row in found)


@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_columns_of_events_say_what_the_json_of_each_says(seed: int) -> None:
    table = lived(seed)

    found = rows_of(table, "events")

    assert found
    for row in found:
        said = msgspec.json.decode(row["event"])
        path = said.get("fieldNames")
        assert (row["type"], row["field_id"], row["field_names"], row["snapshot_id"]) == (
            said["type"],
            said.get("fieldId"),
            path if path and isinstance(path[0], str) else None,
            said.get("snapshotId"),
        )


@pytest.mark.parametrize(
    "spelled", [b'{ "type": "commitSnapshot"', b'{"type":"commit\\u0053napshot"'], ids=repr
)
def test_a_kind_may_be_spelled_in_another_way(spelled: bytes) -> None:
    table = orders(lake_on(memory()))
    table.append([data_file("a.parquet")])
    changed(table, b'{"type":"commitSnapshot"', spelled)

    found = named(table, "events", ["type", "snapshot_id"])

    assert found[-1] == {"type": "commitSnapshot", "snapshot_id": 1}


def test_an_event_of_an_unknown_kind_is_rejected_whatever_is_asked_of_it() -> None:
    table = orders(lake_on(memory()))
    table.append([data_file("a.parquet")])
    changed(table, b'{"type":"commitSnapshot"', b'{"type":"commitSnapshotOfTomorrow"')

    with pytest.raises(UpgradeRequiredError, match="commitSnapshotOfTomorrow"):
        named(table, "events", ["version"])


def test_columns_are_asked_for_by_name(tmp_path: Path) -> None:
    a_table_of(lake_in(tmp_path), "shop.orders", 1)
    given = {"path": str(tmp_path), "table": "shop.orders"}

    asked = ReadOptions.of({**given, "columns": "event, version"})

    assert [each.name for each in columns_of(asked)] == ["event", "version"]
    with pytest.raises(InvalidInputError, match="no column 'verison'.*version"):
        columns_of(ReadOptions.of({**given, "columns": "verison"}))
    for wrong in ("", "version,", "version,version"):
        with pytest.raises(InvalidInputError, match="each once, separated by commas"):
            ReadOptions.of({**given, "columns": wrong})
