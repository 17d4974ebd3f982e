"""Laws of commits by engines: each has the metadata that its updates define, or none at all.

The first oracle is `apply_updates`, which Java's cases confirm; the second one is PyIceberg's
`update_table_metadata`, where it does the same as Java.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pyiceberg.exceptions import ValidationError
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import TableUpdate as TheirUpdate
from pyiceberg.table.update import update_table_metadata

import projections.iceberg.rest_updates as u
from ledger import Ledger, LedgerError
from ledger.history.verifying import Subject, Verification
from ledger.log.time_travel import at_version
from ledger.state import TableStream
from ledger.table_handle import TableHandle, handle_of
from projections.iceberg import TableMetadata, apply_updates, read_metadata
from projections.iceberg.imported_metadata import differing_fields
from projections.iceberg.metadata_update import apply_in_steps
from projections.iceberg.rest_commit import commit_updates
from projections.iceberg.rest_updates import TableUpdate
from projections.iceberg.served import create_table, load
from tests.independent.agreeing import agrees
from tests.lakes import memory
from tests.projections.iceberg.metadata.cases import UUID
from tests.projections.iceberg.serving.lakes import (
    NAME,
    Clock,
    as_sent,
    lake_at,
    lake_in,
    location_in,
    random_table,
)
from tests.projections.iceberg.serving.random_updates import new_table, random_batch
from tests.thorough import examples

SEEDS = st.integers(0, 2**32)
OF_COMMITS = {"last_updated_ms", "metadata_log"}
"""Metadata fields that a commit sets without an update."""

Step = tuple[TableHandle, TableMetadata, list[TableUpdate]]


def steps(rng: Random, lake: Ledger, clock: Clock) -> Iterator[Step]:
    """Yield a random table, its metadata and a batch of updates for it, again and again."""
    table = random_table(rng, lake)
    for _ in range(rng.randint(1, 6)):
        clock.millis += rng.choice((0, 1, 1000))
        before = load(table, table.state).metadata
        yield table, before, random_batch(rng, before, location_in(lake))


def defined(
    before: TableMetadata, batch: Sequence[TableUpdate], now_ms: int
) -> TableMetadata | None:
    """Return the metadata that a batch defines; None if it contradicts the table."""
    try:
        return apply_updates(before, batch, now_ms=max(now_ms, before.last_updated_ms))
    except LedgerError:
        return None


def is_committed(table: TableHandle, batch: Sequence[TableUpdate]) -> bool:
    """Commit a batch as a client sends it; return False if it is rejected."""
    try:
        commit_updates(table, as_sent(batch))
    except LedgerError:
        return False
    return True


def random_life(rng: Random, lake: Ledger, clock: Clock) -> TableHandle:
    """Return a random table after random commits."""
    for table, _, batch in steps(rng, lake, clock):
        is_committed(table, batch)
    return table


@settings(max_examples=examples(400))
@given(SEEDS)
def test_a_batch_commits_the_metadata_that_it_defines_or_nothing(seed: int) -> None:
    clock = Clock()
    for table, before, batch in steps(Random(seed), lake_at(memory(), clock), clock):
        version, body = table.state.version, load(table, table.state).body
        wanted = defined(before, batch, clock.millis)
        assert is_committed(table, batch) == (wanted is not None)
        loaded = load(table, table.state)
        if wanted is None or wanted is before:
            assert (table.state.version, loaded.body) == (version, body)
            continue
        # What the batch itself takes back, or what was so before, may leave the version.
        changes = not {*differing_fields(before, wanted)} <= OF_COMMITS
        assert version + changes <= table.state.version <= version + 1
        assert {*differing_fields(loaded.metadata, wanted)} <= OF_COMMITS
        assert read_metadata(loaded.body) == loaded.metadata


def creation(rng: Random, location: str, now_ms: int) -> list[TableUpdate]:
    """Return updates that create a table with all that batches can add, as replaced tables have."""
    updates = list(new_table(rng, UUID, location))
    for is_last in (False, False, True):
        more = random_batch(rng, apply_updates(None, updates, now_ms=now_ms), location)
        if is_last and rng.random() < 0.3:
            # It may contradict the table.
            return [*updates, *more]
        with suppress(LedgerError):
            apply_updates(None, [*updates, *more], now_ms=now_ms)
            updates += more
    return updates


@settings(max_examples=examples(120))
@given(SEEDS)
def test_a_table_is_created_by_one_commit_as_its_updates_define_it_or_not_at_all(seed: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        clock, root = Clock(), Path(place) / "lake"
        lake = lake_in(root, clock)
        updates = creation(Random(seed), location_in(lake), clock.millis)
        try:
            wanted = apply_updates(None, updates, now_ms=clock.millis)
        except LedgerError:
            with pytest.raises(LedgerError):
                create_table(handle_of(lake), NAME, updates)
            assert lake.tables("a") == []
            return
        table = create_table(handle_of(lake), NAME, updates)
        loaded = load(table, table.state)
        assert {*differing_fields(loaded.metadata, wanted)} <= OF_COMMITS
        assert read_metadata(loaded.body) == loaded.metadata
        assert agrees(root, lake) == 1


# PyIceberg

UPDATES: TypeAdapter[tuple[Any, ...]] = TypeAdapter(tuple[TheirUpdate, ...])
LENIENT = (u.AddSchema, u.AddSpec, u.AddSortOrder)
"""Updates that PyIceberg adds once more, under the id that they have, where an equal part is."""
NOT_THEIRS = (u.RemoveSnapshots, u.AddEncryptionKey, u.RemoveEncryptionKey)
"""PyIceberg cuts the parents of removed snapshots' children and keeps their log, and no keys."""

NOT_COMPARED = {"last-updated-ms", "metadata-log", "schema", "partition-spec"}
"""Keys that follow the clock, and those of version 1 that PyIceberg leaves as they were."""


def is_alike_in_pyiceberg(before: TableMetadata, batch: Sequence[TableUpdate]) -> bool:
    """Return whether PyIceberg and Java apply a batch in the same way."""
    _, applied = apply_in_steps(before, batch, now_ms=before.last_updated_ms)
    moves = 0
    for each in applied:
        is_move = (
            isinstance(each.update, u.SetSnapshotRef | u.RemoveSnapshotRef)
            and each.update.ref_name == "main"
        )
        moves += is_move
        if isinstance(each.update, NOT_THEIRS):
            return False
        if isinstance(each.update, LENIENT) and each.before is each.after:
            return False
        # It logs each move of main, also one to where it is, or one that a later move hides.
        if moves > 1 or (
            is_move and each.before.current_snapshot_id == each.after.current_snapshot_id
        ):
            return False
    return not any(
        isinstance(each, u.SetLocation) and each.location.endswith("/") for each in batch
    )


def comparable(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return decoded metadata without what depends on the clock, or on an order without meaning."""
    found = {key: each for key, each in metadata.items() if key not in NOT_COMPARED}
    found["snapshot-log"] = [each["snapshot-id"] for each in metadata.get("snapshot-log", ())]
    if found["format-version"] == 1:
        # PyIceberg counts it again when it reads this version.
        del found["last-partition-id"]
    if found.get("current-snapshot-id") == -1:
        del found["current-snapshot-id"]
    for key in ("statistics", "partition-statistics"):
        found[key] = sorted(found.get(key, ()), key=lambda each: each["snapshot-id"])
    return found


def theirs(body: bytes) -> dict[str, Any]:
    """Return metadata as PyIceberg reads and writes it."""
    return comparable(
        TableMetadataUtil.parse_raw(body.decode()).model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
    )


@settings(max_examples=examples(400))
@given(SEEDS)
def test_pyiceberg_comes_to_the_same_metadata(seed: int) -> None:
    clock = Clock()
    for table, before, batch in steps(Random(seed), lake_at(memory(), clock), clock):
        body = load(table, table.state).body
        wanted = defined(before, batch, clock.millis)
        if wanted is None or not is_alike_in_pyiceberg(before, batch):
            is_committed(table, batch)
            continue
        assert is_committed(table, batch)
        try:
            base = TableMetadataUtil.parse_raw(body.decode())
            made = update_table_metadata(base, UPDATES.validate_python(as_sent(batch)))
        except (ValueError, KeyError, ValidationError):
            # It rejects removals of what is not there, and types that it does not know.
            continue
        dumped = made.model_dump(mode="json", by_alias=True, exclude_none=True)
        assert comparable(dumped) == theirs(load(table, table.state).body)


# The log


@settings(max_examples=examples(80))
@given(SEEDS)
def test_any_log_of_engines_is_sound_and_read_alike_by_others(seed: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        clock, root = Clock(), Path(place) / "lake"
        lake = lake_in(root, clock)
        table = random_life(Random(seed), lake, clock)
        assert agrees(root, lake) == table.state.version + 1
        subject: Subject[Any, Any] = Subject("a.t", table.log, has_files=True)
        assert list(Verification(subject).run()) == []


@settings(max_examples=examples(150))
@given(SEEDS)
def test_any_checkpoint_and_its_tail_come_to_the_same_state(seed: int) -> None:
    clock, stream = Clock(), TableStream()
    table = random_life(Random(seed), lake_at(memory(), clock), clock)
    newest = stream.encode_state(table.state)
    for version in range(table.state.version):
        kept = stream.decode_state(stream.encode_state(at_version(table.log, version)))
        builder = stream.builder(kept)
        for commit in table.events(version + 1):
            builder.commit(commit)
        assert stream.encode_state(builder.freeze()) == newest


@settings(max_examples=examples(80))
@given(SEEDS)
def test_lost_metadata_files_are_written_again_as_they_were(seed: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        clock, root = Clock(), Path(place) / "lake"
        lake = lake_in(root, clock)
        bodies = {}
        for table, _, batch in steps(Random(seed), lake, clock):
            is_committed(table, batch)
            loaded = load(table, table.state)
            bodies[loaded.version] = loaded
        files = {each: each.read_bytes() for each in root.rglob("*.metadata.json")}
        for each in files:
            each.unlink()
        again = handle_of(lake_in(root, clock).table("a.t"))
        for version, loaded in bodies.items():
            assert load(again, at_version(again.log, version)) == loaded
        logged = {
            each.metadata_file for one in bodies.values() for each in one.metadata.metadata_log
        }
        assert {str(each) for each in root.rglob("*.metadata.json")} >= {
            each.removeprefix("file://") for each in logged
        }
        assert all(files[each] == each.read_bytes() for each in root.rglob("*.metadata.json"))
