"""Following: a table's projected files go on with its commits, while nobody waits for them.

A table says which formats in its option `ledger.follow`. Whoever commits leaves word, and a thread
of the log's own brings the files on; a process that ends waits for it, at most ten seconds. What
several processes would do, one does: projecting takes turns and goes on from where it stands, so
whatever a kill left over, the next commit or `lakeledger follow` does. No failure here is a
commit's: it is warned of, and `freshness` tells it.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, Self

from attrs import frozen

from ledger.events import TableEvent
from ledger.evolution.declared.rules import FOLLOW_OPTION, followed
from ledger.evolution.state import TableState
from ledger.following.pace import Pace
from ledger.log.request import now_millis
from ledger.log.stream_log import StreamLog
from ledger.log.travel import head_state
from ledger.log.worker import EXIT_WAITS_S, Worker
from ledger.model.errors import LedgerError
from ledger.model.identifier import Identifier
from ledger.observing.notices import warn

STEP_COMMITS: Final = 64
"""By so many commits a format's files go on in one go; in between others may, and commits."""


class Followed(Protocol):
    """What is asked of a table's handle."""

    identifier: Identifier
    path: str
    log: StreamLog[TableState, TableEvent]

    @property
    def ledger_url(self) -> str:
        """The root of the ledger that the table is in."""

    @property
    def state(self) -> TableState:
        """The newest state."""

    def again(self) -> Self:
        """Return another handle, which shares nothing with this one."""


class Stands(Protocol):
    """How far files have come."""

    @property
    def version(self) -> int:
        """The version that they stand at; -1 without files."""

    @property
    def newest(self) -> int:
        """The log's newest."""

    @property
    def problem(self) -> str | None:
        """Why they are not files of this log; None where nothing says so."""


class KeptFormat(Protocol):
    """A format's files, kept beside the logs of tables."""

    def step(self, table: Any, *, commits: int) -> int:
        """Bring a table's files on by so many commits, and return the version that they stand at.

        Further where the format is not declared on the way, or has no words for the table.
        """

    def freshness(self, table: Any) -> Stands:
        """Return how far they have come."""


@frozen
class Freshness:
    """How far behind its log a format's files are.

    Attributes:
        format: The format's name.
        version: The version that they stand at; -1 without files.
        newest: The log's newest.
        millis: For how long they lack something; 0 where they lack nothing.
        problem: Why they could not be looked at, or brought on by this process; None: for nothing.
    """

    format: str
    version: int
    newest: int
    millis: int = 0
    problem: str | None = None

    @property
    def behind(self) -> int:
        """How many versions they lack."""
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
            return f"version {self.version}; {self.problem}"
        if not self.behind:
            return f"version {self.version}, the newest"
        commits = "commit" if self.behind == 1 else "commits"
        since = f"{self.millis / 1000:,.1f} s"
        return f"version {self.version}, {self.behind:,} {commits} and {since} behind"


def kept(name: str) -> KeptFormat:
    """Return what keeps a format's files.

    Raises:
        MissingDependencyError: Nothing that is installed does.
    """
    from ledger.formats import part

    found: KeptFormat = part(name, "kept")
    return found


def freshness(table: Followed) -> list[Freshness]:
    """Return how far behind the files of the formats that follow a table are."""
    state = table.state
    return [_freshness(table, each, state.version) for each in followed(state.schema.options)]


def _freshness(table: Followed, name: str, newest: int) -> Freshness:
    follower = _followers.get(_key(table))
    problem = None if follower is None else follower.problems.get(name)
    try:
        stands = kept(name).freshness(table)
        version = stands.version
        if stands.problem is not None:
            return Freshness(name, version, newest, problem=stands.problem)
        if version >= newest:
            return Freshness(name, version, newest)
        (lacking,) = table.log.known_commits(version + 1, version + 1)
        millis = max(0, now_millis() - lacking.commit.time_millis)
        return Freshness(name, version, newest, millis, problem)
    except (LedgerError, OSError) as error:
        return Freshness(name, -1, newest, problem=problem or str(error))


def advance(table: Followed) -> Iterator[tuple[str, int | Exception]]:
    """Bring on the files of all formats that follow a table, each by a step.

    Yields:
        Each format's name, and the version that its files stand at, or why they could not go on.
    """
    for name in _names(table):
        yield name, _brought_on(table, name)


def _names(table: Followed) -> Sequence[str]:
    """Return which formats follow a table, as it is now."""
    table.log.refresh()
    state = head_state(table.log)
    return () if state.dropped else followed(state.schema.options)


def _brought_on(table: Followed, name: str) -> int | Exception:
    try:
        return kept(name).step(table, commits=STEP_COMMITS)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in one, the others go on
        return error


class Follower:
    """Brings on the files of one table, in a thread of its own.

    Args:
        table: A handle that nobody else uses.

    Attributes:
        problems: By a format's name, why its files could not go on at the last attempt.
    """

    def __init__(self, table: Followed) -> None:
        self._table = table
        self._worker = Worker("lakeledger-follow", self._tell_late)
        self._first_s: float | None = None
        self.problems: dict[str, str] = {}

    def ask(self) -> None:
        """Say that there is a new commit; return at once."""
        if self._first_s is None:
            self._first_s = time.monotonic()
        self._worker.ask(self._work)

    @property
    def is_quiet(self) -> bool:
        """Whether all that was asked is done, and nothing is wrong."""
        return self._worker.is_quiet and not self.problems

    def wait(self, timeout_s: float) -> bool:
        """Return once the files stand where the log does, or False after so long."""
        with _pace.hurried():
            return self._worker.wait(timeout_s)

    def _work(self) -> bool:
        first_s = self._first_s
        if first_s is None:
            return False
        try:
            if self._lacks_after_steps(first_s):
                self._first_s = time.monotonic()
        except Exception as error:  # noqa: BLE001 - no thread may end by it, and readers are told
            warn(
                "ledger.follow",
                "follow_failed",
                table=str(self._table.identifier),
                error=str(error),
            )
        return self._first_s is not None

    def _lacks_after_steps(self, first_s: float) -> bool:
        """Bring each format on by a step; return whether one of them lacks more."""
        with _pace.step(first_s):
            self._first_s = None
            names = _names(self._table)
        reached = []
        for name in names:
            with _pace.step(first_s):
                found = _brought_on(self._table, name)
            self._note(name, found)
            if isinstance(found, int):
                reached.append(found)
        newest = head_state(self._table.log).version
        return any(each < newest for each in reached)

    def _tell_late(self) -> None:
        # Whatever holds up the files may hold up a look at them, too: nothing is asked here.
        warn(
            "ledger.follow",
            "files_left_behind",
            table=str(self._table.identifier),
            waited_s=EXIT_WAITS_S,
            advice="the commits have landed; bring their files on with: lakeledger follow --once",
        )

    def _note(self, name: str, reached: int | Exception) -> None:
        if isinstance(reached, int):
            self.problems.pop(name, None)
            return
        said = str(getattr(reached, "message", reached))
        if self.problems.get(name) != said:
            warn(
                "ledger.follow",
                "format_could_not_follow",
                table=str(self._table.identifier),
                format=name,
                error=said,
                advice=f"look at it with: lakeledger project {name} {self._table.identifier}",
            )
        self.problems[name] = said


_followers: Final[dict[tuple[str, str], Follower]] = {}
"""Of this process, by the ledger and the table's path."""

_MOST_KEPT: Final = 256
_pace: Final = Pace()
_promised: Final[list[bool]] = []


def committing() -> AbstractContextManager[None]:
    """Say that a table gets a commit inside, so that files give way to it, whosever they are."""
    return _pace.committing()


def follow(table: Followed) -> None:
    """Leave word that a table has a new commit, if formats follow it."""
    head = table.log.head
    if head is None or not head.state.schema.options.get(FOLLOW_OPTION):
        return
    key = _key(table)
    found = _followers.get(key)
    try:
        if found is None:
            _forget_quiet()
            found = _followers.setdefault(key, Follower(table.again()))
        found.ask()
    except (LedgerError, OSError) as error:
        # The commit has landed, whatever comes of files.
        warn("ledger.follow", "follow_failed", table=str(table.identifier), error=str(error))
    if not _promised:
        # After the worker's promise, so that this comes before it.
        _promised.append(True)
        atexit.register(_hurry)


def _forget_quiet() -> None:
    """Let go of tables whose files are there, where there are many; the next commit begins anew."""
    if len(_followers) >= _MOST_KEPT:
        for key, each in list(_followers.items()):
            if each.is_quiet:
                _followers.pop(key, None)


def _key(table: Followed) -> tuple[str, str]:
    return table.ledger_url, table.path


def _hurry() -> None:
    """Let nobody linger who holds up the end of the process."""
    _pace.hurry()


def wait(ledger_url: str, timeout_s: float) -> bool:
    """Return once all files of a ledger that this process brings on are there, or False."""
    deadline = time.monotonic() + timeout_s
    mine = [each for (url, _), each in list(_followers.items()) if url == ledger_url]
    waited = [each.wait(deadline - time.monotonic()) for each in mine]
    return all(waited)
