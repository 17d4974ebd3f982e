"""Tag files: which are the ledger's own, whatever became of them, and which are somebody else's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ledger import StoreError, Table
from ledger.stores import Store
from ledger.table_handle import handle_of
from projections.paimon import expected, rebuild, snapshot_from_json, tag_file, tag_path, verify
from projections.paimon.materialise import project
from projections.paimon.paths import quarantine_path
from tests.lakes import data_file, lake_on, memory, orders
from tests.projections.formats import PAIMON
from tests.projections.paimon.projecting import Left

TAG = f"{{}}/{tag_path('v')}"


def _tagged(store: Store) -> Table:
    table = orders(lake_on(store))
    for number in range(4):
        table.append([data_file(f"{number}.parquet")])
    project(handle_of(table))
    return table


def _foreign(table: Table) -> bytes:
    """Put a tag file there that an engine made: of a snapshot of the table, for an hour."""
    snapshot = snapshot_from_json(expected(handle_of(table))["snapshot/snapshot-2"])
    body = tag_file(snapshot, create_time_millis=1_700_000_000_000, time_retained_millis=3_600_000)
    handle_of(table).log.store.create(TAG.format(handle_of(table).path), body)
    return body


_LIVES: dict[str, Callable[[Table], object]] = {
    "once": lambda table: table.create_tag("v", snapshot=2),
    "made and replaced": lambda table: (
        table.create_tag("v", snapshot=1),
        table.replace_tag("v", snapshot=3),
    ),
    "made, deleted and made again": lambda table: (
        table.create_tag("v", snapshot=3),
        table.delete_tag("v"),
        table.create_tag("v", snapshot=4),
    ),
    "made and deleted": lambda table: (
        table.create_tag("v", snapshot=3),
        table.delete_tag("v"),
    ),
}


@pytest.mark.parametrize("life", _LIVES)
def test_a_tag_of_another_writer_is_neither_replaced_nor_deleted(life: str) -> None:
    store = memory()
    table = _tagged(store)
    theirs = _foreign(table)
    assert verify(handle_of(table)).foreign == (tag_path("v"),)
    _LIVES[life](table)
    if "v" in table.state.tags:
        with pytest.raises(StoreError, match="tag-v") as raised:
            project(handle_of(table))
        assert raised.value.kind == "FOREIGN_FILE"
        assert store.read(TAG.format(handle_of(table).path)) == theirs
        assert tag_path("v") in rebuild(handle_of(table)).changed
        quarantined = quarantine_path(tag_path("v"), theirs)
        assert Left.by(table).files == expected(handle_of(table)) | {quarantined: theirs}
    else:
        project(handle_of(table))
        assert store.read(TAG.format(handle_of(table).path)) == theirs
    project(handle_of(table))


@pytest.mark.parametrize("stands", range(3))
@pytest.mark.parametrize("killed_at", range(1, 6))
@pytest.mark.parametrize("then", range(6))
def test_a_tag_that_is_created_deleted_and_recreated_is_the_ledgers_after_any_kill(
    stands: int, killed_at: int, then: int
) -> None:
    steps: list[Callable[[Table], object]] = [
        lambda table: table.create_tag("v", snapshot=1),
        lambda table: table.delete_tag("v"),
        lambda table: table.create_tag("v", snapshot=2),
        lambda table: table.replace_tag("v", snapshot=3),
        lambda table: table.delete_tag("v"),
        lambda table: table.create_tag("v", snapshot=4),
    ]
    table = _tagged(memory())
    position = None
    for number, step in enumerate(steps):
        if number == stands:
            project(handle_of(table))
            position = PAIMON.position(table)
        step(table)
        if number == killed_at:
            project(handle_of(table))
            # As if it had been killed before it kept where it stood.
            files = PAIMON.kept.format.positions
            files.save(
                handle_of(table).log.store,
                handle_of(table).log.layout,
                position or PAIMON.position(table),
            )
    for version in range(table.state.version - then, table.state.version + 1):
        stood = PAIMON.position(table).version
        reached = PAIMON.advance(table, version=version)
        if reached > stood:
            assert PAIMON.left(table).items() >= PAIMON.expected(table, reached).items()
    project(handle_of(table))
    PAIMON.assert_exact(table)
