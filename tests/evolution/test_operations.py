"""Every kind of change and of fact has one row, and no other code knows the kinds."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from ledger import InvalidInputError, Schema, SchemaChange, evolve
from ledger.decide import (
    OPERATIONS,
    AllowIncompatibleChanges,
    CatalogRequest,
    CorrectClock,
    OtherChange,
    StateOperation,
    TableChange,
)
from ledger.decide.catalog import DECIDED
from ledger.decide.catalog_facts import CATALOG_FACTS
from ledger.decide.operation import LayoutOperation, SchemaOperation
from ledger.decide.operations import BY_ASKED, BY_FACT, operation
from ledger.events import CatalogEvent, ClockCorrected, SpecChange, TableEvent, ViewChange
from tests.lakes import lake_on, memory, orders

ROOM = Path(__file__).parents[2] / "ledger/evolution"
FROZEN = {"fold/schema_builder.py", "fold/table_builder.py", "catalog/builder.py"}
"""The fold's own tables: an edit of a rule edits no fold."""


def kinds(union: object) -> set[type]:
    return {
        kind
        for each in get_args(union)
        for kind in (kinds(each) if get_args(each) else {each})
        if isinstance(kind, type)
    }


def test_every_change_that_can_be_asked_for_has_one_row() -> None:
    assert kinds(TableChange) - {AllowIncompatibleChanges} == set(BY_ASKED)
    assert len({each.asked for each in OPERATIONS if each.asked}) == len(BY_ASKED)


def test_every_fact_of_a_tables_stream_has_one_row() -> None:
    assert kinds(TableEvent) == set(BY_FACT)
    assert sum(len(each.facts) for each in OPERATIONS) == len(BY_FACT)


def test_every_fact_of_the_catalogs_stream_has_one_row_and_so_has_every_request() -> None:
    assert kinds(CatalogEvent) == set(CATALOG_FACTS)
    assert kinds(CatalogRequest) == set(DECIDED)
    assert all(
        CATALOG_FACTS[each].says is BY_FACT[each].says for each in BY_FACT.keys() & CATALOG_FACTS
    )


def test_a_row_is_of_the_family_that_its_change_is_of() -> None:
    families: dict[type, set[type]] = {}
    for kind, row in BY_ASKED.items():
        families.setdefault(type(row), set()).add(kind)
    assert families == {
        SchemaOperation: kinds(SchemaChange),
        LayoutOperation: kinds(SpecChange),
        StateOperation: kinds(OtherChange),
    }


def test_what_is_no_change_is_refused_as_such() -> None:
    with pytest.raises(InvalidInputError, match="no SchemaChange"):
        orders(lake_on(memory())).alter([object()])  # type: ignore[list-item] # the point
    with pytest.raises(InvalidInputError, match="is no change of a table; give one, such as"):
        operation(object(), SchemaOperation)
    with pytest.raises(InvalidInputError, match="no SchemaChange"):
        evolve(Schema.of({"id": "INT"}), [object()])  # type: ignore[list-item] # the point


def test_no_other_place_distinguishes_kinds_of_changes_or_facts() -> None:
    # The catalog, which has kinds of its own, has these, too.
    shared = {*get_args(ViewChange), CorrectClock, ClockCorrected}
    names = {each.__name__ for each in (*BY_ASKED, *BY_FACT) if each not in shared}
    for path in ROOM.rglob("*.py"):
        if str(path.relative_to(ROOM)) in FROZEN:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Match):
                matched = {
                    found.cls.id
                    for each in node.cases
                    for found in ast.walk(each.pattern)
                    if isinstance(found, ast.MatchClass) and isinstance(found.cls, ast.Name)
                }
                assert len(matched & names) < 2, (path.name, node.lineno)
