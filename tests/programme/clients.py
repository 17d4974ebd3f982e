"""Clients of object stores in this process, as patient as the tests have time for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

Client = Literal["patient", "resigned"]
"""A patient client asks again by itself; a resigned one leaves that to the ledger."""

_READ_TIMEOUT_S: Final = 2
"""Less than a proxy lets a request hang."""


def s3_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of s3fs for a client that does not wait for long."""
    config = {"read_timeout": _READ_TIMEOUT_S, "connect_timeout": 5}
    return {**options, "config_kwargs": config}


def azure_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of adlfs for a client that does not wait for long."""
    return {**options, "read_timeout": _READ_TIMEOUT_S}


def hurry() -> None:
    """Let clients wait less between their attempts; how often they try, and when, stays.

    Azure's would wait for fifteen seconds and more, and has no option for that.
    """
    from azure.storage.blob._shared.policies_async import ExponentialRetry
    from botocore import retryhandler

    azure_waits, s3_waits = ExponentialRetry.get_backoff_time, retryhandler.delay_exponential

    def azure_shorter(self: Any, settings: dict[str, Any]) -> float:
        return float(azure_waits(self, settings)) / 100

    def s3_shorter(**facts: Any) -> float:
        return float(s3_waits(**facts)) / 20

    ExponentialRetry.get_backoff_time = azure_shorter  # type: ignore[method-assign]
    retryhandler.delay_exponential = s3_shorter


def resign() -> None:
    """Let clients never try again."""
    from aiobotocore.retryhandler import (
        AioRetryHandler,
    )
    from azure.storage.blob._shared.policies import StorageRetryPolicy
    from s3fs import S3FileSystem

    async def no_delay(*_: object, **__: object) -> None:
        return None

    def none_is_left(*_: object, **__: object) -> bool:
        return False

    AioRetryHandler._call = no_delay
    S3FileSystem.retries = 1
    StorageRetryPolicy.increment = none_is_left  # type: ignore[method-assign]
