"""What every materialisation of a table has: a place, a version to reach, a way to be checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from attrs import evolve, frozen

from ledger.evolution.state import TableState
from ledger.log.travel import at_version, head_state
from ledger.model.errors import DamagedLogError, UnsupportedError
from ledger.table import Table
from projections.outputs import StoreOutputs

_MOST_DIGITS = 20

Progress = Callable[[int, int], None]
"""Told how many things of how many are done."""


@frozen
class Difference:
    """Where the files on a store are not what the ledger says.

    Attributes:
        missing: Paths of files that should be there.
        changed: Paths of files that are other bytes.
        foreign: Paths of files in the format's folders that the ledger did not project.
        told: What else there is to say, as the rest of a sentence about the files.
        damage: The error that the log is not the one any more that the files were made of.
    """

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    told: str = ""
    damage: DamagedLogError | None = None

    @property
    def is_empty(self) -> bool:
        """Whether everything is as it should be; foreign files do no harm."""
        return not self.missing and not self.changed

    def without(self, known: Collection[str]) -> Difference:
        """Return this difference with some files taken for ours."""
        return evolve(self, foreign=tuple(each for each in self.foreign if each not in known))


def nobody(_done: int, _of: int) -> None:
    """Tell nobody."""


def outputs_of(table: Table) -> StoreOutputs:
    """Return where a table's files are."""
    return StoreOutputs(table.log.store, table.log.layout.root.removesuffix("_ledger").rstrip("/"))


def target_state(table: Table, version: int | None) -> TableState:
    """Return the state to project: at a version, or the newest.

    Raises:
        NotFoundError: The table does not have that version.
    """
    table.log.refresh()
    return head_state(table.log) if version is None else at_version(table.log, version)


def refuse_beyond(table: Table, version: int, key: str) -> None:
    """Check that the log has the version that files stand at.

    Args:
        table: Theirs.
        version: The one that a position states, read before the log is.
        key: The position's.

    Raises:
        DamagedLogError: The log ends before it: its newest commits are gone.
    """
    newest = target_state(table, None).version
    if version > newest:
        missing = table.log.layout.commit(newest + 1)
        raise DamagedLogError(
            f"{missing} is missing: the log ends at version {newest}, and {key} was made from "
            f"version {version}. Restore the newest commits from a backup",
            missing,
        )


def following(
    project: Callable[[], int], interval_s: float, sleep: Callable[[float], None] = time.sleep
) -> Iterator[int]:
    """Project whenever something new was committed; yield each version reached, for ever."""
    reached = -1
    while True:
        newest = project()
        if newest != reached:
            reached = newest
            yield reached
        sleep(interval_s)


def difference(
    outputs: StoreOutputs,
    wanted: Mapping[str, bytes],
    *,
    folders: Iterable[str],
    hints: Collection[str],
) -> Difference:
    """Compare the files in some folders with what should be there, byte for byte.

    Hints are not compared; see `misleading`.
    """
    there = {path: outputs.read(path) for path in wanted if path not in hints}
    changed = (p for p, body in there.items() if body is not None and body != wanted[p])
    return Difference(
        missing=tuple(sorted(path for path, body in there.items() if body is None)),
        changed=tuple(sorted(changed)),
        foreign=tuple(
            path for folder in folders for path in outputs.paths(folder) if path not in wanted
        ),
    )


def misleading(
    outputs: StoreOutputs, wanted: Mapping[str, bytes], hints: Mapping[str, str]
) -> Iterator[str]:
    """Yield the hints that lead neither where they should nor further.

    One may be missing, and may lead to what somebody has projected since.

    Args:
        outputs: Where files are.
        wanted: What should be there, by path.
        hints: The file that each leads to, as a text to put the hint's number into.
    """
    for path, to in hints.items():
        body = outputs.read(path) if path in wanted else None
        if body not in {None, wanted.get(path)} and not _leads_further(outputs, wanted, to, body):
            yield path


def _leads_further(
    outputs: StoreOutputs, wanted: Mapping[str, bytes], to: str, hint: bytes
) -> bool:
    """Whether a hint leads to a file that is there, and is none of those that are wanted."""
    if not hint.isdigit() or len(hint) > _MOST_DIGITS or hint != b"%d" % int(hint):
        return False
    path = to.format(int(hint))
    return path not in wanted and outputs.read(path) is not None


def without_position(
    outputs: StoreOutputs,
    folders: Iterable[str],
    key: str,
    expected: Callable[[], Mapping[str, bytes]],
    *,
    hints: Collection[str] = (),
) -> Difference:
    """Return what is wrong where no position stands: nothing, or that one should.

    One should where a file is the ledger's own. A hint is a number that anybody may have written.

    Args:
        outputs: Where files are.
        folders: The format's.
        key: Of the position.
        expected: Makes the files that the newest version has.
        hints: The format's.
    """
    there = [path for folder in folders for path in outputs.paths(folder)]
    if not there:
        return Difference()
    try:
        wanted = expected()
    except UnsupportedError:
        # What cannot be projected, nobody projected.
        return Difference(foreign=tuple(there))
    telling = wanted.keys() - set(hints)
    ours = any(path in telling and outputs.read(path) == wanted[path] for path in there)
    return Difference(missing=(key,) if ours else (), foreign=() if ours else tuple(there))
