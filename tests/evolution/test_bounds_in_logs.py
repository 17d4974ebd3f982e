"""Every number in an event or a file is valid in a log, or it is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args, get_origin

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import force_setattr

from ledger import FileChange, InvalidInputError
from ledger.decide.bounds import (
    BUCKET,
    IN_LOGS,
    IN_LOGS_BY_KEY,
    LEVEL,
    LONG,
    NUMBERS,
    RETENTION_MILLIS,
    SNAPSHOT_ID,
    TIME_MILLIS,
    UNBOUNDED,
    Bound,
)
from ledger.decide.recorded_values import check_recorded_values, number_problems
from ledger.events import CatalogEvent, SnapshotsExpired, TableEvent
from ledger.log import Transaction
from ledger.model import PartitionField, SortField


def parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for each in get_args(annotation):
        yield from parts(each)


def records() -> set[type[Struct]]:
    """The types of commits, with all that is nested there."""
    found: set[type[Struct]] = set()
    left: list[Any] = [Transaction, FileChange, *get_args(TableEvent), *get_args(CatalogEvent)]
    while left:
        kind = left.pop()
        if kind not in found:
            found.add(kind)
            held = [part for each in msgspec.structs.fields(kind) for part in parts(each.type)]
            left += [each for each in held if isinstance(each, type) and issubclass(each, Struct)]
    return found


FIELDS = [
    (kind, each.name, each.type)
    for kind in sorted(records(), key=lambda each: each.__name__)
    for each in msgspec.structs.fields(kind)
    if int in parts(each.type)
]
"""Every key of numbers, with what it holds."""

CASES = [pytest.param(*each, id=f"{each[0].__name__}.{each[1]}") for each in FIELDS]


def places(name: str, annotation: Any) -> Iterator[tuple[Bound | None, Callable[[int], object]]]:
    """Yield the bound of each number that a key holds, and what puts one there."""
    held = next((each for each in parts(annotation) if get_origin(each) in {dict, tuple}), int)
    if get_origin(held) is not dict:
        yield IN_LOGS.get(name), (lambda number: number) if held is int else (lambda each: (each,))
        return
    of_keys, of_values = IN_LOGS_BY_KEY.get(name, (None, None))
    key, value = get_args(held)
    if key is int:
        yield of_keys, lambda number: {number: 0 if value is int else "text"}
    if value is int:
        yield of_values, lambda number: {0 if key is int else "text": number}


CHECKED: dict[type[Struct], dict[str, Any]] = {
    PartitionField: {"transform": "day", "source_id": 1, "field_id": 1000},
    SortField: {"transform": "day", "source_id": 1},
}
"""The required arguments of a record."""


def is_found(kind: type[Struct], name: str, value: object) -> bool:
    required = {each.name: None for each in msgspec.structs.fields(kind) if each.required}
    record = kind(**{**required, **CHECKED.get(kind, {})})
    # Past the checks of a record: the bounds are those of numbers alone.
    force_setattr(record, name, value)
    return bool([*number_problems(record)])


@pytest.mark.parametrize(("kind", "name", "annotation"), CASES)
def test_every_number_has_its_bound_in_logs_or_a_reason_to_have_none(
    kind: type[Struct], name: str, annotation: Any
) -> None:
    for bound, put in places(name, annotation):
        assert (bound is None) == (name in UNBOUNDED)
        low, high = LONG if bound is None else bound.log_limits
        for number, is_wrong in ((low - 1, True), (low, False), (high, False), (high + 1, True)):
            assert is_found(kind, name, put(number)) == is_wrong


def test_no_bound_is_of_a_number_that_no_log_holds() -> None:
    decided = {name for row in NUMBERS.values() for name in row}
    assert {*IN_LOGS, *IN_LOGS_BY_KEY, *UNBOUNDED} - decided == {
        name for _, name, _ in FIELDS
    } - decided
    assert not {*IN_LOGS, *IN_LOGS_BY_KEY} & {*UNBOUNDED}


def test_what_may_be_decided_may_stand_in_a_log() -> None:
    rows = [each for row in NUMBERS.values() for each in row.items()]
    for name, bound in (*rows, *IN_LOGS.items()):
        low, high = IN_LOGS[name].log_limits
        assert (low, high) == bound.log_limits
        assert low <= bound.least <= bound.most <= high


@pytest.mark.parametrize(
    ("bound", "low", "high"),
    [
        (BUCKET, -(2**31), 2**31 - 1),
        (LEVEL, -(2**31), 2**31 - 1),
        (TIME_MILLIS, -(2**63), 2**63 - 1),
        (RETENTION_MILLIS, 1, 2**63 - 1),
        (SNAPSHOT_ID, 1, 2**63 - 1),
    ],
)
def test_a_log_may_hold_what_older_clients_wrote(bound: Bound, low: int, high: int) -> None:
    assert bound.log_limits == (low, high)


def test_what_is_no_event_is_passed_over_and_what_follows_it_is_looked_at() -> None:
    check_recorded_values(["a text", SnapshotsExpired(earliest_snapshot_id=1)], "/web/visits")
    with pytest.raises(InvalidInputError, match="/web/visits"):
        check_recorded_values(["a text", SnapshotsExpired(earliest_snapshot_id=-1)], "/web/visits")
