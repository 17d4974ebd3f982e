"""Materialisation of a table's Iceberg files, and comparison with the store.

Files of an older renderer or for another location are the ledger's own, so the newest renderer
replaces them: new files are written first, then the pointer moves to them, and the old ones are
deleted last.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Collection, Iterator, Mapping

import msgspec
from attrs import evolve, frozen

import projections.iceberg.position as positions
from ledger.log.time_travel import at_version
from ledger.model.errors import (
    DamagedLogError,
    InvalidInputError,
    NotFoundError,
    TooLargeError,
    UnsupportedError,
)
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg.metadata_log import MOST_LOGGED_VERSIONS, Wants
from projections.iceberg.position import FOLDER, HINT, RENDERER, IcebergPosition, Names
from projections.iceberg.project import Projection, wants_no_other_version
from projections.manifest_files.container import read_container
from projections.materialising import (
    ComparisonResult,
    Difference,
    Materialisation,
    PendingDeletes,
    Progress,
    RebuildReason,
    difference,
    files_of,
    ignore_progress,
    outputs_of,
    target_state,
)
from projections.outputs import MemoryOutputs, Outputs, PositionFile, StoreOutputs


def compare_files(table: TableHandle, saved: IcebergPosition, at: TableState) -> ComparisonResult:
    """Compare a table's files with those expected at a state.

    Args:
        table: The table.
        saved: The position of the files.
        at: The state; the newest, if the position is unknown or the log was cut below it.
    """
    outputs, names = outputs_of(table), Names(at.table_id)
    # Files pending deletion are not compared.
    there = frozenset(outputs.paths(FOLDER)) - PendingDeletes(table, "iceberg").paths()
    wanted = _expected_files(table, at, names, there)
    found = difference(outputs, wanted, folders=(FOLDER,), hints=(HINT,))
    later = _later_version_files(table, at, names, there)
    ours = {path for path in found.foreign if later.get(path) == outputs.read(path)}
    newest = target_state(table, None)
    ours.update(each.statistics_path for each in newest.partition_statistics.values())
    ours.update(each.statistics_path for each in newest.puffin_files.values())
    in_way = {
        path
        for path in found.foreign
        if path not in ours and (path in later or _is_later_metadata(names, path, at.version))
    }
    changed, missing = [*found.changed, *in_way], list(found.missing)
    if saved.version == at.version:
        hint = outputs.read(HINT)
        # A run that was killed may have moved the pointer to a later version already.
        fine = {wanted[HINT], *(b"%d" % v for v in _hadoop_versions(names, ours))}
        if hint is None:
            missing.append(HINT)
        elif hint not in fine:
            changed.append(HINT)
    found_difference = Difference(
        missing=tuple(sorted(missing)),
        changed=tuple(sorted(changed)),
        foreign=found.without(ours | in_way).foreign,
    )
    return ComparisonResult(found_difference, wanted, tuple(sorted(in_way)), at)


def _render_files(
    table: TableHandle, target: TableState, wants: Wants = wants_no_other_version
) -> dict[str, bytes]:
    outputs = MemoryOutputs()
    Projection(table, outputs, IcebergPosition(), target, wants).run(ignore_progress)
    return outputs.files


def _metadata_version(names: Names, path: str) -> int | None:
    """Return the version of a metadata file, from its catalog or Hadoop file name."""
    digits = path.removeprefix(f"{FOLDER}/v").removesuffix(".metadata.json")
    if digits.isascii() and digits.isdigit() and path == names.hadoop(int(digits)):
        return int(digits)
    return names.version_of(path)


def _is_later_metadata(names: Names, path: str, version: int) -> bool:
    found = _metadata_version(names, path)
    return found is not None and found > version


def _hadoop_versions(names: Names, paths: set[str]) -> Iterator[int]:
    for path in paths:
        version = _metadata_version(names, path)
        if version is not None and path == names.hadoop(version):
            yield version


def _expected_files(
    table: TableHandle, target: TableState, names: Names, there: frozenset[str]
) -> dict[str, bytes]:
    """Return the expected files, including existing metadata files of earlier versions."""
    versions = {names.version_of(path) for path in there}
    older = {v: names.hadoop(v) for v in range(target.version) if names.hadoop(v) in there}
    wanted = _render_files(table, target, lambda each: each in versions or each in older)
    for each, path in older.items():
        if names.metadata(each) in wanted:
            wanted[path] = wanted[names.metadata(each)]
            if each not in versions:
                del wanted[names.metadata(each)]
    return wanted


def _later_version_files(
    table: TableHandle, target: TableState, names: Names, there: frozenset[str]
) -> dict[str, bytes]:
    """Return the files of later versions, by path, for paths that exist already.

    A run that was killed leaves such files, and so does `--at`.
    """
    newest = target_state(table, None).version
    found = {_metadata_version(names, path) for path in there}
    wanted = {v for v in found if v is not None and target.version < v <= newest}
    made: dict[str, bytes] = {}
    for version in sorted(wanted | ({newest} - {target.version})):
        try:
            made |= _render_files(table, target_state(table, version))
        except UnsupportedError:
            # A state that cannot be projected was not projected by an earlier run either.
            continue
    return {path: body for path, body in made.items() if path in there and path != HINT}


class _SnapshotRecord(msgspec.Struct, rename="kebab"):
    manifest_list: str


class _MetadataRecord(msgspec.Struct, rename="kebab"):
    snapshots: list[_SnapshotRecord]


def projected(outputs: StoreOutputs, names: Names) -> frozenset[str]:
    """Return the files that a renderer's metadata files on a store name, including themselves.

    Args:
        outputs: The storage of the files.
        names: The renderer's file names.
    """
    there = frozenset(outputs.paths(FOLDER))
    found: set[str] = set()
    lists: set[str] = set()
    for path in there:
        version = names.version_of(path)
        if version is None:
            continue
        body = outputs.read(path) or b""
        found.add(path)
        if outputs.read(names.hadoop(version)) == body:
            found.add(names.hadoop(version))
        lists.update(_named_manifest_lists(body))
    lists &= there
    manifests = {
        each for path in lists for each in _named_manifests(outputs.read(path) or b"", path)
    }
    return frozenset(found | lists | (manifests & there))


def _named_manifest_lists(metadata: bytes) -> Iterator[str]:
    try:
        snapshots = msgspec.json.decode(metadata, type=_MetadataRecord).snapshots
    except (msgspec.DecodeError, UnicodeError):
        return
    for each in snapshots:
        yield _path_in_folder(each.manifest_list)


def _named_manifests(body: bytes, path: str) -> Iterator[str]:
    try:
        records = list(read_container(body, path))
    except (DamagedLogError, TooLargeError):
        return
    for each in records:
        yield _path_in_folder(str(each.get("manifest_path", "")))


def _path_in_folder(uri: str) -> str:
    return f"{FOLDER}/{posixpath.basename(uri)}"


@frozen
class OverwritingOutputs(StoreOutputs):
    """A table's folder in which the ledger's own files may be replaced.

    Attributes:
        own: The paths of these files.
    """

    own: Collection[str] = ()

    def put(self, path: str, body: bytes) -> None:
        """Write a file, replacing one of the ledger's own.

        Raises:
            StoreError: Another program's file has the name.
        """
        if path in self.own and self.read(path) not in (None, body):
            self.restore(path, body)
        else:
            super().put(path, body)


_HINTS = {HINT: f"{FOLDER}/v{{}}.metadata.json"}


@frozen
class IcebergFiles:
    """The files of an Iceberg table; see `projections.materialising.FileFormat`.

    Attributes:
        wants: Predicate on versions: whether one that is not the newest gets a metadata file.
    """

    wants: Wants = wants_no_other_version
    name: str = "iceberg"
    title: str = "Iceberg"
    folders: tuple[str, ...] = (FOLDER,)

    @property
    def hints(self) -> Mapping[str, str]:
        """The hint for the version of Hadoop's newest metadata file."""
        return _HINTS

    @property
    def positions(self) -> PositionFile[IcebergPosition]:
        """The file in which a position is stored."""
        return positions.FILE

    def is_found(self, path: str) -> bool:
        """Return whether readers find a file: they look up metadata files by version."""
        return path.endswith(".metadata.json")

    def run(
        self,
        table: TableHandle,
        outputs: Outputs,
        start: IcebergPosition,
        target: TableState,
        on_progress: Progress,
    ) -> IcebergPosition:
        """Write the versions between two states of the table; return the new position."""
        if start.version < 0:
            # A rebuild starts from the first commit as well, and keeps what callers requested.
            saved = self.positions.load(table.log.store, table.log.layout)
            start = evolve(start, requested_versions=saved.requested_versions)
        return Projection(table, outputs, start, target, self.wants).run(on_progress)

    def engine_folder(self, table: TableHandle) -> None:
        """Return None: engines write elsewhere, or read what the ledger writes."""
        del table

    def rebuild_reason(self, table: TableHandle, saved: IcebergPosition) -> RebuildReason | None:
        """Return why files were written by another renderer or for another location; else None."""
        if saved.can_continue_at(table.location):
            return None
        if saved.renderer != RENDERER:
            return RebuildReason("older_renderer_replaced", {"renderer": saved.renderer})
        facts = {"stood_at": saved.location, "now_at": table.location}
        return RebuildReason("place_replaced", facts)

    def renew(
        self, table: TableHandle, older: IcebergPosition, target: TableState, on_progress: Progress
    ) -> IcebergPosition:
        """Project from the beginning over files of an older renderer or for another location.

        Files that an interrupted run wrote after the position are of the older renderer as well.
        """
        outputs = outputs_of(table)
        names = Names(target.table_id, older.renderer)
        own = projected(outputs, names) | {*_paths_with_sync_marker(outputs, names)}
        own |= {*map(names.hadoop, (*older.metadata_versions, *older.requested_versions))}
        versions = {names.version_of(path) for path in own}
        renewing = OverwritingOutputs(outputs.store, outputs.root, own=own)
        run = Projection(
            table,
            renewing,
            IcebergPosition(),
            target,
            lambda each: self.wants(each) or each in versions,
        )
        reached = run.run(on_progress)
        names_now = Names(target.table_id)
        made = projected(outputs, names_now)
        gone = (each for each in own - made if each != names.hadoop(target.version))
        found = {each for path in made if (each := names_now.version_of(path)) is not None}
        # Files of later versions are still the older ones, which the next run may have to replace.
        requested = {each for each in older.requested_versions if each <= target.version}
        requested.update(filter(self._may_want, reached.requested_versions))
        return evolve(
            reached,
            # The next run deletes those that its log does not name.
            metadata_versions=tuple(sorted(found - requested)),
            requested_versions=tuple(sorted(requested)),
            # A metadata file is deleted before those that it names.
            garbage=tuple(sorted({*reached.garbage, *gone}, reverse=True)),
        )

    def _may_want(self, version: int) -> bool:
        """Return whether a version is wanted, or may be in the log of one that is."""
        return any(map(self.wants, range(version, version + MOST_LOGGED_VERSIONS + 1)))

    def compare(
        self, table: TableHandle, saved: IcebergPosition, at: TableState
    ) -> ComparisonResult:
        """Compare the files on the store with the files that the log yields.

        Existing metadata files of earlier versions are compared, even if nothing names them. A
        file with a name that later versions need counts as changed, unless it is theirs. A rebuild
        writes the files of the version of the position.

        Raises:
            NotFoundError: The files were written by an older renderer, or for another location.
        """
        if not saved.can_continue_at(table.location):
            raise NotFoundError(_rebuild_message(table, saved), kind="OTHER_PROJECTION")
        return compare_files(table, saved, at)

    def lost(self, table: TableHandle, saved: IcebergPosition) -> Mapping[str, bytes]:
        """Return the missing or damaged files, if a reader of the newest snapshot needs any."""
        if _has_all_head_files(table, saved):
            return {}
        at = at_version(table.log, saved.version)
        outputs, wanted = outputs_of(table), files_of(self, table, at)
        return {path: body for path, body in wanted.items() if outputs.read(path) != body}

    def make_way(self, outputs: StoreOutputs, path: str) -> None:
        """Delete a foreign file, since Hadoop's readers would find it."""
        outputs.remove(path)

    def projected(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return the files that the ledger's metadata files name, including themselves."""
        return projected(outputs, Names(at.table_id))

    def marked(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return the manifests and lists with the table's sync marker between their blocks."""
        return _paths_with_sync_marker(outputs, Names(at.table_id))


def _paths_with_sync_marker(outputs: StoreOutputs, names: Names) -> list[str]:
    found = ((path, outputs.read(path)) for path in outputs.paths(FOLDER))
    return [path for path, body in found if body and body.endswith(names.sync_marker(path))]


def _has_all_head_files(table: TableHandle, saved: IcebergPosition) -> bool:
    """Return whether all files that a reader of the newest snapshot needs are intact."""
    outputs, state = outputs_of(table), at_version(table.log, saved.version)
    names = Names(state.table_id)
    wanted = {each.path: each.check for each in saved.manifests if not each.is_written_by_engine}
    if saved.list_check:
        wanted[names.manifest_list(state.last_snapshot_id)] = saved.list_check
    wanted |= dict.fromkeys(
        (names.metadata(state.version), names.hadoop(state.version)), saved.check
    )
    found = ((outputs.read(path), check) for path, check in wanted.items())
    return outputs.read(HINT) == b"%d" % saved.version and all(
        body is not None and hashlib.sha256(body).hexdigest() == check for body, check in found
    )


def _rebuild_message(table: TableHandle, saved: IcebergPosition) -> str:
    again = f"write them again: lakeledger project iceberg {table.identifier}"
    if saved.renderer != RENDERER:
        return f"the Iceberg files of {table.identifier} were made by an older renderer; {again}"
    return (
        f"the Iceberg files of {table.identifier} were made at {saved.location}, and the table is "
        f"at {table.location}: the ledger was copied or moved, and they point to the other place; "
        f"{again}"
    )


ICEBERG = Materialisation(IcebergFiles())

advance = ICEBERG.advance
follow = ICEBERG.follow
expected = ICEBERG.expected
verify = ICEBERG.verify
rebuild = ICEBERG.rebuild


def project(
    table: TableHandle,
    *,
    version: int | None = None,
    every: int | None = None,
    on_progress: Progress = ignore_progress,
) -> int:
    """Bring a table's Iceberg files up to date; return the version that they are at.

    See `Materialisation.project`, except for a given version.

    Args:
        table: The table.
        version: Only write the metadata file of this version, next to the newest one, and
            return it. Snapshots that expired since are named in it, but do not exist.
        every: Also write the metadata files of every N-th version.
        on_progress: Called with the number of commits done, of how many.

    Raises:
        InvalidInputError: `every` is below 1.
    """
    if every is not None and every < 1:
        raise InvalidInputError(f"every {every} versions is not possible; give 1 or more")
    if version is not None:
        return _project_one_version(table, version, on_progress)
    wants = wants_no_other_version if every is None else lambda each: each % every == 0
    return Materialisation(IcebergFiles(wants)).project(table, on_progress=on_progress)


def _project_one_version(table: TableHandle, version: int, on_progress: Progress) -> int:
    """Write one version's metadata file, and the files it names unless they exist already."""
    with table.log.store.lock(ICEBERG.key(table)):
        saved = ICEBERG.position(table)
        made, target = MemoryOutputs(), target_state(table, version)
        ICEBERG.refuse_undeclared(table, target)
        Projection(table, made, IcebergPosition(), target).run(on_progress)
        outputs, names = outputs_of(table), Names(target.table_id)
        requested = {each for path in made.files if (each := names.version_of(path)) is not None}
        files = {
            path: body
            for path, body in made.files.items()
            if names.version_of(path) in requested
            or (version > saved.version and path not in (names.hadoop(version), HINT))
        }
        # Before any file is written, since no later run may delete what it names.
        _keep_requested(table, saved, requested, files)
        for path, body in files.items():
            outputs.put(path, body)
    return version


def _keep_requested(
    table: TableHandle, saved: IcebergPosition, versions: set[int], files: Collection[str]
) -> None:
    """Keep files and metadata files of some versions out of what later runs delete."""
    position = evolve(
        saved,
        requested_versions=tuple(sorted(versions.union(saved.requested_versions))),
        location=saved.location or table.location,
        garbage=tuple(each for each in saved.garbage if each not in files),
    )
    if position != saved:
        positions.FILE.save(table.log.store, table.log.layout, position)
    PendingDeletes(table, "iceberg").stay(files)
