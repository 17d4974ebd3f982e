from __future__ import annotations

import sys

from ledger.model.parquet_limits import copy_to_arrow_memory


def test_arrow_holds_no_bytes_of_pythons() -> None:
    body = bytes(range(256)) * 40
    before = sys.getrefcount(body)

    reader = copy_to_arrow_memory(body)

    assert sys.getrefcount(body) == before
    assert reader.read() == body


def test_no_bytes_are_bytes_too() -> None:
    assert copy_to_arrow_memory(b"").read() == b""
