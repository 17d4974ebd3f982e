"""What of a table is tied to a place: whatever names files by whole URLs.

Found elsewhere, a table with nothing of that kind is as good as where it was. Position deletes,
manifests of engines and paths that lead to the other place are read as nothing, or as missing
files; projected files lead their readers there; and a table outside of its ledger's folder is one
that another ledger may write to, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec
from attrs import frozen
from msgspec import UnsetType

from ledger.events import TableEvent
from ledger.evolution.state import TableState
from ledger.files.change_table import from_table
from ledger.files.deletes import lost_names, named_files, names_files
from ledger.files.live import LiveFiles
from ledger.files.live_tables import change_tables, live_tables
from ledger.locations import is_absolute, place_of
from ledger.log.stream_log import StreamLog
from ledger.model.errors import InvalidChangeError
from ledger.model.file_change import FileChange
from ledger.model.identifier import Identifier

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal[
    "projection",
    "external",
    "position-deletes",
    "deletion-vectors",
    "paths",
    "equality-deletes",
    "manifests",
]

_TELLING: Final = ("kind", "path", "content")
_MAY_BE_ABSOLUTE: Final = "^/|://|^[Ff][Ii][Ll][Ee]:"
"""Every text that `is_absolute` takes has this."""

CARRIED: Final[frozenset[Kind]] = frozenset({"projection", "external"})
"""What goes along: projections are made anew, and what lies outside stays where it is."""

REWRITTEN: Final[frozenset[Kind]] = frozenset({"position-deletes", "paths"})
"""What can be written anew for another place."""


class Tied(Protocol):
    """What is asked of a table's handle."""

    identifier: Identifier
    path: str
    log: StreamLog[TableState, TableEvent]
    live: LiveFiles

    @property
    def location(self) -> str:
        """The URL that its files are named by."""

    @property
    def state(self) -> TableState:
        """The newest state."""

    def read_file(self, path: str) -> bytes | None:
        """Return a file of the table's, by the path that the log has; None where it is gone."""


@frozen
class Tie:
    """Something of a table that names another place.

    Attributes:
        table: Its name.
        kind: What it is.
        what: It, and what it names, as a phrase.
        place: The place that it names.
        format: Of projected files, the format's name.
    """

    table: str
    kind: Kind
    what: str
    place: str
    format: str = ""

    def __str__(self) -> str:
        return f"{self.table}: {self.what}"


def ties_of(table: Tied, roots: Sequence[str]) -> Iterator[Tie]:
    """Yield what ties a table to places where its ledger was.

    Args:
        table: The table, where it was found.
        roots: URLs of ledgers' roots that lead elsewhere.
    """
    name = str(table.identifier)
    yield from _projections(table)
    if is_absolute(table.path):
        yield Tie(name, "external", f"it lies outside, at {table.path}", table.path)
    state = table.state
    folder = state.origin.manifest_folder
    if folder:
        yield from _manifests(name, folder, roots)
        return
    if state.last_snapshot_id:
        yield from _files(table, _telling(table, state), roots)


def _telling(table: Tied, state: TableState) -> list[FileChange]:
    """Return the live files that may be a tie: of a million, most tables have none.

    Of the others no file becomes an object, and where there are none but others, only the columns
    that say so are read.
    """
    few = live_tables(change_tables(table.log, state, _TELLING))
    if not any(len(each) for each in map(_that_tell, few)):
        return []
    whole = [*map(_that_tell, live_tables(change_tables(table.log, state)))]
    return [file for rows in reversed(whole) for file in from_table(rows)]


def _that_tell(rows: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    is_named = pc.match_substring_regex(rows["path"], _MAY_BE_ABSOLUTE)
    return rows.filter(pc.or_(is_named, pc.not_equal(rows["content"], "data")))


def _projections(table: Tied) -> Iterator[Tie]:
    name = str(table.identifier)
    for format_name, position in projections_of(table):
        if position.location != table.location:
            what = f"its {format_name} files lead to {position.location}"
            yield Tie(name, "projection", what, position.location, format_name)


def unfinished(table: Tied) -> Iterator[Tie]:
    """Yield the projections that a move to the table's location has not finished rendering.

    Args:
        table: A table of a ledger that is where it is said to be.
    """
    yield from _projections(table)
    name = str(table.identifier)
    for format_name, position in projections_of(table):
        if position.location == table.location and position.garbage:
            what = f"old {format_name} files of it are not removed yet"
            yield Tie(name, "projection", what, position.location, format_name)


class Rendered(msgspec.Struct):
    """The part of a projection's position that every format keeps alike.

    Attributes:
        location: The table's URL when the files were rendered; they name it.
        garbage: Files that the last run replaced and has not removed yet.
    """

    location: str = ""
    garbage: tuple[str, ...] = ()


class _PositionFile(msgspec.Struct):
    position: Rendered


def projections_of(table: Tied) -> Iterator[tuple[str, Rendered]]:
    """Yield the formats whose files are projected for a location, and the position of each."""
    folder = f"{table.log.layout.root}/projections/"
    for key in table.log.store.keys(folder):
        body = table.log.store.read(key) if key.endswith(".json") else None
        position = Rendered() if body is None else _position(body)
        if position.location:
            yield key.removeprefix(folder).removesuffix(".json"), position


def _position(body: bytes) -> Rendered:
    try:
        return msgspec.json.decode(body, type=_PositionFile).position
    except (msgspec.DecodeError, ValueError):
        return Rendered()


def _manifests(name: str, place: str, roots: Sequence[str]) -> Iterator[Tie]:
    if root_of(place, roots) is not None:
        yield Tie(
            name, "manifests", f"its manifests are those of the table at {place}, by URLs", place
        )


def _files(table: Tied, live: Sequence[FileChange], roots: Sequence[str]) -> Iterator[Tie]:
    name = str(table.identifier)
    deletes = next((each.path for each in live if each.content == "equality-deletes"), None)
    for each in live:
        if each.is_vector:
            yield from _vector(name, each, roots)
        elif root_of(each.path, roots) is not None:
            what = f"its file {each.path} is named by a whole URL"
            if deletes is None:
                yield Tie(name, "paths", what, each.path)
            else:
                # They apply to what is older; under another name a file would be newer.
                more = f", and the equality deletes {deletes} would not apply to it by another name"
                yield Tie(name, "equality-deletes", what + more, each.path)
        if names_files(each):
            body = table.read_file(each.path)
            lost = (
                lost_names(table, named_files(body, each.path)) if body is not None else [each.path]
            )
            if lost:
                yield Tie(
                    name,
                    "position-deletes",
                    f"its position deletes {each.path} name {lost[0]}",
                    each.path,
                )


def _vector(name: str, file: FileChange, roots: Sequence[str]) -> Iterator[Tie]:
    referenced = file.referenced_data_file
    for each in (file.path, "" if isinstance(referenced, UnsetType) else referenced):
        if root_of(each, roots) is not None:
            # It is of that file: one by another name would be another, and have none.
            what = f"its deletion vector {file.path} is named, or names its file, by a whole URL"
            yield Tie(name, "deletion-vectors", what, file.path)
            return


def root_of(place: str, roots: Sequence[str]) -> str | None:
    """Return the root that a place lies in, where a whole URL says so; None where it does not."""
    if not is_absolute(place):
        return None
    return next((each for each in roots if place_of(each).holds(place_of(place))), None)


def untold(table: Tied, place: str, roots: Sequence[str]) -> InvalidChangeError | None:
    """Return why nothing may be committed to a table yet that was found elsewhere; None if it may.

    Args:
        table: The table, where it was found.
        place: Where its ledger is said to be; empty where nobody said, so that only files that were
            projected elsewhere show that it was.
        roots: URLs of its ledger's roots that lead elsewhere.
    """
    found = list(ties_of(table, roots)) if place else list(_projections(table))
    if not found:
        return None
    was = place or found[0].place
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return InvalidChangeError(
        f"table {table.identifier} was found at {table.location}, and its ledger was at {was}; "
        f"{found[0].what}{more}. It can be read; before it is written, say what happened: "
        "lakeledger move where the ledger was moved here, move --alias where this leads to the "
        "same storage, move --copy where the other one goes on. lakeledger doctor tells what can "
        "be known; nothing was written",
        kind="FOUND_ELSEWHERE",
    )
