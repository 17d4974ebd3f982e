"""Spans of a long log verified by several processes at once.

Each opens the store anew, so that nothing is shared but the bytes there. A process that dies takes
nothing with it: what it was to do is done here.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final, Self

from attrs import field, frozen

from ledger.evolution.stream import Stream
from ledger.history.verifying.spans.span import SpanReport, SpanVerification, VerifiedSpan
from ledger.history.verifying.subject import Subject
from ledger.log.stream_log import StreamLog
from ledger.stores import open_store

_OBJECTS: Final = 200_000

WORTH: Final = 30_000
"""A log of fewer commits is verified before other processes have begun."""


@frozen
class Task:
    """What every span of one stream has in common.

    Attributes:
        url: Its store's.
        options: What opening that takes.
        root: Its `_ledger` folder.
        stream: What its events mean.
        name: What people call it.
        has_files: Whether its commits list data files.
        wanted: The digests that somebody noted elsewhere.
        mends: Whether findings bring what restores them.
    """

    url: str
    options: Mapping[str, Any] = field(repr=False)
    root: str
    stream: Stream[Any, Any]
    name: str
    has_files: bool
    wanted: frozenset[str]
    mends: bool


class Workers:
    """Some processes; with `with`, so that none is left.

    Args:
        options: What opening the store of a URL takes.
        count: How many; None for as many as this one may use processors.
    """

    def __init__(
        self, options: Callable[[str], Mapping[str, Any]], count: int | None = None
    ) -> None:
        self._options = options
        self.count = count or _processors()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def pays(self, subject: Subject[Any, Any], count: int) -> bool:
        """Whether so many commits of a stream are worth the time that processes take to begin.

        What is in this process's memory alone, no other sees.
        """
        return count >= WORTH and not subject.store.url.startswith("memory:")

    def task(self, subject: Subject[Any, Any], wanted: frozenset[str], *, mends: bool) -> Task:
        """Return what spans of a stream have in common."""
        url = subject.store.url
        return Task(
            url,
            dict(self._options(url)),
            subject.layout.root,
            subject.log.stream,
            subject.name,
            subject.has_files,
            wanted,
            mends,
        )

    def verify(self, task: Task, spans: Sequence[VerifiedSpan]) -> Future[list[SpanReport[Any]]]:
        """Begin to verify spans that follow one another, all by one process."""
        return self._started().submit(_verify, task, spans)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Never forked: a fork keeps locks that other threads hold.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, context, initializer=_ready)
        return self._pool


Died = BrokenProcessPool
"""Raised by a future whose process died."""


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _ready() -> None:
    # Ctrl-C goes to all of them; the one that asked ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A span makes many objects and no circles of them.
    gc.freeze()
    gc.set_threshold(_OBJECTS)


_subjects: dict[tuple[str, str], Subject[Any, Any]] = {}
"""The stream that this process looks at, so that its store is opened once."""


def _subject(task: Task) -> Subject[Any, Any]:
    key = task.url, task.root
    if key not in _subjects:
        _subjects.clear()
        store = open_store(task.url, task.options)
        log: StreamLog[Any, Any] = StreamLog(store, task.root, task.stream)
        _subjects[key] = Subject(task.name, log, task.has_files)
    return _subjects[key]


def _verify(task: Task, spans: Sequence[VerifiedSpan]) -> list[SpanReport[Any]]:
    found: SpanVerification[Any, Any] = SpanVerification(
        _subject(task), task.wanted, mends=task.mends
    )
    return found.run_on(spans)
