"""What happened between two metadata files, moment by moment, as far as the later one tells.

A file that many commits lie behind still says when each of its snapshots was made, under which
schema, and when it was the current one. Nobody knows when a tag was set, a property changed, or a
schema that no snapshot names was added: they come with the file itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import groupby

from attrs import evolve, frozen
from msgspec.structs import replace

from ledger.evolution.table.origin.iceberg import author_of
from ledger.model.iceberg.snapshot import MAIN, IcebergSnapshot, SnapshotLogEntry, SnapshotRef
from projections.iceberg.importing.moved import beyond, snapshots_moved
from projections.iceberg.metadata.schema import Schema
from projections.iceberg.metadata.table import ROW_IDS_SINCE, SEQUENCES_SINCE, TableMetadata


@frozen
class Step:
    """One moment.

    Attributes:
        target: What the table says after it; its counters count in the last one of a file alone.
        millis: When it was, Unix milliseconds.
        author: Who made its snapshot, as far as that says.
        is_whole: Whether it is all that the file says.
    """

    target: TableMetadata
    millis: int
    author: str = ""
    is_whole: bool = False


@frozen
class _Moment:
    millis: int
    snapshots: tuple[IcebergSnapshot, ...]
    logged: tuple[SnapshotLogEntry, ...]


def steps(before: TableMetadata, after: TableMetadata) -> Iterator[Step]:
    """Yield the moments from one metadata file to a later one, oldest first."""
    moments = list(_moments(before, after))
    reached, there = before, {*before.snapshots_by_id}
    rising = _rising(before, after)
    for position, moment in enumerate(moments):
        author = next((author_of(each.summary or {}) for each in reversed(moment.snapshots)), "")
        if position == len(moments) - 1 and moment.millis == after.last_updated_ms:
            yield Step(after, moment.millis, author, is_whole=True)
            return
        there.update(each.snapshot_id for each in moment.snapshots)
        reached = _with_schemas(reached, rising, moment)
        reached = _with_snapshots(reached, after, moment, there)
        yield Step(reached, moment.millis, author)
    yield Step(after, after.last_updated_ms, is_whole=True)


def _rising(before: TableMetadata, after: TableMetadata) -> tuple[Schema, ...]:
    """Return the new schemas up to the current one; none where that is not new.

    Those of them that a snapshot of `main` was made under were current then. No file says so of
    any other schema.
    """
    new = [each for each in after.schemas if each.schema_id not in before.schemas_by_id]
    places = [at for at, each in enumerate(new) if each.schema_id == after.current_schema_id]
    return tuple(new[: places[0] + 1]) if places else ()


def _with_schemas(
    reached: TableMetadata, rising: tuple[Schema, ...], moment: _Moment
) -> TableMetadata:
    """Return metadata whose current schema is the one of the snapshots that became current."""
    logged = {each.snapshot_id for each in moment.logged}
    used = {each.schema_id for each in moment.snapshots if each.snapshot_id in logged}
    left = [each for each in rising if each.schema_id not in reached.schemas_by_id]
    places = [place for place, each in enumerate(left) if each.schema_id in used]
    if not places:
        return reached
    came = left[: places[-1] + 1]
    return evolve(reached, schemas=(*reached.schemas, *came), current_schema_id=came[-1].schema_id)


def _moments(before: TableMetadata, after: TableMetadata) -> Iterator[_Moment]:
    new = snapshots_moved(before, after).new
    entries = beyond(before.snapshot_log, after.snapshot_log)
    if entries is None:
        logged = set(before.snapshot_log)
        entries = tuple(each for each in after.snapshot_log if each not in logged)
    whens: list[tuple[int, int, IcebergSnapshot | SnapshotLogEntry]] = [
        *((each.timestamp_ms, each.sequence_number, each) for each in new),
        *((each.timestamp_ms, 2**63, each) for each in entries),
    ]
    whens.sort(key=lambda each: each[:2])
    for millis, group in groupby(whens, key=lambda each: each[0]):
        parts = [part for _, _, part in group]
        yield _Moment(
            millis,
            tuple(each for each in parts if isinstance(each, IcebergSnapshot)),
            tuple(each for each in parts if isinstance(each, SnapshotLogEntry)),
        )


def _with_snapshots(
    reached: TableMetadata, after: TableMetadata, moment: _Moment, there: AbstractSet[int]
) -> TableMetadata:
    """Return metadata after a moment.

    Args:
        reached: It, before.
        after: What the file says.
        moment: It.
        there: The ids of all snapshots up to then, with those of the moment.
    """
    refs = dict(reached.refs)
    logged = [each for each in moment.logged if each.snapshot_id in there]
    if logged:
        head = logged[-1].snapshot_id
        same = after.refs.get(MAIN)
        main = refs.get(MAIN, SnapshotRef(snapshot_id=head, type="branch"))
        refs[MAIN] = (
            same
            if same is not None and same.snapshot_id == head
            else replace(main, snapshot_id=head)
        )
    return evolve(
        reached,
        snapshots=(*reached.snapshots, *moment.snapshots),
        format_version=max(reached.format_version, *map(_oldest_version, moment.snapshots), 1),
        refs=refs,
        current_snapshot_id=logged[-1].snapshot_id if logged else reached.current_snapshot_id,
        snapshot_log=(*reached.snapshot_log, *logged),
    )


def _oldest_version(snapshot: IcebergSnapshot) -> int:
    """Return the oldest format version that has such a snapshot."""
    if snapshot.first_row_id is not None:
        return ROW_IDS_SINCE
    return SEQUENCES_SINCE if snapshot.sequence_number else 1
