"""Import of Paimon tables from their folder, and their promotion.

Paimon writes each schema and snapshot once, so what is new is known by ids, unless its owner rolled
back, which takes files away whose ids come again. Nobody says when a tag without an end was made,
nor a branch: they come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import evolve, frozen
from msgspec import UNSET

from ledger.events import TableEvent
from ledger.events import imported as e
from ledger.events.imported import PaimonBirth, PaimonBranchUpdated
from ledger.events.schema import (
    DropPrimaryKey,
    RemoveOption,
    SchemaEvent,
    SetOption,
    UpdateComment,
    UpdateKeys,
)
from ledger.events.snapshots import (
    CommittedFacts,
    SnapshotCommitted,
    SnapshotsExpired,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.model.errors import AlreadyExistsError, NotFoundError, UnsupportedError
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot, Tag
from ledger.model.types.wire import field_from_wire
from ledger.state.declared_formats import FORMATS_OPTION
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.schema_builder import SchemaBuilder
from ledger.state.schema_record import schema_record
from ledger.state.table import Origin
from ledger.stores.file_access import FileAccess
from ledger.table import Table
from projections.importing.deriving import derived
from projections.importing.importing import (
    FoundTable,
    Importing,
    Incoming,
    has_folder,
    tables_below,
)
from projections.importing.trial import ImportedBirth, Planned, Trial
from projections.paimon.paths import schema_path, snapshot_path, tag_path
from projections.paimon.snapshot_file import TagFile
from projections.paimon.sources import Source, open_source


def birth_of(source: Source) -> ImportedBirth:
    """Return how a table begins: with the oldest schema that is there.

    Raises:
        UnsupportedError: The source says that it is of other formats.
    """
    first = source.schema(source.schema_ids[0])
    formats = first.options.get(FORMATS_OPTION, "paimon")
    if formats != "paimon":
        raise UnsupportedError(
            f"the source has the option {FORMATS_OPTION}={formats}, which in the ledger says "
            "paimon for its table; take it away there"
        )
    options = {**first.options, FORMATS_OPTION: "paimon"}
    return ImportedBirth(
        schema=schema_record(evolve(first, options=options)),
        born=PaimonBirth(source=source.location, location=source.location, schema_id=first.id),
        millis=first.time_millis,
        field_id_policy="paimon",
    )


def planned(trial: Trial, source: Source) -> Iterator[Planned]:
    """Yield the transactions that a source brings, oldest first.

    Args:
        trial: The table as it stands; afterwards, as all of them leave it.
        source: The table's.

    Raises:
        AlreadyExistsError: It is another table than the one that was followed.
        UnsupportedError: The ledger cannot hold what it says; the message names it.
    """
    yield from _rolled_back(trial, source)
    for moment in _moments(trial.state.imported_from(PaimonOrigin), trial.state.tags, source):
        events: Iterable[TableEvent]
        match moment.what:
            case Schema() as schema:
                events = schema_events(trial.state.schema, schema)
            case Snapshot() as snapshot:
                events = _snapshot_events(trial.state.imported_from(PaimonOrigin), snapshot)
            case TagFile() as tag:
                events = _tag_events(trial.state.tags, moment.name, tag)
        yield trial.take(events, moment.millis, moment.author, f"{source.location}/{moment.path}")
        _refuse_inexact(trial, moment.what, source)
    last = (
        *_last_tags(trial.state.tags, source),
        *_expiry(trial.state.imported_from(PaimonOrigin), source),
        *_branch_events(trial.state.imported_from(PaimonOrigin), source.branches()),
    )
    if last:
        yield trial.take(last, 0, "", source.location)


@frozen
class _Moment:
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


def _moments(table: PaimonOrigin, tags: Mapping[str, Tag], source: Source) -> list[_Moment]:
    """Return what is new and when it was: a schema before the snapshots that are written with it.

    Clocks of writers differ: what follows something is never earlier.
    """
    wanted = [each for each in source.schema_ids if each not in table.schemas]
    found: list[_Moment] = []
    now = 0
    for snapshot in _new_snapshots(table, source):
        while wanted and (
            wanted[0] <= snapshot.schema_id
            or source.schema(wanted[0]).time_millis <= snapshot.time_millis
        ):
            schema = source.schema(wanted.pop(0))
            now = max(now, schema.time_millis)
            found.append(_Moment(now, schema))
        now = max(now, snapshot.time_millis)
        found.append(_Moment(now, snapshot))
    for each in wanted:
        schema = source.schema(each)
        now = max(now, schema.time_millis)
        found.append(_Moment(now, schema))
    at = {each.what.id: each.millis for each in found if isinstance(each.what, Snapshot)}
    for name, tag in source.tags.items():
        if tag.create_time_millis is not None and not _is_set(tags.get(name), tag):
            millis = max(tag.create_time_millis, at.get(tag.snapshot.id, 0))
            found.append(_Moment(millis, tag, name))
    # Stable: what came at once stays in its order, tags behind what they name.
    return sorted(found, key=lambda each: each.millis)


def _new_snapshots(table: PaimonOrigin, source: Source) -> list[Snapshot]:
    live = {
        each: source.snapshot(each) for each in source.snapshot_ids if each not in table.snapshots
    }
    tagged = {
        each.snapshot.id: each.snapshot
        for each in source.tags.values()
        if each.snapshot.id not in table.every and each.snapshot.id not in source.snapshot_ids
    }
    return [each for _, each in sorted({**tagged, **live}.items())]


def schema_events(before: Schema, wanted: Schema) -> Iterator[TableEvent]:
    """Yield the facts that lead from a schema to a later one, its id included.

    Args:
        before: The one that stands.
        wanted: The later one, as its file says it.
    """
    builder = SchemaBuilder(before)
    for each in derived(before, wanted.fields, ()):
        if isinstance(each, e.SchemaReplaced):
            builder.replace(tuple(map(field_from_wire, each.fields)), ())
        else:
            builder.apply(each)
        yield each
    for event in _around_columns(builder, wanted):
        builder.apply(event)
        yield event
    if builder.highest_field_id != wanted.highest_field_id:
        yield e.TableFactsSet(last_column_id=wanted.highest_field_id)
    yield e.SchemaNamed(wanted.id)


def _around_columns(builder: SchemaBuilder, wanted: Schema) -> Iterator[SchemaEvent]:
    keys = wanted.partition_keys, wanted.primary_keys
    if (builder.partition_keys, builder.primary_keys) != keys:
        only_dropped = builder.partition_keys == wanted.partition_keys and not wanted.primary_keys
        yield DropPrimaryKey() if only_dropped else UpdateKeys(*keys)
    had, has = _options(builder.options), _options(wanted.options)
    yield from (RemoveOption(each) for each in sorted(had.keys() - has.keys()))
    yield from (SetOption(key, it) for key, it in sorted(has.items()) if had.get(key) != it)
    if builder.comment != wanted.comment:
        yield UpdateComment(wanted.comment)


def _options(options: Mapping[str, str]) -> dict[str, str]:
    return {key: each for key, each in options.items() if key != FORMATS_OPTION}


def _snapshot_events(table: PaimonOrigin, snapshot: Snapshot) -> Iterator[TableEvent]:
    if snapshot.schema_id not in table.schemas:
        raise NotFoundError(
            f"{table.location}/{schema_path(snapshot.schema_id)} is gone, and snapshot "
            f"{snapshot.id} was written with it; nothing was imported"
        )
    if snapshot.id in table.kept:
        # A rollback to its tag brought it back.
        yield e.SnapshotsRemoved((snapshot.id,))
    said: dict[str, Any] = {
        each: UNSET if value is None else _plain(value)
        for each in _SAID
        for value in (getattr(snapshot, "properties" if each == "snapshot_properties" else each),)
    }
    yield SnapshotCommitted(snapshot_id=snapshot.id, **said)


_NOT_SAID = {
    *("snapshot_id", "files", "changes", "named_schema_ids", "last_file_creation_time"),
    "summary",
}
_SAID = tuple(
    each
    for each in CommittedFacts.__struct_fields__
    if each not in {*_NOT_SAID, "delta_file_count", "delta_file_size_in_bytes"}
)
"""What a snapshot event says that a snapshot file does, too."""


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _is_set(known: Tag | None, tag: TagFile) -> bool:
    wanted = tag.snapshot.id, tag.time_retained_millis
    return known is not None and (known.snapshot_id, known.time_retained_millis) == wanted


def _tag_events(tags: Mapping[str, Tag], name: str, tag: TagFile) -> Iterator[TableEvent]:
    retained = UNSET if tag.time_retained_millis is None else tag.time_retained_millis
    kind = TagReplaced if name in tags else TagCreated
    yield kind(tag_name=name, snapshot_id=tag.snapshot.id, time_retained_millis=retained)


def _last_tags(tags: Mapping[str, Tag], source: Source) -> Iterator[TableEvent]:
    for name, tag in sorted(source.tags.items()):
        if not _is_set(tags.get(name), tag):
            yield from _tag_events(tags, name, tag)
    yield from (TagDeleted(tag_name=each) for each in sorted(tags.keys() - source.tags.keys()))


def _expiry(table: PaimonOrigin, source: Source) -> Iterator[TableEvent]:
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


def _rolled_back(trial: Trial, source: Source) -> Iterator[Planned]:
    """Yield what a rollback at the source took away, as one transaction."""
    table = trial.state.imported_from(PaimonOrigin)
    schemas = _taken_back(
        table.schemas,
        source.schema_ids,
        lambda each: _same_schema(table.schema(each), source.schema(each)),
    )
    if len(schemas) == len(table.schemas):
        raise AlreadyExistsError(
            f"the table follows {table.source}, and none of the schemas that it had is there any "
            "more: it is another table, or was dropped and made anew; import it under another name"
        )
    ids = source.snapshot_ids
    snapshots = _taken_back(
        table.snapshots,
        # What is older than all that is left was expired.
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


def _taken_back(known: Iterable[int], there: Iterable[int], same: Any) -> list[int]:
    """Return the ids of what is gone, or is another one now, ascending.

    Rollbacks take from the end: what is older than something that is the same is the same.
    """
    ids, found = set(there), []
    for each in sorted(known, reverse=True):
        if each in ids and same(each):
            found += [other for other in known if other < each and other not in ids]
            break
        found.append(each)
    return sorted(found)


def _same_schema(known: Schema, wanted: Schema) -> bool:
    return _without_times(known) == _without_times(wanted)


def _without_times(schema: Schema) -> Schema:
    return evolve(
        schema, time_millis=0, version=3, options=_options(schema.options), field_id_policy="paimon"
    )


def is_same_snapshot(known: Snapshot, wanted: Snapshot) -> bool:
    """Whether a snapshot that came in is the one that is there now: ids come again."""
    return evolve(known, time_millis=0, version=3) == evolve(wanted, time_millis=0, version=3)


def _refuse_inexact(trial: Trial, wanted: Schema | Snapshot | TagFile, source: Source) -> None:
    table = trial.state.imported_from(PaimonOrigin)
    match wanted:
        case Schema(id=number):
            is_exact = _same_schema(trial.state.schema, wanted)
            path = schema_path(number)
        case Snapshot(id=number):
            is_exact = is_same_snapshot(table.snapshots[number], wanted)
            path = snapshot_path(number)
        case TagFile(snapshot=snapshot):
            is_exact = is_same_snapshot(table.every[snapshot.id], snapshot)
            path = "tag"
    if not is_exact:
        raise UnsupportedError(f"the ledger cannot hold what {source.location}/{path} says exactly")


def read(source: str, table: Table | None, now_millis: int, access: FileAccess) -> Incoming:
    """Return what is new; see `projections.importing.importing.Read`."""
    found = open_source(source, access)
    known = None if table is None else table.state
    if known is not None and not _comes_from(known.origin, found.location):
        raise AlreadyExistsError(
            f"the table follows {known.origin.source}, and not {found.location}; import that under "
            "another name"
        )
    ids = found.schema_ids
    newest = f"snapshot/snapshot-{max(found.snapshot_ids, default=0)}"
    birth = None if known is not None else birth_of(found)
    start = known if birth is None else birth.state()
    if start is None:
        raise AssertionError("a table is there, or is born")
    steps = tuple(planned(Trial(start, now_millis), found))
    if steps:
        found.refuse_missing()
    path = newest if found.snapshot_ids else f"schema/schema-{ids[-1]}"
    return Incoming(
        found.location, f"{found.location}/{path}", birth, steps, tuple(found.not_carried())
    )


def _comes_from(origin: Origin, location: str) -> bool:
    return isinstance(origin, PaimonOrigin) and origin.location == location


def tables(source: str, access: FileAccess) -> list[FoundTable]:
    """Return the tables of a warehouse or a database's folder."""
    found = open_source(source, access)
    return tables_below(found.files, found.location, has_folder("schema"))


PAIMON = Importing(read, tables)
