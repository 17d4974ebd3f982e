"""Avro object containers in bytes: written so that equal records give equal bytes, read with care.

Reading takes every codec that fastavro has. Bytes that do not fit are an error that names the
file: no declared length is believed beyond what the file holds, and no schema inside it makes
values out of nothing.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ledger.model.errors import DamagedLogError, MissingDependencyError
from projections.avro_framing import SYNC_BYTES, check_blocks
from projections.avro_schema import readable_schema

_BLOCK_BYTES = 65_536
_CODEC_PACKAGES = {"zstandard": "backports.zstd", "snappy": "cramjam", "lz4": "lz4"}


def write_container(
    schema: dict[str, Any],
    records: Iterable[dict[str, Any]],
    *,
    sync_marker: bytes,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """Return an uncompressed container; a compression library's version must not change it.

    Args:
        schema: Avro's, decoded.
        records: In order.
        sync_marker: 16 bytes that stand between blocks; derive them from what the file is.
        metadata: Keys and values for the file's header.
    """
    import fastavro

    if len(sync_marker) != SYNC_BYTES:
        raise ValueError(f"a sync marker has {SYNC_BYTES} bytes, not {len(sync_marker)}")
    out = io.BytesIO()
    fastavro.writer(
        out,
        schema,
        records,
        codec="null",
        sync_interval=_BLOCK_BYTES,
        sync_marker=sync_marker,
        metadata=dict(metadata or {}),
    )
    return out.getvalue()


def read_container(body: bytes, file: str) -> list[dict[str, Any]]:
    """Return a container's records, logical types as their plain numbers.

    A file cut exactly behind a block reads as a shorter file: Avro keeps no total. Compare its
    size with the one that was recorded for it.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError: The bytes are no container, or are cut or changed.
        MissingDependencyError: The package for the file's codec is not installed.
    """
    try:
        return list(_records(body))
    except MissingDependencyError:
        raise
    except Exception as error:
        # Decoders fail in their own ways on bytes that nobody wrote; all of them mean the same.
        raise DamagedLogError(
            f"{file} is no readable Avro file: {type(error).__name__}: {error}; take the "
            "snapshot that names it as lost, or restore the file from a copy",
            file,
        ) from error


def _records(body: bytes) -> Iterator[dict[str, Any]]:
    import fastavro

    stream = io.BytesIO(body)
    # fastavro's types do not tell of a block's content.
    blocks: Any = fastavro.block_reader(stream)
    codec = str(blocks.codec)
    _check_codec(codec)
    check_blocks(body, stream.tell(), codec)
    schema = readable_schema(blocks.writer_schema)
    for block in blocks:
        yield from _block_records(block.bytes_, block.num_records, schema)


def _block_records(content: io.BytesIO, count: int, schema: Any) -> Iterator[Any]:
    import fastavro

    size = len(content.getbuffer())
    if not 0 <= count <= size:
        raise ValueError(f"{count} records cannot stand in {size} bytes")
    for _ in range(count):
        yield fastavro.schemaless_reader(content, schema, None)
    if content.tell() != size:
        raise ValueError(f"{size - content.tell()} bytes follow a block's last record")


def _check_codec(codec: str) -> None:
    package = _CODEC_PACKAGES.get(codec)
    if package is not None and not _has_codec(codec):
        raise MissingDependencyError(
            f"an Avro file is compressed with {codec}: install {package} to read it"
        )


@functools.cache
def _has_codec(codec: str) -> bool:
    import fastavro

    try:
        fastavro.writer(io.BytesIO(), "int", [0], codec=codec)
    except ValueError:
        return False
    return True
