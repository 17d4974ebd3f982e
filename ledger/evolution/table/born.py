"""A table that was born in Iceberg: what its state holds besides, and how its events fold.

The state is what Iceberg's own metadata file lists: every schema and snapshot that is there, refs,
logs and counters. Nothing here counts: ids and numbers are the source's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

from attrs import frozen
from msgspec import UNSET, Struct

from ledger.events import iceberg_events as e
from ledger.model.errors import InvalidChangeError
from ledger.model.schema import Schema
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot, Tag, Totals
from ledger.model.types import DataField
from ledger.model.types.wire import FieldObject, field_from_wire, field_to_wire

MAIN: Final = "main"
UNKNOWN: Final = -1
"""What a count is that the source does not say."""

_KINDS: Final[Mapping[str, CommitKind]] = {"append": "APPEND", "replace": "COMPACT"}


class BornTable(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a table has that was born in Iceberg; names are those of the metadata file.

    Attributes:
        source: Whose it is.
        location: Iceberg's.
        format_version: Iceberg's.
        table_uuid: None only in old version 1 tables.
        schemas: By Iceberg's id, in the order in which they came.
        schema_id: The current one's.
        snapshots: By id, in the order in which they came.
        added_in: The commit of the ledger that added each snapshot.
        refs: Branches and tags, by name.
        tagged_at: When each tag was set, Unix milliseconds.
        statistics: Puffin files, by the id of their snapshot.
        encryption_keys: By id.
        snapshot_log: Which snapshot was current since when.
        metadata_log: The metadata files before the newest.
        last_sequence_number: The highest one of any snapshot, gone ones included.
        next_row_id: The first row id that no row has.
        last_updated_millis: When the newest metadata file was written that is here.
        metadata_file: That file; empty until one has come in whole.
        followed_in: The commit of the ledger that ended it; -1 before the first.
    """

    source: str
    location: str
    format_version: int
    table_uuid: str | None = None
    schemas: dict[int, e.IcebergSchema]
    schema_id: int
    snapshots: dict[int, e.IcebergSnapshot] = {}
    added_in: dict[int, int] = {}
    refs: dict[str, e.IcebergRef] = {}
    tagged_at: dict[str, int] = {}
    statistics: dict[int, e.IcebergStatistics] = {}
    encryption_keys: dict[str, e.IcebergKey] = {}
    snapshot_log: tuple[e.LoggedSnapshot, ...] = ()
    metadata_log: tuple[e.LoggedMetadata, ...] = ()
    last_sequence_number: int = 0
    next_row_id: int = 0
    last_updated_millis: int = 0
    metadata_file: str = ""
    followed_in: int = -1

    @property
    def current(self) -> e.IcebergSnapshot | None:
        """The head of `main`."""
        main = self.refs.get(MAIN)
        return None if main is None else self.snapshots[main.snapshot_id]

    @property
    def tags(self) -> dict[str, Tag]:
        """The tags, by name; how long they are kept is counted as Iceberg does."""
        return {
            name: Tag(name, ref.snapshot_id, self.tagged_at[name], _present(ref.max_ref_age_millis))
            for name, ref in self.refs.items()
            if ref.ref_type == "tag"
        }

    def schema_of(self, schema_id: int, like: Schema) -> Schema:
        """Return one of the schemas, with everything but the columns as another has it."""
        found = self.schemas[schema_id]
        return Schema(
            fields=tuple(map(field_from_wire, found.fields)),
            options=like.options,
            comment=like.comment,
            id=schema_id,
            highest_field_id=like.highest_field_id,
            time_millis=like.time_millis,
            identifier_field_ids=found.identifier_field_ids,
            field_id_policy=like.field_id_policy,
        )


def _present(value: Any) -> Any:
    return None if value is UNSET else value


def born_snapshot(snapshot: e.IcebergSnapshot, schema_id: int) -> Snapshot:
    """Return an Iceberg snapshot as readers of the ledger see it; unknown counts are -1.

    Args:
        snapshot: Iceberg's.
        schema_id: Of the schema that it has where it names none.
    """
    summary: Mapping[str, str] = {} if snapshot.summary is UNSET else snapshot.summary
    added, deleted = _count(summary, "added-records"), _count(summary, "deleted-records")
    is_known = bool({"added-records", "deleted-records"} & summary.keys())
    return Snapshot(
        id=snapshot.snapshot_id,
        schema_id=schema_id if snapshot.schema_id is UNSET else snapshot.schema_id,
        commit_kind=_KINDS.get(summary.get("operation", ""), "OVERWRITE"),
        commit_user=author_of(summary),
        commit_identifier=BATCH_COMMIT_IDENTIFIER,
        time_millis=snapshot.timestamp_millis,
        total_record_count=_count(summary, "total-records", UNKNOWN),
        delta_record_count=added - deleted if is_known else 0,
        base_manifest_list=_present(snapshot.manifest_list),
        properties=dict(summary),
        operation=summary.get("operation"),
    )


def born_totals(snapshot: e.IcebergSnapshot | None) -> Totals:
    """Return the sums after a snapshot, as its summary says them; unknown ones are -1."""
    if snapshot is None:
        return Totals()
    summary: Mapping[str, str] = {} if snapshot.summary is UNSET else snapshot.summary
    return Totals(
        _count(summary, "total-records", UNKNOWN),
        _count(summary, "total-files-size", UNKNOWN),
        _count(summary, "total-data-files", UNKNOWN),
    )


def _count(summary: Mapping[str, str], key: str, absent: int = 0) -> int:
    text = summary.get(key, "")
    return int(text) if text.isascii() and text.isdigit() else absent


_AUTHORS: Final = ("author", "commit-user", "user", "user.name", "username", "trino_user", "owner")
_ENGINES: Final = ("spark.app.id", "flink.job-id", "trino_query_id", "engine-name", "app-id")


def author_of(summary: Mapping[str, str]) -> str:
    """Return who made a snapshot, as far as its summary says: somebody, or else an engine's job.

    Example:
        >>> author_of({"operation": "append", "spark.app.id": "local-1"})
        'local-1'
    """
    return next((summary[key] for key in (*_AUTHORS, *_ENGINES) if summary.get(key)), "")


class BornTrail:
    """The Iceberg half of a table's builder. Strict: what contradicts the table is refused."""

    __slots__ = ("_facts", "_is_shared", "added_in", "refs", "schemas", "snapshots", "tagged_at")

    def __init__(self, table: BornTable) -> None:
        self._facts: dict[str, Any] = {
            name: getattr(table, name) for name in table.__struct_fields__
        }
        self._is_shared = True
        self._share()

    def _share(self) -> None:
        facts = self._facts
        self.schemas: dict[int, e.IcebergSchema] = facts["schemas"]
        self.snapshots: dict[int, e.IcebergSnapshot] = facts["snapshots"]
        self.added_in: dict[int, int] = facts["added_in"]
        self.refs: dict[str, e.IcebergRef] = facts["refs"]
        self.tagged_at: dict[str, int] = facts["tagged_at"]

    @classmethod
    def of_birth(
        cls, birth: e.IcebergBirth, first: Iterable[FieldObject], keys: tuple[int, ...]
    ) -> BornTrail:
        """Return what a table begins with.

        Args:
            birth: What its creation says of it.
            first: The columns of its first schema.
            keys: The ids of those that identify a row.
        """
        schema = e.IcebergSchema(
            schema_id=birth.schema_id,
            fields=tuple(first),
            identifier_field_ids=keys,
            text=birth.text,
        )
        return cls(
            BornTable(
                source=birth.source,
                location=birth.location,
                format_version=birth.format_version,
                table_uuid=_present(birth.table_uuid),
                schemas={birth.schema_id: schema},
                schema_id=birth.schema_id,
            )
        )

    @property
    def schema_id(self) -> int:
        """The current schema's id."""
        found: int = self._facts["schema_id"]
        return found

    def freeze(self) -> BornTable:
        """Return the table as it stands."""
        self._is_shared = True
        return BornTable(**self._facts)

    def _own(self) -> None:
        """Copy what a frozen table shares, once before the first change."""
        if self._is_shared:
            for name, value in self._facts.items():
                if isinstance(value, dict):
                    self._facts[name] = dict(value)
            self._share()
            self._is_shared = False

    def apply(self, event: e.IcebergEvent, version: int, moment: int) -> None:
        """Fold one fact in.

        Args:
            event: It.
            version: The commit that holds it.
            moment: When it took effect, Unix milliseconds.

        Raises:
            InvalidChangeError: It contradicts the table.
        """
        self._own()
        self._RULES[type(event)](self, event, version, moment)

    def name_schema(
        self, event: e.SchemaNamed, fields: Iterable[DataField], keys: tuple[int, ...]
    ) -> None:
        """Give the columns as they stand an id, and make them the current schema."""
        self._own()
        named = e.IcebergSchema(
            schema_id=event.schema_id,
            fields=tuple(map(field_to_wire, fields)),
            identifier_field_ids=keys,
            text=event.text,
        )
        self._add_schema(named)
        self._facts["schema_id"] = event.schema_id

    def set_current_schema(self, schema_id: int) -> e.IcebergSchema:
        """Make a schema the current one, and return it."""
        self._own()
        found = self.schemas.get(schema_id)
        if found is None:
            raise _refused(f"schema {schema_id} is not there and cannot be the current one")
        self._facts["schema_id"] = schema_id
        return found

    def _add_schema(self, schema: e.IcebergSchema) -> None:
        if self.schemas.setdefault(schema.schema_id, schema) != schema:
            raise _refused(f"schema {schema.schema_id} has other columns already")

    def _schema(self, event: e.SchemaAdded, _version: int, _moment: int) -> None:
        self._add_schema(event.schema)

    def _remove_schemas(self, event: e.SchemasRemoved, _version: int, _moment: int) -> None:
        if self.schema_id in event.schema_ids:
            raise _refused(f"schema {self.schema_id} is the current one and cannot go")
        for each in event.schema_ids:
            _take(self.schemas, each, "schema")

    def _snapshot(self, event: e.SnapshotAdded, version: int, _moment: int) -> None:
        snapshot = event.snapshot
        if snapshot.snapshot_id in self.snapshots:
            raise _refused(f"snapshot {snapshot.snapshot_id} is there already")
        self.snapshots[snapshot.snapshot_id] = snapshot
        self.added_in[snapshot.snapshot_id] = version
        facts = self._facts
        facts["last_sequence_number"] = max(facts["last_sequence_number"], snapshot.sequence_number)
        if snapshot.first_row_id is not UNSET and snapshot.added_rows is not UNSET:
            after = snapshot.first_row_id + snapshot.added_rows
            facts["next_row_id"] = max(facts["next_row_id"], after)

    def _remove_snapshots(self, event: e.SnapshotsRemoved, _version: int, _moment: int) -> None:
        for each in event.snapshot_ids:
            _take(self.snapshots, each, "snapshot")
            self.added_in.pop(each)
            self._facts["statistics"].pop(each, None)
        for name, ref in list(self.refs.items()):
            if ref.snapshot_id not in self.snapshots:
                del self.refs[name]
                self.tagged_at.pop(name, None)

    def _set_ref(self, event: e.SnapshotRefSet, _version: int, moment: int) -> None:
        name, ref = event.ref_name, event.ref
        if ref.snapshot_id not in self.snapshots:
            raise _refused(f"{name} cannot point to {ref.snapshot_id}: no such snapshot")
        if name == MAIN and ref.ref_type != "branch":
            raise _refused("main is a branch and cannot be a tag")
        self.refs[name] = ref
        self.tagged_at.pop(name, None)
        if ref.ref_type == "tag":
            self.tagged_at[name] = moment

    def _remove_ref(self, event: e.SnapshotRefRemoved, _version: int, _moment: int) -> None:
        _take(self.refs, event.ref_name, "branch or tag")
        self.tagged_at.pop(event.ref_name, None)

    def _set_statistics(self, event: e.StatisticsSet, _version: int, _moment: int) -> None:
        self._facts["statistics"][event.statistics.snapshot_id] = event.statistics

    def _remove_statistics(self, event: e.StatisticsRemoved, _version: int, _moment: int) -> None:
        for each in event.snapshot_ids:
            _take(self._facts["statistics"], each, "statistics file of snapshot")

    def _add_key(self, event: e.EncryptionKeyAdded, _version: int, _moment: int) -> None:
        key = event.encryption_key
        if self._facts["encryption_keys"].setdefault(key.key_id, key) != key:
            raise _refused(f"encryption key {key.key_id} is another one already")

    def _remove_key(self, event: e.EncryptionKeyRemoved, _version: int, _moment: int) -> None:
        _take(self._facts["encryption_keys"], event.key_id, "encryption key")

    def _log(
        self, event: e.SnapshotLogUpdated | e.MetadataLogUpdated, _version: int, _moment: int
    ) -> None:
        name = "snapshot_log" if isinstance(event, e.SnapshotLogUpdated) else "metadata_log"
        log = self._facts[name]
        if not 0 <= event.dropped <= len(log):
            raise _refused(f"a log of {len(log)} entries cannot lose {event.dropped}")
        self._facts[name] = (*log[event.dropped :], *event.added)

    def _set_facts(self, event: e.TableFactsSet, _version: int, _moment: int) -> None:
        version = event.format_version
        if version is not UNSET and version < self._facts["format_version"]:
            raise _refused(
                f"a table of Iceberg's format version {self._facts['format_version']} cannot go "
                f"back to {version}"
            )
        for name in (
            "format_version",
            "table_uuid",
            "location",
            "last_sequence_number",
            "next_row_id",
        ):
            value = getattr(event, name)
            if value is not UNSET:
                self._facts[name] = value

    def _follow(self, event: e.SourceFollowed, version: int, _moment: int) -> None:
        self._facts["followed_in"] = version
        self._facts["metadata_file"] = event.metadata_file
        self._facts["last_updated_millis"] = event.last_updated_millis

    def _elsewhere(self, _event: e.LayoutsRemoved, _version: int, _moment: int) -> None:
        """Leave it to the table's layout."""

    _RULES: ClassVar[dict[type, Callable[[BornTrail, Any, int, int], None]]] = {
        e.SchemaAdded: _schema,
        e.SchemasRemoved: _remove_schemas,
        e.SnapshotAdded: _snapshot,
        e.SnapshotsRemoved: _remove_snapshots,
        e.SnapshotRefSet: _set_ref,
        e.SnapshotRefRemoved: _remove_ref,
        e.StatisticsSet: _set_statistics,
        e.StatisticsRemoved: _remove_statistics,
        e.EncryptionKeyAdded: _add_key,
        e.EncryptionKeyRemoved: _remove_key,
        e.SnapshotLogUpdated: _log,
        e.MetadataLogUpdated: _log,
        e.TableFactsSet: _set_facts,
        e.SourceFollowed: _follow,
        e.LayoutsRemoved: _elsewhere,
    }


@frozen
class TakenOver:
    """What a source says, on its way into the log; see `ledger.evolution.stream.Intent`.

    Attributes:
        events: It, as it was decided and tried on the base.
        base_version: The version that it follows; whoever appends it expects that.
    """

    events: tuple[Any, ...]
    base_version: int

    def decide(self, state: Any, winners: object) -> tuple[Any, ...]:
        """Return the events.

        Raises:
            InvalidChangeError: The table was not born elsewhere.
        """
        del winners
        if state is None or state.followed is None:
            raise _refused("the table was not born elsewhere, and follows nobody")
        return self.events


def _take(there: dict[Any, Any], key: object, what: str) -> None:
    if key not in there:
        raise _refused(f"{what} {key} is not there and cannot go")
    del there[key]


def _refused(message: str) -> InvalidChangeError:
    return InvalidChangeError(message, kind="ILLEGAL_STATE")
