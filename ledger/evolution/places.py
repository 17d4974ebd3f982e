"""Finding, in a draft's working copy, what a change is about; what cannot be meant is refused."""

from __future__ import annotations

from ledger.evolution.draft import Draft
from ledger.evolution.refusals import argument
from ledger.evolution.schema_paths import Place, dotted, locate
from ledger.model.errors import ColumnExistsError
from ledger.model.types import ArrayType, DataField, MapType, RowType


def named_place(draft: Draft, path: tuple[str, ...]) -> Place:
    """Return the place of a path that must end at a named column.

    Raises:
        ColumnNotFoundError: There is none.
        InvalidChangeError: It ends at an ARRAY's element or a MAP's value.
    """
    place = locate(draft.working.column(path), path)
    if place.is_wrapped:
        raise argument(
            f"{dotted(path)} is the inside of column {place.owner.name}, not a column: "
            "only its type and nullability can change"
        )
    return place


def struct_around(
    draft: Draft, path: tuple[str, ...]
) -> tuple[tuple[DataField, ...], tuple[int | None, ...]]:
    """Return the members beside the last segment of a path, and the ids of the segments before it.

    Raises:
        ColumnNotFoundError: A segment before the last names nothing.
        ColumnExistsError: The last segment stands for an ARRAY's element or a MAP's value.
        InvalidChangeError: Nothing can stand below that type.
    """
    if len(path) == 1:
        return tuple(draft.working.columns.values()), ()
    parent = locate(draft.working.column(path), path[:-1])
    match parent.type:
        case RowType(fields=fields):
            return fields, parent.ids
        case ArrayType() | MapType():
            raise ColumnExistsError(f"column {dotted(path)} exists already and is not a ROW")
        case other:
            raise argument(
                f"column {dotted(path)} cannot be added: {dotted(path[:-1])} is {other.root}, "
                "and only a ROW has members"
            )
