"""Iceberg tables as their metadata files say them, changed by every update that REST knows.

Nothing here is lakeledger's: a table is the JSON of its newest metadata file.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from attrs import define, field

Json = dict[str, Any]
START_MS = 1_700_000_000_000


def _column(field_id: int, name: str, kind: Any, **more: Any) -> Json:
    return {"id": field_id, "name": name, "required": False, "type": kind, **more}


def _first(version: int) -> Json:
    struct = {"type": "struct", "fields": [_column(3, "inner", "int")]}
    fields = [{**_column(1, "id", "long"), "required": True}, _column(2, "at", struct)]
    return {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "file:/elsewhere/t",
        "last-updated-ms": START_MS,
        "last-column-id": 3,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        **({"last-sequence-number": 0} if version > 1 else {}),
        **({"next-row-id": 0} if version > 2 else {}),
        **{key: [] for key in ("snapshots", "snapshot-log", "metadata-log", "statistics")},
        "partition-statistics": [],
        "encryption-keys": [],
        "refs": {},
        "current-snapshot-id": None if version > 2 else -1,
    }


@define
class Source:
    """A table of others; each update leaves the next metadata file's content in `said`."""

    said: Json
    given: int = 0
    _at: int = field(default=START_MS, init=False)

    @classmethod
    def created(cls, version: int) -> Source:
        """Return a new table of a format version."""
        return cls(_first(version))

    def update(self, name: str, one: int, other: int) -> None:
        """Do one update to the table; numbers choose among what is there."""
        before = self._at
        self.said, self._at = copy.deepcopy(self.said), before + 1000
        UPDATES[name](self, one, other)
        self.said["last-updated-ms"] = self._at
        log = self.said["metadata-log"]
        log.append({"timestamp-ms": before, "metadata-file": f"{before}.metadata.json"})
        del log[:-3]

    def fresh(self) -> int:
        """Return a number that was never given before."""
        self.given += 1
        return self.given

    def named(self, key: str, number: int) -> Json:
        """Return the member of a list that a number chooses."""
        found: Json = self.said[key][number % len(self.said[key])]
        return found


def _add_schema(table: Source, one: int, other: int) -> None:  # noqa: C901 - one case a change
    schema = copy.deepcopy(table.named("schemas", one))
    said, fields = table.said, schema["fields"]
    free = said["last-column-id"] + 1
    column = fields[other % len(fields)]
    match other // 8 % 8:
        case 0 | 1:
            more: Json = {}
            if said["format-version"] > 2 and other % 2:
                more = {"initial-default": 7, "write-default": 8}
            place = len(fields) - other % 2
            fields.insert(place, _column(free, f"c{free}", "int", **more))
            said["last-column-id"] = free
        case 2 if column["id"] > 2:
            fields.remove(column)
        case 3 if column["id"] > 2:
            column["name"] = f"r{table.fresh()}"
        case 4:
            column["doc"] = f"about {table.fresh()}"
        case 5 if column["type"] == "int":
            column["type"] = "long"
        case 6:
            fields.append(fields.pop(0))
        case 7:
            inside = next(each for each in fields if each["id"] == 2)["type"]["fields"]
            inside.append(_column(free, f"n{free}", "string"))
            said["last-column-id"] = free
        case _:
            identifies = schema.pop("identifier-field-ids", None)
            if identifies is None:
                schema["identifier-field-ids"] = [1]
    schema["schema-id"] = table.fresh()
    said["schemas"].append(schema)
    if one % 2:
        said["current-schema-id"] = schema["schema-id"]


def _add_spec(table: Source, one: int, other: int) -> None:
    said, columns = table.said, table.named("schemas", one)["fields"]
    sources = [each["id"] for each in columns if isinstance(each["type"], str)]
    said["last-partition-id"] += 1
    number = said["last-partition-id"]
    made = {
        "source-id": sources[other % len(sources)],
        "field-id": number,
        "name": f"p{number}",
        "transform": ("identity", "bucket[4]")[other % 2],
    }
    said["partition-specs"].append({"spec-id": table.fresh(), "fields": [made]})


def _add_order(table: Source, one: int, other: int) -> None:
    columns = table.named("schemas", one)["fields"]
    sources = [each["id"] for each in columns if isinstance(each["type"], str)]
    made = {
        "transform": "identity",
        "source-id": sources[other % len(sources)],
        "direction": ("asc", "desc")[other % 2],
        "null-order": "nulls-first",
    }
    table.said["sort-orders"].append({"order-id": table.fresh(), "fields": [made]})


def _setting(key: str, listed: str, number_of: str) -> Callable[[Source, int, int], None]:
    def update(table: Source, one: int, _other: int) -> None:
        table.said[key] = table.named(listed, one)[number_of]

    return update


def _removing(key: str, listed: str, number_of: str) -> Callable[[Source, int, int], None]:
    def update(table: Source, one: int, _other: int) -> None:
        there = table.said[listed]
        others = [each for each in there if each[number_of] != table.said[key]]
        if others:
            there.remove(others[one % len(others)])

    return update


def _add_snapshot(table: Source, one: int, _other: int) -> None:
    said, number = table.said, table.fresh()
    made: Json = {
        "snapshot-id": 10_000 * number + one,
        "timestamp-ms": table._at,
        "summary": {"operation": "append"},
        "manifest-list": f"file:/elsewhere/t/metadata/snap-{number}.avro",
        "schema-id": said["current-schema-id"],
    }
    if said["refs"].get("main"):
        made["parent-snapshot-id"] = said["refs"]["main"]["snapshot-id"]
    if said["format-version"] > 1:
        said["last-sequence-number"] += 1
        made["sequence-number"] = said["last-sequence-number"]
    if said["format-version"] > 2:
        made |= {"first-row-id": said["next-row-id"], "added-rows": 5}
        said["next-row-id"] += 5
    said["snapshots"].append(made)


def _commit(table: Source, one: int, other: int) -> None:
    _add_snapshot(table, one, other)
    _point_main(table, table.said["snapshots"][-1]["snapshot-id"])


def _point_main(table: Source, snapshot_id: int) -> None:
    said = table.said
    there = said["refs"].get("main", {"type": "branch"})
    said["refs"]["main"] = {**there, "snapshot-id": snapshot_id}
    said["current-snapshot-id"] = snapshot_id
    now = table._at
    said["snapshot-log"].append({"timestamp-ms": now, "snapshot-id": snapshot_id})


def _set_ref(table: Source, one: int, other: int) -> None:
    said = table.said
    if not said["snapshots"]:
        return
    snapshot_id = table.named("snapshots", one)["snapshot-id"]
    if other % 4 == 0:
        _point_main(table, snapshot_id)
    elif other % 4 == 1 and said["refs"].get("main"):
        said["refs"]["main"]["min-snapshots-to-keep"] = 1 + other
    else:
        kind = ("branch", "tag")[other % 2]
        said["refs"][f"{kind}-{one % 3}"] = {"snapshot-id": snapshot_id, "type": kind}


def _remove_ref(table: Source, one: int, _other: int) -> None:
    said = table.said
    if said["refs"]:
        name = sorted(said["refs"])[one % len(said["refs"])]
        del said["refs"][name]
        if name == "main":
            said["current-snapshot-id"] = None if said["format-version"] > 2 else -1


def _remove_snapshot(table: Source, one: int, other: int) -> None:
    said = table.said
    main = said["refs"].get("main", {}).get("snapshot-id")
    others = [each for each in said["snapshots"] if each["snapshot-id"] != main]
    if not others:
        return
    gone = others[one % len(others)]
    said["snapshots"].remove(gone)
    key = gone["snapshot-id"]
    said["refs"] = {name: ref for name, ref in said["refs"].items() if ref["snapshot-id"] != key}
    log = said["snapshot-log"]
    places = [at for at, each in enumerate(log) if each["snapshot-id"] == key]
    del log[: places[-1] + 1 if places else 0]
    if other % 2:
        for kind in ("statistics", "partition-statistics"):
            said[kind] = [each for each in said[kind] if each["snapshot-id"] != key]


def _set_statistics(table: Source, one: int, other: int) -> None:
    said = table.said
    if not said["snapshots"]:
        return
    key = table.named("snapshots", one)["snapshot-id"]
    kind = ("statistics", "partition-statistics")[other % 2]
    made: Json = {
        "snapshot-id": key,
        "statistics-path": f"file:/elsewhere/t/metadata/{table.fresh()}.stats",
        "file-size-in-bytes": 9,
    }
    if kind == "statistics":
        made |= {"file-footer-size-in-bytes": 3, "blob-metadata": []}
    said[kind] = [*(each for each in said[kind] if each["snapshot-id"] != key), made]


def _remove_statistics(table: Source, one: int, other: int) -> None:
    there = table.said[("statistics", "partition-statistics")[other % 2]]
    if there:
        del there[one % len(there)]


def _set_property(table: Source, one: int, other: int) -> None:
    table.said["properties"][f"k{one % 3}"] = str(other % 3)


def _remove_property(table: Source, one: int, _other: int) -> None:
    table.said["properties"].pop(f"k{one % 3}", None)


def _change_key(table: Source, one: int, other: int) -> None:
    there = table.said["encryption-keys"]
    if there and other % 2:
        del there[one % len(there)]
    elif table.said["format-version"] > 2:
        there.append({"key-id": f"k{table.fresh()}", "encrypted-key-metadata": "a2V5"})


def _set_location(table: Source, one: int, _other: int) -> None:
    table.said["location"] = f"file:/elsewhere/t{one % 3}"


def _upgrade(table: Source, _one: int, _other: int) -> None:
    said = table.said
    said["format-version"] = min(said["format-version"] + 1, 3)
    said.setdefault("last-sequence-number", 0)
    if said["format-version"] > 2:
        said.setdefault("next-row-id", 0)


UPDATES: dict[str, Callable[[Source, int, int], None]] = {
    "add-schema": _add_schema,
    "set-current-schema": _setting("current-schema-id", "schemas", "schema-id"),
    "remove-schemas": _removing("current-schema-id", "schemas", "schema-id"),
    "add-spec": _add_spec,
    "set-default-spec": _setting("default-spec-id", "partition-specs", "spec-id"),
    "remove-partition-specs": _removing("default-spec-id", "partition-specs", "spec-id"),
    "add-sort-order": _add_order,
    "set-default-sort-order": _setting("default-sort-order-id", "sort-orders", "order-id"),
    "remove-sort-orders": _removing("default-sort-order-id", "sort-orders", "order-id"),
    "add-snapshot": _add_snapshot,
    "commit": _commit,
    "set-snapshot-ref": _set_ref,
    "remove-snapshot-ref": _remove_ref,
    "remove-snapshots": _remove_snapshot,
    "set-statistics": _set_statistics,
    "remove-statistics": _remove_statistics,
    "set-properties": _set_property,
    "remove-properties": _remove_property,
    "change-encryption-keys": _change_key,
    "set-location": _set_location,
    "upgrade-format-version": _upgrade,
}

Fact = tuple[Any, ...]
_LISTS = {
    "schemas": ("schema", "schema-id"),
    "partition-specs": ("spec", "spec-id"),
    "sort-orders": ("order", "order-id"),
    "snapshots": ("snapshot", "snapshot-id"),
    "encryption-keys": ("key", "key-id"),
}
_SINGLE = {
    "current-schema-id": "current schema",
    "default-spec-id": "default spec",
    "default-sort-order-id": "default order",
}
COUNTERS = ("last-column-id", "last-partition-id", "last-sequence-number", "next-row-id")


def by_id(said: Json, listed: str) -> dict[Any, Json]:
    """Return the members of a list by their ids."""
    number = _LISTS[listed][1] if listed in _LISTS else "snapshot-id"
    return {each[number]: each for each in said[listed]}


def current_columns(said: Json) -> dict[int, Fact]:
    """Return the columns of the current schema at any depth, each as it is without its members."""
    return dict(_flat(by_id(said, "schemas")[said["current-schema-id"]]["fields"]))


def _flat(fields: list[Json]) -> Iterator[tuple[int, Fact]]:
    for each in fields:
        kind = each["type"]
        inside = [] if isinstance(kind, str) else kind["fields"]
        own = {key: value for key, value in each.items() if key != "type"}
        yield each["id"], (kind if not inside else "struct", *sorted(map(str, own.items())))
        yield from _flat(inside)


def changed(before: Json, after: Json) -> set[Fact]:
    """Return what differs between two metadata files: kinds of change, with ids or names."""
    found: set[Fact] = set(_columns(before, after))
    for listed, (noun, _) in _LISTS.items():
        had, has = by_id(before, listed), by_id(after, listed)
        found |= {("add", noun, each) for each in has.keys() - had.keys()}
        found |= {("remove", noun, each) for each in had.keys() - has.keys()}
    found |= {
        ("set", noun, after[key]) for key, noun in _SINGLE.items() if before[key] != after[key]
    }
    for key, noun in (("refs", "ref"), ("properties", "property")):
        had, has = before[key], after[key]
        found |= {("set", noun, each) for each in has if had.get(each) != has[each]}
        found |= {("remove", noun, each) for each in had.keys() - has.keys()}
    gone = by_id(before, "snapshots").keys() - by_id(after, "snapshots").keys()
    for listed in ("statistics", "partition-statistics"):
        # Statistics go with their snapshot; what the source keeps of it is set again.
        had = {key: each for key, each in by_id(before, listed).items() if key not in gone}
        has = by_id(after, listed)
        found |= {("set", listed, each) for each in has if had.get(each) != has[each]}
        found |= {("remove", listed, each) for each in had.keys() - has.keys()}
    said = ("format-version", "location", "snapshot-log", "metadata-log", *COUNTERS)
    found |= {(key,) for key in said if before.get(key, 0) != after.get(key, 0)}
    return found


def _columns(before: Json, after: Json) -> Iterator[Fact]:
    had, has = current_columns(before), current_columns(after)
    yield from (
        ("column", each) for each in had.keys() | has.keys() if had.get(each) != has.get(each)
    )
    order = [[each for each in one if each in other] for one, other in ((had, has), (has, had))]
    if order[0] != order[1]:
        yield ("column order",)
    one, other = (by_id(each, "schemas")[each["current-schema-id"]] for each in (before, after))
    if one.get("identifier-field-ids") != other.get("identifier-field-ids"):
        yield ("identifier fields",)
