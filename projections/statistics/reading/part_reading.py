"""PartReader: from parts to entries, in whatever process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import json

from ledger.evolution.state import TableState
from ledger.files.change_file import event_files
from ledger.history.older import TableLog, schemas
from ledger.log.travel import head_state
from projections.statistics.definition import ENTRIES, arrow_schema, content_of
from projections.statistics.reading.engine_files import named_by
from projections.statistics.reading.engine_manifests import ManifestReader, manifests_of
from projections.statistics.reading.manifest_part import FOUND, LEDGER, ManifestPart, Row, compared
from projections.statistics.reading.snapshot_contents import SnapshotContents

if TYPE_CHECKING:
    import pyarrow as pa


class PartReader:
    """Reads the manifests of one table.

    Args:
        log: The table's.
        contents: What its snapshots are made of.
    """

    def __init__(self, log: TableLog, contents: SnapshotContents) -> None:
        self._log = log
        self._contents = contents
        self._readers: dict[str, ManifestReader] = {}

    def entries(self, parts: Iterable[ManifestPart]) -> pa.Table:
        """Return the entries of all parts of one snapshot, as rows of `ENTRIES`.

        Raises:
            DamagedLogError: A manifest is missing, damaged, or of another table.
            UnsupportedError: It is of a version that this does not know.
        """
        import pyarrow as pa

        listed = list(parts)
        schema = arrow_schema(ENTRIES)
        plain = [self.found(each).select(schema.names) for each in listed if not each.compared]
        both = [self.found(each) for each in listed if each.compared]
        if both:
            plain.append(compared(pa.concat_tables(both)))
        return pa.concat_tables([schema.empty_table(), *(each.cast(schema) for each in plain)])

    def found(self, part: ManifestPart) -> pa.Table:
        """Return what is to be taken of a part, as rows of `FOUND`; raises as `entries`."""
        import pyarrow as pa

        with named_by(part.snapshot_id):
            rows = list(self._rows(part))
        spec_ids, partitions, contents, signs, *rest, paths = (
            map(list, zip(*rows, strict=True)) if rows else [[] for _ in FOUND[2:]]
        )
        files = self._contents.files
        columns = [
            [part.version] * len(rows),
            [part.snapshot_id] * len(rows),
            spec_ids,
            partitions,
            contents,
            [part.sign * each for each in signs],
            *rest,
            [files.path(each) for each in paths] if part.compared else [None] * len(rows),
        ]
        return pa.table(columns, schema=arrow_schema(FOUND))

    def _rows(self, part: ManifestPart) -> Iterator[Row]:
        if part.dialect == LEDGER:
            return self._listed(part)
        size = None if part.size < 0 else part.size
        body = self._contents.files.read(part.file, size, part.snapshot_id)
        if part.dialect not in self._readers:
            manifests = manifests_of(part.dialect)
            self._readers[part.dialect] = manifests.reader(
                self._state(), lambda: schemas(self._log)
            )
        return self._readers[part.dialect](body, part)

    def _state(self) -> TableState:
        if self._log.head is None:
            self._log.refresh()
        return head_state(self._log)

    def _listed(self, part: ManifestPart) -> Iterator[Row]:
        """Yield what a snapshot lists in the ledger."""
        event = self._contents.at(part.adder).event
        for each in event_files(self._log.store, self._log.layout, event):
            yield (
                each.spec_id,
                json.encode(each.partition).decode(),
                content_of(each.content, each.format),
                1 if each.kind == "ADD" else -1,
                each.record_count,
                each.file_size_in_bytes,
                each.creation_time,
                each.path,
            )
