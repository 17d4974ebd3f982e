"""Keeping a table's Paimon files on its store: project, follow, verify, rebuild."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count, takewhile

from attrs import evolve

from ledger.evolution.state import TableState
from ledger.log.travel import at_version
from ledger.model.errors import DamagedLogError, InvalidInputError
from ledger.table import Table
from projections.materialisation import (
    Difference,
    Progress,
    difference,
    following,
    misleading,
    nobody,
    outputs_of,
    target_state,
    without_position,
)
from projections.outputs import MemoryOutputs
from projections.paimon import position as positions
from projections.paimon.half_runs import Found, sorted_out
from projections.paimon.names import Names
from projections.paimon.paths import EARLIEST, FOLDERS, LATEST, manifest_path, set_aside_path
from projections.paimon.position import Position
from projections.paimon.project import Projection

_HINTS = dict.fromkeys((EARLIEST, LATEST), "snapshot/snapshot-{}")


def project(table: Table, *, version: int | None = None, on_progress: Progress = nobody) -> int:
    """Bring a table's Paimon files up to a version; return the version they stand at.

    Where nothing is new, the files that stand are compared with the ledger, and what is lost or
    damaged is made again; that reads them all. Files of an older version of this software are made
    anew.

    Args:
        table: The table.
        version: None for the newest. One before the position that stands is refused.
        on_progress: Told how many commits of how many were applied.

    Raises:
        DamagedLogError: The files stand at a version that the log does not have any more.
        InvalidInputError: The files stand at a later version.
        StoreError: A file that the ledger did not project stands in a place of its own.
        UnsupportedError: Paimon has no such files.
    """
    with table.log.store.lock(positions.key(table.log.layout)):
        start, newest = _standing(table)
        target = newest if version is None else at_version(table.log, version)
        if _advanced(table, start, target, on_progress):
            return target.version
        _restored(table, expected(table, version=target.version), on_progress)
        return target.version


def follow(
    table: Table, *, interval_s: float = 1.0, sleep: Callable[[float], None] = time.sleep
) -> Iterator[int]:
    """Project whenever something new was committed; yield each version reached, for ever."""
    return following(lambda: _followed(table), interval_s, sleep)


def _followed(table: Table) -> int:
    with table.log.store.lock(positions.key(table.log.layout)):
        start, newest = _standing(table)
        _advanced(table, start, newest, nobody)
        return newest.version


def _standing(table: Table) -> tuple[Position, TableState]:
    """Return where the files stand, and the newest state.

    Raises:
        DamagedLogError: The log ends before.
    """
    position = positions.load(table.log.store, table.log.layout)
    newest = target_state(table, None)
    if position.version > newest.version:
        raise DamagedLogError(
            f"the Paimon files of {table.identifier} stand at version {position.version}, and its "
            f"log ends at version {newest.version}: it was cut. Restore the log from a backup, or "
            "rebuild the files from what is left of it",
            table.log.layout.commit(newest.version + 1),
        )
    return position, newest


def _advanced(table: Table, start: Position, target: TableState, on_progress: Progress) -> bool:
    """Bring the files up to a state; return whether there was anything to bring."""
    if target.version < start.version:
        raise InvalidInputError(
            f"the Paimon files of {table.identifier} stand at version {start.version}, after "
            f"{target.version}; they only go forward"
        )
    if start.is_older:
        _renew(table, start, on_progress)
    elif target.version == start.version:
        return False
    _reach(table, start, target, on_progress)
    return True


def _renew(table: Table, older: Position, on_progress: Progress) -> None:
    """Make files that were made by an older rule as they are made now, where they stand."""
    _restored(table, expected(table, version=older.version), on_progress)
    _take_away_older(table, older)


def _take_away_older(table: Table, older: Position) -> None:
    """Take away what only the first rule made: lists of the files that were live at a rollback."""
    names, outputs = Names(table.state.table_id), outputs_of(table)
    for rollback, _ in older.rollbacks:
        parts = (manifest_path(names.older_live(rollback, part)) for part in count())
        for path in takewhile(lambda path: outputs.read(path) is not None, parts):
            outputs.remove(path)


def _reach(table: Table, start: Position, target: TableState, on_progress: Progress) -> None:
    """Project until nobody else did so meanwhile, which only a store that cannot lock allows.

    Whoever was behind may have put back what the other had taken away. Between the last look and
    the save nobody notices; that is for `rebuild`.
    """
    store, layout = table.log.store, table.log.layout
    met = start
    while True:
        begin = Position() if start.is_older else _uncorrected(start, target)
        reached = Projection(table, outputs_of(table), begin, target).run(on_progress)
        found = positions.load(store, layout)
        if found == met:
            positions.save(store, layout, reached)
            return
        met = found
        start = min(start, found, key=_version)
        if found.version > target.version:
            target = target_state(table, found.version)


def _uncorrected(start: Position, target: TableState) -> Position:
    """Return where to begin: a clock that was corrected since changes what stands there already."""
    corrected = any(each.version > start.version for each in target.corrections)
    return Position() if corrected else start


def _version(position: Position) -> int:
    return position.version


def expected(table: Table, *, version: int | None = None) -> dict[str, bytes]:
    """Return every file that a table's projection has at a version, by path below its location."""
    outputs = MemoryOutputs()
    Projection(table, outputs, Position(), target_state(table, version)).run(nobody)
    return outputs.files


def verify(table: Table) -> Difference:
    """Compare what stands on the store with what the ledger says, byte for byte.

    What a run that was killed left or took away already is as it should be. A file of somebody
    else's in a place that is or will be the ledger's is told as changed. A hint may be missing, and
    may lead further than the files that stand.

    Raises:
        DamagedLogError: The files stand at a version that the log does not have any more.
    """
    position, newest = _standing(table)
    key = positions.key(table.log.layout)
    if position.version < 0:
        # Whose files they are, nobody has to remember: the ledger's own are made again alike.
        return without_position(
            outputs_of(table), FOLDERS, key, lambda: expected(table), hints=_HINTS.keys()
        )
    found = _found(table, position.version, newest).difference
    if position.is_older and position.rollbacks and not found.is_empty:
        told = "made by an older version of lakeledger, which had other files after a rollback"
        return Difference(changed=(key,), foreign=found.foreign, told=told)
    return found


def _found(table: Table, version: int, newest: TableState) -> Found:
    outputs, wanted = outputs_of(table), expected(table, version=version)
    there = difference(outputs, wanted, folders=FOLDERS, hints=_HINTS.keys())
    told = misleading(outputs, wanted, _HINTS)
    there = evolve(there, changed=tuple(sorted((*there.changed, *told))))
    return sorted_out(table, outputs, there, target_state(table, version), newest)


def rebuild(table: Table, *, on_progress: Progress = nobody) -> Difference:
    """Make all files of the newest version again; return what was found wrong.

    Lost and damaged files are restored, and leftovers taken away. A file of somebody else's that
    stands in a place of the ledger's is set aside under another name.
    """
    store, layout = table.log.store, table.log.layout
    with store.lock(positions.key(layout)):
        position, newest = positions.load(store, layout), target_state(table, None)
        stood = position.version if 0 <= position.version <= newest.version else newest.version
        found = _found(table, stood, newest)
        outputs = outputs_of(table)
        for path in found.in_the_way:
            body = outputs.read(path)
            if body is not None:
                outputs.put(set_aside_path(path, body), body)
                outputs.remove(path)
        _restored(table, expected(table, version=newest.version), on_progress)
        # From the beginning, as what a run that was killed left behind is found only then.
        reached = Projection(table, outputs, Position(), newest).run(nobody)
        if position.is_older:
            _take_away_older(table, position)
        positions.save(store, layout, reached)
    return found.difference


def _restored(table: Table, wanted: Mapping[str, bytes], on_progress: Progress) -> None:
    """Write what is lost or other than it should be; whatever stands there is the ledger's own."""
    outputs = outputs_of(table)
    wrong = [path for path, body in wanted.items() if outputs.read(path) != body]
    for done, path in enumerate(wrong, 1):
        outputs.point(path, wanted[path])
        on_progress(done, len(wrong))
