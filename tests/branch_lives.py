"""Random histories of tables with branches, compared with a plain model."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

import ledger
from ledger import FileChange, InvalidChangeError, NotFoundError, Table, TableBranch
from tests.lakes import lake_on, memory

Files = dict[str, int]


def file(name: str, records: int = 10) -> FileChange:
    return FileChange(path=name, record_count=records, file_size_in_bytes=records * 7 + 1)


def table_with(*names: str, format_version: int = 2) -> Table:
    lake = lake_on(memory())
    lake.create_database("shop")
    columns = ledger.Schema.of(
        {"id": "BIGINT", "day": "INT"},
        options={"ledger.formats": "iceberg", "format-version": str(format_version)},
    )
    table = lake.create_table("shop.orders", columns)
    for each in names:
        table.append([file(each)])
    return table


def shown(table: Table, branch: str | None = None, version: int | None = None) -> Files:
    at = table.at(version=version) if branch is None else table.branch(branch).at(version=version)
    found = {each.path: each.record_count for each in at.files}
    assert at.totals.record_count == sum(found.values())
    assert at.totals.file_count == len(found)
    planned = {each.file.path: each.file.record_count for each in at.plan().files}
    assert planned == found
    return found


class Model:
    """A plain model of a table with branches."""

    def __init__(self) -> None:
        self.snapshots: list[Files] = []
        self.branches: dict[str, tuple[int, list[Files]]] = {}
        self.names = 0

    def main(self) -> Files:
        return self.snapshots[-1] if self.snapshots else {}

    def on(self, branch: str) -> Files:
        base, own = self.branches[branch]
        return own[-1] if own else self.snapshots[base]

    def all(self) -> dict[str | None, Files]:
        return {None: dict(self.main()), **{name: dict(self.on(name)) for name in self.branches}}


class Life:
    """A table and its model, to which the same things happen."""

    def __init__(self, seed: int, format_version: int = 2) -> None:
        self.rng = random.Random(seed)
        self.table = table_with(format_version=format_version)
        self.model = Model()

    def step(self) -> None:
        """Do one thing to both."""
        model, name = self.model, self.rng.choice("ab")
        branch = self.table.branch(name)
        model.names += 1
        new = file(f"{model.names}.parquet", self.rng.randrange(1, 9))
        courses = [lambda: self.append(new)]
        if model.snapshots:
            courses += [self.change_main] * 2
        if model.snapshots and name not in model.branches:
            courses += [lambda: self.create(branch)] * 5
        if name in model.branches:
            courses += [lambda: self.commit(branch, new)] * 7
            courses += [lambda: self.forward(branch), lambda: self.begin_or_end(branch)]
        self.rng.choice(courses)()

    def append(self, new: FileChange) -> None:
        self.table.append([new])
        self.model.snapshots.append({**self.model.main(), new.path: new.record_count})

    def change_main(self) -> None:
        model, rng = self.model, self.rng
        target = rng.randrange(len(model.snapshots))
        kind = rng.choice(["delete", "rollback", "expire"])
        if kind == "expire":
            self.table.expire_snapshots(before=target + 1)
        elif kind == "rollback":
            with suppress(NotFoundError):
                self.table.rollback(snapshot=target + 1)
                model.snapshots.append(model.snapshots[target])
        elif model.main():
            gone = rng.choice(sorted(model.main()))
            self.table.delete_files(gone)
            model.snapshots.append({k: v for k, v in model.main().items() if k != gone})

    def create(self, branch: TableBranch) -> None:
        base = self.rng.randrange(len(self.model.snapshots))
        with suppress(NotFoundError):
            branch.create(snapshot=base + 1)
            self.model.branches[branch.name] = (base, [])

    def begin_or_end(self, branch: TableBranch) -> None:
        if self.rng.random() < 0.5:
            branch.reset()
            self.model.branches[branch.name] = (len(self.model.snapshots) - 1, [])
        else:
            branch.delete()
            del self.model.branches[branch.name]

    def commit(self, branch: TableBranch, new: FileChange) -> None:
        (base, own), there = self.model.branches[branch.name], self.model.on(branch.name)
        kind = self.rng.choice(["add", "add", "over", "from", "back"])
        if kind == "add":
            branch.append([new])
            own.append({**there, new.path: new.record_count})
        elif kind == "over":
            branch.overwrite([new])
            own.append({new.path: new.record_count})
        elif kind == "back":
            number = self.rng.randint(0, len(own))
            ids = branch.state.snapshot_ids
            branch.rollback(snapshot=ids[number - 1] if number else base + 1)
            own.append(own[number - 1] if number else self.model.snapshots[base])
        elif there:
            gone = self.rng.choice(sorted(there))
            branch.delete_files(gone)
            own.append({k: v for k, v in there.items() if k != gone})

    def forward(self, branch: TableBranch) -> None:
        (base, own), snapshots = self.model.branches[branch.name], self.model.snapshots
        if base < len(snapshots) - 1 or not own:
            with pytest.raises(InvalidChangeError, match=r"main (cannot be|equals branch)"):
                branch.fast_forward()
            return
        state = branch.fast_forward().state
        assert state.totals.record_count == sum(own[-1].values())
        snapshots.append(own[-1])
        self.model.branches[branch.name] = (len(snapshots) - 1, [])


def lived(seed: int, steps: int) -> tuple[Table, dict[int, dict[str | None, Files]]]:
    """Return a table after random steps, and what each of its versions is by the model."""
    life = Life(seed)
    versions: dict[int, dict[str | None, Files]] = {0: life.model.all()}
    for _ in range(steps):
        life.step()
        versions[life.table.state.version] = life.model.all()
    return life.table, versions
