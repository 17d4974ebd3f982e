"""Branches of tables.

A table's name with a branch, `table$branch_b`, stands for the branch: another one is created from
its schemas and tags, and a fast-forward changes it instead of the main line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ledger.model.errors import AlreadyExistsError, NotFoundError
from ledger.state.paimon_origin import PaimonOrigin
from projections.dlf.objects import (
    CreateBranchRequest,
    ListBranchesResponse,
    RenameBranchRequest,
)
from projections.paimon import served_branches
from projections.paimon.branch_files import BRANCH_MISSING, TAG_MISSING, branch_names
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import (
    BRANCH,
    already_exists,
    no_such_branch,
    no_such_tag,
)
from projections.rest.paimon.lines import Line, missing_as_table, open_line
from projections.rest.paimon.requests import EMPTY, commit_options, decode, reply
from projections.rest.requests import Call, Endpoint, Reply


def list_branches(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the names of a table's branches; none of a table that the ledger's library writes."""
    state = open_line(catalog, call).whole
    names = branch_names(state) if isinstance(state.origin, PaimonOrigin) else ()
    return reply(ListBranchesResponse(names))


def create_branch(catalog: PaimonCatalog, call: Call) -> Reply:
    """Create a branch, with the snapshot of a tag or without one."""
    wanted = decode(call, CreateBranchRequest)
    line = open_line(catalog, call)
    with _changing(line, wanted.branch, wanted.branch, wanted.from_tag):
        served_branches.create_branch(
            line.table,
            wanted.branch,
            tag=wanted.from_tag,
            line=line.branch,
            **commit_options(catalog, call, "createBranch"),
        )
    return EMPTY


def rename_branch(catalog: PaimonCatalog, call: Call) -> Reply:
    """Rename a branch."""
    wanted = decode(call, RenameBranchRequest)
    line, name = open_line(catalog, call), call.values["branch"]
    with _changing(line, name, wanted.to_branch):
        served_branches.rename_branch(
            line.table,
            name,
            wanted.to_branch,
            **commit_options(catalog, call, "renameBranch"),
        )
    return EMPTY


def drop_branch(catalog: PaimonCatalog, call: Call) -> Reply:
    """Drop a branch."""
    line, name = open_line(catalog, call), call.values["branch"]
    with _changing(line, name, name):
        served_branches.drop_branch(line.table, name, **commit_options(catalog, call, "dropBranch"))
    return EMPTY


def forward_branch(catalog: PaimonCatalog, call: Call) -> Reply:
    """Let the main line, or the branch in the table's name, take over a branch's contents."""
    line, name = open_line(catalog, call), call.values["branch"]
    with _changing(line, name, name):
        served_branches.forward_branch(
            line.table,
            name,
            line=line.branch,
            **commit_options(catalog, call, "forwardBranch"),
        )
    return EMPTY


@contextmanager
def _changing(line: Line, name: str, new_name: str, tag: str | None = None) -> Iterator[None]:
    """Report the failures of a change as clients expect them.

    Args:
        line: The line in the path.
        name: The branch that exists, or the new one.
        new_name: The name that has to be free.
        tag: The tag that a new branch begins with.
    """
    try:
        yield
    except AlreadyExistsError as error:
        raise already_exists(BRANCH, new_name, f"Branch {new_name} already exists.") from error
    except NotFoundError as error:
        if error.kind == TAG_MISSING:
            raise no_such_tag(tag or "", line.identifier) from error
        if error.kind == BRANCH_MISSING and name not in branch_names(line.table.state):
            raise no_such_branch(name, line.table.identifier) from error
        with missing_as_table(line.identifier):
            raise


_BRANCHES: Final = "/v1/{prefix}/databases/{database}/tables/{table}/branches"
_ONE: Final = f"{_BRANCHES}/{{branch}}"

ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("GET", _BRANCHES, list_branches),
    Endpoint("POST", _BRANCHES, create_branch, "write"),
    Endpoint("DELETE", _ONE, drop_branch, "write"),
    Endpoint("POST", f"{_ONE}/rename", rename_branch, "write"),
    Endpoint("POST", f"{_ONE}/forward", forward_branch, "write"),
)
