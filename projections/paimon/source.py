"""External Paimon tables: the schemas, snapshots, tags and branches in a folder.

Source: Paimon's SchemaManager, SnapshotManager, TagManager and FileSystemBranchManager classes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, TypeVar

from attrs import define, evolve

from ledger.decide.schema_json import check_schema
from ledger.model.errors import (
    InvalidChangeError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    StoreError,
)
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from projections.importing.deriving import options_of_properties
from projections.importing.trial import ReadableFiles
from projections.paimon.manifest_avro import read_manifest_list
from projections.paimon.paths import manifest_path, schema_path, snapshot_path, tag_path
from projections.paimon.schema_file import SCHEMA_KEYS, schema_from_json
from projections.paimon.snapshot_file import (
    SNAPSHOT_KEYS,
    TAG_KEYS,
    TagFile,
    check_file_names,
    snapshot_from_json,
    tag_from_json,
)

_T = TypeVar("_T")

FENCE: Final = "lakeledger.table-id"
"""The snapshot property that names the owning ledger table and fences off all other writers."""

_NOT_CARRIED: Final = {
    "consumer": "consumer progress (consumer/)",
    "changelog": "changelogs retained beyond their snapshots (changelog/)",
    "service": "service addresses (service/)",
}
_BRANCH_FOLDERS: Final = ("schema", "snapshot", "tag")


@define(slots=False)
class PaimonSource:
    """An external Paimon table.

    Attributes:
        location: Its folder, without secrets.
        files: Reads its files.
        unknown: Unknown keys found so far, in words, by key.
        parse_snapshot: Reads the body of a snapshot's file.
    """

    location: str
    files: ReadableFiles
    unknown: dict[str, str]
    parse_snapshot: Callable[[bytes], Snapshot] = snapshot_from_json

    @cached_property
    def schema_ids(self) -> tuple[int, ...]:
        """The ids of its schemas, ascending.

        Raises:
            NotFoundError: It has none, so it is no Paimon table.
        """
        found = self._file_numbers("schema")
        if not found:
            raise NotFoundError(f"{self.location} holds no Paimon table: it has no schema/schema-N")
        return found

    @cached_property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids of its snapshots, ascending."""
        return self._snapshot_file_ids[:-1] if self.fence else self._snapshot_file_ids

    @cached_property
    def _snapshot_file_ids(self) -> tuple[int, ...]:
        return self._file_numbers("snapshot")

    @cached_property
    def fence(self) -> str | None:
        """The id of the ledger table that blocks all commits here; None for none.

        Its file is the last one, and has the id of the snapshot before it.
        """
        if not self._snapshot_file_ids:
            return None
        number = self._snapshot_file_ids[-1]
        last = self.snapshot(number)
        return (last.properties or {}).get(FENCE) if last.id == number - 1 else None

    @cached_property
    def tags(self) -> Mapping[str, TagFile]:
        """Its tags, by name."""
        names = (
            each.removeprefix("tag-") for each in self._list_names("tag") if each[:4] == "tag-"
        )
        return {name: self.tag(name) for name in names}

    def schema(self, schema_id: int) -> Schema:
        """Return a schema, with its options under the keys that they have in the ledger.

        Raises:
            InvalidInputError: Its file is incomplete or not a schema file.
            NotFoundError: It is missing.
        """
        path = schema_path(schema_id)
        found = self._parse_file(path, schema_from_json, SCHEMA_KEYS)
        try:
            check_schema(found)
        except InvalidChangeError as error:
            # Paimon itself calls repeated ids a broken schema: RowType.currentHighestFieldId.
            raise InvalidInputError(
                f"{self.location}/{path}: {error.message}; have its owner repair it, then import "
                "again"
            ) from error
        return evolve(found, options=options_of_properties(found.options))

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """Return a snapshot; errors as of `schema`."""
        path = snapshot_path(snapshot_id)
        found = self._parse_file(path, self.parse_snapshot, SNAPSHOT_KEYS)
        self._check_file_names(found, path)
        return found

    def tag(self, name: str) -> TagFile:
        """Return a tag; errors as of `schema`."""
        path = tag_path(name)
        found = self._parse_file(path, tag_from_json, SNAPSHOT_KEYS | TAG_KEYS)
        self._check_file_names(found.snapshot, path)
        return found

    def branches(self) -> dict[str, dict[str, str]]:
        """Return the texts of each branch's files, by path below its folder."""
        names = [each for each in self._list_names("branch") if each.startswith("branch-")]
        return {
            each.removeprefix("branch-"): dict(self._read_branch_files(f"branch/{each}"))
            for each in names
        }

    def not_carried(self) -> Iterator[str]:
        """Yield the features that the ledger does not import, in words."""
        yield from (what for folder, what in _NOT_CARRIED.items() if self._list_names(folder))
        yield from self.unknown.values()

    def check_files_exist(self) -> None:
        """Check that the files of the newest snapshot and the tags exist.

        Raises:
            NotFoundError: A manifest list or a manifest is missing.
        """
        named: dict[str, Snapshot] = {
            f"tag {name}": each.snapshot for name, each in self.tags.items()
        }
        if self.snapshot_ids:
            newest = self.snapshot_ids[-1]
            named[f"snapshot {newest}"] = self.snapshot(newest)
        there = frozenset(self._list_names("manifest"))
        lists: dict[str, str] = {}
        for who, snapshot in named.items():
            for each in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
                if each is not None:
                    lists.setdefault(each, who)
        for name, who in lists.items():
            self._check_file_exists(name, who, there)
            body = self._read_file(manifest_path(name))
            for manifest in read_manifest_list(body, name):
                self._check_file_exists(manifest.file_name, who, there)

    def _check_file_names(self, snapshot: Snapshot, path: str) -> None:
        """Check that the file names in a snapshot are valid names."""
        try:
            check_file_names(snapshot, f"{self.location}/{path}")
        except InvalidInputError as error:
            raise InvalidInputError(
                f"{error.message}; nothing was imported: have it repaired there, then import again"
            ) from error

    def _check_file_exists(self, name: str, who: str, there: frozenset[str]) -> None:
        if name not in there:
            raise NotFoundError(
                f"{self.location}/{manifest_path(name)}, which {who} reads, is gone; nothing was "
                "imported"
            )

    def _read_branch_files(self, folder: str) -> Iterator[tuple[str, str]]:
        for inside in _BRANCH_FOLDERS:
            for name in self._list_names(f"{folder}/{inside}"):
                if name.startswith(f"{inside}-"):
                    path = f"{inside}/{name}"
                    yield (
                        path,
                        _decode_text(self._read_file(f"{folder}/{path}"), f"{folder}/{path}"),
                    )

    def _file_numbers(self, what: str) -> tuple[int, ...]:
        ends = (each.removeprefix(f"{what}-") for each in self._list_names(what))
        return tuple(sorted(int(each) for each in ends if each.isascii() and each.isdigit()))

    def _list_names(self, folder: str) -> list[str]:
        try:
            return self.files.names(f"{self.location}/{folder}")
        except FileNotFoundError:
            return []
        except NotADirectoryError as error:
            raise NotFoundError(f"{self.location} is no folder of a Paimon table") from error
        except OSError as error:
            raise StoreError(f"{self.location}/{folder} cannot be listed: {error}") from error

    def _read_file(self, path: str) -> bytes:
        try:
            return self.files.read(f"{self.location}/{path}")
        except FileNotFoundError as error:
            raise NotFoundError(
                f"{self.location}/{path} is missing: it was deleted during the import; import again"
            ) from error
        except OSError as error:
            raise StoreError(f"{self.location}/{path} cannot be read: {error}") from error

    def _parse_file(self, path: str, read: Callable[[bytes], _T], keys: frozenset[str]) -> _T:
        body = self._read_file(path)
        try:
            # msgspec skips the text of unknown keys.
            body.decode()
            found = read(body)
            content: Any = json.loads(body)
        except (LedgerError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"{self.location}/{path}: {error}") from error
        for key in content.keys() - keys:
            self.unknown.setdefault(key, f"the key {key} of {path.rpartition('/')[2]}")
        return found


def _decode_text(body: bytes, path: str) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is no text: {error}") from error
