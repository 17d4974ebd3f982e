"""What a projection's files are that are not those of the version it stands at.

A run that was killed has written files of later versions, and may have taken older ones away; its
position stands where it began. Somebody else's file may stand where the ledger's next one goes.
"""

from __future__ import annotations

from attrs import evolve

from ledger.evolution.state import TableState
from ledger.model.errors import UnsupportedError
from ledger.table import Table
from projections.materialising import Difference, FileFormat, files_of, outputs_of
from projections.paimon.paths import is_ahead
from projections.paimon.position import Position


def sorted_out(
    files: FileFormat[Position],
    table: Table,
    found: Difference,
    stood: TableState,
    newest: TableState,
) -> tuple[Difference, tuple[str, ...]]:
    """Return a difference without what killed runs did, and what of it stands in the way.

    Args:
        files: Paimon's.
        table: The table.
        found: How its files differ from those of the version that they stand at.
        stood: The state then.
        newest: The table's newest state.
    """
    if found == Difference():
        return found, ()
    outputs = outputs_of(table)
    behind = stood.version < newest.version
    # No run takes away or replaces what it does not make otherwise.
    wanted = _files(files, table, newest) if behind and not found.is_empty else {}
    missing, changed = found.missing, found.changed
    if behind:
        missing = tuple(path for path in missing if path in wanted)
        changed = tuple(p for p in changed if p not in wanted or outputs.read(p) != wanted[p])
    later = _later(files, table, stood, newest) if behind and found.foreign else {}
    foreign = [path for path in found.foreign if path not in later]
    ahead = {
        path
        for path in foreign
        if is_ahead(path, schema_id=newest.schema.id, snapshot_id=newest.last_snapshot_id)
    }
    ahead.update(p for p in found.foreign if p in later and outputs.read(p) != later[p])
    in_the_way = tuple(sorted(ahead))
    told = Difference(
        missing,
        tuple(sorted((*changed, *in_the_way))),
        tuple(path for path in foreign if path not in ahead),
    )
    return told, in_the_way


def _later(
    files: FileFormat[Position], table: Table, stood: TableState, newest: TableState
) -> dict[str, bytes]:
    """Return what a run from one state to another may write, wherever it is to end."""
    return _files(files, table, evolve(newest, earliest_snapshot_id=stood.earliest_snapshot_id))


def _files(files: FileFormat[Position], table: Table, target: TableState) -> dict[str, bytes]:
    try:
        return files_of(files, table, target)
    except UnsupportedError:
        # What cannot be projected now, no run has projected either.
        return {}
