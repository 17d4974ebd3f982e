"""Replay of a table's commits from one version to another.

One front for all: `Table.replay` gives a `Replay`, which is the steps themselves, one after the
other, and goes into a callback, a stream of lines, a second ledger, or a format's files in a
folder of their own. Nothing of the table is changed.
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
from ledger.relocation.exporting import Exported, Out, Told, export, tell_nobody
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.stores import open_store

if TYPE_CHECKING:
    from ledger.audit.difference import TableDiff
    from ledger.relocation.importing import Brought


_IN_MEMORY = 64 * 1024 * 1024


class Replayed(Protocol):
    """What is asked of a table's handle."""

    identifier: Identifier
    log: StreamLog[TableState, TableEvent]

    @property
    def setting(self) -> TableSetting:
        """What it shares with its ledger."""

    def shown_at(self, location: str) -> Any:
        """Return a handle whose files of formats are made for another place."""


@frozen
class Step:
    """One commit, and the table around it.

    Attributes:
        commit: It, with all its events.
        before: The table before; None for version 0.
        after: The table after.
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
        """The commit's number."""
        return self.commit.version

    @property
    def diff(self) -> TableDiff | None:
        """What the commit made of the table; None for version 0."""
        from ledger.audit.difference import TableDiff

        return None if self.before is None else TableDiff(self.before, self.after)


@frozen
class Replay:
    """A table's commits, to be had again.

    Iterating gives the steps, oldest first, and reads no further than it is asked.

    Attributes:
        first: The first version.
        last: The last version.
    """

    _table: Replayed = field(repr=False)
    first: int
    last: int

    def __iter__(self) -> Iterator[Step]:
        log = self._table.log
        before = at_version(log, self.first - 1) if self.first else None
        builder = TableBuilder(before)
        commits = (read.commit for read in log.commits(self.first, self.last))
        for commit in log.personal.each_told(commits):
            log.fold(builder, commit)
            after = builder.freeze()
            yield Step(commit, before, after)
            before = after

    def into(self, callback: Callable[[Step], object]) -> Replay:
        """Call something with each step; return this."""
        for step in self:
            callback(step)
        return self

    def into_lines(self, out: Out, *, told: Told = tell_nobody) -> Exported:
        """Write the commits as lines that `lakeledger import ledger` takes, byte for byte.

        Raises:
            InvalidInputError: They do not begin at version 0, where every log does.
        """
        self._refuse_parts()
        table = self._table
        return export(table.setting, out, [table.identifier], version=self.last, told=told)

    def into_ledger(
        self,
        url: str,
        storage_options: Mapping[str, Any] | None = None,
        *,
        told: Told = tell_nobody,
    ) -> Brought:
        """Make a second ledger, with an identity of its own, that holds the table up to the end.

        Its catalog is whole. Asked again, it goes on where it was broken off, and to a later
        version from an earlier one.

        Args:
            url: Where it is to be.
            storage_options: What fsspec takes for that URL.
            told: Told how far it is.

        Raises:
            AlreadyExistsError: Another ledger is there.
            InvalidInputError: The replay does not begin at version 0.
        """
        from ledger.relocation.importing import bring

        store = open_store(url, storage_options)
        if store.url == self._table.setting.store.url:
            raise InvalidInputError(f"{store.url} is the ledger itself; name another place")
        setting = TableSetting(store, storage_options or {}, author="")
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as lines:
            self.into_lines(lines, told=told)
            lines.seek(0)
            return bring(setting, lines, as_copy=True, told=told)

    def into_files(
        self,
        format_name: str,
        folder: str,
        storage_options: Mapping[str, Any] | None = None,
        *,
        on_progress: Progress = no_progress,
    ) -> str:
        """Make a format's files as of the end in a folder of their own; return its URL.

        Engines open the folder as a table: what is made leads to itself, and to the data files
        where they are. Asked again, it makes what is missing.

        Args:
            format_name: Such as "iceberg".
            folder: A folder, or its URL.
            storage_options: What fsspec takes for that URL.
            on_progress: Told how many commits of how many were applied.

        Raises:
            InvalidInputError: The replay does not begin at version 0.
            MissingDependencyError: Nothing that is installed has such files.
            StoreError: Other files stand there.
        """
        from ledger.formats import part

        self._refuse_parts()
        store = open_store(folder, storage_options)
        view = self._table.shown_at(store.url)
        part(format_name, "kept").replay(view, store, version=self.last, on_progress=on_progress)
        return store.url

    def _refuse_parts(self) -> None:
        if self.first:
            raise InvalidInputError(
                f"what begins at version {self.first} is no whole log; leave out first="
            )
