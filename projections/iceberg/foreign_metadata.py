"""Iceberg metadata of one version of a table whose engines list its files in another format.

The newest snapshot has to be expressible. Older ones are left out of the metadata where Iceberg's
readers could not read them by its schemas and its one mapping of names, or where a file of them
does not exist any more.

Source: the Iceberg table specification, "Table Metadata and Snapshots" and "Name Mapping".
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, chain
from typing import Final

import msgspec
from attrs import Factory, define, frozen
from msgspec import Struct, field

from ledger.decide.format_rules import Refusal, TableCreation, clashing_type_forms
from ledger.decide.name_mapping import NAME_MAPPING, learn_names, named_parts
from ledger.formats import INSTALLED, part
from ledger.model.errors import DamagedLogError, NotFoundError, UnsupportedError
from ledger.model.iceberg_objects import MAIN, IcebergSnapshot, SnapshotLogEntry, SnapshotRef
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.state.declared_formats import OWN_PREFIX, Rules
from ledger.state.layout import LayoutTrail
from ledger.state.native_origin import OriginSnapshot
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg.foreign_manifests import (
    RENDERER,
    ForeignManifests,
    RemovedFiles,
    RenderedManifest,
    RenderedSnapshot,
    refuse_foreign,
)
from projections.iceberg.metadata_schema import Schema as IcebergSchema
from projections.iceberg.position import FOLDER, Names
from projections.iceberg.rules import RULES, SchemaTransition, name_clashes, type_problems
from projections.iceberg.schema_json import schema_to_json
from projections.iceberg.table_facts import iceberg_schema
from projections.iceberg.table_file import properties
from projections.iceberg.table_json import write_metadata
from projections.iceberg.table_metadata import TableMetadata
from projections.manifest_files.engine_lists import EngineLists

MOST_SNAPSHOTS: Final = 100
"""Number of snapshots before the newest one in the metadata; those of tags are in it, too."""

_VERSIONS: Final = (2, 3)


def format_name(state: TableState) -> str:
    """Return the name of the format whose engines list a table's files."""
    return state.origin.format_name


@frozen
class RenderedTable:
    """A version of a table that was rendered.

    Attributes:
        metadata: Its metadata.
        path: The path of its metadata file, below the table's location.
        body: The file's bytes.
    """

    metadata: TableMetadata
    path: str
    body: bytes


class Rendering(Struct, frozen=True):
    """Record of the files that were rendered for a version, next to the log.

    Attributes:
        version: The version.
        location: The table's location, which is in the files.
        renderer: The version of the renderer.
        format_version: Iceberg's format version.
        metadata: The path of the metadata file.
        snapshots: The snapshots, whether Iceberg can express them or not.
        manifests: Their manifests, by name.
        removals: See `ForeignManifests.removals`.
        holders: See `ForeignManifests.holders`.
    """

    version: int = -1
    location: str = ""
    renderer: int = RENDERER
    format_version: int = 0
    metadata: str = ""
    snapshots: tuple[RenderedSnapshot, ...] = ()
    manifests: dict[str, RenderedManifest] = field(default_factory=dict)
    removals: dict[str, RemovedFiles] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> set[str]:
        """The files, below the table's location."""
        lists = {each.list_path for each in self.snapshots}
        return {self.metadata, *lists, *(each.file.path for each in self.manifests.values())} - {""}


@define(slots=False)
class ForeignMetadata:
    """Renderer of the metadata of one version of a table.

    Attributes:
        table: The table.
        state: Its state.
        lists: The reader of its engines' lists.
        schemas: The table's schemas, by id.
        iceberg_schemas: Those that Iceberg can express, by the same ids.
        before: The snapshots of the previous rendering, by id and version.
        manifests: The manifests of this one.
    """

    table: TableHandle
    state: TableState
    lists: EngineLists
    schemas: Mapping[int, Schema]
    iceberg_schemas: Mapping[int, IcebergSchema]
    before: Mapping[tuple[int, int], RenderedSnapshot]
    manifests: ForeignManifests
    _checked: dict[tuple[int, int], tuple[Refusal, ...]] = Factory(dict)

    @classmethod
    def of(cls, table: TableHandle, state: TableState, before: Rendering) -> ForeignMetadata:
        """Return a run that continues from an earlier rendering.

        Raises:
            UnsupportedError: Iceberg cannot express the table's schema, or its rows.
        """
        lists: EngineLists = part(format_name(state), "engine_lists")
        refuse_foreign(table, lists.table_problems(state.schema))
        schemas = {**state.origin.listed_schemas(state.schema), state.schema.id: state.schema}
        version = _format_version(schemas.values())
        refuse_foreign(table, _schema_problems(state, version))
        made = dict(_iceberg_schemas(schemas.values(), version))
        is_same = before.format_version == version
        manifests = ForeignManifests(
            table,
            state,
            lists,
            version,
            {key: msgspec.json.encode(schema_to_json(each)) for key, each in made.items()},
            known=dict(before.manifests) if is_same else {},
            removals=dict(before.removals),
            holders=dict(before.holders),
        )
        known = {(each.snapshot_id, each.version): each for each in before.snapshots}
        return cls(table, state, lists, schemas, made, known if is_same else {}, manifests)

    def render(self) -> tuple[RenderedTable, Rendering]:
        """Render the metadata, and the files that it names."""
        listed: list[_ListedSnapshot] = []
        tried: list[RenderedSnapshot] = []
        schema_ids: set[int] = set()
        for each in self._wanted_snapshots():
            found = self._rendered(each)
            if found is None:
                continue
            tried.append(found)
            if found.problem or (listed and self._problem_of(found, each.snapshot, schema_ids)):
                continue
            schema_ids.update(found.schema_ids)
            listed.append(_ListedSnapshot(each.snapshot, found))
        metadata = self._metadata(listed[::-1], sorted(schema_ids))
        body = write_metadata(metadata)
        unique = Names(self.state.table_id).uuid(hashlib.sha256(body).hexdigest())
        path = f"{FOLDER}/{self.state.version:05d}-{unique}.metadata.json"
        return RenderedTable(metadata, path, body), self._rendering(tried, path)

    def _rendering(self, tried: Sequence[RenderedSnapshot], path: str) -> Rendering:
        made = self.manifests
        ids = sorted(each.snapshot_id for each in tried)
        removals = {
            name: each for name, each in made.removals.items() if _meets(each.snapshot_ids, ids)
        }
        removed = {path for each in removals.values() for path in each.paths}
        return Rendering(
            version=self.state.version,
            location=self.table.location,
            format_version=made.format_version,
            metadata=path,
            snapshots=tuple(tried),
            manifests={
                name: each for name, each in made.known.items() if _meets(each.snapshot_ids, ids)
            },
            removals=removals,
            holders={path: each for path, each in made.holders.items() if path in removed},
        )

    def _wanted_snapshots(self) -> Iterator[OriginSnapshot]:
        """Yield the current snapshot, then those before it, newest first."""
        current = self.state.snapshot
        if current is None:
            return
        line = sorted(self._line, reverse=True)
        tagged = {each.snapshot_id for each in self.state.tags.values()}
        older = {*line[: MOST_SNAPSHOTS + 1], *tagged} - {current.id}
        for snapshot_id in (current.id, *sorted(older, reverse=True)):
            found = self.state.origin.listed_snapshot(snapshot_id)
            if found is not None:
                yield found

    @cached_property
    def _line(self) -> tuple[int, ...]:
        """The snapshots of the main line, oldest first."""
        current = self.state.snapshot
        return () if current is None else self.lists.main_line(self.state, current)

    def _rendered(self, listed: OriginSnapshot) -> RenderedSnapshot | None:
        """Return a snapshot; None if a file of an older one does not exist any more.

        Raises:
            UnsupportedError: Iceberg cannot express the current one.
            DamagedLogError: A file of the current one is missing or damaged.
        """
        snapshot, version = listed.snapshot, listed.version
        is_current = snapshot.id == self.state.last_snapshot_id
        known = self.before.get((snapshot.id, version))
        if known is not None and not (is_current and known.problem):
            if is_current:
                self._check_current(known, snapshot)
            return known
        place = bisect_left(self._line, snapshot.id)
        parent = self._line[place - 1] if place else None
        try:
            found = self.manifests.render(snapshot, version, parent)
        except UnsupportedError as error:
            if is_current:
                raise
            return RenderedSnapshot(snapshot.id, version, problem=str(error))
        except (NotFoundError, DamagedLogError) as error:
            if is_current:
                raise _missing_file_error(self.table, error) from error
            return None
        if is_current:
            self._check_current(found, snapshot)
        return found

    def _check_current(self, found: RenderedSnapshot, snapshot: Snapshot) -> None:
        problem = self._problem_of(found, snapshot, ())
        if problem is not None:
            refuse_foreign(self.table, [problem])

    def _problem_of(
        self, found: RenderedSnapshot, snapshot: Snapshot, others: Iterable[int]
    ) -> Refusal | None:
        """Return why Iceberg's readers cannot read a snapshot's files by its schemas.

        Args:
            found: The snapshot, whose files Iceberg can express.
            snapshot: The same snapshot.
            others: The schemas of the files of other snapshots in the metadata.
        """
        is_current = snapshot.id == self.state.last_snapshot_id
        targets = {snapshot.schema_id, *([self.state.schema.id] if is_current else [])}
        problems = (
            each
            for schema_id in found.schema_ids
            for target in sorted(targets)
            for each in self._transition_problems(schema_id, target)
        )
        named = sorted({*found.schema_ids, *others} & self.schemas.keys())
        clashes = name_clashes(self.state.schema, [self.schemas[each] for each in named])
        return next(chain(problems, clashes), None)

    def _transition_problems(self, written: int, read: int) -> tuple[Refusal, ...]:
        """Return why files of a schema cannot be read by another."""
        key = (written, read)
        if key not in self._checked:
            self._checked[key] = tuple(self._find_transition_problems(written, read))
        return self._checked[key]

    def _find_transition_problems(self, written: int, read: int) -> Iterator[Refusal]:
        older, newer = self.schemas.get(written), self.schemas.get(read)
        if older is None or newer is None or read not in self.iceberg_schemas:
            yield Refusal(
                "the table",
                f"its files are of schema {written}, read by schema {read}, and the table has no "
                "such schema that Iceberg can express",
                f"read it by {format_name(self.state)}",
            )
            return
        yield from self.lists.table_problems(older)
        yield from _form_problems(self.state, older)
        version = self.manifests.format_version
        yield from SchemaTransition(older, version, may_require=False).problems(newer.fields)

    def _metadata(
        self, listed: Sequence[_ListedSnapshot], schema_ids: Sequence[int]
    ) -> TableMetadata:
        state = self.state
        there = {each.source.id for each in listed}
        on_line = [each for each in listed if each.source.id in self._line]
        times = accumulate((each.source.time_millis for each in on_line), max)
        log = tuple(
            SnapshotLogEntry(time_millis, each.source.id)
            for time_millis, each in zip(times, on_line, strict=True)
        )
        latest_ms = max((each.timestamp_ms for each in log), default=0)
        return TableMetadata(
            format_version=self.manifests.format_version,
            table_uuid=state.table_id,
            location=self.table.location,
            last_sequence_number=max(there, default=0),
            last_updated_ms=max(state.effective_millis, latest_ms),
            last_column_id=max(0, state.schema.highest_field_id),
            current_schema_id=state.schema.id,
            schemas=tuple(each for _, each in sorted(self.iceberg_schemas.items())),
            default_spec_id=state.default_spec_id,
            partition_specs=tuple(state.specs),
            last_partition_id=state.last_partition_id,
            default_sort_order_id=state.default_order_id,
            sort_orders=state.sort_orders,
            properties=self._properties(schema_ids),
            current_snapshot_id=state.last_snapshot_id or None,
            refs=self._refs(there),
            snapshots=tuple(self._snapshot(each) for each in listed),
            snapshot_log=log,
        )

    def _properties(self, schema_ids: Iterable[int]) -> dict[str, str]:
        """Return the table's properties, with the names in the files of some schemas."""
        found = properties(self.state.schema)
        kept = {key: each for key, each in found.items() if not key.startswith(OWN_PREFIX)}
        older = [self.schemas[each] for each in schema_ids if each in self.schemas]
        named = [named_parts(each) for each in (*older, self.state.schema)]
        return {**kept, NAME_MAPPING: learn_names(None, named)}

    def _refs(self, there: Collection[int]) -> dict[str, SnapshotRef]:
        if not there:
            return {}
        tags = {
            name: SnapshotRef(snapshot_id=tag.snapshot_id, type="tag")
            for name, tag in sorted(self.state.tags.items())
            if tag.snapshot_id in there
        }
        main = SnapshotRef(snapshot_id=self.state.last_snapshot_id, type="branch")
        # The branch has the name in every Iceberg table.
        return {**tags, MAIN: main}

    def _snapshot(self, each: _ListedSnapshot) -> IcebergSnapshot:
        source, rendered = each.source, each.rendered
        place = bisect_left(self._line, source.id)
        return IcebergSnapshot(
            sequence_number=source.id,
            snapshot_id=source.id,
            parent_snapshot_id=self._line[place - 1] if place else None,
            timestamp_ms=source.time_millis,
            summary=rendered.summary,
            manifest_list=f"{self.table.location}/{rendered.list_path}",
            schema_id=source.schema_id,
        )


@frozen
class _ListedSnapshot:
    """A snapshot in the metadata: as its engine made it, and as it was rendered."""

    source: Snapshot
    rendered: RenderedSnapshot


def _meets(snapshot_ids: tuple[int, int], listed: Sequence[int]) -> bool:
    """Return whether some listed snapshot, of ascending ids, is in a range."""
    first, last = snapshot_ids
    return bisect_left(listed, first) < bisect_right(listed, last)


def _missing_file_error(table: TableHandle, error: Exception) -> DamagedLogError:
    return DamagedLogError(
        f"Iceberg's files of {table.identifier} cannot be rendered: {error}", str(table.identifier)
    )


def _format_version(schemas: Iterable[Schema]) -> int:
    """Return the least format version in which as many columns as possible can be expressed."""
    first, newest = _VERSIONS
    for each in schemas:
        if len([*type_problems(each.fields, newest)]) < len([*type_problems(each.fields, first)]):
            return newest
    return first


def _iceberg_schemas(
    schemas: Iterable[Schema], format_version: int
) -> Iterator[tuple[int, IcebergSchema]]:
    for each in schemas:
        with suppress(UnsupportedError):
            made = iceberg_schema(each, schema_id=each.id, format_version=format_version)
            yield each.id, made


def _schema_problems(state: TableState, format_version: int) -> Iterator[Refusal]:
    """Yield why Iceberg cannot express a table's schema and partitions."""
    rules = Rules(frozenset({RULES.name}), format_version)
    yield from RULES.creation_problems(TableCreation(state.schema, LayoutTrail.of(state), rules))
    yield from _form_problems(state, state.schema)


def _form_problems(state: TableState, schema: Schema) -> Iterator[Refusal]:
    theirs = INSTALLED.find(format_name(state))
    if not isinstance(theirs, Refusal):
        yield from clashing_type_forms(theirs, RULES, schema.fields)
