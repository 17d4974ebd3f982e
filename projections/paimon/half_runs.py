"""What a projection's files are that are not those of the version it stands at.

A run that was killed has written files of later versions, and may have taken older ones away; its
position stands where it began. Somebody else's file may stand where the ledger's next one goes.
"""

from __future__ import annotations

from attrs import evolve, frozen

from ledger.evolution.state import TableState
from ledger.model.errors import UnsupportedError
from ledger.table import Table
from projections.materialisation import Difference, nobody
from projections.outputs import MemoryOutputs, StoreOutputs
from projections.paimon.paths import is_ahead
from projections.paimon.position import Position
from projections.paimon.project import Projection


@frozen
class Found:
    """What is wrong with a projection.

    Attributes:
        difference: All of it.
        in_the_way: Of what it calls changed, the files of somebody else's.
    """

    difference: Difference
    in_the_way: tuple[str, ...] = ()


def sorted_out(
    table: Table, outputs: StoreOutputs, found: Difference, stood: TableState, newest: TableState
) -> Found:
    """Return a difference without what killed runs did, and with what stands in the way.

    Args:
        table: The table.
        outputs: Its files.
        found: How they differ from those of the version that they stand at.
        stood: The state then.
        newest: The table's newest state.
    """
    if found == Difference():
        return Found(found)
    behind = stood.version < newest.version
    # No run takes away or replaces what it does not make otherwise.
    wanted = _files(table, newest) if behind and not found.is_empty else {}
    missing, changed = found.missing, found.changed
    if behind:
        missing = tuple(path for path in missing if path in wanted)
        changed = tuple(p for p in changed if p not in wanted or outputs.read(p) != wanted[p])
    later = _later(table, stood, newest) if behind and found.foreign else {}
    foreign = [path for path in found.foreign if path not in later]
    ahead = {
        path
        for path in foreign
        if is_ahead(path, schema_id=newest.schema.id, snapshot_id=newest.last_snapshot_id)
    }
    ahead.update(p for p in found.foreign if p in later and outputs.read(p) != later[p])
    in_the_way = tuple(sorted(ahead))
    return Found(
        Difference(
            missing,
            tuple(sorted((*changed, *in_the_way))),
            tuple(path for path in foreign if path not in ahead),
        ),
        in_the_way,
    )


def _later(table: Table, stood: TableState, newest: TableState) -> dict[str, bytes]:
    """Return what a run from one state to another may write, wherever it is to end."""
    return _files(table, evolve(newest, earliest_snapshot_id=stood.earliest_snapshot_id))


def _files(table: Table, target: TableState) -> dict[str, bytes]:
    outputs = MemoryOutputs()
    try:
        Projection(table, outputs, Position(), target).run(nobody)
    except UnsupportedError:
        # What cannot be projected now, no run has projected either.
        return {}
    return outputs.files
