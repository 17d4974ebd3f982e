"""Tags of tables, and of their branches."""

from __future__ import annotations

from typing import Any, Final

from ledger.log.request import CommitOptions
from ledger.model.errors import AlreadyExistsError, InvalidNameError, NotFoundError
from projections.dlf.objects import CreateTagRequest, GetTagResponse, ListTagsResponse
from projections.dlf.reading import read
from projections.paimon import native_changes
from projections.paimon.durations import iso_duration, parse_duration
from projections.paimon.served_files import write_files
from projections.paimon.served_folder import list_tags as names_of_tags
from projections.paimon.served_folder import read_tag
from projections.paimon.served_origin import is_engine_table
from projections.paimon.served_tags import create_tag as create_served_tag
from projections.paimon.served_tags import delete_tag as delete_served_tag
from projections.paimon.snapshot_file import TagFile
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import (
    TAG,
    already_exists,
    no_such_snapshot,
    no_such_tag,
)
from projections.rest.paimon.lines import Line, missing_as_table, open_line
from projections.rest.paimon.paging import page_of
from projections.rest.paimon.requests import EMPTY, commit_options, document_of, reply
from projections.rest.paimon.snapshots import LATEST, LineSnapshots
from projections.rest.requests import Call, Endpoint, Reply

_IGNORE: Final = "ignoreIfExists"
_DEFAULT_RETENTION: Final = "tag.default-time-retained"


def list_tags(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the names of a table's tags, those included that engines created without the server."""
    line = open_line(catalog, call)
    prefix = call.query.get("tagNamePrefix") or ""
    found = [each for each in _names(line) if each.startswith(prefix)]
    page = page_of(call, found, str)
    return reply(ListTagsResponse(tags=page.items, next_page_token=page.token))


def _names(line: Line) -> list[str]:
    if not is_engine_table(line.whole):
        return sorted(line.state.tags)
    write_files(line.table, line.whole, line.branch)
    return names_of_tags(line.table, line.whole, line.branch)


def load_tag(catalog: PaimonCatalog, call: Call) -> Reply:
    """Return a tag with its snapshot."""
    line = open_line(catalog, call)
    name = call.values["tag"]
    found = _tag(line, name)
    if found is None:
        raise no_such_tag(name, line.identifier)
    retained = found.time_retained_millis
    return reply(
        GetTagResponse(
            name,
            found.snapshot,
            found.create_time_millis,
            None if retained is None else iso_duration(retained),
        )
    )


def _tag(line: Line, name: str) -> TagFile | None:
    if is_engine_table(line.whole):
        write_files(line.table, line.whole, line.branch)
        try:
            return read_tag(line.table, line.whole, name, line.branch)
        except InvalidNameError:
            return None
    tag = line.state.tags.get(name)
    snapshot = None if tag is None else LineSnapshots.of(line).get(tag.snapshot_id)
    if tag is None or snapshot is None:
        return None
    return TagFile(snapshot, tag.create_time_millis, tag.time_retained_millis)


def create_tag(catalog: PaimonCatalog, call: Call) -> Reply:
    """Tag a snapshot, by default the newest one.

    Where the request gives no retention, the table's default is that of the tag.
    """
    document: Any = document_of(call)
    wanted = read(document, CreateTagRequest)
    line = open_line(catalog, call)
    asked, option = wanted.time_retained, line.state.schema.options.get(_DEFAULT_RETENTION)
    retained = (
        parse_duration(asked, "timeRetained")
        if asked is not None
        else None
        if option is None
        else parse_duration(option, f"option {_DEFAULT_RETENTION}")
    )
    options = commit_options(catalog, call, "createTag")
    try:
        with missing_as_table(line.identifier):
            _create_tag(line, wanted, retained, options)
    except AlreadyExistsError as error:
        if document.get(_IGNORE) is not True:
            raise already_exists(TAG, wanted.tag_name, str(error)) from error
    except NotFoundError as error:
        version = LATEST if wanted.snapshot_id is None else wanted.snapshot_id
        raise no_such_snapshot(version, line.identifier) from error
    return EMPTY


def _create_tag(
    line: Line, wanted: CreateTagRequest, retained: int | None, options: CommitOptions
) -> None:
    table, name, snapshot_id = line.table, wanted.tag_name, wanted.snapshot_id
    if line.branch is None and native_changes.is_native(line.whole):
        native_changes.create_tag(
            table, name, snapshot_id=snapshot_id, time_retained_millis=retained, **options
        )
        return
    create_served_tag(
        table,
        name,
        snapshot_id=snapshot_id,
        time_retained_millis=retained,
        branch=line.branch,
        **options,
    )


def delete_tag(catalog: PaimonCatalog, call: Call) -> Reply:
    """Delete a tag; its snapshot stays unless it expired."""
    line = open_line(catalog, call)
    name = call.values["tag"]
    options = commit_options(catalog, call, "deleteTag")
    try:
        with missing_as_table(line.identifier):
            if line.branch is None and native_changes.is_native(line.whole):
                native_changes.delete_tag(line.table, name, **options)
            else:
                delete_served_tag(line.table, name, branch=line.branch, **options)
    except NotFoundError as error:
        raise no_such_tag(name, line.identifier) from error
    return EMPTY


_TAGS: Final = "/v1/{prefix}/databases/{database}/tables/{table}/tags"

ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("GET", _TAGS, list_tags),
    Endpoint("POST", _TAGS, create_tag, "write"),
    Endpoint("GET", f"{_TAGS}/{{tag}}", load_tag),
    Endpoint("DELETE", f"{_TAGS}/{{tag}}", delete_tag, "write"),
)
