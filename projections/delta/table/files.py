"""Data files as the actions that bring and take them; functions of the file and its schema alone.

Every name in an action is the one that the file's own schema has, since that is the one that the
file holds.
"""

from __future__ import annotations

from attrs import Factory, define

from ledger.evolution.state import TableState
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from projections.delta.log.actions import Add, Remove, file_uri
from projections.delta.table.fold import Schemas
from projections.delta.table.metadata import partition_columns
from projections.delta.table.values import StatisticsOf, partition_text


@define
class TableFiles:
    """The files of one table.

    Attributes:
        state: The table at the version that files come to, or go from.
        schemas: Finds older schemas.
        below: The URL that relative paths are below; empty for the table's own.
    """

    state: TableState
    schemas: Schemas
    below: str = ""
    _statistics: dict[int, StatisticsOf] = Factory(dict)

    def add(self, file: FileChange, *, changes_data: bool) -> Add:
        """Return the action that brings a file.

        Args:
            file: It.
            changes_data: Whether its rows are new to the table.

        Raises:
            UnsupportedError: Delta cannot say the file.
        """
        if file.content != "data":
            raise UnsupportedError(f"{file.path} holds {file.content}, and Delta has no such files")
        if file.sort_order_id:
            raise UnsupportedError(f"{file.path} has a sort order, and Delta's log says none")
        if file.format.lower() != "parquet":
            raise UnsupportedError(f"{file.path} is {file.format}, and Delta's files are Parquet")
        return Add(
            path=file_uri(file.path, self.below),
            partition_values=self._partition(file),
            size=file.file_size_in_bytes,
            modification_time=file.creation_time,
            data_change=changes_data,
            stats=self._statistics_of(file.schema_id).text(file),
        )

    def remove(self, file: FileChange, millis: int, *, changes_data: bool) -> Remove:
        """Return the action that takes a file away.

        Args:
            file: It.
            millis: When it goes, Unix milliseconds.
            changes_data: Whether its rows leave the table.
        """
        return Remove(
            path=file_uri(file.path, self.below),
            deletion_timestamp=millis,
            data_change=changes_data,
            extended_file_metadata=True,
            partition_values=self._partition(file),
            size=file.file_size_in_bytes,
        )

    def _partition(self, file: FileChange) -> dict[str, str | None]:
        spec = self.state.spec_by_id(file.spec_id)
        places = {
            each.source_id: place
            for place, each in enumerate(spec.fields)
            if each.transform == "identity"
        }
        own = {each.id: each.name for each in self._schema(file.schema_id).fields}
        found: dict[str, str | None] = {}
        for column in partition_columns(self.state.schema, self.state.spec):
            if column.id not in places:
                raise UnsupportedError(
                    f"{file.path} has no value of {column.name}, which partitions the table"
                )
            value = file.partition[places[column.id]]
            found[own.get(column.id, column.name)] = partition_text(value, column.type)
        return found

    def _statistics_of(self, schema_id: int) -> StatisticsOf:
        found = self._statistics.get(schema_id)
        if found is None:
            schema = self._schema(schema_id)
            partitioning = {
                each.id for each in partition_columns(self.state.schema, self.state.spec)
            }
            found = self._statistics[schema_id] = StatisticsOf(
                schema.fields,
                frozenset(each.name for each in schema.fields if each.id in partitioning),
            )
        return found

    def _schema(self, schema_id: int) -> Schema:
        if schema_id == self.state.schema.id:
            return self.state.schema
        return self.schemas([schema_id])[schema_id]
