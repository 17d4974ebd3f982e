"""Random histories of Delta tables, and what a projection left on a store."""

from __future__ import annotations

import json
import random
from typing import Any

from attrs import frozen

from ledger import AlreadyExistsError, InvalidInputError, NotFoundError, Schema, Table
from ledger.stores import Store
from ledger.table_handle import handle_of
from projections.delta import Reconciled, checkpoint_path, commit_path, from_parquet, is_checkpoint
from projections.delta.actions import FOLDER, HINT, version_of
from projections.materialising import outputs_of
from tests.lakes import lake_on, orders, reader_grace
from tests.projections.paimon.projecting import new_files, step


def random_table(seed: int, store: Store, steps: int = 40) -> Table:
    rng = random.Random(seed)
    columns = {"id": "BIGINT NOT NULL", "day": "DATE", "amount": "INT"}
    options = {"ledger.formats": "paimon,iceberg,delta", "delta.checkpointInterval": "5"}
    options |= reader_grace(seed)
    table = orders(lake_on(store), Schema.of(columns, partition_keys=["day"], options=options))
    go_on(table, rng, steps)
    return table


def go_on(table: Table, rng: random.Random, steps: int) -> None:
    for _ in range(steps):
        try:
            if rng.random() < 0.1:
                # What other names once stood in the way of comes in now.
                table.overwrite(list(new_files(table.state, rng)))
            else:
                step(table, rng)
        except (InvalidInputError, NotFoundError, AlreadyExistsError):
            continue


@frozen
class Left:
    """The files of one table's projection that are on a store, by path below its location."""

    files: dict[str, bytes]

    @classmethod
    def by(cls, table: Table) -> Left:
        outputs = outputs_of(handle_of(table))
        paths = list(outputs.paths(FOLDER))
        return cls({path: outputs.read(path) or b"" for path in paths})

    def versions(self) -> tuple[int, int]:
        """Return the first and the last version that can be read."""
        commits = set(self.infos())
        return (0 if 0 in commits else self._checkpoints()[0]), max(commits)

    def _checkpoints(self) -> list[int]:
        found = (version_of(path) for path in self.files if is_checkpoint(path))
        return sorted(each for each in found if each is not None)

    def at(self, version: int) -> Reconciled:
        """Return what a version holds, as any reader finds it; KeyError names what is missing."""
        newest = max((each for each in self._checkpoints() if each <= version), default=-1)
        return self._from(newest, version)

    def _from(self, checkpoint: int, version: int) -> Reconciled:
        found = Reconciled()
        if checkpoint >= 0:
            found = from_parquet(self.files[checkpoint_path(checkpoint)])
        for each in range(checkpoint + 1, version + 1):
            found.apply(self.files[commit_path(each)])
        return found

    def hinted(self, version: int) -> Reconciled:
        """Return the same by the checkpoint that the hint leads to."""
        return self._from(json.loads(self.files[HINT])["version"], version)

    def infos(self) -> dict[int, dict[str, Any]]:
        """Return the provenance of each commit that stands."""
        return {
            version: json.loads(body.splitlines()[0])["commitInfo"]
            for path, body in sorted(self.files.items())
            if (version := version_of(path)) is not None and not is_checkpoint(path)
        }


def is_consistent(left: Left) -> bool:
    """Return whether the newest version is whole, by the hint and without it; else KeyError."""
    if not left.files:
        return True
    _, newest = left.versions()
    found = left.at(newest)
    if HINT in left.files:
        assert left.hinted(newest).adds.keys() == found.adds.keys()
    return bool(found.metadata)
