"""Decisions on snapshots and tags: ids, sums and file checks.

Source: the Iceberg table specification, "Data File Fields", "Deletion Vectors" and "Equality Delete
Files".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
from attrs import evolve
from msgspec import UNSET, Raw, UnsetType

from ledger.decide.bounds import (
    check_numbers,
    check_numbers_of_files,
    check_partition_values,
    check_snapshot_facts,
    check_sum_bounds,
)
from ledger.decide.changes import (
    CommitSnapshot,
    CreateTag,
    DeleteTag,
    ExpireSnapshots,
    FileSums,
    ReplaceTag,
    Rollback,
    SetPartitionStatistics,
    SetStatistics,
    SnapshotChange,
    TagChange,
)
from ledger.decide.format_rules import Formats, refuse_inexpressible_files, refuse_inexpressible_tag
from ledger.decide.table_options import PERSONAL_OPTION, MarkedColumns
from ledger.events.imported import SnapshotsRemoved, StatisticsSet
from ledger.events.snapshots import (
    NO_FILES,
    PartitionStatisticsSet,
    RolledBack,
    SnapshotCommitted,
    SnapshotsExpired,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.locations import is_absolute, is_plain_relative, may_escape_folder
from ledger.model.attempt_files import COMMITTABLE_MILLIS, row_file_millis
from ledger.model.credentials import carries_credentials, credentials_error_text
from ledger.model.errors import AlreadyExistsError, InvalidChangeError, NotFoundError
from ledger.model.file_change import FileChange, has_rare_facts, inline_files
from ledger.model.iceberg_layout import spec_of_id
from ledger.model.iceberg_objects import PartitionStatisticsFile
from ledger.model.messages import excerpt, moment
from ledger.model.names import checked_name
from ledger.model.snapshot import Snapshot, Totals
from ledger.model.types import walk_fields
from ledger.state.table import TableState

_BY_POSITION: Final = "position-deletes"
_BY_VALUE: Final = "equality-deletes"


def check_file_references(
    state: TableState, file: FileChange, check_path: Callable[[str], None]
) -> None:
    """Reject a file with references that do not exist, or fields that its kind cannot have.

    Args:
        state: The table.
        file: The added file.
        check_path: Rejects a path that leaves the table's location.

    Raises:
        InvalidChangeError: It does.
    """
    if file.content == "data" and not has_rare_facts([file]):
        return
    for problem in (
        _sort_order_problem(state, file),
        _equality_ids_problem(state, file),
        _deletion_target_problem(file),
        _column_names_problem(state, file),
    ):
        if problem is not None:
            raise InvalidChangeError(f"file {file.path} {problem}")
    if not isinstance(file.referenced_data_file, UnsetType):
        check_path(file.referenced_data_file)


def _sort_order_problem(state: TableState, file: FileChange) -> str | None:
    order_id = file.sort_order_id
    if isinstance(order_id, UnsetType):
        return None
    if file.content == _BY_POSITION:
        return "has position deletes, whose order is always their own: leave sort_order_id out"
    known = [each.order_id for each in state.sort_orders]
    if order_id in known:
        return None
    return f"names sort order {order_id}; the table has {', '.join(map(str, known))}"


def _equality_ids_problem(state: TableState, file: FileChange) -> str | None:
    ids = file.equality_ids
    if isinstance(ids, UnsetType):
        return None
    if file.content != _BY_VALUE:
        return f"has equality_ids, and only {_BY_VALUE} compare columns: leave them out"
    if not ids or len({*ids}) < len(ids):
        return f"compares the columns {list(ids)}: name one or more, each once"
    known = {each.id for each in walk_fields(state.schema.fields)}
    missing = [each for each in ids if each not in known]
    if missing:
        return f"compares column {missing[0]}, which the table does not have"
    return None


def _deletion_target_problem(file: FileChange) -> str | None:
    if file.is_vector:
        return _deletion_vector_problem(file)
    if not isinstance(file.referenced_data_file, UnsetType) and file.content != _BY_POSITION:
        return f"has a referenced_data_file, and only {_BY_POSITION} are of one: leave it out"
    if file.content_offset is UNSET and file.content_size_in_bytes is UNSET:
        return None
    return "has a content_offset or content_size_in_bytes, and is no deletion vector in Puffin"


def _deletion_vector_problem(file: FileChange) -> str | None:
    offset, size = file.content_offset, file.content_size_in_bytes
    if isinstance(offset, UnsetType) or isinstance(size, UnsetType):
        return "is a deletion vector: give its content_offset and content_size_in_bytes"
    if file.referenced_data_file is UNSET:
        return "is a deletion vector: give its referenced_data_file"
    if offset + size > file.file_size_in_bytes:
        return f"has {file.file_size_in_bytes} bytes, and its vector ends at {offset + size}"
    if file.stored_at in {"", file.path}:
        return f"is a deletion vector: end its path in #{offset}, as one file may hold several"
    return None


def _column_names_problem(state: TableState, file: FileChange) -> str | None:
    names: Any = file.column_names
    if names is UNSET:
        return None
    if file.content != "data":
        return "has column_names, and only data has columns: leave them out"
    highest = state.schema.highest_field_id
    if not (isinstance(names, dict) and names) or not all(
        type(key) is int and 0 <= key <= highest and type(name) is str and name
        for key, name in names.items()
    ):
        return (
            f"has the column_names {excerpt(names)}: give a name for one field or more, by ids up "
            f"to {highest}, or leave them out"
        )
    return None


_ENCODER = msgspec.json.Encoder()

# As Hadoop prints paths; a partition's folder may have a colon, too, but after its `=`.
_ONE_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/(?!/)")


def decide_snapshot(
    state: TableState,
    change: CommitSnapshot | Rollback,
    formats: Formats,
    *,
    snapshot_id: int,
    schema_id: int,
    records: int,
) -> SnapshotCommitted | RolledBack:
    """Return the snapshot of main that a change becomes.

    Args:
        state: The state to decide on.
        change: The requested change.
        formats: The installed formats.
        snapshot_id: The next snapshot id.
        schema_id: The schema current at this point of the transaction.
        records: Total record count before it.

    Raises:
        InvalidChangeError: A file is named twice, does not fit the schema's history, or its
            partition does not fit its spec.
        FormatError: The table's formats cannot express a file.
    """
    before = evolve(state.totals, record_count=records)
    common = snapshot_listing_facts(
        state, change, formats, snapshot_id=snapshot_id, schema_id=schema_id, before=before
    )
    if isinstance(change, Rollback):
        check_snapshot_readable(state, change.target_snapshot_id)
        if state.branch_number(change.target_snapshot_id):
            raise InvalidChangeError(
                f"snapshot {change.target_snapshot_id} is of a branch: main gets a branch's "
                "contents by fast_forward, and is rolled back to snapshots of its own"
            )
        return RolledBack(
            **common,
            target_snapshot_id=change.target_snapshot_id,
            target_tag_name=_unset_if_none(change.target_tag_name),
        )
    facts = file_commit_facts(change, state.snapshot, schema_id)
    next_row_id = state.origin.next_row_id_after(change.files)
    if next_row_id is not UNSET:
        facts["next_row_id"] = next_row_id
    return SnapshotCommitted(**common, **facts)


def snapshot_listing_facts(
    state: TableState,
    change: SnapshotChange,
    formats: Formats,
    *,
    snapshot_id: int,
    schema_id: int,
    before: Totals,
) -> dict[str, Any]:
    """Return the fields of a new snapshot that describe it and its files, on any line.

    Args:
        state: The state to decide on.
        change: The requested change.
        formats: The installed formats.
        snapshot_id: Its id.
        schema_id: The schema current at this point of the transaction.
        before: The sums of its line before it.

    Raises:
        InvalidChangeError: As of `decide_snapshot`.
        FormatError: The table's formats cannot express a file.
    """
    check_numbers(change, "the snapshot")
    _check_file_changes(state, change, schema_id)
    is_back = not isinstance(change, CommitSnapshot)
    written = change.written or change.files
    if not is_back:
        _refuse_personal_values(state, written)
    listed = encode_checked_files(written)
    facts = change.facts if isinstance(change, CommitSnapshot) else {}
    refuse_inexpressible_files(state, change.files, facts, formats, is_back=is_back)
    if not is_back:
        check_partition_values(written)
    sums = FileSums.of(change.files)
    check_sum_bounds(_named_sums(before, sums))
    inline = change.reference is None and change.files
    return {
        "snapshot_id": snapshot_id,
        "schema_id": schema_id,
        "commit_user": change.commit_user,
        "total_record_count": before.record_count + sums.record_count,
        "delta_record_count": sums.record_count,
        "delta_file_count": sums.file_count,
        "delta_file_size_in_bytes": sums.file_size_in_bytes,
        "last_file_creation_time": _unset_if_none(sums.last_file_creation_time),
        "named_schema_ids": _named_schema_ids(change.files),
        "summary": _snapshot_summary(state, change),
        "files": Raw(listed) if inline else NO_FILES,
        "changes": _unset_if_none(change.reference),
    }


def file_commit_facts(
    change: CommitSnapshot, before: Snapshot | None, schema_id: int
) -> dict[str, Any]:
    """Return the further fields of a commit of files, some inherited from the snapshot before.

    Raises:
        InvalidChangeError: A number is out of its bounds.
    """
    check_snapshot_facts(change.facts)
    return {
        "commit_kind": change.commit_kind,
        "commit_identifier": change.commit_identifier,
        **_snapshot_facts(change.facts, before, schema_id),
    }


def _snapshot_summary(state: TableState, change: SnapshotChange) -> dict[str, str] | UnsetType:
    if not isinstance(change, CommitSnapshot):
        return state.origin.snapshot_summary(change.files, "OVERWRITE", {})
    properties = change.facts.get("snapshot_properties") or {}
    return state.origin.snapshot_summary(change.files, change.commit_kind, properties)


def _named_sums(totals: Totals, sums: FileSums) -> Iterator[tuple[str, int]]:
    yield "rows added", sums.record_count
    yield "rows in total", totals.record_count + sums.record_count
    yield "bytes added", sums.file_size_in_bytes
    yield "bytes in total", totals.file_size_in_bytes + sums.file_size_in_bytes


def _named_schema_ids(files: tuple[FileChange, ...]) -> tuple[int, ...]:
    return tuple(sorted({each.schema_id for each in files if is_read_by_name(each)}))


def is_read_by_name(file: FileChange) -> bool:
    """Return whether a file is added whose columns are found by name only."""
    return file.kind == "ADD" and not file.field_ids


def _snapshot_facts(
    asked: Mapping[str, Any], before: Snapshot | None, schema_id: int
) -> dict[str, Any]:
    """Return a snapshot's further facts, some inherited from the snapshot before.

    As in Paimon's commit: a watermark never decreases, and column statistics stay valid while the
    schema that they were made for is current.
    """
    if before is None:
        return dict(asked)
    facts = dict(asked)
    if before.watermark is not None:
        facts["watermark"] = max(before.watermark, asked.get("watermark") or before.watermark)
    if before.statistics is not None and before.schema_id == schema_id:
        facts.setdefault("statistics", before.statistics)
    return facts


def encode_checked_files(files: tuple[FileChange, ...]) -> bytes:
    """Return the JSON of a file list, checked to be decodable: Python checks no types.

    Raises:
        InvalidChangeError: A field of a file has a type that a reader would reject.
    """
    try:
        body = _ENCODER.encode(files)
        inline_files(Raw(body))
    except (msgspec.DecodeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidChangeError(f"a file's facts cannot be recorded: {error}") from error
    return body


def _unset_if_none(value: Any) -> Any:
    return UNSET if value is None else value


def _check_file_changes(state: TableState, change: SnapshotChange, schema_id: int) -> None:
    used = {each.spec_id for each in change.files}
    there = (spec_of_id(state.specs, each) for each in used)
    widths = {each.spec_id: len(each.fields) for each in there if each is not None}
    newest_id = state.origin.highest_schema_id(schema_id)
    seen: set[str] = set()
    if isinstance(change, CommitSnapshot):
        check_numbers_of_files([each for each in change.files if each.kind == "ADD"])
    for each in change.files:
        if each.kind == "ADD" and isinstance(change, CommitSnapshot):
            # What goes, or comes back, is as it once came.
            check_file_references(state, each, check_file_path)
            check_file_path(each.path)
            _refuse_stale_file(each, state.time_millis)
            _check_extra_files(each)
        if each.path in seen:
            raise InvalidChangeError(f"file {each.path} is named twice in one commit")
        seen.add(each.path)
        if not 0 <= each.schema_id <= newest_id:
            raise InvalidChangeError(
                f"file {each.path} names schema {each.schema_id}; the newest is {newest_id}"
            )
        if widths.get(each.spec_id) != len(each.partition):
            known = {spec.spec_id: len(spec.fields) for spec in state.specs}
            raise InvalidChangeError(
                f"file {each.path} has {len(each.partition)} partition values for spec "
                f"{each.spec_id}; specs and their widths are {known}"
            )
        if each.record_count < 0 or each.file_size_in_bytes < 0:
            raise InvalidChangeError(f"file {each.path} has a negative count or size")


def _refuse_personal_values(state: TableState, files: tuple[FileChange, ...]) -> None:
    """Check that no added file has personal values in the line, which could not be erased."""
    marked = MarkedColumns.of(state.schema) if state.keeps_outside else None
    if marked is None:
        return
    specs = {each.spec_id: each for each in state.specs}
    for each in files:
        if each.kind == "ADD" and marked.holds_personal_value(each, specs[each.spec_id]):
            raise InvalidChangeError(
                f"file {each.path} has bounds or partition values of a column that is personal by "
                f"now ({PERSONAL_OPTION}), and the line would hold them for ever; retry"
            )


def check_file_path(path: str) -> None:
    """Reject a path that is empty, leaves the table's location, or has one slash for two.

    Raises:
        InvalidChangeError: It is or does, or it is half a URL.
    """
    if is_plain_relative(path):
        return
    if carries_credentials(path):
        raise InvalidChangeError(f"file path {credentials_error_text(path)}")
    if is_absolute(path) and may_escape_folder(path):
        raise InvalidChangeError(
            f"file path {path!r} has a '..' segment or a NUL, and readers disagree what that "
            "means; spell it out"
        )
    if may_escape_folder(path) or (
        not is_absolute(path) and not {"", "."}.isdisjoint(path.split("/"))
    ):
        raise InvalidChangeError(
            f"file path {path!r} is empty or leaves the table's location; name it below the "
            "location, or absolutely"
        )
    if _ONE_SLASH.match(path):
        scheme, _, rest = path.partition(":")
        whole = f"file://{rest}" if scheme.lower() == "file" else f"{scheme}:/{rest}"
        raise InvalidChangeError(
            f"file path {path!r} is neither a URL nor below the table's location; write {whole}"
        )


def _refuse_stale_file(file: FileChange, newest_millis: int) -> None:
    """Reject a new file of a write attempt that garbage collection may have removed.

    Args:
        file: The added file.
        newest_millis: The time of the table's newest commit, Unix milliseconds.
    """
    written = row_file_millis(file.path)
    if written is not None and newest_millis - written > COMMITTABLE_MILLIS:
        raise InvalidChangeError(
            f"{file.path} was written at {moment(written)} UTC, more than 7 days before the "
            f"table's newest commit, of {moment(newest_millis)} UTC, and maintain may have removed "
            "it since; nothing was committed, so write the rows again",
            "STALE_FILES",
        )


def _check_extra_files(file: FileChange) -> None:
    """Reject extra files that are not in the folder of their file, as Paimon expects them."""
    names: Any = file.extra_files
    for each in names if isinstance(names, tuple) else ():
        if not isinstance(each, str) or not _is_path_segment(each):
            raise InvalidChangeError(
                f"file {file.path} has the extra file {each!r}: name it by its last segment, as "
                "it is in the folder of its file"
            )


def _is_path_segment(name: str) -> bool:
    return name not in {"", ".", ".."} and name.isprintable() and {"/", "\\"}.isdisjoint(name)


def check_snapshot_readable(state: TableState, snapshot_id: int) -> None:
    """Reject a snapshot that cannot be read.

    Raises:
        NotFoundError: It does not exist, or was expired without a tag.
    """
    if type(snapshot_id) is not int or not state.reachable(snapshot_id):
        raise NotFoundError(
            f"snapshot {snapshot_id!r} cannot be read: those from {state.earliest_snapshot_id} to "
            f"{state.last_snapshot_id} and the tagged ones can"
        )


def decide_tag_change(
    state: TableState, change: TagChange, formats: Formats
) -> TagCreated | TagReplaced | TagDeleted:
    """Return the event that a change of a tag becomes.

    Raises:
        AlreadyExistsError: The tag exists (create).
        InvalidChangeError: There is no snapshot to tag.
        NotFoundError: The tag (replace, delete) or its snapshot does not exist.
        InvalidNameError: The name is not safe as a file's.
        FormatError: One of the table's formats cannot have the tag.
    """
    checked_name(change.tag_name, "tag")
    if isinstance(change, DeleteTag):
        return TagDeleted(tag_name=state.tag(change.tag_name).name)
    refuse_inexpressible_tag(state, change.tag_name, formats)
    check_numbers(change, f"tag {change.tag_name!r}")
    state.origin.check_tag_name(change.tag_name)
    newest = state.last_snapshot_id
    snapshot_id = newest if change.snapshot_id is None else change.snapshot_id
    if snapshot_id == 0:
        raise InvalidChangeError(f"tag {change.tag_name!r} has nothing to name: no snapshot yet")
    check_snapshot_readable(state, snapshot_id)
    if state.branch_number(snapshot_id):
        raise InvalidChangeError(
            f"tag {change.tag_name!r} cannot name snapshot {snapshot_id}, which is of a branch: "
            "fast-forward main to the branch first, then tag main's new snapshot"
        )
    if change.tag_name in state.branches:
        raise AlreadyExistsError(f"{change.tag_name!r} is a branch; give the tag another name")
    retained = change.time_retained_millis
    kind = TagCreated if isinstance(change, CreateTag) else TagReplaced
    if isinstance(change, ReplaceTag):
        state.tag(change.tag_name)
    elif change.tag_name in state.tags:
        raise AlreadyExistsError(
            f"tag {change.tag_name!r} exists and names snapshot "
            f"{state.tags[change.tag_name].snapshot_id}; replace it or take another name"
        )
    return kind(
        tag_name=change.tag_name,
        snapshot_id=snapshot_id,
        time_retained_millis=UNSET if retained is None else retained,
    )


def is_tag_as_requested(state: TableState, change: TagChange) -> bool:
    """Return whether a tag is already as requested."""
    there = state.tags.get(change.tag_name)
    if isinstance(change, DeleteTag):
        return there is None
    wanted = (change.snapshot_id, change.time_retained_millis)
    return there is not None and (there.snapshot_id, there.time_retained_millis) == wanted


def decide_snapshot_expiry(
    state: TableState, change: ExpireSnapshots
) -> SnapshotsExpired | SnapshotsRemoved | None:
    """Return the expiry, or None when those snapshots are expired already.

    Raises:
        InvalidChangeError: The newest snapshot would expire, too.
        NotFoundError: The table is from Iceberg, and there is no such snapshot.
    """
    check_numbers(change, "what stays")
    return state.origin.expiry(state, change.earliest_snapshot_id)


def decide_partition_statistics(
    state: TableState, change: SetPartitionStatistics
) -> PartitionStatisticsSet | None:
    """Return the event that sets a partition statistics file, or None when it is set already.

    Raises:
        InvalidChangeError: The path leaves the table's location, or a number its bounds.
        NotFoundError: The snapshot does not exist, or was expired.
    """
    _check_statistics_file(state, change.snapshot_id, change.path)
    check_numbers(change, f"file {change.path}")
    wanted = PartitionStatisticsFile(change.snapshot_id, change.path, change.file_size_in_bytes)
    if state.partition_statistics.get(change.snapshot_id) == wanted:
        return None
    return PartitionStatisticsSet(wanted)


def decide_puffin_statistics(state: TableState, change: SetStatistics) -> StatisticsSet | None:
    """Return the event that sets a Puffin file, or None when it is set already.

    Raises:
        InvalidChangeError: The path leaves the table's location, or a number its bounds.
        NotFoundError: The snapshot does not exist, or was expired.
    """
    wanted = change.statistics
    _check_statistics_file(state, wanted.snapshot_id, wanted.statistics_path)
    check_numbers(wanted, f"file {wanted.statistics_path}")
    for each in wanted.blob_metadata:
        check_numbers(each, f"blob {each.type!r} of file {wanted.statistics_path}")
    return None if state.puffin_files.get(wanted.snapshot_id) == wanted else StatisticsSet(wanted)


def _check_statistics_file(state: TableState, snapshot_id: int, path: str) -> None:
    """Reject a file that leaves the table's location, or is of no snapshot of main."""
    check_file_path(path)
    check_snapshot_readable(state, snapshot_id)
    if state.branch_number(snapshot_id):
        raise InvalidChangeError(
            f"snapshot {snapshot_id} is of a branch; statistics are kept of main's"
        )
