"""Files that something can be taken out of for ever, whoever else takes out something at once.

What is left is written as the file's next generation, which is created and so is one eraser's; only
then the one before is replaced by the word that there is a next, the same for everybody. So no
store has to compare before it replaces, and nothing that was taken out comes back.

Each step is durable before the next one begins: the next generation before the file before it is
replaced, and the replacement before the erasure is acknowledged. A power loss in between leaves
either the whole old file or the whole next one, and a retry completes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

import msgspec

from ledger.model.errors import DamagedLogError
from ledger.stores import Store
from ledger.stores.key import folder_of

V = TypeVar("V")

NEXT: Final = b'{"next":true}\n'
"""What a file says whose next generation stands."""

_GENERATION: Final = re.compile(r"\.([1-9][0-9]*)\.json$")


class ErasableForm(Generic[V]):
    """How what one kind of these files holds is written and read.

    Args:
        values: What it holds.
        called: That in words.
    """

    def __init__(self, values: type[V], called: str) -> None:
        self._decoder = msgspec.json.Decoder(values)
        self._called = called

    def encoded(self, values: V) -> bytes:
        """Return a file's bytes."""
        return msgspec.json.encode(values) + b"\n"

    def decoded(self, body: bytes, key: str) -> V:
        """Return what a file holds.

        Raises:
            DamagedLogError: It is no such file.
        """
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DamagedLogError(f"{key} holds no {self._called}: {error}", key) from error


def next_generation(key: str) -> str:
    """Return the key of a file's next generation.

    Example:
        >>> next_generation("a/b.json"), next_generation("a/b.9.json")
        ('a/b.1.json', 'a/b.10.json')
    """
    found = _GENERATION.search(key)
    number = 1 if found is None else int(found[1]) + 1
    return f"{first(key).removesuffix('.json')}.{number}.json"


def first(key: str) -> str:
    """Return the key that a file had before anything was taken out.

    Example:
        >>> first("a/b.10.json"), first("a/b.json")
        ('a/b.json', 'a/b.json')
    """
    return _GENERATION.sub(".json", key)


def newest(store: Store, keys: Sequence[str]) -> list[bytes | None]:
    """Return what is left of files, by their first keys; None for one that is missing."""
    found: list[bytes | None] = list(store.read_many(keys))
    at = {place: keys[place] for place, body in enumerate(found) if body == NEXT}
    while at:
        at = {place: next_generation(key) for place, key in at.items()}
        bodies = list(store.read_many(list(at.values())))
        for place, body in zip(at, bodies, strict=True):
            found[place] = body
        at = {place: key for place, key in at.items() if found[place] == NEXT}
    return found


def confirm_folders(store: Store, keys: Iterable[str]) -> None:
    """Make durable what was created, replaced and deleted in the folders of some keys.

    An eraser that was killed may have replaced a file without syncing its folder, and the retry
    sees nothing left to do there.

    Raises:
        OSError: The store failed.
    """
    for key in {folder_of(each): each for each in keys}.values():
        store.confirm(key)


def take_out(store: Store, key: str, smaller: Callable[[bytes], bytes | None]) -> None:
    """Take something out of a file; asking again ends what was broken off.

    Args:
        store: Where it is.
        key: Its first one.
        smaller: Returns what is left of a body; None where nothing has to go.

    Raises:
        OSError: The store failed.
    """
    body = store.read(key)
    while body is not None:
        after = next_generation(key)
        if body != NEXT:
            less = smaller(body)
            if less is None:
                return
            if not store.create(after, less):
                # Another's, who took out something else; what he left is looked at next.
                store.confirm(after)
            store.replace_durably(key, NEXT)
        key, body = after, store.read(after)
