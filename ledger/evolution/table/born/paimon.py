"""A table that was born in Paimon: what its state holds besides, and how its events fold.

The state is what Paimon's folders list: every schema and snapshot that is there, and branches. Ids
are the source's, and come again where it rolled back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Final

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from ledger.events.born.paimon import PaimonBirth, PaimonBranchUpdated
from ledger.evolution.fold.schema_record import StoredSchema, schema_of, stored_schema
from ledger.model.errors import InvalidChangeError
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot, Totals

UNKNOWN: Final = -1
"""What a count is that the source does not say."""


class PaimonTable(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a table has that was born in Paimon.

    Attributes:
        source: Whose it is.
        location: Its folder there.
        schemas: By id.
        snapshots: Those that are not expired, by id.
        kept: Those that are, and that tags keep.
        added_in: The commit of the ledger that brought each of both.
        branches: By name, the texts of each one's files, by path.
    """

    format_name: ClassVar[str] = "paimon"
    """Which import takes over what is new there."""

    source: str
    location: str
    schemas: dict[int, StoredSchema]
    snapshots: dict[int, Snapshot] = {}
    kept: dict[int, Snapshot] = {}
    added_in: dict[int, int] = {}
    branches: dict[str, dict[str, str]] = {}

    @classmethod
    def of_birth(cls, birth: PaimonBirth, first: Schema) -> PaimonTable:
        """Return what a table begins with."""
        return cls(
            source=birth.source,
            location=birth.location,
            schemas={birth.schema_id: stored_schema(first)},
        )

    @property
    def current(self) -> Snapshot | None:
        """The newest snapshot of the main line."""
        return self.snapshots[max(self.snapshots)] if self.snapshots else None

    @property
    def every(self) -> Mapping[int, Snapshot]:
        """All snapshots that can be read, by id."""
        return {**self.kept, **self.snapshots}

    def schema(self, schema_id: int) -> Schema:
        """Return one of the schemas.

        Raises:
            InvalidChangeError: There is none of that id.
        """
        found = self.schemas.get(schema_id)
        if found is None:
            raise _refused(f"schema {schema_id} is not there; there are {sorted(self.schemas)}")
        return schema_of(found)

    def with_schema(self, schema: Schema) -> PaimonTable:
        """Return the table with one schema more.

        Raises:
            InvalidChangeError: There is one of that id.
        """
        if schema.id in self.schemas:
            raise _refused(f"schema {schema.id} is there already")
        return replace(self, schemas={**self.schemas, schema.id: stored_schema(schema)})

    def without_schemas(self, schema_ids: Iterable[int], current: int) -> PaimonTable:
        """Return the table without some schemas.

        Raises:
            InvalidChangeError: One is not there, or is the current one.
        """
        left = dict(self.schemas)
        for each in schema_ids:
            if each == current or left.pop(each, None) is None:
                raise _refused(f"schema {each} is not there or is the current one, and cannot go")
        return replace(self, schemas=left)

    def committed(self, snapshot: Snapshot, version: int) -> PaimonTable:
        """Return the table with one snapshot more.

        Args:
            snapshot: It.
            version: The commit that holds it.

        Raises:
            InvalidChangeError: There is one of that id, or its schema is not there.
        """
        if snapshot.id in self.snapshots or snapshot.id in self.kept:
            raise _refused(f"snapshot {snapshot.id} is there already")
        self.schema(snapshot.schema_id)
        return replace(
            self,
            snapshots={**self.snapshots, snapshot.id: snapshot},
            added_in={**self.added_in, snapshot.id: version},
        )

    def expired(self, earliest: int, tagged: Collection[int]) -> PaimonTable:
        """Return the table without the snapshots before one, but for those that tags keep."""
        gone = {each: it for each, it in self.snapshots.items() if each < earliest}
        return self._only(
            {each: it for each, it in self.snapshots.items() if each >= earliest},
            {**self.kept, **gone},
            tagged,
        )

    def without(self, snapshot_ids: Collection[int], tagged: Collection[int]) -> PaimonTable:
        """Return the table without some snapshots, which a rollback took away.

        Raises:
            InvalidChangeError: One is not there.
        """
        every = self.every
        for each in snapshot_ids:
            if each not in every:
                raise _refused(f"snapshot {each} is not there and cannot go")
        gone = set(snapshot_ids)
        return self._only(
            {each: it for each, it in self.snapshots.items() if each not in gone},
            {each: it for each, it in self.kept.items() if each not in gone},
            tagged,
        )

    def keeping(self, tagged: Collection[int]) -> PaimonTable:
        """Return the table with no other expired snapshots than those that tags keep."""
        return self._only(self.snapshots, self.kept, tagged)

    def _only(
        self,
        snapshots: dict[int, Snapshot],
        kept: dict[int, Snapshot],
        tagged: Collection[int],
    ) -> PaimonTable:
        kept = {each: it for each, it in kept.items() if each in tagged}
        return replace(
            self,
            snapshots=snapshots,
            kept=kept,
            added_in={
                each: version
                for each, version in self.added_in.items()
                if each in snapshots or each in kept
            },
        )

    def with_branch(self, event: PaimonBranchUpdated) -> PaimonTable:
        """Return the table with a branch as it is now.

        Raises:
            InvalidChangeError: A file that is gone was not there.
        """
        files = dict(self.branches.get(event.branch_name, {}))
        for each in event.removed:
            if files.pop(each, None) is None:
                raise _refused(f"branch {event.branch_name} has no {each}, which cannot go")
        if not isinstance(event.added, UnsetType):
            files |= event.added
        branches = {**self.branches, event.branch_name: files}
        return replace(self, branches={name: each for name, each in branches.items() if each})


def paimon_totals(snapshot: Snapshot | None) -> Totals:
    """Return the sums after a snapshot, as far as it says them; unknown ones are -1."""
    if snapshot is None:
        return Totals()
    return Totals(snapshot.total_record_count, UNKNOWN, UNKNOWN)


def _refused(message: str) -> InvalidChangeError:
    return InvalidChangeError(message, kind="ILLEGAL_STATE")
