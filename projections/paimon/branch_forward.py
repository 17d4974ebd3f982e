"""Fast-forward: a line of a table takes over the contents of a branch.

The events are those of an import of the folder that Paimon's fast-forward leaves.

Source: Paimon's FileSystemBranchManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from ledger.events import TableEvent
from ledger.events.snapshots import TagReplaced
from ledger.model.errors import InvalidChangeError, UnsupportedError
from ledger.model.snapshot import Tag
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from projections.importing.trial import PlanningState
from projections.paimon.branch_files import (
    MAIN,
    TextFiles,
    branch_state,
    constant_text,
    line_texts,
)
from projections.paimon.importing import plan_transactions, with_source_times
from projections.paimon.paths import schema_path, snapshot_path, tag_path
from projections.paimon.snapshot_file import is_same_snapshot, snapshot_as_written
from projections.paimon.source import PaimonSource


def forward_events(
    state: TableState, name: str, now_millis: int, line: str = MAIN
) -> tuple[TableEvent, ...]:
    """Return the events by which a line takes over the contents of a branch.

    As in Paimon, with the branch's earliest snapshot the line loses the snapshots, tags and schemas
    from that one on, and then gets everything that the branch has. An expired snapshot that a tag
    of the branch names is a snapshot of the line where the line has older ones, so that ids have no
    gaps.

    Args:
        state: The table's state.
        name: The branch.
        now_millis: The current time, Unix milliseconds.
        line: The branch that takes over the contents.

    Raises:
        NotFoundError: A branch does not exist.
        InvalidChangeError: The branch has no snapshot, or is the line itself.
        UnsupportedError: A tag of the branch names an expired snapshot, of whose id the line has
            another one.
    """
    if name == line:
        raise InvalidChangeError(f"branch {name!r} cannot be forwarded to itself")
    seen, before = branch_state(state, name), branch_state(state, line)
    branch = seen.origin_of_kind(PaimonOrigin)
    origin = before.origin_of_kind(PaimonOrigin)
    if not branch.snapshots:
        raise InvalidChangeError(
            f"branch {name!r} has no snapshot, so that nothing can be forwarded; commit to it first"
        )
    earliest = branch.snapshots[min(branch.snapshots)]
    gone = {
        *(schema_path(each) for each in origin.schemas if each >= earliest.schema_id),
        *(snapshot_path(each) for each in origin.snapshots if each >= earliest.id),
        *(tag_path(each) for each, it in before.tags.items() if it.snapshot_id >= earliest.id),
    }
    texts = {path: it for path, it in line_texts(state, line).items() if path not in gone}
    texts |= line_texts(state, name)
    for other, files in origin.branches.items():
        for path, text in files.items():
            texts[f"branch/branch-{other}/{path}"] = constant_text(text)
    source = PaimonSource(
        origin.location, TextFiles(origin.location, texts), {}, snapshot_as_written
    )
    trial = PlanningState(before, max(now_millis, before.time_millis, before.effective_millis))
    events = [event for plan in plan_transactions(trial, source) for event in plan.events]
    _check_tags(seen, trial.state, name)
    return tuple(with_source_times(source, (*events, *_tag_time_events(before.tags, seen.tags))))


def _check_tags(branch: TableState, after: TableState, name: str) -> None:
    """Check that the tags of a branch name the same snapshots in the line that has it afterwards.

    The log names a snapshot by its id, and a line may have another one of the id.
    """
    snapshots = branch.origin_of_kind(PaimonOrigin).readable_snapshots
    there = after.origin_of_kind(PaimonOrigin).readable_snapshots
    for tag in branch.tags.values():
        number = tag.snapshot_id
        if not is_same_snapshot(there[number], snapshots[number]):
            raise UnsupportedError(
                f"branch {name!r} cannot be forwarded: its tag {tag.name!r} names an expired "
                f"snapshot {number}, and the line has another one of that id; delete the tag first"
            )


def _tag_time_events(before: Mapping[str, Tag], tags: Mapping[str, Tag]) -> Iterator[TagReplaced]:
    """Yield events for tags that differ only in their creation times, from which retention counts.

    Args:
        before: The tags of the line.
        tags: Those of the branch.
    """
    for name, tag in tags.items():
        known, retained = before.get(name), tag.time_retained_millis
        if known is None or known == tag or retained is None:
            continue
        if known == evolve(tag, create_time_millis=known.create_time_millis):
            yield TagReplaced(
                tag_name=name, snapshot_id=tag.snapshot_id, time_retained_millis=retained
            )
