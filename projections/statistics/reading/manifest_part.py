"""ManifestPart: what is to be read of one manifest for the statistics of one snapshot.

Plans are made of parts, whatever reads them: they say what a manifest list says, so that lists are
read once and manifests can be read anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
from attrs import frozen

from projections.statistics.definition import (
    ENTRIES,
    KEY_NAMES,
    PLACE,
    PLACE_NAMES,
    EngineColumn,
    arrow_schema,
)

if TYPE_CHECKING:
    import pyarrow as pa

LEDGER = "ledger"
"""The dialect of lists that the ledger keeps itself."""

NOBODY = -1
"""`adder` where no snapshot's entries are picked out."""


@frozen(kw_only=True)
class ManifestPart:
    """One manifest, or one list of file changes, and what to take of it.

    Attributes:
        version: The commit of the snapshot that is counted.
        snapshot_id: That snapshot.
        dialect: Whose manifest it is: the name of a format; `LEDGER` means the list that a commit
            holds or names.
        file: Its key on the table's store; of the ledger's the commit's.
        size: Its bytes; -1 where nobody recorded them.
        count: How many entries it has, as far as its list says.
        sign: 1 where its files come, -1 where they go.
        compared: 1 where files that come and go alike cancel out, as in a rollback.
        adder: The engine's id of the snapshot whose changes alone are taken, or the ledger's of
            the snapshot whose list it is; `NOBODY` takes all that its format counts.
        spec_id: The files' partition spec, in formats whose lists say it.
        time_millis: When the counted snapshot took effect, for formats that keep no time of a file.
    """

    version: int
    snapshot_id: int
    dialect: str
    file: str
    size: int = -1
    count: int = 0
    sign: int = 1
    compared: int = 0
    adder: int = NOBODY
    spec_id: int = 0
    time_millis: int = 0

    @property
    def content(self) -> tuple[str, str, int]:
        """What two parts share that hold the same entries."""
        return self.dialect, self.file, self.adder


PARTS = (
    *PLACE,
    EngineColumn("dialect", "string"),
    EngineColumn("file", "string"),
    *(
        EngineColumn(name)
        for name in ("size", "count", "sign", "compared", "adder", "spec_id", "time_millis")
    ),
)
"""A part as a row."""

FOUND = (*ENTRIES, EngineColumn("path", "string", nullable=True))
"""Rows of `ENTRIES` with the file's path, by which they are compared."""


PATHS = [*PLACE_NAMES, *KEY_NAMES, "path"]
"""Which file it is that one snapshot compares."""

COMPARED = ("record_count", "file_size_in_bytes", "creation_time")
"""What one file says alike wherever it is listed."""

Row = tuple[int, str, str, int, int, int, int, str]
"""What a manifest says of one file: the columns of `FOUND` after the place."""


def table_of(parts: Iterable[ManifestPart]) -> pa.Table:
    """Return parts as rows of `PARTS`."""
    import pyarrow as pa

    rows = [attrs.asdict(each) for each in parts]
    return pa.Table.from_pylist(rows, schema=arrow_schema(PARTS))


def parts_of(batch: pa.RecordBatch | pa.Table) -> Iterator[ManifestPart]:
    """Yield the parts of rows of `PARTS`."""
    return (ManifestPart(**row) for row in batch.to_pylist())


def without_common(parts: Sequence[ManifestPart]) -> list[ManifestPart]:
    """Return parts without those that come and go: what both have in common says nothing.

    Example:
        >>> old, new = (ManifestPart(version=3, snapshot_id=3, dialect="paimon", file=each)
        ...             for each in "ab")
        >>> [each.file for each in without_common([old, new, attrs.evolve(old, sign=-1)])]
        ['b']
    """
    sums: dict[tuple[str, str, int], int] = {}
    for each in parts:
        sums[each.content] = sums.get(each.content, 0) + each.sign
    found: list[ManifestPart] = []
    for each in parts:
        if sums[each.content] * each.sign > 0:
            sums[each.content] -= each.sign
            found.append(each)
    return found


def compared(rows: pa.Table) -> pa.Table:
    """Return entries without files that come and go alike, and without their paths.

    Args:
        rows: Rows of `FOUND`; all of a snapshot's.
    """
    import pyarrow.compute as pc

    folds = [("sign", "sum"), *((name, "max") for name in COMPARED)]
    grouped = rows.group_by(PATHS, use_threads=False).aggregate(folds)
    names = {f"{name}_{fold}": name for name, fold in folds}
    named = grouped.rename_columns([names.get(each, each) for each in grouped.column_names])
    schema = arrow_schema(ENTRIES)
    return named.filter(pc.not_equal(named["sign"], 0)).select(schema.names).cast(schema)
