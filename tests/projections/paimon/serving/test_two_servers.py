"""Two servers of one table, each with what it has cached: one of them is late at any step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from threading import Thread

import pytest

from ledger import InvalidInputError
from ledger.events.schema import AddColumn, RenameColumn
from ledger.log.layout import STREAM_FOLDER
from ledger.model.instant import SnapshotInstant
from ledger.stores import Store
from projections.paimon.materialise import verify
from projections.paimon.served import alter_table
from projections.paimon.served_branches import create_branch
from projections.paimon.served_commits import commit_snapshot
from projections.paimon.served_files import write_files
from projections.paimon.served_folder import record_folder
from projections.paimon.served_rollback import rollback_schema, rollback_table
from projections.paimon.served_tags import create_tag, delete_tag
from tests.faults import Died, Wrapped
from tests.lakes import lake_on, memory
from tests.projections.paimon.serving.engines import Engine, lake_at, snapshot_json


class Interrupted(Wrapped):
    """A store that calls a function before its write number `at` to a table's folder, once.

    Writes to the log do not count: their writer may hold the log's lock.
    """

    def __init__(self, inner: Store, at: int, call: Callable[[], None]) -> None:
        super().__init__(inner)
        self.left, self.call = at, call

    def _step(self, key: str) -> None:
        self.left -= STREAM_FOLDER not in key
        if self.left == -1:
            self.left -= 1
            self.call()

    def create(self, key: str, body: bytes) -> bool:
        self._step(key)
        return super().create(key, body)

    def replace_durably(self, key: str, body: bytes) -> None:
        self._step(key)
        super().replace_durably(key, body)

    def delete(self, key: str) -> None:
        self._step(key)
        super().delete(key)


class DiesRemoving(Wrapped):
    """A store whose process dies once it has tried to remove a file.

    Attributes:
        name: The end of the file's key.
        read: Called before the file is read.
        delete: Called before the file is deleted.
    """

    def __init__(self, inner: Store, name: str, **calls: Callable[[], None]) -> None:
        super().__init__(inner)
        self.name, self.calls = name, calls

    def read(self, key: str) -> bytes | None:
        if key.endswith(self.name) and "read" in self.calls:
            self.calls.pop("read")()
        return super().read(key)

    def delete(self, key: str) -> None:
        if key.endswith(self.name):
            self.calls.pop("delete", lambda: None)()
            super().delete(key)
            raise Died
        super().delete(key)


def with_snapshots(store: Store, count: int) -> Engine:
    engine = Engine.of_new_table(store)
    for _ in range(count):
        engine.commit()
    return engine


def roll_back(engine: Engine) -> None:
    rollback_table(engine.table, SnapshotInstant(1))


def roll_back_and_commit(engine: Engine) -> None:
    roll_back(engine)
    engine.sent = engine.snapshots()[1]
    engine.commit(deltaManifestList="instead")


def commit(engine: Engine) -> None:
    engine.send(snapshot_json(3, deltaManifestList="late"), snapshot_json(2)["uuid"])


def tag(engine: Engine) -> None:
    create_tag(engine.table, "late", snapshot_id=1)


@pytest.mark.parametrize("late", [commit, tag, roll_back])
@pytest.mark.parametrize("between", [roll_back, roll_back_and_commit])
def test_a_late_server_leaves_the_folder_as_the_log_says(
    late: Callable[[Engine], None], between: Callable[[Engine], None]
) -> None:
    for at in range(40):
        inner = memory()
        with_snapshots(inner, 2)
        other = Engine.of(lake_at(inner))
        store = Interrupted(inner, at, lambda: between(other))  # noqa: B023 - called in this turn
        slow = Engine.of(lake_at(store))
        write_files(slow.table, slow.table.state)
        late(slow)
        seen = Engine.of(lake_at(inner))
        state = record_folder(seen.table)
        assert verify(seen.table).is_empty
        origin = state.origin
        assert sorted(seen.snapshots()) == sorted(origin.snapshots)  # type: ignore[union-attr]
        assert seen.latest() == state.last_snapshot_id
        assert seen.tags() == sorted(state.tags)
        if store.left >= 0:
            return
    pytest.fail("the call makes more writes than the test knows")


def test_servers_see_what_the_other_one_did() -> None:
    store = memory()
    one, other = with_snapshots(store, 2), Engine.of(lake_at(store))
    write_files(other.table, other.table.state)
    rollback_table(one.table, SnapshotInstant(1))
    one.sent = one.snapshots()[1]
    again = one.commit(deltaManifestList="again")
    # The other one's caches are of before the rollback.
    assert not other.send(snapshot_json(3), snapshot_json(2)["uuid"])
    other.sent = again
    other.commit()
    assert [*one.snapshots()] == [1, 2, 3]
    assert one.snapshots()[2]["deltaManifestList"] == "again"


def test_concurrent_commits_are_all_made() -> None:
    store = memory()
    Engine.of_new_table(store)
    # With real time, since writers that lose wait for one another.
    engines = [Engine.of(lake_on(store)) for _ in range(3)]

    def work(number: int) -> None:
        engine = engines[number]
        done = 0
        while done < 4:
            current = engine.table.state.snapshot
            base = None if current is None else current.uuid
            last = 0 if current is None else current.id
            sent = snapshot_json(last + 1, deltaManifestList=f"{number}-{done}-{last}")
            done += engine.send(sent, base)

    threads = [Thread(target=work, args=(each,), daemon=True) for each in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    seen = Engine.of(lake_at(store))
    assert sorted(seen.snapshots()) == [*range(1, 13)]
    assert verify(seen.table).is_empty


@pytest.mark.parametrize("moment", ["read", "delete"])
@pytest.mark.parametrize("branch", [None, "b"])
@pytest.mark.parametrize("load", [True, False])
def test_a_snapshot_stays_that_replaces_one_which_a_late_server_removes(
    moment: str,
    branch: str | None,
    load: bool,  # noqa: FBT001 - a case
) -> None:
    inner = memory()
    engine = with_snapshots(inner, 1)
    create_tag(engine.table, "one", snapshot_id=1)
    create_branch(engine.table, "b", tag="one")
    folder = "" if branch is None else f"branch/branch-{branch}/"

    def commit_to(number: int, base: str, **other: str) -> str:
        sent = snapshot_json(number, **other)
        assert commit_snapshot(engine.table, engine.request(sent, base), branch=branch)
        return str(sent["uuid"])

    first = snapshot_json(1)["uuid"]
    commit_to(2, first)
    uuids: list[str] = []
    call = {moment: lambda: uuids.append(commit_to(2, first, deltaManifestList="instead"))}
    late = Engine.of(lake_at(DiesRemoving(inner, f"{folder}snapshot/snapshot-2", **call)))
    write_files(late.table, late.table.state)
    with suppress(Died):
        rollback_table(late.table, SnapshotInstant(1), branch=branch)
    assert uuids
    if moment == "read":
        assert f"{folder}snapshot/snapshot-2" in engine.files()
    if load:
        write_files(engine.table, engine.table.state, branch)
    else:
        commit_to(3, uuids[0])
    assert f"{folder}snapshot/snapshot-2" in engine.files()
    assert verify(engine.table).is_empty


def test_a_schema_stays_that_replaces_one_which_a_late_server_removes() -> None:
    inner = memory()
    engine = Engine.of_new_table(inner)
    alter_table(engine.table, [AddColumn(("a",), "INT")])

    def alter() -> None:
        alter_table(engine.table, [AddColumn(("b",), "INT")])

    late = Engine.of(lake_at(DiesRemoving(inner, "schema/schema-1", read=alter)))
    write_files(late.table, late.table.state)
    rollback_schema(late.table, 0)
    assert engine.table.state.schema.names == ("id", "day", "b")
    assert verify(engine.table).is_empty


def test_concurrent_changes_of_schemas_are_rebased() -> None:
    store = memory()
    one, other = Engine.of_new_table(store), Engine.of(lake_at(store))
    alter_table(one.table, [RenameColumn(("day",), "date")])
    alter_table(other.table, [AddColumn(("note",), "STRING")])
    assert other.table.state.schema.names == ("id", "date", "note")
    assert other.table.state.schema.id == 2
    with pytest.raises(InvalidInputError):
        alter_table(Engine.of(lake_at(store)).table, [RenameColumn(("day",), "x")])
    assert {"schema/schema-1", "schema/schema-2"} <= one.files().keys()


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_changes_by_two_servers_and_an_engine_agrees(seed: int) -> None:
    rng = Random(seed)
    store = memory()
    engines = [with_snapshots(store, 1), Engine.of(lake_at(store))]

    def step(engine: Engine) -> None:
        state = record_folder(engine.table)
        ids = sorted(state.origin.snapshots)  # type: ignore[union-attr]
        match rng.randrange(6):
            case 0 | 1:
                current = state.snapshot
                assert current is not None
                sent = snapshot_json(current.id + 1, deltaManifestList=f"{rng.random()}")
                assert engine.send(sent, current.uuid)
            case 2:
                rollback_table(engine.table, SnapshotInstant(rng.choice(ids)))
            case 3:
                create_tag(engine.table, f"{rng.random()}", snapshot_id=rng.choice(ids))
            case 4:
                for name in [*record_folder(engine.table).tags][:1]:
                    delete_tag(engine.table, name)
            case _:
                there = [*engine.snapshots()]
                if len(there) > 1:
                    engine.remove(f"snapshot/snapshot-{min(there)}")

    for _ in range(25):
        step(rng.choice(engines))
    seen = Engine.of(lake_at(store))
    state = record_folder(seen.table)
    assert verify(seen.table).is_empty
    assert sorted(seen.snapshots()) == sorted(state.origin.snapshots)  # type: ignore[union-attr]
    assert seen.latest() == state.last_snapshot_id
    assert seen.tags() == sorted(state.tags)
