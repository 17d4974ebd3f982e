"""The fold: from entries to deltas, from deltas to sums, over Arrow.

It is the only implementation, in this process and in Spark's executors. Rows have no order until
they are written: `ordered` sorts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
_ALL_KEYS = [*KEY_NAMES, *PLACE_NAMES]


def deltas(entries: Iterable[Iterable[pa.Table]]) -> Iterator[pa.Table]:
    """Return the changes of each partition and, in one row, of the whole table, per snapshot.

    Args:
        entries: Tables of `ENTRIES`; all rows of a snapshot in one item.

    Returns:
        Rows of `ROWS`, a table for each item.
    """
    return map(_fold_snapshots, entries)


def _fold_snapshots(tables: Iterable[pa.Table]) -> pa.Table:
    found = [contributions(each) for each in tables]
    # One table after the other is dropped: those of a wide commit are large.
    rows = found.pop() if len(found) == 1 else fold_by_columns(concat_rows(found), _ALL_KEYS)
    del found
    return add_table_totals(rows)


def contributions(entries: pa.Table) -> pa.Table:
    """Return partial deltas of snapshots and partitions, without rows of whole tables.

    Contributions from several inputs are combined by `fold_by_columns`, over place and keys.

    Args:
        entries: Rows of `ENTRIES`, in any order.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    sign = entries["sign"]
    columns = {name: entries[name] for name in _ALL_KEYS}
    for each in MEASURES:
        if each.source is None:
            columns[each.name] = sign
        elif each.fold == "sum":
            columns[each.name] = pc.multiply(sign, entries[each.source])
        else:
            columns[each.name] = entries[each.source]
    return fold_by_columns(pa.table(columns), _ALL_KEYS)


def add_table_totals(contributions: pa.Table) -> pa.Table:
    """Return deltas: contributions, and the change of the whole table per snapshot.

    Args:
        contributions: All of some snapshots.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    of_partitions = contributions.filter(pc.is_valid(contributions["spec_id"]))
    return pa.concat_tables([fold_by_columns(contributions, PLACE_NAMES), of_partitions])


def sums(rows: Iterable[pa.Table]) -> pa.Table:
    """Fold deltas and sums to one row per partition; rows of snapshots are unchanged.

    Partitions without files are kept: their last file creation time still counts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = concat_rows(rows)
    is_snapshot = pc.is_null(whole["spec_id"])
    partitions = fold_by_columns(whole.filter(pc.invert(is_snapshot)), KEY_NAMES)
    return pa.concat_tables([whole.filter(is_snapshot), partitions])


def totals_by_snapshot(rows: Iterable[pa.Table]) -> pa.Table:
    """Return one row per snapshot, in commit order: the totals of the table after it.

    Args:
        rows: All deltas or sums up to some snapshot.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = concat_rows(rows)
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


def negate_sums(sums: pa.Table, *, version: int, snapshot_id: int) -> pa.Table:
    """Return deltas that subtract partitions' sums, as changes of one snapshot.

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


def concat_rows(rows: Iterable[pa.Table]) -> pa.Table:
    """Return tables of `ROWS` as one; no tables give an empty one."""
    import pyarrow as pa

    schema = arrow_schema(ROWS)
    tables = [_cast_to_schema(each, schema) for each in rows]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _cast_to_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    # A cast to the same type takes as long as any other.
    return rows if rows.schema.equals(schema) else rows.cast(schema)


def ordered(rows: pa.Table) -> pa.Table:
    """Return rows in the order of tiles: whole tables first, then by partition; each by place."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Versions of Arrow name the option that sorts NULL first differently.
    is_whole = pc.is_null(rows["spec_id"])
    wholes = _sorted(rows.filter(is_whole), PLACE_NAMES)
    partitions = _sorted(rows.filter(pc.invert(is_whole)), _ALL_KEYS)
    return pa.concat_tables([wholes, partitions]).combine_chunks()


def _sorted(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    return rows.combine_chunks().sort_by([(name, "ascending") for name in names])


def fold_by_columns(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return rows folded by some columns; other key columns become NULL."""
    import pyarrow as pa

    folds = [(name, fold) for name, fold in FOLDS if name not in keys]
    # Most tables have one spec and no delete files, and hashing a constant costs as much.
    constants = {name: rows[name][0] for name in keys if _is_constant(rows[name])}
    varying = [name for name in keys if name not in constants]
    found = rows.group_by(varying, use_threads=False).aggregate(folds)
    schema = arrow_schema(ROWS)
    columns = {name: found[name] for name in varying}
    columns |= {name: found[f"{name}_{fold}"] for name, fold in folds}
    columns |= {name: pa.repeat(value, len(found)) for name, value in constants.items()}
    columns |= {
        each.name: pa.nulls(len(found), each.type) for each in schema if each.name not in columns
    }
    return pa.table([columns[name] for name in schema.names], names=schema.names).cast(schema)


def _is_constant(column: pa.ChunkedArray) -> bool:
    """Return whether a column has one value, and no NULL."""
    import pyarrow.compute as pc

    if not len(column) or column.null_count or column[0] != column[-1]:
        return False
    return bool(pc.all(pc.equal(column, column[0])).as_py())
