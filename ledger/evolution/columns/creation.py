"""A table's first schema: the same rules as for every later one, from nothing.

Source: Paimon's Schema, TableSchema and SchemaManager; Iceberg's numbering of a new table's ids.
"""

from __future__ import annotations

from collections import Counter
from typing import get_args

from attrs import evolve

from ledger.evolution.bounds import check_ids
from ledger.evolution.columns.directives import directed_type, listing, read_directive
from ledger.evolution.columns.editing import check_default
from ledger.evolution.columns.iceberg_ids import (
    carries_iceberg_ids,
    fresh_columns,
    without_member_ids,
)
from ledger.evolution.columns.identifiers import check_identifier_fields
from ledger.evolution.declared.rules import PAIMON_RULES, Rules
from ledger.evolution.options.deciding import check_keys, key_lists, keys_are_nullable
from ledger.evolution.options.naming import KEY_OPTIONS
from ledger.evolution.options.reading import TableOptions
from ledger.evolution.refusals import argument, runtime
from ledger.evolution.tree.paths import with_type
from ledger.evolution.validation.whole import validate
from ledger.model.schema import FieldIdPolicy, Schema, highest_field_id
from ledger.model.types import DataField
from ledger.model.types.walk import walk_fields, walk_ids


def create_schema(schema: Schema, rules: Rules = PAIMON_RULES) -> Schema:
    """Return the schema 0 of a table that is asked for like this.

    The options `primary-key` and `partition` become lists, primary-key columns become NOT NULL;
    under Paimon's rules comment directives are carried out. Field ids stay as they are given.

    Raises:
        InvalidChangeError: No such table can be; `kind` is the cause that Paimon would give.

    Example:
        >>> asked = Schema.of({"id": "INT", "v": "INT"}, options={"primary-key": "id"})
        >>> created = create_schema(asked)
        >>> created.primary_keys, created.field("id").type.nullable, dict(created.options)
        (('id',), False, {})
    """
    options = dict(schema.options)
    primary, partition = key_lists(options, schema.primary_keys, schema.partition_keys)
    for key in KEY_OPTIONS:
        options.pop(key, None)
    check_keys([each.name for each in schema.fields], primary, partition)
    fields = schema.fields
    if rules.paimon:
        fields = tuple([_directed(each, options) for each in fields])
    _check_ids(schema)
    nullable = keys_are_nullable(options)
    fields = tuple(
        with_type(each, each.type.with_nullability(nullable)) if each.name in primary else each
        for each in fields
    )
    highest = highest_field_id(fields)
    if schema.field_id_policy == "iceberg":
        # An imported table has given out more ids than its columns show, and Paimon's limit is not
        # Iceberg's.
        shown = (found for each in fields for found in (each.id, *walk_ids(each.type)))
        highest = max(schema.highest_field_id, *shown)
    check_ids(
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
    validate(created, rules)
    _check_entry(created, rules)
    return created


def with_policy(schema: Schema, policy: FieldIdPolicy | None) -> Schema:
    """Return a schema whose ids the wanted policy counts, for a new table.

    A schema that is of Iceberg's policy already and has an id everywhere keeps its ids: it comes
    from an Iceberg table. Any other is numbered anew, in Iceberg's order from 1; identifier fields
    follow their columns.

    Args:
        schema: What was asked for.
        policy: Whose ids; None for the schema's own policy.

    Raises:
        InvalidChangeError: There is no such policy, or Paimon is to count what Iceberg counted.

    Example:
        >>> made = with_policy(Schema.of({"id": "INT", "tags": "STRING ARRAY"}), "iceberg")
        >>> made.field("id").id, made.field("tags").type.element_id, made.highest_field_id
        (1, 3, 3)
    """
    wanted = schema.field_id_policy if policy is None else policy
    if wanted not in get_args(FieldIdPolicy):
        raise argument(f"field_id_policy is {wanted!r}; use one of {get_args(FieldIdPolicy)}")
    if wanted == "paimon":
        if schema.field_id_policy == "iceberg":
            raise argument(
                "the schema's ids were counted by Iceberg; create the table with "
                'field_id_policy="iceberg", which keeps them'
            )
        return evolve(schema, fields=without_member_ids(schema.fields))
    if schema.field_id_policy == "iceberg" and carries_iceberg_ids(schema.fields):
        return schema
    fields = fresh_columns(schema.fields)
    renewed = dict(
        zip(
            [each.id for each in walk_fields(schema.fields)],
            [each.id for each in walk_fields(fields)],
            strict=True,
        )
    )
    unknown = [each for each in schema.identifier_field_ids if each not in renewed]
    if unknown:
        raise argument(f"identifier field ids {unknown} are no columns of the schema")
    return evolve(
        schema,
        fields=fields,
        highest_field_id=highest_field_id(fields),
        identifier_field_ids=tuple(sorted(renewed[each] for each in schema.identifier_field_ids)),
        field_id_policy="iceberg",
    )


def _directed(column: DataField, options: dict[str, str]) -> DataField:
    directive = read_directive(column.description)
    if directive is None:
        return column
    data_type = directed_type(directive, column.name, column.type)
    for key, value in listing(directive, column.name, options):
        if value is None:
            options.pop(key, None)
        else:
            options[key] = value
    return DataField(column.id, column.name, data_type, directive.comment)


def _check_ids(schema: Schema) -> None:
    times = Counter(found for each in schema.fields for found in (each.id, *walk_ids(each.type)))
    repeated = sorted(each for each, count in times.items() if count > 1)
    if repeated:
        raise runtime(f"broken schema: field ids {repeated} are given to more than one field")


def _check_entry(schema: Schema, rules: Rules) -> None:
    check_identifier_fields(schema.fields, schema.identifier_field_ids, {})
    if rules.paimon and TableOptions(schema.options).flag("auto-create"):
        raise argument("option auto-create must be false for a table that is created here")
    for column in schema.fields:
        check_default((column.name,), column.default_value, column.type)
