"""SnapshotPlan: a requested snapshot, and its conversion to an event without personal values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import msgspec
from attrs import evolve, field, frozen
from msgspec import UNSET
from msgspec.structs import replace

from ledger.decide.changes import CommitSnapshot, Isolation, MetBranch
from ledger.decide.snapshots import encode_checked_files
from ledger.decide.table_options import MarkedColumns
from ledger.events import TableEvent
from ledger.events.commit import Outside, Transaction
from ledger.events.snapshots import NO_FILES, ChangesReference, SnapshotCommitted
from ledger.files.partition_values import normalize_partition_value
from ledger.locations import FileNames
from ledger.log.request import fresh_id
from ledger.model.errors import InvalidChangeError, InvalidInputError
from ledger.model.file_change import FileChange, PartitionValue, as_files
from ledger.model.iceberg_layout import PartitionField
from ledger.model.messages import excerpt, name_hint
from ledger.model.schema import Schema, as_names
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, snapshot_idempotency_key
from ledger.model.transforms import field_types, transform_of
from ledger.model.types import DataType
from ledger.model.types.text import format_type
from ledger.state.layout import PartitionFilter
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder

MayBe = Callable[[int, tuple[PartitionValue, ...]], bool]
"""Return whether files of a partition spec, by its id, with some partition values are wanted."""


class ListedFiles(Protocol):
    """The live files of a table, as the log or a manifest list lists them."""

    @property
    def names(self) -> FileNames:
        """The normalization of the table's file names."""

    def live_files_at_state(self, state: TableState) -> Mapping[str, FileChange]:
        """Return the live files of a state, by path."""

    def live_files_of_partitions(self, state: TableState, may_be: MayBe) -> Collection[FileChange]:
        """Return the live files of a state whose spec and partition values pass a check."""

    def lookup_live_files_at(
        self, paths: Iterable[str], state: TableState
    ) -> Mapping[str, FileChange]:
        """Return the given files that are live at a state, by the path as given."""

    def newest_changes_at(
        self, paths: Iterable[str], state: TableState
    ) -> Mapping[str, FileChange]:
        """Return the newest known change of each given file up to a state, by the path as given."""

    def absence_text(self, paths: Sequence[str], state: TableState) -> str:
        """Return why a file of any of these paths is not live, for a message."""


Seal = Callable[[TableState, Sequence[FileChange]], Sequence[FileChange]]
"""Move the personal values of added files to sidecar files; return the files for the log."""

Open = Callable[[Iterable[FileChange]], Iterable[FileChange]]
"""Return files with their personal values read back from sidecar files."""

Outsource = Callable[[Sequence[FileChange]], ChangesReference | None]
"""Write a long list to a change file; return None if it is short enough for the commit."""


_TEXTS_OF_PERIODS = {
    "year": "2024",
    "month": "2024-02",
    "day": "2024-02-07",
    "hour": "2024-02-07-13",
}


def partition_filter(state: TableState, where: Mapping[str, PartitionValue]) -> PartitionFilter:
    """Return a partition filter from values by field name of the default spec.

    A field is named by its own name or, for an identity transform, by its column's name.

    Raises:
        InvalidInputError: A name is not a partition field, or a value is not of its type.
    """
    values: dict[tuple[int, str], PartitionValue] = {}
    for name, value in where.items():
        field, source = _find_partition_field(state, name)
        transform = transform_of(field.transform)
        try:
            typed = normalize_partition_value(value, transform, source)
        except ValueError as error:
            kind = format_type(transform.result_type(source))
            like = _TEXTS_OF_PERIODS.get(field.transform)
            hint = "" if like is None else f"; write it like {like}"
            raise InvalidInputError(
                f"{excerpt(value)} is no value of partition key {name} {kind}{hint}"
            ) from error
        values[field.source_id, field.transform] = typed
    return PartitionFilter(values)


def _find_partition_field(state: TableState, name: str) -> tuple[PartitionField, DataType]:
    types = field_types(state.schema)
    usable = [
        each for each in state.spec.fields if each.transform != "void" and each.source_id in types
    ]
    column = next((each.id for each in state.schema.fields if each.name == name), None)
    for each in usable:
        if each.name == name or (each.transform, each.source_id) == ("identity", column):
            return each, types[each.source_id]
    raise InvalidInputError(
        f"{name!r} is no partition key; {name_hint(name, [each.name for each in usable])}"
    )


def live_files_in_partition(
    live: ListedFiles, state: TableState, where: PartitionFilter, opened: Open
) -> list[FileChange]:
    """Return the live files that match a partition filter, each by its own spec.

    Raises:
        InvalidChangeError: A file's spec cannot decide whether the file matches.
    """
    found: list[FileChange] = []

    def may_match(spec_id: int, partition: tuple[PartitionValue, ...]) -> bool:
        return where.matches_partition(partition, state.spec_by_id(spec_id)) is not False

    there = live.live_files_of_partitions(state, may_match)
    for each, opened_file in zip(there, opened(there), strict=True):
        spec = state.spec_by_id(each.spec_id)
        has = where.matches(opened_file, spec)
        if has is None:
            raise InvalidChangeError(
                f"file {each.path} was written with partition spec {each.spec_id}, whose fields "
                f"{[field.name for field in spec.fields]} do not say whether it has the values; "
                "rewrite it under the default spec first, or name the files that go in delete="
            )
        if has:
            found.append(each)
    return found


def delete_changes_for(files: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Return the DELETE changes for live files."""
    return tuple(replace(each, kind="DELETE") for each in files)


def find_live_files(live: ListedFiles, state: TableState, paths: Sequence[str]) -> list[FileChange]:
    """Return the live files of the given paths, also under other spellings of their names.

    Raises:
        InvalidChangeError: A path is not a live file.
    """
    names = {path: live.names.spellings(path) for path in paths}
    every = [each for path in paths for each in names[path]]
    there = live.lookup_live_files_at(dict.fromkeys((*paths, *every)), state) if paths else {}
    # An old log may have both spellings: the exact one wins over the normalized one.
    called = {path: (path, *names[path]) for path in paths}
    found = {
        path: next(there[each] for each in called[path] if each in there)
        for path in paths
        if not there.keys().isdisjoint(called[path])
    }
    missing = [path for path in paths if path not in found]
    if missing:
        others = f" (nor are {len(missing) - 1} others)" if len(missing) > 1 else ""
        one = missing[0]
        why = live.absence_text((one, *names[one]), state)
        raise InvalidChangeError(f"{one} is not a live file{others}: {why}")
    return [found[path] for path in paths]


def refuse_already_added_files(
    live: ListedFiles, state: TableState, adds: Sequence[FileChange], going: Collection[str]
) -> None:
    """Reject added files that were in the table before.

    A path has one content for ever: older snapshots read it, and Paimon's readers treat a path
    that was removed once as removed. One file under two names would count twice.

    Raises:
        InvalidChangeError: A file is a DELETE, is live already, was removed before, is named
            twice, or has a path that other readers would spell differently.
    """
    removal = next((each for each in adds if each.kind != "ADD"), None)
    if removal is not None:
        raise InvalidChangeError(f"{removal.path} is a DELETE; name the path in delete= instead")
    names = live.names
    paths = [each.path for each in adds]
    names.check_all(paths)
    _refuse_duplicate_paths(names, [*going, *paths])
    known: dict[str, FileChange] = {}
    called: dict[str, str] = {}
    # In parts: every file has several names.
    for start in range(0, len(paths), _LOOKED_UP_AT_ONCE):
        some = names.by_spelling(paths[start : start + _LOOKED_UP_AT_ONCE])
        found = live.newest_changes_at(some, state)
        known |= found
        called |= {name: some[name] for name in found}
    for name, change in known.items():
        path = called[name] if called[name] == name else f"{called[name]} (as {name})"
        if change.kind == "ADD":
            raise InvalidChangeError(
                f"{path} is a live file already ({len(known)} of {len(adds)} were in the table); "
                "register each file once; table.new_files(paths), and add-files --new, skip live "
                "files"
            )
        raise InvalidChangeError(
            f"{path} was in the table before and was removed; write the data under another name, "
            "or roll back to a snapshot that has it"
        )


_LOOKED_UP_AT_ONCE: Final = 10_000


def refuse_unmatched_deletes(
    live: ListedFiles, state: TableState, adds: Sequence[FileChange], gone: Sequence[FileChange]
) -> None:
    """Reject deletes of one data file that is not live, or that has another deletion vector.

    Reads all live files if deletion vectors are added, and looks up single files for other deletes.

    Raises:
        InvalidChangeError: The data file is not in the table after the snapshot, or keeps another
            deletion vector.
    """
    deletes = [(each, each.referenced_data_file) for each in adds]
    wanted = {of: each for each, of in deletes if isinstance(of, str)}
    if not wanted:
        return
    usual, going = live.names.usual, {each.path for each in gone}
    come = {usual(each.path) for each in adds if each.content == "data"}
    old = [of for of in wanted if usual(of) not in come]
    for each in find_live_files(live, state, old):
        if each.path in going or each.content != "data":
            raise InvalidChangeError(
                f"{wanted[next(of for of in old if usual(of) == usual(each.path))].path} deletes "
                f"rows of {each.path}, which is no data file of the table after this snapshot"
            )
    has_vector: dict[str, str] = {}
    if any(each.is_vector for each in adds):
        there = live.live_files_at_state(state).values()
        for each in (*(e for e in there if e.path not in going), *adds):
            if each.is_vector and isinstance(each.referenced_data_file, str):
                data_file = usual(each.referenced_data_file)
                other = has_vector.setdefault(data_file, each.path)
                if other != each.path:
                    raise InvalidChangeError(
                        f"{data_file} has the deletion vector {other}, and can have one at most: "
                        f"write both as one, and name {other} in delete="
                    )


def _refuse_duplicate_paths(names: FileNames, paths: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    if names.are_canonical(paths) and len({*paths}) == len(paths):
        return
    for path in paths:
        other = seen.setdefault(names.usual(path), path)
        if other is not path:
            also = "" if other == path else f", as {other} too"
            raise InvalidChangeError(f"file {path} is named twice in one commit{also}")


@frozen
class SnapshotPlan:
    """A requested snapshot, before it is decided against a state.

    Attributes:
        kind: APPEND, COMPACT, OVERWRITE or ANALYZE.
        files: Files to add.
        delete: Paths of live files to remove.
        where: Values by partition key of the default spec; all live files that match are removed,
            too, whatever their spec. Empty: all files. None: only those in `delete`.
        isolation: Whether a file that a concurrent writer adds under `where` is a conflict.
        commit_user: The writer's id, stable for a stream; None for a fresh one.
        commit_identifier: The stream's own number; the same (user, identifier, kind) is never
            committed twice.
        facts: Further keys of Paimon's snapshot file: `watermark`, `statistics`, ...
    """

    kind: CommitKind
    files: tuple[FileChange, ...] = field(default=(), converter=as_files)
    delete: tuple[str, ...] = field(default=(), converter=as_names)
    where: Mapping[str, PartitionValue] | None = field(default=None, hash=False)
    isolation: Isolation = "serializable"
    commit_user: str | None = None
    commit_identifier: int = BATCH_COMMIT_IDENTIFIER
    facts: Mapping[str, Any] = field(factory=dict, hash=False)

    @property
    def key(self) -> str | None:
        """The idempotency key of the snapshot on main; None if it is never deduplicated."""
        return self.key_on(0)

    def key_on(self, branch: int) -> str | None:
        """Return the idempotency key on a branch, by the branch's number; 0 is main."""
        if self.commit_user is None:
            return None
        return snapshot_idempotency_key(self.kind, self.commit_identifier, self.commit_user, branch)

    def on(
        self, head: TableState, live: ListedFiles, outsource: Outsource, seal: Seal, opened: Open
    ) -> CommitSnapshot:
        """Return the snapshot change of the plan against a state and the branch it is seen on.

        Raises:
            InvalidChangeError: A file to add is live, or one to delete is not.
        """
        where = None if self.where is None else partition_filter(head, self.where)
        gone = find_live_files(live, head, self.delete)
        if where is not None:
            gone += live_files_in_partition(live, head, where, opened)
        refuse_already_added_files(live, head, self.files, {each.path for each in gone})
        refuse_unmatched_deletes(live, head, self.files, gone)
        changes = (*delete_changes_for(gone), *self.files)
        encode_checked_files(changes)
        written = (*delete_changes_for(gone), *seal(head, self.files))
        branch = head.viewed_branch
        return CommitSnapshot(
            commit_kind=self.kind,
            commit_user=self.commit_user or fresh_id(),
            commit_identifier=self.commit_identifier,
            files=changes,
            written=written,
            reference=outsource(written),
            where=where,
            isolation=self.isolation,
            facts=self.facts,
            branch=None if branch is None else MetBranch(branch.name, branch.number),
        )

    def without_values(self, head: TableState, schema: Schema) -> SnapshotPlan:
        """Return the plan without personal values, for a digest, which could be tested by guesses.

        Args:
            head: The table's newest state.
            schema: The current or past schema whose personal columns count.
        """
        marked = MarkedColumns.of(schema) if head.keeps_outside else None
        if marked is None:
            return self
        known = {each.spec_id: each for each in head.specs}
        files = tuple(marked.without(each, known.get(each.spec_id)) for each in self.files)
        return evolve(
            self, files=files, where=None if self.where is None else dict.fromkeys(self.where)
        )


Keep = Callable[[Sequence[FileChange], MarkedColumns, TableState], Sequence[FileChange]]
"""Move values of personal columns of added files to sidecar files; return them for the log."""


def seal_personal_values(
    events: tuple[TableEvent, ...],
    head: TableState,
    listed: Callable[[SnapshotCommitted], Sequence[FileChange]],
    keep: Keep,
) -> tuple[TableEvent, ...]:
    """Return a transaction's events with the values of personal columns moved to sidecar files.

    A column counts as personal if it is marked so before or after the transaction, since one
    transaction may both mark a column and add files.

    Args:
        events: The events of one transaction.
        head: The state before them.
        listed: Returns the files that an event lists.
        keep: Moves their personal values to sidecar files.
    """
    if not any(isinstance(each, SnapshotCommitted) for each in events):
        return events
    after = head
    with suppress(InvalidChangeError):
        # An event that contradicts the table is rejected when it is appended.
        after = _state_after_events(head, events)
    marked = _union_marked(MarkedColumns.of(head.schema), MarkedColumns.of(after.schema))
    if marked is None:
        return events
    return tuple(
        _seal_event(each, keep, listed(each), marked, after)
        if isinstance(each, SnapshotCommitted)
        else each
        for each in events
    )


def _seal_event(
    event: SnapshotCommitted,
    keep: Keep,
    files: Sequence[FileChange],
    marked: MarkedColumns,
    after: TableState,
) -> SnapshotCommitted:
    come = iter(keep([each for each in files if each.kind == "ADD"], marked, after))
    changes = tuple(next(come) if each.kind == "ADD" else each for each in files)
    body = msgspec.Raw(encode_checked_files(changes)) if changes else NO_FILES
    return msgspec.structs.replace(event, files=body, changes=UNSET)


def _state_after_events(head: TableState, events: tuple[TableEvent, ...]) -> TableState:
    builder = TableBuilder(head)
    builder.begin(head.version + 1, head.time_millis)
    builder.add(Transaction(id="", asked="", events=events, outside=Outside()))
    return builder.freeze()


def _union_marked(one: MarkedColumns | None, other: MarkedColumns | None) -> MarkedColumns | None:
    if one is None or other is None:
        return one or other
    return MarkedColumns(one.personal | other.personal, other.known)
