"""`lakeledger doctor`."""

from __future__ import annotations

import time
from typing import Annotated

from cyclopts import Parameter

from ledger.cli.options import Place
from ledger.commit_options import fresh_id
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
    failed = [str(each["check"]) for each in done if not each["holds"]]
    place.screen.result(
        {"url": store.url, "healthy": not failed, "checks": done},
        lambda screen: screen.facts(
            {"url": store.url}
            | {
                str(each["check"]): f"{'yes' if each['holds'] else 'NO'}, {each['millis']} ms"
                for each in done
            }
        ),
    )
    if failed:
        raise StoreError(
            f"{store.url} cannot hold a ledger: not everything holds that one needs "
            f"({'; '.join(failed)}). Use another place"
        )
