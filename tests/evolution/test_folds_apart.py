"""The fold of a table's log does not depend on what else its process decides and folds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

import ledger
from ledger import (
    AddColumn,
    DataField,
    DropColumn,
    InvalidInputError,
    NotFoundError,
    RenameColumn,
    Schema,
)
from ledger.model import type_to_wire
from ledger.model.column_index import column_index_of
from ledger.model.types import ArrayType, DataType, IntType, MapType, RowType
from ledger.state import TableStream
from tests.thorough import examples

INT = IntType()
KINDS: tuple[DataType, ...] = (
    INT,
    ArrayType(INT),
    ArrayType(ArrayType(INT)),
    MapType(IntType(nullable=False), INT),
    ArrayType(RowType((DataField(0, "p", INT), DataField(1, "q", ArrayType(INT))))),
)
NAMES = st.sampled_from("abcd")
CHANGES = st.one_of(
    st.builds(
        lambda name, kind: AddColumn((name,), type_to_wire(kind)), NAMES, st.sampled_from(KINDS)
    ),
    st.builds(lambda name: DropColumn((name,)), NAMES),
    st.builds(lambda name, new: RenameColumn((name,), new), NAMES, NAMES),
)
POLICIES = ("iceberg", "paimon")
WHOSE = (POLICIES, POLICIES[::-1], *((each,) for each in POLICIES))
_numbers = count()


def others() -> Iterator[tuple[DataField, ...]]:
    for nth in range(8):
        yield (DataField(nth, "unrelated", INT),)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(WHOSE), CHANGES), min_size=2, max_size=12))
def test_tables_that_grow_side_by_side_are_what_each_log_says_alone(
    steps: list[tuple[tuple[str, ...], AddColumn | DropColumn | RenameColumn]],
) -> None:
    url = f"memory://folds-apart-{next(_numbers)}"
    lake = ledger.open(url)
    lake.create_database("d")
    tables = {}
    for policy in POLICIES:
        asked = Schema(fields=(DataField(1, "id", INT),), field_id_policy=policy)  # type: ignore[arg-type] # one of two
        options = {"ledger.formats": policy}
        tables[policy] = lake.create_table(f"d.{policy}", asked.with_options(options))
    for whose, change in steps:
        for policy in whose:
            with suppress(InvalidInputError, NotFoundError):
                tables[policy].alter([change])
    stream = TableStream()
    together = {policy: stream.encode_state(table.state) for policy, table in tables.items()}

    for policy in POLICIES:
        for fields in others():
            column_index_of(fields)
        alone = ledger.open(url).table(f"d.{policy}").state
        assert stream.encode_state(alone) == together[policy]
