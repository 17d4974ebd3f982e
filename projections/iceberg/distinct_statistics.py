"""Puffin files of distinct counts, and publication of statistics.

The file is written first, then an event of the log names it, then the metadata is projected. Its
name has a digest of what it holds, so that a later analysis which finds something else makes
another file, and one that finds the same makes none.

Pure. Blobs and footer are left uncompressed, so that the bytes are a function of what they hold.

Source: Iceberg's Puffin specification.

What writes them is imported when it is asked to: the help of a command names this.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Unpack

import msgspec
from attrs import field, frozen

from ledger.log.request import CommitOptions
from ledger.model.errors import InvalidInputError
from ledger.model.iceberg_objects import BlobMetadata
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.table import Table
from ledger.table_at import TableAt
from projections.iceberg.materialise import project
from projections.iceberg.position import Names
from projections.materialising import outputs_of
from projections.statistics.column_history import plain
from projections.statistics.publishing import Published

if TYPE_CHECKING:
    from projections.statistics.analyze import Analysis
    from projections.statistics.tile_rows import Kept


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


THETA = "apache-datasketches-theta-v1"
"""What Iceberg calls a theta sketch over single-value bytes; `ndv` says what it estimates."""

_CREATED_BY = "lakeledger"


class _Numbered(msgspec.Struct, rename="kebab"):
    snapshot_id: int
    sequence_number: int = 0


class _Snapshots(msgspec.Struct):
    snapshots: list[_Numbered]


def publish_distinct_counts(
    table: Table,
    at: TableAt,
    analysed: int,
    sketches: Mapping[int, bytes],
    distinct: Mapping[int, int],
    **options: Unpack[CommitOptions],
) -> Published:
    """Let Iceberg's readers find how many different values columns have at an instant's snapshot.

    Args:
        table: The table; that it may be published is checked before.
        at: The instant.
        analysed: The snapshot whose files were read: the instant's, or the one before its ANALYZE.
        sketches: By field id, the theta sketch of a column's values.
        distinct: By field id, about how many those are.
        options: See CommitOptions.

    Raises:
        InvalidInputError: The analysis is of another snapshot.
        NotFoundError: The snapshot was expired.
        UnsupportedError: The table cannot be projected, or its ledger takes no such events.
    """
    snapshot_id = at.state.last_snapshot_id
    _check_same_files(at, analysed)
    # First, so that nothing is committed that no reader could come to see.
    project(table)
    sequence = _sequence_number(table, analysed)
    blobs = [
        Blob(THETA, analysed, sequence, (key,), plain(sketch), {"ndv": str(distinct[key])})
        for key, sketch in sorted(sketches.items())
    ]
    check = hashlib.sha256(b"".join(each.body for each in blobs)).hexdigest()
    path = Names(table.state.table_id).sketches(snapshot_id, check)
    made = puffin_file(blobs, _CREATED_BY)
    _write(table, path, made)
    told = [
        BlobMetadata(
            type=each.type,
            snapshot_id=each.snapshot_id,
            sequence_number=each.sequence_number,
            fields=each.fields,
            properties=dict(each.properties),
        )
        for each in blobs
    ]
    known = table.state.puffin_files.get(snapshot_id)
    is_new = known is None or known.statistics_path != path
    if is_new:
        table.set_statistics(snapshot_id, path, len(made.body), made.footer_size, told, **options)
    return Published("iceberg", snapshot_id, path, project(table), is_new)


def _check_same_files(at: TableAt, analysed: int) -> None:
    snapshot_id = at.state.last_snapshot_id
    if analysed == snapshot_id:
        return
    is_analysis = at.snapshot is not None and at.snapshot.commit_kind == "ANALYZE"
    if not (is_analysis and analysed == snapshot_id - 1):
        raise InvalidInputError(
            f"the analysis is of snapshot {analysed}, and snapshot {snapshot_id} may hold other "
            "files: analyze the table again"
        )


def _sequence_number(table: Table, snapshot_id: int) -> int:
    """Return the sequence number that the projected metadata gives a snapshot."""
    origin = table.state.origin
    if isinstance(origin, IcebergOrigin):
        return origin.snapshots[snapshot_id].sequence_number
    body = outputs_of(table).read(Names(table.state.table_id).metadata(table.state.version))
    found = msgspec.json.decode(body or b'{"snapshots":[]}', type=_Snapshots).snapshots
    numbers = {each.snapshot_id: each.sequence_number for each in found}
    return numbers.get(snapshot_id, 0)


def _write(table: Table, path: str, made: Puffin) -> None:
    """Write a file, and again where it was lost or damaged."""
    outputs = outputs_of(table)
    found = outputs.read(path)
    if found is None:
        outputs.put(path, made.body)
    elif found != made.body:
        outputs.store.replace(outputs.key(path), made.body)


@frozen
class IcebergPublisher:
    """See `projections.statistics.publishing.Publisher`."""

    what: str = "Iceberg's partition statistics, and sketches of columns with --analyze"
    makes_snapshot: bool = False

    def check(self, table: Table, at: TableAt, analysis: Analysis | None) -> None:
        """Refuse what readers would not find."""
        import projections.iceberg.partition_statistics as partitions

        partitions.check(table, at)
        if analysis is None or partitions.is_partitioned(table):
            partitions.check_partitioned(table)

    def publish(
        self, table: Table, kept: Kept, at: TableAt, analysis: Analysis | None
    ) -> Iterator[Published]:
        """Publish what there is: of a table without partitions, that of columns alone."""
        import projections.iceberg.partition_statistics as partitions

        if analysis is None or partitions.is_partitioned(table):
            yield partitions.publish_partition_statistics(table, kept, at)
        if analysis is not None:
            yield publish_distinct_counts(
                table, at, analysis.snapshot_id, analysis.sketches, analysis.distinct
            )


ICEBERG = IcebergPublisher()
