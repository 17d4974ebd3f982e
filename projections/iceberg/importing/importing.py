"""Reading an Iceberg table of others into the transactions that a ledger has not taken yet."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from ledger.evolution.state import TableState
from ledger.model.errors import AlreadyExistsError
from ledger.table import Table
from projections.iceberg.importing.plan import birth_of, planned
from projections.iceberg.importing.sources import Source, open_source, tables_of
from projections.iceberg.metadata.unknown_keys import unknown_keys
from projections.importing.importing import Importing, Incoming
from projections.importing.trial import Trial


def read(
    source: str, table: Table | None, now_millis: int, options: Mapping[str, Any] | None
) -> Incoming:
    """Return what is new; see `projections.importing.importing.Read`."""
    found = open_source(source, options)
    known = None if table is None else table.state
    since = ("", 0)
    if known is not None and known.born is not None:
        _refuse_other(known, found)
        since = known.born.metadata_file, known.born.last_updated_millis
    files = found.files_since(*since)
    born = None if known is None else known.born
    schemas, snapshots = (born.schemas, born.snapshots) if born is not None else ({}, {})
    if files:
        found.refuse_missing(snapshots)
    birth = None if known is not None else birth_of(files[0].metadata, found.name)
    start = known if birth is None else birth.state()
    if start is None:
        raise AssertionError("a table is there, or is born")
    unknown = unknown_keys(found.newest.body, schemas, snapshots) if files else ()
    return Incoming(
        found.name,
        found.newest.url,
        birth,
        tuple(planned(Trial(start, now_millis), files)),
        tuple(f"the key {each} of {posixpath.basename(found.newest.url)}" for each in unknown),
    )


def _refuse_other(known: TableState, source: Source) -> None:
    born, now = known.born, source.newest.metadata
    if born is None or born.table_uuid == now.table_uuid:
        return
    if born.table_uuid is None and born.location == now.location:
        return
    raise AlreadyExistsError(
        f"the table follows {born.source}, whose uuid is {born.table_uuid}; "
        f"that of {source.name} is {now.table_uuid}: it is another table, or was dropped and "
        "made anew; import it under another name"
    )


ICEBERG = Importing(read, tables_of)
