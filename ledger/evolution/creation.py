"""A table's first schema: the same rules as for every later one, from nothing.

Source: Paimon's Schema, TableSchema and SchemaManager.
"""

from __future__ import annotations

from collections import Counter

from ledger.evolution import keys
from ledger.evolution.decide_columns import check_default
from ledger.evolution.directives import directed_type, listing, read_directive
from ledger.evolution.refusals import argument, runtime
from ledger.evolution.schema_paths import with_type
from ledger.evolution.table_options import TableOptions
from ledger.evolution.validation import validate
from ledger.model.field_ids import walk_fields
from ledger.model.schema import Schema
from ledger.model.types import DataField


def create_schema(schema: Schema) -> Schema:
    """Return the schema 0 of a table that is asked for like this.

    Comment directives are carried out, the options `primary-key` and `partition` become lists,
    primary-key columns become NOT NULL. Field ids stay as they are given.

    Raises:
        InvalidChangeError: No such table can be; `kind` is the cause that Paimon would give.

    Example:
        >>> asked = Schema.of({"id": "INT", "v": "INT"}, options={"primary-key": "id"})
        >>> created = create_schema(asked)
        >>> created.primary_keys, created.field("id").type.nullable, dict(created.options)
        (('id',), False, {})
    """
    options = dict(schema.options)
    primary, partition = keys.key_lists(options, schema.primary_keys, schema.partition_keys)
    for key in keys.KEY_OPTIONS:
        options.pop(key, None)
    keys.check_keys([each.name for each in schema.fields], primary, partition)
    fields = [_directed(each, options) for each in schema.fields]
    _check_ids(schema)
    nullable = keys.keys_are_nullable(options)
    created = Schema(
        fields=tuple(
            with_type(each, each.type.with_nullability(nullable)) if each.name in primary else each
            for each in fields
        ),
        partition_keys=partition,
        primary_keys=primary,
        options=options,
        comment=schema.comment,
        time_millis=schema.time_millis,
    )
    validate(created)
    _check_entry(created)
    return created


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
    times = Counter(each.id for each in walk_fields(schema.fields))
    repeated = sorted(each for each, count in times.items() if count > 1)
    if repeated:
        raise runtime(f"broken schema: field ids {repeated} are given to more than one field")


def _check_entry(schema: Schema) -> None:
    if TableOptions(schema.options).flag("auto-create"):
        raise argument("option auto-create must be false for a table that is created here")
    for column in schema.fields:
        check_default((column.name,), column.default_value, column.type)
