"""Keeping a table's Iceberg files on its store: project, follow, verify, rebuild."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator

from attrs import evolve

from ledger.evolution.state import TableState
from ledger.log.notice import warn
from ledger.log.travel import at_version, head_state
from ledger.model.errors import DamagedLogError, InvalidInputError, NotFoundError
from ledger.table import Table
from projections.iceberg import position as positions
from projections.iceberg.comparison import Compared, cut, expected
from projections.iceberg.names import FOLDER, HINT, RENDERER, Names
from projections.iceberg.position import Position
from projections.iceberg.project import Projection, Wants, no_other
from projections.iceberg.renewal import Renewing, projected
from projections.materialisation import (
    Difference,
    Progress,
    following,
    nobody,
    outputs_of,
    target_state,
    without_position,
)
from projections.outputs import MemoryOutputs

__all__ = ["advance", "expected", "follow", "project", "rebuild", "verify"]

_LOGGER = "projections.iceberg"


def project(
    table: Table,
    *,
    version: int | None = None,
    every: int | None = None,
    on_progress: Progress = nobody,
) -> int:
    """Bring a table's Iceberg files up to its newest version; return the version they stand at.

    Where nothing is new, what readers of the newest snapshot need is looked at, and restored if it
    is lost or damaged. Files that an older renderer made, or that are of the place from which the
    ledger was copied or moved, are made anew.

    Args:
        table: The table.
        version: Instead of that, write the metadata file of this version beside the newest one,
            and return it. Snapshots that expired since are named in it, but not there.
        every: On the way, write the metadata files of every so many versions, too.
        on_progress: Told how many commits of how many were applied.

    Raises:
        DamagedLogError: The log ends before the version that the files stand at.
        NotFoundError: The table does not have that version.
        StoreError: A file that the ledger did not project stands in a place of its own.
        UnsupportedError: Iceberg has no such files.
    """
    if every is not None and every < 1:
        raise InvalidInputError(f"every {every} versions is not possible; give 1 or more")
    if version is not None:
        return _one(table, version, on_progress)
    wants = no_other if every is None else lambda each: each % every == 0
    reached, as_before = _advanced(table, None, wants, on_progress)
    if as_before is not None and not _is_whole(table, as_before):
        warn(_LOGGER, "iceberg_files_restored", table=str(table.identifier), version=reached)
        rebuild(table, on_progress=on_progress)
    return reached


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
    return _advanced(table, version, wants, on_progress)[0]


def _advanced(
    table: Table, version: int | None, wants: Wants, on_progress: Progress
) -> tuple[int, Position | None]:
    """Return the version that files stand at, and their position if nothing was new."""
    store, layout = table.log.store, table.log.layout
    with store.lock(positions.key(layout)):
        start = positions.load(store, layout)
        target = target_state(table, version)
        if start.version >= head_state(table.log).version:
            # Where there is more, the run looks itself at what comes next.
            _refuse_cut(table, start)
        if not start.leads_on(table.location):
            _tell(table, start)
            if target.version < start.version:
                target = target_state(table, start.version)
            return _reached(table, start, target, wants, on_progress), None
        if start.garbage:
            start = _swept(table, start)
        if target.version <= start.version:
            return start.version, start
        return _reached(table, start, target, wants, on_progress), None


def _refuse_cut(table: Table, start: Position) -> None:
    problem = cut(table, start)
    if problem is not None:
        raise DamagedLogError(
            f"{problem}: compare the log with a copy (lakeledger verify), then make the files of "
            f"what it holds: lakeledger project iceberg {table.identifier} --rebuild",
            positions.key(table.log.layout),
        )


def _tell(table: Table, start: Position) -> None:
    facts = {"table": str(table.identifier), "version": start.version}
    if start.renderer != RENDERER:
        warn(_LOGGER, "iceberg_older_renderer_replaced", renderer=start.renderer, **facts)
    else:
        stood = start.location
        warn(_LOGGER, "iceberg_place_replaced", stood_at=stood, now_at=table.location, **facts)


def _is_whole(table: Table, stood: Position) -> bool:
    """Whether all files are sound that a reader of the newest snapshot needs."""
    outputs, state = outputs_of(table), at_version(table.log, stood.version)
    names = Names(state.table_id)
    wanted = {each.path: each.check for each in stood.manifests}
    if stood.list_check:
        wanted[names.manifest_list(state.last_snapshot_id)] = stood.list_check
    wanted |= dict.fromkeys(
        (names.metadata(state.version), names.hadoop(state.version)), stood.check
    )
    found = ((outputs.read(path), check) for path, check in wanted.items())
    return outputs.read(HINT) == b"%d" % stood.version and all(
        body is not None and hashlib.sha256(body).hexdigest() == check for body, check in found
    )


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
    if not start.leads_on(table.location):
        return _renewed(table, start, target, wants, on_progress)
    try:
        return Projection(table, outputs, start, target, wants).run(on_progress)
    except DamagedLogError:
        if start.version < 0:
            raise
        _refuse_cut(table, start)
        # What the run before left is gone or changed; the log has all of it.
        _restore(table, Compared.of(table, start))
        return Projection(table, outputs, Position(), target, wants).run(on_progress)


def _renewed(
    table: Table, start: Position, target: TableState, wants: Wants, on_progress: Progress
) -> Position:
    """Project from the beginning over files of an older renderer or of another place."""
    outputs = outputs_of(table)
    names = Names(target.table_id, start.renderer)
    own = projected(outputs, names) | {names.hadoop(each) for each in start.metadata_versions}
    versions = {names.version_of(path) for path in own}
    renewing = Renewing(outputs.store, outputs.root, own)
    run = Projection(
        table, renewing, Position(), target, lambda each: wants(each) or each in versions
    )
    reached = run.run(on_progress)
    made = projected(outputs, Names(target.table_id))
    gone = (each for each in own - made if each != names.hadoop(target.version))
    return evolve(reached, garbage=tuple(sorted({*reached.garbage, *gone})))


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
    return following(lambda: advance(table), interval_s, sleep)


def verify(table: Table) -> Difference:
    """Compare what stands on the store with what the ledger says, byte for byte.

    Metadata files of earlier versions are compared where they are; nothing has to name them. A
    file in a place that later versions need is changed, unless it is theirs. Where the log was cut
    below the position, that is told as a changed position, and as the log's damage.

    Raises:
        NotFoundError: The files were made by an older renderer, or for another place.
    """
    stood = positions.load(table.log.store, table.log.layout)
    if stood.version < 0:
        # Whose files they are, nobody has to remember: the ledger's own are made again alike.
        return without_position(
            outputs_of(table),
            (FOLDER,),
            positions.key(table.log.layout),
            lambda: expected(table),
            hints=(HINT,),
        )
    if not stood.leads_on(table.location):
        raise NotFoundError(_otherwise(table, stood), kind="OTHER_PROJECTION")
    return Compared.of(table, stood).difference


def _otherwise(table: Table, stood: Position) -> str:
    again = f"make them anew: lakeledger project iceberg {table.identifier}"
    if stood.renderer != RENDERER:
        return f"the Iceberg files of {table.identifier} were made by an older renderer; {again}"
    return (
        f"the Iceberg files of {table.identifier} were made at {stood.location}, and the table is "
        f"at {table.location}: the ledger was copied or moved, and they lead to the other place; "
        f"{again}"
    )


def rebuild(table: Table, *, on_progress: Progress = nobody) -> Difference:
    """Restore lost and damaged files, and take leftovers away; return what was found wrong.

    The files are those of the version that they stood at; of the newest when nobody knows, or when
    the log was cut below it. Others' files in places that the ledger needs are taken away.
    """
    store, layout = table.log.store, table.log.layout
    with store.lock(positions.key(layout)):
        stood = positions.load(store, layout)
        if not stood.leads_on(table.location):
            _tell(table, stood)
            target = target_state(table, None if cut(table, stood) else stood.version)
            reached = _renewed(table, stood, target, no_other, on_progress)
            positions.save(store, layout, reached)
            _swept(table, reached)
            stood = positions.load(store, layout)
        compared = Compared.of(table, stood)
        outputs, names = outputs_of(table), Names(compared.target.table_id)
        # Of commits that are not in the log any more, nothing else tells.
        lost = projected(outputs, names) if cut(table, stood) else frozenset()
        _restore(table, compared, on_progress)
        # From the beginning, as what a run that was killed left behind is found only then.
        reached = Projection(table, outputs, Position(), compared.target).run(nobody)
        if lost:
            gone = lost - projected(outputs, names) - compared.wanted.keys()
            reached = evolve(reached, garbage=tuple(sorted({*reached.garbage, *gone})))
        positions.save(store, layout, reached)
        _swept(table, reached)
    return compared.difference


def _restore(table: Table, compared: Compared, on_progress: Progress = nobody) -> None:
    """Write what is lost or damaged, and take away what stands in the way of later versions."""
    outputs, wanted = outputs_of(table), compared.wanted
    wrong = (*compared.difference.missing, *compared.difference.changed)
    for done, path in enumerate(wrong, 1):
        if path in wanted:
            outputs.store.replace(outputs.key(path), wanted[path])
        elif path.startswith(f"{FOLDER}/"):
            outputs.remove(path)
        on_progress(done, len(wrong))
