"""Commands that show tables: `ls`, `show`, `head`, `report`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
from attrs import evolve
from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.families import view
from ledger.cli.options import (
    InstantFlags,
    LedgerFlags,
    TableName,
    check_one_or_more,
    tables_of,
    tables_of_that_name,
)
from ledger.cli.output import Cell, Screen, id_cell
from ledger.dropped_tables import find_dropped_table, open_dropped_table
from ledger.ledger import Ledger
from ledger.model.errors import NotFoundError
from ledger.model.messages import moment, name_hint, size
from ledger.model.schema import Schema
from ledger.model.snapshot import Branch, EngineBranch, Tag
from ledger.model.types import DataField, RowType
from ledger.model.types.text import format_type
from ledger.state.catalog import DroppedTable
from ledger.state.owner import LEDGER
from ledger.table import Table
from ledger.table_at import TableAt
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    import pyarrow as pa


_DROPPED = Parameter(negative="", show_default=False)


def ls(
    database: Annotated[str | None, Parameter(help="DATABASE; default: all.")] = None,
    /,
    *,
    dropped: Annotated[
        bool, _DROPPED, Parameter(help="List dropped tables, which `undrop` restores.")
    ] = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """List databases, tables, views and functions.

    Example:
        lakeledger ls

        lakeledger ls shop

        lakeledger ls --dropped
    """
    lake = place.open()
    if dropped:
        _list_dropped(lake, database, place.screen)
        return
    listed(lake, lake.databases() if database is None else [database], place.screen)


def _list_dropped(lake: Ledger, database: str | None, screen: Screen) -> None:
    """Print the dropped tables of a database, or of all, newest first."""
    found = lake.dropped_tables(database)
    document = {
        "url": lake.url,
        "dropped": [
            {
                "table": str(each.identifier),
                "id": each.table_id,
                "path": each.entry.path,
                "droppedMillis": each.dropped_at,
                "droppedBy": each.dropped_by,
                "catalogVersion": each.dropped_version,
                "files": _files_of_dropped(each),
            }
            for each in found
        ],
    }
    rows = [
        (
            str(each.identifier),
            each.table_id,
            moment(each.dropped_at),
            each.dropped_by,
            _files_of_dropped(each),
        )
        for each in found
    ]

    def text(to: Screen) -> None:
        to.line(lake.url)
        to.table(("table", "id", "dropped (UTC)", "by", "files"), rows)
        if not found:
            to.line("no dropped tables")

    screen.result(document, text)


def _files_of_dropped(dropped: DroppedTable) -> str:
    if dropped.is_purged:
        return "deleted"
    return "to be deleted" if dropped.is_purge_requested else "kept"


def listed(lake: Ledger, databases: list[str], screen: Screen) -> None:
    """Print the tables, views and functions of databases.

    Raises:
        NotFoundError: A database does not exist; the message names similar ones.
    """
    found = {
        each: {
            "table": lake.tables(each),
            "view": lake.views(each),
            "function": lake.functions(each),
        }
        for each in databases
    }
    document = {
        "url": lake.url,
        "databases": [
            {"name": name, **{f"{kind}s": names for kind, names in inside.items()}}
            for name, inside in found.items()
        ],
    }

    def rows() -> Iterator[tuple[Cell, ...]]:
        for name, inside in found.items():
            kinds = [(kind, each) for kind, names in inside.items() for each in names]
            for kind, each in kinds or [("", "(empty)")]:
                yield name, each, kind

    def text(to: Screen) -> None:
        to.line(lake.url)
        to.table(("database", "name", "kind"), rows())
        if not found:
            to.line("no databases yet; create one with: lakeledger create NAME")

    screen.result(document, text)


def show(
    name: Annotated[
        str | None, Parameter(help="DATABASE.TABLE; otherwise list tables.", completer=tables_of)
    ] = None,
    /,
    *,
    dropped: Annotated[
        bool, _DROPPED, Parameter(help="Show a dropped table, by its last name or its id.")
    ] = False,
    when: InstantFlags = InstantFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Show a table at any instant: columns with field ids, options, snapshot, totals, tags.

    By snapshot or tag, the schema is that of the snapshot; by version or timestamp, the one current
    then. In JSON, `table` and `tableSnapshot` are objects of the DLF metadata API.

    Example:
        lakeledger show

        lakeledger show shop

        lakeledger show shop.flights --at tag:january
    """
    named = when.named()
    if (named or dropped) and (name is None or not (dropped or "." in name)):
        what = "--dropped" if dropped else "an instant"
        raise UsageError(f"{what} applies to one table; name the table")
    lake = place.open()
    if name is not None and dropped:
        _show_table(lake, _open_dropped_table(lake, name), when, place.screen)
        return
    if name is None or "." not in name:
        known = lake.databases()
        if name is not None and name not in known:
            tables = tables_of_that_name(lake, name)
            hint = f"did you mean {' or '.join(tables)}?" if tables else name_hint(name, known)
            raise NotFoundError(
                f"database {name} does not exist; {hint} To show a table, write DATABASE.TABLE"
            )
        listed(lake, known if name is None else [name], place.screen)
        return
    _show_table(lake, lake.table(name), when, place.screen)


def _open_dropped_table(lake: Ledger, name: str) -> Table:
    handle = handle_of(lake)
    return Table(open_dropped_table(handle, find_dropped_table(handle, name)))


def _show_table(lake: Ledger, table: Table, when: InstantFlags, screen: Screen) -> None:
    named = when.named()
    at = when.of(table)
    # Tags of a snapshot are created after it; at a version, the tags of that version apply.
    of_snapshot = {"snapshot", "tag"} & at.named.keys()
    tags = table.state.tags if of_snapshot or not named else at.tags
    mark = " (dropped)" if table.state.dropped else ""
    document = _table_document(lake, table, at, tags) if screen.output != "text" else {}
    screen.result(
        document, lambda to: _print_table(to, f"{table.identifier}{mark}{when}", table, at, tags)
    )


def _table_document(
    lake: Ledger, table: Table, at: TableAt, tags: Mapping[str, Tag]
) -> dict[str, Any]:
    render = view("json")
    state = evolve(handle_of(table).log.personal.named(at.state), schema=at.schema)
    document: dict[str, Any] = {
        "identifier": render(table.identifier),
        "version": at.version,
        "owner": state.owner.document,
        "table": render(view("table")(state, table.identifier, root_url=lake.url)),
        "following": [each.document() for each in table.freshness()],
        "tags": [
            {"tagName": name, "snapshotId": each.snapshot_id} for name, each in sorted(tags.items())
        ],
    }
    if branches := state.all_branches.values():
        document["branches"] = [*map(branch_document, branches)]
    snapshot = view("snapshot")(state)
    return document if snapshot is None else {**document, "tableSnapshot": render(snapshot)}


def _print_table(
    screen: Screen, title: str, table: Table, at: TableAt, tags: Mapping[str, Tag]
) -> None:
    changed_by = handle_of(table).log.personal.name(at.state.updated_by)
    screen.line(title, style="bold")
    screen.facts(
        {
            "comment": at.schema.comment,
            "location": table.location,
            "version": at.version,
            "changed": f"{moment(at.state.updated_at)} UTC{changed_by and f' by {changed_by}'}",
            "schema": id_cell(at.schema.id),
            "owner": None if at.state.owner == LEDGER else str(at.state.owner),
            "partitioned by": at.state.partitioning or ", ".join(at.schema.partition_keys) or None,
            "primary key": ", ".join(at.schema.primary_keys) or None,
            **_snapshot_facts(at),
            **{f"{each.format} files": f"at {each}" for each in table.freshness()},
        }
    )
    columns = ("id", "column", "type", "default", "comment")
    screen.table(columns, _column_rows(at.schema), numbers=("id",))
    screen.table(("option", "value"), sorted(at.options.items()))
    screen.table(
        ("tag", "snapshot", "since (UTC)"),
        (
            (name, id_cell(each.snapshot_id), moment(each.create_time_millis))
            for name, each in sorted(tags.items())
        ),
    )
    screen.table(BRANCH_COLUMNS, map(branch_row, at.state.all_branches.values()))


def _snapshot_facts(at: TableAt) -> dict[str, Cell]:
    if at.snapshot is None:
        return {"snapshot": "none yet"}
    return {
        "snapshot": f"{at.snapshot.id} ({at.snapshot.commit_kind})",
        "rows": at.totals.record_count,
        "files": at.totals.file_count,
        "size": size(at.totals.file_size_in_bytes),
    }


def _column_rows(schema: Schema) -> Iterator[tuple[Cell, ...]]:
    for each in schema.fields:
        yield from _nested_column_rows(each, "")


def _nested_column_rows(field: DataField, indent: str) -> Iterator[tuple[Cell, ...]]:
    row = field.type if isinstance(field.type, RowType) else None
    text = format_type(field.type)
    if row is not None:
        text = "ROW" if row.nullable else "ROW NOT NULL"
    yield id_cell(field.id), f"{indent}{field.name}", text, field.default_value, field.description
    for member in row.fields if row else ():
        yield from _nested_column_rows(member, f"{indent}  ")


BRANCH_COLUMNS = ("branch", "snapshot", "begins with", "rows", "files")


def branch_document(branch: Branch | EngineBranch) -> dict[str, Any]:
    """Return a branch as plain JSON."""
    return {
        "branchName": branch.name,
        "snapshotId": branch.head_id,
        "baseSnapshotId": branch.base_snapshot_id,
        "recordCount": branch.totals.record_count,
        "fileCount": branch.totals.file_count,
    }


def branch_row(branch: Branch | EngineBranch) -> tuple[Cell, ...]:
    """Return a row of `BRANCH_COLUMNS`; unknown counts are left out."""
    totals = branch.totals
    counts = (None if each < 0 else each for each in (totals.record_count, totals.file_count))
    return (branch.name, id_cell(branch.head_id), id_cell(branch.base_snapshot_id), *counts)


def head(
    name: TableName,
    /,
    *,
    where: Annotated[
        str | None, Parameter(help="SQL condition, such as \"id >= 5 AND name = 'a'\".")
    ] = None,
    columns: Annotated[
        str | None, Parameter(help="Only these columns, such as a,b,addr.city; in table order.")
    ] = None,
    limit: Annotated[
        int,
        Parameter(alias="-n", validator=check_one_or_more, help="Maximum number of rows."),
    ] = 10,
    when: InstantFlags = InstantFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    r"""Show the first rows of a table at any instant, read with PyIceberg.

    The schema is that of the instant, as in `show`. The command also projects the table to Iceberg
    up to the newest version, if it declares Iceberg. In JSON, dates, times and decimals are text,
    bytes are hex, and maps are lists of `{"key": ..., "value": ...}`. With --output jsonl, each row
    is one line.

    Example:
        lakeledger head shop.flights --where "dep_delay > 600" --limit 5

        lakeledger head shop.flights --at tag:january \
            --columns carrier,flight,dest --output json
    """
    at = when.of(place.table(name))
    wanted = None if columns is None else [each.strip() for each in columns.split(",")]
    rows = at.scan(where, wanted).update(limit=limit).to_arrow()
    names: list[str] = rows.schema.names
    found = list(
        zip(
            *([_value_to_json(each) for each in column.to_pylist()] for column in rows.columns),
            strict=True,
        )
    )
    documents = [dict(zip(names, each, strict=True)) for each in found]
    text = partial(_print_rows, title=f"{name}{when}", at=at, schema=rows.schema, rows=found)
    about = {
        "table": name,
        "version": at.version,
        "snapshotId": None if at.snapshot is None else at.snapshot.id,
        "schemaId": at.schema.id,
        "columns": names,
    }
    place.screen.results("rows", documents, text, about)


def _print_rows(
    screen: Screen, title: str, at: TableAt, schema: pa.Schema, rows: Sequence[Sequence[Any]]
) -> None:
    import pyarrow.types as kinds

    screen.line(title, style="bold")
    are_numbers = (kinds.is_integer, kinds.is_floating, kinds.is_decimal)
    numbers = [each.name for each in schema if any(is_one(each.type) for is_one in are_numbers)]
    screen.table(schema.names, [[_format_value(each) for each in row] for row in rows], numbers)
    if not rows:
        screen.line("no rows" if at.snapshot else "no rows: no snapshot yet")


def _format_value(value: Any) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _value_to_json(value: Any) -> Any:
    """Convert an Arrow value to plain JSON."""
    if isinstance(value, dict):
        return {key: _value_to_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_value_to_json(each) for each in value]
    if isinstance(value, tuple):
        return dict(zip(("key", "value"), map(_value_to_json, value), strict=True))
    return next((write(value) for kind, write in _WRITERS if isinstance(value, kind)), value)


_WRITERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (bytes, bytes.hex),
    (float, lambda number: number if math.isfinite(number) else str(number)),
    ((date, time), lambda moment: moment.isoformat()),
    (Decimal, lambda number: f"{number:f}"),
    (UUID, str),
)


def report(
    name: Annotated[
        str | None,
        Parameter(help="DATABASE.TABLE; default: the whole ledger.", completer=tables_of),
    ] = None,
    /,
    *,
    into: Annotated[
        Path, Parameter(name=("--into", "-o"), help="Output file; overwritten if it exists.")
    ] = Path("report.html"),
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Write an audit report: one self-contained HTML file without scripts.

    It has changes with author and message, the schema at each version, the history of columns
    across renames, growth, partitions, snapshots and tags. Older history is summarized by month.
    The page has layouts for phones, print and dark mode.

    Example:
        lakeledger report shop.flights -o flights.html
    """
    if not into.absolute().parent.is_dir():
        raise UsageError(f"--into {into}: there is no folder {into.parent}; create it first")
    lake = place.open()
    page = lake.report() if name is None else lake.table(name).report()
    body = page.encode()
    into.write_bytes(body)
    document = {"table": name, "file": str(into), "bytes": len(body)}
    place.screen.result(document, lambda screen: screen.line(f"{into}: {len(body):,} bytes"))
