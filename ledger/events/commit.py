"""Commit and Transaction: the envelope of events, and the JSON form of all records.

A commit is one atomic append, one file. It holds one or more transactions; a transaction is what
one writer requested at once.

JSON keys are camelCase, the discriminator is `type`, absent optional keys are left out, and a key
that this version does not know is rejected: skipping it could lose what a newer writer meant.
"""

from typing import Annotated, Final, Generic, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, field

E_co = TypeVar("E_co", covariant=True)

FORMAT: Final = 3
"""The format that this version writes and reads; 1 and 2 were never released."""


OUTSIDE: Final = "sidecar:"
"""Prefix of an author's digest in a state, where the name itself is kept in a sidecar."""


class Outside(
    Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Salted digests, hex, of the values of a transaction that are kept in a sidecar.

    Attributes:
        author: Of the author; absent if none was given.
        message: Of the message; absent if none was given.
        properties: Of the properties' JSON; absent if there are none.
    """

    author: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    properties: str | UnsetType = UNSET


class Transaction(
    Struct,
    Generic[E_co],
    frozen=True,
    gc=False,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    forbid_unknown_fields=True,
):
    """The request of one writer: all of it is committed, or none.

    Attributes:
        id: Unique; read back to find out whether a commit succeeded.
        author: The author; free text such as `etl@prod`.
        message: The reason; free text.
        properties: Further values that a program wants to keep with it.
        outside: The digests of these three where they are kept in a sidecar, in which case the line
            has none of them; absent where the line holds them.
        asked: SHA-256 of the request, hex, so that the same id with another request can be
            rejected.
        effective_time_millis: When it took effect, for imported history; absent when that is the
            commit's own time.
        events: The events, in order. Empty when everything requested held already.
    """

    id: str
    author: str = ""
    message: str = ""
    properties: dict[str, str] = {}
    outside: Outside | UnsetType = field(default=UNSET, name="sidecar")
    asked: str = field(name="requestDigest")
    effective_time_millis: int | UnsetType = UNSET
    events: tuple[E_co, ...] = ()


class Commit(
    Struct,
    Generic[E_co],
    frozen=True,
    gc=False,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    forbid_unknown_fields=True,
):
    """One file of a stream's log.

    Decoding rejects a format that this version does not read, and a commit without transactions.

    Attributes:
        format: Version of these bytes.
        version: The commit's number in its stream, from 0, without gaps.
        time_millis: Unix time in milliseconds; within a stream it never decreases.
        parent: `sha256:` and the hex digest of the file before; absent in version 0.
        transactions: At least one.
    """

    format: Annotated[int, Meta(ge=FORMAT, le=FORMAT)]
    version: int
    time_millis: int
    parent: str | UnsetType = UNSET
    transactions: Annotated[tuple[Transaction[E_co], ...], Meta(min_length=1)]


def said_by(transaction: Transaction[object]) -> str:
    """Return how a state records the author: the name, or the digest of the name in a sidecar.

    Example:
        >>> said_by(Transaction(id="a", asked="", author="ann"))
        'ann'
        >>> said_by(Transaction(id="a", asked="", outside=Outside(author="9f")))
        'sidecar:9f'
    """
    outside = transaction.outside
    if isinstance(outside, UnsetType) or isinstance(outside.author, UnsetType):
        return transaction.author
    return OUTSIDE + outside.author


class Record(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename="camel",
    tag_field="type",
    forbid_unknown_fields=True,
):
    """An immutable record of the log."""


def kind_of(record: type[Struct]) -> str:
    """Return the `type` that the log uses for a kind of record.

    Example:
        >>> from ledger.events.table import TableDropped
        >>> kind_of(TableDropped)
        'dropTable'
    """
    return str(record.__struct_config__.tag)
