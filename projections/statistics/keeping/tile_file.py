"""A tile as a Parquet file that tells by itself whether it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from ledger.model.bounded.parquet import bounded_table
from ledger.observing.notices import warn
from ledger.stores import Store
from projections.statistics.definition import KEY_NAMES, MEASURES, PLACE_NAMES, ROWS, arrow_schema
from projections.statistics.keeping.tiling import Tile

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
_FORMAT_KEY = b"lakeledger.statistics"

_LOGGER = "projections.statistics"

_COUNTED = [each.name for each in MEASURES]
_REPEATED = [*PLACE_NAMES, *KEY_NAMES]


@frozen
class TileFiles:
    """The tiles of one table.

    A cache: one that is missing, torn or of another format is made again from the log.

    Attributes:
        store: The table's.
        root: The statistics' folder on it.
    """

    store: Store
    root: str

    def key(self, tile: Tile) -> str:
        """Return the key of a tile."""
        return f"{self.root}/{tile.name}"

    def load(self, tile: Tile) -> pa.Table | None:
        """Return a tile's rows; None when there are none to use."""
        body = self.store.read(self.key(tile))
        if body is None:
            return None
        found = rows_of(body)
        if found is None:
            warn(_LOGGER, "statistics_tile_unreadable", file=self.key(tile))
        return found

    def save(self, tile: Tile, rows: pa.Table) -> None:
        """Keep a tile, in place of whatever stood there.

        Raises:
            OSError: Kept or not, nobody knows.
        """
        self.store.replace(self.key(tile), body_of(rows))

    def remove(self, tile: Tile) -> None:
        """Take a tile away."""
        self.store.delete(self.key(tile))


def body_of(rows: pa.Table) -> bytes:
    """Return rows as the bytes of a Parquet file; each page carries its checksum."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    said = rows.replace_schema_metadata({_FORMAT_KEY: str(FORMAT)})
    parquet.write_table(
        said,
        sink,
        compression="zstd",
        # Sums seldom repeat: their dictionaries would fill, and be thrown away.
        use_dictionary=_REPEATED,
        column_encoding=dict.fromkeys(_COUNTED, "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
    )
    return bytes(sink.getvalue())


def rows_of(body: bytes) -> pa.Table | None:
    """Return the rows that a file holds; None when it is torn, changed, or of another format."""
    import pyarrow as pa

    schema = arrow_schema(ROWS)
    try:
        table = bounded_table(body, "the tile")
        if (table.schema.metadata or {}).get(_FORMAT_KEY) != str(FORMAT).encode():
            return None
        return table.select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, KeyError, ValueError):
        return None
