"""Taking away what a ledger keeps of somebody outside of its lines, and saying what stays.

The values are in one place, so nothing else has to be found: no cache, segment or projection ever
holds one. What lines themselves hold stays: an older commit's author, a data file's path or bounds,
an option's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
from attrs import field, frozen

from ledger.events.commit import Commit
from ledger.events.snapshot_events import ListingEvent
from ledger.files.change_file import event_files
from ledger.log.outside import FIELDS, FOLDER, Field, Personal, Values, decoded, encoded
from ledger.log.replay import START
from ledger.log.stream_log import StreamLog
from ledger.model.errors import DamagedLogError, InvalidInputError, LedgerError
from ledger.model.file_change import FileChange
from ledger.stores import Store

_TEXTS: Final = msgspec.json.Decoder(dict[str, str])
_AT_ONCE: Final = 256
_LOCK: Final = f"{FOLDER}/lock"


@frozen
class Sought:
    """Whose values, or which.

    Attributes:
        author: All that this author said, and what others say that names him as a word.
        text: Every value that holds this text.
    """

    author: str | None = None
    text: str | None = None
    _word: re.Pattern[str] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if (self.author is None) == (self.text is None) or not self.needle.strip():
            raise InvalidInputError(
                "an erasure is of one author, or of one text, and neither is empty"
            )

    @_word.default
    def _as_word(self) -> re.Pattern[str]:
        return re.compile(rf"(?<!\w){re.escape(self.author or self.text or '')}(?!\w)")

    @property
    def needle(self) -> str:
        """The text that is to be nowhere afterwards."""
        return self.author or self.text or ""

    def names(self, said: str) -> bool:
        """Whether somebody's words name the author, or hold the text."""
        if self.text is not None:
            return self.text in said
        return self._word.search(said) is not None

    def eraser(self, name: str) -> str:
        """Return who is said to have erased: nobody, if that is whom it is about."""
        is_meant = name == self.author or (self.text is not None and self.names(name))
        return "" if is_meant else name

    def harmless(self, message: str) -> str:
        """Return the message that an erasure is recorded with.

        Raises:
            InvalidInputError: It holds what is sought.
        """
        if self.names(message):
            raise InvalidInputError(
                "the message of an erasure stands in the ledger, and this one names what is to be "
                "erased; say it in other words. Nothing was written"
            )
        return message

    def fields(self, values: Values) -> tuple[Field, ...]:
        """Return which of a transaction's values have to go."""
        there = tuple(each for each in FIELDS if values.get(each) is not None)
        author = "" if values.author is None else values.author.value
        if author == self.author:
            return there
        return tuple(each for each in there if self._is_in(each, values))

    def _is_in(self, which: Field, values: Values) -> bool:
        value = values.get(which)
        if value is None or (which == "author" and self.text is None):
            return False
        if which != "properties":
            return self.names(value.value)
        properties = _TEXTS.decode(value.value)
        return any(map(self.names, (*properties, *properties.values())))


@frozen
class Standing:
    """Where a stream's own lines hold what is sought, for ever.

    Attributes:
        stream: Its name.
        versions: Of the commits that hold it, or its bytes among the bounds of a column.
        paths: The data files whose paths hold it.
        problem: Why nobody knows; empty where the stream was read.
    """

    stream: str
    versions: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()
    problem: str = ""


@frozen
class Erasure:
    """What an erasure took away, or would take away, and what it cannot reach.

    Attributes:
        values: How many authors, messages and maps of properties.
        transactions: Of how many transactions.
        standing: What stays in lines.
        version: The catalog's commit that records it; None where there was nothing to erase.
    """

    values: int
    transactions: int
    standing: tuple[Standing, ...]
    version: int | None = None


Progress = Callable[[str, int, int], None]
"""Told what is looked through, how much of it is done, and of how much."""


def found(personal: Personal, sought: Sought, told: Progress) -> tuple[int, int]:
    """Return how many values there are to erase, and of how many transactions."""
    fields = [each for _, _, each in _matches(personal.store, sought, told)]
    return sum(map(len, fields)), len(fields)


def erase(personal: Personal, sought: Sought, told: Progress) -> None:
    """Take away every value that is sought, until there is none left; asking again goes on.

    Raises:
        OSError: The store failed.
    """
    store = personal.store
    with store.lock(_LOCK):
        while found(personal, sought, told) != (0, 0):
            for key, values, fields in _matches(store, sought, told):
                store.replace(key, encoded(values.without(fields)))
                # What is only replaced might be back after a loss of power.
                store.confirm(key)
        for draft in store.drafts(FOLDER):
            # A writer at work is told that he knows nothing, and writes it again.
            store.discard(draft)


def _matches(
    store: Store, sought: Sought, told: Progress
) -> Iterator[tuple[str, Values, tuple[Field, ...]]]:
    keys = list(store.walk(FOLDER))
    for begin in range(0, len(keys), _AT_ONCE):
        some = keys[begin : begin + _AT_ONCE]
        for key, body in zip(some, store.read_many(some), strict=True):
            if body is None:
                continue
            try:
                values = decoded(body, key)
            except DamagedLogError:
                # Whatever it held, no reader takes it for more than erased.
                yield key, Values(0), ("author",)
                continue
            if fields := sought.fields(values):
                yield key, values, fields
        told("what is kept of people", begin + len(some), len(keys))


def standing(
    streams: Iterable[tuple[str, StreamLog[Any, Any]]], sought: Sought, told: Progress
) -> Iterator[Standing]:
    """Yield the streams whose lines hold what is sought, and those that cannot be read."""
    plain = msgspec.json.encode(sought.needle)[1:-1]
    needles = (plain, sought.needle.encode().hex().encode())
    for name, log in streams:
        versions: list[int] = []
        paths: dict[str, None] = {}
        try:
            state = log.refresh()
            last = -1 if state is None else state.version
            for read in log.reader.after(START, last) if last >= 0 else ():
                files = list(_files(log, read.commit))
                bodies = (read.body, *map(msgspec.json.encode, files))
                if any(each in body for body in bodies for each in needles):
                    versions.append(read.commit.version)
                    named = (each.path for each in files if sought.needle in each.path)
                    paths |= dict.fromkeys(named)
                if read.commit.version % _AT_ONCE == 0:
                    told(name, read.commit.version + 1, last + 1)
        except (LedgerError, OSError) as error:
            yield Standing(name, tuple(versions), tuple(paths), str(error))
        else:
            if versions:
                yield Standing(name, tuple(versions), tuple(paths))


def _files(log: StreamLog[Any, Any], commit: Commit[Any]) -> Iterator[FileChange]:
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, ListingEvent):
                yield from event_files(log.store, log.layout, event)
