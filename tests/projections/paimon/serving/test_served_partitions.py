"""Partitions of served tables: versions, handles, copies, and values that must be erasable."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from ledger import (
    DamagedLogError,
    InvalidInputError,
    Ledger,
    NotFoundError,
    SetOption,
    UnsupportedError,
)
from ledger.events.partitions import INLINE_PARTITIONS
from ledger.history.garbage import KEPT_MILLIS, orphaned_change_files
from ledger.history.verifying import Subject, Verification
from ledger.log.request import now_millis
from ledger.model.errors import InvalidChangeError
from ledger.model.instant import SnapshotInstant
from ledger.opening.context import TableSetting
from ledger.relocation.exporting import export
from ledger.relocation.importing import import_lines
from ledger.stores import MemoryStore
from ledger.table_handle import TableHandle, handle_of
from projections.paimon.served_partitions import (
    PartitionExistsError,
    PartitionsFound,
    create_partitions,
    drop_partitions,
    mark_done_partitions,
    read_partitions,
)
from projections.paimon.served_rollback import rollback_table
from tests.lakes import lake_on, memory
from tests.projections.paimon.serving.served_tables import commit, deltas, records, served_table

MANY = INLINE_PARTITIONS + 5


@pytest.fixture
def table() -> TableHandle:
    return served_table(new_lake())


def new_lake(*, erasable: bool = False) -> Ledger:
    lake = lake_on(memory(), clock=now_millis)
    lake.init(erasable=erasable)
    return lake


def long_commit(table: TableHandle, number: int) -> None:
    commit(table, number, deltas(**{f"_{each:04}": 1 for each in range(MANY)}))


def test_every_version_has_its_partitions(table: TableHandle) -> None:
    commit(table, 1, deltas(a=1))
    commit(table, 2, deltas(a=2, b=5))
    create_partitions(table, [{"dt": "new"}])
    commit(table, 3, deltas(b=-5))
    rollback_table(table, SnapshotInstant(1))
    commit(table, 2, deltas(c=7))

    expected = [
        {},
        {"a": 1},
        {"a": 3, "b": 5},
        {"a": 3, "b": 5, "new": None},
        {"a": 3, "new": None},
        {"a": 1, "new": None},
        {"a": 1, "c": 7, "new": None},
    ]
    for version, wanted in enumerate(expected):
        assert records(table.again(), version=version) == wanted
    assert [records(table, version=each) for each in range(len(expected))] == expected
    assert records(table) == expected[-1]
    with pytest.raises(NotFoundError):
        records(table, version=99)


def test_handles_see_what_others_commit(table: TableHandle) -> None:
    other = table.again()
    commit(table, 1, deltas(a=1))
    assert records(other) == {"a": 1}
    commit(other, 2, deltas(b=1))
    create_partitions(table, [{"dt": "c"}])
    assert records(other) == records(table) == {"a": 1, "b": 1, "c": None}
    with pytest.raises(PartitionExistsError, match="'dt=c' exists"):
        create_partitions(other, [{"dt": "c"}], on_existing="raise")


def test_a_request_that_changes_nothing_commits_nothing(table: TableHandle) -> None:
    create_partitions(table, [{"dt": "a"}])
    mark_done_partitions(table, [{"dt": "a"}])
    version = table.state.version
    create_partitions(table, [{"dt": "a"}])
    create_partitions(table, [])
    mark_done_partitions(table, [{"dt": "a"}, {"dt": "none"}])
    drop_partitions(table, [{"dt": "none"}])
    assert table.state.version == version == 2


def test_a_request_that_is_sent_again_has_the_first_answer(table: TableHandle) -> None:
    commit(table, 1, deltas(a=1))
    wanted = [{"dt": each} for each in ("a", "b", "c", "b")]

    def send(server: TableHandle) -> list[PartitionsFound]:
        return [
            create_partitions(server, wanted, statistics=deltas(b=5), commit_id="create"),
            mark_done_partitions(server, [{"dt": "b"}, {"dt": "z"}], commit_id="mark"),
            drop_partitions(server, [{"dt": "z"}, {"dt": "c"}, {"dt": "c"}], commit_id="drop"),
        ]

    first = send(table)
    a, b, c, z = ({"dt": each} for each in "abcz")
    assert first == [
        PartitionsFound((b, c), (a, b)),
        PartitionsFound((b,), (z,)),
        PartitionsFound((c,), (z,)),
    ]
    drop_partitions(table, [b])
    version = table.state.version
    for server in (table, table.again()):
        assert send(server) == first
        assert server.state.version == version


def test_a_long_request_that_is_sent_again_has_the_first_answer(table: TableHandle) -> None:
    specs = [{"dt": f"{each:04}"} for each in range(MANY)]
    first = create_partitions(table, specs, commit_id="create")
    assert first == PartitionsFound((*specs,), ())
    assert create_partitions(table.again(), specs, commit_id="create") == first


def test_a_commit_id_is_of_all_arguments(table: TableHandle) -> None:
    specs = [{"dt": "a"}]
    create_partitions(table, specs, statistics=deltas(a=1), commit_id="create")
    drop_partitions(table, [{"dt": "b"}, *specs], commit_id="drop")
    again = table.again()
    others: list[Callable[[], object]] = [
        lambda: create_partitions(again, specs, commit_id="create"),
        lambda: create_partitions(again, specs, statistics=deltas(a=2), commit_id="create"),
        lambda: create_partitions(
            again, specs, statistics=deltas(a=1), reported="REPLACE", commit_id="create"
        ),
        lambda: create_partitions(
            again, specs, statistics=deltas(a=1), on_existing="raise", commit_id="create"
        ),
        lambda: drop_partitions(again, [{"dt": "b"}, *specs], on_missing="raise", commit_id="drop"),
    ]
    for other in others:
        with pytest.raises(InvalidInputError, match="commit id"):
            other()


def test_a_long_list_is_part_of_the_log(table: TableHandle) -> None:
    long_commit(table, 1)
    create_partitions(table, [{"dt": f"new-{each}"} for each in range(MANY)])
    store, layout = table.log.store, table.log.layout
    assert len(list(store.walk(layout.changes("")))) == 2
    assert len(records(table)) == 2 * MANY

    subject = Subject("shop.orders", table.again().log, has_files=True)
    later = now_millis() + 2 * KEPT_MILLIS
    assert [*orphaned_change_files(subject, later)] == []
    assert [*Verification(subject).run(lambda _done, _all: None)] == []

    out = io.BytesIO()
    export(TableSetting(store, {}, author=""), out, [table.identifier])
    copy = MemoryStore("copied-partitions")
    import_lines(TableSetting(copy, {}, author=""), io.BytesIO(out.getvalue()))
    copied = handle_of(lake_on(copy, clock=now_millis).table("shop.orders"))
    assert records(copied) == records(table)


@pytest.mark.parametrize("damage", ["lost", "torn"])
def test_damage_of_a_long_list_is_found(table: TableHandle, damage: str) -> None:
    long_commit(table, 1)
    commit(table, 2, deltas(a=1))
    store, layout = table.log.store, table.log.layout
    (key,) = store.walk(layout.changes(""))
    body = store.read(key)
    assert body is not None
    store.delete(key)
    if damage == "torn":
        store.create(key, body[:-9])

    again = table.again()
    with pytest.raises(DamagedLogError, match="is missing" if damage == "lost" else "is torn"):
        records(again)
    subject = Subject("shop.orders", table.again().log, has_files=True)
    (finding,) = Verification(subject).run(lambda _done, _all: None)
    assert (finding.kind, finding.version, finding.file) == ("damage", 1, key)
    # Nothing of the failed fold is kept.
    store.delete(key)
    store.create(key, body)
    assert len(records(again)) == MANY + 1


@pytest.fixture
def erasable() -> TableHandle:
    lake = new_lake(erasable=True)
    table = served_table(lake)
    lake.table("shop.orders").alter([SetOption("ledger.personal", "dt")])
    return table


def test_values_of_personal_keys_are_not_recorded(erasable: TableHandle) -> None:
    commit(erasable, 1, deltas(ann=1))
    body = erasable.log.store.read(erasable.log.layout.commit(erasable.state.version))
    assert body is not None
    assert b"ann" not in body
    # Its manifests would have the sums, and this engine wrote none.
    with pytest.raises(NotFoundError, match="base-1"):
        records(erasable)
    for change in (create_partitions, drop_partitions, mark_done_partitions):
        with pytest.raises((UnsupportedError, NotFoundError)):
            change(erasable, [{"dt": "bob"}])


def test_a_url_with_credentials_is_not_recorded(table: TableHandle) -> None:
    url = "https://ann:secret@example.org/"
    with pytest.raises(InvalidInputError, match="credentials"):
        create_partitions(table, [{"dt": url}])
    commit(table, 1, deltas(**{url: 1}))
    body = table.log.store.read(table.log.layout.commit(1))
    assert body is not None
    assert b"secret" not in body


@pytest.mark.parametrize("count", [1, MANY])
def test_a_number_out_of_range_is_rejected(table: TableHandle, count: int) -> None:
    with pytest.raises(InvalidInputError, match="recordCount"):
        commit(table, 1, deltas(**{f"_{each}": 2**63 for each in range(count)}))
    assert table.state.version == 0
    assert not list(table.log.store.walk(table.log.layout.changes("")))


def test_a_table_without_keys_takes_no_partitions() -> None:
    table = served_table(new_lake(), keys=())
    with pytest.raises(InvalidChangeError, match="no partition keys"):
        create_partitions(table, [{}])


def test_a_table_of_the_ledger_has_other_partitions() -> None:
    lake = new_lake()
    lake.create_database("shop")
    native = handle_of(lake.create_table("shop.orders", {"id": "BIGINT"}))
    with pytest.raises(UnsupportedError, match="engines of Paimon do not commit to it"):
        read_partitions(native, len)
