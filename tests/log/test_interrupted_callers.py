"""A caller interrupted at any line of a call gets what is known of its commit."""

from __future__ import annotations

import linecache
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ledger
from ledger import CommitUnknownError, FileChange, LedgerError, NotFoundError, SetOption, Table
from tests.lakes import lake_on, memory
from tests.thorough import some

OWN = str(Path(ledger.__file__).parent)
STEP = 7
"""Every N-th line, with another offset in each case."""


class SoftTimeLimitError(Exception):
    """The error that a signal handler raises."""


class LimitAsOSError(SoftTimeLimitError, TimeoutError):
    """Raised by another one; in the calling thread it may be taken for a failed read of a store."""


def file(name: str) -> FileChange:
    return FileChange(path=f"{name}.parquet", record_count=1, file_size_in_bytes=9)


class Caller:
    """Two handles on one ledger, both warm: what one asks for is read by the other."""

    def __init__(self) -> None:
        store = memory()
        self.lake, self.reader = lake_on(store), lake_on(store)
        self.lake.create_database("shop")
        self.table = self.lake.create_table("shop.orders", {"id": "BIGINT"})
        self.table.append([file("first")])
        self.read = self.reader.table("shop.orders")

    def is_gone(self, name: str) -> bool:
        """Return whether a table is missing; the look-up finishes a drop left half done."""
        try:
            self.reader.table(f"shop.{name}")
        except NotFoundError:
            return True
        return False


ASKED: dict[str, Callable[[Caller, str], object]] = {
    "append": lambda caller, name: caller.table.append([file(name)]),
    "alter": lambda caller, name: caller.table.alter([SetOption(name, "1")]),
    "tag": lambda caller, name: caller.table.create_tag(name),
    "database": lambda caller, name: caller.lake.create_database(name),
    "table": lambda caller, name: caller.lake.create_table(f"shop.{name}", {"id": "BIGINT"}),
    "drop": lambda caller, name: caller.lake.drop_table(f"shop.{name}"),
}

STANDS: dict[str, Callable[[Caller, str], bool]] = {
    "append": lambda caller, name: any(
        each.path == f"{name}.parquet" for each in caller.read.at().files
    ),
    "alter": lambda caller, name: name in caller.read.at().options,
    "tag": lambda caller, name: name in caller.read.state.tags,
    "database": lambda caller, name: name in caller.reader.databases(),
    "table": lambda caller, name: not caller.is_gone(name),
    "drop": lambda caller, name: caller.is_gone(name),
}


def is_entering(frame: FrameType) -> bool:
    """Return whether a line acquires what the next one releases: an interrupt may fall between."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return line.startswith(("with ", "with(", "self.store.lock(", "self._taking_turns()"))


_WRAPPING = Table.__init__.__code__
"""The last step before a call returns, as late as the caller's own assignment of the result."""


def interrupted(
    ask: Callable[[], object], at: int, limit: type[SoftTimeLimitError]
) -> tuple[BaseException | None, bool]:
    """Call, and raise at one line of ours; return what came out, and whether it was reached."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        is_own = frame.f_code.co_filename.startswith(OWN) and frame.f_code is not _WRAPPING
        if event == "line" and is_own and not is_entering(frame):
            lines += 1
            if lines == at:
                sys.settrace(None)
                raise limit
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        ask()
    except (SoftTimeLimitError, LedgerError) as error:
        return error, True
    finally:
        sys.settrace(before)
    return None, lines >= at


@pytest.mark.parametrize("limit", [SoftTimeLimitError, LimitAsOSError])
@pytest.mark.parametrize("first", some([*range(1, STEP + 1)], 1))
@pytest.mark.parametrize("what", ASKED)
def test_an_interrupted_caller_gets_what_is_known_of_its_commit(
    what: str, first: int, limit: type[SoftTimeLimitError], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is raised while an object is freed, Python reports to this hook alone.
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    caller = Caller()
    at, counts = first, {"noted": 0, "not sent": 0}
    while True:
        name = f"{what}{at}"
        if what == "drop":
            caller.lake.create_table(f"shop.{name}", {"id": "BIGINT"})
        error, was_reached = interrupted(
            lambda name=name: ASKED[what](caller, name),  # type: ignore[misc]
            at,
            limit,
        )
        if not was_reached:
            break
        # The pending commit completes meanwhile.
        time.sleep(0.01)
        if lost:
            lost.clear()
            at += STEP
            continue
        notes = " ".join(getattr(error, "__notes__", ()))
        stands = STANDS[what](caller, name)
        if error is None or isinstance(error, CommitUnknownError):
            # Where a store is read in the calling thread, an OSError is the store's.
            assert limit is LimitAsOSError
            assert stands, at
            at += STEP
            continue
        assert isinstance(error, SoftTimeLimitError), error
        is_known = any(each in notes for each in ("was committed", "may be", "may have"))
        assert not stands or is_known, at
        assert stands or "was committed" not in notes, at
        counts["noted" if notes else "not sent"] += 1
        at += STEP
    assert STANDS[what](caller, name)
    assert counts["noted"]
    assert counts["not sent"]
