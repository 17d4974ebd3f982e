"""What is found once about columns: it is of those columns, whoever else asks meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from ledger.model.types import ArrayType, DataField, DataType, IntType, VarCharType
from ledger.model.types.columns import indexed, shared

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
        found = indexed(fields)
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


@given(st.lists(columns, min_size=2, max_size=12))
def test_shared_columns_are_equal_ones(asked: list[tuple[DataField, ...]]) -> None:
    for fields in asked:
        assert shared(fields) == fields
        indexed(fields)


def test_columns_that_are_made_twice_are_found_once() -> None:
    fields = (DataField(1, "a", IntType()), DataField(2, "b", VarCharType(9)))
    twin = (DataField(1, "a", IntType()), DataField(2, "b", VarCharType(9)))
    found = indexed(fields)
    assert shared(twin) is fields
    assert indexed(shared(twin)) is found


def test_columns_of_many_threads_are_never_mixed_up() -> None:
    tables = [
        tuple(DataField(nth, f"t{table}c{nth}", IntType()) for nth in range(20))
        for table in range(16)
    ]

    def ask(table: int) -> bool:
        fields = tables[table]
        wanted = tuple(each.name for each in fields)
        return all(indexed(fields).names == wanted and shared(fields) is fields for _ in range(300))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(16)))
