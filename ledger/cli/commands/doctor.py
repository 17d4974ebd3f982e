"""`lakeledger doctor`."""

from __future__ import annotations

import time
from typing import Annotated

from cyclopts import Parameter

from ledger.cli.options import Place
from ledger.commit_options import fresh_id, now_millis
from ledger.log.clock import check_clock, is_far, millis_ahead
from ledger.log.landing import Patience
from ledger.model.errors import StoreError
from ledger.stores import open_store
from ledger.stores.examination import examine


def doctor(
    url: Annotated[str | None, Parameter(help="The place to look at; or give --ledger.")] = None,
    /,
    *,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Try out whether a place can hold a ledger: writes a key of its own, and removes it again.

    Example:
        lakeledger doctor ./lake
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
    healthy = not failed and not is_far(ahead)
    place.screen.result(
        {"url": store.url, "healthy": healthy, "checks": done, "clock_millis_ahead": ahead},
        lambda screen: screen.facts(
            {"url": store.url}
            | {
                str(each["check"]): f"{'yes' if each['holds'] else 'NO'}, {each['millis']} ms"
                for each in done
            }
            | ({} if ahead is None else {"this machine's clock": _distance(ahead)})
        ),
    )
    if failed:
        raise StoreError(
            f"{store.url} cannot hold a ledger: not everything holds that one needs "
            f"({'; '.join(failed)}). Use another place"
        )
    check_clock(store, now_millis(), ahead)


def _distance(ahead_millis: int) -> str:
    seconds = round(ahead_millis / 1000)
    if not seconds:
        return "as the store's, to the second"
    return f"{abs(seconds)} s {'ahead of' if seconds > 0 else 'behind'} the store's"
