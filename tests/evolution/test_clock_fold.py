"""Times and formats that the fold accepts and rejects, independent of the writer."""

from __future__ import annotations

import pytest

from ledger import InvalidChangeError
from ledger.events import CatalogEvent, ClockCorrected, DatabaseCreated, TableEvent
from ledger.log import Commit, Transaction
from ledger.state import CatalogBuilder, CatalogStream, TableBuilder
from tests.evolution.born import LIVES
from tests.evolution.folds import grown


def table_commit(
    time_millis: int,
    *events: TableEvent,
    version: int = 1,
    effective: int | None = None,
) -> Commit[TableEvent]:
    facts = Transaction[TableEvent](asked="", id="t1", events=events)
    if effective is not None:
        facts = Transaction[TableEvent](
            asked="", id="t1", events=events, effective_time_millis=effective
        )
    return Commit(format=3, version=version, time_millis=time_millis, transactions=(facts,))


def correction(true_time: int, first: int = 1) -> ClockCorrected:
    return ClockCorrected(first_version=first, true_time_millis=true_time)


def test_an_equal_time_follows_and_an_earlier_one_does_not() -> None:
    builder = grown()
    builder.commit(table_commit(100))
    assert builder.freeze().version == 1
    with pytest.raises(InvalidChangeError, match="cannot follow"):
        grown().commit(table_commit(99))


def ahead() -> TableBuilder:
    """A table created at 100, with a commit of 900 by a clock that was ahead."""
    builder = grown()
    builder.commit(table_commit(900))
    return builder


def test_a_correction_leaves_no_time_in_the_state_that_is_later() -> None:
    builder = ahead()
    builder.commit(table_commit(900, correction(150), version=2, effective=160))
    state = builder.freeze()

    assert (state.time_millis, state.effective_millis, state.updated_at) == (900, 160, 160)
    assert [(each.version, each.true_time_millis) for each in state.corrections] == [(2, 150)]
    assert state.schema.time_millis <= 150
    builder.commit(table_commit(900, version=3, effective=170))
    assert builder.freeze().effective_millis == 170


def test_a_correction_from_the_creation_on_corrects_the_creation_and_not_the_author() -> None:
    builder = TableBuilder()
    builder.begin(0, 900)
    (created,) = LIVES["delta"][0]
    builder.add(Transaction(asked="", id="t0", author="ann", events=(created,)))
    builder.commit(table_commit(900, correction(150, 0), effective=160))
    state = builder.freeze()

    assert (state.created_at, state.created_by, state.schema.time_millis) == (150, "ann", 150)
    assert (state.updated_at, state.updated_by) == (160, "")


WRONG = {
    "before its own true time": table_commit(900, correction(150), version=2, effective=140),
    "of versions to come": table_commit(900, correction(150, 2), version=2, effective=160),
    "of no version": table_commit(900, correction(150, -1), version=2, effective=160),
    "after its commit": table_commit(900, correction(150), version=2, effective=901),
    "that corrects nothing": table_commit(900, version=2, effective=160),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_correction_that_cannot_stand_there_is_refused(case: str) -> None:
    with pytest.raises(InvalidChangeError):
        ahead().commit(WRONG[case])


def catalog_commit(version: int, time_millis: int, event: CatalogEvent) -> Commit[CatalogEvent]:
    facts = Transaction[CatalogEvent](asked="", id="c", events=(event,))
    return Commit(format=3, version=version, time_millis=time_millis, transactions=(facts,))


def test_the_catalogs_times_are_corrected_likewise_and_kept() -> None:
    builder = CatalogBuilder()
    builder.commit(catalog_commit(0, 900, DatabaseCreated(name="shop", path="shop.db")))
    corrected = Transaction[CatalogEvent](
        asked="", id="c", events=(correction(150, 0),), effective_time_millis=160
    )
    builder.commit(Commit(format=3, version=1, time_millis=900, transactions=(corrected,)))
    state = builder.freeze()

    assert state.databases["shop"].audit.created_at == 150
    assert (state.time_millis, state.effective_millis) == (900, 160)
    stream = CatalogStream()
    assert stream.decode_state(stream.encode_state(state)) == state
