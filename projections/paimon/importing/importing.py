"""Reading a Paimon table of others into the transactions that a ledger has not taken yet."""

from __future__ import annotations

from ledger.evolution.state import Origin
from ledger.evolution.table.origin.paimon import PaimonOrigin
from ledger.model.errors import AlreadyExistsError
from ledger.stores.file_access import FileAccess
from ledger.table import Table
from projections.importing.importing import Importing, Incoming
from projections.importing.many import FoundTable, has_folder, tables_below
from projections.importing.trial import Trial
from projections.paimon.importing.plan import birth_of, planned
from projections.paimon.importing.sources import open_source


def read(source: str, table: Table | None, now_millis: int, access: FileAccess) -> Incoming:
    """Return what is new; see `projections.importing.importing.Read`."""
    found = open_source(source, access)
    known = None if table is None else table.state
    if known is not None and not _comes_from(known.origin, found.location):
        raise AlreadyExistsError(
            f"the table follows {known.origin.source}, and not {found.location}; import that under "
            "another name"
        )
    ids = found.schema_ids
    newest = f"snapshot/snapshot-{max(found.snapshot_ids, default=0)}"
    birth = None if known is not None else birth_of(found)
    start = known if birth is None else birth.state()
    if start is None:
        raise AssertionError("a table is there, or is born")
    steps = tuple(planned(Trial(start, now_millis), found))
    if steps:
        found.refuse_missing()
    path = newest if found.snapshot_ids else f"schema/schema-{ids[-1]}"
    return Incoming(
        found.location, f"{found.location}/{path}", birth, steps, tuple(found.not_carried())
    )


def _comes_from(origin: Origin, location: str) -> bool:
    return isinstance(origin, PaimonOrigin) and origin.location == location


def tables(source: str, access: FileAccess) -> list[FoundTable]:
    """Return the tables of a warehouse or a database's folder."""
    found = open_source(source, access)
    return tables_below(found.files, found.location, has_folder("schema"))


PAIMON = Importing(read, tables)
