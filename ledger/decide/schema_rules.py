"""Validation rules that every whole schema satisfies, by Paimon's checks.

One table of rows, in Paimon's order, so that the error is that of the first broken rule. Source:
Paimon's SchemaValidation.
"""

from __future__ import annotations

from itertools import filterfalse
from typing import Final

from ledger.decide.engine_rules import (
    BRANCHES,
    CHAIN_KEYS,
    KEYS,
    SORTED_INDEX_OPTIONS,
    check_aggregate_functions,
    check_chain_partition_keys,
    check_field_options,
    check_file_index,
    check_one_index_per_column,
    check_one_text_column,
    check_one_vector_column,
    check_partial_update,
    check_scan_mode,
    check_sortable_columns,
    check_vector_column,
)
from ledger.decide.errors import argument_error, runtime_error, state_error, unsupported_error
from ledger.decide.file_format_rules import (
    BLOB_KEYS,
    ICEBERG_STORAGE,
    VARIANT_KEYS,
    check_avro_level_timestamps,
    check_blob_options,
    check_blob_retractions,
    check_blob_roles,
    check_file_format_types,
    check_geospatial_columns,
    check_map_layout,
    check_nested_blobs,
    check_other_columns_exist,
    check_variant_shredding,
    check_vector_fields,
    iceberg_metadata_storage,
)
from ledger.decide.rule_rows import (
    BUCKET_KEYS,
    BUCKETED,
    DELETION_VECTORS,
    EVOLVES_DATA,
    IN_SEQUENCE,
    KEYED,
    NO_FIXED_BUCKETS,
    OVERRIDES,
    PARTITION_KEYS,
    PRIMARY_KEYS,
    SEQUENCE_FIELDS,
    UNBUCKETED,
    UNKEYED,
    UNUSUAL,
    ColumnNamesGetter,
    ForEachColumn,
    FunctionRule,
    OptionMinimum,
    ReadableOptions,
    RefuseColumnName,
    RefuseWhen,
    RulesWhen,
    SchemaCandidate,
    SchemaCondition,
    SchemaRule,
    changelog_producer_is,
    check_schema_rules,
    has_option_prefix,
    is_option_set,
    is_switch_on,
    listed_columns,
    lists_columns,
    merge_engine_is,
    named_column,
    negated,
    refuse_unknown_column,
    rule_option_keys,
    type_is_none_of,
    type_is_one_of,
)
from ledger.decide.table_options import FILE_FORMATS, INDEX_COLUMN_OPTIONS, TableOptions
from ledger.model.schema import Schema
from ledger.model.types import INT_MAX
from ledger.state.declared_formats import PAIMON_RULES, Rules

KEY_TYPE_ROOTS_REFUSED = frozenset(
    {"MAP", "ARRAY", "ROW", "MULTISET", "VECTOR", "VARIANT", "GEOMETRY", "GEOGRAPHY"}
)
SYSTEM_NAMES = frozenset({"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"})
KEY_NAME_PREFIX = "_KEY_"

_TIME_ROOTS = ("INT", "BIGINT", "TIMESTAMP", "TIMESTAMP_LTZ")


def validate_schema(schema: Schema, rules: Rules = PAIMON_RULES) -> None:
    """Reject a schema that its tables could not work with: by Paimon's rules, or any format's.

    Raises:
        InvalidChangeError: The first broken rule; `kind` is that of Paimon's error.
    """
    if not _NAMED.isdisjoint(schema.options):
        rows = ROWS if rules.paimon else ROWS_OF_ALL
    else:
        # Most tables set no option that any row is about.
        rows = _ALWAYS if rules.paimon else _ALWAYS_OF_ALL
    check_schema_rules(rows, SchemaCandidate(schema))


# ---- what several rows share


def _option_number(options: TableOptions, key: str) -> object:
    return options.number(key, 0)


def _reserved_names(names: tuple[str, ...]) -> tuple[str, ...]:
    # Hardly any table has such names; the candidates are checked one by one.
    is_clean = SYSTEM_NAMES.isdisjoint(names) and KEY_NAME_PREFIX not in "\n".join(names)
    return () if is_clean else names


def _blank_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filterfalse(str.strip, names))


def _check_retention(candidate: SchemaCandidate) -> None:
    defaults = (10, INT_MAX)
    for what in ("snapshot", "changelog"):
        least = candidate.options.number(f"{what}.num-retained.min", defaults[0])
        most = candidate.options.number(f"{what}.num-retained.max", defaults[1])
        if least < 1:
            raise argument_error(f"option {what}.num-retained.min={least} must be at least 1")
        if least > most:
            raise argument_error(f"option {what}.num-retained.min={least} exceeds the max, {most}")
        # A changelog is kept as long as a snapshot unless set otherwise.
        defaults = (least, most)


_RETENTION = rule_option_keys(
    *(f"{what}.num-retained.{end}" for what in ("snapshot", "changelog") for end in ("min", "max"))
)

_IGNORES_DELETE = (
    *("ignore-delete", "first-row.ignore-delete", "deduplicate.ignore-delete"),
    "partial-update.ignore-delete",
)
_IGNORING = SchemaCondition(lambda c: c.options.ignores_delete, rule_option_keys(*_IGNORES_DELETE))
_MERGES_ON_READ = is_switch_on("deletion-vectors.merge-on-read")
_PARTITIONED = SchemaCondition(lambda c: bool(c.schema.partition_keys))
_BUCKET_IS_ODD = SchemaCondition(
    lambda c: c.options.bucket < 1 and not (c.options.bucket == -2 and c.has_primary_key),  # noqa: PLR2004 - postponed
)
_POSTPONABLE = SchemaCondition(lambda c: c.options.bucket >= 1 or c.options.bucket == -2)  # noqa: PLR2004 - postponed
_VECTOR, _BTREE, _BITMAP, _MULTIVALUE, _FULL_TEXT = INDEX_COLUMN_OPTIONS


def _key_type_rule(what: str, names: ColumnNamesGetter) -> ForEachColumn:
    says = f"column {{name}} is {{root}}, which no {what} key can hold"
    return ForEachColumn(
        names, (RefuseColumnName(type_is_one_of(*KEY_TYPE_ROOTS_REFUSED), unsupported_error, says),)
    )


def _primary_index_rules(option: str) -> tuple[SchemaRule, ...]:
    """Return the rules of a table with a primary-key index."""
    return (
        RefuseWhen((UNKEYED,), argument_error, f"option {option} needs a primary key"),
        RefuseWhen(
            (negated(_POSTPONABLE),),
            argument_error,
            f"option {option} needs a fixed or postponed number of buckets",
        ),
        RefuseWhen(
            (_MERGES_ON_READ, DELETION_VECTORS),
            argument_error,
            f"option {option} needs deletion-vectors.merge-on-read=false",
        ),
        RefuseWhen(
            (OVERRIDES,), argument_error, f"option {option} does not go with pk-clustering-override"
        ),
    )


def _sorted_index_rule(option: str) -> RulesWhen:
    needs = f"option {option} needs deletion-vectors.enabled=true"
    return RulesWhen(
        lists_columns(option),
        (
            RefuseWhen((negated(DELETION_VECTORS),), argument_error, needs),
            *_primary_index_rules(option),
            ForEachColumn(listed_columns(option), (refuse_unknown_column(option),)),
        ),
    )


def _search_index_rules(option: str, *rows: SchemaRule) -> tuple[SchemaRule, ...]:
    needs = f"option {option} needs deletion-vectors.enabled=true"
    return (
        RefuseWhen(
            (negated(merge_engine_is("first-row")), negated(DELETION_VECTORS)),
            argument_error,
            needs,
        ),
        *_primary_index_rules(option),
        *rows,
    )


# ---- the table

_BUCKETS: tuple[SchemaRule, ...] = (
    ReadableOptions(_option_number, ("bucket",)),
    RefuseWhen(
        (is_option_set("bucket-key"), UNBUCKETED),
        argument_error,
        "option bucket-key needs a fixed number of buckets; set option bucket, too",
    ),
    RefuseWhen(
        (is_option_set("full-compaction.delta-commits"), UNBUCKETED, UNKEYED),
        runtime_error,
        "option full-compaction.delta-commits={c.options.full_compaction_commits} needs a fixed "
        "number of buckets",
    ),
    RulesWhen(
        BUCKETED,
        (
            RefuseWhen(
                (_BUCKET_IS_ODD,),
                runtime_error,
                "option bucket={c.options.bucket}: the number of buckets must be greater than 0",
            ),
            RefuseWhen(
                (UNKEYED, SchemaCondition(lambda c: not c.bucket_keys)),
                runtime_error,
                "option bucket={c.options.bucket} of a table without primary key needs bucket-key",
            ),
            ForEachColumn(
                BUCKET_KEYS,
                (
                    RefuseColumnName(
                        type_is_one_of("ARRAY", "MULTISET", "MAP", "ROW"),
                        runtime_error,
                        "option bucket-key names {name}, which is {root}; use a flat column",
                    ),
                ),
            ),
        ),
    ),
)

_SEQUENCE: tuple[SchemaRule, ...] = (
    ForEachColumn(
        SEQUENCE_FIELDS,
        (
            refuse_unknown_column("sequence.field"),
            RefuseColumnName(
                lambda c, name: f"fields.{name}.aggregate-function" in c.options.values,
                argument_error,
                "sequence field {name} cannot be aggregated; remove its function",
            ),
            RefuseColumnName(
                lambda c, name: c.sequence_fields.count(name) > 1,
                argument_error,
                "option sequence.field names {name} more than once",
            ),
        ),
    ),
    RefuseWhen(
        (IN_SEQUENCE, merge_engine_is("first-row")),
        argument_error,
        "option sequence.field does not go with merge-engine first-row",
    ),
    RefuseWhen(
        (IN_SEQUENCE, KEYED, SchemaCondition(lambda c: bool(c.non_key_partition_columns))),
        argument_error,
        "option sequence.field needs all partition keys in the primary key; missing "
        "{c.non_key_partition_columns}",
    ),
)

_CHANGELOG: tuple[SchemaRule, ...] = (
    RefuseWhen(
        (changelog_producer_is("input", "full-compaction", "lookup"), UNKEYED),
        unsupported_error,
        "option changelog-producer={c.options.changelog_producer} needs a primary key",
    ),
    RefuseWhen(
        (
            is_switch_on("streaming-read-overwrite"),
            changelog_producer_is("full-compaction", "lookup"),
        ),
        unsupported_error,
        "option streaming-read-overwrite would read changes twice under "
        "{c.options.changelog_producer}",
    ),
    ReadableOptions(_option_number, ("full-compaction.delta-commits",)),
    RefuseWhen(
        (is_option_set("full-compaction.delta-commits"), changelog_producer_is("lookup")),
        unsupported_error,
        "option full-compaction.delta-commits does not go with changelog-producer lookup",
    ),
)

_BLOBS_WITH_KEY: tuple[SchemaRule, ...] = (
    FunctionRule(check_blob_roles),
    RefuseWhen(
        (merge_engine_is("aggregation"),),
        argument_error,
        "BLOB columns do not go with merge-engine aggregation",
    ),
    RefuseWhen(
        (negated(changelog_producer_is("none")),),
        argument_error,
        "BLOB columns of a primary-key table need changelog-producer none",
    ),
    RefuseWhen(
        (is_option_set("data-file.external-paths"),),
        argument_error,
        "BLOB columns of a primary-key table do not go with external paths",
    ),
    RefuseWhen(
        (OVERRIDES,),
        argument_error,
        "BLOB columns of a primary-key table do not go with pk-clustering-override",
    ),
    RulesWhen(
        merge_engine_is("partial-update"),
        (RulesWhen(negated(_IGNORING), (FunctionRule(check_blob_retractions),)),),
    ),
)

_TIME_FIELD = "record-level.time-field"
_SNAPSHOT_ORDERING = "sequence.snapshot-ordering"

_ROWS_BY_TIME: tuple[SchemaRule, ...] = (
    RefuseWhen(
        (is_switch_on("streaming-read-overwrite"), UNKEYED),
        runtime_error,
        "option streaming-read-overwrite needs a primary key; "
        "use streaming-read-append-overwrite for append tables",
    ),
    ForEachColumn(
        named_column(_TIME_FIELD),
        (
            refuse_unknown_column(_TIME_FIELD),
            RefuseColumnName(
                type_is_none_of(*_TIME_ROOTS),
                argument_error,
                f"option {_TIME_FIELD}: {{name}} is {{root}}, not one of {', '.join(_TIME_ROOTS)}",
            ),
        ),
    ),
    RefuseWhen(
        (merge_engine_is("first-row"), negated(changelog_producer_is("none", "lookup"))),
        argument_error,
        "merge-engine first-row goes with none or lookup, not {c.options.changelog_producer}",
    ),
    ForEachColumn(named_column("rowkind.field"), (refuse_unknown_column("rowkind.field"),)),
    RefuseWhen(
        (DELETION_VECTORS, changelog_producer_is("full-compaction")),
        argument_error,
        "deletion vectors do not go with changelog-producer full-compaction",
    ),
    RefuseWhen(
        (DELETION_VECTORS, merge_engine_is("first-row"), negated(OVERRIDES)),
        argument_error,
        "deletion vectors do not go with merge-engine first-row",
    ),
    RulesWhen(
        is_switch_on(_SNAPSHOT_ORDERING),
        (
            RefuseWhen(
                (UNKEYED,), argument_error, f"option {_SNAPSHOT_ORDERING} needs a primary key"
            ),
            RefuseWhen(
                (IN_SEQUENCE,),
                argument_error,
                f"option {_SNAPSHOT_ORDERING} does not go with sequence.field",
            ),
            RefuseWhen(
                (negated(is_switch_on("write-only", "write.compaction-skip")),),
                argument_error,
                f"option {_SNAPSHOT_ORDERING} needs write-only=true",
            ),
        ),
    ),
)

_INDEXES: tuple[SchemaRule, ...] = (
    FunctionRule(check_one_index_per_column, rule_option_keys(*INDEX_COLUMN_OPTIONS)),
    *(_sorted_index_rule(each) for each in SORTED_INDEX_OPTIONS),
    FunctionRule(check_sortable_columns, rule_option_keys(*SORTED_INDEX_OPTIONS)),
    RulesWhen(
        lists_columns(_VECTOR),
        (
            FunctionRule(check_one_vector_column),
            *_search_index_rules(_VECTOR, FunctionRule(check_vector_column)),
        ),
    ),
    RulesWhen(
        lists_columns(_FULL_TEXT),
        (
            FunctionRule(check_one_text_column),
            *_search_index_rules(
                _FULL_TEXT,
                ForEachColumn(
                    listed_columns(_FULL_TEXT),
                    (
                        refuse_unknown_column(_FULL_TEXT),
                        RefuseColumnName(
                            type_is_none_of("CHAR", "VARCHAR"),
                            argument_error,
                            f"option {_FULL_TEXT}: {{name}} must be CHAR, VARCHAR or STRING",
                        ),
                    ),
                ),
            ),
        ),
    ),
)

_TRACKS, _CLUSTERS = is_switch_on("row-tracking.enabled"), is_switch_on("clustering.incremental")

_TRACKING: tuple[SchemaRule, ...] = (
    RefuseWhen(
        (_TRACKS, KEYED),
        argument_error,
        "option row-tracking.enabled does not go with a primary key",
    ),
    RefuseWhen((_TRACKS, BUCKETED), argument_error, "option row-tracking.enabled needs bucket=-1"),
    RefuseWhen(
        (EVOLVES_DATA, negated(_TRACKS)),
        argument_error,
        "option data-evolution.enabled needs row-tracking.enabled=true",
    ),
    RefuseWhen(
        (EVOLVES_DATA, _CLUSTERS),
        argument_error,
        "option data-evolution.enabled does not go with clustering.incremental",
    ),
    RulesWhen(
        SchemaCondition(lambda c: bool(c.blobs)),
        (
            RefuseWhen(
                (UNKEYED, negated(EVOLVES_DATA)),
                argument_error,
                "BLOB columns {c.blobs} need data-evolution.enabled=true",
            ),
            FunctionRule(lambda c: check_other_columns_exist(c, c.blobs)),
        ),
    ),
    RefuseWhen(
        (
            SchemaCondition(
                lambda c: c.options.values["vector.file.format"].lower() not in FILE_FORMATS,
                rule_option_keys("vector.file.format"),
            ),
        ),
        runtime_error,
        "option vector.file.format={c.options.values[vector.file.format]!r} is unknown",
    ),
    FunctionRule(
        lambda c: check_other_columns_exist(c, c.vectors), rule_option_keys("vector.file.format")
    ),
    RefuseWhen(
        (is_option_set("vector.file.format"), negated(EVOLVES_DATA)),
        argument_error,
        "option vector.file.format needs data-evolution.enabled=true",
    ),
)

_CLUSTERING: tuple[SchemaRule, ...] = (
    RefuseWhen(
        (_CLUSTERS, KEYED),
        argument_error,
        "option clustering.incremental does not go with a primary key",
    ),
    RefuseWhen(
        (
            _CLUSTERS,
            BUCKETED,
            SchemaCondition(lambda c: c.options.is_true("bucket-append-ordered", default=True)),
        ),
        argument_error,
        "option clustering.incremental with fixed buckets needs bucket-append-ordered=false",
    ),
    RefuseWhen(
        (_CLUSTERS, BUCKETED, DELETION_VECTORS),
        argument_error,
        "option clustering.incremental with fixed buckets does not go with deletion vectors",
    ),
)

_CHAIN = "chain-table.enabled"

_CHAIN_ROWS: tuple[SchemaRule, ...] = (
    RefuseWhen(
        (
            SchemaCondition(
                lambda c: c.options.values.get("type", "table").lower() not in {"", "table"}
            ),
        ),
        argument_error,
        f"option {_CHAIN} needs type=table",
    ),
    RefuseWhen(
        (SchemaCondition(lambda c: not c.has_primary_key or not c.schema.partition_keys),),
        argument_error,
        f"option {_CHAIN} needs a primary key and partition keys",
    ),
    RefuseWhen(
        (NO_FIXED_BUCKETS,), argument_error, f"option {_CHAIN} needs a fixed number of buckets"
    ),
    RefuseWhen((negated(IN_SEQUENCE),), argument_error, f"option {_CHAIN} needs sequence.field"),
    RefuseWhen(
        (negated(changelog_producer_is("none", "input")),),
        argument_error,
        f"option {_CHAIN} goes with changelog-producer none or input only",
    ),
    RefuseWhen(
        (DELETION_VECTORS, negated(merge_engine_is("deduplicate"))),
        argument_error,
        f"option {_CHAIN} with deletion vectors needs merge-engine deduplicate",
    ),
    *(
        RefuseWhen((negated(is_option_set(each)),), argument_error, f"option {_CHAIN} needs {each}")
        for each in ("partition.timestamp-pattern", "partition.timestamp-formatter")
    ),
    RefuseWhen(
        (
            is_option_set("partition.expiration-time"),
            SchemaCondition(
                lambda c: (
                    (c.options.text("partition.expiration-strategy") or "values-time")
                    != "values-time"
                )
            ),
        ),
        argument_error,
        f"option {_CHAIN} needs partition.expiration-strategy=values-time",
    ),
    FunctionRule(check_chain_partition_keys, rule_option_keys(CHAIN_KEYS)),
)

_OVERRIDE = "pk-clustering-override"

_OVERRIDE_ROWS: tuple[SchemaRule, ...] = (
    RefuseWhen(
        (
            SchemaCondition(
                lambda c: not c.options.text("clustering.columns", "sink.clustering.by-columns")
            ),
        ),
        argument_error,
        f"option {_OVERRIDE} needs clustering.columns",
    ),
    RefuseWhen(
        (negated(merge_engine_is("first-row")), negated(DELETION_VECTORS)),
        unsupported_error,
        f"option {_OVERRIDE} needs deletion-vectors.enabled=true",
    ),
    RefuseWhen(
        (is_option_set("record-level.expire-time"),),
        unsupported_error,
        f"option {_OVERRIDE} does not go with record-level.expire-time",
    ),
    RefuseWhen(
        (merge_engine_is("partial-update", "aggregation"),),
        unsupported_error,
        f"option {_OVERRIDE} does not go with merge-engine {{c.options.merge_engine}}",
    ),
    RefuseWhen(
        (IN_SEQUENCE,), unsupported_error, f"option {_OVERRIDE} does not go with sequence.field"
    ),
    RefuseWhen(
        (changelog_producer_is("full-compaction", "lookup"),),
        unsupported_error,
        f"option {_OVERRIDE} goes with changelog-producer none or input only",
    ),
)

_MANIFEST_SORT = is_switch_on("manifest-sort.enabled")
_SORT_FIELD = "manifest-sort.partition-field"

_BLANK_NAMES = RefuseWhen(
    (SchemaCondition(lambda c: bool(c.names_by(_blank_names))),),
    argument_error,
    "a column has a blank name; give it one",
)

ROWS: tuple[SchemaRule, ...] = (
    ForEachColumn(
        BUCKET_KEYS,
        (
            refuse_unknown_column("bucket-key", runtime_error),
            RefuseColumnName(
                lambda c, name: name in c.schema.partition_keys,
                runtime_error,
                "option bucket-key names {name}, which is a partition key",
            ),
            RefuseColumnName(
                lambda c, name: c.has_primary_key and name not in c.schema.primary_keys,
                runtime_error,
                "option bucket-key names {name}, which is not in the primary key",
            ),
        ),
    ),
    _key_type_rule("primary", PRIMARY_KEYS),
    _key_type_rule("partition", PARTITION_KEYS),
    RefuseWhen(
        (is_switch_on("primary-key.nullable"), UNKEYED),
        argument_error,
        "option primary-key.nullable needs a table with a primary key",
    ),
    *_BUCKETS,
    FunctionRule(check_scan_mode, KEYS),
    RulesWhen(has_option_prefix("fields"), (FunctionRule(check_field_options),)),
    *_SEQUENCE,
    RulesWhen(merge_engine_is("partial-update"), (FunctionRule(check_partial_update),)),
    RulesWhen(
        KEYED,
        (
            RulesWhen(
                merge_engine_is("aggregation"),
                (ReadableOptions(TableOptions.flag, ("aggregation.remove-record-on-delete",)),),
            ),
            RulesWhen(
                merge_engine_is("deduplicate", "first-row"),
                (
                    FunctionRule(
                        lambda c: c.options.ignores_delete, rule_option_keys(*_IGNORES_DELETE)
                    ),
                ),
            ),
        ),
    ),
    *_CHANGELOG,
    OptionMinimum("target-file-row-num", 1),
    FunctionRule(_check_retention, _RETENTION),
    _BLANK_NAMES,
    ReadableOptions(
        _option_number, ("read.batch-size", "write.batch-size", "file.compression.zstd-level")
    ),
    ReadableOptions(TableOptions.check_size, ("write.batch-memory", "file.block-size")),
    RefuseWhen(
        (
            SchemaCondition(
                lambda c: c.options.file_format not in FILE_FORMATS,
                rule_option_keys("file.format"),
            ),
        ),
        runtime_error,
        "option file.format={c.options.file_format!r} is unknown: use one of "
        f"{sorted(FILE_FORMATS)}",
    ),
    RulesWhen(UNUSUAL, (FunctionRule(check_geospatial_columns), FunctionRule(check_nested_blobs))),
    FunctionRule(check_blob_options, BLOB_KEYS),
    RulesWhen(
        KEYED, (RulesWhen(SchemaCondition(lambda c: bool(c.managed_blobs)), _BLOBS_WITH_KEY),)
    ),
    FunctionRule(check_file_format_types, rule_option_keys("file.format")),
    FunctionRule(check_avro_level_timestamps, rule_option_keys("file.format.per.level")),
    ForEachColumn(
        ColumnNamesGetter(lambda c: c.names_by(_reserved_names)),
        (
            RefuseColumnName(
                lambda _c, name: name in SYSTEM_NAMES,
                state_error,
                "column name {name} is Paimon's own; choose another name",
            ),
            RefuseColumnName(
                lambda _c, name: name.startswith(KEY_NAME_PREFIX),
                state_error,
                f"column name {{name}} begins with {KEY_NAME_PREFIX}, which is reserved",
            ),
        ),
    ),
    *_ROWS_BY_TIME,
    FunctionRule(check_vector_fields, rule_option_keys("vector-field")),
    *_INDEXES,
    FunctionRule(check_aggregate_functions, rule_option_keys("merge-engine")),
    RulesWhen(has_option_prefix("fields."), (FunctionRule(check_map_layout),)),
    OptionMinimum("variant.shredding.maxInferBufferRow", 1),
    FunctionRule(check_variant_shredding, VARIANT_KEYS),
    RulesWhen(has_option_prefix("file-index."), (FunctionRule(check_file_index),)),
    *_TRACKING,
    *_CLUSTERING,
    RulesWhen(is_switch_on(_CHAIN), _CHAIN_ROWS),
    RefuseWhen(
        (is_switch_on("table-read.sequence-number.enabled"), UNKEYED),
        argument_error,
        "option table-read.sequence-number.enabled needs a primary key",
    ),
    RulesWhen(OVERRIDES, _OVERRIDE_ROWS),
    RefuseWhen(
        (_MANIFEST_SORT, negated(_PARTITIONED), negated(EVOLVES_DATA)),
        argument_error,
        "option manifest-sort.enabled needs a partitioned table",
    ),
    RulesWhen(
        _MANIFEST_SORT,
        (
            ForEachColumn(
                named_column(_SORT_FIELD),
                (
                    RefuseColumnName(
                        lambda c, name: bool(name) and name not in c.schema.partition_keys,
                        argument_error,
                        f"option {_SORT_FIELD} names {{name}}, not a partition key",
                    ),
                ),
            ),
        ),
    ),
    ReadableOptions(iceberg_metadata_storage, (ICEBERG_STORAGE,)),
    RefuseWhen(
        (
            SchemaCondition(
                lambda c: all((c.options.text(each) or "").strip() for each in BRANCHES),
                rule_option_keys(*BRANCHES),
            ),
        ),
        argument_error,
        f"options {BRANCHES[0]} and {BRANCHES[1]} exclude each other; remove one",
    ),
)
"""Every rule, in Paimon's order."""

ROWS_OF_ALL: tuple[SchemaRule, ...] = (
    _key_type_rule("primary", PRIMARY_KEYS),
    _key_type_rule("partition", PARTITION_KEYS),
    _BLANK_NAMES,
)
"""The rules that also hold for tables that Paimon does not read."""

_NAMED: Final = frozenset[str]().union(*(each.keys or () for each in (*ROWS, *ROWS_OF_ALL)))
"""The options that rows are about."""
_ALWAYS: Final = tuple(each for each in ROWS if each.keys is None)
_ALWAYS_OF_ALL: Final = tuple(each for each in ROWS_OF_ALL if each.keys is None)
