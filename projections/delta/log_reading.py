"""Reading of Delta logs: commit files and checkpoints of every kind.

Source: the Delta transaction protocol, "Actions" and "Checkpoints".
"""

from __future__ import annotations

import json
from itertools import repeat
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ledger.model.errors import InvalidInputError, TooLargeError
from ledger.model.parquet_limits import open_checked_parquet, python_values
from ledger.model.single_values import date_text, timestamp_text
from ledger.model.types import INT_MAX, LONG_MAX


class AddedFile(msgspec.Struct, frozen=True, rename="camel"):
    """An `add` action; `modification_time` in Unix milliseconds."""

    path: str
    partition_values: dict[str, str | None] = {}
    size: int = 0
    modification_time: int = 0
    data_change: bool = True
    stats: str | None = None
    deletion_vector: Any = None


class RemovedFile(msgspec.Struct, frozen=True, rename="camel"):
    """A `remove` action."""

    path: str
    data_change: bool = True


_ProtocolVersion = Annotated[int, Meta(ge=0, le=INT_MAX)]


class Protocol(msgspec.Struct, frozen=True, rename="camel"):
    """A `protocol` action: the requirements for readers and writers."""

    min_reader_version: _ProtocolVersion
    min_writer_version: _ProtocolVersion
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


class _FileFormat(msgspec.Struct, frozen=True):
    provider: str = ""
    options: dict[str, str] = {}


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """A `metaData` action; a projection passes all of it on.

    Pipelines of Databricks write tables without a schema before their first columns.
    """

    id: str
    schema_string: str | None = None
    partition_columns: tuple[str, ...] = ()
    configuration: dict[str, str] = {}
    created_time: Annotated[int, Meta(ge=-LONG_MAX - 1, le=LONG_MAX)] | None = None
    description: str | None = None
    name: str | None = None
    format: _FileFormat | None = None


class _TransactionAction(msgspec.Struct, frozen=True, rename="camel"):
    app_id: str
    version: int


class _Sidecar(msgspec.Struct, frozen=True, rename="camel"):
    path: str


class _ActionLine(msgspec.Struct, rename="camel"):
    add: AddedFile | None = None
    remove: RemovedFile | None = None
    txn: _TransactionAction | None = None
    protocol: msgspec.Raw = msgspec.Raw()
    meta_data: msgspec.Raw = msgspec.Raw()
    commit_info: msgspec.Raw = msgspec.Raw()
    sidecar: _Sidecar | None = None


_NO_ACTION = (AttributeError, TypeError, ValueError, RecursionError)
"""Errors raised for cells of types that an action does not have."""

_LINE = msgspec.json.Decoder(_ActionLine)
_ENCODER = msgspec.json.Encoder()


class LogActions:
    """The actions of one commit, or of one checkpoint.

    Attributes:
        added: Files by the path in the log.
        removed: Removed files by the path in the log.
        txns: The last transaction version of each application.
        protocol: As JSON; empty if absent.
        metadata: As JSON; empty if absent.
        commit_info: The provenance, as JSON; empty if absent.
        info: The provenance, decoded; empty if absent or not an object.
        sidecars: Sidecar files with more actions of a checkpoint.
    """

    def __init__(self) -> None:
        self.added: dict[str, AddedFile] = {}
        self.removed: dict[str, RemovedFile] = {}
        self.txns: dict[str, int] = {}
        self.protocol = ""
        self.metadata = ""
        self.commit_info = ""
        self.info: dict[str, Any] = {}
        self.sidecars: list[str] = []

    def add_commit(self, later: LogActions) -> None:
        """Add the changes of a later commit, as if both were one; its provenance is left out.

        Source: the Delta transaction protocol, "Action Reconciliation".
        """
        for path, removed in later.removed.items():
            self.added.pop(path, None)
            self.removed[path] = removed
        self.added |= later.added
        self.txns |= later.txns
        self.protocol = later.protocol or self.protocol
        self.metadata = later.metadata or self.metadata

    def collect(self, line: _ActionLine) -> None:
        """Add one action."""
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


def read_lines(body: bytes, name: str, into: LogActions | None = None) -> LogActions:
    """Return the actions in the lines of a file.

    Args:
        body: A commit, or a checkpoint in JSON.
        name: The file's name, for messages.
        into: The actions read before.

    Raises:
        InvalidInputError: The file is cut short, or is not of a Delta log.
    """
    found = into or LogActions()
    try:
        for each in body.splitlines():
            if each.strip():
                found.collect(_LINE.decode(each))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(f"{name} is not a file of a Delta log: {error}") from error
    return found


def read_parquet(body: bytes, name: str, into: LogActions | None = None) -> LogActions:
    """Return the actions in the rows of a checkpoint, a part of one or a sidecar.

    Rows are converted batch by batch, so that repeated values do not cost memory.

    Raises:
        InvalidInputError: As in `read_lines`; or a file is listed twice.
        TooLargeError: The file declares or unpacks to more than its size allows.
    """
    import pyarrow as pa

    found = into or LogActions()
    try:
        rows = _CheckpointRows(found, name, len(body))
        for batch in open_checked_parquet(body, name, _COLUMNS).batches():
            rows.collect(batch)
    except InvalidInputError:
        raise
    except (pa.ArrowException, OSError, msgspec.DecodeError, *_NO_ACTION) as error:
        raise InvalidInputError(f"{name} is not a checkpoint of a Delta log: {error}") from error
    return found


_COLUMNS: Final = (
    "protocol",
    "metaData",
    "txn",
    *(f"add.{each}" for each in ("path", "partitionValues", "size", "modificationTime")),
    *(f"add.{each}" for each in ("dataChange", "stats", "stats_parsed", "deletionVector")),
    *("remove.path", "remove.dataChange", "sidecar"),
)

_MOST_EMPTY_ROWS: Final = 100_000
"""Limit for rows of actions that are ignored here, such as domain metadata: there are few."""

_TEXT_FLOOR: Final = 512 << 20
_TEXT_PER_BYTE: Final = 2_048
"""Limit for the bytes of all statistics, repeated ones counted each time: they are parsed
file by file."""


class _CheckpointRows:
    """Collector of the actions in the rows of one file.

    Args:
        found: The actions read before.
        name: The file's name, for errors.
        size: Its size in bytes.
    """

    def __init__(self, found: LogActions, name: str, size: int) -> None:
        self._found = found
        self._name = name
        self._empty = 0
        self._text = 0
        self._most_text = _TEXT_FLOOR + _TEXT_PER_BYTE * size

    def collect(self, batch: Any) -> None:
        """Add some rows.

        Raises:
            InvalidInputError: A file is listed twice, or a row is not an action.
            TooLargeError: There are more empty rows, or more bytes of statistics, than allowed.
        """
        taken = 0
        for kind, column in zip(batch.schema.names, batch.columns, strict=True):
            taken += len(column) - column.null_count
            if column.null_count < len(column):
                self._collect_column(kind, column)
        self._empty += max(batch.num_rows - taken, 0)
        if self._empty > _MOST_EMPTY_ROWS:
            raise self._too_large_error("rows without an action", self._empty, _MOST_EMPTY_ROWS)

    def _collect_column(self, kind: str, column: Any) -> None:
        actions = column.drop_null()
        if kind == "add":
            for action, parsed in zip(*_split_statistics(actions), strict=True):
                if parsed is not None and not action.get("stats"):
                    # A decimal keeps all of its digits as a text.
                    action["stats"] = json.dumps(parsed, default=str)
                self._collect_added_file(action)
            return
        for action in python_values(actions):
            self._found.collect(_LINE.decode(_ENCODER.encode({kind: _normalize_action(action)})))

    def _collect_added_file(self, action: dict[str, Any]) -> None:
        added = msgspec.convert(action, AddedFile)
        known = self._found.added
        if added.path in known and added.deletion_vector == known[added.path].deletion_vector:
            raise InvalidInputError(
                f"{self._name} lists file {added.path} twice, which no Delta checkpoint does: "
                "have its owner write it again"
            )
        self._text += len(added.stats or "") + len(added.path)
        if self._text > self._most_text:
            raise self._too_large_error(
                "bytes of paths and statistics", self._text, self._most_text
            )
        known[added.path] = added

    def _too_large_error(self, what: str, found: int, most: int) -> TooLargeError:
        return TooLargeError(
            f"{self._name} has {found} {what}, and the limit for a file of its size is {most}: "
            "have its owner write a checkpoint again"
        )


def _normalize_action(action: dict[str, Any]) -> dict[str, Any]:
    if "format" in action:
        options = action["format"].get("options") or {}
        action["format"] = {**action["format"], "options": options}
    return action


_PARSED: Final = "stats_parsed"
_UNITS_A_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_MICROS_A_SECOND: Final = 1_000_000
_MICROSECOND_DIGITS: Final = 6


def _split_statistics(added: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the `add` actions of a column and, of each, the statistics that it has as a struct.

    Dates and timestamps are texts as in the statistics in JSON; None where there is no struct.
    """
    import pyarrow as pa

    names, members = [each.name for each in added.type], added.flatten()
    parsed: list[Any] = [None] * len(added)
    if _PARSED in names:
        parsed = python_values(_with_time_texts(members[names.index(_PARSED)]))
    others = [place for place, name in enumerate(names) if name != _PARSED]
    rest = pa.StructArray.from_arrays(
        [members[each] for each in others], fields=[added.type[each] for each in others]
    )
    return python_values(rest), parsed


def _with_time_texts(array: Any) -> Any:
    """Return an array with its dates and timestamps, at every depth of structs, as texts.

    Python's own dates and timestamps cover fewer years, and no nanoseconds. Types that have no
    statistics become nulls.
    """
    import pyarrow as pa

    kind = array.type
    if pa.types.is_struct(kind) and kind.num_fields:
        members = [_with_time_texts(each) for each in array.flatten()]
        names = [each.name for each in kind]
        return pa.StructArray.from_arrays(members, names, mask=array.is_null())
    if pa.types.is_date32(kind):
        days = array.cast(pa.int32()).to_pylist()
        return pa.array([None if each is None else date_text(each) for each in days], pa.string())
    if pa.types.is_timestamp(kind):
        texts = map(_moment_text, array.cast(pa.int64()).to_pylist(), repeat(kind))
        return pa.array(texts, pa.string())
    return array if _is_plain(kind) else pa.nulls(len(array))


def _is_plain(kind: Any) -> bool:
    import pyarrow.types as is_a

    value = kind.value_type if is_a.is_dictionary(kind) else kind
    plain = (is_a.is_boolean, is_a.is_integer, is_a.is_floating, is_a.is_decimal, is_a.is_string)
    return any(each(value) for each in plain)


def _moment_text(count: int | None, kind: Any) -> str | None:
    if count is None:
        return None
    micros = count * _MICROS_A_SECOND // _UNITS_A_SECOND[kind.unit]
    return timestamp_text(micros, _MICROSECOND_DIGITS) + ("" if kind.tz is None else "Z")
