"""Classic checkpoints as Parquet.

Parquet's bytes depend on the library that writes it, so checkpoints are compared by content.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from ledger.model.parquet_limits import read_bounded_table
from projections.delta.actions import Add, Reconciled, Remove, Txn, sorted_by_path

_FEW_ROWS: Final = 32
"""Number of rows converted to Python objects at a time."""

_KINDS = ("protocol", "metaData", "txn", "add", "remove")

_LEAST_BLOCK_BYTES: Final = 1 << 24
"""Minimum block size of Arrow's JSON reader; a block must hold a whole line."""


def to_parquet(found: Reconciled) -> bytes:
    """Return a checkpoint's bytes: one row per action, one column per kind of action."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(_rows_to_arrow_table(_checkpoint_rows(found)), sink, compression="snappy")
    return sink.getvalue()


def _rows_to_arrow_table(rows: Iterable[dict[str, Any]]) -> Any:
    """Return rows as an Arrow table.

    Uses Arrow's JSON reader, which releases the GIL: given Python objects,
    Arrow imports pandas, and that import delays every commit of the process.
    """
    import pyarrow as pa
    import pyarrow.json as arrow_json

    lines = [msgspec.json.encode(row) + b"\n" for row in rows]
    kinds = _checkpoint_schema()
    read = arrow_json.read_json(
        pa.BufferReader(b"".join(lines)),
        arrow_json.ReadOptions(
            use_threads=False, block_size=max(_LEAST_BLOCK_BYTES, *map(len, lines))
        ),
        arrow_json.ParseOptions(
            explicit_schema=pa.schema(
                [(each.name, _json_readable_type(each.type)) for each in kinds]
            ),
            unexpected_field_behavior="error",
        ),
    )
    batches = [
        pa.RecordBatch.from_arrays(
            [
                _cast_json_column(array, kind.type)
                for array, kind in zip(batch.columns, kinds, strict=True)
            ],
            schema=kinds,
        )
        for batch in read.to_batches()
    ]
    return pa.Table.from_batches(batches, kinds)


def _json_readable_type(kind: Any) -> Any:
    """Return the type that Arrow's JSON reader produces for a type: it reads no maps."""
    import pyarrow as pa
    import pyarrow.types as is_a

    if is_a.is_struct(kind):
        return pa.struct([(each.name, _json_readable_type(each.type)) for each in kind])
    if is_a.is_map(kind):
        return pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))
    return kind


def _cast_json_column(array: Any, kind: Any) -> Any:
    """Convert a column read from JSON to the intended type; maps are lists of entries."""
    import pyarrow as pa
    import pyarrow.types as is_a

    if is_a.is_struct(kind):
        parts = [_cast_json_column(array.field(at), each.type) for at, each in enumerate(kind)]
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:1], children=parts)
    if is_a.is_map(kind):
        entry = pa.struct([kind.key_field, kind.item_field])
        entries = _cast_json_column(array.values, entry)
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], children=[entries])
    return array


def from_parquet(body: bytes) -> Reconciled:
    """Return the state in a checkpoint that the ledger wrote.

    Raises:
        ValueError: The bytes are not a checkpoint.
    """
    found = Reconciled()
    rows = (
        row for some in _read_parquet_table(body).to_batches(_FEW_ROWS) for row in some.to_pylist()
    )
    for row in rows:
        match next((each, row[each]) for each in _KINDS if row[each] is not None):
            case "protocol", protocol:
                found.protocol = msgspec.json.encode(_drop_null_fields(protocol))
            case "metaData", metadata:
                found.metadata = msgspec.json.encode(_drop_null_fields(metadata))
            case "txn", txn:
                found.txns[txn["appId"]] = msgspec.convert(txn, Txn)
            case "add", add:
                found.adds[add["path"]] = msgspec.convert(_restore_partition_map(add), Add)
            case "remove", remove:
                found.removes[remove["path"]] = msgspec.convert(
                    _restore_partition_map(remove), Remove
                )
    return found


def hint_json(version: int, found: Reconciled) -> bytes:
    """Return the content of `_last_checkpoint` for a checkpoint.

    Spark reads the checkpoint's schema from it instead of opening the file: delta-spark 4.2
    fails to open checkpoints under Spark 4.1.4, including those of its own tables.
    """
    return msgspec.json.encode(
        {
            "version": version,
            "size": found.size,
            "numOfAddFiles": len(found.adds),
            "checkpointSchema": _struct_to_delta_schema(_checkpoint_schema()),
        }
    )


def has_same_content(one: bytes, other: bytes) -> bool:
    """Return whether two checkpoints have the same content, whatever library wrote them."""
    if one == other:
        return True
    try:
        return bool(_read_parquet_table(one).equals(_read_parquet_table(other)))
    except (ValueError, OSError):
        return False


def _read_parquet_table(body: bytes) -> Any:
    import pyarrow as pa

    try:
        return read_bounded_table(body, "the checkpoint").cast(_checkpoint_schema())
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"not a checkpoint: {error}") from error


def _checkpoint_rows(found: Reconciled) -> Iterator[dict[str, Any]]:
    yield {"protocol": msgspec.json.decode(found.protocol)}
    metadata = _select_known_fields(msgspec.json.decode(found.metadata), "metaData")
    configuration = _map_entries(metadata["configuration"])
    form = {"provider": metadata["format"].get("provider"), "options": []}
    yield {"metaData": {**metadata, "format": form, "configuration": configuration}}
    for _, txn in sorted(found.txns.items()):
        yield {"txn": msgspec.to_builtins(txn)}
    for add in sorted_by_path(found.adds.values()):
        # A checkpoint is the whole table: none of its actions changes data.
        yield {"add": {**_file_action_row(add), "dataChange": False}}
    for remove in sorted_by_path(found.removes.values()):
        yield {"remove": {**_file_action_row(remove), "dataChange": False}}


def _file_action_row(action: Add | Remove) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(action)
    return {**fields, "partitionValues": _map_entries(fields["partitionValues"])}


def _select_known_fields(action: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the checkpoint's fields of an action; imported metadata may have more."""
    names = {each.name for each in _checkpoint_schema().field(kind).type}
    return {key: value for key, value in action.items() if key in names}


def _map_entries(said: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in said.items()]


def _restore_partition_map(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "partitionValues": dict(fields["partitionValues"])}


def _drop_null_fields(fields: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in fields.items() if value is not None}
    if "configuration" in found:
        form = {**found["format"], "options": {}}
        found |= {"configuration": dict(found["configuration"]), "format": form}
    return found


def _struct_to_delta_schema(fields: Any) -> dict[str, Any]:
    """Return the fields of an Arrow struct as Delta schema fields."""
    said = [
        {
            "name": each.name,
            "type": _arrow_to_delta_type(each.type),
            "nullable": True,
            "metadata": {},
        }
        for each in fields
    ]
    return {"type": "struct", "fields": said}


def _arrow_to_delta_type(kind: Any) -> Any:
    import pyarrow.types as is_a

    if is_a.is_struct(kind):
        return _struct_to_delta_schema(kind)
    if is_a.is_list(kind):
        element = _arrow_to_delta_type(kind.value_type)
        return {"type": "array", "elementType": element, "containsNull": True}
    if is_a.is_map(kind):
        return {
            "type": "map",
            "keyType": _arrow_to_delta_type(kind.key_type),
            "valueType": _arrow_to_delta_type(kind.item_type),
            "valueContainsNull": True,
        }
    return {"string": "string", "int32": "integer", "int64": "long", "bool": "boolean"}[str(kind)]


def _checkpoint_schema() -> Any:
    import pyarrow as pa

    text, number, flag = pa.string(), pa.int64(), pa.bool_()
    texts = pa.map_(text, text)
    features = pa.list_(text)
    form = pa.struct([("provider", text), ("options", texts)])
    protocol = [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", features),
        ("writerFeatures", features),
    ]
    metadata = [
        ("id", text),
        ("name", text),
        ("description", text),
        ("format", form),
        ("schemaString", text),
        ("partitionColumns", pa.list_(text)),
        ("createdTime", number),
        ("configuration", texts),
    ]
    txn = [("appId", text), ("version", number), ("lastUpdated", number)]
    add = [
        ("path", text),
        ("partitionValues", texts),
        ("size", number),
        ("modificationTime", number),
        ("dataChange", flag),
        ("stats", text),
    ]
    remove = [
        ("path", text),
        ("deletionTimestamp", number),
        ("dataChange", flag),
        ("extendedFileMetadata", flag),
        ("partitionValues", texts),
        ("size", number),
    ]
    columns = zip(_KINDS, (protocol, metadata, txn, add, remove), strict=True)
    return pa.schema([(name, pa.struct(fields)) for name, fields in columns])
