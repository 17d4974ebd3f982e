"""TableBuilder: the fold of a table's stream, without I/O or clock.

It is mutable while commits are folded and returns an immutable TableState at the end; how written
events fold never changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, MutableMapping
from copy import copy
from typing import Any, assert_never, cast

from msgspec import UNSET, UnsetType

from ledger.events import TableEvent
from ledger.events.commit import Commit, Transaction
from ledger.events.imported import (
    CurrentSchemaSet,
    DeltaFollowed,
    IcebergEvent,
    IcebergSchema,
    ImportedDeltaTable,
    ImportedIcebergTable,
    ImportedPaimonTable,
    LayoutsRemoved,
    PaimonBranchUpdated,
    SchemaNamed,
    SchemaReplaced,
    SchemasRemoved,
    SnapshotRefRemoved,
    SnapshotRefSet,
    SnapshotsRemoved,
    StatisticsRemoved,
    StatisticsSet,
    TableFactsSet,
)
from ledger.events.partitions import PartitionsUpdated
from ledger.events.schema import (
    PartitionSpecUpdated,
    SchemaEvent,
    SortOrderReplaced,
    UpdateKeys,
)
from ledger.events.snapshots import (
    BranchCommitted,
    PartitionStatisticsSet,
    RolledBack,
    SnapshotCommitted,
    SnapshotsExpired,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.events.table import (
    ClockCorrected,
    FormatRulesRaised,
    OwnerSet,
    TableCreated,
    TableDropped,
    TablePromoted,
    TableUndropped,
)
from ledger.model.errors import InvalidChangeError, TableDroppedError
from ledger.model.iceberg_layout import SomeSpecs, SortOrder
from ledger.model.iceberg_objects import PartitionStatisticsFile, StatisticsFile
from ledger.model.instant import ClockCorrection
from ledger.model.schema import Schema
from ledger.model.snapshot import BRANCH_IDS, Branch, Tag, Totals
from ledger.model.types.wire import field_from_wire
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.iceberg_builder import IcebergOriginBuilder
from ledger.state.iceberg_origin import IcebergOrigin, iceberg_snapshot, iceberg_totals
from ledger.state.layout import LayoutTrail, build_checked_order, build_checked_spec, identity_spec
from ledger.state.native_origin import NATIVE, NativeOrigin
from ledger.state.owner import LEDGER, Owner
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.schema_builder import SchemaBuilder, SchemaRule, schema_rule
from ledger.state.schema_record import first_schema
from ledger.state.snapshots import BranchTrail, SnapshotTrail, snapshot_of
from ledger.state.stream import (
    clock_correction_of,
    keeps_outside,
    refuse_misplaced_commit,
    refuse_untimely_transaction,
    sidecar_author_digest,
)
from ledger.state.table import Origin, TableState

_Origin = NativeOrigin | IcebergOriginBuilder | PaimonOrigin | DeltaOrigin
_Rule = Callable[["TableBuilder", Any, str, int], None]
_RULES: dict[type, _Rule] = {}
"""The rule for each kind of event: one dict look-up, where `match` tests kind by kind."""
_SCHEMA_RULES: dict[type, SchemaRule] = {}
"""The same for the kinds that change the schema and nothing else: most of a long log."""


class TableBuilder:
    """Folds commits into a table's state; starts from a state, or before version 0."""

    __slots__ = (
        "_branches",
        "_changes_schema",
        "_corrections",
        "_created",
        "_dropped",
        "_earliest_snapshot_id",
        "_format_rules",
        "_frozen_schema",
        "_identity",
        "_is_closed",
        "_layout",
        "_named_schema_ids",
        "_origin",
        "_owner",
        "_owns",
        "_puffin",
        "_schema",
        "_schema_id",
        "_schema_millis",
        "_snapshots",
        "_statistics",
        "_tags",
        "_updated",
        "effective_millis",
        "keeps_outside",
        "time_millis",
        "version",
    )

    def __init__(self, state: TableState | None = None) -> None:
        self._changes_schema = False
        if state is None:
            self._init_empty()
        else:
            self._init_from_state(state)

    def _init_empty(self) -> None:
        self.version = -1
        self.time_millis = 0
        self.effective_millis = 0
        self.keeps_outside: bool | None = None
        self._corrections: tuple[ClockCorrection, ...] = ()
        self._format_rules: Mapping[str, int] = {}
        self._is_closed, self._dropped = True, False
        # Those of a state are shared, and copied by the first change: most commits change none.
        self._owns = True
        self._tags: MutableMapping[str, Tag] = {}
        self._statistics: dict[int, PartitionStatisticsFile] = {}
        self._puffin: dict[int, StatisticsFile] = {}
        self._earliest_snapshot_id = 1
        self._named_schema_ids: tuple[int, ...] = ()
        self._snapshots = SnapshotTrail(None, Totals())
        self._schema_id = 0
        self._schema_millis = 0
        self._frozen_schema: Schema | None = None
        self._branches = BranchTrail({}, 0)
        self._origin: _Origin = NATIVE
        self._owner = LEDGER

    def _init_from_state(self, state: TableState) -> None:
        self.version = state.version
        self.time_millis = state.time_millis
        self.effective_millis = state.effective_millis
        self.keeps_outside = state.keeps_outside
        self._corrections = state.corrections
        self._format_rules = state.format_rules
        self._dropped = self._is_closed = state.dropped
        self._owns = False
        self._tags = cast("MutableMapping[str, Tag]", state.tags)
        self._statistics = cast("dict[int, PartitionStatisticsFile]", state.partition_statistics)
        self._puffin = cast("dict[int, StatisticsFile]", state.statistics)
        self._earliest_snapshot_id = state.earliest_snapshot_id
        self._branches = BranchTrail(state.branches, state.last_branch_number)
        self._schema = SchemaBuilder(state.schema)
        self._schema_id = state.schema.id
        self._schema_millis = state.schema.time_millis
        self._frozen_schema = state.schema
        self._layout = LayoutTrail.of(state)
        self._named_schema_ids = state.named_schema_ids
        self._identity = (state.table_id, state.path, state.is_external)
        self._created = (state.created_at, state.created_by)
        self._updated = (state.updated_at, state.updated_by)
        self._owner = state.owner
        if isinstance(state.origin, IcebergOrigin):
            self._origin = IcebergOriginBuilder(state.origin)
            self._snapshots = SnapshotTrail(None, Totals())
        else:
            self._origin = state.origin
            self._snapshots = SnapshotTrail(state.snapshot, state.totals)

    @property
    def specs(self) -> SomeSpecs:
        """Every partition spec so far, oldest first."""
        return self._layout.specs

    @property
    def schema_id(self) -> int:
        """The current schema's id."""
        return self._schema_id

    @property
    def schema(self) -> Schema:
        """The current schema, as in a state."""
        return self._current_schema()

    @property
    def source_lists_files(self) -> bool:
        """True if only the source's manifests list the files of its snapshot events."""
        return isinstance(self._origin, PaimonOrigin) and not self._origin.is_promoted

    @property
    def origin(self) -> Origin:
        """The table's origin, with what was imported so far."""
        origin = self._origin
        return origin.freeze() if isinstance(origin, IcebergOriginBuilder) else origin

    @property
    def last_snapshot_id(self) -> int:
        """The newest snapshot id so far; 0 before the first, and while the source assigns ids."""
        match self._origin:
            case NativeOrigin() | DeltaOrigin():
                return self._snapshots.last_id
            case PaimonOrigin() as paimon:
                current = paimon.current
                return current.id if current is not None and paimon.is_promoted else 0
            case IcebergOriginBuilder() as iceberg:
                return iceberg.last_assigned_id

    @property
    def branches(self) -> Mapping[str, Branch]:
        """The branches so far, by name."""
        return self._branches.branches

    def commit(self, commit: Commit[TableEvent]) -> None:
        """Fold one commit.

        Raises:
            InvalidChangeError: It contradicts what came before.
            TableDroppedError: The stream was sealed.
        """
        self.begin(commit.version, commit.time_millis)
        for transaction in commit.transactions:
            self.add(transaction)

    def begin(self, version: int, time_millis: int) -> None:
        """Begin the next commit; its transactions are added one by one.

        Raises:
            InvalidChangeError: It cannot follow.
        """
        if version != self.version + 1 or time_millis < self.time_millis:
            refuse_misplaced_commit(version, time_millis, self.version, self.time_millis)
        self.version = version
        self.time_millis = time_millis

    def add(self, transaction: Transaction[TableEvent]) -> None:
        """Fold one transaction of the commit that was begun last.

        Raises:
            InvalidChangeError: It contradicts what came before.
            TableDroppedError: The stream was sealed.
        """
        moment, author = transaction.effective_time_millis, transaction.author
        if moment is UNSET:
            moment = self.time_millis
        if not self.effective_millis <= moment <= self.time_millis:
            refuse_untimely_transaction(
                transaction, moment, self.effective_millis, self.time_millis
            )
        if transaction.outside is not UNSET:
            author = sidecar_author_digest(transaction)
        self.keeps_outside = keeps_outside(transaction, before=self.keeps_outside)
        self._changes_schema = False
        for event in transaction.events:
            kind = type(event)
            if self._is_closed and kind is not (TableUndropped if self._dropped else TableCreated):
                raise _table_dropped_error() if self._dropped else _not_created_error()
            changes = _SCHEMA_RULES.get(kind)
            if changes is not None:
                changes(self._schema, event)
                self._changes_schema = True
            else:
                (_RULES.get(kind) or self._cached_rule_for(event))(self, event, author, moment)
        if self._changes_schema and (self.version or self._owner.kind == "served"):
            self._schema_millis = moment
            self._assign_schema_id()
        if self._is_closed and not self._dropped:
            raise _not_created_error()
        self.effective_millis = moment
        self._updated = (moment, author)

    def _assign_schema_id(self) -> None:
        """Assign an id to the schema after a transaction."""
        match self._origin:
            case NativeOrigin() | DeltaOrigin():
                self._schema_id += 1
            case PaimonOrigin() as paimon:
                if not paimon.is_promoted:
                    # The event that names the columns has assigned it.
                    self._schema_millis = paimon.schemas[self._schema_id].time_millis
                    self._frozen_schema = None
                else:
                    self._schema_id += 1
                    self._origin = paimon.with_schema(self._current_schema())
            case IcebergOriginBuilder() as iceberg:
                # Its ids are the source's, which has none for a change of options only.
                self._schema_id, self._frozen_schema = iceberg.schema_id, None
            case _:
                assert_never(self._origin)

    @classmethod
    def _cached_rule_for(cls, event: TableEvent) -> _Rule:
        rule = _RULES[type(event)] = cls._find_event_rule(event)
        return rule

    @classmethod
    def _find_event_rule(  # noqa: C901, PLR0911, PLR0912 - one case a kind
        cls, event: TableEvent
    ) -> _Rule:
        if isinstance(event, SchemaEvent):
            return cls._fold_keys if isinstance(event, UpdateKeys) else cls._fold_schema
        if isinstance(event, IcebergEvent):
            return cls._find_iceberg_rule(event)
        match event:
            case SnapshotCommitted() | RolledBack():
                return cls._fold_snapshot
            case BranchCommitted():
                return cls._fold_branch_snapshot
            case TagCreated() | TagReplaced() | TagDeleted():
                return cls._fold_tag_event
            case SnapshotsExpired():
                return cls._expire_snapshots
            case PartitionStatisticsSet():
                return cls._set_partition_statistics
            case ClockCorrected():
                return cls._correct_clock
            case FormatRulesRaised():
                return cls._raise_format_rules
            case TableCreated():
                return cls._create_table
            case TableDropped() | TableUndropped():
                return cls._seal_or_unseal
            case TablePromoted() | OwnerSet():
                return cls._change_owner
            case PartitionSpecUpdated() | SortOrderReplaced():
                return cls._fold_layout
            case PaimonBranchUpdated():
                return cls._update_paimon_branch
            case PartitionsUpdated():
                return cls._check_partitions
            case DeltaFollowed():
                return cls._fold_delta_sync
            case _:
                assert_never(event)

    @classmethod
    def _find_iceberg_rule(cls, event: IcebergEvent) -> _Rule:
        if isinstance(event, SchemaReplaced | SchemaNamed | CurrentSchemaSet):
            return cls._fold_source_schema
        if isinstance(event, SnapshotRefSet | SnapshotRefRemoved):
            return cls._fold_ref
        return cls._fold_source_event

    def _fold_schema(self, event: SchemaEvent, _author: str, _moment: int) -> None:
        rule = _SCHEMA_RULES[type(event)] = schema_rule(event)
        rule(self._schema, event)
        self._changes_schema = True

    def _fold_keys(self, event: UpdateKeys, _author: str, _moment: int) -> None:
        self._schema.apply(event)
        self._changes_schema = True
        # Only before the first snapshot, so no file uses the old spec.
        self._layout = LayoutTrail((identity_spec(self._freeze_schema()),))

    def _fold_snapshot(
        self, event: SnapshotCommitted | RolledBack, _author: str, moment: int
    ) -> None:
        match self._origin:
            case NativeOrigin() | DeltaOrigin():
                self._refuse_iceberg_summary(event)
                self._refuse_engine_time(event)
                self._fold_ledger_snapshot(event, moment)
            case PaimonOrigin() as paimon:
                self._refuse_iceberg_summary(event)
                self._fold_paimon_snapshot(event, paimon, moment)
            case IcebergOriginBuilder() as iceberg:
                self._refuse_if_mirrored(event, iceberg)
                self._refuse_engine_time(event)
                iceberg.commit(event, iceberg.schema_id, self.version, moment)
                self._add_named_schema_ids(event.named_schema_ids)
            case _:
                assert_never(self._origin)

    @staticmethod
    def _refuse_iceberg_summary(event: SnapshotCommitted | RolledBack) -> None:
        if event.summary is not UNSET:
            raise InvalidChangeError(
                f"snapshot {event.snapshot_id} has Iceberg's summary in a table that was not "
                "imported from Iceberg",
                kind="ILLEGAL_STATE",
            )

    @staticmethod
    def _refuse_engine_time(event: SnapshotCommitted | RolledBack | SchemaNamed) -> None:
        if not isinstance(event, RolledBack) and event.time_millis is not UNSET:
            raise InvalidChangeError(
                f"{type(event).__name__} has a time of Paimon's in a table that is not from Paimon",
                kind="ILLEGAL_STATE",
            )

    def _fold_ledger_snapshot(self, event: SnapshotCommitted | RolledBack, moment: int) -> None:
        # A snapshot after a schema change of its own transaction has the new schema.
        self._snapshots.apply(event, self._schema_id + self._changes_schema, moment)
        if event.named_schema_ids:
            self._add_named_schema_ids(event.named_schema_ids)
        if isinstance(event, SnapshotCommitted) and event.fast_forward_to is not UNSET:
            self._refuse_branch_event(event)
            # The branch releases main's newest snapshot but this one, which cannot have expired,
            # so that no statistics are removed with it.
            self._branches.rebase_on_fast_forward(event, self.version, self._snapshots.totals())

    def _fold_paimon_snapshot(
        self, event: SnapshotCommitted | RolledBack, paimon: PaimonOrigin, moment: int
    ) -> None:
        if not paimon.is_promoted:
            self._origin = paimon.with_source_snapshot(snapshot_of(event, moment), self.version)
            return
        trail = paimon.next_snapshot_trail()
        trail.apply(event, self._schema_id + self._changes_schema, moment)
        self._origin = paimon.with_own_snapshot(trail, self.version)
        self._add_named_schema_ids(event.named_schema_ids)

    def _fold_branch_snapshot(self, event: BranchCommitted, _author: str, moment: int) -> None:
        self._refuse_branch_event(event)
        self._branches.commit(event, self._schema_id + self._changes_schema, moment)
        self._add_named_schema_ids(event.named_schema_ids)

    def _refuse_branch_event(self, event: TableEvent) -> None:
        """Reject a branch's event in an imported table.

        Raises:
            InvalidChangeError: It is.
        """
        if not self._origin.has_branches:
            raise InvalidChangeError(
                f"{type(event).__name__} is not valid in an imported table",
                kind="ILLEGAL_STATE",
            )

    def _add_named_schema_ids(self, schema_ids: tuple[int, ...]) -> None:
        for each in schema_ids:
            # They are in order, and every snapshot calls this.
            named = self._named_schema_ids
            place = bisect_left(named, each)
            if named[place : place + 1] != (each,):
                self._named_schema_ids = (*named[:place], each, *named[place:])

    def _fold_layout(
        self, event: PartitionSpecUpdated | SortOrderReplaced, _author: str, _moment: int
    ) -> None:
        self._layout.apply(event)

    def _change_owner(self, event: TablePromoted | OwnerSet, _author: str, _moment: int) -> None:
        match event:
            case TablePromoted():
                self._promote_table(event)
                self._owner = Owner(since_version=self.version)
            case OwnerSet():
                self._owner = self._owner.after(event, self.version)
                paimon = self._origin
                if (
                    event.owner == "ledger"
                    and isinstance(paimon, PaimonOrigin)
                    and not paimon.is_promoted
                ):
                    # Its engines owned it from its creation on.
                    self._promote_paimon(paimon)
            case _:
                assert_never(event)

    def _seal_or_unseal(
        self, event: TableDropped | TableUndropped, _author: str, _moment: int
    ) -> None:
        if isinstance(event, TableUndropped) and (
            not self._dropped
            or event.sealed_version != self.version - 1
            or event.table_id != self._identity[0]
        ):
            raise InvalidChangeError(
                f"version {self.version} restores table {event.table_id}, which version "
                f"{self.version - 1} did not drop",
                kind="ILLEGAL_STATE",
            )
        self._dropped = self._is_closed = isinstance(event, TableDropped)

    def _create_table(self, event: TableCreated, author: str, moment: int) -> None:
        if self.version:
            raise InvalidChangeError("a table is created by version 0 only", kind="ILLEGAL_STATE")
        schema = first_schema(event)
        self._schema = SchemaBuilder(schema)
        self._schema_millis = moment
        fields, order = event.partition_spec, event.sort_order
        self._layout = LayoutTrail(
            (
                identity_spec(schema)
                if isinstance(fields, UnsetType)
                else build_checked_spec(0, fields),
            ),
            (SortOrder(0) if isinstance(order, UnsetType) else build_checked_order(1, order),),
        )
        self._identity = (event.table_id, event.path, event.is_external)
        self._created = (moment, author)
        self._is_closed = False
        self._init_origin(event)

    def _init_origin(self, event: TableCreated) -> None:
        origin = event.origin
        if isinstance(origin, UnsetType):
            return
        self._owner = Owner("mirrored")
        protocol = event.protocol
        if not isinstance(protocol, UnsetType):
            self._owner = Owner("served", protocol)
        match origin:
            case ImportedPaimonTable():
                self._schema_id = origin.schema_id
                self._origin = PaimonOrigin.of_creation(origin, self._freeze_schema())
            case ImportedDeltaTable():
                self._origin = DeltaOrigin.of_creation(origin)
            case ImportedIcebergTable():
                record = event.schema
                self._origin = iceberg = IcebergOriginBuilder.of_creation(
                    origin, record.fields, record.identifier_field_ids
                )
                if self._owner.kind == "served":
                    iceberg.begin_ownership(self.version, 0)
                self._schema_id = origin.schema_id
            case _:
                assert_never(origin)

    def _iceberg_origin(self, event: IcebergEvent) -> IcebergOriginBuilder:
        if not isinstance(self._origin, IcebergOriginBuilder):
            raise InvalidChangeError(
                f"{type(event).__name__} is only valid in a table that was imported from Iceberg",
                kind="ILLEGAL_STATE",
            )
        return self._origin

    @staticmethod
    def _refuse_if_mirrored(event: TableEvent, iceberg: IcebergOriginBuilder) -> None:
        if not iceberg.is_promoted:
            raise _iceberg_table_error(event)

    def _promote_table(self, event: TablePromoted) -> None:
        match self._origin:
            case NativeOrigin():
                raise InvalidChangeError(
                    "TablePromoted is not valid in a table that follows no source",
                    kind="ILLEGAL_STATE",
                )
            case DeltaOrigin() as delta:
                self._origin = delta.promoted(self.version, self._schema_id)
            case PaimonOrigin() as paimon:
                self._promote_paimon(paimon)
            case IcebergOriginBuilder() as iceberg:
                iceberg.promote(event, self.version)
            case _:
                assert_never(self._origin)

    def _promote_paimon(self, paimon: PaimonOrigin) -> None:
        self._origin = promoted = paimon.promoted(self.version)
        self._earliest_snapshot_id = min(promoted.snapshots, default=1)

    def _fold_source_schema(
        self, event: SchemaReplaced | SchemaNamed | CurrentSchemaSet, _author: str, moment: int
    ) -> None:
        self._changes_schema = True
        if isinstance(self._origin, PaimonOrigin):
            self._refuse_if_ledger_owned(event, self._origin)
            self._fold_paimon_schema(event, self._origin, moment)
        elif isinstance(self._origin, DeltaOrigin) and isinstance(event, SchemaReplaced):
            self._replace_columns(event)
        else:
            self._fold_iceberg_schema(event, self._iceberg_origin(event))

    def _replace_columns(self, source: SchemaReplaced | IcebergSchema) -> None:
        fields = tuple(map(field_from_wire, source.fields))
        self._schema.replace(fields, source.identifier_field_ids)

    def _fold_iceberg_schema(
        self,
        event: SchemaReplaced | SchemaNamed | CurrentSchemaSet,
        iceberg: IcebergOriginBuilder,
    ) -> None:
        match event:
            case SchemaNamed():
                self._refuse_engine_time(event)
                schema = self._schema
                fields = tuple(schema.columns.values())
                iceberg.name_schema(event, fields, schema.identifier_field_ids)
            case CurrentSchemaSet():
                self._replace_columns(iceberg.set_current_schema(event.schema_id))
            case SchemaReplaced():
                self._replace_columns(event)
            case _:
                assert_never(event)

    def _fold_paimon_schema(
        self,
        event: SchemaReplaced | SchemaNamed | CurrentSchemaSet,
        paimon: PaimonOrigin,
        moment: int,
    ) -> None:
        if isinstance(event, SchemaReplaced):
            self._replace_columns(event)
            return
        self._schema_id = event.schema_id
        if isinstance(event, CurrentSchemaSet):
            self._schema = SchemaBuilder(paimon.schema(event.schema_id))
            return
        named_at = moment if event.time_millis is UNSET else event.time_millis
        named = self._schema.freeze(schema_id=event.schema_id, time_millis=named_at)
        self._origin = paimon.with_schema(named)

    @staticmethod
    def _refuse_if_ledger_owned(event: TableEvent, paimon: PaimonOrigin) -> None:
        if paimon.is_promoted:
            raise InvalidChangeError(
                f"{type(event).__name__} is of a source, and the table follows {paimon.source} no "
                "more",
                kind="ILLEGAL_STATE",
            )

    def _fold_paimon_event(self, event: Any, paimon: PaimonOrigin) -> None:
        if isinstance(event, StatisticsSet) and paimon.is_promoted:
            self._set_puffin_statistics(event)
            return
        self._refuse_if_ledger_owned(event, paimon)
        if isinstance(event, SnapshotsRemoved):
            self._origin = paimon.without_snapshots(
                event.snapshot_ids, self._tagged_snapshot_ids(), self.version
            )
        elif isinstance(event, SchemasRemoved):
            self._origin = paimon.without_schemas(event.schema_ids, self._schema_id)
        elif isinstance(event, TableFactsSet) and event.last_column_id is not UNSET:
            self._schema.highest_field_id = event.last_column_id
            self._changes_schema = True
        else:
            raise InvalidChangeError(
                f"{type(event).__name__} is not valid in a table that was imported from Paimon",
                kind="ILLEGAL_STATE",
            )

    def _update_paimon_branch(self, event: PaimonBranchUpdated, _author: str, _moment: int) -> None:
        if not isinstance(self._origin, PaimonOrigin):
            raise InvalidChangeError(
                "PaimonBranchUpdated is only valid in a table that was imported from Paimon",
                kind="ILLEGAL_STATE",
            )
        self._refuse_if_ledger_owned(event, self._origin)
        self._origin = self._origin.with_branch_files(event, self.version)

    def _check_partitions(self, event: PartitionsUpdated, _author: str, _moment: int) -> None:
        """Reject partitions of a snapshot or branch that does not exist; sums are not state."""
        if not isinstance(self._origin, PaimonOrigin):
            raise InvalidChangeError(
                "PartitionsUpdated is only valid in a table that was imported from Paimon",
                kind="ILLEGAL_STATE",
            )
        self._refuse_if_ledger_owned(event, self._origin)
        branch, snapshot_id = event.branch_name, event.snapshot_id
        if not isinstance(branch, UnsetType):
            if branch not in self._origin.branches:
                raise InvalidChangeError(f"there is no branch {branch}, whose partitions changed")
        elif not isinstance(snapshot_id, UnsetType) and (
            snapshot_id not in self._origin.snapshots
            or self._origin.added_in[snapshot_id] != self.version
        ):
            raise InvalidChangeError(
                f"snapshot {snapshot_id} is not of version {self.version}, which has its partitions"
            )

    def _tagged_snapshot_ids(self) -> set[int]:
        return {each.snapshot_id for each in self._tags.values()}

    def _fold_ref(
        self, event: SnapshotRefSet | SnapshotRefRemoved, author: str, moment: int
    ) -> None:
        if isinstance(self._origin, PaimonOrigin | IcebergOriginBuilder):
            self._fold_source_event(event, author, moment)
            return
        self._refuse_branch_event(event)
        if isinstance(event, SnapshotRefSet):
            self._branches.begin(event, self.version, self._snapshots.last_id)
        else:
            self._branches.end(event)
        self._drop_unreadable_statistics()

    def _fold_source_event(self, event: Any, _author: str, moment: int) -> None:
        """Fold an event that repeats what the source of an imported table recorded.

        A Puffin file is recorded by such an event for tables of every origin.
        """
        match self._origin:
            case PaimonOrigin() as paimon:
                self._fold_paimon_event(event, paimon)
            case NativeOrigin() | DeltaOrigin() if isinstance(event, StatisticsSet):
                self._set_puffin_statistics(event)
            case NativeOrigin() | DeltaOrigin() | IcebergOriginBuilder():
                self._fold_iceberg_event(event, self._iceberg_origin(event), moment)
            case _:
                assert_never(self._origin)

    def _fold_iceberg_event(self, event: Any, iceberg: IcebergOriginBuilder, moment: int) -> None:
        iceberg.apply(event, self.version, moment)
        if isinstance(event, SnapshotsRemoved | StatisticsRemoved):
            gone = isinstance(event, SnapshotsRemoved)
            self._copy_shared_maps()
            for each in getattr(event, "snapshot_ids" if gone else "of_partitions"):
                self._statistics.pop(each, None)
        elif isinstance(event, LayoutsRemoved):
            self._layout.remove(event.spec_ids, event.order_ids)
        elif isinstance(event, TableFactsSet):
            if event.last_partition_id is not UNSET:
                self._layout.last_partition_id = event.last_partition_id
            if event.last_column_id is not UNSET:
                self._schema.highest_field_id = event.last_column_id
                self._changes_schema = True

    def _fold_delta_sync(self, event: DeltaFollowed, _author: str, _moment: int) -> None:
        if not isinstance(self._origin, DeltaOrigin):
            raise InvalidChangeError(
                "DeltaFollowed is only valid in a table that was imported from Delta",
                kind="ILLEGAL_STATE",
            )
        self._origin = self._origin.after(event)

    def _copy_shared_maps(self) -> None:
        if not self._owns:
            # What was read of a record stays as it is and is decoded on access.
            self._tags, self._statistics = copy(self._tags), dict(self._statistics)
            self._puffin = dict(self._puffin)
            self._owns = True

    def _fold_tag_event(
        self, event: TagCreated | TagReplaced | TagDeleted, _author: str, moment: int
    ) -> None:
        origin = self._origin
        if isinstance(origin, IcebergOriginBuilder):
            self._refuse_if_mirrored(event, origin)
            origin.tag(event, self.version, moment)
            return
        exists = event.tag_name in self._tags
        if exists == isinstance(event, TagCreated):
            raise InvalidChangeError(
                f"tag {event.tag_name!r} {'exists' if exists else 'does not exist'}",
                kind="ILLEGAL_STATE",
            )
        self._copy_shared_maps()
        if isinstance(event, TagDeleted):
            del self._tags[event.tag_name]
            self._drop_unreadable_statistics()
            return
        if isinstance(origin, PaimonOrigin):
            is_there = event.snapshot_id in origin.readable_snapshots
        else:
            is_there = 1 <= event.snapshot_id <= self._snapshots.last_id
        if not is_there:
            raise InvalidChangeError(
                f"tag {event.tag_name!r} names snapshot {event.snapshot_id}; "
                f"the newest is {self._snapshots.last_id}"
            )
        retained = event.time_retained_millis
        kept_millis = None if retained is UNSET else retained
        created = moment if event.create_time_millis is UNSET else event.create_time_millis
        self._tags[event.tag_name] = Tag(event.tag_name, event.snapshot_id, created, kept_millis)
        self._drop_unreadable_statistics()

    def _expire_snapshots(self, event: SnapshotsExpired, _author: str, _moment: int) -> None:
        match self._origin:
            case NativeOrigin() | DeltaOrigin():
                self._expire_ledger_snapshots(event)
            case PaimonOrigin() as paimon:
                earliest = event.earliest_snapshot_id
                if paimon.is_promoted:
                    self._refuse_invalid_expiry(earliest)
                self._origin = paimon.without_expired(earliest, self._tagged_snapshot_ids())
                self._earliest_snapshot_id = earliest
            case IcebergOriginBuilder():
                raise _iceberg_table_error(event)
            case _:
                assert_never(self._origin)

    def _expire_ledger_snapshots(self, event: SnapshotsExpired) -> None:
        earliest = event.earliest_snapshot_id
        if earliest >= BRANCH_IDS:
            self._branches.expire(event)
            return
        self._refuse_invalid_expiry(earliest)
        self._earliest_snapshot_id = earliest
        self._drop_unreadable_statistics()

    def _refuse_invalid_expiry(self, earliest: int) -> None:
        if not self._earliest_snapshot_id <= earliest <= self.last_snapshot_id:
            raise InvalidChangeError(
                f"snapshots before {earliest} cannot expire: those from "
                f"{self._earliest_snapshot_id} to {self.last_snapshot_id} exist, "
                "and the newest stays"
            )

    def _set_partition_statistics(
        self, event: PartitionStatisticsSet, _author: str, _moment: int
    ) -> None:
        file = event.partition_statistics
        # In Iceberg a snapshot may be added after its statistics, or removed before them.
        if not isinstance(self._origin, IcebergOriginBuilder):
            self._refuse_unknown_snapshot(file.snapshot_id, file.statistics_path)
        self._copy_shared_maps()
        self._statistics[file.snapshot_id] = file

    def _set_puffin_statistics(self, event: StatisticsSet) -> None:
        file = event.statistics
        self._refuse_unknown_snapshot(file.snapshot_id, file.statistics_path)
        self._copy_shared_maps()
        self._puffin[file.snapshot_id] = file

    def _refuse_unknown_snapshot(self, snapshot_id: int, path: str) -> None:
        """Reject statistics of a snapshot that main never had.

        Raises:
            InvalidChangeError: It never did.
        """
        if not 1 <= snapshot_id <= self.last_snapshot_id:
            raise InvalidChangeError(
                f"{path} is of snapshot {snapshot_id}; the newest is {self.last_snapshot_id}"
            )

    def _correct_clock(self, event: ClockCorrected, _author: str, moment: int) -> None:
        correction = clock_correction_of(event, self.version, moment)
        latest = correction.true_time_millis
        self._corrections = (*self._corrections, correction)
        self._snapshots.clamp_times(latest)
        self._branches.clamp_times(latest)
        match self._origin:
            case NativeOrigin() | DeltaOrigin():
                pass
            case PaimonOrigin() as paimon:
                self._origin = paimon.with_times_clamped(latest)
            case IcebergOriginBuilder() as iceberg:
                iceberg.clamp_times(latest)
            case _:
                assert_never(self._origin)
        self._schema_millis = min(self._schema_millis, latest)
        self._frozen_schema = None
        self._created = (min(self._created[0], latest), self._created[1])
        self._tags = {name: tag.with_times_clamped(latest) for name, tag in self._tags.items()}

    def _raise_format_rules(self, event: FormatRulesRaised, _author: str, _moment: int) -> None:
        for name, number in event.rules.items():
            if number <= self._format_rules.get(name, 1):
                raise InvalidChangeError(
                    f"rules {number} of format {name!r} are not higher than "
                    f"{self._format_rules.get(name, 1)}, by which the table was changed",
                    kind="ILLEGAL_STATE",
                )
        self._format_rules = {**self._format_rules, **event.rules}

    def _drop_unreadable_statistics(self) -> None:
        """Remove statistics of snapshots that can no longer be read."""
        if isinstance(self._origin, PaimonOrigin):
            self._origin = self._origin.without_untagged_expired(self._tagged_snapshot_ids())
        if not self._statistics and not self._puffin:
            return
        self._copy_shared_maps()
        held = self._tagged_snapshot_ids() | {
            each.base_snapshot_id for each in self.branches.values()
        }
        for each in {*self._statistics, *self._puffin}:
            if each < self._earliest_snapshot_id and each not in held:
                self._statistics.pop(each, None)
                self._puffin.pop(each, None)

    def _freeze_schema(self) -> Schema:
        return self._schema.freeze(schema_id=self._schema_id, time_millis=self._schema_millis)

    def _current_schema(self) -> Schema:
        if not self.version:
            # Every transaction that changes the schema gives it a new id, but only when it ends.
            return self._freeze_schema()
        found = self._frozen_schema
        if found is None or found.id != self._schema_id:
            found = self._frozen_schema = self._freeze_schema()
        return found

    def freeze(self) -> TableState:
        """Return the state after all commits so far."""
        table_id, path, is_external = self._identity
        created_at, created_by = self._created
        updated_at, updated_by = self._updated
        self._owns = False
        origin, schema = self.origin, self._current_schema()
        tags: Mapping[str, Tag] = self._tags
        match origin:
            case NativeOrigin() | DeltaOrigin():
                snapshot, totals = self._snapshots.snapshot(), self._snapshots.totals()
            case PaimonOrigin():
                snapshot, totals = origin.current, origin.totals
            case IcebergOrigin():
                current = origin.current
                snapshot = None if current is None else iceberg_snapshot(current, schema.id)
                totals, tags = iceberg_totals(current), origin.tags
            case _:
                assert_never(origin)
        return TableState(
            version=self.version,
            time_millis=self.time_millis,
            effective_millis=self.effective_millis,
            table_id=table_id,
            path=path,
            is_external=is_external,
            schema=schema,
            specs=self._layout.specs,
            default_spec_id=self._layout.default_spec_id,
            last_partition_id=self._layout.last_partition_id,
            sort_orders=self._layout.sort_orders,
            default_order_id=self._layout.default_order_id,
            snapshot=snapshot,
            earliest_snapshot_id=self._earliest_snapshot_id,
            totals=totals,
            tags=tags,
            partition_statistics=self._statistics,
            statistics=self._puffin,
            named_schema_ids=self._named_schema_ids,
            created_at=created_at,
            created_by=created_by,
            updated_at=updated_at,
            updated_by=updated_by,
            dropped=self._dropped,
            corrections=self._corrections,
            format_rules=self._format_rules,
            origin=origin,
            owner=self._owner,
            keeps_outside=bool(self.keeps_outside),
            branches=self._branches.branches,
            last_branch_number=self._branches.last_number,
        )


def _iceberg_table_error(event: TableEvent) -> InvalidChangeError:
    return InvalidChangeError(
        f"{type(event).__name__} is not valid in a table that was imported from Iceberg",
        kind="ILLEGAL_STATE",
    )


def _not_created_error() -> InvalidChangeError:
    return InvalidChangeError("a table begins with its creation, and has none yet")


def _table_dropped_error() -> TableDroppedError:
    return TableDroppedError("the table was dropped; nothing can follow in its stream")
