"""What the events of a commit say, against what they may say: the fold believes most of it.

Folding is frozen, so that written events mean the same for ever; it checks that facts can follow
one another and takes their numbers and names as they are. Whoever decides a change asks much more.
What a writer of another kind put into a log, hashed rightly, shows here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter, le
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from ledger.events.commit import Commit, Transaction
from ledger.events.snapshot_events import ListingEvent, RolledBack
from ledger.evolution.bounds import COUNT
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.in_logs import (
    KINDS_WITH_PATHS,
    file_path_problems,
    number_problems,
    numbers_of,
    short_number,
)
from ledger.evolution.state import TableState
from ledger.evolution.table.changes import FileSums
from ledger.evolution.table.snapshots import is_named
from ledger.history.verifying.subject import CommitColumns, Listed, Listings
from ledger.model.errors import LedgerError
from ledger.model.file_change import FileChange, has_rare_facts, kept_at
from ledger.model.iceberg.layout import spec_of_id
from ledger.model.messages.excerpt import excerpt
from ledger.model.transforms import transform_of
from ledger.model.transforms.values import decode_value
from ledger.model.types.walk import walk_fields

_MOST_KEPT: Final = 100_000
"""So many partitions that were found sound are remembered."""


class TableFacts:
    """Looks at the commits of a table, one after the other, each when it has been folded.

    Args:
        builder: Stands after the commit that is looked at.
    """

    def __init__(self, builder: TableBuilder) -> None:
        self._builder = builder
        self._sound: set[tuple[object, ...]] = set()

    def are_plain(self, listed: Listed) -> bool:
        """Whether nothing is wrong with some snapshots, as a look at columns tells.

        False: look closely, as at what lists several files, or a partition for the first time.
        """
        if not listed:
            return True
        events, lists = zip(*listed, strict=True)
        if {*map(len, lists)} != {1} or RolledBack in {*map(type, events)}:
            return False
        files: list[FileChange] = [file for (file,) in lists]
        schemas, lower, upper, paths, kinds, *made = zip(*map(_MADE, files), strict=True)
        later, named, counts, *said = zip(*map(_SAID, events), strict=True)
        return (
            said == made
            and {*kinds} == {"ADD"}
            and {*counts} == {1}
            and not any(named)
            and lower.count(UNSET) == upper.count(UNSET) == len(files)
            and all(map(le, schemas, later))
            and all(paths)
            and not _may_escape("\n".join(paths))
            and {*map(_place, files)} <= self._sound
            and not has_rare_facts(files)
        )

    def problems(self, listed: Listed, before: TableState | None) -> Iterator[str]:
        """Yield what is wrong with the snapshots of a commit.

        Args:
            listed: They and their files.
            before: The state before the commit, where one of them is a rollback.
        """
        for event, files in listed:
            if isinstance(event, RolledBack):
                yield from _target_problems(event, before)
            if (files or not self._builder.lists_elsewhere) and not _is_all_of(event, files):
                yield from _sum_problems(event, files)
            if files:
                yield from self._file_problems(event, files)

    def _file_problems(self, event: ListingEvent, files: Sequence[FileChange]) -> Iterator[str]:
        for each in files:
            path = each.path
            yield from file_path_problems(each)
            if each.content_offset is not UNSET and each.stored_at == path:
                yield f"the deletion vector {excerpt(path)} is not called by where it begins"
            if each.schema_id > event.schema_id:
                yield f"file {excerpt(path)} names schema {each.schema_id}, after its snapshot's"
            for bounds in (each.lower_bounds, each.upper_bounds):
                if not isinstance(bounds, UnsetType) and not _are_hex(bounds.values()):
                    yield f"file {excerpt(path)} has a bound that is no bytes in hex"
            key = _place(each)
            if key not in self._sound:
                problem = self._partition_problem(each)
                if problem is None:
                    self._sound.add(key)
                else:
                    yield problem

    def _partition_problem(self, file: FileChange) -> str | None:
        """Return why a file's partition values are none of its spec."""
        if len(self._sound) > _MOST_KEPT:
            self._sound.clear()
        spec = spec_of_id(self._builder.specs, file.spec_id)
        if spec is None:
            return f"file {excerpt(file.path)} names partition spec {file.spec_id}: there is none"
        if len(spec.fields) != len(file.partition):
            return (
                f"file {excerpt(file.path)} has {len(file.partition)} partition values, and spec "
                f"{file.spec_id} has {len(spec.fields)} fields"
            )
        # What the values of an older schema are, its own types say.
        if not file.partition or file.schema_id != self._builder.schema_id:
            return None
        schema = self._builder.freeze().schema
        sources = {each.id: each.type for each in walk_fields(schema.fields)}
        for field, value in zip(spec.fields, file.partition, strict=True):
            source = sources.get(field.source_id)
            if source is None or value is None or kept_at(value) is not None:
                continue
            try:
                decode_value(value, transform_of(field.transform).result_type(source))
            except LedgerError:
                return (
                    f"file {excerpt(file.path)} has the value {excerpt(value)} of the partition "
                    f"field {field.name}, and that is none"
                )
        return None


_MADE: Final = attrgetter(
    *("schema_id", "lower_bounds", "upper_bounds", "path", "kind"),
    *("record_count", "file_size_in_bytes", "creation_time"),
)
"""What is looked at of files, the last ones as `_SAID` has them of their snapshots."""

_SAID: Final = attrgetter(
    *("schema_id", "named_schema_ids", "delta_file_count"),
    *("delta_record_count", "delta_file_size_in_bytes", "last_file_creation_time"),
)


def _may_escape(path: str) -> bool:
    return ".." in path or "\0" in path


def _place(file: FileChange) -> tuple[object, ...]:
    """Return what a file says of its partition."""
    partition = file.partition
    if not partition:
        return (file.spec_id,)
    # Without their types, 1 and True would be one key.
    return file.spec_id, file.schema_id, partition, *map(type, partition)


def _are_hex(texts: Iterable[str]) -> bool:
    try:
        for each in texts:
            bytes.fromhex(each)
    except ValueError:
        return False
    return True


def all_fit(columns: CommitColumns, listings: Listings) -> bool:
    """Whether numbers and paths of some commits may be so, as a quick look tells.

    False: look closely at each, which may find nothing.

    Args:
        columns: They.
        listings: What they list.
    """
    moments = [each.time_millis for each in columns.commits]
    if not KINDS_WITH_PATHS.isdisjoint(columns.kinds) or (
        moments and not (COUNT.holds(min(moments)) and COUNT.holds(max(moments)))
    ):
        return False
    files = [each for _, some in listings.listed for each in some]
    records: dict[type[Struct], Sequence[Struct]] = {FileChange: files, **columns.by_kind}
    records[Transaction] = columns.transactions
    return all(numbers_of(kind).all_fit(found) for kind, found in records.items())


def numbers_out_of_range(commit: Commit[Any], listed: Listed) -> Iterator[str]:
    """Yield the numbers of a commit, and of the files that it lists, that are out of range."""
    if not COUNT.holds(commit.time_millis):
        yield f"its timeMillis is {short_number(commit.time_millis)}"
    for transaction in commit.transactions:
        for record in (transaction, *transaction.events):
            yield from number_problems(record)
    for _, files in listed:
        for each in files:
            for said in number_problems(each):
                yield f"file {excerpt(each.path)}: {said}"


def _target_problems(event: RolledBack, before: TableState | None) -> Iterator[str]:
    target, tag = event.target_snapshot_id, event.target_tag_name
    newest = event.snapshot_id - 1
    if not 1 <= target <= newest:
        yield f"it rolls back to snapshot {target}, and there are 1 to {newest}"
    elif before is not None and not before.reachable(target) and target <= before.last_snapshot_id:
        yield f"it rolls back to snapshot {target}, which was expired"
    elif before is not None and not isinstance(tag, UnsetType):
        named = before.tags.get(tag)
        if named is None or named.snapshot_id != target:
            yield f"it rolls back to tag {excerpt(tag)}, which does not name snapshot {target}"


def _is_all_of(event: ListingEvent, files: Sequence[FileChange]) -> bool:
    """Whether an event says what its one file makes; False: look closely."""
    if len(files) != 1 or event.named_schema_ids:
        return False
    (file,) = files
    return (
        file.kind == "ADD"
        and event.delta_file_count == 1
        and event.delta_record_count == file.record_count
        and event.delta_file_size_in_bytes == file.file_size_in_bytes
        and event.last_file_creation_time == file.creation_time
    )


def _sum_problems(event: ListingEvent, files: Sequence[FileChange]) -> Iterator[str]:
    sums = FileSums.of(files)
    created = event.last_file_creation_time
    said = (
        event.delta_record_count,
        event.delta_file_count,
        event.delta_file_size_in_bytes,
        None if created is UNSET else created,
    )
    made = (
        sums.record_count,
        sums.file_count,
        sums.file_size_in_bytes,
        sums.last_file_creation_time,
    )
    for name, one, other in zip(_SUMS, said, made, strict=True) if said != made else ():
        if one != other:
            yield f"snapshot {event.snapshot_id} says {name} {one}, and its files make {other}"
    # Older ledgers do not say it.
    if not event.named_schema_ids:
        return
    named = tuple(sorted({each.schema_id for each in files if is_named(each)}))
    if named != event.named_schema_ids:
        yield (
            f"snapshot {event.snapshot_id} says that files without ids use the names of the "
            f"schemas {list(event.named_schema_ids)}, and they use those of {list(named)}"
        )


_SUMS: Final = (
    "deltaRecordCount",
    "deltaFileCount",
    "deltaFileSizeInBytes",
    "lastFileCreationTime",
)
