"""The rows of the catalog's facts: what each kind of event of its stream says, and names.

How requests become them is decided elsewhere: whoever reads a log needs none of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct, UnsetType

from ledger.events import catalog_events as c
from ledger.events import table_events as t
from ledger.events.clock_events import ClockCorrected
from ledger.evolution.table.operations import says_correction, says_creation, says_drop


class CatalogFact(Struct, frozen=True, kw_only=True):
    """A kind of event of the catalog's stream.

    Attributes:
        says: What it did, for people.
        names: The name that a table or view has after it; None after what names none.
    """

    says: Callable[[Any], str]
    names: Callable[[Any], t.TableName] | None


def _renamed(what: str, event: t.TableRenamed | c.ViewRenamed) -> str:
    return f"renamed {what} {_name(event.source)} to {_name(event.destination)}"


def _erased(event: c.ValuesErased) -> str:
    if isinstance(event.field_id, UnsetType):
        things = "authors, messages, maps of properties or values of columns"
        return f"erased {event.values} {things}, of {event.transactions} changes"
    column = f"column {event.field_id} of table {event.table_id}"
    return f"erased {event.values} bounds and partition values of {column}"


def _name(name: t.TableName) -> str:
    return f"{name.database_name}.{name.table_name}"


def _made(event: t.TableCreated | c.ViewCreated) -> t.TableName:
    return event.identifier


def _called(event: t.TableRenamed | c.ViewRenamed) -> t.TableName:
    return event.destination


CATALOG_FACTS: Mapping[type, CatalogFact] = {
    c.DatabaseCreated: CatalogFact(says=lambda it: f"created database {it.name}", names=None),
    c.DatabaseAltered: CatalogFact(
        says=lambda it: f"changed options of database {it.name}", names=None
    ),
    c.DatabaseDropped: CatalogFact(says=lambda it: f"dropped database {it.name}", names=None),
    t.TableCreated: CatalogFact(says=says_creation, names=_made),
    t.TableRenamed: CatalogFact(says=partial(_renamed, "table"), names=_called),
    t.TableDropped: CatalogFact(says=says_drop, names=None),
    c.ViewCreated: CatalogFact(says=lambda it: f"created view {_name(it.identifier)}", names=_made),
    c.ViewAltered: CatalogFact(says=lambda it: f"changed view {_name(it.identifier)}", names=None),
    c.ViewRenamed: CatalogFact(says=partial(_renamed, "view"), names=_called),
    c.ViewDropped: CatalogFact(says=lambda it: f"dropped view {_name(it.identifier)}", names=None),
    c.LedgerMoved: CatalogFact(says=lambda it: f"moved the ledger to {it.place}", names=None),
    c.PlaceAliased: CatalogFact(
        says=lambda it: f"noted that {it.place} leads to the ledger, too", names=None
    ),
    c.LedgerCopied: CatalogFact(
        says=lambda it: f"made this a copy of ledger {it.copied_from}, at {it.place}", names=None
    ),
    c.ValuesErased: CatalogFact(says=_erased, names=None),
    ClockCorrected: CatalogFact(says=says_correction, names=None),
}
"""One row a kind of event."""
