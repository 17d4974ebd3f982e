"""Origin of a table created in the ledger.

A table's origin is one of `NativeOrigin`, `IcebergOrigin`, `PaimonOrigin` and `DeltaOrigin`. All
have the same methods: the questions to which tables give different answers depending on where they
come from. `LedgerNumberedOrigin` holds the answers of tables whose snapshots the ledger counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, Protocol

from attrs import evolve
from msgspec import UNSET, Struct, UnsetType

from ledger.events.imported import SchemaNamed, SnapshotsRemoved, TableFactsSet
from ledger.events.snapshots import SnapshotsExpired
from ledger.model.errors import InvalidChangeError, InvalidInputError, NotFoundError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_objects import RefType, StatisticsFile
from ledger.model.messages import name_hint
from ledger.model.schema import Schema
from ledger.model.snapshot import (
    BRANCH_IDS,
    Branch,
    CommitKind,
    EngineBranch,
    Snapshot,
    Tag,
    Totals,
    branch_number,
)


class SnapshotState(Protocol):
    """The part of a table's state that determines which snapshots it has; see `TableState`."""

    @property
    def version(self) -> int:
        """The commit's number."""

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest snapshot."""

    @property
    def earliest_snapshot_id(self) -> int:
        """The oldest snapshot that is not expired."""

    @property
    def last_snapshot_id(self) -> int:
        """The newest snapshot's id; 0 before the first."""

    @property
    def tags(self) -> Mapping[str, Tag]:
        """The tags, by name."""

    @property
    def branches(self) -> Mapping[str, Branch]:
        """The branches that the ledger commits to, by name."""

    @property
    def viewed_branch(self) -> Branch | None:
        """The branch that the state is viewed on; None: main."""

    @property
    def held_snapshot_ids(self) -> frozenset[int]:
        """The snapshots of main that tags and branches keep."""

    @property
    def statistics(self) -> Mapping[int, StatisticsFile]:
        """The Puffin files that the ledger recorded, by the id of their snapshot."""


class OriginSnapshot(NamedTuple):
    """A snapshot that the origin lists.

    Attributes:
        version: The commit that added it.
        snapshot: The snapshot.
        totals: The sums after it; unknown ones are -1.
        names_schema: Whether its source names its schema; otherwise its schema id is -1.
    """

    version: int
    snapshot: Snapshot
    totals: Totals
    names_schema: bool = True

    def with_default_schema(self, schema_id: int) -> Snapshot:
        """Return the snapshot, with a schema's id if it names none."""
        if self.names_schema:
            return self.snapshot
        return evolve(self.snapshot, schema_id=schema_id)


class ListedRef(NamedTuple):
    """A branch or a tag of a table."""

    name: str
    ref_type: RefType
    snapshot_id: int


class SchemaChangeEffects(NamedTuple):
    """Consequences of changes of a schema.

    Attributes:
        events: The events that come after those of the changes, in order.
        schema_id: The current schema's id after them.
    """

    events: tuple[SchemaNamed | TableFactsSet, ...]
    schema_id: int


class ListedSchemas(Mapping[int, Schema]):
    """The schemas that an origin lists, by id, each decoded when it is read.

    Args:
        ids: Their ids, oldest first.
        read: Decodes one of them.
    """

    def __init__(self, ids: Iterable[int], read: Callable[[int], Schema]) -> None:
        self._ids = dict.fromkeys(ids)
        self._read = read

    def __getitem__(self, schema_id: int) -> Schema:
        if schema_id not in self._ids:
            raise KeyError(schema_id)
        return self._read(schema_id)

    def __contains__(self, schema_id: object) -> bool:
        return schema_id in self._ids

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


class LedgerNumberedOrigin:
    """The answers of a table whose snapshots and schemas the ledger counts."""

    __slots__ = ()

    has_ordered_ids: ClassVar[bool] = True
    """True where the newer of two schemas, or of two snapshots of main, has the higher id."""

    names_schemas: ClassVar[bool] = False
    """True where a separate event gives a changed schema its id."""

    has_branches: ClassVar[bool] = False
    """True where the ledger commits to branches of the table."""

    def manifest_folder(self, own: str) -> str:
        """Return the folder whose manifests list files of the source; empty: the ledger lists all.

        Args:
            own: The table's own folder.
        """
        del own
        return ""

    @property
    def lists_files_since(self) -> int:
        """The first commit whose snapshots' files the ledger lists."""
        return 0

    def lists_files(self, snapshot_id: int) -> bool:
        """Return True if the ledger, not an engine's manifests, lists a snapshot's files."""
        del snapshot_id
        return True

    def lists_live_files(self, state: SnapshotState) -> bool:
        """Return True if the log lists the live files of a state; False if a manifest list does."""
        return state.snapshot is None or self.lists_files(state.snapshot.id)

    def counted_since_version(self, snapshot_id: int) -> int | None:
        """Return the first commit from which the ledger counts snapshots such as this one.

        None: the snapshot is one of those that the origin lists.
        """
        del snapshot_id
        return 0

    def listed_snapshot(self, snapshot_id: int) -> OriginSnapshot | None:
        """Return a snapshot if the origin lists it."""
        del snapshot_id
        return None

    def listed_schemas(self, newest: Schema) -> Mapping[int, Schema]:
        """Return the schemas that the origin lists, by id, oldest first.

        Empty where the log alone says which schemas there were.

        Args:
            newest: The table's current schema, which gives the older ones what no schema of the
                source has.
        """
        del newest
        return {}

    def highest_schema_id(self, current_id: int) -> int:
        """Return the highest id of a schema that files can name.

        Args:
            current_id: The current schema's id.
        """
        return current_id

    def snapshot_ids(self, state: SnapshotState) -> tuple[int, ...]:
        """Return the ids of the snapshots that can be read, newest first."""
        branch = state.viewed_branch
        if branch is not None:
            return (*reversed(branch.snapshot_ids), branch.base_snapshot_id)
        kept = range(state.earliest_snapshot_id, state.last_snapshot_id + 1)
        return tuple(sorted(state.held_snapshot_ids.union(kept), reverse=True))

    def is_readable(self, state: SnapshotState, snapshot_id: int) -> bool:
        """Return True if a snapshot can be read: not expired, or kept by a tag or a branch."""
        if snapshot_id >= BRANCH_IDS:
            number = branch_number(snapshot_id)
            found = next((each for each in state.branches.values() if each.number == number), None)
            return found is not None and snapshot_id in found.snapshot_ids
        if state.earliest_snapshot_id <= snapshot_id <= state.last_snapshot_id:
            return True
        return snapshot_id in state.held_snapshot_ids

    def readable_range_text(self, state: SnapshotState) -> str:
        """Return which snapshots can be read, for a message."""
        if not state.last_snapshot_id:
            return "none yet"
        return f"{state.earliest_snapshot_id} to {state.last_snapshot_id} and the tagged ones"

    def branch_number(self, snapshot_id: int) -> int:
        """Return the number of the branch that a snapshot is of, by its id; 0 for main's."""
        return branch_number(snapshot_id)

    def last_used_snapshot_id(self, state: SnapshotState) -> int:
        """Return the id that the ledger's next snapshot of main follows."""
        return state.last_snapshot_id

    def next_snapshot_id(self, last_id: int) -> int:
        """Return the id of a snapshot of main that the ledger makes after another one."""
        return last_id + 1

    def puffin_files(self, state: SnapshotState) -> Mapping[int, StatisticsFile]:
        """Return the Puffin files of statistics, by the id of their snapshot."""
        return state.statistics

    def all_refs(self, state: SnapshotState) -> tuple[ListedRef, ...]:
        """Return the branches, then the tags, each by name; main is not included."""
        branches, tags = sorted(state.branches.items()), sorted(state.tags.items())
        return (
            *(ListedRef(name, "branch", each.head_id) for name, each in branches),
            *(ListedRef(name, "tag", each.snapshot_id) for name, each in tags),
        )

    def all_branches(self, state: SnapshotState) -> Mapping[str, Branch | EngineBranch]:
        """Return the branches by name; main is not included."""
        return dict(sorted(state.branches.items()))

    def branch_not_found_error(self, state: SnapshotState, name: str) -> NotFoundError:
        """Return the error that the ledger has no branch of a name."""
        return missing_branch_error(name, self.all_branches(state))

    def check_tag_name(self, name: str) -> None:
        """Reject the name of a tag that a branch of the source has.

        Raises:
            AlreadyExistsError: It does.
        """

    def expiry(
        self, state: SnapshotState, earliest_snapshot_id: int
    ) -> SnapshotsExpired | SnapshotsRemoved | None:
        """Return the event that expires snapshots before one; None: they are gone already.

        Raises:
            InvalidChangeError: The newest snapshot would go, too.
            NotFoundError: There is no such snapshot.
        """
        if earliest_snapshot_id <= state.earliest_snapshot_id:
            return None
        if earliest_snapshot_id > state.last_snapshot_id:
            raise InvalidChangeError(
                f"expiring what is before snapshot {earliest_snapshot_id} would leave none; "
                f"the newest is {state.last_snapshot_id} and stays"
            )
        return SnapshotsExpired(earliest_snapshot_id=earliest_snapshot_id)

    def snapshot_summary(
        self, files: Iterable[FileChange], kind: CommitKind, properties: Mapping[str, str]
    ) -> dict[str, str] | UnsetType:
        """Return the summary that Iceberg requires of a new snapshot; UNSET for other origins.

        Args:
            files: The snapshot's changes of files.
            kind: Its commit kind.
            properties: The properties that its writer gave.
        """
        del files, kind, properties
        return UNSET

    def next_row_id_after(self, files: Iterable[FileChange]) -> int | UnsetType:
        """Return the first row id that no row has after a new snapshot; UNSET without row ids."""
        del files
        return UNSET

    @property
    def physical_names(self) -> Mapping[int, str]:
        """Names of columns in the files of its source, by field id, where a schema may differ."""
        return {}

    @property
    def last_physical_schema_id(self) -> int:
        """The last schema whose files use `physical_names`; -1 if there is none."""
        return -1

    def schemas_to_map(self, schema_ids: Iterable[int], newest: Schema) -> tuple[Schema, ...]:
        """Return the schemas whose names the property with Iceberg's name mapping must have.

        None if the Iceberg projection adds these names to the property.

        Args:
            schema_ids: The schemas whose names files without field ids use.
            newest: The current schema.
        """
        del schema_ids, newest
        return ()

    def schema_change_effects(self, before: Schema, after: Schema) -> SchemaChangeEffects:
        """Return the events and the id that the origin's format adds to changes of a schema.

        Raises:
            InvalidChangeError: The format cannot have the new schema.
        """
        del before
        return SchemaChangeEffects((), after.id)


class _PromotableOrigin(Protocol):
    @property
    def promoted_in(self) -> int:
        """The commit by which the ledger became the owner; -1 while others own the table."""


class ImportedOrigin(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="type"
):
    """The answers of a table that follows a source until the ledger owns it.

    Attributes:
        source: The table that it was imported from.
    """

    format_name: ClassVar[str]
    """The format that the table comes from."""

    source: str

    @property
    def is_promoted(self: _PromotableOrigin) -> bool:
        """True where the table followed its source before the ledger owned it."""
        return self.promoted_in >= 0

    def import_format(self, table: object) -> str:
        """Return the format whose import follows the source."""
        del table
        return self.format_name


class NativeOrigin(LedgerNumberedOrigin, Struct, frozen=True):
    """The origin of a table that the ledger created: no source, and only the ledger's ids."""

    format_name: ClassVar[str] = "native"
    """The format that the table comes from."""

    source: ClassVar[str] = ""
    """The source of the table; empty, since it was created in the ledger."""

    is_promoted: ClassVar[bool] = False
    """True where the table followed a source before the ledger owned it."""

    has_branches: ClassVar[bool] = True

    def import_format(self, table: object) -> str:
        """Return the format whose import follows the source.

        Args:
            table: The table's name, for the message.

        Raises:
            InvalidInputError: There is none, since the table has no source.
        """
        raise InvalidInputError(f"{table} was created in the ledger and has no source to promote")


_MOST_IDS_SHOWN: Final = 10


def abbreviate_ids(snapshot_ids: Sequence[int]) -> str:
    """Return the first of some snapshot ids, for a message."""
    return ", ".join(map(str, snapshot_ids[:_MOST_IDS_SHOWN])) or "none"


NATIVE: Final = NativeOrigin()


def missing_branch_error(name: str, branches: Iterable[str]) -> NotFoundError:
    """Return the error that a table has no branch of a name; it lists the existing ones."""
    if name == "main":
        return NotFoundError(
            "no branch is called 'main', as the table itself is main; omit the branch"
        )
    return NotFoundError(f"branch {name!r} does not exist; {name_hint(name, sorted(branches))}")
