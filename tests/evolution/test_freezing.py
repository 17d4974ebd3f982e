"""Freezing a fold any number of times does not change its result."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ledger import RemoveOption, SetOption, UpdateComment
from ledger.events import (
    SchemaRecord,
    SnapshotCommitted,
    TableCreated,
    TableEvent,
    TableName,
    UpdateKeys,
)
from ledger.log import Transaction
from ledger.model import FieldObject
from ledger.state import TableBuilder, TableState

DAY = FieldObject(id=0, name="day", type="DATE")
CREATED = TableCreated(
    identifier=TableName("shop", "orders"),
    table_id="t",
    path="shop.db/orders",
    schema=SchemaRecord(fields=(DAY,), highest_field_id=0),
)
TEXTS = st.sampled_from(["a", "b"])
CHANGES: st.SearchStrategy[TableEvent] = st.one_of(
    st.builds(SetOption, TEXTS, TEXTS),
    st.builds(RemoveOption, TEXTS),
    st.builds(UpdateComment, TEXTS),
    st.builds(
        lambda keys: UpdateKeys(partition_keys=keys, primary_keys=()),
        st.sampled_from([(), ("day",)]),
    ),
)
# None: a snapshot, which leaves the schema as it is.
COMMITS = st.lists(
    st.lists(st.lists(st.none() | CHANGES, max_size=2), min_size=1, max_size=3), max_size=4
)


def snapshot(builder: TableBuilder) -> SnapshotCommitted:
    return SnapshotCommitted(
        snapshot_id=builder.last_snapshot_id + 1,
        schema_id=builder.schema_id,
        commit_user="job",
        commit_kind="APPEND",
        total_record_count=0,
        delta_record_count=0,
    )


def add(builder: TableBuilder, wanted: Sequence[TableEvent | None]) -> None:
    # One snapshot a transaction: its id is taken from the one before.
    events = [snapshot(builder)] if None in wanted else wanted
    facts = tuple(each for each in events if each is not None)
    builder.add(Transaction[TableEvent](asked="", id="x", events=facts))


Commits = Sequence[Sequence[Sequence[TableEvent | None]]]


def at_the_end(commits: Commits) -> TableState:
    builder = TableBuilder()
    for version, transactions in enumerate(commits):
        builder.begin(version, 1000 + version)
        for each in transactions:
            add(builder, each)
    return builder.freeze()


def before_each_transaction(commits: Commits) -> TableState:
    builder = TableBuilder()
    for version, transactions in enumerate(commits):
        builder.begin(version, 1000 + version)
        for number, each in enumerate(transactions):
            if version or number:
                builder.freeze()
            add(builder, each)
    return builder.freeze()


def resumed_for_each_commit(commits: Commits) -> TableState:
    builder = TableBuilder()
    for version, transactions in enumerate(commits):
        builder.begin(version, 1000 + version)
        for each in transactions:
            add(builder, each)
        builder = TableBuilder(builder.freeze())
    return builder.freeze()


@given(st.lists(st.lists(CHANGES, max_size=2), max_size=2), COMMITS)
def test_a_state_is_the_same_however_often_it_was_asked_for(
    first: list[list[TableEvent]], later: list[list[list[TableEvent | None]]]
) -> None:
    commits: Commits = [[[CREATED], *first], *later]
    wanted = at_the_end(commits)
    for found in (before_each_transaction(commits), resumed_for_each_commit(commits)):
        assert found == wanted
        # Two schemas are equal whenever they were made.
        assert found.schema.time_millis == wanted.schema.time_millis
