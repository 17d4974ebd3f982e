"""Protocol and metadata actions of a table, version by version.

The protocol is as low as the table allows. In-commit timestamps are always enabled, since the
modification time of projected files is not that of their version; only writers must support them.

A schema that Delta cannot express leaves the metadata unchanged; it is a problem only if a
snapshot with that schema can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from attrs import Factory, define, frozen

from ledger.model.errors import UnsupportedError
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.types import DataField
from ledger.state.table import TableState
from projections.delta.actions import DeltaPosition
from projections.delta.columns import (
    FileNaming,
    HistoricalColumnNames,
    find_name_conflicts,
    named_fields,
    nested_ids_of,
    physical_names,
    renames_or_drops,
)
from projections.delta.types import (
    INVARIANTS,
    FieldNaming,
    required_features,
    struct_json,
    type_changes,
)

IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
COLUMN_MAPPING = "columnMapping"
TYPE_WIDENING = "typeWidening"

_FOR_WRITERS_ALONE = frozenset({IN_COMMIT_TIMESTAMP, INVARIANTS})
FENCE = "lakeledger"
"""Writer feature that no engine supports: only the ledger writes the files. Engines that support
table features refuse to commit, and still read the table."""

_OF_OLD_WRITERS: Mapping[str, int] = {
    "appendOnly": 2,
    "invariants": 2,
    "checkConstraints": 3,
    "changeDataFeed": 4,
    "generatedColumns": 4,
    "columnMapping": 5,
    "identityColumns": 6,
}
"""First writer version that implies a feature without listing it."""

_IN_METADATA = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "checkConstraints",
        "columnMapping",
        "generatedColumns",
        "identityColumns",
        "invariants",
    }
)
"""Features for writers whose whole content is in the metadata, which a projection passes on."""

_FIRST_READER, _MAPPING_READER, _FEATURE_READER = 1, 2, 3
_FEATURE_WRITER = 7
_OWN_PREFIX = "delta."
_HARMLESS = (
    "delta.autoOptimize",
    "delta.checkpointInterval",
    "delta.dataSkippingNumIndexedCols",
    "delta.dataSkippingStatsColumns",
    "delta.deletedFileRetentionDuration",
    "delta.logRetentionDuration",
    "delta.parquet.",
    "delta.randomizeFilePrefixes",
    "delta.targetFileSize",
    "delta.tuneFileSizesForRewrites",
)
"""Prefixes of options that require no table feature."""

_OPTIONS_KEPT = ("constraints", *(each.strip(".").removeprefix(_OWN_PREFIX) for each in _HARMLESS))
"""Beginnings of options, after `delta.`, that do not have the name of their feature."""

_UNBACKED_OPTIONS = tuple(
    f"{_OWN_PREFIX}{verb}{name}".casefold()
    for verb in ("", "enable")
    for name in (
        "changeDataFeed",
        "clustering",
        "feature.",
        "icebergCompat",
        "icebergWriterCompat",
        "requireCheckpointProtection",
        "rowTracking",
        "universalFormat",
    )
)
"""Beginnings of options of features whose content the projected log does not have."""

_INTERVAL = "delta.checkpointInterval"
_DEFAULT_INTERVAL = 10
_KEPT = "interval 36500 days"
"""Retention of files: the ledger deletes expired ones; no engine's VACUUM deletes live ones."""

_ENCODER = msgspec.json.Encoder()


def is_reserved(option: str) -> bool:
    """Return whether an option is one that the projection sets itself."""
    return option.startswith(_OWN_PREFIX) and not option.startswith(_HARMLESS)


def checkpoint_interval(schema: Schema) -> int:
    """Return the least number of versions between two checkpoints."""
    text = schema.options.get(_INTERVAL, "")
    wanted = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004
    return wanted or _DEFAULT_INTERVAL


def partition_columns(schema: Schema, spec: PartitionSpec) -> tuple[DataField, ...]:
    """Return the columns that partition the Delta table: those with an identity transform.

    Delta ignores fields of other transforms; their columns are in the files.
    """
    columns = {each.id: each for each in schema.fields}
    kept = (each.source_id for each in spec.fields if each.transform == "identity")
    return tuple(columns[each] for each in kept if each in columns)


def protocol_json(features: Collection[str]) -> bytes:
    """Return the lowest protocol with some table features, which locks out other writers.

    Example:
        >>> protocol_json({"invariants"})
        b'{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["invariants","lakeledger"]}'
    """
    reading = sorted(set(features) - _FOR_WRITERS_ALONE)
    found: dict[str, Any] = {"minReaderVersion": _FIRST_READER, "minWriterVersion": _FEATURE_WRITER}
    if reading:
        # Column mapping needs reader version 2 as well; readers without mapping open the table, and
        # show renamed columns as NULL.
        found |= {"minReaderVersion": _FEATURE_READER, "readerFeatures": reading}
    return _ENCODER.encode({**found, "writerFeatures": sorted({*features, FENCE})})


def fence_protocol(protocol: str) -> bytes:
    """Return a source's protocol with other writers locked out; readers see no change.

    Features for writers only whose content the projected log does not have are left out.

    Example:
        >>> fence_protocol(
        ...     '{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["rowTracking"]}'
        ... )[22:]
        b'"minWriterVersion":7,"writerFeatures":["inCommitTimestamp","lakeledger"]}'
    """
    found: dict[str, Any] = msgspec.json.decode(
        with_features(protocol, {IN_COMMIT_TIMESTAMP, FENCE})
    )
    left_out = unbacked_features(protocol)
    kept = [each for each in found["writerFeatures"] if each not in left_out]
    return _ENCODER.encode({**found, "writerFeatures": kept})


def unbacked_features(protocol: str) -> frozenset[str]:
    """Return the features of a source's protocol whose content the projected log does not have.

    Row tracking and clustering need row ids in `add` actions and `domainMetadata` actions, a change
    data feed `cdc` actions, and `icebergCompat` other files. Of features that are not known, only
    those for writers are left out: an import rejects the others. The fence stays; the feature with
    the id of the table that owns the source is left out, since the projected log is not the source.

    Example:
        >>> sorted(unbacked_features('{"minReaderVersion":1,"minWriterVersion":4}'))
        ['changeDataFeed']
    """
    found: dict[str, Any] = msgspec.json.decode(with_features(protocol, ()))
    of_readers = found.get("readerFeatures") or ()
    backed = {*_IN_METADATA, IN_COMMIT_TIMESTAMP, FENCE, *of_readers}
    return frozenset(found["writerFeatures"]) - backed


def backed_configuration(configuration: Mapping[str, str], protocol: str) -> dict[str, str]:
    """Return a source's configuration without the keys that turn on features left out.

    A key belongs to the feature with the longest name that it begins with.

    Args:
        configuration: The configuration in the source's metadata.
        protocol: The source's protocol at the same version.

    Example:
        >>> protocol = '{"minReaderVersion":1,"minWriterVersion":4}'
        >>> stated = {"delta.enableChangeDataFeed": "true", "delta.appendOnly": "true"}
        >>> backed_configuration(stated, protocol)
        {'delta.appendOnly': 'true'}
    """
    left_out = unbacked_features(protocol)
    named = {IN_COMMIT_TIMESTAMP, *_IN_METADATA, *_OPTIONS_KEPT, *reader_features(protocol)}
    return {
        key: value
        for key, value in configuration.items()
        if not key.casefold().startswith(_UNBACKED_OPTIONS)
        and _longest_name(key, left_out) <= _longest_name(key, named)
    }


def _longest_name(key: str, names: Iterable[str]) -> int:
    """Return the length of the longest name with which an option begins; 0 if it has none.

    After the name the option ends, or a new word begins.
    """
    found = 0
    for name in names:
        for beginning in (f"{_OWN_PREFIX}{name}", f"{_OWN_PREFIX}enable{name}"):
            rest = key[len(beginning) :]
            is_word = not rest or rest[0] == "." or rest[0].isupper()
            if is_word and key.casefold().startswith(beginning.casefold()):
                found = max(found, len(name))
    return found


def with_features(protocol: str, more: Collection[str]) -> bytes:
    """Return a protocol with more writer features and unchanged reader features.

    Args:
        protocol: The protocol, as JSON.
        more: Features that only writers must support.
    """
    found: dict[str, Any] = msgspec.json.decode(protocol)
    reader, writer = found["minReaderVersion"], found["minWriterVersion"]
    reading = set(found.get("readerFeatures") or ())
    if reader == _MAPPING_READER:
        reader, reading = _FEATURE_READER, {*reading, COLUMN_MAPPING}
    features = {*reading, *(found.get("writerFeatures") or ()), *more}
    if writer < _FEATURE_WRITER:
        old = {each for each, since in _OF_OLD_WRITERS.items() if since <= writer}
        features |= old if reader == _FEATURE_READER else old - {COLUMN_MAPPING}
    wanted: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": _FEATURE_WRITER}
    if reader == _FEATURE_READER:
        wanted["readerFeatures"] = sorted(reading)
    return _ENCODER.encode({**wanted, "writerFeatures": sorted(features)})


def reader_features(protocol: str) -> frozenset[str]:
    """Return the table features that a protocol requires of readers.

    Example:
        >>> sorted(reader_features('{"minReaderVersion":2,"minWriterVersion":5}'))
        ['columnMapping']
    """
    found: dict[str, Any] = msgspec.json.decode(with_features(protocol, ()))
    return frozenset(found.get("readerFeatures") or ())


@frozen
class TableMetadata:
    """Content of a metaData action.

    Attributes:
        table_id: A UUID.
        created_millis: The table's creation time, Unix milliseconds.
        schema: The ledger's schema.
        spec: The current partition spec.
        naming: The names of its columns in files.
        features: The current table features.
    """

    table_id: str
    created_millis: int
    schema: Schema
    spec: PartitionSpec
    naming: FieldNaming
    features: frozenset[str]

    def to_json(self) -> bytes:
        """Return the metadata action's content.

        Raises:
            UnsupportedError: Delta cannot express the schema.
        """
        schema = self.schema
        found: dict[str, Any] = {"id": self.table_id}
        if schema.comment is not None:
            found["description"] = schema.comment
        fields = struct_json(schema.fields, self.naming)
        found |= {
            "format": {"provider": "parquet", "options": {}},
            "schemaString": _ENCODER.encode(fields).decode(),
            "partitionColumns": [each.name for each in partition_columns(schema, self.spec)],
            "createdTime": self.created_millis,
            "configuration": dict(sorted(self._configuration())),
        }
        return _ENCODER.encode(found)

    def _configuration(self) -> Iterator[tuple[str, str]]:
        yield "delta.deletedFileRetentionDuration", _KEPT
        yield "delta.logRetentionDuration", _KEPT
        for key, value in self.schema.options.items():
            if not is_reserved(key):
                yield key, value
        yield "delta.enableInCommitTimestamps", "true"
        if COLUMN_MAPPING in self.features:
            yield "delta.columnMapping.mode", "name"
            yield "delta.columnMapping.maxColumnId", str(self.schema.highest_field_id)
        if TYPE_WIDENING in self.features:
            yield "delta.enableTypeWidening", "true"


def features_of(
    schema: Schema, known: Collection[str], *, is_mapped: bool, changes: Mapping[int, Any]
) -> frozenset[str]:
    """Return the table features that a schema needs; features are never removed."""
    found = {IN_COMMIT_TIMESTAMP, *known, *required_features(schema.fields)}
    if is_mapped:
        found.add(COLUMN_MAPPING)
    if changes:
        found.add(TYPE_WIDENING)
    return frozenset(found)


Schemas = Callable[[Iterable[int]], Mapping[int, Schema]]
"""Function from schema ids to the table's schemas."""


@define
class MetadataTracker:
    """A table's current protocol and metadata.

    Attributes:
        schemas: Function that finds older schemas.
        protocol: As JSON; empty before the first commit.
        metadata: As JSON.
        features: All table features needed so far.
        said: The schema of the metadata.
        changes: The type changes so far, by field id.
        live: The number of live files by the column names in them, as `FileNaming.text`.
        problem: The error if Delta cannot express the newest schema; else None.
    """

    schemas: Schemas
    protocol: bytes = b""
    metadata: bytes = b""
    features: frozenset[str] = frozenset()
    said: Schema | None = None
    changes: dict[int, tuple[dict[str, str], ...]] = Factory(dict)
    live: dict[str, int] = Factory(dict)
    problem: UnsupportedError | None = None

    @classmethod
    def at(
        cls, start: DeltaPosition, before: TableState | None, schemas: Schemas
    ) -> MetadataTracker:
        """Return the protocol and metadata at a position.

        Args:
            start: The position.
            before: The table there; None before its first commit.
            schemas: Function that finds older schemas.
        """
        said = None
        if before is not None and start.schema_id >= 0:
            is_newest = start.schema_id == before.schema.id
            said = before.schema if is_newest else schemas([start.schema_id])[start.schema_id]
        return cls(
            schemas,
            start.protocol.encode(),
            start.metadata.encode(),
            frozenset(start.features),
            said,
            dict(start.type_changes),
            dict(start.live),
        )

    @property
    def is_mapped(self) -> bool:
        """Return whether columns have physical names (column mapping)."""
        return COLUMN_MAPPING in self.features

    def matches_schema(self, schema: Schema) -> bool:
        """Return whether the metadata is that of a schema."""
        return self.said is not None and self.said.id == schema.id

    def count_live_files(self, naming: FileNaming, files: int) -> None:
        """Add a number of live files with some column names, negative for removed ones."""
        key = naming.text()
        found = self.live.get(key, 0) + files
        self.live[key] = found
        if found <= 0:
            del self.live[key]

    def _names_in_live_files(self) -> HistoricalColumnNames:
        namings = [FileNaming.of_text(each) for each in self.live]
        schemas = self.schemas({each.schema_id for each in namings})
        return HistoricalColumnNames.of(each.schema(schemas[each.schema_id]) for each in namings)

    def update_metadata(self, state: TableState) -> Iterator[bytes]:
        """Update to a schema or to other live files; yield the changed actions as lines.

        Args:
            state: The table's state.
        """
        self.problem = None
        try:
            protocol, metadata = self._render_actions(state)
        except UnsupportedError as error:
            self.problem = error
            return
        if protocol != self.protocol:
            self.protocol = protocol
            yield b'{"protocol":%s}\n' % protocol
        if metadata != self.metadata:
            self.metadata = metadata
            yield b'{"metaData":%s}\n' % metadata
        self.said = state.schema

    def _render_actions(self, state: TableState) -> tuple[bytes, bytes]:
        schema = state.schema
        held = self._names_in_live_files()
        for place, reason in find_name_conflicts(schema, held):
            raise UnsupportedError(
                f"column {place.name} has no single name by which Delta finds it: {reason}; "
                "rewrite the older files under one name"
            )
        physical = physical_names(schema, held)
        changes = self._accumulated_type_changes(schema)
        mapped = self.is_mapped or self._needs_column_mapping(schema, physical)
        features = features_of(schema, self.features, is_mapped=mapped, changes=changes)
        # Only tables from Delta have nested ids that Delta's readers used before.
        nested = nested_ids_of(schema, physical) if mapped and state.delta is not None else {}
        table_id, created_millis = _table_identity(state)
        made = TableMetadata(
            table_id,
            created_millis,
            schema,
            state.spec,
            FieldNaming(physical if mapped else None, changes, nested),
            features,
        ).to_json()
        self.features, self.changes = features, changes
        return protocol_json(features), made

    def _needs_column_mapping(self, schema: Schema, physical: Mapping[int, str]) -> bool:
        if any(place.path[-1] != physical[each] for place, each in named_fields(schema)):
            return True
        return bool(self.live) and self.said is not None and renames_or_drops(self.said, schema)

    def _accumulated_type_changes(self, schema: Schema) -> dict[int, tuple[dict[str, str], ...]]:
        """Return the type changes so far, including those to this schema."""
        there = {each: place for place, each in named_fields(schema)}
        changes = {each: found for each, found in self.changes.items() if each in there}
        if self.said is None or not self.live or self.said.fields == schema.fields:
            return changes
        for place, each in named_fields(self.said):
            if each in there:
                found = type_changes(place.type, there[each].type)
                more = tuple(change.to_json() for change in found)
                if more:
                    changes[each] = (*changes.get(each, ()), *more)
        return changes


def _table_identity(state: TableState) -> tuple[str, int]:
    """Return the table's id and creation time, as in its Delta metadata."""
    if state.delta is None:
        return state.table_id, state.created_at
    found = msgspec.json.decode(state.delta.metadata, type=_TableIdentity)
    return found.id, state.created_at if found.created_time is None else found.created_time


class _TableIdentity(msgspec.Struct, rename="camel"):
    id: str
    created_time: int | None = None
