"""The line of a table that a path names: its main line, or a branch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import frozen

from ledger.model.errors import NotFoundError, TableDroppedError
from ledger.model.names import Identifier
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.paimon.branch_files import BRANCH_MISSING
from projections.paimon.branch_lines import line_state
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import no_such_table
from projections.rest.paimon.requests import branch_name, table_of
from projections.rest.requests import Call


@contextmanager
def missing_as_table(name: Identifier) -> Iterator[None]:
    """Report a table or branch that does not exist any more by the name in the path.

    Raises:
        RequestError: The table was dropped, or its branch does not exist.
    """
    try:
        yield
    except NotFoundError as error:
        if isinstance(error, TableDroppedError) or error.kind == BRANCH_MISSING:
            raise no_such_table(name) from error
        raise


@frozen
class Line:
    """A line of a table.

    Attributes:
        table: The table.
        branch: The branch; None for the main line.
        whole: The newest state of the table.
        state: That of the line, as if it were a table.
    """

    table: TableHandle
    branch: str | None
    whole: TableState
    state: TableState

    @property
    def identifier(self) -> Identifier:
        """The name by which clients know the line."""
        name = self.table.identifier
        return name if self.branch is None else branch_name(name, self.branch)


def open_line(catalog: PaimonCatalog, call: Call) -> Line:
    """Return the line that a call's path names.

    Raises:
        RequestError: There is no such table or branch.
    """
    path = table_of(call)
    table = catalog.table(path.identifier)
    state = table.state
    with missing_as_table(path.name):
        line = line_state(table, state, path.branch)
    return Line(table, path.branch, state, line)


def main_line(table: TableHandle) -> Line:
    """Return the main line of a table."""
    state = table.state
    return Line(table, None, state, state)
