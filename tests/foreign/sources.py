"""Tables that others write: Iceberg by PyIceberg, Delta by delta-rs and by hand, Paimon."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from attrs import define, frozen
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet
from pyiceberg.schema import Schema as IcebergSchema

from tests.foreign.model import Model, Row
from tests.projections.iceberg.importing.writing import created
from tests.pypaimon_or_skip import CatalogFactory
from tests.pypaimon_or_skip import Schema as PaimonSchema

FIELD_ID = b"PARQUET:field_id"


class Source(Protocol):
    """A table whose owner is somebody else."""

    format_name: ClassVar[str]
    unreadable: ClassVar[str]
    """The error of DuckDB's iceberg_scan for files that it cannot read; empty if it reads all."""
    place: Path

    def append(self, model: Model, rows: list[Row]) -> None:
        """Write rows; the columns that the source does not have yet come first."""

    def settle(self) -> None:
        """Do what owners do to the log before somebody imports it."""


@define
class IcebergSource:
    """A table that PyIceberg writes."""

    format_name: ClassVar[str] = "iceberg"
    unreadable: ClassVar[str] = ""
    place: Path
    version: int
    _table: Any = None

    def append(self, model: Model, rows: list[Row]) -> None:
        """Append with PyIceberg."""
        if self._table is None:
            self._table = created(self.place, IcebergSchema(), version=self.version)
        with self._table.update_schema() as update:
            update.union_by_name(model.schema)
        self._table.append(pa.Table.from_pylist(rows, schema=model.schema))

    def settle(self) -> None:
        """Nothing."""


@define
class DeltaSource:
    """A table that delta-rs writes.

    Attributes:
        cleaned: Whether the log begins with a checkpoint.
    """

    format_name: ClassVar[str] = "delta"
    # Where delta-rs adds columns, Parquet's map entries are called `entries`, and not `key_value`:
    # DuckDB finds no keys in them by names.
    unreadable: ClassVar[str] = "'key' of MAP did not map to a value"
    place: Path
    cleaned: bool

    def append(self, model: Model, rows: list[Row]) -> None:
        """Append with delta-rs."""
        found = pa.Table.from_pylist(rows, schema=model.schema)
        write_deltalake(str(self.place), found, mode="append", schema_mode="merge")

    def settle(self) -> None:
        """Let a checkpoint stand for all versions but the last."""
        if self.cleaned:
            clean(self.place)


def clean(place: Path) -> None:
    """Replace the commits of a log so far by a checkpoint."""
    table = DeltaTable(str(place))
    table.create_checkpoint()
    for each in (place / "_delta_log").glob("*.json"):
        if int(each.stem) < table.version():
            each.unlink()


@frozen
class ColumnMapping:
    """The column mapping of a Delta table.

    Attributes:
        mode: `name` or `id`.
        prefix: What physical names begin with; empty where they are the first names of columns.
        nested: Whether elements, keys and values have ids, as under IcebergCompatV2.
        cleaned: Whether the log begins with a checkpoint.
    """

    mode: str
    prefix: str
    nested: bool
    cleaned: bool


@define
class MappedDeltaSource:
    """A Delta table with mapped columns, whose log is written by hand."""

    format_name: ClassVar[str] = "delta"
    unreadable: ClassVar[str] = ""
    place: Path
    how: ColumnMapping
    _version: int = 0
    _highest: int = 0
    _fields: dict[str, Row] | None = None

    def append(self, model: Model, rows: list[Row]) -> None:
        """Write a file of physical names and field ids, and a version that adds it."""
        actions: list[Row] = [
            {"commitInfo": {"timestamp": 1_700_000_000_000 + self._version, "operation": "WRITE"}}
        ]
        if self._fields is None:
            self._fields = {}
            actions.append({"protocol": self._protocol()})
        if model.columns.keys() != self._fields.keys():
            for each in model.schema:
                if each.name not in self._fields:
                    self._fields[each.name] = self._field(each)
            actions.append({"metaData": self._metadata()})
        schema = pa.schema([_physical(each, self._fields[each.name]) for each in model.schema])
        name = f"part-{self._version}.parquet"
        self.place.mkdir(exist_ok=True)
        arrays = pa.Table.from_pylist(rows, schema=model.schema)
        made = [_cast(arrays[each].combine_chunks(), f.type) for each, f in enumerate(schema)]
        parquet.write_table(pa.Table.from_arrays(made, schema=schema), self.place / name)
        size = (self.place / name).stat().st_size
        said = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 5}
        stats = json.dumps({"numRecords": len(rows)})
        actions.append({"add": {**said, "dataChange": True, "stats": stats}})
        log = self.place / "_delta_log"
        log.mkdir(exist_ok=True)
        lines = "".join(json.dumps(each) + "\n" for each in actions)
        (log / f"{self._version:020d}.json").write_text(lines)
        self._version += 1

    def settle(self) -> None:
        """Let a checkpoint stand for all versions but the last."""
        if self.how.cleaned:
            clean(self.place)

    def _protocol(self) -> Row:
        features = ["columnMapping", *(["icebergCompatV2"] if self.how.nested else [])]
        return {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["columnMapping", "timestampNtz"],
            "writerFeatures": [*features, "timestampNtz"],
        }

    def _metadata(self) -> Row:
        fields = list((self._fields or {}).values())
        configuration = {
            "delta.columnMapping.mode": self.how.mode,
            "delta.columnMapping.maxColumnId": str(self._highest),
        }
        if self.how.nested:
            configuration["delta.enableIcebergCompatV2"] = "true"
        return {
            "id": "7d6c1f9e-0000-4000-8000-000000000001",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": configuration,
            "createdTime": 1_700_000_000_000,
        }

    def _next(self) -> int:
        self._highest += 1
        return self._highest

    def _field(self, field: pa.Field) -> Row:
        number = self._next()
        physical = f"{self.how.prefix}{number}" if self.how.prefix else field.name
        said: Row = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": physical,
        }
        nested: dict[str, int] = {}
        kind = self._type(field.type, physical, nested)
        if self.how.nested and nested:
            said["delta.columnMapping.nested.ids"] = {each: self._next() for each in nested}
        return {"name": field.name, "type": kind, "nullable": True, "metadata": said}

    def _type(self, kind: pa.DataType, path: str, nested: dict[str, int]) -> Any:
        if pa.types.is_struct(kind):
            return {"type": "struct", "fields": [self._field(each) for each in kind]}
        if pa.types.is_list(kind):
            nested[f"{path}.element"] = 0
            element = self._type(kind.value_type, f"{path}.element", nested)
            return {"type": "array", "elementType": element, "containsNull": True}
        if pa.types.is_map(kind):
            nested[f"{path}.key"] = nested[f"{path}.value"] = 0
            key = self._type(kind.key_type, f"{path}.key", nested)
            value = self._type(kind.item_type, f"{path}.value", nested)
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        return _DELTA_NAMES[str(kind)]


_DELTA_NAMES = {
    "bool": "boolean",
    "int32": "integer",
    "int64": "long",
    "double": "double",
    "decimal128(9, 2)": "decimal(9,2)",
    "date32[day]": "date",
    "timestamp[us, tz=UTC]": "timestamp",
    "timestamp[us]": "timestamp_ntz",
    "string": "string",
    "binary": "binary",
}


def _physical(field: pa.Field, said: Row) -> pa.Field:
    """Return a field as files have it."""
    metadata = said["metadata"]
    name = metadata["delta.columnMapping.physicalName"]
    nested = metadata.get("delta.columnMapping.nested.ids", {})
    kind = _physical_type(field.type, said["type"], name, nested)
    return _with_id(pa.field(name, kind), metadata["delta.columnMapping.id"])


def _physical_type(kind: pa.DataType, said: Any, path: str, nested: dict[str, int]) -> pa.DataType:
    if pa.types.is_struct(kind):
        pairs = zip(kind, said["fields"], strict=True)
        return pa.struct([_physical(each, of) for each, of in pairs])

    def inside(name: str, inner: pa.DataType, of: Any, *, nullable: bool = True) -> pa.Field:
        place = f"{path}.{name}"
        made = pa.field(name, _physical_type(inner, of, place, nested), nullable=nullable)
        return _with_id(made, nested.get(place))

    if pa.types.is_list(kind):
        return pa.list_(inside("element", kind.value_type, said["elementType"]))
    if pa.types.is_map(kind):
        return pa.map_(
            inside("key", kind.key_type, said["keyType"], nullable=False),
            inside("value", kind.item_type, said["valueType"]),
        )
    return kind


def _with_id(field: pa.Field, number: int | None) -> pa.Field:
    return field if number is None else field.with_metadata({FIELD_ID: str(number).encode()})


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values under the names of another type."""
    return pa.array(list(_renamed(values.to_pylist(), values.type, kind)), kind)


def _renamed(values: Iterable[Any], old: pa.DataType, new: pa.DataType) -> Iterator[Any]:
    for each in values:
        if each is None:
            yield None
        elif pa.types.is_struct(old):
            pairs = list(zip(old, new, strict=True))
            yield {n.name: next(_renamed([each[o.name]], o.type, n.type)) for o, n in pairs}
        elif pa.types.is_list(old):
            yield list(_renamed(each, old.value_type, new.value_type))
        elif pa.types.is_map(old):
            inner = _renamed([value for _, value in each], old.item_type, new.item_type)
            yield list(zip([key for key, _ in each], inner, strict=True))
        else:
            yield each


@define
class PaimonSource:
    """A table that pypaimon writes, without a key."""

    format_name: ClassVar[str] = "paimon"
    unreadable: ClassVar[str] = ""
    place: Path
    _table: Any = None

    def append(self, model: Model, rows: list[Row]) -> None:
        """Append with pypaimon, whose columns stay as they are."""
        catalog = CatalogFactory.create({"warehouse": str(self.place.parents[1])})
        name = f"{self.place.parent.stem}.{self.place.name}"
        if self._table is None:
            catalog.create_database(self.place.parent.stem, ignore_if_exists=True)
            schema = PaimonSchema.from_pyarrow_schema(model.schema)
            catalog.create_table(name, schema, ignore_if_exists=False)
        self._table = catalog.get_table(name)
        builder = self._table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(pa.Table.from_pylist(rows, schema=model.schema))
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()

    def settle(self) -> None:
        """Nothing."""
