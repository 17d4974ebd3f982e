"""The commands `project paimon` and `import paimon`, and plans for Paimon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Final

from attrs import frozen
from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.options import LedgerFlags
from ledger.decide.format_rules import declared_rules
from ledger.model.schema import Schema
from ledger.model.types import DataType, RowType, TypePlace, parts_of, type_places
from ledger.state.table import TableState
from projections.command import FormatCommand, PythonReader
from projections.importing.command import (
    DryRun,
    Follow,
    ImportRequest,
    Interval,
    Name,
    run_import_request,
)
from projections.paimon.materialise import PAIMON as PAIMON_FILES
from projections.paimon.paths import schema_path

COMMAND = FormatCommand(
    PAIMON_FILES,
    PAIMON_FILES.project,
    "schema, snapshot, tag, manifest",
    PythonReader(
        "pypaimon",
        "from pypaimon.table.file_store_table import FileStoreTable",
        'read = FileStoreTable.from_path("{opened}").new_read_builder()\n'
        "read.new_read().to_arrow(read.new_scan().plan().splits())",
    ),
)


def register(imports: App) -> None:
    """Add the command to the family `import`."""
    families.add(imports, "paimon", paimon)


def paimon(
    source: Annotated[str, Parameter(help="Folder of the table; for several tables a warehouse.")],
    name: Name = "",
    /,
    *,
    dry_run: DryRun = False,
    follow: Follow = False,
    interval: Interval = 10.0,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Import a Paimon table's history; run again, import new snapshots.

    Schemas, snapshots, tags and branches become events at their own times, by their commit users.
    Nothing is written at the source, and the imported table accepts no commits of its own. Content
    that the ledger cannot hold is rejected with its name before anything is written. If one of
    several tables cannot be imported, the others still are, and the exit code reports it.

    Example:
        lakeledger import paimon ./warehouse/shop.db/orders shop.orders --dry-run

        lakeledger import paimon ./warehouse/shop.db/orders shop.orders

        lakeledger import paimon ./warehouse
    """
    run_import_request(place, ImportRequest("paimon", source, name, dry_run, follow, interval))


PAIMON: Final = "paimon"


@frozen
class PaimonPlan:
    """Planned Paimon files and warnings of a change, for `lakeledger plan`."""

    def __call__(self, before: TableState, after: TableState) -> tuple[str, ...]:
        """Return the files that projecting a change writes, relative to the table's location.

        Only a schema file: Paimon has no layouts other than the partition keys.

        Args:
            before: The table before the change.
            after: The table after it, with the same snapshots and tags.
        """
        return tuple(schema_path(each) for each in range(before.schema.id + 1, after.schema.id + 1))

    def warnings(
        self,
        before: TableState,
        after: TableState,
        earlier: Callable[[], Iterable[Schema]],
    ) -> tuple[str, ...]:
        """Return what a change means for Paimon's readers and for the writers of new files.

        Args:
            before: The table before the change.
            after: The table after it.
            earlier: Returns the table's schemas up to `before`.
        """
        del earlier
        return (*_branch_warnings(before, after), *_struct_warnings(before, after))


def _branch_warnings(before: TableState, after: TableState) -> Iterator[str]:
    """Yield that branches cannot be read in Paimon, where a change declares Paimon."""
    if after.branches and PAIMON not in declared_rules(before.schema.options).formats:
        named = ", ".join(sorted(after.branches))
        yield (
            f"Paimon's files have no branches of the ledger: {named} cannot be read there, until "
            "main is fast-forwarded to it"
        )


def _struct_warnings(before: TableState, after: TableState) -> Iterator[str]:
    """Yield the structs whose members a change adds, drops or renames."""
    known = {_struct_key(each): each.type for each in _structs(before)}
    for place in _structs(after):
        old = known.get(_struct_key(place))
        if old is not None and _members(old) != _members(place.type):
            had, has = (", ".join(name for _, name in _members(one)) for one in (old, place.type))
            yield (
                f"column {place.name}: Paimon's readers take the members of a struct by their "
                f"position in the file's schema, so a new file has all of ({has}), in that order; "
                f"one with ({had}) is read by the schema before, which only fits if it has no "
                "newer columns"
            )


def _structs(state: TableState) -> Iterator[TypePlace]:
    return (each for each in type_places(state.schema.fields) if isinstance(each.type, RowType))


def _struct_key(place: TypePlace) -> tuple[int | str | None, ...]:
    """Return a key of a struct that no rename changes."""
    return (place.field.id,) if place.field else (*place.level, place.path[-1])


def _members(data_type: DataType) -> list[tuple[int | None, str]]:
    return [(each.id, each.name) for each in parts_of(data_type)]


planned = PaimonPlan()
