"""Command `maintain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

from attrs import frozen
from cyclopts import Parameter

from ledger.cli.options import LedgerFlags
from ledger.cli.output import Screen
from ledger.history.garbage import (
    OrphanedFile,
    orphaned_caches,
    orphaned_change_files,
    orphaned_drafts,
    orphaned_sidecar_files,
    remove,
)
from ledger.history.verifying.caches import MissingSegment, missing_segments
from ledger.history.verifying.subject import Subject
from ledger.history.verifying.surroundings import CatalogedTable, CatalogedTables
from ledger.ledger import Ledger
from ledger.log.codec import digest
from ledger.log.request import now_millis
from ledger.model.errors import LedgerError
from ledger.model.messages import moment
from ledger.opening.context import TableSetting
from ledger.stores import Store
from ledger.table_handle import TableHandle, handle_of

_WORDS = {
    "changes": "a list of file changes that no commit references",
    "draft": "a temporary file of an interrupted writer",
    "cache": "a cache of a dropped table",
    "values": "personal values of a commit that was never committed",
}


@frozen
class _RemovableFile:
    """Orphaned file with its stream and store."""

    stream: str
    store: Store
    orphan: OrphanedFile


@frozen
class _SealedSegment:
    """New segment with its stream and location."""

    stream: str
    file: str
    first: int
    last: int


def maintain(
    *,
    dry_run: Annotated[
        bool, Parameter(negative="", show_default=False, help="Only show the plan.")
    ] = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Remove orphaned files and seal missing segments; safe with concurrent writers.

    Removes temporary files of interrupted writers, lists of file changes that no commit references,
    and caches of dropped tables, each after seven days. A list is removed once the table's newest
    commit is seven days younger. Logs, checkpoints, referenced files and data files are never
    removed.

    Seals missing segments: Parquet files with 800 commits each, which replay, audit and Spark read
    instead of 800 commit files.

    Example:
        lakeledger maintain --dry-run
    """
    lake = place.with_caches().open()
    setting = TableSetting(handle_of(lake).log.store, place.storage_options(), author="")
    removed: list[_RemovableFile] = []
    sealed: list[_SealedSegment] = []
    with place.screen.progress("maintaining") as progress:
        cataloged_tables = list(
            CatalogedTables.of(
                read.commit for read in handle_of(lake).log.commits(0, lake.state.version)
            )
        )
        for done, (subject, orphans) in enumerate(
            _streams_with_orphans(lake, cataloged_tables, setting), 1
        ):
            for each in orphans:
                if not dry_run:
                    remove(subject.store, each)
                removed.append(_RemovableFile(subject.name, subject.store, each))
            for segment in missing_segments(subject):
                if not dry_run:
                    subject.store.replace(segment.path, segment.body)
                sealed.append(_sealed_segment_of(subject, segment))
            progress(done, len(cataloged_tables) + 1)
    document = {
        "dryRun": dry_run,
        "removed": [_removal_document(each) for each in removed],
        "sealed": [_sealed_document(each) for each in sealed],
    }
    place.screen.result(
        document, lambda to: _print_maintenance(to, removed, sealed, dry_run=dry_run)
    )


def _streams_with_orphans(
    lake: Ledger, cataloged_tables: list[CatalogedTable], setting: TableSetting
) -> Iterator[tuple[Subject[Any, Any], Iterator[OrphanedFile]]]:
    """Yield every stream with its orphaned files."""
    now = now_millis()
    catalog = Subject("catalog", handle_of(lake).log, has_files=False)
    yield catalog, _catalog_orphans(lake, cataloged_tables, setting, now)
    for cataloged in cataloged_tables:
        table = TableHandle(cataloged.identifier, cataloged.path, setting)
        subject = Subject(cataloged.name, table.log, has_files=True)
        yield subject, _table_orphans(cataloged, subject, now)


def _catalog_orphans(
    lake: Ledger, cataloged_tables: list[CatalogedTable], setting: TableSetting, now: int
) -> Iterator[OrphanedFile]:
    catalog = handle_of(lake).log
    yield from orphaned_drafts(catalog.store, catalog.layout.root, now)
    if lake.is_erasable:
        tables = (TableHandle(each.identifier, each.path, setting).log for each in cataloged_tables)
        with suppress(LedgerError, OSError):
            # A log that cannot be read may reference any of them.
            yield from list(orphaned_sidecar_files(catalog.personal, [catalog, *tables], now))


def _table_orphans(
    cataloged: CatalogedTable, subject: Subject[Any, Any], now: int
) -> Iterator[OrphanedFile]:
    first = subject.store.read(subject.layout.commit(0))
    if first is None or digest(first) != cataloged.digest:
        # The folder belongs to another table; the catalog may name any location.
        return
    yield from orphaned_drafts(subject.store, subject.layout.folder, now)
    yield from orphaned_change_files(subject, now)
    if cataloged.dropped_millis is not None:
        yield from orphaned_caches(subject, cataloged.dropped_millis, now)


def _removal_document(removed: _RemovableFile) -> dict[str, Any]:
    orphan = removed.orphan
    facts = {
        "stream": removed.stream,
        "kind": orphan.sort,
        "file": f"{removed.store.url}/{orphan.path}",
        "writtenMillis": orphan.written_millis,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _sealed_segment_of(subject: Subject[Any, Any], segment: MissingSegment) -> _SealedSegment:
    place = f"{subject.store.url}/{segment.path}"
    return _SealedSegment(subject.name, place, segment.first, segment.last)


def _sealed_document(sealed: _SealedSegment) -> dict[str, Any]:
    return {
        "stream": sealed.stream,
        "file": sealed.file,
        "firstVersion": sealed.first,
        "lastVersion": sealed.last,
    }


def _print_maintenance(
    screen: Screen, removed: list[_RemovableFile], sealed: list[_SealedSegment], *, dry_run: bool
) -> None:
    done = "would be removed" if dry_run else "removed"
    counts = Counter(each.orphan.sort for each in removed)
    if not removed:
        screen.line(f"nothing {done}")
    for sort, count in counts.items():
        screen.line(f"{done}: {count:,} x {_WORDS[sort]}")
    screen.table(
        ("stream", "since (UTC)", "file"),
        (
            (each.stream, moment(each.orphan.written_millis or 0), each.orphan.path)
            for each in removed
        ),
    )
    for stream, count in Counter(each.stream for each in sealed).items():
        screen.line(
            f"{'would be sealed' if dry_run else 'sealed'}: {count:,} x a segment of {stream}"
        )
