"""What Paimon can say of data files that a snapshot adds.

Source: Paimon's DataFileMeta and ManifestEntry, and how its readers find a file's format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

import attrs
from msgspec import UNSET, UnsetType

from ledger.evolution.bounds import COUNT, NUMBERS, ROW_ID, TIME_MILLIS
from ledger.evolution.declared.format import Refusal
from ledger.model.errors import LedgerError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg.layout import SomeSpecs, spec_by_id
from ledger.model.messages.excerpt import excerpt
from ledger.model.schema import Schema
from ledger.model.transforms.values import decode_value, encode_value, has_room
from ledger.model.types import DataType
from ledger.model.types.text import bare_text

_FORMATS = ("parquet", "orc", "avro")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_YEAR = re.compile(r"(?!0000)\d{4}-")
_MOMENT = re.compile(r"[\d-]{10}[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|\+00:00)?")
_CALENDAR = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_LTZ"})

# Readers make a calendar time of it: the years 1 to 9999, in milliseconds since 1970.
_CREATED = -62_135_596_800_000, TIME_MILLIS.most
_NUMBERS = tuple(
    (name.replace("_", " "), *(_CREATED if bound is TIME_MILLIS else bound.in_logs))
    for name, bound in NUMBERS[FileChange].items()
)
"""What each number of a file is, and from where to where: older files say more than new ones."""
_LAST_ROW = ("last row id", *ROW_ID.in_logs)
_numbers = attrgetter(*NUMBERS[FileChange])


@attrs.define
class FileRules:
    """The files that a Paimon table can have.

    Attributes:
        schema: The table's.
        specs: Its partition specs.
    """

    schema: Schema
    specs: SomeSpecs
    _sound: set[tuple[object, ...]] = attrs.Factory(set)
    _placed: dict[int, dict[str, int | None]] = attrs.Factory(dict)

    def problems(self, files: Iterable[FileChange]) -> Iterator[Refusal]:
        """Yield what Paimon cannot say of the files that come; what goes is no problem."""
        for each in files:
            if each.kind == "ADD":
                yield from _name_problems(each)
                yield from _number_problems(each)
                yield from self._partition(each)

    def _partition(self, file: FileChange) -> Iterator[Refusal]:
        # Many files have one partition; without their types, 1 and True would be one key.
        key = file.spec_id, file.partition, *map(type, file.partition)
        if key in self._sound:
            return
        places = self._key_places(file.spec_id)
        for name, place in places.items():
            if place is None:
                rule = f"its spec {file.spec_id} has no identity({name}), a partition key"
                yield _refusal(file, rule, "write it under a spec that has")
                return
            value, data_type = file.partition[place], self.schema.field(name).type
            if not _fits(value, data_type):
                said = bare_text(data_type)
                rule = f"partition key {name} has values of {said}, and {excerpt(value)} is none"
                way = "give the file a value that is one"
                yield _refusal(file, f"{rule} that Paimon can write", way)
                return
        self._sound.add(key)

    def _key_places(self, spec_id: int) -> dict[str, int | None]:
        """Return where a file of a spec has the values of the partition keys."""
        found = self._placed.get(spec_id)
        if found is None:
            # Of the specs that there ever were, files use few.
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
    """Yield what is wrong with files of a primary key's table that no engine lists.

    Args:
        schema: The table's.
        files: Of one snapshot.
        facts: What it says of itself, its engine's manifest lists among it.
    """
    if not schema.primary_keys or isinstance(facts.get("base_manifest_list"), str):
        return
    for each in files:
        if each.kind == "ADD":
            yield _refusal(
                each,
                "only the engine knows the keys and levels of a primary key's files",
                "let the engine commit manifest lists of its own",
            )
            return


def _name_problems(file: FileChange) -> Iterator[Refusal]:
    if file.content != "data":
        rule = f"its manifests list files of rows, and this one holds {excerpt(file.content)}"
        yield _refusal(file, rule, "compact the deletes into the data files first")
    elif not isinstance(file.sort_order_id, UnsetType) and file.sort_order_id:
        rule = f"its manifests say no sort order, and this file has {file.sort_order_id}"
        yield _refusal(file, rule, "leave sort_order_id out")
    elif file.format.lower() not in _FORMATS:
        rule = f"files are {', '.join(_FORMATS)}, and this one is {excerpt(file.format)}"
        yield _refusal(file, rule, "write it again as one of them")
    elif not file.path.endswith(f".{file.format.lower()}"):
        rule = f"readers know a file's format by its extension, and this one is {file.format}"
        yield _refusal(file, rule, f"rename it to end in .{file.format.lower()}")
    elif _CONTROL.search(file.path):
        rule = "readers take a file's place for a URL, which has no control characters"
        yield _refusal(file, rule, "rename it")


def _number_problems(file: FileChange) -> Iterator[Refusal]:
    row_id = file.first_row_id
    last_row = UNSET if isinstance(row_id, UnsetType) else row_id + file.record_count
    rows = zip((*_NUMBERS, _LAST_ROW), (*_numbers(file), last_row), strict=True)
    for (what, least, most), number in rows:
        if number is not UNSET and not least <= number <= most:
            rule = f"a {what} is between {least} and {most}, and this file's is {number}"
            yield _refusal(file, rule, "say what it is")
    nulls = file.null_value_counts
    if not isinstance(nulls, UnsetType) and not all(map(COUNT.holds, nulls.values())):
        rule = f"a count of nulls is between 0 and {COUNT.most}"
        yield _refusal(file, rule, "leave the count out, or say what it is")


def _fits(value: PartitionValue, data_type: DataType) -> bool:
    """Whether a value is one of its type that Paimon's rows and folders have."""
    if value is None:
        return True
    root = data_type.root
    try:
        canonical = str(encode_value(decode_value(value, data_type), data_type))
    except (LedgerError, ValueError, OverflowError):
        return False
    if root in _CALENDAR:
        # Only the years that have four digits, and a moment with its time, in UTC.
        is_whole = root == "DATE" or _MOMENT.fullmatch(str(value)) is not None
        return is_whole and _YEAR.match(canonical) is not None
    return has_room(value, data_type)


def _refusal(file: FileChange, rule: str, alternative: str) -> Refusal:
    path = repr(file.path) if _CONTROL.search(file.path) else file.path
    return Refusal(f"file {path}", rule, alternative)
