"""Deletion vectors as Iceberg writes them: blobs of roaring bitmaps in a Puffin file.

Source: the Puffin specification, "deletion-vector-v1" and the file's footer.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Collection, Mapping

from pyroaring import BitMap

_FILE, _VECTOR = b"PFA1", b"\xd1\xd3\x39\x64"
_ROW_POSITION = 2_147_483_545


def puffin(vectors: Mapping[str, Collection[int]]) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """Return a Puffin file, and where in it each vector begins and how long it is.

    Args:
        vectors: By the URI of a data file, the positions of the rows that are deleted.
    """
    body, places, blobs = bytearray(_FILE), {}, []
    for uri, positions in vectors.items():
        # All positions here have no more than 32 bits: one bitmap, of the high half 0.
        bitmap = struct.pack("<QI", 1, 0) + BitMap(positions).serialize()
        inside = _VECTOR + bitmap
        blob = struct.pack(">I", len(inside)) + inside + struct.pack(">I", zlib.crc32(inside))
        places[uri] = (len(body), len(blob))
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [_ROW_POSITION],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(body),
                "length": len(blob),
                "properties": {
                    "referenced-data-file": uri,
                    "cardinality": str(len(positions)),
                },
            }
        )
        body += blob
    footer = json.dumps({"blobs": blobs}).encode()
    body += _FILE + footer + struct.pack("<II", len(footer), 0) + _FILE
    return bytes(body), places
