"""Speed of verifying a whole log, segments and lines together, on all processors.

Every commit is read from its own file, hashed, decoded, encoded again, folded and validated;
segments, checkpoints, key indexes and runs are compared with the expected ones. For comparison:
only reading and hashing the same files, in one process. Warm file cache.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import cyclopts

import ledger
from benchmarks.history import TABLE, WIDTH, fingerprint, lake_at
from benchmarks.measure import WORKDIR, Figure, Output, Report, in_turn, question_of, show
from ledger.history.older import TableLog
from ledger.history.verifying.spans import WORTH, Workers
from ledger.history.verifying.subject import Subject
from ledger.history.verifying.verify import Verification
from ledger.table_handle import handle_of

COMMITS_A_SECOND = 30_000


def run(workdir: Path, *, size: int, repeats: int, width: int = WIDTH) -> Report:
    lake = lake_at(workdir, size, width=width)
    log = handle_of(ledger.open(str(lake)).table(TABLE)).log
    with Workers(no_options) as workers:
        times = in_turn(
            {
                "floor": lambda: hashed(log, size),
                "verify": lambda: verified(log, workers),
                "one process": lambda: verified(log, None),
            },
            repeats,
        )
        heads = {verified(log, workers), verified(log, None)}
        count = workers.count
    rate = {name: size * 1e9 / each.minimum_ns for name, each in times.items()}
    (head,) = heads
    return Report(
        question_of(__doc__),
        f"{head} commits={size}",
        (
            Figure("verify", rate["verify"], "commits/s", at_least=COMMITS_A_SECOND),
            Figure("verify in one process", rate["one process"], "commits/s"),
            Figure("floor: reading and hashing the files, one process", rate["floor"], "commits/s"),
            Figure("verify / floor", rate["floor"] / rate["verify"], "x"),
        ),
        (f"{count} processes where the log has {WORTH:,} commits and more",),
    )


def no_options(_url: str) -> dict[str, object]:
    """Return the options of a local folder."""
    return {}


def verified(log: TableLog, workers: Workers | None) -> str:
    """Verify a table's log without problems; return a digest of its newest state."""
    subject = Subject(TABLE, log, has_files=True)
    verification = Verification(subject, mends=False, workers=workers)
    for each in verification.run():
        raise AssertionError(each)
    if verification.state is None:
        raise AssertionError("nothing was verified")
    return fingerprint(verification.state)


def hashed(log: TableLog, size: int) -> None:
    """Read and hash the same files."""
    for body in log.store.read_many([*map(log.layout.commit, range(size + 1))]):
        hashlib.sha256(body or b"").hexdigest()


def main(
    *, size: int = 1_000_000, repeats: int = 3, workdir: Path = WORKDIR, output: Output = "text"
) -> None:
    """Verify a table of 200 columns.

    Args:
        size: Commits.
        repeats: Number of repeats of each; the minimum counts.
        workdir: Folder of the cached histories.
        output: text or json.
    """
    show(run(workdir, size=size, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
