"""The rules that every schema as a whole keeps, checked when one is created or changed.

Source: Paimon's SchemaValidation; the first broken rule in Paimon's order is the one named.
"""

from __future__ import annotations

from ledger.evolution.declared.rules import PAIMON_RULES, Rules
from ledger.evolution.refusals import argument, state, unsupported
from ledger.evolution.validation import (
    blobs,
    buckets,
    chain,
    file_index,
    formats,
    indexes,
    maps,
    merging,
    options,
    scan,
)
from ledger.evolution.validation.subject import Check, Subject
from ledger.model.schema import Schema

KEY_TYPE_ROOTS_REFUSED = frozenset(
    {"MAP", "ARRAY", "ROW", "MULTISET", "VECTOR", "VARIANT", "GEOMETRY", "GEOGRAPHY"}
)
SYSTEM_NAMES = frozenset({"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"})
KEY_NAME_PREFIX = "_KEY_"


def validate(schema: Schema, rules: Rules = PAIMON_RULES) -> None:
    """Refuse a schema that its tables could not work with: Paimon's, or those of any format.

    Raises:
        InvalidChangeError: The first broken rule; `kind` is the cause that Paimon would give.
    """
    subject = Subject.of(schema)
    for check in CHECKS if rules.paimon else CHECKS_OF_ALL:
        check(subject)


def _key_types(subject: Subject) -> None:
    schema = subject.schema
    for what, keys in (("primary", schema.primary_keys), ("partition", schema.partition_keys)):
        for name in keys:
            root = subject.columns[name].type.root
            if root in KEY_TYPE_ROOTS_REFUSED:
                raise unsupported(f"column {name} is {root}, which no {what} key can hold")


def _nullable_key(subject: Subject) -> None:
    if subject.options.flag("primary-key.nullable") and not subject.has_primary_key:
        raise argument("option primary-key.nullable needs a table with a primary key")


def _reserved_names(subject: Subject) -> None:
    names = subject.columns.keys()
    # Hardly any table has such names; those that look as if they had are looked at one by one.
    if names.isdisjoint(SYSTEM_NAMES) and KEY_NAME_PREFIX not in "\n".join(names):
        return
    for name in names:
        if name in SYSTEM_NAMES:
            raise state(f"column name {name} is Paimon's own; choose another name")
        if name.startswith(KEY_NAME_PREFIX):
            raise state(f"column name {name} begins with {KEY_NAME_PREFIX}, which is reserved")


def _blank_names(subject: Subject) -> None:
    if not all(map(str.strip, subject.columns)):
        raise argument("a column has a blank name; give it one")


CHECKS: tuple[Check, ...] = (
    buckets.bucket_keys,
    _key_types,
    _nullable_key,
    buckets.buckets,
    scan.scan_mode,
    merging.field_options,
    merging.sequence_fields,
    merging.merge_function,
    options.changelog_producer,
    options.retention,
    _blank_names,
    formats.known_format,
    formats.geospatial,
    *blobs.CHECKS,
    formats.data_fields,
    formats.avro_levels,
    _reserved_names,
    options.streaming_overwrite,
    options.time_field,
    options.first_row,
    options.rowkind_field,
    options.deletion_vectors,
    options.snapshot_ordering,
    blobs.vector_fields,
    *indexes.CHECKS,
    merging.aggregate_functions,
    maps.map_layout,
    maps.variant_shredding,
    file_index.file_index,
    blobs.row_tracking,
    options.incremental_clustering,
    chain.chain_table,
    options.read_sequence_number,
    options.clustering_override,
    options.manifest_sort,
    formats.iceberg_storage,
    scan.branches,
)
"""Every rule, in the order in which Paimon looks at them."""

CHECKS_OF_ALL: tuple[Check, ...] = (_key_types, _blank_names)
"""The rules that hold for tables that Paimon does not read, too."""
