"""Values cached on columns belong to those columns, with concurrent callers too."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger import AddColumn, DataField, Schema
from ledger.model import type_to_wire
from ledger.model.column_index import ColumnIndex, column_index_of, reuse_indexed_columns
from ledger.model.types import ArrayType, DataType, IntType, MapType, VarCharType, walk_ids

TYPES: tuple[DataType, ...] = (IntType(), IntType(nullable=False), ArrayType(IntType()))

columns = st.lists(
    st.builds(
        DataField,
        st.integers(0, 3),
        st.sampled_from("abc"),
        st.sampled_from(TYPES),
        st.sampled_from([None, "said"]),
    ),
    max_size=4,
).map(tuple)


@given(st.lists(columns, min_size=1, max_size=12))
def test_what_is_found_is_of_the_columns_that_were_asked_about(
    asked: list[tuple[DataField, ...]],
) -> None:
    for fields in [*asked, *asked]:
        found = column_index_of(fields)
        assert found.fields is fields
        assert found.names == tuple(each.name for each in fields)
        assert found.roots == {each.type.root for each in fields}
        assert [each.name for each in found.nested] == [
            each.name for each in fields if isinstance(each.type, ArrayType)
        ]
        # Of several with one id the last one counts, by id and by name alike.
        by_id = {each.id: each for each in fields}
        assert dict(found.by_id) == by_id
        assert dict(found.ids) == {each.name: each.id for each in by_id.values()}
        assert dict(found.by_name) == {each.name: each for each in fields}


def not_wide(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(each for each in names if not each.startswith("wide"))


def parts(index: ColumnIndex) -> list[object]:
    mappings = [dict(each) for each in (index.by_id, index.ids, index.by_name)]
    orders = [list(each) for each in (index.by_id, index.ids, index.by_name)]
    rest = [index.names, index.roots, index.nested, index.names_by(not_wide)]
    return [*mappings, *orders, *rest]


@given(columns, st.lists(columns, min_size=1, max_size=4), st.sampled_from([0, 12]))
def test_columns_added_at_the_end_are_indexed_as_if_all_were_new(
    first: tuple[DataField, ...], added: list[tuple[DataField, ...]], width: int
) -> None:
    wide = tuple(DataField(100 + nth, f"wide{nth}", IntType()) for nth in range(width))
    fields = (*wide, *first)
    for more in added:
        parts(column_index_of(fields))
        fields = (*fields, *more)
        assert parts(column_index_of(fields)) == parts(ColumnIndex(fields))


nested = st.builds(
    lambda name, ids: DataField(
        1, name, MapType(IntType(), ArrayType(IntType(), element_id=ids[0]), **ids[1])
    ),
    st.sampled_from("ab"),
    st.sampled_from(
        [(None, {}), (4, {"key_id": 2, "value_id": 3}), (4, {"key_id": 3, "value_id": 2})]
    ),
)


@given(st.lists(columns | st.tuples(nested), min_size=2, max_size=12))
def test_shared_columns_are_the_same_in_all_that_they_say(
    asked: list[tuple[DataField, ...]],
) -> None:
    for fields in asked:
        found = reuse_indexed_columns(fields)
        assert found == fields
        assert [[*walk_ids(each.type)] for each in found] == [
            [*walk_ids(each.type)] for each in fields
        ]
        column_index_of(fields)


@pytest.mark.parametrize("first", ["iceberg", "paimon"])
def test_tables_of_two_ways_of_counting_ids_keep_their_own(first: str) -> None:
    lake = ledger.open(f"memory://counting-ids-{first}-first")
    lake.create_database("d")
    wanted: dict[str, list[int]] = {"iceberg": [3], "paimon": []}
    for policy in sorted(wanted, key=lambda each: each != first):
        asked = Schema(fields=(DataField(1, "id", IntType()),), field_id_policy=policy)  # type: ignore[arg-type] # one of two
        table = lake.create_table(f"d.{policy}", asked.with_options({"ledger.formats": policy}))
        table.alter([AddColumn(("tags",), type_to_wire(ArrayType(IntType())))])
        found = table.state.schema.fields[-1]
        assert (found.id, [*walk_ids(found.type)]) == (2, wanted[policy])
        table.alter([AddColumn(("next",), "INT")])
        assert table.state.schema.fields[-1].id == 3 + len(wanted[policy])


def test_columns_that_are_made_twice_are_found_once() -> None:
    fields = (DataField(1, "a", IntType()), DataField(2, "b", VarCharType(9)))
    duplicate = (DataField(1, "a", IntType()), DataField(2, "b", VarCharType(9)))
    found = column_index_of(fields)
    assert reuse_indexed_columns(duplicate) is fields
    assert column_index_of(reuse_indexed_columns(duplicate)) is found


def test_columns_of_many_threads_are_never_mixed_up() -> None:
    tables = [
        tuple(DataField(nth, f"t{table}c{nth}", IntType()) for nth in range(20))
        for table in range(16)
    ]

    def ask(table: int) -> bool:
        fields = tables[table]
        wanted = tuple(each.name for each in fields)
        return all(
            column_index_of(fields).names == wanted and reuse_indexed_columns(fields) is fields
            for _ in range(300)
        )

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(16)))
