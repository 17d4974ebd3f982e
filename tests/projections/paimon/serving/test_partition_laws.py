"""Whatever a table's history is, its partitions are those of the files that it has."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from projections.paimon.partitions import PartitionIndex
from tests.projections.paimon.serving.partition_model import (
    KEYS,
    History,
    Spec,
    spec_of,
    sums_of,
)

specs = st.tuples(st.sampled_from(["1", "2", "10"]), st.sampled_from(["0", "1=1", "/"]))


class KnownPartitions(RuleBasedStateMachine):
    """Engines that report statistics with each commit; the index is kept, as a server keeps it."""

    def __init__(self) -> None:
        super().__init__()
        self.history = History()
        self.kept = PartitionIndex(KEYS)

    @rule(into=st.lists(specs, max_size=4, unique=True), deletes=st.integers(0, 4))
    def write(self, into: list[Spec], deletes: int) -> None:
        self.history.write(into, deletes, says=True)

    @rule(back=st.integers(1, 3))
    def roll_back(self, back: int) -> None:
        self.history.roll_back(back)

    @rule(kept=st.integers(0, 3))
    def expire(self, kept: int) -> None:
        self.history.expire(kept)

    @rule(spec=specs)
    def create(self, spec: Spec) -> None:
        self.history.create(spec)

    @rule(spec=specs)
    def mark(self, spec: Spec) -> None:
        self.history.mark(spec)

    @rule(spec=specs)
    def drop(self, spec: Spec) -> None:
        self.history.drop(spec)

    @invariant()
    def partitions_are_those_of_the_files(self) -> None:
        history = self.history
        history.fold(self.kept)
        fresh = PartitionIndex(KEYS)
        history.fold(fresh)
        for index in (self.kept, fresh):
            listed = {tuple(each.spec.values()): each for each in index.descending()}
            assert listed.keys() == history.listed
            assert sums_of(index) == history.sums
            assert {spec for spec, each in listed.items() if each.is_done} == history.done
            assert index.totals.records == sum(rows for rows, _, _ in history.sums.values())
            assert index.totals.files == len(history.files)
            assert len(index) == len(listed)
        assert [*self.kept.descending()] == [*fresh.descending()]


class PartlyUnknownPartitions(RuleBasedStateMachine):
    """Engines that report statistics with some commits only."""

    def __init__(self) -> None:
        super().__init__()
        self.history = History()
        self.kept = PartitionIndex(KEYS)

    @rule(
        into=st.lists(specs, max_size=4, unique=True), deletes=st.integers(0, 4), says=st.booleans()
    )
    def write(self, into: list[Spec], deletes: int, says: bool) -> None:  # noqa: FBT001
        self.history.write(into, deletes, says=says)

    @rule(back=st.integers(1, 3))
    def roll_back(self, back: int) -> None:
        self.history.roll_back(back)

    @rule(kept=st.integers(0, 3))
    def expire(self, kept: int) -> None:
        self.history.expire(kept)

    @rule()
    def read(self) -> None:
        self.history.fold(self.kept)
        assert sums_of(self.kept) == self.history.sums

    @rule()
    def read_anew(self) -> None:
        fresh = PartitionIndex(KEYS)
        self.history.fold(fresh)
        assert sums_of(fresh) == self.history.sums


_SETTINGS = settings(deadline=None, stateful_step_count=30)
TestKnownPartitions = KnownPartitions.TestCase
TestKnownPartitions.settings = _SETTINGS
TestPartlyUnknownPartitions = PartlyUnknownPartitions.TestCase
TestPartlyUnknownPartitions.settings = _SETTINGS


@given(
    some=st.sets(specs),
    prefix=st.sampled_from(["", "day=1", "day=10/", "day=2/hour=1", "x"]),
    before=st.one_of(st.none(), st.text(max_size=8), st.sampled_from(["day=10/hour=0", "day=2"])),
)
def test_a_range_is_that_of_all_sorted_names(
    some: set[Spec], prefix: str, before: str | None
) -> None:
    index = PartitionIndex(KEYS)
    history = History()
    history.write(sorted(some), 0, says=True)
    history.fold(index)
    names = sorted(
        "/".join(f"{key}={value}" for key, value in spec_of(each).items()) for each in some
    )
    known = names if before is None else names[: bisect_left(names, before)]
    found = [each.name for each in index.descending(prefix, before)]
    assert found == [each for each in reversed(known) if each.startswith(prefix)]
