"""Manifest lists of a table's engines, as other formats read them.

A format whose engines list the files of its tables offers an `EngineLists` as its part
`engine_lists`. Another format's projection renders the snapshots from it without knowing the
engines' format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from attrs import frozen
from msgspec import Struct

from ledger.decide.format_rules import Refusal
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.state.table import TableState
from ledger.table_handle import TableHandle


class SourceManifest(Struct, frozen=True):
    """A manifest as an engine's list names it.

    Attributes:
        name: Its name, which no other manifest of the table ever has.
        added: The number of files that it adds.
        removed: The number of files that it removes; their additions are in other manifests.
        schema_id: The newest schema of its files.
    """

    name: str
    added: int
    removed: int
    schema_id: int


@frozen
class SnapshotLists:
    """The manifests of a snapshot: those with all files before it, and those with its changes."""

    base: tuple[SourceManifest, ...]
    delta: tuple[SourceManifest, ...]


@frozen
class ManifestChanges:
    """The files that a manifest adds and removes, with absolute paths."""

    added: tuple[FileChange, ...]
    removed: tuple[FileChange, ...]


class EngineLists(Protocol):
    """Reader of the manifests that a format's engines write."""

    def table_problems(self, schema: Schema) -> Iterator[Refusal]:
        """Yield why a table with some schema is more than the rows of its files.

        Args:
            schema: The table's schema, or one that some of its files were written with.
        """

    def main_line(self, state: TableState, snapshot: Snapshot) -> tuple[int, ...]:
        """Return the ids of a snapshot and of those before it that were not expired, ascending."""

    def snapshot_problems(
        self, table: TableHandle, state: TableState, snapshot: Snapshot
    ) -> Iterator[Refusal]:
        """Yield why a snapshot is more than the rows of its files.

        Raises:
            NotFoundError: A file that the engine wrote is missing.
            DamagedLogError: It is damaged.
        """

    def lists(self, table: TableHandle, state: TableState, snapshot: Snapshot) -> SnapshotLists:
        """Return the manifests of a snapshot; errors as of `snapshot_problems`."""

    def changes(self, table: TableHandle, state: TableState, name: str) -> ManifestChanges:
        """Return the content of a manifest.

        Raises:
            NotFoundError: The manifest is missing.
            DamagedLogError: It is damaged.
            UnsupportedError: One of its files is no whole set of rows.
        """
