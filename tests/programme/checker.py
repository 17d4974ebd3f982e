"""Does a history keep the promises? Judged from raw bodies, without the code that wrote them.

`check_log` raises an AssertionError for the first promise that is broken: versions without gaps,
one chain, everything acknowledged there exactly once and where it was said to be, nothing there
that failed, real-time order, reads that are prefixes and never older than what was acknowledged.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any

from tests.programme.figures import FIGURES
from tests.programme.records import Attempt, History

Log = list[dict[str, Any]]


def read_log(bodies: Mapping[str, bytes], root: str) -> Log:
    """Return the commits under `root`, checked for gaps and along their chain."""
    folder = f"{root}/log/"
    keys = sorted(key for key in bodies if key.startswith(folder))
    assert keys == [f"{folder}{version:020d}.json" for version in range(len(keys))], "gaps"
    log: Log = []
    parent = None
    for version, key in enumerate(keys):
        commit = json.loads(bodies[key])
        assert commit["version"] == version
        assert commit.get("parent") == parent, f"{key} breaks the chain"
        if log:
            assert commit["timeMillis"] >= log[-1]["timeMillis"], f"{key} goes back in time"
        assert commit["format"] == 3, f"{key} says format {commit['format']}"
        parent = "sha256:" + hashlib.sha256(bodies[key]).hexdigest()
        log.append(commit)
    return log


def places_of(log: Log) -> dict[str, list[int]]:
    """Return the versions that hold each operation, by the message that names it."""
    places: dict[str, list[int]] = defaultdict(list)
    for commit in log:
        for transaction in commit["transactions"]:
            places[transaction.get("message", "")].append(commit["version"])
    return places


def check_log(history: History, log: Log) -> None:
    """Check the outcomes reported to writers against the log."""
    places = places_of(log)
    keys = _keys_of(log)
    by_name: dict[str, list[Attempt]] = defaultdict(list)
    for each in history.attempts:
        by_name[each.name].append(each)
    for name, attempts in by_name.items():
        _check_operation(name, attempts, places.get(name, []), keys)
    strange = places.keys() - by_name.keys() - {""}
    assert not strange, f"nobody asked for what is in the log: {sorted(strange)}"
    _check_once(log)
    _check_real_time(history)


def _check_operation(
    name: str, attempts: list[Attempt], found: list[int], keys: Mapping[str, list[int]]
) -> None:
    assert len(found) <= 1, f"{name} is in the log {len(found)} times: {found}, {attempts}"
    succeeded = [each for each in attempts if each.outcome == "acknowledged"]
    for each in succeeded:
        at = keys.get(each.key, []) if each.is_repeated and each.key and not found else found
        FIGURES["lost"] += not at
        version = each.version if each.version >= 0 else (at or [-1])[0]
        assert at == [version] != [-1], f"{name}: reported {each.version}, found {at}: {attempts}"
    if all(each.outcome in ("failed", "silent") for each in attempts):
        assert not found, f"{name} failed and is in the log at {found}: {attempts}"
    if attempts[-1].outcome == "failed":
        # An earlier attempt committed it, so that the last response is untrue.
        assert not found, f"{name} was reported as failed and is in the log at {found}: {attempts}"
    fresh = [each for each in succeeded if not each.is_repeated]
    assert len(fresh) <= 1, f"{name} was done twice: {attempts}"


def _keys_of(log: Log) -> dict[str, list[int]]:
    """Return the versions of what has a key: snapshots, and the ends of tables."""
    keys: dict[str, list[int]] = defaultdict(list)
    for commit in log:
        for transaction in commit["transactions"]:
            for event in transaction.get("events", ()):
                if event["type"] == "commitSnapshot" and "commitIdentifier" in event:
                    facts = ("commitUser", "commitIdentifier", "commitKind")
                    keys[" ".join(str(event[each]) for each in facts)].append(commit["version"])
                elif event["type"] == "dropTable":
                    keys["dropTable"].append(commit["version"])
                    keys[f"dropTable {event['tableId']}"].append(commit["version"])
                elif event["type"] == "undropTable":
                    # From here on it may end once more.
                    keys.pop(f"dropTable {event['tableId']}", None)
    return keys


def _check_once(log: Log) -> None:
    """No commit id twice, no snapshot's key, and no table's end."""
    ids = Counter(each["id"] for commit in log for each in commit["transactions"])
    assert not [each for each, times in ids.items() if times > 1], "a commit id twice"
    keys = _keys_of(log)
    # The catalog's stream holds the ends of many.
    keys.pop("dropTable", None)
    twice = [each for each, found in keys.items() if len(found) > 1]
    assert not twice, f"a key twice: {twice}"


def _check_real_time(history: History) -> None:
    """Check that a commit acknowledged before another call began precedes that call's commit."""
    succeeded = [each for each in history.attempts if each.outcome == "acknowledged"]
    acknowledged = Newest((each.answered, each.version) for each in succeeded)
    for later in succeeded:
        if not later.is_repeated and later.version >= 0:
            newest = acknowledged.before(later.invoked)
            assert newest < later.version, f"{later} began after version {newest} was acknowledged"
    seen = Newest((each.answered, each.version) for each in history.observations)
    for observation in history.observations:
        newest = max(acknowledged.before(observation.invoked), seen.before(observation.invoked))
        assert observation.version >= newest, f"{observation} is older than {newest}"


class Newest:
    """The newest version that had been reported by some moment."""

    def __init__(self, succeeded: Iterable[tuple[int, int]]) -> None:
        in_order = sorted(succeeded)
        self._moments = [moment for moment, _ in in_order]
        self._versions = list(accumulate((version for _, version in in_order), max))

    def before(self, moment: int) -> int:
        """Return that version; -1 before any was reported."""
        place = bisect_left(self._moments, moment)
        return self._versions[place - 1] if place else -1


def check_observations(history: History, digest_at: Callable[[int], str]) -> int:
    """Check that each state that was read is that of the prefix; return how many."""
    for each in history.observations:
        assert digest_at(each.version) == each.digest, f"{each} is no prefix"
    return len(history.observations)
