"""Files that the ledger projected otherwise: by an older renderer, or for another place.

They are nobody else's, so that the newest renderer's take their place: new ones are written first,
the pointer goes over to them, and the old ones are taken away last.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator

import msgspec
from attrs import frozen

from ledger.model.errors import DamagedLogError
from projections.avro_container import read_container
from projections.iceberg.names import FOLDER, Names
from projections.outputs import StoreOutputs


class _Snapshot(msgspec.Struct, rename="kebab"):
    manifest_list: str


class _Metadata(msgspec.Struct, rename="kebab"):
    snapshots: list[_Snapshot]


def projected(outputs: StoreOutputs, names: Names) -> frozenset[str]:
    """Return the files on a store that a renderer's metadata files name, and these themselves.

    Args:
        outputs: Where they are.
        names: The renderer's.
    """
    there = frozenset(outputs.paths(FOLDER))
    found: set[str] = set()
    lists: set[str] = set()
    for path in there:
        version = names.version_of(path)
        if version is None:
            continue
        body = outputs.read(path) or b""
        found.add(path)
        if outputs.read(names.hadoop(version)) == body:
            found.add(names.hadoop(version))
        lists.update(_lists(body))
    lists &= there
    manifests = {each for path in lists for each in _manifests(outputs.read(path) or b"", path)}
    return frozenset(found | lists | (manifests & there))


def _lists(metadata: bytes) -> Iterator[str]:
    try:
        snapshots = msgspec.json.decode(metadata, type=_Metadata).snapshots
    except (msgspec.DecodeError, UnicodeError):
        return
    for each in snapshots:
        yield _below(each.manifest_list)


def _manifests(body: bytes, path: str) -> Iterator[str]:
    try:
        records = list(read_container(body, path))
    except DamagedLogError:
        return
    for each in records:
        yield _below(str(each.get("manifest_path", "")))


def _below(uri: str) -> str:
    return f"{FOLDER}/{posixpath.basename(uri)}"


@frozen
class Renewing(StoreOutputs):
    """A table's folder, where some files are the ledger's own and make room for others.

    Attributes:
        own: The paths of these.
    """

    own: Collection[str] = ()

    def put(self, path: str, body: bytes) -> None:
        """Keep a file, in the place of one of our own if one stands there.

        Raises:
            StoreError: Another's file stands there.
        """
        if path in self.own and self.read(path) not in (None, body):
            self.store.replace(self.key(path), body)
        else:
            super().put(path, body)
