"""A second reader of a ledger's bytes, written from FORMAT.md alone; it imports nothing of it.

`commits(folder)` checks a chain and yields its commits; `Table` and `Catalog` fold them, and
`tests.independent.states` says the bytes of what they come to.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyarrow import parquet

Doc = dict[str, Any]
Name = tuple[str, str]

SCHEMA_EVENTS = frozenset(
    {
        *(
            "setOption",
            "removeOption",
            "updateComment",
            "addColumn",
            "renameColumn",
            "dropColumn",
            "undropColumn",
        ),
        *("updateColumnType", "updateColumnNullability", "updateColumnComment"),
        *("updateColumnDefaultValue", "updateColumnPosition", "dropPrimaryKey", "updateKeys"),
        "setIdentifierFields",
    }
)
FIRST_PARTITION_FIELD = 1000
BRANCH_IDS = 10**12


LATER = {
    "sort_order_id": "sortOrderId",
    "equality_ids": "equalityIds",
    "referenced_data_file": "referencedDataFile",
    "content_offset": "contentOffset",
    "content_size_in_bytes": "contentSizeInBytes",
    "column_names": "columnNames",
}
"""Keys of a file change that few files have, by their columns in a list."""


class BrokenError(Exception):
    """The bytes are not as FORMAT.md says."""


def holds(condition: object, message: str) -> None:
    """Refuse what is not so."""
    if not condition:
        raise BrokenError(message)


def refuse_float(text: str) -> None:
    """Refuse a number that is not whole."""
    raise BrokenError(f"{text} is a floating-point number")


def commits(folder: Path) -> Iterator[Doc]:
    """Yield a stream's commits, whose chain holds."""
    parent: str | None = None
    time_millis = -1
    for version, path in enumerate(sorted((folder / "log").glob("*.json"))):
        holds(path.name == f"{version:020d}.json", f"{path}: version {version} is missing")
        body = path.read_bytes()
        holds(body.endswith(b"\n") and body.count(b"\n") == 1, f"{path}: not one line")
        commit = json.loads(body, parse_float=refuse_float)
        holds(commit["format"] == 3, f"{path}: of another format")
        holds(commit["version"] == version, f"{path}: says version {commit['version']}")
        holds(commit.get("parent") == parent, f"{path}: the chain is broken")
        is_later = commit["timeMillis"] > time_millis
        is_equal = commit["timeMillis"] == time_millis
        holds(is_later or is_equal, f"{path}: its time is before the one before")
        holds(commit["transactions"], f"{path}: no transaction")
        time_millis = commit["timeMillis"]
        parent = f"sha256:{hashlib.sha256(body).hexdigest()}"
        yield commit


def tables(root: Path) -> Iterator[Path]:
    """Yield the folders of the streams of all tables that lie below a root."""
    for each in sorted(root.rglob("_ledger/log")):
        if each.parent.parent != root:
            yield each.parent


OUTSIDE = ("author", "message", "properties")


def said_by(transaction: Doc) -> str:
    """Return what the state says of who asked."""
    digest = transaction.get("sidecar", {}).get("author")
    return transaction.get("author", "") if digest is None else f"sidecar:{digest}"


def people(root: Path, transaction: Doc) -> Doc:
    """Return what a transaction says of who and why; None stands for what was erased."""
    outside = transaction.get("sidecar")
    if outside is None:
        return {key: transaction[key] for key in OUTSIDE if key in transaction}
    holds(not set(OUTSIDE) & set(transaction), "a line holds what is kept outside")
    if not outside:
        return {}
    name = next(outside[key] for key in OUTSIDE if key in outside)
    path = root / "_ledger" / "personal" / name[:2] / f"{name}.json"
    values = what_is_left(path)
    found: Doc = {}
    for key, digest in outside.items():
        if key not in values:
            found[key] = None
            continue
        salt, value = values[key]["salt"], values[key]["value"]
        text = f"{salt}\n{key}\n{value}"
        holds(hashlib.sha256(text.encode()).hexdigest() == digest, f"{path}: {key} was changed")
        found[key] = json.loads(value) if key == "properties" else value
    return found


def what_is_left(path: Path) -> Doc:
    """Return what a file of values holds that something may have been taken out of."""
    generation = 0
    while True:
        here = path if not generation else path.with_suffix(f".{generation}.json")
        holds(here.exists(), f"{here} is missing")
        values: Doc = json.loads(here.read_bytes(), parse_float=refuse_float)
        if values != {"next": True}:
            return values
        generation += 1


def with_values(root: Path, table_id: str, change: Doc) -> Doc:
    """Return a file change with the values that stand outside of its line; erased ones are None."""
    if "sidecar" not in change:
        return change
    expanded = {key: value for key, value in change.items() if key != "sidecar"}
    for field_id, at in change["sidecar"].items():
        bounds = column_value(root, table_id, at, "bounds", int(field_id)) or {}
        for side, name in (("lower", "lowerBounds"), ("upper", "upperBounds")):
            if side in bounds:
                expanded[name] = expanded.get(name, {}) | {field_id: bounds[side]}
    expanded["partition"] = [
        column_value(root, table_id, value.removeprefix("sidecar:"))
        if isinstance(value, str) and value.startswith("sidecar:")
        else value
        for value in change.get("partition", [])
    ]
    return expanded


def column_value(root: Path, table_id: str, at: str, of: str = "", field_id: int = -1) -> Any:
    """Return a value of a personal column, as the JSON that it is; None where it was erased."""
    name, digest = at.split(":")
    folder = hashlib.sha256(table_id.encode()).hexdigest()[:16]
    holds(name.startswith(folder), "a value is kept with those of another table")
    path = root / "_ledger" / "personal" / "columns" / folder / f"{name}.json"
    kept = what_is_left(path)["values"].get(digest)
    if kept is None:
        return None
    text = f"{kept['salt']}\n{kept['fieldId']}\n{kept['kind']}\n{kept['value']}"
    holds(hashlib.sha256(text.encode()).hexdigest() == digest, f"{path}: a value was changed")
    holds(of in {"", kept["kind"]} and field_id in {-1, kept["fieldId"]}, "it is another value")
    return json.loads(kept["value"])


# Types: a text ends in NOT NULL where there can be none; an object says the same in its `type`.


def nullable(data_type: Any) -> bool:
    """Return whether a type holds NULL."""
    text = data_type if isinstance(data_type, str) else data_type["type"]
    return not text.endswith(" NOT NULL")


def with_nullability(data_type: Any, *, is_nullable: bool) -> Any:
    """Return a type that holds NULL, or not."""
    text = data_type if isinstance(data_type, str) else data_type["type"]
    text = text.removesuffix(" NOT NULL") + ("" if is_nullable else " NOT NULL")
    return text if isinstance(data_type, str) else {**data_type, "type": text}


def kind(data_type: Any) -> str:
    """Return what is constructed: ROW, ARRAY, MAP, ... or the whole text of a plain type."""
    text: str = data_type if isinstance(data_type, str) else data_type["type"]
    return text.removesuffix(" NOT NULL")


def ids_in(data_type: Any) -> Iterator[int]:
    """Yield the ids inside a type."""
    if isinstance(data_type, str):
        return
    for key in ("elementId", "keyId", "valueId"):
        if key in data_type:
            yield data_type[key]
    for key in ("element", "key", "value"):
        yield from ids_in(data_type.get(key, ""))
    for each in data_type.get("fields", ()):
        yield each["id"]
        yield from ids_in(each["type"])


class Place:
    """Something that has a type, wherever it stands: a field, an element, a map's value."""

    def __init__(self, holder: Doc, key: str) -> None:
        self.holder, self.key = holder, key

    @property
    def type(self) -> Any:
        """The type at this place."""
        return self.holder[self.key]

    def inside(self, segment: str) -> Place:
        """Return the place that a path's next segment means."""
        what = kind(self.type)
        if what == "ROW":
            return Place(named(self.type["fields"], segment), "type")
        wanted = {"ARRAY": "element", "MAP": "value"}.get(what)
        holds(wanted is not None and segment == wanted, f"{segment} is nothing below {what}")
        return Place(self.type, segment)


def named(fields: list[Doc], name: str) -> Doc:
    """Return the field of a name."""
    found = [each for each in fields if each["name"] == name]
    holds(len(found) == 1, f"{name} is missing, or there twice")
    return found[0]


def put(fields: list[Doc], new: Doc, move: Doc | None) -> None:
    """Put a field among others where a move says; last without one."""
    if move is None or move["type"] == "LAST":
        fields.append(new)
        return
    if move["type"] == "FIRST":
        fields.insert(0, new)
        return
    reference = [each["name"] for each in fields].index(move["referenceFieldName"])
    fields.insert(reference + {"BEFORE": 0, "AFTER": 1}[move["type"]], new)


class Table:
    """A table's stream, folded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state: Doc = {}
        self.is_outside = False
        self.files: dict[str, Doc] = {}
        self.held: dict[int, dict[str, Doc]] = {}
        self.lines: dict[str, dict[str, Doc]] = {}

    def fold(self, commit: Doc) -> None:
        """Take one commit in."""
        for transaction in commit["transactions"]:
            moment = transaction.get("effectiveTimeMillis", commit["timeMillis"])
            events = transaction.get("events", [])
            self.is_outside |= "sidecar" in transaction
            for event in events:
                is_unsealed = event["type"] == "undropTable"
                holds(is_unsealed or not self.state.get("dropped"), "nothing can follow a seal")
                holds(
                    self.state or event["type"] == "createTable", "a table begins with its creation"
                )
                getattr(self, event["type"])(event, moment, commit)
            if commit["version"] and any(map(self.makes_schema, events)):
                self.state["schemaId"] += 1
                self.state["schemaTime"] = moment
            self.state["updated"] = [moment, said_by(transaction)]
            if not commit["version"]:
                self.state["created"] = [moment, said_by(transaction)]
        self.state |= {"version": commit["version"], "timeMillis": commit["timeMillis"]}

    def makes_schema(self, event: Doc) -> bool:
        """Return whether a transaction with an event makes the next schema."""
        return event["type"] in SCHEMA_EVENTS

    # Creation and drop

    def createTable(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        holds(commit["version"] == 0, "a table is created by version 0")
        schema = event["schema"]
        self.fields: list[Doc] = copy.deepcopy(schema["fields"])
        self.options: dict[str, str] = dict(schema.get("options", {}))
        self.state = {
            "tableId": event["tableId"],
            "path": event["path"],
            "external": event.get("isExternal", False),
            "schemaId": 0,
            "schemaTime": moment,
            "policy": event.get("fieldIdPolicy", "paimon"),
            "comment": schema.get("comment"),
            "highestFieldId": schema["highestFieldId"],
            "partitionKeys": schema.get("partitionKeys", []),
            "primaryKeys": schema.get("primaryKeys", []),
            "identifierFieldIds": schema.get("identifierFieldIds", []),
            "snapshot": None,
            "earliest": 1,
            "totals": [0, 0, 0, None],
            "tags": {},
            "branches": {},
            "branchesEver": 0,
            "statistics": {},
            "puffin": {},
            "rules": {},
            "corrections": [],
            "named": [],
            "dropped": False,
            "owner": ["ledger", None, 0],
        }
        self.lay_out_by_keys()
        if "partitionSpec" in event:
            self.state["specs"] = {0: event["partitionSpec"]}
            self.state["lastPartitionId"] = FIRST_PARTITION_FIELD - 1
            self.give_out_partition_ids(event["partitionSpec"])
        if "sortOrder" in event:
            self.state["orders"] = {1: event["sortOrder"]}
            self.state["order"] = 1

    def lay_out_by_keys(self) -> None:
        """Let spec 0 be the identity of the partition keys."""
        fields = [
            {
                "name": name,
                "transform": "identity",
                "source-id": named(self.fields, name)["id"],
                "field-id": FIRST_PARTITION_FIELD + number,
            }
            for number, name in enumerate(self.state["partitionKeys"])
        ]
        self.state |= {"specs": {0: fields}, "spec": 0, "orders": {0: []}, "order": 0}
        self.state["lastPartitionId"] = FIRST_PARTITION_FIELD - 1
        self.give_out_partition_ids(fields)

    def give_out_partition_ids(self, fields: list[Doc]) -> None:
        """Keep the highest id that a partition field ever had."""
        last = self.state["lastPartitionId"]
        self.state["lastPartitionId"] = max([last, *(each["field-id"] for each in fields)])

    def setOwner(self, event: Doc, _moment: int, commit: Doc) -> None:  # noqa: N802
        owner, protocol = event["owner"], event.get("protocol")
        before = {"served": "ledger", "ledger": "served"}[owner]
        holds(self.state["owner"][0] == before, f"{owner} follows another owner than {before}")
        holds((protocol is None) == (owner == "ledger"), "a served table has a protocol")
        self.state["owner"] = [owner, protocol, commit["version"]]

    def dropTable(self, _event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.state["dropped"] = True

    def undropTable(self, event: Doc, _moment: int, commit: Doc) -> None:  # noqa: N802
        holds(self.state["dropped"], "the stream is not sealed")
        holds(event["sealedVersion"] == commit["version"] - 1, "another version sealed it")
        self.state["dropped"] = False

    # Schema

    def siblings(self, path: list[str]) -> list[Doc]:
        """Return the fields among which a path's last segment stands."""
        if len(path) == 1:
            return self.fields
        place = Place(named(self.fields, path[0]), "type")
        for segment in path[1:-1]:
            place = place.inside(segment)
        holds(kind(place.type) == "ROW", f"{path} is no member of a ROW")
        found: list[Doc] = place.type["fields"]
        return found

    def place(self, path: list[str]) -> Place:
        """Return what a path means."""
        place = Place(named(self.fields, path[0]), "type")
        for segment in path[1:]:
            place = place.inside(segment)
        return place

    def own(self, event: Doc) -> Doc:
        """Return the field that an event is about."""
        field = named(self.siblings(event["fieldNames"]), event["fieldNames"][-1])
        holds(field["id"] == event["fieldId"], f"{event['fieldNames']} has another id")
        return field

    def give_out(self, ids: list[int]) -> None:
        """Take ids that nobody had."""
        highest = self.state["highestFieldId"]
        holds(len(set(ids)) == len(ids) and all(each > highest for each in ids), "ids return")
        self.state["highestFieldId"] = max([highest, *ids])

    def setOption(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.options[event["key"]] = event["value"]

    def removeOption(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.options.pop(event["key"], None)

    def updateComment(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.state["comment"] = event.get("comment")

    def addColumn(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        path = event["fieldNames"]
        siblings = self.siblings(path)
        holds(all(each["name"] != path[-1] for each in siblings), f"{path} is there already")
        self.give_out([event["fieldId"], *ids_in(event["dataType"])])
        new = {"id": event["fieldId"], "name": path[-1], "type": copy.deepcopy(event["dataType"])}
        if event.get("comment") is not None:
            new["description"] = event["comment"]
        if event.get("defaultValue") is not None:
            new["defaultValue"] = new["initialDefault"] = event["defaultValue"]
        put(siblings, new, event.get("move"))

    def renameColumn(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        path, name = event["fieldNames"], event["newName"]
        siblings, field = self.siblings(path), self.own(event)
        holds(all(each["name"] != name for each in siblings), f"{name} is taken")
        field["name"] = name
        if len(path) == 1:
            holds(path[0] not in self.state["partitionKeys"], "a partition key keeps its name")
            keys = self.state["primaryKeys"]
            self.state["primaryKeys"] = [name if each == path[0] else each for each in keys]

    def dropColumn(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        path = event["fieldNames"]
        siblings, field = self.siblings(path), self.own(event)
        holds(len(siblings) > 1, f"{path} is the last")
        keys = [*self.state["partitionKeys"], *self.state["primaryKeys"]]
        holds(len(path) > 1 or path[0] not in keys, f"{path} is in a key")
        siblings.remove(field)

    def undropColumn(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        siblings, name = self.siblings(event["fieldNames"]), event["fieldNames"][-1]
        holds(all(each["name"] != name for each in siblings), f"{name} is taken")
        ids = [event["fieldId"], *ids_in(event["dataType"])]
        there = self.fields
        standing = {found for each in there for found in (each["id"], *ids_in(each["type"]))}
        holds(len(set(ids)) == len(ids) and not standing & set(ids), "ids stand")
        holds(max(ids) <= self.state["highestFieldId"], "ids were never given out")
        new = {"id": event["fieldId"], "name": name, "type": copy.deepcopy(event["dataType"])}
        if event.get("comment") is not None:
            new["description"] = event["comment"]
        for key in ("defaultValue", "initialDefault"):
            if event.get(key) is not None:
                new[key] = event[key]
        put(siblings, new, event.get("move"))

    def updateColumnType(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        place, new = self.place(event["fieldNames"]), copy.deepcopy(event["newDataType"])
        self.give_out(list(ids_in(new)))
        if event.get("keepNullability", False):
            new = with_nullability(new, is_nullable=nullable(place.type))
        place.holder[place.key] = new

    def updateColumnNullability(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        place = self.place(event["fieldNames"])
        new = with_nullability(place.type, is_nullable=event["newNullability"])
        place.holder[place.key] = new

    def updateColumnComment(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        set_or_remove(self.own(event), "description", event.get("newComment"))

    def updateColumnDefaultValue(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        set_or_remove(self.own(event), "defaultValue", event.get("newDefaultValue"))

    def updateColumnPosition(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        move = event["move"]
        siblings = self.siblings(event.get("fieldNames") or [move["fieldName"]])
        field = named(siblings, move["fieldName"])
        holds(field["id"] == event["fieldId"], f"{move['fieldName']} has another id")
        siblings.remove(field)
        put(siblings, field, move)

    def dropPrimaryKey(self, _event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.state["primaryKeys"] = []

    def updateKeys(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.state["partitionKeys"] = event.get("partitionKeys", [])
        self.state["primaryKeys"] = event.get("primaryKeys", [])
        self.lay_out_by_keys()

    def setIdentifierFields(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        self.state["identifierFieldIds"] = event["fieldIds"]

    # Layout

    def updatePartitionSpec(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        spec_id = event["specId"]
        if spec_id not in self.state["specs"]:
            self.give_out_partition_ids(event["fields"])
        there = self.state["specs"].setdefault(spec_id, event["fields"])
        holds(there == event["fields"], f"spec {spec_id} has other fields")
        if event.get("setDefault", True):
            self.state["spec"] = spec_id

    def replaceSortOrder(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        order_id = event["orderId"]
        there = self.state["orders"].setdefault(order_id, event["fields"])
        holds(there == event["fields"], f"order {order_id} has other fields")
        if event.get("setDefault", True):
            self.state["order"] = order_id

    # Snapshots

    def commitSnapshot(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        self.take_snapshot(event, moment, event["commitKind"])
        if "fastForwardTo" in event:
            self.take_branch_over(event, commit)

    def rollback(self, event: Doc, moment: int, _commit: Doc) -> None:
        self.take_snapshot(event, moment, "OVERWRITE")

    def take_snapshot(self, event: Doc, moment: int, commit_kind: str) -> None:
        """Take in a snapshot, its files and its sums."""
        before = self.state["snapshot"]
        last = before["snapshotId"] if before else 0
        holds(event["snapshotId"] == last + 1, f"snapshot {event['snapshotId']} after {last}")
        records, size, count, created = self.state["totals"]
        records += event["deltaRecordCount"]
        holds(event["totalRecordCount"] == records, "the total is another")
        holds("timeMillis" not in event, "only snapshots of Paimon have a time of their own")
        size += event.get("deltaFileSizeInBytes", 0)
        count += event.get("deltaFileCount", 0)
        newest = [each for each in (created, event.get("lastFileCreationTime")) if each is not None]
        self.state["totals"] = [records, size, count, max(newest, default=None)]
        self.state["snapshot"] = {**event, "commitKind": commit_kind, "timeMillis": moment}
        self.name(event)
        self.apply(self.files, event)
        self.held[event["snapshotId"]] = dict(self.files)

    def name(self, event: Doc) -> None:
        """Keep the schemas whose names a snapshot's files use."""
        self.state["named"] = sorted({*self.state["named"], *event.get("nameMappingSchemaIds", [])})

    def apply(self, files: dict[str, Doc], event: Doc) -> None:
        """Let files come and go."""
        for change in self.changes(event):
            if change.get("kind", "ADD") == "ADD":
                files[change["path"]] = change
            else:
                files.pop(change["path"])

    # Branches

    def setSnapshotRef(self, event: Doc, _moment: int, commit: Doc) -> None:  # noqa: N802
        ref, base, name = event["ref"], event["base"], event["refName"]
        last = self.state["snapshot"]["snapshotId"]
        holds(name != "main", "no such branch")
        holds(ref["type"] == "branch" and 1 <= ref["snapshot-id"] <= last, "no such branch")
        there = self.state["branches"].get(name)
        if there is None:
            self.state["branchesEver"] += 1
            number = self.state["branchesEver"]
            first = number * BRANCH_IDS + 1
        else:
            number, first = there["number"], there["next"]
        kept = ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")
        self.state["branches"][name] = {
            "number": number,
            "base": ref["snapshot-id"],
            "baseVersion": base["version"],
            "since": commit["version"],
            "first": first,
            "snapshot": None,
            "earliest": first,
            "next": first,
            "head": ref["snapshot-id"],
            "totals": [
                base["recordCount"],
                base.get("fileSizeInBytes", 0),
                base.get("fileCount", 0),
                base.get("lastFileCreationTime"),
            ],
            "kept": [ref.get(key) for key in kept],
        }
        self.lines[name] = dict(self.held[ref["snapshot-id"]])
        self.forget_statistics()

    def removeSnapshotRef(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        del self.state["branches"][event["refName"]]
        self.forget_statistics()

    def commitToBranch(self, event: Doc, moment: int, _commit: Doc) -> None:  # noqa: N802
        branch = self.state["branches"][event["branchName"]]
        holds(event["parentSnapshotId"] == branch["head"], "it follows another")
        holds(event["snapshotId"] == branch["next"], "its id is another")
        records, size, count, created = branch["totals"]
        newest = [each for each in (created, event.get("lastFileCreationTime")) if each is not None]
        branch["totals"] = [
            records + event["deltaRecordCount"],
            size + event.get("deltaFileSizeInBytes", 0),
            count + event.get("deltaFileCount", 0),
            max(newest, default=None),
        ]
        holds(branch["totals"][0] == event["totalRecordCount"], "the total is another")
        branch["head"], branch["next"] = event["snapshotId"], event["snapshotId"] + 1
        branch["snapshot"] = {**event, "timeMillis": moment}
        self.name(event)
        self.apply(self.lines[event["branchName"]], event)

    def take_branch_over(self, event: Doc, commit: Doc) -> None:
        """Let a branch begin with the snapshot that main was brought to it by."""
        head = event["fastForwardTo"]
        branch = self.state["branches"][head["branchName"]]
        holds(branch["head"] == head["snapshotId"], "it shows another")
        holds(branch["base"] == event["snapshotId"] - 1, "main is no ancestor of it")
        holds(branch["totals"][:3] == self.state["totals"][:3], "main has something else")
        holds(self.lines[head["branchName"]].keys() == self.files.keys(), "main has other files")
        branch |= {
            "base": event["snapshotId"],
            "baseVersion": commit["version"],
            "since": commit["version"],
            "snapshot": None,
            "head": event["snapshotId"],
            "first": branch["next"],
            "earliest": branch["next"],
            "totals": list(self.state["totals"]),
        }
        self.forget_statistics()

    def changes(self, event: Doc) -> list[Doc]:
        """Return a snapshot's file changes, wherever they stand."""
        if "changes" not in event:
            found: list[Doc] = event.get("files", [])
            return found
        reference = event["changes"]
        body = (self.folder / reference["path"]).read_bytes()
        holds(hashlib.sha256(body).hexdigest() == reference["sha256"], "the list was changed")
        rows = parquet.read_table(io.BytesIO(body)).to_pylist()
        holds(len(rows) == reference["count"], "the list is not whole")
        return [
            {
                "kind": each["kind"],
                "path": each["path"],
                "recordCount": each["record_count"],
                "fileSizeInBytes": each["file_size_in_bytes"],
                "partition": [json.loads(value) for value in each["partition"]],
                "specId": each["spec_id"],
                **{key: each[name] for name, key in LATER.items() if each.get(name) is not None},
            }
            for each in rows
        ]

    def createTag(self, event: Doc, moment: int, _commit: Doc) -> None:  # noqa: N802
        holds(event["tagName"] not in self.state["tags"], "the tag is there")
        self.set_tag(event, moment)

    def replaceTag(self, event: Doc, moment: int, _commit: Doc) -> None:  # noqa: N802
        holds(event["tagName"] in self.state["tags"], "the tag is not there")
        self.set_tag(event, moment)

    def set_tag(self, event: Doc, moment: int) -> None:
        """Name a snapshot."""
        retained = event.get("timeRetainedMillis")
        created = event.get("createTimeMillis", moment)
        self.state["tags"][event["tagName"]] = [event["snapshotId"], created, retained]
        self.forget_statistics()

    def deleteTag(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        del self.state["tags"][event["tagName"]]
        self.forget_statistics()

    def expireSnapshots(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        earliest = event["earliestSnapshotId"]
        if earliest >= BRANCH_IDS:
            number = earliest // BRANCH_IDS
            (branch,) = (
                each
                for each in self.state["branches"].values()
                if each["next"] // BRANCH_IDS == number
            )
            holds(branch["earliest"] <= earliest < branch["next"], "what expires is not there")
            branch["earliest"] = earliest
            return
        last = self.state["snapshot"]["snapshotId"]
        holds(self.state["earliest"] <= earliest <= last, "what expires is not there")
        self.state["earliest"] = earliest
        self.forget_statistics()

    def setPartitionStatistics(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        file = event["partitionStatistics"]
        self.state["statistics"][file["snapshot-id"]] = file

    def setStatistics(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        file = event["statistics"]
        last = (self.state["snapshot"] or {"snapshotId": 0})["snapshotId"]
        holds(1 <= file["snapshot-id"] <= last, "statistics of no snapshot")
        self.state["puffin"][file["snapshot-id"]] = file

    def forget_statistics(self) -> None:
        """Let the statistics of snapshots go that nobody can read."""
        tagged = {each[0] for each in self.state["tags"].values()}
        tagged |= {each["base"] for each in self.state["branches"].values()}
        earliest = self.state["earliest"]
        for each in ("statistics", "puffin"):
            kept = self.state[each].items()
            self.state[each] = {k: v for k, v in kept if k >= earliest or k in tagged}

    def correctClock(self, event: Doc, moment: int, commit: Doc) -> None:  # noqa: N802
        latest = event["trueTimeMillis"]
        holds(event["firstVersion"] < commit["version"] and latest <= moment, "no such correction")
        self.state["schemaTime"] = min(self.state["schemaTime"], latest)
        self.state["corrections"].append({"version": commit["version"], "trueTimeMillis": latest})
        self.state["created"][0] = min(self.state["created"][0], latest)
        lines = (each["snapshot"] for each in self.state["branches"].values())
        for snapshot in filter(None, (self.state["snapshot"], *lines)):
            snapshot["timeMillis"] = min(snapshot["timeMillis"], latest)
        for tag in self.state["tags"].values():
            tag[1] = min(tag[1], latest)

    def raiseFormatRules(self, event: Doc, _moment: int, _commit: Doc) -> None:  # noqa: N802
        rules = self.state["rules"]
        holds(all(v > rules.get(k, 1) for k, v in event["rules"].items()), "rules go down")
        rules |= event["rules"]


def set_or_remove(field: Doc, key: str, value: str | None) -> None:
    """Set a key, or remove it where there is no value."""
    if value is None:
        field.pop(key, None)
    else:
        field[key] = value


def view_after(before: Doc, event: Doc) -> Doc:
    """Return a view's Iceberg metadata after the updates of an event."""
    view: Doc = {"formatVersion": 1, "properties": {}, "schemas": [], "versions": [], **before}
    view.setdefault("versionLog", [])
    for each in event["updates"]:
        match each["action"]:
            case "assign-uuid":
                view["uuid"] = each["uuid"]
            case "upgrade-format-version":
                view["formatVersion"] = each["format-version"]
            case "set-location":
                view["location"] = each["location"]
            case "set-properties":
                view["properties"] = {**view["properties"], **each["updates"]}
            case "remove-properties":
                kept = view["properties"].items()
                view["properties"] = {k: text for k, text in kept if k not in each["removals"]}
            case _:
                change_versions(view, each)
    return view


def change_versions(view: Doc, update: Doc) -> None:
    """Apply an update of the schemas and versions of a view's Iceberg metadata."""
    match update["action"]:
        case "add-schema":
            view["schemas"] = [*view["schemas"], update["schema"]]
        case "add-view-version":
            view["versions"] = [*view["versions"], update["view-version"]]
        case "set-current-view-version":
            view["currentVersionId"] = now = update["view-version-id"]
            holds(now in [each["version-id"] for each in view["versions"]], "no such version")
            if "timestamp-ms" in update:
                since = {"timestamp-ms": update["timestamp-ms"], "version-id": now}
                view["versionLog"] = [*view["versionLog"], since]
        case "remove-view-versions":
            gone = update["version-ids"]
            view["versions"] = [it for it in view["versions"] if it["version-id"] not in gone]
            log = view["versionLog"]
            last = max((at for at, it in enumerate(log) if it["version-id"] in gone), default=-1)
            view["versionLog"] = log[last + 1 :]
        case other:
            raise BrokenError(f"no update of a view: {other}")


class Catalog:
    """The catalog's stream, folded: what there is, by name."""

    def __init__(self) -> None:
        self.is_outside = False
        self.version = self.placed_version = -1
        self.time_millis = self.effective_millis = 0
        self.corrections: list[Doc] = []
        self.databases: dict[str, Doc] = {}
        self.tables: dict[Name, Doc] = {}
        self.views: dict[Name, Doc] = {}
        self.functions: dict[Name, Doc] = {}
        self.dropped: dict[str, Doc] = {}
        self.paths: set[str] = set()
        self.place = self.ledger_id = self.copied_from = ""
        self.aliases: set[str] = set()
        self.now: list[Any] = []

    def fold(self, commit: Doc) -> None:
        """Take one commit in."""
        self.version, self.time_millis = commit["version"], commit["timeMillis"]
        for transaction in commit["transactions"]:
            moment = transaction.get("effectiveTimeMillis", commit["timeMillis"])
            self.is_outside |= "sidecar" in transaction
            self.now = [moment, said_by(transaction)]
            for event in transaction.get("events", []):
                getattr(self, event["type"])(event)
            self.effective_millis = max(self.effective_millis, moment)

    def made(self, **said: Any) -> Doc:
        """Return an entry that is new."""
        return {**said, "created": self.now, "updated": self.now}

    def take(self, path: str) -> None:
        """Give out a location, once for ever."""
        holds(path not in self.paths, f"{path} was given out before")
        self.paths.add(path)

    def createDatabase(self, event: Doc) -> None:  # noqa: N802
        holds(event["name"] not in self.databases, "the database is there")
        self.take(event["path"])
        options = dict(event.get("options", {}))
        self.databases[event["name"]] = self.made(path=event["path"], options=options)

    def alterDatabase(self, event: Doc) -> None:  # noqa: N802
        database = self.databases[event["name"]]
        for key in event.get("removals", []):
            database["options"].pop(key, None)
        database["options"] |= event.get("updates", {})
        database["updated"] = self.now

    def dropDatabase(self, event: Doc) -> None:  # noqa: N802
        names = (*self.tables, *self.views, *self.functions)
        inside = [each for each in names if each[0] == event["name"]]
        holds(not inside, "the database is not empty")
        del self.databases[event["name"]]

    def createTable(self, event: Doc) -> None:  # noqa: N802
        name = full(event["identifier"])
        self.check_free(name)
        self.take(event["path"])
        self.tables[name] = self.made(
            tableId=event["tableId"],
            path=event["path"],
            isExternal=event.get("isExternal", False),
            version=self.version,
        )

    def renameTable(self, event: Doc) -> None:  # noqa: N802
        self.rename(self.tables, event, "tableId")

    def dropTable(self, event: Doc) -> None:  # noqa: N802
        name = full(event["identifier"])
        entry = self.tables.pop(name)
        holds(entry["tableId"] == event["tableId"], "another table has that name")
        self.dropped[entry["tableId"]] = {
            "name": name,
            "entry": {**entry, "updated": self.now},
            "version": self.version,
            "purge": event.get("purge", False),
            "purged": False,
        }

    def undropTable(self, event: Doc) -> None:  # noqa: N802
        name = full(event["identifier"])
        self.check_free(name)
        gone = self.dropped.pop(event["tableId"])
        holds(not gone["purged"], "its files were deleted")
        entry = {**gone["entry"], "updated": self.now, "undropped": self.version}
        if "sealedVersion" in event:
            entry["unsealed"] = event["sealedVersion"]
        self.tables[name] = entry

    def purgeTable(self, event: Doc) -> None:  # noqa: N802
        gone = self.dropped[event["tableId"]]
        holds(gone["name"] == full(event["identifier"]), "another table was dropped")
        gone["purged"] = True

    def createView(self, event: Doc) -> None:  # noqa: N802
        name = full(event["identifier"])
        self.check_free(name)
        if "updates" in event:
            holds("schema" not in event, "a view has a schema or updates")
            self.views[name] = self.made(viewId=event["viewId"], iceberg=view_after({}, event))
            return
        schema = copy.deepcopy(event["schema"])
        self.views[name] = self.made(viewId=event["viewId"], schema=schema)

    def updateView(self, event: Doc) -> None:  # noqa: N802
        entry = self.views[full(event["identifier"])]
        holds(entry["viewId"] == event["viewId"], "another view has that name")
        entry["iceberg"], entry["updated"] = view_after(entry.get("iceberg", {}), event), self.now
        entry.pop("schema", None)

    def alterView(self, event: Doc) -> None:  # noqa: N802
        entry = self.views[full(event["identifier"])]
        holds(entry["viewId"] == event["viewId"], "another view has that name")
        view, entry["updated"] = entry["schema"], self.now
        for each in event["changes"]:
            match each["type"]:
                case "setOption":
                    view.setdefault("options", {})[each["key"]] = each["value"]
                case "removeOption":
                    view.get("options", {}).pop(each["key"], None)
                case "updateComment":
                    set_or_remove(view, "comment", each.get("comment"))
                case "addDialect" | "updateDialect":
                    view.setdefault("dialects", {})[each["dialect"]] = each["query"]
                case "dropDialect":
                    del view["dialects"][each["dialect"]]

    def renameView(self, event: Doc) -> None:  # noqa: N802
        self.rename(self.views, event, "viewId")

    def dropView(self, event: Doc) -> None:  # noqa: N802
        entry = self.views.pop(full(event["identifier"]))
        holds(entry["viewId"] == event["viewId"], "another view has that name")

    def createFunction(self, event: Doc) -> None:  # noqa: N802
        name = full(event["identifier"])
        holds(name[0] in self.databases and name not in self.functions, "the function is new")
        function = copy.deepcopy(event["function"])
        self.functions[name] = self.made(functionId=event["functionId"], function=function)

    def alterFunction(self, event: Doc) -> None:  # noqa: N802
        entry = self.functions[full(event["identifier"])]
        holds(entry["functionId"] == event["functionId"], "another function has that name")
        function, entry["updated"] = entry["function"], self.now
        for each in event["changes"]:
            match each["type"]:
                case "setOption":
                    function.setdefault("options", {})[each["key"]] = each["value"]
                case "removeOption":
                    function.get("options", {}).pop(each["key"], None)
                case "updateComment":
                    set_or_remove(function, "comment", each.get("comment"))
                case "addDefinition" | "updateDefinition":
                    definitions = function.setdefault("definitions", {})
                    holds(
                        (each["name"] in definitions) == (each["type"] != "addDefinition"),
                        "no such definition",
                    )
                    definitions[each["name"]] = each["definition"]
                case "dropDefinition":
                    del function["definitions"][each["name"]]

    def dropFunction(self, event: Doc) -> None:  # noqa: N802
        entry = self.functions.pop(full(event["identifier"]))
        holds(entry["functionId"] == event["functionId"], "another function has that name")

    def eraseValues(self, event: Doc) -> None:  # noqa: N802
        holds(event["values"] >= event["transactions"] > 0, "erases nothing")

    def correctClock(self, event: Doc) -> None:  # noqa: N802
        latest = event["trueTimeMillis"]
        holds(event["firstVersion"] < self.version and latest <= self.now[0], "no such correction")
        self.corrections.append({"version": self.version, "trueTimeMillis": latest})
        self.effective_millis = min(self.effective_millis, latest)
        gone = [each["entry"] for each in self.dropped.values()]
        named = (self.databases, self.tables, self.views, self.functions)
        for each in (*(entry for entries in named for entry in entries.values()), *gone):
            for key in ("created", "updated"):
                each[key] = [min(each[key][0], latest), each[key][1]]

    def moveLedger(self, event: Doc) -> None:  # noqa: N802
        self.place, self.placed_version, self.aliases = event["location"], self.version, set()

    def aliasLedger(self, event: Doc) -> None:  # noqa: N802
        self.aliases.add(event["location"])

    def copyLedger(self, event: Doc) -> None:  # noqa: N802
        self.moveLedger(event)
        self.ledger_id, self.copied_from = event["ledgerId"], event["copiedFrom"]
        without = set(event.get("excludedTableIds", ()))
        there = {each["tableId"] for each in self.tables.values()}
        holds(without <= there, "a copy leaves tables that were there")
        self.tables = {
            name: each for name, each in self.tables.items() if each["tableId"] not in without
        }
        self.dropped = {
            table_id: each
            for table_id, each in self.dropped.items()
            if not each["entry"]["path"].startswith("/") and "://" not in each["entry"]["path"]
        }

    def rename(self, entries: dict[Name, Doc], event: Doc, key: str) -> None:
        """Give an entry another name."""
        self.check_free(full(event["destination"]))
        entry = entries.pop(full(event["source"]))
        holds(entry[key] == event[key], "another one has that name")
        entries[full(event["destination"])] = {**entry, "updated": self.now}

    def check_free(self, name: Name) -> None:
        """Refuse a name that is taken, or in no database."""
        holds(name[0] in self.databases, f"{name} is in no database")
        holds(name not in self.tables and name not in self.views, f"{name} is taken")


def full(identifier: Doc) -> Name:
    """Return a name, its database first."""
    return identifier["databaseName"], identifier["tableName"]
