"""Following: debounced background steps that keep projections up to date.

The table option `ledger.follow` names the formats. Every commit requests a step of the table's
follower, of which a process has one per table. The step is debounced: it starts once no commit was
made for `QUIET_S`, or `LATEST_S` after the first commit that it projects, whichever is earlier. It
projects up to `STEP_COMMITS` commits per format; while a format is behind, another step follows
under the same rule. No commit waits for a step.

A projection continues from its position file, so whatever a killed process left undone is done by
the next commit or by `lakeledger follow`. A failure fails no commit: it is logged, and `freshness`
reports it. `Ledger.close` waits until all steps are done, and a process that exits waits up to
`EXIT_WAITS_S` (`ledger.log.commit_queue`); meanwhile steps are not debounced.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, Protocol, Self

from attrs import frozen

from ledger.events import TableEvent
from ledger.log.commit_queue import EXIT_WAITS_S, BackgroundWorker
from ledger.log.request import now_millis
from ledger.log.stream_log import StreamLog
from ledger.log.time_travel import head_state
from ledger.model.errors import LedgerError
from ledger.model.names import Identifier
from ledger.observing.telemetry import warn
from ledger.state.declared_formats import FOLLOW_OPTION, following_format_names
from ledger.state.table import TableState

QUIET_S: Final = 0.25
"""Seconds without a commit of this process to the table after which a step starts."""

LATEST_S: Final = 2.0
"""Seconds after the first commit of a step by which it starts while commits keep coming."""

STEP_COMMITS: Final = 64
"""Number of commits per format, at most, in one step, which holds the projection's lock."""


class FollowedTable(Protocol):
    """The part of a table's handle that following needs."""

    identifier: Identifier
    path: str
    log: StreamLog[TableState, TableEvent]

    @property
    def ledger_url(self) -> str:
        """The root URL of the table's ledger."""

    @property
    def state(self) -> TableState:
        """The newest state."""

    def again(self) -> Self:
        """Return another handle that shares nothing with this one."""


class FilesVersion(Protocol):
    """The version that projected files reflect."""

    @property
    def version(self) -> int:
        """The version that the files reflect; -1 without files."""

    @property
    def newest(self) -> int:
        """The newest version of the log."""

    @property
    def problem(self) -> str | None:
        """Reason why the files do not belong to this log; None if they do."""


class Projection(Protocol):
    """The projected files of one format."""

    def step(self, table: Any, *, commits: int) -> int:
        """Project up to `commits` further commits and return the version that files reflect then.

        The version is beyond that where the format is not declared on the way, or cannot express
        the table.
        """

    def freshness(self, table: Any) -> FilesVersion:
        """Return the version that the files reflect."""


@frozen
class Freshness:
    """Lag of the files of one format behind their log.

    Attributes:
        format: The format's name.
        version: The version that the files reflect; -1 without files.
        newest: The newest version of the log.
        millis: Milliseconds since the first commit that the files lack; 0 if they are up to date.
        problem: Reason why the files could not be read or projected by this process; None if none.
    """

    format: str
    version: int
    newest: int
    millis: int = 0
    problem: str | None = None

    @property
    def behind(self) -> int:
        """Number of versions that the files lack."""
        return max(0, self.newest - self.version)

    def document(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        facts = {
            "format": self.format,
            "version": self.version,
            "newest": self.newest,
            "behind": self.behind,
            "millisBehind": self.millis,
            "problem": self.problem,
        }
        return {key: value for key, value in facts.items() if value is not None}

    def __str__(self) -> str:
        if self.problem is not None:
            return f"{self._reached}; {self.problem}"
        if not self.behind:
            return f"{self._reached}, the newest"
        commits = "commit" if self.behind == 1 else "commits"
        since = f"{self.millis / 1000:,.1f} s"
        return f"{self._reached}, {self.behind:,} {commits} and {since} behind"

    @property
    def _reached(self) -> str:
        return "no version yet" if self.version < 0 else f"version {self.version}"


def find_projection(name: str) -> Projection:
    """Return the projection of a format.

    Raises:
        MissingDependencyError: No installed package has one.
    """
    from ledger.formats import part

    found: Projection = part(name, "kept")
    return found


def freshness(table: FollowedTable) -> list[Freshness]:
    """Return the lag of each format that follows a table."""
    state = table.state
    return [
        format_freshness(table, name, state.version)
        for name in following_format_names(state.schema.options)
    ]


def format_freshness(table: FollowedTable, name: str, newest: int) -> Freshness:
    """Return the lag of the files of one format.

    Args:
        table: The table.
        name: The format's name.
        newest: The newest version of the table.
    """
    follower = _followers.get(_table_key(table))
    problem = None if follower is None else follower.problems.get(name)
    try:
        files = find_projection(name).freshness(table)
        version = files.version
        if files.problem is not None:
            return Freshness(name, version, newest, problem=files.problem)
        if version >= newest:
            return Freshness(name, version, newest)
        (lacking,) = table.log.commits_via_cache(version + 1, version + 1)
        millis = max(0, now_millis() - lacking.commit.time_millis)
        return Freshness(name, version, newest, millis, problem)
    except (LedgerError, OSError) as error:
        return Freshness(name, -1, newest, problem=problem or str(error))


def advance(table: FollowedTable) -> Iterator[tuple[str, int | Exception]]:
    """Take one step with each format that follows a table.

    Yields:
        The format's name with the version that its files reflect, or with the error of its step.
    """
    for name in _following_formats(table):
        yield name, _step_format(table, name)


def _following_formats(table: FollowedTable) -> Sequence[str]:
    """Return the formats that follow a table, by its newest state."""
    table.log.refresh()
    state = head_state(table.log)
    return () if state.dropped else following_format_names(state.schema.options)


def _step_format(table: FollowedTable, name: str) -> int | Exception:
    try:
        return find_projection(name).step(table, commits=STEP_COMMITS)
    except Exception as error:  # noqa: BLE001 - a failure of one format stops no other
        return error


class Follower:
    """Takes debounced steps for one table, in a thread of its own.

    Args:
        table: A handle that nothing else uses.

    Attributes:
        problems: By format, the error of its last step where that failed.
    """

    def __init__(self, table: FollowedTable) -> None:
        self._table = table
        self._worker = BackgroundWorker("lakeledger-follow", self._warn_left_behind)
        self._first_s: float | None = None
        self._last_s = 0.0
        self._waiting: list[None] = []
        self.problems: dict[str, str] = {}

    def request(self) -> None:
        """Request a step for a new commit; return at once."""
        self._last_s = time.monotonic()
        if self._first_s is None:
            self._first_s = self._last_s
        self._worker.ask(self._take_step, self._delay_s)

    @property
    def is_idle(self) -> bool:
        """True when all requested steps are done and none failed."""
        return self._worker.is_quiet and not self.problems

    def wait(self, timeout_s: float) -> bool:
        """Wait until all requested steps are done, without debouncing; return False on timeout."""
        self._waiting.append(None)
        try:
            return self._worker.wait(timeout_s)
        finally:
            self._waiting.pop()

    def _delay_s(self) -> float:
        """Return in how many seconds the next step is due."""
        first_s = self._first_s
        if first_s is None or self._waiting or _exiting.is_set():
            return 0.0
        return min(self._last_s + QUIET_S, first_s + LATEST_S) - time.monotonic()

    def _take_step(self) -> bool:
        """Take a step with each format; return whether another is needed."""
        if self._first_s is None:
            return False
        # First, so that a commit from here on requests another step.
        self._first_s = None
        try:
            if self._is_behind_after_step() and self._first_s is None:
                self._first_s = time.monotonic()
        except Exception as error:  # noqa: BLE001 - logged; it must not end the thread
            _warn_failed(self._table, error)
        return self._first_s is not None

    def _is_behind_after_step(self) -> bool:
        reached = []
        for name, found in advance(self._table):
            self._record_result(name, found)
            if isinstance(found, int):
                reached.append(found)
        newest = head_state(self._table.log).version
        return any(version < newest for version in reached)

    def _warn_left_behind(self) -> None:
        # Without reading freshness: the store that delays the files could delay that as well.
        warn(
            "ledger.follow",
            "files_left_behind",
            table=str(self._table.identifier),
            waited_s=EXIT_WAITS_S,
            advice="the commits are in the log; project them with: lakeledger follow --once",
        )

    def _record_result(self, name: str, found: int | Exception) -> None:
        if isinstance(found, int):
            self.problems.pop(name, None)
            return
        problem = str(getattr(found, "message", found))
        if self.problems.get(name) != problem:
            warn(
                "ledger.follow",
                "format_could_not_follow",
                table=str(self._table.identifier),
                format=name,
                error=problem,
                advice=f"reproduce it with: lakeledger project {name} {self._table.identifier}",
            )
        self.problems[name] = problem


_followers: Final[dict[tuple[str, str], Follower]] = {}
"""The followers of this process, by the URL of the ledger and the path of the table."""

_MOST_FOLLOWERS: Final = 256

_exiting: Final = threading.Event()
"""Set when the process exits: steps are due at once."""


@cache
def _register_exit_flag() -> None:
    """Have `_exiting` set at exit; registered after the exit handler of workers, it runs first."""
    atexit.register(_exiting.set)


def follow(table: FollowedTable) -> None:
    """Request a step for a table's new commit, if formats follow the table."""
    head = table.log.head
    if head is None or not head.state.schema.options.get(FOLLOW_OPTION):
        return
    key = _table_key(table)
    follower = _followers.get(key)
    try:
        if follower is None:
            _drop_idle()
            follower = _followers.setdefault(key, Follower(table.again()))
        follower.request()
        _register_exit_flag()
    except (LedgerError, OSError) as error:
        # The commit is done; a failure to project it is only logged.
        _warn_failed(table, error)


def _warn_failed(table: FollowedTable, error: Exception) -> None:
    warn("ledger.follow", "follow_failed", table=str(table.identifier), error=str(error))


def _drop_idle() -> None:
    """Drop idle followers where there are many; their table's next commit makes a new one."""
    if len(_followers) >= _MOST_FOLLOWERS:
        for key, follower in list(_followers.items()):
            if follower.is_idle:
                _followers.pop(key, None)


def _table_key(table: FollowedTable) -> tuple[str, str]:
    return table.ledger_url, table.path


def wait(ledger_url: str, timeout_s: float) -> bool:
    """Wait until this process has no step left to take in a ledger; return False on timeout."""
    deadline = time.monotonic() + timeout_s
    followers = [found for (url, _), found in list(_followers.items()) if url == ledger_url]
    waited = [follower.wait(deadline - time.monotonic()) for follower in followers]
    return all(waited)
