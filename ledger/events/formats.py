"""Which format a fact needs, and which one it opens.

A commit says a format only if it holds something that the one before lacks, so that older clients
read whatever they can and are told to upgrade by the first thing that they do not know. A new kind
of event, or a new key, has its line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, get_args

from msgspec import UNSET, UnsetType

from ledger.events.born.delta import DeltaFollowed
from ledger.events.born.iceberg import IcebergEvent
from ledger.events.born.paimon import PaimonBranchUpdated
from ledger.events.catalog_events import (
    LedgerCopied,
    LedgerMoved,
    LedgerUpgraded,
    PlaceAliased,
    ValuesErased,
)
from ledger.events.clock_events import ClockCorrected
from ledger.events.commit import OLDEST_FORMAT, Transaction
from ledger.events.rules_events import FormatRulesRaised
from ledger.events.schema_events import ColumnUndropped
from ledger.events.snapshot_events import (
    BranchCommitted,
    RolledBack,
    SnapshotCommitted,
    SnapshotFacts,
)
from ledger.events.table_events import TableCreated, TablePromoted

EQUAL_TIMES: Final = 2
"""Since this format a commit's time may equal the one before."""

RECORDED_RULES: Final = 2
"""Since this format a table records the rules of its formats that it was changed by."""

BIRTHS_ELSEWHERE: Final = 2
"""Since this format a table may be born in Iceberg, Paimon or Delta."""

PROMOTIONS: Final = 2
"""Since this format a table that others owned may become the ledger's own."""

UNDROPS: Final = 2
"""Since this format a dropped column may come back."""

BRANCHES: Final = 2
"""Since this format the ledger's own tables may have branches."""

PUFFIN_STATISTICS: Final = 2
"""Since this format the ledger's own tables may have Puffin files of statistics."""

PLACES: Final = 2
"""Since this format a ledger says where it is."""

VALUES_OUTSIDE: Final = 2
"""Since this format a transaction may keep author, message and properties outside of its line."""

FILE_FACTS: Final = 2
"""Since this format files say their sort order, and deletes what they delete from."""

_SINCE: Final[dict[type, int]] = {
    LedgerUpgraded: 2,
    ValuesErased: VALUES_OUTSIDE,
    ClockCorrected: 2,
    FormatRulesRaised: RECORDED_RULES,
    ColumnUndropped: UNDROPS,
    **dict.fromkeys((LedgerMoved, PlaceAliased, LedgerCopied), PLACES),
    **dict.fromkeys(get_args(IcebergEvent), BIRTHS_ELSEWHERE),
    PaimonBranchUpdated: BIRTHS_ELSEWHERE,
    DeltaFollowed: BIRTHS_ELSEWHERE,
    TablePromoted: PROMOTIONS,
}


def needed_format(events: Iterable[object]) -> int:
    """Return the oldest format that has all of some events.

    Example:
        >>> needed_format([ClockCorrected(first_version=1, true_time_millis=0)])
        2
    """
    return max(map(_since, events), default=OLDEST_FORMAT)


def format_of(transaction: Transaction[object]) -> int:
    """Return the oldest format that has all of a transaction."""
    said = OLDEST_FORMAT if transaction.outside is UNSET else VALUES_OUTSIDE
    return max(said, needed_format(transaction.events))


def are_of_the_oldest(kind: type, events: Sequence[Any]) -> bool:
    """Whether the oldest format has all of some events of one kind.

    Example:
        >>> are_of_the_oldest(ClockCorrected, [ClockCorrected(first_version=1, true_time_millis=0)])
        False
    """
    if kind is SnapshotCommitted:
        # Most events of most logs are snapshots.
        return [*map(_later_facts, events)].count(_NONE) == len(events)
    return needed_format(events) == OLDEST_FORMAT


_later_facts: Final = attrgetter("summary", "files_format", "fast_forward_to")
_NONE: Final = (UNSET, UNSET, UNSET)


def _since(event: object) -> int:
    kind = type(event)
    asked = _BY_ITS_FACTS.get(kind)
    return _SINCE.get(kind, OLDEST_FORMAT) if asked is None else asked(event)


def _since_birth(event: TableCreated) -> int:
    return BIRTHS_ELSEWHERE if event.is_born_elsewhere else OLDEST_FORMAT


def _since_commit(event: SnapshotCommitted) -> int:
    return _since_snapshot(event) if event.fast_forward_to is UNSET else BRANCHES


def _since_branch(event: BranchCommitted) -> int:
    return max(BRANCHES, _since_snapshot(event))


def _since_snapshot(event: SnapshotFacts) -> int:
    known = OLDEST_FORMAT if event.summary is UNSET else PROMOTIONS
    if isinstance(event.files_format, UnsetType):
        return known
    return max(known, FILE_FACTS, event.files_format)


_BY_ITS_FACTS: Final[dict[type, Callable[[Any], int]]] = {
    TableCreated: _since_birth,
    SnapshotCommitted: _since_commit,
    BranchCommitted: _since_branch,
    RolledBack: _since_snapshot,
}


def opened_format(events: Iterable[object]) -> int:
    """Return the format that some events let their ledger take from now on."""
    opened = (each.format for each in events if isinstance(each, LedgerUpgraded))
    return max(opened, default=OLDEST_FORMAT)
