"""Command `expire`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import Annotated, Any

from attrs import frozen
from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import (
    CommitFlags,
    Confirmed,
    LedgerFlags,
    TableName,
    check_one_or_more,
    read_time,
)
from ledger.cli.output import Screen
from ledger.decide.changes import ExpireSnapshots
from ledger.decide.snapshots import decide_snapshot_expiry
from ledger.decide.table import refuse_by_owner
from ledger.events.imported import SnapshotsRemoved
from ledger.events.snapshots import SnapshotsExpired
from ledger.model.errors import NotFoundError
from ledger.state.table import TableState
from ledger.table import Table
from ledger.table_handle import handle_of


@frozen
class ExpiryEffect:
    """Effect of an expiry.

    Attributes:
        before: Id of the oldest snapshot to keep; those before it expire.
        gone: Ids of the snapshots that can no longer be read, in order.
        tagged: Ids of the older snapshots that their tags keep, by tag. Base snapshots of branches
            are kept too.
    """

    before: int
    gone: tuple[int, ...]
    tagged: dict[str, int]

    @classmethod
    def of(
        cls, state: TableState, before: int, fact: SnapshotsExpired | SnapshotsRemoved | None
    ) -> ExpiryEffect:
        """Return the effect of expiring the snapshots before one in a state.

        Args:
            state: State before the expiry.
            before: Id of the oldest snapshot to keep.
            fact: Event to commit; None if nothing expires.
        """
        if fact is None:
            return cls(before, (), {})
        if isinstance(fact, SnapshotsRemoved):
            return cls._of_removal(state, fact)
        before = fact.earliest_snapshot_id
        ids = reversed(state.snapshot_ids)
        older = [each for each in ids if state.earliest_snapshot_id <= each < before]
        kept = state.held_snapshot_ids
        gone = tuple(each for each in older if each not in kept)
        return cls(before, gone, _tags_among(state, older))

    @classmethod
    def _of_removal(cls, state: TableState, fact: SnapshotsRemoved) -> ExpiryEffect:
        """Return the effect of an event that lists the snapshots, whose ids have no order.

        The oldest snapshot to keep is not in the event: it is the first one after those removed
        that not only a tag keeps.
        """
        ids = state.snapshot_ids[::-1]
        removed = frozenset(fact.snapshot_ids)
        last = max(place for place, each in enumerate(ids) if each in removed)
        tagged = {each.snapshot_id for each in state.tags.values()} - {state.last_snapshot_id}
        before = next(
            (each for each in ids[last + 1 :] if each not in tagged), state.last_snapshot_id
        )
        older = [*takewhile(lambda each: each != before, ids)]
        return cls(before, fact.snapshot_ids, _tags_among(state, older))

    @classmethod
    def of_commit(cls, table: Table, version: int) -> ExpiryEffect:
        """Return the effect of a committed expiry."""
        state = table.at(version=version - 1).state
        for transaction in handle_of(table).log.commit_at(version).transactions:
            for event in transaction.events:
                if isinstance(event, SnapshotsExpired | SnapshotsRemoved):
                    return cls.of(state, state.earliest_snapshot_id, event)
        return cls.of(state, state.earliest_snapshot_id, None)


def _tags_among(state: TableState, snapshot_ids: Collection[int]) -> dict[str, int]:
    """Return the tags of some snapshots: their snapshot ids by name."""
    return {
        name: tag.snapshot_id
        for name, tag in sorted(state.tags.items())
        if tag.snapshot_id in snapshot_ids
    }


def expire(  # noqa: PLR0913 - each is an option of the command
    name: TableName,
    /,
    *,
    before: Annotated[int | None, Parameter(help="Id of the oldest snapshot to keep.")] = None,
    keep: Annotated[
        int | None,
        Parameter(validator=check_one_or_more, help="Number of newest snapshots to keep."),
    ] = None,
    older_than: Annotated[
        str | None,
        Parameter(help="Expire snapshots replaced before a time or age, such as 30d."),
    ] = None,
    yes: Confirmed = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Expire a table's oldest snapshots; without --yes, show the plan.

    Tagged snapshots are kept, and no file is deleted. An expired snapshot cannot be restored; its
    contents can still be read by the version that committed it.

    Example:
        lakeledger expire shop.flights --keep 10

        lakeledger expire shop.flights --older-than 30d --yes
    """
    if sum(each is not None for each in (before, keep, older_than)) != 1:
        raise UsageError(
            "no snapshots to expire; give one of --before N, --keep N and --older-than TIME"
        )
    table = place.table(name)
    first_kept = partial(_oldest_snapshot_to_keep, table, before, keep, older_than)
    document: dict[str, Any] = {"table": str(table.identifier), "dryRun": not yes}
    if not (yes and writing.commit_id):
        state = table.state
        oldest = first_kept()
        change = ExpireSnapshots(oldest)
        refuse_by_owner(state, [change])
        fact = decide_snapshot_expiry(state, change)
        effect = ExpiryEffect.of(state, oldest, fact)
        # Repeated runs of a job make no commits if nothing expires.
        document |= {**_expiry_facts(effect), "version": state.version}
        if fact is None:
            title = f"{name} stays at version {state.version}: there is nothing to expire;"
            place.screen.result(document, lambda to: _print_expiry(to, title, effect))
            return
        if not yes:
            place.screen.result(document, lambda to: _print_plan(to, name, effect))
            return
    appended = writing.once(
        table,
        ["expire", before, keep, older_than],
        lambda options: table.expire_snapshots(before=first_kept(), **options),
    )
    effect = ExpiryEffect.of_commit(table, appended.version)
    document |= {
        **_expiry_facts(effect),
        "version": appended.version,
        "repeated": appended.repeated,
    }
    title = f"{name} version {appended.version} expired"
    if appended.repeated:
        title = f"{name} version {appended.version}, committed before; nothing was written now;"
    place.screen.result(document, lambda to: _print_expiry(to, title, effect))


def _oldest_snapshot_to_keep(
    table: Table, before: int | None, keep: int | None, older_than: str | None
) -> int:
    """Return the id of the oldest snapshot to keep; it is the oldest one if nothing expires."""
    if before is not None:
        return before
    moment = None if older_than is None else read_time(older_than)
    state = table.state
    ids = state.snapshot_ids
    if not ids:
        return state.earliest_snapshot_id
    first = (
        ids[min(keep or 1, len(ids)) - 1] if moment is None else _oldest_since(table, ids, moment)
    )
    return max(state.earliest_snapshot_id, first) if state.origin.has_ordered_ids else first


def _oldest_since(table: Table, ids: Sequence[int], moment: datetime | int) -> int:
    """Return the oldest snapshot that was current at a time or was made after it.

    Args:
        table: The table.
        ids: Its snapshots, newest first.
        moment: The time.
    """
    try:
        then = table.at(timestamp=moment).state
    except NotFoundError:
        return ids[-1]
    known = {*then.snapshot_ids} - {then.last_snapshot_id}
    return next((each for each in reversed(ids) if each not in known), ids[0])


def _expiry_facts(effect: ExpiryEffect) -> dict[str, Any]:
    return {
        "before": effect.before,
        "expired": list(effect.gone),
        "keptByTags": [
            {"tagName": name, "snapshotId": snapshot_id}
            for name, snapshot_id in effect.tagged.items()
        ],
    }


def _print_plan(screen: Screen, name: str, effect: ExpiryEffect) -> None:
    _print_expiry(screen, f"{name} would expire", effect)
    screen.line("nothing was written; expired snapshots cannot be restored")
    screen.line("to commit this plan, add --yes")


def _print_expiry(screen: Screen, title: str, effect: ExpiryEffect) -> None:
    count = len(effect.gone)
    said = f"{count:,} {'snapshot' if count == 1 else 'snapshots'}"
    if count:
        said += f" before {effect.before}: {_format_id_ranges(effect.gone)}"
    screen.line(f"{title} {said}")
    tagged = ((name, str(snapshot_id)) for name, snapshot_id in effect.tagged.items())
    screen.table(("kept by tag", "snapshot"), tagged)


def _format_id_ranges(ids: tuple[int, ...]) -> str:
    """Format ascending ids as ranges.

    >>> _format_id_ranges((1, 2, 3, 7))
    '1 to 3, 7'
    """
    runs: list[list[int]] = []
    for each in ids:
        if runs and runs[-1][-1] == each - 1:
            runs[-1][1:] = [each]
        else:
            runs.append([each])
    return ", ".join(" to ".join(map(str, run)) for run in runs)
