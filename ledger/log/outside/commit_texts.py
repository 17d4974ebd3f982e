"""Authors, messages and properties that lines do not hold, so that they can be erased.

Each transaction of a stream that keeps them outside has a file of its own below the ledger's root,
written before the commit that names its values by salted digests. An erased value is gone from its
file, which stays; nothing else that the ledger keeps ever holds one: not the log, no checkpoint, no
segment, no projection.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec
from attrs import evolve
from msgspec import UNSET, Struct
from msgspec.structs import replace

from ledger.events.commit import OUTSIDE, Commit, Outside, Transaction
from ledger.log.landing import LogFile, land_own
from ledger.log.layout import STREAM_FOLDER
from ledger.log.outside.erasable import ErasableForm, newest
from ledger.log.patience import Patience
from ledger.log.request import Request
from ledger.model.errors import DamagedLogError, StoreError
from ledger.stores import Store

if TYPE_CHECKING:
    from ledger.log.outside.column_values import PersonalColumns

E = TypeVar("E")

FOLDER: Final = f"{STREAM_FOLDER}/personal"
"""Below the root of the ledger, for all of its streams."""

ERASED: Final = "erased"
"""What readers are told in the place of a value that is gone."""

Field = Literal["author", "message", "properties"]
FIELDS: Final[tuple[Field, ...]] = ("author", "message", "properties")

_SALT_BYTES: Final = 16
_TEXTS: Final = msgspec.json.Decoder(dict[str, str])
_MANY: Final = 256


class Value(Struct, frozen=True, forbid_unknown_fields=True):
    """A text, and the salt without which nobody can guess it from its digest.

    Attributes:
        salt: 128 bits, hex.
        value: The text; of properties, their JSON.
    """

    salt: str
    value: str

    def digest(self, field: str) -> str:
        """Return what the line says of it."""
        said = f"{self.salt}\n{field}\n{self.value}"
        return hashlib.sha256(said.encode()).hexdigest()


class Values(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """What a file holds.

    Attributes:
        time_millis: When it was written, by its writer's clock; Unix milliseconds.
        author: Who, unless it was erased or nobody said.
        message: Why, likewise.
        properties: The properties, likewise.
    """

    time_millis: int
    author: Value | None = None
    message: Value | None = None
    properties: Value | None = None

    def get(self, field: Field) -> Value | None:
        """Return one of them."""
        found: Value | None = getattr(self, field)
        return found

    def without(self, fields: Iterable[Field]) -> Values:
        """Return what is left when some are erased."""
        return replace(self, **dict.fromkeys(fields, None))


_FORM: Final = ErasableForm(Values, "values of a transaction")
encoded: Final = _FORM.encoded
decoded: Final = _FORM.decoded


def key_of(outside: Outside) -> str | None:
    """Return the key of a transaction's values, named by the first of them; None: it has none.

    Example:
        >>> key_of(Outside(message="9f86d0"))
        '_ledger/personal/9f/9f86d0.json'
    """
    for each in FIELDS:
        digest = getattr(outside, each)
        if digest is not UNSET:
            return f"{FOLDER}/{digest[:2]}/{digest}.json"
    return None


class KeptTexts(Struct, frozen=True):
    """A transaction's values on their way: what the line says, and the file.

    Attributes:
        outside: The digests.
        key: Of the file; None where there is nothing to keep.
        body: Its bytes.
    """

    outside: Outside
    key: str | None
    body: bytes

    @classmethod
    def of(cls, request: Request, now_millis: int) -> KeptTexts:
        """Return what a request says of who and why, each under a salt of its own."""
        texts: dict[Field, str] = {"author": request.author, "message": request.message}
        if request.properties:
            properties = dict(sorted(request.properties.items()))
            texts["properties"] = msgspec.json.encode(properties).decode()
        values = {
            field: Value(os.urandom(_SALT_BYTES).hex(), text)
            for field, text in texts.items()
            if text
        }
        outside = Outside(**{field: each.digest(field) for field, each in values.items()})
        body = encoded(Values(now_millis, **values))
        return cls(outside, key_of(outside), body)


class Personal(Struct, frozen=True):
    """The values of a ledger's transactions that stand outside of their lines.

    Attributes:
        store: The ledger's own, also for tables that lie elsewhere.
    """

    store: Store

    @property
    def columns(self) -> PersonalColumns:
        """The values of personal columns."""
        # Most ledgers have none, and reading starts fast.
        from ledger.log.outside.column_values import PersonalColumns

        return PersonalColumns(self.store)

    def keep(self, request: Request, now_millis: int, patience: Patience) -> KeptTexts:
        """Write what a request says of who and why; whoever commits it names it in the line.

        Raises:
            StoreError: The store refuses, gave no answer, or has another file there; nothing was
                committed.
        """
        kept = KeptTexts.of(request, now_millis)
        if kept.key is not None:
            file = LogFile(kept.key, kept.body, 0)
            land_own(self.store, file, patience, "author and message")
        return kept

    def forget(self, kept: KeptTexts) -> None:
        """Take away what no commit names, best effort; `maintain` finds what is left."""
        if kept.key is not None:
            with suppress(OSError, StoreError):
                self.store.delete(kept.key)

    def told(self, commits: Sequence[Commit[E]]) -> list[Commit[E]]:
        """Return commits as readers are told them: with the values, or that they were erased."""
        wanted = [
            outside
            for commit in commits
            for transaction in commit.transactions
            if (outside := transaction.outside) is not UNSET
        ]
        if not wanted:
            return list(commits)
        found = self._read(wanted)
        return [
            replace(commit, transactions=tuple(_told(each, found) for each in commit.transactions))
            for commit in commits
        ]

    def each_told(self, commits: Iterable[Commit[E]]) -> Iterator[Commit[E]]:
        """Yield what `told` returns of many commits, reading so many files at a time."""
        some: list[Commit[E]] = []
        for commit in commits:
            if not some and all(each.outside is UNSET for each in commit.transactions):
                yield commit
                continue
            some.append(commit)
            if len(some) == _MANY:
                yield from self.told(some)
                some.clear()
        yield from self.told(some)

    def transaction(self, transaction: Transaction[E]) -> Transaction[E]:
        """Return one transaction as readers are told it."""
        if transaction.outside is UNSET:
            return transaction
        return _told(transaction, self._read([transaction.outside]))

    def name(self, said: str) -> str:
        """Return an author that a state names: `created_by`, `updated_by`."""
        if not said.startswith(OUTSIDE):
            return said
        outside = Outside(author=said.removeprefix(OUTSIDE))
        return _text(outside, "author", self._read([outside]))

    def named(self, state: Any) -> Any:
        """Return a state, or a part of one, that says itself who made it and who changed it."""
        names = {"created_by": state.created_by, "updated_by": state.updated_by}
        if not any(each.startswith(OUTSIDE) for each in names.values()):
            return state
        return evolve(state, **{key: self.name(each) for key, each in names.items()})

    def _read(self, wanted: Iterable[Outside]) -> Mapping[str, Values]:
        keys = [*dict.fromkeys(key for each in wanted if (key := key_of(each)) is not None)]
        found: dict[str, Values] = {}
        for key, body in zip(keys, newest(self.store, keys), strict=True):
            if body is not None:
                with suppress(DamagedLogError):
                    found[key] = decoded(body, key)
        return found


def _told(transaction: Transaction[E], found: Mapping[str, Values]) -> Transaction[E]:
    outside = transaction.outside
    if outside is UNSET:
        return transaction
    properties: dict[str, str] = {}
    if outside.properties is not UNSET:
        text = _text(outside, "properties", found)
        properties = {ERASED: ""} if text == ERASED else _TEXTS.decode(text)
    return replace(
        transaction,
        author=_text(outside, "author", found),
        message=_text(outside, "message", found),
        properties=properties,
        outside=UNSET,
    )


def _text(outside: Outside, field: Field, found: Mapping[str, Values]) -> str:
    """Return a value; what is gone, or is not what the line says, is told as erased."""
    digest, key = getattr(outside, field), key_of(outside)
    if digest is UNSET or key is None:
        return ""
    values = found.get(key)
    value = None if values is None else values.get(field)
    return value.value if value is not None and value.digest(field) == digest else ERASED
