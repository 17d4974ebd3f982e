"""Bytes that Arrow may hold for as long as it likes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_owned(body: bytes) -> pa.BufferReader:
    """Return a copy to read a Parquet file from with threads.

    Arrow's threads let go of what they read a moment after the rows are there. Letting go of
    Python's own bytes takes the interpreter, and a thread that asks for it while the interpreter
    ends takes the whole process down.

    Example:
        >>> arrow_owned(b"abc").read()
        b'abc'
    """
    import pyarrow as pa

    buffer = pa.allocate_buffer(len(body))
    with pa.FixedSizeBufferWriter(buffer) as writer:
        writer.write(body)
    return pa.BufferReader(buffer)
