"""Command `serve-table`."""

from __future__ import annotations

from typing import Annotated, Any

from attrs import frozen
from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, LedgerFlags, TableName
from ledger.cli.output import Screen
from ledger.cli.phrases import again
from ledger.events.table import ServingProtocol
from ledger.formats import part_if_any
from ledger.ledger import Ledger
from ledger.log.request import CommitOptions
from ledger.model.errors import UnsupportedError
from ledger.state.owner import Owner, declared_serving_protocol
from ledger.state.table import TableState
from ledger.table import Table

_ProtocolOption = Annotated[
    ServingProtocol | None,
    Parameter(
        show_default=False,
        help="iceberg (Iceberg REST); by default that of the only format that the table declares.",
    ),
]


def serve_table(  # noqa: PLR0913 - one option each
    table: TableName,
    /,
    *,
    protocol: _ProtocolOption = None,
    back: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Take the table back; the ledger commits data again.",
        ),
    ] = False,
    source: Annotated[
        str | None,
        Parameter(help="Location of an imported table's source, if it moved since the import."),
    ] = None,
    dry_run: Annotated[
        bool, Parameter(negative="", show_default=False, help="Only show the plan.")
    ] = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Hand an Iceberg table's data commits to engines through a server, or take them back.

    The table is one that was imported from Iceberg, promoted or not, and declares no other format
    in ledger.formats. A mirrored table is promoted first: stop its writers before. Engines commit
    to other tables only if these were created or registered through the server.

    With --back, the ledger lists the files and commits data again, and engine commits based on an
    earlier version are rejected.

    Example:
        lakeledger serve-table shop.orders --dry-run

        lakeledger serve-table shop.orders --back
    """
    if back and (protocol or source):
        raise UsageError("--back cannot be combined with --protocol or --source")
    lake, screen = place.open(), place.screen
    handle = lake.table(table)
    owner = handle.state.owner
    if not back:
        _refuse_unservable(handle.state)
    is_promoted = owner.kind == "served" and handle.state.is_promoted
    if not back and (owner.kind == "mirrored" or is_promoted):
        outcome = _serve_promoted(lake, handle, screen, protocol, source, writing, is_dry=dry_run)
    elif source is not None:
        raise UsageError("--source is only for tables that follow a source; omit it")
    elif dry_run:
        planned = handle.plan_stop_serving() if back else handle.plan_serving(protocol)
        outcome = OwnerOutcome(planned, dry_run, repeated=planned == owner)
    else:
        words = ["serve-table", protocol, back]
        appended = writing.once(
            handle,
            words,
            lambda options: (
                handle.stop_serving(**options)
                if back
                else handle.start_serving(protocol, **options)
            ),
        )
        # With an old commit id, the table may have another owner by now.
        found = handle.at(version=appended.version).state.owner
        outcome = OwnerOutcome(found, dry_run, appended.repeated)
    screen.result(
        outcome.document(str(handle.identifier)),
        lambda to: outcome.print(to, str(handle.identifier)),
    )


def _refuse_unservable(state: TableState) -> None:
    """Reject to hand a table to engines that cannot commit to it.

    Raises:
        UnsupportedError: Its format has no writer of engines' commits.
    """
    name = state.origin.format_name
    if state.owner.kind != "served" and part_if_any(name, "engine_writes") is None:
        raise UnsupportedError(
            f"engines cannot commit to a table whose origin is {name}: create or register it "
            "through the server, which works for Iceberg and Paimon, or import it from Iceberg; "
            "engines read any table through the server"
        )


def _serve_promoted(  # noqa: PLR0913 - the flags of one command
    lake: Ledger,
    handle: Table,
    screen: Screen,
    protocol: ServingProtocol | None,
    source: str | None,
    writing: CommitFlags,
    *,
    is_dry: bool,
) -> OwnerOutcome:
    """Promote a mirrored table to a served one, or plan to."""
    if writing.expect_version is not None:
        raise UsageError("--expect-version is only for tables that follow no source; omit it")
    name, state = str(handle.identifier), handle.state
    wanted = protocol or state.owner.protocol or declared_serving_protocol(state.schema.options)
    with screen.progress("promoting") as progress:
        if is_dry:
            done = lake.plan_promotion(name, source=source, protocol=wanted)
        else:
            words = ["serve-table", protocol, False]
            options: CommitOptions = {**writing.options(), "asked": words}
            done = lake.promote(
                name, source=source, protocol=wanted, on_progress=progress, **options
            )
    planned = Owner("served", wanted, handle.state.version + done.transactions + 1)
    found = planned if is_dry and done.is_new else handle.state.owner
    return OwnerOutcome(found, is_dry, not done.is_new, done.instructions)


@frozen
class OwnerOutcome:
    """Current or planned owner of a table.

    Attributes:
        owner: Owner of the table.
        is_planned: True for a dry run.
        repeated: True if the table had this owner before.
        instructions: Remaining manual steps at an imported table's source.
    """

    owner: Owner
    is_planned: bool
    repeated: bool
    instructions: tuple[str, ...] = ()

    def document(self, table: str) -> dict[str, Any]:
        """Return the outcome as plain JSON."""
        return {
            "table": table,
            "owner": self.owner.document,
            "dryRun": self.is_planned,
            "version": None if self.is_planned else self.owner.since_version,
            "repeated": self.repeated,
            "instructions": [*self.instructions],
        }

    def print(self, screen: Screen, table: str) -> None:
        """Print the outcome as text."""
        owner = self.owner
        committer = "engines commit" if owner.protocol else "the ledger commits"
        if self.is_planned:
            committer = f"{'engines' if owner.protocol else 'the ledger'} would commit"
        through = f" through the {owner.protocol} protocol" if owner.protocol else ""
        since = "" if self.is_planned else f" since version {owner.since_version}"
        response = again(repeated=self.repeated and not self.is_planned)
        screen.line(f"{committer} the data of {table}{through}{since}{response}")
        for each in self.instructions:
            screen.line(f"remaining step: {each}")
