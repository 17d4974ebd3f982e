"""Tags that are created while another server changes the table: the file and the log agree."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ledger import NotFoundError
from ledger.model.instant import SnapshotInstant
from ledger.stores import Store
from projections.paimon.branch_lines import line_state
from projections.paimon.served_branches import create_branch
from projections.paimon.served_folder import record_folder
from projections.paimon.served_rollback import rollback_table
from projections.paimon.served_tags import create_tag, delete_tag
from tests.faults import SometimesFaulty, Wrapped
from tests.lakes import memory
from tests.projections.paimon.serving.engines import Engine, lake_at


class ActsAround(SometimesFaulty):
    """Runs an action before and another one after the create of a tag's file."""

    def __init__(
        self, inner: Store, before: Callable[[], object], after: Callable[[], object]
    ) -> None:
        super().__init__(inner, on=lambda key: "/tag/" in key, times=1)
        self._before, self._after = before, after

    def create(self, key: str, body: bytes) -> bool:
        if not self.is_hit(key):
            return super().create(key, body)
        self._before()
        answer = super().create(key, body)
        self._after()
        return answer


def nothing(_engine: Engine) -> None:
    pass


def commit(engine: Engine) -> None:
    engine.sent = engine.snapshots()[2]
    engine.commit()


def record(engine: Engine) -> None:
    record_folder(engine.table)


def roll_back(engine: Engine) -> None:
    rollback_table(engine.table, SnapshotInstant(1))


def roll_back_and_commit(engine: Engine) -> None:
    roll_back(engine)
    engine.sent = engine.snapshots()[1]
    engine.commit(deltaManifestList="instead")


def create(before: Callable[[Engine], None], after: Callable[[Engine], None]) -> Engine:
    """Tag the newest of two snapshots while another server does something; return the other one."""
    inner = memory()
    engine = Engine.of_new_table(inner)
    engine.commit()
    engine.commit()
    other = Engine.of(lake_at(inner))
    store = ActsAround(inner, lambda: before(other), lambda: after(other))
    create_tag(Engine.of(lake_at(store)).table, "new")
    return other


@pytest.mark.parametrize(
    ("before", "after"), [(commit, nothing), (nothing, commit), (nothing, record)]
)
def test_a_tag_is_of_the_snapshot_in_its_file_and_recorded_once(
    before: Callable[[Engine], None], after: Callable[[Engine], None]
) -> None:
    other = create(before, after)
    state = other.table.state
    assert state.tags["new"].snapshot_id == 2
    assert other.tags() == ["new"]
    # The folder has nothing that the log does not have.
    assert record_folder(other.table).version == state.version


@pytest.mark.parametrize("before", [roll_back, roll_back_and_commit])
def test_no_tag_is_left_of_a_snapshot_that_was_rolled_back(
    before: Callable[[Engine], None],
) -> None:
    engines: list[Engine] = []

    def keep(engine: Engine) -> None:
        engines.append(engine)
        before(engine)

    with pytest.raises(NotFoundError):
        create(keep, nothing)
    assert engines[0].tags() == []
    assert not record_folder(engines[0].table).tags


class ActsAfterDelete(Wrapped):
    """Runs an action after the delete of a tag's file."""

    def __init__(self, inner: Store, action: Callable[[], object]) -> None:
        super().__init__(inner)
        self._action = action

    def delete(self, key: str) -> None:
        super().delete(key)
        if "/tag/" in key:
            self._action()


@pytest.mark.parametrize("branch", [None, "b"])
def test_a_tag_is_deleted_also_if_another_server_records_it(branch: str | None) -> None:
    inner = memory()
    engine = Engine.of_new_table(inner)
    engine.commit()
    create_tag(engine.table, "old")
    create_branch(engine.table, "b", tag="old")
    store = ActsAfterDelete(inner, lambda: record_folder(engine.table, branch))
    delete_tag(Engine.of(lake_at(store)).table, "old", branch=branch)
    assert not line_state(engine.table, engine.table.state, branch).tags
    with pytest.raises(NotFoundError):
        delete_tag(engine.table, "old", branch=branch)
