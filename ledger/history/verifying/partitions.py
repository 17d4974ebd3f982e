"""Verification of the change files of partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from ledger.decide.recorded_values import number_problems
from ledger.events.commit import Commit
from ledger.events.partitions import PartitionsUpdated
from ledger.files.partition_lists import partition_changes
from ledger.log.layout import Layout
from ledger.model.messages import excerpt
from ledger.stores import Store


def partition_list_problems(store: Store, layout: Layout, commit: Commit[Any]) -> Iterator[str]:
    """Yield the contradictions in the change files of partitions that a commit names.

    Numbers of an event's own list are checked with those of all events.

    Raises:
        DamagedLogError: A file is missing or damaged.
        UpgradeRequiredError: A newer version wrote one.
    """
    for transaction in commit.transactions:
        for event in transaction.events:
            if not isinstance(event, PartitionsUpdated) or event.changes is UNSET:
                continue
            if event.partitions:
                yield f"it has {len(event.partitions)} partitions and {event.changes.path}"
            for each in partition_changes(store, layout, event):
                for problem in number_problems(each):
                    yield f"partition {excerpt(str(each.spec))}: {problem}"
