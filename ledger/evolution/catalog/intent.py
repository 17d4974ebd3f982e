"""What a request to the catalog becomes on the state that it meets; decided again after a race.

Tables and views are followed by their ids, databases by their locations, which no other ever has:
so nobody's request falls on something else that took the name meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from ledger.events.catalog_events import (
    CatalogEvent,
    DatabaseAltered,
    DatabaseCreated,
    DatabaseDropped,
    ValuesErased,
)
from ledger.events.clock_events import ClockCorrected
from ledger.events.commit import Commit
from ledger.events.table_events import TableCreated, TableDropped, TableName, TableRenamed
from ledger.evolution.catalog.location import (
    clash,
    database_location,
    external_location,
    table_location,
)
from ledger.evolution.catalog.moves import alias_ledger, copy_ledger, move_ledger
from ledger.evolution.catalog.names import check_free, check_rename, name_record
from ledger.evolution.catalog.requests import (
    AliasLedger,
    AlterDatabase,
    AlterView,
    CatalogRequest,
    CopyLedger,
    CreateDatabase,
    CreateTable,
    CreateView,
    DropDatabase,
    DropTable,
    DropView,
    EraseValues,
    MoveLedger,
    RenameTable,
    RenameView,
)
from ledger.evolution.catalog.standing import Standing, takes_name
from ledger.evolution.catalog.state import EMPTY_CATALOG, CatalogState, DatabaseEntry
from ledger.evolution.catalog.views.decisions import (
    alter_view,
    create_view,
    drop_view,
    rename_view,
)
from ledger.evolution.decide_clock import CorrectClock, decide_clock
from ledger.evolution.declared.commit_rules import Asker, refuse_in_catalog
from ledger.evolution.declared.personal import refuse_unerasable
from ledger.model.errors import (
    AlreadyExistsError,
    InvalidChangeError,
    NotFoundError,
    TableDroppedError,
)
from ledger.model.identifier import Identifier

_MOST_NAMES_SHOWN = 10


class CatalogIntent:
    """A request, ready to be decided on whatever state it meets.

    Only the first state it meets is remembered: names in the request mean what they meant there.

    Args:
        request: It.
        asker: Who wants it, for the rules of databases; None where nobody is to be judged.
    """

    base_version: int | None = None

    def __init__(self, request: CatalogRequest, asker: Asker | None = None) -> None:
        self.request = request
        self._asker = asker
        self._base: CatalogState | None = None

    def meet(self, winners: Sequence[Commit[CatalogEvent]]) -> None:
        """See `Intent`: there is nothing to have ready."""

    def decide(
        self, state: CatalogState | None, winners: Sequence[Commit[CatalogEvent]]
    ) -> tuple[CatalogEvent, ...]:
        """Return the events that the request becomes on `state`; none when it holds already.

        Raises:
            InvalidInputError: A name or location is unsafe, or the request breaks a rule.
            NotFoundError: Something that it names does not exist.
            AlreadyExistsError: A name that it wants is taken.
            CommitConflictError: One of these, because of a winner; or a winner set the same cell
                to another value.
        """
        standing = Standing(state or EMPTY_CATALOG, self._base or state or EMPTY_CATALOG, winners)
        self._base = standing.base
        events = decide(self.request, standing)
        if self._asker is not None:
            options = {name: each.options for name, each in standing.state.databases.items()}
            refuse_in_catalog(options, events, self._asker)
        return events


def decide(request: CatalogRequest, standing: Standing) -> tuple[CatalogEvent, ...]:
    """Return the events that a request becomes; a pure function, as `CatalogIntent.decide`."""
    return DECIDED[type(request)](request, standing)


def _erase(request: EraseValues, _standing: Standing) -> tuple[CatalogEvent, ...]:
    table = UNSET if request.table_id is None else request.table_id
    column = UNSET if request.field_id is None else request.field_id
    return (ValuesErased(request.values, request.transactions, table, column),)


def _correct_clock(request: CorrectClock, standing: Standing) -> tuple[CatalogEvent, ...]:
    decided = decide_clock(standing.state, request)
    other = standing.changed_since(
        lambda event: (
            isinstance(event, ClockCorrected) and event.true_time_millis != request.true_time_millis
        )
    )
    if other:
        raise standing.refusal(
            "clock",
            lambda event: isinstance(event, ClockCorrected),
            InvalidChangeError("the catalog's clock was corrected; look at it, then ask again"),
        )
    return () if decided is None else (decided,)


def _create_database(request: CreateDatabase, standing: Standing) -> tuple[CatalogEvent, ...]:
    # An identifier's check knows that a dot ends a database's name; the table's name is any.
    name = Identifier(request.name, "any").checked().database
    if name in standing.state.databases:
        if request.if_not_exists:
            return ()
        raise standing.refusal(
            f"database {name}",
            lambda event: isinstance(event, DatabaseCreated) and event.name == name,
            AlreadyExistsError(f"database {name} exists already; open it or choose another name"),
        )
    path = database_location(standing.state, name)
    return (DatabaseCreated(name=name, path=path, options=dict(sorted(request.options.items()))),)


def _alter_database(request: AlterDatabase, standing: Standing) -> tuple[CatalogEvent, ...]:
    name = request.name
    both = sorted(set(request.removals) & set(request.updates))
    if both:
        raise InvalidChangeError(f"database {name}: {both} are both removed and set; choose one")
    wanted: dict[str, str | None] = {**dict.fromkeys(request.removals), **request.updates}
    now = _same_database(name, standing).options
    pending = {key: value for key, value in wanted.items() if now.get(key) != value}
    for key in pending:
        _check_option(name, key, standing)
    if not pending:
        return ()
    removals = tuple(sorted(key for key, value in pending.items() if value is None))
    updates = {key: value for key, value in sorted(pending.items()) if value is not None}
    return (DatabaseAltered(name=name, removals=removals, updates=updates),)


def _check_option(name: str, key: str, standing: Standing) -> None:
    def sets_it(event: CatalogEvent) -> bool:
        if not isinstance(event, DatabaseAltered) or event.name != name:
            return False
        return key in event.removals or key in event.updates

    if standing.changed_since(sets_it):
        value = standing.state.database(name).options.get(key)
        set_to = "was removed" if value is None else f"was set to {value!r}"
        refused = InvalidChangeError(
            f"option {key!r} of database {name} {set_to}; look at it and ask again"
        )
        raise standing.refusal(f"database {name} option {key}", sets_it, refused)


def _same_database(name: str, standing: Standing) -> DatabaseEntry:
    meant = standing.base.database(name)
    found = standing.state.databases.get(name)
    if found is None or found.path != meant.path:
        raise standing.refusal(
            f"database {name}",
            lambda event: isinstance(event, DatabaseDropped) and event.name == name,
            NotFoundError(f"database {name} was dropped; look again before you change it"),
        )
    return found


def _drop_database(request: DropDatabase, standing: Standing) -> tuple[CatalogEvent, ...]:
    name = request.name
    meant = standing.base.database(name)
    found = standing.state.databases.get(name)
    if found is None or found.path != meant.path:
        return ()
    inside = standing.state.names_in(name)
    if not inside:
        return (DatabaseDropped(name=name),)
    shown = ", ".join(str(each) for each in inside[:_MOST_NAMES_SHOWN])
    more = f" and {len(inside) - _MOST_NAMES_SHOWN} more" if len(inside) > _MOST_NAMES_SHOWN else ""
    raise standing.refusal(
        f"database {name}",
        lambda event: any(takes_name(each)(event) for each in inside),
        InvalidChangeError(
            f"database {name} is not empty: {shown}{more}; drop or move these first",
            kind="ILLEGAL_STATE",
        ),
    )


def _create_table(request: CreateTable, standing: Standing) -> tuple[CatalogEvent, ...]:
    name = request.identifier
    check_free(name, standing)
    holder = standing.state.table_by_id(request.table_id)
    if holder is not None:
        raise standing.refusal(
            f"table id {request.table_id}",
            lambda event: isinstance(event, TableCreated) and event.table_id == request.table_id,
            AlreadyExistsError(
                f"table id {request.table_id} is {holder.identifier}'s; take a fresh one"
            ),
        )
    if request.origin is UNSET and not standing.state.keeps_outside:
        refuse_unerasable(request.schema.options)
    event = TableCreated(
        identifier=name_record(name),
        table_id=request.table_id,
        path=_table_path(request, standing),
        schema=request.schema,
        is_external=request.external_path is not None,
        field_id_policy=request.field_id_policy,
        partition_spec=request.partition_spec,
        sort_order=request.sort_order,
        origin=request.origin,
    )
    return (event,)


def _table_path(request: CreateTable, standing: Standing) -> str:
    name = request.identifier
    if request.external_path is None:
        database = standing.state.database(name.database)
        return table_location(standing.state, database.path, name.name, request.table_id)
    path = external_location(request.external_path)
    used = clash(standing.state, path)
    if used is None:
        return path
    raise standing.refusal(
        f"location {used}",
        lambda event: isinstance(event, TableCreated) and event.path == used,
        InvalidChangeError(
            f"location {path} of {name} meets {used}, which was given to a table before; "
            "none is used twice, so choose another"
        ),
    )


def _rename_table(request: RenameTable, standing: Standing) -> tuple[CatalogEvent, ...]:
    meant = standing.base.table(request.source)
    found = standing.state.table_by_id(meant.table_id)
    if found is None:
        raise standing.refusal(
            f"table {request.source}",
            lambda event: isinstance(event, TableDropped) and event.table_id == meant.table_id,
            TableDroppedError(f"table {request.source} was dropped; it cannot be renamed"),
        )
    if found.identifier == request.destination:
        return ()
    check_rename(
        request.source,
        found.identifier,
        standing,
        lambda event: isinstance(event, TableRenamed) and event.table_id == meant.table_id,
    )
    check_free(request.destination, standing)
    destination = name_record(request.destination)
    source = name_record(found.identifier)
    return (TableRenamed(source=source, destination=destination, table_id=meant.table_id),)


def _drop_table(request: DropTable, standing: Standing) -> tuple[CatalogEvent, ...]:
    found = standing.state.table_by_id(request.table_id)
    if found is not None:
        name: TableName = name_record(found.identifier)
        return (TableDropped(identifier=name, table_id=request.table_id),)
    if standing.base.table_by_id(request.table_id) is not None:
        return ()
    standing.state.table(request.identifier)
    raise TableDroppedError(
        f"table {request.identifier} with id {request.table_id} was dropped; another table has "
        "its name now: open that one if you mean it"
    )


DECIDED: Mapping[type, Callable[[Any, Standing], tuple[CatalogEvent, ...]]] = {
    CreateDatabase: _create_database,
    AlterDatabase: _alter_database,
    DropDatabase: _drop_database,
    CreateTable: _create_table,
    RenameTable: _rename_table,
    DropTable: _drop_table,
    CreateView: create_view,
    AlterView: alter_view,
    RenameView: rename_view,
    DropView: drop_view,
    MoveLedger: move_ledger,
    AliasLedger: alias_ledger,
    CopyLedger: copy_ledger,
    EraseValues: _erase,
    CorrectClock: _correct_clock,
}
"""How each kind of request is decided."""
