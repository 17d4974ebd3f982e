"""Validation rules that every whole schema satisfies, by Paimon's checks.

One table of rows, in Paimon's order, so that the error is that of the first broken rule. Source:
Paimon's SchemaValidation.
"""

from __future__ import annotations

from typing import Final

from ledger.decide.engine_rules import (
    BRANCHES,
    CHAIN_KEYS,
    KEYS,
    SORTED_INDEX_OPTIONS,
    aggregate_functions,
    chain_partition_keys,
    field_options,
    file_index,
    one_index_a_column,
    one_text_column,
    one_vector_column,
    partial_update,
    scan_mode,
    sortable_columns,
    vector_column,
)
from ledger.decide.errors import argument, runtime, state, unsupported
from ledger.decide.file_format_rules import (
    BLOB_KEYS,
    ICEBERG_STORAGE,
    VARIANT_KEYS,
    alongside_others,
    avro_levels,
    blob_retractions,
    blob_roles,
    data_fields,
    geospatial,
    iceberg_storage,
    listed_blobs,
    map_layout,
    nested_blobs,
    variant_shredding,
    vector_fields,
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
    Ask,
    AtLeast,
    Candidate,
    Condition,
    Each,
    Names,
    Readable,
    Refuse,
    RefuseName,
    Row,
    When,
    about,
    check_rows,
    engine,
    family,
    given,
    is_none_of,
    is_one_of,
    listed,
    lists,
    named,
    no,
    on,
    producer,
    unknown,
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


def validate(schema: Schema, rules: Rules = PAIMON_RULES) -> None:
    """Reject a schema that its tables could not work with: by Paimon's rules, or any format's.

    Raises:
        InvalidChangeError: The first broken rule; `kind` is that of Paimon's error.
    """
    if not _NAMED.isdisjoint(schema.options):
        rows = ROWS if rules.paimon else ROWS_OF_ALL
    else:
        # Most tables set no option that any row is about.
        rows = _ALWAYS if rules.paimon else _ALWAYS_OF_ALL
    check_rows(rows, Candidate(schema))


# ---- what several rows share


def _whole(options: TableOptions, key: str) -> object:
    return options.number(key, 0)


def _reserved_of(names: tuple[str, ...]) -> tuple[str, ...]:
    # Hardly any table has such names; the candidates are checked one by one.
    is_clean = SYSTEM_NAMES.isdisjoint(names) and KEY_NAME_PREFIX not in "\n".join(names)
    return () if is_clean else names


def _has_blank(names: tuple[str, ...]) -> bool:
    return not all(map(str.strip, names))


def _retention(candidate: Candidate) -> None:
    defaults = (10, INT_MAX)
    for what in ("snapshot", "changelog"):
        least = candidate.options.number(f"{what}.num-retained.min", defaults[0])
        most = candidate.options.number(f"{what}.num-retained.max", defaults[1])
        if least < 1:
            raise argument(f"option {what}.num-retained.min={least} must be at least 1")
        if least > most:
            raise argument(f"option {what}.num-retained.min={least} exceeds the max, {most}")
        # A changelog is kept as long as a snapshot unless set otherwise.
        defaults = (least, most)


_RETENTION = about(
    *(f"{what}.num-retained.{end}" for what in ("snapshot", "changelog") for end in ("min", "max"))
)

_IGNORES_DELETE = (
    *("ignore-delete", "first-row.ignore-delete", "deduplicate.ignore-delete"),
    "partial-update.ignore-delete",
)
_IGNORING = Condition(lambda c: c.options.ignores_delete, about(*_IGNORES_DELETE))
_MERGES_ON_READ = on("deletion-vectors.merge-on-read")
_PARTITIONED = Condition(lambda c: bool(c.schema.partition_keys))
_BUCKET_IS_ODD = Condition(
    lambda c: c.options.bucket < 1 and not (c.options.bucket == -2 and c.has_primary_key),  # noqa: PLR2004 - postponed
)
_POSTPONABLE = Condition(lambda c: c.options.bucket >= 1 or c.options.bucket == -2)  # noqa: PLR2004 - postponed
_VECTOR, _BTREE, _BITMAP, _MULTIVALUE, _FULL_TEXT = INDEX_COLUMN_OPTIONS


def _key_types(what: str, names: Names) -> Each:
    says = f"column {{name}} is {{root}}, which no {what} key can hold"
    return Each(names, (RefuseName(is_one_of(*KEY_TYPE_ROOTS_REFUSED), unsupported, says),))


def _indexed(option: str) -> tuple[Row, ...]:
    """Return the rules of a table with a primary-key index."""
    return (
        Refuse((UNKEYED,), argument, f"option {option} needs a primary key"),
        Refuse(
            (no(_POSTPONABLE),),
            argument,
            f"option {option} needs a fixed or postponed number of buckets",
        ),
        Refuse(
            (_MERGES_ON_READ, DELETION_VECTORS),
            argument,
            f"option {option} needs deletion-vectors.merge-on-read=false",
        ),
        Refuse((OVERRIDES,), argument, f"option {option} does not go with pk-clustering-override"),
    )


def _sorted_index(option: str) -> When:
    needs = f"option {option} needs deletion-vectors.enabled=true"
    return When(
        lists(option),
        (
            Refuse((no(DELETION_VECTORS),), argument, needs),
            *_indexed(option),
            Each(listed(option), (unknown(option),)),
        ),
    )


def _searched_index(option: str, *rows: Row) -> tuple[Row, ...]:
    needs = f"option {option} needs deletion-vectors.enabled=true"
    return (
        Refuse((no(engine("first-row")), no(DELETION_VECTORS)), argument, needs),
        *_indexed(option),
        *rows,
    )


# ---- the table

_BUCKETS: tuple[Row, ...] = (
    Readable(_whole, ("bucket",)),
    Refuse(
        (given("bucket-key"), UNBUCKETED),
        argument,
        "option bucket-key needs a fixed number of buckets; set option bucket, too",
    ),
    Refuse(
        (given("full-compaction.delta-commits"), UNBUCKETED, UNKEYED),
        runtime,
        "option full-compaction.delta-commits={c.options.full_compaction_commits} needs a fixed "
        "number of buckets",
    ),
    When(
        BUCKETED,
        (
            Refuse(
                (_BUCKET_IS_ODD,),
                runtime,
                "option bucket={c.options.bucket}: the number of buckets must be greater than 0",
            ),
            Refuse(
                (UNKEYED, Condition(lambda c: not c.bucket_keys)),
                runtime,
                "option bucket={c.options.bucket} of a table without primary key needs bucket-key",
            ),
            Each(
                BUCKET_KEYS,
                (
                    RefuseName(
                        is_one_of("ARRAY", "MULTISET", "MAP", "ROW"),
                        runtime,
                        "option bucket-key names {name}, which is {root}; use a flat column",
                    ),
                ),
            ),
        ),
    ),
)

_SEQUENCE: tuple[Row, ...] = (
    Each(
        SEQUENCE_FIELDS,
        (
            unknown("sequence.field"),
            RefuseName(
                lambda c, name: f"fields.{name}.aggregate-function" in c.options.values,
                argument,
                "sequence field {name} cannot be aggregated; remove its function",
            ),
            RefuseName(
                lambda c, name: c.sequence_fields.count(name) > 1,
                argument,
                "option sequence.field names {name} more than once",
            ),
        ),
    ),
    Refuse(
        (IN_SEQUENCE, engine("first-row")),
        argument,
        "option sequence.field does not go with merge-engine first-row",
    ),
    Refuse(
        (IN_SEQUENCE, KEYED, Condition(lambda c: bool(c.keys_left_out))),
        argument,
        "option sequence.field needs all partition keys in the primary key; missing "
        "{c.keys_left_out}",
    ),
)

_CHANGELOG: tuple[Row, ...] = (
    Refuse(
        (producer("input", "full-compaction", "lookup"), UNKEYED),
        unsupported,
        "option changelog-producer={c.options.changelog_producer} needs a primary key",
    ),
    Refuse(
        (on("streaming-read-overwrite"), producer("full-compaction", "lookup")),
        unsupported,
        "option streaming-read-overwrite would read changes twice under "
        "{c.options.changelog_producer}",
    ),
    Readable(_whole, ("full-compaction.delta-commits",)),
    Refuse(
        (given("full-compaction.delta-commits"), producer("lookup")),
        unsupported,
        "option full-compaction.delta-commits does not go with changelog-producer lookup",
    ),
)

_BLOBS_WITH_KEY: tuple[Row, ...] = (
    Ask(blob_roles),
    Refuse(
        (engine("aggregation"),), argument, "BLOB columns do not go with merge-engine aggregation"
    ),
    Refuse(
        (no(producer("none")),),
        argument,
        "BLOB columns of a primary-key table need changelog-producer none",
    ),
    Refuse(
        (given("data-file.external-paths"),),
        argument,
        "BLOB columns of a primary-key table do not go with external paths",
    ),
    Refuse(
        (OVERRIDES,),
        argument,
        "BLOB columns of a primary-key table do not go with pk-clustering-override",
    ),
    When(engine("partial-update"), (When(no(_IGNORING), (Ask(blob_retractions),)),)),
)

_TIME_FIELD = "record-level.time-field"
_SNAPSHOT_ORDERING = "sequence.snapshot-ordering"

_ROWS_BY_TIME: tuple[Row, ...] = (
    Refuse(
        (on("streaming-read-overwrite"), UNKEYED),
        runtime,
        "option streaming-read-overwrite needs a primary key; "
        "use streaming-read-append-overwrite for append tables",
    ),
    Each(
        named(_TIME_FIELD),
        (
            unknown(_TIME_FIELD),
            RefuseName(
                is_none_of(*_TIME_ROOTS),
                argument,
                f"option {_TIME_FIELD}: {{name}} is {{root}}, not one of {', '.join(_TIME_ROOTS)}",
            ),
        ),
    ),
    Refuse(
        (engine("first-row"), no(producer("none", "lookup"))),
        argument,
        "merge-engine first-row goes with none or lookup, not {c.options.changelog_producer}",
    ),
    Each(named("rowkind.field"), (unknown("rowkind.field"),)),
    Refuse(
        (DELETION_VECTORS, producer("full-compaction")),
        argument,
        "deletion vectors do not go with changelog-producer full-compaction",
    ),
    Refuse(
        (DELETION_VECTORS, engine("first-row"), no(OVERRIDES)),
        argument,
        "deletion vectors do not go with merge-engine first-row",
    ),
    When(
        on(_SNAPSHOT_ORDERING),
        (
            Refuse((UNKEYED,), argument, f"option {_SNAPSHOT_ORDERING} needs a primary key"),
            Refuse(
                (IN_SEQUENCE,),
                argument,
                f"option {_SNAPSHOT_ORDERING} does not go with sequence.field",
            ),
            Refuse(
                (no(on("write-only", "write.compaction-skip")),),
                argument,
                f"option {_SNAPSHOT_ORDERING} needs write-only=true",
            ),
        ),
    ),
)

_INDEXES: tuple[Row, ...] = (
    Ask(one_index_a_column, about(*INDEX_COLUMN_OPTIONS)),
    *(_sorted_index(each) for each in SORTED_INDEX_OPTIONS),
    Ask(sortable_columns, about(*SORTED_INDEX_OPTIONS)),
    When(
        lists(_VECTOR),
        (
            Ask(one_vector_column),
            *_searched_index(_VECTOR, Ask(vector_column)),
        ),
    ),
    When(
        lists(_FULL_TEXT),
        (
            Ask(one_text_column),
            *_searched_index(
                _FULL_TEXT,
                Each(
                    listed(_FULL_TEXT),
                    (
                        unknown(_FULL_TEXT),
                        RefuseName(
                            is_none_of("CHAR", "VARCHAR"),
                            argument,
                            f"option {_FULL_TEXT}: {{name}} must be CHAR, VARCHAR or STRING",
                        ),
                    ),
                ),
            ),
        ),
    ),
)

_TRACKS, _CLUSTERS = on("row-tracking.enabled"), on("clustering.incremental")

_TRACKING: tuple[Row, ...] = (
    Refuse(
        (_TRACKS, KEYED), argument, "option row-tracking.enabled does not go with a primary key"
    ),
    Refuse((_TRACKS, BUCKETED), argument, "option row-tracking.enabled needs bucket=-1"),
    Refuse(
        (EVOLVES_DATA, no(_TRACKS)),
        argument,
        "option data-evolution.enabled needs row-tracking.enabled=true",
    ),
    Refuse(
        (EVOLVES_DATA, _CLUSTERS),
        argument,
        "option data-evolution.enabled does not go with clustering.incremental",
    ),
    When(
        Condition(lambda c: bool(c.blobs)),
        (
            Refuse(
                (UNKEYED, no(EVOLVES_DATA)),
                argument,
                "BLOB columns {c.blobs} need data-evolution.enabled=true",
            ),
            Ask(lambda c: alongside_others(c, c.blobs)),
        ),
    ),
    Refuse(
        (
            Condition(
                lambda c: c.options.values["vector.file.format"].lower() not in FILE_FORMATS,
                about("vector.file.format"),
            ),
        ),
        runtime,
        "option vector.file.format={c.options.values[vector.file.format]!r} is unknown",
    ),
    Ask(lambda c: alongside_others(c, c.vectors), about("vector.file.format")),
    Refuse(
        (given("vector.file.format"), no(EVOLVES_DATA)),
        argument,
        "option vector.file.format needs data-evolution.enabled=true",
    ),
)

_CLUSTERING: tuple[Row, ...] = (
    Refuse(
        (_CLUSTERS, KEYED),
        argument,
        "option clustering.incremental does not go with a primary key",
    ),
    Refuse(
        (
            _CLUSTERS,
            BUCKETED,
            Condition(lambda c: c.options.is_true("bucket-append-ordered", default=True)),
        ),
        argument,
        "option clustering.incremental with fixed buckets needs bucket-append-ordered=false",
    ),
    Refuse(
        (_CLUSTERS, BUCKETED, DELETION_VECTORS),
        argument,
        "option clustering.incremental with fixed buckets does not go with deletion vectors",
    ),
)

_CHAIN = "chain-table.enabled"

_CHAIN_ROWS: tuple[Row, ...] = (
    Refuse(
        (Condition(lambda c: c.options.values.get("type", "table").lower() not in {"", "table"}),),
        argument,
        f"option {_CHAIN} needs type=table",
    ),
    Refuse(
        (Condition(lambda c: not c.has_primary_key or not c.schema.partition_keys),),
        argument,
        f"option {_CHAIN} needs a primary key and partition keys",
    ),
    Refuse((NO_FIXED_BUCKETS,), argument, f"option {_CHAIN} needs a fixed number of buckets"),
    Refuse((no(IN_SEQUENCE),), argument, f"option {_CHAIN} needs sequence.field"),
    Refuse(
        (no(producer("none", "input")),),
        argument,
        f"option {_CHAIN} goes with changelog-producer none or input only",
    ),
    Refuse(
        (DELETION_VECTORS, no(engine("deduplicate"))),
        argument,
        f"option {_CHAIN} with deletion vectors needs merge-engine deduplicate",
    ),
    *(
        Refuse((no(given(each)),), argument, f"option {_CHAIN} needs {each}")
        for each in ("partition.timestamp-pattern", "partition.timestamp-formatter")
    ),
    Refuse(
        (
            given("partition.expiration-time"),
            Condition(
                lambda c: (
                    (c.options.text("partition.expiration-strategy") or "values-time")
                    != "values-time"
                )
            ),
        ),
        argument,
        f"option {_CHAIN} needs partition.expiration-strategy=values-time",
    ),
    Ask(chain_partition_keys, about(CHAIN_KEYS)),
)

_OVERRIDE = "pk-clustering-override"

_OVERRIDE_ROWS: tuple[Row, ...] = (
    Refuse(
        (
            Condition(
                lambda c: not c.options.text("clustering.columns", "sink.clustering.by-columns")
            ),
        ),
        argument,
        f"option {_OVERRIDE} needs clustering.columns",
    ),
    Refuse(
        (no(engine("first-row")), no(DELETION_VECTORS)),
        unsupported,
        f"option {_OVERRIDE} needs deletion-vectors.enabled=true",
    ),
    Refuse(
        (given("record-level.expire-time"),),
        unsupported,
        f"option {_OVERRIDE} does not go with record-level.expire-time",
    ),
    Refuse(
        (engine("partial-update", "aggregation"),),
        unsupported,
        f"option {_OVERRIDE} does not go with merge-engine {{c.options.merge_engine}}",
    ),
    Refuse((IN_SEQUENCE,), unsupported, f"option {_OVERRIDE} does not go with sequence.field"),
    Refuse(
        (producer("full-compaction", "lookup"),),
        unsupported,
        f"option {_OVERRIDE} goes with changelog-producer none or input only",
    ),
)

_MANIFEST_SORT = on("manifest-sort.enabled")
_SORT_FIELD = "manifest-sort.partition-field"

_BLANK_NAMES = Refuse(
    (Condition(lambda c: c.of_names(_has_blank)),),
    argument,
    "a column has a blank name; give it one",
)

ROWS: tuple[Row, ...] = (
    Each(
        BUCKET_KEYS,
        (
            unknown("bucket-key", runtime),
            RefuseName(
                lambda c, name: name in c.schema.partition_keys,
                runtime,
                "option bucket-key names {name}, which is a partition key",
            ),
            RefuseName(
                lambda c, name: c.has_primary_key and name not in c.schema.primary_keys,
                runtime,
                "option bucket-key names {name}, which is not in the primary key",
            ),
        ),
    ),
    _key_types("primary", PRIMARY_KEYS),
    _key_types("partition", PARTITION_KEYS),
    Refuse(
        (on("primary-key.nullable"), UNKEYED),
        argument,
        "option primary-key.nullable needs a table with a primary key",
    ),
    *_BUCKETS,
    Ask(scan_mode, KEYS),
    When(family("fields"), (Ask(field_options),)),
    *_SEQUENCE,
    When(engine("partial-update"), (Ask(partial_update),)),
    When(
        KEYED,
        (
            When(
                engine("aggregation"),
                (Readable(TableOptions.flag, ("aggregation.remove-record-on-delete",)),),
            ),
            When(
                engine("deduplicate", "first-row"),
                (Ask(lambda c: c.options.ignores_delete, about(*_IGNORES_DELETE)),),
            ),
        ),
    ),
    *_CHANGELOG,
    AtLeast("target-file-row-num", 1),
    Ask(_retention, _RETENTION),
    _BLANK_NAMES,
    Readable(_whole, ("read.batch-size", "write.batch-size", "file.compression.zstd-level")),
    Readable(TableOptions.check_size, ("write.batch-memory", "file.block-size")),
    Refuse(
        (
            Condition(
                lambda c: c.options.file_format not in FILE_FORMATS,
                about("file.format"),
            ),
        ),
        runtime,
        "option file.format={c.options.file_format!r} is unknown: use one of "
        f"{sorted(FILE_FORMATS)}",
    ),
    When(UNUSUAL, (Ask(geospatial), Ask(nested_blobs))),
    Ask(listed_blobs, BLOB_KEYS),
    When(KEYED, (When(Condition(lambda c: bool(c.managed_blobs)), _BLOBS_WITH_KEY),)),
    Ask(data_fields, about("file.format")),
    Ask(avro_levels, about("file.format.per.level")),
    Each(
        Names(lambda c: c.of_names(_reserved_of)),
        (
            RefuseName(
                lambda _c, name: name in SYSTEM_NAMES,
                state,
                "column name {name} is Paimon's own; choose another name",
            ),
            RefuseName(
                lambda _c, name: name.startswith(KEY_NAME_PREFIX),
                state,
                f"column name {{name}} begins with {KEY_NAME_PREFIX}, which is reserved",
            ),
        ),
    ),
    *_ROWS_BY_TIME,
    Ask(vector_fields, about("vector-field")),
    *_INDEXES,
    Ask(aggregate_functions, about("merge-engine")),
    When(family("fields."), (Ask(map_layout),)),
    AtLeast("variant.shredding.maxInferBufferRow", 1),
    Ask(variant_shredding, VARIANT_KEYS),
    When(family("file-index."), (Ask(file_index),)),
    *_TRACKING,
    *_CLUSTERING,
    When(on(_CHAIN), _CHAIN_ROWS),
    Refuse(
        (on("table-read.sequence-number.enabled"), UNKEYED),
        argument,
        "option table-read.sequence-number.enabled needs a primary key",
    ),
    When(OVERRIDES, _OVERRIDE_ROWS),
    Refuse(
        (_MANIFEST_SORT, no(_PARTITIONED), no(EVOLVES_DATA)),
        argument,
        "option manifest-sort.enabled needs a partitioned table",
    ),
    When(
        _MANIFEST_SORT,
        (
            Each(
                named(_SORT_FIELD),
                (
                    RefuseName(
                        lambda c, name: bool(name) and name not in c.schema.partition_keys,
                        argument,
                        f"option {_SORT_FIELD} names {{name}}, not a partition key",
                    ),
                ),
            ),
        ),
    ),
    Readable(iceberg_storage, (ICEBERG_STORAGE,)),
    Refuse(
        (
            Condition(
                lambda c: all((c.options.text(each) or "").strip() for each in BRANCHES),
                about(*BRANCHES),
            ),
        ),
        argument,
        f"options {BRANCHES[0]} and {BRANCHES[1]} exclude each other; remove one",
    ),
)
"""Every rule, in Paimon's order."""

ROWS_OF_ALL: tuple[Row, ...] = (
    _key_types("primary", PRIMARY_KEYS),
    _key_types("partition", PARTITION_KEYS),
    _BLANK_NAMES,
)
"""The rules that also hold for tables that Paimon does not read."""

_NAMED: Final = frozenset[str]().union(*(each.keys or () for each in (*ROWS, *ROWS_OF_ALL)))
"""The options that rows are about."""
_ALWAYS: Final = tuple(each for each in ROWS if each.keys is None)
_ALWAYS_OF_ALL: Final = tuple(each for each in ROWS_OF_ALL if each.keys is None)
