"""The local engine: the statistics over Arrow, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from projections.statistics.definition import (
    FOLDS,
    KEY_NAMES,
    MEASURES,
    PLACE_NAMES,
    ROWS,
    arrow_schema,
)

if TYPE_CHECKING:
    import pyarrow as pa

_BEGINNING = -(2**63)


def deltas(entries: Iterable[pa.Table]) -> pa.Table:
    """Return what each snapshot did to each partition and, in one row, to the whole table.

    Args:
        entries: Rows of `ENTRIES`; all rows of a snapshot in one table.

    Returns:
        Rows of `ROWS`, in the order of `ordered`.
    """
    import pyarrow.compute as pc

    found = []
    for table in entries:
        signed = _signed(table)
        partitions = grouped(
            signed.filter(pc.not_equal(table["sign"], 0)), [*PLACE_NAMES, *KEY_NAMES]
        )
        found += [partitions, grouped(signed, PLACE_NAMES)]
    return ordered(concatenated(found))


def _signed(entries: pa.Table) -> pa.Table:
    """Return entries with the measures' columns, each with its sign."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sign = entries["sign"]
    columns = {name: entries[name] for name in (*PLACE_NAMES, *KEY_NAMES)}
    for each in MEASURES:
        if each.source is None:
            columns[each.name] = sign
        elif each.fold == "sum":
            columns[each.name] = pc.multiply(sign, entries[each.source])
        else:
            columns[each.name] = entries[each.source]
    return pa.table(columns)


def sums(rows: Iterable[pa.Table]) -> pa.Table:
    """Fold deltas and sums to one row a partition; the rows of snapshots stay as they are.

    Partitions without files stay, too: their last file creation time still counts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = concatenated(rows)
    is_snapshot = pc.is_null(whole["spec_id"])
    partitions = grouped(whole.filter(pc.invert(is_snapshot)), KEY_NAMES)
    return ordered(pa.concat_tables([partitions, whole.filter(is_snapshot)]))


def running_totals(rows: Iterable[pa.Table]) -> pa.Table:
    """Return one row a snapshot, in commit order: the whole table right after it.

    Args:
        rows: All deltas or sums up to some snapshot.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = concatenated(rows)
    order = [(name, "ascending") for name in PLACE_NAMES]
    snapshots = whole.filter(pc.is_null(whole["spec_id"])).sort_by(order)
    columns = {name: snapshots[name] for name in PLACE_NAMES}
    for name, fold in FOLDS[len(PLACE_NAMES) :]:
        if fold == "sum":
            columns[name] = pc.cumulative_sum(snapshots[name])
        else:
            known = pc.cumulative_max(pc.fill_null(snapshots[name], _BEGINNING))
            columns[name] = pc.if_else(pc.equal(known, _BEGINNING), None, known)
    return pa.table(columns)


def negated(sums: pa.Table, *, version: int, snapshot_id: int) -> pa.Table:
    """Return deltas that take partitions' sums away, as if one snapshot had done it.

    Args:
        sums: Rows of `ROWS`; those of snapshots are added up.
        version: The snapshot's commit.
        snapshot_id: The snapshot.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {name: sums[name] for name in KEY_NAMES}
    for name, value in zip(PLACE_NAMES, (version, snapshot_id), strict=True):
        columns[name] = pa.repeat(pa.scalar(value, pa.int64()), len(sums))
    for each in MEASURES:
        column = sums[each.name]
        columns[each.name] = pc.negate(column) if each.fold == "sum" else column
    return pa.table(columns).select([each.name for each in ROWS]).cast(arrow_schema(ROWS))


def up_to(rows: pa.Table, *, version: int, snapshot_id: int) -> pa.Table:
    """Return the deltas that belong to a state."""
    import pyarrow.compute as pc

    earlier = pc.less(rows["version"], version)
    here = pc.and_(
        pc.equal(rows["version"], version), pc.less_equal(rows["snapshot_id"], snapshot_id)
    )
    return rows.filter(pc.or_(earlier, here))


def between(rows: pa.Table, first: int, last: int) -> pa.Table:
    """Return the deltas of the versions `first` to `last`, both included."""
    import pyarrow.compute as pc

    version = rows["version"]
    return rows.filter(pc.and_(pc.greater_equal(version, first), pc.less_equal(version, last)))


def concatenated(rows: Iterable[pa.Table]) -> pa.Table:
    """Return tables of `ROWS` as one; none at all is an empty one."""
    import pyarrow as pa

    schema = arrow_schema(ROWS)
    return pa.concat_tables([schema.empty_table(), *(each.cast(schema) for each in rows)])


def ordered(rows: pa.Table) -> pa.Table:
    """Return rows in their one order: by place, whole tables first, then by partition."""
    names = [*PLACE_NAMES, *KEY_NAMES]
    import pyarrow.compute as pc

    order = pc.sort_indices(
        rows,
        sort_keys=[(name, "ascending") for name in names],
        null_placement="at_start",
    )
    return rows.take(order).combine_chunks()


def grouped(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return rows folded by some columns; key columns that are left out become NULL."""
    import pyarrow as pa

    folds = [(name, fold) for name, fold in FOLDS if name not in keys]
    grouped = rows.group_by(list(keys), use_threads=False).aggregate(folds)
    schema = arrow_schema(ROWS)
    names = {name: f"{name}_{fold}" for name, fold in folds}
    columns = {}
    for each in schema:
        name = names.get(each.name, each.name)
        if name in grouped.column_names:
            columns[each.name] = grouped[name]
        else:
            columns[each.name] = pa.nulls(len(grouped), each.type)
    return pa.table(columns).cast(schema)
