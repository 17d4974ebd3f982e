from __future__ import annotations

import random
import string

import pytest

from ledger.cli.commands import NAMES
from ledger.model.messages import join_names, name_hint, similar_names


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("shwo", "show"),
        ("lgo", "log"),
        ("snap", "snapshots"),
        ("quikstrt", "quickstart"),
        ("Alter", "alter"),
        ("verfy", "verify"),
        ("add-fles", "add-files"),
    ],
)
def test_a_slip_of_the_hand_finds_the_word(word: str, wanted: str) -> None:
    assert similar_names(word, NAMES) == [wanted]


@pytest.mark.parametrize("word", ["convert", "frobnicate", "xyz", "expose", "creation", "a", ""])
def test_words_that_only_share_letters_are_not_suggested(word: str) -> None:
    assert similar_names(word, NAMES) == []


def test_no_two_commands_are_taken_for_one_another() -> None:
    for name in NAMES:
        assert similar_names(name, [each for each in NAMES if each != name]) == []


def test_one_letter_wrong_too_many_missing_or_swapped_is_found() -> None:
    rng = random.Random(7)
    for _ in range(300):
        word = "".join(rng.choices(string.ascii_lowercase, k=rng.randint(4, 12)))
        at, letter = rng.randrange(len(word) - 1), rng.choice(string.ascii_lowercase)
        for wrong in (
            word[:at] + letter + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + word[at + 1 :],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        ):
            assert similar_names(wrong, ["something_else", word]) == [word]


def test_a_long_list_is_shown_by_its_beginning() -> None:
    names = [f"c{each:04}" for each in range(1000)]
    assert name_hint("fax", names).endswith("'c0011' and 988 more")
    assert join_names([]) == "none"
