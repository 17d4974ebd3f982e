"""Commits of REST updates to a table from Iceberg that the ledger owns.

The updates become the events of what they change, decided again on each state that they meet, and
are written only where the metadata that the events project is the metadata that they ask for.

Source: the Iceberg REST catalog specification, CommitTableRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Unpack

from ledger.events import TableEvent
from ledger.events.born.iceberg import MetadataLogUpdated, SnapshotLogUpdated
from ledger.evolution.declared.personal import PERSONAL_OPTION, lost_marks
from ledger.evolution.state import TableState
from ledger.log.request import Appended, CommitOptions
from ledger.model.errors import InvalidChangeError, UnsupportedError
from ledger.table import Table
from projections.iceberg.committing.expiry import Retention, expiring
from projections.iceberg.committing.fold import apply_updates
from projections.iceberg.committing.requirements import (
    TableRequirement,
    check_requirements,
    requirement_from_json,
    requirement_to_json,
)
from projections.iceberg.committing.updates import (
    TableUpdate,
    table_update_from_json,
    update_to_json,
)
from projections.iceberg.importing.differences import counters, difference
from projections.iceberg.importing.metadata import disagreements, metadata_of
from projections.iceberg.metadata.table import TableMetadata
from projections.iceberg.names import Names
from projections.importing.trial import Trial

_LEDGER_OPTIONS = "ledger."
_OF_COMMITS = {"last_updated_ms", "metadata_log"}
"""The parts of metadata that a commit sets and no update asks for."""


def commit_updates(
    table: Table,
    updates: Iterable[TableUpdate | dict[str, Any]],
    requirements: Iterable[TableRequirement | dict[str, Any]] = (),
    **options: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Commit updates of the Iceberg REST catalog; all of them are committed, or none.

    Data goes through the ledger: the updates add no snapshot, leave `main` where it is, and set no
    location, no encryption key and no option of the ledger.

    Args:
        table: A table from Iceberg that the ledger owns.
        updates: In order, as objects or as decoded JSON.
        requirements: The conditions under which they are committed, as objects or decoded JSON.
        options: See CommitOptions.

    Raises:
        InvalidInputError: An update or requirement cannot be read, or contradicts the table.
        InvalidChangeError: An update is not allowed here.
        StaleBaseError: A requirement does not hold.
        UnsupportedError: The table is not from Iceberg, or its types cannot say a schema.
        CommitUnknownError: The store gave no answer.
    """
    batch = [table_update_from_json(each) if isinstance(each, dict) else each for each in updates]
    required: list[Any] = [
        requirement_from_json(each) if isinstance(each, dict) else each for each in requirements
    ]
    wanted = [*map(requirement_to_json, required), *map(update_to_json, batch)]
    return table.commit_events(
        ["icebergUpdates", wanted],
        lambda state: decided(state, table.location, lambda _: batch, required),
        **options,
    )


def expire_snapshots(
    table: Table, retention: Retention, now_ms: int, **options: Unpack[CommitOptions]
) -> Appended[TableState]:
    """Expire the snapshots, branches and tags that Iceberg's retention rules do not keep.

    Args:
        table: A table from Iceberg that the ledger owns.
        retention: The rules, where those of the table and of its branches are not to count.
        now_ms: The time that ages count from, in milliseconds since 1970.
        options: See CommitOptions.

    Raises:
        InvalidInputError, InvalidChangeError, UnsupportedError, CommitUnknownError: As of
            `commit_updates`.
    """
    return table.commit_events(
        ["icebergExpiry", retention.older_than_ms, retention.retain_last, now_ms],
        lambda state: decided(
            state, table.location, lambda found: expiring(found, retention, now_ms=now_ms)
        ),
        **options,
    )


def decided(
    state: TableState,
    location: str,
    batch_of: Callable[[TableMetadata], Sequence[TableUpdate]],
    required: Sequence[TableRequirement] = (),
) -> tuple[TableEvent, ...]:
    """Return the events that updates become on a state; none where they change nothing.

    Args:
        state: The table.
        location: Its own, where the manifest lists of its snapshots lie.
        batch_of: Returns the updates of metadata, in order.
        required: The requirements.

    Raises:
        InvalidInputError, InvalidChangeError, StaleBaseError, UnsupportedError: As of
            `commit_updates`.
    """
    names = Names(state.table_id)
    before = metadata_of(state, lambda each: f"{location}/{names.manifest_list(each)}")
    check_requirements(before, required)
    # No update that is allowed says a time.
    after = apply_updates(before, batch_of(before), now_ms=before.last_updated_ms)
    if after is before:
        return ()
    _check_kept(before, after)
    trial = Trial(state, state.effective_millis)
    # The log of snapshots follows from the snapshots that are removed.
    changed = [
        each
        for each in difference(trial, before, after)
        if not isinstance(each, SnapshotLogUpdated | MetadataLogUpdated)
    ]
    reached = trial.after(changed, state.effective_millis, "")
    events = (*changed, *counters(reached, after))
    reached = trial.after(events, state.effective_millis, "")
    made = metadata_of(reached, lambda each: f"{location}/{names.manifest_list(each)}")
    wrong = [each for each in disagreements(made, after) if each not in _OF_COMMITS]
    if wrong:
        raise UnsupportedError(
            f"the ledger cannot commit these updates: {', '.join(wrong)} would differ from what "
            "they ask for; commit them one by one to find the one that it cannot"
        )
    lost = lost_marks(reached.schema.options.get(PERSONAL_OPTION, ""), reached.schema.fields)
    if lost:
        raise InvalidChangeError(
            f"column {lost[0]} is marked as personal, and the updates rename or drop it: change it "
            "by Table.alter, whose marks follow"
        )
    return events


def _check_kept(before: TableMetadata, after: TableMetadata) -> None:
    """Reject updates of what the ledger itself keeps.

    Raises:
        InvalidChangeError: One is.
    """
    checks = {
        "add a snapshot; the ledger commits the data, by Table.append": (
            after.snapshots_by_id.keys() - before.snapshots_by_id.keys()
        ),
        "move or remove main; the ledger's snapshots move it, by Table.append and Table.rollback": (
            before.current_snapshot_id != after.current_snapshot_id
        ),
        "change the uuid, by which readers know the table": (
            before.table_uuid not in {None, after.table_uuid}
        ),
        "change the location; lakeledger move does": before.location != after.location,
        "change the encryption keys; the ledger writes nothing that is encrypted": (
            before.encryption_keys != after.encryption_keys
        ),
        "change options of the ledger; Table.alter does": _own(before) != _own(after),
    }
    for reason, is_wrong in checks.items():
        if is_wrong:
            raise InvalidChangeError(
                f"the ledger owns the table, and updates cannot {reason}; nothing was committed"
            )


def _own(metadata: TableMetadata) -> dict[str, str]:
    properties = metadata.properties.items()
    return {key: value for key, value in properties if key.startswith(_LEDGER_OPTIONS)}
