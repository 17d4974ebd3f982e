"""Origin of a table imported from Delta.

The ledger counts the table's snapshots and lists its files, as it does those of its own tables;
Delta's protocol and metadata are kept too, so that its log can be projected as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import UnsetType, field
from msgspec.structs import replace

from ledger.events.imported import DeltaFollowed, ImportedDeltaTable
from ledger.model.errors import InvalidChangeError
from ledger.state.native_origin import ImportedOrigin, LedgerNumberedOrigin

_LAST_NAME = re.compile(r"(?:`((?:[^`]|``)*)`|([^.`]*))$")


class DeltaOrigin(LedgerNumberedOrigin, ImportedOrigin, frozen=True, kw_only=True, tag="delta"):
    """Origin of a table that was imported from Delta: its position in the source's log.

    Attributes:
        table_id: The id of its first metadata.
        delta_version: The newest version of the source that was imported; -1 before the first.
        oldest_version: The version since which all were imported; those before are merged into it.
        timestamp_millis: Timestamp of the newest version, by the source.
        sha256: Of its commit file, hex; empty where only a checkpoint recorded it.
        protocol: The newest protocol, as JSON.
        metadata: The newest metadata, as JSON.
        columns: The field id of every column that ever existed, by the path of its physical names.
        promoted_in: The commit by which the ledger became its owner; -1 while it is mirrored.
        source_schema_id: The last schema that its source gave: for files of that one and of older
            ones `columns` has the column names; -1 while it is mirrored.
    """

    format_name: ClassVar[str] = "delta"

    table_id: str
    delta_version: int = -1
    oldest_version: int = 0
    timestamp_millis: int = 0
    sha256: str = ""
    protocol: str = ""
    metadata: str = ""
    columns: dict[str, int] = field(default_factory=dict)
    promoted_in: int = field(default=-1, name="promotedVersion")
    source_schema_id: int = field(default=-1, name="sourceSchemaId")

    @property
    def column_names_in_files(self) -> dict[int, str]:
        """Names of the columns in the source's files, by field id.

        Example:
            >>> columns = {"a": 1, "a.element.`b.``c`": 2}
            >>> DeltaOrigin(source="t", table_id="u", columns=columns).column_names_in_files
            {1: 'a', 2: 'b.`c'}
        """
        found = {}
        for text, field_id in self.columns.items():
            last = _LAST_NAME.search(text)
            if last is not None:
                found[field_id] = last[2] if last[1] is None else last[1].replace("``", "`")
        return found

    @property
    def physical_names(self) -> Mapping[int, str]:
        """See `LedgerNumberedOrigin`; unknown while the table is mirrored."""
        return self.column_names_in_files if self.last_physical_schema_id >= 0 else {}

    @property
    def last_physical_schema_id(self) -> int:
        """See `LedgerNumberedOrigin`."""
        return self.source_schema_id

    def other_ids(self) -> dict[int, int]:
        """Return the columns to which Delta gives another id, which files then contain.

        A column has the ledger's id from before the source mapped its columns.

        Returns:
            Delta's ids of the columns of its newest metadata, by field id.
        """
        found = msgspec.json.decode(self.metadata or "{}")
        mode = (found.get("configuration") or {}).get("delta.columnMapping.mode", "none")
        if mode == "none":
            return {}
        schema = msgspec.json.decode(found["schemaString"])
        numbered = ((self.columns.get(path), own) for path, own in _ids_of_source(schema, ""))
        return {each: own for each, own in numbered if each is not None and each != own}

    @classmethod
    def of_creation(cls, creation: ImportedDeltaTable) -> DeltaOrigin:
        """Return the origin of a new table."""
        return cls(source=creation.source, table_id=creation.table_id)

    def after(self, event: DeltaFollowed) -> DeltaOrigin:
        """Return the origin after importing a version of the source.

        Raises:
            InvalidChangeError: The version was imported before, or a column gets another id.
        """
        if self.is_promoted:
            raise InvalidChangeError(
                f"the table follows {self.source} no more", kind="ILLEGAL_STATE"
            )
        if event.delta_version <= self.delta_version:
            raise InvalidChangeError(
                f"version {event.delta_version} of the source cannot follow {self.delta_version}",
                kind="ILLEGAL_STATE",
            )
        columns = {} if isinstance(event.columns, UnsetType) else event.columns
        for path, field_id in columns.items():
            if self.columns.get(path, field_id) != field_id:
                raise InvalidChangeError(
                    f"column {path} of the source has the id {self.columns[path]} and cannot get "
                    f"{field_id}",
                    kind="ILLEGAL_STATE",
                )
        return replace(
            self,
            delta_version=event.delta_version,
            oldest_version=(
                self.oldest_version
                if event.delta_version == self.delta_version + 1
                else event.delta_version
            ),
            timestamp_millis=event.timestamp_millis,
            sha256=_value_or_default(event.sha256, ""),
            protocol=_value_or_default(event.protocol, self.protocol),
            metadata=_value_or_default(event.metadata, self.metadata),
            columns={**self.columns, **columns} if columns else self.columns,
        )

    def promoted(self, version: int, schema_id: int) -> DeltaOrigin:
        """Return the origin once the ledger owns the table.

        Args:
            version: The commit of the promotion.
            schema_id: The schema before it.

        Raises:
            InvalidChangeError: The ledger owns it already.
        """
        if self.is_promoted:
            raise InvalidChangeError("a table is promoted once", kind="ILLEGAL_STATE")
        return replace(self, promoted_in=version, source_schema_id=schema_id)


def _ids_of_source(kind: Any, around: str) -> Iterator[tuple[str, int]]:
    """Yield the columns inside a type of a Delta schema, by path, with Delta's ids."""
    if not isinstance(kind, Mapping):
        return
    for each in kind.get("fields", ()):
        said = each.get("metadata") or {}
        name = str(said.get("delta.columnMapping.physicalName", each["name"]))
        quoted = f"`{name.replace('`', '``')}`" if "." in name or "`" in name else name
        path = f"{around}{quoted}"
        if "delta.columnMapping.id" in said:
            yield path, int(said["delta.columnMapping.id"])
        yield from _ids_of_source(each["type"], f"{path}.")
    for key, step in (("elementType", "element"), ("keyType", "key"), ("valueType", "value")):
        yield from _ids_of_source(kind.get(key), f"{around}{step}.")


def _value_or_default(value: str | UnsetType, absent: str) -> str:
    return absent if isinstance(value, UnsetType) else value
