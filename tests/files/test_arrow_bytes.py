from __future__ import annotations

import sys

from ledger.model.parquet_limits import arrow_owned


def test_arrow_holds_no_bytes_of_pythons() -> None:
    body = bytes(range(256)) * 40
    before = sys.getrefcount(body)

    reader = arrow_owned(body)

    assert sys.getrefcount(body) == before
    assert reader.read() == body


def test_no_bytes_are_bytes_too() -> None:
    assert arrow_owned(b"").read() == b""
