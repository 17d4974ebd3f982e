"""Tables that engines own and commit to through the Iceberg REST catalog.

A table is created, with everything that the engine's request asks, by one commit. Every version of
the table has a metadata file, whose name and bytes are a function of the log: any process that
finds it missing writes it again. Before a version's file is handed out, the files that its metadata
log names exist, too.

Source: the Iceberg REST catalog specification.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import Unpack
from weakref import WeakKeyDictionary

from attrs import define, evolve, frozen
from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.ledger_handle import LedgerHandle
from ledger.ledger_writes import create_recorded_table
from ledger.log.request import CommitOptions
from ledger.log.time_travel import at_version
from ledger.model.errors import DamagedLogError, InvalidInputError, UnsupportedError
from ledger.model.iceberg_objects import MetadataLogEntry
from ledger.model.names import Identifier
from ledger.state.declared_formats import OWN_PREFIX
from ledger.state.iceberg_origin import IcebergOrigin, SnapshotIdRanges, is_id_in_ranges
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.table_handle import TableHandle
from projections.iceberg.differences import counter_change_events, metadata_change_events
from projections.iceberg.engine_files import EngineManifests
from projections.iceberg.foreign_tables import is_foreign, render_foreign
from projections.iceberg.imported import with_statistics_urls
from projections.iceberg.imported_metadata import differing_fields, metadata_of
from projections.iceberg.importing import creation_of
from projections.iceberg.materialise import ICEBERG, project
from projections.iceberg.metadata_folder import read_metadata_file
from projections.iceberg.metadata_update import apply_updates
from projections.iceberg.position import METADATA_PATH, Names, metadata_file_url
from projections.iceberg.rest_updates import TableUpdate, update_to_json
from projections.iceberg.schema_json import integer_property
from projections.iceberg.table_json import read_metadata, write_metadata
from projections.iceberg.table_metadata import (
    DEFAULT_PREVIOUS_VERSIONS,
    PREVIOUS_VERSIONS,
    TableMetadata,
    check_metadata_times,
)
from projections.importing.deriving import options_of_properties
from projections.importing.trial import PlanningState
from projections.locations import check_location, check_unowned_folder
from projections.materialising import outputs_of


def create_table(
    ledger: LedgerHandle,
    name: Identifier,
    updates: Sequence[TableUpdate],
    **commit: Unpack[CommitOptions],
) -> TableHandle:
    """Create a table that engines own, by one commit; its metadata file exists then.

    Args:
        ledger: The ledger.
        name: The table's name; its database exists.
        updates: The updates of a new table, which give it a uuid, a location, a schema, a partition
            spec and a sort order, and may add snapshots, refs and statistics.
        commit: See CommitOptions.

    Raises:
        AlreadyExistsError: A table or view of that name exists.
        NotFoundError: The database does not exist.
        InvalidInputError: The updates contradict each other, set an option of the ledger, or the
            location is not one.
        InvalidChangeError: The location meets another table's folder, or holds a part of a ledger.
        CommitConflictError: A table that is created at the same time has that location.
        UnsupportedError: The location is not allowed, or the ledger cannot hold the metadata.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """
    now = ledger.setting.now_millis()
    after = apply_updates(None, updates, now_ms=now)
    commit.setdefault("asked", ["icebergCreate", str(name), *map(update_to_json, updates)])
    return _create(ledger, name, after, after.location, commit)


def register(
    ledger: LedgerHandle,
    name: Identifier,
    metadata_location: str,
    **commit: Unpack[CommitOptions],
) -> TableHandle:
    """Create a table that engines own from a metadata file, by one commit.

    The engines' files stay where they are. From then on the table's metadata is that of the ledger.

    Args:
        ledger: The ledger.
        name: The table's name; its database exists.
        metadata_location: The URL of the metadata file.
        commit: See CommitOptions.

    Raises:
        AlreadyExistsError, InvalidInputError, InvalidChangeError, CommitConflictError,
            UnsupportedError, CommitUnknownError: As of `create_table`.
        NotFoundError: The database or the file does not exist.
    """
    check_location(ledger, metadata_location, "metadata-location")
    read = read_metadata_file(metadata_location, ledger.setting.file_access().read, None).metadata
    entry = MetadataLogEntry(read.last_updated_ms, metadata_location)
    after = evolve(read, metadata_log=(*read.metadata_log, entry))
    # Readers reject a file whose log is ahead of its own time, which is that of this commit.
    check_metadata_times(evolve(after, last_updated_ms=ledger.setting.now_millis()))
    commit.setdefault("asked", ["icebergRegister", str(name), metadata_location])
    return _create(ledger, name, after, metadata_location, commit)


def _create(
    ledger: LedgerHandle,
    name: Identifier,
    after: TableMetadata,
    source: str,
    commit: CommitOptions,
) -> TableHandle:
    check_location(ledger, after.location, "location")
    if METADATA_PATH in after.properties:
        check_location(ledger, after.properties[METADATA_PATH], METADATA_PATH)
    _refuse_ledger_options(after)
    creation = creation_of(after, source)
    options = {**options_of_properties(after.properties), **creation.schema.options}
    creation = evolve(creation, schema=replace(creation.schema, options=options))
    state = creation.state()
    trial = PlanningState(state, max(state.effective_millis, after.last_updated_ms))
    events = _first_events(trial, after)
    facts = {**creation.facts(), "protocol": "iceberg", "events": events}
    check = partial(check_unowned_folder, ledger, location=after.location)
    table = create_recorded_table(ledger, name, facts, commit, check)
    load(table, table.state)
    return table


def _first_events(trial: PlanningState, after: TableMetadata) -> tuple[TableEvent, ...]:
    """Return the events of version 0 besides the creation, which lead to its metadata."""
    before = metadata_of(trial.state)
    changed = metadata_change_events(trial, before, after)
    reached = trial.after(changed, after.last_updated_ms, "")
    events = (*changed, *counter_change_events(reached, after))
    made = metadata_of(trial.after(events, after.last_updated_ms, ""))
    wrong = [each for each in differing_fields(made, after) if each != "last_updated_ms"]
    if wrong:
        raise UnsupportedError(
            f"the ledger cannot hold this table: {', '.join(wrong)} would differ from what is asked"
        )
    return events


def _refuse_ledger_options(metadata: TableMetadata) -> None:
    found = next((each for each in metadata.properties if each.startswith(OWN_PREFIX)), None)
    if found is not None:
        raise InvalidInputError(
            f"property {found} is an option of the ledger, and engines cannot set it; use "
            "lakeledger alter, or another name"
        )


@frozen
class Loaded:
    """A version of a table for engines.

    Attributes:
        version: The version.
        metadata: The table's metadata.
        location: The URL of the metadata file, which exists.
        body: The file's bytes.
    """

    version: int
    metadata: TableMetadata
    location: str
    body: bytes


@define
class _Written:
    """Newest version whose metadata file exists.

    Attributes:
        newest: The version.
        entries: The entries of it and of the versions before, for metadata logs.
        ledger_ids: The ids of the ledger's own snapshots whose manifest lists exist.
    """

    newest: Loaded
    entries: dict[int, MetadataLogEntry]
    ledger_ids: SnapshotIdRanges = ()


_written: WeakKeyDictionary[TableHandle, _Written] = WeakKeyDictionary()


def load(table: TableHandle, state: TableState) -> Loaded:
    """Return a version of a table, whose metadata file exists then.

    Of a table that the ledger created, or that is from another format, it is the projected one; of
    one whose engines list its files in another format, see `projections.iceberg.foreign_tables`.

    Args:
        table: The table.
        state: Its state at that version.

    Raises:
        UnsupportedError: The table does not declare Iceberg, or Iceberg cannot express it.
        StoreError: The file cannot be written.
    """
    last = _written.get(table)
    if last is not None and last.newest.version == state.version:
        return last.newest
    origin = state.origin
    if is_foreign(state):
        rendered = render_foreign(table, state)
        location = f"{table.location}/{rendered.path}"
        return _remember(table, Loaded(state.version, rendered.metadata, location, rendered.body))
    if not isinstance(origin, IcebergOrigin) or state.owner.kind != "served":
        # The location of a table that others own is theirs to write.
        return _load_projected(table, state)
    if last is None or origin.ledger_ids != last.ledger_ids:
        write_ledger_lists(table, state, () if last is None else last.ledger_ids)
    entries = _log_entries(table, state, {} if last is None else last.entries)
    made = _render(table, state, entries)
    _write_file(table, made)
    if last is None or last.newest.version != state.version - 1:
        _write_earlier_files(table, state, entries)
    if last is None or last.newest.version < state.version:
        entries[state.version] = MetadataLogEntry(made.metadata.last_updated_ms, made.location)
        _written[table] = _Written(made, entries, origin.ledger_ids)
    return made


def _load_projected(table: TableHandle, state: TableState) -> Loaded:
    version = project(table)
    if version != state.version:
        version = project(table, version=state.version)
    path = Names(state.table_id).metadata(version)
    body = outputs_of(table).read(path)
    if body is None:
        raise DamagedLogError(f"{path} is missing right after it was written; load again", path)
    return _remember(table, Loaded(version, read_metadata(body), f"{table.location}/{path}", body))


def _remember(table: TableHandle, made: Loaded) -> Loaded:
    _written[table] = _Written(made, {})
    return made


def write_ledger_lists(
    table: TableHandle, state: TableState, written: SnapshotIdRanges = ()
) -> None:
    """Write the manifest lists of the snapshots that the ledger made, unless all exist.

    The log holds their files, and engines find them by their lists only.

    Args:
        table: The table.
        state: A state of it.
        written: The ids of those whose lists are known to exist.

    Raises:
        DamagedLogError: A manifest that they need is missing or damaged.
        StoreError: A file cannot be written.
    """
    origin = state.origin_of_kind(IcebergOrigin)
    manifests = EngineManifests.of(table, state)
    own = [
        each
        for key, each in origin.snapshots.items()
        if origin.lists_files(key) and not is_id_in_ranges(key, written)
    ]
    # Projecting new commits writes their lists; only a rebuild finds an older one that is lost.
    for write in (ICEBERG.project, ICEBERG.rebuild):
        if any(table.read_file(manifests.list_url(each)) is None for each in own):
            write(table)


def _render(
    table: TableHandle, state: TableState, entries: Mapping[int, MetadataLogEntry]
) -> Loaded:
    names = Names(state.table_id)
    said = metadata_of(state, lambda each: f"{table.location}/{names.manifest_list(each)}")
    base = with_statistics_urls(said, table.location)
    own = (entries[each] for each in _logged_versions(state))
    logged = (*base.metadata_log, *own)[-_most_log_entries(state.schema.options) :]
    if state.corrections:
        logged = _entries_in_order(logged, base.last_updated_ms)
    metadata = evolve(base, metadata_log=logged)
    location = metadata_file_url(
        state.table_id, state.version, state.schema.options, metadata.location
    )
    return Loaded(state.version, metadata, location, write_metadata(metadata))


def _entries_in_order(
    entries: Sequence[MetadataLogEntry], latest_ms: int
) -> tuple[MetadataLogEntry, ...]:
    """Return entries of a log with no time after a later one's, as readers require.

    Those of versions whose times were corrected since then are ahead.
    """
    times = accumulate((each.timestamp_ms for each in reversed(entries)), min, initial=latest_ms)
    in_order = reversed(list(times)[1:])
    return tuple(
        replace(each, timestamp_ms=time_ms) for each, time_ms in zip(entries, in_order, strict=True)
    )


def _logged_versions(state: TableState) -> range:
    """Return the versions that a version's metadata log names."""
    first = state.version - _most_log_entries(state.schema.options)
    return range(max(state.owner.since_version, first), state.version)


def _most_log_entries(options: Mapping[str, str]) -> int:
    # A registered table or a Python program can have any value: the table stays readable.
    with suppress(InvalidInputError):
        return max(1, integer_property(options, PREVIOUS_VERSIONS, DEFAULT_PREVIOUS_VERSIONS))
    return DEFAULT_PREVIOUS_VERSIONS


def _log_entries(
    table: TableHandle, state: TableState, known: Mapping[int, MetadataLogEntry]
) -> dict[int, MetadataLogEntry]:
    """Return the entries of the versions that a version's metadata log names."""
    wanted = _logged_versions(state)
    entries = {each: known[each] for each in wanted if each in known}
    first = next((each for each in wanted if each not in entries), None)
    if first is None:
        return entries
    builder = TableBuilder(at_version(table.log, first))
    entries[first] = _log_entry(state.table_id, builder)
    # As recorded: the fold of an erasable ledger takes commits whose texts are in sidecar files.
    following = table.log.commits(first + 1, state.version - 1) if first + 1 < state.version else ()
    for read in following:
        builder.commit(read.commit)
        entries[builder.version] = _log_entry(state.table_id, builder)
    return entries


def _log_entry(table_id: str, builder: TableBuilder) -> MetadataLogEntry:
    origin = builder.origin
    location = origin.location if isinstance(origin, IcebergOrigin) else ""
    url = metadata_file_url(table_id, builder.version, builder.schema.options, location)
    return MetadataLogEntry(builder.effective_millis, url)


def _write_file(table: TableHandle, made: Loaded) -> bool:
    """Write a metadata file; return False if it exists.

    Raises:
        UnsupportedError: A property from another owner's time names a folder that is not allowed.
    """
    folder, name = posixpath.split(made.location)
    check_location(table, folder, METADATA_PATH)
    return table.setting.store_at(table.reached(folder)).create(name, made.body)


def _write_earlier_files(
    table: TableHandle, state: TableState, entries: Mapping[int, MetadataLogEntry]
) -> None:
    """Write the files before a version's that a process which died left out, newest first."""
    for version in reversed(_logged_versions(state)):
        before = at_version(table.log, version)
        if not _write_file(table, _render(table, before, _log_entries(table, before, entries))):
            return
