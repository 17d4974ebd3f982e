"""Command group `view`: create, alter, rename, drop, show and list views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.changes import read_pairs, split_key_and_value
from ledger.cli.commands.tables import Columns
from ledger.cli.exits import UsageError
from ledger.cli.families import view as plugged
from ledger.cli.options import CommitFlags, Confirmed, LedgerFlags, options_as_texts, pairs
from ledger.cli.output import Screen
from ledger.cli.phrases import again, committed
from ledger.events.catalog import AddDialect, DropDialect, UpdateDialect, ViewChange
from ledger.events.schema import RemoveOption, SetOption, UpdateComment
from ledger.model.messages import moment
from ledger.model.schema import ViewSchema
from ledger.model.types.text import format_type
from ledger.state.catalog import ViewEntry
from ledger.state.iceberg_view import IcebergView

_MANY = Parameter(negative="", show_default=False)
_NAME = Parameter(help="DATABASE.VIEW.")

_CHANGES: dict[str, Callable[[str], ViewChange]] = {
    "--set": lambda text: SetOption(*split_key_and_value(text)),
    "--unset": RemoveOption,
    "--comment": UpdateComment,
    "--add-dialect": lambda text: AddDialect(*split_key_and_value(text)),
    "--update-dialect": lambda text: UpdateDialect(*split_key_and_value(text)),
    "--drop-dialect": DropDialect,
}


def register(app: App) -> None:
    """Add the commands to the app."""
    family = families.family(
        app,
        "view",
        text="Create, alter, rename, drop, show and list views.",
        example="lakeledger view create shop.all --query 'SELECT * FROM orders'",
    )
    for name, command in (
        ("create", create),
        ("alter", alter),
        ("rename", rename),
        ("show", show),
        ("list", list_views),
        ("drop", drop),
    ):
        families.add(family, name, command)


def create(  # noqa: PLR0913 - each is an option of the command
    name: Annotated[str, _NAME],
    /,
    *,
    query: Annotated[str, Parameter(help="SQL query of the view.")],
    column: Annotated[
        tuple[str, ...],
        _MANY,
        Parameter(help="\"NAME TYPE [COMMENT 'text']\" of a result column; repeatable."),
    ] = (),
    dialect: Annotated[
        tuple[str, ...],
        _MANY,
        Parameter(help="ENGINE=QUERY, if an engine needs another; repeatable."),
    ] = (),
    option: Annotated[
        tuple[str, ...], _MANY, Parameter(help="KEY=VALUE option of the view; repeatable.")
    ] = (),
    comment: Annotated[str | None, Parameter(help="Comment of the view.")] = None,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    r"""Create a view: a named query, with dialects for engines.

    Example:
        lakeledger view create shop.late --column "flight INT" \
            --query "SELECT flight FROM flights WHERE dep_delay > 60" \
            --dialect "spark=SELECT flight FROM shop.flights"
    """
    schema = ViewSchema(
        fields=Columns(column=column).to_schema().fields if column else (),
        query=query,
        dialects=dict(read_pairs("--dialect", dialect, "ENGINE=QUERY")),
        comment=comment,
        options=dict(read_pairs("--option", option)),
    )
    lake = place.open()
    repeated = writing.committed(lake)
    entry = lake.create_view(name, schema, **writing.options())
    document = {"view": str(entry.identifier), "id": entry.view_id, "repeated": repeated}
    place.screen.result(
        document,
        lambda to: to.line(f"created view {entry.identifier}{again(repeated=repeated)}"),
    )


def alter(
    name: Annotated[str, _NAME],
    /,
    *,
    change: Annotated[
        tuple[str, ...],
        # One parameter with many names keeps the order of the command line.
        Parameter(name=tuple(_CHANGES), converter=options_as_texts, negative="", show=False),
    ] = (),
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    r"""Change a view's options, comment or dialects in one atomic commit.

    | change | meaning |
    |---|---|
    | `--set KEY=VALUE`, `--unset KEY` | set or remove an option |
    | `--comment TEXT` | set the comment |
    | `--add-dialect ENGINE=QUERY` | add the query for an engine |
    | `--update-dialect ENGINE=QUERY` | replace the query for an engine |
    | `--drop-dialect ENGINE` | remove the query for an engine |

    Example:
        lakeledger view alter shop.late --comment "an hour and more" \
            --drop-dialect spark
    """
    changes = [_parse_view_change(option, value) for option, value in pairs(change)]
    if not changes:
        raise UsageError('no change is given; for example: --comment "late flights"')
    lake = place.open()
    committed(place.screen, lake, lake.alter_view(name, changes, **writing.options()), writing)


def _parse_view_change(option: str, value: str) -> ViewChange:
    try:
        return _CHANGES[option](value)
    except UsageError as error:
        form = "ENGINE=QUERY" if "dialect" in option else "KEY=VALUE"
        raise UsageError(f"{option}: {value!r} is not {form}") from error


def rename(
    name: Annotated[str, _NAME],
    new_name: Annotated[str, Parameter(help="DATABASE.NEW_NAME.")],
    /,
    *,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Rename a view.

    Example:
        lakeledger view rename shop.late shop.very_late
    """
    lake = place.open()
    done = lake.rename_view(name, new_name, **writing.options())
    committed(place.screen, lake, done, writing)


def drop(
    name: Annotated[str, _NAME],
    /,
    *,
    yes: Confirmed = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Drop a view; without --yes, show the plan.

    Example:
        lakeledger view drop shop.very_late

        lakeledger view drop shop.very_late --yes --message "nobody reads it"
    """
    lake = place.open()
    if not yes:
        _show_drop(place.screen, lake.view(name))
        return
    committed(place.screen, lake, lake.drop_view(name, **writing.options()), writing)


def _show_drop(screen: Screen, entry: ViewEntry) -> None:
    query = entry.schema.query

    def text(to: Screen) -> None:
        to.line(f"dropping view {entry.identifier}; nothing was written")
        to.facts({"query": query})
        to.line("a dropped view cannot be restored; create it again from its query")
        to.line("to commit this plan, add --yes")

    screen.result({"view": str(entry.identifier), "dryRun": True, "query": query}, text)


def show(
    name: Annotated[str, _NAME],
    /,
    *,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Show a view: query, dialects, columns, options; in JSON an object of the DLF metadata API.

    Example:
        lakeledger view show shop.very_late
    """
    entry = place.open().view(name)
    screen = place.screen
    document = plugged("json")(plugged("view")(entry)) if screen.output != "text" else {}
    screen.result(document, lambda to: _print_view(to, entry))


def list_views(
    database: Annotated[str, Parameter(help="DATABASE.")],
    /,
    *,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """List the views of a database.

    Example:
        lakeledger view list shop
    """
    lake = place.open()
    names = lake.views(database)

    def text(to: Screen) -> None:
        if not names:
            to.line(f"{database} has no views")
        entries = (lake.view(f"{database}.{each}") for each in names)
        to.table(("view", "query"), ((each.identifier.name, each.schema.query) for each in entries))

    place.screen.result({"database": database, "views": names}, text)


def _iceberg_facts(view: IcebergView | None) -> dict[str, str]:
    """Return an Iceberg view's current version, the kept ones, and its location."""
    if view is None:
        return {}
    kept = ", ".join(str(each.version_id) for each in view.versions)
    version = f"{view.current_version_id} of {kept} (uuid {view.uuid})"
    return {"iceberg version": version, "location": view.location}


def _print_view(screen: Screen, entry: ViewEntry) -> None:
    view = entry.schema
    screen.line(str(entry.identifier), style="bold")
    screen.facts(
        {
            "comment": view.comment,
            "changed": f"{moment(entry.audit.updated_at)} UTC by {entry.audit.updated_by}",
            **_iceberg_facts(entry.iceberg),
            "query": view.query,
        }
    )
    screen.table(("dialect", "query"), view.dialects.items())
    screen.table(
        ("column", "type", "comment"),
        ((each.name, format_type(each.type), each.description) for each in view.fields),
    )
    screen.table(("option", "value"), view.options.items())
