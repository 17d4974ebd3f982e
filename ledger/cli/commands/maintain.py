"""`lakeledger maintain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

from attrs import frozen
from cyclopts import Parameter

from ledger.catalog import Ledger
from ledger.cli.options import Place
from ledger.cli.screen import Screen, moment
from ledger.commit_options import now_millis
from ledger.history.births import Birth, Births
from ledger.history.orphans import (
    Orphan,
    orphaned_caches,
    orphaned_changes,
    orphaned_drafts,
    remove,
)
from ledger.history.subject import Subject
from ledger.stores import Store
from ledger.table import Table
from ledger.table_setting import TableSetting

_WORDS = {
    "changes": "a list of file changes that no commit names",
    "draft": "a draft of a writer that did not finish",
    "cache": "a cache of a dropped table",
}


@frozen
class _Removable:
    """An orphan, the stream that it was of, and where it is."""

    stream: str
    store: Store
    orphan: Orphan


def maintain(
    *,
    dry_run: Annotated[
        bool, Parameter(negative="", show_default=False, help="Only say what would go.")
    ] = False,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Remove what nobody needs any more; safe at any time, beside any writer.

    What goes: drafts that writers left behind, lists of file changes that no commit names, and
    caches of dropped tables, each after seven days. A table's own commits are the clock for its
    lists: they go once its newest commit is seven days younger. No log, no checkpoint, nothing
    that a commit names and no data file is ever removed.

    Example:
        lakeledger maintain --dry-run
    """
    lake = place.open()
    setting = TableSetting(lake.log.store, place.storage_options(), author="")
    removed: list[_Removable] = []
    with place.screen.progress("maintaining") as progress:
        births = list(Births.of(lake.events()))
        for done, found in enumerate(_streams(lake, births, setting), 1):
            for each in found:
                if not dry_run:
                    remove(each.store, each.orphan)
                removed.append(each)
            progress(done, len(births) + 1)
    place.screen.result(
        {"dryRun": dry_run, "removed": [_document(each) for each in removed]},
        lambda to: _print(to, "would be removed" if dry_run else "removed", removed),
    )


def _streams(
    lake: Ledger, births: list[Birth], setting: TableSetting
) -> Iterator[Iterator[_Removable]]:
    """Yield for every stream what may go of it."""
    store, now = lake.log.store, now_millis()
    yield (
        _Removable("catalog", store, each)
        for each in orphaned_drafts(store, lake.log.layout.root, now)
    )
    for birth in births:
        yield _of_table(birth, setting, now)


def _of_table(birth: Birth, setting: TableSetting, now: int) -> Iterator[_Removable]:
    table = Table(birth.identifier, birth.path, setting)
    subject = Subject(birth.name, table.log, has_files=True)
    store = subject.store
    for each in _orphans(birth, subject, now):
        yield _Removable(birth.name, store, each)


def _orphans(birth: Birth, subject: Subject[Any, Any], now: int) -> Iterator[Orphan]:
    folder = subject.layout.root.removesuffix("_ledger").rstrip("/")
    yield from orphaned_drafts(subject.store, folder, now)
    yield from orphaned_changes(subject)
    if birth.dropped_millis is not None:
        yield from orphaned_caches(subject, birth.dropped_millis, now)


def _document(removed: _Removable) -> dict[str, Any]:
    orphan = removed.orphan
    facts = {
        "stream": removed.stream,
        "kind": orphan.sort,
        "file": f"{removed.store.url}/{orphan.path}",
        "writtenMillis": orphan.written_millis,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _print(screen: Screen, done: str, removed: list[_Removable]) -> None:
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
