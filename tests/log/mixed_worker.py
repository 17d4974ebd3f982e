"""One of many writers at one ledger, on the code of today or of the time of format 1.

Run as a script, so that nothing of today's code is imported. It asks for one commit after another,
each by an id of its own, and says on stdout what it asks and what came of it, a JSON line each:
so what a killed worker did not live to be told is known, too, and is asked again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import ledger


def run(url: str, options: dict[str, object], who: str, first: int, end: Path) -> None:
    """Commit until there is a file that tells the end; once at least."""
    number = first
    table = None
    while True:
        print(json.dumps(["asks", number]), flush=True)  # noqa: T201 - what is heard
        try:
            if table is None:
                table = ledger.open(url, storage_options=options).table("shop.orders")
            change = ledger.SetOption(f"{who}.{number % 3}", str(number))
            done = table.alter([change], commit_id=f"{who}-{number}", message=f"{who}-{number}")
        except (ledger.CommitUnknownError, ledger.CommitConflictError, OSError) as error:
            print(json.dumps(["again", str(error)]), flush=True)  # noqa: T201
            continue
        print(json.dumps(["done", number, done.version]), flush=True)  # noqa: T201
        number += 1
        if end.exists():
            return


if __name__ == "__main__":
    run(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
