"""`lakeledger project paimon`: what this package adds to the command line."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.exits import UsageError
from ledger.cli.options import Place
from ledger.cli.screen import Screen
from ledger.model.errors import DamagedLogError, NotFoundError
from ledger.table import Table
from projections.paimon import position
from projections.paimon.materialise import Difference, follow, project, rebuild, verify

_Flag = Parameter(negative="", show_default=False)


def register(app: App) -> None:
    """Add the command `project paimon`."""
    family = families.family(
        app,
        "project",
        text="Keep a table's files in another format beside its log.",
        example="lakeledger project paimon shop.orders",
    )
    families.add(family, "paimon", paimon)


def paimon(
    name: Annotated[str, Parameter(help="DATABASE.TABLE.")],
    /,
    *,
    version: Annotated[
        int | None, Parameter(help="Up to this commit; the newest if left out.")
    ] = None,
    follow: Annotated[
        bool, _Flag, Parameter(help="Go on with every new commit, until interrupted.")
    ] = False,
    verify: Annotated[
        bool, _Flag, Parameter(help="Compare what is there, byte for byte; exit 6 if it differs.")
    ] = False,
    rebuild: Annotated[
        bool, _Flag, Parameter(help="Restore files that are lost or changed.")
    ] = False,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Bring a table's Paimon files (schema, snapshot, tag, manifest) up to the newest version.

    Files that somebody else put there are never overwritten, but for --rebuild. With --follow
    each version reached is a line, or a JSON document.

    Example:
        lakeledger project paimon shop.orders

        lakeledger project paimon shop.orders --verify
    """
    if sum((version is not None, follow, verify, rebuild)) > 1:
        raise UsageError("give one of --version, --follow, --verify and --rebuild")
    table = place.table(name)
    if follow:
        _follow(table, place.screen)
    elif verify:
        _verify(table, place.screen)
    elif rebuild:
        _rebuild(table, place.screen)
    else:
        with place.screen.progress("projecting") as progress:
            reached = project(table, version=version, on_progress=progress)
        _say_version(table, place.screen, reached)


def _say_version(table: Table, screen: Screen, version: int) -> None:
    document = {"table": str(table.identifier), "path": table.location, "version": version}
    screen.result(
        document,
        lambda to: to.line(f"{table.identifier} stands at version {version} in {table.location}"),
    )


def _follow(table: Table, screen: Screen) -> None:
    for version in follow(table):
        _say_version(table, screen, version)
        sys.stdout.flush()


def _verify(table: Table, screen: Screen) -> None:
    version = _version(table)
    if version < 0:
        raise NotFoundError(
            f"{table.identifier} has no Paimon files yet; begin with: "
            f"lakeledger project paimon {table.identifier}"
        )
    found = verify(table)
    _say_difference(table, screen, found, "no file is missing or changed")
    if not found.is_empty:
        wrong = (*found.missing, *found.changed)
        raise DamagedLogError(
            f"{len(wrong)} of the Paimon files of {table.identifier} are missing or changed; "
            f"restore them with: lakeledger project paimon {table.identifier} --rebuild",
            wrong[0],
        )


def _rebuild(table: Table, screen: Screen) -> None:
    with screen.progress("rebuilding") as progress:
        found = rebuild(table, on_progress=progress)
    _say_difference(table, screen, found, "nothing was to be restored")


def _say_difference(table: Table, screen: Screen, found: Difference, nothing: str) -> None:
    version = _version(table)
    document: dict[str, Any] = {
        "table": str(table.identifier),
        "version": version,
        "missing": list(found.missing),
        "changed": list(found.changed),
        "foreign": list(found.foreign),
    }
    rows = [(what, path) for what in ("missing", "changed", "foreign") for path in document[what]]

    def text(to: Screen) -> None:
        said = f": {nothing}" if found.is_empty else ""
        to.line(f"{table.identifier} at version {version}{said}")
        to.table(("what", "file"), rows)

    screen.result(document, text)


def _version(table: Table) -> int:
    return position.load(table.log.store, table.log.layout).version
