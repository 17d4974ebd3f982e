"""Ids of snapshots that engines and the ledger make in one table: of any size, never confused."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import InvalidChangeError
from ledger.events.imported import SnapshotAdded, SnapshotsRemoved
from ledger.events.snapshots import RolledBack
from ledger.model.iceberg_objects import IcebergSnapshot
from ledger.state.iceberg_builder import IcebergOriginBuilder
from ledger.state.iceberg_origin import IcebergOrigin, is_id_in_ranges, ranges_with_next_id
from tests.thorough import examples

SIZES = st.sampled_from((1, 2, 3, 5, 10**12, 10**12 + 1, 2**62, 2**63 - 2, 2**63 - 1))
STEPS = st.one_of(
    st.just("ledger"),
    st.just("next"),
    st.tuples(st.just("engine"), st.one_of(SIZES, st.integers(1, 2**63 - 1))),
    st.tuples(st.just("remove"), st.integers(0, 9)),
)


def owned(last_id: int) -> IcebergOriginBuilder:
    """Return a table that the ledger assigns ids to, above one."""
    builder = IcebergOriginBuilder(
        IcebergOrigin(source="s", location="s", format_version=2, schemas={}, schema_id=0)
    )
    builder.begin_ownership(0, last_id)
    return builder


def added(number: int) -> SnapshotAdded:
    return SnapshotAdded(IcebergSnapshot(snapshot_id=number, timestamp_ms=1, manifest_list="m"))


def made(number: int) -> RolledBack:
    return RolledBack(
        snapshot_id=number,
        schema_id=0,
        commit_user="ann",
        total_record_count=0,
        delta_record_count=0,
        target_snapshot_id=1,
    )


@settings(max_examples=examples(400))
@given(st.sampled_from((0, 1, 7, 10**12 - 1, 10**15)), st.lists(STEPS, max_size=30))
def test_the_ledger_lists_the_files_of_its_own_snapshots_and_of_no_others(
    last_id: int, steps: list[object]
) -> None:
    builder = owned(last_id)
    ours: set[int] = set()
    engines: set[int] = set()
    for version, step in enumerate(steps, 1):
        origin = builder.freeze()
        following = origin.next_snapshot_id(origin.last_assigned_id)
        match step:
            case "ledger":
                assert following not in ours | origin.snapshots.keys()
                builder.commit(made(following), 0, version, version)
                ours.add(following)
            case "next":
                # An engine takes the id that the ledger would assign.
                builder.apply(added(following), version, version)
                engines.add(following)
            case ("engine", int(number)):
                is_free = number not in ours | origin.snapshots.keys()
                builder = tried(builder, added(number), version, is_accepted=is_free)
                engines |= {number} if is_free else set()
            case ("remove", int(place)) if origin.snapshots:
                gone = [*origin.snapshots][place % len(origin.snapshots)]
                builder.apply(SnapshotsRemoved((gone,)), version, version)
        assert_told_apart(builder.freeze(), ours, engines)


def tried(
    builder: IcebergOriginBuilder, event: SnapshotAdded, version: int, *, is_accepted: bool
) -> IcebergOriginBuilder:
    """Apply an event to a copy; return the builder to continue with."""
    before = builder.freeze()
    try:
        builder.apply(event, version, version)
    except InvalidChangeError:
        assert not is_accepted
        return IcebergOriginBuilder(before)
    assert is_accepted
    return builder


def assert_told_apart(origin: IcebergOrigin, ours: set[int], engines: set[int]) -> None:
    assert {each for each in ours | engines if origin.lists_files(each)} == ours
    for number, snapshot in origin.snapshots.items():
        assert origin.lists_files(number) == (snapshot.manifest_list is None)
    for number in (0, 4, 2**63 - 3):
        assert origin.lists_files(number) == (number in ours)


@given(st.lists(st.integers(1, 40), unique=True).map(sorted), st.integers(-2, 42))
def test_a_set_of_ids_has_the_ids_that_were_put_into_it(ids: list[int], asked: int) -> None:
    ranges: tuple[tuple[int, int], ...] = ()
    for each in ids:
        ranges = ranges_with_next_id(ranges, each)
    assert is_id_in_ranges(asked, ranges) == (asked in ids)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(ranges))
