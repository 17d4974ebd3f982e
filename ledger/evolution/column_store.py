"""The top-level columns of a schema under change: found by id and by name, in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from ledger.evolution.schema_paths import dotted
from ledger.model.errors import ColumnExistsError, ColumnNotFoundError, InvalidChangeError
from ledger.model.types import DataField, DataType


class OpenColumn(TypedDict):
    """A column under change. Building a `DataField` for every fact would cost most of a replay."""

    id: int
    name: str
    type: DataType
    description: str | None
    default_value: str | None


class ColumnStore:
    """Columns in order, each either a finished `DataField` or open for change.

    Attributes:
        names: Column name to field id. Read it; the methods keep it.
    """

    __slots__ = ("_columns", "_open", "names")

    def __init__(self, columns: Iterable[DataField]) -> None:
        # The dict keeps the order; None holds the place of a column that stands in `_open`.
        self._columns: dict[int, DataField | None] = {each.id: each for each in columns}
        self._open: dict[int, OpenColumn] = {}
        self.names: dict[str, int] = {
            each.name: each.id for each in self._columns.values() if each is not None
        }

    def __len__(self) -> int:
        return len(self._columns)

    def by_id(self) -> dict[int, DataField]:
        """Return all columns, finished, in order."""
        for field_id, column in self._open.items():
            self._columns[field_id] = DataField(**column)
        self._open.clear()
        return {key: each for key, each in self._columns.items() if each is not None}

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
        field_id = self.names.get(path[0])
        if field_id is None:
            raise ColumnNotFoundError(
                f"column {path[0]} does not exist; there are: {list(self.names)}"
            )
        return field_id

    def check_id(self, name: str, field_id: int) -> None:
        """Refuse a fact about another column than the one of that name.

        Raises:
            InvalidChangeError: The column is missing or has another id.
        """
        if self.names.get(name) != field_id:
            raise other_id((name,), field_id, self.id_of((name,)))

    def check_free(self, name: str) -> None:
        """Refuse a name that is taken.

        Raises:
            ColumnExistsError: It is.
        """
        if name in self.names:
            raise ColumnExistsError(f"column {name} exists already; choose another name")

    def open(self, name: str, field_id: int) -> OpenColumn:
        """Return the column of that name and id to be changed; its name by `rename` alone.

        Raises:
            InvalidChangeError: The column is missing or has another id.
        """
        if self.names.get(name) != field_id:
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
            }
            self._columns[field_id] = None
        return opened

    def append(self, field_id: int, name: str, data_type: DataType, comment: str | None) -> None:
        """Add a column, last. Its name must be free and its id new."""
        self._columns[field_id] = None
        self._open[field_id] = {
            "id": field_id,
            "name": name,
            "type": data_type,
            "description": comment,
            "default_value": None,
        }
        self.names[name] = field_id

    def rename(self, name: str, field_id: int, new_name: str) -> None:
        """Rename a column in place.

        Raises:
            InvalidChangeError: The column is missing or has another id.
            ColumnExistsError: The new name is taken.
        """
        column = self.open(name, field_id)
        if new_name in self.names:
            self.check_free(new_name)
        column["name"] = new_name
        self.names[new_name] = self.names.pop(name)

    def remove(self, name: str) -> None:
        """Take a column out. It must be there."""
        field_id = self.names.pop(name)
        del self._columns[field_id]
        self._open.pop(field_id, None)

    def replace(self, column: DataField) -> None:
        """Put a finished column in the place of the one with its id and name."""
        self._columns[column.id] = column

    def reorder(self, columns: Iterable[DataField]) -> None:
        """Hold these columns, in this order, and no other."""
        self._columns = {each.id: each for each in columns}
        self._open.clear()
        self.names = {each.name: key for key, each in self._columns.items() if each is not None}


def other_id(path: tuple[str, ...], said: int, found: int) -> InvalidChangeError:
    """Return the refusal of a fact about another column than the one at its path."""
    return InvalidChangeError(f"column {dotted(path)} has id {found}, but the event says {said}")
