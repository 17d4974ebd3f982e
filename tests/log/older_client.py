"""What a client that knows format 1 alone does, run on the code of that time; a line an order.

Run as a script, so that nothing of today's code is imported. Orders are JSON on stdin, answers
JSON on stdout.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

import ledger
from ledger.cli import main
from ledger.stores import Durability, LocalStore

# Older versions have them elsewhere.
TableSetting = get_type_hints(ledger.Ledger.__init__)["setting"]
_room = "ledger.evolution.fold" if find_spec("ledger.evolution.fold") else "ledger.evolution"
TableStream = import_module(f"{_room}.table_record").TableStream

asked: list[str] = []


class Counting(LocalStore):
    """Notes every key that it is asked for."""

    def read(self, key: str) -> bytes | None:
        asked.append(key)
        return super().read(key)

    def exists(self, key: str) -> bool:
        asked.append(key)
        return super().exists(key)

    def read_many(self, keys: Any) -> Iterator[bytes | None]:
        return map(self.read, keys)


def opened(folder: str) -> ledger.Ledger:
    store = Counting(Path(folder), durable=Durability.NONE)
    return ledger.Ledger(TableSetting(store=store, storage_options={}, author="older"))


def state_hash(state: Any) -> str:
    return hashlib.sha256(TableStream().encode_state(state)).hexdigest()


class Client:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.lake: Any = None
        self.table: Any = None

    def begin(self) -> None:
        self.lake = opened(self.folder)
        self.lake.create_database("shop")
        self.lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT", "n": "INT"}))

    def open(self) -> dict[str, Any]:
        asked.clear()
        self.lake = opened(self.folder)
        self.table = self.lake.table("shop.orders")
        count = len(asked)
        state = self.table.state
        return {"version": state.version, "hash": state_hash(state), "asked": count}

    def alter(self, first: int, count: int) -> int:
        for number in range(first, first + count):
            change = ledger.SetOption(f"k{number % 7}", str(number))
            self.table.alter([change], message=f"m{number}", commit_id=f"id-{number}")
        return int(self.table.state.version)

    def create_database(self, name: str) -> None:
        self.lake.create_database(name)

    def hashes(self) -> list[str]:
        builder = TableStream().builder(None)
        found = []
        for commit in self.table.events():
            builder.commit(commit)
            found.append(state_hash(builder.freeze()))
        return found

    def verify(self) -> int:
        with contextlib.redirect_stdout(io.StringIO()):
            return main(["verify", "--ledger", self.folder])


def run() -> None:
    client = Client(sys.argv[1])
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = [getattr(client, name)(*arguments), None]
        except ledger.LedgerError as error:
            answer = [type(error).__name__, str(error)]
        print(json.dumps(answer), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    run()
