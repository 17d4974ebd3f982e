"""First decoding in threads: decoders are built with the import, by one thread only."""

from __future__ import annotations

import pytest

from tests import programs
from tests.thorough import some

SCRIPT = """
import sys, threading

sys.setswitchinterval(1e-6)
together = threading.Barrier(8)
body = b'{"format":3,"version":0,"timeMillis":1,"transactions":[{"id":"x","requestDigest":""}]}'

def first(is_table):
    together.wait()
    from ledger.events import TableEvent
    from ledger.events.catalog import CatalogEvent
    from ledger.log.codec import Codec
    for _ in range(20):
        assert Codec(TableEvent if is_table else CatalogEvent).decode(body, "file").version == 0

threads = [threading.Thread(target=first, args=[n % 2]) for n in range(8)]
for each in threads: each.start()
for each in threads: each.join()
"""


@pytest.mark.parametrize("run", some(range(4), 2))
def test_threads_may_open_their_first_tables_at_once(run: int) -> None:
    done = programs.run("-c", SCRIPT, timeout_s=60)
    assert (run, done.returncode, done.stderr) == (run, 0, "")
