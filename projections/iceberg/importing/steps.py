"""What happened between two metadata files, moment by moment, as far as the later one tells.

A file that many commits lie behind still says when each of its snapshots was made, under which
schema, and when it was the current one. Nobody knows when a tag was set or a property changed: they
come with the file itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby

from attrs import evolve, frozen

from ledger.evolution.table.origin.iceberg import author_of
from projections.iceberg.importing.moved import beyond, snapshots_moved
from projections.iceberg.metadata.schema import Schema
from projections.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotLogEntry, SnapshotRef
from projections.iceberg.metadata.table import TableMetadata


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
    snapshots: tuple[Snapshot, ...]
    logged: tuple[SnapshotLogEntry, ...]


def steps(before: TableMetadata, after: TableMetadata) -> Iterator[Step]:
    """Yield the moments from one metadata file to a later one, oldest first."""
    moments = list(_moments(before, after))
    reached, there = before, {*before.snapshots_by_id}
    for position, moment in enumerate(moments):
        *earlier, own = _schemas_until(reached, after, moment.snapshots)
        for schema in earlier:
            reached = _with_schema(reached, schema)
            yield Step(reached, moment.millis)
        # The one that the snapshots were made under comes with them.
        reached = _with_schema(reached, own)
        author = next((author_of(each.summary or {}) for each in reversed(moment.snapshots)), "")
        if position == len(moments) - 1 and moment.millis == after.last_updated_ms:
            yield from _alone(reached, after, moment.millis)
            yield Step(after, moment.millis, author, is_whole=True)
            return
        there.update(each.snapshot_id for each in moment.snapshots)
        reached = _with_snapshots(reached, after, moment, there)
        yield Step(reached, moment.millis, author)
    yield from _alone(reached, after, after.last_updated_ms)
    yield Step(after, after.last_updated_ms, is_whole=True)


def _alone(before: TableMetadata, after: TableMetadata, millis: int) -> Iterator[Step]:
    """Yield a step for each of the schemas that are left, but for the last one."""
    left = [each for each in after.schemas if each.schema_id not in before.schemas_by_id]
    reached = before
    for each in left[:-1]:
        reached = _with_schema(reached, each)
        yield Step(reached, millis)


def _named(snapshots: Sequence[Snapshot]) -> set[int | None]:
    return {each.schema_id for each in snapshots}


def _moments(before: TableMetadata, after: TableMetadata) -> Iterator[_Moment]:
    new = snapshots_moved(before, after).new
    entries = beyond(before.snapshot_log, after.snapshot_log)
    if entries is None:
        logged = set(before.snapshot_log)
        entries = tuple(each for each in after.snapshot_log if each not in logged)
    whens: list[tuple[int, int, Snapshot | SnapshotLogEntry]] = [
        *((each.timestamp_ms, each.sequence_number, each) for each in new),
        *((each.timestamp_ms, 2**63, each) for each in entries),
    ]
    whens.sort(key=lambda each: each[:2])
    for millis, group in groupby(whens, key=lambda each: each[0]):
        parts = [part for _, _, part in group]
        yield _Moment(
            millis,
            tuple(each for each in parts if isinstance(each, Snapshot)),
            tuple(each for each in parts if isinstance(each, SnapshotLogEntry)),
        )


def _schemas_until(
    reached: TableMetadata, after: TableMetadata, snapshots: Sequence[Snapshot]
) -> list[Schema]:
    """Return the schemas that came until the one which some snapshots were made under.

    That is the last of them, and the current one where no schema is new.
    """
    used = _named(snapshots) & after.schemas_by_id.keys()
    left = [each for each in after.schemas if each.schema_id not in reached.schemas_by_id]
    places = [place for place, each in enumerate(left) if each.schema_id in used]
    return left[: places[-1] + 1] if places else [reached.schema]


def _with_schema(metadata: TableMetadata, schema: Schema) -> TableMetadata:
    if schema.schema_id == metadata.current_schema_id:
        return metadata
    return evolve(metadata, schemas=(*metadata.schemas, schema), current_schema_id=schema.schema_id)


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
        refs[MAIN] = (
            same
            if same is not None and same.snapshot_id == head
            else SnapshotRef(snapshot_id=head, type="branch")
        )
    known = reached.schemas_by_id
    used = [
        each for one in moment.snapshots if (each := one.schema_id) is not None and each in known
    ]
    return evolve(
        reached,
        snapshots=(*reached.snapshots, *moment.snapshots),
        format_version=after.format_version,
        refs=refs,
        current_snapshot_id=logged[-1].snapshot_id if logged else reached.current_snapshot_id,
        snapshot_log=(*reached.snapshot_log, *logged),
        current_schema_id=used[-1] if used and logged else reached.current_schema_id,
    )
