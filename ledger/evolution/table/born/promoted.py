"""A table from Iceberg that the ledger owns now: what is decided for it in Iceberg's own words.

It goes on as an Iceberg table: its schemas have Iceberg's ids, each snapshot has Iceberg's summary,
and single snapshots go. Other tables never come here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Self

from attrs import Factory, define, frozen
from msgspec import UNSET, UnsetType

from ledger.events.born.iceberg import SchemaNamed, SnapshotsRemoved, TableFactsSet
from ledger.evolution.state import TableState
from ledger.evolution.table.born.iceberg import MAIN, BornTable
from ledger.evolution.table.changes import (
    CommitSnapshot,
    ExpireSnapshots,
    SnapshotChange,
    TagChange,
)
from ledger.model.errors import AlreadyExistsError, InvalidChangeError, NotFoundError
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema

FORMAT_VERSION: Final = "format-version"


@frozen
class SaidInIceberg:
    """What changes of a schema come to in Iceberg's own words.

    Attributes:
        events: The facts, in order.
        schema_id: The current schema's id after them.
    """

    events: tuple[SchemaNamed | TableFactsSet, ...]
    schema_id: int


def iceberg_facts(state: TableState, born: BornTable, after: Schema) -> SaidInIceberg:
    """Return what Iceberg says of changes of a schema beside the changes themselves.

    Args:
        state: The table before them.
        born: What it has of Iceberg.
        after: Its schema after them.

    Raises:
        InvalidChangeError: The ledger's types do not say all of the schema, or a lower format
            version is asked for.
    """
    named, raised = _schema_named(state, born, after), _version_raised(state, born, after)
    schema_id = born.schema_id if named is None else named.schema_id
    return SaidInIceberg(tuple(each for each in (named, raised) if each is not None), schema_id)


def _schema_named(state: TableState, born: BornTable, after: Schema) -> SchemaNamed | None:
    now = state.schema
    same = (now.fields, now.identifier_field_ids) == (after.fields, after.identifier_field_ids)
    if same:
        return None
    if born.schemas[born.schema_id].text is not UNSET:
        raise InvalidChangeError(
            f"schema {born.schema_id} has types that the ledger does not know, such as fixed[16], "
            "and its columns cannot change here: write the data into a table without them"
        )
    return SchemaNamed(max(born.schemas) + 1)


def _version_raised(state: TableState, born: BornTable, after: Schema) -> TableFactsSet | None:
    asked = after.options.get(FORMAT_VERSION)
    if asked is None or asked == state.schema.options.get(FORMAT_VERSION):
        return None
    if not asked.isdecimal() or int(asked) < born.format_version:
        raise InvalidChangeError(
            f"option {FORMAT_VERSION} cannot be {asked!r}: the table is of Iceberg's format "
            f"version {born.format_version}, which only rises"
        )
    wanted = int(asked)
    return TableFactsSet(format_version=wanted) if wanted > born.format_version else None


def refuse_branch(born: BornTable, change: TagChange) -> None:
    """Refuse a tag that is called as a branch is.

    Raises:
        AlreadyExistsError: It is.
    """
    there = born.refs.get(change.tag_name)
    if there is not None and there.ref_type != "tag":
        raise AlreadyExistsError(
            f"{change.tag_name!r} is a branch of the table; take another name for the tag"
        )


def snapshots_removed(born: BornTable, change: ExpireSnapshots) -> SnapshotsRemoved | None:
    """Return which snapshots go that came before one; None where none is left.

    What a branch or a tag points to stays, and what a branch besides `main` goes back to.

    Raises:
        NotFoundError: There is no such snapshot.
    """
    earliest = change.earliest_snapshot_id
    if earliest not in born.snapshots:
        raise NotFoundError(
            f"snapshot {earliest} does not exist or was expired; there are "
            f"{', '.join(map(str, list(born.snapshots)[-5:]))}"
        )
    kept = set(_kept(born))
    before: list[int] = []
    for each in born.snapshots:
        if each == earliest:
            break
        if each not in kept:
            before.append(each)
    return SnapshotsRemoved(tuple(before)) if before else None


def _kept(born: BornTable) -> Iterator[int]:
    for name, ref in born.refs.items():
        yield ref.snapshot_id
        step: int | UnsetType = ref.snapshot_id
        while name != MAIN and ref.ref_type == "branch" and step in born.snapshots:
            yield step
            step = born.snapshots[step].parent_snapshot_id


@define
class _Sums:
    files: int = 0
    records: int = 0
    size: int = 0

    def take(self, file: FileChange) -> None:
        self.files += 1
        self.records += file.record_count
        self.size += file.file_size_in_bytes


@define
class _Side:
    """What comes, or what goes, by the sort of file."""

    data: _Sums = Factory(_Sums)
    by_position: _Sums = Factory(_Sums)
    vectors: _Sums = Factory(_Sums)
    by_value: _Sums = Factory(_Sums)

    @classmethod
    def of(cls, files: Iterable[FileChange]) -> Self:
        side = cls()
        for each in files:
            side._sums(each).take(each)
        return side

    def _sums(self, file: FileChange) -> _Sums:
        if file.content == "data":
            return self.data
        if file.content == "equality-deletes":
            return self.by_value
        return self.vectors if file.is_vector else self.by_position

    @property
    def delete_files(self) -> int:
        return self.by_position.files + self.vectors.files + self.by_value.files

    @property
    def size(self) -> int:
        return sum(e.size for e in (self.data, self.by_position, self.vectors, self.by_value))

    @property
    def position_deletes(self) -> int:
        return self.by_position.records + self.vectors.records


_OPERATIONS: Final = {"APPEND": "append", "COMPACT": "replace", "ANALYZE": "replace"}
_TOTALS: Final = (
    "data-files",
    "delete-files",
    "records",
    "files-size",
    "position-deletes",
    "equality-deletes",
)


def summary_of(born: BornTable, change: SnapshotChange) -> dict[str, str]:
    """Return what Iceberg says of a snapshot that the ledger makes.

    Args:
        born: The table before it.
        change: What it does.
    """
    more = _Side.of(each for each in change.files if each.kind == "ADD")
    less = _Side.of(each for each in change.files if each.kind == "DELETE")
    counted = {
        "added-data-files": more.data.files,
        "deleted-data-files": less.data.files,
        "added-delete-files": more.delete_files,
        "removed-delete-files": less.delete_files,
        "added-equality-delete-files": more.by_value.files,
        "removed-equality-delete-files": less.by_value.files,
        "added-dvs": more.vectors.files,
        "removed-dvs": less.vectors.files,
        "added-records": more.data.records,
        "deleted-records": less.data.records,
        "added-files-size": more.size,
        "removed-files-size": less.size,
        "added-position-deletes": more.position_deletes,
        "removed-position-deletes": less.position_deletes,
        "added-equality-deletes": more.by_value.records,
        "removed-equality-deletes": less.by_value.records,
    }
    changed = {
        "data-files": more.data.files - less.data.files,
        "delete-files": more.delete_files - less.delete_files,
        "records": more.data.records - less.data.records,
        "files-size": more.size - less.size,
        "position-deletes": more.position_deletes - less.position_deletes,
        "equality-deletes": more.by_value.records - less.by_value.records,
    }
    return {
        "operation": _operation(change, more, less),
        **_said(change),
        **{key: str(count) for key, count in counted.items() if count},
        **_totals(born, changed),
        "engine-name": "lakeledger",
    }


def _operation(change: SnapshotChange, more: _Side, less: _Side) -> str:
    comes = bool(more.data.files or more.delete_files)
    goes = bool(less.data.files or less.delete_files)
    kind = change.commit_kind if isinstance(change, CommitSnapshot) else "OVERWRITE"
    known = _OPERATIONS.get(kind)
    if known is not None and (known != "append" or not (goes or more.delete_files)):
        return known
    return "delete" if goes and not comes else "overwrite"


def _said(change: SnapshotChange) -> dict[str, str]:
    facts = change.facts if isinstance(change, CommitSnapshot) else {}
    said: Mapping[str, str] = facts.get("snapshot_properties") or {}
    return dict(sorted(said.items()))


def _totals(born: BornTable, changed: Mapping[str, int]) -> dict[str, str]:
    """Return the totals after it, of what the snapshot before says totals of."""
    current = born.current
    if current is None:
        before: Mapping[str, str] = dict.fromkeys((f"total-{each}" for each in _TOTALS), "0")
    else:
        before = {} if isinstance(current.summary, UnsetType) else current.summary
    return {
        key: str(max(0, int(before[key]) + changed[each]))
        for each in _TOTALS
        if before.get(key := f"total-{each}", "").isdecimal()
    }
