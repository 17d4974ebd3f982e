"""What every change and every fact of a table says to people: a sentence each.

Apart from `operations`, as the fold is: whoever reads a log needs the sentences, and nothing of
what decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from msgspec import UNSET, UnsetType

from ledger.events import schema_changes as asked
from ledger.events import schema_events as facts
from ledger.events.born import iceberg as born
from ledger.events.born.delta import DeltaFollowed
from ledger.events.born.paimon import PaimonBranchUpdated
from ledger.events.clock_events import ClockCorrected
from ledger.events.rules_events import FormatRulesRaised
from ledger.events.snapshot_events import (
    BranchCommitted,
    PartitionStatisticsSet,
    RolledBack,
    SnapshotCommitted,
    SnapshotFacts,
    SnapshotsExpired,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.events.spec_changes import ReplaceSortOrder, UpdatePartitionSpec
from ledger.events.spec_events import PartitionSpecUpdated, SortOrderReplaced
from ledger.events.table_events import TableCreated, TableDropped, TableName, TablePromoted
from ledger.evolution.table.born.iceberg import author_of
from ledger.model.messages.excerpt import moment, size
from ledger.model.path_text import shown_path
from ledger.model.types.text import format_type
from ledger.model.types.wire import TypeJson, type_from_wire

Sentence = Callable[[Any], str]


def in_words(change: object) -> str:
    """Return what a change or a fact says to people; its class's name where there is no sentence.

    Example:
        >>> from ledger.events.schema_changes import RenameColumn
        >>> in_words(RenameColumn(("addr",), "address"))
        'renamed column addr to address'
    """
    kind = type(change)
    say = SENTENCES.get(kind) or _of_table_changes().get(kind)
    return kind.__name__ if say is None else say(change)


@cache
def _of_table_changes() -> Mapping[type, Sentence]:
    """Return the sentences of what only writers ask of snapshots and tags."""
    from ledger.evolution.table import changes as its

    return {
        its.CreateTag: SENTENCES[TagCreated],
        its.ReplaceTag: SENTENCES[TagReplaced],
        its.DeleteTag: SENTENCES[TagDeleted],
        its.ExpireSnapshots: SENTENCES[SnapshotsExpired],
        its.SetPartitionStatistics: SENTENCES[PartitionStatisticsSet],
        its.SetStatistics: SENTENCES[born.StatisticsSet],
    }


def _text(wire: TypeJson) -> str:
    """Return a type's SQL text, which leaves ids out: two writers give out different ones."""
    return format_type(type_from_wire(wire))


def _path(change: Any) -> str:
    return shown_path(tuple(change.field_names))


def _id(change: Any) -> str:
    field_id = getattr(change, "field_id", None)
    return "" if field_id is None else f" (id {field_id})"


def _column(change: Any) -> str:
    return f"column {_path(change)}{_id(change)}"


def _column_commented(change: asked.UpdateColumnComment) -> str:
    said = "removed the comment of" if change.new_comment is None else "commented"
    return f"{said} {_column(change)}"


def _defaulted(change: asked.UpdateColumnDefaultValue) -> str:
    if change.new_default_value is None:
        return f"removed the default of {_column(change)}"
    return f"set the default of {_column(change)} to {change.new_default_value}"


def _undropped(change: asked.UndropColumn | facts.ColumnUndropped) -> str:
    text = f" {_text(change.data_type)}" if isinstance(change, facts.ColumnUndropped) else ""
    path = f" {_path(change)}" if change.field_names else ""
    return f"brought back column{path}{text}{_id(change)}"


def _moved(change: asked.UpdateColumnPosition) -> str:
    path = shown_path(change.field_names or (change.move.field_name,))
    place = [change.move.type.lower(), change.move.reference_field_name or ""]
    return f"moved column {path} {' '.join(place).strip()}{_id(change)}"


def _commented(change: asked.UpdateComment) -> str:
    return f"{'removed' if change.comment is None else 'changed'} the table's comment"


def _keys(fact: facts.UpdateKeys) -> str:
    keys = f"partition keys to {list(fact.partition_keys)}"
    return f"set the {keys}, the primary keys to {list(fact.primary_keys)}"


def _spec(fact: UpdatePartitionSpec) -> str:
    if not isinstance(fact, PartitionSpecUpdated):
        # What a plan wants has no spec yet.
        return f"change the partition spec: {len(fact.updates)} of its fields"
    fields = ", ".join(f"{each.name}={each.transform}" for each in fact.fields)
    said = "files are partitioned by" if fact.set_default else "added"
    return f"{said} partition spec {fact.spec_id}: {fields or 'unpartitioned'}"


def _order(fact: ReplaceSortOrder) -> str:
    fields = ", ".join(
        f"{shown_path(each.source)} {each.direction}"
        if each.transform == "identity"
        else f"{each.transform} of {shown_path(each.source)} {each.direction}"
        for each in fact.columns
    )
    order = f" order {fact.order_id}" if isinstance(fact, SortOrderReplaced) else ""
    return f"files are sorted by{order}: {fields or 'unsorted'}"


def _difference(fact: SnapshotFacts) -> str:
    rows, files = fact.delta_record_count, fact.delta_file_count
    changed = f"{rows:+,} rows, {files:+,} {'file' if abs(files) == 1 else 'files'}"
    sign = "-" if fact.delta_file_size_in_bytes < 0 else "+"
    return f"{changed}, {sign}{size(abs(fact.delta_file_size_in_bytes))}"


def _snapshot(fact: SnapshotCommitted) -> str:
    done: str = fact.commit_kind
    if not isinstance(fact.fast_forward_to, UnsetType):
        head = fact.fast_forward_to
        done = f"fast-forwarded to branch {head.branch_name} (snapshot {head.snapshot_id})"
    return f"snapshot {fact.snapshot_id}: {done}, {_difference(fact)}"


def _on_branch(fact: BranchCommitted) -> str:
    done: str = fact.commit_kind
    if fact.target_snapshot_id is not UNSET:
        done = f"rolled back to snapshot {fact.target_snapshot_id}"
    return f"branch {fact.branch_name}: snapshot {fact.snapshot_id}: {done}, {_difference(fact)}"


def _rolled_back(fact: RolledBack) -> str:
    tag = "" if fact.target_tag_name is UNSET else f" (tag {fact.target_tag_name})"
    return (
        f"snapshot {fact.snapshot_id}: rolled back to snapshot {fact.target_snapshot_id}{tag}, "
        f"{_difference(fact)}"
    )


def _name(name: TableName) -> str:
    return f"{name.database_name}.{name.table_name}"


def _created(fact: TableCreated) -> str:
    said = f"created table {_name(fact.identifier)} with {len(fact.schema.fields)} columns"
    if fact.born is not UNSET:
        said += f", from Iceberg's {fact.born.source}"
    if fact.born_in_paimon is not UNSET:
        said += f", from Paimon's {fact.born_in_paimon.source}"
    if fact.born_in_delta is not UNSET:
        said += f", from Delta's {fact.born_in_delta.source}"
    return said


def _promoted(fact: TablePromoted) -> str:
    swapped = f"; {fact.catalog} leads here" if fact.catalog is not UNSET else ""
    return f"promoted: the ledger owns the table, which followed {fact.source}{swapped}"


def _rules(fact: FormatRulesRaised) -> str:
    named = ", ".join(f"{name} {number}" for name, number in sorted(fact.rules.items()))
    return f"the rules of its formats are at least {named} from now on"


def _born_snapshot(fact: born.SnapshotAdded) -> str:
    snapshot = fact.snapshot
    summary = {} if snapshot.summary is UNSET else snapshot.summary
    counts = [
        f"{sign}{int(summary[key]):,} {what}"
        for sign, key, what in (
            ("+", "added-records", "rows"),
            ("-", "deleted-records", "rows"),
            ("+", "added-data-files", "files"),
            ("-", "deleted-data-files", "files"),
        )
        if summary.get(key, "").isdecimal()
    ]
    author = author_of(summary)
    told = ", ".join([summary.get("operation", "unknown operation"), *counts])
    by = f", by {author}" if author else ""
    return f"snapshot {snapshot.snapshot_id} of {moment(snapshot.timestamp_millis)}: {told}{by}"


def _many(noun: str, ids: tuple[int, ...]) -> str:
    plural = "s" if len(ids) > 1 else ""
    return f"{noun}{plural} {', '.join(map(str, ids))}" if ids else ""


def _gone(*parts: str) -> str:
    return "removed " + " and ".join(filter(None, parts))


def _logged(what: str, fact: born.SnapshotLogUpdated | born.MetadataLogUpdated) -> str:
    gone = f", the oldest {fact.dropped} gone" if fact.dropped else ""
    return f"{what}: {len(fact.added)} more{gone}"


def _paimon_branch(fact: PaimonBranchUpdated) -> str:
    added = 0 if isinstance(fact.added, UnsetType) else len(fact.added)
    went = len(fact.removed)
    return f"updated branch {fact.branch_name}: {added} of its files came, {went} went"


def _table_facts(fact: born.TableFactsSet) -> str:
    values = [(name, getattr(fact, name)) for name in fact.__struct_fields__]
    told = [f"{name.replace('_', ' ')} {value}" for name, value in values if value is not UNSET]
    return f"set {', '.join(told) or 'nothing'}"


def _ref(fact: born.SnapshotRefSet) -> str:
    return f"{fact.ref.ref_type} {fact.ref_name} points to snapshot {fact.ref.snapshot_id}"


_ROWS: tuple[tuple[tuple[type, ...], Sentence], ...] = (
    # Columns.
    (
        (asked.AddColumn, facts.ColumnAdded),
        lambda it: f"added column {_path(it)} {_text(it.data_type)}{_id(it)}",
    ),
    (
        (asked.RenameColumn, facts.ColumnRenamed),
        lambda it: f"renamed column {_path(it)} to {it.new_name}{_id(it)}",
    ),
    ((asked.DropColumn, facts.ColumnDropped), lambda it: f"dropped {_column(it)}"),
    ((asked.UndropColumn, facts.ColumnUndropped), _undropped),
    (
        (asked.UpdateColumnType, facts.ColumnTypeUpdated),
        lambda it: f"changed {_column(it)} to {_text(it.new_data_type)}",
    ),
    (
        (asked.UpdateColumnNullability, facts.ColumnNullabilityUpdated),
        lambda it: f"{'allowed' if it.new_nullability else 'forbade'} NULL in {_column(it)}",
    ),
    ((asked.UpdateColumnComment, facts.ColumnCommentUpdated), _column_commented),
    ((asked.UpdateColumnDefaultValue, facts.ColumnDefaultValueUpdated), _defaulted),
    ((asked.UpdateColumnPosition, facts.ColumnMoved), _moved),
    (
        (asked.SetIdentifierFields, facts.IdentifierFieldsSet),
        lambda it: f"set the identifier fields to {[shown_path(each) for each in it.field_names]}",
    ),
    # Options, comment and keys.
    ((asked.SetOption,), lambda it: f"set option {it.key} to {it.value}"),
    ((asked.RemoveOption,), lambda it: f"removed option {it.key}"),
    ((asked.UpdateComment,), _commented),
    ((asked.DropPrimaryKey,), lambda _: "dropped the primary key"),
    ((facts.UpdateKeys,), _keys),
    # Layout.
    ((UpdatePartitionSpec, PartitionSpecUpdated), _spec),
    ((ReplaceSortOrder, SortOrderReplaced), _order),
    # Snapshots, branches and tags.
    ((SnapshotCommitted,), _snapshot),
    ((BranchCommitted,), _on_branch),
    ((RolledBack,), _rolled_back),
    ((born.SnapshotRefSet,), _ref),
    ((born.SnapshotRefRemoved,), lambda it: f"removed the branch or tag {it.ref_name}"),
    ((TagCreated,), lambda it: f"tagged snapshot {it.snapshot_id} as {it.tag_name}"),
    ((TagReplaced,), lambda it: f"moved tag {it.tag_name} to snapshot {it.snapshot_id}"),
    ((TagDeleted,), lambda it: f"deleted tag {it.tag_name}"),
    (
        (SnapshotsExpired,),
        lambda it: f"expired the snapshots before {it.earliest_snapshot_id}",
    ),
    (
        (PartitionStatisticsSet,),
        lambda it: f"published partition statistics of snapshot {it.snapshot_id}",
    ),
    (
        (born.StatisticsSet,),
        lambda it: f"published statistics of snapshot {it.statistics.snapshot_id}",
    ),
    # The table as a whole.
    ((TableCreated,), _created),
    ((TableDropped,), lambda it: f"dropped table {_name(it.identifier)}"),
    ((TablePromoted,), _promoted),
    ((FormatRulesRaised,), _rules),
    (
        (ClockCorrected,),
        lambda it: (
            f"corrected the clock: the commits from version {it.first_version} on took effect by "
            f"{moment(it.true_time_millis)}"
        ),
    ),
    # What others did to a table that the ledger follows.
    ((born.SnapshotAdded,), _born_snapshot),
    ((born.SnapshotsRemoved,), lambda it: _gone(_many("snapshot", it.snapshot_ids))),
    (
        (born.SchemaReplaced,),
        lambda it: f"replaced the columns by {', '.join(each.name for each in it.fields)}",
    ),
    ((born.SchemaNamed,), lambda it: f"the columns are schema {it.schema_id}"),
    (
        (born.SchemaAdded,),
        lambda it: f"added schema {it.schema.schema_id} beside the current one",
    ),
    ((born.CurrentSchemaSet,), lambda it: f"schema {it.schema_id} is the current one"),
    ((born.SchemasRemoved,), lambda it: _gone(_many("schema", it.schema_ids))),
    (
        (born.LayoutsRemoved,),
        lambda it: _gone(_many("partition spec", it.spec_ids), _many("sort order", it.order_ids)),
    ),
    (
        (born.StatisticsRemoved,),
        lambda it: _gone(
            _many("the statistics of snapshot", it.snapshot_ids),
            _many("the partition statistics of snapshot", it.of_partitions),
        ),
    ),
    (
        (born.EncryptionKeyAdded,),
        lambda it: f"added the encryption key {it.encryption_key.key_id}",
    ),
    ((born.EncryptionKeyRemoved,), lambda it: f"removed the encryption key {it.key_id}"),
    ((born.SnapshotLogUpdated,), partial(_logged, "the log of current snapshots")),
    ((born.MetadataLogUpdated,), partial(_logged, "the log of metadata files")),
    ((born.TableFactsSet,), _table_facts),
    ((born.SourceFollowed,), lambda it: f"followed the source up to {it.metadata_file}"),
    (
        (DeltaFollowed,),
        lambda it: f"followed the source up to its version {it.delta_version}",
    ),
    ((PaimonBranchUpdated,), _paimon_branch),
)

SENTENCES: Mapping[type, Sentence] = {kind: say for kinds, say in _ROWS for kind in kinds}
"""What makes the sentence of each kind of fact, and of each change of columns and layout."""
