"""`lakeledger doctor`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

from cyclopts import Parameter

from ledger.cli.options import Place
from ledger.history.clocks import ahead as ahead_of
from ledger.history.finding import Finding
from ledger.history.subject import Subject
from ledger.ledger import Ledger
from ledger.log.clock import check_clock, is_far, millis_ahead
from ledger.log.landing import Patience
from ledger.log.request import fresh_id, now_millis
from ledger.model.errors import LedgerError, StoreError
from ledger.opening.setting import TableSetting
from ledger.stores import Store, open_store
from ledger.stores.examination import examine
from ledger.table import Table


def doctor(
    url: Annotated[str | None, Parameter(help="The place to look at; or give --ledger.")] = None,
    /,
    *,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Try out whether a place can hold a ledger: writes a key of its own, and removes it again.

    Of a ledger that is there, it looks whether a clock that was ahead has left its times wrong.

    Example:
        lakeledger doctor lake
    """
    store = open_store(url or place.url(), place.storage_options())
    done: list[dict[str, object]] = []
    start = time.perf_counter()
    try:
        for check in examine(store, f"_ledger/doctor-{fresh_id()}"):
            millis = round((time.perf_counter() - start) * 1000, 1)
            done.append({"check": check.claim, "holds": check.holds, "millis": millis})
            start = time.perf_counter()
    except OSError as error:
        raise StoreError(f"{error} ({len(done)} checks held before)") from error
    ahead = millis_ahead(store, now_millis, Patience())
    failed = [str(each["check"]) for each in done if not each["holds"]]
    late: list[tuple[str, Finding]] = []
    if not failed and not is_far(ahead):
        # What cannot be read there is verify's to tell.
        with suppress(LedgerError):
            late += _ahead(store, place)
    healthy = not failed and not is_far(ahead) and not late
    place.screen.result(
        {
            "url": store.url,
            "healthy": healthy,
            "checks": done,
            "clock_millis_ahead": ahead,
            "streams_ahead": [
                {"stream": name, "version": each.version, "what": each.what} for name, each in late
            ],
        },
        lambda screen: screen.facts(
            {"url": store.url}
            | {
                str(each["check"]): f"{'yes' if each['holds'] else 'NO'}, {each['millis']} ms"
                for each in done
            }
            | ({} if ahead is None else {"this machine's clock": _distance(ahead)})
            | {f"the times of {name}": f"NO, {each.what}" for name, each in late}
        ),
    )
    if failed:
        raise StoreError(
            f"{store.url} cannot hold a ledger: not everything holds that one needs "
            f"({'; '.join(failed)}). Use another place"
        )
    check_clock(store, now_millis(), ahead)
    for name, each in late:
        raise StoreError(f"{name} version {each.version}: {each.what}; {each.advice}")


def _ahead(store: Store, place: Place) -> Iterator[tuple[str, Finding]]:
    """Yield the streams of the ledger there, if there is one, whose times are ahead."""
    setting = TableSetting(store, place.storage_options(), author="")
    lake = Ledger(setting)
    subjects: list[Subject[Any, Any]] = [Subject("catalog", lake.log, has_files=False)]
    for entry in lake.state.tables.values():
        log = Table(entry.identifier, entry.path, setting).log
        subjects.append(Subject(str(entry.identifier), log, has_files=True))
    for subject in subjects:
        state = subject.log.refresh()
        found = None if state is None else ahead_of(subject, state, now_millis())
        if found is not None:
            yield subject.name, found


def _distance(ahead_millis: int) -> str:
    seconds = round(ahead_millis / 1000)
    if not seconds:
        return "as the store's, to the second"
    return f"{abs(seconds)} s {'ahead of' if seconds > 0 else 'behind'} the store's"
