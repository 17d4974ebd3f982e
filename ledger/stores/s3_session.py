"""What S3's client does by itself and a small object does not need."""

from __future__ import annotations

from typing import Any


def send_at_once(client: Any) -> None:
    """Let an s3fs file system send bodies along with their headers.

    By itself it sends a body once the server has asked for it (`Expect: 100-continue`), a round
    trip later, which spares large uploads that are refused; a commit is small, and would take two
    round trips instead of one. A session that the caller brought is the caller's own.
    """
    from aiobotocore.session import AioSession
    from botocore.handlers import add_expect_header

    if client.session is None:
        session = AioSession(**client.kwargs)
        session.unregister("before-call.s3", add_expect_header)
        client.session = session
