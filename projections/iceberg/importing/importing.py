"""Bringing an Iceberg table that others own into a ledger, and what is new in it since."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from attrs import frozen

from ledger.events import iceberg_events as e
from ledger.ledger import Ledger
from ledger.model.errors import AlreadyExistsError, NotFoundError
from ledger.model.identifier import Identifier
from ledger.table import Table
from projections.iceberg.importing.plan import Birth, Planned, Planner, unborn
from projections.iceberg.importing.sources import Source, open_source
from projections.materialising import Progress, nobody

SOURCE_FILE = "source.metadata-file"
"""The property of a transaction that names the file which it was read from."""


@frozen
class Imported:
    """What came in, or would come.

    Attributes:
        identifier: The table's name in the ledger.
        source: Whose it is.
        metadata_file: The source's newest metadata file.
        is_new: Whether the table was not in the ledger before.
        transactions: How many came.
        snapshots: The ids of the snapshots that came, oldest first.
        schemas: The ids of the schemas that came, the table's first one included.
        refs: The branches and tags that were set.
        version: The version that the table stands at; None where nothing was to be written.
    """

    identifier: Identifier
    source: str
    metadata_file: str
    is_new: bool
    transactions: int
    snapshots: tuple[int, ...]
    schemas: tuple[int, ...]
    refs: tuple[str, ...]
    version: int | None


def import_table(  # noqa: PLR0913 - what `Ledger.import_table` takes
    lake: Ledger,
    identifier: Identifier,
    source: str,
    *,
    now_millis: int,
    dry_run: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    on_progress: Progress | None = None,
) -> Imported:
    """Take over an Iceberg table's history, or what is new in it; see `Ledger.import_table`.

    All is read, decided and tried before anything is written. Whoever was interrupted asks again:
    what has landed is not taken twice.
    """
    found = open_source(source, storage_options)
    table = _existing(lake, identifier)
    if table is not None:
        _refuse_other(table, found)
    born = None if table is None else table.state.born
    since = ("", 0) if born is None else (born.metadata_file, born.last_updated_millis)
    files = found.files_since(*since)
    if files:
        found.refuse_missing()
    birth = None if table is not None else Birth.of(files[0].metadata, found.name)
    start = unborn(birth) if birth is not None else table.state if table is not None else None
    if start is None:
        raise AssertionError("a table is there, or is born")
    planned = list(Planner(start, now_millis).plan(files))
    version = None
    if not dry_run:
        if birth is not None:
            table = _adopted(lake, identifier, birth, found)
        if table is not None:
            version = _land(table, planned, found, on_progress or nobody)
    return _told(identifier, found, birth, planned, version)


def _existing(lake: Ledger, identifier: Identifier) -> Table | None:
    with suppress(NotFoundError):
        return lake.table(identifier)
    return None


def _refuse_other(table: Table, source: Source) -> None:
    born, now = table.state.born, source.newest.metadata
    if born is None:
        raise AlreadyExistsError(
            f"table {table.identifier} exists and is the ledger's own; import under another name"
        )
    if born.table_uuid != now.table_uuid and not (
        born.table_uuid is None and born.location == now.location
    ):
        raise AlreadyExistsError(
            f"table {table.identifier} follows {born.source}, whose uuid is {born.table_uuid}; "
            f"that of {source.name} is {now.table_uuid}: it is another table, or was dropped and "
            "made anew; import it under another name"
        )


def _adopted(lake: Ledger, identifier: Identifier, birth: Birth, source: Source) -> Table:
    return lake.adopt_table(
        identifier,
        birth.facts(),
        author="",
        message=f"imported from {source.name}",
        effective_time=birth.millis,
    )


def _land(table: Table, planned: list[Planned], source: Source, on_progress: Progress) -> int:
    version = table.state.version
    for done, each in enumerate(planned, 1):
        version = table.take_over(
            each.events,
            version,
            author=each.author,
            message=f"imported from {source.name}",
            properties={SOURCE_FILE: each.metadata_file},
            effective_time=each.millis,
        ).version
        on_progress(done, len(planned))
    return version


def _told(
    identifier: Identifier,
    source: Source,
    birth: Birth | None,
    planned: list[Planned],
    version: int | None,
) -> Imported:
    events = [each for step in planned for each in step.events]
    first = () if birth is None else (birth.born.schema_id,)
    added = (
        each.schema.schema_id if isinstance(each, e.SchemaAdded) else each.schema_id
        for each in events
        if isinstance(each, e.SchemaAdded | e.SchemaNamed)
    )
    return Imported(
        identifier=identifier,
        source=source.name,
        metadata_file=source.newest.url,
        is_new=birth is not None,
        transactions=len(planned),
        snapshots=tuple(
            each.snapshot.snapshot_id for each in events if isinstance(each, e.SnapshotAdded)
        ),
        schemas=(*first, *added),
        refs=tuple(
            dict.fromkeys(each.ref_name for each in events if isinstance(each, e.SnapshotRefSet))
        ),
        version=version,
    )
