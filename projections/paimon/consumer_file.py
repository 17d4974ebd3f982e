"""Paimon's `consumer/consumer-ID` files: up to where a stream has read.

Source: Paimon's Consumer class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from projections.paimon.json_reading import decoded
from projections.paimon.json_text import paimon_json


class _ConsumerFile(msgspec.Struct, rename="camel"):
    next_snapshot: int


def consumer_from_json(obj: Mapping[str, Any] | str | bytes) -> int:
    """Return the id of the snapshot that a consumer reads next; it and later ones must be kept.

    Raises:
        InvalidInputError: It is no consumer file; the message names the place.

    Example:
        >>> consumer_from_json('{"nextSnapshot": 42}')
        42
    """
    return decoded(obj, _ConsumerFile, "consumer file").next_snapshot


def consumer_file(next_snapshot: int) -> bytes:
    """Return the bytes of a consumer file, as Paimon's Java writes them."""
    return paimon_json({"nextSnapshot": next_snapshot}).encode()
