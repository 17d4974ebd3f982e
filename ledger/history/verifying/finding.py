"""Finding: one thing on the store that is not as it should be, and what to do about it."""

from __future__ import annotations

from typing import Final, Literal

from attrs import field, frozen

from ledger.model.errors import InvalidInputError

Kind = Literal[
    "damage",
    "contradiction",
    "data",
    "derived",
    "clock",
    "absent",
    "foreign",
    "unfinished",
    "unsaid",
]
"""What sort of thing it is.

- damage: the truth itself does not fit; only a backup helps.
- contradiction: the truth is whole, and says what cannot be or what no writer may say.
- data: a data file that the truth names is not there, or is another.
- derived: something derived is other than the log makes it; it can be restored.
- clock: a commit is ahead of the time, so that reading by time goes wrong until it is corrected.
- absent: something derived is not there; that costs time and is no error.
- foreign: nobody of the ledger put it there; it is left alone.
- unfinished: an operation in two steps stopped between them; the next opener finishes it.
- unsaid: a format has no word for it, so that whoever reads its files alone does not know it.
"""

FAILURES: Final = frozenset({"damage", "contradiction", "data", "derived", "clock"})
"""The kinds that fail a verification."""

FROM_BACKUP: Final = "compare it with a backup and restore it from there"
REPAIR: Final = "restore it with: lakeledger verify --repair"
_DIGEST: Final = "sha256:"
_HEX_DIGITS: Final = 64


@frozen
class Finding:
    """One thing that does not fit.

    Attributes:
        kind: What sort of thing.
        what: What is wrong, in a sentence without its end.
        file: The key concerned, below the store's root.
        version: The first version that does not fit; None when it is of no version.
        advice: What to do.
        remedy: The keys and bytes that restore it, when it is derived.
    """

    kind: Kind
    what: str
    file: str
    version: int | None
    advice: str = FROM_BACKUP
    remedy: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)

    @property
    def fails(self) -> bool:
        """Whether a verification that finds it fails."""
        return self.kind in FAILURES


@frozen
class Expected:
    """A head that somebody noted elsewhere: the log has to hold that commit still.

    Attributes:
        digest: Of a commit's file, as `verify` prints it.
        version: The commit's, if it was noted, too.
    """

    digest: str
    version: int | None = None

    @classmethod
    def parse(cls, text: str) -> Expected:
        """Read `sha256:HEX`, `HEX` or `VERSION:sha256:HEX`.

        Raises:
            InvalidInputError: It is none of them.

        Example:
            >>> Expected.parse("12:sha256:" + 64 * "a").version
            12
        """
        number, _, digest = text.strip().lower().rpartition(_DIGEST)
        number = number.removesuffix(":")
        is_hex = len(digest) == _HEX_DIGITS and set(digest) <= set("0123456789abcdef")
        if not is_hex or not (number == "" or number.isdecimal()):
            raise InvalidInputError(
                f"{text!r} is no head; write sha256:HEX or VERSION:sha256:HEX, as verify prints it"
            )
        return cls(_DIGEST + digest, int(number) if number else None)

    def __str__(self) -> str:
        return self.digest if self.version is None else f"{self.version}:{self.digest}"
