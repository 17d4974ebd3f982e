"""The columns of a schema by their dotted names."""

from __future__ import annotations

from ledger.model import types as t
from ledger.model.errors import ColumnNotFoundError
from ledger.model.schema import Schema
from ledger.model.similar import meant
from ledger.planning.expression import Column


def column_named(schema: Schema, name: str) -> Column:
    """Return the column that a filter names, inside a ROW with the ROW's name before it.

    A column whose own name has a dot is found by it first.

    Raises:
        ColumnNotFoundError: There is none, or it lies inside an ARRAY or MAP, where one row has
            many values.

    Example:
        >>> info = t.RowType((t.DataField(0, "code", t.IntType()),))
        >>> column_named(Schema.of({"info": info}), "info.code").id
        1
    """
    found = _member(schema.fields, name)
    if found is None:
        raise ColumnNotFoundError(
            f"column {name} cannot be filtered by: there is none, or it lies inside an ARRAY or "
            f"MAP; {meant(name, schema.names)}"
        )
    return Column(found.id, name, found.type)


def _member(fields: tuple[t.DataField, ...], name: str) -> t.DataField | None:
    for each in fields:
        if each.name == name:
            return each
    for each in fields:
        if name.startswith(f"{each.name}.") and isinstance(each.type, t.RowType):
            inner = _member(each.type.fields, name[len(each.name) + 1 :])
            if inner is not None:
                return inner
    return None
