"""Paimon tables as sources of an import."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, TypeVar

from attrs import define

from ledger.model.errors import InvalidInputError, LedgerError, NotFoundError, StoreError
from ledger.model.messages import excerpt
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.model.types import type_places
from ledger.stores.base import is_key
from ledger.stores.file_access import FileAccess
from projections.importing.trial import SourceFiles, place_of_source, plain
from projections.paimon.manifest_avro import read_manifest_list
from projections.paimon.paths import manifest_path, schema_path, snapshot_path, tag_path
from projections.paimon.schema_file import SCHEMA_KEYS, schema_from_json
from projections.paimon.snapshot_file import (
    SNAPSHOT_KEYS,
    TAG_KEYS,
    TagFile,
    snapshot_from_json,
    tag_from_json,
)

_T = TypeVar("_T")

FENCE: Final = "lakeledger.table-id"
"""The property of a snapshot file by which a ledger's table keeps all others out."""

_NOT_CARRIED: Final = {
    "consumer": "how far consumers have read (consumer/)",
    "changelog": "changelogs that outlive their snapshots (changelog/)",
    "service": "the addresses of services (service/)",
}
_NAMES: Final = (
    *("base_manifest_list", "delta_manifest_list", "changelog_manifest_list"),
    *("index_manifest", "statistics"),
)
"""The files that a snapshot calls by name."""

_LONGEST_NAME: Final = 255
"""In bytes: file systems have none longer."""

_BRANCH_FOLDERS: Final = ("schema", "snapshot", "tag")


@define(slots=False)
class Source:
    """A table of somebody else.

    Attributes:
        location: Its folder; without secrets.
        files: Reads it.
        unknown: The keys met so far that this version knows nothing of, as `snapshot-5: key`.
    """

    location: str
    files: SourceFiles
    unknown: dict[str, str]

    @cached_property
    def schema_ids(self) -> tuple[int, ...]:
        """The ids of its schemas, ascending.

        Raises:
            NotFoundError: It has none: it is no Paimon table.
        """
        found = self._numbers("schema")
        if not found:
            raise NotFoundError(f"{self.location} holds no Paimon table: it has no schema/schema-N")
        return found

    @cached_property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids of its snapshots, ascending."""
        return self._snapshot_files[:-1] if self.fence else self._snapshot_files

    @cached_property
    def _snapshot_files(self) -> tuple[int, ...]:
        return self._numbers("snapshot")

    @cached_property
    def fence(self) -> str | None:
        """The id of the ledger's table that lets nobody commit here any more; None for none.

        Its file is the last one, and says the id of the snapshot before it.
        """
        if not self._snapshot_files:
            return None
        number = self._snapshot_files[-1]
        last = self.snapshot(number)
        return (last.properties or {}).get(FENCE) if last.id == number - 1 else None

    @cached_property
    def tags(self) -> Mapping[str, TagFile]:
        """Its tags, by name."""
        names = (each.removeprefix("tag-") for each in self._names("tag") if each[:4] == "tag-")
        found = {
            name: self._file(tag_path(name), tag_from_json, SNAPSHOT_KEYS | TAG_KEYS)
            for name in names
        }
        for name, tag in found.items():
            self._refuse_names(tag.snapshot, tag_path(name))
        return found

    def schema(self, schema_id: int) -> Schema:
        """Return a schema.

        Raises:
            InvalidInputError: Its file is half written, or something else.
            NotFoundError: It is gone.
        """
        path = schema_path(schema_id)
        found = self._file(path, schema_from_json, SCHEMA_KEYS)
        counts = Counter(each.field.id for each in type_places(found.fields) if each.field)
        repeated = [each for each, count in counts.items() if count > 1]
        if repeated:
            # As Paimon does: RowType.currentHighestFieldId calls it a broken schema.
            raise InvalidInputError(
                f"{self.location}/{path} gives the field id {repeated[0]} to two columns: every id "
                "belongs to one; have its owner put it right, then import again"
            )
        return found

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """Return a snapshot; errors as of `schema`."""
        path = snapshot_path(snapshot_id)
        found = self._file(path, snapshot_from_json, SNAPSHOT_KEYS)
        self._refuse_names(found, path)
        return found

    def branches(self) -> dict[str, dict[str, str]]:
        """Return the texts of each branch's files, by path below its folder."""
        names = [each for each in self._names("branch") if each.startswith("branch-")]
        return {
            each.removeprefix("branch-"): dict(self._branch(f"branch/{each}")) for each in names
        }

    def not_carried(self) -> Iterator[str]:
        """Yield what there is that the ledger does not hold, in words."""
        yield from (what for folder, what in _NOT_CARRIED.items() if self._names(folder))
        yield from self.unknown.values()

    def refuse_missing(self) -> None:
        """Check that what the newest snapshot and the tags read is there.

        Raises:
            NotFoundError: A manifest list or a manifest is gone.
        """
        named: dict[str, Snapshot] = {
            f"tag {name}": each.snapshot for name, each in self.tags.items()
        }
        if self.snapshot_ids:
            newest = self.snapshot_ids[-1]
            named[f"snapshot {newest}"] = self.snapshot(newest)
        there = frozenset(self._names("manifest"))
        lists: dict[str, str] = {}
        for who, snapshot in named.items():
            for each in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
                if each is not None:
                    lists.setdefault(each, who)
        for name, who in lists.items():
            self._refuse_absent(name, who, there)
            body = self._read(manifest_path(name))
            for manifest in read_manifest_list(body, name):
                self._refuse_absent(manifest.file_name, who, there)

    def _refuse_names(self, snapshot: Snapshot, path: str) -> None:
        """Check that what a snapshot calls by name could be a file in the folder for that."""
        for key in _NAMES:
            name = getattr(snapshot, key)
            if name is not None and not _is_name(name):
                raise InvalidInputError(
                    f"{self.location}/{path}: its {key.replace('_', ' ')} {excerpt(name)} is no "
                    "name of a file; nothing of it was taken: have it put right there, then ask "
                    "again"
                )

    def _refuse_absent(self, name: str, who: str, there: frozenset[str]) -> None:
        if name not in there:
            raise NotFoundError(
                f"{self.location}/{manifest_path(name)}, which {who} reads, is gone; nothing was "
                "imported"
            )

    def _branch(self, folder: str) -> Iterator[tuple[str, str]]:
        for inside in _BRANCH_FOLDERS:
            for name in self._names(f"{folder}/{inside}"):
                if name.startswith(f"{inside}-"):
                    path = f"{inside}/{name}"
                    yield path, _text(self._read(f"{folder}/{path}"), f"{folder}/{path}")

    def _numbers(self, what: str) -> tuple[int, ...]:
        ends = (each.removeprefix(f"{what}-") for each in self._names(what))
        return tuple(sorted(int(each) for each in ends if each.isascii() and each.isdigit()))

    def _names(self, folder: str) -> list[str]:
        try:
            return self.files.names(f"{self.location}/{folder}")
        except FileNotFoundError:
            return []
        except NotADirectoryError as error:
            raise NotFoundError(f"{self.location} is no folder of a Paimon table") from error
        except OSError as error:
            raise StoreError(f"{self.location}/{folder} cannot be listed: {error}") from error

    def _read(self, path: str) -> bytes:
        try:
            return self.files.read(f"{self.location}/{path}")
        except FileNotFoundError as error:
            raise NotFoundError(
                f"{self.location}/{path} is gone: its owner took it away meanwhile, or somebody "
                "else did; ask again"
            ) from error
        except OSError as error:
            raise StoreError(f"{self.location}/{path} cannot be read: {error}") from error

    def _file(self, path: str, read: Callable[[bytes], _T], keys: frozenset[str]) -> _T:
        body = self._read(path)
        try:
            # msgspec passes over the text of keys that it does not know.
            body.decode()
            found = read(body)
            content: Any = json.loads(body)
        except (LedgerError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"{self.location}/{path}: {error}") from error
        for key in content.keys() - keys:
            self.unknown.setdefault(key, f"the key {key} of {path.rpartition('/')[2]}")
        return found


def _is_name(name: str) -> bool:
    return is_key(name) and "/" not in name and len(name.encode()) <= _LONGEST_NAME


def _text(body: bytes, path: str) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is no text: {error}") from error


def open_source(source: str, access: FileAccess) -> Source:
    """Find a table.

    Args:
        source: Its folder.
        access: Permission to open files, and the options of their client.

    Raises:
        InvalidInputError: It names a password or a key.
    """
    at = plain(place_of_source(source))
    return Source(at, SourceFiles(access.below(at)), {})
