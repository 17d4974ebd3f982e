from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidNameError
from ledger.stores.base import folder_of, is_key

near_misses = st.lists(st.sampled_from(["/", ".", "..", "a", "\\", "\0", "\n", ".tmp-", ".lock"]))


@given(near_misses.map("".join) | st.text())
def test_a_key_stays_below_every_root_and_has_one_spelling(text: str) -> None:
    if is_key(text):
        assert posixpath.normpath(f"/root/{text}") == f"/root/{text}"
        assert not any(ord(letter) < 32 or letter in "\x7f\\" for letter in text)


@given(st.lists(st.from_regex(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*", fullmatch=True), min_size=1))
def test_plain_names_are_keys(segments: list[str]) -> None:
    assert is_key("/".join(segments))


@pytest.mark.parametrize("path", ["../a", "/a", "a//b", ""])
def test_what_is_no_path_stands_in_no_folder(path: str) -> None:
    with pytest.raises(InvalidNameError, match="cannot be a key"):
        folder_of(path)
