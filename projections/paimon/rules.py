"""PaimonRules: validation of schemas and files for Paimon.

Source: Paimon's DataFileMeta and ManifestEntry, and how its readers find a file's format.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import attrs
from msgspec import UNSET, UnsetType

from ledger.decide.bounds import COUNT, NUMBERS, ROW_ID, TIME_MILLIS
from ledger.decide.format_rules import (
    Batch,
    FileForm,
    History,
    Refusal,
    SnapshotArrival,
    TableCreation,
    lost_source_problems,
)
from ledger.decide.option_changes import IMMUTABLE_OPTIONS
from ledger.locations import find_colliding_names, folded
from ledger.model.errors import LedgerError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg_layout import PartitionSpec, SomeSpecs, spec_by_id
from ledger.model.messages import excerpt
from ledger.model.schema import Schema, paths_of
from ledger.model.single_values import decode_value, encode_value, is_in_integer_range
from ledger.model.types import DataField, DataType, type_places
from ledger.model.types.text import bare_type_text, format_type
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState

_FORMATS = ("parquet", "orc", "avro")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_YEAR = re.compile(r"(?!0000)\d{4}-")
_MOMENT = re.compile(r"[\d-]{10}[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|\+00:00)?")
_CALENDAR = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_LTZ"})

# Readers convert it to a calendar time: the years 1 to 9999, in milliseconds since 1970.
_CREATED = -62_135_596_800_000, TIME_MILLIS.most
_NUMBERS = tuple(
    (name.replace("_", " "), *(_CREATED if bound is TIME_MILLIS else bound.log_limits))
    for name, bound in NUMBERS[FileChange].items()
)
"""Name and range of each number of a file; older files have more of them than new ones."""
_LAST_ROW = ("last row id", *ROW_ID.log_limits)
_numbers = attrgetter(*NUMBERS[FileChange])


@attrs.define
class FileRules:
    """Validation of the files of a Paimon table.

    Attributes:
        schema: The table's schema.
        specs: Its partition specs.
    """

    schema: Schema
    specs: SomeSpecs
    _sound: set[tuple[object, ...]] = attrs.Factory(set)
    _placed: dict[int, dict[str, int | None]] = attrs.Factory(dict)

    def problems(self, files: Iterable[FileChange]) -> Iterator[Refusal]:
        """Yield what Paimon cannot express of added files; deleted files are not validated."""
        added = [each for each in files if each.kind == "ADD"]
        are_sound = _numbers_are_sound(added)
        for each in added:
            yield from _file_name_problems(each)
            if not are_sound:
                yield from _number_problems(each)
            yield from _null_count_problems(each)
            yield from self._partition_problems(each)

    def _partition_problems(self, file: FileChange) -> Iterator[Refusal]:
        # Many files share a partition; without their types, 1 and True would be one key.
        key = file.spec_id, file.partition, *map(type, file.partition)
        if key in self._sound:
            return
        places = self._key_positions(file.spec_id)
        for name, place in places.items():
            if place is None:
                rule = f"its spec {file.spec_id} has no identity({name}), a partition key"
                yield _file_refusal(file, rule, "write it under a spec that has")
                return
            value, data_type = file.partition[place], self.schema.field(name).type
            if not _is_storable_value(value, data_type):
                said = bare_type_text(data_type)
                rule = f"partition key {name} has values of {said}, and {excerpt(value)} is none"
                way = "give the file a value that is one"
                yield _file_refusal(file, f"{rule} that Paimon can write", way)
                return
        self._sound.add(key)

    def _key_positions(self, spec_id: int) -> dict[str, int | None]:
        """Return the positions of the partition keys' values in files of a spec."""
        found = self._placed.get(spec_id)
        if found is None:
            # Files use few of all specs that ever existed.
            spec = spec_by_id(self.specs, spec_id)
            kept = {
                each.source_id: place
                for place, each in enumerate(spec.fields)
                if each.transform == "identity"
            }
            ids = {name: self.schema.field(name).id for name in self.schema.partition_keys}
            found = self._placed[spec_id] = {name: kept.get(each) for name, each in ids.items()}
        return found


def key_problems(
    schema: Schema, files: Iterable[FileChange], facts: Mapping[str, Any]
) -> Iterator[Refusal]:
    """Yield problems of files of a primary-key table that no engine lists.

    Args:
        schema: The table's schema.
        files: Files of one snapshot.
        facts: The snapshot's fields, its engine's manifest lists included.
    """
    if not schema.primary_keys or isinstance(facts.get("base_manifest_list"), str):
        return
    for each in files:
        if each.kind == "ADD":
            yield _file_refusal(
                each,
                "only the engine knows the keys and levels of a primary key's files",
                "let the engine commit manifest lists of its own",
            )
            return


def _file_name_problems(file: FileChange) -> Iterator[Refusal]:
    if file.content != "data":
        rule = f"its manifests list data files, and this one holds {excerpt(file.content)}"
        yield _file_refusal(file, rule, "compact the deletes into the data files first")
    elif not isinstance(file.sort_order_id, UnsetType) and file.sort_order_id:
        rule = f"its manifests have no sort order, and this file has {file.sort_order_id}"
        yield _file_refusal(file, rule, "leave sort_order_id out")
    elif not isinstance(file.column_names, UnsetType):
        names = ", ".join(map(excerpt, file.column_names.values()))
        rule = f"readers find a column by its name in a schema, and no schema has the names {names}"
        way = (
            "overwrite the older files in the same commit by files with the schema's names, such "
            "as by table.overwrite(rows) with all rows"
        )
        yield _file_refusal(file, rule, way)
    elif file.format.lower() not in _FORMATS:
        rule = f"files are {', '.join(_FORMATS)}, and this one is {excerpt(file.format)}"
        yield _file_refusal(file, rule, "write it again as one of them")
    elif not file.path.endswith(f".{file.format.lower()}"):
        rule = f"readers derive a file's format from its extension, and this one is {file.format}"
        yield _file_refusal(file, rule, f"rename it to end in .{file.format.lower()}")
    elif _CONTROL.search(file.path):
        rule = "readers parse a file's path as a URL, which has no control characters"
        yield _file_refusal(file, rule, "rename it")


def _numbers_are_sound(files: Sequence[FileChange]) -> bool:
    """Return whether no number of some files is a problem; False means unknown."""
    if {*map(attrgetter("first_row_id"), files)} - {UNSET}:
        return False
    for (_, least, most), name in zip(_NUMBERS, NUMBERS[FileChange], strict=True):
        # Most columns have few distinct values.
        found: set[Any] = {*map(attrgetter(name), files)} - {UNSET}
        if found and not (least <= min(found) and max(found) <= most):
            return False
    return True


def _number_problems(file: FileChange) -> Iterator[Refusal]:
    row_id = file.first_row_id
    last_row = UNSET if isinstance(row_id, UnsetType) else row_id + file.record_count
    rows = zip((*_NUMBERS, _LAST_ROW), (*_numbers(file), last_row), strict=True)
    for (what, least, most), number in rows:
        if number is not UNSET and not least <= number <= most:
            rule = f"a {what} is between {least} and {most}, and this file's is {number}"
            yield _file_refusal(file, rule, "correct it")


def _null_count_problems(file: FileChange) -> Iterator[Refusal]:
    nulls = file.null_value_counts
    if not isinstance(nulls, UnsetType) and not all(map(COUNT.holds, nulls.values())):
        rule = f"a count of nulls is between 0 and {COUNT.most}"
        yield _file_refusal(file, rule, "leave the count out, or correct it")


def _is_storable_value(value: PartitionValue, data_type: DataType) -> bool:
    """Return whether Paimon's rows and folders can hold a value of its type."""
    if value is None:
        return True
    root = data_type.root
    try:
        canonical = str(encode_value(decode_value(value, data_type), data_type))
    except (LedgerError, ValueError, OverflowError):
        return False
    if root in _CALENDAR:
        # Only years of four digits, and a timestamp with its time, in UTC.
        is_whole = root == "DATE" or _MOMENT.fullmatch(str(value)) is not None
        return is_whole and _YEAR.match(canonical) is not None
    return is_in_integer_range(value, data_type)


def _file_refusal(file: FileChange, rule: str, alternative: str) -> Refusal:
    path = repr(file.path) if _CONTROL.search(file.path) else file.path
    return Refusal(f"file {path}", rule, alternative)


_LACKING = frozenset({"UUID", "UNKNOWN"})


def column_problems(columns: Iterable[DataField]) -> Iterator[Refusal]:
    """Yield what Paimon cannot express of some columns, at every depth."""
    for place in type_places(columns):
        what = f"column {place.name}"
        if place.type.root in _LACKING:
            instead = "take BINARY(16)" if place.type.root == "UUID" else "name its type"
            yield Refusal(what, f"Paimon has no {place.type.root}", instead)
        if place.field is not None and place.field.initial_default is not None:
            yield Refusal(
                what,
                "a column that older files lack reads as NULL, never as a default",
                "add it without one and set the default afterwards, which new rows get",
            )


def spec_problems(schema: Schema, specs: Iterable[PartitionSpec]) -> Iterator[Refusal]:
    """Yield the partition keys in which a file of some specs would not be single-valued."""
    for spec in specs:
        kept = {each.source_id for each in spec.fields if each.transform == "identity"}
        for name in schema.partition_keys:
            if schema.field(name).id not in kept:
                yield Refusal(
                    f"partition spec {spec.spec_id}",
                    f"it lacks identity({name}), and a file of a partition key has one value in it",
                    f"keep the field of {name}; other fields may come and go",
                )


def schema_change_problems(before: Schema, after: Schema) -> Iterator[Refusal]:
    """Yield changes, made while Paimon was not declared, that make existing files unreadable.

    Args:
        before: A schema of files that are readable.
        after: The current schema.
    """
    yield from _key_problems(before, after)
    old_ids = {place.field.id for place in type_places(before.fields) if place.field}
    for column in after.fields:
        if not column.type.nullable and column.id not in old_ids:
            yield Refusal(
                f"column {column.name}",
                "it is NOT NULL, and older files have no value for it",
                "make it nullable first",
            )
    yield from _option_problems(before, after)


def _key_problems(before: Schema, after: Schema) -> Iterator[Refusal]:
    for what in ("partition", "primary"):
        old, new = _key_columns(before, what), _key_columns(after, what)
        if [each.id for each in old] != [each.id for each in new]:
            yield Refusal(
                f"the {what} key",
                f"files of schema {before.id} are laid out by another one, "
                f"{[each.name for each in old]}",
                "create a new table",
            )
            continue
        for earlier, later in zip(old, new, strict=True):
            if earlier.type != later.type:
                yield Refusal(
                    f"column {later.name}",
                    f"key columns keep their types, and it was {format_type(earlier.type)} in "
                    f"schema {before.id}, which has files",
                    "create a new table",
                )


def _key_columns(schema: Schema, what: str) -> list[DataField]:
    names = schema.partition_keys if what == "partition" else schema.primary_keys
    return [schema.field(name) for name in names]


def _option_problems(before: Schema, after: Schema) -> Iterator[Refusal]:
    old, new = before.options, after.options
    for key in sorted(IMMUTABLE_OPTIONS & {*old, *new}):
        if old.get(key) != new.get(key):
            yield Refusal(
                f"option {key}",
                f"it is fixed once there are snapshots, and was {old.get(key)!r} in schema "
                f"{before.id}, which has files",
                f"set it back to {old[key]!r}" if key in old else "remove it",
            )


class PaimonRules:
    """Rules of Paimon; see `FormatRules`."""

    name = "paimon"
    title = "Paimon"
    number = 1
    binds_names = False
    orders_members = True
    file_forms: Mapping[str, FileForm] = MappingProxyType(
        {"TIME": FileForm("milliseconds in 4 bytes", "take INT or TIMESTAMP")}
    )

    def version(self, options: Mapping[str, str]) -> int:
        """Return 1, the only version."""
        del options
        return 1

    def creation_problems(self, creation: TableCreation) -> Iterator[Refusal]:
        """Yield what Paimon cannot express of a new table."""
        yield from column_problems(creation.schema.fields)
        yield from spec_problems(creation.schema, [creation.layout.spec])

    def problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield what Paimon cannot express of a table after a batch."""
        if batch.is_new(self):
            yield from _readable_history_problems(batch)
        elif not batch.is_same_shape:
            yield from column_problems(batch.changed_columns)
            yield from spec_problems(batch.schema, [batch.layout.spec])

    def last_problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield the fields of the current layout that lose their column by the batch."""
        if batch.is_same_shape and not batch.is_new(self):
            return
        yield from lost_source_problems(batch)

    def file_problems(self, arrival: SnapshotArrival) -> Iterator[Refusal]:
        """Yield what Paimon cannot express of a snapshot's files."""
        state = arrival.state
        yield from key_problems(state.schema, arrival.files, arrival.facts)
        yield from FileRules(state.schema, state.specs).problems(arrival.files)

    def name_problems(
        self, schema: Schema, come: Collection[FileChange], state: TableState, history: History
    ) -> Iterator[Refusal]:
        """Yield nothing: column names of its files are those of the schema that wrote them."""
        del schema, come, state, history
        return iter(())

    def tag_problems(self, name: str, others: Collection[str]) -> Iterator[Refusal]:
        """Yield the tag whose file name some stores treat as this one's."""
        return _tag_file_conflicts([*sorted(find_colliding_names(name, others))[:1], name])


RULES = PaimonRules()


def origin_problems(state: TableState) -> Iterator[Refusal]:
    """Yield that Paimon cannot express a table imported from a format with other snapshots."""
    if isinstance(state.origin, IcebergOrigin):
        yield Refusal(
            "the table",
            "it was imported from Iceberg, and Paimon's files have neither its snapshot ids nor "
            "its branches",
            "read it by iceberg",
        )


def _tag_file_conflicts(names: Iterable[str]) -> Iterator[Refusal]:
    seen: dict[str, str] = {}
    for each in names:
        other = seen.setdefault(folded(each), each)
        if other != each:
            yield Refusal(
                f"tag {each}",
                f"each tag is a file of its name, and some stores treat it as that of tag {other}",
                "give one of them another name",
            )


def _name_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield a column that a Delta source's files hold under another name than their schema's.

    Paimon's readers find columns by the names in a file's schema.
    """
    delta = batch.before.delta
    if delta is None:
        return
    names = delta.column_names_in_files
    held = [batch.before.schema, *batch.readable]
    for schema in held:
        if schema.id in batch.reach.schema_ids and schema.id <= delta.source_schema_id:
            for path, field_id in paths_of(schema):
                if names.get(field_id, path[-1]) != path[-1]:
                    yield Refusal(
                        f"column {'.'.join(path)}",
                        f"files of {delta.source} hold it as {names[field_id]}, and Paimon's "
                        "readers find it by its name in the schema",
                        "write the rows of these files again and expire older snapshots, or read "
                        "the table by delta",
                    )
                    return


def _readable_history_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield what Paimon cannot express of readable versions, and of the table after the batch."""
    yield from origin_problems(batch.before)
    yield from column_problems(batch.schema.fields)
    yield from _name_problems(batch)
    yield from _tag_file_conflicts(batch.before.tags)
    for older in batch.readable:
        yield from column_problems(older.fields)
        yield from schema_change_problems(older, batch.schema)
    yield from FileRules(batch.schema, batch.layout.specs).problems(batch.reach.files)
    used = {*batch.reach.spec_ids, batch.layout.default_spec_id}
    yield from spec_problems(
        batch.schema, [each for each in batch.layout.specs if each.spec_id in used]
    )
