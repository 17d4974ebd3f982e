"""The command `serve-table`."""

from __future__ import annotations

from typing import Annotated, Any

from attrs import frozen
from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, LedgerFlags, TableName
from ledger.cli.output import Screen
from ledger.cli.phrases import again
from ledger.events.table import ServingProtocol
from ledger.ledger import Ledger
from ledger.log.request import CommitOptions
from ledger.state.owner import Owner, chosen_protocol
from ledger.table import Table

_ProtocolOption = Annotated[
    ServingProtocol | None,
    Parameter(
        show_default=False,
        help="iceberg (Iceberg REST) or paimon (the Paimon REST API); that of the one format "
        "which the table declares if left out.",
    ),
]


def serve_table(  # noqa: PLR0913 - one option each
    table: TableName,
    /,
    *,
    protocol: _ProtocolOption = None,
    back: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Take the table back from engines."),
    ] = False,
    source: Annotated[
        str | None,
        Parameter(help="Where an imported table's source is, if it moved since the import."),
    ] = None,
    dry_run: Annotated[
        bool, Parameter(negative="", show_default=False, help="Only say what would be done.")
    ] = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Let engines commit a table's data through a server, or take it back.

    From then on lakeledger changes the table's metadata and commits no data files. The table has to
    declare the protocol's format in ledger.formats, and no other; ids and live files stay. A table
    that follows a source is promoted for engines first, as lakeledger promote does for the ledger:
    stop its writers before.

    With --back the ledger commits data again, and commits of engines that are based on the time
    before are rejected.

    Example:
        lakeledger serve-table shop.orders --dry-run

        lakeledger serve-table shop.orders --protocol iceberg

        lakeledger serve-table shop.orders --back
    """
    if back and (protocol or source):
        raise UsageError("--back takes no --protocol and no --source")
    lake, screen = place.open(), place.screen
    handle = lake.table(table)
    owner = handle.state.owner
    is_promoted = owner.kind == "served" and handle.state.is_promoted
    if not back and (owner.kind == "mirrored" or is_promoted):
        outcome = _promoted(lake, handle, screen, protocol, source, writing, is_dry=dry_run)
    elif source is not None:
        raise UsageError("--source is of tables that follow one; leave it out")
    elif dry_run:
        planned = handle.plan_stop_serving() if back else handle.plan_serving(protocol)
        outcome = Outcome(planned, dry_run, repeated=planned == owner)
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
        # Under an id of before the table may have another owner by now.
        found = handle.at(version=appended.version).state.owner
        outcome = Outcome(found, dry_run, appended.repeated)
    screen.result(
        outcome.document(str(handle.identifier)),
        lambda to: outcome.print(to, str(handle.identifier)),
    )


def _promoted(  # noqa: PLR0913 - the flags of one command
    lake: Ledger,
    handle: Table,
    screen: Screen,
    protocol: ServingProtocol | None,
    source: str | None,
    writing: CommitFlags,
    *,
    is_dry: bool,
) -> Outcome:
    """Promote a table that follows a source for engines, or only plan to."""
    if writing.expect_version is not None:
        raise UsageError("--expect-version is of tables that follow no source; leave it out")
    name, state = str(handle.identifier), handle.state
    wanted = protocol or state.owner.protocol or chosen_protocol(state.schema.options)
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
    return Outcome(found, is_dry, not done.is_new, done.instructions)


@frozen
class Outcome:
    """The owner that a table has now, or would have.

    Attributes:
        owner: The owner.
        is_planned: Whether nothing was to be written.
        repeated: Whether it was the owner before.
        instructions: What is left to do at an imported table's source.
    """

    owner: Owner
    is_planned: bool
    repeated: bool
    instructions: tuple[str, ...] = ()

    def document(self, table: str) -> dict[str, Any]:
        """Return what JSON says of it."""
        return {
            "table": table,
            "owner": self.owner.document,
            "dryRun": self.is_planned,
            "version": None if self.is_planned else self.owner.since_version,
            "repeated": self.repeated,
            "instructions": [*self.instructions],
        }

    def print(self, screen: Screen, table: str) -> None:
        """Print it for people."""
        owner = self.owner
        committer = "engines commit" if owner.protocol else "the ledger commits"
        if self.is_planned:
            committer = f"{'engines' if owner.protocol else 'the ledger'} would commit"
        through = f" through the {owner.protocol} protocol" if owner.protocol else ""
        since = "" if self.is_planned else f" since version {owner.since_version}"
        told = again(repeated=self.repeated and not self.is_planned)
        screen.line(f"{committer} the data of {table}{through}{since}{told}")
        for each in self.instructions:
            screen.line(f"left to do: {each}")
