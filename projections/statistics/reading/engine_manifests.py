"""EngineManifests: what a format tells of its engines' manifests, by its part `engine_manifests`.

It says which lists to read and what stands in them; whoever asks reads the files, so that they can
be read anywhere, and once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, Protocol

from attrs import frozen

from ledger.events.snapshot_events import SnapshotCommitted
from ledger.evolution.state import TableState
from ledger.formats import INSTALLED, part, part_if_any
from ledger.model.errors import UnsupportedError
from ledger.model.schema import Schema
from projections.statistics.reading.manifest_part import NOBODY, ManifestPart, Row

Asked = Literal["changes", "contents"]
"""What is asked of a snapshot: what it did, or what it holds.

What the first one did is all that it holds, since nobody else tells what was there before.
"""


@frozen
class NamedList:
    """A manifest list that a snapshot names.

    Attributes:
        path: Below the table's location, or absolute, or a URI.
        size: Its bytes, where that was recorded.
    """

    path: str
    size: int | None


@frozen
class ListedManifest:
    """A manifest that a list names; see `ManifestPart`.

    Attributes:
        path: As of a list.
        size: Its bytes.
        count: How many of its entries are asked for, as far as its list says.
        adder: The snapshot whose changes alone are taken, by the engine's id.
        spec_id: The files' partition spec, where the list says it.
    """

    path: str
    size: int
    count: int
    adder: int = NOBODY
    spec_id: int = 0


class ManifestReader(Protocol):
    """Reads the manifests of one table."""

    def __call__(self, body: bytes, part: ManifestPart, /) -> Iterator[Row]:
        """Yield what is to be taken of a manifest.

        Args:
            body: The whole file.
            part: What is known of it; paths are only asked for of parts that are compared.

        Raises:
            DamagedLogError: It is no manifest of this table, or is cut or changed.
            MissingDependencyError: The package for the file's codec is not installed.
            UnsupportedError: Its records have a version that is not known.
        """


class EngineManifests(Protocol):
    """What a format knows of its engines' manifests."""

    def has_named(self, event: SnapshotCommitted) -> bool:
        """Whether the lists that a snapshot names are of the format's engines."""

    def lists(self, event: SnapshotCommitted, asked: Asked) -> Iterator[NamedList]:
        """Yield which lists a snapshot names for what is asked."""

    def listed(
        self, body: bytes, file: str, event: SnapshotCommitted, asked: Asked
    ) -> list[ListedManifest]:
        """Return which manifests a list names for what is asked.

        Args:
            body: The whole list.
            file: Its name, for errors.
            event: The snapshot that names it.
            asked: What is asked.

        Raises:
            DamagedLogError, MissingDependencyError, UnsupportedError: As `ManifestReader`.
        """

    def reader(self, state: TableState, schemas: Callable[[], Iterator[Schema]]) -> ManifestReader:
        """Return what reads a table's manifests.

        Args:
            state: The table's.
            schemas: Gives all of its schemas, newest first, for columns that were dropped.

        Raises:
            UnsupportedError: No manifest of the format's can be of such a table.
        """


class InstalledManifests:
    """What installed formats tell of manifests; each is imported when it is first asked."""

    def __init__(self) -> None:
        self._found: dict[str, EngineManifests] = {}

    def of(self, event: SnapshotCommitted) -> tuple[str, EngineManifests]:
        """Return the format whose engine named a snapshot's lists, and what it tells.

        Raises:
            UnsupportedError: Nothing that is installed knows them.
        """
        if not self._found:
            # Others first: Iceberg and Paimon, which are the ledger's default, go by which lists a
            # snapshot names, and not by what these are.
            for each in reversed(INSTALLED.names()):
                known: EngineManifests | None = part_if_any(each, "engine_manifests")
                if known is not None:
                    self._found[each] = known
        for name, manifests in self._found.items():
            if manifests.has_named(event):
                return name, manifests
        raise UnsupportedError(
            f"no format that is installed knows the manifest lists of snapshot {event.snapshot_id}:"
            " install the package that does"
        )


def manifests_of(format_name: str) -> EngineManifests:
    """Return what a format tells of its engines' manifests.

    Raises:
        MissingDependencyError: Nothing that is installed brings it.
    """
    found: EngineManifests = part(format_name, "engine_manifests")
    return found
