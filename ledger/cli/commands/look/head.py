"""`lakeledger head`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, time
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
from cyclopts import Parameter

from ledger.cli.options import InstantFlags, LedgerFlags, TableName, one_or_more
from ledger.cli.screen import Screen
from ledger.table_at import TableAt

if TYPE_CHECKING:
    import pyarrow as pa


def head(
    name: TableName,
    /,
    *,
    where: Annotated[
        str | None, Parameter(help="A condition in SQL, such as \"id >= 5 AND name = 'a'\".")
    ] = None,
    columns: Annotated[
        str | None, Parameter(help="Some columns only: a,b,addr.city; in the table's order.")
    ] = None,
    limit: Annotated[
        int,
        Parameter(alias="-n", validator=one_or_more, help="How many rows at most."),
    ] = 10,
    when: InstantFlags = InstantFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    r"""Show some rows of a table at any instant, read by PyIceberg.

    The schema is the one of the instant, as with `show`. Brings the table's Iceberg files up to
    date. In JSON, days, moments and decimals are text, bytes are hex, and maps are lists of
    `{"key": ..., "value": ...}`.

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
            *([_plain(each) for each in column.to_pylist()] for column in rows.columns), strict=True
        )
    )
    place.screen.result(
        {
            "table": name,
            "version": at.version,
            "snapshotId": None if at.snapshot is None else at.snapshot.id,
            "schemaId": at.schema.id,
            "columns": names,
            "rows": [dict(zip(names, each, strict=True)) for each in found],
        },
        lambda screen: _text(screen, f"{name}{when}", at, rows.schema, found),
    )


def _text(
    screen: Screen, title: str, at: TableAt, schema: pa.Schema, rows: Sequence[Sequence[Any]]
) -> None:
    import pyarrow.types as kinds

    screen.line(title, style="bold")
    are_numbers = (kinds.is_integer, kinds.is_floating, kinds.is_decimal)
    numbers = [each.name for each in schema if any(is_one(each.type) for is_one in are_numbers)]
    screen.table(schema.names, [[_cell(each) for each in row] for row in rows], numbers)
    if not rows:
        screen.line("no rows" if at.snapshot else "no rows: no snapshot yet")


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _plain(value: Any) -> Any:
    """Return a value of Arrow's as JSON has it."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, tuple):
        return dict(zip(("key", "value"), map(_plain, value), strict=True))
    return next((write(value) for kind, write in _WRITERS if isinstance(value, kind)), value)


_WRITERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (bytes, bytes.hex),
    (float, lambda number: number if math.isfinite(number) else str(number)),
    ((date, time), lambda moment: moment.isoformat()),
    (Decimal, lambda number: f"{number:f}"),
    (UUID, str),
)
