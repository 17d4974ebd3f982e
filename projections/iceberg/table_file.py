"""Iceberg metadata file of a table at one version.

It includes the name mapping: the field to which each name in files without field ids refers.

Statistics files are written when statistics are published, and named by the log, so that metadata
is a function of the log, whatever the bytes of a Parquet file depend on.

The next version copies unchanged JSON from the previous metadata file, so that it costs
the bytes and no parsing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from attrs import Factory, define, evolve, frozen
from msgspec.structs import replace

import projections.iceberg.metadata_schema as iceberg
from ledger.decide.name_mapping import NAME_MAPPING, NamedPart, learn_names
from ledger.events import TableEvent
from ledger.events.imported import StatisticsSet
from ledger.events.snapshots import PartitionStatisticsSet
from ledger.model.errors import UnsupportedError
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.iceberg_objects import (
    MAIN,
    IcebergSnapshot,
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
)
from ledger.model.schema import Schema
from ledger.model.snapshot import BRANCH_IDS, Branch, Tag
from ledger.state.table import TableState
from projections.iceberg.manifest_entry import UNLAID, TableFacts
from projections.iceberg.metadata_schema import NestedField
from projections.iceberg.metadata_schema import Schema as IcebergSchema
from projections.iceberg.position import Names
from projections.iceberg.schema_json import schema_from_json, schema_to_json
from projections.iceberg.table_json import write_metadata
from projections.iceberg.table_metadata import (
    MAX_REF_AGE,
    NEVER_MS,
    TableMetadata,
)

_RESERVED = frozenset(
    {
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)


def properties(schema: Schema) -> dict[str, str]:
    """Return a table's properties, by name.

    Example:
        >>> properties(Schema.of({"a": "INT"}, options={"format-version": "3"}, comment="orders"))
        {'comment': 'orders'}
    """
    found = {key: value for key, value in schema.options.items() if key not in _RESERVED}
    if schema.comment is not None:
        found["comment"] = schema.comment
    return dict(sorted(found.items()))


def _named_parts(
    trail: MetadataTrail, schema_id: int, names: Mapping[int, str]
) -> tuple[NamedPart, ...]:
    """Return the columns of a schema, some under other names, by field id."""

    def part(field: NestedField) -> NamedPart:
        members = iceberg.type_members(field.type)
        return NamedPart(field.id, names.get(field.id, field.name), tuple(map(part, members)))

    return tuple(map(part, trail.schema(schema_id).fields))


def partition_statistics(
    state: TableState, facts: TableFacts
) -> tuple[PartitionStatisticsFile, ...]:
    """Return the partition statistics files in a metadata file, by snapshot."""
    return tuple(
        replace(file, statistics_path=facts.data_uri(file.statistics_path))
        for _, file in sorted(state.partition_statistics.items())
    )


def puffin_files(state: TableState, facts: TableFacts) -> tuple[StatisticsFile, ...]:
    """Return the Puffin files in a metadata file, by snapshot."""
    return tuple(
        replace(file, statistics_path=facts.data_uri(file.statistics_path))
        for _, file in sorted(state.statistics.items())
    )


@define
class LoggedStatisticsFiles:
    """The statistics files that a run's log names, to find those that are unreferenced now.

    Attributes:
        names: The names of the table's files; files with other names belong to other programs.
    """

    names: Names
    _snapshots: set[int] = Factory(set)
    _puffin: dict[str, int] = Factory(dict)

    @classmethod
    def at(cls, names: Names, before: TableState | None) -> LoggedStatisticsFiles:
        """Return the files that a state names; none before the first commit."""
        found = cls(names)
        if before is not None:
            found._snapshots.update(before.partition_statistics)
            found._puffin.update(
                {each.statistics_path: key for key, each in before.statistics.items()}
            )
        return found

    def learn(self, event: TableEvent) -> None:
        """Add a file that an event names."""
        if isinstance(event, PartitionStatisticsSet):
            self._snapshots.add(event.partition_statistics.snapshot_id)
        elif isinstance(event, StatisticsSet):
            self._puffin[event.statistics.statistics_path] = event.statistics.snapshot_id

    def garbage(self, target: TableState) -> Iterator[str]:
        """Yield the files of expired snapshots, and those replaced since."""
        for snapshot_id in sorted(self._snapshots):
            if not target.reachable(snapshot_id):
                yield self.names.partition_statistics(snapshot_id)
        named = {each.statistics_path for each in target.statistics.values()}
        for path, snapshot_id in sorted(self._puffin.items()):
            if path not in named and self.names.holds_sketches(path, snapshot_id):
                yield path


_Raw = msgspec.Raw
_encode = msgspec.json.encode


class _TrailKeys(msgspec.Struct, rename="kebab"):
    """The keys of a metadata file that a trail copies."""

    last_updated_ms: int
    current_schema_id: int
    schemas: list[_Raw]
    snapshots: list[_Raw]
    snapshot_log: list[SnapshotLogEntry]


class _SnapshotIdRecord(msgspec.Struct, rename="kebab"):
    snapshot_id: int


class _TimestampRecord(msgspec.Struct, rename="kebab"):
    timestamp_ms: int


class _RowIdRecord(msgspec.Struct, rename="kebab"):
    first_row_id: int | None = None


class _SchemaIdRecord(msgspec.Struct, rename="kebab"):
    schema_id: int


@define
class MetadataTrail:
    """Schemas, snapshots and snapshot log of a table's metadata, oldest first.

    Attributes:
        last_updated_ms: The time of the newest commit, in milliseconds since 1970.
        schema_id: The current schema's id.
        schemas: The schemas by id.
        snapshots: The snapshots by id.
        snapshot_log: The snapshots that were current, with the time since.
    """

    last_updated_ms: int = 0
    schema_id: int = 0
    schemas: dict[int, bytes] = Factory(dict)
    snapshots: dict[int, bytes] = Factory(dict)
    snapshot_log: list[SnapshotLogEntry] = Factory(list)

    @classmethod
    def of(cls, body: bytes) -> MetadataTrail:
        """Return the trail of a metadata file that the ledger projected."""
        grown = msgspec.json.decode(body, type=_TrailKeys)
        schema_id, snapshot_id = (
            msgspec.json.Decoder(_SchemaIdRecord),
            msgspec.json.Decoder(_SnapshotIdRecord),
        )
        return cls(
            last_updated_ms=grown.last_updated_ms,
            schema_id=grown.current_schema_id,
            schemas={schema_id.decode(each).schema_id: bytes(each) for each in grown.schemas},
            snapshots={
                snapshot_id.decode(each).snapshot_id: bytes(each) for each in grown.snapshots
            },
            snapshot_log=grown.snapshot_log,
        )

    def copy(self) -> MetadataTrail:
        """Return a trail that does not change with this one."""
        return evolve(
            self,
            schemas=self.schemas.copy(),
            snapshots=self.snapshots.copy(),
            snapshot_log=self.snapshot_log.copy(),
        )

    @property
    def schema_body(self) -> bytes:
        """The current schema."""
        return self.schemas[self.schema_id]

    def schema(self, schema_id: int) -> IcebergSchema:
        """Return a schema by id."""
        return schema_from_json(msgspec.json.decode(self.schemas[schema_id]))

    def add_schema(self, schema: IcebergSchema) -> None:
        """Make a schema current; one with equal content keeps its id."""
        body = _encode(schema_to_json(schema))
        content = _schema_content(body)
        for known_id, known in self.schemas.items():
            if _schema_content(known) == content:
                self.schema_id = known_id
                return
        self.schemas[schema.schema_id] = body
        self.schema_id = schema.schema_id

    def add_snapshot(self, snapshot: IcebergSnapshot) -> None:
        """Add a snapshot, not yet to the snapshot log."""
        self.snapshots[snapshot.snapshot_id] = _encode(snapshot)

    def timestamp_ms(self, snapshot_id: int) -> int:
        """Return the time of an existing snapshot."""
        return msgspec.json.decode(self.snapshots[snapshot_id], type=_TimestampRecord).timestamp_ms

    def has_row_ids(self, snapshot_id: int) -> bool:
        """Return whether the rows of an existing snapshot have ids."""
        body = self.snapshots.get(snapshot_id)
        return (
            body is not None
            and msgspec.json.decode(body, type=_RowIdRecord).first_row_id is not None
        )

    def log_snapshot(self, snapshot_id: int, timestamp_ms: int) -> None:
        """Add the current snapshot after a commit to the snapshot log."""
        self.snapshot_log.append(SnapshotLogEntry(timestamp_ms, snapshot_id))

    def correct_clock(self, latest_ms: int) -> None:
        """Lower all times so far to a limit: readers reject logs whose times decrease."""
        self.last_updated_ms = min(self.last_updated_ms, latest_ms)
        for snapshot_id, body in self.snapshots.items():
            keys: dict[str, Any] = msgspec.json.decode(body, type=dict[str, _Raw])
            if int(bytes(keys["timestamp-ms"])) > latest_ms:
                keys["timestamp-ms"] = latest_ms
                self.snapshots[snapshot_id] = _encode(keys)
        self.snapshot_log = [
            SnapshotLogEntry(min(each.timestamp_ms, latest_ms), each.snapshot_id)
            for each in self.snapshot_log
        ]

    def drop_snapshots(self, is_kept: Callable[[int], bool]) -> None:
        """Remove expired snapshots, and the log entries up to the last one of them."""
        gone = [each for each in self.snapshots if not is_kept(each)]
        if not gone:
            return
        for each in gone:
            del self.snapshots[each]
        log = self.snapshot_log
        gaps = [n for n, each in enumerate(log, 1) if each.snapshot_id not in self.snapshots]
        self.snapshot_log = log[gaps[-1] :] if gaps else log

    def render(self, metadata: TableMetadata) -> bytes:
        """Return a metadata file: given fields, with the trail's schemas and snapshots."""
        # A dict of Raw keeps the order of keys and the text of each value.
        file: dict[str, Any] = msgspec.json.decode(write_metadata(metadata), type=dict[str, _Raw])
        if "schema" in file:
            file["schema"] = _Raw(self.schema_body)
        file["schemas"] = _json_list(self.schemas)
        file["snapshots"] = _json_list(self.snapshots)
        return _encode(file)


def _json_list(bodies: dict[int, bytes]) -> msgspec.Raw:
    return _Raw(b"[" + b",".join(bodies.values()) + b"]")


def _schema_content(body: bytes) -> bytes:
    """Return the JSON of a schema after its type and its id."""
    return body.split(b",", 2)[2]


@frozen
class MappedSchemas:
    """Schemas whose names the name mapping has, by Iceberg's ids.

    Attributes:
        named: Those whose names files without field ids use, the last used last.
        source: Those whose files may have the source's physical names, oldest first.
    """

    named: tuple[int, ...]
    source: tuple[int, ...]


def metadata_file(
    state: TableState,
    trail: MetadataTrail,
    facts: TableFacts,
    *,
    metadata_log: tuple[MetadataLogEntry, ...],
    next_row_id: int,
    mapped: MappedSchemas,
) -> bytes:
    """Return the bytes of a table's metadata file at a version.

    Args:
        state: The table's state right after the version's commit.
        trail: Its schemas, snapshots and snapshot log up to it; expired snapshots are removed.
        facts: Its location, format version and specs.
        metadata_log: Its earlier metadata files.
        next_row_id: The first unassigned row id.
        mapped: The schemas whose names the name mapping has.

    Raises:
        UnsupportedError: Iceberg cannot express the table.
    """
    trail.drop_snapshots(state.reachable)
    last = state.last_snapshot_id
    metadata = TableMetadata(
        format_version=facts.format_version,
        table_uuid=state.table_id,
        location=facts.location,
        last_sequence_number=facts.sequence_number(_highest_snapshot_id(state)),
        last_updated_ms=state.effective_millis,
        last_column_id=max(0, state.schema.highest_field_id),
        current_schema_id=trail.schema_id,
        # Its content comes from the trail.
        schemas=(IcebergSchema(trail.schema_id),),
        default_spec_id=state.default_spec_id,
        partition_specs=_listed_specs(state),
        last_partition_id=state.last_partition_id,
        default_sort_order_id=state.default_order_id,
        sort_orders=state.sort_orders,
        properties=_file_properties(state, trail, mapped),
        current_snapshot_id=last or None,
        next_row_id=next_row_id,
        refs=_snapshot_refs(state, trail),
        statistics=puffin_files(state, facts),
        partition_statistics=partition_statistics(state, facts),
        snapshot_log=tuple(trail.snapshot_log),
        metadata_log=metadata_log,
    )
    return trail.render(metadata)


def _listed_specs(state: TableState) -> tuple[PartitionSpec, ...]:
    # Always the same for a table, whatever was erased from it.
    may_lack = state.keeps_outside and any(each.fields for each in state.specs)
    return (*state.specs, UNLAID) if may_lack else tuple(state.specs)


def _highest_snapshot_id(state: TableState) -> int:
    """Return a number that is at least the id of every snapshot ever, on main or a branch."""
    ever = state.last_branch_number
    return (ever + 1) * BRANCH_IDS - 1 if ever else state.last_snapshot_id


def _file_properties(
    state: TableState, trail: MetadataTrail, mapped: MappedSchemas
) -> Mapping[str, str]:
    found = properties(state.schema)
    if mapped.named or mapped.source:
        used = [each for each in mapped.named if each != trail.schema_id]
        known = [_named_parts(trail, each, {}) for each in (*used, trail.schema_id)]
        # Last: whether ids are in a source's file is unknown, and its names are these for certain.
        names = state.origin.physical_names
        known += [_named_parts(trail, each, names) for each in mapped.source]
        found[NAME_MAPPING] = learn_names(found.get(NAME_MAPPING), known)
    return dict(sorted(found.items()))


def _snapshot_refs(state: TableState, trail: MetadataTrail) -> dict[str, SnapshotRef]:
    if MAIN in state.tags:
        raise UnsupportedError(
            f"tag {MAIN!r} is not possible in an Iceberg table, whose branch has that name: rename "
            "the tag"
        )
    refs = {}
    if state.last_snapshot_id:
        refs[MAIN] = SnapshotRef(snapshot_id=state.last_snapshot_id, type="branch")
    for name, tag in sorted(state.tags.items()):
        refs[name] = SnapshotRef(
            snapshot_id=tag.snapshot_id, type="tag", max_ref_age_ms=_tag_max_age(tag, state, trail)
        )
    for name, branch in sorted(state.branches.items()):
        refs[name] = SnapshotRef(
            snapshot_id=branch.head_id,
            type="branch",
            min_snapshots_to_keep=branch.min_snapshots_to_keep,
            max_snapshot_age_ms=branch.max_snapshot_age_millis,
            max_ref_age_ms=_branch_max_age(branch, state),
        )
    return refs


def _branch_max_age(branch: Branch, state: TableState) -> int | None:
    if branch.max_ref_age_millis is None and MAX_REF_AGE in state.schema.options:
        return NEVER_MS
    return branch.max_ref_age_millis


def _tag_max_age(tag: Tag, state: TableState, trail: MetadataTrail) -> int | None:
    """Return the age of a tag's snapshot when the tag expires; None if it never does.

    Iceberg counts from the snapshot, and the ledger from the tag, which may be much younger.
    """
    retained = tag.time_retained_millis
    if retained is None:
        return NEVER_MS if MAX_REF_AGE in state.schema.options else None
    age_then = tag.create_time_millis - trail.timestamp_ms(tag.snapshot_id)
    return min(max(1, age_then + retained), NEVER_MS)
