"""What threads do first: decoders are built when they are needed, one at a time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.thorough import some

SCRIPT = """
import sys, threading
from ledger import Schema, open
from ledger.log.codec import Codec, encode
from ledger.events import TableEvent
from ledger.events.catalog_events import CatalogEvent
from ledger.events.commit import Commit, Transaction

sys.setswitchinterval(1e-6)
together = threading.Barrier(8)
body = encode(Commit(format=1, version=0, time_millis=1, transactions=(Transaction(id="x"),)))

def first(kind):
    together.wait()
    for _ in range(20):
        assert Codec(kind).decode(body, "file").version == 0

threads = [
    threading.Thread(target=first, args=[TableEvent if n % 2 else CatalogEvent]) for n in range(8)
]
for each in threads: each.start()
for each in threads: each.join()
"""


@pytest.mark.parametrize("run", some(range(4), 2))
def test_threads_may_open_their_first_tables_at_once(run: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run, done.returncode, done.stderr) == (run, 0, "")
