"""A Puffin file: blobs of statistics, and a footer that says what they are.

Pure. Blobs and footer are left uncompressed, so that the bytes are a function of what they hold.

Source: Iceberg's Puffin specification.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import msgspec
from attrs import field, frozen

_MAGIC = b"PFA1"


@frozen
class Blob:
    """Statistics of some columns.

    Attributes:
        type: What the body is, by a name of the specification's.
        snapshot_id: The snapshot that it was computed from.
        sequence_number: That snapshot's.
        fields: The ids of the columns.
        body: It.
        properties: What can be known without reading it.
    """

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    body: bytes = field(repr=False)
    properties: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class Puffin:
    """A file.

    Attributes:
        body: Its bytes.
        footer_size: How many of them the footer is.
    """

    body: bytes = field(repr=False)
    footer_size: int


def puffin_file(blobs: Iterable[Blob], created_by: str) -> Puffin:
    """Return a file of some blobs.

    Args:
        blobs: They, in their order.
        created_by: Who writes it.

    Example:
        >>> found = puffin_file([Blob("t", 1, 1, (3,), b"12", {"ndv": "2"})], "me")
        >>> found.body[:6], found.body[-4:], found.footer_size
        (b'PFA112', b'PFA1', 169)
    """
    body, told = bytearray(_MAGIC), []
    for each in blobs:
        told.append(
            {
                "type": each.type,
                "fields": each.fields,
                "snapshot-id": each.snapshot_id,
                "sequence-number": each.sequence_number,
                "offset": len(body),
                "length": len(each.body),
                "properties": dict(sorted(each.properties.items())),
            }
        )
        body += each.body
    said = msgspec.json.encode({"blobs": told, "properties": {"created-by": created_by}})
    footer = _MAGIC + said + struct.pack("<ii", len(said), 0) + _MAGIC
    return Puffin(bytes(body + footer), len(footer))
