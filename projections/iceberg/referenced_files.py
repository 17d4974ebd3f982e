"""Files that the snapshots, branches and tags of an Iceberg table reference, for `maintain`.

Source: the Iceberg table specification, "Snapshots", "Manifest Lists" and "Manifests".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ledger.model.errors import DamagedLogError
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from projections.iceberg.position import METADATA_PATH, metadata_file_url
from projections.manifest_files.container import read_container, translating_decoder_errors


def referenced_files(state: TableState, read: Callable[[str], bytes | None]) -> Iterator[str]:
    """Yield the URLs of all files that a state of a table from Iceberg references.

    Data files come first, then manifests, manifest lists, statistics and metadata files: an
    interrupted deletion in this order can find the rest again. Metadata files of
    a served table are named whether they exist or not.

    Args:
        state: The state.
        read: Reads a file by its URL; the files that one for which it returns None lists are left
            out.

    Raises:
        DamagedLogError: A manifest or manifest list cannot be decoded.
    """
    origin = state.origin_of_kind(IcebergOrigin)
    lists: dict[str, None] = {}
    manifests: dict[str, None] = {}
    for each in origin.snapshots.values():
        manifests.update(dict.fromkeys(each.manifests or ()))
        if each.manifest_list is not None:
            lists[each.manifest_list] = None
    for url in lists:
        manifests.update(dict.fromkeys(_paths_in(read(url), url, "manifest_path")))
    for url in manifests:
        yield from _paths_in(read(url), url, "data_file", "file_path")
    yield from manifests
    yield from lists
    yield from (each.statistics_path for each in origin.statistics.values())
    yield from (each.statistics_path for each in state.partition_statistics.values())
    yield from (each.metadata_file for each in origin.metadata_log)
    if origin.metadata_file:
        yield origin.metadata_file
    if state.owner.kind == "served":
        yield from _served_metadata_files(state, origin)


def _paths_in(body: bytes | None, url: str, *keys: str) -> Iterator[str]:
    """Yield the paths in the records of an Avro file, under nested keys."""
    if body is None:
        return
    with translating_decoder_errors(url):
        records = [*read_container(body, url)]
    for record in records:
        found: object = record
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if not isinstance(found, str):
            raise DamagedLogError(f"{url} has a record without {'.'.join(keys)}", url)
        yield found


def _served_metadata_files(state: TableState, origin: IcebergOrigin) -> Iterator[str]:
    """Yield the metadata file of each version of a served table, in all folders that it may have.

    A table may have had other folders before; those files are not its own any more.
    """
    options = state.schema.options
    for version in range(state.version + 1):
        yield metadata_file_url(state.table_id, version, options, origin.location)
        if METADATA_PATH in options:
            yield metadata_file_url(state.table_id, version, {}, origin.location)
