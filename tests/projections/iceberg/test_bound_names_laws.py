"""Whatever a table lived through, a name stands for one field in all that can be read, no less."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import msgspec
import pytest
from attrs import define, field
from msgspec.structs import replace

from ledger import AddColumn, DropColumn, FormatError, RenameColumn, SchemaChange, Table
from ledger.history.past import decode_names_cache
from ledger.history.verifying import Finding, Subject, Verification, repair
from ledger.log import digest
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.evolution.declared import table_of, unnamed
from tests.faults import Wrapped
from tests.lakes import lake_on, ticking
from tests.thorough import some

NAMES = "abcd"
STEPS = 60
LATER = 1_800_000_000_000


@define
class Known:
    """A minimal model of a table: every snapshot with its files, every schema's names."""

    schemas: list[dict[str, int]] = field(factory=lambda: [{"id": 0, "a": 1}])
    highest: int = 1
    snapshots: list[dict[str, int | None]] = field(factory=list)
    earliest: int = 1
    tags: dict[str, int] = field(factory=dict)

    @property
    def live(self) -> dict[str, int | None]:
        """Files by name, with the schema whose names they use; None of one that has ids."""
        return self.snapshots[-1] if self.snapshots else {}

    def held(self) -> set[int]:
        readable = [*range(self.earliest, len(self.snapshots) + 1), *self.tags.values()]
        files = (self.snapshots[each - 1].values() for each in readable)
        return {each for some in files for each in some if each is not None}

    def clash(self, *more: dict[str, int]) -> bool:
        bound: dict[str, int] = {}
        schemas: Iterable[dict[str, int]] = [*more, *(self.schemas[each] for each in self.held())]
        return any(
            bound.setdefault(name, each) != each
            for names in schemas
            for name, each in names.items()
        )


class World:
    """A table, and what is known of it; steps at random."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.table = table_of({"id": "INT", "a": "INT"})
        self.known = Known()
        self.numbers = count()
        self.clock = ticking(LATER)
        self.refusals = 0

    def step(self) -> None:
        steps: list[Callable[[], None]] = [
            self.append,
            self.append,
            self.append,
            self.alter,
            self.alter,
            self.alter,
            self.delete,
            self.expire,
            self.tag,
            self.untag,
            self.roll_back,
            self.reopen,
            handle_of(self.table).past.save,
        ]
        self.rng.choice(steps)()

    def append(self) -> None:
        known, name = self.known, f"f{next(self.numbers)}.parquet"
        newest = len(known.schemas) - 1
        schema_id = self.rng.randint(max(0, newest - 3), newest)
        file = unnamed(name, schema_id=schema_id)
        has_ids = self.rng.random() < 0.3
        if has_ids:
            file = replace(file, field_ids=True)
        is_older = schema_id != newest and not has_ids
        clashes = is_older and known.clash(known.schemas[schema_id], known.schemas[-1])
        if self.lands(clashes, lambda: self.table.append([file])):
            known.snapshots.append({**known.live, name: None if has_ids else schema_id})

    def alter(self) -> None:
        known = self.known
        names = dict(known.schemas[-1])
        free = [each for each in NAMES if each not in names]
        there = [each for each in NAMES if each in names]
        change: SchemaChange
        match self.rng.choice(["add", "drop", "rename"]):
            case "add" if free:
                name = self.rng.choice(free)
                names[name] = known.highest + 1
                change = AddColumn((name,), "INT")
            case "drop" if there:
                name = self.rng.choice(there)
                del names[name]
                change = DropColumn((name,))
            case "rename" if there and free:
                name, new = self.rng.choice(there), self.rng.choice(free)
                names[new] = names.pop(name)
                change = RenameColumn((name,), new)
            case _:
                return
        clashes = not names.items() <= known.schemas[-1].items() and known.clash(names)
        if self.lands(clashes, lambda: self.table.alter([change])):
            known.schemas.append(names)
            known.highest = max(known.highest, *names.values())

    def lands(self, clashes: bool, ask: Callable[[], object]) -> bool:  # noqa: FBT001
        if clashes:
            self.refusals += 1
            with pytest.raises(FormatError, match="the name would refer to field"):
                ask()
            return False
        ask()
        return True

    def delete(self) -> None:
        if self.known.live:
            gone = self.rng.choice(list(self.known.live))
            self.table.delete_files([gone])
            left = {name: each for name, each in self.known.live.items() if name != gone}
            self.known.snapshots.append(left)

    def expire(self) -> None:
        newest = len(self.known.snapshots)
        if newest:
            before = self.rng.randint(max(1, newest - 3), newest)
            self.table.expire_snapshots(before=before)
            self.known.earliest = max(self.known.earliest, before)

    def tag(self) -> None:
        if self.known.snapshots:
            name = f"t{next(self.numbers)}"
            self.table.create_tag(name)
            self.known.tags[name] = len(self.known.snapshots)

    def untag(self) -> None:
        if self.known.tags:
            self.table.delete_tag(self.known.tags.popitem()[0])

    def roll_back(self) -> None:
        known = self.known
        if not known.snapshots:
            return
        target = self.rng.randint(known.earliest, len(known.snapshots))
        self.table.rollback(snapshot=target)
        known.snapshots.append(known.snapshots[target - 1])

    def reopen(self) -> None:
        self.table = lake_on(handle_of(self.table).log.store, self.clock).table("shop.t")


@pytest.mark.parametrize("seed", some(range(25), 8))
def test_a_name_is_rejected_exactly_where_what_can_be_read_means_another_field(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    # The head agrees, so that the model knew what it was talking about.
    names = {each.name: each.id for each in world.table.state.schema.fields}
    assert names == world.known.schemas[-1]


def test_histories_meet_refusals_and_leave_room() -> None:
    worlds = [World(seed) for seed in range(8)]
    for world in worlds:
        for _ in range(STEPS):
            world.step()
    assert sum(world.refusals for world in worlds) > 10


class Counts(Wrapped):
    """Counts what is read."""

    reads = 0

    def read(self, key: str) -> bytes | None:
        self.reads += 1
        return super().read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        return map(self.read, keys)


def aged(table: Table, changes: int) -> None:
    """Let a table use the names of many schemas, and expire what it can."""
    for each in range(changes):
        table.alter([AddColumn((f"n{each}",), "INT")])
        table.append([unnamed(f"f{each}.parquet", schema_id=table.state.schema.id)])
    table.expire_snapshots(before=changes)


def test_a_new_handle_reads_names_from_one_file_however_many_schemas_there_were() -> None:
    reads = []
    for changes in (5, 60):
        table = table_of({"id": "INT", "a": "INT"})
        aged(table, changes)
        handle_of(table).past.save()
        store = Counts(handle_of(table).log.store)
        other = lake_on(store, ticking(LATER)).table("shop.t")
        state = other.state
        before = store.reads
        handle_of(other).past.names(state, ())
        reads.append(store.reads - before)
    assert reads == [2, 2]


@pytest.mark.parametrize("harm", ["torn", "foreign", "later", "absent"])
def test_names_that_cannot_be_believed_are_found_in_the_log(harm: str) -> None:
    table = table_of({"id": "INT", "a": "INT"})
    aged(table, 3)
    handle_of(table).past.save()
    store, key = handle_of(table).log.store, handle_of(table).log.layout.names
    body = store.read(key) or b""
    version = f'"version":{table.state.version}'.encode()
    newest = handle_of(table).log.head
    head = (newest.digest if newest else "").encode()
    match harm:
        case "torn":
            store.replace(key, body[:-9])
        case "foreign":
            store.replace(key, body.replace(head, digest(b"another").encode()))
        case "later":
            store.replace(key, body.replace(version, b'"version":99'))
        case _:
            store.delete(key)
    other = lake_on(store, ticking(LATER)).table("shop.t")
    found = handle_of(other).past.names(other.state, ())
    known = handle_of(table).past.names(table.state, ())
    assert sorted(found.meant(), key=str) == sorted(known.meant(), key=str)


def other_meaning(body: bytes) -> bytes:
    """The same file as if a name had stood for another field, with a check that fits."""
    file = msgspec.json.decode(body)
    file["names"]["meant"][0][1] = [77]
    file["check"] = hashlib.sha256(msgspec.json.encode(file["names"])).hexdigest()
    return msgspec.json.encode(file)


HARMS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "one bit": ("derived", lambda body: body[:40] + bytes([body[40] ^ 1]) + body[41:]),
    "torn": ("derived", lambda body: body[:-9]),
    "another meaning": ("derived", other_meaning),
    "another commit": ("damage", lambda body: resealed(body, head=digest(b"another"))),
    "a version that is gone": ("damage", lambda body: resealed(body, version=99)),
    "a schema that never was": ("derived", lambda body: resealed(body, schemaIds=[0, 1, 2, 44])),
}


def resealed(body: bytes, **facts: object) -> bytes:
    file = msgspec.json.decode(body)
    file["names"] |= facts
    file["check"] = hashlib.sha256(msgspec.json.encode(file["names"])).hexdigest()
    return msgspec.json.encode(file)


@pytest.mark.parametrize("harm", HARMS)
def test_verify_compares_what_names_meant_with_the_log_and_restores_it(harm: str) -> None:
    table = table_of({"id": "INT", "a": "INT"})
    aged(table, 3)
    handle_of(table).past.save()
    store, key = handle_of(table).log.store, handle_of(table).log.layout.names
    body = store.read(key) or b""
    # An older one that still holds is no finding.
    table.alter([AddColumn(("later",), "INT")])

    def look() -> list[Finding]:
        cold: Subject[Any, Any] = Subject("t", other_log(store), has_files=True)
        found = [each for each in Verification(cold).run() if each.file == key]
        assert all(repair(cold, each) == (each.kind == "derived") for each in found)
        return found

    assert look() == []
    kind, spoil = HARMS[harm]
    store.replace(key, spoil(body))
    assert [each.kind for each in look()] == [kind]
    if kind == "derived":
        assert look() == []
        stored = decode_names_cache(store.read(key) or b"")
        assert stored is not None
        known = dict(handle_of(table).past.names(table.state, ()).meant())
        assert {each: known[each] for each, _ in stored.meant} == dict(stored.meant)


def other_log(store: Store) -> Any:
    return handle_of(lake_on(store, ticking(LATER)).table("shop.t")).log


def test_many_schemas_are_found_in_one_pass_over_the_log() -> None:
    table = table_of({"id": "INT", "a": "INT"})
    aged(table, 30)
    handle_of(table).log.wait_for_caches()
    version = table.state.version
    store = Counts(handle_of(table).log.store)
    other = lake_on(store, ticking(LATER)).table("shop.t")
    handle_of(other).log.refresh()
    before = store.reads
    found = handle_of(other).past.schemas(range(1, 25))
    assert [each.id for each in found] == list(range(1, 25))
    assert store.reads - before <= version + 1


def test_what_names_meant_is_believed_of_this_very_log_alone() -> None:
    table = table_of({"id": "INT", "a": "INT"})
    aged(table, 3)
    handle_of(table).past.save()
    store, key = handle_of(table).log.store, handle_of(table).log.layout.names
    forged = other_meaning(store.read(key) or b"")

    def meant() -> list[list[int]]:
        cold = lake_on(store, ticking(LATER)).table("shop.t")
        return [sorted(each) for _, each in handle_of(cold).past.names(cold.state, ()).meant()]

    store.replace(key, forged)
    assert [77] in meant()
    # As of a log that was put back from an older copy, and went on otherwise.
    store.replace(key, resealed(forged, head=digest(b"another")))
    assert [77] not in meant()
