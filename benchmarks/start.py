"""Startup time of lakeledger, compared with a Python that does nothing.

Fresh processes in turn, each with compiled bytecode, as in an installation. Ratios to
`python -c pass`, since absolute times are of this machine only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import cyclopts

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, in_turn, question_of, show

MILLISECOND = 1e6
ROOT = Path(__file__).parent.parent
NOTHING = "python -c pass"

_OPEN = "import sys, ledger; ledger.open(sys.argv[1])"
_READ = "import sys, ledger; ledger.open(sys.argv[1]).table('shop.orders').at()"
_COMMIT = (
    "import sys, ledger; table = ledger.open(sys.argv[1]).table('shop.orders')\n"
    "table.alter([ledger.SetOption('team.name', 'x')])"
)


def run(workdir: Path, *, repeats: int) -> Report:
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        lake = _lake(Path(folder) / "lake")
        lines: dict[str, tuple[list[str], float | None]] = {
            NOTHING: (["-c", "pass"], None),
            "import ledger": (["-c", "import ledger"], 3),
            "import ledger, open a ledger": (["-c", _OPEN, lake], 10),
            "import ledger, open a table, read it": (["-c", _READ, lake], 16),
            "import ledger, open a table, commit to it": (["-c", _COMMIT, lake], 30),
            "lakeledger --version": (["-m", "ledger", "--version"], 7),
            "lakeledger --help": (["-m", "ledger", "--help"], 18),
            "lakeledger show": (["-m", "ledger", "show", "shop.orders", "--ledger", lake], 26),
            "lakeledger log": (["-m", "ledger", "log", "shop.orders", "--ledger", lake], 26),
        }
        starts = {
            name: _start(words, Path(folder) / "bytecode") for name, (words, _) in lines.items()
        }
        times = in_turn(starts, repeats)
    nothing = times[NOTHING].median_ns
    figures = [Figure(NOTHING, nothing / MILLISECOND, "ms")]
    for name, (_, bound) in lines.items():
        if bound is not None:
            took = times[name].median_ns
            figures += [
                Figure(name, took / nothing, "x", at_most=bound),
                Figure(f"{name}, beyond nothing", (took - nothing) / MILLISECOND, "ms"),
            ]
    return Report(question_of(__doc__), f"{len(lines)} lines", tuple(figures))


def _lake(folder: Path) -> str:
    lake = ledger.open(str(folder), author="bench")
    lake.create_database("shop")
    orders = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT", "day": "DATE"}))
    orders.append([ledger.FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9)])
    return str(folder)


def _start(words: list[str], bytecode: Path) -> Callable[[], object]:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    line = [sys.executable, *words]

    def start() -> None:
        subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, check=True)

    return start


def main(*, repeats: int = 15, workdir: Path = WORKDIR, output: Output = "text") -> None:
    """Start each command some times.

    Args:
        repeats: Number of starts of each; the median counts.
        workdir: Folder of the ledger.
        output: text or json.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    show(run(workdir, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
