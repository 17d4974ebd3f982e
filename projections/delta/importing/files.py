"""An added file of a Delta log as the ledger lists files: its partition, counts and bounds.

Source: the Delta transaction protocol, "Partition Value Serialization" and "Per-file Statistics".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from attrs import frozen
from msgspec import UNSET

from ledger.files.registering.bounds import lower_bound, upper_bound
from ledger.files.registering.facts import ColumnFacts
from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.transforms.values import encode_value
from projections.delta.importing.reading import Added
from projections.delta.table.columns import Columns
from projections.delta.table.values import bound_of, partition_value


@frozen
class Listing:
    """How files of one version are listed.

    Attributes:
        columns: The version's.
        partitioning: The columns that partition the table, in their order.
        schema_id: The ledger's, whose names the files use.
        spec_id: The ledger's.
        absolute: Makes a path absolute.
        rows: Counts the rows of a file whose statistics do not.
        carries_ids: Whether the files carry the ids of their columns.
    """

    columns: Columns
    partitioning: Sequence[t.DataField]
    schema_id: int
    spec_id: int
    absolute: Callable[[str], str]
    rows: Callable[[str], int]
    carries_ids: bool

    def change(self, added: Added) -> FileChange:
        """Return a file as the ledger lists it.

        Raises:
            UnsupportedError: It has a deletion vector, or a partition value that is none.
            InvalidInputError: Its statistics are none.
        """
        path = self.path(added.path)
        if added.deletion_vector is not None:
            raise UnsupportedError(
                f"file {path} has a deletion vector, and the ledger has no such files: purge them "
                "at the source (REORG TABLE ... APPLY (PURGE)), and let its log begin after that"
            )
        try:
            stats: dict[str, Any] = json.loads(added.stats or "{}", parse_float=Decimal)
            rows = _count(stats.get("numRecords"))
            facts = self._facts(stats)
        except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise InvalidInputError(
                f"file {path} has statistics that are none; have its owner compute them anew"
            ) from error
        return FileChange(
            path=path,
            partition=tuple(self._value(each, added, path) for each in self.partitioning),
            schema_id=self.schema_id,
            record_count=self.rows(path) if rows is None else rows,
            file_size_in_bytes=added.size,
            creation_time=added.modification_time,
            spec_id=self.spec_id,
            field_ids=self.carries_ids,
            **facts,
        )

    def path(self, path: str) -> str:
        """Return where a file is, by the path that the log has: a URI's."""
        return self.absolute(unquote(path))

    def _value(self, column: t.DataField, added: Added, path: str) -> PartitionValue:
        text = added.partition_values.get(self.columns.names[column.id])
        if text is None or not text:
            return None
        try:
            return encode_value(partition_value(text, column.type), column.type)
        except (ValueError, OverflowError, UnsupportedError) as error:
            raise UnsupportedError(
                f"file {path} has the value {text!r} in partition column {column.name}, which is "
                f"no {column.type.root} that the ledger can hold"
            ) from error

    def _facts(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        nulls: dict[int, int] = {}
        lower: dict[int, str] = {}
        upper: dict[int, str] = {}
        fields = self.columns.fields
        self._counted(fields, stats.get("nullCount") or {}, nulls)
        self._bounded(fields, stats.get("minValues") or {}, lower, upper=False)
        self._bounded(fields, stats.get("maxValues") or {}, upper, upper=True)
        return {
            "null_value_counts": nulls or UNSET,
            "lower_bounds": lower or UNSET,
            "upper_bounds": upper or UNSET,
        }

    def _counted(
        self, fields: Sequence[t.DataField], said: Mapping[str, Any], into: dict[int, int]
    ) -> None:
        for each in fields:
            count = said.get(self.columns.names[each.id])
            if isinstance(each.type, t.RowType) and isinstance(count, Mapping):
                self._counted(each.type.fields, count, into)
            elif type(count) is int:
                into[each.id] = count

    def _bounded(
        self,
        fields: Sequence[t.DataField],
        said: Mapping[str, Any],
        into: dict[int, str],
        *,
        upper: bool,
    ) -> None:
        for each in fields:
            value = said.get(self.columns.names[each.id])
            if isinstance(each.type, t.RowType) and isinstance(value, Mapping):
                self._bounded(each.type.fields, value, into, upper=upper)
            elif value is not None and not each.type.depth:
                bound = _bound(value, each.type, upper=upper)
                if bound is not None:
                    into[each.id] = bound


def _count(said: Any) -> int | None:
    if said is not None and type(said) is not int:
        raise TypeError(said)
    return said


def _bound(value: Any, data_type: t.DataType, *, upper: bool) -> str | None:
    """Return a bound in hex; None where there is none that is safe."""
    extreme = bound_of(value, data_type, upper=upper)
    facts = ColumnFacts(1, 0, extreme, extreme)
    return (upper_bound if upper else lower_bound)(facts, data_type, data_type)
