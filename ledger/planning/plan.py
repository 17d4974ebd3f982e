"""Plans: which files a filter has to read, what is left to filter in each, and why not the others.

Source: the Iceberg specification, scan planning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from attrs import field, frozen

from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.messages.excerpt import html_table
from ledger.model.schema import Schema
from ledger.model.transforms.paths import field_types
from ledger.model.types.casting import can_promote
from ledger.model.types.walk import walk_fields
from ledger.planning.expression import (
    FALSE,
    TRUE,
    BoundColumn,
    Expression,
    Predicate,
    reduced,
    text_of,
)
from ledger.planning.filter import Filter, parse_filter
from ledger.planning.metrics import ColumnMetrics, holds_in, metrics_of
from ledger.planning.spec_plan import (
    EmptyFile,
    NothingMatches,
    OtherValues,
    Partition,
    Reason,
    SpecPlan,
    columns_of,
    failed_part,
)
from ledger.planning.verdict import holds_for

_NEWEST_FORMAT = 3


class PlannedFile(NamedTuple):
    """A file to read.

    Attributes:
        file: The file.
        residual: What is left to filter its rows by; `TRUE` when all of them match.
    """

    file: FileChange
    residual: Expression


class PrunedFile(NamedTuple):
    """A file that is not read.

    Attributes:
        file: The file.
        reason: Why; `reason.text` says it to people.
    """

    file: FileChange
    reason: Reason


@frozen
class SpecCounts:
    """How many files of one spec there are, and what became of them.

    Attributes:
        total: All.
        kept: Those to read.
        by_partition: Those that their partition left out.
        by_metrics: Those that their counts and bounds left out.
    """

    total: int = 0
    kept: int = 0
    by_partition: int = 0
    by_metrics: int = 0


@frozen
class FilePlan:
    """What to read.

    Attributes:
        files: The files to read, in their order.
        by_spec: For each spec, what the filter asks of its partitions.
        counts: For each spec.
    """

    files: tuple[PlannedFile, ...]
    by_spec: Mapping[int, str]
    counts: Mapping[int, SpecCounts]
    _pruned: Callable[[], Iterator[PrunedFile]] = field(eq=False, repr=False)

    def __repr__(self) -> str:
        total = sum(each.total for each in self.counts.values())
        rows = sum(each.file.record_count for each in self.files)
        return f"{type(self).__name__}({len(self.files)} of {total} files, {rows} rows)"

    def _repr_html_(self) -> str:
        rows = [
            (spec_id, said, each.total, each.kept, each.by_partition, each.by_metrics)
            for spec_id, said in self.by_spec.items()
            if (each := self.counts.get(spec_id)) is not None
        ]
        header = ("spec", "asked of it", "files", "to read", "left out by partition", "by bounds")
        return html_table(header, rows, caption="which files a filter has to read")

    def pruned(self) -> Iterator[PrunedFile]:
        """Yield the files that are not read, each with its reason; found out when asked for."""
        return self._pruned()


class TableFilter:
    """One filter over the files of one table, whatever specs and schemas they were written with.

    Args:
        schema: The schema to read with.
        specs: Every spec that a file may have.
        where: The filter.
        schemas: The schemas that files may have been written with, by id; `schema` need not be
            among them. A file of an unknown one is judged by its partition alone, since its bounds
            may be of another type.

    Raises:
        InvalidInputError: The filter cannot be read; see `parse_filter`.
    """

    def __init__(
        self,
        schema: Schema,
        specs: Iterable[PartitionSpec],
        where: Filter,
        schemas: Mapping[int, Schema],
    ) -> None:
        self.filter = parse_filter(where, schema)
        self._specs = {each.spec_id: SpecPlan(each, schema, self.filter) for each in specs}
        self._columns = columns_of(self.filter)
        # The columns that read NULL where a file lacks them.
        self._bare = {
            each.id for each in walk_fields(schema.fields) if each.initial_default is None
        }
        self._readings = {
            key: self._reading(each) for key, each in {**schemas, schema.id: schema}.items()
        }

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The columns that the filter asks about."""
        return tuple(each.id for each in self._columns)

    @property
    def bounded(self) -> dict[int, list[int]]:
        """For each column of the filter, the schemas whose files have bounds of its type."""
        return {
            each: [key for key, found in self._readings.items() if found.get(each) == "bounds"]
            for each in self.field_ids
        }

    @property
    def by_spec(self) -> dict[int, str]:
        """What the filter asks of each spec's partitions."""
        return {key: text_of(each.projected) for key, each in self._specs.items()}

    def by_partition(self, spec_id: int, partition: Partition) -> Expression:
        """Return what a partition leaves of the filter.

        Raises:
            InvalidInputError: The spec is unknown, or the partition is none of it.
        """
        spec = self._specs.get(spec_id)
        if spec is None:
            raise InvalidInputError(
                f"a file names partition spec {spec_id}, which the table does not have; it has "
                f"{sorted(self._specs)}"
            )
        return spec.left(partition)

    def by_metrics(self, file: FileChange, left: Expression) -> Expression:
        """Return what a file's counts and bounds leave of a filter."""
        if left == TRUE or file.content != "data":
            # Deletes apply to rows whose other columns may differ.
            return left
        return FALSE if file.record_count == 0 else reduced(left, self._verdict(file))

    def reason(self, file: FileChange) -> Reason:
        """Return why a file that is not read is not."""
        if self.filter == FALSE:
            return NothingMatches()
        left = self.by_partition(file.spec_id, file.partition)
        if left == FALSE:
            return self._specs[file.spec_id].reason(file.partition)
        if file.record_count == 0:
            return EmptyFile()
        part = failed_part(left, self._verdict(file))
        return OtherValues(
            part, tuple((each, self._metrics(file, each)) for each in columns_of(part))
        )

    def _reading(self, schema: Schema) -> dict[int, str]:
        """Return what a file of a schema says of each column: `bounds`, `absent`, or nothing."""
        types = field_types(schema)
        found: dict[int, str] = {}
        for each in self._columns:
            if each.id not in types:
                if each.id in self._bare:
                    found[each.id] = "absent"
            elif can_promote(types[each.id], each.type, format_version=_NEWEST_FORMAT):
                found[each.id] = "bounds"
        return found

    def _metrics(self, file: FileChange, column: BoundColumn) -> ColumnMetrics | None:
        reading = self._readings.get(file.schema_id, {}).get(column.id)
        return None if reading == "absent" else metrics_of(file, column)

    def _verdict(self, file: FileChange) -> Callable[[Predicate], bool | None]:
        readings = self._readings.get(file.schema_id, {})

        def verdict(predicate: Predicate) -> bool | None:
            reading = readings.get(predicate.column.id)
            if reading == "bounds":
                return holds_in(predicate, metrics_of(file, predicate.column))
            return holds_for(predicate, None) if reading == "absent" else None

        return verdict


class Counts:
    """Counts files, spec by spec."""

    def __init__(self, spec_ids: Iterable[int]) -> None:
        self.kept = dict.fromkeys(spec_ids, 0)
        self.by_partition = dict(self.kept)
        self.by_metrics = dict(self.kept)

    def by_spec(self) -> dict[int, SpecCounts]:
        """Return what was counted."""
        return {
            key: SpecCounts(sum(each), *each)
            for key in self.kept
            for each in [(self.kept[key], self.by_partition[key], self.by_metrics[key])]
        }


def plan_files(
    files: Sequence[FileChange],
    *,
    schema: Schema,
    specs: Iterable[PartitionSpec],
    where: Filter = None,
    schemas: Mapping[int, Schema] | None = None,
) -> FilePlan:
    """Return which files a filter has to read.

    Columns are found by field id: renames do not matter, and of a column that was added after a
    file had been written, the file has NULL.

    Args:
        files: The live files.
        schema: The schema to read with; the filter names its columns.
        specs: Every spec that a file may have.
        where: See `parse_filter`; None for all rows.
        schemas: See `TableFilter`.

    Raises:
        InvalidInputError: The filter cannot be read, or a file does not fit its spec.

    Example:
        >>> from ledger.model.iceberg.layout import PartitionField
        >>> schema = Schema.of({"ts": "TIMESTAMP(6)"})
        >>> spec = PartitionSpec(0, (PartitionField("day", "day", 0, field_id=1000),))
        >>> files = [
        ...     FileChange(path=day, partition=(day,), record_count=1, file_size_in_bytes=1)
        ...     for day in ("2024-01-01", "2024-01-02")
        ... ]
        >>> plan = plan_files(files, schema=schema, specs=[spec], where="ts >= '2024-01-02 12:00'")
        >>> [each.file.path for each in plan.files], plan.by_spec
        (['2024-01-02'], {0: 'day >= 2024-01-02'})
        >>> [each.reason.text for each in plan.pruned()]
        ['partition day = 2024-01-01 is outside day >= 2024-01-02']
    """
    table = TableFilter(schema, specs, where, schemas or {})
    kept: list[PlannedFile] = []
    counts = Counts(table.by_spec)
    for each in files:
        left = table.by_partition(each.spec_id, each.partition)
        if left == FALSE:
            counts.by_partition[each.spec_id] += 1
            continue
        left = table.by_metrics(each, left)
        if left == FALSE:
            counts.by_metrics[each.spec_id] += 1
        else:
            counts.kept[each.spec_id] += 1
            kept.append(PlannedFile(each, left))

    def pruned() -> Iterator[PrunedFile]:
        # What is kept stands in the order of the files.
        rest = iter(kept)
        following = next(rest, None)
        for each in files:
            if following is not None and each is following.file:
                following = next(rest, None)
            else:
                yield PrunedFile(each, table.reason(each))

    return FilePlan(tuple(kept), table.by_spec, counts.by_spec(), pruned)
