"""Actions of a Delta log, its file names, and the position of the projection.

Live and removed files are in the log itself, in its newest checkpoint and the commits since; the
position does not repeat them.

Source: the Delta transaction protocol, "Actions" and "Action Reconciliation".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

import msgspec
from attrs import Factory, define, evolve, field, frozen

from ledger.locations import LOCAL, is_absolute, place_of
from ledger.table_handle import TableHandle
from projections.outputs import PositionFile

ENGINE = "lakeledger"
"""Engine name that the ledger's commits give in `engineInfo`."""

COMMIT_INFO = "source.commit-info"
"""Table property with the author and message of an imported transaction."""

_ENCODER = msgspec.json.Encoder()
_LITERAL = "/=@!$&'()*,;~"
"""Characters besides letters and digits kept unquoted in a URI; a colon would end a scheme."""


class Add(msgspec.Struct, frozen=True, rename="camel"):
    """An `add` action: a live file from a version on; times are Unix milliseconds."""

    path: str
    partition_values: dict[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None


class Remove(msgspec.Struct, frozen=True, rename="camel"):
    """A `remove` action: a file that is no longer in the table from a version on."""

    path: str
    deletion_timestamp: int
    data_change: bool
    extended_file_metadata: bool
    partition_values: dict[str, str | None]
    size: int


class Txn(msgspec.Struct, frozen=True, rename="camel"):
    """A `txn` action: the last transaction version of one application."""

    app_id: str
    version: int
    last_updated: int


class _CommitLine(msgspec.Struct, rename="camel"):
    """One line of a commit file, with the fields that reconciliation needs."""

    add: Add | None = None
    remove: Remove | None = None
    txn: Txn | None = None
    protocol: msgspec.Raw = msgspec.Raw()
    meta_data: msgspec.Raw = msgspec.Raw()
    commit_info: msgspec.Raw = msgspec.Raw()


class _CommitInfo(msgspec.Struct, rename="camel"):
    in_commit_timestamp: int
    engine_info: str = ""


_DECODER = msgspec.json.Decoder(_CommitLine)
_INFO_DECODER = msgspec.json.Decoder(_CommitInfo)


def file_uri(path: str, below: str = "") -> str:
    """Return a data file's path as actions write it: a URI, relative to the table if possible.

    A local path gets no scheme: DuckDB takes a scheme for a folder's name.

    Args:
        path: The path in the ledger's log.
        below: The URL that relative paths start from; empty for the table's own location.

    Example:
        >>> file_uri("day=2024-01-01/a b%20.parquet"), file_uri("/lake/a:b")
        ('day=2024-01-01/a%20b%2520.parquet', '/lake/a%3Ab')
    """
    if not is_absolute(path):
        if not below:
            return quote(path, safe=_LITERAL)
        path = f"{below}/{path}"
    place = place_of(path)
    if place.family == LOCAL:
        return quote(f"/{place.path}", safe=_LITERAL)
    scheme, colon, rest = path.partition(":")
    if not rest.startswith("//"):
        rest = f"//{rest}"
    return f"{scheme}{colon}{quote(rest, safe=_LITERAL)}"


def data_root_url(table: TableHandle) -> str:
    """Return the `below` of `file_uri`: empty if a table's data files are next to its log."""
    return "" if table.data_location == table.location else table.data_location


def action_line(kind: str, action: Any) -> bytes:
    """Return one action as a line of a commit file."""
    return _ENCODER.encode({kind: action}) + b"\n"


def txn_line(app_id: str, version: int, millis: int) -> bytes:
    """Return the `txn` line with an application's last transaction version."""
    return action_line("txn", {"appId": app_id, "version": version, "lastUpdated": millis})


def commit_millis(body: bytes) -> int:
    """Return the in-commit timestamp of a commit file written by the ledger."""
    info = _DECODER.decode(body.partition(b"\n")[0]).commit_info
    if not bytes(info):
        raise ValueError("the first line is not a commitInfo action")
    return _INFO_DECODER.decode(info).in_commit_timestamp


@define
class Reconciled:
    """State of a Delta log after action reconciliation.

    Attributes:
        adds: The live files by path.
        removes: Tombstones of removed files that readers may still need, by path.
        txns: The last transaction version of each application.
        protocol: The newest protocol action, as JSON.
        metadata: The newest metaData action, as JSON.
    """

    adds: dict[str, Add] = Factory(dict)
    removes: dict[str, Remove] = Factory(dict)
    txns: dict[str, Txn] = Factory(dict)
    protocol: bytes = b""
    metadata: bytes = b""

    def apply(self, body: bytes) -> None:
        """Apply the next commit file.

        Raises:
            msgspec.DecodeError: The bytes are not a commit file.
        """
        for text in body.splitlines():
            found = _DECODER.decode(text)
            if found.add is not None:
                self.removes.pop(found.add.path, None)
                self.adds[found.add.path] = found.add
            elif found.remove is not None:
                self.adds.pop(found.remove.path, None)
                self.removes[found.remove.path] = found.remove
            elif found.txn is not None:
                self.txns[found.txn.app_id] = found.txn
            elif bytes(found.protocol):
                self.protocol = bytes(found.protocol)
            elif bytes(found.meta_data):
                self.metadata = bytes(found.meta_data)

    def drop_tombstones(self, until_millis: int) -> None:
        """Drop the tombstones of files removed up to a time: no readable version has them."""
        gone = [
            each.path for each in self.removes.values() if each.deletion_timestamp <= until_millis
        ]
        for path in gone:
            del self.removes[path]

    @property
    def size(self) -> int:
        """Number of actions in a checkpoint of this state."""
        return 2 + len(self.adds) + len(self.removes) + len(self.txns)


def sorted_by_path(found: Iterable[Any]) -> Iterator[Any]:
    """Yield file actions in the order in which checkpoints list them."""
    return iter(sorted(found, key=lambda each: str(each.path)))


def is_ledger_commit(body: bytes) -> bool:
    """Return whether a commit file was projected by a ledger."""
    try:
        info = _DECODER.decode(body.partition(b"\n")[0]).commit_info
        return _INFO_DECODER.decode(info).engine_info == ENGINE
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


FOLDER = "_delta_log"
"""The folder with the Delta log."""

HINT = f"{FOLDER}/_last_checkpoint"
"""The `_last_checkpoint` file, which names the newest checkpoint."""

_VERSION = re.compile(rf"{FOLDER}/(\d{{20}})(\.json|\.checkpoint\.parquet)", re.ASCII)
_CHECKPOINT = ".checkpoint.parquet"


def commit_path(version: int) -> str:
    """Return the path of a version's commit, relative to the table's location.

    >>> commit_path(7)
    '_delta_log/00000000000000000007.json'
    """
    return f"{FOLDER}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    """Return the path of a version's checkpoint, or None if it has none."""
    return f"{FOLDER}/{version:020d}{_CHECKPOINT}"


def version_of(path: str) -> int | None:
    """Return the version of a commit or checkpoint file; None for any other file."""
    found = _VERSION.fullmatch(path)
    return int(found[1]) if found else None


def is_checkpoint(path: str) -> bool:
    """Return whether a path is that of a checkpoint."""
    return version_of(path) is not None and path.endswith(_CHECKPOINT)


RENDERER = 4
"""Version of the renderer; it is raised when any byte of the projected files changes."""


@frozen
class LastCheckpoint:
    """The newest regular checkpoint, and the number of changes since.

    Attributes:
        version: The Delta version; -1 before the first checkpoint.
        size: The number of its actions.
        weight: The number of versions and file actions after it.
    """

    version: int = -1
    size: int = 0
    weight: int = 0

    def is_checkpoint_due(self, version: int, interval: int) -> bool:
        """Return whether a version has a checkpoint of its own.

        A checkpoint costs its size, so larger ones are further apart: their cost stays
        proportional to the amount written.
        """
        return version - max(self.version, 0) >= interval and 100 * self.weight >= self.size


@frozen
class DeltaPosition:
    """Position of the Delta projection of one table.

    Attributes:
        version: The last ledger commit applied; -1 before the first.
        commit: The digest of that commit.
        delta_version: The newest version of the Delta table; -1 before the first.
        timestamp: Its in-commit timestamp, Unix milliseconds.
        oldest: The oldest version whose commit file exists.
        protocol: The newest protocol action, as JSON.
        metadata: The newest metaData action, as JSON.
        features: The table features that were ever needed.
        schema_id: The ledger schema of the metadata; -1 before the first.
        type_changes: The type changes so far, by field id.
        live: The number of live files by the column names in them, as `FileNaming.text`.
        snapshots: Pairs of a snapshot and its version; later ids and versions increase together.
        checkpoint: The newest regular checkpoint.
        hint: The content of `_last_checkpoint`; empty without a checkpoint.
        unlisted: The snapshot ids at which it changes whether there are live files that only an
            engine's manifests list.
        unsaid: Live files that Delta cannot express, by path, with the reason.
        corrections: The number of clock corrections applied to the timestamps.
        renderer: The version of the renderer that wrote the files.
        garbage: Unreferenced files that are still to be deleted.
        leaving_since: See `projections.outputs.FilesPosition`.
    """

    version: int = -1
    commit: str = ""
    delta_version: int = -1
    timestamp: int = -1
    oldest: int = 0
    protocol: str = ""
    metadata: str = ""
    features: tuple[str, ...] = ()
    schema_id: int = -1
    type_changes: dict[int, tuple[dict[str, str], ...]] = field(factory=dict, hash=False)
    live: dict[str, int] = field(factory=dict, hash=False)
    snapshots: tuple[tuple[int, int], ...] = ()
    checkpoint: LastCheckpoint = LastCheckpoint()
    hint: str = ""
    unlisted: tuple[int, ...] = ()
    unsaid: dict[str, str] = field(factory=dict, hash=False)
    corrections: int = 0
    renderer: int = RENDERER
    garbage: tuple[str, ...] = ()
    leaving_since: int = 0

    def with_pending_deletes(self, garbage: tuple[str, ...], since: int) -> DeltaPosition:
        """Return this position with other garbage and another `leaving_since`."""
        return evolve(self, garbage=garbage, leaving_since=since)


FILE = PositionFile("delta", DeltaPosition())
