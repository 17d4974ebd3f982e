"""The fold: from entries to deltas, from deltas to sums, over Arrow.

It is the only implementation, in this process and in Spark's executors. Rows are folded and sorted
by one number per row, made of the ranks of its keys: hashing and sorting numbers takes a fraction
of the time that strings take.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

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
_ALL_KEYS = [*PLACE_NAMES, *KEY_NAMES]


def deltas(entries: Iterable[pa.Table]) -> pa.Table:
    """Return the changes of each partition and, in one row, of the whole table, per snapshot.

    Args:
        entries: Rows of `ENTRIES`; all rows of a snapshot in one table, and the tables in the
            order of the log.

    Returns:
        Rows of `ROWS`, in the order of `ordered`.
    """
    return concat_rows(map(_compute_deltas, entries)).combine_chunks()


def _compute_deltas(entries: pa.Table) -> pa.Table:
    return add_table_totals(contributions(entries))


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
        contributions: All of some snapshots, in the order of `ordered`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = contributions.combine_chunks()
    totals = fold_by_columns(rows, PLACE_NAMES)
    is_whole = pc.is_null(rows["spec_id"])
    if pc.sum(is_whole).as_py() != len(totals):
        of_partitions = rows.filter(pc.invert(is_whole))
        return ordered(pa.concat_tables([totals, of_partitions]))
    # Each snapshot has its row already, in the same order.
    mask = is_whole.combine_chunks()
    for each in MEASURES:
        column = rows[each.name].combine_chunks()
        found = pc.replace_with_mask(column, mask, totals[each.name].combine_chunks())
        place = rows.schema.get_field_index(each.name)
        rows = rows.set_column(place, rows.schema.field(place), found)
    return rows


def sums(rows: Iterable[pa.Table]) -> pa.Table:
    """Fold deltas and sums to one row per partition; rows of snapshots are unchanged.

    Partitions without files are kept: their last file creation time still counts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = concat_rows(rows)
    is_snapshot = pc.is_null(whole["spec_id"])
    partitions = fold_by_columns(whole.filter(pc.invert(is_snapshot)), KEY_NAMES)
    return ordered(pa.concat_tables([partitions, whole.filter(is_snapshot)]))


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
    return pa.concat_tables(
        [schema.empty_table(), *(_cast_to_schema(each, schema) for each in rows)]
    )


def _cast_to_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    # A cast to the same type takes as long as any other.
    return rows if rows.schema.equals(schema) else rows.cast(schema)


def ordered(rows: pa.Table) -> pa.Table:
    """Return rows in the canonical order: by place, whole tables first, then by partition."""
    import pyarrow.compute as pc

    ranks = _RowRanks.of(rows, _ALL_KEYS)
    return rows.take(pc.array_sort_indices(ranks.numbers)).combine_chunks()


def fold_by_columns(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return rows folded by some columns, in their order; other key columns become NULL."""
    import pyarrow as pa
    import pyarrow.compute as pc

    folds = [(name, fold) for name, fold in FOLDS if name not in keys]
    ranks = _RowRanks.of(rows, keys)
    measured = pa.table({_NUMBER: ranks.numbers, **{name: rows[name] for name, _ in folds}})
    found = measured.group_by(_NUMBER, use_threads=False).aggregate(folds)
    found = found.take(pc.array_sort_indices(found[_NUMBER].combine_chunks()))
    columns = ranks.columns(found[_NUMBER].combine_chunks())
    columns |= {name: found[f"{name}_{fold}"] for name, fold in folds}
    for each in arrow_schema(ROWS):
        if each.name not in columns:
            columns[each.name] = pa.nulls(len(found), each.type)
    schema = arrow_schema(ROWS)
    return pa.table([columns[name] for name in schema.names], names=schema.names).cast(schema)


_NUMBER = "number"
_MOST = 2**62


@frozen
class _RowRanks:
    """Rows as one number each, ordered like some of their columns.

    Attributes:
        numbers: The number of each row.
        steps: How they were made: a column's name and its values in order, NULL first; or, without
            a name, the numbers that were replaced by their own ranks.
    """

    numbers: Any
    steps: list[tuple[str, Any]]

    @classmethod
    def of(cls, rows: pa.Table, names: Sequence[str]) -> _RowRanks:
        """Return the ranks of rows by the columns of these names, most significant first."""
        import pyarrow as pa
        import pyarrow.compute as pc

        numbers: Any = pa.repeat(pa.scalar(0, pa.int64()), len(rows))
        size = 1
        steps = []
        for name in names:
            ranks, values = _rank_values(rows[name].combine_chunks())
            if size * len(values) > _MOST:
                numbers, there = _rank_values(numbers)
                steps.append(("", there))
                size = len(there)
            steps.append((name, values))
            if len(values) > 1:
                numbers = pc.add(pc.multiply(numbers, len(values)), ranks)
                size *= len(values)
        return cls(numbers, steps)

    def columns(self, numbers: Any) -> dict[str, Any]:
        """Return the columns that numbers encode, by name."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = {}
        for name, values in reversed(self.steps):
            if name and len(values) == 1:
                found[name] = pa.repeat(values[0], len(numbers))
            elif name:
                above = pc.divide(numbers, len(values))
                found[name] = values.take(pc.subtract(numbers, pc.multiply(above, len(values))))
                numbers = above
            else:
                numbers = values.take(numbers)
        return found


def _rank_values(values: Any) -> tuple[Any, Any]:
    """Return the rank of each value, NULL's the first; and the value of each rank."""
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = values.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    # The inverse permutation of the sort order.
    ranks = pc.array_sort_indices(order).cast(pa.int64())
    ordered_values = encoded.dictionary.take(order)
    if len(values) and not values.null_count:
        return ranks.take(encoded.indices), ordered_values
    ranked = pc.fill_null(pc.add(ranks, 1).take(encoded.indices), 0)
    return ranked, pa.concat_arrays([pa.nulls(1, encoded.dictionary.type), ordered_values])
