"""A catalog's pointer to a table's metadata file, read and swapped through PyIceberg's catalogs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ledger.model.errors import InvalidInputError, StoreError
from projections.iceberg.importing.sources import IN_CATALOG, catalogs, closed_after


def is_swappable(catalog: str) -> bool:
    """Whether a catalog's pointer can be swapped on the condition that it is where it was.

    PyIceberg's SQL catalogs have one row a table, in a database that compares and sets.
    """
    from pyiceberg.catalog.sql import SqlCatalog

    try:
        with closed_after(catalogs()(catalog)) as found:
            return isinstance(found, SqlCatalog)
    except Exception as error:
        # Every kind of catalog has errors of its own.
        raise StoreError(f"catalog {catalog} cannot be asked: {error}") from error


def _named(source: str) -> tuple[AbstractContextManager[Any], tuple[str, ...]]:
    named = IN_CATALOG.fullmatch(source)
    if named is None:
        raise InvalidInputError(f"{source} is no table of a catalog, CATALOG:NAMESPACE.TABLE")
    return closed_after(catalogs()(named["catalog"])), tuple(named["name"].split("."))


def pointer_of(source: str) -> str | None:
    """Return the metadata file that a table of a SQL catalog leads to; None without such a table.

    The file itself is not asked for: it may be gone where others were made in its place.

    Raises:
        StoreError: The catalog cannot be asked.
    """
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import select
    from sqlalchemy.exc import SQLAlchemyError

    opened, name = _named(source)
    with opened as catalog:
        try:
            with catalog.engine.connect() as connection:
                question = select(IcebergTables.metadata_location).where(*_row(catalog, name))
                found: str | None = connection.execute(question).scalar_one_or_none()
        except SQLAlchemyError as error:
            raise StoreError(f"{source} cannot be asked for: {error}") from error
    return found


def swap_pointer(source: str, expected: str, new: str) -> bool:
    """Let a catalog's table lead to another metadata file, if it leads to the one expected.

    Returns whether it did.

    Raises:
        StoreError: The catalog cannot be asked or written.
    """
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import update
    from sqlalchemy.exc import SQLAlchemyError

    opened, name = _named(source)
    with opened as catalog:
        statement = (
            update(IcebergTables)
            .where(*_row(catalog, name), IcebergTables.metadata_location == expected)
            .values(metadata_location=new, previous_metadata_location=expected)
        )
        try:
            with catalog.engine.begin() as connection:
                done = connection.execute(statement)
        except SQLAlchemyError as error:
            raise StoreError(f"{source} cannot be led to {new}: {error}") from error
    return bool(done.rowcount == 1)


def _row(catalog: Any, table: tuple[str, ...]) -> tuple[Any, ...]:
    """Return what holds of the one row that a SQL catalog has of a table."""
    from pyiceberg.catalog.sql import IcebergTables

    *space, name = table
    return (
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == ".".join(space),
        IcebergTables.table_name == name,
    )
