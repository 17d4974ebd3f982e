"""Branches of a Paimon table as the texts of their files, and as tables of their own.

A branch has schemas, snapshots and tags of its own below `branch/branch-NAME/`, whose ids repeat
those of the main line; manifests and data files are the table's. The log keeps a branch as the
texts of its files. A text of the main line is rendered from the table's state, which packages of
formats do and the log's fold must not: a new branch therefore records the texts that it copies.

Source: Paimon's BranchManager, FileSystemBranchManager and Identifier classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from attrs import evolve, frozen
from msgspec import UNSET

from ledger.events.imported import PaimonBranchUpdated
from ledger.model.errors import (
    AlreadyExistsError,
    InvalidChangeError,
    InvalidNameError,
    NotFoundError,
)
from ledger.model.messages import name_hint
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot, Tag
from ledger.state.declared_formats import FORMATS_OPTION
from ledger.state.layout import LayoutTrail, identity_spec
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.schema_record import StoredSchema, schema_of, stored_schema
from ledger.state.table import TableState
from ledger.stores.base import is_key
from projections.importing.deriving import properties_of_options
from projections.paimon.paths import schema_path, snapshot_path, tag_path
from projections.paimon.schema_file import schema_file
from projections.paimon.snapshot_file import TagFile, snapshot_as_written, snapshot_file, tag_file
from projections.paimon.source import PaimonSource

MAIN: Final = "main"
BRANCH_MISSING: Final = "BRANCH_NOT_EXIST"
TAG_MISSING: Final = "TAG_NOT_EXIST"
"""The kinds of the errors that a branch, or the tag of a new one, does not exist."""

_LONGEST_NAME: Final = 255
"""In bytes: the limit of file systems."""

_FIRST_SNAPSHOT_ID: Final = 1
_TAG_PREFIX: Final = "tag/tag-"
_PINNED_BY: Final = ("scan.fallback-branch", "scan.primary-branch")
"""Options of a table that name a branch, which cannot be dropped then."""


@frozen
class TextFiles:
    """Files in memory; see `projections.importing.trial.ReadableFiles`.

    Attributes:
        root: The folder's URL.
        texts: Render the files, by their paths below it.
    """

    root: str
    texts: Mapping[str, Callable[[], str]]

    def read(self, url: str) -> bytes:
        """Return a file's bytes.

        Raises:
            FileNotFoundError: There is no such file.
        """
        path = url.removeprefix(f"{self.root}/")
        if path not in self.texts:
            raise FileNotFoundError(url)
        return self.texts[path]().encode()

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted."""
        start = f"{folder.removeprefix(f'{self.root}/')}/"
        found = {
            each.removeprefix(start).partition("/")[0]
            for each in self.texts
            if each.startswith(start)
        }
        return sorted(found)


Item = StoredSchema | Snapshot | TagFile
"""The parsed contents of a file."""


@frozen
class BranchContents:
    """The files of a branch.

    Attributes:
        texts: Their texts, by path below the branch's folder.
        items: Their parsed contents, by path.
    """

    texts: Mapping[str, str]
    items: Mapping[str, Item]


def branch_names(state: TableState) -> tuple[str, ...]:
    """Return the names of a table's branches, sorted."""
    return tuple(sorted(state.origin_of_kind(PaimonOrigin).branches))


def branch_texts(state: TableState, name: str) -> Mapping[str, str]:
    """Return the texts of a branch's files, by path below its folder.

    Raises:
        NotFoundError: The branch does not exist.
    """
    branches = state.origin_of_kind(PaimonOrigin).branches
    if name not in branches:
        raise NotFoundError(
            f"branch {name!r} does not exist; {name_hint(name, sorted(branches))}", BRANCH_MISSING
        )
    return branches[name]


def read_branch(
    state: TableState, name: str, known: BranchContents | None = None
) -> BranchContents:
    """Return the parsed files of a branch.

    Args:
        state: The table's state.
        name: The branch.
        known: Earlier contents: files with the same text are not parsed again.

    Raises:
        NotFoundError: The branch does not exist.
        InvalidInputError: A file is damaged.
    """
    texts = branch_texts(state, name)
    if known is not None and known.texts is texts:
        return known
    readers = {path: constant_text(text) for path, text in texts.items()}
    folder = f"branch/branch-{name}"
    source = PaimonSource(folder, TextFiles(folder, readers), {}, snapshot_as_written)
    items: dict[str, Item] = {}
    for path, text in texts.items():
        if known is not None and known.texts.get(path) == text and path in known.items:
            items[path] = known.items[path]
        elif (schema_id := _number(path, schema_path)) is not None:
            items[path] = stored_schema(_as_served(source.schema(schema_id)))
        elif (snapshot_id := _number(path, snapshot_path)) is not None:
            items[path] = source.snapshot(snapshot_id)
        elif path.startswith(_TAG_PREFIX):
            items[path] = source.tag(path.removeprefix(_TAG_PREFIX))
    return BranchContents(texts, items)


def _number(path: str, path_of: Callable[[int], str]) -> int | None:
    """Return the number of a schema's or snapshot's path; None of any other path."""
    digits = path.rpartition("-")[2]
    is_number = digits.isascii() and digits.isdigit() and path == path_of(int(digits))
    return int(digits) if is_number else None


def constant_text(text: str) -> Callable[[], str]:
    """Return a function that returns a text."""
    return lambda: text


def _as_served(schema: Schema) -> Schema:
    """Return the schema of a file as the table's state has it."""
    options = {**schema.options, FORMATS_OPTION: "paimon"}
    return evolve(schema, options=options, field_id_policy="paimon")


def branch_state(
    state: TableState, name: str, contents: BranchContents | None = None
) -> TableState:
    """Return a branch as a table: its schemas, snapshots and tags instead of the main line's.

    The files say when a tag was created only if it has a retention; other tags have the time of
    their snapshot. No file says which commit of the ledger added a snapshot: the version is that of
    the state.

    Args:
        state: The table's state.
        name: The branch; `main` gives the state itself.
        contents: The branch's parsed files, if known.

    Raises:
        NotFoundError: The branch does not exist.
        InvalidInputError: A file of the branch is damaged.
    """
    if name == MAIN:
        return state
    main = state.origin_of_kind(PaimonOrigin)
    items = (contents or read_branch(state, name)).items
    schemas: dict[int, StoredSchema] = {}
    snapshots: dict[int, Snapshot] = {}
    files: dict[str, TagFile] = {}
    for path, item in items.items():
        match item:
            case StoredSchema():
                schemas[item.id] = item
            case Snapshot():
                snapshots[item.id] = item
            case TagFile():
                files[path.removeprefix(_TAG_PREFIX)] = item
    tagged = (each.snapshot for each in files.values())
    kept = {each.id: each for each in tagged if each.id not in snapshots}
    origin = PaimonOrigin(
        source=main.source,
        location=main.location,
        schemas=schemas,
        snapshots=snapshots,
        kept=kept,
        added_in=dict.fromkeys((*snapshots, *kept), state.version),
    )
    schema = origin.schema(max(origin.schemas))
    layout = LayoutTrail((identity_spec(schema),))
    return evolve(
        state,
        schema=schema,
        specs=layout.specs,
        default_spec_id=layout.default_spec_id,
        last_partition_id=layout.last_partition_id,
        snapshot=origin.current,
        totals=origin.totals,
        earliest_snapshot_id=min(snapshots, default=_FIRST_SNAPSHOT_ID),
        tags={each: _tag_of(each, file) for each, file in files.items()},
        partition_statistics={},
        statistics={},
        named_schema_ids=(),
        origin=origin,
    )


def _tag_of(name: str, file: TagFile) -> Tag:
    millis = file.create_time_millis
    created = file.snapshot.time_millis if millis is None else millis
    return Tag(name, file.snapshot.id, created, file.time_retained_millis)


def branch_update_event(
    name: str, before: TableState, after: TableState
) -> PaimonBranchUpdated | None:
    """Return the event that leads a branch from one state to a later one; None without changes.

    It holds only the texts of new and changed files.

    Args:
        name: The branch.
        before: The branch as a table.
        after: The same later.
    """
    had, has = _items(before), _items(after)
    added = {path: _render(each) for path, each in has.items() if had.get(path) != each}
    removed = tuple(sorted(had.keys() - has.keys()))
    if not added and not removed:
        return None
    return PaimonBranchUpdated(branch_name=name, added=added or UNSET, removed=removed)


def _items(state: TableState) -> dict[str, Item]:
    """Return the contents of a line's files, by path."""
    origin = state.origin_of_kind(PaimonOrigin)
    readable = origin.readable_snapshots
    schemas = {schema_path(each): it for each, it in origin.schemas.items()}
    snapshots = {snapshot_path(each): it for each, it in origin.snapshots.items()}
    tags = {
        tag_path(each): TagFile(
            readable[it.snapshot_id], it.create_time_millis, it.time_retained_millis
        )
        for each, it in state.tags.items()
    }
    return {**schemas, **snapshots, **tags}


def _render(item: Item) -> str:
    match item:
        case StoredSchema():
            schema = schema_of(item)
            options = properties_of_options(schema.options)
            return schema_file(evolve(schema, options=options)).decode()
        case Snapshot():
            return snapshot_file(item).decode()
        case TagFile(snapshot, created, retained):
            body = tag_file(snapshot, create_time_millis=created, time_retained_millis=retained)
            return body.decode()


def line_texts(state: TableState, branch: str) -> Mapping[str, Callable[[], str]]:
    """Return functions that render the files of a line, by path."""
    if branch != MAIN:
        texts = branch_texts(state, branch)
        return {path: constant_text(text) for path, text in texts.items()}
    return {path: partial(_render, item) for path, item in _items(state).items()}


def created_branch_event(
    state: TableState, name: str, tag: str | None, line: str = MAIN
) -> PaimonBranchUpdated:
    """Return the event that creates a branch.

    As in Paimon, a branch from a tag begins with that tag, its snapshot and the schemas up to the
    snapshot's; a branch without one begins with all schemas and no snapshot.

    Args:
        state: The table's state.
        name: The new branch.
        tag: The tag that it begins with; None for none.
        line: The branch that the tag and the schemas are of.

    Raises:
        InvalidNameError: The name cannot be that of a branch.
        AlreadyExistsError: A branch of that name exists.
        NotFoundError: The tag or `line` does not exist.
    """
    _check_new_branch(state, name)
    origin_state = branch_state(state, line)
    origin = origin_state.origin_of_kind(PaimonOrigin)
    texts = line_texts(state, line)
    if tag is None:
        wanted = [schema_path(each) for each in sorted(origin.schemas)]
        added = {path: texts[path]() for path in wanted}
    else:
        if tag not in origin_state.tags:
            raise NotFoundError(
                f"tag {tag!r} does not exist; {name_hint(tag, sorted(origin_state.tags))}",
                TAG_MISSING,
            )
        snapshot = origin.readable_snapshots[origin_state.tags[tag].snapshot_id]
        wanted = [
            *(schema_path(each) for each in sorted(origin.schemas) if each <= snapshot.schema_id),
            tag_path(tag),
        ]
        added = {path: texts[path]() for path in wanted}
        path = snapshot_path(snapshot.id)
        # An expired snapshot is written from its tag.
        added[path] = texts[path]() if path in texts else _render(snapshot)
    return PaimonBranchUpdated(branch_name=name, added=added)


def renamed_branch_event(state: TableState, name: str, to_name: str) -> PaimonBranchUpdated:
    """Return the event that renames a branch.

    Raises:
        InvalidNameError, AlreadyExistsError: As of `created_branch_event`, of the new name.
        NotFoundError: The branch does not exist.
    """
    branch_texts(state, name)
    _check_new_branch(state, to_name)
    return PaimonBranchUpdated(branch_name=to_name, renamed_from=name)


def dropped_branch_event(state: TableState, name: str) -> PaimonBranchUpdated:
    """Return the event that drops a branch.

    Raises:
        NotFoundError: The branch does not exist.
        InvalidChangeError: An option of the table names it.
    """
    texts = branch_texts(state, name)
    for option in _PINNED_BY:
        if state.schema.options.get(option) == name:
            raise InvalidChangeError(
                f"branch {name!r} cannot be dropped while option {option} names it; remove the "
                "option first"
            )
    return PaimonBranchUpdated(branch_name=name, removed=tuple(sorted(texts)))


def _check_new_branch(state: TableState, name: str) -> None:
    check_branch_name(name)
    if name in state.origin_of_kind(PaimonOrigin).branches:
        raise AlreadyExistsError(f"branch {name!r} exists already; choose another name")


def check_branch_name(name: str) -> None:
    """Reject a name that Paimon's engines could not use for a branch.

    The name is a part of a folder's name, and of the table's name `TABLE$branch_NAME`, where
    `main` in any case is the main line.

    Raises:
        InvalidNameError: They could not.
    """
    file_name = f"branch-{name}"
    if name.casefold() == MAIN:
        problem = "is the main line's"
    elif not name.strip():
        problem = "is blank"
    elif all(each.isdigit() for each in name):
        problem = "has only digits"
    elif "$" in name or "/" in name or not is_key(file_name) or not name.isprintable():
        problem = "has characters that no name of a table or folder can have"
    elif len(file_name.encode()) > _LONGEST_NAME:
        problem = f"is longer than {_LONGEST_NAME} bytes with its prefix"
    else:
        return
    raise InvalidNameError(f"branch name {name!r} {problem}; choose another name")
