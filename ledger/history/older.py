"""Lookup of older snapshots and schemas, which the state does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import evolve

from ledger.events import TableEvent
from ledger.events.commit import Commit, Transaction
from ledger.events.snapshots import BranchCommitted, SnapshotEvent
from ledger.log.stream_log import StreamLog
from ledger.log.time_travel import (
    at_version,
    commits_after,
    head_state,
    last_checkpoint_while,
    last_state_while,
)
from ledger.model.errors import InvalidInputError, NotFoundError
from ledger.model.schema import Schema
from ledger.model.snapshot import branch_number
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder

TableLog = StreamLog[TableState, TableEvent]


def state_at_snapshot(log: TableLog, snapshot_id: int) -> TableState:
    """Return the state right after the commit of a snapshot.

    Raises:
        NotFoundError: There never was such a snapshot.
    """
    head = head_state(log)
    # The source of an imported table may have used the same ids before.
    first = head.origin.counted_since_version(snapshot_id)
    if first is None:
        return _state_at_listed_snapshot(log, head, snapshot_id)
    if branch_number(snapshot_id):
        return _branch_state_at_snapshot(log, snapshot_id)
    if not 1 <= snapshot_id <= head_state(log).last_snapshot_id:
        raise NotFoundError(f"snapshot {snapshot_id} does not exist")
    before = last_state_while(
        log,
        lambda state: state.version < first or state.last_snapshot_id < snapshot_id,
        lambda commit: (
            commit.version < first or all(each < snapshot_id for each in _snapshot_ids_in(commit))
        ),
    )
    return _replay_until(log, before, lambda builder: builder.last_snapshot_id >= snapshot_id)


def _replay_until(
    log: TableLog, before: TableState, is_reached: Callable[[TableBuilder], bool]
) -> TableState:
    """Return the state after the first transaction, in the next commit, that meets a condition."""
    builder = TableBuilder(before)
    # A commit with several transactions may have later snapshots, too.
    (found,) = log.commits_via_cache(before.version + 1, before.version + 1)
    for _ in _fold_by_transaction(log, builder, found.commit):
        if is_reached(builder):
            break
    return builder.freeze()


def _branch_state_at_snapshot(log: TableLog, snapshot_id: int) -> TableState:
    """Return the state after the commit of a branch's snapshot, seen on that branch."""
    number = branch_number(snapshot_id)

    def comes_later(state: TableState) -> bool:
        branch = state.branch_numbered(number)
        if branch is None:
            # A branch that was deleted had it.
            return state.last_branch_number < number
        return branch.next_id <= snapshot_id

    def is_reached(builder: TableBuilder) -> bool:
        there = (each for each in builder.branches.values() if each.number == number)
        return any(each.next_id > snapshot_id for each in there)

    if comes_later(head_state(log)):
        raise NotFoundError(f"snapshot {snapshot_id} does not exist")
    before = last_state_while(
        log,
        comes_later,
        lambda commit: snapshot_id not in _snapshot_ids_in(commit, BranchCommitted),
    )
    state = _replay_until(log, before, is_reached)
    found = state.branch_numbered(number)
    if found is None or found.head_id != snapshot_id:
        raise NotFoundError(f"snapshot {snapshot_id} does not exist")
    return on_branch(log, state, found.name)


def on_branch(log: TableLog, state: TableState, name: str) -> TableState:
    """Return a state as seen on one of its branches.

    Raises:
        NotFoundError: There is no branch of that name.
    """
    branch = state.branch(name)
    snapshot = branch.snapshot
    if snapshot is None:
        newest = state.snapshot
        is_newest = newest is not None and newest.id == branch.base_snapshot_id
        based = state if is_newest else state_at_snapshot(log, branch.base_snapshot_id)
        snapshot = based.snapshot
    return evolve(state, on_branch=name, snapshot=snapshot, totals=branch.totals)


def at_branch(log: TableLog, state: TableState, name: str) -> TableState:
    """Return a state at the newest snapshot of a branch, for reading.

    Of a table from Iceberg the branches are those of its engines; a state on one of them cannot be
    distinguished from main's, so that no commit may be planned on it.

    Raises:
        NotFoundError: There is no branch of that name.
    """
    heads = {each.name: each.snapshot_id for each in state.refs if each.ref_type == "branch"}
    if state.origin.has_branches or name not in heads:
        return on_branch(log, state, name)
    found = state.origin.listed_snapshot(heads[name])
    if found is None:
        return on_branch(log, state, name)
    snapshot = found.with_default_schema(state.schema.id)
    return evolve(state, snapshot=snapshot, totals=found.totals)


def _state_at_listed_snapshot(log: TableLog, head: TableState, snapshot_id: int) -> TableState:
    """Return the state after the commit that imported a snapshot, seen at that snapshot."""
    found = head.origin.listed_snapshot(snapshot_id)
    if found is None:
        raise NotFoundError(f"snapshot {snapshot_id} does not exist, or was removed")
    state = at_version(log, found.version)
    return evolve(state, snapshot=found.with_default_schema(state.schema.id), totals=found.totals)


def states_around_transaction(
    log: TableLog, version: int, transaction_id: str | None
) -> tuple[TableState, TableState, Transaction[TableEvent]]:
    """Return the states right before and after a transaction, and the transaction.

    Args:
        log: The table's log.
        version: The version of its commit.
        transaction_id: The transaction's id; None if the commit has only one.

    Raises:
        NotFoundError: There is no such commit, or no such transaction in it.
        InvalidInputError: The commit has several transactions; the message lists their ids.
    """
    commit = log.commit_at(version)
    ids = [each.id for each in commit.transactions]
    if transaction_id is None and len(ids) > 1:
        raise InvalidInputError(
            f"version {version} holds {len(ids)} transactions; name one of {', '.join(ids)}"
        )
    wanted = ids[0] if transaction_id is None else transaction_id
    if wanted not in ids:
        raise NotFoundError(f"version {version} holds no transaction {wanted}, but {ids}")
    if version == 0:
        raise InvalidInputError("version 0 created the table: drop the table to undo that")
    before = after = at_version(log, version - 1)
    builder = TableBuilder(before)
    for each, _ in zip(
        commit.transactions, _fold_by_transaction(log, builder, commit), strict=True
    ):
        after = builder.freeze()
        if each.id == wanted:
            return before, after, each
        before = after
    raise AssertionError(wanted)


def _snapshot_ids_in(commit: Commit[TableEvent], kind: Any = SnapshotEvent) -> Iterator[int]:
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, kind):
                yield event.snapshot_id


def _fold_by_transaction(
    log: TableLog, builder: TableBuilder, commit: Commit[TableEvent]
) -> Iterator[None]:
    """Fold a commit transaction by transaction, yielding after each."""
    try:
        builder.begin(commit.version, commit.time_millis)
        for transaction in commit.transactions:
            builder.add(transaction)
            yield
    except InvalidInputError as error:
        raise log.contradiction(commit, error) from error


def schema_of_snapshot(log: TableLog, state: TableState) -> Schema:
    """Return the schema that the newest snapshot of a state was written with."""
    snapshot = state.snapshot
    if snapshot is None or snapshot.schema_id == state.schema.id:
        return state.schema
    # Paimon gives ids of schemas again after a rollback.
    listed = state.origin.listed_schemas(state.schema)
    if snapshot.schema_id in listed:
        return listed[snapshot.schema_id]
    return schema_by_id(log, snapshot.schema_id)


def schema_by_id(log: TableLog, schema_id: int) -> Schema:
    """Return a current or earlier schema of the table, by id.

    Raises:
        NotFoundError: There never was a schema with that id.
    """
    return schemas_by_id(log, [schema_id])[schema_id]


def schemas_by_id(log: TableLog, schema_ids: Iterable[int]) -> dict[int, Schema]:
    """Return several schemas of the table, by id; each part of the log is read at most once.

    Raises:
        NotFoundError: There never was a schema with one of the ids.
    """
    wanted = set(schema_ids)
    head = head_state(log)
    listed = head.origin.listed_schemas(head.schema)
    if listed:
        for each in wanted - listed.keys():
            raise NotFoundError(f"schema {each} does not exist; there are {sorted(listed)}")
        return {each: listed[each] for each in sorted(wanted)}
    found: dict[int, Schema] = {}
    # The newest first: reading from its checkpoint also finds schemas before it.
    for each in sorted(wanted, reverse=True):
        if each not in found:
            newest = head_state(log).schema
            if not 0 <= each <= newest.id:
                raise NotFoundError(f"schema {each} does not exist; there are 0 to {newest.id}")
            near = {newest.id: newest} if each == newest.id else _schemas_up_to(log, each)
            found |= {key: near[key] for key in wanted & near.keys()}
    return found


def schemas(log: TableLog) -> Iterator[Schema]:
    """Yield every schema of the table, newest first; older ones are read lazily."""
    head = head_state(log)
    newest = head.schema
    yield newest
    listed = head.origin.listed_schemas(newest)
    if listed:
        yield from (listed[each] for each in reversed([*listed]) if each != newest.id)
        return
    wanted = newest.id - 1
    while wanted >= 0:
        older = _schemas_up_to(log, wanted)
        yield from (older[each] for each in range(wanted, min(older) - 1, -1))
        wanted = min(older) - 1


def all_schemas_ever(log: TableLog) -> Iterator[Schema]:
    """Yield every schema that the table ever had, oldest first, including removed ones.

    Schemas that a source's metadata lists are yielded with the commit that imported it. A schema
    may be yielded twice.
    """
    builder = TableBuilder(None)
    seen: set[int] = set()
    head_state(log)
    for read in commits_after(log, None):
        transactions = zip(
            read.commit.transactions, _fold_by_transaction(log, builder, read.commit), strict=True
        )
        for transaction, _ in transactions:
            if all(isinstance(each, SnapshotEvent) for each in transaction.events):
                continue
            state = builder.freeze()
            listed = state.origin.listed_schemas(state.schema)
            yield from (listed[each] for each in sorted(listed.keys() - seen))
            seen = {*listed}
            yield state.schema


def _schemas_up_to(log: TableLog, schema_id: int) -> dict[int, Schema]:
    """Return a schema, and the others since the nearest checkpoint before it, by id."""
    nearest = last_checkpoint_while(log, lambda state: state.schema.id <= schema_id)
    start = nearest.state if nearest else None
    found = {start.schema.id: start.schema} if start else {}
    builder = TableBuilder(start)
    for read in commits_after(log, nearest):
        for _ in _fold_by_transaction(log, builder, read.commit):
            if builder.schema_id not in found:
                found[builder.schema_id] = builder.freeze().schema
        if builder.schema_id > schema_id:
            break
    return found
