"""Reading at any instant equals having stopped there; checkpoints change nothing but the cost."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from ledger import (
    AddColumn,
    InvalidInputError,
    NotFoundError,
    RenameColumn,
    SetOption,
    Table,
)
from ledger.events import TableEvent
from ledger.log import Checkpoints, Commit, at_version
from ledger.state import TableBuilder, TableState, TableStream
from ledger.table_handle import handle_of
from tests.evolution.test_table_laws import random_table
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders, ticking


def a_table(commits: int) -> tuple[Table, list[TableState]]:
    store = memory()
    table = orders(lake_on(store, ticking()))
    states = [table.state]
    for number in range(1, commits):
        if number % 3 == 0:
            done = table.append([data_file(f"f{number}.parquet")])
        elif number % 3 == 1:
            done = table.alter([AddColumn((f"c{number}",), "INT")])
        else:
            done = table.alter([RenameColumn((f"c{number - 1}",), f"d{number}")])
        states.append(done.state)
    return lake_on(store).table("shop.orders"), states


def test_every_version_time_and_snapshot_reads_as_it_was() -> None:
    table, states = a_table(330)
    for state in states[::7]:
        assert table.at(version=state.version).state == state
        assert table.at(timestamp=state.time_millis).state == state
        assert table.at(timestamp=state.time_millis + 999).state == state
    for state in states[3::21]:
        if state.snapshot is not None and state.version % 3 == 0:
            assert table.at(snapshot=state.last_snapshot_id).state == state


class _Counting(TableStream):
    """Counts the records that were read whole."""

    def __init__(self) -> None:
        self.whole = 0

    def decode_state(self, record: bytes | memoryview) -> TableState:
        self.whole += 1
        return super().decode_state(record)


def test_versions_in_any_order_read_as_they_were() -> None:
    table, states = a_table(330)
    shuffled = random.Random(7).sample(states, len(states))
    for state in [*shuffled, *states, *reversed(states)]:
        assert at_version(handle_of(table).log, state.version) == state


def test_a_follower_folds_each_commit_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table, states = a_table(330)
    log = handle_of(table).log
    behind = [*range(110, 320, 5)]
    folded: list[int] = []
    fold = log.fold

    def counted(builder: TableBuilder, commit: Commit[TableEvent]) -> None:
        folded.append(commit.version)
        fold(builder, commit)

    monkeypatch.setattr(log, "fold", counted)
    for version in behind:
        # Two followers, one of them a little behind, and one that reads again.
        for each in (version, version - 3, version):
            assert at_version(log, each) == states[each]
    # Those of the first checkpoint's interval, then what came, and a little for the one behind.
    assert len(folded) <= (320 - 100) + 3 * len(behind)


def test_a_search_reads_one_checkpoint_whole() -> None:
    store = memory()
    writer = orders(lake_on(store, ticking()))
    states = [writer.append([data_file(f"f{number}.parquet")]).state for number in range(520)]
    table = lake_on(store).table("shop.orders")
    log = handle_of(table).log
    for moment in ({"snapshot": 131}, {"timestamp": states[130].time_millis}):
        stream = _Counting()
        log.checkpoints = Checkpoints(store, log.layout, stream)

        assert table.at(**moment).state == states[130]  # type: ignore[arg-type]
        assert stream.whole == 1


@pytest.mark.parametrize("seed", range(5))
def test_an_outline_says_of_a_state_what_searches_ask(seed: int) -> None:
    table = random_table(seed, 30)
    stream = TableStream()
    state = table.state

    outline = stream.decode_outline(stream.encode_state(state))

    for of in ("version", "effective_millis", "last_snapshot_id", "branches", "corrections"):
        assert getattr(outline, of) == getattr(state, of)
    assert outline.schema.id == state.schema.id
    assert outline.last_branch_number == state.last_branch_number


class _Columnless(TableStream):
    """Writes states whose columns no reader can read."""

    def encode_state(self, state: TableState) -> bytes:
        return super().encode_state(state).replace(b'"type":"INT"', b'"type":"NONE"')


def test_one_that_can_be_searched_by_and_not_be_read_is_passed_over() -> None:
    table, states = a_table(330)
    store, layout = handle_of(table).log.store, handle_of(table).log.layout
    broken = handle_of(table).log.checkpoints.at(200)
    assert broken is not None
    Checkpoints(store, layout, _Columnless()).save(broken)

    assert lake_on(store).table("shop.orders").at(snapshot=70).state == states[210]


def test_a_state_is_the_fold_of_its_prefix_and_of_checkpoint_and_tail() -> None:
    table, states = a_table(230)
    builder = TableBuilder()
    for commit in table.events():
        builder.commit(commit)
        assert builder.freeze() == states[commit.version]
        again = TableBuilder(builder.freeze())
        assert again.freeze() == states[commit.version]


def test_checkpoints_are_saved_and_used() -> None:
    table, _ = a_table(330)
    store = handle_of(table).log.store
    saved = [key for key in store.keys("shop.db/orders/_ledger/caches/") if "json" in key]
    assert [int(key[-25:-5]) for key in saved] == [100, 200, 300]
    found = handle_of(table).log.checkpoints.newest()
    assert found is not None
    assert found.state.version == 300


def test_a_hint_is_only_a_floor() -> None:
    table, states = a_table(330)
    store = handle_of(table).log.store
    for hint in (b"100\n", b"nonsense", b"99999900\n", b"-5"):
        store.replace(handle_of(table).log.layout.hint, hint)
        assert lake_on(store).table("shop.orders").state == states[-1]


def test_the_schema_at_a_snapshot_is_the_snapshots() -> None:
    table = orders(lake_on(memory()))
    table.append([data_file("a.parquet")])
    table.create_tag("v1")
    table.alter([RenameColumn(("amount",), "total")])

    assert table.at(snapshot=1).schema.names[-1] == "amount"
    assert table.at(tag="v1").schema.names[-1] == "amount"
    assert table.at().schema.names[-1] == "total"


def test_what_does_not_exist_says_what_does() -> None:
    table = orders(lake_on(memory(), ticking()))
    table.append([data_file("a.parquet")])
    with pytest.raises(NotFoundError, match="there are 0 to 1"):
        table.at(version=2)
    with pytest.raises(NotFoundError, match="there are 1 to 1"):
        table.at(snapshot=2)
    with pytest.raises(NotFoundError, match="there are none yet"):
        table.at(tag="v1")
    with pytest.raises(NotFoundError, match="nothing was there"):
        table.at(timestamp=START_MILLIS - 1)
    with pytest.raises(InvalidInputError, match="no time zone"):
        table.at(timestamp=datetime(2013, 1, 1))  # noqa: DTZ001 - the mistake under test
    with pytest.raises(InvalidInputError, match="both"):
        table.at(version=1, tag="v1")


def test_imported_history_is_read_at_its_own_times() -> None:
    table = orders(lake_on(memory(), ticking()))
    created_millis = table.state.effective_millis
    done = table.alter([SetOption("k", "1")], effective_time=created_millis + 5)
    assert done.state.effective_millis == created_millis + 5
    done = table.alter([SetOption("k", "2")], effective_time=created_millis + 7)
    moment = datetime.fromtimestamp((created_millis + 6) / 1000, UTC)
    assert table.at(timestamp=moment).options == {"k": "1"}
    with pytest.raises(InvalidInputError, match="took effect"):
        table.alter([SetOption("k", "3")], effective_time=created_millis + 6)
    with pytest.raises(InvalidInputError, match="took effect"):
        table.alter([SetOption("k", "3")], effective_time=START_MILLIS * 2)


def test_rollback_expiry_and_tags() -> None:
    table = orders(lake_on(memory()))
    for name in "abcd":
        table.append([data_file(f"{name}.parquet")])
    table.create_tag("first", snapshot=1)
    done = table.rollback(snapshot=2)

    assert done.state.last_snapshot_id == 5
    assert [each.path for each in table.at().files] == ["a.parquet", "b.parquet"]
    assert table.at().totals.record_count == 20
    assert [each.path for each in table.at(snapshot=4).files] == [
        f"{each}.parquet" for each in "abcd"
    ]

    table.expire_snapshots(before=4)
    with pytest.raises(NotFoundError, match="4 to 5 and the tagged ones"):
        table.at(snapshot=2)
    assert [each.path for each in table.at(tag="first").files] == ["a.parquet"]
    assert [each.path for each in table.at(snapshot=1).files] == ["a.parquet"]
    with pytest.raises(NotFoundError):
        table.rollback(snapshot=3)
    assert [each.path for each in (table.rollback(tag="first"), table.at())[1].files] == [
        "a.parquet"
    ]
    table.delete_tag("first")
    with pytest.raises(NotFoundError):
        table.at(snapshot=1)
    with pytest.raises(InvalidInputError, match="the newest is 6 and stays"):
        table.expire_snapshots(before=7)
