"""The canonical history: a table 200 columns wide, half schema changes, half snapshots.

The width is constant, as in real tables: an unbounded random history drifts to thousands of columns
and is not representative.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
from attrs import evolve
from msgspec import Raw

import ledger
from ledger.events import SchemaEvent, TableEvent
from ledger.events.commit import FORMAT, Commit, Transaction
from ledger.events.schema import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDropped,
    ColumnRenamed,
    ColumnTypeUpdated,
    SetOption,
)
from ledger.events.snapshots import SnapshotCommitted
from ledger.log.checkpoints import Head
from ledger.log.codec import digest, encode
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.model.file_change import FileChange
from ledger.state.records import TableStream
from ledger.state.table import TableState
from ledger.table_handle import handle_of

SEED = 42
WIDTH = 200
TABLE = "bench.wide"
START_MILLIS = 1_700_000_000_000
_STEP_MILLIS = 1000
_TYPES = ("INT", "VARCHAR(16)", "DECIMAL(10, 2)", "DATE", "DOUBLE", "STRING")
_grows = re.compile(r"(VARCHAR|DECIMAL)\((\d+)(.*)\)").fullmatch


class Author:
    """Generator of valid events of a table of constant width, from a seed."""

    def __init__(self, width: int) -> None:
        self._rng = random.Random(SEED)  # noqa: S311 - a workload, not a secret
        self._width = width
        self._columns = {nth: (f"c{nth}", _TYPES[nth % len(_TYPES)]) for nth in range(width)}
        self._ids = list(self._columns)
        self._highest = width - 1
        self._changes = 0
        self._schema_id = 0
        self._snapshot_id = 0
        self._records = 0

    def schema(self) -> ledger.Schema:
        """Return the initial schema of the history."""
        return ledger.Schema.of(dict(self._columns.values()))

    def transactions(self, *, events: int = 1) -> Iterator[Transaction[TableEvent]]:
        """Yield transactions without end, with some events each.

        Events are in turn a schema change and a snapshot.
        """
        kinds = itertools.cycle((self._schema_change, self._snapshot))
        while True:
            unique = self._rng.randbytes(16).hex()
            groups = (unique[:8], unique[8:12], unique[12:16], unique[16:20], unique[20:])
            makers = list(itertools.islice(kinds, events))
            # Schema ids count transactions, whatever number of changes they hold.
            self._schema_id += self._schema_change in makers
            facts: tuple[TableEvent, ...] = tuple(make() for make in makers)
            yield Transaction(asked="", id="-".join(groups), author="etl@prod", events=facts)

    def _schema_change(self) -> SchemaEvent:
        self._changes += 1
        place = self._rng.randrange(len(self._ids))
        field_id = self._ids[place]
        name, data_type = self._columns[field_id]
        match self._rng.randrange(5):
            case 0:
                text = f"as of change {self._changes}"
                return ColumnCommentUpdated((name,), text, field_id=field_id)
            case 1 if (wider := _wider(data_type)) is not None:
                self._columns[field_id] = (name, wider)
                return ColumnTypeUpdated((name,), wider, field_id=field_id)
            case 2:
                new_name = f"c{field_id}_{self._changes}"
                self._columns[field_id] = (new_name, data_type)
                return ColumnRenamed((name,), new_name, field_id=field_id)
            case 3 if len(self._ids) > self._width:
                self._ids[place] = self._ids[-1]
                self._ids.pop()
                del self._columns[field_id]
                return ColumnDropped((name,), field_id=field_id)
            case 3:
                return self._add()
            case _:
                return SetOption(f"team.option-{field_id % 20}", str(self._changes))

    def _add(self) -> ColumnAdded:
        self._highest += 1
        name, data_type = f"c{self._highest}", _TYPES[self._highest % len(_TYPES)]
        self._columns[self._highest] = (name, data_type)
        self._ids.append(self._highest)
        return ColumnAdded((name,), data_type, field_id=self._highest)

    def _snapshot(self) -> SnapshotCommitted:
        self._snapshot_id += 1
        records = self._rng.randrange(1, 10_000)
        self._records += records
        file = FileChange(
            path=f"data-{self._rng.randbytes(16).hex()}-0.parquet",
            schema_id=self._schema_id,
            record_count=records,
            file_size_in_bytes=records * 97,
            creation_time=START_MILLIS + self._snapshot_id,
        )
        return SnapshotCommitted(
            snapshot_id=self._snapshot_id,
            schema_id=self._schema_id,
            commit_user="etl",
            commit_kind="APPEND",
            total_record_count=self._records,
            delta_record_count=records,
            delta_file_count=1,
            delta_file_size_in_bytes=file.file_size_in_bytes,
            last_file_creation_time=file.creation_time,
            files=Raw(msgspec.json.encode((file,), order="deterministic")),
        )


def _wider(data_type: str) -> str | None:
    """Return a type that all values of `data_type` fit into; None when there is no wider one."""
    if data_type == "INT":
        return "BIGINT"
    parts = _grows(data_type)
    # A decimal has at most 38 digits.
    if parts is None or (parts[1] == "DECIMAL" and int(parts[2]) == 38):
        return None
    return f"{parts[1]}({int(parts[2]) + 1}{parts[3]})"


def lake_at(workdir: Path, commits: int, *, width: int = WIDTH) -> Path:
    """Return a ledger whose table `TABLE` is at version `commits`, with its checkpoints.

    Built at the first call and cached; do not write to it, take a `copy`.
    """
    lake = workdir / f"lake-{commits}-{width}"
    if not lake.exists():
        workdir.mkdir(parents=True, exist_ok=True)
        draft = workdir / f".building-{os.getpid()}-{lake.name}"
        _build(draft, commits, width)
        draft.rename(lake)
    return lake


def copy(lake: Path, to: Path) -> Path:
    """Return a copy that can be written to; it shares the files, which are never rewritten."""
    shutil.copytree(lake, to, copy_function=os.link)
    return to


def commit_of(
    transaction: Transaction[TableEvent], version: int, parent: str
) -> Commit[TableEvent]:
    """Return the commit that holds one transaction."""
    return Commit(
        format=FORMAT,
        version=version,
        time_millis=START_MILLIS + version * _STEP_MILLIS,
        parent=parent,
        transactions=(transaction,),
    )


def bodies(commits: int, *, width: int = WIDTH, events: int) -> list[bytes]:
    """Return the files of `commits` commits with some events each, without writing them.

    Fold them onto the version 0 of a lake of the same width.
    """
    transactions = Author(width).transactions(events=events)
    # Decoding alone checks no chain, so any digest of the right length does as a parent.
    parent = digest(b"")
    return [
        encode(commit_of(each, version, parent))
        for version, each in enumerate(itertools.islice(transactions, commits), 1)
    ]


def _build(root: Path, commits: int, width: int) -> None:
    author = Author(width)
    ticks = itertools.count(START_MILLIS - 10 * _STEP_MILLIS, _STEP_MILLIS)
    lake = ledger.open(str(root), author="bench", clock=lambda: next(ticks))
    lake.create_database(TABLE.split(".", maxsplit=1)[0])
    table = lake.create_table(TABLE, author.schema())
    log = handle_of(table).log
    builder = log.stream.builder(table.state)
    parent = log.head.digest if log.head else ""
    for version, transaction in enumerate(itertools.islice(author.transactions(), commits), 1):
        commit = commit_of(transaction, version, parent)
        body = encode(commit)
        (root / log.layout.commit(version)).write_bytes(body)
        builder.commit(commit)
        parent = digest(body)
        if version % CHECKPOINT_INTERVAL == 0:
            # Caches that a writer stores next to the log at this version.
            log.accept_own_commit(Head(builder.freeze(), parent), commit)
            log.save_next_caches()


def fingerprint(state: TableState) -> str:
    """Return a short digest of a state, independent of the time and place of its creation."""
    record = TableStream().encode_state(evolve(state, table_id="", path=""))
    return hashlib.sha256(record).hexdigest()[:16]
