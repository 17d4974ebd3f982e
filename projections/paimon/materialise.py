"""Materialisation of a table's Paimon files.

A killed run may have written files of later versions and deleted older ones; its position is the
one before it began. A foreign file may be in the place of the ledger's next one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import count, takewhile

from attrs import evolve, frozen

import projections.paimon.project as positions
from ledger.model.errors import UnsupportedError
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.materialising import (
    ComparisonResult,
    Difference,
    FileFormat,
    Materialisation,
    Progress,
    RebuildReason,
    difference,
    files_of,
    misleading_hints,
    outputs_of,
    target_state,
)
from projections.outputs import Outputs, PositionFile, StoreOutputs
from projections.paimon.paths import (
    EARLIEST,
    FOLDERS,
    LATEST,
    PaimonFileNames,
    is_ahead,
    manifest_path,
    quarantine_path,
)
from projections.paimon.project import PaimonPosition, PaimonProjection
from projections.paimon.served_files import ServedFolder
from projections.paimon.served_origin import is_engine_table

_HINTS = dict.fromkeys((EARLIEST, LATEST), "snapshot/snapshot-{}")


@frozen
class _OverwritingOutputs(StoreOutputs):
    """A table's folder, where the ledger's own manifests may be replaced."""

    def put(self, path: str, body: bytes) -> None:
        """Write a file, and replace a manifest in its place.

        A manifest's name is derived from the table's id, so that it is the ledger's own.

        Raises:
            StoreError: A foreign file exists there.
        """
        if path.startswith(manifest_path("")) and self.read(path) not in (None, body):
            self.store.replace(self.key(path), body)
        else:
            super().put(path, body)


@frozen
class PaimonFiles:
    """The files of a Paimon table; see `projections.materialising.FileFormat`."""

    name: str = "paimon"
    title: str = "Paimon"
    folders: tuple[str, ...] = FOLDERS

    @property
    def hints(self) -> Mapping[str, str]:
        """The numbers of the oldest and the newest snapshot."""
        return _HINTS

    @property
    def positions(self) -> PositionFile[PaimonPosition]:
        """Return the position file."""
        return positions.FILE

    def is_found(self, path: str) -> bool:
        """Return whether readers discover a file; manifests are found only by their snapshots."""
        return not path.startswith(manifest_path(""))

    def run(
        self,
        table: TableHandle,
        outputs: Outputs,
        start: PaimonPosition,
        target: TableState,
        on_progress: Progress,
    ) -> PaimonPosition:
        """Write the files of a range of the log; return the new position."""
        # A clock that was corrected since changes files that exist already.
        corrected = any(each.version > start.version for each in target.corrections)
        begin = PaimonPosition() if corrected else start
        return PaimonProjection(table, outputs, begin, target).run(on_progress)

    def engine_folder(self, table: TableHandle) -> ServedFolder | None:
        """Return the folder of a table that engines own."""
        return ServedFolder(table) if is_engine_table(table.state) else None

    def rebuild_reason(self, table: TableHandle, saved: PaimonPosition) -> RebuildReason | None:
        """Return whether files are of an older renderer or for another location."""
        if saved.has_older_layout:
            return RebuildReason("older_renderer_replaced", {"renderer": saved.renderer})
        if saved.location in {"", table.location}:
            return None
        facts = {"stood_at": saved.location, "now_at": table.location}
        return RebuildReason("place_replaced", facts)

    def renew(
        self, table: TableHandle, older: PaimonPosition, target: TableState, on_progress: Progress
    ) -> PaimonPosition:
        """Rewrite files of an older renderer or for another location in place."""
        outputs = outputs_of(table)
        wanted = files_of(self, table, target_state(table, min(older.version, target.version)))
        wrong = [path for path, body in wanted.items() if outputs.read(path) != body]
        for done, path in enumerate(wrong, 1):
            outputs.restore(path, wanted[path])
            on_progress(done, len(wrong))
        # An interrupted run beyond the position has left manifests of the older kind, too.
        renewing = _OverwritingOutputs(outputs.store, outputs.root)
        reached = PaimonProjection(table, renewing, PaimonPosition(), target).run(on_progress)
        gone = _obsolete_list_files(outputs, PaimonFileNames(table.state.table_id), older)
        return evolve(reached, garbage=(*reached.garbage, *gone))

    def compare(
        self, table: TableHandle, saved: PaimonPosition, at: TableState
    ) -> ComparisonResult:
        """Compare the files on the store with those expected from the log.

        A foreign file in a place that is or will be the ledger's is reported as changed. A rebuild
        projects the newest version.
        """
        outputs, wanted = outputs_of(table), files_of(self, table, at)
        there = difference(outputs, wanted, folders=FOLDERS, hints=_HINTS.keys())
        found_difference = misleading_hints(outputs, wanted, _HINTS)
        there = evolve(there, changed=tuple(sorted((*there.changed, *found_difference))))
        newest = target_state(table, None)
        found, in_the_way = separate_foreign_files(self, table, there, at, newest)
        if saved.has_older_layout and saved.rollbacks and not found.is_empty:
            older_reason = "made by an older version of lakeledger, which had other files after a "
            key = positions.FILE.key(table.log.layout)
            found = Difference((), (key,), found.foreign, older_reason + "rollback")
        return ComparisonResult(found, wanted, in_the_way, newest)

    def lost(self, table: TableHandle, saved: PaimonPosition) -> Mapping[str, bytes]:
        """Return all lost or damaged files, since Paimon's readers use time travel, too."""
        at = target_state(table, saved.version)
        outputs, wanted = outputs_of(table), files_of(self, table, at)
        return {path: body for path, body in wanted.items() if outputs.read(path) != body}

    def make_way(self, outputs: StoreOutputs, path: str) -> None:
        """Rename a foreign file so that readers ignore it."""
        body = outputs.read(path)
        if body is not None:
            outputs.put(quarantine_path(path, body), body)
            outputs.remove(path)

    def projected(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return nothing: ownership is not derived from the metadata that names a file."""
        del outputs, at
        return ()

    def marked(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return nothing: names are derived from commits alone."""
        del outputs, at
        return ()


def _obsolete_list_files(
    outputs: StoreOutputs, names: PaimonFileNames, older: PaimonPosition
) -> Iterator[str]:
    """Yield files that only renderer 1 wrote: lists of the files that were live at a rollback."""
    for rollback, _ in older.rollbacks:
        parts = (manifest_path(names.older_live(rollback, part)) for part in count())
        yield from takewhile(lambda path: outputs.read(path) is not None, parts)


PAIMON = Materialisation(PaimonFiles())

project = PAIMON.project
follow = PAIMON.follow
expected = PAIMON.expected
verify = PAIMON.verify
rebuild = PAIMON.rebuild


def separate_foreign_files(
    files: FileFormat[PaimonPosition],
    table: TableHandle,
    found: Difference,
    saved: TableState,
    newest: TableState,
) -> tuple[Difference, tuple[str, ...]]:
    """Return a difference without effects of killed runs, and its foreign files in the way.

    Args:
        files: Paimon's file format.
        table: The table.
        found: The difference from the files of the version of the position.
        saved: The state at that version.
        newest: The table's newest state.
    """
    if found == Difference():
        return found, ()
    outputs = outputs_of(table)
    behind = saved.version < newest.version
    # A run deletes or replaces only files that it writes differently.
    wanted = _expected_files(files, table, newest) if behind and not found.is_empty else {}
    missing, changed = found.missing, found.changed
    if behind:
        missing = tuple(path for path in missing if path in wanted)
        changed = tuple(p for p in changed if p not in wanted or outputs.read(p) != wanted[p])
    later = _possible_files(files, table, saved, newest) if behind and found.foreign else {}
    foreign = [path for path in found.foreign if path not in later]
    ahead = {
        path
        for path in foreign
        if is_ahead(path, schema_id=newest.schema.id, snapshot_id=newest.last_snapshot_id)
    }
    ahead.update(p for p in found.foreign if p in later and outputs.read(p) != later[p])
    in_the_way = tuple(sorted(ahead))
    found_difference = Difference(
        missing,
        tuple(sorted((*changed, *in_the_way))),
        tuple(path for path in foreign if path not in ahead),
    )
    return found_difference, in_the_way


def _possible_files(
    files: FileFormat[PaimonPosition], table: TableHandle, saved: TableState, newest: TableState
) -> dict[str, bytes]:
    """Return all files that a run from one state to another may write, wherever it stops."""
    return _expected_files(
        files, table, evolve(newest, earliest_snapshot_id=saved.earliest_snapshot_id)
    )


def _expected_files(
    files: FileFormat[PaimonPosition], table: TableHandle, target: TableState
) -> dict[str, bytes]:
    try:
        return files_of(files, table, target)
    except UnsupportedError:
        # A table that cannot be projected now was not projected by any run.
        return {}
