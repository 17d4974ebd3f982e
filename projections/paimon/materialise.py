"""Keeping a table's Paimon files on its store: project, follow, verify, rebuild."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from ledger.evolution.state import TableState
from ledger.model.errors import InvalidInputError
from ledger.table import Table
from projections.materialisation import (
    Difference,
    Progress,
    difference,
    following,
    nobody,
    outputs_of,
    refuse_beyond,
    target_state,
    without_position,
)
from projections.outputs import MemoryOutputs, StoreOutputs
from projections.paimon import position as positions
from projections.paimon.paths import EARLIEST, FOLDERS, LATEST
from projections.paimon.position import Position
from projections.paimon.project import Projection

_HINTS = dict.fromkeys((EARLIEST, LATEST), "snapshot/snapshot-{}")


def project(table: Table, *, version: int | None = None, on_progress: Progress = nobody) -> int:
    """Bring a table's Paimon files up to a version; return the version they stand at.

    Args:
        table: The table.
        version: None for the newest. One before the position that stands is refused.
        on_progress: Told how many commits of how many were applied.

    Raises:
        InvalidInputError: The files stand at a later version.
        StoreError: A file that the ledger did not project stands in a place of its own.
        UnsupportedError: Paimon has no such files.
    """
    store, layout = table.log.store, table.log.layout
    with store.lock(positions.key(layout)):
        start = positions.load(store, layout)
        target = target_state(table, version)
        if target.version < start.version:
            raise InvalidInputError(
                f"the Paimon files of {table.identifier} stand at version {start.version}, after "
                f"{target.version}; they only go forward"
            )
        if target.version == start.version:
            return target.version
        return _reached(table, start, target, on_progress)


def _reached(table: Table, start: Position, target: TableState, on_progress: Progress) -> int:
    """Project until nobody else did so meanwhile, which only a store that cannot lock allows.

    Whoever was behind may have put back what the other had taken away. Between the last look and
    the save nobody notices; that is for `rebuild`.
    """
    store, layout = table.log.store, table.log.layout
    met = start
    while True:
        reached = Projection(table, outputs_of(table), start, target).run(on_progress)
        found = positions.load(store, layout)
        if found == met:
            positions.save(store, layout, reached)
            return target.version
        met = found
        start = min(start, found, key=_version)
        if found.version > target.version:
            target = target_state(table, found.version)


def _version(position: Position) -> int:
    return position.version


def follow(
    table: Table, *, interval_s: float = 1.0, sleep: Callable[[float], None] = time.sleep
) -> Iterator[int]:
    """Project whenever something new was committed; yield each version reached, for ever."""
    return following(lambda: project(table), interval_s, sleep)


def expected(table: Table, *, version: int | None = None) -> dict[str, bytes]:
    """Return every file that a table's projection has at a version, by path below its location."""
    outputs = MemoryOutputs()
    Projection(table, outputs, Position(), target_state(table, version)).run(nobody)
    return outputs.files


def verify(table: Table) -> Difference:
    """Compare what stands on the store with what the ledger says, byte for byte.

    Raises:
        DamagedLogError: The files stand at a version that the log does not have.
    """
    version = positions.load(table.log.store, table.log.layout).version
    if version < 0:
        # Whose files they are, nobody has to remember: the ledger's own are made again alike.
        return without_position(
            outputs_of(table),
            FOLDERS,
            positions.key(table.log.layout),
            lambda: expected(table),
            hints=_HINTS,
        )
    refuse_beyond(table, version, positions.key(table.log.layout))
    return _difference(outputs_of(table), expected(table, version=version))


def _difference(outputs: StoreOutputs, wanted: Mapping[str, bytes]) -> Difference:
    return difference(outputs, wanted, folders=FOLDERS, hints=_HINTS)


def rebuild(table: Table, *, on_progress: Progress = nobody) -> Difference:
    """Restore lost and damaged files, and take leftovers away; return what was found wrong.

    The files are those of the version that they stood at; of the newest when nobody knows.
    """
    store, layout = table.log.store, table.log.layout
    with store.lock(positions.key(layout)):
        stood = positions.load(store, layout).version
        target = target_state(table, None if stood < 0 else stood)
        wanted = expected(table, version=target.version)
        outputs = outputs_of(table)
        found = _difference(outputs, wanted)
        wrong = (*found.missing, *found.changed)
        for done, path in enumerate(wrong, 1):
            outputs.store.replace(outputs.key(path), wanted[path])
            on_progress(done, len(wrong))
        # From the beginning, as what a run that was killed left behind is found only then.
        reached = Projection(table, outputs, Position(), target).run(nobody)
        positions.save(store, layout, reached)
    return found
