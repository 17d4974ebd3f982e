"""Command `follow`: keeps the projections of many tables up to date."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

from attrs import define, field
from cyclopts import Parameter

from ledger.cli.exits import Stop, stop_flag_between_rounds
from ledger.cli.options import LedgerFlags, tables_of
from ledger.cli.output import Screen, as_json
from ledger.following.files import advance
from ledger.ledger import Ledger
from ledger.model.errors import LedgerError, StoreError
from ledger.table import Table
from ledger.table_handle import handle_of


def follow(
    *names: Annotated[
        str,
        Parameter(help="DATABASE.TABLE; default: all tables with the option.", completer=tables_of),
    ],
    once: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Project all commits once and exit; exits with 8 if a projection fails, 130 if "
            "interrupted.",
        ),
    ] = False,
    interval: Annotated[float, Parameter(help="Seconds between checks for new commits.")] = 1.0,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Keep the projections that the table option ledger.follow names up to date.

    One process is enough for a whole ledger, including tables created later; several processes
    share the work. Tables take turns, each format by at most 64 commits, so that no table waits for
    the backlog of another. Stops cleanly on Ctrl-C or SIGTERM. Each line reports an updated
    projection and its lag before, in commits and time. A failure is reported once and retried.

    Example:
        lakeledger follow --once
    """
    following = _FollowRounds(place.open(), place.screen, names)
    with stop_flag_between_rounds() as stop:
        if once:
            is_done = following.advance_to_newest(stop)
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
class _FollowRounds:
    """Rounds over the tables of a ledger.

    Attributes:
        lake: Ledger to follow.
        screen: Output of the command.
        names: Names of the tables to follow; empty for all.
        tables: Open tables by table id.
        problems: Current failures by table and format.
        runs: Number of updates of projections.
        commits: Number of projected commits, summed over formats.
        seconds: Time spent on updates.
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
        """Advance every table by a step; return whether more is left and no stop is requested."""
        lacking = False
        for name, table in self._tables_to_follow():
            if stop.asked:
                return False
            lacking = self._advance_formats(name, table) or lacking
        return lacking and not stop.asked

    def advance_to_newest(self, stop: Stop) -> bool:
        """Advance every table to the version that is its newest at its turn.

        Returns:
            False if a stop was requested.
        """
        for name, table in self._tables_to_follow():
            newest = table.state.version
            while not stop.asked and self._advance_formats(name, table, newest):
                pass
            if stop.asked:
                return False
        return True

    def _advance_formats(self, name: str, table: Table, newest: int | None = None) -> bool:
        """Advance each format of a table by a step; return whether more is left.

        Args:
            name: Full name of the table.
            table: Table to advance.
            newest: Version to reach; None for the newest.
        """
        try:
            before = {each.format: each for each in table.freshness()}
            if all(not each.behind and each.problem is None for each in before.values()):
                return False
            return self._advance_and_check_lag(name, table, before, newest)
        except (LedgerError, OSError) as error:
            self._report_failure(name, "", error)
            return False

    def _advance_and_check_lag(
        self, name: str, table: Table, before: dict[str, Any], newest: int | None
    ) -> bool:
        begun = time.monotonic()
        lacking = False
        for format_name, reached in advance(handle_of(table)):
            if isinstance(reached, Exception):
                self._report_failure(name, format_name, reached)
                continue
            self.problems.pop((name, format_name), None)
            earlier = before.get(format_name)
            if earlier is not None and reached > earlier.version:
                self._report_advance(name, format_name, reached, earlier)
                lacking = lacking or reached < (earlier.newest if newest is None else newest)
        self.seconds += time.monotonic() - begun
        return lacking

    def _tables_to_follow(self) -> list[tuple[str, Table]]:
        """Return the tables to follow; forget tables that no longer exist."""
        entries = {
            each.table_id: each
            for each in self.lake.state.tables.values()
            if not self.names or str(each.identifier) in self.names
        }
        for gone in self.tables.keys() - entries.keys():
            del self.tables[gone]
        there = {str(each.identifier) for each in entries.values()}
        self.problems = {of: sentence for of, sentence in self.problems.items() if of[0] in there}
        for table_id, entry in entries.items():
            if table_id not in self.tables:
                try:
                    self.tables[table_id] = self.lake.table(entry.identifier)
                except (LedgerError, OSError) as error:
                    self._report_failure(str(entry.identifier), "", error)
        return [(str(entries[each].identifier), table) for each, table in self.tables.items()]

    def _report_advance(self, name: str, format_name: str, reached: int, earlier: Any) -> None:
        self.runs += 1
        self.commits += reached - max(0, earlier.version)
        lacked = reached - earlier.version
        self._print_report(
            {
                "table": name,
                "format": format_name,
                "version": reached,
                "lackedCommits": lacked,
                "lackedMillis": earlier.millis,
            },
            f"{name}  {format_name} at version {reached} ({lacked:,} commits, "
            f"{earlier.millis / 1000:,.1f} s behind before)",
        )

    def _report_failure(self, name: str, format_name: str, error: Exception) -> None:
        said = str(getattr(error, "message", error))
        text = f"{name}{f', {format_name}' if format_name else ''}: {said}"
        if self.problems.get((name, format_name)) != text:
            self.screen.notice(text)
        self.problems[name, format_name] = text

    def _print_report(self, document: dict[str, Any], text: str) -> None:
        if self.screen.output == "json":
            sys.stdout.write(as_json(document) + "\n")
        else:
            self.screen.line(text)
        sys.stdout.flush()

    def summary(self) -> None:
        """Print a summary on stderr."""
        failed = f"; {len(self.problems)} failed" if self.problems else ""
        self.screen.notice(
            f"followed {len(self.tables):,} tables: {self.runs:,} updates with {self.commits:,} "
            f"commits in {self.seconds:,.1f} s{failed}"
        )
