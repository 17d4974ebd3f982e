"""A table's origin answers what differs by where the table comes from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger import InvalidInputError, NotFoundError, UnsupportedError
from ledger.model.snapshot import BRANCH_IDS
from ledger.state import (
    DeltaOrigin,
    IcebergOrigin,
    NativeOrigin,
    PaimonOrigin,
    TableState,
    TableStream,
)
from tests.evolution import folds
from tests.evolution.born import FIRST, OWN, SECOND, builder_of

STREAM = TableStream()
LIVES = ("iceberg", "paimon", "delta")
KINDS: dict[str, Any] = {"iceberg": IcebergOrigin, "paimon": PaimonOrigin, "delta": DeltaOrigin}


def imported(name: str) -> TableState:
    return builder_of(life=name).freeze() if name != "iceberg" else builder_of().freeze()


def native() -> TableState:
    return folds.grown().freeze()


def test_a_record_without_an_origin_is_of_a_native_table() -> None:
    record = STREAM.encode_state(native())
    assert "origin" not in json.loads(record)
    assert STREAM.decode_state(record).origin == NativeOrigin()


@pytest.mark.parametrize("name", LIVES)
def test_a_record_keeps_the_origin_under_its_formats_name(name: str) -> None:
    state = imported(name)
    record = STREAM.encode_state(state)
    assert json.loads(record)["origin"]["type"] == name == state.origin.format_name
    assert STREAM.decode_state(record).origin == state.origin


@pytest.mark.parametrize("name", LIVES)
@pytest.mark.parametrize("wanted", LIVES)
def test_the_data_of_one_format_is_given_for_tables_of_that_format_alone(
    name: str, wanted: str
) -> None:
    state = imported(name)
    if name == wanted:
        assert state.origin_of_kind(KINDS[wanted]) is state.origin
    else:
        with pytest.raises(UnsupportedError, match=f"not imported from {wanted.title()}.*{name}"):
            state.origin_of_kind(KINDS[wanted])


def test_a_native_table_follows_no_source() -> None:
    state = native()
    assert (state.is_mirrored, state.is_promoted, state.origin.source) == (False, False, "")
    with pytest.raises(InvalidInputError, match=r"a\.b was created in the ledger"):
        state.origin.import_format("a.b")
    with pytest.raises(UnsupportedError, match="its origin is native"):
        state.origin_of_kind(IcebergOrigin)


@pytest.mark.parametrize("name", LIVES)
def test_a_mirrored_table_is_followed_by_its_formats_import(name: str) -> None:
    state = imported(name)
    assert (state.is_mirrored, state.is_promoted) == (True, False)
    assert state.origin.import_format("a.b") == name
    assert not state.origin.has_branches


def test_manifests_of_engines_list_files_of_iceberg_and_paimon_alone() -> None:
    listed = {name: imported(name).origin.manifest_folder("file:///lake/t") for name in LIVES}
    assert (listed["delta"], native().origin.manifest_folder("file:///lake/t")) == ("", "")
    assert listed["iceberg"] == imported("iceberg").origin_of_kind(IcebergOrigin).location != ""
    assert listed["paimon"] == imported("paimon").origin_of_kind(PaimonOrigin).location != ""
    lists = {name: imported(name).lists_files for name in LIVES}
    assert lists == {"iceberg": False, "paimon": False, "delta": True}


def test_the_ledger_lists_files_from_the_promotion_on() -> None:
    state = builder_of(life="promoted").freeze()
    origin = state.origin_of_kind(IcebergOrigin)
    assert origin.lists_files_since == origin.promoted_in > 0
    assert [origin.lists_files(each) for each in (FIRST, OWN, BRANCH_IDS + 1)] == [
        False,
        True,
        False,
    ]


def test_ids_from_iceberg_say_nothing_of_branches() -> None:
    of_branch = 2 * BRANCH_IDS + 1
    assert native().branch_number(of_branch) == 2
    assert imported("iceberg").branch_number(of_branch) == 0


def test_an_id_of_iceberg_is_readable_if_the_snapshot_is_there() -> None:
    state = builder_of(3).freeze()
    assert state.snapshot_ids == (SECOND, FIRST)
    assert [state.reachable(each) for each in (FIRST, SECOND, 1)] == [True, True, False]


@pytest.mark.parametrize("name", ["iceberg", "paimon"])
def test_schemas_that_the_source_lists_are_read_by_their_ids(name: str) -> None:
    state = imported(name)
    listed = state.origin.listed_schemas(state.schema)
    assert state.schema.id in listed
    assert {each: schema.id for each, schema in listed.items()} == {each: each for each in listed}
    assert -7 not in listed
    with pytest.raises(KeyError):
        listed[-7]


def test_only_the_log_says_the_schemas_of_tables_that_the_ledger_counts() -> None:
    for state in (native(), imported("delta")):
        assert state.origin.listed_schemas(state.schema) == {}
        assert state.origin.counted_since_version(1) == 0


def test_a_branch_of_the_source_is_no_branch_of_the_ledger() -> None:
    state = builder_of(3).freeze()
    with pytest.raises(NotFoundError, match="no branch is called 'main'"):
        state.branch("main")
    with pytest.raises(NotFoundError, match="branch 'none' does not exist"):
        state.branch("none")
    assert ("main", "branch", SECOND) in state.refs
