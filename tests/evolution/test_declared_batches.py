"""A batch that leaves a format and comes back is judged by the formats that it ends with."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    AddColumn,
    FileChange,
    InvalidInputError,
    RemoveOption,
    Schema,
    SchemaChange,
    SetOption,
    UpdateColumnType,
)
from ledger.model import type_to_wire
from ledger.model.types import IntType, MultisetType
from ledger.state import Rules
from tests.lakes import lake_on, memory, orders
from tests.thorough import examples

KEYS = ("ledger.formats", "format-version", "ledger.something")
VALUES = {
    "ledger.formats": ("paimon", "iceberg", "paimon,iceberg"),
    "format-version": ("1", "2", "3"),
    "ledger.something": ("a", "b"),
}
DECLARATIONS = st.sampled_from(KEYS).flatmap(
    lambda key: st.one_of(
        st.just(RemoveOption(key)), st.sampled_from(VALUES[key]).map(lambda to: SetOption(key, to))
    )
)
EDITS: tuple[SchemaChange, ...] = (
    UpdateColumnType(("a",), "STRING"),
    UpdateColumnType(("a",), "BIGINT"),
    AddColumn(("v",), "VARIANT"),
    AddColumn(("m",), type_to_wire(MultisetType(IntType()))),
)
ROOTS = ("INT", "BIGINT", "VARCHAR")
BATCHES = st.lists(st.one_of(DECLARATIONS, st.sampled_from(EDITS)), min_size=2, max_size=5)
STARTS = st.fixed_dictionaries({}, optional={key: st.sampled_from(VALUES[key]) for key in KEYS})


@settings(max_examples=examples(150), deadline=None)
@given(STARTS, BATCHES, st.integers(0, 1))
def test_the_last_declaration_is_committed_and_every_format_declared_last_can_have_it(
    start: dict[str, str], batch: list[SchemaChange], files: int
) -> None:
    table = orders(lake_on(memory()), Schema.of({"id": "INT", "a": "INT"}, options=start))
    if files:
        table.append(
            [FileChange(path="f.parquet", record_count=1, file_size_in_bytes=9, field_ids=True)]
        )
    said = dict(start)
    for each in batch:
        if isinstance(each, SetOption):
            said[each.key] = each.value
        elif isinstance(each, RemoveOption):
            said.pop(each.key, None)
    try:
        after = table.alter(batch).state.schema
    except InvalidInputError:
        return

    assert {key: after.options[key] for key in KEYS if key in after.options} == said
    if "iceberg" in Rules.of(said).formats:
        # A table that left Iceberg earlier, and holds no file yet, may come back with any type.
        was_bound = "iceberg" in Rules.of(start).formats or files
        assert after.field("a").type.root in ({"INT", "BIGINT"} if was_bound else {*ROOTS})
        assert "m" not in after.names
