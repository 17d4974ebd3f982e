"""A filter with several numbers, in any order, never leaves a file out that may hold one."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import ledger
from ledger.planning import BoundColumn, Op, Predicate
from tests.thorough import examples

NUMBERS = st.integers(-50, 50)
RANGES = st.lists(st.tuples(NUMBERS, NUMBERS).map(sorted), min_size=1, max_size=8)
LAWS = settings(deadline=None, max_examples=examples(60))
_names = itertools.count()


def a_table(kind: str, width: int, ranges: list[list[int]]) -> ledger.Table:
    lake = ledger.open(f"memory://in-lists-{next(_names)}", author="ada")
    lake.create_database("shop")
    table = lake.create_table("shop.orders", ledger.Schema.of({"id": kind}))

    def bound(number: int) -> dict[int, str]:
        return {0: number.to_bytes(width, "little", signed=True).hex()}

    table.append(
        [
            ledger.FileChange(
                path=f"{place}.parquet",
                record_count=2,
                file_size_in_bytes=9,
                field_ids=True,
                value_counts={0: 2},
                null_value_counts={0: 0},
                lower_bounds=bound(low),
                upper_bounds=bound(high),
            )
            for place, (low, high) in enumerate(ranges)
        ]
    )
    return table


def kept(table: ledger.Table, where: Any) -> set[str]:
    return {each.file.path for each in table.at().plan(where).files}


def may_hold(ranges: list[list[int]], values: list[int]) -> set[str]:
    return {
        f"{place}.parquet"
        for place, (low, high) in enumerate(ranges)
        if any(low <= value <= high for value in values)
    }


@LAWS
@given(
    kind=st.sampled_from([("INT", 4), ("BIGINT", 8)]),
    ranges=RANGES,
    values=st.lists(NUMBERS, min_size=2, max_size=6),
)
def test_a_list_of_numbers_keeps_every_file_that_may_hold_one(
    kind: tuple[str, int], ranges: list[list[int]], values: list[int]
) -> None:
    table = a_table(*kind, ranges)
    wanted = may_hold(ranges, values)
    texts = ", ".join(map(str, values))

    for where in ([("id", "in", values)], f"id IN ({texts})"):
        assert wanted <= kept(table, where)
    # Beyond the least and the greatest, nothing has to be read.
    least, most = min(values), max(values)
    outside = {
        f"{place}.parquet" for place, (low, high) in enumerate(ranges) if high < least or low > most
    }
    assert not outside & kept(table, [("id", "in", values)])


@LAWS
@given(ranges=RANGES, values=st.lists(NUMBERS, min_size=2, max_size=6, unique=True))
def test_an_expression_whose_values_stand_in_no_order_is_planned_alike(
    ranges: list[list[int]], values: list[int]
) -> None:
    table = a_table("BIGINT", 8, ranges)
    column = BoundColumn(0, "id", table.state.schema.field("id").type)

    found = kept(table, Predicate(Op.IN, column, tuple(values)))

    assert may_hold(ranges, values) <= found
