"""Keeping a table's Iceberg files on its store: project, follow, verify, rebuild."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ledger.evolution.state import TableState
from ledger.model.errors import DamagedLogError, InvalidInputError
from ledger.table import Table
from projections.iceberg import position as positions
from projections.iceberg.names import FOLDER, HINT, Names
from projections.iceberg.position import Position
from projections.iceberg.project import Projection, no_other
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
from projections.outputs import MemoryOutputs

_HINTS = {HINT: f"{FOLDER}/v{{}}.metadata.json"}

Wants = Callable[[int], bool]
"""Which versions get a metadata file besides the newest."""


def project(
    table: Table,
    *,
    version: int | None = None,
    every: int | None = None,
    on_progress: Progress = nobody,
) -> int:
    """Bring a table's Iceberg files up to its newest version; return the version they stand at.

    Args:
        table: The table.
        version: Instead of that, write the metadata file of this version beside the newest one,
            and return it. Snapshots that expired since are named in it, but not there.
        every: On the way, write the metadata files of every so many versions, too.
        on_progress: Told how many commits of how many were applied.

    Raises:
        NotFoundError: The table does not have that version.
        StoreError: A file that the ledger did not project stands in a place of its own.
        UnsupportedError: Iceberg has no such files.
    """
    if every is not None and every < 1:
        raise InvalidInputError(f"every {every} versions is not possible; give 1 or more")
    if version is not None:
        return _one(table, version, on_progress)
    wants = no_other if every is None else lambda each: each % every == 0
    return advance(table, wants=wants, on_progress=on_progress)


def advance(
    table: Table,
    *,
    version: int | None = None,
    wants: Wants = no_other,
    on_progress: Progress = nobody,
) -> int:
    """Bring the files up to a version, the newest if None; return the version they stand at.

    Files that stand at a later version stay as they are.
    """
    store, layout = table.log.store, table.log.layout
    with store.lock(positions.key(layout)):
        start = positions.load(store, layout)
        target = target_state(table, version)
        if start.garbage:
            start = _swept(table, start)
        if target.version <= start.version:
            return start.version
        return _reached(table, start, target, wants, on_progress)


def _reached(
    table: Table, start: Position, target: TableState, wants: Wants, on_progress: Progress
) -> int:
    """Project until nobody else did so meanwhile, which only a store that cannot lock allows.

    Whoever was behind may have put back what the other had taken away. Between the last look and
    the save nobody notices; that is for `rebuild`.
    """
    store, layout = table.log.store, table.log.layout
    met = start
    while True:
        reached = _run(table, start, target, wants, on_progress)
        found = positions.load(store, layout)
        if found == met:
            # Before anything is taken away: the position until now may still need it.
            positions.save(store, layout, reached)
            _swept(table, reached)
            return target.version
        met = found
        start = min(start, found, key=lambda each: each.version)
        if found.version > target.version:
            target = target_state(table, found.version)


def _run(
    table: Table, start: Position, target: TableState, wants: Wants, on_progress: Progress
) -> Position:
    outputs = outputs_of(table)
    try:
        return Projection(table, outputs, start, target, wants).run(on_progress)
    except DamagedLogError:
        if start.version < 0:
            raise
        # What the run before left is gone or changed; the log has all of it.
        return Projection(table, outputs, Position(), target, wants).run(on_progress)


def _swept(table: Table, position: Position) -> Position:
    """Take away what nothing names any more, and forget it."""
    if not position.garbage:
        return position
    outputs = outputs_of(table)
    for path in position.garbage:
        outputs.remove(path)
    clean = position.without_garbage()
    positions.save(table.log.store, table.log.layout, clean)
    return clean


def _one(table: Table, version: int, on_progress: Progress) -> int:
    """Write one version's metadata file, and what it names if the files are not so far yet."""
    store, layout = table.log.store, table.log.layout
    with store.lock(positions.key(layout)):
        stands = positions.load(store, layout).version
        made, target = MemoryOutputs(), target_state(table, version)
        Projection(table, made, Position(), target).render(on_progress)
        metadata = Names(target.table_id).metadata(version)
        outputs = outputs_of(table)
        for path, body in made.files.items():
            if path == metadata or version > stands:
                outputs.put(path, body)
    return version


def follow(
    table: Table, *, interval_s: float = 1.0, sleep: Callable[[float], None] = time.sleep
) -> Iterator[int]:
    """Project whenever something new was committed; yield each version reached, for ever."""
    return following(lambda: project(table), interval_s, sleep)


def expected(
    table: Table, *, version: int | None = None, wants: Wants = no_other
) -> dict[str, bytes]:
    """Return every file that a table's projection has at a version, by path below its location."""
    outputs = MemoryOutputs()
    Projection(table, outputs, Position(), target_state(table, version), wants).run(nobody)
    return outputs.files


def verify(table: Table) -> Difference:
    """Compare what stands on the store with what the ledger says, byte for byte.

    Metadata files of earlier versions are compared where they are; nothing has to name them.

    Raises:
        DamagedLogError: The files stand at a version that the log does not have.
    """
    version = positions.load(table.log.store, table.log.layout).version
    if version < 0:
        # Whose files they are, nobody has to remember: the ledger's own are made again alike.
        return without_position(
            outputs_of(table),
            (FOLDER,),
            positions.key(table.log.layout),
            lambda: expected(table),
            hints=_HINTS,
        )
    refuse_beyond(table, version, positions.key(table.log.layout))
    return _compared(table, target_state(table, version))[0]


def _compared(table: Table, target: TableState) -> tuple[Difference, dict[str, bytes]]:
    """Return what is wrong, and the files that should be there."""
    outputs, names = outputs_of(table), Names(target.table_id)
    there = list(outputs.paths(FOLDER))
    versions = {names.version_of(path) for path in there}
    older = {v: names.hadoop(v) for v in range(target.version) if names.hadoop(v) in set(there)}
    wanted = expected(
        table, version=target.version, wants=lambda each: each in versions or each in older
    )
    for each, path in older.items():
        wanted[path] = wanted[names.metadata(each)]
        if each not in versions:
            del wanted[names.metadata(each)]
    found = difference(outputs, wanted, folders=(FOLDER,), hints=_HINTS)
    later = [v for v in versions if v is not None and v > target.version]
    ours = {path for v in later for path in expected(table, version=v)}
    ours.update(each.path for each in target_state(table, None).partition_statistics.values())
    return found.without(ours), wanted


def rebuild(table: Table, *, on_progress: Progress = nobody) -> Difference:
    """Restore lost and damaged files, and take leftovers away; return what was found wrong.

    The files are those of the version that they stood at; of the newest when nobody knows.
    """
    store, layout = table.log.store, table.log.layout
    with store.lock(positions.key(layout)):
        stood = positions.load(store, layout).version
        target = target_state(table, None if stood < 0 else stood)
        found, wanted = _compared(table, target)
        outputs = outputs_of(table)
        wrong = (*found.missing, *found.changed)
        for done, path in enumerate(wrong, 1):
            outputs.store.replace(outputs.key(path), wanted[path])
            on_progress(done, len(wrong))
        # From the beginning, as what a run that was killed left behind is found only then.
        reached = Projection(table, outputs, Position(), target).run(nobody)
        positions.save(store, layout, reached)
        _swept(table, reached)
    return found
