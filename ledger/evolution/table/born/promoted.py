"""A table from Iceberg that the ledger owns now: what is decided for it in Iceberg's own words.

It goes on as an Iceberg table: its schemas have Iceberg's ids, each snapshot has Iceberg's summary,
and single snapshots go. Other tables never come here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from ledger.events.born.iceberg import SchemaNamed, SnapshotsRemoved, TableFactsSet
from ledger.evolution.state import TableState
from ledger.evolution.table.born.iceberg import MAIN, UNKNOWN, BornTable, count_of
from ledger.evolution.table.born.summary import FileCounts, FileTotals
from ledger.evolution.table.changes import (
    CommitSnapshot,
    ExpireSnapshots,
    SnapshotChange,
    TagChange,
)
from ledger.model.errors import AlreadyExistsError, InvalidChangeError, NotFoundError
from ledger.model.schema import Schema

FORMAT_VERSION: Final = "format-version"


class SaidInIceberg(Struct, frozen=True):
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


def summary_of(born: BornTable, change: SnapshotChange) -> dict[str, str]:
    """Return what Iceberg says of a snapshot that the ledger makes.

    Args:
        born: The table before it.
        change: What it does.
    """
    counted = FileCounts.of(change.files)
    totals = _totals(born, counted.net)
    if not isinstance(change, CommitSnapshot):
        return counted.summary("OVERWRITE", totals, {})
    properties: Mapping[str, str] = change.facts.get("snapshot_properties") or {}
    return counted.summary(change.commit_kind, totals, properties)


def _totals(born: BornTable, net: FileTotals) -> dict[str, int]:
    """Return the totals after it, of what the snapshot before says totals of.

    As Iceberg has it, one that would be below 0 was never true and is left out.
    """
    current = born.current
    if current is None:
        return net.named
    before: Mapping[str, str] = {} if isinstance(current.summary, UnsetType) else current.summary
    known = {key: count_of(before, key, UNKNOWN) for key in net.named}
    after = {key: known[key] + changed for key, changed in net.named.items()}
    return {key: total for key, total in after.items() if total >= 0 and known[key] != UNKNOWN}
