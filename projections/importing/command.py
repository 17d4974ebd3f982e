"""What `lakeledger import FORMAT` does: a table that others own comes in, or what is new in it."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

from ledger.cli.options import Place
from ledger.cli.screen import Screen
from projections.importing.importing import Imported

Name: TypeAlias = Annotated[str, Parameter(help="DATABASE.TABLE in this ledger.")]
DryRun: TypeAlias = Annotated[
    bool, Parameter(negative="", show_default=False, help="Only say what would come.")
]


def import_one(place: Place, format_name: str, source: str, name: str, *, dry_run: bool) -> None:
    """Bring a table in, or say what would come, and print what it was.

    Args:
        place: Which ledger.
        format_name: Whose table it is.
        source: Where it is.
        name: What it is called in the ledger.
        dry_run: Only say it.
    """
    lake, screen = place.open(), place.screen
    if dry_run:
        done = lake.plan_import(name, source, format_name=format_name)
    else:
        with screen.progress("importing") as progress:
            done = lake.import_table(name, source, format_name=format_name, on_progress=progress)
    screen.result(_document(done), lambda to: _print(to, done))


def _document(done: Imported) -> dict[str, Any]:
    return {
        "table": str(done.identifier),
        "source": done.source,
        "metadataFile": done.metadata_file,
        "dryRun": done.version is None,
        "isNew": done.is_new,
        "transactions": done.transactions,
        "snapshots": list(done.snapshots),
        "schemas": list(done.schemas),
        "refs": list(done.refs),
        "notCarried": list(done.not_carried),
        "version": done.version,
    }


def _print(screen: Screen, done: Imported) -> None:
    if not done.transactions and not done.is_new:
        screen.line(f"{done.identifier} has all that {done.source} says; nothing is new")
        return
    came = "would come" if done.version is None else "came"
    screen.line(f"{done.transactions:,} transactions {came} from {done.source}:")
    for noun, some in (
        ("snapshots", done.snapshots),
        ("schemas", done.schemas),
        ("branches and tags", done.refs),
    ):
        screen.line(f"  {len(some):,} {noun}")
    for each in done.not_carried:
        screen.line(f"not carried: {each}")
    if done.version is not None:
        screen.line(f"{done.identifier} stands at version {done.version}")
