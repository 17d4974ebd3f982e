"""Import of Paimon tables from their folder, and their promotion.

Paimon writes each schema and snapshot once, so new ones are recognised by their ids, unless its
owner rolled back, which deletes files whose ids are used again. No file records the creation time
of a tag without expiry, nor of a branch: they are imported last.

A writer of a Paimon table creates `snapshot-N+1`, once, after it has read `snapshot-N`. A promotion
creates that file last, with the contents of snapshot N: readers find the same rows in it, and every
other writer fails on the existing file, even if it opened the table before, and on every retry.
A faster writer has committed before the promotion, and its snapshot is imported first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import evolve, frozen
from msgspec import UNSET
from msgspec.structs import replace

from ledger.decide.format_rules import SnapshotArrival
from ledger.events import TableEvent
from ledger.events import imported as e
from ledger.events.imported import ImportedPaimonTable, PaimonBranchUpdated
from ledger.events.schema import (
    DropPrimaryKey,
    RemoveOption,
    SchemaEvent,
    SetOption,
    UpdateComment,
    UpdateKeys,
)
from ledger.events.snapshots import (
    SnapshotCommitted,
    SnapshotsExpired,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.events.table import TablePromoted
from ledger.model.errors import (
    AlreadyExistsError,
    LedgerError,
    NotFoundError,
    UnsupportedError,
)
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot, Tag
from ledger.model.types.wire import field_from_wire
from ledger.state.declared_formats import FORMATS_OPTION, Rules
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.schema_builder import SchemaBuilder
from ledger.state.schema_record import schema_record
from ledger.state.table import Origin, TableState
from ledger.stores.file_access import FileAccess
from ledger.table_handle import TableHandle
from projections.importing.deriving import derive_schema_events
from projections.importing.importing import (
    FoundTable,
    Importing,
    IncomingTransactions,
    has_folder,
    tables_below,
)
from projections.importing.promoting import (
    FolderReaders,
    Promoting,
    adoption_snapshot,
    conditional_store,
)
from projections.importing.trial import (
    ImportedCreation,
    PlannedTransaction,
    PlanningState,
    SourceFiles,
    canonical_source,
    canonical_url,
)
from projections.paimon.materialise import project
from projections.paimon.paths import schema_path, snapshot_path, tag_path
from projections.paimon.rules import RULES
from projections.paimon.snapshot_event import snapshot_facts
from projections.paimon.snapshot_file import (
    TagFile,
    is_same_snapshot,
    snapshot_file,
)
from projections.paimon.source import FENCE, PaimonSource


def open_source(source: str, access: FileAccess) -> PaimonSource:
    """Return a handle of a source table.

    Args:
        source: Its folder.
        access: Permission to open files, and the options of their client.

    Raises:
        InvalidInputError: It contains a password or a key.
    """
    at = canonical_url(canonical_source(source))
    return PaimonSource(at, SourceFiles(access.below(at)), {})


def creation_of(source: PaimonSource) -> ImportedCreation:
    """Return the initial state of a table: its oldest available schema."""
    first = source.schema(source.schema_ids[0])
    options = {**first.options, FORMATS_OPTION: "paimon"}
    return ImportedCreation(
        schema=schema_record(evolve(first, options=options)),
        origin=ImportedPaimonTable(
            source=source.location, location=source.location, schema_id=first.id
        ),
        millis=first.time_millis,
        field_id_policy="paimon",
    )


def plan_transactions(trial: PlanningState, source: PaimonSource) -> Iterator[PlannedTransaction]:
    """Yield the transactions to import from a source, oldest first.

    Args:
        trial: The current state; afterwards, the state after all of them.
        source: The table's source.

    Raises:
        AlreadyExistsError: It is another table than the one that was followed.
        UnsupportedError: The ledger cannot store a feature; the message names it.
    """
    yield from _rollback_transactions(trial, source)
    for moment in _new_items(trial.state.origin_of_kind(PaimonOrigin), trial.state.tags, source):
        events: Iterable[TableEvent]
        match moment.what:
            case Schema() as schema:
                events = schema_events(trial.state.schema, schema)
            case Snapshot() as snapshot:
                events = _snapshot_events(trial.state.origin_of_kind(PaimonOrigin), snapshot)
            case TagFile() as tag:
                events = _tag_events(trial.state.tags, moment.name, tag)
        yield trial.take(events, moment.millis, moment.author, f"{source.location}/{moment.path}")
        _check_exact_import(trial, moment.what, source)
    last = (
        *_remaining_tag_events(trial.state.tags, source),
        *_expiry_events(trial.state.origin_of_kind(PaimonOrigin), source),
        *_branch_events(trial.state.origin_of_kind(PaimonOrigin), source.branches()),
    )
    if last:
        yield trial.take(last, 0, "", source.location)


def with_source_times(source: PaimonSource, events: Iterable[TableEvent]) -> Iterator[TableEvent]:
    """Yield the events of a history, with the times that its files have."""
    tags = source.tags
    expired = {each.snapshot.id: each.snapshot for each in tags.values()}
    for each in events:
        if isinstance(each, e.SchemaNamed):
            yield replace(each, time_millis=source.schema(each.schema_id).time_millis)
        elif isinstance(each, SnapshotCommitted):
            number = each.snapshot_id
            is_live = number in source.snapshot_ids
            found = source.snapshot(number) if is_live else expired[number]
            yield replace(each, time_millis=found.time_millis)
        elif isinstance(each, TagCreated | TagReplaced):
            created = tags[each.tag_name].create_time_millis
            yield each if created is None else replace(each, create_time_millis=created)
        else:
            yield each


@frozen
class _ImportItem:
    millis: int
    what: Schema | Snapshot | TagFile
    name: str = ""

    @property
    def path(self) -> str:
        match self.what:
            case Schema(id=number):
                return schema_path(number)
            case Snapshot(id=number):
                return snapshot_path(number)
            case TagFile():
                return tag_path(self.name)

    @property
    def author(self) -> str:
        return self.what.commit_user if isinstance(self.what, Snapshot) else ""


def _new_items(
    table: PaimonOrigin, tags: Mapping[str, Tag], source: PaimonSource
) -> list[_ImportItem]:
    """Return the new items with their times: a schema before the snapshots written with it.

    Clocks of writers differ: times are adjusted so that no later item is earlier.
    """
    wanted = [each for each in source.schema_ids if each not in table.schemas]
    found: list[_ImportItem] = []
    now = 0
    for snapshot in _new_snapshots(table, source):
        while wanted and (
            wanted[0] <= snapshot.schema_id
            or source.schema(wanted[0]).time_millis <= snapshot.time_millis
        ):
            schema = source.schema(wanted.pop(0))
            now = max(now, schema.time_millis)
            found.append(_ImportItem(now, schema))
        now = max(now, snapshot.time_millis)
        found.append(_ImportItem(now, snapshot))
    for each in wanted:
        schema = source.schema(each)
        now = max(now, schema.time_millis)
        found.append(_ImportItem(now, schema))
    at = {each.what.id: each.millis for each in found if isinstance(each.what, Snapshot)}
    for name, tag in source.tags.items():
        if tag.create_time_millis is not None and not _is_same_tag(tags.get(name), tag):
            millis = max(tag.create_time_millis, at.get(tag.snapshot.id, 0))
            found.append(_ImportItem(millis, tag, name))
    # Stable: simultaneous items keep their order, tags after the snapshots that they name.
    return sorted(found, key=lambda each: each.millis)


def _new_snapshots(table: PaimonOrigin, source: PaimonSource) -> list[Snapshot]:
    live = {
        each: source.snapshot(each) for each in source.snapshot_ids if each not in table.snapshots
    }
    tagged = {
        each.snapshot.id: each.snapshot
        for each in source.tags.values()
        if each.snapshot.id not in table.readable_snapshots
        and each.snapshot.id not in source.snapshot_ids
    }
    return [each for _, each in sorted({**tagged, **live}.items())]


def schema_events(before: Schema, wanted: Schema) -> Iterator[TableEvent]:
    """Yield the events that lead from a schema to a later one, its id included.

    Args:
        before: The current schema.
        wanted: The later one, as in its file.
    """
    builder = SchemaBuilder(before)
    for each in derive_schema_events(before, wanted.fields, ()):
        if isinstance(each, e.SchemaReplaced):
            builder.replace(tuple(map(field_from_wire, each.fields)), ())
        else:
            builder.apply(each)
        yield each
    for event in _property_events(builder, wanted):
        builder.apply(event)
        yield event
    if builder.highest_field_id != wanted.highest_field_id:
        yield e.TableFactsSet(last_column_id=wanted.highest_field_id)
    yield e.SchemaNamed(wanted.id)


def _property_events(builder: SchemaBuilder, wanted: Schema) -> Iterator[SchemaEvent]:
    keys = wanted.partition_keys, wanted.primary_keys
    if (builder.partition_keys, builder.primary_keys) != keys:
        only_dropped = builder.partition_keys == wanted.partition_keys and not wanted.primary_keys
        yield DropPrimaryKey() if only_dropped else UpdateKeys(*keys)
    had, has = _without_formats_option(builder.options), _without_formats_option(wanted.options)
    yield from (RemoveOption(each) for each in sorted(had.keys() - has.keys()))
    yield from (SetOption(key, it) for key, it in sorted(has.items()) if had.get(key) != it)
    if builder.comment != wanted.comment:
        yield UpdateComment(wanted.comment)


def _without_formats_option(options: Mapping[str, str]) -> dict[str, str]:
    return {key: each for key, each in options.items() if key != FORMATS_OPTION}


def _snapshot_events(table: PaimonOrigin, snapshot: Snapshot) -> Iterator[TableEvent]:
    if snapshot.schema_id not in table.schemas:
        raise NotFoundError(
            f"{table.location}/{schema_path(snapshot.schema_id)} is missing, and snapshot "
            f"{snapshot.id} was written with it; nothing was imported"
        )
    if snapshot.id in table.kept:
        # A rollback to its tag restored it.
        yield e.SnapshotsRemoved((snapshot.id,))
    yield SnapshotCommitted(snapshot_id=snapshot.id, **snapshot_facts(snapshot))


def _is_same_tag(known: Tag | None, tag: TagFile) -> bool:
    wanted = tag.snapshot.id, tag.time_retained_millis
    return known is not None and (known.snapshot_id, known.time_retained_millis) == wanted


def _tag_events(tags: Mapping[str, Tag], name: str, tag: TagFile) -> Iterator[TableEvent]:
    retained = UNSET if tag.time_retained_millis is None else tag.time_retained_millis
    kind = TagReplaced if name in tags else TagCreated
    yield kind(tag_name=name, snapshot_id=tag.snapshot.id, time_retained_millis=retained)


def _remaining_tag_events(tags: Mapping[str, Tag], source: PaimonSource) -> Iterator[TableEvent]:
    for name, tag in sorted(source.tags.items()):
        if not _is_same_tag(tags.get(name), tag):
            yield from _tag_events(tags, name, tag)
    yield from (TagDeleted(tag_name=each) for each in sorted(tags.keys() - source.tags.keys()))


def _expiry_events(table: PaimonOrigin, source: PaimonSource) -> Iterator[TableEvent]:
    earliest = min(source.snapshot_ids, default=None)
    if earliest is not None and min(table.snapshots) < earliest:
        yield SnapshotsExpired(earliest_snapshot_id=earliest)


def _branch_events(
    table: PaimonOrigin, branches: Mapping[str, Mapping[str, str]]
) -> Iterator[TableEvent]:
    for name in sorted(table.branches.keys() | branches.keys()):
        had, has = table.branches.get(name, {}), branches.get(name, {})
        added = {path: text for path, text in has.items() if had.get(path) != text}
        removed = tuple(path for path in had if path not in has)
        if added or removed:
            yield PaimonBranchUpdated(branch_name=name, added=added or UNSET, removed=removed)


def _rollback_transactions(
    trial: PlanningState, source: PaimonSource
) -> Iterator[PlannedTransaction]:
    """Yield the snapshots and schemas that a rollback at the source removed, as one transaction."""
    table = trial.state.origin_of_kind(PaimonOrigin)
    schemas = _removed_ids(
        table.schemas,
        source.schema_ids,
        lambda each: is_same_schema(table.schema(each), source.schema(each)),
    )
    if len(schemas) == len(table.schemas):
        raise AlreadyExistsError(
            f"the table follows {table.source}, and none of its known schemas exists there any "
            "more: it is another table, or was dropped and recreated; import it under another name"
        )
    ids = source.snapshot_ids
    snapshots = _removed_ids(
        table.snapshots,
        # Anything older than all that remains was expired.
        (*(each for each in table.snapshots if ids and each < ids[0]), *ids),
        lambda each: (
            each < ids[0] or is_same_snapshot(table.snapshots[each], source.snapshot(each))
        ),
    )
    events: list[TableEvent] = [
        TagDeleted(tag_name=name)
        for name, tag in sorted(trial.state.tags.items())
        if tag.snapshot_id in snapshots and name not in source.tags
    ]
    if snapshots:
        events.append(e.SnapshotsRemoved(tuple(snapshots)))
    if schemas:
        left = max(each for each in table.schemas if each not in schemas)
        if trial.state.schema.id in schemas:
            events.append(e.CurrentSchemaSet(left))
        events.append(e.SchemasRemoved(tuple(schemas)))
    if events:
        yield trial.take(events, 0, "", source.location)


def _removed_ids(known: Iterable[int], there: Iterable[int], same: Any) -> list[int]:
    """Return the ids of items that are missing or replaced, ascending.

    Rollbacks remove from the end: anything older than an unchanged item is unchanged.
    """
    ids, found = set(there), []
    for each in sorted(known, reverse=True):
        if each in ids and same(each):
            found += [other for other in known if other < each and other not in ids]
            break
        found.append(each)
    return sorted(found)


def is_same_schema(known: Schema, wanted: Schema) -> bool:
    """Return whether two schemas are equal but for their times and the ledger's own option."""
    return _comparable_schema(known) == _comparable_schema(wanted)


def _comparable_schema(schema: Schema) -> Schema:
    return evolve(
        schema,
        time_millis=0,
        version=3,
        options=_without_formats_option(schema.options),
        field_id_policy="paimon",
    )


def _check_exact_import(
    trial: PlanningState, wanted: Schema | Snapshot | TagFile, source: PaimonSource
) -> None:
    table = trial.state.origin_of_kind(PaimonOrigin)
    match wanted:
        case Schema(id=number):
            is_exact = is_same_schema(trial.state.schema, wanted)
            path = schema_path(number)
        case Snapshot(id=number):
            is_exact = is_same_snapshot(table.snapshots[number], wanted)
            path = snapshot_path(number)
        case TagFile(snapshot=snapshot):
            is_exact = is_same_snapshot(table.readable_snapshots[snapshot.id], snapshot)
            path = "tag"
    if not is_exact:
        raise UnsupportedError(f"the ledger cannot store {source.location}/{path} exactly")


def read(
    source: str, table: TableHandle | None, now_millis: int, access: FileAccess
) -> IncomingTransactions:
    """Return the new transactions; see `projections.importing.importing.Read`."""
    found = open_source(source, access)
    known = None if table is None else table.state
    if known is not None and not _is_imported_from(known.origin, found.location):
        raise AlreadyExistsError(
            f"the table follows {known.origin.source}, not {found.location}; import that under "
            "another name"
        )
    ids = found.schema_ids
    newest = f"snapshot/snapshot-{max(found.snapshot_ids, default=0)}"
    creation = None if known is not None else creation_of(found)
    start = known if creation is None else creation.state()
    if start is None:
        raise AssertionError("a table exists, or has an origin")
    steps = tuple(plan_transactions(PlanningState(start, now_millis), found))
    if steps:
        found.check_files_exist()
    path = newest if found.snapshot_ids else f"schema/schema-{ids[-1]}"
    return IncomingTransactions(
        found.location, f"{found.location}/{path}", creation, steps, tuple(found.not_carried())
    )


def _is_imported_from(origin: Origin, location: str) -> bool:
    return isinstance(origin, PaimonOrigin) and origin.location == location


def find_tables(source: str, access: FileAccess) -> list[FoundTable]:
    """Return the tables of a warehouse or a database's folder."""
    at = canonical_url(canonical_source(source))
    return tables_below(SourceFiles(access.below(at)), at, has_folder("schema"))


PAIMON = Importing("paimon", read, find_tables)


_OWNER = "lakeledger.location"
_OF_ROWS = {
    "row-tracking.enabled": "its engines assign row ids",
    "data-evolution.enabled": "its files hold subsets of the columns",
}
_OWN_TABLE = "write its rows into a table of the ledger's own (lakeledger create, then add-files)"


class PaimonHandover:
    """See `projections.importing.promoting.Handover`."""

    def source(self, table: TableHandle) -> str:
        """Return the URL or path of the table's source."""
        return table.state.origin_of_kind(PaimonOrigin).source

    def is_here(self, table: TableHandle, source: str, access: FileAccess) -> bool:
        """Return False: the source folder never refers to the ledger's files.

        Raises:
            UnsupportedError: Another ledger owns the table.
        """
        if open_source(source, access).fence not in {None, table.state.table_id}:
            raise UnsupportedError(
                f"{source} is already written by a ledger's table and rejects other writers: "
                "commit there; this table has its history up to then"
            )
        return False

    def promotion(self, table: TableHandle, source: str) -> tuple[TableEvent, ...]:
        """Return the events of the promotion: Paimon's engines can write any table of theirs."""
        del source
        return (TablePromoted(source=table.state.origin.source),)

    def adoption(self, table: TableHandle) -> tuple[TableEvent, ...]:
        """Return the snapshot that lists the live files; none without a snapshot.

        Raises:
            UnsupportedError: Only Paimon's engines can write what the table needs.
            NotFoundError: A manifest is missing.
        """
        state = table.state
        paimon, name = state.origin_of_kind(PaimonOrigin), table.identifier
        for problem in _table_problems(state):
            raise UnsupportedError(f"table {name} stays its engines': {problem}")
        files = table.newest_files_of_engines(state)
        for problem in _file_problems(state, paimon, files):
            raise UnsupportedError(f"table {name} stays its engines': {problem}")
        current = paimon.current
        if current is None:
            return ()
        adopted = adoption_snapshot(
            files,
            total_record_count=sum(each.record_count for each in files),
            snapshot_id=current.id + 1,
            schema_id=state.schema.id,
            watermark=UNSET if current.watermark is None else current.watermark,
            named_schema_ids=tuple(sorted({each.schema_id for each in files})),
        )
        return (adopted,)

    def hand_over(
        self, table: TableHandle, source: str, access: FileAccess, now_millis: int
    ) -> bool:
        """Write the fence file, if there were no new commits meanwhile.

        Then the source is checked once more. Where its storage has no conditional create, or it has
        no snapshot yet, its owner has to stop its writers, and nothing is written there.
        """
        found = open_source(source, access)
        current = table.state.origin_of_kind(PaimonOrigin).current
        newest = found.snapshot_ids[-1] if found.snapshot_ids else 0
        if current is None:
            return not newest
        if newest != current.id or not is_same_snapshot(current, found.snapshot(newest)):
            return False
        folder = canonical_url(canonical_source(source))
        store = None if found.fence else conditional_store(folder, access)
        if store is None:
            return True
        # A concurrent writer was first: the next import reads its snapshot.
        body = _fence_file(table, found.snapshot(newest), now_millis)
        store.create(snapshot_path(newest + 1), body)
        return False

    def instructions(self, table: TableHandle) -> tuple[str, ...]:
        """Return the steps left for the table's former owner, a sentence each."""
        paimon, name = table.state.origin_of_kind(PaimonOrigin), table.identifier
        read = f"let readers read {table.location}: it continues the source's snapshots"
        keep = (
            f"keep the files below {paimon.source}, and let no snapshots expire there: older rows "
            "are stored in it"
        )
        on = f"after later changes, update the files: lakeledger project paimon {name}"
        return (*_source_steps(table, paimon), read, keep, on)


def _source_steps(table: TableHandle, paimon: PaimonOrigin) -> Iterator[str]:
    """Yield the steps left at the source, from its current state."""
    stop = f"stop all writers of {paimon.source}: what commits there now is lost here"
    try:
        table.file_access.check(paimon.source)
        found = open_source(paimon.source, table.file_access)
        fence, later = found.fence, [*found.snapshot_ids]
    except (LedgerError, OSError):
        yield stop
        return
    last = paimon.source_last_id
    if fence == table.state.table_id:
        yield (
            f"direct its writers to the ledger: {paimon.source} rejects all commits, since its "
            f"snapshot-{last + 1} has the id of snapshot {last}"
        )
    else:
        yield stop
    lost = [each for each in later if each > last]
    if paimon.is_promoted and lost:
        named = ", ".join(map(str, lost))
        yield (
            f"snapshots {named} were committed to {paimon.source} after the promotion: import it "
            "under another name and add their files"
        )
    if paimon.branches:
        named = ", ".join(sorted(paimon.branches))
        yield f"stop the writers of its branches {named}, too: the ledger keeps them unchanged"


def _fence_file(table: TableHandle, newest: Snapshot, now_millis: int) -> bytes:
    """Return the file that takes the next snapshot's place: the newest one's rows again.

    Streaming readers skip it, since it is marked as a compaction.
    """
    said = {FENCE: table.state.table_id, _OWNER: table.location}
    again = evolve(
        newest,
        commit_kind="COMPACT",
        commit_user="lakeledger",
        time_millis=max(now_millis, newest.time_millis),
        changelog_manifest_list=None,
        changelog_manifest_list_size=None,
        changelog_record_count=None,
        properties=said,
    )
    return snapshot_file(again)


def _table_problems(state: TableState) -> Iterator[str]:
    """Yield the reasons for which only engines can commit to a table, a sentence each."""
    schema = state.schema
    if schema.primary_keys:
        yield (
            f"it has the primary key {', '.join(schema.primary_keys)}, and only Paimon's engines "
            "merge its levels of rows; go on following or serving it, or " + _OWN_TABLE
        )
    for option, why in _OF_ROWS.items():
        if schema.options.get(option, "").lower() == "true":
            yield f"it has {option}, so that {why}; go on following or serving it, or {_OWN_TABLE}"
    if state.snapshot is not None and state.snapshot.index_manifest is not None:
        yield (
            f"snapshot {state.snapshot.id} reads the index manifest "
            f"{state.snapshot.index_manifest}, such as of deletion vectors, which the ledger does "
            "not list; compact the table there until it needs none"
        )


def _file_problems(
    state: TableState, paimon: PaimonOrigin, files: tuple[FileChange, ...]
) -> Iterator[str]:
    """Yield the reasons for which the ledger cannot list its files, a sentence each."""
    for each in files:
        if each.schema_id not in paimon.schemas:
            yield (
                f"file {each.path} was written with schema {each.schema_id}, which a rollback "
                "removed there, so that its columns are unknown; write its rows again"
            )
    arrival = SnapshotArrival(state, Rules.of(state.schema.options), files, {}, is_back=False)
    for problem in RULES.file_problems(arrival):
        yield f"{problem.what}: {problem.rule}; {problem.alternative}"


PROMOTE = Promoting(PAIMON, PaimonHandover(), FolderReaders(project))
