from __future__ import annotations

import pytest

from projections.delta.actions import is_ledger_commit


@pytest.mark.parametrize("body", [b"\xb0", b'{"commitInfo":{"engineInfo":"\xb0"}}', b"{", b""])
def test_a_commit_file_that_cannot_be_read_is_not_the_ledgers_own(body: bytes) -> None:
    assert not is_ledger_commit(body)
