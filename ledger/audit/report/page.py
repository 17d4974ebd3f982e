"""An audit page as HTML. The template escapes every text; the page loads and runs nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.audit.entries import Entry
from ledger.audit.lives import AskedLives, Lives
from ledger.audit.report import facts as told
from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshot_events import SnapshotFacts
from ledger.evolution.operations import in_words
from ledger.evolution.state import TableState
from ledger.model.errors import MissingDependencyError
from ledger.model.messages.excerpt import moment, size
from ledger.model.schema import Schema, paths_of

if TYPE_CHECKING:
    from jinja2 import Template

Sums = tuple[int, int, int]


def table_page(
    name: str,
    state: TableState,
    commits: Iterable[Commit[TableEvent]],
    schemas: Iterable[Schema],
    partitions: Mapping[str, Sums],
) -> str:
    """Return the audit page of one table.

    Args:
        name: Its full name.
        state: It as it is.
        commits: All of its commits, oldest first; read once.
        schemas: Its schemas, newest first; only as many are read as there is room for.
        partitions: Rows, files and bytes of each partition; looked at after the commits.

    Raises:
        MissingDependencyError: jinja2 is not installed.
    """
    template = _template()
    there = frozenset(key for _, key in paths_of(state.schema))
    gathered, lives = told.Gathered(), Lives(AskedLives(ids=there, newest=told.MOST_COLUMNS))
    snapshots: list[dict[str, Any]] = []
    for commit in commits:
        lives.take((commit,))
        for transaction in commit.transactions:
            entry = Entry("", commit, transaction)
            gathered.take(entry)
            snapshots += _snapshots(entry)
            del snapshots[: -told.MOST_SNAPSHOTS]
    begin = state.created_at
    points = told.schemas_of(schemas)
    bars = told.bars_of(lives, begin, state.updated_at)
    found: dict[str, Any] = {
        "bars": bars,
        "more_columns": lives.count - len(bars),
        "begin": moment(begin),
        "end": moment(state.updated_at),
        "curves": told.curves_of(gathered.growth),
        "partitions": told.partitions_of(dict(partitions)),
        "more_partitions": max(0, len(partitions) - told.MOST_PARTITIONS),
        "snapshots": snapshots[::-1],
        "tags": _tags(state),
        "schemas": points,
        "more_schemas": max(0, state.schema.id + 1 - len(points)),
        "facts": [
            ("version", f"{state.version:,}"),
            ("changes", f"{gathered.total:,}"),
            ("columns", f"{len(state.schema.fields):,}"),
            ("rows", f"{state.totals.record_count:,}"),
            ("files", f"{state.totals.file_count:,}"),
            ("size", size(state.totals.file_size_in_bytes)),
            ("created (UTC)", moment(state.created_at)),
            ("by", told.text(state.created_by)),
            ("most changes by", _most(gathered.people)),
        ],
    }
    return _rendered(template, name, gathered, moment(state.updated_at), found)


def ledger_page(
    name: str, entries: Iterable[Entry], tables: Iterable[tuple[str, TableState]], as_of: str
) -> str:
    """Return the audit page of a whole ledger.

    Args:
        name: What it is called.
        entries: Every entry of every stream, newest first; read once.
        tables: Each table and its state.
        as_of: Up to when.

    Raises:
        MissingDependencyError: jinja2 is not installed.
    """
    template = _template()
    gathered = told.Gathered()
    newest: list[Entry] = []
    for entry in entries:
        # They come newest first, so the first ones are told and the rest counted.
        gathered.total += 1
        gathered.people[entry.transaction.author or "(nobody)"] += 1
        if len(newest) < told.NEWEST:
            newest.append(entry)
        else:
            gathered.summarise(entry)
    gathered.changes.extend(reversed(newest))
    rows = [_table_row(each, state) for each, state in tables]
    found: dict[str, Any] = {
        "tables": rows,
        "facts": [
            ("tables", f"{len(rows):,}"),
            ("changes", f"{gathered.total:,}"),
            ("most changes by", _most(gathered.people)),
        ],
    }
    return _rendered(template, name, gathered, as_of, found)


def _rendered(
    template: Template,
    name: str,
    gathered: told.Gathered,
    as_of: str,
    found: Mapping[str, Any],
) -> str:
    anchors = {
        "tables": "tables",
        "bars": "columns",
        "curves": "growth",
        "partitions": "partitions",
        "schemas": "schemas",
    }
    sections = [(anchor, anchor) for key, anchor in anchors.items() if found.get(key)]
    if found.get("snapshots") or found.get("tags"):
        sections.append(("snapshots", "snapshots"))
    return template.render(
        {
            "title": told.text(name),
            "subtitle": f"Who changed what, when and why; as of {as_of} UTC",
            "as_of": f"{as_of} UTC",
            "sections": [*sections, ("changes", "changes")],
            "changes": [told.change_of(each) for each in reversed(gathered.changes)],
            "periods": told.periods_of(gathered),
            **found,
        }
    )


def _snapshots(entry: Entry) -> list[dict[str, Any]]:
    return [
        {
            "version": entry.version,
            "time": moment(entry.time_millis),
            "what": told.text(in_words(event)),
            "author": told.text(entry.transaction.author),
        }
        for event in entry.transaction.events
        if isinstance(event, SnapshotFacts)
    ]


def _tags(state: TableState) -> list[tuple[str, str, int]]:
    return [(told.text(ref.name), ref.ref_type, ref.snapshot_id) for ref in state.refs]


def _table_row(name: str, state: TableState) -> dict[str, Any]:
    return {
        "name": told.text(name),
        "columns": f"{len(state.schema.fields):,}",
        "rows": f"{state.totals.record_count:,}",
        "files": f"{state.totals.file_count:,}",
        "version": f"{state.version:,}",
        "time": moment(state.updated_at),
        "author": told.text(state.updated_by),
    }


def _most(people: Counter[str]) -> str:
    return ", ".join(told.text(name) for name, _ in people.most_common(3)) or "nobody"


@lru_cache(maxsize=1)
def _template() -> Template:
    try:
        from jinja2 import Environment
    except ImportError as error:
        raise MissingDependencyError(
            'the audit page needs jinja2: pip install "lakeledger[report]"'
        ) from error
    environment = Environment(autoescape=True)
    source = (Path(__file__).parent / "page.html.jinja").read_text("utf-8")
    return environment.from_string(source)
