"""What stands in a checkpoint and few look at is decoded when somebody does."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from ledger.model.errors import DamagedLogError

T = TypeVar("T")


def decoded(decoder: msgspec.json.Decoder[T], part: bytes | msgspec.Raw, says: str) -> T:
    """Return what a part of a checkpoint's record holds.

    Args:
        decoder: Of the part.
        part: Its JSON.
        says: What to say that the checkpoint holds, if it is none.

    Raises:
        DamagedLogError: It is none. The record's own check held, so that a wrong writer made it.

    Example:
        >>> decoded(msgspec.json.Decoder(list[int]), b"[1, 2]", "numbers that are none")
        [1, 2]
    """
    try:
        return decoder.decode(part)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DamagedLogError(
            f"a checkpoint holds {says}: {error}. Delete the folder caches beside the log; it is "
            "made again",
            "caches",
        ) from error
