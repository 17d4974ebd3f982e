"""Reading a Delta table of others into the transactions that a ledger has not taken yet."""

from __future__ import annotations

from ledger.evolution.table.origin.delta import DeltaOrigin
from ledger.model.errors import AlreadyExistsError
from ledger.stores.file_access import FileAccess
from ledger.table import Table
from projections.delta.importing.plan import Planner, birth_of
from projections.delta.importing.source import Source
from projections.delta.log.names import FOLDER
from projections.importing.files import SourceFiles, place_of_source, plain
from projections.importing.importing import Importing, Incoming
from projections.importing.many import FoundTable, has_folder, tables_below
from projections.importing.trial import Trial


def read(place: str, table: Table | None, now_millis: int, access: FileAccess) -> Incoming:
    """Return what is new; see `projections.importing.importing.Read`."""
    source = Source(place, access)
    known = -1
    if table is not None:
        known = _known(table, source)
    versions = list(source.versions(known))
    birth = None if table is not None else birth_of(versions[0], source)
    start = table.state if table is not None else birth.state() if birth is not None else None
    if start is None:
        raise AssertionError("a table is there, or is born")
    planner = Planner(
        Trial(start, now_millis),
        source,
        lambda: () if table is None or table.state.snapshot is None else table.at().files,
    )
    came = tuple(planner.planned(versions))
    return Incoming(source.name, source.file(source.newest), birth, came, schemas=planner.schemas)


def _known(table: Table, source: Source) -> int:
    """Return the version up to which a table has followed a source.

    Raises:
        AlreadyExistsError: It follows another one, or the source is not the one that it was.
    """
    delta = table.state.origin
    if not isinstance(delta, DeltaOrigin):
        raise AlreadyExistsError(
            f"table {table.identifier} follows {delta.source}, which is no Delta table; "
            "import under another name"
        )
    if delta.delta_version > source.newest:
        raise _other(table, delta, source, f"ends at version {source.newest}")
    digest = source.digest(delta.delta_version) if delta.delta_version >= 0 else None
    if delta.sha256 and digest is not None and digest != delta.sha256:
        raise _other(table, delta, source, f"has another version {delta.delta_version}")
    return delta.delta_version


def _other(table: Table, delta: DeltaOrigin, source: Source, said: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"table {table.identifier} has followed {delta.source} up to its version "
        f"{delta.delta_version}, and {source.name} {said}: it is another table, or was dropped and "
        "made anew; import it under another name"
    )


def tables(place: str, access: FileAccess) -> list[FoundTable]:
    """Return the tables of a folder."""
    root = plain(place_of_source(place))
    return tables_below(SourceFiles(access.below(root)), root, has_folder(FOLDER))


DELTA = Importing(read, tables)
