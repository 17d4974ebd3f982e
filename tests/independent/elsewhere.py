"""Imported tables in the second reader, which is written from FORMAT.md alone."""

from __future__ import annotations

import copy
import re
from typing import Any

from tests.independent.replayer import (
    Doc,
    Table,
    holds,
    ids_in,
)

COLUMNS_SAID = frozenset({"replaceSchema", "assignSchemaId", "setCurrentSchema"})
OWN_IDS_END = 10**12
SEQUENCES_SINCE, ROW_IDS_SINCE = 2, 3


def imported_table(commit: Doc, folder: Any) -> Table:
    """Return what folds the stream that begins with a commit."""
    created = next(each for each in commit["transactions"][0]["events"])
    kinds = {"iceberg": FromIceberg, "paimon": FromPaimon, "delta": FromDelta}
    return kinds[created["origin"]["type"]](folder) if "origin" in created else Table(folder)


class Elsewhere(Table):
    """The common part of imported tables."""

    def fold(self, commit: Doc) -> None:
        """Take one commit in."""
        super().fold(commit)

    def createTable(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        super().createTable(event, moment, commit)
        protocol = event.get("protocol")
        self.state["owner"] = ["mirrored" if protocol is None else "served", protocol, 0]

    def promoteTable(self, _event: Doc, _moment: int, commit: Doc) -> None:  # noqa: N802
        self.state["owner"] = ["ledger", None, commit["version"]]

    def makes_schema(self, event: Doc) -> bool:
        """Return whether a transaction with an event makes the next schema."""
        return (
            event["type"] in COLUMNS_SAID or "lastColumnId" in event or super().makes_schema(event)
        )

    def replaceSchema(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.stand(event["fields"])
        self.state["identifierFieldIds"] = event.get("identifierFieldIds", [])

    def stand(self, fields: list[Doc]) -> None:
        """Let these be the columns."""
        self.fields = copy.deepcopy(fields)
        given = [found for each in fields for found in (each["id"], *ids_in(each["type"]))]
        holds(len(set(given)) == len(given), "an id stands twice")
        self.state["highestFieldId"] = max(self.state["highestFieldId"], *given)


class FromIceberg(Elsewhere):
    """A table that says what Iceberg's metadata says."""

    def createTable(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        super().createTable(event, moment, commit)
        origin = event["origin"]
        self.imported: Doc = {
            **{
                key: origin.get(key) for key in ("source", "location", "formatVersion", "tableUuid")
            },
            **{key: {} for key in ("schemas", "snapshots", "addedVersions", "refs", "tagTimes")},
            **{key: {} for key in ("statistics", "encryptionKeys")},
            **{key: [] for key in ("snapshotLog", "metadataLog")},
            **dict.fromkeys(("lastSequenceNumber", "nextRowId", "lastUpdatedMillis"), 0),
            "metadataFile": "",
            "syncedVersion": -1,
            "promotedVersion": -1,
            "sourceLastSnapshotId": 0,
            "lastAssignedSnapshotId": 0,
            "ledgerSnapshotIds": [],
            "schemaId": origin["schemaId"],
        }
        if "protocol" in event:
            self.imported["promotedVersion"] = 0
        self.imported["schemas"][origin["schemaId"]] = self.schema_now(
            origin["schemaId"], origin.get("schemaJson")
        )

    def fold(self, commit: Doc) -> None:
        """Take one commit in; a schema's id is what names it."""
        super().fold(commit)
        self.state["schemaId"] = self.imported["schemaId"]

    def schema_now(self, schema_id: int, text: str | None) -> Doc:
        """Return the columns as they stand under an id."""
        found: Doc = {"schemaId": schema_id, "fields": copy.deepcopy(self.fields)}
        if self.state["identifierFieldIds"]:
            found["identifierFieldIds"] = list(self.state["identifierFieldIds"])
        return found if text is None else {**found, "schemaJson": text}

    def add(self, schema: Doc) -> None:
        """Let a schema be there; one of its id is the same."""
        there = self.imported["schemas"].setdefault(schema["schemaId"], schema)
        holds(there == schema, f"schema {schema['schemaId']} is another already")

    def assignSchemaId(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.add(self.schema_now(event["schemaId"], event.get("schemaJson")))
        self.imported["schemaId"] = event["schemaId"]

    def setCurrentSchema(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        schema = self.imported["schemas"][event["schemaId"]]
        self.imported["schemaId"] = event["schemaId"]
        self.stand(schema["fields"])
        self.state["identifierFieldIds"] = schema.get("identifierFieldIds", [])

    def addSchema(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.add(event["schema"])

    def removeSchemas(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        holds(self.imported["schemaId"] not in event["schemaIds"], "the current schema goes")
        for each in event["schemaIds"]:
            del self.imported["schemas"][each]

    def removeSpecsAndOrders(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        for ids, there, default in (("specIds", "specs", "spec"), ("orderIds", "orders", "order")):
            for each in event.get(ids, []):
                holds(each != self.state[default], "a default goes")
                del self.state[there][each]

    def addSnapshot(self, event: Doc, _moment: int, commit: Doc) -> None:  # noqa: N802
        key = event["snapshot"]["snapshot-id"]
        runs = self.imported["ledgerSnapshotIds"]
        holds(not any(first <= key <= last for first, last in runs), f"{key} is the ledger's")
        self.come(event["snapshot"], commit["version"])

    def replaceSnapshot(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        key, runs = event["snapshot"]["snapshot-id"], self.imported["ledgerSnapshotIds"]
        holds(not any(first <= key <= last for first, last in runs), f"{key} is the ledger's")
        holds(key in self.imported["snapshots"], f"snapshot {key} is not there")
        self.imported["snapshots"][key] = event["snapshot"]

    def come(self, snapshot: Doc, version: int) -> None:
        """Let a snapshot be there."""
        key, table = snapshot["snapshot-id"], self.imported
        holds(key not in table["snapshots"], f"snapshot {key} is there")
        table["snapshots"][key], table["addedVersions"][key] = snapshot, version
        number = snapshot.get("sequence-number", 0)
        table["lastSequenceNumber"] = max(table["lastSequenceNumber"], number)
        if "first-row-id" in snapshot and "added-rows" in snapshot:
            after = snapshot["first-row-id"] + snapshot["added-rows"]
            table["nextRowId"] = max(table["nextRowId"], after)

    def setSnapshotRef(self, event: Doc, moment: int, _commit: Doc) -> None:  # noqa: N802
        name, ref = event["refName"], event["ref"]
        holds(ref["snapshot-id"] in self.imported["snapshots"], f"{name} points to nothing")
        holds(name != "main" or ref["type"] == "branch", "main is a branch")
        self.imported["refs"][name] = ref
        self.imported["tagTimes"].pop(name, None)
        if ref["type"] == "tag":
            self.imported["tagTimes"][name] = moment

    def removeSnapshotRef(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        del self.imported["refs"][event["refName"]]
        self.imported["tagTimes"].pop(event["refName"], None)

    def removeSnapshots(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        table = self.imported
        for each in event["snapshotIds"]:
            del table["snapshots"][each], table["addedVersions"][each]
            table["statistics"].pop(each, None)
            self.state["statistics"].pop(each, None)
        for name, ref in list(table["refs"].items()):
            if ref["snapshot-id"] not in table["snapshots"]:
                del table["refs"][name]
                table["tagTimes"].pop(name, None)
        if table["promotedVersion"] >= 0:
            log = table["snapshotLog"]
            gone = [n for n, e in enumerate(log, 1) if e["snapshot-id"] not in table["snapshots"]]
            table["snapshotLog"] = log[max(gone, default=0) :]

    def setStatistics(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.imported["statistics"][event["statistics"]["snapshot-id"]] = event["statistics"]

    def removeStatistics(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        for each in event.get("snapshotIds", []):
            del self.imported["statistics"][each]
        for each in event.get("partitionStatisticsSnapshotIds", []):
            del self.state["statistics"][each]

    def addEncryptionKey(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        key = event["encryptionKey"]
        holds(self.imported["encryptionKeys"].setdefault(key["key-id"], key) == key, "another key")

    def removeEncryptionKey(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        del self.imported["encryptionKeys"][event["keyId"]]

    def updateSnapshotLog(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.log("snapshotLog", event)

    def updateMetadataLog(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.log("metadataLog", event)

    def log(self, name: str, event: Doc) -> None:
        """Let a log lose its oldest entries, and get new ones."""
        dropped, log = event.get("dropped", 0), self.imported[name]
        holds(0 <= dropped <= len(log), "a log loses more than it has")
        self.imported[name] = [*log[dropped:], *event.get("added", [])]

    def setTableMetadata(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        version = event.get("formatVersion", self.imported["formatVersion"])
        holds(version >= self.imported["formatVersion"], "the format version goes down")
        said = ("formatVersion", "tableUuid", "location", "lastSequenceNumber", "nextRowId")
        self.imported |= {key: event[key] for key in said if key in event}
        for key, of in (("lastColumnId", "highestFieldId"), ("lastPartitionId", "lastPartitionId")):
            self.state[of] = event.get(key, self.state[of])

    def syncSource(self, event: Doc, _moment: int, commit: Doc) -> None:  # noqa: N802
        self.imported["syncedVersion"] = commit["version"]
        self.imported |= {key: event[key] for key in ("metadataFile", "lastUpdatedMillis")}

    def correctClock(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        super().correctClock(event, moment, commit)
        latest, table = event["trueTimeMillis"], self.imported
        own = [range(first, last + 1) for first, last in table["ledgerSnapshotIds"]]
        snapshots = table["snapshots"].values()
        ours = [each for each in snapshots if any(each["snapshot-id"] in some for some in own)]
        for each in (*ours, *(table["snapshotLog"] if table["promotedVersion"] >= 0 else ())):
            each["timestamp-ms"] = min(each["timestamp-ms"], latest)
        table["tagTimes"] = {name: min(at, latest) for name, at in table["tagTimes"].items()}

    # Once the ledger owns it

    def promoteTable(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        super().promoteTable(event, moment, commit)
        holds(self.imported["promotedVersion"] < 0, "a table is promoted once")
        last = event["lastSnapshotId"]
        taken = [each for each in self.imported["snapshots"] if each < OWN_IDS_END]
        holds(max(taken, default=0) <= last < OWN_IDS_END, "ids would come again")
        self.imported |= {
            "promotedVersion": commit["version"],
            "sourceLastSnapshotId": last,
            "lastAssignedSnapshotId": last,
        }

    def commitSnapshot(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        self.take_own(event, moment, commit, event.get("nextRowId"))

    def rollback(self, event: Doc, moment: int, commit: Doc) -> None:
        self.take_own(event, moment, commit, None)

    def take_own(self, event: Doc, moment: int, commit: Doc, next_row_id: int | None) -> None:
        """Let the next snapshot of main be there."""
        table = self.imported
        holds(table["promotedVersion"] >= 0, "the table is another's")
        wanted = table["lastAssignedSnapshotId"] + 1
        while wanted in table["snapshots"]:
            wanted += 1
        holds(event["snapshotId"] == wanted, "its id is another")
        holds(event["schemaId"] == table["schemaId"], "its schema is another")
        table["lastAssignedSnapshotId"] = wanted
        runs = table["ledgerSnapshotIds"]
        if runs and runs[-1][1] == wanted - 1:
            table["ledgerSnapshotIds"] = [*runs[:-1], [runs[-1][0], wanted]]
        else:
            table["ledgerSnapshotIds"] = [*runs, [wanted, wanted]]
        main, version = table["refs"].get("main"), table["formatVersion"]
        snapshot: Doc = {"snapshot-id": event["snapshotId"], "timestamp-ms": moment}
        snapshot["schema-id"] = event["schemaId"]
        if main is not None:
            snapshot["parent-snapshot-id"] = main["snapshot-id"]
        if version >= SEQUENCES_SINCE:
            snapshot["sequence-number"] = table["lastSequenceNumber"] + 1
        if "summary" in event:
            snapshot["summary"] = event["summary"]
        if version >= ROW_IDS_SINCE:
            first = table["nextRowId"]
            added = 0 if next_row_id is None else next_row_id - first
            holds(added >= 0, "row ids come again")
            snapshot |= {"first-row-id": first, "added-rows": added}
        self.come(snapshot, commit["version"])
        ref = {"type": "branch", **(main or {}), "snapshot-id": event["snapshotId"]}
        table["refs"]["main"] = ref
        entry = {"timestamp-ms": moment, "snapshot-id": event["snapshotId"]}
        table["snapshotLog"] = [*table["snapshotLog"], entry]
        self.name(event)
        self.apply(self.files, event)

    def createTag(self, event: Doc, moment: int, _commit: Doc) -> None:  # noqa: N802
        holds(event["tagName"] not in self.imported["refs"], "the tag is there")
        self.tag(event, moment)

    def replaceTag(self, event: Doc, moment: int, _commit: Doc) -> None:  # noqa: N802
        holds(self.imported["refs"][event["tagName"]]["type"] == "tag", "it is a branch")
        self.tag(event, moment)

    def tag(self, event: Doc, moment: int) -> None:
        """Let a ref of type tag be there."""
        ref: Doc = {"snapshot-id": event["snapshotId"], "type": "tag"}
        if "timeRetainedMillis" in event:
            ref["max-ref-age-ms"] = event["timeRetainedMillis"]
        self.setSnapshotRef({"refName": event["tagName"], "ref": ref}, moment, {})

    def deleteTag(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        holds(self.imported["refs"][event["tagName"]]["type"] == "tag", "it is a branch")
        self.removeSnapshotRef({"refName": event["tagName"]}, moment, commit)


class FromPaimon(Elsewhere):
    """A table whose ids and snapshots are Paimon's."""

    promoted_in, last_followed = -1, 0

    def createTable(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        super().createTable(event, moment, commit)
        self.origin = origin = event["origin"]
        self.current = origin["schemaId"]
        self.schemas = {self.current: self.all_of_it(self.current, moment)}
        self.snapshots: dict[int, Doc] = {}
        self.kept: dict[int, Doc] = {}
        self.added_in: dict[int, int] = {}
        self.branch_files: dict[str, dict[str, str]] = {}
        self.rolled_back_in: dict[str, int] = {}
        self.branch_added_in: dict[str, int] = {}
        self.state["tags"] = {}

    def fold(self, commit: Doc) -> None:
        """Take one commit in; a schema's id is what names it, or the next one once it is owned."""
        if self.promoted_in >= 0:
            self.state["schemaId"] = self.current
        super().fold(commit)
        if self.promoted_in >= 0 and commit["version"] > self.promoted_in:
            for each in range(self.current + 1, self.state["schemaId"] + 1):
                self.schemas[each] = self.all_of_it(each, self.state["schemaTime"])
            self.current = self.state["schemaId"]
        elif self.promoted_in < 0 and commit["version"]:
            events = [it for each in commit["transactions"] for it in each.get("events", [])]
            if any(map(self.makes_schema, events)):
                self.state["schemaTime"] = self.schemas[self.current]["schemaTime"]
        self.state["schemaId"] = self.current

    def promoteTable(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        super().promoteTable(event, moment, commit)
        holds(self.promoted_in < 0, "a table is promoted once")
        self.promoted_in = commit["version"]
        self.last_followed = max(self.snapshots, default=0)
        self.state["snapshot"] = self.snapshots.get(self.last_followed)
        self.state["earliest"] = min(self.snapshots, default=1)

    def all_of_it(self, schema_id: int, moment: int) -> Doc:
        """Return the columns, keys, options and comment as they stand, as a schema."""
        names = ("partitionKeys", "primaryKeys", "comment", "identifierFieldIds", "highestFieldId")
        kept = {name: self.state[name] for name in (*names, "policy")}
        times = {"schemaId": schema_id, "schemaTime": moment}
        return copy.deepcopy({**kept, **times, "fields": self.fields, "options": self.options})

    def assignSchemaId(self, event: Doc, moment: int, _commit: Doc) -> None:  # noqa: N802
        holds(event["schemaId"] not in self.schemas, "the schema is there")
        self.current = event["schemaId"]
        at = event.get("timeMillis", moment)
        self.schemas[self.current] = self.all_of_it(self.current, at)

    def setCurrentSchema(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.current = event["schemaId"]
        schema = copy.deepcopy(self.schemas[self.current])
        self.fields, self.options = schema.pop("fields"), schema.pop("options")
        self.state |= schema

    def removeSchemas(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        for each in event["schemaIds"]:
            holds(each != self.current, "the current schema goes")
            del self.schemas[each]

    def setTableMetadata(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        holds(set(event) == {"type", "lastColumnId"}, "only lastColumnId stands here")
        self.state["highestFieldId"] = event["lastColumnId"]

    def take_snapshot(self, event: Doc, moment: int, commit_kind: str) -> None:
        """Let a snapshot be there, under any id that none has, or the next one of the ledger's."""
        key = event["snapshotId"]
        if self.promoted_in >= 0:
            super().take_snapshot(event, moment, commit_kind)
            self.snapshots[key] = self.state["snapshot"]
            return
        holds(key not in self.snapshots and key not in self.kept, f"snapshot {key} is there")
        holds(event["schemaId"] in self.schemas, "its schema is not there")
        self.snapshots[key] = {
            **event,
            "commitKind": commit_kind,
            "timeMillis": event.get("timeMillis", moment),
        }

    def commitSnapshot(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        self.take_snapshot(event, moment, event["commitKind"])
        self.added_in[event["snapshotId"]] = commit["version"]

    def rollback(self, event: Doc, moment: int, commit: Doc) -> None:
        holds(self.promoted_in >= 0, "a table from Paimon says what its source removed")
        super().rollback(event, moment, commit)
        self.added_in[event["snapshotId"]] = commit["version"]

    def correctClock(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        super().correctClock(event, moment, commit)
        for key, each in (*self.snapshots.items(), *self.kept.items()):
            if self.promoted_in >= 0 and key > self.last_followed:
                each["timeMillis"] = min(each["timeMillis"], event["trueTimeMillis"])

    def expireSnapshots(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        for each in [key for key in self.snapshots if key < event["earliestSnapshotId"]]:
            self.kept[each] = self.snapshots.pop(each)
        self.state["earliest"] = event["earliestSnapshotId"]
        self.keep_tagged()

    def removeSnapshots(self, event: Doc, _moment: int, commit: Doc) -> None:  # noqa: N802
        if self.snapshots and max(self.snapshots) in event["snapshotIds"]:
            self.rolled_back_in["main"] = commit["version"]
        for each in event["snapshotIds"]:
            holds((self.snapshots if each in self.snapshots else self.kept).pop(each), "not there")
        self.keep_tagged()

    def forget_statistics(self) -> None:
        """Drop what only a deleted tag kept."""
        self.keep_tagged()

    def keep_tagged(self) -> None:
        """Drop expired snapshots that no tag names."""
        tagged = {each[0] for each in self.state["tags"].values()}
        self.kept = {key: each for key, each in self.kept.items() if key in tagged}
        there = {*self.snapshots, *self.kept}
        self.added_in = {key: each for key, each in self.added_in.items() if key in there}

    def updateBranch(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        before = {name: newest_snapshot(files) for name, files in self.branch_files.items()}
        self.take_branch_files(event, moment, commit)
        for name, newest in before.items():
            if newest_snapshot(self.branch_files.get(name, {})) < newest:
                self.rolled_back_in[name] = commit["version"]
        for name in self.branch_files.keys() - before.keys():
            self.branch_added_in[name] = commit["version"]
        for name in before.keys() - self.branch_files.keys():
            del self.branch_added_in[name]
            self.rolled_back_in.pop(name, None)

    def take_branch_files(self, event: Doc, _moment: int, _commit: Doc) -> None:
        if "renamedFrom" in event:
            holds(event["branchName"] not in self.branch_files, "the branch is there")
            self.branch_files[event["branchName"]] = self.branch_files.pop(event["renamedFrom"])
        files = self.branch_files.setdefault(event["branchName"], {})
        for each in event.get("removed", []):
            del files[each]
        files |= event.get("added", {})
        if not files:
            del self.branch_files[event["branchName"]]

    def updatePartitions(self, event: Doc, _moment: int, commit: Doc) -> None:  # noqa: N802
        """Partitions are no part of the state: only their snapshot or branch has to be there."""
        if "branchName" in event:
            holds(event["branchName"] in self.branch_files, "its branch is not there")
        elif "snapshotId" in event:
            holds(self.added_in[event["snapshotId"]] == commit["version"], "its snapshot is not")


def newest_snapshot(files: dict[str, str]) -> int:
    """Return the highest number of a branch's snapshot files; 0 without one."""
    found = (re.fullmatch(r"snapshot/snapshot-([0-9]+)", each) for each in files)
    return max((int(each[1]) for each in found if each), default=0)


class FromDelta(Elsewhere):
    """A table that counts as the ledger's own, and follows a Delta log."""

    def createTable(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        super().createTable(event, moment, commit)
        origin = event["origin"]
        self.delta: Doc = {
            "source": origin["source"],
            "tableId": origin["tableId"],
            "deltaVersion": -1,
            "oldestVersion": 0,
            "timestampMillis": 0,
            "sha256": "",
            "protocol": "",
            "metadata": "",
            "columns": {},
            "promotedVersion": -1,
            "sourceSchemaId": -1,
        }

    def syncDelta(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        delta, version = self.delta, event["deltaVersion"]
        holds(delta["promotedVersion"] < 0 and version > delta["deltaVersion"], "it came in before")
        for path, field_id in event.get("columns", {}).items():
            holds(delta["columns"].setdefault(path, field_id) == field_id, "a column's id changes")
        if version != delta["deltaVersion"] + 1:
            delta["oldestVersion"] = version
        delta |= {"deltaVersion": version, "timestampMillis": event["timestampMillis"]}
        delta["sha256"] = event.get("sha256", "")
        delta |= {key: event[key] for key in ("protocol", "metadata") if key in event}

    def promoteTable(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        super().promoteTable(event, moment, commit)
        holds(self.delta["promotedVersion"] < 0, "a table is promoted once")
        self.delta["promotedVersion"] = commit["version"]
        # What its own transaction makes of the schema is the ledger's.
        self.delta["sourceSchemaId"] = self.state["schemaId"]
