"""The life of an Iceberg table: every kind of change, with real files, each version projected."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from ledger import AddColumn, DropColumn, Ledger, RenameColumn, Schema, SetOption, UpdateColumnType
from projections.iceberg.materialise import project
from tests.readers.book import Book

_ADD = "SELECT *, NULL::INT AS qty FROM {rows}"
_RENAME = "SELECT * RENAME (name AS title) FROM {rows}"
_WIDEN = "SELECT * REPLACE (qty::BIGINT AS qty) FROM {rows}"
_DROP = "SELECT * EXCLUDE (note) FROM {rows}"


@frozen
class Case:
    """The format version that a table begins with, and whether its files carry field ids."""

    version: int
    has_ids: bool

    def __str__(self) -> str:
        return f"v{self.version} {'ids' if self.has_ids else 'names'}"


CASES = [Case(version, has_ids) for version in (1, 2, 3) for has_ids in (True, False)]


def life(lake: Ledger, case: Case) -> Book:
    """Return a table that was upgraded on its way, and its book."""
    columns = {"id": "BIGINT NOT NULL", "name": "STRING", "note": "STRING", "day": "DATE"}
    options = {"format-version": str(case.version)}
    schema = Schema.of(columns, partition_keys=["day"], options=options)
    name = f"life_{case}".replace(" ", "_")
    book = Book(lake.create_table(f"shop.{name}", schema), has_ids=case.has_ids)
    first = _in_day(book, "2013-01-01")
    _in_day(book, "2013-01-02")
    book.tag("early", 2)
    book.alter([AddColumn(("qty",), "INT")], _ADD)
    _in_day(book, "2013-01-01")
    book.delete(first)
    book.alter([RenameColumn(("name",), "title")], _RENAME)
    book.alter([SetOption("owner", "etl")])
    book.rollback(2)
    _in_day(book, "2013-01-02")
    book.alter([UpdateColumnType(("qty",), "BIGINT")], _WIDEN)
    for _ in range(9):
        _in_day(book, "2013-01-03")
    if case.version < 3:
        book.alter([SetOption("format-version", str(case.version + 1))])
    book.alter([DropColumn(("note",))], _DROP)
    _in_day(book, "2013-01-01")
    book.tag("late", book.last)
    book.expire(before=5)
    book.delete(book.live[0], book.live[-2])
    project(book.table, every=1)
    return book


def _in_day(book: Book, day: str) -> Any:
    return book.add(f"day={day}", {"day": f"DATE '{day}'"})
