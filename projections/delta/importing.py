"""Import of Delta tables, one transaction per version, and promotion of imported tables.

A version of a Delta log is created exactly once. A promotion creates one last version, which
requires a writer feature that no engine supports: later writers are rejected by the protocol, and
a commit of a faster writer comes before it and is imported first. Readers see no difference.

Source: the Delta transaction protocol, "Partition Value Serialization" and "Per-file Statistics".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any
from urllib.parse import unquote

import msgspec
from attrs import define, evolve, field, frozen
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ledger.decide.changes import FileSums
from ledger.decide.snapshots import encode_checked_files
from ledger.decide.table_options import PERSONAL_OPTION, followed_marks
from ledger.events import TableEvent
from ledger.events.commit import FORMAT, Commit, Outside, Transaction
from ledger.events.imported import DeltaFollowed, ImportedDeltaTable
from ledger.events.schema import PartitionSpecUpdated, RemoveOption, SetOption, UpdateComment
from ledger.events.snapshots import CommitKind, SnapshotCommitted
from ledger.events.table import SchemaRecord, TablePromoted
from ledger.files.bounds import ColumnFacts, lower_bound, upper_bound
from ledger.history.older import schemas_by_id
from ledger.model import types as t
from ledger.model.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    TooLargeError,
    UnsupportedError,
)
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg_layout import FIRST_PARTITION_FIELD_ID, PartitionField
from ledger.model.parquet_limits import read_metadata
from ledger.model.schema import highest_field_id
from ledger.model.single_values import encode_value
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER
from ledger.model.types import DataField
from ledger.model.types.wire import field_to_wire
from ledger.state.declared_formats import FORMATS_OPTION
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.table import TableState
from ledger.stores.file_access import FileAccess
from ledger.table_handle import TableHandle
from projections.delta.actions import COMMIT_INFO, FOLDER, action_line, commit_path
from projections.delta.columns import ColumnNamesInFiles, ConvertedColumns, columns_of, is_mapped
from projections.delta.log_reading import AddedFile, LogActions, Metadata, Protocol
from projections.delta.materialise import check_future_commits, project
from projections.delta.rules import column_problems, name_problems, spec_problems
from projections.delta.source import DeltaSource, SourceVersion
from projections.delta.table_metadata import FENCE, is_reserved, with_features
from projections.delta.values import bound_of, partition_value
from projections.importing.deriving import derive_schema_events, options_of_properties
from projections.importing.importing import (
    FoundTable,
    Importing,
    IncomingTransactions,
    has_folder,
    tables_below,
)
from projections.importing.promoting import FolderReaders, Promoting, conditional_store
from projections.importing.trial import (
    ImportedCreation,
    PlannedTransaction,
    PlanningState,
    SourceFiles,
    canonical_source,
    canonical_url,
)


@frozen
class FileConversion:
    """Context for converting the files of one version.

    Attributes:
        columns: The version's columns.
        partitioning: The partition columns, in their order.
        schema_id: The ledger schema whose names the files use.
        spec_id: The ledger's partition spec.
        absolute: Function that makes a path absolute.
        rows: Function that counts a file's rows, for files without statistics.
        carries_ids: Whether the files contain field ids.
    """

    columns: ConvertedColumns
    partitioning: Sequence[t.DataField]
    schema_id: int
    spec_id: int
    absolute: Callable[[str], str]
    rows: Callable[[str], int]
    carries_ids: bool

    def change(self, added: AddedFile) -> FileChange:
        """Convert a Delta file to a file of the ledger.

        Raises:
            UnsupportedError: It has a deletion vector, or an invalid partition value.
            InvalidInputError: Its statistics are invalid.
        """
        path = self.path(added.path)
        if added.deletion_vector is not None:
            raise UnsupportedError(
                f"file {path} has a deletion vector, and the ledger has no such files: purge them "
                "at the source (REORG TABLE ... APPLY (PURGE)), and import it again"
            )
        try:
            stats: dict[str, Any] = json.loads(added.stats or "{}", parse_float=Decimal)
            rows = _check_row_count(stats.get("numRecords"))
            facts = self._file_statistics(stats)
        except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise InvalidInputError(
                f"file {path} has invalid statistics; have its owner compute them again"
            ) from error
        return FileChange(
            path=path,
            partition=tuple(self._partition_value(each, added, path) for each in self.partitioning),
            schema_id=self.schema_id,
            record_count=self.rows(path) if rows is None else rows,
            file_size_in_bytes=added.size,
            creation_time=added.modification_time,
            spec_id=self.spec_id,
            field_ids=self.carries_ids,
            **facts,
        )

    def path(self, path: str) -> str:
        """Return a file's path, decoded from the URI in the log."""
        return self.absolute(unquote(path))

    def _partition_value(self, column: t.DataField, added: AddedFile, path: str) -> PartitionValue:
        text = added.partition_values.get(self.columns.names[column.id])
        if text is None or not text:
            return None
        try:
            return encode_value(partition_value(text, column.type), column.type)
        except (ValueError, OverflowError, UnsupportedError) as error:
            raise UnsupportedError(
                f"file {path} has the value {text!r} in partition column {column.name}, which is "
                f"not a valid {column.type.root} in the ledger"
            ) from error

    def _file_statistics(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        nulls: dict[int, int] = {}
        lower: dict[int, str] = {}
        upper: dict[int, str] = {}
        fields = self.columns.fields
        self._collect_null_counts(fields, stats.get("nullCount") or {}, nulls)
        self._collect_bounds(fields, stats.get("minValues") or {}, lower, upper=False)
        self._collect_bounds(fields, stats.get("maxValues") or {}, upper, upper=True)
        return {
            "null_value_counts": nulls or UNSET,
            "lower_bounds": lower or UNSET,
            "upper_bounds": upper or UNSET,
        }

    def _collect_null_counts(
        self, fields: Sequence[t.DataField], said: Mapping[str, Any], into: dict[int, int]
    ) -> None:
        for each in fields:
            count = said.get(self.columns.names[each.id])
            if isinstance(each.type, t.RowType) and isinstance(count, Mapping):
                self._collect_null_counts(each.type.fields, count, into)
            elif type(count) is int:
                into[each.id] = count

    def _collect_bounds(
        self,
        fields: Sequence[t.DataField],
        said: Mapping[str, Any],
        into: dict[int, str],
        *,
        upper: bool,
    ) -> None:
        for each in fields:
            value = said.get(self.columns.names[each.id])
            if isinstance(each.type, t.RowType) and isinstance(value, Mapping):
                self._collect_bounds(each.type.fields, value, into, upper=upper)
            elif value is not None and not each.type.depth:
                bound = _bound_to_hex(value, each.type, upper=upper)
                if bound is not None:
                    into[each.id] = bound


def _check_row_count(said: Any) -> int | None:
    if said is not None and type(said) is not int:
        raise TypeError(said)
    return said


def _bound_to_hex(value: Any, data_type: t.DataType, *, upper: bool) -> str | None:
    """Return a bound in hex; None if there is no safe one."""
    extreme = bound_of(value, data_type, upper=upper)
    facts = ColumnFacts(1, 0, extreme, extreme)
    return (upper_bound if upper else lower_bound)(facts, data_type, data_type)


READABLE = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
    }
)
"""Reader features that an import supports; a file with a deletion vector is rejected when it is
read."""

_LAST_READER = 3
_COORDINATED = "coordinatedCommits"
_AUTHORS = ("userName", "userId", "author", "user")
_NO_COLUMNS = (
    "the source's table has no columns, and the ledger has no such tables: import it when it has"
)
_NOT_HELD = (UnsupportedError, NotFoundError)
"""Errors of a version that the ledger cannot hold; a later one can be without the reason."""

Live = Callable[[], Iterable[FileChange]]
"""Function that returns the files that are live where an import continues."""


def parse_metadata(text: str, place: str) -> tuple[Metadata, dict[str, Any]]:
    """Return a metaData action and its schema.

    Raises:
        UnsupportedError: It has no schema.
        InvalidInputError: The metadata is invalid.
    """
    try:
        # All of it is kept, unchanged.
        found = msgspec.convert(msgspec.json.decode(text), Metadata)
        if not found.schema_string:
            raise UnsupportedError(_NO_COLUMNS)
        return found, msgspec.json.decode(found.schema_string, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(f"{place} has invalid metadata: {error}") from error


def creation_of(first: SourceVersion, source: DeltaSource) -> ImportedCreation:
    """Return the creation events of a table, from its oldest known version.

    Raises:
        UnsupportedError: The ledger cannot hold its schema, or it lacks a protocol or metadata.
        InvalidInputError: Its metadata is invalid.
    """
    text = first.actions.metadata
    if not text or not first.actions.protocol:
        absent = "protocol" if text else "metadata"
        raise UnsupportedError(f"{first.file} of {source.name} begins a table without {absent}")
    metadata, schema = parse_metadata(text, first.file)
    columns = columns_of(schema, metadata.configuration, {}, 0)
    if not columns.fields:
        raise UnsupportedError(_NO_COLUMNS)
    parts = _partition_columns(columns, metadata)
    spec = tuple(
        PartitionField(each.name, "identity", each.id, field_id=FIRST_PARTITION_FIELD_ID + place)
        for place, each in enumerate(parts)
    )
    millis, created = _version_millis(first), metadata.created_time
    return ImportedCreation(
        schema=SchemaRecord(
            fields=tuple(map(field_to_wire, columns.fields)),
            highest_field_id=highest_field_id(columns.fields),
            options=_table_options(metadata),
            comment=metadata.description,
        ),
        origin=ImportedDeltaTable(source=source.name, table_id=metadata.id),
        millis=min(millis, created) if created is not None and created > 0 else millis,
        field_id_policy="paimon",
        partition_spec=spec or UNSET,
    )


def _table_options(metadata: Metadata) -> dict[str, str]:
    return {**options_of_properties(metadata.configuration), FORMATS_OPTION: "delta"}


def _partition_columns(columns: ConvertedColumns, metadata: Metadata) -> tuple[DataField, ...]:
    by_name = {each.name: each for each in columns.fields}
    try:
        return tuple(by_name[each] for each in metadata.partition_columns)
    except KeyError as error:
        raise InvalidInputError(f"the source partitions by {error}, not a column") from error


def _version_millis(version: SourceVersion) -> int:
    """Return the time of a version: the first one in its commit that a log can hold.

    Later ones must follow it, such as that of a promotion.
    """
    said = map(version.commit.info.get, ("inCommitTimestamp", "timestamp"))
    valid = (each for each in said if type(each) is int and 0 <= each < t.LONG_MAX)
    return next(valid, version.written_millis)


def _operation_name(actions: LogActions) -> str | UnsetType:
    said = actions.info.get("operation")
    return said if isinstance(said, str) and said else UNSET


def author_of(info: Mapping[str, Any]) -> str:
    """Return the author of a version, as far as its commit names one.

    Example:
        >>> author_of({"operation": "WRITE", "userName": "ann"})
        'ann'
    """
    return next((str(info[key]) for key in _AUTHORS if info.get(key)), "")


@define
class _LeftOut:
    """Versions that the ledger cannot hold, up to the newest one read.

    Attributes:
        version: Their changes, with the number of the newest.
        reason: The error of the first.
        error: The error of the last that was tried, with its number.
        file: The file that caused it, as the log has it; None for another cause.
    """

    version: SourceVersion
    reason: LedgerError
    error: LedgerError
    file: AddedFile | None

    def is_unaffected_by(self, later: LogActions) -> bool:
        """Return whether the cause remains after a later version, which `version` has already."""
        if later.metadata or later.protocol:
            return False
        return self.file is None or self.version.actions.added.get(self.file.path) is self.file


@define
class ImportPlanner:
    """Planner of new transactions, each on the state that the previous one leaves.

    A version that the ledger cannot hold is left out: the next one that it can hold has the changes
    of both.

    Attributes:
        state: The table's state so far; None before a new table.
        source: The table's source.
        now_millis: Upper bound of all times, Unix milliseconds.
        live: Function that reads the files that are live where the planner begins.
        creation: The origin of a new table; None before its first version.
        not_carried: The versions that were left out, in words.
    """

    state: TableState | None
    source: DeltaSource
    now_millis: int
    live: Live
    creation: ImportedCreation | None = None
    not_carried: list[str] = field(factory=list)
    _files: dict[str, FileChange] | None = None
    _said: tuple[str, ConvertedColumns, Metadata] | None = None
    _schemas: list[int] = field(factory=list)
    _rejected: AddedFile | None = None
    # Of the versions left out so far; their files are read and converted only once.
    _conversion_used: FileConversion | None = None
    _converted: dict[str, tuple[AddedFile, FileChange]] = field(factory=dict)
    _row_counts: dict[str, int] = field(factory=dict)

    @property
    def schemas(self) -> tuple[int, ...]:
        """The ids of the schemas added here."""
        return tuple(dict.fromkeys(self._schemas))

    def planned(self, versions: Iterable[SourceVersion]) -> Iterator[PlannedTransaction]:
        """Yield one transaction per version that the ledger can hold.

        Raises:
            UnsupportedError: The ledger cannot hold the newest version; the message names it.
            NotFoundError: A file without statistics is missing in the newest version.
            InvalidInputError: A version is damaged.
        """
        left_out: _LeftOut | None = None
        for each in versions:
            version = each if left_out is None else left_out.version.with_next(each)
            if left_out is not None:
                left_out.version = version
                if left_out.is_unaffected_by(each.actions):
                    continue
            try:
                planned = self._plan_version(version)
            except _NOT_HELD as error:
                reason = error if left_out is None else left_out.reason
                named = self._with_version(version, error)
                left_out = _LeftOut(version, reason, named, self._rejected)
                continue
            except (TooLargeError, InvalidInputError) as error:
                raise self._with_version(version, error) from error
            if left_out is not None:
                self.not_carried.append(_merged_text(version, left_out.reason))
                left_out = None
            yield planned
        if left_out is not None:
            raise left_out.error

    def _with_version(self, version: SourceVersion, error: LedgerError) -> LedgerError:
        """Return an error that names the version, caused by the given one."""
        named = type(error)(f"version {version.number} of {self.source.name}: {error.message}")
        named.__cause__ = error
        return named

    def _plan_version(self, version: SourceVersion) -> PlannedTransaction:
        tried_first, self._rejected = self._rejected, None
        actions, before = version.actions, self.state
        check_reader_features(actions.protocol)
        creation = None
        if before is None:
            creation = creation_of(version, self.source)
            before = creation.state()
        columns, metadata = self._current_columns(before, actions.metadata)
        events: list[TableEvent] = []
        if actions.metadata:
            events += self._table_events(before, columns, metadata)
        schema_id = before.schema.id + any(not _is_layout_event(each) for each in events)
        conversion = self._conversion(before, columns, metadata, events)
        come = self._convert_files(actions.added, conversion, tried_first)
        files = self._file_changes(version, conversion, come)
        if files:
            events.append(_snapshot_event(version, before, schema_id, files))
        events.append(_followed_event(version, before, columns))
        info, said = version.commit.info, version.commit.commit_info
        trial = PlanningState(before, self.now_millis)
        planned = trial.take(events, _version_millis(version), author_of(info), version.file)
        if schema_id != before.schema.id:
            self._schemas.append(schema_id)
        self.state, self.creation = trial.state, self.creation or creation
        self._apply_files(files)
        return evolve(
            planned,
            message=str(info.get("userMetadata") or "") or self._merged_message(version),
            properties={COMMIT_INFO: said} if said else {},
        )

    def _merged_message(self, version: SourceVersion) -> str:
        """Return the message of a version with the changes of others; empty without them."""
        if version.since == version.number:
            return ""
        return f"imported from {self.source.name}, versions {version.since} to {version.number}"

    def _current_columns(self, state: TableState, text: str) -> tuple[ConvertedColumns, Metadata]:
        """Return the columns and the metadata in force at a version."""
        origin = state.origin_of_kind(DeltaOrigin)
        text = text or origin.metadata
        if self._said is None or self._said[0] != text:
            metadata, schema = parse_metadata(text, self.source.name)
            known = origin.columns
            highest = state.schema.highest_field_id if known else 0
            columns = columns_of(schema, metadata.configuration, known, highest)
            if not columns.fields:
                raise UnsupportedError(_NO_COLUMNS)
            self._said = text, columns, metadata
        return self._said[1], self._said[2]

    def _table_events(
        self, before: TableState, columns: ConvertedColumns, metadata: Metadata
    ) -> Iterator[TableEvent]:
        had, has = before.schema.options, _table_options(metadata)
        if PERSONAL_OPTION in has:
            marks = followed_marks(before.schema, has[PERSONAL_OPTION], columns.fields)
            has[PERSONAL_OPTION] = marks
        yield from (RemoveOption(each) for each in sorted(had.keys() - has.keys()))
        yield from (
            SetOption(key, value) for key, value in sorted(has.items()) if had.get(key) != value
        )
        if before.schema.comment != metadata.description:
            yield UpdateComment(metadata.description)
        yield from derive_schema_events(before.schema, columns.fields, ())
        yield from self._layout_events(before, _partition_columns(columns, metadata))

    def _layout_events(
        self, before: TableState, parts: tuple[DataField, ...]
    ) -> Iterator[PartitionSpecUpdated]:
        wanted = [each.id for each in parts]
        if [each.source_id for each in before.spec.fields] == wanted:
            return
        for spec in before.specs:
            if [each.source_id for each in spec.fields] == wanted:
                fields = tuple(
                    PartitionField(each.name, "identity", each.source_id, field_id=each.field_id)
                    for each in spec.fields
                )
                yield PartitionSpecUpdated((), spec_id=spec.spec_id, fields=fields)
                return
        first = max(before.last_partition_id, FIRST_PARTITION_FIELD_ID - 1) + 1
        yield PartitionSpecUpdated(
            (),
            spec_id=1 + max(each.spec_id for each in before.specs),
            fields=tuple(
                PartitionField(each.name, "identity", each.id, field_id=first + place)
                for place, each in enumerate(parts)
            ),
        )

    def _conversion(
        self,
        before: TableState,
        columns: ConvertedColumns,
        metadata: Metadata,
        events: Sequence[TableEvent],
    ) -> FileConversion:
        moved = (each.spec_id for each in events if isinstance(each, PartitionSpecUpdated))
        return FileConversion(
            columns,
            _partition_columns(columns, metadata),
            before.schema.id + any(not _is_layout_event(each) for each in events),
            next(moved, before.default_spec_id),
            self.source.absolute,
            self._count_rows,
            carries_ids=is_mapped(metadata.configuration) and columns.has_own_ids,
        )

    def _convert_files(
        self,
        added: Mapping[str, AddedFile],
        conversion: FileConversion,
        tried_first: AddedFile | None,
    ) -> list[FileChange]:
        """Return the added files of a version; most were converted for versions left out before.

        Args:
            added: The files by the path in the log.
            conversion: Their columns.
            tried_first: The file that was rejected last: mostly it still is.
        """
        if conversion != self._conversion_used:
            self._conversion_used = conversion
            self._converted.clear()
        first = [tried_first.path] if tried_first and tried_first.path in added else []
        for path in chain(first, added):
            file = added[path]
            known = self._converted.get(path)
            if known is None or known[0] is not file:
                self._rejected = file
                self._converted[path] = file, conversion.change(file)
        self._rejected = None
        return [self._converted[each][1] for each in added]

    def _file_changes(
        self, version: SourceVersion, listing: FileConversion, converted: Iterable[FileChange]
    ) -> tuple[FileChange, ...]:
        """Return the removed and added files of a version."""
        live, actions = self._live_files(), version.actions
        gone: dict[str, FileChange] = {}
        if version.is_whole:
            there = {listing.path(each) for each in actions.added}
            gone = {path: each for path, each in live.items() if path not in there}
        else:
            # A file removed and added at once has new statistics; its rows stay.
            removed = (listing.path(each) for each in actions.removed if each not in actions.added)
            gone = {path: live[path] for path in removed if path in live}
        come: dict[str, FileChange] = {}
        for file in converted:
            if file.path not in live or file.path in gone:
                come.setdefault(file.path, file)
        return (*(replace(each, kind="DELETE") for each in gone.values()), *come.values())

    def _live_files(self) -> dict[str, FileChange]:
        if self._files is None:
            self._files = {each.path: each for each in self.live()}
        return self._files

    def _apply_files(self, files: Iterable[FileChange]) -> None:
        """Advance the live files."""
        self._converted.clear()
        self._row_counts.clear()
        live = self._live_files()
        for each in files:
            if each.kind == "DELETE":
                del live[each.path]
            else:
                live[each.path] = each

    def _count_rows(self, path: str) -> int:
        """Return a file's row count, read from its Parquet footer."""
        import pyarrow as pa

        known = self._row_counts.get(path)
        if known is not None:
            return known
        try:
            rows = int(read_metadata(self.source.read(path), path).num_rows)
        except NotFoundError as error:
            raise NotFoundError(
                f"file {path} has no row count in its statistics, and does not exist: restore it, "
                "or have its owner remove it from the table"
            ) from error
        except (pa.ArrowException, OSError) as error:
            raise InvalidInputError(f"{path} is not a Parquet file: {error}") from error
        self._row_counts[path] = rows
        return rows


def _merged_text(version: SourceVersion, reason: LedgerError) -> str:
    """Return that earlier versions have no transactions of their own, and the reason."""
    first, last = version.since, version.number - 1
    which = f"version {first} has" if first == last else f"versions {first} to {last} have"
    return (
        f"{which} no transaction, and that of version {version.number} has their changes: "
        f"{reason.message}"
    )


def _snapshot_event(
    version: SourceVersion, before: TableState, schema_id: int, files: tuple[FileChange, ...]
) -> SnapshotCommitted:
    sums = FileSums.of(files)
    user, number = _commit_key(version.commit)
    return SnapshotCommitted(
        snapshot_id=before.last_snapshot_id + 1,
        schema_id=schema_id,
        commit_user=user,
        commit_identifier=number,
        total_record_count=before.totals.record_count + sums.record_count,
        delta_record_count=sums.record_count,
        delta_file_count=sums.file_count,
        delta_file_size_in_bytes=sums.file_size_in_bytes,
        last_file_creation_time=(
            UNSET if sums.last_file_creation_time is None else sums.last_file_creation_time
        ),
        named_schema_ids=tuple(
            sorted({e.schema_id for e in files if e.kind == "ADD" and not e.field_ids})
        ),
        files=msgspec.Raw(encode_checked_files(files)),
        commit_kind=_commit_kind(version, files),
    )


def _followed_event(
    version: SourceVersion, before: TableState, columns: ConvertedColumns
) -> DeltaFollowed:
    actions, known = version.actions, before.origin_of_kind(DeltaOrigin).columns
    new = {path: each for path, each in columns.new.items() if path not in known}
    return DeltaFollowed(
        delta_version=version.number,
        timestamp_millis=_version_millis(version),
        sha256=version.sha256 or UNSET,
        protocol=actions.protocol or UNSET,
        metadata=actions.metadata or UNSET,
        columns=new or UNSET,
        txns=actions.txns or UNSET,
        operation=_operation_name(version.commit),
    )


def _is_layout_event(event: TableEvent) -> bool:
    return isinstance(event, PartitionSpecUpdated)


def _commit_key(commit: LogActions) -> tuple[str, int]:
    """Return the application and transaction version that identify a commit.

    A checkpoint gives none: it repeats the last number of every application.
    """
    if len(commit.txns) == 1:
        return next(iter(commit.txns.items()))
    engine = commit.info.get("engineInfo")
    return str(engine or "delta"), BATCH_COMMIT_IDENTIFIER


def _commit_kind(version: SourceVersion, files: Iterable[FileChange]) -> CommitKind:
    actions = version.actions
    changes = {each.data_change for each in actions.added.values()}
    changes |= {each.data_change for each in actions.removed.values()}
    # No action of a checkpoint changes data, whatever the original commits did; of several commits
    # a later one may compact what an earlier one added.
    if version.is_single and actions.removed and changes == {False}:
        return "COMPACT"
    return "OVERWRITE" if any(each.kind == "DELETE" for each in files) else "APPEND"


def check_reader_features(text: str) -> None:
    """Check that a protocol requires no unsupported reader features.

    Raises:
        UnsupportedError: It requires one; the message names the feature.
        InvalidInputError: The protocol is invalid.
    """
    if not text:
        return
    found = _parse_protocol(text)
    unknown = sorted(set(found.reader_features or ()) - READABLE)
    if unknown or found.min_reader_version > _LAST_READER:
        what = ", ".join(unknown) or f"reader version {found.min_reader_version}"
        raise UnsupportedError(f"its readers must support {what}, which an import does not")
    for each in found.writer_features or ():
        if each.startswith(_COORDINATED):
            # Newer versions may exist only at the coordinator.
            raise UnsupportedError(
                f"it has {each}: a coordinator holds its newest commits, which an import does "
                "not query; remove the feature at the source first"
            )


def _parse_protocol(text: str) -> Protocol:
    try:
        return msgspec.json.decode(text, type=Protocol)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(f"the source has an invalid protocol: {error}") from error


def read(
    place: str, table: TableHandle | None, now_millis: int, access: FileAccess
) -> IncomingTransactions:
    """Return the new versions; see `projections.importing.importing.Read`."""
    source = DeltaSource(place, access)
    known = -1
    if table is not None:
        known = _imported_version(table, source)
    planner = ImportPlanner(
        None if table is None else table.state,
        source,
        now_millis,
        lambda: (
            () if table is None or table.state.snapshot is None else table.files_at(table.state)
        ),
    )
    came = tuple(planner.planned(source.versions(known)))
    return IncomingTransactions(
        source.name,
        source.file(source.newest),
        planner.creation,
        came,
        tuple(planner.not_carried),
        planner.schemas,
    )


def _imported_version(table: TableHandle, source: DeltaSource) -> int:
    """Return the source version up to which a table was imported.

    Raises:
        AlreadyExistsError: The table is imported from another source, or the source was replaced.
    """
    delta = table.state.delta
    if delta is None:
        raise AlreadyExistsError(
            f"table {table.identifier} follows {table.state.origin.source}, which is not a Delta "
            "table; import under another name"
        )
    if delta.delta_version > source.newest:
        raise _other_table_error(table, delta, source, f"ends at version {source.newest}")
    digest = source.digest(delta.delta_version) if delta.delta_version >= 0 else None
    if delta.sha256 and digest is not None and digest != delta.sha256:
        raise _other_table_error(table, delta, source, f"has another version {delta.delta_version}")
    return delta.delta_version


def _other_table_error(
    table: TableHandle, delta: DeltaOrigin, source: DeltaSource, said: str
) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"table {table.identifier} has followed {delta.source} up to its version "
        f"{delta.delta_version}, and {source.name} {said}: it is another table, or was dropped and "
        "recreated; import it under another name"
    )


def find_tables(place: str, access: FileAccess) -> list[FoundTable]:
    """Return the Delta tables below a folder."""
    root = canonical_url(canonical_source(place))
    return tables_below(SourceFiles(access.below(root)), root, has_folder(FOLDER))


DELTA = Importing("delta", read, find_tables)


_TIMED = "delta.enableInCommitTimestamps"


class DeltaHandover:
    """See `projections.importing.promoting.Handover`."""

    def source(self, table: TableHandle) -> str:
        """Return the source of an imported table."""
        return table.state.origin_of_kind(DeltaOrigin).source

    def is_here(self, table: TableHandle, source: str, access: FileAccess) -> bool:
        """Return no: a folder stays the source, and its last version is imported too.

        Raises:
            UnsupportedError: Another ledger owns the table.
        """
        state = table.state
        delta = state.origin_of_kind(DeltaOrigin)
        protocol = delta.protocol
        for each in DeltaSource(source, access).versions(delta.delta_version):
            protocol = each.actions.protocol or protocol
        _check_unfenced(protocol, state.table_id, source)
        return False

    def promotion(self, table: TableHandle, source: str) -> tuple[TableEvent, ...]:
        """Return the promotion's event; reject tables that the ledger cannot own.

        Raises:
            UnsupportedError: Another ledger owns the table, or the ledger cannot express its
                columns or their names in files.
            DamagedLogError: A file of its projected log is missing or damaged.
            StoreError: A file of another program has the name of a file to be projected.
        """
        state = table.state
        delta = state.origin_of_kind(DeltaOrigin)
        _check_unfenced(delta.protocol, state.table_id, source)
        for problem in _promotion_problems(table):
            raise UnsupportedError(f"{source} cannot be promoted: {problem}")
        kept = (RemoveOption(each) for each in sorted(state.schema.options) if is_reserved(each))
        events: tuple[TableEvent, ...] = (TablePromoted(source=delta.source), *kept)
        if not is_fenced(state):
            # Once the source rejects other writers there is no way back.
            _check_projection(table, delta, events)
        return events

    def adoption(self, table: TableHandle) -> tuple[TableEvent, ...]:
        """Return nothing: the ledger lists the files of an imported Delta table from the start."""
        del table
        return ()

    def hand_over(
        self, table: TableHandle, source: str, access: FileAccess, now_millis: int
    ) -> bool:
        """Write the version that locks out other writers, unless another commit came first.

        That commit must then be imported first. If the source's storage has no conditional create,
        nothing is written, and its owner has to stop its writers.
        """
        state = table.state
        delta = state.origin_of_kind(DeltaOrigin)
        if DeltaSource(source, access).newest != delta.delta_version:
            return False
        log = f"{canonical_url(canonical_source(source))}/{FOLDER}"
        store = None if is_fenced(state) else conditional_store(log, access)
        if store is None:
            return True
        path = commit_path(delta.delta_version + 1)
        # Another writer was first: its commits are imported now.
        store.create(path.removeprefix(f"{FOLDER}/"), _fencing_commit(table, delta, now_millis))
        return False

    def instructions(self, table: TableHandle) -> tuple[str, ...]:
        """Return the next steps for the table's former owner, one sentence each."""
        state, name = table.state, table.identifier
        delta = state.origin_of_kind(DeltaOrigin)
        if is_fenced(state):
            said = f"lead its writers to the ledger: {delta.source} refuses those that know table"
            stop = f"{said} features since its version {delta.delta_version}"
        else:
            stop = f"stop all writers of {delta.source}: new commits there are lost to the ledger"
        read = f"let readers read {table.location}: its versions continue the source's"
        keep = (
            f"keep the files below {delta.source}, and run no VACUUM there: older rows stay in it"
        )
        on = f"after later changes, bring the files up to date: lakeledger project delta {name}"
        return (stop, read, keep, on)


def is_fenced(state: TableState) -> bool:
    """Return whether a table's source accepts commits only from this ledger's table."""
    delta = state.origin_of_kind(DeltaOrigin)
    return _table_fence_feature(state.table_id) in _writer_features(delta.protocol)


def _check_unfenced(protocol: str, table_id: str, source: str) -> None:
    """Check that a source's protocol lets this ledger's table own it.

    Raises:
        UnsupportedError: Another ledger's table owns it.
        InvalidInputError: The protocol is invalid.
    """
    features = _writer_features(protocol)
    if FENCE in features and _table_fence_feature(table_id) not in features:
        raise UnsupportedError(
            f"{source} is already written by a ledger's table only: commit there, and import its "
            "changes here"
        )


def _table_fence_feature(table_id: str) -> str:
    return f"{FENCE}-{table_id}"


def _writer_features(protocol: str) -> tuple[str, ...]:
    return (_parse_protocol(protocol).writer_features or ()) if protocol else ()


def _check_projection(
    table: TableHandle, delta: DeltaOrigin, events: tuple[TableEvent, ...]
) -> None:
    """Project the promotion in memory: the source's last version, then the ledger's first."""
    state = table.state
    trial = PlanningState(state, state.effective_millis)
    last = DeltaFollowed(
        delta_version=delta.delta_version + 1,
        timestamp_millis=delta.timestamp_millis + 1,
        protocol=_fenced_protocol(table.state.table_id, delta).decode(),
    )
    ahead = []
    for some in ((last,), events):
        trial.take(some, state.effective_millis, "", delta.source)
        ahead.append(
            Commit(
                format=FORMAT,
                version=trial.state.version,
                time_millis=trial.state.time_millis,
                transactions=(
                    Transaction(
                        id="",
                        asked="",
                        effective_time_millis=trial.state.effective_millis,
                        outside=Outside() if state.keeps_outside else UNSET,
                        events=some,
                    ),
                ),
            )
        )
    check_future_commits(table, ahead, trial.state)


def _fenced_protocol(table_id: str, delta: DeltaOrigin) -> bytes:
    return with_features(delta.protocol, {FENCE, _table_fence_feature(table_id)})


def _fencing_commit(table: TableHandle, delta: DeltaOrigin, now_millis: int) -> bytes:
    """Return the last commit of a source's log, which locks out other writers."""
    configuration = msgspec.json.decode(delta.metadata).get("configuration") or {}
    millis = max(now_millis, delta.timestamp_millis + 1)
    timed = {"inCommitTimestamp": millis} if configuration.get(_TIMED) == "true" else {}
    info = {
        **timed,
        "timestamp": millis,
        "operation": "PROMOTE",
        "operationParameters": {"owner": table.location},
        "readVersion": delta.delta_version,
        "isBlindAppend": False,
        "userMetadata": f"the ledger's from here on: {table.location}",
    }
    fence = _fenced_protocol(table.state.table_id, delta)
    return action_line("commitInfo", info) + action_line("protocol", msgspec.Raw(fence))


def _promotion_problems(table: TableHandle) -> Iterator[str]:
    """Yield the problems that prevent the ledger from owning a table, one sentence each."""
    state = table.state
    schema = state.schema
    for each in (
        *column_problems(schema.fields),
        *name_problems(schema),
        *spec_problems(schema, state.spec),
    ):
        yield f"{each.what}: {each.rule}"
    called = ColumnNamesInFiles(state.origin_of_kind(DeltaOrigin).column_names_in_files, schema.id)
    if called.schema(schema) == schema:
        return
    unnumbered = {each.schema_id: each.path for each in table.files_at(state) if not each.field_ids}
    for schema_id, said in schemas_by_id(table.log, unnumbered).items():
        if called.schema(said) != said:
            yield (
                f"file {unnumbered[schema_id]} has no field ids of the table, and other column "
                "names, so that only Delta can read it; write its rows into a table of "
                "the ledger's own (lakeledger create, then add-files)"
            )


PROMOTE = Promoting(DELTA, DeltaHandover(), FolderReaders(project))
