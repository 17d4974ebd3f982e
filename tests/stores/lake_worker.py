"""Another process at a ledger; `python -m tests.stores.lake_worker URL OPTIONS WHO COUNT`."""

from __future__ import annotations

import json
import sys

import ledger
from ledger import AddColumn


def add_columns(url: str, options: str, who: str, count: str) -> None:
    """Add columns to shop.orders, one a commit, and print the name of each that is acknowledged."""
    table = ledger.open(url, json.loads(options), author=who).table("shop.orders")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for number in range(int(count)):
        name = f"{who}_{number}"
        table.alter([AddColumn((name,), "INT")])
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    add_columns(*sys.argv[1:])
