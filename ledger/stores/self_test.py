"""The two writes that show whether a store refuses to create what exists.

A store that ignores the condition answers the second write as it answered the first. A race that
loses one commit in a thousand does not show here; that is what the list in `services` is for.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, Protocol

from ledger.model.errors import StoreError
from ledger.stores.key import DRAFT_PREFIX
from ledger.stores.services import PROVEN

PROBE: Final = f"_ledger/{DRAFT_PREFIX}self-test"
"""Where the test writes: no commit's key can be it, and no listing shows it."""

_FIRST: Final = b"The self-test of lakeledger wrote this. Deleting it does no harm.\n"
_SECOND: Final = b"A second write went through, so this store loses commits.\n"


class Objects(Protocol):
    """What the test needs of a store."""

    def create(self, key: str, body: bytes) -> bool:
        """Put `body` under `key` unless it exists; False when it does."""

    def get(self, keys: list[str]) -> list[bytes | OSError | None]:
        """Return the bodies under `keys`."""

    def remove(self, key: str) -> None:
        """Remove `key`."""


def self_test(url: str, objects: Objects) -> None:
    """Return when the store at `url` refuses to create what exists.

    The first test of a root writes twice and leaves the probe. To every later one the probe is
    what exists: one refused write shows that this process's client sends the condition, too.

    Raises:
        StoreError: It cannot hold a ledger, or refuses; the message says why and what can.
        OSError: It did not answer; try again.
    """
    if not objects.create(PROBE, _FIRST):
        return
    if objects.create(PROBE, _SECOND) or objects.get([PROBE]) != [_FIRST]:
        with suppress(OSError):
            objects.remove(PROBE)
        raise StoreError(
            f"{url} cannot hold a ledger: its store lets a second write of one key through "
            f"although the first was to be the only one, so commits would get lost. Use {PROVEN}"
        )
