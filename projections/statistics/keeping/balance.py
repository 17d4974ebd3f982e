"""What is kept and what an opening says, brought together: sums over both are right.

The opening's deltas say all that the table holds then. Less what is counted before it, they are
what happened since: the one row a partition that stands for snapshots nobody can read any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from projections.statistics.definition import KEY_NAMES, MEASURES, PLACE_NAMES
from projections.statistics.fold import concatenated, grouped, negated, ordered, up_to
from projections.statistics.reading.opening import Opening

if TYPE_CHECKING:
    import pyarrow as pa


def balanced(rows: pa.Table, kept: Iterable[pa.Table], opening: Opening) -> pa.Table:
    """Return deltas that begin with an opening, less what is kept from before it.

    Args:
        rows: The deltas; their first snapshot is the opening.
        kept: Deltas and sums of all that is counted before them.
        opening: It.
    """
    import pyarrow as pa

    before = concatenated(kept)
    if not len(before):
        return rows
    place = {"version": opening.version, "snapshot_id": opening.snapshot_id}
    less = negated(grouped(before, KEY_NAMES), **place)
    both = pa.concat_tables([up_to(rows, **place), less])
    first = grouped(both, [*PLACE_NAMES, *KEY_NAMES])
    return ordered(pa.concat_tables([_changed(first), after(rows, opening)]))


def _changed(first: pa.Table) -> pa.Table:
    """Leave out partitions that are as they were; the snapshot itself stays."""
    import pyarrow.compute as pc

    same = pc.is_valid(first["spec_id"])
    for each in MEASURES:
        if each.fold == "sum":
            same = pc.and_(same, pc.equal(first[each.name], 0))
    return first.filter(pc.invert(same))


def after(rows: pa.Table, opening: Opening) -> pa.Table:
    """Return the deltas behind an opening."""
    import pyarrow.compute as pc

    later = pc.greater(rows["version"], opening.version)
    here = pc.and_(
        pc.equal(rows["version"], opening.version),
        pc.greater(rows["snapshot_id"], opening.snapshot_id),
    )
    return rows.filter(pc.or_(later, here))


def until(rows: pa.Table, opening: Opening) -> pa.Table:
    """Return the deltas up to an opening, its own included."""
    return up_to(rows, version=opening.version, snapshot_id=opening.snapshot_id)


def agree(counted: pa.Table, opened: pa.Table) -> bool:
    """Whether two sets of rows add up to the same counts and sizes for every partition.

    Times are not compared: those of files that are gone are known to one of them alone.
    """
    return _counts(counted) == _counts(opened)


def _counts(rows: pa.Table) -> dict[tuple[object, ...], tuple[int, ...]]:
    import pyarrow.compute as pc

    names = [each.name for each in MEASURES if each.fold == "sum"]
    added = grouped(rows.filter(pc.is_valid(rows["spec_id"])), KEY_NAMES)
    found = {
        tuple(row[name] for name in KEY_NAMES): tuple(row[name] for name in names)
        for row in added.select([*KEY_NAMES, *names]).to_pylist()
    }
    return {key: counts for key, counts in found.items() if any(counts)}
