"""Records of schemas."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from msgspec import UNSET, Raw, Struct
from msgspec.json import Decoder, encode

from ledger.events.table import SchemaRecord, TableCreated
from ledger.model.schema import FieldIdPolicy, Schema
from ledger.model.types import DataField
from ledger.model.types.wire import FieldObject, field_from_wire, field_to_wire

_SHARED = (
    "highest_field_id",
    "partition_keys",
    "primary_keys",
    "comment",
    "identifier_field_ids",
)
_OWN = ("id", "time_millis", "field_id_policy")


class StoredSchema(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """A schema in the record of a table's state."""

    id: int
    fields: tuple[FieldObject, ...]
    highest_field_id: int
    time_millis: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: dict[str, str] = {}
    comment: str | None = None
    identifier_field_ids: tuple[int, ...] = ()
    field_id_policy: FieldIdPolicy = "paimon"


class LazySchemaRecord(StoredSchema, frozen=True, gc=False, rename="camel"):
    """Decoded form of `StoredSchema`; columns stay raw, since most were decoded before."""

    fields: tuple[Raw, ...]  # type: ignore[assignment]


_MOST_KNOWN = 20_000
_known: dict[int, tuple[DataField, Raw]] = {}
"""Encoded columns, which few commits change, by the identity of the column."""


def _encode_columns(columns: Sequence[DataField]) -> tuple[Raw, ...]:
    """Return the JSON of some columns in a state's record."""
    found = map(_known.get, map(id, columns))
    return tuple(
        [
            _encode_column(column) if known is None else known[1]
            for column, known in zip(columns, found, strict=True)
        ]
    )


def _encode_column(column: DataField) -> Raw:
    # It is referenced, so that no other column gets its identity.
    known = _known.get(id(column))
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[id(column)] = column, Raw(encode(field_to_wire(column)))
    return known[1]


_FIELDS = Decoder(FieldObject)
_columns_read: dict[bytes, DataField] = {}
"""Decoded columns of records, by their JSON: searches read many states."""


def _decode_column(text: Raw) -> DataField:
    body = bytes(text)
    found = _columns_read.get(body)
    if found is None:
        if len(_columns_read) >= _MOST_KNOWN:
            _columns_read.clear()
        found = _columns_read[body] = field_from_wire(_FIELDS.decode(body))
    return found


def schema_record(schema: Schema) -> SchemaRecord:
    """Return the record of a schema in a creation event."""
    return SchemaRecord(fields=tuple(map(field_to_wire, schema.fields)), **_shared_values(schema))


def stored_schema(schema: Schema) -> StoredSchema:
    """Return the record of a schema in a table's state."""
    return _build_stored_schema(schema, tuple(map(field_to_wire, schema.fields)))


def preencoded_schema(schema: Schema) -> StoredSchema:
    """Return the record of a schema for encoding on its own: its columns are JSON already."""
    return _build_stored_schema(
        schema, cast("tuple[FieldObject, ...]", _encode_columns(schema.fields))
    )


def _build_stored_schema(schema: Schema, fields: tuple[FieldObject, ...]) -> StoredSchema:
    own = {name: getattr(schema, name) for name in _OWN}
    return StoredSchema(fields=fields, **_shared_values(schema), **own)


def _shared_values(schema: Schema) -> dict[str, Any]:
    return {
        "options": dict(sorted(schema.options.items())),
        **{name: getattr(schema, name) for name in _SHARED},
    }


def schema_of(record: StoredSchema) -> Schema:
    """Return the schema of a record."""
    return _build_schema(record, map(field_from_wire, record.fields), **_stored_only_values(record))


def decode_schema_record(record: LazySchemaRecord) -> Schema:
    """Return the schema of a state's record.

    Raises:
        msgspec.DecodeError: A column cannot be decoded.
        InvalidTypeError: A column's type is invalid.
    """
    return _build_schema(record, map(_decode_column, record.fields), **_stored_only_values(record))


def _stored_only_values(record: StoredSchema) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _OWN}


def first_schema(event: TableCreated) -> Schema:
    """Return the schema that a creation event recorded."""
    policy = event.field_id_policy
    fields = map(field_from_wire, event.schema.fields)
    return _build_schema(
        event.schema, fields, field_id_policy="paimon" if policy is UNSET else policy
    )


def _build_schema(
    record: SchemaRecord | StoredSchema, fields: Iterable[DataField], **own: Any
) -> Schema:
    return Schema(
        fields=tuple(fields),
        options=record.options,
        **{name: getattr(record, name) for name in _SHARED},
        **own,
    )
