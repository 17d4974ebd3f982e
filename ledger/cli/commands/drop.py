"""Commands `drop` and `undrop` of tables and databases."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, Confirmed, LedgerFlags, tables_of
from ledger.cli.output import Cell, Screen
from ledger.cli.phrases import again
from ledger.decide.catalog import DropDatabase, decide
from ledger.decide.catalog_facts import CatalogContext
from ledger.ledger import Ledger
from ledger.model.errors import DamagedLogError, StoreError
from ledger.model.messages import size
from ledger.model.names import Identifier


def drop(
    name: Annotated[
        str, Parameter(help="DATABASE.TABLE, or an empty DATABASE.", completer=tables_of)
    ],
    /,
    *,
    purge: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Let `maintain` delete the table's files later, 7 days after the drop.",
        ),
    ] = False,
    yes: Confirmed = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Drop a table or an empty database; without --yes, show the plan.

    No file is deleted and the log is kept; `undrop` restores a table.

    Example:
        lakeledger drop shop.purchases

        lakeledger drop shop.purchases --yes --message "moved to the archive"
    """
    kind = "table" if "." in name else "database"
    if purge and kind == "database":
        raise UsageError(f"{name!r} is a database, which has no files; drop it without --purge")
    lake = place.open()
    if not yes:
        facts = _table_facts(lake, name) if kind == "table" else _database_facts(lake, name)
        document = {kind: name, "dryRun": True, "purge": purge, **facts}
        place.screen.result(document, lambda to: _print_plan(to, kind, name, document))
        return
    if kind == "table":
        done = lake.drop_table(name, purge=purge, **writing.options())
    else:
        done = lake.drop_database(name, **writing.options())
    place.screen.result(
        {kind: name, "dryRun": False, "catalogVersion": done.version, "repeated": done.repeated},
        lambda screen: screen.line(f"dropped {kind} {name}{again(repeated=done.repeated)}"),
    )


def _database_facts(lake: Ledger, name: str) -> dict[str, Any]:
    """Return the facts about a database to drop, as plain JSON.

    Raises:
        InvalidChangeError: It is not empty.
        NotFoundError: It does not exist.
    """
    decide(DropDatabase(name), CatalogContext(lake.state, lake.state, ()))
    return {"undrop": None}


def _table_facts(lake: Ledger, name: str) -> dict[str, Any]:
    """Return the facts about a table to drop, as plain JSON.

    Raises:
        NotFoundError: It does not exist.
    """
    entry = lake.state.table(Identifier.parse(name))
    restored = {"tableId": entry.table_id, "undrop": f"lakeledger undrop {name}"}
    try:
        at = lake.table(name).at()
    except (DamagedLogError, StoreError) as error:
        # It can be dropped nevertheless.
        return {**restored, "problem": error.message}
    return {
        **restored,
        "version": at.version,
        "location": lake.table(name).location,
        "owner": at.state.owner.document,
        "rows": at.totals.record_count,
        "files": at.totals.file_count,
        "bytes": at.totals.file_size_in_bytes,
        "versions": at.version + 1,
        "tags": len(at.state.tags),
        "branches": len(at.state.all_branches),
    }


def _print_plan(screen: Screen, kind: str, name: str, plan: dict[str, Any]) -> None:
    at = f" at version {plan['version']}" if "version" in plan else ""
    screen.line(f"dropping {kind} {name}{at}; nothing was written")
    screen.facts(_plan_facts(plan))
    if plan["undrop"] is None:
        screen.line("the database is empty; create it again with: lakeledger create " + name)
    elif plan["purge"]:
        screen.line(
            "lakeledger maintain deletes its files from 7 days after the drop on; until then "
            f"restore it with: {plan['undrop']}"
        )
    else:
        screen.line(f"no file is deleted; restore it with: {plan['undrop']}")
    screen.line("to commit this plan, add --yes")


def _plan_facts(plan: dict[str, Any]) -> dict[str, Cell]:
    counts: dict[str, Cell] = {
        name: plan.get(name) or None for name in ("rows", "files", "versions", "tags", "branches")
    }
    owner = plan.get("owner")
    return {
        "problem": plan.get("problem"),
        "location": plan.get("location"),
        **counts,
        "size": size(plan["bytes"]) if plan.get("bytes") else None,
        "owner": owner["kind"] if owner and owner["kind"] != "ledger" else None,
    }


def undrop(
    name: Annotated[
        str,
        Parameter(help="DATABASE.TABLE as it was called when it was dropped, or the table's id."),
    ],
    /,
    *,
    new_name: Annotated[
        str | None, Parameter(name="--as", help="DATABASE.NEW_NAME; default: the name it had.")
    ] = None,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Restore a dropped table with its id, history and all versions.

    Of several dropped tables of one name, the one that was dropped last is restored; `ls --dropped`
    lists all with their ids.

    Example:
        lakeledger undrop shop.purchases --as shop.archive
    """
    lake = place.open()
    repeated = writing.committed(lake)
    table = lake.undrop_table(name, new_name, **writing.options())
    entry = lake.state.table_by_id(table.state.table_id)
    document = {
        "table": str(table.identifier),
        "id": table.state.table_id,
        "path": table.location,
        "catalogVersion": None if entry is None else entry.undropped_version,
        "repeated": repeated,
    }
    said = f"restored table {table.identifier} at {table.location}{again(repeated=repeated)}"
    place.screen.result(document, lambda screen: screen.line(said))
