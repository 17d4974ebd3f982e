"""Consumers of served tables: files in a table's folder, which engines write.

A consumer's file holds the next snapshot that it reads, and engines expire no snapshot from there
on. It is no part of the log: engines write it without a catalog.

Source: Paimon's ConsumerManager.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from ledger.decide.bounds import SNAPSHOT_ID
from ledger.model.errors import DamagedLogError, InvalidInputError, NotFoundError
from ledger.model.messages import excerpt
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.snapshots import MAIN
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.outputs import StoreOutputs
from projections.paimon.branch_lines import line_state
from projections.paimon.served_files import outputs_of_engines

SNAPSHOT_MISSING: Final = "SNAPSHOT_NOT_EXIST"
"""Kind of the error that a snapshot does not exist."""

_PREFIX: Final = "consumer-"
_LONGEST_NAME: Final = 255
_MOST_BYTES: Final = 1 << 16
_ATTEMPTS: Final = 5
_PAUSE_S: Final = 0.05


class _ConsumerFile(Struct, rename="camel"):
    next_snapshot: int


def consumers(
    table: TableHandle, state: TableState, branch: str | None = None
) -> Iterator[tuple[str, int]]:
    """Yield each consumer of a line with its next snapshot, sorted by id.

    Args:
        table: The table.
        state: Its newest state.
        branch: The branch; None for the main line.

    Raises:
        InvalidChangeError: Engines of Paimon do not own the table.
        DamagedLogError: A consumer's file is damaged.
        StoreError: A file cannot be read.
    """
    outputs = outputs_of_engines(table, state)
    folder = _folder(branch)
    names = (each.removeprefix(f"{folder}/") for each in outputs.paths(folder))
    ids = (each.removeprefix(_PREFIX) for each in names if each.startswith(_PREFIX))
    for each in sorted(each for each in ids if each and "/" not in each):
        found = _read(outputs, f"{folder}/{_PREFIX}{each}")
        if found is not None:
            yield each, found


def _read(outputs: StoreOutputs, path: str) -> int | None:
    """Return the next snapshot of a consumer; None if it does not exist any more.

    An engine may be writing the file, which then is read again.
    """
    reason = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_S)
        body = outputs.read(path)
        if body is None:
            return None
        if len(body) > _MOST_BYTES:
            reason = f"it has {len(body)} bytes"
            break
        try:
            return msgspec.json.decode(body, type=_ConsumerFile).next_snapshot
        except ValueError as error:
            reason = str(error)
    raise DamagedLogError(
        f"{outputs.key(path)} is no file of a consumer: {reason}; reset the consumer", path
    )


def reset_consumer(
    table: TableHandle,
    state: TableState,
    consumer_id: str,
    next_snapshot: int | None,
    branch: str | None = None,
) -> None:
    """Set the next snapshot of a consumer, which may be new; or remove the consumer.

    Args:
        table: The table.
        state: Its newest state.
        consumer_id: The consumer.
        next_snapshot: The snapshot; None removes the consumer.
        branch: The branch; None for the main line.

    Raises:
        InvalidChangeError: Engines of Paimon do not own the table.
        InvalidInputError: The id cannot be part of a file's name, or the snapshot's is out of
            range.
        NotFoundError: The snapshot does not exist.
        StoreError: The file cannot be written or deleted.
    """
    _check_id(consumer_id)
    path = f"{_folder(branch)}/{_PREFIX}{consumer_id}"
    outputs = outputs_of_engines(table, state)
    if next_snapshot is None:
        outputs.remove(path)
        return
    SNAPSHOT_ID.check(next_snapshot, f"consumer {excerpt(consumer_id)}")
    origin = line_state(table, state, branch).origin_of_kind(PaimonOrigin)
    if next_snapshot not in origin.snapshots:
        known = origin.readable_range_text(state)
        raise NotFoundError(
            f"snapshot {next_snapshot} does not exist; there are {known}. The consumer was not "
            "changed",
            SNAPSHOT_MISSING,
        )
    body = msgspec.json.format(msgspec.json.encode(_ConsumerFile(next_snapshot)), indent=2)
    outputs.store.replace_durably(outputs.key(path), body)


def _folder(branch: str | None) -> str:
    line = "" if branch in {None, MAIN} else f"branch/branch-{branch}/"
    return f"{line}consumer"


def _check_id(consumer_id: str) -> None:
    is_safe = consumer_id.isprintable() and not {"/", "\\"} & {*consumer_id}
    size = len(f"{_PREFIX}{consumer_id}".encode(errors="replace"))
    if not consumer_id or not is_safe or size > _LONGEST_NAME:
        raise InvalidInputError(
            f"consumer id {excerpt(consumer_id)} cannot be part of a file's name: use at "
            f"most {_LONGEST_NAME - len(_PREFIX)} bytes, and no slash or control character"
        )
