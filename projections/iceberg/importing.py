"""Import of Iceberg tables from a metadata file, folder or catalog; promotion."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import msgspec
from attrs import frozen
from msgspec import UNSET, inspect

import projections.iceberg.imported_metadata as m
from ledger.events import imported as e
from ledger.events.table import SchemaRecord
from ledger.model.errors import AlreadyExistsError, UnsupportedError
from ledger.model.schema import highest_field_id
from ledger.model.types.wire import field_from_wire
from ledger.state.declared_formats import FORMATS_OPTION
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from ledger.stores.file_access import FileAccess
from ledger.table import Table
from projections.iceberg.differences import Step, counters, difference, steps
from projections.iceberg.imported_metadata import Standing, as_said, ledger_schema
from projections.iceberg.metadata_schema import Schema
from projections.iceberg.schema_json import DEEPEST
from projections.iceberg.sources import MetadataFile, Source, open_source, tables_of
from projections.iceberg.table_json import ReadFile, TableFile
from projections.iceberg.table_metadata import TableMetadata
from projections.importing.importing import Importing, Incoming
from projections.importing.trial import ImportedBirth, Planned, Trial


def birth_of(first: TableMetadata, source: str) -> ImportedBirth:
    """Return how a table begins whose oldest metadata file is known.

    Args:
        first: What that file says.
        source: Whose table it is.

    Raises:
        UnsupportedError: The ledger cannot hold its first schema, spec or order.
    """
    formats = first.properties.get(FORMATS_OPTION, "iceberg")
    if formats != "iceberg":
        raise UnsupportedError(
            f"the source has the property {FORMATS_OPTION}={formats}, which in the ledger says "
            "iceberg for its table; take it away there"
        )
    schema = ledger_schema(_first_schema(first), first.format_version)
    fields = tuple(map(field_from_wire, schema.fields))
    spec, order = first.specs_by_id.get(0), first.orders_by_id.get(1)
    begins_sorted = order is not None and 0 not in first.orders_by_id
    return ImportedBirth(
        schema=SchemaRecord(
            fields=schema.fields,
            highest_field_id=highest_field_id(fields),
            options={FORMATS_OPTION: "iceberg"},
            identifier_field_ids=schema.identifier_field_ids,
        ),
        born=e.IcebergBirth(
            source=source,
            location=first.location,
            format_version=first.format_version,
            schema_id=schema.schema_id,
            table_uuid=first.table_uuid or UNSET,
            text=schema.text,
        ),
        millis=min(_times(first)),
        field_id_policy="iceberg",
        partition_spec=UNSET if spec is None else spec.fields,
        sort_order=order.fields if begins_sorted and order is not None else UNSET,
    )


def _first_schema(first: TableMetadata) -> Schema:
    """Return the oldest schema that was the current one once, as far as a file says."""
    # Iceberg gives 0 to the schema of a new table, and a snapshot names the current one.
    current = {0, first.current_schema_id, *(each.schema_id for each in first.snapshots)}
    known = (each for each in first.schemas if each.schema_id in current)
    return min(known, key=lambda each: each.schema_id)


def _times(metadata: TableMetadata) -> Iterator[int]:
    yield metadata.last_updated_ms
    yield from (each.timestamp_ms for each in metadata.snapshots)
    yield from (each.timestamp_ms for each in metadata.snapshot_log)
    yield from (each.timestamp_ms for each in metadata.metadata_log)


def planned(
    trial: Trial, files: Sequence[MetadataFile], known: m.Standing | None = None
) -> Iterator[Planned]:
    """Yield the transactions that metadata files bring, oldest first.

    Args:
        trial: The table as it stands; afterwards, as all of them leave it.
        files: The files, oldest first.
        known: The table as it stands, where somebody has said it in Iceberg's words.

    Raises:
        UnsupportedError: The ledger cannot hold what one says; the message names it.
    """
    for each in files:
        begun = known or m.standing(trial.state, each.metadata)
        before = begun.metadata
        for step in steps(before, each.metadata):
            yield _planned(trial, before, step, each)
            before = step.target
        known = m.standing(trial.state, each.metadata, begun)
        _refuse_inexact(known.metadata, each)


def _planned(trial: Trial, before: TableMetadata, step: Step, file: MetadataFile) -> Planned:
    events = difference(trial, before, step.target)
    if step.is_whole:
        state = trial.after(events, step.millis, step.author)
        followed = e.SourceFollowed(file.url, step.target.last_updated_ms)
        events = (*events, *counters(state, step.target), followed)
    return trial.take(events, step.millis, step.author, file.url)


def _refuse_inexact(made: TableMetadata, file: MetadataFile) -> None:
    wrong = m.disagreements(made, file.metadata)
    if wrong:
        said = ", ".join(each.replace("_", "-") for each in wrong)
        raise UnsupportedError(f"the ledger cannot hold the {said} of {file.url} exactly")


_Walk: TypeAlias = Callable[[Any, str], Iterator[str]]
"""Yields the places of unknown keys in some JSON, which stands at a place."""


def unknown_keys(
    parts: Mapping[str, msgspec.Raw], places: Mapping[str, Collection[int]] | None = None
) -> tuple[str, ...]:
    """Return where a metadata file has keys that this version knows nothing of, each place once.

    Args:
        parts: The text of a file that reads as table metadata, by key.
        places: Which items of a list are looked at, by its key; all of those not named. Most of a
            long history was looked at before.

    Example:
        >>> unknown_keys({"refs": msgspec.Raw(b'{"main": {"colour": 1}}')})
        ('refs.*.colour',)
    """
    wanted = places or {}
    found = {
        key: _items(part, wanted[key]) if key in wanted else msgspec.json.decode(part)
        for key, part in parts.items()
    }
    return tuple(dict.fromkeys(_table_walk()(found, "")))


_RAW: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)


def _items(part: msgspec.Raw, places: Collection[int]) -> list[Any]:
    items = _RAW.decode(part) or () if places else ()
    return [msgspec.json.decode(items[place]) for place in places]


@lru_cache(maxsize=1)
def _table_walk() -> _Walk:
    inside = _insides(TableFile)
    return _of_object({**inside, "schema": _schema, "schemas": _of_list(_schema)})


def _insides(kind: type) -> dict[str, _Walk | None]:
    info = inspect.type_info(kind)
    if not isinstance(info, inspect.StructType):
        raise TypeError(kind)
    return {each.encode_name: _walk_of(each.type) for each in info.fields}


def _walk_of(info: inspect.Type) -> _Walk | None:
    """Return how to look into values of a type; None where no keys are."""
    if isinstance(info, inspect.StructType):
        return _of_object(_insides(info.cls))
    if isinstance(info, inspect.CollectionType):
        inner = _walk_of(info.item_type)
        return inner and _of_list(inner)
    if isinstance(info, inspect.DictType):
        inner = _walk_of(info.value_type)
        return inner and _of_map(inner)
    if isinstance(info, inspect.UnionType):
        return next((found for each in info.types if (found := _walk_of(each))), None)
    return None


def _of_object(inside: dict[str, _Walk | None]) -> _Walk:
    def walk(value: Any, place: str) -> Iterator[str]:
        for key, each in value.items() if isinstance(value, dict) else ():
            if key not in inside:
                yield f"{place}{key}"
            elif (inner := inside[key]) is not None:
                yield from inner(each, f"{place}{key}.")

    return walk


def _of_list(inner: _Walk) -> _Walk:
    def walk(value: Any, place: str) -> Iterator[str]:
        for each in value if isinstance(value, list) else ():
            yield from inner(each, place)

    return walk


def _of_map(inner: _Walk) -> _Walk:
    def walk(value: Any, place: str) -> Iterator[str]:
        for each in value.values() if isinstance(value, dict) else ():
            yield from inner(each, f"{place}*.")

    return walk


_COLUMN: Final = frozenset(
    ("id", "name", "required", "type", "doc", "initial-default", "write-default")
)
_NO_TYPE: Final[frozenset[str]] = frozenset()
_TYPES: Final = {
    "struct": frozenset(("type", "schema-id", "identifier-field-ids", "fields")),
    "list": frozenset(("type", "element-id", "element", "element-required")),
    "map": frozenset(("type", "key-id", "key", "value-id", "value", "value-required")),
}


def _schema(value: Any, place: str, depth: int = 0) -> Iterator[str]:
    """Yield the unknown keys of a schema or a type.

    Nothing may be taken for granted: `schema`, which later versions left behind, is not read where
    there are `schemas`.
    """
    if not isinstance(value, dict) or depth > DEEPEST:
        return
    kind, fields = value.get("type"), value.get("fields")
    known = _TYPES.get(kind, _NO_TYPE) if isinstance(kind, str) else _NO_TYPE
    yield from (f"{place}{key}" for key in value.keys() - known)
    for each in fields if isinstance(fields, list) else ():
        if not isinstance(each, dict):
            continue
        if not each.keys() <= _COLUMN:
            yield from (f"{place}fields.{key}" for key in each.keys() - _COLUMN)
        yield from _schema(each.get("type"), f"{place}fields.type.", depth + 1)
    for key in ("element", "key", "value"):
        yield from _schema(value.get(key), f"{place}{key}.", depth + 1)


@frozen
class _Look:
    """What a source said when its mirror was last looked at in this process."""

    newest: MetadataFile

    def standing(self, state: TableState) -> Standing | None:
        """Return a state in Iceberg's words, if it is what the source said then."""
        origin, newest = state.imported_from(IcebergOrigin), self.newest
        is_it = origin.synced_in == state.version and origin.metadata_file == newest.url
        return as_said(state, newest.metadata) if is_it else None


_looks: WeakKeyDictionary[Table, _Look] = WeakKeyDictionary()


def read(source: str, table: Table | None, now_millis: int, access: FileAccess) -> Incoming:
    """Return what is new; see `projections.importing.importing.Read`."""
    look = None if table is None else _looks.get(table)
    found = open_source(source, access, look.newest.file if look else None)
    known = None if table is None else table.state
    origin = None if known is None else known.imported_from(IcebergOrigin)
    since = ("", 0)
    if origin is not None:
        _refuse_other(origin, found)
        since = origin.metadata_file, origin.last_updated_millis
    files = found.files_since(*since)
    if files:
        found.refuse_missing(() if origin is None else origin.snapshots)
    birth = None if known is not None else birth_of(files[0].metadata, found.name)
    start = known if birth is None else birth.state()
    if start is None:
        raise AssertionError("a table is there, or is born")
    standing = look.standing(start) if look else None
    plan = tuple(planned(Trial(start, now_millis), files, standing))
    if table is not None:
        _looks[table] = _Look(found.newest)
    return Incoming(found.name, found.newest.url, birth, plan, _not_carried(found, origin, files))


def _not_carried(
    source: Source, origin: IcebergOrigin | None, files: Sequence[MetadataFile]
) -> tuple[str, ...]:
    if not files:
        return ()
    file = source.newest.file
    # What stood in a file that was read before was told then.
    is_all_new = origin is None or file.new is not file.parts
    unknown = unknown_keys(file.new, None if is_all_new or origin is None else _new(file, origin))
    return tuple(f"the key {each} of {posixpath.basename(source.newest.url)}" for each in unknown)


def _new(file: ReadFile, origin: IcebergOrigin) -> dict[str, Collection[int]]:
    """Return the places of what a table does not have yet in the lists of a file."""
    said, logged = file.metadata, len(origin.snapshot_log)
    last = origin.snapshot_log[-1].snapshot_id if logged else None
    begins = len(said.snapshot_log) >= logged > 0
    same = begins and said.snapshot_log[logged - 1].snapshot_id == last
    schemas = said.schemas_by_id.keys() - origin.schemas.keys()
    snapshots = said.snapshots_by_id.keys() - origin.snapshots.keys()
    return {
        "schemas": [at for at, each in enumerate(said.schemas) if each.schema_id in schemas],
        "snapshots": [
            at for at, each in enumerate(said.snapshots) if each.snapshot_id in snapshots
        ],
        "snapshot-log": range(logged if same else 0, len(said.snapshot_log)),
    }


def _refuse_other(origin: IcebergOrigin, source: Source) -> None:
    now = source.newest.metadata
    if origin.table_uuid == now.table_uuid:
        return
    if origin.table_uuid is None and origin.location == now.location:
        return
    raise AlreadyExistsError(
        f"the table follows {origin.source}, whose uuid is {origin.table_uuid}; "
        f"that of {source.name} is {now.table_uuid}: it is another table, or was dropped and "
        "made anew; import it under another name"
    )


ICEBERG = Importing(read, tables_of)
