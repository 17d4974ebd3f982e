"""Segments, as tests compare them."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import parquet

from ledger.log.caches.segments.file import SegmentColumns, is_segment_of


def is_same_segment(one: bytes, other: bytes) -> bool:
    """Return whether any bytes say in every column what a segment of ours says."""
    file = parquet.ParquetFile(pa.BufferReader(one))
    lines = file.read(["line"], use_threads=False).column("line")
    return is_segment_of(SegmentColumns.of(lines.cast(pa.binary()).to_pylist()), other)
