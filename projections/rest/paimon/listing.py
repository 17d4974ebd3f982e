"""Views and functions of a catalog: lists by the patterns of a call, and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ledger.events.catalog import ViewChange
from ledger.events.functions import FunctionChange
from ledger.ledger_writes import CREATED_AND_DROPPED
from ledger.model.errors import AlreadyExistsError, CommitConflictError, NotFoundError
from ledger.model.functions import Function
from ledger.model.names import Identifier
from ledger.model.schema import ViewSchema
from ledger.state.definitions import cells_of, find_contradiction
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import (
    DEFINITION,
    DIALECT,
    already_exists,
    no_such_database,
    not_found,
)
from projections.rest.paimon.paging import Paged, name_test, page_of
from projections.rest.requests import Call, RequestError, after_commit

_PARTS: Final = {"dialect": DIALECT, "definition": DEFINITION}


def page_in_database(
    catalog: PaimonCatalog, call: Call, found: Iterable[Identifier], parameter: str
) -> Paged[str]:
    """Return the page of names in the database of a call's path.

    Args:
        catalog: The catalog.
        call: The call.
        found: The full names in all databases.
        parameter: The query parameter with the pattern of names.

    Raises:
        RequestError: The database does not exist, or a parameter is not valid.
    """
    database = call.values["database"]
    catalog.check_database(database)
    matches = name_test(call, parameter)
    names = (each.name for each in found if each.database == database)
    return page_of(call, sorted(filter(matches, names)), str)


def page_in_catalog(call: Call, found: Iterable[Identifier], parameter: str) -> Paged[Identifier]:
    """Return the page of full names in all databases; see `page_in_database`.

    Raises:
        RequestError: A parameter is not valid.
    """
    in_database, matches = name_test(call, "databaseNamePattern"), name_test(call, parameter)
    names = (each for each in found if in_database(each.database) and matches(each.name))
    return page_of(call, sorted(names, key=str), str)


@contextmanager
def taking_name(
    catalog: PaimonCatalog, resource: str, name: Identifier, holder: Callable[[], str | None]
) -> Iterator[None]:
    """Report a name that is taken, or in no database, as clients expect it.

    Args:
        catalog: The catalog.
        resource: The kind of resource that takes the name.
        name: The name.
        holder: Returns the kind of what has the name now; None if nothing has it.

    Raises:
        RequestError: The name is taken, the database does not exist, or what was created was
            dropped at once.
    """
    try:
        yield
    except (AlreadyExistsError, CommitConflictError) as error:
        kind = holder()
        if kind is None:
            raise
        message = f"{kind.title()} {name} already exists."
        raise already_exists(resource, name.name, message) from error
    except NotFoundError as error:
        if error.kind == CREATED_AND_DROPPED:
            with after_commit(f"the creation of {resource.lower()} {name}"):
                raise
        if name.database in catalog.state.databases:
            raise
        raise no_such_database(name.database) from error


def part_error(
    name: Identifier,
    definition: ViewSchema | Function,
    changes: Sequence[ViewChange] | Sequence[FunctionChange],
) -> RequestError | None:
    """Return the error for the first change of a dialect or definition that cannot be made.

    Args:
        name: The view or function.
        definition: Its definition.
        changes: The requested changes.

    Example:
        >>> from ledger.events import DropDialect
        >>> view = ViewSchema((), "SELECT 1")
        >>> error = part_error(Identifier("shop", "ids"), view, [DropDialect("spark")])
        >>> error.status, error.kind, error.resource
        (404, 'DIALECT', 'spark')
    """
    found = find_contradiction(cells_of(definition), changes)
    if found is None:
        return None
    section, key = found.cell
    what = f"{section.title()} {key} in {name}"
    if found.is_present:
        return already_exists(_PARTS[section], key, f"{what} already exists.")
    return not_found(_PARTS[section], key, f"{what} does not exist.")
