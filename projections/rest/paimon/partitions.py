"""Partitions of tables: list, list by names or by a filter, create, drop, mark as done.

Pages are in descending order of names. Their cost does not depend on the number of partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from ledger.model.errors import NotFoundError, UnsupportedError
from ledger.model.messages import excerpt
from projections.dlf.objects import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    DropPartitionsRequest,
    DropPartitionsResponse,
    ListPartitionsByFilterRequest,
    ListPartitionsByNamesRequest,
    ListPartitionsResponse,
    MarkDonePartitionsRequest,
    Partition,
)
from projections.paimon.partition_changes import SpecReader
from projections.paimon.partitions import PartitionIndex, PartitionSums
from projections.paimon.served_partitions import (
    PartitionExistsError,
    PartitionMissingError,
    create_partitions,
    drop_partitions,
    mark_done_partitions,
    read_partitions,
)
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import PARTITION, already_exists, not_found
from projections.rest.paimon.lines import Line, missing_as_table, open_line
from projections.rest.paimon.paging import (
    DEFAULT_RESULTS,
    MOST_RESULTS,
    literal_parts,
    most_results,
)
from projections.rest.paimon.partition_filter import partition_test
from projections.rest.paimon.requests import EMPTY, commit_options, decode, reply
from projections.rest.requests import Call, Endpoint, Reply, RequestError

UNKNOWN: Final = -1
"""Count that was never reported, which is not zero."""

_LONG: Final = 2**63 - 1

_Page = tuple[tuple[PartitionSums, ...], str | None]
"""The partitions of a page, and the token of the next one."""

Select = Callable[[PartitionIndex, str | None], Iterator[PartitionSums]]
"""Yields the partitions that a pattern means, in descending order, before a name."""


def list_partitions(catalog: PaimonCatalog, call: Call) -> Reply:
    """List a page of the partitions of a table or branch."""
    line = open_line(catalog, call)
    select = _selection(call.query.get("partitionNamePattern"))
    most, token = most_results(call), call.query.get("pageToken") or None
    if not line.state.schema.partition_keys:
        return _reply_page((), None)
    return _reply_page(*_read(line, lambda index: _page(select(index, token), most)))


def list_by_filter(catalog: PaimonCatalog, call: Call) -> Reply:
    """List a page of the partitions that a predicate does not certainly reject."""
    wanted = decode(call, ListPartitionsByFilterRequest)
    line = open_line(catalog, call)
    if not wanted.filter:
        raise RequestError(400, "filter is required; send a predicate as JSON text")
    test = partition_test(wanted.filter, line.state.schema)
    select = _selection(wanted.partition_name_pattern)
    asked = wanted.max_results or 0
    most = min(asked, MOST_RESULTS) if asked > 0 else DEFAULT_RESULTS
    token = wanted.page_token or None

    def read(index: PartitionIndex) -> _Page:
        return _page((each for each in select(index, token) if test(each.spec)), most)

    return _reply_page(*_read(line, read))


def list_by_names(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the partitions of some specs; those that do not exist are left out."""
    wanted = decode(call, ListPartitionsByNamesRequest)
    line = open_line(catalog, call)
    reader = SpecReader.of(line.state.schema)
    specs = [reader.read(each) for each in wanted.specs]

    def read(index: PartitionIndex) -> _Page:
        found = {tuple(each.values()): index.get(each) for each in specs}
        known = [each for each in found.values() if each is not None]
        return tuple(sorted(known, key=lambda each: each.name, reverse=True)), None

    return _reply_page(*_read(line, read))


def create(catalog: PaimonCatalog, call: Call) -> Reply:
    """Create partitions before they hold a file."""
    wanted = decode(call, CreatePartitionsRequest)
    line = open_line(catalog, call)
    options = commit_options(catalog, call, "createPartitions")
    try:
        with _counting(line):
            done = create_partitions(
                line.table,
                wanted.partition_specs,
                on_existing="ignore" if wanted.ignore_if_exists else "raise",
                statistics=wanted.partition_statistics or (),
                reported="REPLACE" if wanted.replace_statistics else "ADD",
                branch=line.branch,
                **options,
            )
    except PartitionExistsError as error:
        raise already_exists(PARTITION, error.partition, str(error)) from error
    return reply(CreatePartitionsResponse(created=done.changed, existed=done.unchanged))


def drop(catalog: PaimonCatalog, call: Call) -> Reply:
    """Drop partitions from the list; the client deletes their files."""
    wanted = decode(call, DropPartitionsRequest)
    line = open_line(catalog, call)
    options = commit_options(catalog, call, "dropPartitions")
    try:
        with _counting(line):
            done = drop_partitions(
                line.table,
                wanted.partition_specs,
                on_missing="ignore" if wanted.ignore_if_not_exists else "raise",
                branch=line.branch,
                **options,
            )
    except PartitionMissingError as error:
        raise not_found(PARTITION, error.partition, str(error)) from error
    return reply(DropPartitionsResponse(dropped=done.changed, missing=done.unchanged))


def mark_done(catalog: PaimonCatalog, call: Call) -> Reply:
    """Mark partitions as complete."""
    wanted = decode(call, MarkDonePartitionsRequest)
    line = open_line(catalog, call)
    options = commit_options(catalog, call, "markDonePartitions")
    with _counting(line):
        mark_done_partitions(line.table, wanted.specs, branch=line.branch, **options)
    return EMPTY


def _selection(pattern: str | None) -> Select:
    """Return the partitions that a name pattern selects: `%` at the end is any text.

    Raises:
        RequestError: The pattern is too long, or has `%` elsewhere, where Paimon has none.
    """
    if not pattern:
        return lambda index, before: index.descending(before=before)
    prefix, *rest = literal_parts(pattern, "partitionNamePattern")
    if any(rest):
        raise RequestError(
            400,
            f"partitionNamePattern {excerpt(pattern)} has text after %; only a prefix can be "
            "matched, such as dt=2025%",
        )
    if rest:
        return lambda index, before: index.descending(prefix, before)
    return lambda index, before: (
        each for each in index.named(prefix) if before is None or each.name < before
    )


@contextmanager
def _counting(line: Line) -> Iterator[None]:
    """Report a missing file of the table's engine as a table that cannot be counted.

    Raises:
        RequestError: The table was dropped, or its branch does not exist.
        UnsupportedError: A manifest is missing; nothing was changed. Clients take 404 for a missing
            table, and the server is not at fault.
    """
    try:
        with missing_as_table(line.identifier):
            yield
    except PartitionMissingError:
        raise
    except NotFoundError as error:
        raise UnsupportedError(
            f"the partitions of {line.identifier} cannot be counted: {error}"
        ) from error


def _read(line: Line, read: Callable[[PartitionIndex], _Page]) -> _Page:
    """Return what a function reads of a line's partitions; nothing of a table without keys.

    The index has the rows of such a table in one partition, which pypaimon does not expect.
    """
    with _counting(line):
        found = read_partitions(line.table, read, branch=line.branch)
    return found if line.state.schema.partition_keys else ((), None)


def _page(found: Iterator[PartitionSums], most: int) -> _Page:
    """Return a page, and the name of its last partition if there are more.

    Partitions of one name are on one page, since the name is the token.
    """
    page = list(islice(found, most))
    for each in found:
        if each.name != page[-1].name:
            return tuple(page), page[-1].name
        page.append(each)
    return tuple(page), None


def _reply_page(found: Iterable[PartitionSums], token: str | None) -> Reply:
    partitions = tuple(map(_partition, found))
    return reply(ListPartitionsResponse(partitions=partitions, next_page_token=token))


def _partition(sums: PartitionSums) -> Partition:
    return Partition(
        spec=sums.spec,
        record_count=_count(sums.records),
        file_size_in_bytes=_count(sums.size_in_bytes),
        file_count=_count(sums.files),
        last_file_creation_time=_count(sums.last_file_creation_time),
        total_buckets=_count(sums.total_buckets),
        done=sums.is_done,
    )


def _count(count: int | None) -> int:
    return UNKNOWN if count is None else max(-_LONG, min(count, _LONG))


_ALL: Final = "/v1/{prefix}/databases/{database}/tables/{table}/partitions"

ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("GET", _ALL, list_partitions),
    Endpoint("POST", _ALL, create, "write"),
    Endpoint("POST", f"{_ALL}/drop", drop, "write"),
    Endpoint("POST", f"{_ALL}/mark", mark_done, "write"),
    Endpoint("POST", f"{_ALL}/list-by-names", list_by_names),
    Endpoint("POST", f"{_ALL}/list-by-filter", list_by_filter),
)
