"""Bounds of numbers in requests and events, so that every format can express them.

One table, used when a change is decided and never when it is folded: every recorded log stays
readable. Every entry point (Python, JSON, SQL, the command line, files' footers) goes through
deciding. The bounds of recorded logs are a column of the same table, which `verify` checks.

Source: Java's int and long, which Paimon's and Iceberg's files hold; Paimon's range of system ids
and its formula for the ids of list and map members; Iceberg's reserved ids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from msgspec import UNSET, Struct

from ledger.decide.changes import (
    CommitSnapshot,
    CreateTag,
    ExpireSnapshots,
    FastForward,
    ReplaceTag,
    Rollback,
    SetBranch,
    SetPartitionStatistics,
)
from ledger.decide.errors import argument_error
from ledger.events.snapshots import CommittedFacts, SnapshotFacts
from ledger.model.arrow_types import nested_ids
from ledger.model.file_change import FileChange
from ledger.model.iceberg_objects import BlobMetadata, StatisticsFile
from ledger.model.messages import excerpt
from ledger.model.schema import SYSTEM_FIELD_ID_START, FieldIdPolicy, Schema
from ledger.model.types import (
    INT_MAX,
    LONG_MAX,
    DataField,
    DataType,
    parts_of,
    type_places,
    walk_ids,
)

INT, LONG = (-INT_MAX - 1, INT_MAX), (-LONG_MAX - 1, LONG_MAX)
"""The ranges of Java's int and long."""


class Bound(Struct, frozen=True):
    """Range of a number.

    Attributes:
        noun: Name of the number, for messages.
        least: The smallest that a caller may give.
        most: The greatest that a caller may give.
        way_out: Advice to the caller, for messages.
        wider: The smallest and the greatest that a log may hold, where older clients wrote more, or
            a source gives more than callers may; None where that is the same.
    """

    noun: str
    least: int
    most: int
    way_out: str = ""
    wider: tuple[int, int] | None = None

    @property
    def log_limits(self) -> tuple[int, int]:
        """The smallest and the greatest that a log may hold."""
        return self.wider or (self.least, self.most)

    def holds(self, value: object) -> bool:
        """Return whether a value is a number in the range."""
        return type(value) is int and self.least <= value <= self.most

    def check(self, value: object, subject: str) -> None:
        """Reject a value that is not a number in the range.

        Args:
            value: The value.
            subject: The thing that has it, for the message.

        Raises:
            InvalidChangeError: ILLEGAL_ARGUMENT.
        """
        if type(value) is not int:
            raise argument_error(f"{subject}: {self.noun} {excerpt(value)} is no whole number")
        if not self.least <= value <= self.most:
            way_out = f"; {self.way_out}" if self.way_out else ""
            raise argument_error(
                f"{subject}: {self.noun} {excerpt(value)} is not between {self.least} and "
                f"{self.most}{way_out}"
            )


COUNT = Bound("count", 0, LONG_MAX)
SIZE = Bound("size in bytes", 0, LONG_MAX)
SUM = Bound("sum", *LONG, "commit it in a table of its own")
TIME_MILLIS = Bound("Unix time in milliseconds", 0, 253_402_300_799_999, wider=LONG)
RETENTION_MILLIS = Bound(
    "retention in milliseconds",
    1,
    1000 * 365 * 24 * 3_600_000,
    "leave it out to keep it for ever",
    wider=(1, LONG_MAX),
)
KEPT = Bound("number of snapshots to keep", 1, INT_MAX)
SNAPSHOT_ID = Bound("snapshot id", 1, LONG_MAX)
SEQUENCE = Bound("sequence number", 0, LONG_MAX)
SCHEMA_ID = Bound("schema id", 0, INT_MAX)
SPEC_ID = Bound("partition spec id", 0, INT_MAX)
VIEW_VERSION_ID = Bound("view version id", -INT_MAX - 1, INT_MAX)
BUCKET = Bound("bucket", -2, INT_MAX, wider=INT)
TOTAL_BUCKETS = Bound("number of buckets", *INT)
LEVEL = Bound("level", 0, INT_MAX, wider=INT)
ROW_ID = Bound("row id", 0, LONG_MAX)
ORDER_ID = Bound("sort order id", 0, INT_MAX)
OFFSET = Bound("offset in bytes", 0, LONG_MAX)
IDENTIFIER = Bound("commit identifier", *LONG)
WATERMARK = Bound("watermark", *LONG)
LOG_BUCKET = Bound("bucket of log offsets", 0, INT_MAX)
LOG_OFFSET = Bound("log offset", *LONG)
FIELD_ID = Bound("field id", 0, INT_MAX)
PAIMON_ID = Bound(
    "field id",
    0,
    SYSTEM_FIELD_ID_START - 1,
    "those above are Paimon's own; number the columns anew",
)
ICEBERG_ID = Bound(
    "field id", 1, INT_MAX - 201, "those above are Iceberg's own; number the columns anew"
)
MEMBERED_ID = Bound(
    "field id",
    0,
    524_286,
    "ids of a column with a list or map count for its elements, too; number the columns anew",
)
HIGHEST_ID = Bound("highest field id", -1, INT_MAX)
COLUMNS = Bound("number of columns, nested ones included", 0, 100_000)
PARTITION_VALUE = Bound("partition value", *LONG)
LENGTH = Bound("length", 1, INT_MAX, wider=INT)
VERSION = Bound("version", 0, LONG_MAX)
FORMAT = Bound("format version", 1, INT_MAX)

EVERY_ID = range(-LONG_MAX, LONG_MAX)
_SAFE_IDS = 100_000
"""Ids below it are within every bound, and collide with no id of a list or map member."""

NUMBERS: Mapping[type, Mapping[str, Bound]] = {
    FileChange: {
        "schema_id": SCHEMA_ID,
        "record_count": COUNT,
        "file_size_in_bytes": SIZE,
        "creation_time": TIME_MILLIS,
        "spec_id": SPEC_ID,
        "bucket": BUCKET,
        "level": LEVEL,
        "first_row_id": ROW_ID,
        "sort_order_id": ORDER_ID,
        "content_offset": OFFSET,
        "content_size_in_bytes": SIZE,
    },
    CommitSnapshot: {"commit_identifier": IDENTIFIER},
    Rollback: {"target_snapshot_id": SNAPSHOT_ID},
    FastForward: {"snapshot_id": SNAPSHOT_ID},
    SetBranch: {
        "snapshot_id": SNAPSHOT_ID,
        "min_snapshots_to_keep": KEPT,
        "max_snapshot_age_millis": RETENTION_MILLIS,
        "max_ref_age_millis": RETENTION_MILLIS,
    },
    CreateTag: {"snapshot_id": SNAPSHOT_ID, "time_retained_millis": RETENTION_MILLIS},
    ReplaceTag: {"snapshot_id": SNAPSHOT_ID, "time_retained_millis": RETENTION_MILLIS},
    ExpireSnapshots: {"earliest_snapshot_id": SNAPSHOT_ID},
    SetPartitionStatistics: {"snapshot_id": SNAPSHOT_ID, "file_size_in_bytes": SIZE},
    StatisticsFile: {
        "snapshot_id": SNAPSHOT_ID,
        "file_size_in_bytes": SIZE,
        "file_footer_size_in_bytes": SIZE,
    },
    BlobMetadata: {"snapshot_id": SNAPSHOT_ID, "sequence_number": SEQUENCE},
    Schema: {"id": SCHEMA_ID, "highest_field_id": HIGHEST_ID},
}
"""Every number that a caller gives, by its record. None and an absent value pass."""

COUNTS_BY_FIELD: tuple[str, ...] = ("value_counts", "null_value_counts")
"""Maps of a FileChange from field id to a count."""

FACTS: Mapping[str, Bound] = {
    "base_manifest_list_size": SIZE,
    "delta_manifest_list_size": SIZE,
    "changelog_manifest_list_size": SIZE,
    "changelog_record_count": COUNT,
    "watermark": WATERMARK,
    "next_row_id": ROW_ID,
}
"""Every number among a snapshot's further facts."""

FURTHER_FACTS = frozenset(CommittedFacts.__struct_fields__).difference(
    SnapshotFacts.__struct_fields__, ("commit_kind",)
)
"""The optional facts of a snapshot that a caller may give, by their keys in the event."""

TEXT_FACTS: tuple[str, ...] = (
    "base_manifest_list",
    "delta_manifest_list",
    "changelog_manifest_list",
    "index_manifest",
    "statistics",
    "uuid",
    "writer_version",
    "operation",
)
"""Those of them that are texts: bytes would be recorded as their base64 text."""

IN_LOGS: Mapping[str, Bound] = {
    **{name: bound for row in NUMBERS.values() for name, bound in row.items()},
    **FACTS,
    **dict.fromkeys(("field_id", "field_ids", "fields", "identifier_field_ids"), FIELD_ID),
    **dict.fromkeys(("parent_id", "reference_id", "source_id", "source_ids"), FIELD_ID),
    "equality_ids": FIELD_ID,
    **dict.fromkeys(("element_id", "key_id", "value_id"), FIELD_ID),
    **dict.fromkeys(("last_column_id", "last_partition_id"), HIGHEST_ID),
    **dict.fromkeys(("named_schema_ids", "schema_ids"), SCHEMA_ID),
    "spec_ids": SPEC_ID,
    **dict.fromkeys(("version_id", "version_ids", "view_version_id"), VIEW_VERSION_ID),
    **dict.fromkeys(("order_id", "order_ids"), ORDER_ID),
    **dict.fromkeys(("snapshot_ids", "of_partitions"), SNAPSHOT_ID),
    "last_snapshot_id": Bound("highest snapshot id", 0, LONG_MAX),
    "last_sequence_number": SEQUENCE,
    "length": LENGTH,
    **dict.fromkeys(("count", "file_count", "dropped", "added_rows"), COUNT),
    **dict.fromkeys(("values", "transactions"), COUNT),
    **dict.fromkeys(("total_record_count", "delta_record_count"), SUM),
    **dict.fromkeys(("delta_file_count", "delta_file_size_in_bytes"), SUM),
    **dict.fromkeys(("timestamp_millis", "last_updated_millis", "true_time_millis"), TIME_MILLIS),
    **dict.fromkeys(("timestamp_ms", "last_file_creation_time"), TIME_MILLIS),
    **dict.fromkeys(("effective_time_millis", "time_millis"), TIME_MILLIS),
    "create_time_millis": TIME_MILLIS,
    **dict.fromkeys(("records", "size_in_bytes", "files"), SUM),
    "total_buckets": TOTAL_BUCKETS,
    **dict.fromkeys(("max_snapshot_age_ms", "max_ref_age_ms"), RETENTION_MILLIS),
    **dict.fromkeys(("version", "delta_version", "first_version", "sealed_version"), VERSION),
    "format_version": FORMAT,
}
"""Every number of an event and of a file, by its key, which means the same everywhere."""

IN_LOGS_BY_KEY: Mapping[str, tuple[Bound | None, Bound | None]] = {
    **dict.fromkeys(COUNTS_BY_FIELD, (FIELD_ID, COUNT)),
    **dict.fromkeys(("lower_bounds", "upper_bounds"), (FIELD_ID, None)),
    **dict.fromkeys(("sidecar", "column_names"), (FIELD_ID, None)),
    "log_offsets": (LOG_BUCKET, LOG_OFFSET),
    "columns": (None, FIELD_ID),
    "rules": (None, Bound("rules number", 1, LONG_MAX)),
    "txns": (None, Bound("version of a program that writes to a source", *LONG)),
}
"""The same for each map: the bounds of its keys and of its values, if these are numbers."""

UNBOUNDED: Mapping[str, str] = {
    "parent_snapshot_id": "a source's own, and some say -1 for none",
    "partition": "values of columns",
}
"""Numbers of events and files that are bounded by their 64 bits only, by key, with the reason."""


def _attribute_getter(names: Sequence[str]) -> Callable[[object], tuple[Any, ...]]:
    """Return a getter of the values of some attributes, in order."""
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda record: (read(record),)


_ROWS = {
    kind: (_attribute_getter(tuple(row)), tuple(row.values())) for kind, row in NUMBERS.items()
}


def check_numbers(record: object, subject: str) -> None:
    """Reject a record that holds a number out of its bounds.

    Args:
        record: One of the kinds in `NUMBERS`.
        subject: Name of the record, for the message.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT, naming the number and its bounds.
    """
    values, rows = _ROWS[type(record)]
    for value, bound in zip(values(record), rows, strict=True):
        # Nearly everything is within bounds, and lists of files are long.
        if type(value) is int and bound.least <= value <= bound.most:
            continue
        if value is not None and value is not UNSET:
            bound.check(value, subject)


def check_numbers_of_files(files: Sequence[FileChange]) -> None:
    """Reject files with a number out of its bounds.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT, of the first such file.
    """
    do_fit = all(
        _all_fit([*map(attrgetter(name), files)], bound)
        for name, bound in NUMBERS[FileChange].items()
    )
    for each in files:
        if not do_fit:
            check_numbers(each, f"file {each.path}")
        _check_nested_numbers(each)


_NUMBER_OR_NONE = frozenset({int, type(None), type(UNSET)})


def _all_fit(values: Sequence[Any], bound: Bound) -> bool:
    """Return whether all values are within the bounds, by a quick check; False means unknown."""
    if not _NUMBER_OR_NONE.issuperset(map(type, values)):
        return False
    # Most columns have few distinct values.
    found = {*values} - {None, UNSET}
    return not found or (bound.least <= min(found) and max(found) <= bound.most)


def _check_nested_numbers(file: FileChange) -> None:
    ids: Any = file.equality_ids
    for field_id in ids if isinstance(ids, tuple) else ():
        FIELD_ID.check(field_id, f"file {file.path}")
    if type(file.first_row_id) is int:
        ROW_ID.check(file.first_row_id + file.record_count, f"after file {file.path}")
    counts: Any
    for counts in (file.value_counts, file.null_value_counts):
        for field_id, count in counts.items() if isinstance(counts, dict) else ():
            if not (FIELD_ID.holds(field_id) and COUNT.holds(count)):
                FIELD_ID.check(field_id, f"file {file.path}")
                COUNT.check(count, f"file {file.path}, column {field_id}")


def check_partition_values(files: Iterable[FileChange]) -> None:
    """Reject files with a partition value of more than 64 bits; formats check the column's type.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    for file in files:
        for value in file.partition if file.kind == "ADD" else ():
            if type(value) is int:
                PARTITION_VALUE.check(value, f"file {file.path}")


def check_snapshot_facts(facts: Mapping[str, Any]) -> None:
    """Reject further facts of a snapshot that are unknown, out of their bounds, or bytes.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    for name in facts.keys() - FURTHER_FACTS:
        known = ", ".join(sorted(FURTHER_FACTS))
        raise argument_error(f"{excerpt(name)} is no further fact of a snapshot; there are {known}")
    for name, bound in FACTS.items():
        if facts.get(name) is not None and facts[name] is not UNSET:
            bound.check(facts[name], f"{name} of the snapshot")
    properties: Any = facts.get("snapshot_properties")
    listed = properties.items() if isinstance(properties, Mapping) else ()
    for name, text in (*((each, facts.get(each)) for each in TEXT_FACTS), *listed):
        if isinstance(text, bytes | bytearray | memoryview):
            raise argument_error(
                f"{name} of the snapshot is bytes, {excerpt(text)}, and has to be text"
            )
    offsets = facts.get("log_offsets")
    for bucket, offset in offsets.items() if isinstance(offsets, Mapping) else ():
        LOG_BUCKET.check(bucket, "log_offsets of the snapshot")
        LOG_OFFSET.check(offset, "log_offsets of the snapshot")


def check_sum_bounds(sums: Iterable[tuple[str, int]]) -> None:
    """Reject sums that no format can hold.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    for name, value in sums:
        SUM.check(value, f"{name} of the table")


def check_field_ids(fields: Iterable[DataField]) -> None:
    """Reject columns of a view or parameters of a function with an id that no format can hold.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    for each in fields:
        for found in (each.id, *walk_ids(each.type)):
            FIELD_ID.check(found, f"column {each.name}")


def check_column_ids(
    fields: Sequence[DataField],
    policy: FieldIdPolicy,
    *,
    is_in_paimon: bool,
    new: range = EVERY_ID,
) -> None:
    """Reject columns whose ids are reserved by a format, or collide in it.

    Args:
        fields: The columns.
        policy: The policy by which their ids were assigned.
        is_in_paimon: Whether the table declares Paimon.
        new: The ids that are being assigned; ids from before are not checked.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    if new.stop <= _SAFE_IDS:
        return
    bound = PAIMON_ID if policy == "paimon" or is_in_paimon else ICEBERG_ID
    ids = [(found, top.name) for top in fields for found in (top.id, *walk_ids(top.type))]
    COLUMNS.check(len(ids), "the table")
    for found, name in ids:
        if found in new:
            bound.check(found, f"column {name}")
    if policy == "paimon":
        _check_member_ids(fields, {found for found, _ in ids}, new)


def _check_member_ids(fields: Sequence[DataField], taken: Collection[int], new: range) -> None:
    """Reject ids that collide with those that Paimon's formula gives to list and map members."""
    for name, owner, made in list_map_member_ids(fields):
        if owner in new:
            MEMBERED_ID.check(owner, f"column {name}")
        if made in taken and (owner in new or made in new):
            raise argument_error(
                f"column {name} (id {owner}) has a list or map whose members Paimon gives id "
                f"{made}, which is a column's; number the columns anew"
            )


def list_map_member_ids(fields: Iterable[DataField]) -> Iterator[tuple[str, int, int]]:
    """Yield column, the id of the enclosing field, and the id of each list or map member."""
    for place in type_places(fields):
        if place.field is not None:
            for made in _member_ids_below(place.field.type, place.field.id, 1):
                yield place.name, place.field.id, made


def _member_ids_below(data_type: DataType, owner: int, depth: int) -> Iterator[int]:
    parts = [each for each in parts_of(data_type) if each.field is None]
    carried = {each.id for each in parts}
    yield from (each for each in nested_ids(data_type, owner, depth) if each not in carried)
    for each in parts:
        yield from _member_ids_below(each.type, owner, depth + 1)


def next_column_id(highest: int, policy: FieldIdPolicy, path: Sequence[str]) -> int:
    """Return the id of the next new column.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT: none is left.
    """
    bound = PAIMON_ID if policy == "paimon" else ICEBERG_ID
    given = highest + 1
    if not given <= bound.most:
        raise argument_error(
            f"column {'.'.join(path)} would get field id {given}, and ids end at {bound.most}; "
            "create a new table, whose ids start again"
        )
    return given
