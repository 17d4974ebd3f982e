"""Observation of a table behind a REST server, without what differs from run to run.

Ids of snapshots become their sequence numbers; uuids, times, paths and sizes are left out.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from attrs import define, field

Json = dict[str, Any]
Rows = Callable[[str, int], list[str]]
"""Function that returns the rows of a table, by its name, at a snapshot, in a fixed order."""

_VARYING = ("size", "app-id", "version", "spark.app.id", "duckdb", "query_id")


@define
class Observer:
    """Views of the tables of one namespace.

    Attributes:
        uri: The server.
        rows: Reader of rows.
        namespace: The namespace.
    """

    uri: str
    rows: Rows
    namespace: str = "db"
    _prefix: str = ""
    _numbers: dict[int, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        overrides = self._get("/v1/config")["overrides"]
        prefix = overrides.get("prefix")
        self._prefix = f"/{quote(prefix, safe='')}" if prefix else ""

    def metadata(self, name: str) -> Json:
        """Return a table's metadata as the server gives it."""
        found: Json = self._get(self._path("tables", name))["metadata"]
        return found

    def snapshot(self, name: str, number: int) -> int:
        """Return the id of the snapshot with a sequence number."""
        (found,) = (
            each["snapshot-id"]
            for each in self.metadata(name)["snapshots"]
            if each["sequence-number"] == number
        )
        return int(found)

    def table(self, name: str) -> Json:
        """Return what is comparable of a table, with the rows of the snapshots not seen before."""
        metadata = self.metadata(name)
        read = {}
        for each in sorted(metadata.get("snapshots", []), key=_sequence):
            if each["snapshot-id"] not in self._numbers:
                self._numbers[each["snapshot-id"]] = _sequence(each)
                read[_sequence(each)] = self.rows(name, each["snapshot-id"])
        return {**self._comparable(metadata), "rows": read}

    def view(self, name: str) -> Json:
        """Return what is comparable of a view."""
        metadata = self._get(self._path("views", name))["metadata"]
        kept = ("format-version", "current-version-id", "schemas", "properties")
        versions = [
            {
                "representations": each["representations"],
                "schema": each["schema-id"],
                "namespace": each["default-namespace"],
            }
            for each in metadata["versions"]
        ]
        return {key: metadata.get(key) for key in kept} | {"versions": versions}

    def names(self) -> Json:
        """Return the names of the tables and views."""
        return {
            kind: sorted(each["name"] for each in self._get(self._path(kind))["identifiers"])
            for kind in ("tables", "views")
        }

    def namespaces(self) -> list[str]:
        """Return the names of the namespaces."""
        found = self._get(f"/v1{self._prefix}/namespaces")["namespaces"]
        return sorted(".".join(each) for each in found)

    def _path(self, *parts: str) -> str:
        return f"/v1{self._prefix}/namespaces/{'/'.join((self.namespace, *parts))}"

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self.uri + path, timeout=30) as answer:  # noqa: S310 - loopback
            return json.load(answer)

    def _comparable(self, metadata: Json) -> Json:
        kept = (
            *("format-version", "last-column-id", "schemas", "current-schema-id"),
            *("partition-specs", "default-spec-id", "last-partition-id", "sort-orders"),
            *("default-sort-order-id", "last-sequence-number", "next-row-id"),
        )
        snapshots = sorted(metadata.get("snapshots", []), key=_sequence)
        log = metadata.get("snapshot-log", [])
        return {
            **{key: metadata.get(key) for key in kept},
            "properties": _settled(metadata.get("properties", {})),
            "current": self._number(metadata.get("current-snapshot-id")),
            "refs": {
                name: {**each, "snapshot-id": self._number(each["snapshot-id"])}
                for name, each in sorted(metadata.get("refs", {}).items())
            },
            "snapshots": [self._snapshot(each) for each in snapshots],
            "snapshot log": [self._number(each["snapshot-id"]) for each in log],
            # Java keeps them by the hashes of their snapshots' ids.
            "statistics": {
                self._number(each["snapshot-id"]): [_blob(blob) for blob in each["blob-metadata"]]
                for each in metadata.get("statistics", [])
            },
            "partition statistics": {
                self._number(each["snapshot-id"])
                for each in metadata.get("partition-statistics", [])
            },
        }

    def _snapshot(self, snapshot: Json) -> Json:
        kept = ("sequence-number", "schema-id", "first-row-id", "added-rows")
        return {
            **{key: snapshot.get(key) for key in kept},
            "parent": self._number(snapshot.get("parent-snapshot-id")),
            "summary": self._summary(snapshot["summary"]),
        }

    def _summary(self, summary: Mapping[str, str]) -> Json:
        return {
            key: self._number(int(value)) if key.endswith("snapshot-id") else value
            for key, value in sorted(summary.items())
            if not any(each in key for each in _VARYING)
        }

    def _number(self, snapshot: int | None) -> int | None:
        # Iceberg's Java writes -1 where there is none.
        return None if snapshot in (None, -1) else self._numbers.get(snapshot, snapshot)


def _sequence(snapshot: Json) -> int:
    return int(snapshot["sequence-number"])


def _blob(blob: Json) -> Json:
    return {key: blob[key] for key in ("type", "fields", "properties")}


def _settled(properties: Mapping[str, str]) -> Json:
    # DuckDB's time of creation.
    return {key: value for key, value in sorted(properties.items()) if key != "created-at"}
