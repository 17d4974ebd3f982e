"""Ledgers on real local folders, to be damaged and looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from attrs import frozen

from ledger import Ledger, SetOption
from ledger.history.verifying import Expected, Finding, Subject, Verification, repair
from ledger.history.verifying.verify import unmet
from ledger.stores import Durability, LocalStore, Store
from ledger.table_handle import TableHandle, handle_of
from tests.lakes import data_file, lake_on, orders, ticking

LONG = 1_001
"""More file changes than a commit holds inline."""


@frozen
class Looked:
    """The result of the verification of one stream."""

    findings: list[Finding]
    version: int
    digest: str | None

    @property
    def damages(self) -> list[Finding]:
        return [each for each in self.findings if each.kind == "damage"]

    @property
    def head(self) -> Expected:
        assert self.digest is not None
        return Expected(self.digest, self.version)


@frozen
class Place:
    """A ledger in a folder, with the table shop.orders."""

    folder: Path

    @property
    def store(self) -> Store:
        return LocalStore(self.folder, durable=Durability.NONE)

    def lake(self, clock: Callable[[], int] | None = None) -> Ledger:
        return lake_on(self.store, clock)

    @property
    def stream(self) -> Path:
        return self.folder / "shop.db" / "orders" / "_ledger"

    def commit(self, version: int) -> Path:
        return self.stream / "log" / f"{version:020d}.json"

    def caches(self) -> list[Path]:
        return [*files_in(self.stream / "caches")]

    def subject(self) -> Subject[Any, Any]:
        # Not through the catalog: opening a damaged table raises.
        lake = self.lake()
        entry = next(iter(lake.state.tables.values()))
        return Subject(
            "shop.orders",
            TableHandle(entry.identifier, entry.path, handle_of(lake).setting).log,
            has_files=True,
        )

    def look(self, *expected: Expected) -> Looked:
        subject = self.subject()
        verification: Verification[Any, Any] = Verification(subject, expected)
        found = [*verification.run(), *unmet(expected, [(subject, verification)])]
        return Looked(found, verification.version, verification.digest)

    def repair(self) -> list[Finding]:
        subject = self.subject()
        verification: Verification[Any, Any] = Verification(subject)
        return [each for each in verification.run() if repair(subject, each)]


def built(folder: Path, commits: int) -> Place:
    """Return a ledger whose table has `count` commits after its creation: some of each kind."""
    place = Place(folder)
    table = orders(place.lake(ticking()))
    for number in range(1, commits + 1):
        if number == 75:
            table.append([data_file(f"{number}/{each}.parquet") for each in range(LONG)])
        elif number % 5 == 0:
            table.append([data_file(f"f{number}.parquet")], commit_id=f"id-{number}")
        elif number % 25 == 4 and number > 25:
            table.delete_files([f"f{number - 9}.parquet"])
        else:
            table.alter([SetOption("k", str(number))])
    assert handle_of(table).log.wait_for_caches()
    return place


def files_in(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file() and each.name != ".lock")


def contents(paths: Iterable[Path]) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in paths}


def flip(path: Path, offset: int, bit: int) -> bytes:
    """Flip one bit; return what was there."""
    before = path.read_bytes()
    body = bytearray(before)
    body[offset % len(body)] ^= 1 << bit
    path.write_bytes(bytes(body))
    return before
