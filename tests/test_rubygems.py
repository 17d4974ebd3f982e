"""Seventeen years of a real system's schema, change by change, at their own dates.

The history is that of rubygems.org, from its public migrations (MIT): 226 changes of 65 tables.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import Ledger, Schema, Table
from ledger.model import format_type
from tests.lakes import lake_on, memory

HISTORY = json.loads((Path(ledger.__file__).parent / "docs/rubygems.json").read_text())

Columns = dict[str, str]


def applied(columns: Columns, change: dict[str, Any]) -> Columns:
    """Apply the change to names and types, in plain dictionaries."""
    match change["type"]:
        case "createTable":
            return {each["name"]: each["type"] for each in change["fields"]}
        case "addColumn":
            return {**columns, change["fieldNames"][0]: change["dataType"]}
        case "dropColumn":
            return {name: each for name, each in columns.items() if name != change["fieldNames"][0]}
        case "renameColumn":
            renamed = {change["fieldNames"][0]: change["newName"]}
            return {renamed.get(name, name): each for name, each in columns.items()}
        case "updateColumnType":
            return {**columns, change["fieldNames"][0]: change["newDataType"]}
        case "updateColumnNullability":
            name = change["fieldNames"][0]
            bare = columns[name].removesuffix(" NOT NULL")
            return {**columns, name: bare if change["newNullability"] else f"{bare} NOT NULL"}
        case other:
            raise AssertionError(other)


def columns_of(schema: Schema) -> Columns:
    return {each.name: format_type(each.type) for each in schema.fields}


@pytest.fixture(scope="module")
def imported() -> tuple[Ledger, dict[str, list[tuple[int, Columns, str]]]]:
    """The ledger, and for each table its columns after each of its changes, by plain code."""
    lake = lake_on(memory(), clock=iter(range(1_800_000_000_000, 2**60, 10)).__next__)
    lake.create_database("gems")
    expected: dict[str, list[tuple[int, Columns, str]]] = {}
    tables: dict[str, Table] = {}
    for entry in HISTORY["changes"]:
        name, change = entry["table"], entry["change"]
        options: dict[str, Any] = {
            "message": entry["message"],
            "effective_time": entry["timeMillis"],
        }
        if change["type"] == "createTable":
            schema = ledger.schema_from_json({"fields": change["fields"], "options": {}})
            tables[name] = lake.create_table(f"gems.{name}", schema, **options)
            expected[name] = []
        elif change["type"] == "dropTable":
            lake.drop_table(f"gems.{name}", **options)
            continue
        else:
            tables[name].alter([ledger.schema_change_from_json(change)], **options)
        before = expected[name][-1][1] if expected[name] else {}
        after = applied(before, change)
        expected[name].append((entry["timeMillis"], after, entry["message"]))
    return lake, expected


def test_the_whole_history_is_there(imported: tuple[Ledger, dict[str, list[Any]]]) -> None:
    _, expected = imported
    assert sum(len(each) for each in expected.values()) >= 200
    assert len(HISTORY["changes"]) == 226
    assert len(expected) == 65


def test_every_version_reads_as_it_was(
    imported: tuple[Ledger, dict[str, list[tuple[int, Columns, str]]]],
) -> None:
    lake, expected = imported
    for name in lake.tables("gems"):
        table = lake.table(f"gems.{name}")
        commits = list(table.events())
        assert len(commits) == len(expected[name])
        for version, (_, columns, message) in enumerate(expected[name]):
            assert columns_of(table.at(version=version).schema) == columns
            assert commits[version].transactions[0].message == message


def test_every_original_date_reads_as_it_was(
    imported: tuple[Ledger, dict[str, list[tuple[int, Columns, str]]]],
) -> None:
    lake, expected = imported
    dates = sorted({entry["timeMillis"] for entry in HISTORY["changes"]})
    for name in lake.tables("gems"):
        table = lake.table(f"gems.{name}")
        for date in dates:
            past = [columns for moment, columns, _ in expected[name] if moment <= date]
            if past:
                assert columns_of(table.at(timestamp=date).schema) == past[-1]


def test_the_author_of_the_last_change_is_known_of_every_column(
    imported: tuple[Ledger, dict[str, list[tuple[int, Columns, str]]]],
) -> None:
    lake, expected = imported
    for name in lake.tables("gems"):
        table, lived = lake.table(f"gems.{name}"), expected[name]
        newest = lived[-1][1]
        blamed = {each.path[0]: each for each in table.blame() if each.field_id is not None}
        assert [*blamed] == [*newest]
        for column, blame in blamed.items():
            # Since the newest of its causes it has been what it is; before, it was not.
            since = blame.causes[-1].version
            assert blame.causes[-1].message == lived[since][2]
            has = [(each.get(column)) for _, each, _ in lived]
            assert all(each == newest[column] for each in has[since:])
            assert since == 0 or has[since - 1] != newest[column]


def test_a_diff_from_any_version_leads_to_the_newest_and_each_change_is_listed_once(
    imported: tuple[Ledger, dict[str, list[tuple[int, Columns, str]]]],
) -> None:
    lake, expected = imported
    for name in lake.tables("gems"):
        table, lived = lake.table(f"gems.{name}"), expected[name]
        for version in range(0, len(lived), 3):
            changes = table.diff(version).to_json()
            is_same = table.at(version=version).schema.fields == table.at().schema.fields
            assert (not changes) == is_same
            back = table.plan_restore(version)
            # A change forbidden forwards is forbidden backwards, and reported.
            forbidden = ("cannot", "may hold NULL already")
            refused = any(each in back.reasons[0] for each in forbidden) if back.reasons else False
            assert back.is_possible or not changes or refused, back.reasons
    said = {row["message"] for row in lake.history()}
    there = set(lake.tables("gems"))
    assert {entry["message"] for entry in HISTORY["changes"] if entry["table"] in there} <= said
