"""`lakeledger project FORMAT`: what the formats that keep files add to the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from attrs import frozen
from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.exits import UsageError
from ledger.cli.options import Place
from ledger.cli.screen import Screen
from ledger.model.errors import DamagedLogError, NotFoundError
from ledger.table import Table
from projections.iceberg import materialise as of_iceberg
from projections.iceberg import position as iceberg_position
from projections.materialisation import Difference, Progress, target_state
from projections.paimon import materialise as of_paimon
from projections.paimon import position as paimon_position

_Flag = Parameter(negative="", show_default=False)
_Name = Annotated[str, Parameter(help="DATABASE.TABLE.")]
_Follow = Annotated[bool, _Flag, Parameter(help="Go on with every new commit, until interrupted.")]
_Verify = Annotated[
    bool, _Flag, Parameter(help="Compare what is there, byte for byte; exit 6 if it differs.")
]
_Rebuild = Annotated[bool, _Flag, Parameter(help="Restore files that are lost or changed.")]


def register(app: App) -> None:
    """Add the commands `project paimon` and `project iceberg`."""
    family = families.family(
        app,
        "project",
        text="Keep a table's files in another format beside its log.",
        example="lakeledger project paimon shop.flights",
    )
    families.add(family, "paimon", paimon)
    families.add(family, "iceberg", iceberg)


def paimon(
    name: _Name,
    /,
    *,
    version: Annotated[
        int | None, Parameter(help="Up to this commit; the newest if left out.")
    ] = None,
    follow: _Follow = False,
    verify: _Verify = False,
    rebuild: _Rebuild = False,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Bring a table's Paimon files (schema, snapshot, tag, manifest) up to the newest version.

    Files that somebody else put there are never overwritten, but for --rebuild. With --follow
    each version reached is a line, or a JSON document.

    Example:
        lakeledger project paimon shop.flights

        lakeledger project paimon shop.flights --verify
    """
    asked = {"version": version is not None, "follow": follow, "verify": verify, "rebuild": rebuild}
    _refuse_more_than_one(asked)
    table, screen = place.table(name), place.screen
    if version is not None:
        with screen.progress("projecting") as progress:
            reached = of_paimon.project(table, version=version, on_progress=progress)
        _say_version(table, screen, reached)
    else:
        _PAIMON.run(table, screen, asked)


def iceberg(  # noqa: PLR0913 - one flag each
    name: _Name,
    /,
    *,
    version: Annotated[
        int | None,
        Parameter(help="Write this commit's metadata file, and leave the newest where it is."),
    ] = None,
    every: Annotated[
        int | None, Parameter(help="On the way, write every so many commits' metadata files, too.")
    ] = None,
    follow: _Follow = False,
    verify: _Verify = False,
    rebuild: _Rebuild = False,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Bring a table's Iceberg files (metadata, manifest lists, manifests) up to the newest version.

    Files that somebody else put there are never overwritten, but for --rebuild. With --follow
    each version reached is a line, or a JSON document.

    Example:
        lakeledger project iceberg shop.flights

        lakeledger project iceberg shop.flights --verify
    """
    asked = {
        "version": version is not None,
        "every": every is not None,
        "follow": follow,
        "verify": verify,
        "rebuild": rebuild,
    }
    _refuse_more_than_one(asked)
    table, screen = place.table(name), place.screen
    if version is not None or every is not None:
        with screen.progress("projecting") as progress:
            reached = of_iceberg.project(table, version=version, every=every, on_progress=progress)
        _say_version(table, screen, reached)
    else:
        _ICEBERG.run(table, screen, asked)


def _refuse_more_than_one(asked: dict[str, bool]) -> None:
    if sum(asked.values()) > 1:
        *others, last = (f"--{each}" for each in asked)
        raise UsageError(f"give one of {', '.join(others)} and {last}")


def _say_version(table: Table, screen: Screen, version: int) -> None:
    document = {"table": str(table.identifier), "path": table.location, "version": version}
    screen.result(
        document,
        lambda to: to.line(f"{table.identifier} stands at version {version} in {table.location}"),
    )


@frozen
class _Format:
    """A format's way of keeping files.

    Attributes:
        name: In commands.
        title: In sentences.
        stands: The version that a table's files stand at; -1 without files.
    """

    name: str
    title: str
    stands: Callable[[Table], int]
    project: Callable[[Table, Progress], int]
    follow: Callable[[Table], Iterator[int]]
    verify: Callable[[Table], Difference]
    rebuild: Callable[[Table, Progress], Difference]

    def run(self, table: Table, screen: Screen, asked: dict[str, bool]) -> None:
        """Do what was asked for; nothing: project."""
        if asked["follow"]:
            for version in self.follow(table):
                _say_version(table, screen, version)
                sys.stdout.flush()
        elif asked["verify"]:
            self._verified(table, screen)
        elif asked["rebuild"]:
            with screen.progress("rebuilding") as progress:
                found = self.rebuild(table, progress)
            self._say_difference(table, screen, found, "nothing was to be restored")
        else:
            with screen.progress("projecting") as progress:
                reached = self.project(table, progress)
            _say_version(table, screen, reached)

    def _verified(self, table: Table, screen: Screen) -> None:
        command = f"lakeledger project {self.name} {table.identifier}"
        if self.stands(table) < 0:
            raise NotFoundError(
                f"{table.identifier} has no {self.title} files yet; begin with: {command}"
            )
        found = self.verify(table)
        self._say_difference(table, screen, found, "no file is missing or changed")
        if not found.is_empty:
            wrong = (*found.missing, *found.changed)
            what = f"{len(wrong)} of the {self.title} files of {table.identifier}"
            raise DamagedLogError(
                f"{what} are {found.told or 'missing or changed'}; restore them with: {command} "
                "--rebuild",
                wrong[0],
            )

    def _say_difference(
        self, table: Table, screen: Screen, found: Difference, nothing: str
    ) -> None:
        version, newest = self.stands(table), target_state(table, None).version
        document: dict[str, Any] = {
            "table": str(table.identifier),
            "version": version,
            "newest": newest,
            "behind": newest - version,
            "missing": list(found.missing),
            "changed": list(found.changed),
            "foreign": list(found.foreign),
        }
        rows = [
            (what, path) for what in ("missing", "changed", "foreign") for path in document[what]
        ]

        def text(to: Screen) -> None:
            said = f": {nothing}" if found.is_empty else ""
            to.line(f"{table.identifier} at version {version}{_behind(newest - version)}{said}")
            to.table(("what", "file"), rows)

        screen.result(document, text)


def _behind(versions: int) -> str:
    if not versions:
        return ", the newest"
    return f", {versions} {'version' if versions == 1 else 'versions'} behind the log"


_PAIMON = _Format(
    "paimon",
    "Paimon",
    lambda table: paimon_position.load(table.log.store, table.log.layout).version,
    lambda table, progress: of_paimon.project(table, on_progress=progress),
    of_paimon.follow,
    of_paimon.verify,
    lambda table, progress: of_paimon.rebuild(table, on_progress=progress),
)
_ICEBERG = _Format(
    "iceberg",
    "Iceberg",
    lambda table: iceberg_position.load(table.log.store, table.log.layout).version,
    lambda table, progress: of_iceberg.project(table, on_progress=progress),
    of_iceberg.follow,
    of_iceberg.verify,
    lambda table, progress: of_iceberg.rebuild(table, on_progress=progress),
)
