from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.log.lookup import KeyIndex, hashed, tiles


@given(st.integers(1, 5000))
def test_tiles_cover_every_version_once(steps: int) -> None:
    covered = [each for first, last in tiles(steps * 100) for each in range(last, first - 1, -100)]
    intervals = list(tiles(steps * 100))
    assert intervals[0][1] == steps * 100
    assert intervals[-1][0] == 0
    assert all(newer[0] == older[1] + 1 for newer, older in pairwise(intervals))
    assert len(intervals) <= 7 * 5
    assert covered


@given(st.lists(st.tuples(st.text(), st.integers(0, 2**40))))
def test_an_index_finds_every_version_of_a_key(pairs: list[tuple[str, int]]) -> None:
    index = KeyIndex.of((hashed(key), version) for key, version in pairs)
    again = KeyIndex.from_bytes(index.to_bytes())
    assert again == index
    for key, _ in pairs:
        expected = sorted((version for name, version in pairs if name == key), reverse=True)
        assert index.find(key) == expected


@pytest.mark.parametrize("at", [0, 9, 20, -1])
def test_a_changed_index_is_not_believed(at: int) -> None:
    body = bytearray(KeyIndex.of([(1, 2), (3, 4)]).to_bytes())
    body[at] ^= 1
    assert KeyIndex.from_bytes(bytes(body)) is None
    assert KeyIndex.from_bytes(b"") is None
