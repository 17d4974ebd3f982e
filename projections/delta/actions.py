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
"""Who commits say that they are by."""

COMMIT_INFO = "source.commit-info"
"""The property of a transaction of others that keeps who did it and why, as its source says."""

_ENCODER = msgspec.json.Encoder()
_LITERAL = "/=@!$&'()*,;~"
"""What a URI's path may hold beside letters and digits; a colon would be taken for a scheme's."""


class Add(msgspec.Struct, frozen=True, rename="camel"):
    """A file that is in the table from a version on; times are Unix milliseconds."""

    path: str
    partition_values: dict[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None


class Remove(msgspec.Struct, frozen=True, rename="camel"):
    """A file that is no longer in the table from a version on."""

    path: str
    deletion_timestamp: int
    data_change: bool
    extended_file_metadata: bool
    partition_values: dict[str, str | None]
    size: int


class Txn(msgspec.Struct, frozen=True, rename="camel"):
    """How far a writer with keys of its own has come."""

    app_id: str
    version: int
    last_updated: int


class _Line(msgspec.Struct, rename="camel"):
    """One line of a commit file, with what reconciliation asks of it."""

    add: Add | None = None
    remove: Remove | None = None
    txn: Txn | None = None
    protocol: msgspec.Raw = msgspec.Raw()
    meta_data: msgspec.Raw = msgspec.Raw()
    commit_info: msgspec.Raw = msgspec.Raw()


class _CommitInfo(msgspec.Struct, rename="camel"):
    in_commit_timestamp: int
    engine_info: str = ""


_DECODER = msgspec.json.Decoder(_Line)
_INFO_DECODER = msgspec.json.Decoder(_CommitInfo)


def file_uri(path: str, below: str = "") -> str:
    """Return a data file's path as actions write it: a URI, relative to the table where it can be.

    A place on this machine has no scheme, which DuckDB takes for a folder's name.

    Args:
        path: As the log has it.
        below: The URL that relative paths are below; empty for where the actions are.

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


def data_below(table: TableHandle) -> str:
    """Return what `file_uri` takes: empty where a table's data files lie beside its log."""
    return "" if table.data_location == table.location else table.data_location


def line(kind: str, action: Any) -> bytes:
    """Return one action as a line of a commit file."""
    return _ENCODER.encode({kind: action}) + b"\n"


def txn_line(app_id: str, version: int, millis: int) -> bytes:
    """Return the line that says how far a writer with keys of its own has come."""
    return line("txn", {"appId": app_id, "version": version, "lastUpdated": millis})


def commit_millis(body: bytes) -> int:
    """Return the in-commit timestamp of a commit file of this ledger's."""
    info = _DECODER.decode(body.partition(b"\n")[0]).commit_info
    if not bytes(info):
        raise ValueError("the first line is no commitInfo")
    return _INFO_DECODER.decode(info).in_commit_timestamp


@define
class Reconciled:
    """What a prefix of a Delta log adds up to.

    Attributes:
        adds: The live files by path.
        removes: Files that are gone, and that somebody may still read, by path.
        txns: The newest of each writer.
        protocol: The newest, as JSON.
        metadata: The newest, as JSON.
    """

    adds: dict[str, Add] = Factory(dict)
    removes: dict[str, Remove] = Factory(dict)
    txns: dict[str, Txn] = Factory(dict)
    protocol: bytes = b""
    metadata: bytes = b""

    def apply(self, body: bytes) -> None:
        """Take in the next commit file.

        Raises:
            msgspec.DecodeError: It is none.
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

    def forget_removed(self, until_millis: int) -> None:
        """Forget files that were removed by then: nothing that can be read holds them."""
        gone = [
            each.path for each in self.removes.values() if each.deletion_timestamp <= until_millis
        ]
        for path in gone:
            del self.removes[path]

    @property
    def size(self) -> int:
        """How many actions a checkpoint of it has."""
        return 2 + len(self.adds) + len(self.removes) + len(self.txns)


def by_path(found: Iterable[Any]) -> Iterator[Any]:
    """Yield file actions in the order in which checkpoints list them."""
    return iter(sorted(found, key=lambda each: str(each.path)))


def is_own(body: bytes) -> bool:
    """Whether a commit file is one that a ledger projected."""
    try:
        info = _DECODER.decode(body.partition(b"\n")[0]).commit_info
        return _INFO_DECODER.decode(info).engine_info == ENGINE
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


FOLDER = "_delta_log"
"""The folder whose files the ledger projects."""

HINT = f"{FOLDER}/_last_checkpoint"
"""The hint that names the newest checkpoint."""

_VERSION = re.compile(rf"{FOLDER}/(\d{{20}})(\.json|\.checkpoint\.parquet)", re.ASCII)
_CHECKPOINT = ".checkpoint.parquet"


def commit_path(version: int) -> str:
    """Return where a version's commit is, below the table's location.

    >>> commit_path(7)
    '_delta_log/00000000000000000007.json'
    """
    return f"{FOLDER}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    """Return where a version's checkpoint is, if it has one."""
    return f"{FOLDER}/{version:020d}{_CHECKPOINT}"


def version_of(path: str) -> int | None:
    """Return the version that a commit or checkpoint is of; None for any other file."""
    found = _VERSION.fullmatch(path)
    return int(found[1]) if found else None


def is_checkpoint(path: str) -> bool:
    """Whether a path is a checkpoint's."""
    return version_of(path) is not None and path.endswith(_CHECKPOINT)


RENDERER = 2
"""Counts the ways of making files from one log; it grows when any byte of them changes."""


@frozen
class Checkpointed:
    """Where the newest regular checkpoint is, and what came since.

    Attributes:
        version: Delta's; -1 before the first.
        size: How many actions it has.
        weight: How many versions and file actions came after it.
    """

    version: int = -1
    size: int = 0
    weight: int = 0

    def due(self, version: int, interval: int) -> bool:
        """Return whether a version has a checkpoint of its own.

        A checkpoint costs its size, so that larger ones are further apart: what they cost stays in
        proportion to what is written.
        """
        return version - max(self.version, 0) >= interval and 100 * self.weight >= self.size


@frozen
class DeltaPosition:
    """Where a projection stands.

    Attributes:
        version: The last ledger commit applied; -1 before the first.
        commit: The digest of that commit.
        delta_version: The newest version of the Delta table; -1 before the first.
        timestamp: Its in-commit timestamp, Unix milliseconds.
        oldest: The first version whose commit still stands.
        protocol: What its protocol says, as JSON.
        metadata: What its metadata says, as JSON.
        features: The table features that were ever needed.
        schema_id: Of the ledger's schema that the metadata is of; -1 before the first.
        type_changes: What types were before, by field id.
        live: How many live files use the names of a schema, by its id.
        snapshots: Pairs of a snapshot and its version, where snapshots since count on together.
        checkpoint: The newest regular one.
        hint: What the hint says; empty without a checkpoint.
        unlisted: The snapshots from which on the answer is another one to whether there are live
            files that only an engine's manifests list.
        unsaid: Why Delta cannot say live files, by path.
        corrections: How many corrections of clocks the timestamps go by.
        renderer: Whose files they are.
        garbage: Files that nothing names any more and that are still to be taken away.
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
    live: dict[int, int] = field(factory=dict, hash=False)
    snapshots: tuple[tuple[int, int], ...] = ()
    checkpoint: Checkpointed = Checkpointed()
    hint: str = ""
    unlisted: tuple[int, ...] = ()
    unsaid: dict[str, str] = field(factory=dict, hash=False)
    corrections: int = 0
    renderer: int = RENDERER
    garbage: tuple[str, ...] = ()
    leaving_since: int = 0

    def with_pending_deletes(self, garbage: tuple[str, ...], since: int) -> DeltaPosition:
        """Return this position with other garbage and another time since when files leave."""
        return evolve(self, garbage=garbage, leaving_since=since)


FILE = PositionFile("delta", DeltaPosition())
