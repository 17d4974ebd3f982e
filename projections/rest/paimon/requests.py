"""Parts that requests have in common: names of tables, bodies, the options of a commit.

A name in a path may say a branch, `table$branch_name`. Source: Paimon's Identifier.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from attrs import frozen

from ledger.log.request import CommitOptions
from ledger.model.errors import InvalidNameError
from ledger.model.names import Identifier
from projections.dlf import Style, read, render
from projections.rest.commit_options import commit_options as shared_options
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import no_such_table
from projections.rest.requests import Call, Reply, RequestError

T = TypeVar("T")

_SEPARATOR: Final = "$"
_BRANCH: Final = "branch_"
MAIN_BRANCH: Final = "main"


@frozen
class TablePath:
    """A table's name in a path.

    Attributes:
        identifier: The table.
        branch: Its branch; None for the main one.
    """

    identifier: Identifier
    branch: str | None = None

    @property
    def name(self) -> Identifier:
        """The name as the path says it."""
        return self.identifier if self.branch is None else branch_name(self.identifier, self.branch)

    @classmethod
    def parse(cls, database: str, name: str) -> TablePath:
        """Return the name that a path says.

        Raises:
            RequestError: No table can have the name, so it does not exist.

        Example:
            >>> TablePath.parse("shop", "orders$branch_b1").branch
            'b1'
        """
        table, separator, rest = name.partition(_SEPARATOR)
        branch = rest.removeprefix(_BRANCH)
        if separator and (branch == rest or not branch or _SEPARATOR in branch):
            raise no_such_table(Identifier(database, name))
        with suppress(InvalidNameError):
            known = branch if branch not in {"", MAIN_BRANCH} else None
            return cls(Identifier(database, table).checked(), known)
        raise no_such_table(Identifier(database, name))


def branch_name(table: Identifier, branch: str) -> Identifier:
    """Return the name by which clients know a branch of a table.

    Example:
        >>> branch_name(Identifier("shop", "orders"), "b1").name
        'orders$branch_b1'
    """
    return Identifier(table.database, f"{table.name}{_SEPARATOR}{_BRANCH}{branch}")


def table_of(call: Call) -> TablePath:
    """Return the table, and perhaps its branch, in a call's path.

    Raises:
        RequestError: No table can have the name, so it does not exist.
    """
    return TablePath.parse(call.values["database"], call.values["table"])


def main_table_of(call: Call) -> Identifier:
    """Return the table in a call's path, which names no branch.

    Raises:
        RequestError: It names a branch, or no table can have the name.
    """
    name = table_of(call)
    if name.branch is not None:
        raise RequestError(
            400,
            f"branch {name.branch} of {name.identifier} cannot be used here; name the table "
            "without its branch",
        )
    return name.identifier


def check_database_in(call: Call, name: Identifier) -> None:
    """Check that the name in a body is in the database of the path.

    Raises:
        RequestError: It is in another one.
    """
    database = call.values["database"]
    if name.database != database:
        raise RequestError(
            400,
            f"the body creates {name}, and the path names database {database}; send one database",
        )


def decode(call: Call, kind: type[T]) -> T:
    """Return a call's body as an object of the API.

    Raises:
        RequestError: It is nested too deeply.
        InvalidInputError: It is no such object; the message names the place.
    """
    return read(document_of(call), kind)


def document_of(call: Call) -> Any:
    """Return a call's body as decoded JSON.

    Raises:
        RequestError: It is no JSON, or nested too deeply.
    """
    found: Any = call.decode(object)
    return found


def reply(content: object) -> Reply:
    """Return the answer with an object of the API."""
    return Reply.of(render(content, Style.PAIMON_REST))


EMPTY: Final = Reply(200)
"""The answer of endpoints that return nothing."""


def commit_options(
    catalog: PaimonCatalog, call: Call, operation: str, properties: Mapping[str, str] = {}
) -> CommitOptions:
    """Return the options of a call's commit: author, reason and client.

    Args:
        catalog: The catalog.
        call: The call.
        operation: The name of what is requested, in camelCase.
        properties: Properties of the request's snapshot.

    Raises:
        RequestError: A text is too long.
    """
    asked = ["paimonRest", operation]
    return shared_options(call, catalog.handle.setting.author, asked, properties)
