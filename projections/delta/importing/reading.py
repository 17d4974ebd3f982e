"""Actions of any writer's log, as commit files and checkpoints of every kind hold them.

Source: the Delta transaction protocol, "Actions" and "Checkpoints".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ledger.files.change_table import arrow_owned
from ledger.model.errors import InvalidInputError
from ledger.model.types import INT_MAX, LONG_MAX

_KINDS = ("protocol", "metaData", "txn", "add", "remove", "sidecar")


class Added(msgspec.Struct, frozen=True, rename="camel"):
    """A file that is in the table; `modification_time` in Unix milliseconds."""

    path: str
    partition_values: dict[str, str | None] = {}
    size: int = 0
    modification_time: int = 0
    data_change: bool = True
    stats: str | None = None
    deletion_vector: Any = None


class Removed(msgspec.Struct, frozen=True, rename="camel"):
    """A file that is no longer in the table."""

    path: str
    data_change: bool = True


_ProtocolVersion = Annotated[int, Meta(ge=0, le=INT_MAX)]


class Protocol(msgspec.Struct, frozen=True, rename="camel"):
    """What readers and writers have to know."""

    min_reader_version: _ProtocolVersion
    min_writer_version: _ProtocolVersion
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


class _Format(msgspec.Struct, frozen=True):
    provider: str = ""
    options: dict[str, str] = {}


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What the table is; whoever projects it hands on all of this."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: dict[str, str] = {}
    created_time: Annotated[int, Meta(ge=-LONG_MAX - 1, le=LONG_MAX)] | None = None
    description: str | None = None
    name: str | None = None
    format: _Format | None = None


class _Txn(msgspec.Struct, frozen=True, rename="camel"):
    app_id: str
    version: int


class _Sidecar(msgspec.Struct, frozen=True, rename="camel"):
    path: str


class _Line(msgspec.Struct, rename="camel"):
    add: Added | None = None
    remove: Removed | None = None
    txn: _Txn | None = None
    protocol: msgspec.Raw = msgspec.Raw()
    meta_data: msgspec.Raw = msgspec.Raw()
    commit_info: msgspec.Raw = msgspec.Raw()
    sidecar: _Sidecar | None = None


_NO_ACTION = (AttributeError, TypeError, ValueError, RecursionError)
"""Errors of cells of other types than an action has."""

_LINE = msgspec.json.Decoder(_Line)
_ENCODER = msgspec.json.Encoder()


class Actions:
    """What one commit does, or one checkpoint adds up to.

    Attributes:
        added: Files by the path that the log has.
        removed: The same of files that go.
        txns: The version of each writer with keys of its own.
        protocol: As JSON; empty where it is not said.
        metadata: The same.
        commit_info: Who and why, as JSON; empty where it is not said.
        info: The same, decoded; empty, too, where it is no object.
        sidecars: Files that hold more of a checkpoint.
    """

    def __init__(self) -> None:
        self.added: dict[str, Added] = {}
        self.removed: dict[str, Removed] = {}
        self.txns: dict[str, int] = {}
        self.protocol = ""
        self.metadata = ""
        self.commit_info = ""
        self.info: dict[str, Any] = {}
        self.sidecars: list[str] = []

    def take(self, line: _Line) -> None:
        """Take in one action."""
        if line.add is not None:
            self.added[line.add.path] = line.add
        elif line.remove is not None:
            self.removed[line.remove.path] = line.remove
        elif line.txn is not None:
            self.txns[line.txn.app_id] = line.txn.version
        elif line.sidecar is not None:
            self.sidecars.append(line.sidecar.path)
        elif bytes(line.protocol):
            self.protocol = bytes(line.protocol).decode()
        elif bytes(line.meta_data):
            self.metadata = bytes(line.meta_data).decode()
        elif bytes(line.commit_info):
            said = msgspec.json.decode(line.commit_info)
            self.commit_info = bytes(line.commit_info).decode()
            self.info = said if isinstance(said, dict) else {}


def read_lines(body: bytes, name: str, into: Actions | None = None) -> Actions:
    """Return what the lines of a file say.

    Args:
        body: A commit, or a checkpoint in JSON.
        name: What messages call the file.
        into: What was read before.

    Raises:
        InvalidInputError: It is half a file, or another one.
    """
    found = into or Actions()
    try:
        for each in body.splitlines():
            if each.strip():
                found.take(_LINE.decode(each))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(f"{name} is no file of a Delta log: {error}") from error
    return found


def read_parquet(body: bytes, name: str, into: Actions | None = None) -> Actions:
    """Return what the rows of a checkpoint, of a part of one or of a sidecar say.

    Raises:
        InvalidInputError: As of `read_lines`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = into or Actions()
    try:
        parquet = pq.ParquetFile(arrow_owned(body))
        there = [each for each in _KINDS if each in parquet.schema_arrow.names]
        rows: Iterable[dict[str, Any]] = parquet.read(columns=there).to_pylist()
        for row in rows:
            found.take(_LINE.decode(_ENCODER.encode(dict(_said(row)))))
    except (pa.ArrowException, OSError, msgspec.DecodeError, *_NO_ACTION) as error:
        raise InvalidInputError(f"{name} is no checkpoint of a Delta log: {error}") from error
    return found


def _said(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for kind, value in row.items():
        if value is None:
            continue
        action = {key: each for key, each in value.items() if each is not None}
        for key in ("partitionValues", "configuration", "tags"):
            if key in action:
                action[key] = dict(action[key])
        if "format" in action:
            options = dict(action["format"].get("options") or ())
            action["format"] = {**action["format"], "options": options}
        parsed = action.pop("stats_parsed", None)
        action.pop("partitionValues_parsed", None)
        if parsed is not None and "stats" not in action:
            action["stats"] = json.dumps(parsed, default=_text)
        yield kind, action


def _text(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else None
