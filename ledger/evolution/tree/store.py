"""The top-level columns of a schema under change: found by id and by name, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict, cast

from ledger.evolution.tree.paths import dotted
from ledger.model.errors import ColumnExistsError, ColumnNotFoundError, InvalidChangeError
from ledger.model.messages.similar import meant
from ledger.model.types import DataField, DataType
from ledger.model.types.columns import indexed, shared


class OpenColumn(TypedDict):
    """A column under change. Building a `DataField` for every fact would cost most of a replay."""

    id: int
    name: str
    type: DataType
    description: str | None
    default_value: str | None
    initial_default: str | None


class ColumnStore:
    """Columns in order, each either a finished `DataField` or open for change.

    Most commits change no column, so nothing is indexed before the first question.
    """

    __slots__ = ("_columns", "_given", "_ids", "_open")

    def __init__(self, columns: tuple[DataField, ...]) -> None:
        self._given: tuple[DataField, ...] | None = columns
        # The dict keeps the order; None holds the place of a column that stands in `_open`.
        self._columns: dict[int, DataField | None] = {}
        self._open: dict[int, OpenColumn] = {}
        self._ids: dict[str, int] = {}

    def _index(self, given: tuple[DataField, ...]) -> None:
        self._given = None
        found = indexed(given)
        self._columns = {**found.by_id}
        # By way of the ids: where one stood twice, both maps hold the same column.
        self._ids = {**found.ids}

    @property
    def names(self) -> Mapping[str, int]:
        """Column name to field id."""
        if self._given is not None:
            self._index(self._given)
        return self._ids

    def in_order(self) -> tuple[DataField, ...]:
        """Return all columns, finished."""
        return shared(tuple(self.by_id().values())) if self._given is None else self._given

    def by_id(self) -> Mapping[int, DataField]:
        """Return all columns, finished, in order."""
        if self._given is not None:
            return indexed(self._given).by_id
        for field_id, column in self._open.items():
            self._columns[field_id] = DataField(**column)
        self._open.clear()
        # Now none is open, and so each is there.
        return cast("dict[int, DataField]", self._columns).copy()

    def find(self, path: tuple[str, ...]) -> DataField:
        """Return the column that a path begins with, finished.

        Raises:
            ColumnNotFoundError: There is none.
            InvalidChangeError: The path is empty.
        """
        field_id = self.id_of(path)
        column = self._columns[field_id]
        if column is None:
            column = self._columns[field_id] = DataField(**self._open.pop(field_id))
        return column

    def id_of(self, path: tuple[str, ...]) -> int:
        """Return the id of the column that a path begins with.

        Raises:
            ColumnNotFoundError: There is none.
            InvalidChangeError: The path is empty.
        """
        if not path:
            raise InvalidChangeError("fieldNames is empty: name the column, like ['price']")
        if self._given is not None:
            self._index(self._given)
        field_id = self._ids.get(path[0])
        if field_id is None:
            raise ColumnNotFoundError(
                f"column {path[0]} does not exist; {meant(path[0], self._ids)}"
            )
        return field_id

    def check_id(self, name: str, field_id: int) -> None:
        """Refuse a fact about another column than the one of that name.

        Raises:
            InvalidChangeError: The column is missing or has another id.
        """
        found = self.id_of((name,))
        if found != field_id:
            raise other_id((name,), field_id, found)

    def check_free(self, name: str) -> None:
        """Refuse a name that is taken.

        Raises:
            ColumnExistsError: It is.
        """
        if self._given is not None:
            self._index(self._given)
        if name in self._ids:
            raise ColumnExistsError(f"column {name} exists already; choose another name")

    def open(self, name: str, field_id: int) -> OpenColumn:
        """Return the column of that name and id to be changed; its name by `rename` alone.

        Raises:
            InvalidChangeError: The column is missing or has another id.
        """
        if self._given is not None:
            self._index(self._given)
        if self._ids.get(name) != field_id:
            raise other_id((name,), field_id, self.id_of((name,)))
        opened = self._open.get(field_id)
        if opened is None:
            column = self.find((name,))
            opened = self._open[field_id] = {
                "id": field_id,
                "name": column.name,
                "type": column.type,
                "description": column.description,
                "default_value": column.default_value,
                "initial_default": column.initial_default,
            }
            self._columns[field_id] = None
        return opened

    def append(
        self,
        field_id: int,
        name: str,
        data_type: DataType,
        comment: str | None,
        default: str | None,
    ) -> None:
        """Add a column, last. Its name must be free, as `check_free` said, and its id new."""
        self._columns[field_id] = None
        self._open[field_id] = {
            "id": field_id,
            "name": name,
            "type": data_type,
            "description": comment,
            "default_value": default,
            "initial_default": default,
        }
        self._ids[name] = field_id

    def rename(self, name: str, field_id: int, new_name: str) -> None:
        """Rename a column in place.

        Raises:
            InvalidChangeError: The column is missing or has another id.
            ColumnExistsError: The new name is taken.
        """
        column = self.open(name, field_id)
        if new_name in self._ids:
            self.check_free(new_name)
        column["name"] = new_name
        self._ids[new_name] = self._ids.pop(name)

    def remove(self, name: str) -> None:
        """Take a column out. It must be there, as `check_id` said."""
        field_id = self._ids.pop(name)
        del self._columns[field_id]
        self._open.pop(field_id, None)

    def replace(self, column: DataField) -> None:
        """Put a finished column in the place of the one with its id and name."""
        self._columns[column.id] = column

    def reorder(self, columns: Iterable[DataField]) -> None:
        """Hold these columns, in this order, and no other."""
        self._open.clear()
        self._index(tuple(columns))


def other_id(path: tuple[str, ...], said: int, found: int) -> InvalidChangeError:
    """Return the refusal of a fact about another column than the one at its path."""
    return InvalidChangeError(f"column {dotted(path)} has id {found}, but the event says {said}")
