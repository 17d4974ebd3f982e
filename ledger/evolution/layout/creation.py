"""A table's first partition spec and sort order, as they are asked for when it is created.

Source: Iceberg's builders of specs and orders, whose default names of partition fields differ from
those of later updates: `id_bucket`, not `id_bucket_8`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.events.spec_changes import AddPartitionField, ReplaceSortOrder, SortColumn
from ledger.evolution.declared.rules import Rules
from ledger.evolution.layout.fold import LayoutTrail, identity_spec
from ledger.evolution.layout.operations import decide_order
from ledger.evolution.layout.sources import Source, Sources
from ledger.evolution.layout.spec_draft import SpecDraft, default_name, writable_transform
from ledger.evolution.refusals import argument
from ledger.evolution.tree.paths import dotted
from ledger.model.iceberg.layout import PartitionSpec, SortOrder
from ledger.model.schema import Schema
from ledger.model.transforms import Bucket, Identity, Transform, Truncate

_NOBODY = -1


def first_spec(
    schema: Schema, fields: Sequence[AddPartitionField] | None, rules: Rules
) -> PartitionSpec:
    """Return spec 0 of a new table; with no fields asked for, identity over its partition keys.

    Raises:
        InvalidChangeError: A source is missing, a transform does not accept it, two fields are the
            same, or a name is taken by another field or column.

    Example:
        >>> from ledger.evolution.declared.rules import PAIMON_RULES
        >>> made = Schema.of({"id": "INT", "day": "DATE"})
        >>> spec = first_spec(made, [AddPartitionField(("id",), "bucket[8]")], PAIMON_RULES)
        >>> spec.fields[0].name, spec.fields[0].field_id
        ('id_bucket', 1000)
    """
    if fields is None:
        return identity_spec(schema)
    draft = SpecDraft(LayoutTrail((PartitionSpec(0),)), format_version=rules.format_version)
    sources = Sources(_NOBODY)
    for each in fields:
        source = sources.find(schema, each.source)
        transform = writable_transform(each.transform, source)
        name = _builder_name(source, transform) if each.name is None else each.name
        if name in schema.names and not isinstance(transform, Identity):
            raise argument(
                f"partition field {name} has the name of a column; in a new table only the "
                "identity of that column can, so name it otherwise"
            )
        draft.add(source, transform, name)
    return PartitionSpec(0, draft.fields(schema))


def first_order(schema: Schema, columns: Sequence[SortColumn] | None, rules: Rules) -> SortOrder:
    """Return the sort order of a new table: order 1, or 0 when its files are not to be sorted.

    Raises:
        InvalidChangeError: A source is missing, or a transform does not accept it.

    Example:
        >>> from ledger.evolution.declared.rules import PAIMON_RULES
        >>> order = first_order(Schema.of({"id": "INT"}), [SortColumn(("id",))], PAIMON_RULES)
        >>> order.order_id, order.fields[0].null_order
        (1, 'nulls-first')
    """
    layout = LayoutTrail((PartitionSpec(0),))
    asked = ReplaceSortOrder(tuple(columns or ()))
    event = decide_order(layout, asked, schema, Sources(_NOBODY), rules)
    if event is not None:
        layout.apply(event)
    return layout.sort_order


def _builder_name(source: Source, transform: Transform) -> str:
    match transform:
        case Bucket():
            return f"{dotted(source.path)}_bucket"
        case Truncate():
            return f"{dotted(source.path)}_trunc"
        case _:
            return default_name(source, transform)
