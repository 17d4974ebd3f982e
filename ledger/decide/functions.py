"""Requests to create, alter and drop functions, and their decisions.

A function is identified by its id. Its name is not in the namespace of tables and views, and
Paimon's clients have to accept it.

Source: Paimon's RESTFunctionValidator for names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from attrs import frozen

from ledger.decide.bounds import check_field_ids
from ledger.decide.catalog_facts import CatalogContext, check_database, table_name_record
from ledger.decide.definition_changes import pending_changes
from ledger.events.catalog import (
    CatalogEvent,
    FunctionAltered,
    FunctionCreated,
    FunctionDropped,
)
from ledger.events.functions import AddDefinition, FunctionChange, UpdateDefinition
from ledger.model.credentials import carries_credentials, credentials_error_text
from ledger.model.errors import (
    AlreadyExistsError,
    InvalidChangeError,
    InvalidInputError,
    InvalidNameError,
    NotFoundError,
)
from ledger.model.functions import FileFunctionDefinition, Function, FunctionDefinition
from ledger.model.messages import excerpt
from ledger.model.names import MAX_NAME_LENGTH, Identifier
from ledger.state.catalog import FunctionEntry
from ledger.state.catalog_builder import identifier_of
from ledger.state.definitions import cells_of, function_to_record

_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9._-]+")


@frozen
class CreateFunction:
    """Create a function; `function_id` is a fresh UUID."""

    identifier: Identifier
    function_id: str
    function: Function


@frozen
class AlterFunction:
    """Change a function; the changes apply in order."""

    identifier: Identifier
    changes: tuple[FunctionChange, ...]


@frozen
class DropFunction:
    """Drop a function."""

    identifier: Identifier


def as_function_changes(changes: Iterable[object]) -> tuple[FunctionChange, ...]:
    """Return changes unchanged if all are changes of functions.

    Raises:
        InvalidChangeError: One is something else.
    """
    asked: list[FunctionChange] = []
    for each in changes:
        if not isinstance(each, FunctionChange):
            raise InvalidChangeError(
                f"{excerpt(each)} is no change of a function; give SetOption, RemoveOption, "
                "UpdateComment or a change of a definition"
            )
        asked.append(each)
    return tuple(asked)


def create_function(request: CreateFunction, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    """Return the event that creates a function; its name and id must be free."""
    name, function = request.identifier, request.function
    _check_function_name(name.name)
    check_database(name.database, catalog)
    if name in catalog.state.functions:
        raise catalog.refusal(
            f"function {name}",
            lambda event: (
                isinstance(event, FunctionCreated) and identifier_of(event.identifier) == name
            ),
            AlreadyExistsError(f"function {name} exists already; choose another name"),
        )
    holder = catalog.state.function_by_id(request.function_id)
    if holder is not None:
        raise catalog.refusal(
            f"function id {request.function_id}",
            lambda event: (
                isinstance(event, FunctionCreated) and event.function_id == request.function_id
            ),
            AlreadyExistsError(
                f"function id {request.function_id} is {holder.identifier}'s; take a fresh one"
            ),
        )
    for parameters in (function.input_params, function.return_params):
        check_field_ids(parameters or ())
    for engine, definition in function.definitions.items():
        _check_definition(engine, definition)
    event = FunctionCreated(
        identifier=table_name_record(name),
        function_id=request.function_id,
        function=function_to_record(function),
    )
    return (event,)


def _check_function_name(name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        raise InvalidNameError(
            f"function name {name!r:.300} is not valid: use at most {MAX_NAME_LENGTH} of the "
            "letters A to Z, digits, '.', '_' and '-', with one letter at least"
        )


def _check_definition(engine: str, definition: object) -> None:
    """Reject a definition of an unknown kind, without a name, or with credentials in a URI."""
    if not isinstance(definition, FunctionDefinition):
        raise InvalidChangeError(
            f"definition {engine!r:.80} is {excerpt(definition)}; give a FileFunctionDefinition, "
            "SqlFunctionDefinition or LambdaFunctionDefinition"
        )
    if not engine:
        raise InvalidChangeError("a definition has an empty name; name it after an engine")
    files = definition.file_resources if isinstance(definition, FileFunctionDefinition) else ()
    for each in files:
        if carries_credentials(each.uri):
            raise InvalidInputError(
                f"file of definition {engine!r:.80} {credentials_error_text(each.uri)}"
            )


def alter_function(request: AlterFunction, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    """Return the changes that do not hold already; a cell that a winner set is a conflict."""
    entry = _resolve_requested_function(request.identifier, catalog)
    for each in request.changes:
        if isinstance(each, AddDefinition | UpdateDefinition):
            _check_definition(each.name, each.definition)
    pending = pending_changes(
        f"function {entry.identifier}",
        request.changes,
        cells_of(entry.function),
        _make_changes_getter(entry.function_id),
        catalog,
    )
    if not pending:
        return ()
    name = table_name_record(entry.identifier)
    return (FunctionAltered(identifier=name, function_id=entry.function_id, changes=pending),)


def _make_changes_getter(
    function_id: str,
) -> Callable[[CatalogEvent], tuple[FunctionChange, ...]]:
    def changes_of(event: CatalogEvent) -> tuple[FunctionChange, ...]:
        if isinstance(event, FunctionAltered) and event.function_id == function_id:
            return event.changes
        return ()

    return changes_of


def drop_function(request: DropFunction, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    """Return the drop of a function; none if a winner dropped it."""
    function_id = catalog.base.function(request.identifier).function_id
    found = catalog.state.function_by_id(function_id)
    if found is None:
        return ()
    name = table_name_record(found.identifier)
    return (FunctionDropped(identifier=name, function_id=function_id),)


def _resolve_requested_function(identifier: Identifier, catalog: CatalogContext) -> FunctionEntry:
    function_id = catalog.base.function(identifier).function_id
    found = catalog.state.function_by_id(function_id)
    if found is None:
        raise catalog.refusal(
            f"function {identifier}",
            lambda event: isinstance(event, FunctionDropped) and event.function_id == function_id,
            NotFoundError(f"function {identifier} was dropped; read it again before you change it"),
        )
    return found
