from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidInputError
from ledger.model.instant import millis, parse_iso_datetime

DAYS = ["2013-01-31", "20130131", "2013-W05-4", "2013W054", "2013-W05", "2013W05"]
MIDNIGHTS = ["T24", "T24:00", " 24:00:00", "T2400", "\n24:00:00.000000", "x24:00:00+01:00"]


@pytest.mark.parametrize("midnight", MIDNIGHTS)
@pytest.mark.parametrize("day", DAYS)
def test_no_day_has_an_hour_24_whichever_python_reads_it(day: str, midnight: str) -> None:
    with pytest.raises(ValueError, match="hours go from 0 to 23"):
        parse_iso_datetime(day + midnight)
    with pytest.raises(InvalidInputError, match="is no time"):
        millis(day + midnight)


OFFSETS = st.integers(-1439, 1439).map(lambda each: timezone(timedelta(minutes=each)))
ZONES = st.none() | st.just(UTC) | OFFSETS


@given(st.builds(datetime.combine, st.dates(date(1, 1, 1)), st.times(timezones=ZONES)))
def test_a_moment_as_python_writes_it_is_that_moment(moment: datetime) -> None:
    assert parse_iso_datetime(moment.isoformat()) == moment
    assert parse_iso_datetime(moment.isoformat(" ")) == moment
    assert parse_iso_datetime(moment.date().isoformat()) == datetime.combine(moment, time())
