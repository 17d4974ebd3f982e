"""Ledgers for tests: fresh, on a store of the test's choice, with a clock that the test owns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from ledger import FileChange, Ledger, Schema, Table
from ledger.ledger_handle import LedgerHandle
from ledger.locations import place_of
from ledger.log.request import RetryPolicy
from ledger.opening.context import TableSetting
from ledger.stores import MemoryStore, Store

_numbers = itertools.count()

START_MILLIS = 1_700_000_000_000


def memory() -> MemoryStore:
    return MemoryStore(f"test-{next(_numbers)}")


def ticking(start: int = START_MILLIS, step: int = 1000) -> Callable[[], int]:
    moments = itertools.count(start, step)
    return lambda: next(moments)


def no_time() -> RetryPolicy:
    """Give up soon, and never really sleep."""
    clock = itertools.count()
    return RetryPolicy(deadline_s=50, sleep=lambda _: None, monotonic=lambda: float(next(clock)))


def lake_on(
    store: Store,
    clock: Callable[[], int] | None = None,
    retry_policy: RetryPolicy | None = None,
    allowed: Sequence[str] = (),
) -> Ledger:
    return Ledger(
        LedgerHandle(
            TableSetting(
                store=store,
                storage_options={},
                author="tester",
                now_millis=clock or ticking(),
                retry_policy=retry_policy or RetryPolicy(),
                allowed=tuple(map(place_of, allowed)),
            )
        )
    )


def orders(lake: Ledger, schema: Schema | None = None) -> Table:
    lake.create_database("shop")
    columns = {"id": "BIGINT NOT NULL", "day": "DATE", "amount": "INT"}
    return lake.create_table("shop.orders", schema or Schema.of(columns, partition_keys=["day"]))


def reader_grace(seed: int) -> dict[str, str]:
    """Return the option of a table whose readers have no time, some commits' time, or long."""
    return {"ledger.reader-grace": ("0", "5 s", "1 h")[seed % 3]}


def data_file(name: str, day: str | None = "2013-01-01", records: int = 10) -> FileChange:
    return FileChange(
        path=name,
        partition=(day,),
        record_count=records,
        file_size_in_bytes=records * 100,
        creation_time=START_MILLIS,
        value_counts={0: records, 2: records},
        null_value_counts={0: 0, 2: 3},
        lower_bounds={0: "01000000"},
        upper_bounds={0: "09000000"},
    )


def texts(prefix: str) -> Iterator[str]:
    return (f"{prefix}{number}" for number in itertools.count())


class Elsewhere(MemoryStore):
    """A store that says that it is at another URL."""

    def __init__(self, url: str) -> None:
        super().__init__("elsewhere")
        self._url = url

    @property
    def url(self) -> str:
        """Its own root location."""
        return self._url
