"""Random lives of a table as states, one a transaction: nested columns, swaps, drops, layouts."""

from __future__ import annotations

import random
from collections.abc import Sequence

import attrs

from ledger import (
    AddPartitionField,
    InvalidInputError,
    RemovePartitionField,
    RenameColumn,
    ReplaceSortOrder,
    Schema,
    SchemaChange,
    SetIdentifierFields,
    SortColumn,
    UndropColumn,
    UpdatePartitionSpec,
)
from ledger.audit.migration import state_after_changes
from ledger.events import SpecChange
from ledger.state import PastColumns, TableState
from tests.histories import paths, random_change, start_schema
from tests.lakes import lake_on, memory, orders

Changes = Sequence[SchemaChange | SpecChange]


def first_state(formats: str = "paimon") -> TableState:
    schema = start_schema()
    options = {**schema.options, "ledger.formats": formats}
    if formats == "iceberg":
        options = {"ledger.formats": formats}
    return orders(lake_on(memory()), attrs.evolve(schema, options=options)).state


def random_life(seed: int, *, formats: str = "paimon", steps: int = 20) -> list[TableState]:
    """Return the states of a life, the first one included."""
    rng = random.Random(seed)
    states = [first_state(formats)]
    for _ in range(steps):
        try:
            states.append(
                state_after_changes(states[-1], random_changes(rng, states[-1]), past_of(states))
            )
        except InvalidInputError:
            continue
    return states


def past_of(states: Sequence[TableState]) -> PastColumns:
    """Return the columns that a table had in a life so far."""
    return PastColumns([each.schema for each in reversed(states)])


def random_changes(  # noqa: PLR0911 - one case a kind
    rng: random.Random, state: TableState
) -> Changes:
    """Return what one transaction may ask for."""
    schema = state.schema
    column = (rng.choice(schema.names),)
    match rng.randrange(20):
        case 0 | 1:
            return _swap(rng, schema) or [random_change(rng, schema)]
        case 2:
            transform = rng.choice(["bucket[4]", "identity", "truncate[3]"])
            return [UpdatePartitionSpec((AddPartitionField(column, transform),))]
        case 3 if len(state.spec.fields) > 1:
            name = rng.choice(state.spec.fields).name
            return [UpdatePartitionSpec((RemovePartitionField(name),))]
        case 4:
            return [ReplaceSortOrder((SortColumn(column),))]
        case 5:
            return [SetIdentifierFields((column,))]
        case 6 | 7:
            return [UndropColumn(field_id=rng.randrange(schema.highest_field_id + 1))]
        case _:
            return [random_change(rng, schema)]


def _swap(rng: random.Random, schema: Schema) -> Changes:
    every = list(paths(schema.fields))
    one = rng.choice(every)
    others = [each for each in every if each[:-1] == one[:-1] and each != one]
    if not others:
        return []
    two = rng.choice(others)
    between = (*one[:-1], "between")
    return [
        RenameColumn(one, "between"),
        RenameColumn(two, one[-1]),
        RenameColumn(between, two[-1]),
    ]
