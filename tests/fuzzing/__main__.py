"""The fuzzer: `python -m tests.fuzzing --seconds 3600 --seed 1`.

A worker process mutates and runs inputs; this one watches it, so that a crash or a hang is a
finding like any other. Progress goes to stderr, the summary to stdout, findings into the corpus.
The exit code is 1 where there are findings.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import re
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from tests.fuzzing.cases import CORPUS, Case, decoded, encoded, kept_cases, seed_names
from tests.fuzzing.minimising import minimised
from tests.fuzzing.mutating import mutated
from tests.fuzzing.running import SECONDS, run

_MEMORY_BYTES: Final = 512 << 20
"""Memory that one input may take beyond what the worker has at its start."""

_QUIET_SECONDS: Final = 12 * SECONDS
"""After so long without a line from the worker it hangs, where no signal handler runs."""

_MOST_INPUTS: Final = 30_000
"""After this many inputs a new worker process begins, with fresh memory."""

_MOST_KEPT: Final = 2_000
_REPORT_SECONDS: Final = 1.0


def work(seed: str, current: Path) -> None:
    """Run inputs until there were many; write what comes of them to stdout, a JSON object a line.

    An input whose outcome is new is mutated further.

    Args:
        seed: Of the random numbers.
        current: The file that holds the input which runs, for when it ends the process.
    """
    run(Case(seed_names()[0], {}))
    rng = random.Random(seed)
    names = seed_names()
    pool = [*kept_cases().values()]
    seen: set[tuple[str, str]] = set()
    counts: Counter[str] = Counter()
    reported = time.monotonic()
    for _ in range(_MOST_INPUTS):
        base = Case(rng.choice(names), {}) if rng.random() < 0.6 else rng.choice(pool)
        case = mutated(base, rng)
        current.write_bytes(encoded(case))
        _limit_memory()
        found = run(case)
        counts[f"{case.target} {found.kind}"] += 1
        if (case.target, found.what) not in seen:
            seen.add((case.target, found.what))
            if found.kind == "finding":
                small = minimised(case, partial(_is_of, found.what))
                body = base64.b64encode(encoded(small)).decode()
                _say({"what": found.what, "detail": found.detail, "case": body})
            elif len(pool) < _MOST_KEPT:
                pool.append(case)
        if time.monotonic() - reported > _REPORT_SECONDS:
            _say({"counts": counts, "outcomes": len(seen)})
            counts.clear()
            reported = time.monotonic()
    _say({"counts": counts, "outcomes": len(seen)})


def _is_of(what: str, case: Case) -> bool:
    return run(case).what == what


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + _MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _say(said: Any) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


@define
class _Campaign:
    """The counts and findings of a run.

    Attributes:
        counts: Inputs, by target and kind of outcome.
        findings: The case of each cause.
        workers: How many worker processes were started.
        outcomes: How many different outcomes the newest worker has seen.
    """

    counts: Counter[str] = field(factory=Counter)
    findings: dict[str, Case] = field(factory=dict)
    workers: int = 0
    outcomes: int = 0

    def run(self, seconds: float, seed: int, save: Path) -> None:
        """Run workers, one after the other, until the time is over."""
        end = time.monotonic() + seconds
        with tempfile.TemporaryDirectory() as folder:
            current = Path(folder) / "current.json"
            while time.monotonic() < end:
                self.workers += 1
                line = ["--work", str(current), "--seed", f"{seed}-{self.workers}"]
                command = [sys.executable, "-m", "tests.fuzzing", *line]
                with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
                    ended = self._watch(worker, end, save)
                    worker.kill()
                if ended and current.exists():
                    case = decoded(current.read_bytes())
                    self._keep(f"{ended} on {case.target}", "", case, save)

    def _watch(self, worker: subprocess.Popen[bytes], end: float, save: Path) -> str:
        """Take what a worker says until the time is over; return how it ended before."""
        stream = worker.stdout
        if stream is None:
            raise AssertionError("the worker's stdout is a pipe")
        reported_s = time.monotonic()
        while (now := time.monotonic()) < end:
            if not select.select([stream], [], [], min(_QUIET_SECONDS, end - now))[0]:
                if time.monotonic() < end:
                    return "hang"
                return ""
            line = stream.readline()
            if not line:
                code = worker.wait()
                return f"process ended with {code}" if code else ""
            said = json.loads(line)
            if "what" in said:
                case = decoded(base64.b64decode(said["case"]))
                self._keep(said["what"], said["detail"], case, save)
                continue
            self.counts.update(said["counts"])
            self.outcomes = said["outcomes"]
            if now - reported_s > 30:
                reported_s = now
                _report(
                    f"{self.total:,} inputs, {len(self.findings)} findings, {end - now:.0f} s left"
                )
        return ""

    @property
    def total(self) -> int:
        """The number of inputs that ran."""
        return sum(self.counts.values())

    def _keep(self, what: str, detail: str, case: Case, save: Path) -> None:
        if what in self.findings:
            return
        self.findings[what] = case
        slug = re.sub(r"[^a-z0-9]+", "-", f"{case.target} {what}".lower()).strip("-")
        file = save / f"{slug[-100:].strip('-')}.json"
        file.write_bytes(encoded(case))
        _report(f"finding: {what} ({file.name})\n{detail[-3000:]}")

    def summary(self) -> str:
        """Return the figures, a line each."""
        kinds = [f"{name}: {count:,}" for name, count in sorted(self.counts.items())]
        found = [f"finding: {what} (seed {case.seed})" for what, case in self.findings.items()]
        head = f"{self.total:,} inputs, {self.workers} workers, {len(self.findings)} findings"
        return "\n".join((head, *kinds, *found))


def _report(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main() -> int:
    """Run the fuzzer by its command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--save", type=Path, default=CORPUS, help="folder for findings")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work is not None:
        work(asked.seed, asked.work)
        return 0
    asked.save.mkdir(parents=True, exist_ok=True)
    campaign = _Campaign()
    try:
        campaign.run(asked.seconds, int(asked.seed), asked.save)
    except KeyboardInterrupt:
        _report("interrupted")
    sys.stdout.write(f"{campaign.summary()}\n")
    return 1 if campaign.findings else 0


if __name__ == "__main__":
    sys.exit(main())
