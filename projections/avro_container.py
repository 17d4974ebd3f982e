"""Avro object containers in bytes: written so that equal records give equal bytes, read with care.

Reading takes every codec that Avro has. Bytes that do not fit are an error that names the file:
no declared length is believed beyond what the file holds, no block unpacks to more than an honest
writer's does, and no schema inside it makes values out of nothing.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ledger.model.errors import DamagedLogError, MissingDependencyError
from projections.avro_framing import SYNC_BYTES, Block, contents
from projections.avro_schema import readable_schema

_BLOCK_BYTES = 65_536


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
    # fastavro reads the header here, and would unpack a block whole, however big that gets.
    header: Any = fastavro.block_reader(stream)
    schema = readable_schema(header.writer_schema)
    for block, content in contents(body, stream.tell(), str(header.codec)):
        yield from _block_records(block, content, schema)


def _block_records(block: Block, content: bytes, schema: Any) -> Iterator[Any]:
    import fastavro

    size = len(content)
    if not 0 <= block.count <= size:
        raise ValueError(f"{block.count} records cannot stand in {size} bytes")
    stream = io.BytesIO(content)
    for _ in range(block.count):
        yield fastavro.schemaless_reader(stream, schema, None)
    if stream.tell() != size:
        raise ValueError(f"{size - stream.tell()} bytes follow a block's last record")
