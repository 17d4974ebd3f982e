"""Speed of rebuilding a table from its whole log, without a checkpoint.

Reading, hash chain, decoding and folding together, through sealed segments and through the log's
own files alone, compared with only reading the same files; then the parts alone. Warm file cache:
the disk is not measured.
"""

from __future__ import annotations

import os
from pathlib import Path

import cyclopts
import msgspec

import ledger
from benchmarks.history import TABLE, WIDTH, bodies, fingerprint, lake_at
from benchmarks.measure import WORKDIR, Figure, Output, Report, in_turn, question_of, show
from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.history.older import TableLog
from ledger.history.verifying.caches import missing_segments
from ledger.history.verifying.subject import Subject
from ledger.log.codec import Codec, digest
from ledger.log.replay import START
from ledger.log.time_travel import at_version
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.table_handle import handle_of
from tests.log.long_logs import Without

COMMITS_A_SECOND = 60_000
EVENTS_A_SECOND = 500_000
PACK = 10


def run(workdir: Path, *, size: int, repeats: int, width: int = WIDTH) -> Report:
    lake = lake_at(workdir, size, width=width)
    table = ledger.open(str(lake)).table(TABLE)
    log = handle_of(table).log
    head = table.state
    keys = [log.layout.commit(version) for version in range(size + 1)]
    paths = [str(lake / key) for key in keys]
    files = [_read(path) for path in paths]
    packed = bodies(size // PACK, width=width, events=PACK)
    codec: Codec[TableEvent] = Codec(TableEvent)
    decoder = msgspec.json.Decoder(Commit[TableEvent])
    commits = [codec.decode(body, key) for body, key in zip(files, keys, strict=True)]
    born = at_version(log, 0)

    subject = Subject(TABLE, log, has_files=True)
    for each in missing_segments(subject):
        log.store.replace(each.path, each.body)
    unsealed_log = subject.on(Without(log.store))

    def decode_and_fold(tail: list[bytes]) -> TableState:
        builder = TableBuilder(born)
        for body in tail:
            builder.commit(codec.decode(body, "in memory"))
        return builder.freeze()

    def fold() -> TableState:
        builder = TableBuilder(born)
        for commit in commits[1:]:
            builder.commit(commit)
        return builder.freeze()

    times = in_turn(
        {
            "floor": lambda: [_read(path) for path in paths],
            "replay": lambda: replay(log),
            "replay of files": lambda: replay(unsealed_log),
            "decode and fold": lambda: decode_and_fold(files[1:]),
            "packed": lambda: decode_and_fold(packed),
            "fold": fold,
            "decode": lambda: [None for body in files if decoder.decode(body) is None],
            "hash": lambda: [digest(body) for body in files],
        },
        repeats,
    )
    rate = {name: size * 1e9 / each.minimum_ns for name, each in times.items()}
    # The checkpoint's state, the replayed and the folded one are the same.
    assert head == replay(log) == replay(unsealed_log) == fold() == decode_and_fold(files[1:])
    return Report(
        question_of(__doc__),
        f"{fingerprint(head)} commits={size} columns={len(head.schema.fields)}",
        (
            Figure("replay", rate["replay"], "commits/s", at_least=COMMITS_A_SECOND),
            Figure("replay without segments", rate["replay of files"], "commits/s"),
            Figure("replay / without segments", rate["replay"] / rate["replay of files"], "x"),
            Figure("floor: reading the files", rate["floor"], "commits/s"),
            Figure("replay / floor", rate["floor"] / rate["replay"], "x"),
            Figure(
                "decode and fold, 1 event a commit",
                rate["decode and fold"],
                "events/s",
                at_least=EVENTS_A_SECOND,
            ),
            Figure(
                f"decode and fold, {PACK} events a commit",
                rate["packed"],
                "events/s",
                at_least=EVENTS_A_SECOND,
            ),
            Figure("fold alone, 1 event a commit", rate["fold"], "events/s"),
            Figure("floor: msgspec decode alone, 1 event a commit", rate["decode"], "events/s"),
            Figure("decode and fold / decode alone", rate["decode"] / rate["decode and fold"], "x"),
            Figure("hash alone", rate["hash"], "commits/s"),
        ),
    )


def replay(log: TableLog) -> TableState:
    """Return a table's newest state, from its first commit on."""
    builder = TableBuilder()
    for read in log.reader.after(START):
        log.fold(builder, read.commit)
    return builder.freeze()


def _read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 65_536)
    finally:
        os.close(file)


def main(
    *, size: int = 100_000, repeats: int = 5, workdir: Path = WORKDIR, output: Output = "text"
) -> None:
    """Replay a table of 200 columns.

    Args:
        size: Commits.
        repeats: Number of repeats of each part; the minimum counts.
        workdir: Folder of the cached histories.
        output: text or json.
    """
    show(run(workdir, size=size, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
