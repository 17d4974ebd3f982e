"""Gate: which format a ledger takes, as far as this process knows. It only ever opens."""

from __future__ import annotations

from ledger.events.commit import OLDEST_FORMAT


class Gate:
    """Shared by all streams of a ledger.

    Whoever has not learned yet that it was opened writes what older clients can read, which harms
    nobody.

    Attributes:
        born: The format that the ledger began with. From the second on no client of the first was
            ever there, and left nothing.
        format: The newest that it is known to take.
    """

    __slots__ = ("born", "format")

    def __init__(self, born: int = OLDEST_FORMAT) -> None:
        self.born = born
        self.format = born

    def begin(self, born: int) -> None:
        """Learn what the ledger began with."""
        self.born = born
        self.learn(born)

    def learn(self, format_version: int) -> None:
        """Learn that the ledger takes a format."""
        self.format = max(self.format, format_version)

    @property
    def admits_oldest(self) -> bool:
        """Whether clients that know the first format alone may be at work."""
        return self.format == OLDEST_FORMAT
