"""Latency of queries on a table's history, compared with git's on as many commits.

The log's newest entries, a filter that matches no entry (so that all are read), blame, and a diff;
then the same of git, on one file with one line per column of the table, a line changed per commit.
Through sealed segments; warm file cache. Processor time, since other work may share cores. The
memory that all of them need is also measured for a tenth of the commits, in separate processes.
"""

from __future__ import annotations

import gc
import multiprocessing
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import islice
from pathlib import Path

import cyclopts

import ledger
from benchmarks.history import TABLE, WIDTH, lake_at
from benchmarks.measure import (
    WORKDIR,
    Figure,
    Output,
    Report,
    highest_memory_mb,
    in_turn,
    processor_ns,
    question_of,
    show,
)
from ledger.audit.column_history import RequestedHistories, column_histories
from ledger.history.verifying.caches import missing_segments
from ledger.history.verifying.subject import Subject
from ledger.log.layout import SEGMENT_LENGTH
from ledger.table_handle import handle_of

AT_MOST_S = 1.0
MEMORY_AT_MOST = 1.25
PAGE_AT_MOST_S = 10.0
SECOND = 1e9


def run(workdir: Path, *, size: int, repeats: int, width: int = WIDTH) -> Report:
    tenth = size // 10
    memory = {each: _memory_mb(workdir, each, width) for each in (tenth, size)}
    table = _sealed(workdir, size, width)
    assert table.state.version >= size
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        git = _git(Path(folder), size, width)
        times = in_turn(
            {
                **_questions(table),
                "git log, the newest 50": git("log", "-n", "50"),
                "git log, all filtered by author": git("log", "--author=nobody"),
                "git blame": git("blame", "columns.txt"),
                "git diff over a tenth of the history": git("diff", f"HEAD~{tenth}"),
            },
            repeats,
            processor_ns,
        )
        page = in_turn({"the audit page": table.report}, 1, processor_ns)
    figures = [
        Figure(
            name,
            each.minimum_ns / SECOND,
            "s",
            at_most=None if name.startswith("git") else AT_MOST_S,
        )
        for name, each in times.items()
    ]
    figures += [
        Figure(name, each.minimum_ns / SECOND, "s", at_most=PAGE_AT_MOST_S)
        for name, each in page.items()
    ]
    figures += [
        Figure(f"memory of all of them at {each:,} commits", used, "MB")
        for each, used in memory.items()
    ]
    ratio = memory[size] / memory[tenth]
    # A segment is read at once, so the short history has to fill one.
    bound = MEMORY_AT_MOST if tenth > SEGMENT_LENGTH else None
    figures.append(Figure("memory, long / short", ratio, "x", at_most=bound))
    kept = _kept(table)
    figures.append(Figure("columns kept for each that there is", kept, "x", at_most=1))
    print_of = f"version {table.state.version}, blames {len(table.blame())}"
    return Report(question_of(__doc__), print_of, tuple(figures))


def fresh(table: ledger.Table) -> ledger.Table:
    """Return a handle without caches of an earlier query."""
    return ledger.Table(handle_of(table).again())


def _questions(table: ledger.Table) -> dict[str, Callable[[], object]]:
    newest = table.state.version
    return {
        "log, the newest 50": lambda: list(islice(table.entries(), 50)),
        "log, all filtered by author": lambda: list(table.entries(author="nobody")),
        "log, all filtered by a column": lambda: list(fresh(table).entries(column="c5")),
        "blame, every column": lambda: fresh(table).blame(),
        "diff over a tenth of the history": lambda: table.diff(newest - newest // 10).changes,
    }


def _sealed(workdir: Path, size: int, width: int) -> ledger.Table:
    table = ledger.open(str(lake_at(workdir, size, width=width))).table(TABLE)
    for each in missing_segments(Subject(TABLE, handle_of(table).log, has_files=True)):
        handle_of(table).log.store.replace(each.path, each.body)
    return table


def _kept(table: ledger.Table) -> float:
    """Return the number of columns that blame caches, divided by that of the table."""
    there = frozenset(each.id for each in table.schema.fields)
    return len(
        column_histories(
            handle_of(table).log, table.state.version, RequestedHistories(ids=there)
        ).by_id
    ) / len(there)


def _memory_mb(workdir: Path, size: int, width: int) -> float:
    """Return the memory that all queries add to a new process, libraries left out, in MB."""
    _sealed(workdir, size, width)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as apart:
        return apart.submit(_asked_mb, workdir, size, width).result()


def _asked_mb(workdir: Path, size: int, width: int) -> float:
    # The imports are the same however long the log is.
    for name in ("jinja2", "pyarrow.compute", "pyarrow.parquet"):
        import_module(name)
    table = ledger.open(str(lake_at(workdir, size, width=width))).table(TABLE)
    before = highest_memory_mb()
    for ask in (*_questions(table).values(), table.report):
        ask()
        gc.collect()
    return highest_memory_mb() - before


def _git(folder: Path, size: int, width: int) -> Callable[..., Callable[[], object]]:
    """Return a function that runs git on a new repository with some commits."""

    def git(*words: str) -> bytes:
        command = ["git", "-C", str(folder), *words]
        return subprocess.run(command, capture_output=True, check=True).stdout

    git("init", "--quiet", "--initial-branch=main")
    command = ["git", "-C", str(folder), "fast-import", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as importing:
        assert importing.stdin is not None
        # Run one by one: a single process would hide the memory that the queries need.
        importing.stdin.writelines(_commits(size, width))
    git("checkout", "--quiet", "main")
    return lambda *words: lambda: git(*words)


def _commits(size: int, width: int) -> Iterator[bytes]:
    lines = [f"column {nth} INT\n" for nth in range(width)]
    for nth in range(size):
        lines[nth * 7919 % width] = f"column {nth} STRING\n"
        content = "".join(lines).encode()
        head = f"commit refs/heads/main\ncommitter etl <etl@prod> {1_700_000_000 + nth} +0000\n"
        yield (
            head.encode()
            + b"data 1\nm\nM 100644 inline columns.txt\ndata %d\n" % len(content)
            + content
            + b"\n"
        )


def main(
    *, size: int = 100_000, repeats: int = 3, workdir: Path = WORKDIR, output: Output = "text"
) -> None:
    """Run audit queries on a table of 200 columns.

    Args:
        size: Commits of the history.
        repeats: Number of repeats; the minimum counts.
        workdir: Folder of the cached histories.
        output: text or json.
    """
    show(run(workdir, size=size, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
