"""Worker processes at one ledger: started, killed now and then, and heard when they are done."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, evolve, field

from tests.programme import soak_worker
from tests.programme.figures import FIGURES
from tests.programme.records import History
from tests.programme.soak_worker import Post, Role, attempts_in, lines_in, observations_in

# One process loads everything once; every worker is its child.
_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["tests.programme.soak_worker", "pyarrow.parquet", "s3fs", "adlfs", "fastavro"]
)


@define
class Crew:
    """The workers of one run.

    Attributes:
        folder: Where they say what they do.
        url: The ledger.
        seconds: How long they work.
        options: Of the store.
        until_s: When they stop, on the monotonic clock.
    """

    folder: Path
    url: str
    seconds: float
    options: Mapping[str, Any] = field(factory=dict)
    until_s: float = field(init=False)
    _posts: list[Post] = field(factory=list)
    _processes: list[Any] = field(factory=list)
    _ended: list[Post] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        # Loading takes its time, and is not work.
        first = _CONTEXT.Process(target=time.monotonic)
        first.start()
        first.join()
        self.until_s = time.monotonic() + self.seconds

    def start(self, role: Role, count: int = 1, **more: Any) -> None:
        """Start workers."""
        for _ in range(count):
            number = len(self._posts)
            who = f"{role}{number}.0"
            said = self.folder / who
            post = Post(role, who, self.url, self.options, self.until_s, said, **more)
            self._posts.append(post)
            self._processes.append(_started(post))

    def kill_some(self, every_s: float, seed: int) -> None:
        """Kill one every so often, and put another in its place, to the end."""
        rng = random.Random(seed)
        while time.monotonic() + (pause_s := rng.uniform(0.5, 1.5) * every_s) < self.until_s:
            time.sleep(pause_s)
            number = rng.randrange(len(self._posts))
            old = self._posts[number]
            self._processes[number].kill()
            self._processes[number].join()
            ended = self._processes[number].exitcode
            # Under load the sleep may outlast the work.
            has_failed = ended != -signal.SIGKILL and (ended or time.monotonic() < self.until_s)
            assert not has_failed, Path(f"{old.said}.out").read_text()[-3000:]
            FIGURES["kills"] += 1
            generation = int(old.who.rpartition(".")[2]) + 1
            who = f"{old.role}{number}.{generation}"
            self._ended.append(old)
            post = evolve(old, who=who, said=self.folder / who, before=old.said)
            self._posts[number] = post
            self._processes[number] = _started(post)

    def done(self, within_s: float) -> None:
        """Wait until all have stopped; none may have failed."""
        end = self.until_s + within_s
        for process in self._processes:
            process.join(max(0.1, end - time.monotonic()))
        stuck = [each.who for each, process in self._pairs() if process.exitcode is None]
        for process in self._processes:
            process.kill()
        failed = [each for each, process in self._pairs() if process.exitcode]
        said = "\n".join(Path(f"{each.said}.out").read_text()[-3000:] for each in failed)
        assert not stuck, f"{stuck} did not come to an end\n{said}"
        assert not failed, said

    def _pairs(self) -> list[tuple[Post, Any]]:
        return list(zip(self._posts, self._processes, strict=True))

    def history(self) -> History:
        """Return all calls, outcomes and observations of the writers."""
        said = [each.said for each in (*self._ended, *self._posts) if each.role == "write"]
        return History(
            [attempt for path in said for attempt in attempts_in(path)],
            [observation for path in said for observation in observations_in(path)],
        )

    def runs(self) -> Counter[str]:
        """Return how often each other role did its work."""
        return Counter(
            each.role
            for each in (*self._ended, *self._posts)
            for line in lines_in(each.said)
            if "run" in line
        )


def _started(post: Post) -> Any:
    process = _CONTEXT.Process(target=soak_worker.work, args=[post])
    process.start()
    return process
