"""Kept inputs of the fuzzer: each ends in success or in a documented error, and writes nothing."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import InvalidInputError
from tests.fuzzing import running
from tests.fuzzing.cases import CORPUS, Case, decoded, encoded, kept_cases, seed_names
from tests.fuzzing.minimising import minimised
from tests.fuzzing.running import run

SMALL = 300_000
"""Bytes that the corpus may take."""


@pytest.mark.parametrize("name", seed_names())
def test_a_valid_source_is_accepted(name: str) -> None:
    found = run(Case(name, {}))

    assert found.kind == "accepted", f"{found.what}\n{found.detail}"


@pytest.mark.parametrize("name", [each for each in kept_cases() if each not in seed_names()])
def test_an_input_that_was_a_finding_is_accepted_or_rejected(name: str) -> None:
    found = run(kept_cases()[name])

    assert found.kind in {"accepted", "rejected"}, f"{found.what}\n{found.detail}"


def test_the_corpus_is_small() -> None:
    assert sum(each.stat().st_size for each in CORPUS.rglob("*") if each.is_file()) < SMALL


def raise_key_error() -> None:
    raise KeyError("a")


def open_another_file() -> None:
    Path("/etc/hostname").open("rb").close()


def call_a_host() -> None:
    with socket.socket() as made:
        made.connect(("127.0.0.1", 9))


def hang() -> None:
    time.sleep(60)


def recurse() -> None:
    recurse()


def reject() -> None:
    raise InvalidInputError("no")


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (raise_key_error, "finding"),
        (open_another_file, "finding"),
        (call_a_host, "finding"),
        (hang, "finding"),
        (recurse, "finding"),
        (reject, "rejected"),
    ],
)
def test_each_kind_of_fault_is_a_finding(
    fault: Callable[[], None], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SECONDS", 1)
    monkeypatch.setitem(running._TARGETS, "parquet", lambda *_: fault())

    assert run(Case("parquet-pyarrow", {})).kind == kind


def test_a_finding_is_made_small() -> None:
    path = "_delta_log/_last_checkpoint"
    text = b'{"version":7,"extra":{"a":[1,2,3]},"size":5}'
    large = Case("delta-rs", {path: text, "other.txt": b"noise"})

    def still_fails(case: Case) -> bool:
        return b'"version":7' in case.files[path].replace(b": ", b":")

    small = minimised(large, still_fails)

    assert decoded(encoded(small)) == small
    assert [*small.changed] == [path]
    assert b"extra" not in small.files[path]
