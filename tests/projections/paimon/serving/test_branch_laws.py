"""Laws of the branches of served Paimon tables."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from projections.paimon.branch_files import branch_names, branch_state
from projections.paimon.branch_lines import line_state
from projections.paimon.served_branches import create_branch, forward_branch
from projections.paimon.served_commits import commit_snapshot
from projections.paimon.served_files import write_files
from projections.paimon.served_tags import create_tag
from projections.paimon.snapshot_file import NO_WATERMARK
from tests.projections.paimon.serving.branch_tables import TwinTable
from tests.projections.paimon.serving.engines import Engine, snapshot_json
from tests.projections.paimon.serving.folder_model import MAIN, Files
from tests.thorough import examples

LAWFUL = settings(
    max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck)
)
NAMES = ("b1", "b2", "b3")
_OPERATIONS = (
    *("commit", "commit", "alter", "tag", "tag", "untag", "rollback", "expire"),
    *("restart", "change server", "change server"),
    *("create", "create", "rename", "drop", "forward", "forward"),
)


@st.composite
def _lives(draw: st.DrawFn) -> TwinTable:
    """Return a table after random operations on all its lines."""
    twin = TwinTable()
    for _ in range(draw(st.integers(1, 40))):
        twin.clock.millis += draw(st.integers(0, 5)) * 1000
        _change(draw, twin)
    return twin


def _change(draw: st.DrawFn, twin: TwinTable) -> None:  # noqa: C901, PLR0912 - a case an operation
    model = twin.model
    line = draw(st.sampled_from(sorted(model.lines)))
    branches = sorted(model.lines.keys() - {MAIN})
    snapshots, tags = model.numbers(line, "snapshot"), sorted(model.tags(line))
    free = [each for each in NAMES if each not in branches]
    match draw(st.sampled_from(_OPERATIONS)):
        case "commit":
            twin.commit(line)
        case "alter":
            twin.alter(line)
        case "tag" if snapshots:
            name = f"v{draw(st.integers(0, 3))}"
            retained = draw(st.sampled_from((None, 86_400_000)))
            if name not in tags:
                create = draw(st.sampled_from((twin.tag, twin.tag_by_engine)))
                create(line, name, draw(st.sampled_from(snapshots)), retained)
        case "untag" if tags:
            twin.untag(line, draw(st.sampled_from(tags)))
        case "rollback" if snapshots:
            twin.rollback(line, draw(st.sampled_from(snapshots)))
        case "expire" if snapshots:
            twin.expire(line, draw(st.sampled_from(snapshots)))
        case "restart":
            twin.restart()
        case "change server":
            twin.change_server()
        case "create" if free:
            tag = draw(st.sampled_from((None, *tags)))
            twin.create(draw(st.sampled_from(free)), tag, line)
        case "rename" if branches and free:
            twin.rename(draw(st.sampled_from(branches)), draw(st.sampled_from(free)))
        case "drop" if branches:
            twin.drop(draw(st.sampled_from(branches)))
        case "forward":
            ready = [each for each in branches if each != line and model.numbers(each, "snapshot")]
            if ready:
                twin.forward(draw(st.sampled_from(ready)), line)


def _flat(lines: dict[str, Files]) -> Files:
    return {f"{line}/{path}": text for line, files in lines.items() for path, text in files.items()}


@given(_lives())
@LAWFUL
def test_every_line_has_the_files_of_a_folder_that_paimon_changes(twin: TwinTable) -> None:
    assert _flat(twin.files()) == _flat(twin.model.lines)
    twin.record()
    assert _flat(twin.recorded()) == _flat(twin.model.lines)
    again = twin.table.again()
    write_files(again, again.state)
    assert _flat(twin.files()) == _flat(twin.model.lines)


@given(_lives())
@LAWFUL
def test_a_branch_read_again_equals_the_branch_that_grew(twin: TwinTable) -> None:
    state = twin.table.state
    for name in branch_names(state):
        assert branch_state(state, name) == line_state(twin.table, state, name)
    assert twin.table.again().state == state


def test_a_forwarded_snapshot_is_recorded_as_its_engine_sent_it() -> None:
    engine = Engine.of_new_table()
    engine.commit(watermark=NO_WATERMARK)
    create_tag(engine.table, "start", snapshot_id=1)
    create_branch(engine.table, "work", tag="start")
    sent = snapshot_json(2, watermark=NO_WATERMARK)
    assert commit_snapshot(engine.table, engine.request(sent), branch="work")
    forward_branch(engine.table, "work")
    recorded = engine.table.state.snapshot
    assert recorded is not None
    assert recorded.watermark == NO_WATERMARK
    assert engine.snapshots()[2]["watermark"] == NO_WATERMARK
