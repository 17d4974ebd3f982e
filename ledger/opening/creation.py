"""Creation and drop of tables across the catalog's and the table's stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from attrs import asdict, frozen

from ledger.decide.catalog import CatalogIntent, DropTable
from ledger.decide.catalog_facts import first_table_commit
from ledger.decide.change_json import normalize_change
from ledger.decide.format_rules import TableCreation, check_creation
from ledger.decide.schema_json import schema_from_json
from ledger.decide.table import UnsealIntent
from ledger.decide.table_creation import (
    create_schema,
    first_partition_spec,
    first_sort_order,
    with_policy,
)
from ledger.decide.table_options import refuse_invalid_marks
from ledger.events import TableEvent
from ledger.events.catalog import CatalogEvent
from ledger.events.commit import Commit
from ledger.events.schema import AddPartitionField, SortColumn
from ledger.events.table import SchemaRecord, TableCreated, TableDropped, TableUndropped
from ledger.formats import INSTALLED
from ledger.log.append import Appender
from ledger.log.codec import encode
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import CommitOptions, LogFile, RetryPolicy, commit_file_once, request_of
from ledger.log.stream_log import StreamLog
from ledger.model.errors import DamagedLogError, NotFoundError, StoreError
from ledger.model.iceberg_layout import PartitionField, SortField
from ledger.model.names import Identifier
from ledger.model.schema import (
    FieldIdPolicy,
    ForeignSchema,
    Schema,
    is_arrow_schema_exporter,
)
from ledger.model.types import DataType
from ledger.state.catalog import CatalogState, TableEntry
from ledger.state.catalog_builder import identifier_of
from ledger.state.declared_formats import Rules
from ledger.state.layout import LayoutTrail
from ledger.state.schema_record import schema_record
from ledger.state.table import TableState
from ledger.stores.base import is_key
from ledger.transforms import Column, Term, term_of

_CREATION_DEPTH: Final = 2


@frozen
class NewTable:
    """Initial schema, partition spec and sort order of a new table, with all ids resolved.

    Attributes:
        schema: Schema 0.
        field_id_policy: The rule by which new field ids are assigned; None for Paimon's.
        partition_spec: Spec 0; None for identity over the partition keys.
        sort_order: Order 1; None for unsorted.
    """

    schema: SchemaRecord
    field_id_policy: FieldIdPolicy | None
    partition_spec: tuple[PartitionField, ...] | None
    sort_order: tuple[SortField, ...] | None

    def rest(self) -> dict[str, Any]:
        """Return the fields besides the schema that are set, by the names of `CreateTable`."""
        rest = asdict(self, recurse=False, filter=lambda _, value: value is not None)
        del rest["schema"]
        return rest


def new_table(
    schema: Schema,
    *,
    field_id_policy: FieldIdPolicy | None = None,
    partition_spec: Iterable[AddPartitionField | Term | Column] | None = None,
    sort_order: Iterable[SortColumn | Term | Column] | None = None,
) -> NewTable:
    """Return the initial schema, spec and order of a new table, after validation.

    Raises:
        InvalidChangeError: The schema, the spec or the order breaks a rule.
        FormatError: One of the table's formats cannot express it.
    """
    rules = Rules.of(schema.options)
    created = create_schema(with_policy(schema, field_id_policy), rules)
    fields = None if partition_spec is None else [_partition_field(each) for each in partition_spec]
    spec = first_partition_spec(created, fields, rules)
    order = first_sort_order(created, [_sort_column(each) for each in sort_order or ()], rules)
    # The catalog checks whether the ledger is erasable.
    refuse_invalid_marks(created, {}, is_erasable=True)
    check_creation(TableCreation(created, LayoutTrail((spec,), (order,)), rules), INSTALLED)
    policy = created.field_id_policy
    return NewTable(
        schema_record(created),
        None if policy == "paimon" else policy,
        None if fields is None else spec.fields,
        order.fields or None,
    )


def _partition_field(given: AddPartitionField | Term | Column) -> AddPartitionField:
    if isinstance(given, AddPartitionField):
        return normalize_change(given)
    term = term_of(given)
    return AddPartitionField(term.source, term.transform)


def _sort_column(given: SortColumn | Term | Column) -> SortColumn:
    if isinstance(given, SortColumn):
        return normalize_change(given)
    term = term_of(given)
    return SortColumn(term.source, term.transform)


def was_created(catalog: StreamLog[CatalogState, CatalogEvent], table_id: str) -> bool:
    """Return whether a marker file records that a table's version 0 was written.

    Then a table without a version 0 has lost it. Older versions wrote no marker, and a creator that
    died after version 0 wrote none, either.
    """
    key = _creation_key(table_id)
    return key is not None and catalog.store.exists(key)


def _creation_key(table_id: str) -> str | None:
    key = f"{STREAM_FOLDER}/tables/{table_id}"
    return key if is_key(key) and key.count("/") == _CREATION_DEPTH else None


def record_creation(
    catalog: StreamLog[CatalogState, CatalogEvent], table_id: str, created_version: int
) -> None:
    """Write the marker file, in the catalog's folder, that a table's version 0 was written.

    Raises:
        OSError: The store failed.
    """
    key = _creation_key(table_id)
    if key is not None:
        catalog.store.replace(key, b"%d\n" % created_version)


def create_stream(
    catalog: StreamLog[CatalogState, CatalogEvent],
    created: Commit[CatalogEvent],
    entry: TableEntry,
    table: StreamLog[TableState, TableEvent],
    retry_policy: RetryPolicy,
) -> None:
    """Create a table's version 0, which the catalog's commit contains.

    Every process that finds it missing creates it, with the same bytes. Then a marker file records
    that it existed, best effort.

    Args:
        catalog: The catalog's log.
        created: Its commit that created the table.
        entry: The table.
        table: The table's log.
        retry_policy: The policy for a store that does not answer.

    Raises:
        CommitUnknownError: The store does not answer; opening the table again retries it.
        DamagedLogError: The catalog's commit does not create that table.
    """
    for transaction in created.transactions:
        for event in transaction.events:
            if isinstance(event, TableCreated) and event.table_id == entry.table_id:
                first = encode(first_table_commit(created, event, transaction))
                file = LogFile(table.layout.commit(0), first, 0)
                commit_file_once(table.store, file, retry_policy, transaction.id)
                with suppress(OSError, StoreError):
                    record_creation(catalog, entry.table_id, entry.created_version)
                return
    key = catalog.layout.commit(entry.created_version)
    raise DamagedLogError(f"{key} does not create table {entry.identifier}", key)


def drop_request_content(identifier: Identifier, *, purge: bool) -> list[str]:
    """Return the content of a request to drop a table, for its request digest."""
    return ["DropTable", str(identifier), *(["purge"] if purge else [])]


def may_be_renamed(entry: TableEntry) -> bool:
    """Return whether a table may have been renamed."""
    own = f"{entry.identifier.database}.db/{entry.identifier.name}"
    is_changed = entry.audit.updated_at != entry.audit.created_at
    return is_changed or entry.is_external or not entry.path.startswith(own)


def finish_drop(
    appender: Appender[CatalogState, CatalogEvent],
    sealed: StreamLog[TableState, TableEvent],
    entry: TableEntry,
    sealed_version: int,
) -> None:
    """Remove a dropped table from the catalog, with the commit id and author of its seal.

    A table's drop ends its stream first. If a drop was retried after another table had got the
    name, both streams end with the same commit id; the catalog has that id for the first table, and
    the second one is removed with an id derived from it.

    Args:
        appender: Of the catalog.
        sealed: The table's log.
        entry: The table.
        sealed_version: The version of its log that seals it. If the table was restored since,
            nothing is removed.
    """
    last = sealed.commit_at(sealed_version)
    seal = sealed.personal.transaction(last.transactions[-1])
    # With the same id, so that a retry of the drop returns this commit.
    options: CommitOptions = {
        "commit_id": seal.id,
        "author": seal.author,
        "message": seal.message,
    }
    dropped = next(each for each in seal.events if isinstance(each, TableDropped))
    name = identifier_of(dropped.identifier)
    asked = drop_request_content(name, purge=dropped.purge)
    request = request_of(options, asked=asked, default_author="")
    if appender.commit_lookup.before(request) is not None:
        head = appender.log.head
        now = None if head is None else head.state.table_by_id(entry.table_id)
        if now is None or sealed_version <= now.unsealed_version:
            return
        options["commit_id"] = f"{seal.id}-{entry.table_id}"
        request = request_of(options, asked=asked, default_author="")
    drop = DropTable(entry.identifier, entry.table_id, sealed_version, dropped.purge)
    with suppress(NotFoundError):
        appender.append(CatalogIntent(drop), request)


def finish_undrop(
    catalog: StreamLog[CatalogState, CatalogEvent],
    appender: Appender[TableState, TableEvent],
    entry: TableEntry,
) -> None:
    """Unseal the stream of a table that the catalog restored, with the author of that commit.

    Every process that finds it sealed appends the same event; the stream takes one of them.

    Args:
        catalog: The catalog's log.
        appender: Of the table.
        entry: The restored table, whose stream ends with `entry.unsealed_version`.
    """
    found = (
        (each, event)
        for each in catalog.commit_at(entry.undropped_version).transactions
        for event in each.events
        if isinstance(event, TableUndropped) and event.table_id == entry.table_id
    )
    transaction, event = next(found)
    said = catalog.personal.transaction(transaction)
    options: CommitOptions = {"author": said.author, "message": said.message}
    # With the same id where the table's stream has no other commit of that id, so that a search
    # finds both. The event's version makes it exactly one, whatever the id is.
    if not [*appender.log.with_id(said.id)]:
        options["commit_id"] = said.id
    asked = ["undropTable", entry.table_id, entry.unsealed_version]
    request = request_of(options, asked=asked, default_author="")
    appender.append(UnsealIntent(event), request)


class RecordOnlyIntent:
    """Intent that changes nothing: its transaction is recorded without events."""

    base_version: int | None = None

    def index_winners(self, winners: object) -> None:
        """See `Intent`: there is nothing to prepare."""

    def decide(self, state: object, winners: object) -> tuple[()]:
        """Return no events, whatever the state is."""
        del state, winners
        return ()


NOTHING = RecordOnlyIntent()


GivenSchema = Schema | Mapping[str, Any] | ForeignSchema
"""Values that can be converted to a schema."""


def as_schema(given: GivenSchema) -> Schema:
    """Return the schema of a value that holds one.

    Columns of another library get new ids.

    Args:
        given: A Schema, its JSON, or one of another library. A mapping from column names to types,
            each a `DataType`, a type's text or its JSON object, is a schema, too.

    Raises:
        InvalidInputError: It is not a schema; the message names the place.
        InvalidTypeError: A type's text cannot be parsed.
        UnsupportedError: No type can represent a column's values; the message names the column.

    Example:
        >>> import pyarrow as pa
        >>> as_schema({"id": "BIGINT"}) == as_schema(pa.schema([("id", pa.int64())]))
        True
    """
    if isinstance(given, Schema):
        return given
    if isinstance(given, Mapping) and not is_arrow_schema_exporter(given):
        if given and all(map(_is_given_type, given.values())):
            return Schema.of(given)
        return schema_from_json(given)
    return Schema.of(given)


def _is_given_type(value: object) -> bool:
    return isinstance(value, str | DataType) or (isinstance(value, Mapping) and "type" in value)
