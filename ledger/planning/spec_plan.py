"""One filter under one partition spec, judged once for each distinct partition."""

from __future__ import annotations

from collections.abc import Callable

from ledger.model.errors import InvalidInputError
from ledger.model.file_change import PartitionValue
from ledger.model.partition import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.transforms.values import Value, decode_value
from ledger.planning.expression import (
    FALSE,
    Expression,
    Predicate,
    decided,
    predicates_of,
    reduced,
)
from ledger.planning.partition_column import PartitionColumn, partition_columns
from ledger.planning.projection import inclusive, strict
from ledger.planning.reason import OtherPartition, columns_of, failed_part
from ledger.planning.verdict import holds_for

Partition = tuple[PartitionValue, ...]


class SpecPlan:
    """What a filter leaves of the partitions of one spec.

    Args:
        spec: The spec.
        schema: The schema that the filter is bound to.
        expression: The filter, without NOT.
    """

    def __init__(self, spec: PartitionSpec, schema: Schema, expression: Expression) -> None:
        self._spec = spec
        self._columns = partition_columns(spec, schema)
        self._filter = expression
        self.projected = inclusive(expression, self._columns)
        self._sides = {
            each: (inclusive(each, self._columns), strict(each, self._columns))
            for each in predicates_of(expression)
        }
        self._left: dict[Partition, Expression] = {}

    def left(self, partition: Partition) -> Expression:
        """Return what is left of the filter for the files of a partition.

        `FALSE` when none of their rows match, `TRUE` when all do.

        Raises:
            InvalidInputError: The partition has not one value for each field of the spec.
        """
        known = self._left.get(partition)
        if known is None:
            known = self._left[partition] = self._judged(partition)
        return known

    def reason(self, partition: Partition) -> OtherPartition:
        """Return why the files of a partition are not read."""
        verdict = self._values_verdict(partition)
        part = failed_part(self.projected, verdict)
        asked = [each for each in columns_of(part) if isinstance(each, PartitionColumn)]
        return OtherPartition(
            part, tuple((each, decode_value(partition[each.position], each.type)) for each in asked)
        )

    def _judged(self, partition: Partition) -> Expression:
        if len(partition) != len(self._columns):
            raise InvalidInputError(
                f"a file of spec {self._spec.spec_id} has {len(partition)} partition values, the "
                f"spec has {len(self._columns)} fields: its partition or its spec id is wrong"
            )
        on_values = self._values_verdict(partition)

        def on_rows(predicate: Predicate) -> bool | None:
            may, must = self._sides[predicate]
            if decided(may, on_values) is False:
                return False
            return True if decided(must, on_values) is True else None

        # Together the parts of an AND may say more than each alone, as with an OR inside.
        if decided(self.projected, on_values) is False:
            return FALSE
        return reduced(self._filter, on_rows)

    def _values_verdict(self, partition: Partition) -> Callable[[Predicate], bool | None]:
        def verdict(predicate: Predicate) -> bool | None:
            column = predicate.column
            if not isinstance(column, PartitionColumn):
                return None
            try:
                value: Value | None = decode_value(partition[column.position], column.type)
            except InvalidInputError:
                # Written when the column had a type that reads otherwise: nothing is known.
                return None
            return holds_for(predicate, value)

        return verdict
