"""Replay of a table's commits from one version to another.

`Table.replay` returns a `Replay`, which iterates over the steps, and writes them to a callback, an
export, a second ledger, or a format's files in a separate folder. The table is not changed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field, frozen

from ledger.decide.operations import in_words
from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.log.stream_log import StreamLog
from ledger.log.time_travel import at_version
from ledger.model.errors import InvalidInputError
from ledger.model.messages import first_few
from ledger.model.names import Identifier
from ledger.opening.context import Progress, TableSetting, no_progress
from ledger.relocation.exporting import (
    ExportSummary,
    LineSink,
    ReportProgress,
    export,
    ignore_progress,
)
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.stores import open_store

if TYPE_CHECKING:
    from ledger.audit.difference import TableDiff
    from ledger.relocation.importing import ImportSummary


_IN_MEMORY = 64 * 1024 * 1024


class ReplayedTable(Protocol):
    """The part of a table's handle that this module needs."""

    identifier: Identifier
    log: StreamLog[TableState, TableEvent]

    @property
    def setting(self) -> TableSetting:
        """The settings that it shares with its ledger."""

    def shown_at(self, location: str) -> Any:
        """Return a handle that renders projections for another location."""


@frozen
class Step:
    """One commit of a replay, with the states before and after it.

    Attributes:
        commit: The commit, with all its events.
        before: The state before the commit; None for version 0.
        after: The state after the commit.
    """

    commit: Commit[TableEvent]
    before: TableState | None = field(repr=False)
    after: TableState = field(repr=False)

    def __repr__(self) -> str:
        events = (each for some in self.commit.transactions for each in some.events)
        said = first_few(map(in_words, events))
        return f"{type(self).__name__}(version {self.version}: {said})"

    @property
    def version(self) -> int:
        """The commit's version."""
        return self.commit.version

    @property
    def diff(self) -> TableDiff | None:
        """The difference between the states before and after; None for version 0."""
        from ledger.audit.difference import TableDiff

        return None if self.before is None else TableDiff(self.before, self.after)


@frozen
class Replay:
    """Replay of a table's commits between two versions.

    Iteration yields the steps lazily, oldest first.

    Attributes:
        first: The first version.
        last: The last version.
    """

    _table: ReplayedTable = field(repr=False)
    first: int
    last: int

    def __iter__(self) -> Iterator[Step]:
        log = self._table.log
        before = at_version(log, self.first - 1) if self.first else None
        builder = TableBuilder(before)
        commits = (read.commit for read in log.commits(self.first, self.last))
        for commit in log.personal.resolve_each(commits):
            log.fold(builder, commit)
            after = builder.freeze()
            yield Step(commit, before, after)
            before = after

    def into(self, callback: Callable[[Step], object]) -> Replay:
        """Call a function with each step; return this replay."""
        for step in self:
            callback(step)
        return self

    def into_lines(
        self, out: LineSink, *, report: ReportProgress = ignore_progress
    ) -> ExportSummary:
        """Write the commits as an export for `lakeledger import ledger`, byte for byte.

        Raises:
            InvalidInputError: The replay does not begin at version 0.
        """
        self._refuse_partial_replay()
        table = self._table
        return export(table.setting, out, [table.identifier], version=self.last, report=report)

    def into_ledger(
        self,
        url: str,
        storage_options: Mapping[str, Any] | None = None,
        *,
        report: ReportProgress = ignore_progress,
    ) -> ImportSummary:
        """Create a second ledger, with a new id, that has the table up to the last version.

        Its catalog is complete. A repeated call resumes an interrupted one, and extends an earlier
        replay to a later version.

        Args:
            url: The URL of the new ledger.
            storage_options: Options of fsspec for that URL.
            report: Called with the progress.

        Raises:
            AlreadyExistsError: Another ledger is at the URL.
            InvalidInputError: The replay does not begin at version 0.
        """
        from ledger.relocation.importing import import_lines

        store = open_store(url, storage_options)
        if store.url == self._table.setting.store.url:
            raise InvalidInputError(f"{store.url} is the ledger itself; name another place")
        setting = TableSetting(store, storage_options or {}, author="")
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as lines:
            self.into_lines(lines, report=report)
            lines.seek(0)
            return import_lines(setting, lines, as_copy=True, report=report)

    def into_files(
        self,
        format_name: str,
        folder: str,
        storage_options: Mapping[str, Any] | None = None,
        *,
        on_progress: Progress = no_progress,
    ) -> str:
        """Render a format's metadata at the last version into a separate folder; return its URL.

        Engines open the folder as a table, whose metadata refers to the data files where they are.
        A repeated call writes missing files.

        Args:
            format_name: The format's name, such as "iceberg".
            folder: A folder, or its URL.
            storage_options: Options of fsspec for that URL.
            on_progress: Called with the number of commits applied, and of all.

        Raises:
            InvalidInputError: The replay does not begin at version 0.
            MissingDependencyError: No installed package has the format.
            StoreError: The folder contains other files.
        """
        from ledger.formats import part

        self._refuse_partial_replay()
        store = open_store(folder, storage_options)
        view = self._table.shown_at(store.url)
        part(format_name, "kept").replay(view, store, version=self.last, on_progress=on_progress)
        return store.url

    def _refuse_partial_replay(self) -> None:
        if self.first:
            raise InvalidInputError(
                f"what begins at version {self.first} is no whole log; leave out first="
            )
