"""The command `follow`: keeps the projections of many tables up to date."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

from attrs import define, field
from cyclopts import Parameter

from ledger.cli.exits import Stop, ends_between_rounds
from ledger.cli.options import LedgerFlags, tables_of
from ledger.cli.output import Screen, as_json
from ledger.following.files import advance
from ledger.ledger import Ledger
from ledger.model.errors import LedgerError, StoreError
from ledger.table import Table


def follow(
    *names: Annotated[
        str, Parameter(help="DATABASE.TABLE; none: every table that says so.", completer=tables_of)
    ],
    once: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Bring all on once, and end; exit 8 if one could not, 130 if interrupted before.",
        ),
    ] = False,
    interval: Annotated[float, Parameter(help="Look for new commits every so many seconds.")] = 1.0,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Keep the files of every format that a table's option ledger.follow names up to its commits.

    One process does for a whole ledger, tables that come later included; several share the work.
    Tables go on in turn, each format by 64 commits at most, so that none waits for another's past.
    It ends cleanly at Ctrl-C or SIGTERM. Each line says which files went on, and what they lacked
    before: commits, and for how long. What could not go on is told once, and tried again.

    Example:
        lakeledger follow --once
    """
    following = _Following(place.open(), place.screen, names)
    with ends_between_rounds() as stop:
        if once:
            is_done = following.to_newest(stop)
        else:
            is_done = True
            while following.round(stop) or not stop.wait(interval):
                pass
    following.summary()
    if once and following.problems:
        raise StoreError("; ".join(following.problems.values()))
    if not is_done:
        raise KeyboardInterrupt


@define
class _Following:
    """Rounds over the tables of a ledger.

    Attributes:
        lake: The ledger.
        screen: Where lines go.
        names: Of the only tables; none: all.
        tables: Those at hand, by their ids.
        problems: By table and format, why files cannot go on.
        runs: How often files went on.
        commits: By how many commits, each format's counted.
        seconds: How long that took.
    """

    lake: Ledger
    screen: Screen
    names: tuple[str, ...]
    tables: dict[str, Table] = field(factory=dict)
    problems: dict[tuple[str, str], str] = field(factory=dict)
    runs: int = 0
    commits: int = 0
    seconds: float = 0.0

    def round(self, stop: Stop) -> bool:
        """Bring every table on by a step; return whether one lacks more and nobody asked to end."""
        lacking = False
        for name, table in self._there():
            if stop.asked:
                return False
            lacking = self._went_on(name, table) or lacking
        return lacking and not stop.asked

    def to_newest(self, stop: Stop) -> bool:
        """Bring every table to what is its newest version when its turn comes.

        Returns:
            False where a signal asked to end meanwhile.
        """
        for name, table in self._there():
            newest = table.state.version
            while not stop.asked and self._went_on(name, table, newest):
                pass
            if stop.asked:
                return False
        return True

    def _went_on(self, name: str, table: Table, newest: int | None = None) -> bool:
        """Bring each format of a table on by a step; return whether one lacks more.

        Args:
            name: The table's.
            table: It.
            newest: The version that is far enough; None: none is.
        """
        try:
            before = {each.format: each for each in table.freshness()}
            if all(not each.behind and each.problem is None for each in before.values()):
                return False
            return self._lacks_after_step(name, table, before, newest)
        except (LedgerError, OSError) as error:
            self._failed(name, "", error)
            return False

    def _lacks_after_step(
        self, name: str, table: Table, before: dict[str, Any], newest: int | None
    ) -> bool:
        begun = time.monotonic()
        lacking = False
        for format_name, reached in advance(table):
            if isinstance(reached, Exception):
                self._failed(name, format_name, reached)
                continue
            self.problems.pop((name, format_name), None)
            stood = before.get(format_name)
            if stood is not None and reached > stood.version:
                self._went(name, format_name, reached, stood)
                lacking = lacking or reached < (stood.newest if newest is None else newest)
        self.seconds += time.monotonic() - begun
        return lacking

    def _there(self) -> list[tuple[str, Table]]:
        """Return the tables to look at; of those that are gone nothing is kept."""
        entries = {
            each.table_id: each
            for each in self.lake.state.tables.values()
            if not self.names or str(each.identifier) in self.names
        }
        for gone in self.tables.keys() - entries.keys():
            del self.tables[gone]
        there = {str(each.identifier) for each in entries.values()}
        self.problems = {of: told for of, told in self.problems.items() if of[0] in there}
        for table_id, entry in entries.items():
            if table_id not in self.tables:
                try:
                    self.tables[table_id] = self.lake.table(entry.identifier)
                except (LedgerError, OSError) as error:
                    self._failed(str(entry.identifier), "", error)
        return [(str(entries[each].identifier), table) for each, table in self.tables.items()]

    def _went(self, name: str, format_name: str, reached: int, stood: Any) -> None:
        self.runs += 1
        self.commits += reached - max(0, stood.version)
        lacked = reached - stood.version
        self._say(
            {
                "table": name,
                "format": format_name,
                "version": reached,
                "lackedCommits": lacked,
                "lackedMillis": stood.millis,
            },
            f"{name}  {format_name} at version {reached} ({lacked:,} commits, "
            f"{stood.millis / 1000:,.1f} s behind before)",
        )

    def _failed(self, name: str, format_name: str, error: Exception) -> None:
        said = str(getattr(error, "message", error))
        text = f"{name}{f', {format_name}' if format_name else ''}: {said}"
        if self.problems.get((name, format_name)) != text:
            self.screen.notice(text)
        self.problems[name, format_name] = text

    def _say(self, document: dict[str, Any], text: str) -> None:
        if self.screen.output == "json":
            sys.stdout.write(as_json(document) + "\n")
        else:
            self.screen.line(text)
        sys.stdout.flush()

    def summary(self) -> None:
        """Say on stderr what was done in all."""
        failed = f"; {len(self.problems)} could not go on" if self.problems else ""
        self.screen.notice(
            f"followed {len(self.tables):,} tables: files went on {self.runs:,} times by "
            f"{self.commits:,} commits in {self.seconds:,.1f} s{failed}"
        )
