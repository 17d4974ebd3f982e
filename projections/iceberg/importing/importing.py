"""Reading an Iceberg table of others into the transactions that a ledger has not taken yet."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Sequence
from weakref import WeakKeyDictionary

from attrs import frozen

from ledger.evolution.state import TableState
from ledger.evolution.table.origin.iceberg import IcebergOrigin
from ledger.model.errors import AlreadyExistsError
from ledger.stores.file_access import FileAccess
from ledger.table import Table
from projections.iceberg.importing.metadata import Standing, as_said
from projections.iceberg.importing.plan import birth_of, planned
from projections.iceberg.importing.sources import MetadataFile, Source, open_source, tables_of
from projections.iceberg.metadata.table_json import ReadFile
from projections.iceberg.metadata.unknown_keys import unknown_keys
from projections.importing.importing import Importing, Incoming
from projections.importing.trial import Trial


@frozen
class _Look:
    """What a source said when its mirror was last looked at in this process."""

    newest: MetadataFile

    def standing(self, state: TableState) -> Standing | None:
        """Return a state in Iceberg's words, if it is what the source said then."""
        origin, newest = state.imported_from(IcebergOrigin), self.newest
        is_it = origin.synced_in == state.version and origin.metadata_file == newest.url
        return as_said(state, newest.metadata) if is_it else None


_looks: WeakKeyDictionary[Table, _Look] = WeakKeyDictionary()


def read(source: str, table: Table | None, now_millis: int, access: FileAccess) -> Incoming:
    """Return what is new; see `projections.importing.importing.Read`."""
    look = None if table is None else _looks.get(table)
    found = open_source(source, access, look.newest.file if look else None)
    known = None if table is None else table.state
    origin = None if known is None else known.imported_from(IcebergOrigin)
    since = ("", 0)
    if origin is not None:
        _refuse_other(origin, found)
        since = origin.metadata_file, origin.last_updated_millis
    files = found.files_since(*since)
    if files:
        found.refuse_missing(() if origin is None else origin.snapshots)
    birth = None if known is not None else birth_of(files[0].metadata, found.name)
    start = known if birth is None else birth.state()
    if start is None:
        raise AssertionError("a table is there, or is born")
    standing = look.standing(start) if look else None
    plan = tuple(planned(Trial(start, now_millis), files, standing))
    if table is not None:
        _looks[table] = _Look(found.newest)
    return Incoming(found.name, found.newest.url, birth, plan, _not_carried(found, origin, files))


def _not_carried(
    source: Source, origin: IcebergOrigin | None, files: Sequence[MetadataFile]
) -> tuple[str, ...]:
    if not files:
        return ()
    file = source.newest.file
    # What stood in a file that was read before was told then.
    is_all_new = origin is None or file.new is not file.parts
    unknown = unknown_keys(file.new, None if is_all_new or origin is None else _new(file, origin))
    return tuple(f"the key {each} of {posixpath.basename(source.newest.url)}" for each in unknown)


def _new(file: ReadFile, origin: IcebergOrigin) -> dict[str, Collection[int]]:
    """Return the places of what a table does not have yet in the lists of a file."""
    said, logged = file.metadata, len(origin.snapshot_log)
    last = origin.snapshot_log[-1].snapshot_id if logged else None
    begins = len(said.snapshot_log) >= logged > 0
    same = begins and said.snapshot_log[logged - 1].snapshot_id == last
    schemas = said.schemas_by_id.keys() - origin.schemas.keys()
    snapshots = said.snapshots_by_id.keys() - origin.snapshots.keys()
    return {
        "schemas": [at for at, each in enumerate(said.schemas) if each.schema_id in schemas],
        "snapshots": [
            at for at, each in enumerate(said.snapshots) if each.snapshot_id in snapshots
        ],
        "snapshot-log": range(logged if same else 0, len(said.snapshot_log)),
    }


def _refuse_other(origin: IcebergOrigin, source: Source) -> None:
    now = source.newest.metadata
    if origin.table_uuid == now.table_uuid:
        return
    if origin.table_uuid is None and origin.location == now.location:
        return
    raise AlreadyExistsError(
        f"the table follows {origin.source}, whose uuid is {origin.table_uuid}; "
        f"that of {source.name} is {now.table_uuid}: it is another table, or was dropped and "
        "made anew; import it under another name"
    )


ICEBERG = Importing(read, tables_of)
