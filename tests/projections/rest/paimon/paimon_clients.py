"""Calls that the scripts make of each of Paimon's clients, and the parts of a table compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

Json = dict[str, Any]
Row = tuple[Any, ...]

_SNAPSHOT_VALUES = (
    *("version", "id", "schemaId", "commitIdentifier", "commitKind", "totalRecordCount"),
    *("deltaRecordCount", "changelogRecordCount", "watermark", "nextRowId", "properties"),
)
_SNAPSHOT_FILES = ("changelogManifestList", "indexManifest", "statistics")
_OWN_OPTIONS = ("path",)


@frozen
class TableSpec:
    """A table to create: a schema as Paimon's JSON has it, without the ids of its fields.

    Attributes:
        columns: Types as JSON, by name.
    """

    columns: Mapping[str, Any]
    partition_keys: Sequence[str] = ()
    primary_keys: Sequence[str] = ()
    options: Mapping[str, str] = {}
    comment: str | None = None


class PaimonClient(Protocol):
    """A client of a catalog, of files or behind a server.

    A table's name may have a branch: `orders$branch_work`.
    """

    is_served: bool

    def create_table(self, name: str, spec: TableSpec) -> None:
        """Create a table."""

    def alter(self, name: str, *changes: Json) -> None:
        """Change a table's schema, by changes as Paimon's JSON has them."""

    def write(self, name: str, rows: Sequence[Row], options: Mapping[str, str] = {}) -> None:
        """Write rows in a batch job."""

    def overwrite(self, name: str, partition: Mapping[str, str], rows: Sequence[Row]) -> None:
        """Replace the rows of a partition, or of the table."""

    def stream(self, name: str, user: str, commits: Mapping[int, Sequence[Row]]) -> None:
        """Write rows in a streaming job, a commit an identifier."""

    def truncate(self, name: str, partitions: Sequence[Mapping[str, str]] = ()) -> None:
        """Remove all rows, or those of some partitions."""

    def create_tag(
        self, name: str, tag: str, snapshot: int | None = None, retained: str | None = None
    ) -> None:
        """Tag a snapshot, or the newest."""

    def delete_tag(self, name: str, tag: str) -> None:
        """Delete a tag."""

    def create_branch(self, name: str, branch: str, tag: str | None = None) -> None:
        """Create a branch, at a tag or empty."""

    def drop_branch(self, name: str, branch: str) -> None:
        """Drop a branch."""

    def fast_forward(self, name: str, branch: str) -> None:
        """Let the main branch be another one."""

    def roll_back(self, name: str, to: int | str) -> None:
        """Return to a snapshot or a tag."""

    def rename_table(self, name: str, other: str) -> None:
        """Rename a table."""

    def drop_table(self, name: str) -> None:
        """Drop a table."""

    def tables(self) -> list[str]:
        """Return the names of the tables."""

    def rows(self, name: str, options: Mapping[str, str] = {}) -> list[str]:
        """Return rows as text, in order, with options such as `scan.snapshot-id`."""

    def partitions(self, name: str) -> list[tuple[Any, ...]]:
        """Return each partition with its rows, files and bytes, as the catalog lists them."""

    def view(self, name: str) -> TableView:
        """Load a table, and return what there is of it."""


@frozen
class TableView:
    """A table as one client loaded it.

    Attributes:
        schemas: All schemas as JSON.
        snapshots: All snapshots as JSON.
        tags: All tags as JSON, each with its `name`.
        branches: The names of the branches.
        rows: Reader of rows as text, in order, with options.
    """

    schemas: list[Json]
    snapshots: list[Json]
    tags: list[Json]
    branches: list[str]
    rows: Callable[[Mapping[str, str]], list[str]]


class Observer:
    """Views of a client's tables, with the rows of each snapshot when it is first seen."""

    def __init__(self, client: PaimonClient) -> None:
        self._client = client
        self._seen: set[tuple[str, str]] = set()

    def table(self, name: str) -> Json:
        """Return what is comparable of a table."""
        view = self._client.view(name)
        new = [
            each for each in view.snapshots if (name, each["deltaManifestList"]) not in self._seen
        ]
        self._seen |= {(name, each["deltaManifestList"]) for each in new}
        return {
            "schemas": [comparable_schema(each) for each in view.schemas],
            "snapshots": [_comparable_snapshot(each) for each in view.snapshots],
            "rows": view.rows({}),
            "rows of snapshots": {
                each["id"]: view.rows({"scan.snapshot-id": str(each["id"])}) for each in new
            },
            "tags": sorted(
                (each["name"], each["id"], each.get("tagTimeRetained")) for each in view.tags
            ),
            "branches": sorted(view.branches),
            # The catalog of files lists all rows of a table without keys as one partition.
            "partitions": [each for each in self._client.partitions(name) if each[0]],
        }


def comparable_schema(schema: Json) -> Json:
    """Return a schema without its time and its table's path."""
    options = {
        key: value for key, value in schema.get("options", {}).items() if key not in _OWN_OPTIONS
    }
    kept = {key: value for key, value in schema.items() if key not in ("timeMillis", "options")}
    return {**kept, "options": options}


def _comparable_snapshot(snapshot: Json) -> Json:
    return {
        **{key: snapshot.get(key) for key in _SNAPSHOT_VALUES},
        **{key: snapshot.get(key) is not None for key in _SNAPSHOT_FILES},
    }


def in_order(rows: Iterable[str]) -> list[str]:
    """Return rows in the order that comparisons use."""
    return sorted(rows)
