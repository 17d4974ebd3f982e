"""Definitions of views and functions: their records, and their changes as changed cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from ledger.events.catalog import AddDialect, DropDialect, UpdateDialect, ViewChange, ViewRecord
from ledger.events.functions import (
    AddDefinition,
    DropDefinition,
    FunctionChange,
    FunctionRecord,
    UpdateDefinition,
)
from ledger.events.schema import RemoveOption, SetOption, UpdateComment
from ledger.model.errors import InvalidChangeError
from ledger.model.functions import Function
from ledger.model.messages import name_hint
from ledger.model.schema import ViewSchema
from ledger.model.types import DataField
from ledger.model.types.wire import FieldObject, field_from_wire, field_to_wire


def view_from_record(record: ViewRecord) -> ViewSchema:
    """Return the view that a record holds.

    Raises:
        InvalidTypeError: A column's type is not valid.
    """
    return ViewSchema(
        fields=tuple(field_from_wire(each) for each in record.fields),
        query=record.query,
        dialects=_sorted(record.dialects),
        comment=record.comment,
        options=_sorted(record.options),
    )


def view_to_record(view: ViewSchema) -> ViewRecord:
    """Return the record of a view."""
    return ViewRecord(
        fields=tuple(field_to_wire(each) for each in view.fields),
        query=view.query,
        dialects=_sorted(view.dialects),
        comment=view.comment,
        options=_sorted(view.options),
    )


def function_from_record(record: FunctionRecord) -> Function:
    """Return the function that a record holds.

    Raises:
        InvalidTypeError: A parameter's type is not valid.
    """
    return Function(
        input_params=_parameters_from_wire(record.input_params),
        return_params=_parameters_from_wire(record.return_params),
        deterministic=record.deterministic,
        definitions=_sorted(record.definitions),
        comment=record.comment,
        options=_sorted(record.options),
    )


def function_to_record(function: Function) -> FunctionRecord:
    """Return the record of a function."""
    return FunctionRecord(
        input_params=_parameters_to_wire(function.input_params),
        return_params=_parameters_to_wire(function.return_params),
        deterministic=function.deterministic,
        definitions=_sorted(function.definitions),
        comment=function.comment,
        options=_sorted(function.options),
    )


def _parameters_from_wire(
    parameters: Iterable[FieldObject] | None,
) -> tuple[DataField, ...] | None:
    return None if parameters is None else tuple(map(field_from_wire, parameters))


def _parameters_to_wire(
    parameters: Iterable[DataField] | None,
) -> tuple[FieldObject, ...] | None:
    return None if parameters is None else tuple(map(field_to_wire, parameters))


def _sorted(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(values.items()))


class Cell(NamedTuple):
    """A part of a view or function that one change sets; the comment has no key."""

    section: Literal["option", "comment", "dialect", "definition"]
    key: str = ""

    def __str__(self) -> str:
        return f"{self.section} {self.key}" if self.key else self.section


class CellOperation(Struct, frozen=True, kw_only=True):
    """A kind of change of a view or function.

    Attributes:
        cell: The cell that a change sets.
        value: The cell's new value; None to remove it.
        before: Whether the cell has to exist before (`present`) or must not (`absent`); None for
            either.
    """

    cell: Callable[[Any], Cell]
    value: Callable[[Any], Any]
    before: Literal["present", "absent"] | None = None


def _option_cell(change: SetOption | RemoveOption) -> Cell:
    return Cell("option", change.key)


def _dialect_cell(change: AddDialect | UpdateDialect | DropDialect) -> Cell:
    return Cell("dialect", change.dialect)


def _definition_cell(change: AddDefinition | UpdateDefinition | DropDefinition) -> Cell:
    return Cell("definition", change.name)


def _query(change: AddDialect | UpdateDialect) -> str:
    return change.query


def _definition(change: AddDefinition | UpdateDefinition) -> object:
    return change.definition


def _removed(_: object) -> None:
    return None


CELL_OPERATIONS: Mapping[type, CellOperation] = {
    SetOption: CellOperation(cell=_option_cell, value=lambda change: change.value),
    RemoveOption: CellOperation(cell=_option_cell, value=_removed),
    UpdateComment: CellOperation(
        cell=lambda _: Cell("comment"), value=lambda change: change.comment
    ),
    AddDialect: CellOperation(cell=_dialect_cell, value=_query, before="absent"),
    UpdateDialect: CellOperation(cell=_dialect_cell, value=_query, before="present"),
    DropDialect: CellOperation(cell=_dialect_cell, value=_removed, before="present"),
    AddDefinition: CellOperation(cell=_definition_cell, value=_definition, before="absent"),
    UpdateDefinition: CellOperation(cell=_definition_cell, value=_definition, before="present"),
    DropDefinition: CellOperation(cell=_definition_cell, value=_removed, before="present"),
}
"""One row for each kind of change."""


def changed_cell(change: ViewChange | FunctionChange) -> Cell:
    """Return the cell that a change sets.

    Example:
        >>> str(changed_cell(SetOption("owner", "ann"))), str(changed_cell(UpdateComment()))
        ('option owner', 'comment')
    """
    return CELL_OPERATIONS[type(change)].cell(change)


def changed_cell_values(changes: Iterable[ViewChange | FunctionChange]) -> dict[Cell, Any]:
    """Return the final value of each changed cell; None where it is removed."""
    return {changed_cell(each): CELL_OPERATIONS[type(each)].value(each) for each in changes}


def cells_of(definition: ViewSchema | Function) -> dict[Cell, Any]:
    """Return every cell of a view or function that has a value."""
    cells: dict[Cell, Any] = {Cell("option", key): each for key, each in definition.options.items()}
    if definition.comment is not None:
        cells[Cell("comment")] = definition.comment
    if isinstance(definition, ViewSchema):
        return cells | {Cell("dialect", name): each for name, each in definition.dialects.items()}
    named = definition.definitions.items()
    return cells | {Cell("definition", name): each for name, each in named}


def apply_view_changes(view: ViewSchema, changes: Sequence[ViewChange]) -> ViewSchema:
    """Return a view after changes, one after the other.

    Raises:
        InvalidChangeError: A dialect to add exists, or one to update or drop does not.

    Example:
        >>> apply_view_changes(
        ...     ViewSchema((), "SELECT 1"), [AddDialect("spark", "SELECT 1L")]
        ... ).dialects
        {'spark': 'SELECT 1L'}
    """
    cells = _apply_changes(cells_of(view), changes)
    return ViewSchema(
        view.fields,
        view.query,
        _section(cells, "dialect"),
        cells.get(Cell("comment")),
        _section(cells, "option"),
    )


def apply_function_changes(function: Function, changes: Sequence[FunctionChange]) -> Function:
    """Return a function after changes, one after the other.

    Raises:
        InvalidChangeError: A definition to add exists, or one to update or drop does not.

    Example:
        >>> from ledger.model.functions import SqlFunctionDefinition
        >>> area = apply_function_changes(
        ...     Function(), [AddDefinition("trino", SqlFunctionDefinition("a * b"))]
        ... )
        >>> area.definitions["trino"].definition
        'a * b'
    """
    cells = _apply_changes(cells_of(function), changes)
    return Function(
        input_params=function.input_params,
        return_params=function.return_params,
        deterministic=function.deterministic,
        definitions=_section(cells, "definition"),
        comment=cells.get(Cell("comment")),
        options=_section(cells, "option"),
    )


class Contradiction(NamedTuple):
    """A change that does not fit the cells before it.

    Attributes:
        cell: The cell that it sets.
        is_present: Whether the cell exists before it.
        names: The keys of the cells in the same section before it, sorted.
    """

    cell: Cell
    is_present: bool
    names: tuple[str, ...]


def find_contradiction(
    cells: Iterable[Cell], changes: Iterable[ViewChange | FunctionChange]
) -> Contradiction | None:
    """Return the first change that adds an existing dialect or definition, or needs a missing one.

    Args:
        cells: The cells that have a value.
        changes: The changes, one after the other.

    Example:
        >>> find_contradiction([Cell("dialect", "spark")], [DropDialect("trino")])
        Contradiction(cell=Cell(section='dialect', key='trino'), is_present=False, names=('spark',))
    """
    present = set(cells)
    for change in changes:
        operation = CELL_OPERATIONS[type(change)]
        cell = operation.cell(change)
        if operation.before is not None and (operation.before == "present") != (cell in present):
            names = sorted(each.key for each in present if each.section == cell.section)
            return Contradiction(cell, cell in present, tuple(names))
        if operation.value(change) is None:
            present.discard(cell)
        else:
            present.add(cell)
    return None


def _apply_changes(
    cells: dict[Cell, Any], changes: Sequence[ViewChange | FunctionChange]
) -> dict[Cell, Any]:
    found = find_contradiction(cells, changes)
    if found is not None:
        what = f"{found.cell.section} {found.cell.key!r}"
        if found.is_present:
            raise InvalidChangeError(f"{what} exists; update it instead")
        hint = name_hint(found.cell.key, found.names)
        raise InvalidChangeError(f"{what} does not exist: add it, or {hint}")
    kept = cells | changed_cell_values(changes)
    return {cell: value for cell, value in kept.items() if value is not None}


def _section(cells: Mapping[Cell, Any], section: str) -> dict[str, Any]:
    """Return the values of one section by key, sorted."""
    return {cell.key: cells[cell] for cell in sorted(cells) if cell.section == section}
