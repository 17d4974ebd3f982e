"""Verifying many commits at once finds what verifying each alone finds, and the reverse."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

from ledger import DamagedLogError, LedgerError, SetOption
from ledger.events import TableEvent
from ledger.history.verifying import Expected, Finding, Subject, Verification
from ledger.history.verifying import spans as span
from ledger.history.verifying.commits import Chain
from ledger.history.verifying.subject import CommitColumns, Listed
from ledger.log import Codec, StreamLog, digest, encode
from ledger.state import TableStream
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from tests.lakes import data_file, lake_on, memory, orders
from tests.thorough import some

COMMITS = 330
LOG = "shop.db/orders/_ledger/log/"
Log = dict[str, bytes]


@lru_cache
def sound() -> tuple[tuple[str, bytes], ...]:
    """Return the files of a ledger whose table says most of what a table says."""
    store = memory()
    table = orders(lake_on(store))
    table.append([data_file(f"l{number}.parquet") for number in range(1_001)])
    branch = table.branch("audit")
    for number in range(1, COMMITS):
        if number == 1:
            table.create_branch("audit")
        elif number % 50 == 9:
            # Main has one of that name, too.
            branch.append([data_file(f"f{number - 1}.parquet")])
        elif number % 50 == 7:
            table.rollback(snapshot=1 + number // 50)
        elif number % 40 == 3:
            table.delete_files([f"f{number - 1}.parquet"])
        elif number % 2:
            table.alter([SetOption("k", str(number))])
        else:
            table.append([data_file(f"f{number}.parquet")], commit_id=f"id-{number}")
    handle_of(table).log.save_next_caches()
    return tuple((key, store.read(key) or b"") for key in store.keys(""))


def findings(files: Log) -> tuple[list[Finding], int, str | None, set[Expected]]:
    store = memory()
    for key, body in files.items():
        store.create(key, body)
    subject = Subject("shop.orders", table_log(store), has_files=True)
    noted = Expected(digest(dict(sound())[key_of(COMMITS // 2)]))
    verification: Verification[Any, Any] = Verification(subject, [noted])
    found = [*verification.run()]
    return found, verification.version, verification.digest, verification.met


def table_log(store: MemoryStore) -> Any:
    return StreamLog(store, "shop.db/orders/_ledger", TableStream())


def key_of(version: int) -> str:
    return f"{LOG}{version:020d}.json"


def flipped(files: Log, rng: random.Random) -> None:
    key = rng.choice([each for each in files if "shop.db" in each and files[each]])
    body = bytearray(files[key])
    body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    files[key] = bytes(body)


def gone(files: Log, rng: random.Random) -> None:
    del files[rng.choice([each for each in files if "shop.db" in each])]


def swapped(files: Log, rng: random.Random) -> None:
    one, other = (key_of(rng.randrange(1, COMMITS)) for _ in range(2))
    files[one], files[other] = files[other], files[one]


def loosely_written(files: Log, rng: random.Random) -> None:
    """A commit says the same in other bytes, and all that follow it fit."""
    version = rng.randrange(1, COMMITS)
    files[key_of(version)] = files[key_of(version)].replace(b'":', b'": ', 1)
    chained(files, version + 1)


def untrue(files: Log, rng: random.Random) -> None:
    """A commit says what cannot be, and all that follow it fit."""
    version = rng.randrange(1, COMMITS)
    commit = json.loads(files[key_of(version)])
    (event,) = commit["transactions"][0]["events"][:1] or [{}]
    for bend in rng.sample(BENDS, 6):
        bend(commit, event, rng)
    try:
        decoded = Codec[Any](TableEvent).decode(json.dumps(commit).encode(), "bent")
        files[key_of(version)] = encode(decoded)
    except (LedgerError, OverflowError):
        return
    chained(files, version + 1)


def chained(files: Log, first: int) -> None:
    """Make the commits from one on follow one another."""
    codec = Codec[Any](TableEvent)
    for version in range(first, COMMITS + 1):
        if key_of(version) not in files:
            return
        document = json.loads(files[key_of(version)])
        document["parent"] = digest(files[key_of(version - 1)])
        files[key_of(version)] = encode(codec.decode(json.dumps(document).encode(), "chained"))


def _file(event: dict[str, Any], key: str, value: Any) -> None:
    for each in event.get("files", [])[:1]:
        each[key] = value


BENDS: list[Callable[[dict[str, Any], dict[str, Any], random.Random], None]] = [
    lambda commit, _event, rng: commit["transactions"][0].update(id=f"id-{rng.randrange(99) * 2}"),
    lambda commit, _event, rng: commit.update(timeMillis=rng.choice((-1, 0, 2**63))),
    lambda _commit, event, rng: event.update(
        {each: rng.choice((-1, 2**31, 2**63)) for each in event if each.endswith("Id")}
    ),
    lambda _commit, event, _rng: event.update(
        {each: 9 for each in event if each == "deltaRecordCount"}
    ),
    lambda _commit, event, rng: _file(event, "path", rng.choice(("../x", "f2.parquet", ""))),
    lambda _commit, event, rng: _file(event, "bucket", rng.choice((-5, 2**31))),
    lambda _commit, event, _rng: _file(event, "lowerBounds", {"0": "no hex"}),
    lambda _commit, event, _rng: _file(event, "partition", ["no day"]),
    lambda _commit, event, _rng: _file(event, "valueCounts", {"0": 2**63}),
    lambda _commit, event, _rng: _file(event, "specId", 7),
]


def one_by_one(*_: object) -> list[Listed]:
    raise DamagedLogError("each list is looked at alone", "file")


KINDS = [flipped, gone, swapped, loosely_written, untrue]


@pytest.mark.parametrize("seed", some(range(24), 8))
def test_together_shows_what_alone_shows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    files, rng = dict(sound()), random.Random(seed)
    for _ in range(rng.randrange(1, 4)):
        KINDS[(seed + _) % len(KINDS)](files, rng)
    together = findings(files)
    monkeypatch.setattr(Chain, "_links_if_all_valid", lambda *_: None)
    monkeypatch.setattr(span, "all_fit", lambda *_: False)
    monkeypatch.setattr(CommitColumns, "listed", one_by_one)
    assert together == findings(files)


def test_nothing_is_found_in_what_is_sound() -> None:
    found, version, _, met = findings(dict(sound()))
    assert (found, version, len(met)) == ([], COMMITS, 1)


def test_most_damages_show() -> None:
    shown = 0
    for seed in range(10):
        files = dict(sound())
        KINDS[seed % len(KINDS)](files, random.Random(seed))
        shown += bool(findings(files)[0])
    assert shown >= 8


def test_a_line_that_ends_in_the_next_file_is_reported() -> None:
    files = dict(sound())
    version = COMMITS // 2
    files[key_of(version)] = files[key_of(version)].removesuffix(b"\n")
    chained(files, version + 1)
    files[key_of(version + 1)] = b"\n" + files[key_of(version + 1)]
    chained(files, version + 2)

    found, *_ = findings(files)

    assert [each.version for each in found if each.kind == "damage"] == [version, version + 1]
    assert all("not written as lakeledger writes" in each.what for each in found[:2])
