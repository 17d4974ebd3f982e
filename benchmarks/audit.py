"""How long do questions about a table's history take, beside git's on as many commits?

The log's newest entries, a filter that no entry passes (so that all are read), blame, and a diff;
then the same of git, on one file of as many lines as the table has columns, a line changed a
commit. Through sealed segments; warm file cache. Processor time, since other work may share cores.
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator
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
    in_turn,
    processor_ns,
    question_of,
    show,
)
from ledger.history.sealing import unsealed
from ledger.history.verifying.subject import Subject

AT_MOST_S = 1.0
PAGE_AT_MOST_S = 10.0
SECOND = 1e9


def run(workdir: Path, *, size: int, repeats: int, width: int = WIDTH) -> Report:
    table = ledger.open(str(lake_at(workdir, size, width=width))).table(TABLE)
    assert table.state.version >= size
    for each in unsealed(Subject(TABLE, table.log, has_files=True)):
        table.log.store.replace(each.path, each.body)
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        git = _git(Path(folder), size, width)
        before_kib = _memory_kib()
        times = in_turn(
            {
                "log, the newest 50": lambda: list(islice(table.entries(), 50)),
                "log, all filtered by author": lambda: list(table.entries(author="nobody")),
                "log, all filtered by a column": lambda: list(fresh(table).entries(column="c5")),
                "blame, every column": lambda: fresh(table).blame(),
                "diff over a tenth of the history": lambda: table.diff(size - size // 10).changes,
                "git log, the newest 50": git("log", "-n", "50"),
                "git log, all filtered by author": git("log", "--author=nobody"),
                "git blame": git("blame", "columns.txt"),
                "git diff over a tenth of the history": git("diff", f"HEAD~{size // 10}"),
            },
            repeats,
            processor_ns,
        )
        page = in_turn({"the audit page": table.report}, 1, processor_ns)
        grown = (_memory_kib() - before_kib) / 1024
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
    figures.append(Figure("memory that all of them needed beside", grown, "MiB"))
    print_of = f"version {table.state.version}, blames {len(table.blame())}"
    return Report(question_of(__doc__), print_of, tuple(figures))


def fresh(table: ledger.Table) -> ledger.Table:
    """Return a handle that keeps nothing of an earlier question."""
    return table.again()


def _memory_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _git(folder: Path, size: int, width: int) -> Callable[..., Callable[[], object]]:
    """Return what runs git on a new repository of so many commits."""

    def git(*words: str) -> bytes:
        command = ["git", "-C", str(folder), *words]
        return subprocess.run(command, capture_output=True, check=True).stdout

    git("init", "--quiet", "--initial-branch=main")
    command = ["git", "-C", str(folder), "fast-import", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as importing:
        assert importing.stdin is not None
        # One by one: all of them together would hide how much memory the questions need.
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
    """Ask a table of 200 columns about its history.

    Args:
        size: Commits of the history.
        repeats: How often each is asked; the least disturbed counts.
        workdir: Where histories are kept.
        output: text or json.
    """
    show(run(workdir, size=size, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
