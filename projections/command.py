"""Command `lakeledger project FORMAT`.

A format adds its subcommand by its part `command` (see `ledger.formats`): a `FormatCommand` with
its Materialisation and its own options.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

from attrs import asdict, frozen
from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.exits import UsageError, stop_flag_at_once
from ledger.cli.options import LedgerFlags, TableName
from ledger.cli.output import Screen
from ledger.formats import having, part
from ledger.model.errors import DamagedLogError, NotFoundError
from ledger.table_handle import TableHandle, handle_of
from projections.materialising import Difference, Materialisation

_Flag = Parameter(negative="", show_default=False)
_Follow = Annotated[bool, _Flag, Parameter(help="Project new commits until interrupted.")]
_Verify = Annotated[
    bool, _Flag, Parameter(help="Compare the files byte for byte; exits with 6 if they differ.")
]
_Rebuild = Annotated[bool, _Flag, Parameter(help="Restore missing or changed files.")]


@Parameter(name="*")
@frozen
class VersionFlags:
    """Version to project to."""

    version: Annotated[
        int | None, Parameter(name="--to", help="Last version to project; the newest if omitted.")
    ] = None


@frozen
class PythonReader:
    """Python library that reads a format, with example code.

    Attributes:
        package: Name of the package to install.
        imported: Import statement.
        call: One or two lines of code with the file or folder to open as `{opened}`; the last one
            evaluates to an Arrow table with all rows.
    """

    package: str
    imported: str
    call: str

    def lines(self, opened: str) -> tuple[str, ...]:
        """Return Python code that reads a table.

        Args:
            opened: File or folder that readers open; see `FormatCommand.opened`.
        """
        return self.imported, *self.call.format(opened=opened).splitlines()


@frozen
class FormatCommand:
    """Subcommand of `lakeledger project` for one format.

    Attributes:
        kept: Materialisation of the format.
        project: Projects a table as the flags say, which it takes by name, up to the newest
            version by default; returns the version reached.
        files: Kinds of files, for the help text.
        reader: Python library that reads them.
        flags: Class of the format's own options, annotated with cyclopts' `Parameter(name="*")`: a
            frozen attrs class of options that are None unless given.
        version_option: Option of `flags` that names the version.
        opens: File that readers open, relative to the table's location, with the version reached
            as `{version}`; empty if they open the location itself.
    """

    kept: Materialisation[Any]
    project: Callable[..., int]
    files: str
    reader: PythonReader
    flags: type[Any] = VersionFlags
    version_option: str = "--to"
    opens: str = ""

    def opened(self, location: str, version: int) -> str:
        """Return the file or folder of a table that readers open.

        Args:
            location: Location of the table.
            version: Version that the files reflect.
        """
        return f"{location}/{self.opens.format(version=version)}".rstrip("/")

    def command(self) -> Callable[..., None]:
        """Return the function of the command; its signature and docstring are the help."""
        nothing_given, name = self.flags(), self.kept.format.name

        def command(
            name: TableName,
            /,
            *,
            own: Any = nothing_given,
            follow: _Follow = False,
            verify: _Verify = False,
            rebuild: _Rebuild = False,
            place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
        ) -> None:
            own_flags = asdict(own)
            given = {each: value is not None for each, value in own_flags.items()}
            asked = given | {"follow": follow, "verify": verify, "rebuild": rebuild}
            if sum(asked.values()) > 1:
                options = {"version": self.version_option}
                *others, last = (options.get(each, f"--{each}") for each in asked)
                raise UsageError(f"give one of {', '.join(others)} and {last}")
            table, screen = handle_of(place.table(name)), place.screen
            if follow:
                self._follow_table(table, screen)
            elif verify:
                self._verify_files(table, screen)
            elif rebuild:
                self._rebuild_files(table, screen)
            else:
                with screen.progress("projecting") as progress:
                    reached = self.project(table, **own_flags, on_progress=progress)
                self._print_version(table, screen, reached)

        command.__annotations__["own"] = self.flags
        command.__doc__ = _HELP.format(title=self.kept.format.title, files=self.files, name=name)
        return command

    def _follow_table(self, table: TableHandle, screen: Screen) -> None:
        with stop_flag_at_once() as stop:
            for version in self.kept.follow(table, sleep=stop.sleep):
                self._print_version(table, screen, version)
                sys.stdout.flush()

    def _verify_files(self, table: TableHandle, screen: Screen) -> None:
        title = self.kept.format.title
        command = f"lakeledger project {self.kept.format.name} {table.identifier}"
        if self.kept.position(table).version < 0:
            raise NotFoundError(
                f"{table.identifier} has no {title} files yet; create them with: {command}"
            )
        found = self.kept.verify(table)
        self._print_difference(table, screen, found, "no file is missing or changed")
        if found.damage is not None:
            raise found.damage
        if not found.is_empty:
            wrong = (*found.missing, *found.changed)
            what = f"{len(wrong)} of the {title} files of {table.identifier}"
            raise DamagedLogError(
                f"{what} are {found.reason or 'missing or changed'}; restore them with: {command} "
                "--rebuild",
                wrong[0],
            )

    def _rebuild_files(self, table: TableHandle, screen: Screen) -> None:
        with screen.progress("rebuilding") as progress:
            found = self.kept.rebuild(table, on_progress=progress)
        self._print_difference(table, screen, found, "no file had to be restored")

    def _print_version(self, table: TableHandle, screen: Screen, version: int) -> None:
        opened = self.opened(table.location, version)
        document = {
            "table": str(table.identifier),
            "path": table.location,
            "version": version,
            "opens": opened,
        }
        said = f"{table.identifier} is projected up to version {version}; readers open {opened}"
        screen.result(document, lambda to: to.line(said))

    def _print_difference(
        self, table: TableHandle, screen: Screen, found: Difference, nothing: str
    ) -> None:
        fresh = self.kept.freshness(table)
        document: dict[str, Any] = {
            "table": str(table.identifier),
            "version": fresh.version,
            "newest": fresh.newest,
            "behind": fresh.behind,
            "missing": list(found.missing),
            "changed": list(found.changed),
            "foreign": list(found.foreign),
        }
        rows = [
            (what, path) for what in ("missing", "changed", "foreign") for path in document[what]
        ]

        def text(to: Screen) -> None:
            said = f": {nothing}" if found.is_empty else ""
            described = f"{table.identifier} at version {fresh.version}{_lag_text(fresh.behind)}"
            to.line(f"{described}{said}")
            to.table(("what", "file"), rows)

        screen.result(document, text)


_HELP = """Project a table to {title} files ({files}) up to the newest version.

Files that lakeledger did not write are never overwritten, except with --rebuild. With --follow,
each version reached is printed as a line or a JSON document.

Example:
    lakeledger project {name} shop.flights

    lakeledger project {name} shop.flights --verify
"""


def register(app: App) -> None:
    """Add `project` with a subcommand for each installed format, and its option `--all`."""
    from projections.project_all import project_tables

    text, example = families.help_and_example(project_tables)
    family = App(name="project", help=text, help_epilogue=example)
    app.command(family)
    family.default(project_tables)
    for name in having("command"):
        families.add(family, name, part(name, "command").command())


def _lag_text(versions: int) -> str:
    if versions <= 0:
        return ", the newest" if not versions else ", ahead of the log"
    return f", {versions} {'version' if versions == 1 else 'versions'} behind the log"
