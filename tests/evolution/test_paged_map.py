from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from ledger import DamagedLogError, InvalidChangeError
from ledger.state.paged_map import (
    PAGE_LENGTH,
    EntryFormat,
    PagedMap,
    PagedMapDraft,
    PagesRecord,
    page_count,
)


def _refuse(text: str, there: int, new: int) -> int:
    raise InvalidChangeError(f"{text} is {there} and cannot be {new}")


NUMBERS = EntryFormat[str, int](
    text_of=str,
    key_of=str,
    record_of=lambda value: value,
    value_of=msgspec.json.Decoder(int).decode,
    order=lambda key, _: key,
    combine=_refuse,
)

KEYS = st.sampled_from([f"k{number}" for number in range(40)])
CHANGES = st.dictionaries(KEYS, st.none() | st.integers(0, 9), max_size=20)


class Files:
    """Page files in memory; reading one is counted, and some may be missing."""

    def __init__(self, whole: PagedMap[str, int]) -> None:
        self.kept: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.times = 0
        self._whole = whole
        record, bodies = whole.record()
        self.kept.update(bodies)
        self.record = msgspec.json.decode(msgspec.json.encode(record), type=PagesRecord)

    def read(self, names: Sequence[str]) -> list[bytes | None]:
        self.asked += names
        self.times += 1
        return [self.kept.get(name) for name in names]

    def replayed(self) -> Any:
        return self._whole

    def reopened(self) -> PagedMap[str, int]:
        return PagedMap.of_record(NUMBERS, self.record, self, lambda state: state)


def stored(entries: dict[str, int], pages: int) -> Files:
    return Files(PagedMap.of(NUMBERS, entries, pages=pages))


@given(
    steps=st.lists(st.tuples(CHANGES, st.sampled_from([1, 2, 4, 8])), max_size=8),
    reopens=st.booleans(),
)
def test_it_has_what_a_dict_has_and_older_copies_stay(
    *, steps: list[tuple[dict[str, int | None], int]], reopens: bool
) -> None:
    paged, plain = PagedMap.of(NUMBERS), dict[str, int]()
    older: list[tuple[PagedMap[str, int], dict[str, int]]] = []
    for changes, pages in steps:
        older.append((paged, dict(plain)))
        if reopens:
            paged = Files(paged).reopened()
        paged = paged.changed(changes, pages=pages)
        for key, value in changes.items():
            plain.pop(key, None)
            if value is not None:
                plain[key] = value
    for then, expected in [*older, (paged, plain)]:
        assert dict(then) == expected
        assert [*then] == sorted(expected)
        assert len(then) == len(expected)
        assert all((key in then) == (key in expected) for key in map("k{}".format, range(40)))


@given(CHANGES, CHANGES)
def test_equal_mappings_have_equal_records(
    one: dict[str, int | None], other: dict[str, int | None]
) -> None:
    step_by_step = PagedMap.of(NUMBERS).changed(one, pages=4).changed(other, pages=4)
    at_once = PagedMap.of(NUMBERS, dict(step_by_step), pages=4)
    assert step_by_step.record() == at_once.record()


def test_one_entry_reads_one_page() -> None:
    files = stored({f"k{number}": number for number in range(1000)}, 16)
    paged = files.reopened()
    assert files.asked == []
    assert paged["k500"] == 500
    assert "k500" in paged
    assert len(files.asked) == 1


def test_adding_reads_no_page_and_a_contradiction_is_found_when_its_page_is_read() -> None:
    files = stored({"k1": 1}, 16)
    draft = PagedMapDraft(NUMBERS, files.reopened())
    draft.add("k1", 2)
    draft.add("k2", 2)
    changed = draft.frozen(16)
    assert files.asked == []
    assert changed["k2"] == 2
    with pytest.raises(DamagedLogError, match="k1 is 1 and cannot be 2"):
        dict(changed)


def test_a_contradiction_in_a_page_that_was_read_is_found_at_once() -> None:
    paged = stored({"k1": 1}, 16).reopened()
    assert paged["k1"] == 1
    draft = PagedMapDraft(NUMBERS, paged)
    with pytest.raises(InvalidChangeError):
        draft.add("k1", 2)
    draft.discard("k1")
    draft.add("k1", 3)
    assert draft.frozen(16)["k1"] == 3


@pytest.mark.parametrize("steps", [(None, 2), (None, 2, None), (None, 2, None, 3)])
def test_what_was_removed_can_be_added_before_its_page_is_read(
    steps: tuple[int | None, ...],
) -> None:
    files = stored({"k1": 1}, 16)
    paged = files.reopened()
    for key_value in steps:
        draft = PagedMapDraft(NUMBERS, paged)
        if key_value is None:
            draft.discard("k1")
        else:
            draft.add("k1", key_value)
        paged = draft.frozen(16)
    assert files.asked == []
    assert paged.get("k1") == steps[-1]


def test_a_missing_page_is_taken_from_a_replay() -> None:
    entries = {f"k{number}": number for number in range(100)}
    files = stored(entries, 4)
    files.kept.clear()
    assert dict(files.reopened()) == entries


def test_all_entries_are_read_together() -> None:
    files = stored({f"k{number}": number for number in range(1000)}, 16)
    draft = PagedMapDraft(NUMBERS, files.reopened())
    draft.add("new", 1)
    assert len(draft.frozen(16)) == 1001
    assert (files.times, len(files.asked)) == (1, 16)


def test_only_changed_pages_are_written_again() -> None:
    files = stored({f"k{number}": number for number in range(1000)}, 16)
    changed = files.reopened().changed({"k7": 0}, pages=16)
    record, bodies = changed.record()
    assert len(bodies) == 1
    assert len(set(record["pages"]) - set(files.record.pages)) == 1
    changed.mark_stored(record["pages"])
    assert changed.record() == (record, {})


def test_pages_stay_short() -> None:
    entries = {f"shop.t{number:06}": number for number in range(10_000)}
    record, bodies = PagedMap.of(NUMBERS, entries, pages=page_count(len(entries))).record()
    lengths = [len(msgspec.json.decode(body, type=dict[str, Raw])) for body in bodies.values()]
    assert sum(lengths) == len(entries)
    assert max(lengths) <= 2 * PAGE_LENGTH
    assert len(record["pages"]) == page_count(len(entries))


@pytest.mark.parametrize("names", [["../x"] * 2, ["a" * 32] * 3, ["a" * 31 + "/"] * 2])
def test_names_that_no_page_has_are_rejected(names: list[str]) -> None:
    files = stored({"k1": 1}, 2)
    record = PagesRecord(pages=tuple(names))
    with pytest.raises(msgspec.ValidationError):
        PagedMap.of_record(NUMBERS, record, files, lambda state: state)
    assert files.asked == []
