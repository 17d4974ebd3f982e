"""Whoever asks a service something for the first time learns soon that nobody answers there.

Clients try again by themselves for a minute and more, each in its own way, and tell about it in
lines of their own. That is right for a program at work, and wrong for a person who mistyped an
address.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any, Final, TypeVar

from ledger.model.errors import StoreError
from ledger.stores.objects.services import root_of, service_of

T = TypeVar("T")

PATIENCE_S: Final = 6.0


def first_answer(
    ask: Callable[[], T],
    url: str,
    storage_options: Mapping[str, Any],
    *,
    patience_s: float = PATIENCE_S,
) -> T:
    """Return what the first request to a store gives.

    Where no service answers for the store, such as a folder, there is nothing to wait for.

    Args:
        ask: Makes the request.
        url: The store's root.
        storage_options: What its client takes.
        patience_s: For how many seconds to wait.

    Raises:
        StoreError: No answer came within that time.
    """
    scheme, mark, rest = url.partition("://")
    service = service_of(scheme.lower()) if mark else None
    if service is None:
        return ask()
    _silence(service.module.partition(".")[0])
    answer: Future[T] = Future()
    # Nobody waits for it at the end of the process.
    Thread(target=_asked, args=(ask, answer), daemon=True).start()
    try:
        return answer.result(timeout=patience_s)
    except TimeoutError as error:
        if answer.done():
            raise
        root = root_of(service, rest, storage_options)
        raise StoreError(
            f"{root.url}: cannot read '_ledger/ledger.json' at {root.endpoint}: no answer came "
            f"within {patience_s:g} s; look at the network, the address and the credentials"
        ) from error


def _asked(ask: Callable[[], T], answer: Future[T]) -> None:
    try:
        answer.set_result(ask())
    except BaseException as error:  # noqa: BLE001 - whoever waits for the answer raises it
        answer.set_exception(error)


def _silence(package: str) -> None:
    """Let a client tell what went wrong by its exception alone, not by lines on stderr."""
    for name in (package, "azure", "asyncio", "aiohttp", "botocore", "google"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
