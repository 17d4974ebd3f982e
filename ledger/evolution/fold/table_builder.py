"""TableBuilder: the fold of a table's stream. Strict, total, and without any I/O or clock.

It is mutable while commits go in and gives an immutable TableState at the end; how written events
fold never changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, MutableMapping
from copy import copy
from typing import Any, assert_never, cast

from msgspec import UNSET, UnsetType

from ledger.events import TableEvent
from ledger.events.born.delta import DeltaBirth, DeltaFollowed
from ledger.events.born.iceberg import (
    CurrentSchemaSet,
    EncryptionKeyAdded,
    EncryptionKeyRemoved,
    IcebergBirth,
    IcebergEvent,
    IcebergStatistics,
    LayoutsRemoved,
    MetadataLogUpdated,
    SchemaAdded,
    SchemaNamed,
    SchemaReplaced,
    SchemasRemoved,
    SnapshotAdded,
    SnapshotLogUpdated,
    SnapshotRefRemoved,
    SnapshotRefSet,
    SnapshotsRemoved,
    SourceFollowed,
    StatisticsRemoved,
    StatisticsSet,
    TableFactsSet,
)
from ledger.events.born.paimon import PaimonBirth, PaimonBranchUpdated
from ledger.events.clock_events import ClockCorrected
from ledger.events.commit import Commit, Transaction
from ledger.events.rules_events import FormatRulesRaised
from ledger.events.schema_changes import DropPrimaryKey, RemoveOption, SetOption, UpdateComment
from ledger.events.schema_events import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    ColumnTypeUpdated,
    ColumnUndropped,
    IdentifierFieldsSet,
    SchemaEvent,
    UpdateKeys,
)
from ledger.events.snapshot_events import (
    BranchCommitted,
    PartitionStatisticsSet,
    RolledBack,
    SnapshotCommitted,
    SnapshotsExpired,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.events.spec_events import PartitionSpecUpdated, SortOrderReplaced
from ledger.events.table_events import TableCreated, TableDropped, TablePromoted
from ledger.evolution.fold.clock import correction_of, refuse_misplaced, refuse_untimely
from ledger.evolution.fold.outside import keeps_outside, kept_outside
from ledger.evolution.fold.schema_builder import SchemaBuilder, SchemaRule, schema_rule
from ledger.evolution.fold.schema_record import first_schema
from ledger.evolution.layout.fold import LayoutTrail, identity_spec, order_of, spec_of
from ledger.evolution.state import TableState
from ledger.evolution.table.born.delta import DeltaTable
from ledger.evolution.table.born.iceberg import BornTrail, born_snapshot, born_totals
from ledger.evolution.table.born.paimon import PaimonTable
from ledger.evolution.table.branch_fold import BranchTrail
from ledger.evolution.table.snapshot_fold import SnapshotTrail, snapshot_of
from ledger.model.errors import InvalidChangeError, TableDroppedError
from ledger.model.instant import ClockCorrection
from ledger.model.partition import SomeSpecs, SortOrder
from ledger.model.schema import Schema
from ledger.model.snapshot import BRANCH_IDS, Branch, StatisticsFile, Tag, Totals
from ledger.model.types.wire import field_from_wire

_Rule = Callable[["TableBuilder", Any, str, int], None]
_RULES: dict[type, _Rule] = {}
"""Which rule folds a kind of event: a dict look-up each, where matching tests kind by kind."""
_SCHEMA_RULES: dict[type, SchemaRule] = {}
"""The same of the kinds that change the schema and nothing else: most of a long log."""


class TableBuilder:
    """Folds commits into a table's state; begins at a state, or before version 0."""

    __slots__ = (
        "_born",
        "_branches",
        "_changes_schema",
        "_corrections",
        "_created",
        "_delta",
        "_dropped",
        "_earliest_snapshot_id",
        "_format_rules",
        "_frozen_schema",
        "_identity",
        "_is_closed",
        "_layout",
        "_named_schema_ids",
        "_owns",
        "_paimon",
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
            self._begin()
        else:
            self._resume(state)

    def _begin(self) -> None:
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
        self._statistics: dict[int, StatisticsFile] = {}
        self._puffin: dict[int, IcebergStatistics] = {}
        self._earliest_snapshot_id = 1
        self._named_schema_ids: tuple[int, ...] = ()
        self._snapshots = SnapshotTrail(None, Totals())
        self._schema_id = 0
        self._schema_millis = 0
        self._frozen_schema: Schema | None = None
        self._branches = BranchTrail({}, 0)
        self._born: BornTrail | None = None
        self._paimon: PaimonTable | None = None
        self._delta: DeltaTable | None = None

    def _resume(self, state: TableState) -> None:
        self.version = state.version
        self.time_millis = state.time_millis
        self.effective_millis = state.effective_millis
        self.keeps_outside = state.keeps_outside
        self._corrections = state.corrections
        self._format_rules = state.format_rules
        self._dropped = self._is_closed = state.dropped
        self._owns = False
        self._tags = cast("MutableMapping[str, Tag]", state.tags)
        self._statistics = cast("dict[int, StatisticsFile]", state.partition_statistics)
        self._puffin = cast("dict[int, IcebergStatistics]", state.statistics)
        self._earliest_snapshot_id = state.earliest_snapshot_id
        self._branches = BranchTrail(state.branches, state.last_branch_number)
        self._snapshots = (
            SnapshotTrail(state.snapshot, state.totals)
            if state.born is None
            else SnapshotTrail(None, Totals())
        )
        self._schema = SchemaBuilder(state.schema)
        self._schema_id = state.schema.id
        self._schema_millis = state.schema.time_millis
        self._frozen_schema = state.schema
        self._layout = LayoutTrail.of(state)
        self._named_schema_ids = state.named_schema_ids
        self._identity = (state.table_id, state.path, state.is_external)
        self._created = (state.created_at, state.created_by)
        self._updated = (state.updated_at, state.updated_by)
        self._born = None if state.born is None else BornTrail(state.born)
        self._paimon = state.paimon
        self._delta = state.delta

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
        """The current schema, as a state has it."""
        return self._schema_now()

    @property
    def lists_elsewhere(self) -> bool:
        """Whether its snapshots' files stand in the manifests of others alone."""
        return self._paimon is not None and not self._paimon.is_promoted

    @property
    def paimon(self) -> PaimonTable | None:
        """What it has so far that was born in Paimon; None for others."""
        return self._paimon

    @property
    def last_snapshot_id(self) -> int:
        """The newest snapshot id so far; 0 before the first, and where others count."""
        if self._paimon is not None:
            current = self._paimon.current
            return current.id if current is not None and self._paimon.is_promoted else 0
        return self._snapshots.last_id if self._born is None else self._born.last_given_id

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
            refuse_misplaced(version, time_millis, self.version, self.time_millis)
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
            refuse_untimely(transaction, moment, self.effective_millis, self.time_millis)
        if transaction.outside is not UNSET:
            author = kept_outside(transaction)
        self.keeps_outside = keeps_outside(transaction, before=self.keeps_outside)
        self._changes_schema = False
        for event in transaction.events:
            kind = type(event)
            if self._is_closed and (self._dropped or kind is not TableCreated):
                raise _sealed() if self._dropped else _uncreated()
            changes = _SCHEMA_RULES.get(kind)
            if changes is not None:
                changes(self._schema, event)
                self._changes_schema = True
            else:
                (_RULES.get(kind) or self._rule_for(event))(self, event, author, moment)
        if self._changes_schema and self.version:
            self._schema_millis = moment
            if self._born is None and self._paimon is None:
                self._schema_id += 1
            else:
                self._number_schema_elsewhere()
        if self._is_closed and not self._dropped:
            raise _uncreated()
        self.effective_millis = moment
        self._updated = (moment, author)

    def _number_schema_elsewhere(self) -> None:
        """Give the schema that a transaction leaves its id, in a table that was born elsewhere."""
        paimon = self._paimon
        if paimon is not None and not paimon.is_promoted:
            # The event that names the columns has given it.
            self._frozen_schema = None
        elif self._born is None:
            self._schema_id += 1
        else:
            # Its ids are the source's, which has none for a change of options alone.
            self._schema_id, self._frozen_schema = self._born.schema_id, None
        if paimon is not None and paimon.is_promoted:
            self._paimon = paimon.with_schema(self._schema_now())

    @classmethod
    def _rule_for(cls, event: TableEvent) -> _Rule:
        rule = _RULES[type(event)] = cls._matching_rule(event)
        return rule

    @classmethod
    def _matching_rule(  # noqa: C901, PLR0911, PLR0912 - one case a kind
        cls, event: TableEvent
    ) -> _Rule:
        match event:
            case SnapshotCommitted() | RolledBack():
                return cls._fold_snapshot
            case BranchCommitted():
                return cls._fold_branch_snapshot
            case TagCreated() | TagReplaced() | TagDeleted():
                return cls._tag
            case SnapshotsExpired():
                return cls._expire
            case PartitionStatisticsSet():
                return cls._set_statistics
            case ClockCorrected():
                return cls._correct_clock
            case FormatRulesRaised():
                return cls._raise_rules
            case TableCreated():
                return cls._create
            case TableDropped() | TablePromoted():
                return cls._change_owner
            case (
                ColumnAdded()
                | SetOption()
                | ColumnRenamed()
                | ColumnTypeUpdated()
                | ColumnDropped()
                | ColumnCommentUpdated()
                | ColumnMoved()
                | ColumnNullabilityUpdated()
                | ColumnDefaultValueUpdated()
                | RemoveOption()
                | UpdateComment()
                | DropPrimaryKey()
                | IdentifierFieldsSet()
            ):
                return cls._fold_schema
            case ColumnUndropped():
                return cls._undrop
            case PartitionSpecUpdated() | SortOrderReplaced():
                return cls._fold_layout
            case UpdateKeys():
                return cls._fold_keys
            case SchemaReplaced() | SchemaNamed() | CurrentSchemaSet():
                return cls._fold_born_schema
            case (
                SnapshotAdded()
                | SnapshotsRemoved()
                | SchemaAdded()
                | SchemasRemoved()
                | LayoutsRemoved()
                | StatisticsSet()
                | StatisticsRemoved()
                | EncryptionKeyAdded()
                | EncryptionKeyRemoved()
                | SnapshotLogUpdated()
                | MetadataLogUpdated()
                | TableFactsSet()
                | SourceFollowed()
            ):
                return cls._fold_born
            case SnapshotRefSet() | SnapshotRefRemoved():
                return cls._fold_ref
            case PaimonBranchUpdated():
                return cls._update_branch
            case DeltaFollowed():
                return cls._follow_delta
            case _:
                assert_never(event)

    def _fold_schema(self, event: SchemaEvent, _author: str, _moment: int) -> None:
        rule = _SCHEMA_RULES[type(event)] = schema_rule(event)
        rule(self._schema, event)
        self._changes_schema = True

    def _undrop(self, event: ColumnUndropped, _author: str, _moment: int) -> None:
        self._schema.undrop(event)
        self._changes_schema = True

    def _fold_keys(self, event: UpdateKeys, _author: str, _moment: int) -> None:
        self._schema.apply(event)
        self._changes_schema = True
        # Only before the first snapshot, so no file has been laid out by the old spec.
        self._layout = LayoutTrail((identity_spec(self._freeze_schema()),))

    def _fold_snapshot(
        self, event: SnapshotCommitted | RolledBack, _author: str, moment: int
    ) -> None:
        if event.summary is not UNSET and self._born is None:
            raise InvalidChangeError(
                f"snapshot {event.snapshot_id} has Iceberg's summary in a table that was not born "
                "there",
                kind="ILLEGAL_STATE",
            )
        if self._born is not None:
            self._refuse_followed(event, self._born)
            self._born.commit(event, self._born.schema_id, self.version, moment)
            self._name_schemas(event.named_schema_ids)
            return
        if self._paimon is not None:
            self._fold_paimon_snapshot(event, self._paimon, moment)
            return
        # A snapshot after a schema change of its own transaction has the new schema.
        self._snapshots.apply(event, self._schema_id + self._changes_schema, moment)
        if event.named_schema_ids:
            self._name_schemas(event.named_schema_ids)
        if isinstance(event, SnapshotCommitted) and event.fast_forward_to is not UNSET:
            self._refuse_branches(event)
            # The branch lets go of main's newest snapshot but this one, which cannot have expired,
            # so that no statistics go with it.
            self._branches.reached(event, self.version, self._snapshots.totals())

    def _fold_paimon_snapshot(
        self, event: SnapshotCommitted | RolledBack, paimon: PaimonTable, moment: int
    ) -> None:
        if not paimon.is_promoted:
            self._paimon = paimon.committed(snapshot_of(event, moment), self.version)
            return
        trail = paimon.going_on()
        trail.apply(event, self._schema_id + self._changes_schema, moment)
        self._paimon = paimon.owned(trail, self.version)
        self._name_schemas(event.named_schema_ids)

    def _fold_branch_snapshot(self, event: BranchCommitted, _author: str, moment: int) -> None:
        self._refuse_branches(event)
        self._branches.commit(event, self._schema_id + self._changes_schema, moment)
        self._name_schemas(event.named_schema_ids)

    def _refuse_branches(self, event: TableEvent) -> None:
        """Refuse a branch's event in a table that was born elsewhere.

        Raises:
            InvalidChangeError: It is.
        """
        if self._born is not None or self._paimon is not None or self._delta is not None:
            raise InvalidChangeError(
                f"{type(event).__name__} stands in a table that was born elsewhere",
                kind="ILLEGAL_STATE",
            )

    def _name_schemas(self, schema_ids: tuple[int, ...]) -> None:
        for each in schema_ids:
            # They are in order, and every snapshot asks.
            named = self._named_schema_ids
            place = bisect_left(named, each)
            if named[place : place + 1] != (each,):
                self._named_schema_ids = (*named[:place], each, *named[place:])

    def _fold_layout(
        self, event: PartitionSpecUpdated | SortOrderReplaced, _author: str, _moment: int
    ) -> None:
        self._layout.apply(event)

    def _change_owner(
        self, event: TableDropped | TablePromoted, _author: str, _moment: int
    ) -> None:
        if isinstance(event, TablePromoted):
            self._promote(event)
        else:
            self._dropped = self._is_closed = True

    def _create(self, event: TableCreated, author: str, moment: int) -> None:
        if self.version:
            raise InvalidChangeError("a table is created by version 0 only", kind="ILLEGAL_STATE")
        schema = first_schema(event)
        self._schema = SchemaBuilder(schema)
        self._schema_millis = moment
        fields, order = event.partition_spec, event.sort_order
        self._layout = LayoutTrail(
            (identity_spec(schema) if isinstance(fields, UnsetType) else spec_of(0, fields),),
            (SortOrder() if isinstance(order, UnsetType) else order_of(1, order),),
        )
        self._identity = (event.table_id, event.path, event.is_external)
        self._created = (moment, author)
        self._is_closed = False
        self._begin_origin(event)

    def _begin_origin(self, event: TableCreated) -> None:
        origin = event.origin
        if isinstance(origin, UnsetType):
            return
        match origin:
            case PaimonBirth():
                self._schema_id = origin.schema_id
                self._paimon = PaimonTable.of_birth(origin, self._freeze_schema())
            case DeltaBirth():
                self._delta = DeltaTable.of_birth(origin)
            case IcebergBirth():
                record = event.schema
                self._born = BornTrail.of_birth(origin, record.fields, record.identifier_field_ids)
                self._schema_id = origin.schema_id
            case _:
                assert_never(origin)

    def _trail(self, event: IcebergEvent) -> BornTrail:
        if self._born is None:
            raise InvalidChangeError(
                f"{type(event).__name__} stands in a table that was not born in Iceberg",
                kind="ILLEGAL_STATE",
            )
        return self._born

    def _refuse_born(self, event: TableEvent) -> None:
        if self._born is not None:
            raise InvalidChangeError(
                f"{type(event).__name__} stands in a table that was born in Iceberg",
                kind="ILLEGAL_STATE",
            )

    def _refuse_followed(self, event: TableEvent, born: BornTrail) -> None:
        if not born.is_promoted:
            self._refuse_born(event)

    def _promote(self, event: TablePromoted) -> None:
        if self._born is not None:
            self._born.promote(event, self.version)
        elif self._delta is not None:
            self._delta = self._delta.promoted(self.version, self._schema_id)
        elif self._paimon is not None:
            self._paimon = self._paimon.promoted(self.version)
            self._earliest_snapshot_id = min(self._paimon.snapshots, default=1)
        else:
            raise InvalidChangeError(
                "TablePromoted stands in a table that follows nobody", kind="ILLEGAL_STATE"
            )

    def _fold_born_schema(
        self, event: SchemaReplaced | SchemaNamed | CurrentSchemaSet, _author: str, moment: int
    ) -> None:
        schema = self._schema
        self._changes_schema = True
        if self._delta is not None and isinstance(event, SchemaReplaced):
            schema.replace(tuple(map(field_from_wire, event.fields)), event.identifier_field_ids)
            return
        if self._paimon is not None:
            self._refuse_owned(event, self._paimon)
            self._fold_paimon_schema(event, self._paimon, moment)
            return
        trail = self._trail(event)
        if isinstance(event, SchemaNamed):
            fields = tuple(schema.columns.values())
            trail.name_schema(event, fields, schema.identifier_field_ids)
            return
        source = (
            trail.set_current_schema(event.schema_id)
            if isinstance(event, CurrentSchemaSet)
            else event
        )
        schema.replace(tuple(map(field_from_wire, source.fields)), source.identifier_field_ids)

    def _fold_paimon_schema(
        self,
        event: SchemaReplaced | SchemaNamed | CurrentSchemaSet,
        paimon: PaimonTable,
        moment: int,
    ) -> None:
        if isinstance(event, SchemaReplaced):
            fields = tuple(map(field_from_wire, event.fields))
            self._schema.replace(fields, event.identifier_field_ids)
            return
        self._schema_id = event.schema_id
        if isinstance(event, CurrentSchemaSet):
            self._schema = SchemaBuilder(paimon.schema(event.schema_id))
            return
        named = self._schema.freeze(schema_id=event.schema_id, time_millis=moment)
        self._paimon = paimon.with_schema(named)

    @staticmethod
    def _refuse_owned(event: TableEvent, paimon: PaimonTable) -> None:
        if paimon.is_promoted:
            raise InvalidChangeError(
                f"{type(event).__name__} is of a source, and the table follows {paimon.source} no "
                "more",
                kind="ILLEGAL_STATE",
            )

    def _fold_paimon(self, event: Any, paimon: PaimonTable) -> None:
        if isinstance(event, StatisticsSet) and paimon.is_promoted:
            self._set_puffin(event)
            return
        self._refuse_owned(event, paimon)
        if isinstance(event, SnapshotsRemoved):
            self._paimon = paimon.without(event.snapshot_ids, self._tagged())
        elif isinstance(event, SchemasRemoved):
            self._paimon = paimon.without_schemas(event.schema_ids, self._schema_id)
        elif isinstance(event, TableFactsSet) and event.last_column_id is not UNSET:
            self._schema.highest_field_id = event.last_column_id
            self._changes_schema = True
        else:
            raise InvalidChangeError(
                f"{type(event).__name__} stands in a table that was born in Paimon",
                kind="ILLEGAL_STATE",
            )

    def _update_branch(self, event: PaimonBranchUpdated, _author: str, _moment: int) -> None:
        if self._paimon is None:
            raise InvalidChangeError(
                "PaimonBranchUpdated stands in a table that was not born in Paimon",
                kind="ILLEGAL_STATE",
            )
        self._refuse_owned(event, self._paimon)
        self._paimon = self._paimon.with_branch(event)

    def _tagged(self) -> set[int]:
        return {each.snapshot_id for each in self._tags.values()}

    def _fold_ref(
        self, event: SnapshotRefSet | SnapshotRefRemoved, author: str, moment: int
    ) -> None:
        if self._born is not None or self._paimon is not None:
            self._fold_born(event, author, moment)
            return
        self._refuse_branches(event)
        if isinstance(event, SnapshotRefSet):
            self._branches.begin(event, self.version, self._snapshots.last_id)
        else:
            self._branches.end(event)
        self._drop_statistics()

    def _fold_born(self, event: Any, _author: str, moment: int) -> None:
        if self._paimon is not None:
            self._fold_paimon(event, self._paimon)
            return
        if self._born is None and isinstance(event, StatisticsSet):
            self._set_puffin(event)
            return
        self._trail(event).apply(event, self.version, moment)
        if isinstance(event, SnapshotsRemoved | StatisticsRemoved):
            gone = isinstance(event, SnapshotsRemoved)
            self._own()
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

    def _follow_delta(self, event: DeltaFollowed, _author: str, _moment: int) -> None:
        if self._delta is None:
            raise InvalidChangeError(
                "DeltaFollowed stands in a table that was not born in Delta", kind="ILLEGAL_STATE"
            )
        self._delta = self._delta.after(event)

    def _own(self) -> None:
        if not self._owns:
            # What was read of a record stays as it is: whoever looks decodes it.
            self._tags, self._statistics = copy(self._tags), dict(self._statistics)
            self._puffin = dict(self._puffin)
            self._owns = True

    def _tag(self, event: TagCreated | TagReplaced | TagDeleted, _author: str, moment: int) -> None:
        if self._born is not None:
            self._refuse_followed(event, self._born)
            self._born.tag(event, self.version, moment)
            return
        exists = event.tag_name in self._tags
        if exists == isinstance(event, TagCreated):
            raise InvalidChangeError(
                f"tag {event.tag_name!r} {'exists' if exists else 'does not exist'}",
                kind="ILLEGAL_STATE",
            )
        self._own()
        if isinstance(event, TagDeleted):
            del self._tags[event.tag_name]
            self._drop_statistics()
            return
        if self._paimon is not None:
            is_there = event.snapshot_id in self._paimon.every
        else:
            is_there = 1 <= event.snapshot_id <= self._snapshots.last_id
        if not is_there:
            raise InvalidChangeError(
                f"tag {event.tag_name!r} names snapshot {event.snapshot_id}; "
                f"the newest is {self._snapshots.last_id}"
            )
        retained = event.time_retained_millis
        kept_millis = None if retained is UNSET else retained
        self._tags[event.tag_name] = Tag(event.tag_name, event.snapshot_id, moment, kept_millis)
        self._drop_statistics()

    def _expire(self, event: SnapshotsExpired, _author: str, _moment: int) -> None:
        self._refuse_born(event)
        earliest = event.earliest_snapshot_id
        if self._paimon is not None:
            if self._paimon.is_promoted:
                self._refuse_gone(earliest)
            self._paimon = self._paimon.expired(earliest, self._tagged())
            self._earliest_snapshot_id = earliest
            return
        if earliest >= BRANCH_IDS:
            self._branches.expire(event)
            return
        self._refuse_gone(earliest)
        self._earliest_snapshot_id = earliest
        self._drop_statistics()

    def _refuse_gone(self, earliest: int) -> None:
        if not self._earliest_snapshot_id <= earliest <= self.last_snapshot_id:
            raise InvalidChangeError(
                f"snapshots before {earliest} cannot expire: those from "
                f"{self._earliest_snapshot_id} to {self.last_snapshot_id} are there, "
                "and the newest stays"
            )

    def _set_statistics(self, event: PartitionStatisticsSet, _author: str, _moment: int) -> None:
        # In Iceberg a snapshot may be added after its statistics, or have gone before them.
        if self._born is None:
            self._refuse_unknown(event.snapshot_id, event.statistics_path)
        file = StatisticsFile(event.statistics_path, event.file_size_in_bytes)
        self._own()
        self._statistics[event.snapshot_id] = file

    def _set_puffin(self, event: StatisticsSet) -> None:
        file = event.statistics
        self._refuse_unknown(file.snapshot_id, file.statistics_path)
        self._own()
        self._puffin[file.snapshot_id] = file

    def _refuse_unknown(self, snapshot_id: int, path: str) -> None:
        """Refuse statistics of a snapshot that main never had.

        Raises:
            InvalidChangeError: It never did.
        """
        if not 1 <= snapshot_id <= self.last_snapshot_id:
            raise InvalidChangeError(
                f"{path} is of snapshot {snapshot_id}; the newest is {self.last_snapshot_id}"
            )

    def _correct_clock(self, event: ClockCorrected, _author: str, moment: int) -> None:
        correction = correction_of(event, self.version, moment)
        latest = correction.true_time_millis
        self._corrections = (*self._corrections, correction)
        self._snapshots.correct(latest)
        self._branches.correct(latest)
        if self._born is not None:
            self._born.correct(latest)
        if self._paimon is not None:
            self._paimon = self._paimon.not_after(latest)
        self._schema_millis = min(self._schema_millis, latest)
        self._frozen_schema = None
        self._created = (min(self._created[0], latest), self._created[1])
        self._tags = {name: tag.not_after(latest) for name, tag in self._tags.items()}

    def _raise_rules(self, event: FormatRulesRaised, _author: str, _moment: int) -> None:
        for name, number in event.rules.items():
            if number <= self._format_rules.get(name, 1):
                raise InvalidChangeError(
                    f"rules {number} of format {name!r} are not higher than "
                    f"{self._format_rules.get(name, 1)}, by which the table was changed",
                    kind="ILLEGAL_STATE",
                )
        self._format_rules = {**self._format_rules, **event.rules}

    def _drop_statistics(self) -> None:
        """Let statistics go with snapshots that can no longer be read."""
        if self._paimon is not None:
            self._paimon = self._paimon.keeping(self._tagged())
        if not self._statistics and not self._puffin:
            return
        self._own()
        held = self._tagged() | {each.base_snapshot_id for each in self.branches.values()}
        for each in {*self._statistics, *self._puffin}:
            if each < self._earliest_snapshot_id and each not in held:
                self._statistics.pop(each, None)
                self._puffin.pop(each, None)

    def _freeze_schema(self) -> Schema:
        return self._schema.freeze(schema_id=self._schema_id, time_millis=self._schema_millis)

    def _schema_now(self) -> Schema:
        if not self.version:
            # Only after it does every transaction that changes the schema give it a new id.
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
        born = None if self._born is None else self._born.freeze()
        current = None if born is None else born.current
        schema = self._schema_now()
        snapshot, totals = self._snapshots.snapshot(), self._snapshots.totals()
        if self._paimon is not None:
            snapshot = self._paimon.current
            totals = self._paimon.totals
        if born is not None:
            snapshot = None if current is None else born_snapshot(current, schema.id)
            totals = born_totals(current)
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
            tags=self._tags if born is None else born.tags,
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
            born=born,
            paimon=self._paimon,
            delta=self._delta,
            keeps_outside=bool(self.keeps_outside),
            branches=self._branches.branches,
            last_branch_number=self._branches.last_number,
        )


def _uncreated() -> InvalidChangeError:
    return InvalidChangeError("a table begins with its creation, and it has none yet")


def _sealed() -> TableDroppedError:
    return TableDroppedError("the table was dropped; nothing can follow in its stream")
