"""Partitions of a branch follow its renames, and a later branch of its name has its own."""

from __future__ import annotations

import pytest
from attrs import Factory, define
from hypothesis import given
from hypothesis import strategies as st

from ledger.events import PartitionChange, PartitionsUpdated, TableEvent
from ledger.events.imported import PaimonBranchUpdated
from ledger.log import Commit, Transaction
from ledger.log.request import now_millis
from ledger.table_handle import TableHandle
from projections.paimon.branch_starts import BranchStarts
from projections.paimon.partitions import PartitionIndex
from projections.paimon.served_branches import create_branch, drop_branch, rename_branch
from projections.paimon.served_partitions import (
    create_partitions,
    mark_done_partitions,
    read_partitions,
)
from tests.lakes import lake_on, memory
from tests.projections.paimon.serving.served_tables import served_table

NAMES = ("e", "f", "g")


@pytest.fixture
def table() -> TableHandle:
    return served_table(lake_on(memory(), clock=now_millis))


def partitions(table: TableHandle, branch: str, *, version: int | None = None) -> dict[str, bool]:
    """Return the partitions of a branch, and whether each is done, as any server has them."""
    kept, anew = (
        read_partitions(
            each,
            lambda index: {each.spec["dt"]: each.is_done for each in index.descending()},
            branch=branch,
            version=version,
        )
        for each in (table, table.again())
    )
    assert kept == anew
    return kept


def test_a_renamed_branch_keeps_what_was_created_and_marked(table: TableHandle) -> None:
    create_branch(table, "e")
    create_partitions(table, [{"dt": "x"}, {"dt": "y"}], branch="e")
    mark_done_partitions(table, [{"dt": "y"}], branch="e")
    assert partitions(table, "e") == {"x": False, "y": True}
    for former, name in [("e", "f"), ("f", "e"), ("e", "g")]:
        rename_branch(table, former, name)
        assert partitions(table, name) == {"x": False, "y": True}
    create_partitions(table, [{"dt": "z"}], branch="g")
    assert partitions(table, "g") == {"x": False, "y": True, "z": False}


def test_a_name_given_again_has_no_partitions_of_the_branch_before(table: TableHandle) -> None:
    create_branch(table, "e")
    create_partitions(table, [{"dt": "x"}], branch="e")
    before = table.state.version
    assert partitions(table, "e") == {"x": False}
    rename_branch(table, "e", "f")
    create_branch(table, "e")
    assert partitions(table, "e") == {}
    create_partitions(table, [{"dt": "z"}], branch="e")
    drop_branch(table, "f")
    create_branch(table, "f")
    assert (partitions(table, "f"), partitions(table, "e")) == ({}, {"z": False})
    create_partitions(table, [{"dt": "new"}], branch="f")
    assert (partitions(table, "f"), partitions(table, "e")) == ({"new": False}, {"z": False})
    assert partitions(table, "e", version=before) == {"x": False}


@define
class Branches:
    """Branches with the partitions that were created, and the log that makes them.

    Attributes:
        lines: The partitions, by branch.
        transactions: The log, before it is divided into commits.
    """

    lines: dict[str, set[str]] = Factory(dict)
    transactions: list[Transaction[TableEvent]] = Factory(list)

    def change(self, name: str, other: str) -> None:
        """Create, change, rename or drop a branch, as is possible."""
        if name not in self.lines:
            self.lines[name] = set()
            self._log(PaimonBranchUpdated(branch_name=name, added={"schema/schema-0": "x"}))
        elif other == name:
            del self.lines[name]
            self._log(PaimonBranchUpdated(branch_name=name, removed=("schema/schema-0",)))
        elif other not in self.lines:
            self.lines[other] = self.lines.pop(name)
            self._log(PaimonBranchUpdated(branch_name=other, renamed_from=name))
        else:
            value = str(len(self.transactions))
            self.lines[name].add(value)
            change = PartitionChange(spec={"dt": value}, action="CREATE")
            self._log(PartitionsUpdated(branch_name=name, partitions=(change,)))

    def _log(self, event: TableEvent) -> None:
        number = str(len(self.transactions))
        self.transactions.append(Transaction(id=number, asked="", events=(event,)))

    def commits(self, size: int) -> list[Commit[TableEvent]]:
        """Return the log with some transactions in each commit."""
        return [
            Commit(
                format=3,
                version=version,
                time_millis=version,
                transactions=(*self.transactions[first : first + size],),
            )
            for version, first in enumerate(range(0, len(self.transactions), size))
        ]


@given(
    changes=st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=30),
    size=st.integers(1, 4),
)
def test_a_branch_has_what_was_changed_since_its_beginning(
    changes: list[tuple[str, str]], size: int
) -> None:
    branches, starts = Branches(), BranchStarts()
    for each in changes:
        branches.change(*each)
    commits = branches.commits(size)
    for commit in commits:
        starts.apply(commit)
    assert starts.by_name.keys() == branches.lines.keys()
    for name, start in starts.by_name.items():
        index = PartitionIndex.of_line(("dt",), start)
        for commit in commits[index.version + 1 :]:
            index.apply(commit, lambda event: event.partitions, commits.__getitem__)
        assert {each.spec["dt"] for each in index.descending()} == branches.lines[name]
        assert index.line == name
