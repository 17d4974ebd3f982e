"""What the projections bring to `verify`: group `lakeledger.verifications`, by a format's name.

Each entry is a module, or any object, with two functions of a table:

- `verify(table)` says where the format's files are not what the ledger makes them, as an object
  with the paths `missing`, `changed` and `foreign`, and the error `damage` where the log is not the
  one any more that they were made of;
- `rebuild(table)` restores them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, cast

from ledger.history.finding import REPAIR, Finding
from ledger.model.errors import DamagedLogError, LedgerError
from ledger.plugins import load, names
from ledger.table import Table

GROUP = "lakeledger.verifications"


class Difference(Protocol):
    """Where a format's files are not what the ledger makes them, by path below the location."""

    @property
    def missing(self) -> Sequence[str]:
        """Files that should be there."""

    @property
    def changed(self) -> Sequence[str]:
        """Files that are other bytes."""

    @property
    def foreign(self) -> Sequence[str]:
        """Files that the ledger did not project."""

    @property
    def damage(self) -> DamagedLogError | None:
        """The error that the log is not the one any more that the files were made of."""


class Format(Protocol):
    """What a projection offers."""

    def verify(self, table: Table) -> Difference:
        """Compare what stands on the store with what the ledger says."""

    def rebuild(self, table: Table) -> object:
        """Restore what is missing or changed."""


def _format(name: str) -> Format:
    offered: Any = load(GROUP, name)
    return cast(Format, offered)


def differences(table: Table) -> Iterator[tuple[str, list[Finding]]]:
    """Yield for every installed format what is wrong with a table's files of it."""
    for name in sorted(names(GROUP)):
        try:
            found = _format(name).verify(table)
            if found.damage is not None:
                # Files that are made of what is left would hide that something is gone.
                raise found.damage
        except DamagedLogError as error:
            yield name, [Finding("damage", f"{name}: {error.message}", error.file, None)]
            continue
        except LedgerError as error:
            where = table.location
            advice = "see the message"
            yield name, [Finding("unfinished", f"{name}: {error.message}", where, None, advice)]
            continue
        yield name, list(_findings(name, found))


def rebuild(table: Table, name: str) -> None:
    """Restore a table's files of a format."""
    _format(name).rebuild(table)


def _findings(name: str, found: Difference) -> Iterator[Finding]:
    for path in found.missing:
        yield Finding("derived", f"the {name} file is missing", path, None, REPAIR)
    for path in found.changed:
        said = f"the {name} file is other than the ledger makes it"
        yield Finding("derived", said, path, None, REPAIR)
    for path in found.foreign:
        yield Finding("foreign", f"the ledger did not project this {name} file", path, None, _LOOK)


_LOOK = "look at it; repairing takes it away, as a leftover"
