"""What every materialisation of a table has: a place, a version to reach, a way to be checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from attrs import evolve, frozen

from ledger.evolution.state import TableState
from ledger.log.travel import at_version, head_state
from ledger.model.errors import UnsupportedError
from ledger.table import Table
from projections.outputs import StoreOutputs

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
    """

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    told: str = ""

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
    hints: Iterable[str],
) -> Difference:
    """Compare the files in some folders with what should be there, byte for byte.

    Hints are not compared: readers believe them only where they lead somewhere.
    """
    there = {path: outputs.read(path) for path in wanted if path not in set(hints)}
    return Difference(
        missing=tuple(sorted(path for path, body in there.items() if body is None)),
        changed=tuple(
            sorted(p for p, body in there.items() if body is not None and body != wanted[p])
        ),
        foreign=tuple(
            path for folder in folders for path in outputs.paths(folder) if path not in wanted
        ),
    )


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
