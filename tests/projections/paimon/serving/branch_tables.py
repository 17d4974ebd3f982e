"""A served Paimon table, changed on all its lines beside a model of its folder."""

from __future__ import annotations

from attrs import define, evolve, field

from ledger import Schema
from ledger.events.schema import SetOption
from ledger.model.errors import UnsupportedError
from ledger.model.instant import SnapshotInstant
from ledger.model.names import Identifier
from ledger.model.snapshot import Snapshot
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle, handle_of
from projections.outputs import StoreOutputs
from projections.paimon.branch_files import branch_names, line_texts
from projections.paimon.branch_lines import line_state
from projections.paimon.schema_file import schema_file, schema_from_json
from projections.paimon.served import alter_table, create_table
from projections.paimon.served_branches import (
    create_branch,
    drop_branch,
    forward_branch,
    rename_branch,
)
from projections.paimon.served_commits import SnapshotRequest, commit_snapshot
from projections.paimon.served_files import outputs_of_engines
from projections.paimon.served_folder import record_folder
from projections.paimon.served_rollback import rollback_table
from projections.paimon.served_tags import create_tag, delete_tag
from projections.paimon.snapshot_file import snapshot_file, tag_file
from tests.lakes import START_MILLIS, lake_on, memory
from tests.projections.paimon.serving.folder_model import MAIN, Files, FolderModel

NAME = Identifier("a", "t")


@define
class Clock:
    """A clock that stands until it is moved."""

    millis: int = START_MILLIS

    def __call__(self) -> int:
        return self.millis


@define
class TwinTable:
    """A served table and the model of its folder; every method changes both.

    Attributes:
        clock: The ledger's clock.
        table: The table, as the server of the next request has it.
        other: The same in another server.
        model: The model of its folder.
    """

    clock: Clock = field(factory=Clock)
    table: TableHandle = field(init=False)
    other: TableHandle = field(init=False)
    model: FolderModel = field(factory=FolderModel)
    _count: int = 0

    def __attrs_post_init__(self) -> None:
        lake = lake_on(memory(), clock=self.clock)
        lake.create_database("a")
        schema = Schema.of({"id": "BIGINT", "day": "DATE"}, partition_keys=["day"])
        self.table = create_table(handle_of(lake), NAME, schema)
        self.other = self.table.again()
        self.model.lines[MAIN] = self.files()[MAIN]

    @property
    def outputs(self) -> StoreOutputs:
        return outputs_of_engines(self.table, self.table.state)

    def change_server(self) -> None:
        """Let the other server answer the next requests."""
        self.table, self.other = self.other, self.table

    def restart(self) -> None:
        """Let a new server answer the next requests."""
        self.table = self.table.again()

    def state(self, line: str) -> TableState:
        return line_state(self.table, self.table.state, line)

    def recorded(self) -> dict[str, Files]:
        """Return the texts of the files of all lines, as the ledger has them."""
        state = self.table.state
        lines = (MAIN, *branch_names(state))
        return {
            line: {path: text() for path, text in line_texts(state, line).items()} for line in lines
        }

    def files(self) -> dict[str, Files]:
        """Return the texts of the files of all lines in the folder, without hints."""
        outputs, found = self.outputs, {MAIN: Files()}
        for folder in ("schema", "snapshot", "tag", "branch"):
            for key in outputs.paths(folder):
                branch, _, inside = key.removeprefix("branch/branch-").partition("/")
                line, path = (branch, inside) if folder == "branch" else (MAIN, key)
                body = outputs.read(key)
                what, _, file = path.partition("/")
                if body is not None and file.startswith(f"{what}-"):
                    found.setdefault(line, {})[path] = body.decode()
        return found

    def commit(self, line: str) -> None:
        """Commit a snapshot with a time that differs from the ledger's."""
        ids = self.model.numbers(line, "snapshot")
        self._count += 1
        latest = self.state(line).snapshot
        snapshot = Snapshot(
            id=ids[-1] + 1 if ids else 1,
            schema_id=self.model.numbers(line, "schema")[-1],
            commit_kind="APPEND",
            commit_user="job",
            commit_identifier=self._count,
            time_millis=self.clock.millis - 7,
            total_record_count=self._count,
            delta_record_count=1,
            base_manifest_list=f"base-{self._count}",
            delta_manifest_list=f"delta-{self._count}",
            uuid=f"uuid-{self._count}",
            properties={"n": str(self._count)},
        )
        base = None if latest is None else latest.uuid
        request = SnapshotRequest(
            table_id=self.table.state.table_id, snapshot=snapshot, base_snapshot_uuid=base
        )
        assert commit_snapshot(self.table, request, branch=line)
        path = f"snapshot/snapshot-{snapshot.id}"
        self.model.write(line, path, snapshot_file(snapshot).decode())

    def alter(self, line: str) -> None:
        """Set an option."""
        self._count += 1
        option, value = f"o{self._count % 3}", str(self._count)
        last = self.model.numbers(line, "schema")[-1]
        before = schema_from_json(self.model.lines[line][f"schema/schema-{last}"])
        alter_table(self.table, [SetOption(option, value)], branch=line)
        after = evolve(
            before,
            id=last + 1,
            options={**before.options, option: value},
            time_millis=self.clock.millis,
        )
        self.model.write(line, f"schema/schema-{last + 1}", schema_file(after).decode())

    def tag(self, line: str, name: str, snapshot_id: int, retained: int | None) -> None:
        """Create a tag through the catalog."""
        create_tag(
            self.table, name, snapshot_id=snapshot_id, time_retained_millis=retained, branch=line
        )
        self.model.write(line, f"tag/tag-{name}", self._tag(line, snapshot_id, retained))

    def tag_by_engine(self, line: str, name: str, snapshot_id: int, retained: int | None) -> None:
        """Write the file of a tag, as engines do."""
        text = self._tag(line, snapshot_id, retained)
        self.outputs.restore(_path(line, f"tag/tag-{name}"), text.encode())
        self.model.write(line, f"tag/tag-{name}", text)

    def _tag(self, line: str, snapshot_id: int, retained: int | None) -> str:
        snapshot = self.state(line).origin_of_kind(PaimonOrigin).snapshots[snapshot_id]
        created = self.clock.millis
        return tag_file(
            snapshot, create_time_millis=created, time_retained_millis=retained
        ).decode()

    def untag(self, line: str, name: str) -> None:
        """Delete a tag."""
        delete_tag(self.table, name, branch=line)
        self.model.delete_tag(line, name)

    def rollback(self, line: str, snapshot_id: int) -> None:
        """Remove later snapshots and their tags."""
        rollback_table(self.table, SnapshotInstant(snapshot_id), branch=line)
        self.model.rollback(line, snapshot_id)

    def expire(self, line: str, earliest: int) -> None:
        """Expire older snapshots by deleting their files, as engines do."""
        for each in self.model.numbers(line, "snapshot"):
            if each < earliest:
                self.outputs.remove(_path(line, f"snapshot/snapshot-{each}"))
                del self.model.lines[line][f"snapshot/snapshot-{each}"]

    def record(self) -> None:
        """Let the ledger read what engines did to the folders."""
        for line in self.model.lines:
            record_folder(self.table, line)

    def create(self, name: str, tag: str | None, line: str) -> None:
        create_branch(self.table, name, tag=tag, line=line)
        self.model.create(name, tag, line)

    def rename(self, name: str, to_name: str) -> None:
        rename_branch(self.table, name, to_name)
        self.model.rename(name, to_name)

    def drop(self, name: str) -> None:
        drop_branch(self.table, name)
        self.model.drop(name)

    def forward(self, name: str, line: str) -> None:
        try:
            forward_branch(self.table, name, line=line)
        except UnsupportedError:
            assert self.model.has_other_tagged_snapshot(name, line)
            return
        self.model.forward(name, line)


def _path(line: str, path: str) -> str:
    return path if line == MAIN else f"branch/branch-{line}/{path}"
