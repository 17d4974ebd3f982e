"""Verification of commits: hash chain, event values, unique ids.

A broken link shows that one of two files was changed. If the digest differs in a few characters
only, the digest itself was damaged; a file with broken links on both sides is the changed one.

The fold is frozen, so that written events keep their meaning; it checks that events can follow one
another but does not validate their numbers and names. The decision of a change validates much more.
This module finds what another kind of writer put into a log with correct hashes.

Each name is recorded as its hash, eight bytes in a temporary file, so that memory does not grow
with the log. Suspicious hashes are looked up in the log itself, which shows whether the names are
equal.
"""

from __future__ import annotations

import re
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from operator import attrgetter, le
from typing import IO, Any, Final, Generic, NamedTuple, TypeVar

from attrs import frozen
from msgspec import UNSET, Struct, UnsetType

from ledger.decide.bounds import COUNT
from ledger.decide.changes import FileSums
from ledger.decide.recorded_values import (
    KINDS_WITH_PATHS,
    file_path_problems,
    number_keys_of,
    number_problems,
    short_number,
)
from ledger.decide.snapshots import is_read_by_name
from ledger.events.commit import Commit, Transaction
from ledger.events.snapshots import ListingEvent, RolledBack, SnapshotCommitted
from ledger.files.live import file_key
from ledger.history.verifying.subject import CommitColumns, Finding, Listed, Listings, Subject
from ledger.log.codec import digest, encode, encode_commits
from ledger.log.key_index import commit_id_key, hash_key, hash_keys
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.model.errors import DamagedLogError, LedgerError, UpgradeRequiredError
from ledger.model.file_change import FileChange, has_rare_facts, sidecar_location_of
from ledger.model.iceberg_layout import spec_of_id
from ledger.model.messages import excerpt
from ledger.model.single_values import decode_value
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER, branch_number
from ledger.model.transforms import transform_of
from ledger.model.types import walk_fields
from ledger.state.stream import StateLike
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

_DIGITS = 20
_MOST_VERSIONS = f"{2**63 - 1:020d}"
_TOGETHER = 1_000
"""Number of keys of a log's folder that are checked together."""
_MOST_WRONG_DIGITS = 32
"""Maximum number of differing digits of a damaged digest; unrelated digests differ in more."""

Gap = tuple[int, int]
"""First and last version of an interval of missing commits."""


class ChainLink(NamedTuple, Generic[E]):
    """One readable commit, the bytes of its file, and the file's digest."""

    commit: Commit[E]
    digest: str
    body: bytes


@frozen
class LogFolderContents:
    """Contents of a log's folder: the last version, foreign files and gaps.

    Attributes:
        last: The highest version; -1 when there is none.
        foreign: The first few keys that are not commits.
        gaps: The first few gaps: first and last version of missing commits before `last`.
    """

    last: int
    foreign: tuple[str, ...]
    gaps: tuple[Gap, ...] = ()


def list_log_folder(subject: Subject[S, E], *, most: int = 100) -> LogFolderContents:
    """List a log's folder, without keeping the listing in memory.

    Args:
        subject: The stream.
        most: Maximum number of foreign keys, and of gaps, to return.
    """
    newest, count = "", 0
    foreign: list[str] = []
    is_commit, are_commits = _commit_key_predicate(subject), _all_commits_predicate(subject)
    keys = iter(subject.store.walk(_log_folder(subject)))
    while some := [*islice(keys, _TOGETHER)]:
        commits = some if are_commits(some) else [*filter(is_commit, some)]
        count += len(commits)
        newest = max([newest, *commits])
        if len(commits) < len(some) and len(foreign) < most:
            strange = (each for each in some if not is_commit(each))
            foreign += islice(strange, most - len(foreign))
    last = _version_of_key(newest) if newest else -1
    gaps = () if count == last + 1 else tuple(islice(_find_version_gaps(subject), most))
    return LogFolderContents(last, tuple(sorted(foreign)), gaps)


def _find_version_gaps(subject: Subject[S, E]) -> Iterator[Gap]:
    keys = filter(_commit_key_predicate(subject), subject.store.walk(_log_folder(subject)))
    for before, after in pairwise([-1, *sorted(map(_version_of_key, keys))]):
        if after > before + 1:
            yield before + 1, after - 1


def _log_folder(subject: Subject[S, E]) -> str:
    return subject.layout.commit(0).rpartition("/")[0]


def _commit_key_predicate(subject: Subject[S, E]) -> Callable[[str], object]:
    """Return a predicate that is true for the keys of commits in a log's folder."""
    most = f"{_log_folder(subject)}/{_MOST_VERSIONS}.json"
    matches = re.compile(rf"{re.escape(_log_folder(subject))}/[0-9]{{{_DIGITS}}}\.json").fullmatch
    return lambda key: matches(key) and key <= most


def _all_commits_predicate(subject: Subject[S, E]) -> Callable[[Sequence[str]], bool]:
    """Return a fast predicate that is true if all of several keys are commits."""
    one = rf"{re.escape(_log_folder(subject))}/[0-9]{{{_DIGITS}}}\.json"
    # No key contains a line break.
    matches = re.compile(rf"{one}(?:\n{one})*+").fullmatch
    newest = f"{_log_folder(subject)}/{_MOST_VERSIONS}.json"
    return lambda keys: matches("\n".join(keys)) is not None and max(keys) <= newest


def _version_of_key(key: str) -> int:
    return int(key[-_DIGITS - len(".json") : -len(".json")])


class Chain(Generic[S, E]):
    """Verification of a part of a stream's hash chain.

    Args:
        subject: The stream.
        newest: The last version of the stream.
    """

    def __init__(self, subject: Subject[S, E], newest: int) -> None:
        self._subject = subject
        self._newest = newest
        self._before: ChainLink[E] | None = None
        self._blamed: set[int] = set()

    def walk(
        self, first: int, last: int, gaps: Sequence[Gap] = ()
    ) -> Iterator[list[ChainLink[E]] | ChainLink[E] | Finding]:
        """Yield each readable commit, in order, with findings before the commits concerned.

        Valid commits up to a checkpoint's version are yielded as one list. A version has at most
        one finding.

        Args:
            first: The first version; the commit before it is only read for its digest.
            last: The last version.
            gaps: Known gaps, which are reported elsewhere.
        """
        missing = {
            each for low, high in gaps for each in range(max(low, first), min(high, last) + 1)
        }
        versions = [each for each in range(first, last + 1) if each not in missing]
        if first and versions[:1] == [first]:
            self._before = self._read_link(first - 1)
        keys = map(self._subject.layout.commit, versions)
        bodies = self._subject.store.read_many([*keys])
        expected = first
        for some in _version_batches(versions):
            read = [*islice(bodies, len(some))]
            if some[0] != expected:
                self._before = None
            fitting = self._links_if_all_valid(some, read)
            if fitting is None:
                yield from self._check_one_by_one(some, read, expected)
            else:
                yield fitting
            expected = some[-1] + 1

    def _links_if_all_valid(
        self, versions: list[int], bodies: list[bytes | None]
    ) -> list[ChainLink[E]] | None:
        """Return consecutive commits if all are valid.

        None if one needs a closer check, or the commit before them is unknown.
        """
        before, there = self._before, [each for each in bodies if each is not None]
        if before is None or len(there) < len(versions) or versions[-1] - versions[0] >= len(there):
            return None
        commits = self._subject.log.codec.decode_all(there)
        if commits is None:
            return None
        # Files are joined: bytes missing at one file's end must not be at the start of the next.
        are_lines = b"".join([each[-1:] for each in there]) == b"\n" * len(there)
        try:
            is_written_so = are_lines and encode_commits(commits) == b"".join(there)
        except (OverflowError, UnicodeEncodeError, RecursionError):
            # No writer writes an integer of more than 64 bits.
            return None
        digests = [*map(digest, there)]
        fits = (
            is_written_so
            and [each.version for each in commits] == versions
            and [each.parent for each in commits] == [before.digest, *digests[:-1]]
        )
        if not fits:
            return None
        links = [*map(ChainLink, commits, digests, there)]
        self._before = links[-1]
        return links

    def _check_one_by_one(
        self, versions: list[int], bodies: list[bytes | None], expected: int
    ) -> Iterator[ChainLink[E] | Finding]:
        for version, body in zip(versions, bodies, strict=True):
            if version != expected:
                self._before = None
            if body is None:
                yield from self._report_damage_once(
                    version, "the commit is missing, but later ones exist"
                )
            else:
                yield from self._check_commit(version, body)
            expected = version + 1

    def _read_link(self, version: int) -> ChainLink[E] | None:
        """Return a commit regardless of its links; None if it cannot be read."""
        body = self._subject.store.read(self._subject.layout.commit(version))
        commit = None if body is None else self._decode_or_describe(version, body)
        return (
            ChainLink(commit, digest(body), body) if body and isinstance(commit, Commit) else None
        )

    def _report_damage_once(self, version: int, what: str) -> Iterator[Finding]:
        """Yield a finding, unless the version has one already; the next link is not checked."""
        self._before = None
        if version not in self._blamed:
            self._blamed.add(version)
            yield Finding("damage", what, self._subject.layout.commit(version), version)

    def _check_commit(self, version: int, body: bytes) -> Iterator[ChainLink[E] | Finding]:
        commit = self._decode_or_describe(version, body)
        if isinstance(commit, str):
            yield from self._report_damage_once(version, commit)
            return
        link = ChainLink(commit, digest(body), body)
        before = self._before
        if before is not None and commit.parent != before.digest:
            yield from self._broken_link_findings(version, before, link)
        elif version == 0 and commit.parent is not UNSET:
            yield from self._report_damage_once(0, "it is version 0 and names a parent")
        elif version > 0 and commit.parent is UNSET:
            yield from self._report_damage_once(version, "it names no parent")
        if not _is_canonically_encoded(commit, body):
            yield from self._report_damage_once(
                version, "it is not written as lakeledger writes a commit"
            )
        self._before = link
        yield link

    def _decode_or_describe(self, version: int, body: bytes) -> Commit[E] | str:
        """Return the commit, or a description of the damage of its file."""
        key = self._subject.layout.commit(version)
        try:
            commit = self._subject.log.codec.decode(body, key)
        except (DamagedLogError, UpgradeRequiredError) as error:
            return error.message.removeprefix(f"{key} ").split(". ")[0]
        if commit.version != version:
            return f"it says that it is version {excerpt(commit.version)}"
        return commit

    def _broken_link_findings(
        self, version: int, before: ChainLink[E], link: ChainLink[E]
    ) -> Iterator[Finding]:
        named = link.commit.parent
        if named is UNSET or is_nearly_equal_digest(named, before.digest):
            yield from self._report_damage_once(
                version, f"the parent that it names is damaged: {excerpt(named)}"
            )
        elif self._is_successor_unlinked(version, link):
            yield from self._report_damage_once(
                version, f"it follows another version {version - 1}, and another follows it"
            )
        else:
            yield from self._report_damage_once(
                version - 1, f"it was changed: version {version} names another file as its parent"
            )

    def _is_successor_unlinked(self, version: int, link: ChainLink[E]) -> bool:
        if version == self._newest:
            return False
        follower = self._read_link(version + 1)
        return follower is not None and follower.commit.parent != link.digest


def _version_batches(versions: Sequence[int]) -> Iterator[list[int]]:
    """Yield the versions in batches, each up to a checkpoint's version; version 0 alone."""
    begin = 0
    while begin < len(versions):
        boundary = -(-versions[begin] // CHECKPOINT_INTERVAL) * CHECKPOINT_INTERVAL
        end = bisect_right(versions, boundary, lo=begin)
        yield [*versions[begin:end]]
        begin = end


def _is_canonically_encoded(commit: Commit[Any], body: bytes) -> bool:
    try:
        return encode(commit) == body
    except (OverflowError, UnicodeEncodeError, RecursionError):
        # A number of more than 64 bits was never written.
        return False


def is_nearly_equal_digest(named: str, digest_before: str) -> bool:
    """Return True if a digest equals another one apart from a few damaged characters.

    Example:
        >>> is_nearly_equal_digest("sha256:00ff", "sha256:00fe")
        True
    """
    if len(named) != len(digest_before):
        return True
    wrong = sum(a != b for a, b in zip(named, digest_before, strict=True))
    return 0 < wrong < _MOST_WRONG_DIGITS


_MOST_KEPT: Final = 100_000
"""Maximum number of partitions remembered as valid."""


class TableFacts:
    """Check of the contents of a table's commits, each after it was folded.

    Args:
        builder: The table builder, at the state after the commit that is checked.
    """

    def __init__(self, builder: TableBuilder) -> None:
        self._builder = builder
        self._sound: set[tuple[object, ...]] = set()

    def are_plainly_valid(self, listed: Listed) -> bool:
        """Return True if snapshots are valid by a fast check over columns of values.

        False: check closely, such as snapshots of several files, or partitions seen first.
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
            and not _may_path_escape("\n".join(paths))
            and {*map(_partition_key, files)} <= self._sound
            and not has_rare_facts(files)
        )

    def problems(self, listed: Listed, before: TableState | None) -> Iterator[str]:
        """Yield the problems of a commit's snapshots.

        Args:
            listed: The snapshots with their file changes.
            before: The state before the commit, if one of them is a rollback.
        """
        made: set[int] = set()
        for event, files in listed:
            if isinstance(event, RolledBack) and before is not None:
                yield from _rollback_target_problems(event, before, made)
            made.add(event.snapshot_id)
            if (files or not self._builder.source_lists_files) and not _sums_equal_only_file(
                event, files
            ):
                yield from _sum_problems(event, files)
            if files:
                yield from self._file_problems(event, files)

    def _file_problems(self, event: ListingEvent, files: Sequence[FileChange]) -> Iterator[str]:
        for each in files:
            path = each.path
            yield from file_path_problems(each)
            if each.content_offset is not UNSET and each.stored_at == path:
                yield f"the deletion vector {excerpt(path)} is not called by where it begins"
            if each.schema_id > event.schema_id and self._builder.origin.has_ordered_ids:
                yield f"file {excerpt(path)} names schema {each.schema_id}, after its snapshot's"
            for bounds in (each.lower_bounds, each.upper_bounds):
                if not isinstance(bounds, UnsetType) and not _are_hex(bounds.values()):
                    yield f"file {excerpt(path)} has a bound that is no bytes in hex"
            key = _partition_key(each)
            if key not in self._sound:
                problem = self._partition_problem(each)
                if problem is None:
                    self._sound.add(key)
                else:
                    yield problem

    def _partition_problem(self, file: FileChange) -> str | None:
        """Return the problem with a file's partition values under its spec, if any."""
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
        # Values written under an older schema have that schema's types.
        if not file.partition or file.schema_id != self._builder.schema_id:
            return None
        schema = self._builder.freeze().schema
        sources = {each.id: each.type for each in walk_fields(schema.fields)}
        for field, value in zip(spec.fields, file.partition, strict=True):
            source = sources.get(field.source_id)
            if source is None or value is None or sidecar_location_of(value) is not None:
                continue
            try:
                decode_value(value, transform_of(field.transform).result_type(source))
            except LedgerError:
                return (
                    f"file {excerpt(file.path)} has the value {excerpt(value)} of the partition "
                    f"field {field.name}, which is invalid"
                )
        return None


_MADE: Final = attrgetter(
    *("schema_id", "lower_bounds", "upper_bounds", "path", "kind"),
    *("record_count", "file_size_in_bytes", "creation_time"),
)
"""The checked attributes of files; the last ones correspond to those of `_SAID` in snapshots."""

_SAID: Final = attrgetter(
    *("schema_id", "named_schema_ids", "delta_file_count"),
    *("delta_record_count", "delta_file_size_in_bytes", "last_file_creation_time"),
)


def _may_path_escape(path: str) -> bool:
    return ".." in path or "\0" in path


def _partition_key(file: FileChange) -> tuple[object, ...]:
    """Return a file's partition as a hashable key."""
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
    """Return True if numbers and paths of commits are in range, by a fast check.

    False: check each commit closely, which may find nothing.

    Args:
        columns: The commits.
        listings: The files that they list.
    """
    moments = [each.time_millis for each in columns.commits]
    if not KINDS_WITH_PATHS.isdisjoint(columns.kinds) or (
        moments and not (COUNT.holds(min(moments)) and COUNT.holds(max(moments)))
    ):
        return False
    files = [each for _, some in listings.listed for each in some]
    records: dict[type[Struct], Sequence[Struct]] = {FileChange: files, **columns.by_kind}
    records[Transaction] = columns.transactions
    return all(number_keys_of(kind).all_fit(found) for kind, found in records.items())


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


def _rollback_target_problems(
    event: RolledBack, before: TableState, made: Collection[int]
) -> Iterator[str]:
    """Yield the problems of a rollback's target.

    Args:
        event: The rollback.
        before: The state before its commit.
        made: Ids of the snapshots that earlier transactions of its commit made.
    """
    target, tag = event.target_snapshot_id, event.target_tag_name
    if before.branch_number(target):
        yield f"it rolls back to snapshot {target}, which is of a branch"
    elif target not in made and not before.reachable(target):
        yield (
            f"it rolls back to snapshot {target}, which does not exist or was expired; there are "
            f"{before.origin.readable_range_text(before)}"
        )
    elif not isinstance(tag, UnsetType):
        named = before.tags.get(tag)
        if named is None or named.snapshot_id != target:
            yield f"it rolls back to tag {excerpt(tag)}, which does not name snapshot {target}"


def _sums_equal_only_file(event: ListingEvent, files: Sequence[FileChange]) -> bool:
    """Return True if an event's sums equal those of its only file; False: check closely."""
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
            yield f"snapshot {event.snapshot_id} has {name} {one}, but its files sum to {other}"
    # Older ledgers do not record it.
    if not event.named_schema_ids:
        return
    named = tuple(sorted({each.schema_id for each in files if is_read_by_name(each)}))
    if named != event.named_schema_ids:
        yield (
            f"snapshot {event.snapshot_id} says that files without ids use the names of the "
            f"schemas {list(event.named_schema_ids)}, but they use those of {list(named)}"
        )


_SUMS: Final = (
    "deltaRecordCount",
    "deltaFileCount",
    "deltaFileSizeInBytes",
    "lastFileCreationTime",
)


_PARTS: Final = 64
_BLOCK: Final = 1024
"""Number of hashes of a part that are written at a time."""
_IN_MEMORY_BYTES: Final = 4 * 1024 * 1024
_CAME: Final = 1
_SIZE: Final = 8


Usual = Callable[[str], str]
"""Normalize the path of a file, so that each file has one spelling."""

UsualOfAll = Callable[[list[str]], list[str]]
"""Normalize the paths of several files."""


class Hashes:
    """Hashes in order of arrival, partitioned by value; spilled to disk when there are many."""

    def __init__(self) -> None:
        self._open: list[array[int]] = [array("Q") for _ in range(_PARTS)]
        self._blocks: list[list[int]] = [[] for _ in range(_PARTS)]
        self._file: IO[bytes] | None = None

    def extend(self, hashes: Iterable[int]) -> None:
        """Add hashes."""
        parts = self._open
        for each in hashes:
            # Not by the lowest bit, which distinguishes additions and removals of files.
            part = parts[each >> 1 & _PARTS - 1]
            part.append(each)
            if len(part) == _BLOCK:
                self._spill_partition(each >> 1 & _PARTS - 1)

    def _spill_partition(self, number: int) -> None:
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - closed below
        self._blocks[number].append(self._file.tell())
        self._file.write(self._open[number].tobytes())
        self._open[number] = array("Q")

    def parts(self) -> Iterator[array[int]]:
        """Yield and discard all hashes in parts; equal hashes are in the same part."""
        for number in range(_PARTS):
            part = array("Q")
            for block in self._blocks[number]:
                if self._file is not None:
                    self._file.seek(block)
                    part.frombytes(self._file.read(_BLOCK * _SIZE))
            part.extend(self._open[number])
            yield part
        if self._file is not None:
            self._file.close()


class UniqueNameHashes:
    """Hashes of names in commits that must be unique, for the search for duplicates.

    Attributes:
        once: Hashes of transaction ids and of snapshots' keys.
        files: Hashes of files added and removed, in order; the lowest bit is 1 for an addition.
    """

    def __init__(self) -> None:
        self.once: array[int] = array("Q")
        self.files: array[int] = array("Q")

    def add_commits(
        self, columns: CommitColumns, listings: Listings, normalize_paths: UsualOfAll
    ) -> list[tuple[int, int]]:
        """Add commits.

        Args:
            columns: The commits.
            listings: The files that they list.
            normalize_paths: Normalization of file paths.

        Returns:
            The (hash, version) entries of the commits in the key index.
        """
        transactions, versions = columns.transactions, columns.versions
        hashes = hash_keys([commit_id_key(each.id) for each in transactions])
        named = [*zip(hashes, versions, strict=True)]
        snapshots = _snapshot_keys(listings)
        snapshot_hashes = hash_keys([key for _, key, _ in snapshots])
        self.once.extend(hashes)
        self.once.extend(
            found
            for found, (_, _, is_unique) in zip(snapshot_hashes, snapshots, strict=True)
            if is_unique
        )
        named += zip(snapshot_hashes, (version for version, _, _ in snapshots), strict=True)
        return named + self._add_file_hashes(columns, listings, normalize_paths)

    def _add_file_hashes(
        self, columns: CommitColumns, listings: Listings, normalize_paths: UsualOfAll
    ) -> list[tuple[int, int]]:
        """Add the files of commits; return the (hash, version) entry of each."""
        main = listings.main
        paths = [each.change.path for each in main]
        usuals = normalize_paths(paths)
        names = hash_keys([*map(file_key, paths)])
        # Most paths are normalized already.
        known = names if usuals == paths else hash_keys([*map(file_key, usuals)])
        self.files.extend(
            [
                found | _CAME if each.change.kind == "ADD" else found & ~_CAME
                for found, each in zip(known, main, strict=True)
            ]
        )
        keys = zip(names, (each.version for each in main), strict=True)
        return [*keys, *_branch_file_hashes(listings)] if columns.has_branches else [*keys]


def _branch_file_hashes(listings: Listings) -> Iterator[tuple[int, int]]:
    for version, branch, each in listings.branches:
        yield hash_key(file_key(each.path, branch)), version


def _snapshot_keys(listings: Listings) -> list[tuple[int, str, bool]]:
    """Return the version and key of each snapshot of the commits, and whether that is unique."""
    return [
        (version, key, not _is_of_engine(event))
        for version, (event, _) in zip(listings.versions, listings.listed, strict=True)
        # A snapshot with this identifier has no key.
        if event.commit_identifier != BATCH_COMMIT_IDENTIFIER
        and not isinstance(event, RolledBack)
        and (key := event.key) is not None
    ]


def _is_of_engine(event: ListingEvent) -> bool:
    """Return whether an engine of Paimon made a snapshot: after a rollback it repeats keys."""
    return isinstance(event, SnapshotCommitted) and isinstance(event.time_millis, int)


def suspicious_hashes(once: Hashes, files: Hashes) -> tuple[set[int], set[int]]:
    """Return the duplicate hashes, and those of files added or removed out of order."""
    twice: set[int] = set()
    for part in once.parts():
        if len(set(part)) < len(part):
            seen: set[int] = set()
            for each in part:
                (twice if each in seen else seen).add(each)
    out_of_turn: set[int] = set()
    for part in files.parts():
        live: set[int] = set()
        for each in part:
            name = each & ~_CAME
            if (name in live) == bool(each & _CAME):
                out_of_turn.add(name)
            (live.add if each & _CAME else live.discard)(name)
    return twice, out_of_turn


class DuplicateNameSearch:
    """Search of a log for the names behind suspicious hashes.

    Args:
        twice: Duplicate hashes of ids and snapshots' keys.
        out_of_turn: Hashes of files added or removed out of order.
        usual: Normalization of a file's path.
    """

    def __init__(self, twice: Collection[int], out_of_turn: Collection[int], usual: Usual) -> None:
        self._usual = usual
        self._twice = twice
        self._out_of_turn = out_of_turn
        self._named: dict[str, int] = {}
        self._live: dict[str, int] = {}

    def problems(self, commit: Commit[Any], listed: Listed) -> Iterator[str]:
        """Yield the problems of the next commit: duplicate ids, keys and files."""
        version = commit.version
        for key, what in _unique_keys_of(commit, listed) if self._twice else ():
            if hash_key(key) in self._twice:
                first = self._named.get(key)
                self._named.setdefault(key, version)
                if first is not None:
                    yield f"{what} was used in version {first} already"
        for event, files in listed if self._out_of_turn else ():
            for each in () if branch_number(event.snapshot_id) else files:
                name = self._usual(each.path)
                if hash_key(file_key(name)) & ~_CAME not in self._out_of_turn:
                    continue
                since = self._live.get(name)
                if each.kind == "ADD":
                    self._live[name] = version
                    if since is not None:
                        yield (
                            f"it adds the file {excerpt(each.path)}, which is live since version "
                            f"{since}"
                        )
                elif self._live.pop(name, None) is None:
                    yield f"it removes the file {excerpt(each.path)}, which is not live"


def _unique_keys_of(commit: Commit[Any], listed: Listed) -> Iterator[tuple[str, str]]:
    """Yield each key of a commit that must be unique, with its description."""
    for transaction in commit.transactions:
        yield commit_id_key(transaction.id), f"the commit id {excerpt(transaction.id)}"
    for event, _ in listed:
        key = None if isinstance(event, RolledBack) else event.key
        if key is not None and not _is_of_engine(event):
            yield key, f"the snapshot's key {excerpt(key)}"
