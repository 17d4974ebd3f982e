"""What a Paimon table's files are called and where it keeps them, relative to the table's location.

Names of manifests and lists are made of the table's id and of what they hold, never random.

Source: Paimon's FileStorePathFactory, SchemaManager, SnapshotManager and TagManager.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from uuid import UUID, uuid5

from attrs import frozen

from ledger.model.errors import InvalidNameError
from projections.manifest_files.lists import list_names
from projections.paimon.manifests.tiers import Tile
from projections.partition_text import partition_path

FOLDERS = ("schema", "snapshot", "tag", "manifest")
"""The folders whose files the ledger projects."""

EARLIEST = "snapshot/EARLIEST"
"""The hint that holds the number of the oldest snapshot file."""

LATEST = "snapshot/LATEST"
"""The hint that holds the number of the newest snapshot file."""

POSTPONED_BUCKET = -2
"""The bucket of files whose rows are put into buckets later."""

_NUMBERED = re.compile(r"(schema|snapshot)/\1-(0|[1-9][0-9]{0,18})")
_LAST_CONTROL = 0x1F
_DELETE = 0x7F


def bucket_path(spec: Mapping[str, str], bucket: int) -> str:
    """Return the folder where Paimon looks for the data files of one bucket.

    Args:
        spec: The partition's text by key, as `PartitionText.spec` gives it; empty for a table
            without partitions.
        bucket: As the manifest entry has it; an append table's is 0.

    Example:
        >>> bucket_path({"dt": "19723", "kind": "a/b"}, 0)
        'dt=19723/kind=a%2Fb/bucket-0'
        >>> bucket_path({}, POSTPONED_BUCKET)
        'bucket-postpone'
    """
    folder = "bucket-postpone" if bucket == POSTPONED_BUCKET else f"bucket-{bucket}"
    return f"{partition_path(spec)}/{folder}" if spec else folder


def schema_path(schema_id: int) -> str:
    """Return the place of a schema file.

    >>> schema_path(0)
    'schema/schema-0'
    """
    return f"schema/schema-{schema_id}"


def snapshot_path(snapshot_id: int) -> str:
    """Return the place of a snapshot file.

    >>> snapshot_path(1)
    'snapshot/snapshot-1'
    """
    return f"snapshot/snapshot-{snapshot_id}"


def tag_path(name: str) -> str:
    """Return the place of a tag file.

    Raises:
        InvalidNameError: The name is blank or would leave the folder: it holds a separator or a
            control character.

    Example:
        >>> tag_path("2024-01-01 05")
        'tag/tag-2024-01-01 05'
    """
    if not name.strip() or any(_unsafe(each) for each in name):
        raise InvalidNameError(
            f"tag name {name!r} cannot stand in a file's name: it must not be blank nor hold "
            "slashes or control characters; name the tag otherwise"
        )
    return f"tag/tag-{name}"


def manifest_path(name: str) -> str:
    """Return the place of a manifest, a manifest list or an index manifest.

    >>> manifest_path("manifest-list-x-0")
    'manifest/manifest-list-x-0'
    """
    return f"manifest/{name}"


def statistics_path(name: str) -> str:
    """Return the place of a statistics file.

    >>> statistics_path("stat-x-0")
    'statistics/stat-x-0'
    """
    return f"statistics/{name}"


def set_aside_path(path: str, body: bytes) -> str:
    """Return where a file of somebody else's goes that stands in the ledger's way.

    Paimon's readers look at names that begin as theirs do, which this one does not.

    Example:
        >>> set_aside_path("snapshot/snapshot-6", b"mine")
        'snapshot/foreign-3fd30542-snapshot-6'
    """
    folder, _, name = path.rpartition("/")
    return f"{folder}/foreign-{hashlib.sha256(body).hexdigest()[:8]}-{name}"


def is_ahead(path: str, *, schema_id: int, snapshot_id: int) -> bool:
    """Whether a path is the place of a schema or snapshot file after the newest ones.

    Example:
        >>> is_ahead("snapshot/snapshot-6", schema_id=0, snapshot_id=5)
        True
        >>> is_ahead("snapshot/snapshot-5", schema_id=0, snapshot_id=5)
        False
    """
    found = _NUMBERED.fullmatch(path)
    return (
        found is not None
        and int(found[2]) > {"schema": schema_id, "snapshot": snapshot_id}[found[1]]
    )


def _unsafe(character: str) -> bool:
    return character in "/\\" or ord(character) <= _LAST_CONTROL or ord(character) == _DELETE


@frozen
class Names:
    """The names of one table's files.

    Example:
        >>> names = Names("01a1f54c-0000-7000-8000-000000000000")
        >>> names.tile(Tile(1, 8)) == names.tile(Tile(1, 8)) != names.tile(Tile(1, 1))
        True
    """

    table_id: str

    def _uuid(self, what: str) -> UUID:
        return _uuid_of(self.table_id, what)

    def tile(self, tile: Tile) -> str:
        """Return the name of the manifest of a tile."""
        return f"manifest-{self._uuid(f'manifest {tile.first} {tile.last}')}-0"

    def older_live(self, rollback: int, part: int) -> str:
        """Return the name that renderer 1 gave to a list of the files live at a rollback."""
        return f"manifest-{self._uuid(f'live {rollback}')}-{part}"

    def lists(self, snapshot_id: int) -> tuple[str, str]:
        """Return the names of a snapshot's base and delta manifest list."""
        return list_names(self.table_id, snapshot_id)

    def snapshot_uuid(self, snapshot_id: int) -> str:
        """Return a snapshot's uuid."""
        return str(self._uuid(f"snapshot {snapshot_id}"))

    def statistics(self, snapshot_id: int, check: str) -> str:
        """Return the name of a statistics file.

        Args:
            snapshot_id: The snapshot that was analysed.
            check: A digest of what the file says.
        """
        return f"stat-{self._uuid(f'statistics {snapshot_id} {check}')}-0"

    def sync_marker(self, name: str) -> bytes:
        """Return the sixteen bytes between a file's Avro blocks."""
        return self._uuid(name).bytes


@lru_cache(maxsize=1024)
def _uuid_of(table_id: str, what: str) -> UUID:
    # A snapshot asks for the names of all manifests that it lists, most of which the one before it
    # listed, too.
    return uuid5(UUID(table_id), what)
