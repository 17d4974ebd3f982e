"""Decision of a table's first schema, partition spec and sort order.

Source: Paimon's Schema, TableSchema and SchemaManager; Iceberg's numbering of a new table's ids.

Source: Iceberg's builders of specs and orders, whose default names of partition fields differ from
those of later updates: `id_bucket`, not `id_bucket_8`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from attrs import evolve

from ledger.decide.bounds import check_column_ids
from ledger.decide.column_draft import (
    carries_iceberg_ids,
    check_identifier_fields,
    columns_with_fresh_ids,
    directive_type,
    listing_option_edits,
    read_directive,
    without_member_ids,
)
from ledger.decide.column_edits import check_column_default
from ledger.decide.errors import argument_error, runtime_error
from ledger.decide.layout import SpecDraft, decide_order, default_field_name, writable_transform
from ledger.decide.option_changes import check_key_columns, keys_are_nullable, resolve_key_lists
from ledger.decide.schema_rules import validate_schema
from ledger.decide.table_options import KEY_OPTIONS, TableOptions
from ledger.events.schema import AddPartitionField, ReplaceSortOrder, SortColumn
from ledger.model.iceberg_layout import PartitionSpec, SortOrder
from ledger.model.schema import FieldIdPolicy, Schema, highest_field_id
from ledger.model.transforms import Bucket, Identity, Transform, Truncate
from ledger.model.types import DataField, walk_fields, walk_ids
from ledger.state.columns import dotted, with_type
from ledger.state.declared_formats import PAIMON_RULES, Rules
from ledger.state.layout import LayoutTrail, SourceColumn, SourceColumnFinder, identity_spec


def create_schema(schema: Schema, rules: Rules = PAIMON_RULES) -> Schema:
    """Return the schema 0 of a table created with a schema.

    The options `primary-key` and `partition` become lists, primary-key columns become NOT NULL;
    under Paimon's rules comment directives are applied. Field ids are unchanged.

    Raises:
        InvalidChangeError: No table can have it; `kind` is that of Paimon's error.

    Example:
        >>> asked = Schema.of({"id": "INT", "v": "INT"}, options={"primary-key": "id"})
        >>> created = create_schema(asked)
        >>> created.primary_keys, created.field("id").type.nullable, dict(created.options)
        (('id',), False, {})
    """
    options = dict(schema.options)
    primary, partition = resolve_key_lists(options, schema.primary_keys, schema.partition_keys)
    for key in KEY_OPTIONS:
        options.pop(key, None)
    check_key_columns([each.name for each in schema.fields], primary, partition)
    fields = schema.fields
    if rules.paimon:
        fields = tuple([_apply_comment_directive(each, options) for each in fields])
    _check_unique_ids(schema)
    nullable = keys_are_nullable(options)
    fields = tuple(
        with_type(each, each.type.with_nullability(nullable)) if each.name in primary else each
        for each in fields
    )
    highest = highest_field_id(fields)
    if schema.field_id_policy == "iceberg":
        # An imported table has assigned more ids than its columns have, and Paimon's limit is not
        # Iceberg's.
        shown = (found for each in fields for found in (each.id, *walk_ids(each.type)))
        highest = max(schema.highest_field_id, *shown)
    check_column_ids(
        fields,
        schema.field_id_policy,
        is_in_paimon=rules.paimon,
    )
    created = Schema(
        fields=fields,
        highest_field_id=highest,
        partition_keys=partition,
        primary_keys=primary,
        options=options,
        comment=schema.comment,
        time_millis=schema.time_millis,
        identifier_field_ids=tuple(sorted(set(schema.identifier_field_ids))),
        field_id_policy=schema.field_id_policy,
    )
    if "" in created.options:
        raise argument_error("the key of an option is empty; give a name")
    validate_schema(created, rules)
    _check_creation_rules(created, rules)
    return created


def with_policy(schema: Schema, policy: FieldIdPolicy | None) -> Schema:
    """Return the schema of a new table, with ids by the wanted policy.

    A schema that has Iceberg's policy already and an id everywhere keeps its ids: it comes from an
    Iceberg table. Any other is numbered anew, in Iceberg's order from 1; identifier fields follow
    their columns.

    Args:
        schema: The requested schema.
        policy: The policy of ids; None for the schema's own.

    Raises:
        InvalidChangeError: There is no such policy, or Paimon would number Iceberg's ids.

    Example:
        >>> made = with_policy(Schema.of({"id": "INT", "tags": "STRING ARRAY"}), "iceberg")
        >>> made.field("id").id, made.field("tags").type.element_id, made.highest_field_id
        (1, 3, 3)
    """
    wanted = schema.field_id_policy if policy is None else policy
    if wanted not in get_args(FieldIdPolicy):
        raise argument_error(f"field_id_policy is {wanted!r}; use one of {get_args(FieldIdPolicy)}")
    if wanted == "paimon":
        if schema.field_id_policy == "iceberg":
            raise argument_error(
                "the schema's ids were counted by Iceberg; create the table with "
                'field_id_policy="iceberg", which keeps them'
            )
        return evolve(schema, fields=without_member_ids(schema.fields))
    if schema.field_id_policy == "iceberg" and carries_iceberg_ids(schema.fields):
        return schema
    fields = columns_with_fresh_ids(schema.fields)
    renewed = dict(
        zip(
            [each.id for each in walk_fields(schema.fields)],
            [each.id for each in walk_fields(fields)],
            strict=True,
        )
    )
    unknown = [each for each in schema.identifier_field_ids if each not in renewed]
    if unknown:
        raise argument_error(f"identifier field ids {unknown} are no columns of the schema")
    return evolve(
        schema,
        fields=fields,
        highest_field_id=highest_field_id(fields),
        identifier_field_ids=tuple(sorted(renewed[each] for each in schema.identifier_field_ids)),
        field_id_policy="iceberg",
    )


def _apply_comment_directive(column: DataField, options: dict[str, str]) -> DataField:
    directive = read_directive(column.description)
    if directive is None:
        return column
    data_type = directive_type(directive, column.name, column.type)
    for key, value in listing_option_edits(directive, column.name, options):
        if value is None:
            options.pop(key, None)
        else:
            options[key] = value
    return DataField(column.id, column.name, data_type, directive.comment)


def _check_unique_ids(schema: Schema) -> None:
    times = Counter(found for each in schema.fields for found in (each.id, *walk_ids(each.type)))
    repeated = sorted(each for each, count in times.items() if count > 1)
    if repeated:
        raise runtime_error(f"broken schema: field ids {repeated} are given to more than one field")


def _check_creation_rules(schema: Schema, rules: Rules) -> None:
    check_identifier_fields(schema.fields, schema.identifier_field_ids, {})
    if rules.paimon and TableOptions(schema.options).flag("auto-create"):
        raise argument_error("option auto-create must be false for a table that is created here")
    for column in schema.fields:
        check_column_default((column.name,), column.default_value, column.type)


_NOBODY = -1


def first_partition_spec(
    schema: Schema, fields: Sequence[AddPartitionField] | None, rules: Rules
) -> PartitionSpec:
    """Return spec 0 of a new table; with no fields requested, identity over its partition keys.

    Raises:
        InvalidChangeError: A source is missing, a transform does not accept it, two fields are the
            same, or a name is taken by another field or column.

    Example:
        >>> from ledger.state.declared_formats import PAIMON_RULES
        >>> made = Schema.of({"id": "INT", "day": "DATE"})
        >>> spec = first_partition_spec(
        ...     made, [AddPartitionField(("id",), "bucket[8]")], PAIMON_RULES
        ... )
        >>> spec.fields[0].name, spec.fields[0].field_id
        ('id_bucket', 1000)
    """
    if fields is None:
        return identity_spec(schema)
    draft = SpecDraft(LayoutTrail((PartitionSpec(0),)), format_version=rules.format_version)
    sources = SourceColumnFinder(_NOBODY)
    for each in fields:
        source = sources.find(schema, each.source)
        transform = writable_transform(each.transform, source)
        name = _default_partition_name(source, transform) if each.name is None else each.name
        if name in schema.names and not isinstance(transform, Identity):
            raise argument_error(
                f"partition field {name} has the name of a column; in a new table only the "
                "identity of that column can, so choose another name"
            )
        draft.add(source, transform, name)
    return PartitionSpec(0, draft.fields(schema))


def first_sort_order(
    schema: Schema, columns: Sequence[SortColumn] | None, rules: Rules
) -> SortOrder:
    """Return the sort order of a new table: order 1, or 0 when its files are not to be sorted.

    Raises:
        InvalidChangeError: A source is missing, or a transform does not accept it.

    Example:
        >>> from ledger.state.declared_formats import PAIMON_RULES
        >>> order = first_sort_order(Schema.of({"id": "INT"}), [SortColumn(("id",))], PAIMON_RULES)
        >>> order.order_id, order.fields[0].null_order
        (1, 'nulls-first')
    """
    layout = LayoutTrail((PartitionSpec(0),))
    asked = ReplaceSortOrder(tuple(columns or ()))
    event = decide_order(layout, asked, schema, SourceColumnFinder(_NOBODY), rules)
    if event is not None:
        layout.apply(event)
    return layout.sort_order


def _default_partition_name(source: SourceColumn, transform: Transform) -> str:
    match transform:
        case Bucket():
            return f"{dotted(source.path)}_bucket"
        case Truncate():
            return f"{dotted(source.path)}_trunc"
        case _:
            return default_field_name(source, transform)
