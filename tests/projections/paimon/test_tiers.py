"""Manifests of a snapshot, over random histories with rollbacks, compared with a plain model."""

from __future__ import annotations

import random

import pytest

from projections.paimon.paths import SnapshotLines, Tile
from tests.thorough import some


def rolled_back(seed: int, snapshots: int) -> dict[int, int]:
    rng = random.Random(seed)
    often = rng.choice((0.0, 0.03, 0.1, 0.4))
    return {
        each: rng.randrange(1, each) for each in range(2, snapshots + 1) if rng.random() < often
    }


def line(snapshot_id: int, targets: dict[int, int]) -> list[int]:
    found: list[int] = []
    while snapshot_id > 0:
        if snapshot_id in targets:
            snapshot_id = targets[snapshot_id]
        else:
            found.append(snapshot_id)
            snapshot_id -= 1
    return found[::-1]


@pytest.mark.parametrize("seed", some(range(40), 10))
def test_tiles_hold_each_change_of_a_line_once_and_know_their_readers(seed: int) -> None:
    snapshots = random.Random(seed).randrange(2, 150)
    targets = rolled_back(seed, snapshots)
    lines = SnapshotLines(sorted(targets.items()))
    readers: dict[Tile, set[int]] = {}
    for each in range(1, snapshots + 1):
        tiles = lines.tiles(each)
        runs = [run for tile in reversed(tiles) for run in lines.runs(tile)]
        assert [i for first, last in runs for i in range(first, last + 1)] == line(each, targets)
        assert lines.depth(each) == len(line(each, targets))
        assert lines.is_rollback(each) == (each in targets)
        for tile in tiles:
            readers.setdefault(tile, set()).add(each)
    for tile, ids in readers.items():
        ranges = lines.readers(tile)
        assert {i for first, last in ranges for i in range(first, min(last, snapshots) + 1)} == ids


def test_a_line_is_few_tiles_however_often_it_was_rolled_back() -> None:
    lines = SnapshotLines()
    newest = 1
    for _ in range(2000):
        newest += 3
        lines.add(newest, newest - 2)
    assert lines.depth(newest) == 2001
    assert len(lines.tiles(newest)) < 30
