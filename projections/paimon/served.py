"""Tables that engines own and commit to through the Paimon REST API.

A table is created by one commit. Its engines write manifests and data into its folder: the table's
own, or an external one. Schemas, snapshots, tags and branches are recorded in the log first, and
their files exist in the folder before a call returns; see `served_files`.

Source: Paimon's RESTCatalog and SchemaManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, Unpack

from attrs import evolve

from ledger.events.imported import ImportedPaimonTable
from ledger.events.schema import RemoveOption, SchemaChange, SetOption
from ledger.ledger_handle import LedgerHandle
from ledger.ledger_writes import create_recorded_table
from ledger.log.request import Appended, CommitOptions
from ledger.model.errors import InvalidInputError
from ledger.model.names import Identifier
from ledger.model.schema import Schema
from ledger.opening.creation import new_table
from ledger.state.declared_formats import FORMATS_OPTION, OWN_PREFIX
from ledger.state.paimon_origin import OWN_FOLDER
from ledger.state.snapshots import MAIN
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.importing.trial import canonical_source, canonical_url
from projections.locations import check_location
from projections.paimon.branch_commits import commit_to_line
from projections.paimon.branch_schema import decide_branch_changes
from projections.paimon.schema_file import schema_to_json
from projections.paimon.served_files import write_committed_files
from projections.paimon.served_origin import served_origin
from projections.paimon.served_places import check_new_folder

PATH_OPTION: Final = "path"
"""Option of Paimon: the location of an external table. A schema file never has it."""


def create_table(
    ledger: LedgerHandle,
    name: Identifier,
    schema: Schema,
    *,
    location: str | None = None,
    **commit: Unpack[CommitOptions],
) -> TableHandle:
    """Create a table that engines own, by one commit; the file of its schema exists then.

    Args:
        ledger: The ledger.
        name: The table's name; its database exists.
        schema: Its schema; field ids are kept. Its option `path` is a location, as `location` is.
        location: The folder of an external table; None for the table's own folder.
        commit: See CommitOptions.

    Raises:
        AlreadyExistsError: A table or view of that name exists.
        NotFoundError: The database does not exist.
        InvalidInputError: Paimon has no table with that schema, it sets an option of the ledger, or
            the location is not one.
        InvalidChangeError: The location meets a table's folder, or holds a table of Paimon or what
            is a ledger's; see `check_new_folder`.
        CommitConflictError: A table that is created at the same time has that location.
        StoreError: The location cannot be listed.
        UnsupportedError: The location is not allowed.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """
    refuse_ledger_options(schema.options)
    options = dict(schema.options)
    path = options.pop(PATH_OPTION, None)
    place = path if location is None else location
    folder = OWN_FOLDER if place is None else _external_folder(ledger, place)
    options[FORMATS_OPTION] = "paimon"
    made = new_table(evolve(schema, options=options, id=0))
    facts = {
        "schema": made.schema,
        "origin": ImportedPaimonTable(source=folder, location=folder),
        "protocol": "paimon",
    }
    asked = ["paimonCreate", str(name), {**schema_to_json(schema), "timeMillis": 0}, place]
    commit.setdefault("asked", asked)
    check = None if place is None else partial(check_new_folder, ledger, location=folder)
    table = create_recorded_table(ledger, name, facts, commit, check)
    write_committed_files(table)
    return table


def _external_folder(ledger: LedgerHandle, location: str) -> str:
    check_location(ledger, location, PATH_OPTION)
    return canonical_url(canonical_source(location))


def refuse_ledger_options(keys: Iterable[str]) -> None:
    """Reject options of the ledger in a request of an engine.

    Raises:
        InvalidInputError: There is one.
    """
    found = next((each for each in keys if each.startswith(OWN_PREFIX)), None)
    if found is not None:
        raise InvalidInputError(
            f"option {found} is an option of the ledger, and engines cannot set it; use "
            "lakeledger alter, or another name"
        )


def refuse_path_option(keys: Iterable[str]) -> None:
    """Reject changes of a table's location, which is fixed when it is created.

    Raises:
        InvalidInputError: There is one.
    """
    if any(each.lower() == PATH_OPTION for each in keys):
        raise InvalidInputError(
            "Change path is not supported: a table stays where it was created; create another one "
            "there. Nothing was committed"
        )


def alter_table(
    table: TableHandle,
    changes: Sequence[SchemaChange],
    *,
    branch: str | None = None,
    **commit: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Change a served table's schema, options or comment, by one commit with one new schema.

    Concurrent changes are rebased as those of `Table.alter`. The schema's file exists then.

    Args:
        table: The table.
        changes: The changes, in order; all of them are committed, or none.
        branch: The branch; None for the main line.
        commit: See CommitOptions.

    Raises:
        InvalidInputError: A change sets an option of the ledger, or the location.
        InvalidChangeError: A change is not allowed; its kind is that of Paimon's error.
        CommitConflictError: A concurrent writer changed the same thing.
        NotFoundError: The branch does not exist.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """
    keys = [each.key for each in changes if isinstance(each, SetOption | RemoveOption)]
    refuse_ledger_options(keys)
    refuse_path_option(keys)
    if branch is not None and branch != MAIN:
        done = commit_to_line(
            table,
            branch,
            ["paimonAlter", list(changes)],
            lambda state: decide_branch_changes(state, changes),
            **commit,
        )
        write_committed_files(table, done.state)
        return done
    # Another server may have made the changes that the request continues.
    served_origin(table.state)
    done = table.alter(changes, commit)
    write_committed_files(table, done.state)
    return done
