"""Command `maintain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

from attrs import frozen
from cyclopts import Parameter

from ledger.cli.options import LedgerFlags, read_time
from ledger.cli.output import Screen
from ledger.history.garbage import (
    OrphanedFile,
    orphaned_caches,
    orphaned_change_files,
    orphaned_drafts,
    orphaned_index_files,
    orphaned_row_files,
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
from ledger.purge import Purge, plan_purges, run_purge
from ledger.stores import Store
from ledger.table_handle import TableHandle, handle_of

_WORDS = {
    "changes": "a list of file changes that no commit references",
    "draft": "a temporary file of an interrupted writer",
    "cache": "a cache of a dropped table",
    "values": "personal values of a commit that was never committed",
    "announcement": "an announcement of a commit, older than 30 days",
    "feed": "positions of a feed, older than a year",
    "rows": "a data file of a failed write",
    "attempt": "an entry in the list of write attempts",
    "purged": "a file of a purged table",
}


@frozen
class _RemovableFile:
    """Removed file: its stream, store, kind and key, and a time since which it is not needed."""

    stream: str
    store: Store
    kind: str
    path: str
    since_millis: int | None


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
    purge_older_than: Annotated[
        str,
        Parameter(help="Delete files of tables whose drop with --purge is older: 12h, 30d."),
    ] = "7d",
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Remove orphaned files and seal missing segments; safe with concurrent writers.

    Removes temporary files of interrupted writers, lists of file changes that no commit references,
    and caches of dropped tables, each after seven days. A list is removed once the table's newest
    commit is seven days younger, and a data file of a failed write once it is eight days younger.
    Also removes announcements of commits after 30 days, and positions of feeds that were not
    renewed for a year. Logs, checkpoints and referenced files are never removed.

    Deletes the data and metadata files of tables that were dropped with --purge, if they are in the
    table's location and no other table references them; then the table cannot be restored any more.

    Seals missing segments: Parquet files with 800 commits each, which replay, audit and Spark read
    instead of 800 commit files.

    Example:
        lakeledger maintain --dry-run
    """
    purged_before = read_time(purge_older_than)
    lake = place.with_caches().open()
    setting = TableSetting(handle_of(lake).log.store, place.storage_options(), author="")
    with place.screen.progress("maintaining") as progress:
        removed: list[_RemovableFile] = []
        sealed: list[_SealedSegment] = []
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
                removed.append(_orphan_of_stream(subject, each))
            for segment in missing_segments(subject):
                if not dry_run:
                    subject.store.replace(segment.path, segment.body)
                sealed.append(_sealed_segment_of(subject, segment))
            progress(done, len(cataloged_tables) + 1)
        purges = list(plan_purges(handle_of(lake), purged_before))
        if not dry_run:
            purges = [run_purge(handle_of(lake), each) for each in purges]
        removed += _purged_files(purges)
    document = {
        "dryRun": dry_run,
        "removed": [_removal_document(each) for each in removed],
        "sealed": [_sealed_document(each) for each in sealed],
        "notPurged": _problem_documents(purges),
    }
    place.screen.result(
        document, lambda to: _print_maintenance(to, removed, sealed, purges, dry_run=dry_run)
    )


def _problem_documents(purges: list[Purge]) -> list[dict[str, Any]]:
    return [
        {"table": str(each.dropped.identifier), "id": each.dropped.table_id, "reason": problem}
        for each in purges
        if (problem := each.problem) is not None
    ]


def _orphan_of_stream(subject: Subject[Any, Any], orphan: OrphanedFile) -> _RemovableFile:
    return _RemovableFile(
        subject.name, subject.store, orphan.sort, orphan.path, orphan.written_millis
    )


def _purged_files(purges: list[Purge]) -> Iterator[_RemovableFile]:
    for each in purges:
        name = f"{each.dropped.identifier} (dropped)"
        for file in each.files:
            yield _RemovableFile(name, file.store, "purged", file.key, each.dropped.dropped_at)


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
    yield from orphaned_index_files(catalog.store, now)
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
    yield from orphaned_row_files(subject, now)
    if cataloged.dropped_millis is not None:
        yield from orphaned_caches(subject, cataloged.dropped_millis, now)


def _removal_document(removed: _RemovableFile) -> dict[str, Any]:
    facts = {
        "stream": removed.stream,
        "kind": removed.kind,
        "file": f"{removed.store.url}/{removed.path}",
        "droppedMillis" if removed.kind == "purged" else "writtenMillis": removed.since_millis,
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
    screen: Screen,
    removed: list[_RemovableFile],
    sealed: list[_SealedSegment],
    purges: list[Purge],
    *,
    dry_run: bool,
) -> None:
    done = "would be removed" if dry_run else "removed"
    counts = Counter(each.kind for each in removed)
    if not removed:
        screen.line(f"nothing {done}")
    for sort, count in counts.items():
        screen.line(f"{done}: {count:,} x {_WORDS[sort]}")
    screen.table(
        ("stream", "since (UTC)", "file"),
        ((each.stream, moment(each.since_millis or 0), each.path) for each in removed),
    )
    for stream, count in Counter(each.stream for each in sealed).items():
        screen.line(
            f"{'would be sealed' if dry_run else 'sealed'}: {count:,} x a segment of {stream}"
        )
    for each in purges:
        if each.problem is not None:
            screen.line(f"no file of dropped table {each.dropped} was deleted: {each.problem}")
